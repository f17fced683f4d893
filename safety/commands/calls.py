"""The calls of a turn as rows."""

from __future__ import annotations

from collections.abc import Sequence

from safety.commands.changes import Contents, change_line, net_changes
from safety.commands.redact import redacted
from safety.commands.report import CallRow
from safety.commands.selection import Book
from safety.store.history import Turn

_STATUS = {"ok": "done", "error": "failed", "late": "open"}


def call_rows(
    book: Book, turn: Turn, only: Sequence[bytes] = (), *, call: int | None = None, with_changes: bool = True
) -> tuple[CallRow, ...]:
    """The calls that are on record, oldest first: those that changed something, and those still open."""
    rows: dict[int, CallRow] = {}
    contents = Contents(book.log.odb)
    for operation in book.timeline.walk():
        record = operation.record
        if record.last_turn < turn.number:
            break
        if record.kind != "call" or record.turn != turn.number or (call and record.call != call) or record.call in rows:
            continue
        lines = []
        if with_changes:
            pieces = book.timeline.pieces(turn.number, record.call)
            declared = {operation.id: record.declared or ()}
            lines = [change_line(contents, change) for change in net_changes(book.log.odb, book.root, pieces, only, declared)]
        rows[record.call] = CallRow(
            f"{turn.handle}.{record.call}",
            record.tool,
            redacted(record.summary),
            record.time_ms - record.duration_ms,
            record.duration_ms,
            _STATUS.get(record.status, record.status),
            "",
            tuple(lines),
        )
    state = book.running.get(turn.number)
    for pending in state.pending.values() if state else ():
        if not call or pending.call == call:
            rows.setdefault(
                pending.call,
                CallRow(
                    f"{turn.handle}.{pending.call}", pending.tool, redacted(pending.summary), pending.started_ms, None, "open"
                ),
            )
    return tuple(rows[number] for number in sorted(rows))
