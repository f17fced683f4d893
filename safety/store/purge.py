"""Removes one path's content from all of history: the one operation that rewrites.

Every operation whose snapshot holds the path gets a new one that says "purged" there, so that absence is never claimed; ids
stay, later operations only get new parents. The blobs go from loose objects, packs and the seed. Index entries and the user's
own commits go on naming them: that is an id, not content, and an undo still restores the index exactly. A blob that another
path names too is spared.

What is to go is written to ``purging`` before anything else, and stays there until it is gone: a purge that was killed is
finished by calling it again, or by a prune once nothing but indexes and commits names the blobs. The list ``purged`` stays for
good, so that no capture brings the blobs back out of the user's repository.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from safety.plumbing.odb import ObjectStore
from safety.plumbing.run import Git
from safety.store import shallow
from safety.store.anchors import purged_ids
from safety.store.chains import chains, operation_at, read_chain
from safety.store.editor import Editor
from safety.store.fanout import Trees
from safety.store.indexes import member_path
from safety.store.names import components
from safety.store.oplog import Operation
from safety.store.packs import alone, raise_generation, write_whole
from safety.store.prune import PURGING, Pruned, prune, sweep
from safety.store.storerefs import ANCHOR, LOG, PIN, refs_below
from safety.store.trees import GITLINK, TREE, Entry
from safety.types import ObjectId, RelPath, Unknown

REASON = "purged"
_NULL = "0" * 40
_DEADLINE_S = 3600

Names = tuple[bytes, ...]  # of the stored components, fan-out left out


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge came to.

    ``operations`` were rewritten, ``blobs`` removed. ``spared`` ids (hex) stay because other paths name them. With
    ``in_history`` the user's own commits or index name the content: it is gone from the store, but not from their repository.
    ``unread_history``: git could not read all of the user's history here (a partial clone), so another version of the path may
    lie in it.
    """

    operations: int
    blobs: int
    spared: tuple[str, ...]
    in_history: bool
    unread_history: bool
    pruned: Pruned


def purge(git: Git, odb: ObjectStore, path: RelPath, *, wait_s: float = 10.0) -> Purged:
    """Removes the content that ``path``, and if it is a directory all below it, ever had.

    The caller holds the locks of all workspaces of this store. A file that is still on disk is captured again by the next
    capture. Raises StoreBusy, ObjectMissing, ObjectCorrupt (before anything was changed), GitError.
    """
    target = _Target(odb, path)
    logs = {chain: list(read_chain(odb, chain)) for chain in chains(odb.git_dir)}
    pinned = {name: operation_at(odb, oid) for name, oid in refs_below(odb.git_dir, PIN).items()}
    operations = {operation.oid: operation for log in [*logs.values(), list(pinned.values())] for operation in log}
    found = {oid for operation in operations.values() for oid in target.content(operation.tree)}
    history = _History(git, odb)
    paths = _paths_in_members(odb, operations.values(), path)
    named = history.blobs_at(paths)
    found |= named
    spared = {oid for operation in operations.values() for oid in target.named_elsewhere(operation.tree, found)}
    spared |= history.named_elsewhere(found, paths)
    doomed = found - spared
    for name in (PURGING, "purged"):
        write_whole(odb.git_dir / name, shallow.format_ids(doomed | purged_ids(odb.git_dir, name)))
    with alone(odb.git_dir, wait_s):
        raise_generation(odb.git_dir)
        rewriter = _Rewriter(odb, target)
        for chain, log in logs.items():
            rewriter.rewrite_chain(chain, log)
        rewriter.rewrite_pins(pinned)
        rewriter.rewrite_cuts()
        sweep(odb.git_dir, 0)
    pruned = prune(git, odb, wait_s=wait_s)
    (odb.git_dir / PURGING).unlink()
    return Purged(
        operations=rewriter.changed,
        blobs=len(doomed),
        spared=tuple(sorted(oid.hex() for oid in spared)),
        in_history=bool(named) or target.in_index,
        unread_history=history.unread,
        pruned=pruned,
    )


def _paths_in_members(odb: ObjectStore, operations: Iterable[Operation], path: RelPath) -> list[bytes]:
    """The path as each repository of the workspace calls it."""
    trees = Trees(odb)
    members = {b""}
    for operation in operations:
        index = trees.stored(operation.tree).get(b"index")
        if index is not None:
            members |= {member_path(name) for name in trees.stored(index[1])}
    inside = [member for member in sorted(members) if not member or path.startswith(member + b"/")]
    return [] if path.startswith(b"/") else [path[len(member) + 1 :] if member else path for member in inside]


