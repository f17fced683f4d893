"""An observer: one JSON line for each moment with what was decided, by whom, and who was called. No values, no texts.

The lines lie in the workspace's state folder; ``git safety doctor --trace`` shows the last ones.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from safety.hooks import priorities
from safety.hooks.caller import Outcome
from safety.hooks.events import HookType, ToolExecutePostData, ToolExecutePreData
from safety.session import AUDIT_LOG, Call, Session
from safety.tools.spec import HookSpec, ToolSpec

MAX_BYTES = 4 << 20


def turn_opened(session: Session, outcome: Outcome) -> None:
    _write(session, outcome)


def before(data: ToolExecutePreData, session: Session, outcome: Outcome) -> None:
    call: Call = data.tool_use
    _write(session, outcome, call=call.id, tool=call.tool, digest=call.digest)


def asked(tool_use: Call, preview: str | None, workspace: Path | None, session: Session, outcome: Outcome) -> None:
    _write(session, outcome, call=tool_use.id, tool=tool_use.tool)


def after(data: ToolExecutePostData, session: Session, outcome: Outcome) -> None:
    call: Call = data.tool_use
    _write(session, outcome, call=call.id, tool=call.tool, status="error" if data.error else "ok")


def turn_ended(session: Session, outcome: Outcome) -> None:
    _write(session, outcome)


def _write(session: Session, outcome: Outcome, **fields: Any) -> None:
    trace = outcome.trace
    telling = {
        "decided_by": trace.decided_by,
        "stopped_by": trace.stopped_by,
        "failed": [failure.hook for failure in trace.failures],
    }
    line = {
        "time_ms": session.now_ms(),
        "session": session.given_id,
        "event": trace.event,
        **fields,
        "decision": trace.action,
        **{name: value for name, value in telling.items() if value},
        "called": [[step.hook, step.result, round(step.seconds * 1000, 2)] for step in trace.steps],
    }
    path = session.place.state / AUDIT_LOG
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size > MAX_BYTES:
            os.replace(path, path.with_suffix(".1.jsonl"))
        os.write(fd, json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n")
    finally:
        os.close(fd)


_OBSERVES = {"observer": True}
TOOL = ToolSpec(
    name="audit_log",
    desc="Keeps a log of what was decided, for people.",
    hooks={
        "turn_pre": HookSpec(HookType.TURN_PRE, turn_opened, priorities.AUDIT, _OBSERVES),
        "pre": HookSpec(HookType.TOOL_EXECUTE_PRE, before, priorities.AUDIT, _OBSERVES),
        "confirm": HookSpec(HookType.TOOL_CONFIRM, asked, priorities.AUDIT, _OBSERVES),
        "post": HookSpec(HookType.TOOL_EXECUTE_POST, after, priorities.AUDIT, _OBSERVES),
        "turn_post": HookSpec(HookType.TURN_POST, turn_ended, priorities.AUDIT, _OBSERVES),
    },
)
