"""``restore``: brings files back as they were before, after or at some point, whatever was changed since."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from safety.commands import log
from safety.commands.args import LogArgs, RestoreArgs
from safety.commands.carry import carry_out, lines_of, recover, relative
from safety.commands.changes import is_below
from safety.commands.report import Hint, LogReport, PathLine, Report, UndoReport
from safety.commands.selection import open_book, select
from safety.commands.uncovered import uncovered_line
from safety.faults import SafetyError, quoted
from safety.session import Session
from safety.store.declared import declared
from safety.store.history import find_operation, parse_handle
from safety.store.oplog import OpLog, Record, UnknownHandle
from safety.store.restore import Piece
from safety.store.snapshot import Snapshot, changes
from safety.store.takeback import Planner
from safety.types import Absent, ObjectId, Unknown


class UnknownPath(SafetyError):
    """A path that was neither there then nor is there now."""

    code, exit_code = "unknown-path", 2


class NoVersion(SafetyError):
    """Nobody said which version is wanted."""

    code, exit_code = "no-version", 2


class NothingThatOld(UnknownHandle):
    """A time before the first snapshot."""

    code, exit_code = "nothing-that-old", 4


_NAMED = 4  # turns in a sentence


@dataclass(frozen=True)
class Moment:
    """The snapshot to go back to, and how to call it: ``before t14``. ``parts``: what the turn did that it comes before."""

    tree: ObjectId | None
    words: str
    parts: tuple[Piece, ...] = ()


def run(session: Session, args: RestoreArgs) -> Report:
    """Gives an UndoReport with action ``restore``; exit code 4 where nothing differs. Git's own files are left alone.

    Raises NoVersion, NothingThatOld, UnknownHandle, UnknownPath, UndoRefused (nothing changed), WorkspaceBusy.
    """
    if not args.when:
        raise _which(session, args)
    with session.locked():
        finished = recover(session)
        # The moment is looked up first: what is there now becomes an operation of its own.
        moment = _moment(session, args)
        only = [relative(session, path) for path in args.paths]
        session.refresh(unlimited=True)
        _look_at(session, [path for path in only if path.startswith(b"/")])
        subject = f"{', '.join(_shown(path) for path in only[:3])}{' ...' if len(only) > 3 else ''} as {moment.words}"
        report = UndoReport(root=session.root, action="restore", subject=subject, notices=finished, dry_run=args.dry_run)
        return _restore(session, args, moment, only, report)


def _which(session: Session, args: RestoreArgs) -> NoVersion:
    """The question that was left open, with the newest answers to it."""
    report = log.run(session, LogArgs(paths=args.paths))
    rows = report.rows if isinstance(report, LogReport) else ()
    turns = [row.handle for row in rows if row.actor == "agent"][:_NAMED]
    names = ", ".join(_shown(relative(session, path)) for path in args.paths[:3]) + (" ..." if len(args.paths) > 3 else "")
    typed = " ".join(shlex.quote(os.fsdecode(os.path.relpath(path, session.cwd or session.root))) for path in args.paths)
    if not turns:
        return NoVersion(
            f"as of when? no turn changed {names}; --at TIME takes what was there then", f"git safety log -v -- {typed}"
        )
    choices = ", ".join(f"--before {handle}" for handle in turns)
    return NoVersion(
        f"which version? {names} was changed in {', '.join(turns)}: say {choices}, or --at 14:30; git safety log -- {typed} has them all",
        f"git safety restore --before {turns[0]} {typed}",
    )


def _restore(session: Session, args: RestoreArgs, moment: Moment, only: Sequence[bytes], report: UndoReport) -> UndoReport:
    head = session.log.head()
    now = None if head is None else head.tree
    parts = _parts(session, now, moment, only)
    whole = Planner(session.place, now).plan(parts, only=[b""])  # git's state aside
    report = replace(report, plan_token=whole.token)
    if args.plan and args.plan != whole.token:
        again = Hint("Look again", "git safety restore --dry-run")
        return replace(report, nothing="something changed since that plan was shown", exit_code=4, hints=(again,))
    unknown = _unknown(session, moment.tree, only, parts)
    if not whole.acts and not unknown and not any(step.verb != "unchanged" for step in whole.files.steps):
        return replace(report, nothing=f"nothing to restore: what is there is {report.subject}", exit_code=4)
    if args.dry_run or not whole.acts:
        return _said(lines_of(session, report, whole, parts), unknown)
    report = replace(report, hints=(Hint("Take this back", "git safety redo"),))
    return _said(carry_out(session, whole, report, kind="restore", undoes=[], parts=parts), unknown)


def _look_at(session: Session, outside: Sequence[bytes]) -> None:
    """Records what is now at named paths outside the workspace that are known already; a refresh looks inside only."""
    head = session.log.head()
    if not outside or head is None:
        return
    snapshot = Snapshot(session.log.odb, head.tree)
    draft = declared(session.place, head.tree, [path for path in outside if not isinstance(snapshot.state(path), Unknown)])
    if draft.is_change:
        session.append(draft.tree, Record(session.new_id(), "checkpoint", "user", scope=tuple(outside)))


def _said(report: UndoReport, unknown: Sequence[PathLine]) -> UndoReport:
    """The report in this verb's words, with what the old snapshot does not hold."""
    known = {line.path for line in report.lines if line.verb == "not covered"}
    lines = [replace(line, note="was not there then") if line.verb == "removed" else line for line in report.lines]
    lines += [line for line in unknown if line.path not in known]
    left_out = any(line.verb in ("kept", "not covered") for line in lines)
    return replace(report, lines=tuple(lines), exit_code=3 if left_out else report.exit_code)