class _Target:
    """The path to purge, as stored names in the areas of a snapshot's tree."""

    def __init__(self, odb: ObjectStore, path: RelPath) -> None:
        self.odb, self.path = odb, path
        self.trees = Trees(odb)
        self.names = tuple(components(path))
        self.in_index = False
        self._content: dict[ObjectId, frozenset[ObjectId]] = {}
        self._elsewhere: dict[ObjectId, frozenset[tuple[Names, ObjectId]]] = {}

    def is_in(self, tree: ObjectId) -> bool:
        """Whether a snapshot holds content at the path, outside indexes."""
        return any(area != b"index" for area, _ in self._entries(tree))

    def content(self, tree: ObjectId) -> set[ObjectId]:
        """Blobs at and below the path in a snapshot, indexes included."""
        found: set[ObjectId] = set()
        for area, (mode, oid) in self._entries(tree):
            below = self._blobs(mode, oid)
            self.in_index |= area == b"index" and bool(below)
            found |= below
        return found

    def _entries(self, tree: ObjectId) -> Iterator[tuple[bytes, Entry]]:
        for area, (_, top) in self.trees.stored(tree).items():
            if area in (b"work", b"private", b"git"):
                entry = self._descend(top, self.names)
                if entry:
                    yield area, entry
            elif area == b"index":
                for member, (_, stages) in self.trees.stored(top).items():
                    names = self._inside(member)
                    for stage, (_, stage_tree) in self.trees.stored(stages).items() if names else ():
                        entry = self._descend(stage_tree, names) if stage.isdigit() else None
                        if entry:
                            yield area, entry

    def _inside(self, member: bytes) -> Names:
        """The path's stored names inside a member repository; empty if it is not in it."""
        prefix = tuple(components(member_path(member))) if member_path(member) else ()
        return self.names[len(prefix) :] if self.names[: len(prefix)] == prefix else ()

    def _descend(self, top: ObjectId, names: Names) -> Entry | None:
        entry: Entry = (TREE, top)
        for name in names:
            below = self.trees.get(entry[1], name) if entry[0] == TREE else None
            if below is None:
                return None
            entry = below
        return entry

    def _blobs(self, mode: int, oid: ObjectId) -> frozenset[ObjectId]:
        if mode == GITLINK:
            return frozenset()
        if mode != TREE:
            return frozenset((oid,))
        if oid not in self._content:
            below = (self._blobs(*entry) for entry in self.trees.stored(oid).values())
            self._content[oid] = frozenset().union(*below)
        return self._content[oid]

    def named_elsewhere(self, tree: ObjectId, found: set[ObjectId]) -> set[ObjectId]:
        """Those of the blobs that a snapshot names at another path too."""
        spared = set()
        for area, (mode, top) in self.trees.stored(tree).items():
            members = self.trees.stored(top).items() if area == b"index" else [(b"", (mode, top))]
            for member, (_, oid) in members:
                names = self._inside(member) if area == b"index" else self.names
                for place, blob in self._occurrences(oid, found):
                    inner = place[1:] if area == b"index" else place  # the stage
                    if not names or inner[: len(names)] != names:
                        spared.add(blob)
        return spared

    def _occurrences(self, tree: ObjectId, found: set[ObjectId]) -> frozenset[tuple[Names, ObjectId]]:
        """Where below a tree the blobs are named, by stored names; remembered, so that a tree is read once in all operations."""
        if tree not in self._elsewhere:
            places: set[tuple[Names, ObjectId]] = set()
            for names, (mode, oid) in self._items(tree):
                if mode == TREE:
                    places |= {(names + inner, blob) for inner, blob in self._occurrences(oid, found)}
                elif mode != GITLINK and oid in found:
                    places.add((names, oid))
            self._elsewhere[tree] = frozenset(places)
        return self._elsewhere[tree]

    def _items(self, tree: ObjectId) -> Iterator[tuple[Names, Entry]]:
        for name, entry in self.trees.entries(tree).items():
            yield (name,), entry


