"""The next snapshot's tree, made from an old one and what was put since. The cost follows from what is put, not from what is
there.

Every directory that a put touches gets a node, which holds the old trees of that directory and, by name, what is new. Old trees
are read when a name is looked for. ``finish`` writes the touched directories from the bottom up. The result depends on the
states alone: the same states give the same tree, whatever the order of the puts and the history of the old tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from safety.plumbing.odb import ObjectStore
from safety.store.chunks import LARGEST_BLOB, write_text
from safety.store.indexes import INDEX, IndexImage, member_name, write_index
from safety.store.levels import AREA_NUMBERS, AREAS, GIT, WORK, Level, Reader, root_level
from safety.store.names import OUTSIDE, components, encode_all
from safety.store.nodes import IGNORED_DIRECTORY, NO_SHADE, Node, Shade, write_nodes
from safety.store.trees import EXECUTABLE, FILE, LINK, TREE, Entry, TreeItem, serialize_entries
from safety.types import Absent, ObjectId, PathState, Present, Unknown


class Editor:
    """Builds the next tree from an old one. ``reader`` may be a snapshot's, so that trees it has parsed are not parsed again."""

    def __init__(self, odb: ObjectStore, tree: ObjectId | None, *, reader: Reader | None = None) -> None:
        self.odb = odb
        self._reader = reader or Reader(odb)
        self._tree = tree
        self._root = Node(root_level(self._reader, tree))
        self._indexes: dict[bytes, Entry | None] = {}
        # Files mostly come directory by directory. Forgotten as soon as something other than a file in that directory is put.
        self._near: tuple[list[bytes], Node, Shade] | None = None

    def put(self, path: bytes, state: PathState, area: str = "work") -> None:
        """Sets what is at ``path``; the newest put wins. ``area`` is where a file's or link's content goes.

        A file or link replaces everything at and below its path, and each file on the way to it. A directory leaves what is below
        it. Absent removes what is at and below. Unknown does too, but under the reason ``ignored-directory`` what was captured
        below stays. Raises ValueError for a path no file can have and for an absolute one in the area ``work``.
        """
        names, number = components(path), AREA_NUMBERS[area]
        if names == [OUTSIDE]:
            raise ValueError("nothing is recorded of the file system's root itself")
        if isinstance(state, Present) and state.kind != "dir":
            self._put_file(names, number, self._entry(state, number), state)
            return
        self._near = None
        if isinstance(state, Absent):
            self._remove(names)
        elif isinstance(state, Unknown):
            self._put_unknown(names, state)
        else:
            self._put_directory(names, state.mode & 0o7777)

    def put_git(self, path: bytes, data: bytes, mode: int) -> Present:
        """Sets a file of the git area from its content, in chunks when it is big; gives the state it then has."""
        git_mode, oid = write_text(self.odb, data)
        if git_mode == FILE and mode & 0o100:
            git_mode = EXECUTABLE
        state = Present("file", mode & 0o7777, oid)
        self._put_file(components(path), GIT, (git_mode, oid), state)
        return state

    def put_tree(self, directory: bytes, items: Iterable[TreeItem], area: str = "work") -> None:
        """Sets all files and links that a directory has in one area, at once; directories below it stay unless a file has their
        name.

        Names are plain, in any order. A mode is git's or all of ``st_mode``: type and permission bits.
        """
        names, number = components(directory), AREA_NUMBERS[area]
        _check_place([*names, b"%"], number)
        self._near = None
        node, shade = self._open(names)
        items = list(items)
        encoded = encode_all([name for _, name, _ in items])
        node.replace_files(number, items, encoded)
        for name in encoded if shade else ():
            shade.appeared([*names, name], is_file=True)

    def put_index(self, member: bytes, image: IndexImage | None) -> None:
        """Sets the captured index of a member repository; None removes it. Raises IndexOdd."""
        if image is None:
            self.remove_index(member)
        else:
            self._indexes[member_name(member)] = (TREE, write_index(self._reader, image))

    def remove_index(self, member: bytes) -> None:
        """Forgets the captured index of a member repository, if there is one."""
        self._indexes[member_name(member)] = None

    def finish(self) -> ObjectId:
        """Writes the tree and gives its id. The editor can be used further."""
        *areas, meta = write_nodes(self._root)
        stored = self._reader.stored(self._tree) if self._tree is not None else {}
        index = stored[INDEX][1] if INDEX in stored else None
        index = self._reader.changed(index, self._indexes)
        trees = {**{name.encode(): tree for name, tree in zip(AREAS, areas, strict=True)}, b"meta": meta, INDEX: index}
        return self.odb.write("tree", serialize_entries({name: (TREE, tree) for name, tree in trees.items() if tree is not None}))

    def _entry(self, state: Present, area: int) -> Entry:
        if len(state.oid) != 20:
            raise ValueError(f"{state.oid!r} is no object id")
        git_mode = LINK if state.kind == "link" else EXECUTABLE if state.mode & 0o100 else FILE
        if area != GIT or git_mode == LINK:
            return git_mode, state.oid
        # The state may come from another snapshot (a big text then is in chunks already) or from a scan (then it is a blob).
        kind, data = self.odb.read(state.oid)
        if kind == "tree":
            return TREE, state.oid
        return (git_mode, state.oid) if len(data) <= LARGEST_BLOB else write_text(self.odb, data)

    def _put_file(self, names: list[bytes], area: int, entry: Entry, state: Present) -> None:
        _check_place(names, area)
        directory = names[:-1]
        if self._near is None or self._near[0] != directory:
            self._near = (directory, *self._open(directory))
        _, node, shade = self._near
        node.put_file(names[-1], area, entry, state.mode & 0o7777, state.inode)
        shade.appeared(names, is_file=True)

    def _put_directory(self, names: list[bytes], mode: int) -> None:
        if names:
            parent, shade = self._open(names[:-1])
            shade.appeared(names)
            parent.drop_file(names[-1])
            shade.add_absent(names, parent.lift(names[-1]))
        node, _ = self._open(names)
        mark = node.own_mark()
        mark.mode, mark.empty = mode, True

    def _put_unknown(self, names: list[bytes], state: Unknown) -> None:
        _check_place(names, GIT)
        parent, shade = self._open(names[:-1])
        known_absent = shade.appeared(names, is_file=True)
        parent.put_unknown(names[-1], state)
        if known_absent and state.reason == IGNORED_DIRECTORY:
            parent.open(names[-1]).own_mark().absent |= known_absent

    def _remove(self, names: list[bytes]) -> None:
        if not names:
            outside = self._root.open(OUTSIDE)
            self._root = Node(Level(self._reader))
            self._root.children[OUTSIDE] = outside
            return
        node, shade = self._root, NO_SHADE
        for depth, name in enumerate(names[:-1], 1):
            if node.is_file(name):
                return
            is_uncovered = node.is_uncovered(name)
            if not is_uncovered and not node.has_directory(name):
                break
            node = node.open(name)
            if is_uncovered:
                shade = Shade(node, depth)
        else:
            node.clear(names[-1])
        shade.vanished(names)

    def _open(self, names: Sequence[bytes]) -> tuple[Node, Shade]:
        """The node of a directory, with no file left on the way to it, and the nearest directory on the way that is not
        covered."""
        node, shade = self._root, NO_SHADE
        for depth, name in enumerate(names, 1):
            node.drop_file(name)
            is_uncovered = node.is_uncovered(name)
            node = node.open(name)
            if is_uncovered:
                shade = Shade(node, depth)
        return node, shade


def _check_place(names: list[bytes], area: int) -> None:
    if not names:
        raise ValueError("the workspace itself is a directory, always")
    if area == WORK and names[0] == OUTSIDE:
        raise ValueError("what lies outside the workspace does not belong into the area work")
