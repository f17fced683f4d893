"""``snapshot``: one taken by hand, of everything, or of named paths whatever their size."""

from __future__ import annotations

import os
from collections.abc import Sequence

from safety.commands.args import SnapshotArgs
from safety.commands.carry import relative
from safety.commands.ondisk import files_below
from safety.commands.pin import check_name
from safety.commands.report import Hint, Report, SnapshotReport
from safety.commands.restore import UnknownPath
from safety.commands.status import TOO_WIDE
from safety.commands.uncovered import lines_of_notices, lines_of_states
from safety.faults import SafetyError
from safety.session import Call, Session
from safety.store.pins import set_pin
from safety.store.snapshot import Snapshot
from safety.types import Present


def run(session: Session, args: SnapshotArgs) -> Report:
    """Gives a SnapshotReport; exit code 3 where something of what was asked for is not covered. Raises BadName, UnknownPath,
    WorkspaceBusy and what keeps a snapshot from being taken.
    """
    if args.name:
        check_name(args.name)
    named = _named(session, args.paths) if args.paths else None
    with session.locked():
        operation = session.snapshot(named, args.name)
        if args.name:
            set_pin(session.log, args.name, operation.oid)
    snapshot = Snapshot(session.log.odb, operation.tree)
    if named is None:
        lines = lines_of_states(snapshot.not_covered())
        states = (state for _, state in snapshot.walk(areas=("work", "private")))
    else:
        lines = lines_of_notices(operation.record.not_covered)
        states = (snapshot.state(path) for path in named)
    narrow = named is None and session.place.declared_only
    files = sum(isinstance(state, Present) and state.kind != "dir" for state in states)
    handle = args.name or operation.id
    return SnapshotReport(
        root=session.root,
        handle=operation.id,
        name=args.name,
        files=files,
        lines=lines,
        exit_code=3 if lines or narrow else 0,
        notices=(TOO_WIDE,) if narrow else (),
        hints=(Hint("Bring a file back", f"git safety restore --at {handle} PATH"),),
    )


def take_in(session: Session, call: Call) -> str:
    """Takes what a call would lose into a snapshot; gives why it could not, or nothing. What answers ``s`` at a terminal."""
    from safety.commands.judging import judgement

    lost = [os.path.join(session.root, os.fsencode(thing.path)) for thing in judgement(session, call).verdict.lost]
    if not lost:
        return "it is nothing that a snapshot could hold"
    try:
        done = run(session, SnapshotArgs(paths=tuple(lost)))
    except SafetyError as fault:
        return fault.message
    return "not all of it is covered" if done.exit_code else ""


def _named(session: Session, paths: Sequence[bytes]) -> list[bytes]:
    """The files at and below the named paths, relative to the workspace. Raises UnknownPath."""
    found: list[bytes] = []
    for path in paths:
        if not os.path.lexists(path):
            raise UnknownPath(f"there is no {path.decode('utf-8', 'surrogateescape')}", "git safety snapshot -h")
        found += files_below(session.root, relative(session, path))
    return list(dict.fromkeys(found))
