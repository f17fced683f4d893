"""``redo``: takes the newest undo back."""

from __future__ import annotations

from safety.commands.args import RedoArgs
from safety.commands.carry import carry_out, lines_of, recover, relative
from safety.commands.report import Hint, Report, TurnTitle, UndoReport
from safety.commands.titles import title_of
from safety.session import Session
from safety.store.attribution import AGENT_ACTORS, undone_turns
from safety.store.history import parse_handle, turns
from safety.store.oplog import Operation, UnknownHandle
from safety.store.restore import Piece
from safety.store.snapshot import changes
from safety.store.takeback import Planner


def run(session: Session, args: RedoArgs) -> Report:
    """Gives an UndoReport with action ``redo``; exit code 4 where there is no undo that nothing of an agent followed.

    Raises UnknownHandle, UndoRefused (nothing changed), WorkspaceBusy.
    """
    if session.log.head_id() is None:
        return UndoReport(root=session.root, action="redo", nothing="there is no undo to take back", exit_code=4)
    with session.locked():
        finished = recover(session)
        session.refresh(unlimited=True)
        undo = newest_undo(session, args.handle)
        if undo is None:
            return UndoReport(
                root=session.root, action="redo", nothing="there is no undo to take back", exit_code=4, notices=finished
            )
        before = session.log.tree_before(undo)
        piece = Piece(undo.id, before, undo.tree, tuple(changes(session.log.odb, before, undo.tree)), by_us=True)
        only = [relative(session, path) for path in args.paths] or None
        head = session.log.head()
        whole = Planner(session.place, head.tree if head else None).plan([piece], only=only)
        if args.plan and args.plan != whole.token:
            return UndoReport(
                root=session.root,
                action="redo",
                nothing="something changed since that plan was shown",
                exit_code=4,
                hints=(Hint("Look again", "git safety redo --dry-run"),),
            )
        titles = _titles(session, undo)
        report = UndoReport(
            root=session.root,
            action="redo",
            titles=titles,
            subject="" if titles else _subject(undo),
            dry_run=args.dry_run,
            plan_token=whole.token,
            notices=finished,
        )
        if args.dry_run:
            return lines_of(session, report, whole, [piece])
        return carry_out(session, whole, report, kind="redo", undoes=[undo.id], parts=[piece])


def newest_undo(session: Session, handle: str = "") -> Operation | None:
    """The newest undo not taken back and not followed by a new operation of an agent; or the one that ``handle`` names."""
    numbers = parse_handle(handle) if handle else None
    for operation, taken_back in undone_turns(session.log.walk()):
        record = operation.record
        if record.kind in ("undo", "restore") and record.id not in taken_back:
            if not handle or record.id.startswith(handle) or (numbers is not None and f"t{numbers[0]}" in record.undoes):
                return operation
        elif not handle and record.actor in (*AGENT_ACTORS, "mixed") and record.kind != "turn" and record.id not in taken_back:
            return None
    if handle:
        raise UnknownHandle(f"{handle} names no undo that could be taken back", "git safety log")
    return None


def _subject(undo: Operation) -> str:
    """What is taken back where it was no undo of a whole turn."""
    what = undo.record.summary or undo.id
    return f"the restore of {what}" if undo.record.kind == "restore" else f"the undo of a part of {what}"


def _titles(session: Session, undo: Operation) -> tuple[TurnTitle, ...]:
    numbers = {int(text[1:]) for text in undo.record.undoes if text[:1] == "t" and text[1:].isdigit()}
    return tuple(title_of(turn) for turn in turns(session.log) if turn.number in numbers)
