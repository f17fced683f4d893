"""Snapshots around each tool call and at the ends of each turn: what undo takes back is what lies between them."""

from __future__ import annotations

from safety.hooks import priorities
from safety.hooks.events import HookType, ToolExecutePostData, ToolExecutePreData
from safety.session import Session
from safety.tools.spec import HookSpec, ToolSpec
from safety.types import Decision


def turn_opens(session: Session, prompt: str = "") -> None:
    session.open_turn(prompt)


def before(data: ToolExecutePreData, session: Session) -> Decision | None:
    decision = session.capture_before(data.tool_use)
    return None if decision.action == "allow" else decision


def after(data: ToolExecutePostData, session: Session) -> None:
    session.capture_after(data.tool_use, str(data.error) if data.error else None)


def turn_settles(session: Session) -> None:
    session.settle_turn()


TOOL = ToolSpec(
    name="auto_snapshots",
    desc="A snapshot before and after each tool call, so that undo takes back exactly what the agent did.",
    hooks={
        "turn": HookSpec(HookType.TURN_PRE, turn_opens, priorities.SNAPSHOTS),
        "pre": HookSpec(HookType.TOOL_EXECUTE_PRE, before, priorities.SNAPSHOTS, {"role": "record"}),
        "post": HookSpec(HookType.TOOL_EXECUTE_POST, after, priorities.SNAPSHOTS, {"role": "record"}),
        "settle": HookSpec(HookType.TURN_POST, turn_settles, priorities.SNAPSHOTS, {"role": "record"}),
    },
)
