"""The recorded state of a workspace at a moment: reading it here, making the next one in ``editor``, comparing two in
``changes``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from safety.plumbing.odb import ObjectStore
from safety.store.changes import changed_indexes, changes
from safety.store.chunks import read_text
from safety.store.editor import Editor
from safety.store.indexes import INDEX, IndexImage, IndexItem, IndexOdd, member_name, member_path, read_index
from safety.store.levels import AREAS, GIT, Level, Reader, root_level
from safety.store.marks import META
from safety.store.names import OUTSIDE, components, decode, join
from safety.store.trees import LINK
from safety.store.walk import Wanted, walk
from safety.types import NodeKind, ObjectId, PathState, Present, Unknown

__all__ = ["AREAS", "Editor", "IndexImage", "IndexItem", "IndexOdd", "Reader", "Snapshot", "changed_indexes", "changes"]


class Snapshot:
    """A snapshot, to read. ``tree`` is its id, or None for one of nothing.

    ``reader`` may be another snapshot's, so that trees it has parsed are not parsed again.
    """

    def __init__(self, odb: ObjectStore, tree: ObjectId | None, *, reader: Reader | None = None) -> None:
        self.odb, self.tree = odb, tree
        self.reader = reader or Reader(odb)
        self._root = root_level(self.reader, tree)

    def state(self, path: bytes) -> PathState:
        """What is known of a path. Never raises KeyError; ValueError for what no file can be called.

        Unknown also for a path below a directory that is not covered, and for one outside the workspace that was never looked at,
        unless that very path is known.
        """
        names = components(path)
        if not names:
            return Present("dir", self._root.mark.mode, b"")
        level = self._level(names[:-1])
        return level.state(names[-1])

    def area(self, path: bytes) -> str | None:
        """Which area holds a path: a file's or link's, the first that has something below a directory, else None."""
        names = components(path)
        if not names:
            return None
        level = self._level(names[:-1])
        for area in AREAS:
            if level.entry(AREAS.index(area), names[-1]) is not None:
                return area
        return None

    def read(self, path: bytes) -> bytes:
        """A file's content or a link's target. Raises KeyError when the snapshot holds neither at ``path``."""
        names = components(path)
        found = self._level(names[:-1]).file(names[-1]) if names else None
        if found is None:
            raise KeyError(path)
        area, (_, oid) = found
        return read_text(self.odb, oid) if area == GIT else self.odb.blob(oid)

    def children(self, directory: bytes) -> dict[bytes, NodeKind | str]:
        """Names directly below a directory and what they are; ``unknown`` where it is not covered. Git directories are left
        out."""
        level = self._level(components(directory))
        found: dict[bytes, NodeKind | str] = {}
        for area, name, (git_mode, _) in level.files():
            if area != GIT:
                found[decode(name)] = "link" if git_mode == LINK else "file"
        for name in level.names_below():
            if name != OUTSIDE and not level.child(name).is_git_only(name):
                found[decode(name)] = "dir"
        for name in level.mark.unknown:
            found[decode(name)] = "unknown"
        return found

    def walk(self, under: bytes = b"", areas: Iterable[str] = AREAS) -> Iterator[tuple[bytes, PathState]]:
        """Every file, link, directory with a record of its own and path not covered, at and below ``under``, sorted by path.

        Files and links are those of the given areas; the others belong to ``git`` inside git directories and else to both
        ``work`` and ``private``. Absolute paths come too.
        """
        return walk(self._root, components(under), Wanted(areas))

    def git_files(self, directory: bytes) -> Iterator[bytes]:
        """Names of all files and links captured below a git directory, relative to it, sorted."""
        start = len(directory) + 1
        for path, state in self.walk(directory, ("git",)):
            if isinstance(state, Present) and state.kind != "dir" and len(path) > start:
                yield path[start:]

    def index(self, member: bytes) -> IndexImage | None:
        """The captured index of a member repository."""
        tree = self.index_id(member)
        return None if tree is None else read_index(self.reader, tree)

    def index_id(self, member: bytes) -> ObjectId | None:
        """The id of a captured index: equal ids, equal indexes."""
        entry = self.reader.get(self._index_tree(), member_name(member))
        return None if entry is None else entry[1]

    def members(self) -> list[bytes]:
        """The members that have a captured index, sorted."""
        return sorted(member_path(name) for name in self.reader.entries(self._index_tree()))

    def not_covered(self) -> Iterator[tuple[bytes, Unknown]]:
        """Every path that is not covered, sorted; what lies below one is not listed again."""
        found: list[tuple[bytes, Unknown]] = []
        waiting = [(b"", self._root.meta)]
        while waiting:
            directory, meta = waiting.pop()
            mark = self.reader.mark(meta)
            found += [(join(directory, name), unknown) for name, unknown in mark.unknown.items()]
            waiting += [(join(directory, name), tree) for name, (_, tree) in self.reader.entries(meta).items() if name != META]
        yield from sorted(found, key=lambda item: item[0])

    def _index_tree(self) -> ObjectId | None:
        if self.tree is None:
            return None
        entry = self.reader.stored(self.tree).get(INDEX)
        return None if entry is None else entry[1]

    def _level(self, names: Iterable[bytes]) -> Level:
        level = self._root
        for name in names:
            level = level.child(name)
        return level
