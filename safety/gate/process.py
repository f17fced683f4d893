"""Runs a check: in a session of its own, without input, its output capped while it is read, and nothing of it left behind.

The only place of this room that starts programs other than git. At the deadline, and when this process is told to stop, the check gets
SIGINT, three seconds later SIGTERM, three seconds later SIGKILL: a runner that hides edits gives them back on SIGINT and loses them on the
others ([gate] A3).
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import IO, Any

GRACE_S = 3.0
LADDER = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
MARK = "SAFETY_GATE_RUN"  # in the environment of every check: finds the ones that left their session

_KEPT_HEAD = 1 << 20
_KEPT_TAIL = 1 << 18
_LOGGED = 8 << 20
_CHUNK = 1 << 16
_TICK_S = 0.1


class Stop:
    """Whether this process was told to stop, and how often."""

    def __init__(self) -> None:
        self.signals: list[int] = []

    def __bool__(self) -> bool:
        return bool(self.signals)

    def note(self, number: int, frame: FrameType | None) -> None:
        self.signals.append(number)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """While the block runs SIGINT, SIGTERM and SIGHUP are only noted. The last two are sent on when it has ended.

    Only the main thread can do that; elsewhere nothing changes and ``Stop`` stays empty.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    kept = {}
    for number in (int(signal.SIGINT), int(signal.SIGTERM), int(signal.SIGHUP)):
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            kept[number] = signal.signal(number, stop.note)
    try:
        yield stop
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        for number in stop.signals:
            if number != signal.SIGINT:
                os.kill(os.getpid(), number)
                break


@dataclass(frozen=True)
class Ended:
    """How a check ended. ``output`` is what it wrote to both streams; ``cut`` is the number of bytes left out of its middle."""

    returncode: int
    output: bytes
    cut: int = 0
    timed_out: bool = False
    cancelled: bool = False


class NotStarted(OSError):
    """The program could not be started."""


def run_check(
    argv: Sequence[bytes],
    cwd: bytes,
    env: Mapping[bytes, bytes],
    log: IO[bytes],
    ends_at: float,
    stop: Stop,
    input: IO[bytes] | None = None,
) -> Ended:
    """Runs a program and waits until it and all it started in its session have ended. ``ends_at`` is on the monotonic clock.

    Raises NotStarted.
    """
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL if input is None else input,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as fault:
        raise NotStarted(fault.errno, fault.strerror, os.fsdecode(argv[0])) from fault
    output = _Output(log)
    try:
        return _Watch(process, output, env.get(MARK.encode(), b"")).until_ended(ends_at, stop)
    finally:
        if process.returncode is None:
            _kill_now(process)
        if process.stdout is not None:
            process.stdout.close()


