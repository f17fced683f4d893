"""What ``run`` records around a command: a turn before and after it, and one for each burst of a long one. Prints nothing."""

from __future__ import annotations

import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Self

from safety.faults import SafetyError
from safety.runtime.config import fails_closed
from safety.runtime.open import open_session
from safety.session import Call, Session
from safety.watch.observer import Batch, Observer, Skip, WatchFailed

RUN_VARIABLE = "GIT_SAFETY_RUN"
TOOL = "run"
LONGEST_SETTLE_S = 1.0


@dataclass(frozen=True)
class Turn:
    """One recorded turn that changed something; the numbers count files."""

    handle: str
    changed: int
    removed: int
    not_covered: int


@dataclass(frozen=True)
class Summary:
    """What a run left in the log: its turns that changed something, oldest first, and why protection failed, if it did."""

    turns: tuple[Turn, ...] = ()
    problem: str = ""

    def as_json(self) -> dict[str, object]:
        return {"protected": not self.problem, "problem": self.problem, "turns": [asdict(turn) for turn in self.turns]}


class Protection:
    """A session around one command. Without one (``problem`` says why) every step does nothing.

    After ``observe`` a quiet time of ``quiet_s`` after a write ends the turn, if it changed something, and begins the next. Captures
    happen in a thread of this class, ``finish`` waits for it: never two at once.
    """

    def __init__(self, session: Session | None, command: str, *, cwd: bytes = b"/", name: str = "run", problem: str = "") -> None:
        self.problem = problem
        self._session = session
        self._command = command
        self._cwd = cwd
        self._agent = {"name": name}
        self._call: Call | None = None
        self._calls = 0
        self._turns: list[Turn] = []
        self._wake = threading.Condition()
        self._wrote_at: float | None = None
        self._ended = False
        self._thread: threading.Thread | None = None
        self._observer: Observer | None = None

    @classmethod
    def begin(cls, cwd: bytes | None, command: Sequence[str], name: str, environ: Mapping[str, str]) -> Self:
        """Opens the workspace and takes the snapshot before the command. What can fail is told by ``problem``."""
        text = shlex.join(command)
        if cwd is None:
            return cls(None, text, problem="the current folder does not exist any more")
        try:
            session = open_session(cwd, f"run-{secrets.token_hex(6)}", environ, agent={"name": name})
        except SafetyError as error:
            return cls(None, text, problem=error.message)
        protection = cls(session, text, cwd=cwd, name=name)
        protection._open_turn()
        return protection

    @property
    def environment(self) -> dict[str, str]:
        """What the command's environment gets, so that hooks below it know where they are."""
        return {RUN_VARIABLE: self._session.id} if self._session is not None else {}

    def observe(self, root: bytes, skip: Skip, quiet_s: float) -> None:
        """Begins to listen for writes below ``root``. Without a watcher to be had the whole run is one turn."""
        if self._session is None:
            return
        observer = Observer(root, self._wrote, skip=skip, settle_s=min(LONGEST_SETTLE_S, quiet_s / 4))
        try:
            observer.start()
        except WatchFailed:
            return
        self._observer = observer
        # A write before the observer was ready was not heard.
        self._wrote_at = time.monotonic()
        self._thread = threading.Thread(target=self._work, args=(quiet_s,), name="safety-bursts", daemon=True)
        self._thread.start()

    def finish(self, error: str = "") -> Summary:
        """Ends the last turn; ``error`` is how the command failed. Gives what the run left in the log."""
        if self._observer is not None:
            self._observer.stop()
        with self._wake:
            self._ended = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._session is not None:
            self._close_call(error)
            self._close_turn()
            self._session.end()
        return Summary(tuple(self._turns), self.problem)

    # -- turns ---------------------------------------------------------------------------------------------------------------

    def _open_turn(self) -> None:
        assert self._session is not None
        self._session.turn_start(self._command)
        self._open_call()

    def _open_call(self) -> None:
        assert self._session is not None
        self._calls += 1
        self._call = Call(
            id=f"{self._session.id}.{self._calls}", tool=TOOL, input={"command": self._command}, cwd=self._cwd, paths=None, agent=self._agent
        )  # fmt: skip
        self._session.pre(self._call)

    def _close_call(self, error: str) -> None:
        assert self._session is not None
        if self._call is not None:
            self._session.post(self._call, None, error or None)
            self._call = None

    def _close_turn(self) -> None:
        assert self._session is not None
        self._session.turn_end()

    # -- bursts --------------------------------------------------------------------------------------------------------------

    def _wrote(self, batch: Batch) -> None:
        with self._wake:
            self._wrote_at = time.monotonic()
            self._wake.notify_all()

    def _work(self, quiet_s: float) -> None:
        while self._await_quiet(quiet_s):
            self._cut()

    def _await_quiet(self, quiet_s: float) -> bool:
        """True when ``quiet_s`` went by since the last write; False when the command has ended."""
        with self._wake:
            while not self._ended:
                if self._wrote_at is None:
                    self._wake.wait()
                    continue
                left = self._wrote_at + quiet_s - time.monotonic()
                if left <= 0:
                    self._wrote_at = None
                    return True
                self._wake.wait(left)
            return False

    def _cut(self) -> None:
        """Ends the turn if something changed since it began, and begins the next; else the turn goes on."""
        assert self._session is not None
        self._close_call("")
        if self._session.turn_changed():
            self._close_turn()
            self._open_turn()
        else:
            self._open_call()
