"""What differs between two snapshots; the cost follows from the difference, since trees with equal ids are not read."""

from __future__ import annotations

from collections.abc import Iterable

from safety.plumbing.odb import ObjectStore
from safety.store.indexes import INDEX, member_path
from safety.store.levels import AREAS, Level, Reader, root_level
from safety.store.marks import META
from safety.store.names import join
from safety.store.walk import Wanted, walk_below
from safety.types import ObjectId


def changes(
    odb: ObjectStore, old: ObjectId | None, new: ObjectId | None, areas: Iterable[str] = AREAS, *, reader: Reader | None = None
) -> list[bytes]:
    """Every path whose state differs between two snapshots, sorted.

    Considered is what either records of its own in one of the areas, as ``Snapshot.walk`` gives it: files, links, directories with a
    record, paths not covered. A path that moved between areas with its state is not a change.
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
        self._waiting: list[tuple[Level, Level, bytes, bool]] = []

    def run(self, old: Level, new: Level) -> None:
        if old.mark.mode != new.mark.mode and self.wanted.marks(False):
            self.found.append(b"")
        self._waiting.append((old, new, b"", False))
        while self._waiting:
            before, after, directory, in_git = self._waiting.pop()
            if before.is_blank or after.is_blank:
                there = after if before.is_blank else before
                self.found += [path for path, _ in walk_below(there, directory, in_git, self.wanted)]
            else:
                for name in _differing(before, after):
                    self._compare(before, after, directory, name, in_git)

    def _compare(self, old: Level, new: Level, directory: bytes, name: bytes, in_git: bool) -> None:
        old_file, new_file = old.file(name), new.file(name)
        path = join(directory, name)
        if old_file is not None and new_file is not None:
            areas = {old_file[0], new_file[0]}
            if areas & self.wanted.numbers and old.file_state(name, old_file[1]) != new.file_state(name, new_file[1]):
                self.found.append(path)
            return
        old_child, new_child = old.child(name), new.child(name)
        in_git = in_git or old_child.is_git_only(name) or new_child.is_git_only(name)
        is_wanted = any(file is not None and file[0] in self.wanted.numbers for file in (old_file, new_file))
        if not is_wanted and self.wanted.marks(in_git):
            is_wanted = any(name in level.mark.unknown for level in (old, new)) or any(
                child.says_so_itself() for child in (old_child, new_child)
            )
        if is_wanted and old.state(name) != new.state(name):
            self.found.append(path)
        if any(self.wanted.below(child, in_git) for child in (old_child, new_child)):
            self._waiting.append((old_child, new_child, path, in_git))


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
