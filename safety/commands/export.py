"""``export``: a turn's changes as a patch that ``git apply`` takes. Reads the log only; takes no snapshot."""

from __future__ import annotations

from safety.commands.args import ExportArgs
from safety.commands.carry import relative
from safety.commands.changes import Contents, change_note, net_changes
from safety.commands.patches import file_patch, is_portable
from safety.commands.report import RawReport, Report
from safety.commands.selection import nothing_yet, open_book, select
from safety.session import Session


def run(session: Session, args: ExportArgs) -> Report:
    """Gives a RawReport: the patch, binary content included. Exit code 3 where something cannot be in a patch (each named in a
    notice), 4 where there is nothing to export. Raises UnknownHandle.
    """
    book = open_book(session)
    if args.handle in ("", "@") and (report := nothing_yet(book)):
        return report
    chosen = select(book, args.handle)
    only = tuple(relative(session, path) for path in args.paths)
    changes = net_changes(session.log.odb, session.root, chosen.parts, only)
    contents = Contents(session.log.odb)
    portable = [change for change in changes if is_portable(change)]
    left_out = [change for change in changes if not is_portable(change)]
    notices = [
        f"not in the patch: {_shown(change.path)}{': ' + change_note(change) if change_note(change) else ''}"
        for change in left_out
    ]
    notices += [f"{_shown(change.path)}: with what others changed in between" for change in portable if change.mixed]
    if any(operation.record.git_changed for operation in chosen.operations) and not only:
        notices.append("commits, branches and the index are not in the patch, only files are")
    data = b"".join(file_patch(contents, change, binary=True).patch for change in portable)
    if not data:
        notices = notices or [f"{chosen.handle} changed no file"]
    return RawReport(root=session.root, data=data, notices=tuple(notices), exit_code=3 if left_out and data else 0 if data else 4)


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
