"""What differs between snapshots, path by path: found, counted and put into the lines of reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from safety.commands.report import ChangeLine, PathLine
from safety.commands.uncovered import lines_of_notices, reason_text
from safety.plumbing.diff import hunks, is_binary, split_lines
from safety.plumbing.odb import ObjectStore
from safety.store.chunks import read_text
from safety.store.gitstate import state_files
from safety.store.members import MemberPlace, is_repository, member_place
from safety.store.oplog import Operation
from safety.store.restore import Piece
from safety.store.snapshot import Reader, Snapshot, changes
from safety.store.takeback import GIT_FILES_NEVER_UNDONE
from safety.store.worktrees import worktree_changes
from safety.types import STIRRED, Absent, NotCovered, ObjectId, PathState, Present, Unknown

Kind: TypeAlias = Literal["added", "modified", "deleted", "renamed", "mode", "type"]

# Content beyond this is not compared line by line.
MOST_COUNTED = 2 << 20


@dataclass(frozen=True, slots=True)
class Change:
    """One path and its states before and after.

    ``mixed``: others changed it in between as well. ``old_path``: it was moved from there.
    """

    path: bytes
    old: PathState
    new: PathState
    mixed: bool = False
    certainty: str = ""
    old_path: bytes = b""

    @property
    def is_folder(self) -> bool:
        return all(is_folder(state) or isinstance(state, Absent) for state in (self.old, self.new))


@dataclass(frozen=True)
class Contents:
    """Reads what states stand for: from the store, or from ``held`` what is known only to the reader (the disk of now)."""

    odb: ObjectStore
    held: Mapping[ObjectId, bytes] = field(default_factory=dict)

    def read(self, state: PathState) -> bytes:
        """The content of a file or the target of a link; nothing for any other state."""
        if not isinstance(state, Present) or state.kind == "dir":
            return b""
        return self.held[state.oid] if state.oid in self.held else read_text(self.odb, state.oid)

    def size(self, state: PathState) -> int:
        if isinstance(state, Unknown):
            return state.size
        if not isinstance(state, Present) or state.kind == "dir":
            return 0
        if state.oid in self.held:
            return len(self.held[state.oid])
        kind, size = self.odb.header(state.oid)
        return size if kind == "blob" else len(read_text(self.odb, state.oid))


def is_folder(state: PathState) -> bool:
    return isinstance(state, Present) and state.kind == "dir"


def is_below(path: bytes, only: Sequence[bytes]) -> bool:
    """Whether a path is one of these or lies below one; with none named, every path is."""
    return not only or any(path == one or not one or path.startswith(one + b"/") for one in only)


# -- finding ---------------------------------------------------------------------------------------------------------------------


def net_changes(
    odb: ObjectStore,
    root: bytes,
    parts: Sequence[Piece],
    only: Sequence[bytes] = (),
    declared: Mapping[str, Collection[bytes]] | None = None,
) -> list[Change]:
    """What the pieces (oldest first) come to, each path once, sorted. Git's own state is left out; its plain files are not.

    With ``declared`` (operation id -> the paths that its call named) each change says how certain its author is.
    """
    found: dict[bytes, Change] = {}
    reader = Reader(odb)
    for piece in parts:
        before, after = Snapshot(odb, piece.before, reader=reader), Snapshot(odb, piece.after, reader=reader)
        shown = _Shown(root, before, after)
        for path in piece.paths:
            if not is_below(path, only) or not shown.is_shown(path):
                continue
            old, new = before.state(path), after.state(path)
            certainty = "" if declared is None else "declared" if path in declared.get(piece.operation, ()) else "scanned"
            earlier = found.get(path)
            if earlier is None:
                found[path] = Change(path, old, new, False, certainty)
            else:
                least = "scanned" if "scanned" in (certainty, earlier.certainty) else certainty
                found[path] = Change(path, earlier.old, new, earlier.mixed or earlier.new != old, least)
    return _without_implied(change for _, change in sorted(found.items()) if change.old != change.new)


def between(
    odb: ObjectStore, root: bytes, before: ObjectId | None, after: ObjectId | None, only: Sequence[bytes] = ()
) -> list[Change]:
    """Everything that differs between two snapshots, whoever did it."""
    if after is None:
        return []
    return net_changes(odb, root, [Piece("", before, after, tuple(changes(odb, before, after)))], only)


class _Shown:
    """Which paths are told as files: all but git's state, and what came or went with a whole git directory."""

    def __init__(self, root: bytes, before: Snapshot, after: Snapshot) -> None:
        self.root, self.sides = root, (before, after)
        self._places: dict[bytes, list[tuple[MemberPlace, bool]]] = {}

    def is_shown(self, path: bytes) -> bool:
        if b".git" not in path:
            return True
        names = path.split(b"/")
        if b".git" not in names or path.rpartition(b"/")[2] in GIT_FILES_NEVER_UNDONE:
            return b".git" not in names
        if any(is_folder(side.state(path)) for side in self.sides):
            return False
        for place, stayed in self._places_for(path):
            inside = any(path == base or path.startswith(base + b"/") for base in (place.own, place.common))
            if inside and (not stayed or state_files(place, path)):
                return False
        return True

    def _places_for(self, path: bytes) -> list[tuple[MemberPlace, bool]]:
        """The members' places, that of the path's own repository among them, each with whether git would use it on both sides."""
        names = (
            {member_of(path), b""}
            if self._places
            else {member_of(path), b"", *(n for side in self.sides for n in side.members())}
        )
        for name in names - self._places.keys():
            places = [member_place(side, self.root, name) for side in self.sides]
            stayed = all(place is not None and is_repository(side, place) for place, side in zip(places, self.sides, strict=True))
            self._places[name] = [(place, stayed) for place in dict.fromkeys(places) if place is not None]
        return [place for places in self._places.values() for place in places]


