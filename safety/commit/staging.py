"""The user's index: what is staged, and what each path of a commit must become in it so that staging means what it meant."""

from __future__ import annotations

import bisect
import os
from collections.abc import Collection

from safety.commit.objects import Objects, ObjectsGone
from safety.commit.values import EXECUTABLE, REGULAR, Entry
from safety.plumbing.index import INTENT_TO_ADD, IndexFile, parse_index
from safety.plumbing.merge import merge_text
from safety.plumbing.repo import Repository
from safety.plumbing.run import Git


class Staging:
    """The index of a work tree as it is now. Raises IndexCorrupt or IndexUnsupported for one that cannot be read."""

    def __init__(self, repository: Repository, objects: Objects) -> None:
        self._index = read_index(repository, objects)
        self._by_path = {entry.path: entry for entry in self._index.entries}
        self._sorted = [entry.path for entry in self._index.entries]

    @property
    def paths(self) -> Collection[bytes]:
        return self._by_path.keys()

    @property
    def unmerged(self) -> list[bytes]:
        """Paths of a conflict that is not resolved."""
        return sorted({entry.path for entry in self._index.entries if entry.stage})

    def flags(self, path: bytes) -> int:
        """Skip-worktree, assume-unchanged, intent-to-add."""
        found = self._by_path.get(path)
        return found.flags if found is not None else 0

    def staged(self, path: bytes) -> Entry | None:
        """What is staged at a path; an intent to add counts as nothing."""
        found = self._by_path.get(path)
        return None if found is None or found.flags & INTENT_TO_ADD else Entry(found.mode, found.oid.hex())

    def in_the_way(self, path: bytes, going: Collection[bytes]) -> bool:
        """Whether an entry that does not go makes a folder of this path, or a file of a folder above it."""
        above = (path[:at] for at, byte in enumerate(path) if byte == 0x2F)
        if any(folder in self._by_path and folder not in going for folder in above):
            return True
        at = bisect.bisect_left(self._sorted, path + b"/")
        while at < len(self._sorted) and self._sorted[at].startswith(path + b"/"):
            if self._sorted[at] not in going:
                return True
            at += 1
        return False


def read_index(repository: Repository, objects: Objects, path: bytes | None = None) -> IndexFile:
    """The index file of a work tree (or another one of its, at ``path``), joined and expanded; an empty one if there is none."""

    def shared(name: str) -> bytes:
        with open(os.path.join(repository.git_dir, b"sharedindex." + name.encode()), "rb") as file:
            return file.read()

    def read_tree(oid: bytes) -> bytes:
        found = objects.read(oid.hex())
        if found is None:
            raise ObjectsGone(f"tree {oid.hex()} cannot be read")
        return found.data

    try:
        with open(path or os.path.join(repository.git_dir, b"index"), "rb") as file:
            return parse_index(file.read(), shared_index=shared, read_tree=read_tree)
    except FileNotFoundError:
        return IndexFile(2, [])


def meaning(index: IndexFile) -> dict[tuple[bytes, int], tuple[int, bytes, int]]:
    """Mode, id and flags of each path and stage: what an index says, without its stat cache. Equal ones stage the same."""
    return {entry[:2]: entry[2:5] for entry in index.entries}


def staged_after(
    git: Git, objects: Objects, staged: Entry | None, old: Entry | None, new: Entry | None, agents: Collection[str]
) -> tuple[bool, Entry | None]:
    """Whether a path's staging survives its change from ``old`` to ``new`` in HEAD, and what is staged then ([gate] B4).

    ``agents`` are ids of contents that a tool call left there: the agent may have staged one itself.
    """
    if staged in (old, new):
        return True, new
    if staged is not None and new is not None:
        if old is not None and (merged := merge_entries(git, objects, old, staged, new)) is not None:
            return True, merged
        if staged.oid in agents:
            return True, new
    return False, None


def merge_entries(git: Git, objects: Objects, base: Entry, ours: Entry, theirs: Entry) -> Entry | None:
    """The clean merge of three regular files, written; None where there is none."""
    if not all(entry.mode in (REGULAR, EXECUTABLE) for entry in (base, ours, theirs)):
        return None
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    if ours.oid in (base.oid, theirs.oid):
        return Entry(mode, theirs.oid)
    if theirs.oid == base.oid:
        return Entry(mode, ours.oid)
    texts = [objects.blob(entry.oid) for entry in (base, ours, theirs)]
    if texts[0] is None or texts[1] is None or texts[2] is None:
        return None
    merged = merge_text(git, texts[0], texts[1], texts[2])
    return None if merged is None else Entry(mode, objects.write_blobs([merged])[0])
