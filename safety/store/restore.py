"""The undo rule, pure: what each path becomes when changes are taken back.

``base`` is the state after the agent, ``ours`` what is there now, ``theirs`` the state before the agent. Undo is never "make the tree
equal the snapshot": a path moves from base to theirs only while it still is base, or where the user's later change merges cleanly.
A turn is taken back change by change from the newest to the oldest, so what the user did in between is honoured by the same table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from safety.plumbing.odb import ObjectStore
from safety.store.snapshot import Snapshot, changes
from safety.types import ABSENT, Absent, ObjectId, PathState, Present, Unknown

RESTORED, REMOVED, MERGED, UNCHANGED, KEPT, NOT_COVERED = "restored", "removed", "merged", "unchanged", "kept", "not covered"
VERBS = (RESTORED, REMOVED, MERGED, UNCHANGED, KEPT, NOT_COVERED)

Merge = Callable[[ObjectId, ObjectId, ObjectId], ObjectId | None]


@dataclass(frozen=True)
class Piece:
    """One recorded change to take back: snapshots before and after it, its paths, and the turn it was made in (0: none).

    ``by_us``: it was an undo or a restore, so what it made is nothing that an agent made.
    """

    operation: str
    before: ObjectId | None
    after: ObjectId
    paths: tuple[bytes, ...]
    turn: int = 0
    by_us: bool = False


@dataclass(frozen=True)
class Step:
    """What happens to one path. ``ours`` is what must still be there when it is done; ``target`` what is to be there then."""

    path: bytes
    verb: str
    ours: PathState
    target: PathState
    note: str = ""

    @property
    def acts(self) -> bool:
        return self.verb in (RESTORED, REMOVED, MERGED)


@dataclass(frozen=True)
class Plan:
    """A file plan: steps sorted by path, and the snapshot of now they were made against."""

    steps: tuple[Step, ...]
    now: ObjectId | None

    @property
    def token(self) -> str:
        """Binds a preview to the state it was made from (``undo --plan``)."""
        digest = hashlib.sha256()
        for step in self.steps:
            digest.update(repr((step.path, step.verb, _plain(step.ours), _plain(step.target))).encode())
        return digest.hexdigest()[:12]

    def by_verb(self, verb: str) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.verb == verb)


def _plain(state: PathState) -> tuple[object, ...]:
    return (state.kind, state.mode, state.oid) if isinstance(state, Present) else (repr(state),)


def decide(base: PathState, ours: PathState, theirs: PathState, merge: Merge) -> tuple[str, PathState]:
    """The undo table for one path: a verb and the state the path is to have.

    Content and mode are decided apart; a type change is whole; link targets never merge; add or delete against modify never merges;
    with any of the three unknown the path is left alone.
    """
    if any(isinstance(state, Unknown) for state in (base, ours, theirs)):
        return (UNCHANGED, ours) if ours == theirs and not isinstance(ours, Unknown) else (NOT_COVERED, ours)
    if ours == theirs:
        return UNCHANGED, ours
    if ours == base:
        return (REMOVED if isinstance(theirs, Absent) else RESTORED), theirs
    if not (isinstance(base, Present) and isinstance(ours, Present) and isinstance(theirs, Present)):
        return KEPT, ours
    if not base.kind == ours.kind == theirs.kind:
        return KEPT, ours
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    if ours.oid == base.oid:
        return RESTORED, replace(theirs, mode=mode)
    if base.oid == theirs.oid or ours.oid == theirs.oid:
        return (RESTORED if mode != ours.mode else UNCHANGED), replace(ours, mode=mode)
    merged = merge(base.oid, ours.oid, theirs.oid) if ours.kind == "file" else None
    if merged is None:
        return KEPT, ours
    return MERGED, replace(ours, mode=mode, oid=merged)


class FilePlanner:
    """Folds the pieces of a turn over the state of now."""

    def __init__(self, odb: ObjectStore, now: ObjectId | None, merge: Merge) -> None:
        self.odb, self.now, self.merge = odb, Snapshot(odb, now), merge
        self._now_id = now

    def plan(
        self, pieces: Sequence[Piece], belongs_to_branch: Callable[[bytes, PathState], str | None] = lambda *_: None
    ) -> Plan:
        """The plan that takes the pieces back. ``belongs_to_branch`` names the branch a path belongs to since the user switched."""
        histories = self._histories(pieces)
        steps = {path: self._fold(path, history, belongs_to_branch) for path, history in histories.items()}
        self._keep_groups(steps)
        if any(piece.by_us for piece in pieces):
            steps = {path: replace(step, note=CAME_BACK) if step.note == EDITED_NEW else step for path, step in steps.items()}
        else:
            self._say_renames(steps)
        return Plan(tuple(steps[path] for path in sorted(steps)), self._now_id)

    def _histories(self, pieces: Sequence[Piece]) -> dict[bytes, list[tuple[PathState, PathState]]]:
        """Per path its (before, after) states oldest first, runs joined where one ends as the next begins."""
        histories: dict[bytes, list[tuple[PathState, PathState]]] = {}
        for piece in pieces:
            before, after = Snapshot(self.odb, piece.before), Snapshot(self.odb, piece.after)
            for path in _with_directories(piece.paths):
                theirs, base = before.state(path), after.state(path)
                if theirs == base:
                    continue
                history = histories.setdefault(path, [])
                if history and history[-1][1] == theirs:
                    history[-1] = (history[-1][0], base)
                else:
                    history.append((theirs, base))
        return {
            path: history for path, history in histories.items() if not (len(history) == 1 and history[0][0] == history[0][1])
        }

    def _fold(
        self, path: bytes, history: list[tuple[PathState, PathState]], belongs: Callable[[bytes, PathState], str | None]
    ) -> Step:
        now = self.now.state(path)
        branch = belongs(path, now)
        if branch is not None and not _is_directory(now):
            return Step(path, KEPT, now, now, f"belongs to {branch}, which you switched to")
        ours, verbs = now, []
        for theirs, base in reversed(history):
            if _is_directory(base) or _is_directory(theirs):
                verb, ours = _decide_directory(base, ours, theirs, self.merge)
            else:
                verb, ours = decide(base, ours, theirs, self.merge)
            verbs.append(verb)
            if verb in (KEPT, NOT_COVERED):
                note = _reason(base, now, theirs)
                return Step(path, verb, now, now, note)
        if ours == now:
            return Step(path, UNCHANGED, now, now, "already as before")
        verb = MERGED if MERGED in verbs else REMOVED if isinstance(ours, Absent) else RESTORED
        return Step(path, verb, now, ours)

    def _keep_groups(self, steps: dict[bytes, Step]) -> None:
        """A path and all under it are one group where a file takes a directory's place or the other way round."""
        for path, step in list(steps.items()):
            if not step.acts or not isinstance(step.target, Present):
                continue
            if step.target.kind != "dir" and _is_directory(step.ours) and self._remains_below(path, steps):
                self._keep(path, steps, "the folder in its place holds files of yours")
            blocker = self._blocking_parent(path, steps)
            if blocker is not None:
                steps[path] = Step(path, KEPT, step.ours, step.ours, "a file of yours is in the way")

    def _remains_below(self, path: bytes, steps: Mapping[bytes, Step]) -> bool:
        for below, _ in self.now.walk(path):
            if below == path:
                continue
            step = steps.get(below)
            if step is None or not isinstance(step.target, Absent):
                return True
        return False

    def _blocking_parent(self, path: bytes, steps: Mapping[bytes, Step]) -> bytes | None:
        parent = path.rpartition(b"/")[0]
        while parent:
            state = steps[parent].target if parent in steps else self.now.state(parent)
            if isinstance(state, Present) and state.kind != "dir":
                return parent
            if isinstance(state, Unknown) and parent in steps:
                return parent
            parent = parent.rpartition(b"/")[0]
        return None

    def _keep(self, path: bytes, steps: dict[bytes, Step], note: str) -> None:
        for other, step in list(steps.items()):
            if (other == path or other.startswith(path + b"/")) and step.acts:
                steps[other] = Step(other, KEPT, step.ours, step.ours, note)

    def _say_renames(self, steps: dict[bytes, Step]) -> None:
        """Where the agent renamed a file and the user edited it under the new name, say so (redteam E11)."""
        kept_new = [
            step for step in steps.values() if step.verb == KEPT and isinstance(step.ours, Present) and step.note == EDITED_NEW
        ]
        for step in kept_new:
            same_suffix = [
                other
                for other in steps.values()
                if other.verb == RESTORED
                and isinstance(other.ours, Absent)
                and other.path.rpartition(b".")[2] == step.path.rpartition(b".")[2]
            ]
            if len(same_suffix) == 1:
                old = same_suffix[0].path.decode("utf-8", "replace")
                steps[step.path] = replace(step, note=f"was {old} before the agent renamed it; your edit stays here")


