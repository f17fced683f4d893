"""From words to an answer: the global options, the verb, its arguments, the session, the command, the drawing.

The boundary to the engine is `_answer`: ``runtime.open.open_session(...)`` and ``commands.<verb>.run(session, args) -> Report``.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from safety.commands import report as r
from safety.commands.args import UndoArgs
from safety.faults import quoted
from safety.terminal import topics
from safety.terminal.arguments import Typed, UsageError, Verb, parser
from safety.terminal.text import shell_path
from safety.terminal.verbs import BY_NAME
from safety.terminal.window import Window


def run(words: list[str], environ: Mapping[str, str]) -> int:
    """The exit code of one command line. Errors are raised; the caller draws them."""
    pager, colour = True, ""
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-h", "--help"):
            return topics.main(words[:1], environ)
        if option == "--no-pager":
            pager = False
        elif option.startswith("--color=") and option[8:] in ("auto", "always", "never"):
            colour = option[8:]
        else:
            raise UsageError(f"no option {quoted(option)} before the verb", "git safety -h")
    if not words:
        topics.main([], environ)
        return 2
    verb = find_verb(words[0])
    if verb.build is None:
        if words[1:2] in (["-h"], ["--help"]) and verb.name != "help":
            parser(verb).print_help()
            return 0
        owner: Callable[[list[str], Mapping[str, str]], int] = import_module(verb.owner).main
        return owner(words[1:], environ)
    return _command(verb, words[1:], environ, pager, colour)


def find_verb(word: str) -> Verb:
    """The verb of that name. Raises UsageError with the nearest one as its hint."""
    if word in BY_NAME:
        return BY_NAME[word]
    near = get_close_matches(word, BY_NAME, n=1)
    raise UsageError(f"no verb {quoted(word)}", f"git safety {near[0]}" if near else "git safety -h")


def _command(verb: Verb, words: list[str], environ: Mapping[str, str], pager: bool, colour: str) -> int:
    cut = words.index("--") if "--" in words else len(words)
    typed = Typed(working_folder(environ), time.time_ns() // 1_000_000, tuple(words[cut + 1 :]))
    try:
        namespace = parser(verb).parse_args(words[:cut])
    except SystemExit as leaving:  # -h
        return int(leaving.code or 0)
    assert verb.build is not None
    window = Window(environ, typed.cwd, json=namespace.json, pager=pager and verb.pages, colour=colour)
    report = _answer(verb, verb.build(namespace, typed), typed.cwd, environ, window)
    if isinstance(report, r.UndoReport) and report.dry_run and any(map(r.is_done, report.lines)):
        report = dataclasses.replace(report, hints=(*_for_real(verb, words), *report.hints))
    window.show(report)
    return report.exit_code


def _for_real(verb: Verb, words: list[str]) -> list[r.Hint]:
    """The same command line without its ``--dry-run``, and the one that asks piece by piece."""
    typed = ["git", "safety", verb.name, *(word for word in words if word != "--dry-run")]
    hints = [r.Hint("Do it", shlex.join(typed))]
    if verb.name == "undo" and "-p" not in typed and "--patch" not in typed:
        hints.append(r.Hint("Choose", shlex.join([*typed[:3], "-p", *typed[3:]])))
    return hints


def _answer(verb: Verb, args: Any, cwd: bytes, environ: Mapping[str, str], window: Window) -> r.Report:
    """What the verb says in the end, after the questions that it asks on the way."""
    from safety.runtime.open import open_session

    with closing(open_session(cwd=cwd, environ=environ, on_progress=window.progress, lenient=verb.lenient)) as session:
        window.settings(session.settings)
        if session.settings.broken and verb.name != "doctor":  # which has it among its checks
            window.note(f"{session.settings.broken.message}; the defaults are used")
        window.note(other_repository(environ, cwd, session.root))
        command = import_module(f"safety.commands.{verb.name}").run
        if isinstance(args, UndoArgs):
            args = dataclasses.replace(args, can_ask=window.can_ask and not args.confirmed)
        report: r.Report = command(session, args)
        for notice in session.take_notices():
            window.note(notice.removeprefix("git-safety: "))
        while isinstance(report, r.Ask | r.Choose) and (answer := window.answer(report)) is not None:
            if not answer:
                return r.TextReport(lines=("Nothing was changed.",), root=report.root, exit_code=4)
            report = command(session, dataclasses.replace(args, **answer))
        return report


def working_folder(environ: Mapping[str, str]) -> bytes:
    """The folder the user stands in, also when it was removed under their feet.

    A ``!`` alias of git runs at the top of the work tree and says in GIT_PREFIX where it was typed; elsewhere the variable is a
    leftover.
    """
    try:
        here = os.getcwdb()
    except FileNotFoundError:
        gone = environ.get("PWD", "")
        if not os.path.isabs(gone):
            raise UsageError("the current folder no longer exists", "cd to an existing folder") from None
        return os.fsencode(gone)
    prefix = os.fsencode(environ.get("GIT_PREFIX", ""))
    if prefix and os.path.lexists(os.path.join(here, b".git")) and os.path.isdir(os.path.join(here, prefix)):
        return os.path.normpath(os.path.join(here, prefix))
    return here


def other_repository(environ: Mapping[str, str], cwd: bytes, root: bytes) -> str:
    """A sentence when GIT_DIR or its kin names another repository than the one at ``root``; they leak from git's hooks and are
    ignored.
    """
    named = environ.get("GIT_DIR") or environ.get("GIT_WORK_TREE") or environ.get("GIT_INDEX_FILE")
    if not named:
        return ""
    from safety.plumbing.repo import find_root, open_repository

    top = find_root(cwd)
    here = open_repository(top) if top else None
    there = os.path.realpath(os.path.join(cwd, os.fsencode(named)))
    own = [os.path.realpath(path) for path in ((here.git_dir, here.common_dir, here.root) if here else (root,))]
    if any(there == path or there.startswith(path + b"/") for path in own):
        return ""
    folder = os.path.dirname(there) if os.path.basename(there) == b".git" else there
    other = f"git -C {shell_path(folder)} safety"
    return f"the environment names the repository {shell_path(there)}, which is not this one; for that one: {other}"
