"""``git safety agent``: the reference loop on a terminal, with a model behind an endpoint."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import partial
from getpass import getpass
from pathlib import Path
from typing import Any, TextIO

from safety.agent import messages as m
from safety.agent.bundles import SAMPLES
from safety.agent.journal import open_journal
from safety.agent.loop import Loop
from safety.agent.model import endpoint
from safety.commands.snapshot import take_in
from safety.faults import quoted
from safety.hooks import priorities
from safety.hooks.answers import ConfirmationResult
from safety.hooks.confirm import Auto, cli_handler
from safety.hooks.elicitation import terminal_handler
from safety.hooks.events import HookType
from safety.runtime.open import new_id, open_session
from safety.session import Session
from safety.terminal.arguments import UsageError, parser
from safety.terminal.dispatch import working_folder
from safety.terminal.draw_agent import lines
from safety.terminal.screen import line, write
from safety.terminal.text import clean
from safety.terminal.verbs import BY_NAME
from safety.terminal.window import Window
from safety.types import Decision

KEY = "OPENAI_API_KEY"
INTERRUPTED = 130
CONVERSATIONS = "agent"  # in the state folder: a folder for each


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """0 when the conversation came to its end; 130 when its one prompt was interrupted, 128+n after a signal.

    Without a prompt the lines of standard input are prompts, until it ends.
    """
    try:
        with _ended_by_signals():
            return _main(argv, environ)
    except _Ended as ended:
        return 128 + ended.number


class _Ended(BaseException):
    """SIGTERM, or the terminal was closed. Not caught on its way, so that a tool that runs is ended and recorded."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Ends what is inside by an exception, as Ctrl-C does: a command of the model's must not run on with nobody to record it."""

    def end(number: int, _: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # once is enough
        raise _Ended(number)

    both = (signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.signal(each, end) for each in both if signal.getsignal(each) != signal.SIG_IGN}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    asked = parser(BY_NAME["agent"]).parse_args(list(argv))
    if unknown := set(asked.bundles) - set(SAMPLES):
        raise UsageError(f"no sample bundle {quoted(min(unknown))}; there are {', '.join(SAMPLES)}", "git safety agent -h")
    model = endpoint(asked.model, asked.base_url, environ, stream=not asked.whole)
    cwd = working_folder(environ)
    own = {name: value for name, value in environ.items() if name != KEY}  # the model's shell is not to have it
    with closing(open_session(cwd, "", own)) as looking:
        folder = _conversation(looking.place.state / CONVERSATIONS, asked.again)
    with closing(open_session(cwd, folder.name, own, {"name": "reference", "model": asked.model})) as session:
        window = Window(environ, cwd)
        if _is_terminal(sys.stdin) and _is_terminal(sys.stderr):
            _answer_questions(session)
        made = Loop(session, open_journal(folder), model, bundles=tuple(asked.bundles))
        prompts = iter([" ".join(asked.prompt)]) if asked.prompt else _typed()
        was_interrupted = _watch(made.run(prompts), window, asked.json)
    return INTERRUPTED if was_interrupted and asked.prompt else 0


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody sits there; a stream that was closed before we started is None."""
    return stream is not None and stream.isatty()


def _conversation(folder: Path, again: bool) -> Path:
    """The folder of a new conversation, or of the one here that was spoken in last. Its name is the session's id."""
    if not again:
        return folder / f"agent-{new_id()}"
    known = sorted(folder.glob("agent-*/conversation.jsonl"), key=os.path.getmtime)
    if not known:
        raise UsageError("there is no conversation here to go on with", "git safety agent -h")
    return known[-1].parent


def _typed() -> Iterator[str]:
    while True:
        if _is_terminal(sys.stdin):
            sys.stderr.write("> ")
            sys.stderr.flush()
        typed = sys.stdin.readline() if sys.stdin else ""
        if not typed:
            return
        if typed.strip():
            yield typed.strip()


def _watch(events: Iterator[m.Event], window: Window, as_json: bool) -> bool:
    """Shows what happens; whether the last turn was interrupted. Ctrl-C while something is drawn is Ctrl-C in the loop."""
    thrown: BaseException | None = None
    was_interrupted = False
    while True:
        try:
            event = next(events) if thrown is None else events.throw(thrown)  # type: ignore[attr-defined]
            thrown = None
            was_interrupted = isinstance(event, m.Interrupted) or (was_interrupted and not isinstance(event, m.Prompted))
            _show(event, window, as_json)
        except StopIteration:
            return was_interrupted
        except KeyboardInterrupt as pressed:
            if thrown is not None:
                raise
            thrown = pressed


def _show(event: m.Event, window: Window, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(_named(event), default=str) + "\n")
    elif isinstance(event, m.Chunk):
        sys.stdout.write(clean(event.text, keep="\n\t"))
    elif isinstance(event, m.Replied):
        sys.stdout.write("\n" if event.text else "")
    else:
        window.draw(lines(event, window.view().width))
    sys.stdout.flush()


def _named(event: m.Event) -> dict[str, Any]:
    """An event under its name; that of a sub-agent lies under ``inner``."""
    name = type(event).__name__.lower()
    return (
        {"event": name, "id": event.id, "inner": _named(event.event)}
        if isinstance(event, m.Inner)
        else {"event": name, **asdict(event)}
    )


# -- questions -----------------------------------------------------------------------------------------------------------------


def _answer_questions(session: Session) -> None:
    """Whoever sits here answers what the guard asks, and what the agent does."""
    confirm = cli_handler(ask=_ask, show=_say, snapshot=partial(take_in, session), auto=Auto())

    def asked(
        tool_use: Any, preview: str | None, workspace: Path | None, decision: Decision | None = None
    ) -> ConfirmationResult | None:
        """Nothing is asked that the guard would not ask. Ctrl-C says no, and that the turn is over."""
        if decision is None or decision.action != "ask":
            return None
        try:
            return confirm(tool_use, preview, workspace, decision)
        except KeyboardInterrupt:
            raise m.Stopped from None

    session.hooks.register("terminal.confirm", HookType.TOOL_CONFIRM, asked, priorities.CLI_CONFIRM)
    elicit = terminal_handler(ask=_ask, ask_secret=lambda text: getpass(clean(text)), show=_say)
    session.hooks.register("terminal.elicit", HookType.ELICIT, elicit)


def _ask(question: str) -> str | None:
    sys.stderr.write(clean(question))
    sys.stderr.flush()
    typed = sys.stdin.readline()
    return typed.rstrip("\n") if typed else None


def _say(text: str) -> None:
    write(sys.stderr, [line(clean(each, keep="\t")) for each in text.splitlines()], False)
