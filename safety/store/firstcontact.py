"""First contact: what the user's own index already knows, taken over with its stat data, so that a clean repository is not read.

An entry is taken over only if its blob holds the bytes on disk: not where an attribute or core.autocrlf converts content, unless the size
proves otherwise (redteam B1); not intent-to-add, skip-worktree, assume-unchanged or unmerged entries, which say nothing about the disk.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

from safety.plumbing.attributes import converted_paths
from safety.plumbing.index import (
    IndexCorrupt,
    IndexEntry,
    IndexFile,
    IndexUnsupported,
    parse_cache_tree,
    parse_index,
    read_signature,
)
from safety.plumbing.odb import ObjectStore
from safety.plumbing.repo import Repository
from safety.store.place import Place
from safety.store.seed import has_promisor, is_complete
from safety.store.snapshot import Editor

GITLINK = 0o160000
LINK = 0o120000
Signature = tuple[int, int, int, bytes]


@dataclass
class Adopted:
    """Entries that say what is on disk, sorted, out of ``index``.

    ``raw`` is the index file itself when it holds just these, ``mtime_ns`` its mtime, ``signature`` what it was known by when it was read.
    """

    entries: list[IndexEntry]
    raw: bytes | None
    mtime_ns: int
    index: IndexFile
    signature: Signature

    @property
    def is_whole(self) -> bool:
        """Whether the entries are all there are, so that their tree is the index's tree."""
        return len(self.entries) == len(self.index.entries)


def read_index(git_dir: bytes, odb: ObjectStore) -> tuple[IndexFile, bytes]:
    """A repository's index, joined and expanded, and its bytes. Raises OSError, IndexCorrupt, IndexUnsupported."""
    folder = os.fsdecode(git_dir)

    def shared(name: str) -> bytes:
        with open(f"{folder}/sharedindex.{name}", "rb") as file:
            return file.read()

    with open(f"{folder}/index", "rb") as file:
        data = file.read()
    return parse_index(data, shared_index=shared, read_tree=odb.tree), data


def adopt(place: Place, repository: Repository) -> Adopted | None:
    """What can be taken over from the root repository's index, None where that is nothing."""
    if repository.object_format != "sha1":
        return None
    try:
        signature = read_signature(repository.git_dir + b"/index")
        if signature is None:
            return None
        index, data = read_index(repository.git_dir, place.odb)
    except (OSError, IndexUnsupported, IndexCorrupt):
        return None
    entries = [entry for entry in index.entries if not entry[1] and not entry[4] and entry[2] != GITLINK]
    entries = _without_converted(place, entries)
    held = held_directories(place, index, repository)
    entries = [entry for entry in entries if entry[0].rpartition(b"/")[0] in held or place.odb.exists(entry[3])]
    plain = len(entries) == len(index.entries) and data[4:8] == b"\0\0\0\2" and not index.was_split and not index.was_sparse
    return Adopted(entries, data if plain else None, signature[1], index, signature)


def put_entries(editor: Editor, entries: Collection[IndexEntry]) -> dict[bytes, dict[bytes, str]]:
    """Puts the entries as ``work/``, a directory at a time; gives the names that each directory has by them, with their kinds."""
    by_directory: dict[bytes, list[tuple[int, bytes, bytes]]] = {}
    directory, items = b"\0", []  # entries of one directory mostly come together, but those of its folders come in between
    start = 0
    for path, _, mode, oid, _, _ in entries:
        here = path.rpartition(b"/")[0]
        if here != directory:
            directory, start = here, len(here) + 1 if here else 0
            items = by_directory.setdefault(here, [])
        items.append((mode, path[start:], oid))
    known: dict[bytes, dict[bytes, str]] = {}
    for here, group in by_directory.items():
        editor.put_tree(here, group, "work")
        known.setdefault(here, {}).update((name, "link" if mode == LINK else "file") for mode, name, _ in group)
        while here:
            parent, _, name = here.rpartition(b"/")
            above = known.setdefault(parent, {})
            if name in above:
                break
            above[name] = "dir"
            here = parent
    return known


def held_directories(place: Place, index: IndexFile, repository: Repository) -> frozenset[bytes]:
    """Directories all of whose entries' blobs the store has for certain: their cached tree came with a complete seed.

    Two thousand look-ups less than one an entry: 100,000 cost 0.3 s.
    """
    if (
        index.cache_tree is None
        or not is_complete(place.store_dir, repository.common_dir + b"/objects")
        or has_promisor(place.store_dir)
    ):
        return frozenset()
    try:
        cached = parse_cache_tree(index.cache_tree)
    except IndexCorrupt:
        return frozenset()
    held: set[bytes] = set()
    for path, (_, _, oid) in cached.items():  # parents come before what is below them
        parent = path.rpartition(b"/")[0]
        if oid is not None and ((path and parent in held) or place.odb.exists(oid)):
            held.add(path)
    return frozenset(held)


def _without_converted(place: Place, entries: list[IndexEntry]) -> list[IndexEntry]:
    converted = converted_paths(place.git, place.root, [entry[0] for entry in entries])
    if not converted:
        return entries
    kept = []
    for entry in entries:
        how = converted.get(entry.path)
        if how is None or (how == "size-safe" and place.odb.exists(entry.oid) and place.odb.size(entry.oid) == entry.size):
            kept.append(entry)
    return kept
