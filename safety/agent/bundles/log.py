"""A log of calls: one JSON line for each, with its arguments, in the workspace's state folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

from safety.hooks.events import HookType, ToolExecutePostData
from safety.session import Session
from safety.tools.spec import HookSpec, ToolSpec


def log_file(session: Session) -> Path:
    return session.place.state / "agent-calls.jsonl"


def after(data: ToolExecutePostData, session: Session) -> None:
    call = data.tool_use
    line = {
        "time_ms": session.now_ms(),
        "session": session.id,
        "call": call.id,
        "tool": call.tool,
        "input": dict(call.input),
        "error": str(data.error) if data.error else None,
        "characters": sum(len(message.content) for message in data.result_msgs),
    }
    fd = os.open(log_file(session), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with open(fd, "a", encoding="ascii") as file:
        file.write(json.dumps(line) + "\n")


TOOL = ToolSpec(
    name="log",
    desc="Writes a line for each call of a tool.",
    hooks={"post": HookSpec(HookType.TOOL_EXECUTE_POST, after)},
)
