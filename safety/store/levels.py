"""One directory of a snapshot as one thing: what the three areas hold of it and what the marks add.

The top tree of a snapshot has the areas ``work``, ``private`` and ``git``, which mirror the workspace's directories, ``meta``
with the marks, and ``index``. A path is in one area at most; a directory can be in several.
"""

from __future__ import annotations

from collections.abc import Iterator

from safety.plumbing.odb import ObjectStore
from safety.store.chunks import is_chunked, read_text
from safety.store.fanout import Trees
from safety.store.marks import META, NO_MARK, PLAIN_DIRECTORY, Mark, parse_mark
from safety.store.names import OUTSIDE
from safety.store.trees import LINK, TREE, Entry
from safety.types import ABSENT, ObjectId, PathState, Present, Unknown

AREAS = ("work", "private", "git")
WORK, PRIVATE, GIT = range(3)
AREA_NUMBERS = {area: number for number, area in enumerate(AREAS)}

AreaTrees = tuple[ObjectId | None, ObjectId | None, ObjectId | None]
NO_AREAS: AreaTrees = (None, None, None)

# Nothing outside the workspace is known but what was looked at by name.
NOT_LOOKED_AT = Unknown("outside")


class Reader(Trees):
    """Trees, and the marks beside them."""

    def __init__(self, odb: ObjectStore) -> None:
        super().__init__(odb)
        self._marks: dict[ObjectId, Mark] = {}

    def mark(self, meta: ObjectId | None) -> Mark:
        """The mark of the directory whose tree in the meta area this is. It may be shared: copy before a change."""
        entry = self.get(meta, META)
        if entry is None:
            return NO_MARK
        mark = self._marks.get(entry[1])
        if mark is None:
            if len(self._marks) > 10_000:
                self._marks.clear()
            mark = self._marks[entry[1]] = parse_mark(read_text(self.odb, entry[1]))
        return mark

    def is_file(self, area: int, entry: Entry) -> bool:
        """Whether an entry is a file or a link and not a directory; in the git area a tree can be a text in chunks."""
        return entry[0] != TREE or (area == GIT and is_chunked(self.stored(entry[1])))


