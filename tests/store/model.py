"""The puts of an editor, restated with plain dicts and no regard for cost: what the store's trees are compared with."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from safety.plumbing.odb import ObjectStore
from safety.store.levels import NOT_LOOKED_AT
from safety.store.nodes import FILE_REASONS
from safety.store.snapshot import Editor
from safety.types import ABSENT, Absent, NodeKind, ObjectId, PathState, Present, Unknown


def parents(path: bytes) -> list[bytes]:
    """The directories above a path, the root left out, nearest last; ``/`` for an absolute one."""
    absolute, parts = path.startswith(b"/"), path.strip(b"/").split(b"/")
    found = [b"/".join(parts[:end]) for end in range(1, len(parts))]
    return [b"/", *(b"/" + parent for parent in found)] if absolute else found


def is_below(path: bytes, directory: bytes) -> bool:
    return path != directory and path.startswith(directory if directory == b"/" else directory + b"/")


@dataclass
class Model:
    """What is recorded, by path. A directory maps to (mode, whether its existence was said)."""

    files: dict[bytes, tuple[str, Present]] = field(default_factory=dict)
    directories: dict[bytes, tuple[int, bool]] = field(default_factory=dict)
    unknown: dict[bytes, Unknown] = field(default_factory=dict)
    absent: set[bytes] = field(default_factory=set)
    root_mode: int = 0o755

    def put(self, path: bytes, state: PathState, area: str) -> None:
        """As ``Editor.put``."""
        if isinstance(state, Absent):
            self._remove(path)
            return
        if path == b"":
            assert isinstance(state, Present)
            self.root_mode = state.mode
            return
        for parent in parents(path):
            self._drop_file(parent)
        self.absent -= {path, *parents(path)}
        if isinstance(state, Unknown) and state.reason == "ignored-directory":
            self._drop_file(path)
            self.directories.pop(path, None)
            self.unknown[path] = state
        elif isinstance(state, Unknown):
            self._clear(path)
            self.unknown[path] = state
        elif state.kind == "dir":
            self._drop_file(path)
            self.unknown.pop(path, None)
            self.directories[path] = state.mode, True
            if self._shade(path) is None:
                self.absent = {other for other in self.absent if not is_below(other, path) or self._shade(other) is not None}
        else:
            self._clear(path)
            self.files[path] = area, state
        self.absent = {other for other in self.absent if self._shade(other) is not None}

    def finish(self) -> None:
        """A saying that a directory exists is forgotten once something else in it says so."""
        existing = self.existing()
        for path, (mode, _) in list(self.directories.items()):
            if path not in existing:
                del self.directories[path]
            else:
                self.directories[path] = mode, not any(is_below(other, path) for other in self._evidence(path))

    def existing(self) -> set[bytes]:
        """All directories that are there."""
        found = {path for path, (_, said) in self.directories.items() if said}
        for path in [*self.files, *self.unknown, *found]:
            found.update(parents(path))
        return found

    def state(self, path: bytes) -> PathState:
        """As ``Snapshot.state``."""
        if path in (b"", b"/"):
            return Present("dir", self.root_mode if path == b"" else 0o755, b"")
        if path in self.unknown:
            return self.unknown[path]
        if path in self.files:
            return self.files[path][1]
        if path in self.existing():
            return Present("dir", self.directories.get(path, (0o755, False))[0], b"")
        if any(parent in self.files for parent in parents(path)):
            return ABSENT
        shade = self._shade(path)
        if shade is None or any(other in self.absent for other in (path, *parents(path)) if is_below(other, shade)):
            return ABSENT
        return self.unknown.get(shade, NOT_LOOKED_AT)

    def area(self, path: bytes) -> str | None:
        """The area of a file."""
        return self.files[path][0] if path in self.files else None

    def records(self) -> dict[bytes, PathState]:
        """As ``Snapshot.walk``."""
        found: dict[bytes, PathState] = {path: state for path, (_, state) in self.files.items()}
        found.update(self.unknown)
        existing = self.existing()
        for path in existing - self.unknown.keys() - {b"/"}:
            mode, _ = self.directories.get(path, (0o755, False))
            alone = not any(is_below(other, path) for other in self._evidence(path))
            if alone or mode != 0o755:
                found[path] = Present("dir", mode, b"")
        if self.root_mode != 0o755:
            found[b""] = Present("dir", self.root_mode, b"")
        return found

    def in_git(self, path: bytes) -> bool:
        """Whether a path is a git directory or lies in one."""
        return any(self._is_git_directory(place) for place in (*parents(path), path))

    def belongs(self, path: bytes, areas: tuple[str, ...]) -> bool:
        """Whether a walk of these areas gives the record of ``path``."""
        if path in self.files:
            return self.files[path][0] in areas
        return "git" in areas if self.in_git(path) else bool({"work", "private"} & set(areas))

    def _is_git_directory(self, path: bytes) -> bool:
        below = {other: area for other, (area, _) in self.files.items() if is_below(other, path)}
        if path in (b"", b"/") or path in self.files or {"work", "private"} & set(below.values()):
            return False
        return path.rpartition(b"/")[2] == b".git" or any(
            other == path + b"/HEAD" or is_below(other, path + b"/HEAD") for other in below
        )

    def children(self, directory: bytes) -> dict[bytes, NodeKind | str]:
        """As ``Snapshot.children``."""
        found: dict[bytes, NodeKind | str] = {}
        for path in [*self.existing(), *self.files, *self.unknown]:
            parent = b"/" if path.count(b"/") == 1 and path.startswith(b"/") else path.rpartition(b"/")[0]
            is_git = self._is_git_directory(path) or self.area(path) == "git"
            if path != b"/" and parent == directory and (path in self.unknown or not is_git):
                name = path.rpartition(b"/")[2]
                found[name] = "unknown" if path in self.unknown else self.files[path][1].kind if path in self.files else "dir"
        return found

    def rebuilt(self, odb: ObjectStore, chance: random.Random) -> ObjectId:
        """The tree of an editor that is told the final states alone, in some order, in one or several goes."""
        todo: list[tuple[bytes, PathState, str]] = [(path, state, area) for path, (area, state) in self.files.items()]
        todo += [
            (path, state, "work")
            for path in self.existing() - self.unknown.keys() - {b"/"}
            if isinstance(state := self.state(path), Present)
        ]
        todo += [(b"", Present("dir", self.root_mode, b""), "work")]
        todo += [(path, ABSENT, "work") for path in self.absent]
        chance.shuffle(todo)
        # What is not covered comes first: it removes what is below it, and absence is only recorded below it.
        todo = [(path, self.unknown[path], "work") for path in sorted(self.unknown)] + todo
        tree = None
        editor = Editor(odb, None)
        for path, state, area in todo:
            editor.put(path, state, area)
            if chance.random() < 0.1:
                tree = editor.finish()
                editor = Editor(odb, tree)
        return editor.finish()

    def _evidence(self, path: bytes) -> set[bytes]:
        said = {other for other, (_, said) in self.directories.items() if said and other != path}
        return {*self.files, *self.unknown, *said}

    def _shade(self, path: bytes) -> bytes | None:
        near = [parent for parent in parents(path) if parent in self.unknown or parent == b"/"]
        return near[-1] if near else None

    def _drop_file(self, path: bytes) -> None:
        self.files.pop(path, None)
        if path in self.unknown and self.unknown[path].reason in FILE_REASONS:
            del self.unknown[path]

    def _clear(self, path: bytes) -> None:
        for table in (self.files, self.directories, self.unknown):
            for other in [other for other in table if other == path or is_below(other, path)]:
                del table[other]
        self.absent = {other for other in self.absent if not is_below(other, path)}

    def _remove(self, path: bytes) -> None:
        if path == b"":
            kept = Model()
            kept.files = {other: entry for other, entry in self.files.items() if other.startswith(b"/")}
            kept.directories = {other: entry for other, entry in self.directories.items() if other.startswith(b"/")}
            kept.unknown = {other: entry for other, entry in self.unknown.items() if other.startswith(b"/")}
            kept.absent = {other for other in self.absent if other.startswith(b"/")}
            self.__dict__.update(kept.__dict__)
            return
        for parent in parents(path):
            if parent in self.files or (parent in self.unknown and self.unknown[parent].reason in FILE_REASONS):
                return
        self._clear(path)
        shade = self._shade(path)
        if shade is not None and not any(other in self.absent for other in (path, *parents(path)) if is_below(other, shade)):
            self.absent.add(path)
