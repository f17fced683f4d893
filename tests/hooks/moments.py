"""What is handed over at each event, and registries whose failures are looked at, not logged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safety.hooks import ElicitationRequest, HookType, Message, ToolExecutePostData, ToolExecutePreData
from safety.hooks.events import EVENTS

ALL = list(HookType)
DECISION = [each for each in ALL if EVENTS[each].decides]
ADVISORY = [each for each in ALL if not EVENTS[each].decides]
CLOSED = [each for each in ALL if EVENTS[each].closed]
WITH_ANSWER = [HookType.TOOL_CONFIRM, HookType.ELICIT]


def handed(hook_type: HookType) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of an event as a host gives them."""
    positional: dict[HookType, tuple[Any, ...]] = {
        HookType.TOOL_EXECUTE_PRE: (ToolExecutePreData(log=["one"], workspace=Path("/w"), tool_use={"command": "ls"}),),
        HookType.TOOL_EXECUTE_POST: (ToolExecutePostData(log=["one"], tool_use={"command": "ls"}, result_msgs=(said("r"),)),),
        HookType.GENERATION_PRE: ([said("p")],),
        HookType.TOOL_CONFIRM: (["a tool use"], "a preview", Path("/w")),
        HookType.ELICIT: (ElicitationRequest("choice", "Which?", ("a", "b")),),
    }
    keywords = {name: ["one"] for name in EVENTS[hook_type].keywords if name != "decision"}
    return positional.get(hook_type, ()), keywords


def said(content: str) -> Message:
    return Message("system", content)
