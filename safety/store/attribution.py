"""Whose change is it: the design's section 5.4 as pure functions over op log records.

A call's own POST ends what is the agent's. While calls overlap, captures are ``mixed`` checkpoints that name the calls open at the time;
once no call is open any more they are settled (``settle_owners``) and the answer stands in the settling record's ``owners``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from safety.store.oplog import Operation, Record

ALL_PATHS = b"*"
UNATTRIBUTED = "unattributed"
CAPTURES = ("first", "checkpoint", "call", "snapshot")  # kinds that record what was found; undo and the like may lie between
AGENT_ACTORS = ("agent", "gate", "commit")


@dataclass(frozen=True)
class OpenCall:
    """A tool call between its PRE and its POST. ``deferred``: an outer ``run`` below which a turn is open, which has taken over."""

    session: str
    turn: int
    call: int
    call_id: str
    declared: tuple[bytes, ...] | None
    deferred: bool = False

    @property
    def key(self) -> str:
        return call_key(self.session, self.turn, self.call)


def call_key(session: str, turn: int, call: int) -> str:
    return f"{session}/{turn}/{call}"


def turn_of(key: str) -> int:
    return int(key.split("/")[-2])


def actor_between_calls(open_calls: Sequence[OpenCall], any_turn_open: bool) -> str:
    """The actor of a change that no POST of a call explains."""
    if any(not call.deferred for call in open_calls):
        return "mixed"
    return UNATTRIBUTED if any_turn_open else "user"


def group_of_mixed(operations: Iterable[Operation]) -> list[Operation]:
    """The unsettled mixed checkpoints at the head of a log, and calls that ended while another was open, newest first; empty without any
    checkpoint. A record made while no call was open ends them.
    """
    group = []
    for operation in operations:
        record = operation.record
        if record.kind not in CAPTURES:
            continue
        if record.owners or (record.actor != "mixed" and not record.open_calls):
            break
        if record.actor == "mixed" or record.kind == "call":
            group.append(operation)
    return group if any(operation.record.actor == "mixed" for operation in group) else []


def settle_owners(group: Sequence[tuple[Record, Sequence[bytes]]], *, final: bool = True) -> dict[str, dict[bytes, str]]:
    """Who owns each path of the mixed checkpoints in ``group`` (record, changed paths), in the form of ``Record.owners``.

    A call counts only if its own POST is in the group. A path goes to its only declarer, else to the only open call that declared
    nothing, else it is shared between those; with no call left it is unattributed. While a call may still end (``final`` False) it
    counts as one that may have changed anything, and what only it can explain is unattributed for now.
    """
    posted = {
        call_key(record.session, record.turn, record.call): record.declared
        for record, _ in group
        if record.kind == "call" and record.status != "late"
    }
    owners: dict[str, dict[bytes, str]] = {}
    for record, paths in group:
        if record.actor != "mixed":
            continue
        open_keys = [key for key in record.open_calls if key in posted or not final]
        owners[record.id] = _fold({path: _owner(path, open_keys, posted) for path in paths})
    return owners


def _owner(path: bytes, open_keys: Sequence[str], posted: Mapping[str, tuple[bytes, ...] | None]) -> str:
    declarers = [key for key in open_keys if path in (posted.get(key) or ())]
    if len(declarers) == 1:
        return declarers[0]
    candidates = declarers or [key for key in open_keys if posted.get(key) is None]
    if not candidates or not any(key in posted for key in candidates):
        return UNATTRIBUTED
    return candidates[0] if len(candidates) == 1 else "shared:" + ",".join(candidates)


def _fold(owners: dict[bytes, str]) -> dict[bytes, str]:
    """The commonest owner once under ``ALL_PATHS``, the exceptions by path."""
    if not owners:
        return {ALL_PATHS: UNATTRIBUTED}
    counts: dict[str, int] = {}
    for owner in owners.values():
        counts[owner] = counts.get(owner, 0) + 1
    common = max(sorted(counts), key=lambda owner: counts[owner])
    return {ALL_PATHS: common, **{path: owner for path, owner in owners.items() if owner != common}}


def turns_sharing(owner: str) -> frozenset[int]:
    """The turns between which an owner in ``Record.owners`` is not decided; empty where it is one turn's, or nobody's."""
    if not owner.startswith("shared:"):
        return frozenset()
    turns = frozenset(map(turn_of, owner.removeprefix("shared:").split(",")))
    return turns if len(turns) > 1 else frozenset()


@dataclass(frozen=True)
class Owned:
    """An operation and which of its changed paths are meant: all but ``other_than``, or only ``only``."""

    operation: Operation
    owners: Mapping[bytes, str] | None = None

    def owns(self, path: bytes, turn: int, call: int | None, *, unattributed: bool) -> bool:
        """Whether the path's change in this operation belongs to the turn (or to the one call of it)."""
        record = self.operation.record
        if record.actor != "mixed":
            return True
        owners = self.owners or {ALL_PATHS: UNATTRIBUTED}
        owner = owners.get(path, owners[ALL_PATHS])
        if owner == UNATTRIBUTED:
            return unattributed and record.turn == turn
        keys = owner.removeprefix("shared:").split(",")
        if any(turn_of(key) != turn for key in keys):
            return unattributed and any(turn_of(key) == turn for key in keys)
        return call is None or (len(keys) == 1 and keys[0].endswith(f"/{call}"))

    def sharers(self, path: bytes) -> frozenset[int]:
        """The turns of which any may have changed the path, as they ran at once; empty where no two did."""
        if self.operation.record.actor != "mixed" or not self.owners:
            return frozenset()
        return turns_sharing(self.owners.get(path, self.owners[ALL_PATHS]))


def operations_of_turn(
    walk: Iterable[Operation], turn: int, call: int | None, *, unattributed: bool, provisional: Mapping[str, Mapping[bytes, str]]
) -> Iterator[Owned]:
    """The operations that hold changes of a turn (or call), newest first; stops where the turn cannot reach any more.

    ``provisional`` are owners of mixed checkpoints at the head that no record settles yet.
    """
    owners: dict[str, Mapping[bytes, str]] = dict(provisional)
    for operation in walk:
        record = operation.record
        owners.update(record.owners)
        if record.last_turn < turn:
            return
        if record.kind == "turn":
            continue
        if record.actor == "mixed":
            yield Owned(operation, owners.get(record.id))
        elif record.turn != turn:
            continue
        elif record.actor in AGENT_ACTORS:
            if call is None or record.call == call:
                yield Owned(operation)
        elif record.actor == UNATTRIBUTED and unattributed and call is None:
            yield Owned(operation)


def undone_turns(walk: Iterable[Operation]) -> Iterator[tuple[Operation, frozenset[str]]]:
    """Each operation newest first with the ids of operations that an undo above it (not itself taken back) took back."""
    taken_back: set[str] = set()
    for operation in walk:
        record = operation.record
        if record.kind in ("undo", "redo") and record.id not in taken_back:
            taken_back.update(record.undoes)
        yield operation, frozenset(taken_back)
