"""What an editor holds of the directories it touches, and how they become trees again."""

from __future__ import annotations

import stat

from safety.store.chunks import write_text
from safety.store.levels import AREAS, NO_AREAS, Level
from safety.store.marks import META, NO_MARK, PLAIN_DIRECTORY, Mark, serialize_mark, usual_mode
from safety.store.names import OUTSIDE
from safety.store.trees import EXECUTABLE, FILE, LINK, TREE, Entry, TreeItem
from safety.types import ObjectId, Unknown

IGNORED_DIRECTORY = "ignored-directory"

# A path not covered for one of these reasons is no directory, so something found below it replaces it.
FILE_REASONS = frozenset({"too-large", "special-file", "ignored-large", "changed-while-reading"})

NUMBERS = range(len(AREAS))

Written = tuple[ObjectId | None, ObjectId | None, ObjectId | None, ObjectId | None]  # a directory's tree an area, then in meta


class Shade:
    """A directory that is not covered, as seen from below: it keeps the list of what is known not to exist there.

    ``depth`` is how many of a path's names lead to it. Without a node there is no such directory and nothing to keep.
    """

    def __init__(self, node: Node | None, depth: int) -> None:
        self.node, self.depth = node, depth

    def __bool__(self) -> bool:
        return self.node is not None

    def appeared(self, names: list[bytes], *, is_file: bool = False) -> set[bytes]:
        """Notes that a path exists; gives what was known to be absent below it, relative to it, which a file makes pointless."""
        if self.node is None or not self.node.mark.absent:
            return set()
        below = b"/".join(names[self.depth :]) + b"/"
        dropped = {path for path in self.node.mark.absent if is_file and path.startswith(below)}
        gone = dropped | (self._ways(names) & self.node.mark.absent)
        if gone:
            self.node.own_mark().absent -= gone
        return {path[len(below) :] for path in dropped}

    def vanished(self, names: list[bytes]) -> None:
        """Notes that a path does not exist, nor anything below it."""
        if self.node is None or not self._ways(names).isdisjoint(self.node.mark.absent):
            return
        path = b"/".join(names[self.depth :])
        mark = self.node.own_mark()
        mark.absent = {other for other in mark.absent if not other.startswith(path + b"/")} | {path}

    def add_absent(self, names: list[bytes], paths: set[bytes]) -> None:
        """Takes over what was known to be absent, relative to ``names``, from a directory that is covered now."""
        if self.node is not None and paths:
            prefix = b"/".join(names[self.depth :]) + b"/"
            self.node.own_mark().absent |= {prefix + path for path in paths}

    def _ways(self, names: list[bytes]) -> set[bytes]:
        parts = names[self.depth :]
        return {b"/".join(parts[:end]) for end in range(1, len(parts) + 1)}


NO_SHADE = Shade(None, 0)


