"""``show``: one turn, call or operation in full. Reads the log only; takes no snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from safety.commands.args import ShowArgs
from safety.commands.calls import call_rows
from safety.commands.carry import relative
from safety.commands.changes import Change, Contents, change_line, net_changes, uncovered_lines, with_renames
from safety.commands.gitnotes import git_notes
from safety.commands.patches import patches
from safety.commands.report import Hint, Report, ShowReport
from safety.commands.selection import Book, Selection, nothing_yet, open_book, select
from safety.session import Session
from safety.store.attribution import UNATTRIBUTED
from safety.store.restore import Piece


def run(session: Session, args: ShowArgs) -> Report:
    """Gives a ShowReport; exit code 4 where no agent has worked yet. Raises UnknownHandle."""
    book = open_book(session)
    if not args.handle and (report := nothing_yet(book)):
        return report
    chosen = select(book, args.handle)
    only = tuple(relative(session, path) for path in args.paths)
    odb = session.log.odb
    contents = Contents(odb)
    changes = net_changes(odb, session.root, chosen.parts, only, chosen.declared if chosen.turn else None)
    shown = with_renames(changes)
    git = any(operation.record.git_changed for operation in chosen.operations) and not only
    return ShowReport(
        root=session.root,
        title=chosen.title,
        state=chosen.state,
        calls=call_rows(book, chosen.turn, only, call=chosen.call) if chosen.turn else (),
        changes=tuple(change_line(contents, change) for change in shown),
        unattributed=tuple(change_line(contents, change) for change in _unattributed(book, chosen, only)),
        not_covered=uncovered_lines(odb, chosen.parts, chosen.operations, changes),
        git_notes=git_notes(odb, session.root, chosen.parts) if git else (),
        patches=patches(contents, shown) if args.patch else (),
        hints=_hints(chosen, bool(changes or git)),
    )


def _unattributed(book: Book, chosen: Selection, only: Sequence[bytes]) -> list[Change]:
    """What changed during the turn and is nobody's call's."""
    turn = chosen.turn
    if turn is None or chosen.call:
        return []
    parts = []
    for item, piece in book.timeline.owned_pieces(turn.number, unattributed=True):
        if item.operation.record.actor != UNATTRIBUTED:
            rest = tuple(path for path in piece.paths if not item.owns(path, turn.number, None, unattributed=False))
            piece = Piece(piece.operation, piece.before, piece.after, rest)
        parts.append(piece)
    return net_changes(book.log.odb, book.root, parts, only)


def _hints(chosen: Selection, changed: bool) -> tuple[Hint, ...]:
    if not changed or chosen.turn is None or chosen.state:
        return ()
    return (Hint("The changes", f"git safety diff {chosen.handle}"), Hint("Take it back", f"git safety undo {chosen.handle}"))
