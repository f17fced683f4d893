"""A workspace whose folder was moved: found by its witness, it goes on under its new root with its log and its state.

Paths in snapshots are relative to the root, so nothing recorded has to change. The workspace's file is renamed, then written anew: a kill
in between leaves one that no root finds but the witness does, as before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore, hash_object
from safety.plumbing.reading import read_regular
from safety.store import registry
from safety.store.oplog import OpLog
from safety.store.snapshot import Snapshot
from safety.store.turns import Sessions
from safety.types import Present

COMPARED_FILES = 200
LARGEST_COMPARED = 1 << 20


def take_over(home: Path, cwd: bytes, too_wide: frozenset[bytes], now_ms: int) -> registry.Entry | None:
    """The workspace that was moved to ``cwd`` or to a folder above it, from now on recorded there; None where there is none.

    A folder was moved where an entry's witness is its own, and no longer that of the entry's root: a copy has another inode. An inode
    may be used again, so the first commit must be the same too, or else a file of the newest snapshot lie there unchanged.
    A workspace whose turn is running is left to that.
    """
    known = list(registry.files(home))
    for root in _upwards(registry.real_path(cwd), too_wide):
        for file, entry in known:
            if _was_moved(entry, root) and not _is_busy(home, entry, now_ms) and _is_same(home, entry, root):
                moved = replace(entry, root=root)
                try:
                    os.rename(file, registry.file_of(home, root))
                except FileNotFoundError:  # another process was faster
                    return registry.recorded(home, root)
                registry.save(home, moved)
                return moved
    return None


def _upwards(path: bytes, too_wide: frozenset[bytes]) -> Iterator[bytes]:
    while path not in too_wide and path != os.path.dirname(path):
        yield path
        path = os.path.dirname(path)


def _was_moved(entry: registry.Entry, root: bytes) -> bool:
    witness = (entry.device, entry.inode)
    return bool(entry.inode) and _identity(root) == witness and (entry.root == root or _identity(entry.root) != witness)


def _identity(path: bytes) -> tuple[int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _is_busy(home: Path, entry: registry.Entry, now_ms: int) -> bool:
    states = Sessions(home / "workspaces" / entry.key / "sessions").all()
    return any(state.is_open and state.is_alive(now_ms) for state in states)


def _is_same(home: Path, entry: registry.Entry, root: bytes) -> bool:
    history = registry.first_commit(root)
    if history and entry.history:
        return history == entry.history
    try:
        return _holds_something_of(home, entry, root)
    except (ObjectMissing, ObjectCorrupt):
        return False


def _holds_something_of(home: Path, entry: registry.Entry, root: bytes) -> bool:
    """Whether a file of the entry's newest snapshot lies below ``root`` as it was; where it holds no file, whether there is none."""
    store = home / "stores" / f"{entry.store}.git"
    if not (store / "HEAD").exists():
        return False
    odb = ObjectStore(store)
    head = OpLog(odb, store, entry.chain, lambda: 0).head()
    if head is None:
        return False
    found = Snapshot(odb, head.tree).walk(areas=("work", "private"))
    files = ((path, state.oid) for path, state in found if isinstance(state, Present) and state.kind == "file")
    some = [(path, oid) for path, oid in islice(files, COMPARED_FILES) if not path.startswith(b"/")]
    return any(_lies_there(os.path.join(root, path), oid) for path, oid in some) if some else not os.listdir(root)


def _lies_there(path: bytes, oid: bytes) -> bool:
    with suppress(OSError):
        content = read_regular(path, most=LARGEST_COMPARED)
        return content is not None and hash_object("blob", content) == oid
    return False
