"""The log as people read it: turns, and between them what was no turn, newest first, read only as far as somebody asks."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from safety.store.attribution import AGENT_ACTORS, ALL_PATHS, UNATTRIBUTED, Owned, operations_of_turn, turns_sharing, undone_turns
from safety.store.history import GIT_STATE, Turn, provisional_owners, turns
from safety.store.oplog import Operation, OpLog
from safety.store.restore import Piece
from safety.store.snapshot import AREAS, changes
from safety.types import ObjectId


@dataclass(frozen=True)
class Single:
    """An operation that is told by itself: the user's, an undo, a snapshot by hand, a change that no call explains.

    ``undone``: an undo that was taken back. ``owners``: of a mixed checkpoint, who owns which path; ``settled`` once no call that
    may explain it is open any more.
    """

    operation: Operation
    undone: bool = False
    owners: Mapping[bytes, str] | None = None
    settled: bool = True

    @property
    def when_ms(self) -> int:
        return self.operation.record.time_ms

    @property
    def sharers(self) -> frozenset[int]:
        """The turns that ran at once, where what is nobody's here may all be of any of them; else empty."""
        nobodys = [turns_sharing(owner) for owner in (self.owners or {}).values() if _is_nobodys(owner)]
        return frozenset().union(*nobodys) if all(nobodys) else frozenset()


class Timeline:
    """One log, each operation read once however often it is gone through."""

    def __init__(self, log: OpLog) -> None:
        self.log = log
        self._unread = log.walk()
        self._read: list[Operation] = []

    def walk(self) -> Iterator[Operation]:
        """The operations, newest first."""
        at = 0
        while True:
            if at == len(self._read):
                operation = next(self._unread, None)
                if operation is None:
                    return
                self._read.append(operation)
            yield self._read[at]
            at += 1

    def entries(self) -> Iterator[Turn | Single]:
        """Turns, placed at their end, and single operations, newest first."""
        both: list[Iterator[Turn | Single]] = [self.turns(), self._singles()]
        return heapq.merge(*both, key=lambda entry: -(entry.ended_ms if isinstance(entry, Turn) else entry.when_ms))

    def turns(self) -> Iterator[Turn]:
        yield from turns(_Walked(self))

    def _singles(self) -> Iterator[Single]:
        owners: dict[str, Mapping[bytes, str]] = {}
        for operation, taken_back in undone_turns(self.walk()):
            record = operation.record
            owners.update(record.owners)
            if record.actor == "mixed":
                settled = record.id in owners
                mixed = owners.get(record.id) or self._provisional.get(record.id) or NOBODYS
                if any(_is_nobodys(owner) for owner in mixed.values()):
                    yield Single(operation, False, mixed, settled)
            elif record.kind != "turn" and not (record.kind == "call" and record.actor in AGENT_ACTORS):
                yield Single(operation, record.id in taken_back)

    @cached_property
    def _provisional(self) -> Mapping[str, Mapping[bytes, str]]:
        return provisional_owners(_Walked(self))

    def owned(self, turn: int, call: int | None = None, *, unattributed: bool = False) -> list[Owned]:
        """The operations that hold changes of a turn or call, oldest first."""
        found = operations_of_turn(self.walk(), turn, call, unattributed=unattributed, provisional=self._provisional)
        return list(found)[::-1]

    def owned_pieces(
        self, turn: int, call: int | None = None, *, unattributed: bool = False, areas: Sequence[str] = AREAS
    ) -> Iterator[tuple[Owned, Piece]]:
        """What a turn or call changed, oldest first; where it changed git's state only, the piece has no paths."""
        for item in self.owned(turn, call, unattributed=unattributed):
            operation = item.operation
            before = self.log.tree_before(operation)
            paths = changes(self.log.odb, before, operation.tree, areas)
            own = tuple(path for path in paths if item.owns(path, turn, call, unattributed=unattributed))
            if own or (operation.record.git_changed and item.owns(GIT_STATE, turn, call, unattributed=unattributed)):
                yield item, Piece(operation.id, before, operation.tree, own)

    def pieces(self, turn: int, call: int | None = None, *, areas: Sequence[str] = AREAS) -> list[Piece]:
        return [piece for _, piece in self.owned_pieces(turn, call, areas=areas)]

    def piece_of(self, single: Single, areas: Sequence[str] = AREAS) -> Piece:
        """What a single operation changed; of a mixed checkpoint only what is nobody's."""
        operation = single.operation
        before = self.log.tree_before(operation)
        paths = changes(self.log.odb, before, operation.tree, areas)
        if operation.record.actor == "mixed":
            owners = single.owners or NOBODYS
            paths = [path for path in paths if _is_nobodys(owners.get(path, owners[ALL_PATHS]))]
        return Piece(operation.id, before, operation.tree, tuple(paths))


NOBODYS = {ALL_PATHS: UNATTRIBUTED}


def _is_nobodys(owner: str) -> bool:
    """Whether no single turn explains a change."""
    return owner == UNATTRIBUTED or bool(turns_sharing(owner))


class _Walked(OpLog):
    """A log whose operations a timeline hands out."""

    def __init__(self, timeline: Timeline) -> None:
        log = timeline.log
        super().__init__(log.odb, log.store_dir, log.chain, lambda: 0)
        self._timeline = timeline

    def walk(self, start: ObjectId | None = None) -> Iterator[Operation]:
        return self._timeline.walk()
