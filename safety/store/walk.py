"""Everything a snapshot records below a directory, in order of path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from safety.store.levels import AREA_NUMBERS, GIT, Level
from safety.store.names import OUTSIDE, join
from safety.store.trees import TREE
from safety.types import PathState, Present

Row = tuple[bytes, "PathState | Level", bool]  # sort key, state or directory, whether that is in a git directory
Found = tuple[bytes, PathState]


class Wanted:
    """Which records a walk is after, by area. A mark is in no area: it counts to ``git`` in a git directory and else to the
    others."""

    def __init__(self, areas: Iterable[str]) -> None:
        self.numbers = frozenset(AREA_NUMBERS[area] for area in areas)
        self._outside_git = bool(self.numbers - {GIT})

    def marks(self, in_git: bool) -> bool:
        """Whether marks are wanted."""
        return GIT in self.numbers if in_git else self._outside_git

    def below(self, level: Level, in_git: bool) -> bool:
        """Whether a directory can hold something that is wanted."""
        if any(level.areas[area] is not None for area in self.numbers):
            return True
        return level.meta is not None and (not in_git or GIT in self.numbers)


def walk(root: Level, names: Sequence[bytes], wanted: Wanted) -> Iterator[Found]:
    """Path and state of each record at and below a directory (or of one file), sorted by path."""
    if not names:
        if root.says_so_itself() and wanted.marks(False):
            yield b"", Present("dir", root.mark.mode, b"")
        yield from walk_below(root, b"", False, wanted)
        return
    level, directory, in_git = root, b"", False
    for name in names[:-1]:
        level, directory = level.child(name), join(directory, name)
        in_git = in_git or level.is_git_only(name)
    rows = [*_file_row(level, directory, names[-1], wanted), *_other_rows(level, directory, names[-1], in_git, wanted)]
    yield from _found(rows, wanted)


def walk_below(level: Level, directory: bytes, in_git: bool, wanted: Wanted) -> Iterator[Found]:
    """As ``walk``, without the directory's own record. ``directory`` is its path."""
    return _found(_rows(level, directory, in_git, wanted), wanted)


def _found(rows: list[Row], wanted: Wanted) -> Iterator[Found]:
    stack = [iter(rows)]
    while stack:
        for key, state, in_git in stack[-1]:
            if isinstance(state, Level):
                directory = key if key == b"/" else key[:-1]
                stack.append(iter(_rows(state, directory, in_git, wanted)))
                break
            yield key, state
        else:
            stack.pop()


def _rows(level: Level, directory: bytes, in_git: bool, wanted: Wanted) -> list[Row]:
    # A directory's own record sorts by its path, what is below it as if the path ended in "/".
    rows: list[Row] = []
    names = set(level.mark.unknown)
    for area, tree in enumerate(level.areas):
        if tree is None:
            continue
        for name, entry in level.reader.entries(tree).items():
            if entry[0] == TREE and not level.reader.is_file(area, entry):
                names.add(name)
            elif area in wanted.numbers:
                rows.append((join(directory, name), level.file_state(name, entry), in_git))
    names.update(level.marked_below())
    for name in names:
        rows += _other_rows(level, directory, name, in_git, wanted)
    rows.sort(key=_key)
    return rows


def _file_row(level: Level, directory: bytes, name: bytes, wanted: Wanted) -> Iterator[Row]:
    found = level.file(name)
    if found is not None and found[0] in wanted.numbers:
        yield join(directory, name), level.file_state(name, found[1]), False


def _other_rows(level: Level, directory: bytes, name: bytes, in_git: bool, wanted: Wanted) -> Iterator[Row]:
    path, child = join(directory, name), level.child(name)
    in_git = in_git or child.is_git_only(name)
    unknown = level.mark.unknown.get(name)
    if wanted.marks(in_git):
        if unknown is not None:
            yield path, unknown, in_git
        elif child.says_so_itself():
            yield path, Present("dir", child.mark.mode, b""), in_git
    if wanted.below(child, in_git):
        yield path if name == OUTSIDE else path + b"/", child, in_git


def _key(row: Row) -> bytes:
    return row[0]
