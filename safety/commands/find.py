"""``find``: where did a file go? Searches the names that the log knows, current and past; takes no snapshot."""

from __future__ import annotations

import fnmatch
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeGuard

from safety.commands.args import FindArgs
from safety.commands.changes import Contents
from safety.commands.ondisk import on_disk
from safety.commands.report import FindReport, FindRow, Report
from safety.session import Session
from safety.store.files import Tree
from safety.store.oplog import Operation, OpLog
from safety.store.snapshot import Reader, Snapshot, changes
from safety.types import Absent, PathState, Present

FILES = ("work", "private")
Now: TypeAlias = Literal["present", "gone", "changed"]


@dataclass(frozen=True)
class Version:
    """The newest content of a path that the store holds: its state, the operation to name for it, and how to ask for it."""

    path: bytes
    state: Present
    operation: Operation
    when: str


def run(session: Session, args: FindArgs) -> Report:
    """Gives a FindReport, newest first; exit code 4 where the store knows no such name."""
    fits = _matcher(args.name, session.root)
    found = sorted(_versions(session.log, fits), key=lambda version: (-version.operation.record.time_ms, version.path))
    contents = Contents(session.log.odb)
    rows: list[FindRow] = []
    more = 0
    with Tree(session.root) as tree:
        for version in found:
            if len(rows) >= args.limit and not args.gone:
                more = len(found) - len(rows)
                break
            state = _compared(tree, contents, version)
            if args.gone and state != "gone":
                continue
            if len(rows) >= args.limit:
                more += 1
                continue
            rows.append(_row(session, contents, version, state))
    return FindReport(root=session.root, query=args.name, rows=tuple(rows), more=more, exit_code=0 if rows else 4)


def _matcher(name: str, root: bytes) -> Callable[[bytes], bool]:
    """Whether a path fits what was typed: a pattern for all of it or its last name, or else a part of it. Case is ignored."""
    if os.path.isabs(name) and os.fsencode(name).startswith(root + b"/"):
        name = name[len(os.fsdecode(root)) + 1 :]
    wanted = name.removeprefix("./").casefold()
    if any(letter in wanted for letter in "*?["):

        def fits(path: bytes) -> bool:
            text = os.fsdecode(path).casefold()
            return fnmatch.fnmatchcase(text, wanted) or fnmatch.fnmatchcase(text.rpartition("/")[2], wanted)

        return fits
    return lambda path: wanted in os.fsdecode(path).casefold()


def _versions(log: OpLog, fits: Callable[[bytes], bool]) -> Iterator[Version]:
    """The newest version of every path that fits, each path once."""
    head = log.head()
    if head is None:
        return
    reader = Reader(log.odb)
    # What is there now and is not yet known to have come or changed in an operation.
    current = {
        path: state
        for path, state in Snapshot(log.odb, head.tree, reader=reader).walk(areas=FILES)
        if _is_file(state) and fits(path)
    }
    done: set[bytes] = set()
    oldest = head
    for operation in log.walk():
        oldest = operation
        before = log.tree_before(operation)
        sides: list[Snapshot] = []
        for path in changes(log.odb, before, operation.tree, FILES, reader=reader):
            if path in done or not fits(path):
                continue
            sides = sides or [Snapshot(log.odb, tree, reader=reader) for tree in (before, operation.tree)]
            old, new = (side.state(path) for side in sides)
            if _is_file(new):
                yield Version(path, new, operation, "after")
            elif _is_file(old):
                yield Version(path, old, operation, "before")
            else:
                continue
            done.add(path)
            current.pop(path, None)
    for path, state in current.items():
        assert isinstance(state, Present)
        yield Version(path, state, oldest, "after")


def _is_file(state: PathState) -> TypeGuard[Present]:
    return isinstance(state, Present) and state.kind != "dir"


def _compared(tree: Tree, contents: Contents, version: Version) -> Now:
    """``present``, ``gone`` or ``changed``: the disk of now against the store. The content is read only where sizes agree."""
    size = contents.size(version.state)
    state = on_disk(tree, version.path, size)
    if isinstance(state, Absent):
        return "gone"
    return (
        "present"
        if isinstance(state, Present) and (state.kind, state.oid) == (version.state.kind, version.state.oid)
        else "changed"
    )


def _row(session: Session, contents: Contents, version: Version, state: Now) -> FindRow:
    record = version.operation.record
    # An absolute path, since nobody knows where the command will be typed.
    path = version.path if version.path.startswith(b"/") else os.path.join(session.root, version.path)
    word = shlex.quote(path.decode("utf-8", "surrogateescape"))
    # An operation's own id, because a turn may have changed the path more than once.
    restore = "" if state == "present" else f"git safety restore --{version.when} {version.operation.id} {word}"
    return FindRow(version.path, record.handle, record.time_ms, state, contents.size(version.state), restore)
