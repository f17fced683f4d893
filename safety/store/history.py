"""Reading the log as people speak of it: turns, what they changed, handles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from safety.faults import quoted
from safety.store.attribution import AGENT_ACTORS, Owned, group_of_mixed, operations_of_turn, settle_owners, undone_turns
from safety.store.oplog import Operation, OpLog, UnknownHandle
from safety.store.pins import pins
from safety.store.restore import Piece
from safety.store.snapshot import Snapshot, changes
from safety.types import Absent, ObjectId, Unknown

GIT_STATE = b".git"  # stands for what git recorded beside the files it can be told by (an index entry, say)


@dataclass
class Turn:
    """One turn as the log tells it. ``operations`` newest first, each with what of it is the turn's own."""

    number: int
    session: str = ""
    agent: str = ""
    prompt: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    calls: int = 0
    closed: bool = False
    undone: bool = False
    tools: set[str] = field(default_factory=set)
    operations: list[Owned] = field(default_factory=list)

    @property
    def handle(self) -> str:
        return f"t{self.number}"


def turns(log: OpLog, *, unattributed: bool = False, start: ObjectId | None = None) -> Iterator[Turn]:
    """Turns newest first, each once no older operation can belong to it.

    With ``unattributed`` its ``operations`` also hold what changed in the turn without a call's end to explain it; ``pieces`` tells
    the two apart.
    """
    waiting: dict[int, Turn] = {}
    owners: dict[str, Mapping[bytes, str]] = dict(provisional_owners(log))
    for operation, taken_back in undone_turns(log.walk(start)):
        record = operation.record
        owners.update(record.owners)
        for number in sorted((n for n in waiting if n > record.last_turn), reverse=True):
            yield waiting.pop(number)
        if record.turn:
            turn = waiting.setdefault(record.turn, Turn(record.turn))
            _note(turn, operation, taken_back)
        if record.actor == "mixed":
            for turn in waiting.values():
                turn.operations.append(Owned(operation, owners.get(record.id)))
        elif (
            record.turn
            and record.kind != "turn"
            and (record.actor in AGENT_ACTORS or (unattributed and record.actor == "unattributed"))
        ):
            waiting[record.turn].operations.append(Owned(operation))
    for number in sorted(waiting, reverse=True):
        yield waiting[number]


def _note(turn: Turn, operation: Operation, taken_back: frozenset[str]) -> None:
    record = operation.record
    turn.started_ms = min(turn.started_ms or record.time_ms, record.time_ms - record.duration_ms)  # its own record tells of the opening
    turn.undone = turn.undone or any(text == turn.handle or text.startswith(turn.handle + ".") for text in taken_back)
    turn.ended_ms = max(turn.ended_ms, record.time_ms)
    if record.kind in ("turn", "call"):
        turn.session = record.session or turn.session
        turn.agent = record.agent.get("name", "") or turn.agent
        turn.prompt = record.prompt or turn.prompt
    if record.kind == "turn":
        turn.calls, turn.closed = record.calls, True
    elif record.kind == "call":
        turn.calls = max(turn.calls, record.call)
        turn.tools.add(record.tool)


def pieces(log: OpLog, owned: list[Owned], turn: int, call: int | None, *, unattributed: bool = False) -> list[Piece]:
    """The pieces of a turn (or call), oldest first."""
    found = []
    for item in reversed(owned):
        operation = item.operation
        if operation.record.actor == "unattributed" and not unattributed:
            continue
        before = log.tree_before(operation)
        paths = tuple(
            path for path in changes(log.odb, before, operation.tree) if item.owns(path, turn, call, unattributed=unattributed)
        )
        if paths or (operation.record.git_changed and item.owns(GIT_STATE, turn, call, unattributed=unattributed)):
            found.append(Piece(operation.id, before, operation.tree, paths, turn))
    return found


