"""Reading a file of a git directory, where anything may stand in its place."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO


def open_regular(path: bytes | str, *, follow: bool = False) -> BinaryIO | None:
    """A regular file, open for reading; None where something else stands at the path. Never waits, as opening a FIFO would.

    A link is followed if ``follow`` says so, else an OSError (ELOOP). Raises OSError (FileNotFoundError where there is nothing).
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return open(descriptor, "rb")


def read_regular(path: bytes | str, *, follow: bool = False, most: int | None = None) -> bytes | None:
    """A regular file's content, None where something else stands at the path or it has more than ``most`` bytes; else as above."""
    file = open_regular(path, follow=follow)
    if file is None:
        return None
    with file:
        return None if most is not None and os.fstat(file.fileno()).st_size > most else file.read()
