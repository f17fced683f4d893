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

from safety.plumbing.renames import put_in_place
from safety.store.attribution import OpenCall

_RESULTS = ".results"
DEAD_AFTER_MS = 2 * 3_600_000  # too short loses an attribution, too long leaves other sessions' changes unexplained
REMEMBERED_CALLS = 200
MOST_OF_A_RESULT = 32_000  # bytes
MOST_RESULTS = 8 << 20  # bytes of one turn; past that it begins anew, as nobody waits for results so old


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
    command: str = ""


@dataclass
class SessionState:
    """One conversation. ``done`` maps finished call ids to their status, so that an event heard twice is known.

    ``process`` is the process that is the agent itself (``run``), in the form of ``own_process``; empty where none is known.
    ``began_ms``: when its first turn began. ``within``: the session of the ``run`` that its agent was started below.
    ``asked``: effects that the guard has stopped in this turn, with the last call that would have had them.
    ``continued``: the turn was sent back to the agent, so that the next start is the same turn; ``sent_back``: how often.
    ``checks``: what they said, and how often.
    ``instructions``: the instruction files it was given. ``taint``: what a tool's output of this turn was flagged for.
    ``touched``: the folders of files that its calls of this turn named.
    ``told``: what the user is told once in a conversation and has been told.
    """

    session: str
    agent: dict[str, str] = field(default_factory=dict)
    turn: int = 0
    is_open: bool = False
    prompt: str = ""
    started_ms: int = 0
    began_ms: int = 0
    calls: int = 0
    heard_ms: int = 0
    process: str = ""
    within: str = ""
    pending: dict[str, Pending] = field(default_factory=dict)
    done: dict[str, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    continued: bool = False
    sent_back: int = 0
    checks: dict[str, Any] = field(default_factory=dict)
    instructions: dict[str, Any] = field(default_factory=dict)
    taint: str = ""
    touched: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def is_alive(self, now_ms: int) -> bool:
        """Whether its agent still runs: as long as its process, where one is known; of a hook's harness only, when it was heard last."""
        return is_running(self.process) if self.process else now_ms - self.heard_ms < DEAD_AFTER_MS

    def open_calls(self, *, deferred: bool = False) -> list[OpenCall]:
        return [
            OpenCall(
                self.session,
                self.turn,
                item.call,
                item.call_id,
                None if item.declared is None else tuple(path.encode("latin-1") for path in item.declared),
                deferred,
            )
            for item in self.pending.values()
        ]

    def finish(self, call_id: str, status: str) -> None:
        self.done[call_id] = status
        while len(self.done) > REMEMBERED_CALLS:
            del self.done[next(iter(self.done))]


@dataclass(frozen=True)
class Finished:
    """What a call came to, before any handler saw it. ``result`` is what the tool gave or failed with: of ``bytes`` the first 32 kB."""

    call_id: str
    digest: str
    status: str
    result: str
    bytes: int


class Sessions:
    """The session files of one workspace. Beside a session's state lie the results of its open turn, a line each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, session: str) -> Path:
        return self.folder / (hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:16] + ".json")

    def load(self, session: str) -> SessionState:
        return _load(self.path(session)) or SessionState(session)

    def save(self, state: SessionState) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.path(state.session)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(state, default=vars, ensure_ascii=True), encoding="ascii")
        put_in_place(temporary, path)

    def keep_result(self, session: str, call_id: str, digest: str, status: str, result: str) -> None:
        """Puts on disk what a call came to. Appended, not replaced: a crash in the middle costs this line and no other."""
        data = result.encode("utf-8", "surrogatepass")  # JSON can say what no text can hold
        text = data[:MOST_OF_A_RESULT].decode("utf-8", "ignore") if len(data) > MOST_OF_A_RESULT else result
        line = json.dumps(vars(Finished(call_id, digest, status, text, len(data))), ensure_ascii=True).encode("ascii")
        self.folder.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(self._results(session), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size > MOST_RESULTS:
                os.ftruncate(fd, 0)
            os.write(fd, b"\n" + line + b"\n")  # the line before may have no end
        finally:
            os.close(fd)

    def results(self, session: str) -> dict[str, Finished]:
        """The calls of the session's newest turn whose POST was heard, by id, oldest first."""
        try:
            lines = self._results(session).read_bytes().splitlines()
        except OSError:
            return {}
        found: dict[str, Finished] = {}
        for line in lines:
            try:
                one = Finished(**json.loads(line))
            except (ValueError, TypeError):
                continue
            found[one.call_id] = one
        return found

    def drop_results(self, session: str) -> None:
        self._results(session).unlink(missing_ok=True)

    def drop_all_results(self) -> None:
        """Forgets what tools gave back, in every session: it may hold what is to be purged."""
        for path in self.folder.glob(f"*{_RESULTS}"):
            path.unlink(missing_ok=True)

    def _results(self, session: str) -> Path:
        return self.path(session).with_suffix(_RESULTS)

    def drop(self, session: str) -> None:
        self.path(session).unlink(missing_ok=True)
        self.drop_results(session)

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
