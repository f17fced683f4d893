"""What ``run`` records around a command: a turn before and after it, and one for each burst of a long one. Prints nothing."""

from __future__ import annotations

import os
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Self

from safety.faults import SafetyError
from safety.runtime.config import fails_closed
from safety.runtime.open import Progress, open_session, state_home
from safety.session import Call, Session
from safety.store.history import TurnCounts
from safety.terminal.text import relative

RUN_VARIABLE = "GIT_SAFETY_RUN"
TOOL = "run"
LONGEST_SETTLE_S = 1.0


@dataclass(frozen=True)
class Turn:
    """One recorded turn that changed something; the numbers count files.

    ``uncovered`` are the paths that cannot be taken back, as seen from where the command was started; ``undoable``: something can.
    """

    handle: str
    changed: int
    removed: int
    not_covered: int
    uncovered: tuple[str, ...] = ()
    undoable: bool = True


@dataclass(frozen=True)
class Summary:
    """What a run left in the log: its turns that changed something, oldest first; and why it was not (wholly) protected."""

    turns: tuple[Turn, ...] = ()
    problem: str = ""

    def as_json(self) -> dict[str, object]:
        return {"protected": not self.problem, "problem": self.problem, "turns": [asdict(turn) for turn in self.turns]}


class Protection:
    """A session around one command. After a failure (``problem`` says what) every further step does nothing.

    Once ``observe`` was called, a quiet time of ``run.quiet_s`` after a write ends the turn, if it changed something, and begins
    the next. Those captures happen in a thread, and ``finish`` waits for it: there are never two at once.
    """

    def __init__(self, cwd: bytes, command: Sequence[str], name: str, environ: Mapping[str, str]) -> None:
        self.problem = ""
        self.denied = False
        self.capturing = threading.Lock()
        self._environ = environ
        self._cwd = cwd
        self._command = shlex.join(command)
        self._agent = {"name": name} if name else {}
        self._session: Session | None = None
        self._call: Call | None = None
        self._calls = 0
        self._turns: list[Turn] = []
        self._wake = threading.Condition()
        self._wrote_at: float | None = None
        self._ended = False
        self._thread: threading.Thread | None = None
        self._stop_observer: Callable[[], None] = lambda: None

    def begin(self, on_progress: Progress | None = None) -> Self:
        """Opens the workspace and takes the snapshot before the command. ``denied``: it failed, and ``fail_closed`` is on."""
        self._carefully(lambda: self._begin(on_progress))
        return self

    def observe(self) -> None:
        """Begins to listen for writes. Without a watcher to be had the whole run is one turn."""
        if not self.problem:
            self._carefully(self._observe)

    def finish(self, error: str = "") -> Summary:
        """Ends the last turn; ``error`` is how the command failed. Gives what the run left in the log."""
        self._stop_observer()
        with self._wake:
            self._ended = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join()
        self._carefully(lambda: self._end(error))
        return Summary(tuple(self._turns), self.problem)

    @property
    def environment(self) -> dict[str, str]:
        """What the command's environment gets, so that hooks below it know which run they belong to."""
        return {RUN_VARIABLE: self._session.id} if self._session is not None else {}

    def _carefully(self, work: Callable[[], None]) -> None:
        """Whatever goes wrong with us is a problem to tell, never one of the command's."""
        try:
            work()
        except SafetyError as error:
            self.problem = self.problem or error.message
        except Exception as error:  # noqa: BLE001 - a mouth: the command runs whatever happens to us
            self.problem = self.problem or f"{type(error).__name__}: {error}"

    # -- turns ---------------------------------------------------------------------------------------------------------------

    def _begin(self, on_progress: Progress | None) -> None:
        self.denied = fails_closed(self._environ)
        if not self._cwd:
            self.problem = "the current folder no longer exists"
            return
        session = open_session(self._cwd, f"run-{secrets.token_hex(6)}", self._environ, self._agent, on_progress)
        self.denied = session.fails_closed
        if session.place.declared_only:
            self.problem = f"{os.fsdecode(session.root)} is too wide to be watched as a whole; go to a folder in it"
            return
        self._session = session
        self._open_call()
        self.denied = bool(self.problem) and self.denied

    def _end(self, error: str) -> None:
        if self._session is not None:
            if self._call is not None:
                self._close_call(error)
            self._session.end(scan=False)
            self._listen()
            self._session.close()

    def _open_call(self, *, scan: bool = True) -> None:
        assert self._session is not None
        self._calls += 1
        number = f"{self._session.id}.{self._calls}"
        self._call = Call(number, TOOL, {"command": self._command}, self._cwd, None, self._agent)
        self._session.capture_before(self._call, self._command, scan=scan)
        self._listen()

    def _close_call(self, error: str = "") -> bool:
        """Records what changed; True if this turn changed something, which is then counted."""
        assert self._session is not None and self._call is not None
        self._session.capture_after(self._call, error or None)
        self._listen()
        counts = self._session.last_turn_summary()
        if counts is not None:
            self._turns.append(self._as_seen(counts))
        return counts is not None

    def _as_seen(self, counts: TurnCounts) -> Turn:
        assert self._session is not None
        paths = tuple(os.fsdecode(relative(path, self._session.root, self._cwd)) for path in counts.uncovered)
        return Turn(counts.handle, counts.changed, counts.removed, len(paths), paths, counts.undoable)

    def _listen(self) -> None:
        """What the session could not protect, it says in notices."""
        assert self._session is not None
        for notice in self._session.take_notices():
            text = notice.removeprefix("git-safety: ")
            if text.startswith("plugin "):  # `run` calls no handlers
                continue
            self.problem = self.problem or text.removeprefix("not protected: ")

    # -- bursts --------------------------------------------------------------------------------------------------------------

    def _observe(self) -> None:
        from safety.watch.observer import Batch, Observer, WatchFailed
        from safety.watch.skips import inside, named

        if self._session is None:
            return
        settings, root = self._session.settings, self._session.root
        quiet_s = float(settings.run_quiet_s)
        if settings.watch_enabled in (False, "off") or not quiet_s:
            return
        ours, idle = inside(root, os.path.realpath(os.fsencode(state_home(self._environ)))), named(settings.snapshots_skip_dirs)

        def heard(batch: Batch) -> None:
            self._wrote()

        observer = Observer(root, heard, skip=lambda path: ours(path) or idle(path), settle_s=min(LONGEST_SETTLE_S, quiet_s / 4))
        try:
            observer.start()
        except WatchFailed:
            return
        self._stop_observer = observer.stop
        self._wrote()  # what was written before the observer was ready, it did not hear
        self._thread = threading.Thread(target=self._work, args=(quiet_s,), name="safety-bursts", daemon=True)
        self._thread.start()

    def _wrote(self) -> None:
        with self._wake:
            self._wrote_at = time.monotonic()
            self._wake.notify_all()

    def _work(self, quiet_s: float) -> None:
        while self._await_quiet(quiet_s):
            with self.capturing:
                self._carefully(self._cut)

    def _await_quiet(self, quiet_s: float) -> bool:
        """True when ``quiet_s`` went by since the last write; False when the command has ended."""
        with self._wake:
            while not self._ended:
                left = quiet_s if self._wrote_at is None else self._wrote_at + quiet_s - time.monotonic()
                if left <= 0:
                    self._wrote_at = None
                    return True
                self._wake.wait(None if self._wrote_at is None else left)
            return False

    def _cut(self) -> None:
        """Ends the turn if it changed something, and begins the next; else it goes on with a new call.

        The command runs on meanwhile: what it writes just now is the next call's, not nobody's.
        """
        assert self._session is not None
        if self._session.is_taken_over:
            return
        if self._close_call():
            self._session.open_turn(self._command, scan=False)
        self._open_call(scan=False)
