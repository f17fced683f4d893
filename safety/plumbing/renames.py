"""The renames that Python has not: two names exchanged, and one that never replaces."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

NOREPLACE, EXCHANGE = 1, 2
_AT_FDCWD = -2 if sys.platform == "darwin" else -100

Rename = Callable[[int, bytes, int, bytes, int], None]


@cache
def load_rename() -> Rename:
    """``renameat2`` (Linux) or ``renameatx_np`` (macOS) as ``rename(dir_fd, old, dir_fd, new, flag)``. It raises OSError."""
    import ctypes  # costs a process that only reads more than all its work

    library = ctypes.CDLL(None, use_errno=True)
    name = "renameatx_np" if sys.platform == "darwin" else "renameat2"
    flags = {NOREPLACE: 4, EXCHANGE: 2} if sys.platform == "darwin" else {NOREPLACE: 1, EXCHANGE: 2}
    function = getattr(library, name, None)

    def rename(old_fd: int, old: bytes, new_fd: int, new: bytes, flag: int) -> None:
        if function is None:
            raise OSError(errno.ENOSYS, "no exchange of names on this system")
        if function(old_fd, old, new_fd, new, flags[flag]) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), os.fsdecode(new))

    return rename


def put_in_place(temporary: bytes | Path, path: bytes | Path) -> None:
    """``os.replace``, as atomic for who reads, without its wait for the disk.

    ext4 writes a file out when it is renamed over another, which takes milliseconds where the disk is busy; it does not when the two
    names are exchanged. A process killed in here may leave the old file at ``temporary``. Nothing is durable but what was flushed.
    """
    old, new = os.fsencode(temporary), os.fsencode(path)
    try:
        load_rename()(_AT_FDCWD, old, _AT_FDCWD, new, EXCHANGE)
    except OSError:  # there is none yet, or no exchange on this file system
        os.replace(old, new)
    else:
        os.unlink(old)
