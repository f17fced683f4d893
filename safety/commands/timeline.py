"""The log as people read it: turns, and between them what was no turn, newest first, found in one walk and only as far as is read."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from safety.store.attribution import ALL_PATHS, UNATTRIBUTED, Owned, operations_of_turn, undone_turns
from safety.store.history import Turn, turns
from safety.store.oplog import OpLog, Operation
from safety.store.restore import Piece
from safety.store.snapshot import changes
from safety.types import ObjectId


@dataclass(frozen=True)
class Single:
    """An operation that is told by itself: the user's, an undo, a snapshot by hand, a change that no call explains.

    ``undone``: an undo that was itself taken back. ``owners``: of a mixed checkpoint, who owns which path, once it is settled.
    """

    operation: Operation
    undone: bool = False
    owners: Mapping[bytes, str] | None = None

    @property
    def when_ms(self) -> int:
        return self.operation.record.time_ms


def timeline(log: OpLog) -> Iterator[Turn | Single]:
    """Turns by their end and single operations, newest first."""
    first, second = itertools.tee(log.walk())
    entries: list[Iterator[Turn | Single]] = [_turns(log, first), _singles(second)]
    return heapq.merge(*entries, key=lambda entry: -(entry.ended_ms if isinstance(entry, Turn) else entry.when_ms))


class _Walked(OpLog):
    """A log whose walk is under way already."""

    def __init__(self, log: OpLog, walk: Iterator[Operation]) -> None:
        super().__init__(log.odb, log.store_dir, log.chain, lambda: 0)
        self._walk = walk

    def walk(self, start: ObjectId | None = None) -> Iterator[Operation]:
        return self._walk


def _turns(log: OpLog, walk: Iterator[Operation]) -> Iterator[Turn]:
    yield from turns(_Walked(log, walk))


def _singles(walk: Iterator[Operation]) -> Iterator[Single]:
    owners: dict[str, Mapping[bytes, str]] = {}
    for operation, taken_back in undone_turns(walk):
        record = operation.record
        owners.update(record.owners)
        if record.kind in _OF_TURNS and record.actor != "mixed":
            continue
        if record.actor == "mixed" and UNATTRIBUTED not in owners.get(record.id, {ALL_PATHS: UNATTRIBUTED}).values():
            continue
        yield Single(operation, record.id in taken_back, owners.get(record.id))


_OF_TURNS = ("turn", "call")


def own_pieces(log: OpLog, turn: int, call: int | None = None, *, unattributed: bool = False) -> list[Piece]:
    """What a turn (or one call of it) did, oldest first."""
    owned = list(operations_of_turn(log.walk(), turn, call, unattributed=unattributed))
    return _pieces(log, owned, turn, call, unattributed)


def single_piece(log: OpLog, single: Single, areas: tuple[str, ...] = ("work", "private", "git")) -> Piece:
    """What a single operation did: of a mixed checkpoint only what belongs to nobody."""
    operation = single.operation
    before = log.tree_before(operation)
    paths = changes(log.odb, before, operation.tree, areas)
    if operation.record.actor == "mixed":
        owners = single.owners or {ALL_PATHS: UNATTRIBUTED}
        paths = [path for path in paths if owners.get(path, owners[ALL_PATHS]) == UNATTRIBUTED]
    return Piece(operation.id, before, operation.tree, tuple(paths))
