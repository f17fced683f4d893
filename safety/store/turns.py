"""Where each conversation stands: its open turn and the calls between PRE and POST.

One small file a session beside the log; losing it loses no user byte (open calls are then unknown and their changes unattributed).
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safety.store.attribution import OpenCall

REMEMBERED_CALLS = 200


@dataclass
class Pending:
    """A call whose POST is still to come."""

    call_id: str
    call: int
    tool: str
    digest: str
    summary: str
    declared: list[str] | None
    started_ms: int
    deferred: bool = False
    command: str = ""


@dataclass
class SessionState:
    """One conversation. ``done`` maps finished call ids to their status, so that an event heard twice is known.

    ``process`` is the process that is the agent itself (``run``), in the form of ``own_process``; empty where none is known.
    ``continued``: the turn was sent back to the agent, so that the next start is the same turn; ``sent_back``: how often.
    ``checks``: what they said, and how often.
    ``instructions``: the instruction files it was given. ``taint``: what a tool's output of this turn was flagged for.
    ``told``: what the user is told once in a conversation and has been told.
    """

    session: str
    agent: dict[str, str] = field(default_factory=dict)
    turn: int = 0
    is_open: bool = False
    prompt: str = ""
    started_ms: int = 0
    calls: int = 0
    heard_ms: int = 0
    process: str = ""
    pending: dict[str, Pending] = field(default_factory=dict)
    done: dict[str, str] = field(default_factory=dict)
    continued: bool = False
    sent_back: int = 0
    checks: dict[str, Any] = field(default_factory=dict)
    instructions: dict[str, Any] = field(default_factory=dict)
    taint: str = ""
    told: list[str] = field(default_factory=list)

    def open_calls(self) -> list[OpenCall]:
        return [
            OpenCall(
                self.session,
                self.turn,
                item.call,
                item.call_id,
                None if item.declared is None else tuple(path.encode("latin-1") for path in item.declared),
                item.deferred,
            )
            for item in self.pending.values()
        ]

    def finish(self, call_id: str, status: str) -> None:
        self.done[call_id] = status
        while len(self.done) > REMEMBERED_CALLS:
            del self.done[next(iter(self.done))]


class Sessions:
    """The session files of one workspace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, session: str) -> Path:
        return self.folder / (hashlib.sha256(session.encode("utf-8", "surrogateescape")).hexdigest()[:16] + ".json")

    def load(self, session: str) -> SessionState:
        return _load(self.path(session)) or SessionState(session)

    def save(self, state: SessionState) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.path(state.session)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(state, default=vars, ensure_ascii=True), encoding="ascii")
        os.replace(temporary, path)

    def drop(self, session: str) -> None:
        self.path(session).unlink(missing_ok=True)

    def drop_older_than(self, heard_ms: int) -> None:
        """Forgets conversations that were not heard of since."""
        for state in self.all():
            if state.heard_ms < heard_ms:
                self.drop(state.session)

    def all(self) -> list[SessionState]:
        if not self.folder.is_dir():
            return []
        found = (_load(path) for path in sorted(self.folder.glob("*.json")))
        return [state for state in found if state is not None]


def own_process() -> str:
    """This process as ``boot pid start``: unlike a pid, never another one's."""
    pid = os.getpid()
    return f"{_boot()} {pid} {_started(pid)}"


def is_running(process: str) -> bool:
    """Whether the process of that description still runs, on this boot of this host."""
    boot, pid, start = process.split(" ")
    if boot != _boot():
        return False
    if start != "-":
        return _started(int(pid)) == start
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "-"


def _started(pid: int) -> str:
    """The start time in clock ticks since boot (field 22 of stat; the name before it may hold anything), "-" where unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return "-"


def _load(path: Path) -> SessionState | None:
    try:
        raw = json.loads(path.read_bytes())
        pending = {key: Pending(**value) for key, value in raw.pop("pending").items()}
        return SessionState(**raw, pending=pending)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
