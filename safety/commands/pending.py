"""What agents have changed and nobody has committed yet: the files a check judges and the change a commit holds ([gate] A7, B4).

Only what a call's own end explains counts (design 5.4), path by path and step by step, so that what a user changed between two calls
is in neither. A path whose agent's lines a user has changed or taken back since is left out and named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from safety.plumbing.diff import hunks, is_binary, split_lines
from safety.plumbing.merge import merge_text, merge_trivial
from safety.session import Session
from safety.store.history import pieces, turns
from safety.store.oplog import Operation
from safety.store.snapshot import Snapshot
from safety.types import Absent, PathState, Present, Unknown

LOOK_BACK = 50  # turns; what is older than that is not committed by itself


@dataclass(frozen=True)
class Change:
    """One path's change in one recorded step."""

    path: bytes
    before: PathState
    after: PathState


@dataclass
class Pending:
    """The steps inside one repository, oldest first, paths relative to its ``root``. ``left_out``: (path, why)."""

    member: bytes
    root: bytes
    steps: list[Change] = field(default_factory=list)
    left_out: list[tuple[bytes, str]] = field(default_factory=list)

    @property
    def paths(self) -> tuple[bytes, ...]:
        return tuple(dict.fromkeys(step.path for step in self.steps))


def pending(session: Session, wanted: str | None, now: Snapshot, turn: int = 0) -> list[Pending]:
    """By repository, outermost first, what the conversation ``wanted`` (None: that of the newest turn) changed since its last commit.

    With ``turn`` only that turn's. ``now`` is a snapshot of this moment.
    """
    since = _since_commit(session, wanted)
    found: dict[bytes, Pending] = {}
    members = now.members()
    waiting = []
    for number, one in enumerate(turns(session.log)):
        if number >= LOOK_BACK or (
            not turn and one.operations and not any(item.operation.id in since for item in one.operations)
        ):
            break
        if wanted is None:
            wanted = one.session
        if one.undone or (one.number != turn if turn else one.session != wanted):
            continue
        waiting.append(
            [piece for piece in pieces(session.log, one.operations, one.number, None) if turn or piece.operation in since]
        )
    for piece in (piece for group in reversed(waiting) for piece in group):
        before, after = Snapshot(session.log.odb, piece.before), Snapshot(session.log.odb, piece.after)
        for path in piece.paths:
            if path.startswith(b"/") or b".git" in path.split(b"/"):
                continue
            old, new = before.state(path), after.state(path)
            member = _member_of(path, members)
            if member is None or not (_is_content(old) or _is_content(new)) or not _is_for_git(path, before, now):
                continue
            inside = path[len(member) + 1 :] if member else path
            place = found.setdefault(member, Pending(member, _root(session, member)))
            place.steps.append(Change(inside, old, new))
    for place in found.values():
        _leave_out_what_changed_since(session, place, now)
    return [found[member] for member in sorted(found) if found[member].steps or found[member].left_out]


def _since_commit(session: Session, wanted: str | None) -> set[str]:
    """Operations newer than the conversation's last commit of ours."""
    newer: set[str] = set()
    for operation in session.log.walk():
        if _is_commit_of(operation, wanted):
            break
        newer.add(operation.id)
    return newer


def _is_commit_of(operation: Operation, wanted: str | None) -> bool:
    return operation.record.kind == "commit" and wanted in (None, operation.record.session)


def _member_of(path: bytes, members: Iterable[bytes]) -> bytes | None:
    """The innermost repository that holds a path; None where there is none."""
    holding = [member for member in members if not member or path.startswith(member + b"/")]
    return max(holding, key=len) if holding else None


def _root(session: Session, member: bytes) -> bytes:
    return session.root + b"/" + member if member else session.root


def _is_content(state: PathState) -> bool:
    return isinstance(state, Unknown) or (isinstance(state, Present) and state.kind != "dir")


def _is_for_git(path: bytes, before: Snapshot, now: Snapshot) -> bool:
    """Whether git looks at the path at all: what is ignored is in another area than what is tracked or could be."""
    return now.area(path) == "work" or (isinstance(now.state(path), Absent) and before.area(path) == "work")


def _leave_out_what_changed_since(session: Session, place: Pending, now: Snapshot) -> None:
    prefix = place.member + b"/" if place.member else b""
    gone: dict[bytes, str] = {}
    last = {step.path: step for step in place.steps}
    for path, step in last.items():
        state = now.state(prefix + path)
        if isinstance(state, Unknown) or any(
            isinstance(side, Unknown) for s in place.steps if s.path == path for side in (s.before, s.after)
        ):
            gone[path] = "no snapshot holds it"
        elif state != step.after and not _still_there(session, step, state):
            gone[path] = "you have changed the agent's lines since"
    place.left_out += sorted(gone.items())
    place.steps[:] = [step for step in place.steps if step.path not in gone]


def _still_there(session: Session, step: Change, now: PathState) -> bool:
    """Whether the agent's change could be taken out of what is there now, that is, whether it is still in it."""
    sides = (step.after, now, step.before)
    if not all(isinstance(side, Present) and side.kind == "file" for side in sides):
        return False
    base, ours, theirs = (session.log.odb.blob(side.oid) for side in sides if isinstance(side, Present))
    merged = merge_trivial(base, ours, theirs)
    if merged is None and not any(map(is_binary, (base, ours, theirs))):
        merged = merge_text(session.place.git, base, ours, theirs)
    return merged is not None and merged != ours


def agents_lines(session: Session, place: Pending, path: bytes, content: bytes) -> frozenset[int]:
    """Line numbers, from 1, of what is there now that the agent wrote: told by the text of the lines it added."""
    added: set[bytes] = set()
    for step in place.steps:
        if step.path == path and isinstance(step.after, Present):
            old = (
                session.log.odb.blob(step.before.oid) if isinstance(step.before, Present) and step.before.kind == "file" else b""
            )
            new = session.log.odb.blob(step.after.oid)
            for hunk in hunks(old, new, context=0):
                added.update(text for sign, text in hunk.body() if sign == "+")
    lines: Sequence[bytes] = split_lines(content)
    return frozenset(number for number, line in enumerate(lines, 1) if line in added)
