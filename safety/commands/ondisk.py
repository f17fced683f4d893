"""Paths as they are on disk now, for verbs that take no snapshot: nothing is written, not even to the store."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from safety.plumbing.odb import hash_object
from safety.store.files import Tree
from safety.types import ABSENT, ObjectId, PathState, Present, Unknown

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def on_disk(tree: Tree, path: bytes, max_bytes: int, held: dict[ObjectId, bytes] | None = None) -> PathState:
    """The state of one path, Unknown where it is too large, odd or unreadable. Its content goes into ``held``."""
    try:
        found = tree.lstat(path)
        if found is None:
            return ABSENT
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISDIR(found.st_mode):
            return Present("dir", mode, b"")
        parent, name = tree.parent(path)
        if stat.S_ISLNK(found.st_mode):
            kind, mode, data = "link", 0o777, os.readlink(name, dir_fd=parent)
        elif not stat.S_ISREG(found.st_mode):
            return Unknown("special-file")
        elif found.st_size > max_bytes:
            return Unknown("too-large", found.st_size, found.st_mtime_ns)
        else:
            with open(os.open(name, _READ, dir_fd=parent), "rb", 0) as file:
                kind, data = "file", file.read(max_bytes + 1)
    except OSError:
        return Unknown("unreadable")
    oid = hash_object("blob", data)
    if held is not None:
        held[oid] = data
    return Present("link" if kind == "link" else "file", mode, oid)


def files_below(root: bytes, path: bytes) -> Iterator[bytes]:
    """Files and links at and below a path, named as the path is. Links are not followed, git directories left out."""
    full = os.path.join(root, path) if path else root
    if not os.path.isdir(full) or os.path.islink(full):
        if os.path.lexists(full):
            yield path
        return
    for folder, folders, names in os.walk(full):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(name for name in folders if name != b".git" and name not in links)
        for name in sorted([*names, *links]):
            if name != b".git":
                inside = os.path.join(folder, name)
                yield inside if path.startswith(b"/") else inside[len(root) + 1 :]
