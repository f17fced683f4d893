"""What a handle names: a turn, one call of it, or a single operation, with what it changed and the snapshots around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile

from safety.commands.redact import redacted
from safety.commands.report import Hint, TextReport, TurnTitle
from safety.commands.timeline import Single, Timeline
from safety.commands.titles import both_ran, title_of
from safety.session import Session
from safety.store.history import Turn, find_operation, parse_handle
from safety.store.oplog import Operation, OpLog, UnknownHandle
from safety.store.pins import pins
from safety.store.restore import Piece
from safety.store.turns import SessionState
from safety.types import ObjectId


@dataclass
class Book:
    """One workspace's log, opened to read at ``now_ms``: the log, the workspace's root, and where its conversations stand."""

    log: OpLog
    root: bytes
    states: Sequence[SessionState] = ()
    now_ms: int = 0
    timeline: Timeline = field(init=False)

    def __post_init__(self) -> None:
        self.timeline = Timeline(self.log)

    @cached_property
    def pins(self) -> dict[ObjectId, str]:
        return {oid: name for name, oid in pins(self.log).items()}

    @cached_property
    def running(self) -> dict[int, SessionState]:
        """Open turns by number; not those of an agent that died, which the next capture closes."""
        return {state.turn: state for state in self.states if state.is_open and state.turn and state.is_alive(self.now_ms)}


def open_book(session: Session) -> Book:
    return Book(session.log, session.root, session.sessions.all(), session.now_ms())


@dataclass(frozen=True)
class Selection:
    """What was named. ``parts``: what it changed, oldest first. ``before`` and ``after``: the workspace around it.

    ``turn`` is set for turns and calls, ``single`` for all else. ``operations`` are its records, oldest first.
    """

    handle: str
    title: TurnTitle
    parts: tuple[Piece, ...]
    before: ObjectId | None
    after: ObjectId | None
    operations: tuple[Operation, ...] = ()
    turn: Turn | None = None
    call: int | None = None
    single: Single | None = None
    state: str = ""

    @property
    def declared(self) -> dict[str, tuple[bytes, ...]]:
        """Operation id -> the paths that its call named."""
        return {operation.id: operation.record.declared or () for operation in self.operations}


def select(book: Book, handle: str) -> Selection:
    """What ``handle`` names; empty and ``@`` are the newest turn, ``@-`` the one before. Raises UnknownHandle."""
    if not handle.strip("@-") and (not handle or handle[0] == "@"):
        return _turn(book, _nth_turn(book, max(0, len(handle) - 1)), None)
    numbers = parse_handle(handle)
    if numbers is None:
        operation = find_operation(book.log, handle)
        record = operation.record
        if record.kind not in ("turn", "call") or not record.turn:
            return select_operation(book, operation)
        numbers = (record.turn, record.call or None)
    return _turn(book, _turn_called(book, numbers[0]), numbers[1])


def select_operation(book: Book, operation: Operation) -> Selection:
    """A single operation as a selection."""
    single = next(
        (entry for entry in book.timeline.entries() if isinstance(entry, Single) and entry.operation.oid == operation.oid), None
    )
    single = single or Single(operation)  # pinned, and older than what the log keeps
    title = TurnTitle(operation.id, who(single), operation.record.time_ms, prompt=redacted(what(book, single)), command=True)
    return Selection(
        operation.id,
        title,
        (book.timeline.piece_of(single),),
        book.log.tree_before(operation),
        operation.tree,
        (operation,),
        single=single,
        state="undone" if single.undone else "",
    )


def nothing_yet(book: Book) -> TextReport | None:
    """What to answer where no agent has worked yet."""
    if book.running or next(book.timeline.turns(), None) is not None:
        return None
    return TextReport(
        root=book.root,
        lines=("No agent has worked here yet.",),
        hints=(Hint("Protect a command", "git safety run -- COMMAND"),),
        exit_code=4,
    )


def _nth_turn(book: Book, number: int) -> Turn:
    waiting = [running_turn(state) for state in book.running.values()]
    logged: set[int] = set()
    found: list[Turn] = []
    for turn in book.timeline.turns():
        logged.add(turn.number)
        found.append(turn)
        if len(found) > number + len(waiting):
            break
    found = sorted([*found, *(turn for turn in waiting if turn.number not in logged)], key=lambda turn: -turn.number)
    if len(found) <= number:
        raise UnknownHandle(
            "no agent has worked here yet" if not found else f"there are only {len(found)} turns", "git safety log"
        )
    return found[number]


def _turn_called(book: Book, number: int) -> Turn:
    for turn in book.timeline.turns():
        if turn.number == number:
            return turn
        if turn.number < number and number not in book.running:
            break
    if number in book.running:
        return running_turn(book.running[number])
    raise UnknownHandle(f"there is no turn t{number} in this workspace", "git safety log")


def running_turn(state: SessionState) -> Turn:
    """A turn that is open and has changed nothing yet."""
    return Turn(
        state.turn,
        state.session,
        state.agent.get("name", ""),
        state.prompt,
        state.started_ms,
        state.heard_ms or state.started_ms,
        state.calls,
    )


def completed(book: Book, turn: Turn) -> Turn:
    """The turn with what only its conversation knows while it runs."""
    state = book.running.get(turn.number)
    if state is None:
        return turn
    return replace(
        turn,
        session=turn.session or state.session,
        agent=turn.agent or state.agent.get("name", ""),
        prompt=turn.prompt or state.prompt,
        started_ms=state.started_ms or turn.started_ms,
        calls=max(turn.calls, state.calls),
    )


def _turn(book: Book, turn: Turn, call: int | None) -> Selection:
    turn = completed(book, turn)
    reaching = takewhile(lambda operation: operation.record.last_turn >= turn.number, book.timeline.walk())
    operations = tuple(reversed([operation for operation in reaching if operation.record.turn == turn.number]))
    named = tuple(operation for operation in operations if operation.record.call == call) if call else operations
    parts = tuple(book.timeline.pieces(turn.number, call))
    if call and not named and not (0 < call <= turn.calls):
        raise UnknownHandle(f"{turn.handle} has no call {call}", f"git safety show {turn.handle}")
    head = book.log.head()
    tree = None if head is None else head.tree
    before, after = (book.log.tree_before(named[0]), named[-1].tree) if named else (tree, tree)
    if call and not named:  # it changed nothing: the state is that of the call before it
        earlier = [operation for operation in operations if 0 < operation.record.call < call]
        before = after = earlier[-1].tree if earlier else book.log.tree_before(operations[0]) if operations else tree
    title = title_of(turn, call)
    ran = {operation.id for operation in named}
    others = tuple(item.operation for item in book.timeline.owned(turn.number, call) if item.operation.id not in ran)
    state = "running" if turn.number in book.running else "undone" if turn.undone else ""
    return Selection(
        title.handle,
        replace(title, prompt=redacted(title.prompt)),
        parts,
        before,
        after,
        (*others, *named),
        turn,
        call,
        state=state,
    )


# -- words for single operations -------------------------------------------------------------------------------------------------


def who(single: Single) -> str:
    """Whose doing a single operation is, as people say it."""
    record = single.operation.record
    if record.actor == "mixed":
        return ("shared" if single.sharers else "unattributed") if single.settled else "running calls"
    return {"user": "you", "undo": "you", "restore": "you", "gate": "a check", "commit": "autocommit"}.get(
        record.actor, record.actor
    )


def what(book: Book, single: Single) -> str:
    """What a single operation was, in a few words; empty for plain changes."""
    record = single.operation.record
    if record.kind == "snapshot":
        return f"snapshot {record.summary}".rstrip()
    if record.kind == "first":
        return "first contact"
    if record.kind in ("undo", "redo"):
        undone = record.undoes
        if record.kind == "redo":
            undone = next((operation.record.undoes for operation in book.timeline.walk() if operation.id in record.undoes), ())
        turns = [name for name in undone if name[:1] == "t" and name[1:].isdigit()]
        if not turns and record.summary:
            return f"undo of a part of {record.summary}" if record.kind == "undo" else f"took back {record.summary}"
        return " ".join([record.kind, *turns])
    if record.kind == "restore":
        return "restore"
    if record.kind in ("commit", "gate"):
        done = "committed" if record.kind == "commit" else "mended by"
        return f"{done} {record.summary}, for t{record.turn}".replace(" ,", ",")
    if single.sharers:
        return f"while {both_ran(single.sharers)}"
    return f"during t{record.turn}" if record.turn else ""
