"""``log``: what agents and the user did, newest first. Reads the log only; takes no snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from safety.commands.args import LogArgs
from safety.commands.calls import call_rows
from safety.commands.carry import relative
from safety.commands.changes import (
    Change,
    Contents,
    change_line,
    count_lines,
    is_below,
    net_changes,
    uncovered_lines,
    with_renames,
)
from safety.commands.gitnotes import commit_made, git_word
from safety.commands.patches import patches
from safety.commands.redact import redacted
from safety.commands.report import LogReport, LogRow, Report
from safety.commands.selection import Book, Selection, completed, open_book, running_turn, select, what, who
from safety.commands.timeline import Single
from safety.commands.titles import agent_name, title_of
from safety.faults import SafetyError
from safety.plumbing.odb import ObjectStore
from safety.session import Session, state_folder
from safety.store import registry
from safety.store.history import Turn, shared_paths
from safety.store.oplog import Operation, OpLog
from safety.store.restore import Piece
from safety.store.snapshot import AREAS
from safety.store.turns import Sessions
from safety.types import STIRRED, Unknown

SHOWN = 50
# How many older rows are counted for "... and N older"; beyond it, N is at least that.
MOST_COUNTED = 5000
# Counting lines reads both versions of a file. A log counts no more than nobody has to wait for.
LARGEST_COUNTED, BYTES_COUNTED = 512 << 10, 16 << 20
FILES = ("work", "private")


def run(session: Session, args: LogArgs) -> Report:
    """Gives a LogReport. Without ``-n`` and without a filter it ends after ``SHOWN`` rows. Raises UnknownHandle."""
    only = tuple(relative(session, path) for path in args.paths)
    if args.handle:
        book = open_book(session)
        maker = _Rows(book, args, only)
        return LogReport(root=session.root, rows=(maker.selected(select(book, args.handle)),))
    if args.all_workspaces:
        return _everywhere(session, args)
    rows, more = _rows(open_book(session), args, only)
    note = "Nothing matches." if not rows and session.log.head_id() is not None and _is_filtered(args) else ""
    return LogReport(root=session.root, rows=rows, more=more, note=note)


def _everywhere(session: Session, args: LogArgs) -> Report:
    """Every workspace, the one with the newest row first."""
    groups: list[tuple[LogRow, ...]] = []
    notices: list[str] = []
    more = 0
    for entry in registry.everything(session.place.home):
        store = session.place.home / "stores" / f"{entry.store}.git"
        if not (store / "HEAD").exists():
            continue
        log = OpLog(ObjectStore(store), store, entry.chain, session.now_ms)
        states = Sessions(state_folder(session.place.home, entry) / "sessions").all()
        try:
            rows, left = _rows(Book(log, entry.root, states, session.now_ms()), args, ())
        except SafetyError as fault:
            notices.append(f"the log of {entry.root.decode('utf-8', 'replace')} cannot be read: {fault.message}")
            continue
        more += left
        if rows:
            groups.append(tuple(replace(row, workspace=entry.root) for row in rows))
    groups.sort(key=lambda rows: -rows[0].when_ms)
    return LogReport(root=session.root, rows=tuple(row for rows in groups for row in rows), more=more, notices=tuple(notices))


def _is_filtered(args: LogArgs) -> bool:
    return bool(args.paths or args.agent or args.mine or args.not_covered or args.since_ms is not None)


def _rows(book: Book, args: LogArgs, only: tuple[bytes, ...]) -> tuple[tuple[LogRow, ...], int]:
    """The rows of one workspace, and how many older ones a limit of ours left out."""
    limit = args.limit if args.limit is not None else None if _is_filtered(args) else SHOWN
    maker = _Rows(book, args, only)
    entries = _entries(book)
    found: list[LogRow] = []
    for entry in entries:
        if limit is not None and len(found) >= limit:
            left = 1 + sum(1 for _, other in zip(range(MOST_COUNTED), entries, strict=False) if _is_likely_row(other))
            return _marked(found), 0 if args.limit is not None else left
        if args.since_ms is not None and _when(entry) < args.since_ms:
            break
        row = maker.row(entry)
        if row is not None:
            found.append(row)
    return _marked(found), 0


def _entries(book: Book) -> Iterator[Turn | Single]:
    """The timeline, with turns that run and have changed nothing yet at its head."""
    for number in sorted(book.running, reverse=True):
        reaching = takewhile(lambda operation, number=number: operation.record.last_turn >= number, book.timeline.walk())  # type: ignore[misc]
        if not any(operation.record.turn == number for operation in reaching):
            yield running_turn(book.running[number])
    yield from book.timeline.entries()


def _when(entry: Turn | Single) -> int:
    return entry.ended_ms if isinstance(entry, Turn) else entry.when_ms


def _is_likely_row(entry: Turn | Single) -> bool:
    """Good enough to say how much more there is; whether it changed files is not looked up."""
    return isinstance(entry, Turn) or entry.operation.record.kind != "first"


def _marked(rows: list[LogRow]) -> tuple[LogRow, ...]:
    """The rows with the newest turn marked as the current one."""
    newest = next((at for at, row in enumerate(rows) if row.actor == "agent"), None)
    return tuple(replace(row, current=at == newest) for at, row in enumerate(rows))


@dataclass
class _Rows:
    """Makes rows of one workspace's log."""

    book: Book
    args: LogArgs
    only: tuple[bytes, ...]
    budget: int = BYTES_COUNTED

    def selected(self, chosen: Selection) -> LogRow:
        """The row of what a handle names, with its calls, whatever the filters say."""
        turn = chosen.turn
        if turn is None:
            assert chosen.single is not None
            row = self._single_row(chosen.single, chosen.parts[0])
        elif chosen.call:
            title = title_of(turn, chosen.call)
            row = replace(self._turn_row(turn, list(chosen.parts)), handle=title.handle, calls=0)
        else:
            row = self._turn_row(turn, list(chosen.parts))
        rows = call_rows(self.book, turn, self.only, call=chosen.call) if turn is not None else ()
        return replace(row, calls_detail=rows)

    def row(self, entry: Turn | Single) -> LogRow | None:
        """The row of an entry, None if it has none or the filters leave it out."""
        if isinstance(entry, Turn):
            turn = completed(self.book, entry)
            if self.args.mine or self.args.agent.casefold() not in agent_name(turn).casefold():
                return None
            row = self._turn_row(turn, self.book.timeline.pieces(turn.number, areas=self._areas))
            if self.args.verbose:
                row = replace(row, calls_detail=call_rows(self.book, turn, self.only))
        else:
            if self.args.agent or not self._is_worth_a_line(entry):
                return None
            row = self._single_row(entry, self.book.timeline.piece_of(entry, self._areas))
            if not row.files and entry.operation.record.kind in ("checkpoint", "call"):
                return None
        if self.only and not row.files and not row.shared:
            return None
        return None if self.args.not_covered and not row.uncovered else row

    @property
    def _areas(self) -> tuple[str, ...]:
        """A log without details counts the files of the workspace only."""
        return AREAS if self.args.stat or self.args.patch or self.only else FILES

    def _is_worth_a_line(self, single: Single) -> bool:
        if single.operation.record.kind == "first":
            return self.args.verbose or self.args.not_covered
        return True

    def _turn_row(self, turn: Turn, parts: list[Piece]) -> LogRow:
        title = title_of(turn)
        state = "running" if turn.number in self.book.running else "undone" if turn.undone else ""
        row = LogRow(
            turn.handle,
            "agent",
            agent_name(turn),
            turn.ended_ms,
            _first_line(redacted(turn.prompt)),
            title.command,
            state=state,
            calls=turn.calls,
        )
        owned = self.book.timeline.owned(turn.number)
        operations = [item.operation for item in owned]
        shared = shared_paths(self.book.log, owned, turn.number)
        row = replace(
            row,
            shared=sum(is_below(path, self.only) and b".git" not in path.split(b"/") for path in shared),
            shared_with=tuple(f"t{number}" for number in sorted(frozenset().union(*shared.values()) - {turn.number})),
        )
        commit = (
            commit_made(self.book.log.odb, self.book.root, parts, turn.started_ms)
            if any(o.record.git_changed for o in operations)
            else ""
        )
        pin = ", ".join(self.book.pins[o.oid] for o in operations if o.oid in self.book.pins)
        return self._with_changes(replace(row, commit=commit, pin=pin), parts, operations)

    def _single_row(self, single: Single, piece: Piece) -> LogRow:
        operation = single.operation
        record = operation.record
        actor = "unattributed" if record.actor == "mixed" and single.settled else record.actor
        row = LogRow(
            operation.id,
            actor,
            who(single),
            record.time_ms,
            redacted(what(self.book, single)),
            state="undone" if single.undone else "",
            pin=self.book.pins.get(operation.oid, ""),
        )
        if record.kind == "first" and not self.args.not_covered:
            return row  # it did not change the files, it saw them for the first time
        return self._with_changes(row, [piece], [operation])

    def _with_changes(self, row: LogRow, parts: list[Piece], operations: list[Operation]) -> LogRow:
        odb = self.book.log.odb
        changes = net_changes(odb, self.book.root, parts, self.only)
        contents = Contents(odb)
        uncovered = uncovered_lines(odb, self.book.root, parts, operations, changes)
        if operations and operations[0].record.kind == "first":  # dependency folders that were there before anything was
            uncovered = tuple(line for line in uncovered if line.reason != "ignored-directory")
        files = [change for change in changes if not change.is_folder]
        added = deleted = 0
        for change in files:
            lines = self._count(contents, change)
            added, deleted = added + lines[0], deleted + lines[1]
        if row.actor == "restore" and len(files) == 1:
            row = replace(row, text=f"{row.text} {files[0].path.decode('utf-8', 'surrogateescape')}")
        git = any(operation.record.git_changed for operation in operations) and not self.only
        row = replace(
            row,
            files=len(files),
            git=git_word(odb, self.book.root, parts) if git else "",
            added=added,
            deleted=deleted,
            not_covered=sum(line.reason != STIRRED for line in uncovered),
            uncovered=uncovered if self.args.not_covered else (),
        )
        if self.args.stat:
            row = replace(row, changes=tuple(change_line(contents, change) for change in with_renames(changes)))
        return replace(row, patches=patches(contents, with_renames(changes))) if self.args.patch else row

    def _count(self, contents: Contents, change: Change) -> tuple[int, int]:
        if self.budget <= 0 or isinstance(change.old, Unknown) or isinstance(change.new, Unknown):
            return 0, 0
        sizes = [contents.size(state) for state in (change.old, change.new)]
        if max(sizes) > LARGEST_COUNTED:
            return 0, 0
        self.budget -= sum(sizes)
        return count_lines(contents, change.old, change.new) or (0, 0)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
