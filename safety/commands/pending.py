"""What agents have changed and nobody has committed yet: the files a check judges and the change a commit holds ([gate] A7, B4).

Only what a call's own end explains counts (design 5.4), path by path and step by step, so that what a user changed between two calls
is in neither. A path whose agent's lines a user has changed or taken back since is left out and named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from safety.plumbing.diff import hunks, is_binary, split_lines
from safety.plumbing.ignore import ignored_paths
from safety.plumbing.merge import merge_text, merge_trivial
from safety.session import Session, is_one_conversation
from safety.store.attribution import undone_turns
from safety.store.history import pieces, turns
from safety.store.members import is_repository, member_place
from safety.store.restore import Piece
from safety.store.snapshot import Snapshot
from safety.types import Absent, PathState, Present, Unknown

ONE_TURN = "one-turn"  # the status of a commit's record that holds one turn, where others may still wait
UNHELD = ("too-large", "call-budget", "changed-while-reading")  # of files that git may well track
NOT_HELD = "no snapshot holds it"
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


def pending(session: Session, wanted: str | None, now: Snapshot, turn: int = 0, *, again: bool = False) -> list[Pending]:
    """By repository, outermost first, what the conversation ``wanted`` (None: that of the newest turn) changed since its last commit.

    With ``turn`` only that turn's; with ``again`` also what that commit left out. ``now`` is a snapshot of this moment.
    """
    if not (members := _members(session, now)):
        return []
    found: dict[bytes, Pending] = {}
    waiting: list[tuple[int, list[Piece]]] = []
    commits: _Commits | None = None
    for number, one in enumerate(turns(session.log)):
        if wanted is None:
            wanted = one.session
        if number >= LOOK_BACK:
            break
        if one.undone or (one.number != turn if turn else not is_one_conversation(one.session, wanted)):
            continue
        commits = commits or _commits(session, wanted, members)
        if not (turn or again) and one.operations and commits.are_before_all(item.operation.id for item in one.operations):
            break
        waiting.append((one.number, pieces(session.log, one.operations, one.number, None)))
    for number, piece in ((number, piece) for number, group in reversed(waiting) for piece in group):
        before, after = Snapshot(session.log.odb, piece.before), Snapshot(session.log.odb, piece.after)
        for path in piece.paths:
            if path.startswith(b"/") or b".git" in path.split(b"/"):
                continue
            old, new = before.state(path), after.state(path)
            member = _member_of(path, members)
            if member is None:
                continue
            asked = turn or commits is None or (again and path in commits.left_out)
            if not asked and commits is not None and commits.hold(piece.operation, member, number):
                continue
            if not (_is_content(old) or _is_content(new)) or not _is_for_git(path, before, after, now):
                continue
            inside = path[len(member) + 1 :] if member else path
            place = found.setdefault(member, Pending(member, _root(session, member)))
            place.steps.append(Change(inside, old, new))
    for place in found.values():
        _leave_out_what_changed_since(session, place, now)
    return [found[member] for member in sorted(found) if found[member].steps or found[member].left_out]


@dataclass(frozen=True)
class _Commits:
    """Our commits of one conversation that stand. ``newer``: operations, newest first, back to the last commit in every repository.

    ``whole``: by repository where its last commit of everything is in that order; ``single``: the commits of one turn alone;
    ``left_out``: what the last of them did not take.
    """

    newer: Mapping[str, int]
    whole: Mapping[bytes, int]
    single: Mapping[tuple[bytes, int], int]
    left_out: frozenset[bytes] = frozenset()

    def hold(self, operation: str, member: bytes, turn: int) -> bool:
        """Whether what an operation of a turn did in a repository was there to be committed by one of them."""
        at = self.newer.get(operation, len(self.newer))
        return at >= min(self.whole.get(member, at + 1), self.single.get((member, turn), at + 1))

    def are_before_all(self, operations: Iterable[str]) -> bool:
        """Whether none of these is newer than the last commit in every repository."""
        return not any(operation in self.newer for operation in operations)


def _commits(session: Session, conversation: str, members: Collection[bytes]) -> _Commits:
    newer: dict[str, int] = {}
    whole: dict[bytes, int] = {}
    single: dict[tuple[bytes, int], int] = {}
    left_out: set[bytes] = set()
    for operation, taken_back in undone_turns(session.log.walk()):
        record = operation.record
        if record.kind == "commit" and is_one_conversation(record.session, conversation) and record.id not in taken_back:
            if not left_out and not whole:
                left_out.update(record.kept)
            for member in record.declared or ():
                if record.status == ONE_TURN:
                    single.setdefault((member, record.turn), len(newer))
                else:
                    whole.setdefault(member, len(newer))
        if members and whole.keys() >= set(members):
            break
        newer[operation.id] = len(newer)
    return _Commits(newer, whole, single, frozenset(left_out))


def _members(session: Session, now: Snapshot) -> frozenset[bytes]:
    """The repositories in which something can be committed; the workspace's own also before it has an index."""
    root = member_place(now, session.root, b"")
    own = {b""} if root is not None and is_repository(now, root) else set()
    return frozenset({*now.members(), *own})


def _member_of(path: bytes, members: Iterable[bytes]) -> bytes | None:
    """The innermost repository that holds a path; None where there is none."""
    holding = [member for member in members if not member or path.startswith(member + b"/")]
    return max(holding, key=len) if holding else None


def _root(session: Session, member: bytes) -> bytes:
    return session.root + b"/" + member if member else session.root


def _is_content(state: PathState) -> bool:
    return isinstance(state, Unknown) or (isinstance(state, Present) and state.kind != "dir")


def _is_for_git(path: bytes, before: Snapshot, after: Snapshot, now: Snapshot) -> bool:
    """Whether git looks at the path at all: what is ignored is in another area than what is tracked or could be."""
    state = now.state(path)
    if isinstance(state, Unknown):
        return state.reason in UNHELD
    return now.area(path) == "work" or (isinstance(state, Absent) and "work" in (before.area(path), after.area(path)))


def _leave_out_what_changed_since(session: Session, place: Pending, now: Snapshot) -> None:
    prefix = place.member + b"/" if place.member else b""
    gone: dict[bytes, str] = {}
    last = {step.path: step for step in place.steps}
    for path, step in last.items():
        state = now.state(prefix + path)
        if isinstance(state, Unknown) or any(
            isinstance(side, Unknown) for s in place.steps if s.path == path for side in (s.before, s.after)
        ):
            gone[path] = NOT_HELD
        elif state != step.after and not _still_there(session, step, state):
            gone[path] = "the agent's lines were changed since"
    unheld = [path for path, why in gone.items() if why == NOT_HELD]
    for path in ignored_paths(session.place.git, place.root, unheld):
        del gone[path]
        place.steps[:] = [step for step in place.steps if step.path != path]
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