def owned_by(log: OpLog, turn: int, call: int | None = None, *, unattributed: bool = False) -> list[Owned]:
    return list(operations_of_turn(log.walk(), turn, call, unattributed=unattributed, provisional=provisional_owners(log)))


def provisional_owners(log: OpLog) -> Mapping[str, Mapping[bytes, str]]:
    """Owners of the mixed checkpoints that no record settles yet (a call is still open, or its agent died)."""
    group = group_of_mixed(log.walk())
    if not group:
        return {}
    return settle_owners(
        [(item.record, changes(log.odb, log.tree_before(item), item.tree)) for item in reversed(group)], final=False
    )


def shared_paths(log: OpLog, owned: Iterable[Owned], turn: int) -> dict[bytes, frozenset[int]]:
    """Paths that a call of the turn may have changed, or a call of another one that ran beside it; each with all these turns."""
    found: dict[bytes, frozenset[int]] = {}
    for item in owned:
        if item.operation.record.actor == "mixed":
            for path in changes(log.odb, log.tree_before(item.operation), item.operation.tree):
                turns = item.sharers(path)
                if turn in turns:
                    found[path] = found.get(path, frozenset()) | turns
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class TurnCounts:
    """How many files a turn changed and removed, and the paths that undo cannot set back: no snapshot holds one of their states.

    ``undoable``: there is something that undo can set back. A path that went is counted as removed whether or not it can come back.
    """

    handle: str
    changed: int
    removed: int
    uncovered: tuple[bytes, ...]
    undoable: bool


def counts_of_turn(log: OpLog, turn: int) -> TurnCounts | None:
    """What a turn came to; None when it changed nothing of its own."""
    owned = owned_by(log, turn)
    changed: set[bytes] = set()
    removed: set[bytes] = set()
    uncovered: set[bytes] = set()
    git = False
    for item in reversed(owned):
        operation = item.operation
        before, after = Snapshot(log.odb, log.tree_before(operation)), Snapshot(log.odb, operation.tree)
        git = git or operation.record.git_changed
        for path in changes(log.odb, before.tree, operation.tree, ("work", "private")):
            if not item.owns(path, turn, None, unattributed=False):
                continue
            new = after.state(path)
            if isinstance(new, Unknown) or isinstance(before.state(path), Unknown):
                uncovered.add(path)
            if isinstance(new, Absent):
                removed.add(path)
            elif not isinstance(new, Unknown):
                changed.add(path)
                removed.discard(path)
    changed -= removed
    if not changed and not removed and not uncovered and not git:
        return None
    undoable = git or bool((changed | removed) - uncovered)
    return TurnCounts(f"t{turn}", len(changed), len(removed), tuple(sorted(uncovered)), undoable)


def parse_handle(text: str) -> tuple[int, int | None] | None:
    """``t14`` or ``t14.2`` as numbers, None for any other form."""
    number, dot, call = text.removeprefix("t").partition(".")
    if text.startswith("t") and number.isdigit() and (call.isdigit() or not dot):
        return int(number), int(call) if dot else None
    return None


def find_operation(log: OpLog, handle: str) -> Operation:
    """The operation a handle names: ``@`` the newest, ``@-`` before it, a pin, or a unique prefix of an id. Raises UnknownHandle."""
    if handle.startswith("@") and not handle[1:].strip("-"):
        for number, operation in enumerate(log.walk()):
            if number == len(handle) - 1:
                return operation
        raise UnknownHandle(f"the log does not reach back to {handle}", "git safety log")
    pinned = pins(log).get(handle)
    if pinned is not None:
        return log.read(pinned)
    found = []
    for operation in log.walk():
        if operation.id == handle:
            return operation
        if operation.id.startswith(handle) and len(handle) >= 2:
            found.append(operation)
    if len(found) == 1:
        return found[0]
    what = f"{quoted(handle)} names {len(found)} operations; give more letters" if found else f"nothing is called {quoted(handle)}"
    raise UnknownHandle(what, "git safety log")
