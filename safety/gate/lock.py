"""One gate run at a time in a repository: a flock on its git directory itself, which leaves no file behind and ends with its holder."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from safety.faults import SafetyError

_PAUSE_S = 0.02


class GateBusy(SafetyError):
    """Another run of this repository's checks did not end in time."""

    code = "gate-busy"


@contextmanager
def one_gate(common_dir: bytes, ends_at: float) -> Iterator[None]:
    """Holds the lock for the block. Raises GateBusy at ``ends_at`` on the monotonic clock.

    On a file system without locks the block runs all the same.
    """
    folder = os.open(common_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _acquire(folder, ends_at)
        yield
    finally:
        os.close(folder)


def _acquire(folder: int, ends_at: float) -> None:
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            if fault.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return None  # NFS wants a descriptor open for writing, which a folder never is
        if time.monotonic() >= ends_at:
            raise GateBusy("another run of this repository's checks did not end in time")
        time.sleep(_PAUSE_S)