def run_program(
    command: str | Sequence[str], input: bytes, timeout_s: float, env: Mapping[str, str], cwd: bytes
) -> tuple[int, bytes, bytes, bool]:
    """Exit code, standard output, standard error and whether it took too long, of a program of the user's own settings.

    A text is run by ``/bin/sh``. What it leaves running in its session is ended with it, also when this process is told to end.
    Raises NotStarted.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    try:
        process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as fault:
        raise NotStarted(fault.errno, fault.strerror, argv[0]) from fault
    with _told_to_end(partial(_kill_now, process)):
        try:
            out, err = process.communicate(input, timeout_s)
            return process.returncode, out, err, False
        except subprocess.TimeoutExpired:
            _kill_now(process)
            out, err = process.communicate()
            return process.returncode, out, err, True
        finally:
            if process.returncode is None:
                _kill_now(process)
                process.communicate()


@contextmanager
def _told_to_end(first: Callable[[], None]) -> Iterator[None]:
    """While the block runs SIGTERM and SIGHUP do ``first`` before they have their effect. Only the main thread can do that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept: dict[int, Any] = {}

    def end(number: int, frame: FrameType | None) -> None:
        first()
        signal.signal(number, kept[number])
        os.kill(os.getpid(), number)

    for number in (int(signal.SIGTERM), int(signal.SIGHUP)):
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            kept[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


class _Output:
    """The beginning and the end of what a check wrote, in memory and in the log."""

    def __init__(self, log: IO[bytes]) -> None:
        self._log = log
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        room = max(_LOGGED - self._total, 0)
        self._log.write(data[:room])
        self._total += len(data)
        head = max(_KEPT_HEAD - len(self._head), 0)
        self._head += data[:head]
        self._tail += data[head:]
        if len(self._tail) > 2 * _KEPT_TAIL:
            del self._tail[:-_KEPT_TAIL]

    def finish(self) -> tuple[bytes, int]:
        """Both ends with a line between them, and how much is missing."""
        tail = bytes(self._tail[-_KEPT_TAIL:])
        if self._total > _LOGGED:
            self._log.write(b"\n[left out here: up to %d bytes]\n" % (self._total - _LOGGED) + tail)
        self._log.flush()
        cut = self._total - len(self._head) - len(tail)
        return bytes(self._head) + (b"\n[%d bytes left out]\n" % cut if cut else b"") + tail, cut


class _Watch:
    """One running check."""

    def __init__(self, process: subprocess.Popen[bytes], output: _Output, mark: bytes) -> None:
        assert process.stdout is not None
        self._process = process
        self._output = output
        self._mark = mark
        self._pipe = process.stdout.fileno()
        self._poll = select.poll()
        self._step = -1  # of the ladder, -1 before the first signal
        self._next_at = 0.0
        self._heard = 0  # signals to this process that were acted on

    def until_ended(self, ends_at: float, stop: Stop) -> Ended:
        timed_out = cancelled = False
        os.set_blocking(self._pipe, False)
        self._poll.register(self._pipe, select.POLLIN)
        handle = _process_handle(self._process.pid)
        tick_s = _TICK_S if handle is not None else _TICK_S / 5
        try:
            if handle is not None:
                self._poll.register(handle, select.POLLIN)
            while not (self._leader_ended() and self._followers_ended()):
                now = time.monotonic()
                if self._step < 0 and (stop or now >= ends_at):
                    cancelled, timed_out = bool(stop), not stop
                    self._signal(0, stop)
                elif self._step >= 0 and (now >= self._next_at or len(stop.signals) > self._heard):
                    self._signal(min(self._step + 1, len(LADDER) - 1), stop)
                ready = dict(self._poll.poll(tick_s * 1000))
                if handle in ready:
                    self._poll.unregister(handle)
                if self._pipe in ready and self._read() == b"":
                    self._poll.unregister(self._pipe)
            if timed_out or cancelled:
                kill_marked(self._mark)
            _send(os.killpg, self._process.pid, signal.SIGKILL)
        finally:
            if handle is not None:
                os.close(handle)
        self._process.wait()
        while self._read():
            pass
        output, cut = self._output.finish()
        return Ended(self._process.returncode, output, cut, timed_out, cancelled)

    def _leader_ended(self) -> bool:
        # Not reaped: its number must stay ours for as long as signals go to its group.
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _followers_ended(self) -> bool:
        """Whether nothing else of the session runs. When only the leader has ended by itself, the others are told to."""
        left = _session_members(self._process.pid)
        if left and self._step < 0:
            self._signal(1)
        return not left

    def _signal(self, step: int, stop: Stop | None = None) -> None:
        self._step, self._next_at = step, time.monotonic() + GRACE_S
        self._heard = len(stop.signals) if stop else self._heard
        for pid in _session_members(self._process.pid):  # a job runner gives its jobs groups of their own ([gate] A1)
            _send(os.kill, pid, LADDER[step])
        _send(os.kill, self._process.pid, LADDER[step])

    def _read(self) -> bytes | None:
        """Takes in one piece of output: None if there is none yet, empty at its end."""
        try:
            data = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return None
        self._output.add(data)
        return data


def _process_handle(pid: int) -> int | None:
    if hasattr(os, "pidfd_open"):
        try:
            return os.pidfd_open(pid)
        except OSError:  # a kernel or a sandbox without it
            pass
    return None


def _send(how: Callable[[int, int], None], target: int, number: int) -> None:
    try:
        how(target, number)
    except (ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        pass


def _kill_now(process: subprocess.Popen[bytes]) -> None:
    for pid in _session_members(process.pid):
        _send(os.kill, pid, signal.SIGKILL)
    _send(os.killpg, process.pid, signal.SIGKILL)
    process.wait()


def _session_members(session: int) -> list[int]:
    """The living processes of a session but its leader; none where the system does not show them."""
    found = []
    for pid in _pids():
        if pid != session:
            try:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] not in (b"Z", b"X"):
                found.append(pid)
    return found


def kill_marked(mark: bytes) -> None:
    """Ends every process that a check with a mark beginning so has started, whatever session or parent it has by now."""
    wanted = MARK.encode() + b"=" + mark
    for pid in _pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                marked = mark and any(entry.startswith(wanted) for entry in file.read().split(b"\0"))
        except OSError:
            continue
        if marked and pid != os.getpid():
            _send(os.kill, pid, signal.SIGKILL)


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
