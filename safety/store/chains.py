"""The chains of a store as a whole: which there are, and what their operations and snapshots hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore
from safety.store.oplog import Operation, OpLog
from safety.store.storerefs import LOG, refs_below
from safety.store.trees import GITLINK, TREE, parse_tree
from safety.types import ObjectId


def chains(git_dir: Path) -> dict[str, ObjectId]:
    """Every chain of the store and its head."""
    return {name.removeprefix(LOG): oid for name, oid in refs_below(git_dir, LOG).items()}


def read_chain(odb: ObjectStore, chain: str) -> Iterator[Operation]:
    """The chain's operations, newest first. Raises ObjectMissing, ObjectCorrupt at one that cannot be read (see ``fsck``)."""
    return OpLog(odb, odb.git_dir, chain, lambda: 0).walk()


def operation_at(odb: ObjectStore, oid: ObjectId) -> Operation:
    """One operation by its commit. Raises ObjectMissing, ObjectCorrupt."""
    return OpLog(odb, odb.git_dir, "", lambda: 0).read(oid)


def tree_items(odb: ObjectStore, tree: ObjectId) -> list[tuple[int, bytes, ObjectId]]:
    try:
        return parse_tree(odb.tree(tree))
    except (ObjectMissing, ObjectCorrupt):
        return []


class Attribution:
    """Gives each object of the snapshots to the first one that is asked about and holds it."""

    def __init__(self, odb: ObjectStore) -> None:
        self.odb = odb
        self.seen: set[ObjectId] = set()

    def take(self, snapshot: ObjectId, without: bytes = b"") -> list[ObjectId]:
        """The objects of a snapshot, itself included, that none before it had; one area can be left out."""
        found = [snapshot]
        stack = [(mode, oid) for mode, name, oid in tree_items(self.odb, snapshot) if name != without]
        while stack:
            mode, oid = stack.pop()
            if oid in self.seen or mode == GITLINK:
                continue
            self.seen.add(oid)
            found.append(oid)
            if mode == TREE:
                stack += [(below_mode, below) for below_mode, _, below in tree_items(self.odb, oid)]
        return found