def member_of(path: bytes) -> bytes:
    """The folder whose ``.git`` a path lies in, as far as the path tells; the workspace's for any other."""
    names = path.split(b"/")
    return b"/".join(names[: names.index(b".git")]) if b".git" in names and not path.startswith(b"/") else b""


def _without_implied(changes: Iterable[Change]) -> list[Change]:
    """Folders that come or go with what is in them are told by that."""
    kept = list(changes)
    above: set[bytes] = set()
    for change in kept:
        folder = change.path.rpartition(b"/")[0]
        while folder and folder not in above:
            above.add(folder)
            folder = folder.rpartition(b"/")[0]
    return [
        change
        for change in kept
        if not (change.path in above and change.is_folder and Absent in {type(change.old), type(change.new)})
    ]


def with_renames(changes: Sequence[Change]) -> list[Change]:
    """The changes with each file that went and came elsewhere with the same content as one, where that is beyond doubt."""
    gone: dict[ObjectId, list[Change]] = {}
    come: dict[ObjectId, list[Change]] = {}
    for change in changes:
        if isinstance(change.old, Present) and isinstance(change.new, Absent) and change.old.kind == "file":
            gone.setdefault(change.old.oid, []).append(change)
        elif isinstance(change.new, Present) and isinstance(change.old, Absent) and change.new.kind == "file":
            come.setdefault(change.new.oid, []).append(change)
    pairs = {
        come[oid][0].path: old[0] for oid, old in gone.items() if len(old) == 1 and len(come.get(oid, ())) == 1 and oid != EMPTY
    }
    from_paths = {old.path for old in pairs.values()}
    joined = [
        replace(change, old=pairs[change.path].old, old_path=pairs[change.path].path) if change.path in pairs else change
        for change in changes
        if change.path not in from_paths
    ]
    return sorted(joined, key=lambda change: change.path)


