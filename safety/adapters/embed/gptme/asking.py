"""Who is asked before a call runs: our guard's question at gptme's terminal, and gptme's own chain around it.

The guard has spoken before gptme's chain is asked at all (`running`). What is left to do in that chain: not to ask twice what was just
answered, to judge again what a person edits, and to capture again what they may have saved while a question stood.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from safety.adapters.embed.gptme.calls import edited, text_field

if TYPE_CHECKING:
    from safety.adapters.embed.gptme.conversations import Conversation
    from safety.session import Call, Session

log = logging.getLogger(__name__)

OUR_HOOK = "safety_guard.confirm"
#: gptme's own hooks that answer without a person.
_JUDGES = ("guardrails", "anomaly_watchdog.", "shell.", "watch.", "auto_confirm")


@dataclass
class Running:
    """The call that is being carried out. ``answered``: the user has just said yes to it. ``interrupted``: Ctrl-C came instead."""

    conversation: Conversation
    session: Session
    call: Call
    answered: bool = False
    interrupted: bool = False


running: ContextVar[Running | None] = ContextVar("git_safety_running", default=None)


def prepare(conversation: Conversation, session: Session) -> None:
    """Gives the session somebody who can answer, and hears of a Ctrl-C in its handlers."""
    from safety.commands.snapshot import take_in
    from safety.hooks import priorities
    from safety.hooks.confirm import Auto, cli_handler
    from safety.hooks.events import HookType

    conversation.auto = conversation.auto or Auto()
    at_terminal = cli_handler(ask=_ask, show=_show, snapshot=partial(take_in, session), auto=conversation.auto)

    def answers(tool_use: Any, preview: Any, workspace: Any, decision: Any = None) -> Any:
        from safety.adapters.embed.gptme.conversations import is_interactive

        if decision is None or decision.action != "ask" or not is_interactive():
            return None
        answer = at_terminal(tool_use, preview or _text(tool_use), workspace, decision)
        if (now := running.get()) is not None:
            now.answered = answer.by_user and answer.action.value == "confirm"
        return answer

    def heard(*asked: Any, outcome: Any) -> None:
        if outcome.interrupted and (now := running.get()) is not None:
            now.interrupted = True

    session.hooks.register("gptme.terminal", HookType.TOOL_CONFIRM, answers, priorities.CLI_CONFIRM)
    for moment in (HookType.TOOL_EXECUTE_PRE, HookType.TOOL_CONFIRM):
        session.hooks.register("gptme.interrupts", moment, heard, observer=True)


def confirm(tool_use: Any, preview: str | None = None, workspace: Any = None) -> Any:
    """gptme's TOOL_CONFIRM at 150: None falls through, as gptme has it."""
    from gptme.hooks import ConfirmationResult, HookType, get_hooks

    now = running.get()
    if now is None:
        return None
    if now.answered:
        now.answered = False
        return ConfirmationResult.confirm()
    hooks = [hook for hook in get_hooks(HookType.TOOL_CONFIRM) if hook.enabled]
    at = next((number for number, hook in enumerate(hooks) if hook.name == OUR_HOOK), len(hooks))
    below = hooks[at + 1 :]
    if all(hook.name.startswith(_JUDGES) for hook in below):
        return None  # nobody will be asked
    answer, by = _first_answer(below, tool_use, preview, workspace)
    if answer is None or by.startswith(_JUDGES):
        return answer
    return _after(now, answer)


def _first_answer(hooks: Sequence[Any], tool_use: Any, preview: str | None, workspace: Any) -> tuple[Any, str]:
    """The rest of gptme's chain, with its rules: None falls through, a bool counts, an exception skips."""
    from gptme.hooks import ConfirmationResult

    for hook in hooks:
        try:
            answer = hook.func(tool_use, preview, workspace)
        except Exception as fault:  # noqa: BLE001 - the hook may be anybody's; gptme skips then
            log.exception("confirmation hook %r failed", hook.name)
            return ConfirmationResult.skip(f"Error: {fault}"), hook.name
        if isinstance(answer, bool):
            answer = ConfirmationResult.confirm() if answer else ConfirmationResult.skip("Declined by user")
        if isinstance(answer, ConfirmationResult):
            return answer, hook.name
    return None, ""


def _after(now: Running, answer: Any) -> Any:
    """What follows when a person may have been asked: files may have been saved meanwhile, and the text may be another."""
    from gptme.hooks import ConfirmAction, ConfirmationResult

    if answer.action is ConfirmAction.CONFIRM:
        now.session.captured_again(now.call)
    elif answer.action is ConfirmAction.EDIT and answer.edited_content:
        tool = now.call.tool
        paths = now.call.paths if tool != "patch_many" else None  # its text names the files
        now.call = replace(now.call, input=edited(tool, now.call.input, answer.edited_content), paths=paths)
        decision = now.session.pre(now.call)
        now.answered = False  # the edited text is asked about by whoever let it be edited
        if decision.action in ("deny", "ask"):
            return ConfirmationResult.skip(decision.reason)
        now.session.captured_again(now.call)
    return answer


def _text(call: Any) -> str:
    value = call.input.get(text_field(call.tool))
    return value if isinstance(value, str) else ""


def _ask(question: str) -> str | None:
    from gptme.util.prompt import prompt_alert

    try:
        return str(prompt_alert(question.strip()))
    except EOFError:
        return None


def _show(text: str) -> None:
    from safety.adapters.embed.gptme.conversations import show

    show(text)
