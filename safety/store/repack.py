"""Packs what captures leave loose, so that versions of one path become deltas of each other, and unites small packs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore, SourceObjects
from safety.plumbing.run import Git, GitError
from safety.store.chains import chains, read_chain, tree_items
from safety.store.packs import (
    Pack,
    StoreBusy,
    alone,
    is_torn,
    loose_files,
    pack_ids,
    packs,
    raise_generation,
    remove_files,
    remove_pack,
    remove_pack_caches,
    sync_folder,
    write_pack,
    write_whole,
)
from safety.store.storerefs import ANCHOR, refs_below
from safety.store.trees import GITLINK, TREE
from safety.types import ObjectId

LOOSE_THRESHOLD = 1000
MOST_PACKS = 10
SMALL_PACK = 32 << 20
_WINDOW = 30
_GROWTH = 2
_SMALL_TREE_PACK = 256 << 10


def repack_loose(git: Git, odb: ObjectStore, *, threshold: int = LOOSE_THRESHOLD, wait_s: float = 2.0) -> int:
    """Packs the loose objects if there are at least ``threshold``, then removes their files; gives how many.

    Walks nothing but them: what they are called is read off the operations since the last repack, so that versions of one path
    become deltas of each other. Trees and commits get a pack of their own, which takes in the last such packs while they are
    not much bigger: a tree's versions differ by one entry, and each pack has to hold one of them in full. Safe beside captures
    and readers, which find an object in its pack when its file is gone.
    """
    loose = dict(loose_files(f"{odb.git_dir}/objects"))
    if len(loose) < max(threshold, 1):
        return 0
    try:
        return _repack(git, odb, loose, wait_s)
    except GitError:  # it stops at a torn object, which is ``fsck``'s to tell and ours to step over
        whole = {oid: path for oid, path in loose.items() if not is_torn(path, oid)}
        if len(whole) == len(loose):
            raise
        return _repack(git, odb, whole, wait_s)


def _repack(git: Git, odb: ObjectStore, loose: dict[ObjectId, str], wait_s: float) -> int:
    named = _Names(odb, loose)
    written = write_pack(git, odb.git_dir, named.lines("blob"), window=_WINDOW)
    packed = set(pack_ids(written)) if written else set()
    packed |= _repack_trees(git, odb, named, sum(map(os.path.getsize, map(loose.__getitem__, named.of("tree")))), wait_s)
    odb.refresh()
    removed = remove_files(path for oid, path in loose.items() if oid in packed)
    _remove_empty_folders(odb.git_dir)
    return removed


def _remove_empty_folders(git_dir: Path) -> None:
    """The folders of loose objects that hold none any more, as git does it: each takes a block. Nobody is waited for; else next time."""
    with contextlib.suppress(StoreBusy), alone(git_dir, wait_s=0):
        for folder in (git_dir / "objects").glob("[0-9a-f][0-9a-f]"):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _repack_trees(git: Git, odb: ObjectStore, named: _Names, weight: int, wait_s: float) -> set[ObjectId]:
    """Packs the trees and commits, with those of older tree packs; gives the ids in the new pack."""
    taken, rest = [], []
    for pack in _tree_packs(odb.git_dir):
        if pack.size <= max(_GROWTH * weight, _SMALL_TREE_PACK):
            taken.append(pack)
            weight += pack.size
        else:
            rest.append(pack)
    if taken:
        named = _Names(odb, [*named.of("tree"), *(oid for pack in taken for oid in pack_ids(pack))])
    new = write_pack(git, odb.git_dir, named.lines("tree"), window=_WINDOW)
    if new is None:
        return set()
    _note_tree_packs(odb.git_dir, [*rest, new, *taken])
    if _replace(odb.git_dir, taken, new, wait_s):  # else they are taken in again by the next repack
        _note_tree_packs(odb.git_dir, [*rest, new])
    return set(pack_ids(new))


def _tree_packs(git_dir: Path) -> list[Pack]:
    """Packs that ``repack_loose`` made of trees and commits, smallest first."""
    try:
        names = set((git_dir / "tree-packs").read_text().split())
    except FileNotFoundError:
        return []
    return [pack for pack in packs(git_dir) if os.path.basename(pack.stem) in names]


def _note_tree_packs(git_dir: Path, listed: Iterable[Pack]) -> None:
    write_whole(git_dir / "tree-packs", "".join(os.path.basename(pack.stem) + "\n" for pack in listed).encode(), durable=False)


def _replace(git_dir: Path, old: Iterable[Pack], new: Pack, wait_s: float) -> bool:
    """Removes packs whose objects are all in the new one, if captures let us; else they stay as doubles until the next repack.

    Gives whether none of them stays.
    """
    held = set(pack_ids(new))
    gone = [pack for pack in old if pack.stem != new.stem and held.issuperset(pack_ids(pack))]
    if not gone:
        return True
    try:
        with alone(git_dir, wait_s):
            raise_generation(git_dir)
            remove_pack_caches(git_dir)
            for pack in gone:
                remove_pack(pack)
            sync_folder(f"{git_dir}/objects/pack")
    except StoreBusy:
        return False
    return True


def repack_packs(git: Git, odb: ObjectStore, *, most: int = MOST_PACKS, wait_s: float = 2.0) -> int:
    """Unites the small packs that repacks and transfers have left, if they are more than ``most``;

    Gives how many went into one.
    """
    apart = {pack.stem for pack in _tree_packs(odb.git_dir)}
    small = [pack for pack in packs(odb.git_dir) if not pack.is_shared and pack.size < SMALL_PACK and pack.stem not in apart]
    if len(small) <= most:
        return 0
    named = _Names(odb, [oid for pack in small for oid in pack_ids(pack)])
    new = write_pack(git, odb.git_dir, [*named.lines("tree"), *named.lines("blob")], window=_WINDOW)
    if new is None:
        return 0
    _replace(odb.git_dir, small, new, wait_s)
    odb.refresh()
    return len(small)


class _Names:
    """A line for pack-objects for each of some objects, with the path it has in the newest operation that holds it, newest first.

    They come as two kinds: ``tree`` (commits and tags too) and ``blob``.
    """

    def __init__(self, odb: ObjectStore, members: Iterable[ObjectId]) -> None:
        self.odb = odb
        self._left = dict.fromkeys(members)
        self._found: dict[str, dict[ObjectId, bytes]] = {"tree": {}, "blob": {}}
        for chain in chains(odb.git_dir):
            self._take_chain(chain)
        for head in refs_below(odb.git_dir, ANCHOR).values():
            self._take_history(head)
        objects = SourceObjects(odb.git_dir / "objects")
        for oid in sorted(self._left):
            try:
                self._found["blob" if objects.header(oid)[0] == "blob" else "tree"][oid] = b""
            except (ObjectMissing, ObjectCorrupt):
                continue  # a torn file: git would stop at it

    def of(self, kind: str) -> Iterable[ObjectId]:
        """The ids of one kind."""
        return self._found[kind].keys()

    def lines(self, kind: str) -> list[bytes]:
        """The lines of one kind."""
        return [oid.hex().encode("ascii") + b" " + path for oid, path in self._found[kind].items()]

    def _take(self, oid: ObjectId, path: bytes, kind: str) -> bool:
        if oid not in self._left:
            return False
        del self._left[oid]
        self._found[kind][oid] = path.replace(b"\n", b"?")
        return True

    def _take_tree(self, top: ObjectId, path: bytes) -> None:
        stack = [(TREE, top, path)]
        while stack:
            mode, oid, path = stack.pop()
            if mode != GITLINK and self._take(oid, path, "tree" if mode == TREE else "blob") and mode == TREE:
                stack += [(mode, below, path + b"/" + name) for mode, name, below in reversed(tree_items(self.odb, oid))]

    def _take_chain(self, chain: str) -> None:
        try:
            for operation in read_chain(self.odb, chain):
                if not self._take(operation.oid, b"operation", "tree"):
                    return  # what is older was packed before
                self._take_tree(operation.tree, b"")
        except (ObjectMissing, ObjectCorrupt):
            return  # its objects are packed all the same, only less well

    def _take_history(self, head: ObjectId) -> None:
        """Anchors and the user's commits below them, as far as they are members.

        Their trees are named as those of ``work/`` are.
        """
        stack = [head]
        while stack:
            oid = stack.pop()
            if not self._take(oid, b"commit", "tree"):
                continue
            try:
                commit = self.odb.read_commit(oid)
            except (ObjectMissing, ObjectCorrupt):
                continue
            self._take_tree(commit.tree, b"/work")
            stack += commit.parents
