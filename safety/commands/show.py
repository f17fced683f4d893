"""``show``: one turn, call or operation in full. Reads the log only; takes no snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from safety.commands.args import ShowArgs
from safety.commands.calls import call_rows
from safety.commands.carry import relative
from safety.commands.changes import Contents, change_line, net_changes, uncovered_lines, with_renames
from safety.commands.gitnotes import git_notes
from safety.commands.meanwhile import meanwhile
from safety.commands.patches import patches
from safety.commands.report import ChangeLine, Hint, Report, ShowReport, TextReport
from safety.commands.selection import Selection, nothing_yet, open_book, select
from safety.commands.titles import both_ran
from safety.session import Session, checks_log
from safety.store.history import owned_by, shared_paths


def run(session: Session, args: ShowArgs) -> Report:
    """Gives a ShowReport; exit code 4 where no agent has worked yet. Raises UnknownHandle."""
    book = open_book(session)
    if not args.handle and (report := nothing_yet(book)):
        return report
    chosen = select(book, args.handle)
    if args.checks:
        return _checks(session, chosen)
    only = tuple(relative(session, path) for path in args.paths)
    odb = session.log.odb
    contents = Contents(odb)
    changes = net_changes(odb, session.root, chosen.parts, only, chosen.declared if chosen.turn else None)
    shown = with_renames(changes)
    others, git_others = meanwhile(book, chosen.turn.number, only) if chosen.turn and not chosen.call else ([], ())
    git = any(operation.record.git_changed for operation in chosen.operations) and not only
    return ShowReport(
        root=session.root,
        title=chosen.title,
        state=chosen.state,
        calls=call_rows(book, chosen.turn, only, call=chosen.call) if chosen.turn else (),
        changes=tuple(change_line(contents, change) for change in shown),
        unattributed=_said_to_be_shared(session, chosen, [change_line(contents, change) for change in others]),
        git_unattributed=git_others,
        not_covered=uncovered_lines(odb, session.root, chosen.parts, chosen.operations, changes),
        git_notes=git_notes(odb, session.root, chosen.parts) if git else (),
        patches=patches(contents, shown) if args.patch else (),
        hints=_hints(chosen, bool(changes or git)),
    )


def _said_to_be_shared(session: Session, chosen: Selection, lines: Sequence[ChangeLine]) -> tuple[ChangeLine, ...]:
    """The lines, each path that another turn may have changed as well with a note that names it."""
    if chosen.turn is None or not lines:
        return tuple(lines)
    shared = shared_paths(session.log, owned_by(session.log, chosen.turn.number), chosen.turn.number)
    notes = {path: f"shared: {both_ran(numbers)}" for path, numbers in shared.items()}
    return tuple(replace(line, note=", ".join(filter(None, [line.note, notes.get(line.path, "")]))) for line in lines)


def _checks(session: Session, chosen: Selection) -> TextReport:
    """What the checks of a turn wrote; exit code 4 where none have run."""
    path = checks_log(session.place.state, chosen.turn.number) if chosen.turn else None
    try:
        text = path.read_text("utf-8", "replace") if path else None
    except FileNotFoundError:
        text = None
    if text is None:
        return TextReport(root=session.root, lines=(f"No checks have run at the end of {chosen.handle}.",), exit_code=4)
    return TextReport(root=session.root, lines=tuple(text.splitlines()) or ("The checks wrote nothing.",))


def _hints(chosen: Selection, changed: bool) -> tuple[Hint, ...]:
    if not changed or chosen.turn is None or chosen.state:
        return ()
    return (Hint("The changes", f"git safety diff {chosen.handle}"), Hint("Take it back", f"git safety undo {chosen.handle}"))
