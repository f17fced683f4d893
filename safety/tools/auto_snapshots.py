"""Snapshots around each tool call and at the ends of each turn: what undo takes back is what lies between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from safety.hooks import priorities
from safety.hooks.events import HookType, ToolExecutePostData, ToolExecutePreData
from safety.session import Session
from safety.tools.spec import BadCommand, HookSpec, ToolSpec
from safety.types import Decision

if TYPE_CHECKING:
    from safety.commands.report import Report

SHOWN_TURNS = 10


def turn_opens(session: Session, prompt: str = "") -> None:
    session.open_turn(prompt)


def before(data: ToolExecutePreData, session: Session) -> Decision | None:
    decision = session.capture_before(data.tool_use)
    return None if decision.action == "allow" else decision


def after(data: ToolExecutePostData, session: Session) -> None:
    session.capture_after(data.tool_use, str(data.error) if data.error else None)


def turn_settles(session: Session) -> None:
    session.settle_turn()


def typed_undo(session: Session, words: Sequence[str]) -> Report:
    """The newest turn of this conversation, never another's: whoever types here sees only this one.

    The turn before may have no end on record; whoever types is not waiting for it any more.
    """
    from safety.commands import undo  # loaded when it is typed, not for each event
    from safety.commands.args import UndoArgs
    from safety.commands.report import UndoReport

    known = _words(words, "/undo [HANDLE]", ("handle",))
    handle = known.get("handle") or undo.newest_of(session)
    if not handle:
        return UndoReport(root=session.root, nothing="No turn of this conversation changed anything that is not undone already.")
    return undo.run(session, UndoArgs(handle=handle, now=True))


def typed_redo(session: Session, words: Sequence[str]) -> Report:
    from safety.commands import redo
    from safety.commands.args import RedoArgs

    known = _words(words, "/redo [HANDLE]", ("handle",))
    return redo.run(session, RedoArgs(handle=known.get("handle", "")))


def typed_snapshots(session: Session, words: Sequence[str]) -> Report:
    from safety.commands import log
    from safety.commands.args import LogArgs

    known = _words(words, "/snapshots [N]", ("number",))
    return log.run(session, LogArgs(limit=int(known.get("number", SHOWN_TURNS))))


def _words(words: Sequence[str], usage: str, kinds: Sequence[str]) -> dict[str, str]:
    """The words by kind, ``number`` or ``handle``. Raises BadCommand for a kind not wanted, or wanted once and given twice."""
    known: dict[str, str] = {}
    for word in words:
        kind = "number" if word.isdecimal() and int(word) else "handle"
        if kind not in kinds or kind in known or word.startswith("-"):
            raise BadCommand(f"it is typed {usage}", "git safety -h")
        known[kind] = word
    return known


TOOL = ToolSpec(
    name="auto_snapshots",
    desc="A snapshot before and after each tool call, so that undo takes back exactly what the agent did.",
    hooks={
        "turn": HookSpec(HookType.TURN_PRE, turn_opens, priorities.SNAPSHOTS),
        "pre": HookSpec(HookType.TOOL_EXECUTE_PRE, before, priorities.SNAPSHOTS, {"role": "record"}),
        "post": HookSpec(HookType.TOOL_EXECUTE_POST, after, priorities.SNAPSHOTS, {"role": "record"}),
        "settle": HookSpec(HookType.TURN_POST, turn_settles, priorities.SNAPSHOTS, {"role": "record"}),
    },
    commands={"undo": typed_undo, "redo": typed_redo, "snapshots": typed_snapshots},
)
