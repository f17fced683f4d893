"""The work tree seen safely: one path at a time by directory descriptors, links never followed, odd files never opened.

Both capture and apply reach files only through ``Tree``: a path longer than PATH_MAX works, and a directory that became a symbolic
link is never walked through (redteam F4, guard 4.1).
"""

from __future__ import annotations

import errno
import os
import re
import stat
from types import TracebackType
from typing import NamedTuple

from safety.plumbing.odb import ChangedWhileReading, ObjectStore
from safety.store.oplog import ID_LETTERS
from safety.types import ABSENT, PathState, Present, Unknown

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONTENT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
ATTEMPTS = 3
TEMPORARY_PREFIX = b".git-safety-tmp-"  # names of ours for a moment, a job's id after it; see exchange
_TEMPORARY = re.compile(re.escape(TEMPORARY_PREFIX) + b"[%s]{12}-[0-9]+" % ID_LETTERS.encode())


def is_temporary(name: bytes) -> bool:
    """Whether a file of the work tree is one that an undo makes for a moment; a user's own name may begin as ours do."""
    return name.startswith(TEMPORARY_PREFIX) and _TEMPORARY.fullmatch(name) is not None


class Tree:
    """Directory descriptors below one root, the last used chain kept open. Relative paths only; absolute ones start at ``/``."""

    def __init__(self, root: bytes) -> None:
        self.root = root
        self._chain: list[tuple[bytes, int]] = []
        self._absolute = False

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._drop(0)

    def _drop(self, depth: int) -> None:
        while len(self._chain) > depth:
            os.close(self._chain.pop()[1])

    def directory(self, path: bytes) -> int:
        """A descriptor of the directory; owned by the tree and valid until its next call.

        Raises the OSError of the first component that is missing (ENOENT), no directory (ENOTDIR) or a symbolic link (ELOOP).
        """
        absolute = path.startswith(b"/")
        names = [b"/" if absolute else b"", *[part for part in path.split(b"/") if part]]
        if absolute != self._absolute:
            self._drop(0)
            self._absolute = absolute
        depth = 0
        while depth < len(self._chain) and depth < len(names) and self._chain[depth][0] == names[depth]:
            depth += 1
        self._drop(depth)
        for name in names[depth:]:
            if not self._chain:
                descriptor = os.open(b"/" if absolute else self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            else:
                try:
                    descriptor = os.open(name, _DIRECTORY, dir_fd=self._chain[-1][1])
                except OSError as fault:
                    # Linux says ENOTDIR for a link opened with O_DIRECTORY | O_NOFOLLOW, other systems ELOOP
                    raise fault
            self._chain.append((name, descriptor))
        return self._chain[-1][1]

    def parent(self, path: bytes) -> tuple[int, bytes]:
        """The descriptor of the directory that holds ``path``, and its name there."""
        head, _, name = path.rpartition(b"/")
        return self.directory(head or (b"/" if path.startswith(b"/") else b"")), name

    def lstat(self, path: bytes) -> os.stat_result | None:
        """What is there, or None where nothing is. Raises OSError for anything but absence (EACCES, EIO)."""
        try:
            if not path:
                return os.lstat(self.root)
            descriptor, name = self.parent(path)
            return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        except OSError as fault:
            if fault.errno in _GONE:
                return None
            raise


class Observed(NamedTuple):
    """A path as it was found: its state, how many bytes were read, and the stat data of a file or link whose content is known."""

    state: PathState
    read: int = 0
    info: os.stat_result | None = None


def observe(tree: Tree, odb: ObjectStore, path: bytes, max_bytes: int | None) -> Observed:
    """Looks at one path on disk and writes its content to the store.

    ``max_bytes`` None means no limit. FIFOs, sockets and devices are never opened. A file that changes while it is read is read again,
    three times, then Unknown.
    """
    try:
        found = tree.lstat(path)
    except OSError:
        return Observed(Unknown("unreadable"))
    if found is None:
        return Observed(ABSENT)
    if stat.S_ISDIR(found.st_mode):
        return Observed(Present("dir", stat.S_IMODE(found.st_mode), b""))
    if stat.S_ISLNK(found.st_mode):
        return _observe_link(tree, odb, path, found)
    if not stat.S_ISREG(found.st_mode):
        return Observed(Unknown("special-file"))
    if max_bytes is not None and found.st_size > max_bytes:
        return Observed(Unknown("too-large", found.st_size, found.st_mtime_ns))
    return _observe_file(tree, odb, path, max_bytes)


def state_of(tree: Tree, odb: ObjectStore, path: bytes) -> PathState:
    """The state of one path on disk, whatever its size."""
    return observe(tree, odb, path, None).state


def _observe_link(tree: Tree, odb: ObjectStore, path: bytes, found: os.stat_result) -> Observed:
    try:
        descriptor, name = tree.parent(path)
        target = os.readlink(name, dir_fd=descriptor)
    except OSError as fault:
        return Observed(ABSENT if fault.errno in _GONE else Unknown("unreadable"))
    return Observed(Present("link", 0o777, odb.write("blob", target)), len(target), found)


def _observe_file(tree: Tree, odb: ObjectStore, path: bytes, max_bytes: int | None) -> Observed:
    size = mtime_ns = 0
    for _ in range(ATTEMPTS):
        try:
            parent, name = tree.parent(path)
            descriptor = os.open(name, _CONTENT, dir_fd=parent)
        except OSError as fault:
            return Observed(ABSENT if fault.errno in _GONE else Unknown("unreadable"))
        try:
            before = os.fstat(descriptor)
            size, mtime_ns = before.st_size, before.st_mtime_ns
            if not stat.S_ISREG(before.st_mode):
                return Observed(Unknown("special-file"))
            if max_bytes is not None and before.st_size > max_bytes:
                return Observed(Unknown("too-large", size, mtime_ns))
            oid = odb.write_fd(descriptor, before.st_size)
            after = os.fstat(descriptor)
        except ChangedWhileReading:
            continue
        finally:
            os.close(descriptor)
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
            inode = (after.st_dev, after.st_ino) if after.st_nlink > 1 else None
            return Observed(Present("file", stat.S_IMODE(after.st_mode), oid, inode), size, after)
    return Observed(Unknown("changed-while-reading", size, mtime_ns))