def uncovered_lines(
    odb: ObjectStore, root: bytes, parts: Sequence[Piece], operations: Sequence[Operation], changes: Iterable[Change]
) -> tuple[PathLine, ...]:
    """What of these changes is not covered: paths whose content is unknown, what captures said of themselves then, linked work trees."""
    found = [
        NotCovered(change.path, state.reason, state.size)
        for change in changes
        for state in (change.new, change.old)
        if isinstance(state, Unknown)
    ]
    befores = {piece.operation: piece.before for piece in parts}
    known = {item.path for item in found}
    for operation in operations:
        if operation.record.not_covered:
            before = Snapshot(odb, befores.get(operation.id))
            # What was not covered before the operation either is no news of it.
            found += [
                item
                for item in operation.record.not_covered
                if item.path not in known
                and (item.reason == STIRRED or not (item.path and isinstance(before.state(item.path), Unknown)))
            ]
    with_git = {operation.id for operation in operations if operation.record.git_changed}
    found += [item for piece in parts if piece.operation in with_git for item in _lost_worktrees(odb, root, piece)]
    return lines_of_notices(found)


def _lost_worktrees(odb: ObjectStore, root: bytes, piece: Piece) -> Iterator[NotCovered]:
    """Linked work trees outside of the workspace that went."""
    before, after = Snapshot(odb, piece.before), Snapshot(odb, piece.after)
    places = (member_place(before, root, member) for member in {b"", *before.members()})
    for common in {place.common for place in places if place is not None}:
        for change in worktree_changes(before, after, common):
            if change.became == "removed" and not change.folder.startswith(root + b"/"):
                yield NotCovered(change.folder, "linked-worktree")


EMPTY = bytes.fromhex("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")  # the empty blob; every empty file has it


# -- telling ---------------------------------------------------------------------------------------------------------------------


def change_line(contents: Contents, change: Change) -> ChangeLine:
    """The line that tells a change. Lines are counted in text up to a limit."""
    old, new = change.old, change.new
    notes = [change_note(change)] if change_note(change) else []
    if change.mixed:
        notes.append("changed by others in between as well")
    added: int | None = 0
    deleted: int | None = 0
    if not (change.is_folder or isinstance(old, Unknown) or isinstance(new, Unknown)):
        added, deleted = count_lines(contents, old, new) or (None, None)
        if added is None and max(contents.size(old), contents.size(new)) > MOST_COUNTED:
            notes.append("large")
    size = (
        contents.size(new) if isinstance(new, Present) and new.kind != "dir" else new.size if isinstance(new, Unknown) else None
    )
    return ChangeLine(change.path, kind_of(change), added, deleted, change.old_path, change.certainty, ", ".join(notes), size)


def kind_of(change: Change) -> Kind:
    old, new = change.old, change.new
    if change.old_path:
        return "renamed"
    if isinstance(old, Absent):
        return "added"
    if isinstance(new, Absent):
        return "deleted"
    if isinstance(old, Present) and isinstance(new, Present):
        if old.kind != new.kind:
            return "type"
        if old.oid == new.oid and old.mode != new.mode:
            return "mode"
    return "modified"


def change_note(change: Change) -> str:
    """The few words about a change that are not in its kind."""
    for state in (change.new, change.old):
        if isinstance(state, Unknown):
            return f"not covered: {reason_text(state.reason, state.size)}"
    old, new = change.old, change.new
    if isinstance(old, Present) and isinstance(new, Present):
        if old.kind != new.kind:
            return f"{_NOUN[old.kind]} -> {_NOUN[new.kind]}"
        if old.mode != new.mode:
            return f"mode {old.mode:o} -> {new.mode:o}"
    if change.is_folder:
        return "folder"
    if any(isinstance(state, Present) and state.kind == "link" for state in (old, new)):
        return "symbolic link"
    return ""


_NOUN = {"file": "file", "link": "symbolic link", "dir": "folder"}


def count_lines(contents: Contents, old: PathState, new: PathState, most: int = MOST_COUNTED) -> tuple[int, int] | None:
    """Lines that came and went; None for binary content and for what is too large to compare."""
    if isinstance(old, Present) and isinstance(new, Present) and old.oid == new.oid:
        return 0, 0
    if max(contents.size(old), contents.size(new)) > most:
        return None
    before, after = contents.read(old), contents.read(new)
    if is_binary(before) or is_binary(after):
        return None
    if not before or not after:
        return len(split_lines(after)), len(split_lines(before))
    marks = "".join(hunk.marks for hunk in hunks(before, after, context=0))
    return marks.count("+"), marks.count("-")
