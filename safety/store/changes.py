"""What differs between two snapshots; the cost follows from the difference, since trees with equal ids are not read."""

from __future__ import annotations

from collections.abc import Iterable

from safety.plumbing.odb import ObjectStore
from safety.store.indexes import INDEX, member_path
from safety.store.levels import AREAS, Level, Reader, root_level
from safety.store.marks import META
from safety.store.names import join
from safety.store.trees import Entry
from safety.store.walk import Wanted, walk_below
from safety.types import ObjectId

_Side = tuple[Level, bool]  # a directory in one of the snapshots, and whether that is in a git directory there


def changes(
    odb: ObjectStore, old: ObjectId | None, new: ObjectId | None, areas: Iterable[str] = AREAS, *, reader: Reader | None = None
) -> list[bytes]:
    """Every path whose state differs between two snapshots, sorted.

    Considered is what either records of its own in one of the areas, as ``Snapshot.walk`` gives it: files, links, directories
    with a record, paths not covered. A path that moved between areas with its state is not a change.
    """
    if old == new:
        return []
    reader = reader or Reader(odb)
    comparison = _Comparison(Wanted(areas))
    comparison.run(root_level(reader, old), root_level(reader, new))
    return sorted(comparison.found)


def changed_indexes(odb: ObjectStore, old: ObjectId | None, new: ObjectId | None) -> list[bytes]:
    """The members whose captured index differs between two snapshots, sorted."""
    if old == new:
        return []
    reader = Reader(odb)
    before, after = (reader.stored(tree).get(INDEX) if tree is not None else None for tree in (old, new))
    differences = reader.differences(before and before[1], after and after[1])
    return sorted(member_path(name) for name, _, _ in differences)


class _Comparison:
    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.found: list[bytes] = []
        self._waiting: list[tuple[_Side, _Side, bytes]] = []

    def run(self, old: Level, new: Level) -> None:
        if old.mark.mode != new.mark.mode and self.wanted.marks(False):
            self.found.append(b"")
        self._waiting.append(((old, False), (new, False), b""))
        while self._waiting:
            before, after, directory = self._waiting.pop()
            if before[0].is_blank or after[0].is_blank:
                there = after if before[0].is_blank else before
                self.found += [path for path, _ in walk_below(there[0], directory, there[1], self.wanted)]
            else:
                for name in _differing(before[0], after[0]):
                    self._compare(before, after, directory, name)

    def _compare(self, before: _Side, after: _Side, directory: bytes, name: bytes) -> None:
        old, new = before[0], after[0]
        old_file, new_file = old.file(name), new.file(name)
        path = join(directory, name)
        if old_file is not None and new_file is not None:
            is_wanted = old_file[0] in self.wanted.numbers or new_file[0] in self.wanted.numbers
            if is_wanted and old.file_state(name, old_file[1]) != new.file_state(name, new_file[1]):
                self.found.append(path)
            return
        below = [_below(side, name) for side in (before, after)]
        has_record = self._has_record(old, name, old_file, below[0]) or self._has_record(new, name, new_file, below[1])
        if has_record and old.state(name) != new.state(name):
            self.found.append(path)
        if any(self.wanted.below(*side) for side in below):
            self._waiting.append((below[0], below[1], path))

    def _has_record(self, level: Level, name: bytes, file: tuple[int, Entry] | None, child: _Side) -> bool:
        if file is not None:
            return file[0] in self.wanted.numbers
        return self.wanted.marks(child[1]) and (name in level.mark.unknown or child[0].says_so_itself())


def _below(side: _Side, name: bytes) -> _Side:
    level, in_git = side
    child = level.child(name)
    return child, in_git or child.is_git_only(name)


def _differing(old: Level, new: Level) -> set[bytes]:
    """Names in a directory whose records may differ, or something below them."""
    reader = old.reader
    names: set[bytes] = set()
    for before, after in zip(old.areas, new.areas, strict=True):
        names.update(name for name, _, _ in reader.differences(before, after))
    names.update(name for name, _, _ in reader.differences(old.meta, new.meta))
    if META in names:
        names.remove(META)
        if old.mark.mode == new.mark.mode:
            names.update(name for name, _ in old.mark.modes.items() ^ new.mark.modes.items())
        else:  # the usual bits of every file differ
            names.update(name for level in (old, new) for _, name, _ in level.files())
        names.update(old.mark.unknown.keys() | new.mark.unknown.keys())
    return names