EDITED_NEW = "created by the agent, changed by you afterwards"
CAME_BACK = "changed by you since it came back"


def _reason(base: PathState, now: PathState, theirs: PathState) -> str:
    for state in (now, base, theirs):
        if isinstance(state, Unknown):
            return f"{state.reason}:{state.size}"
    if isinstance(now, Absent):
        return "you removed it afterwards"
    if isinstance(theirs, Absent):
        return EDITED_NEW
    if isinstance(base, Absent):
        return "you made a new one afterwards"
    return "you changed the same lines afterwards"


def _is_directory(state: PathState) -> bool:
    return isinstance(state, Present) and state.kind == "dir"


def _decide_directory(base: PathState, ours: PathState, theirs: PathState, merge: Merge) -> tuple[str, PathState]:
    """Directories: only what the agent created is removed; an existing one keeps its mode unless it equals base."""
    if _is_directory(base) and _is_directory(ours) and isinstance(theirs, Absent):
        return REMOVED, theirs  # by rmdir, so whatever is still in it stays
    if isinstance(base, Absent) and _is_directory(ours) and _is_directory(theirs):
        return UNCHANGED, ours
    return decide(base, ours, theirs, merge)


def _with_directories(paths: Iterable[bytes]) -> list[bytes]:
    """The paths and every directory above them (a directory's coming and going is seen by its files)."""
    found: set[bytes] = set()
    for path in paths:
        found.add(path)
        parent = path.rpartition(b"/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition(b"/")[0]
    return sorted(found)


def pieces_between(odb: ObjectStore, before: ObjectId | None, after: ObjectId, operation: str) -> Piece:
    """Everything that differs between two snapshots as one piece (git paths aside)."""
    paths = tuple(changes(odb, before, after, ("work", "private")))
    return Piece(operation, before, after, paths)


__all__ = ["ABSENT", "FilePlanner", "Piece", "Plan", "Step", "decide", "pieces_between"]
