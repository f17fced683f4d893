"""Putting one path in its place without ever losing what stands there.

Replace is an exchange of two names, after which what came out is compared with what was expected and swapped back if it differs; create
never replaces; remove is a rename that is checked before it is final (redteam F1). Displaced files live until ``finish`` and are
compared once more then, for a writer that still had one open.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass, field, replace

from safety.plumbing.odb import ObjectStore
from safety.plumbing.renames import EXCHANGE, NOREPLACE, load_rename
from safety.store.files import TEMPORARY_PREFIX, Tree, state_of
from safety.types import Absent, PathState, Present


class Moved(Exception):
    """What stands at the path is not what was expected; it was left (or put back) as it is."""


@dataclass
class Displaced:
    """A file that was taken out of its place: where it lies until the end, and what it was."""

    directory: bytes
    name: bytes
    path: bytes
    state: PathState


@dataclass
class Exchanger:
    """Writes states below one tree root. ``tag`` makes the temporary names, which recovery can then recognise."""

    tree: Tree
    odb: ObjectStore
    tag: str
    displaced: list[Displaced] = field(default_factory=list)
    late_writes: list[bytes] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        self._rename = load_rename()

    def put(self, path: bytes, ours: PathState, target: PathState) -> None:
        """Makes ``path`` be ``target`` if it still is ``ours``.

        Raises Moved when it is not, OSError when the system refuses; then nothing has changed.
        """
        if isinstance(target, Absent):
            self._remove(path, ours)
        elif isinstance(target, Present) and isinstance(ours, Absent):
            self._create(path, target)
        elif isinstance(target, Present) and isinstance(ours, Present):
            self._change(path, ours, target)

    def finish(self) -> list[bytes]:
        """Drops what was displaced; returns paths whose displaced file was written to meanwhile (its content is in the store)."""
        late = []
        for item in self.displaced:
            place = item.directory + b"/" + item.name if item.directory else item.name
            state = state_of(self.tree, self.odb, place)
            if (
                isinstance(state, Present)
                and state.kind == "file"
                and isinstance(item.state, Present)
                and state.oid != item.state.oid
            ):
                late.append(item.path)
            with contextlib.suppress(OSError):
                os.unlink(item.name, dir_fd=self.tree.directory(item.directory))
        self.displaced.clear()
        return late

    # -- one change ----------------------------------------------------------------------------------------------------------

    def _temporary(self) -> bytes:
        self._count += 1
        return TEMPORARY_PREFIX + self.tag.encode() + b"-%d" % self._count

    def _split(self, path: bytes) -> tuple[bytes, int, bytes]:
        directory, _, name = path.rpartition(b"/")
        if path.startswith(b"/") and not directory:
            directory = b"/"
        return directory, self.tree.directory(directory), name

    def _write(self, folder: int, name: bytes, target: Present, like: os.stat_result | None) -> None:
        if target.kind == "link":
            os.symlink(self.odb.blob(target.oid), name, dir_fd=folder)
            return
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            self.odb.copy_to_fd(target.oid, descriptor)
            if like is not None and (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                with contextlib.suppress(OSError):
                    os.fchown(descriptor, like.st_uid, like.st_gid)
            os.fchmod(descriptor, target.mode)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise
        finally:
            os.close(descriptor)

    def _create(self, path: bytes, target: Present) -> None:
        directory, folder, name = self._split(path)
        if target.kind == "dir":
            try:
                os.mkdir(name, 0o700, dir_fd=folder)
            except FileExistsError:
                info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISDIR(info.st_mode):
                    raise Moved(path) from None
            os.chmod(self._descriptor_path(path), target.mode | 0o700)  # it will be filled; its own mode follows
            return
        temporary = self._temporary()
        self._write(folder, temporary, target, None)
        try:
            self._rename(folder, temporary, folder, name, NOREPLACE)
        except OSError as fault:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            if fault.errno == errno.EEXIST:
                raise Moved(path) from None
            raise

    def _descriptor_path(self, path: bytes) -> int:
        return self.tree.directory(path)

    def _remove(self, path: bytes, ours: PathState) -> None:
        directory, folder, name = self._split(path)
        if isinstance(ours, Present) and ours.kind == "dir":
            os.rmdir(name, dir_fd=folder)
            return
        temporary = self._temporary()
        try:
            self._rename(folder, name, folder, temporary, NOREPLACE)
        except OSError as fault:
            if fault.errno in (errno.ENOENT, errno.ENOTDIR):
                raise Moved(path) from None
            raise
        if not self._is(directory, temporary, ours):
            self._rename(folder, temporary, folder, name, NOREPLACE)
            raise Moved(path)
        self.displaced.append(Displaced(directory, temporary, path, ours))

    def _change(self, path: bytes, ours: Present, target: Present) -> None:
        directory, folder, name = self._split(path)
        if ours.kind == "dir" and target.kind == "dir":
            os.chmod(name, target.mode | 0o700, dir_fd=folder)  # by name: a folder without permission cannot be opened
            return
        if ours.kind == "dir":
            os.rmdir(name, dir_fd=folder)
            self._create(path, target)
            return
        if target.kind == "dir":
            self._remove(path, ours)
            self._create(path, target)
            return
        if ours.kind == target.kind == "file" and ours.oid == target.oid:
            self._chmod(directory, folder, name, ours, target)
            return
        if ours.inode is not None and ours.inode == target.inode and ours.kind == target.kind == "file":
            self._write_in_place(directory, folder, name, ours, target)
            return
        self._exchange(path, directory, folder, name, ours, target)

    def _exchange(self, path: bytes, directory: bytes, folder: int, name: bytes, ours: Present, target: Present) -> None:
        try:
            like = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            raise Moved(path) from None
        temporary = self._temporary()
        self._write(folder, temporary, target, like)
        _copy_attributes(folder, name, temporary, like)
        try:
            self._rename(folder, temporary, folder, name, EXCHANGE)
        except OSError as fault:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            if fault.errno == errno.ENOENT:
                raise Moved(path) from None
            raise
        if not self._is(directory, temporary, ours):
            self._rename(folder, temporary, folder, name, EXCHANGE)
            os.unlink(temporary, dir_fd=self.tree.directory(directory))
            raise Moved(path)
        self.displaced.append(Displaced(directory, temporary, path, ours))

    def _chmod(self, directory: bytes, folder: int, name: bytes, ours: Present, target: Present) -> None:
        readable = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & 0o400
        if not readable and os.geteuid():  # the agent took the permission to read away; ask the content afterwards
            os.chmod(name, ours.mode | 0o400, dir_fd=folder)
            ours = replace(ours, mode=ours.mode | 0o400)
        if not self._is(directory, name, ours):
            raise Moved(name)
        descriptor = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.tree.directory(directory)
        )
        try:
            os.fchmod(descriptor, target.mode)
        finally:
            os.close(descriptor)

    def _write_in_place(self, directory: bytes, folder: int, name: bytes, ours: Present, target: Present) -> None:
        """For a file with several names: they all changed together, so they go back together (redteam F3)."""
        place = directory + b"/" + name if directory else name
        state = state_of(self.tree, self.odb, place)
        if isinstance(state, Present) and state.oid == target.oid:
            os.chmod(name, target.mode, dir_fd=self.tree.directory(directory))
            return
        if state != ours:
            raise Moved(place)
        if not ours.mode & 0o200:
            os.chmod(name, ours.mode | 0o200, dir_fd=self.tree.directory(directory))
        descriptor = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.tree.directory(directory))
        try:
            self.odb.copy_to_fd(target.oid, descriptor)
            os.ftruncate(descriptor, self.odb.size(target.oid))
            os.fchmod(descriptor, target.mode)
        finally:
            os.close(descriptor)

    def _is(self, directory: bytes, name: bytes, wanted: PathState) -> bool:
        place = directory + b"/" + name if directory else name
        return state_of(self.tree, self.odb, place) == wanted


def _copy_attributes(folder: int, name: bytes, temporary: bytes, like: os.stat_result) -> None:
    """Extended attributes (ACLs among them) of the displaced file, as far as permitted."""
    if not stat.S_ISREG(like.st_mode) or not hasattr(os, "listxattr"):
        return
    try:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    try:
        names = os.listxattr(source)
        if not names:
            return
        goal = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            for attribute in names:
                with contextlib.suppress(OSError):
                    os.setxattr(goal, attribute, os.getxattr(source, attribute))
        finally:
            os.close(goal)
    except OSError:
        return
    finally:
        os.close(source)
