"""One lock a workspace: a flock, so that it ends with the process that holds it.

Nothing is ever reclaimed: the kernel releases the lock of a dead process on this host. The holder writes who it is into the file for
the message a waiter shows.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from safety.faults import SafetyError

_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05


class WorkspaceBusy(SafetyError):
    code = "workspace-busy"


class LockUnsupported(SafetyError):
    code = "lock-unsupported"


_held = threading.local()


@contextlib.contextmanager
def hold(path: Path, wait_s: float) -> Iterator[None]:
    """Holds the lock file for the duration of the block; re-entrant within a thread.

    Raises WorkspaceBusy after ``wait_s`` seconds with the holder's name, LockUnsupported where the file system has no locks.
    """
    depth: dict[str, int] = _held.__dict__.setdefault("depth", {})
    key = str(path)
    if depth.get(key):
        depth[key] += 1
        try:
            yield
        finally:
            depth[key] -= 1
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, wait_s)
        depth[key] = 1
        try:
            yield
        finally:
            depth[key] = 0
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    pause = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as fault:
            if fault.errno in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP):
                raise LockUnsupported(
                    "the state folder's file system has no locks", "set GIT_SAFETY_HOME to a local folder"
                ) from fault
            if fault.errno not in (errno.EWOULDBLOCK, errno.EINTR, errno.EACCES):
                raise
        if time.monotonic() >= deadline:
            holder = os.pread(descriptor, 200, 0).decode("ascii", "replace").strip() or "another process"
            raise WorkspaceBusy(f"the workspace is in use by {holder}", "wait for it to end, then try again")
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)
    note = b"process %d\n" % os.getpid()
    if os.pread(descriptor, 200, 0) != note:
        os.pwrite(descriptor, note.ljust(32), 0)
