"""Reading a file of a git directory, where anything may stand in its place."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO


def read_regular(path: bytes | str, *, follow: bool = False, most: int | None = None) -> bytes | None:
    """A regular file's content; None where something else stands at the path, or it has more than ``most`` bytes.

    Never waits, as opening a FIFO would. A link is followed if ``follow`` says so, else an OSError (ELOOP). Raises OSError
    (FileNotFoundError where there is nothing).
    """
    file = _open_regular(path, follow)
    if file is None:
        return None
    with file:
        return None if most is not None and os.fstat(file.fileno()).st_size > most else file.read()


def read_if_there(path: bytes) -> bytes | None:
    """The same with links followed, and None also where there is nothing."""
    try:
        return read_regular(path, follow=True)
    except (FileNotFoundError, NotADirectoryError):
        return None


def first_line(path: bytes) -> bytes | None:
    """The first line of a regular file without its end, links followed; None where something else stands there. Raises OSError."""
    file = _open_regular(path, follow=True)
    if file is None:
        return None
    with file:
        return file.readline().rstrip(b"\n")


def _open_regular(path: bytes | str, follow: bool) -> BinaryIO | None:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return open(descriptor, "rb")