class Node:
    """One touched directory. ``level`` is what it was.

    ``edits`` has, an area, the entries set or removed; ``modes`` the permission bits of the files set, where they are not git's
    own for the entry; ``children`` the touched directories below, which may have come to hold nothing.
    """

    __slots__ = ("_mark", "children", "edits", "level", "modes")

    def __init__(self, level: Level) -> None:
        self.level = level
        self.edits: tuple[dict[bytes, Entry | None], ...] = ({}, {}, {})
        self.modes: dict[bytes, int] = {}
        self.children: dict[bytes, Node] = {}
        self._mark: Mark | None = None

    @property
    def mark(self) -> Mark:
        """The directory's exceptions as they are by now, to read; ``modes`` and ``empty`` are settled at the end only."""
        return self.level.mark if self._mark is None else self._mark

    def own_mark(self) -> Mark:
        """The mark, to change."""
        if self._mark is None:
            self._mark = self.level.mark.copy()
        return self._mark

    def entry(self, area: int, name: bytes) -> Entry | None:
        """What one area holds under a name by now; a directory's tree may be the old one."""
        edits = self.edits[area]
        if name in edits:
            return edits[name]
        tree = self.level.areas[area]
        return None if tree is None else self.level.reader.get(tree, name)

    def is_file(self, name: bytes) -> bool:
        """Whether a file or link is there, or something not covered that is no directory."""
        unknown = self.mark.unknown.get(name)
        return (unknown is not None and unknown.reason in FILE_REASONS) or any(self._holds_file(area, name) for area in NUMBERS)

    def is_uncovered(self, name: bytes) -> bool:
        """Whether what is below that name is unknown unless it is recorded."""
        return name in self.mark.unknown or name == OUTSIDE

    def has_directory(self, name: bytes) -> bool:
        """Whether anything is recorded of a directory of that name; true of a touched one in any case."""
        return name in self.children or self.level.has_directory(name)

    def open(self, name: bytes) -> Node:
        """The node of the directory called ``name``, which need not exist."""
        node = self.children.get(name)
        if node is None:
            node = self.children[name] = Node(self.level.child(name))
        return node

    def drop_file(self, name: bytes) -> None:
        """Removes a file or link, or something not covered that is no directory."""
        for area in NUMBERS:
            if self._holds_file(area, name):
                self.edits[area][name] = None
                self._forget(name)
        unknown = self.mark.unknown.get(name)
        if unknown is not None and unknown.reason in FILE_REASONS:
            del self.own_mark().unknown[name]

    def lift(self, name: bytes) -> set[bytes]:
        """Removes the mark that a directory is not covered; gives what was known to be absent in it."""
        if name not in self.mark.unknown:
            return set()
        del self.own_mark().unknown[name]
        node = self.open(name)
        absent = node.mark.absent
        if absent:
            node.own_mark().absent = set()
        return absent

    def clear(self, name: bytes) -> None:
        """Removes all that is at ``name`` and below."""
        is_file = False
        for area in NUMBERS:
            entry = self.entry(area, name)
            if entry is not None:
                is_file = is_file or self.level.reader.is_file(area, entry)
                self.edits[area][name] = None
        if not is_file and self.has_directory(name):
            self.children[name] = Node(Level(self.level.reader))
        self._forget(name)
        if name in self.mark.unknown:
            del self.own_mark().unknown[name]

    def put_file(self, name: bytes, area: int, entry: Entry, mode: int, inode: tuple[int, int] | None) -> None:
        """Sets a file or link in one area; nothing else is left under its name."""
        self.clear(name)
        self.edits[area][name] = entry
        if mode != usual_mode(PLAIN_DIRECTORY, entry[0]):
            self.modes[name] = mode
        if inode is not None:
            self.own_mark().inodes[name] = inode

    def put_unknown(self, name: bytes, state: Unknown) -> None:
        """Sets that something is not covered; what was captured below an ignored directory stays."""
        if state.reason == IGNORED_DIRECTORY:
            self.drop_file(name)
            if self.has_directory(name):
                mark = self.open(name).own_mark()
                mark.mode, mark.empty = PLAIN_DIRECTORY, False
        else:
            self.clear(name)
        self.own_mark().unknown[name] = state

    def replace_files(self, area: int, items: list[TreeItem], names: list[bytes]) -> None:
        """Sets all files of one area; ``names`` are those of ``items``, encoded."""
        if not {len(oid) for _, _, oid in items} <= {20}:
            raise ValueError("an item has no object id")
        if self._is_new() and {mode for mode, _, _ in items} <= {FILE, EXECUTABLE, LINK}:
            self.edits[area].update(zip(names, [(mode, oid) for mode, _, oid in items], strict=True))
            return
        for name in {*self.level.reader.entries(self.level.areas[area]), *self.edits[area]}:
            if self._holds_file(area, name):
                self.edits[area][name] = None
                self._forget(name)
        for (mode, _, oid), name in zip(items, names, strict=True):
            self.put_file(name, area, (_git_mode(mode), oid), _permission_bits(mode), None)

    def written(self, below: dict[bytes, Written], *, is_root: bool) -> Written:
        """Writes this directory; ``below`` has what became of the touched directories in it."""
        level, reader = self.level, self.level.reader
        work, private, git = (reader.changed(level.areas[area], self._changes(area, below)) for area in NUMBERS)
        meta_changes: dict[bytes, Entry | None] = {name: _tree_entry(trees[-1]) for name, trees in below.items()}
        is_implied = is_root or (work, private, git) != NO_AREAS or bool(self.mark.unknown) or self._has_marks_below(meta_changes)
        mark = self._settled_mark(is_implied)
        if mark is not level.mark and mark != level.mark:
            text = serialize_mark(mark)
            meta_changes[META] = write_text(reader.odb, text) if text else None
        return work, private, git, reader.changed(level.meta, meta_changes)

    def _is_new(self) -> bool:
        return not self.level.is_recorded and self._mark is None and not self.children and not any(self.edits)

    def _changes(self, area: int, below: dict[bytes, Written]) -> dict[bytes, Entry | None]:
        changes = dict(self.edits[area])
        for name, trees in below.items():
            tree = trees[area]
            if tree is not None:
                changes[name] = (TREE, tree)
            elif name not in changes:
                old = self.level.entry(area, name)
                if old is not None and not self.level.reader.is_file(area, old):
                    changes[name] = None
        return changes

    def _has_marks_below(self, meta_changes: dict[bytes, Entry | None]) -> bool:
        if any(meta_changes.values()):
            return True
        return any(name != META and name not in meta_changes for name in self.level.reader.entries(self.level.meta))

    def _settled_mark(self, is_implied: bool) -> Mark:
        """The mark in its one form, given whether something else in the snapshot implies that this directory exists."""
        mark = self.mark
        if not is_implied and not mark.empty:
            return Mark(absent=mark.absent) if mark.absent else NO_MARK
        if is_implied and mark.empty:
            mark = self.own_mark().copy()
            mark.empty = False
        modes = self._settled_modes(mark)
        if modes != mark.modes:
            mark = mark.copy()
            mark.modes = modes
        return mark

    def _settled_modes(self, mark: Mark) -> dict[bytes, int]:
        """The bits of files that differ from what is usual in a directory with the bits of ``mark``."""
        if mark.mode == self.level.mark.mode == PLAIN_DIRECTORY and not self.modes:
            return mark.modes
        modes = dict(mark.modes)
        if mark.mode != self.level.mark.mode:
            for area, name, entry in self.level.files():
                if name not in self.edits[area]:
                    _set_mode(modes, mark.mode, name, entry[0], self.level.mark.file_mode(name, entry[0]))
        for edits in self.edits:
            for name in edits if mark.mode != PLAIN_DIRECTORY else self.modes.keys() & edits.keys():
                new = edits[name]
                if new is not None:
                    _set_mode(modes, mark.mode, name, new[0], self.modes.get(name, usual_mode(PLAIN_DIRECTORY, new[0])))
        return modes

    def _holds_file(self, area: int, name: bytes) -> bool:
        entry = self.entry(area, name)
        return entry is not None and self.level.reader.is_file(area, entry)

    def _forget(self, name: bytes) -> None:
        self.modes.pop(name, None)
        mark = self.mark
        if name in mark.modes or name in mark.inodes:
            mark = self.own_mark()
            mark.modes.pop(name, None)
            mark.inodes.pop(name, None)


def write_nodes(root: Node) -> Written:
    """Writes all touched directories, those below first; gives the root's trees."""
    # Not by recursion: a path can have 2,000 components.
    nodes = [root]
    for node in nodes:
        nodes.extend(node.children.values())
    done: dict[int, Written] = {}
    for node in reversed(nodes):
        below = {name: done.pop(id(child)) for name, child in node.children.items()}
        done[id(node)] = node.written(below, is_root=node is root)
    return done[id(root)]


def _tree_entry(tree: ObjectId | None) -> Entry | None:
    return None if tree is None else (TREE, tree)


def _set_mode(modes: dict[bytes, int], directory: int, name: bytes, git_mode: int, mode: int) -> None:
    if mode == usual_mode(directory, git_mode):
        modes.pop(name, None)
    else:
        modes[name] = mode


def _git_mode(mode: int) -> int:
    if stat.S_ISLNK(mode):
        return LINK
    if not stat.S_ISREG(mode):
        raise ValueError(f"mode {mode:o} is neither a file's nor a link's")
    return EXECUTABLE if mode & 0o100 else FILE


def _permission_bits(mode: int) -> int:
    return 0o777 if mode == LINK else mode & 0o7777