class _History:
    """The user's commits in the store, asked through git."""

    def __init__(self, git: Git, odb: ObjectStore) -> None:
        self.git, self.odb = git, odb
        self.unread = False

    def blobs_at(self, paths: list[bytes]) -> set[ObjectId]:
        """Blobs that the paths, and what lies below them, ever had in a commit."""
        found: set[ObjectId] = set()
        for path in paths:
            found |= {bytes.fromhex(oid) for _, oids in self._log(["--full-history"], path) for oid in oids}
        return found

    def named_elsewhere(self, found: set[ObjectId], paths: list[bytes]) -> set[ObjectId]:
        """Those of the blobs that a commit names at a path that is none of these nor below one."""
        if not found:
            return set()
        spared: set[ObjectId] = set()
        for place, oids in self._log([f"--find-object={oid.hex()}" for oid in sorted(found)], None):
            if not any(place == path or place.startswith(path + b"/") for path in paths):
                spared |= {bytes.fromhex(oid) for oid in oids} & found
        return spared

    def _log(self, args: list[str], path: bytes | None) -> Iterator[tuple[bytes, list[str]]]:
        heads = refs_below(self.odb.git_dir, ANCHOR).values()
        if not heads:
            return
        fed = b"".join(oid.hex().encode() + b"\n" for oid in heads)
        call: list[str | bytes] = [
            "log",
            "--stdin",
            "--format=",
            "--raw",
            "-z",
            "--no-renames",
            "--no-abbrev",
            "-m",
            "--root",
            *args,
        ]
        if path is not None:
            call += ["--", path]
        done = self.git.store(self.odb.git_dir, call, input=fed, check=False, deadline_s=_DEADLINE_S)
        self.unread |= done.returncode != 0
        fields = iter(done.stdout.lstrip(b"\n").split(b"\0"))
        for field_text in fields:
            words = field_text.strip().decode("ascii", "replace").split(" ")
            if len(words) == 5 and words[0].startswith(":"):
                sides = zip((words[0][1:], words[1]), words[2:4], strict=True)
                yield next(fields, b""), [oid for mode, oid in sides if oid != _NULL and mode not in ("160000", "040000")]


class _Rewriter:
    """Gives the operations that hold the target new snapshots, and all after them new parents."""

    def __init__(self, odb: ObjectStore, target: _Target) -> None:
        self.odb, self.target = odb, target
        self.renamed: dict[ObjectId, ObjectId] = {}
        self.changed = 0

    def rewrite_chain(self, chain: str, log: list[Operation]) -> None:
        """Moves the chain to its rewritten head, and the list of recent heads with it:

        Nothing may step back to a purged operation.
        """
        for operation in reversed(log):
            self._rewrite(operation)
        if log and log[0].oid in self.renamed:
            self.odb.move_ref(LOG + chain, log[0].oid, self.renamed[log[0].oid], durable=True)
            heads = self.odb.git_dir / "heads" / chain
            if heads.exists():
                kept = reversed([operation.oid for operation in log[:64]])
                write_whole(heads, b"".join(self.renamed.get(oid, oid).hex().encode() + b"\n" for oid in kept))

    def rewrite_pins(self, pinned: dict[str, Operation]) -> None:
        for name, operation in pinned.items():
            if operation.oid not in self.renamed:
                self._rewrite(operation)
            if operation.oid in self.renamed:
                self.odb.move_ref(name, operation.oid, self.renamed[operation.oid], durable=True)

    def rewrite_cuts(self) -> None:
        cuts = shallow.share(self.odb.git_dir, shallow.CUTS)
        if any(oid in self.renamed for oid in cuts):
            shallow.set_share(self.odb.git_dir, shallow.CUTS, {self.renamed.get(oid, oid) for oid in cuts})

    def _rewrite(self, operation: Operation) -> None:
        commit = self.odb.read_commit(operation.oid)
        parents = [self.renamed.get(parent, parent) for parent in commit.parents]
        tree, message = operation.tree, commit.message
        if self.target.is_in(tree):
            editor = Editor(self.odb, tree)
            editor.put(self.target.path, Unknown(REASON))
            tree = editor.finish()
            message = json.dumps({**json.loads(message), "purged": True}, separators=(",", ":")).encode("ascii") + b"\n"
            self.changed += 1
        elif tuple(parents) == commit.parents:
            return
        self.renamed[operation.oid] = self.odb.commit(tree, parents, message, operation.record.time_ms)