def _moment(session: Session, args: RestoreArgs) -> Moment:
    """What the arguments mean by then. Raises UnknownHandle."""
    if args.when != "at":
        chosen = select(open_book(session), args.handle)
        if args.when == "before":
            return Moment(chosen.before, f"before {chosen.handle}", chosen.parts)
        return Moment(chosen.after, f"after {chosen.handle}")
    if args.at_ms is None:
        if parse_handle(args.handle) is not None or not args.handle.strip("@-"):
            chosen = select(open_book(session), args.handle)
            return Moment(chosen.after, f"after {chosen.handle}")
        try:
            operation = find_operation(session.log, args.handle)
        except UnknownHandle:
            raise UnknownHandle(
                f"{quoted(args.handle)} is neither a time (1h, 14:30, yesterday, 2026-11-30) nor the name of a snapshot",
                "git safety log",
            ) from None
        return Moment(operation.tree, f"in {args.handle}")
    return Moment(_tree_at(session.log, args.at_ms), "at that time")


def _tree_at(operations: OpLog, at_ms: int) -> ObjectId:
    """The newest snapshot that is not younger. Raises NothingThatOld before the first one."""
    oldest = 0
    for operation in operations.walk():
        oldest = operation.record.time_ms
        if oldest <= at_ms:
            return operation.tree
    if not oldest:
        raise NothingThatOld("nothing is recorded here yet", "git safety log -v")
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(-(-oldest // 1000)))  # the second by which it was there
    raise NothingThatOld(f"nothing is recorded from that time or before it; the oldest moment is {at}", "git safety log -v")


def _parts(session: Session, now: ObjectId | None, moment: Moment, only: Sequence[bytes]) -> list[Piece]:
    """What is to be taken back so that the named paths are as they were then. Raises UnknownPath.

    What the snapshot before a turn does not know (a file outside the workspace, say) is taken from before its first change.
    """
    odb = session.log.odb
    then = Snapshot(odb, moment.tree)
    paths = _paths(session, now, moment.tree, only)
    if now is None:
        return []
    later: dict[bytes, ObjectId | None] = {}
    for part in moment.parts:
        for path in part.paths:
            if is_below(path, only) and path not in later and isinstance(then.state(path), Unknown):
                later[path] = part.before
    parts = [Piece("", moment.tree, now, tuple(path for path in paths if path not in later))]
    return parts + [Piece("", tree, now, (path,)) for path, tree in later.items()]


def _paths(session: Session, now: ObjectId | None, then: ObjectId | None, only: Sequence[bytes]) -> tuple[bytes, ...]:
    """What differs at and below the named paths, git directories left out. Raises UnknownPath."""
    differing = changes(session.log.odb, then, now, ("work", "private"))
    paths = tuple(path for path in differing if is_below(path, only) and b".git" not in path.split(b"/"))
    sides = [Snapshot(session.log.odb, tree) for tree in (then, now)]
    for one in only:
        if b".git" in one.split(b"/"):
            raise UnknownPath(f"{_shown(one)} is git's own; restore leaves it alone", "git safety undo -h")
        was_there = not one or any(is_below(path, [one]) for path in paths)
        if not was_there and all(isinstance(side.state(one), Absent) for side in sides):
            name = _shown(one.rpartition(b"/")[2])
            raise UnknownPath(f"{_shown(one)} was not there then and is not there now", f"git safety find {name}")
    return paths


def _unknown(session: Session, then: ObjectId | None, only: Sequence[bytes], parts: Sequence[Piece]) -> list[PathLine]:
    """The named paths whose old content no snapshot holds, where nothing of the plan says so."""
    snapshot = Snapshot(session.log.odb, then)
    planned = {path for part in parts for path in part.paths}
    states = ((one, snapshot.state(one)) for one in only if one and one not in planned)
    return [uncovered_line(one, state.reason, state.size) for one, state in states if isinstance(state, Unknown)]


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape") or "."
