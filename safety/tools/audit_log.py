"""An observer: one JSON line a decision, no values, in the workspace's state folder. It decides nothing and never fails a call."""

from __future__ import annotations

import json
import os
from typing import Any

from safety.hooks import priorities
from safety.hooks.events import HookType, ToolExecutePostData, ToolExecutePreData
from safety.session import Call, Session, digest
from safety.tools.spec import HookSpec, ToolSpec

NAME, MAX_BYTES = "audit.jsonl", 4 << 20


def before(data: ToolExecutePreData, session: Session) -> None:
    call: Call = data.tool_use
    _write(session, event="tool.execute.pre", call=call.id, tool=call.tool, digest=digest(call.input))


def after(data: ToolExecutePostData, session: Session) -> None:
    call: Call = data.tool_use
    _write(session, event="tool.execute.post", call=call.id, tool=call.tool, status="error" if data.error else "ok")


def ended(session: Session) -> None:
    _write(session, event="turn.post")


def _write(session: Session, **fields: Any) -> None:
    path = session.place.state / NAME
    line = json.dumps({"time_ms": session.now_ms(), "session": session.id, **fields}, ensure_ascii=True) + "\n"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size > MAX_BYTES:
            os.replace(path, path.with_suffix(".1.jsonl"))
        os.write(fd, line.encode("ascii"))
    finally:
        os.close(fd)


_OBSERVES = {"observer": True}
TOOL = ToolSpec(
    name="audit_log",
    desc="Keeps a log of what was decided, for people.",
    hooks={
        "pre": HookSpec(HookType.TOOL_EXECUTE_PRE, before, priorities.AUDIT, _OBSERVES),
        "post": HookSpec(HookType.TOOL_EXECUTE_POST, after, priorities.AUDIT, _OBSERVES),
        "turn": HookSpec(HookType.TURN_POST, ended, priorities.AUDIT, _OBSERVES),
    },
)