class Level:
    """One directory of a snapshot, to read.

    ``unknown`` is set below a directory that is not covered, ``absent`` then holds what is known not to exist there, and
    ``below`` is this directory's own place relative to that one (empty, or ending in a slash).
    """

    __slots__ = ("_mark", "absent", "areas", "below", "meta", "reader", "unknown")

    def __init__(
        self,
        reader: Reader,
        areas: AreaTrees = NO_AREAS,
        meta: ObjectId | None = None,
        unknown: Unknown | None = None,
        absent: frozenset[bytes] | set[bytes] = frozenset(),
        below: bytes = b"",
    ) -> None:
        self.reader, self.areas, self.meta = reader, areas, meta
        self.unknown, self.absent, self.below = unknown, absent, below
        self._mark: Mark | None = None

    @property
    def mark(self) -> Mark:
        """The directory's exceptions. Shared: copy before a change."""
        if self._mark is None:
            self._mark = self.reader.mark(self.meta) if self.meta is not None else NO_MARK
        return self._mark

    @property
    def is_recorded(self) -> bool:
        """Whether the snapshot holds anything of this directory."""
        return self.meta is not None or self.areas != NO_AREAS

    @property
    def is_blank(self) -> bool:
        """Whether nothing below exists, for certain."""
        return self.unknown is None and not self.is_recorded

    def is_git_only(self, name: bytes) -> bool:
        """Whether this directory, called ``name``, is a git directory, and not one on the way to it or one of files."""
        if self.areas[WORK] is not None or self.areas[PRIVATE] is not None or name == OUTSIDE:
            return False
        return name == b"%2Egit" or self.reader.get(self.areas[GIT], b"HEAD") is not None

    def entry(self, area: int, name: bytes) -> Entry | None:
        """What one area holds under a name."""
        tree = self.areas[area]
        return None if tree is None else self.reader.get(tree, name)

    def file(self, name: bytes) -> tuple[int, Entry] | None:
        """The area and entry of a file or link."""
        for area, tree in enumerate(self.areas):
            if tree is not None:
                entry = self.reader.get(tree, name)
                if entry is not None and self.reader.is_file(area, entry):
                    return area, entry
        return None

    def has_directory(self, name: bytes) -> bool:
        """Whether anything is recorded of a directory of that name."""
        if any(self._subtree(area, name) is not None for area in (WORK, PRIVATE, GIT)):
            return True
        return self.meta is not None and self.reader.get(self.meta, name) is not None

    def child(self, name: bytes) -> Level:
        """The directory called ``name``; one without anything recorded if there is none."""
        reader, subtree = self.reader, self._subtree
        areas = (subtree(WORK, name), subtree(PRIVATE, name), subtree(GIT, name))
        entry = reader.get(self.meta, name) if self.meta is not None else None
        meta = None if entry is None else entry[1]
        unknown = self.mark.unknown.get(name)
        if unknown is None and name == OUTSIDE:
            unknown = NOT_LOOKED_AT
        if unknown is not None:
            return Level(reader, areas, meta, unknown, reader.mark(meta).absent)
        if self.unknown is not None and not self.file(name):
            return Level(reader, areas, meta, self.unknown, self.absent, self.below + name + b"/")
        return Level(reader, areas, meta)

    def state(self, name: bytes) -> PathState:
        """The state of what is called ``name``."""
        unknown = self.mark.unknown.get(name)
        if unknown is not None:
            return unknown
        found = self.file(name)
        if found is not None:
            return self.file_state(name, found[1])
        child = self.child(name)
        if child.is_recorded or name == OUTSIDE:
            return Present("dir", child.mark.mode, b"")
        return self.missing_state(name)

    def file_state(self, name: bytes, entry: Entry) -> Present:
        """The state of a file or link of this directory, from its entry."""
        git_mode, oid = entry
        mark = self.mark
        return Present("link" if git_mode == LINK else "file", mark.file_mode(name, git_mode), oid, mark.inodes.get(name))

    def missing_state(self, name: bytes) -> PathState:
        """The state of a name that nothing is recorded of."""
        if self.unknown is None:
            return ABSENT
        path = self.below + name
        if self.absent:
            end = len(path)
            while end > 0:
                if path[:end] in self.absent:
                    return ABSENT
                end = path.rfind(b"/", 0, end)
        return self.unknown

    def names_below(self) -> Iterator[bytes]:
        """Names of the directories below, each once."""
        seen: set[bytes] = set()
        for area, tree in enumerate(self.areas):
            for name, entry in self.reader.entries(tree).items():
                if entry[0] == TREE and name not in seen and not self.reader.is_file(area, entry):
                    seen.add(name)
                    yield name
        yield from (name for name in self.marked_below() if name not in seen)

    def marked_below(self) -> Iterator[bytes]:
        """Names of the directories below that have marks."""
        return (name for name in self.reader.entries(self.meta) if name != META)

    def files(self) -> Iterator[tuple[int, bytes, Entry]]:
        """Area, name and entry of every file and link."""
        for area, tree in enumerate(self.areas):
            for name, entry in self.reader.entries(tree).items():
                if self.reader.is_file(area, entry):
                    yield area, name, entry

    def says_so_itself(self) -> bool:
        """Whether this directory has a record of its own: its bits, or that it exists."""
        mark = self.mark
        return mark.empty or mark.mode != PLAIN_DIRECTORY

    def _subtree(self, area: int, name: bytes) -> ObjectId | None:
        tree = self.areas[area]
        entry = None if tree is None else self.reader.get(tree, name)
        return None if entry is None or self.reader.is_file(area, entry) else entry[1]


def root_level(reader: Reader, tree: ObjectId | None) -> Level:
    """The workspace's own directory in a snapshot."""
    if tree is None:
        return Level(reader)
    stored = reader.stored(tree)
    work, private, git, meta = (stored[name.encode()][1] if name.encode() in stored else None for name in (*AREAS, "meta"))
    return Level(reader, (work, private, git), meta)
