"""``diff``: what a turn changed, what differs between two, or between one and now. Takes no snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from safety.commands.args import DiffArgs
from safety.commands.carry import relative
from safety.commands.changes import Change, Contents, between, change_line, is_below, kind_of, net_changes, with_renames
from safety.commands.ondisk import files_below, on_disk
from safety.commands.patches import patches
from safety.commands.report import ChangeLine, DiffReport, Report
from safety.commands.selection import Selection, nothing_yet, open_book, select
from safety.session import Session
from safety.store.files import Tree
from safety.store.snapshot import Snapshot, changes
from safety.types import ObjectId


def run(session: Session, args: DiffArgs) -> Report:
    """Gives a DiffReport; exit code 4 where no agent has worked yet. Raises UnknownHandle."""
    book = open_book(session)
    if not args.handles and (report := nothing_yet(book)):
        return report
    only = tuple(relative(session, path) for path in args.paths)
    first = select(book, args.handles[0] if args.handles else "")
    contents = Contents(session.log.odb)
    notices: tuple[str, ...] = ()
    if args.to_now:
        found, held = _to_now(session, first, only)
        contents, labels = Contents(session.log.odb, held), (f"before {first.handle}", "now")
    elif len(args.handles) == 2:
        second = select(book, args.handles[1])
        found = between(session.log.odb, session.root, first.before, second.after, only)
        labels = (f"before {first.handle}", f"after {second.handle}")
    else:
        found = net_changes(session.log.odb, session.root, first.parts, only)
        labels = (f"before {first.handle}", f"after {first.handle}")
        notices = (f"{first.handle} changed nothing",) if not found and not only else ()
    found = with_renames(found)
    lines = tuple(_name_only(change) if args.name_only else change_line(contents, change) for change in found)
    return DiffReport(
        root=session.root,
        old_label=labels[0],
        new_label=labels[1],
        changes=lines,
        stat=args.stat or args.name_only,
        patches=() if args.stat or args.name_only else patches(contents, found),
        notices=notices,
    )


def _name_only(change: Change) -> ChangeLine:
    return ChangeLine(change.path, kind_of(change), 0, 0, change.old_path)


def _to_now(session: Session, first: Selection, only: Sequence[bytes]) -> tuple[list[Change], dict[ObjectId, bytes]]:
    """What differs between a snapshot and the disk, and the contents read for it.

    Looked at are the paths that the log says changed since, and all below the paths that were asked for.
    """
    odb = session.log.odb
    head = session.log.head()
    before = Snapshot(odb, first.before)
    paths = set(changes(odb, first.before, head.tree if head else None, ("work", "private")))
    for one in only:
        paths |= set(files_below(session.root, one)) | {path for path, _ in before.walk(one, ("work", "private"))}
    found: list[Change] = []
    held: dict[ObjectId, bytes] = {}
    with Tree(session.root) as tree:
        for path in sorted(paths):
            if not is_below(path, only) or b".git" in path.split(b"/"):
                continue
            content: dict[ObjectId, bytes] = {}
            change = Change(path, before.state(path), on_disk(tree, path, session.place.limits.max_file, content))
            if change.old != change.new and not change.is_folder:
                found.append(change)
                held.update(content)
    return found, held
