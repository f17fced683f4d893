"""The user's objects through git: one ``cat-file`` and one ``mktree`` that answer as long as the block lasts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, NamedTuple, Self

from safety.commit.values import GITLINK, Entry
from safety.faults import SafetyError
from safety.plumbing.odb import hash_object
from safety.plumbing.run import Git, Running

_DIRECTORY = 0o040000
_KINDS = {_DIRECTORY: "tree", GITLINK: "commit"}


class ObjectsGone(SafetyError):
    """git stopped answering about the repository's objects."""

    code = "objects-gone"


class Clash(SafetyError):
    """A path would be a file and a folder at once. ``path`` is that path."""

    code = "path-clash"

    def __init__(self, path: bytes) -> None:
        super().__init__(f"{os.fsdecode(path)} would be a file and a folder at once")
        self.path = path


class Object(NamedTuple):
    """An object of the repository."""

    oid: str
    kind: str
    data: bytes


class Objects:
    """Reads and writes objects of the repository whose work tree is ``root``."""

    def __init__(self, git: Git, root: bytes) -> None:
        self._git, self._root = git, root
        self._reader: Running | None = None
        self._maker: Running | None = None
        self._trees: dict[str, dict[bytes, Entry]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for running in (self._reader, self._maker):
            if running is not None:
                running.kill()

    def read(self, name: str) -> Object | None:
        """The object of that id (or ``HEAD``), None if there is none."""
        if self._reader is None:
            self._reader = self._git.start_user(self._root, ["cat-file", "--batch"])
        out = _ask(self._reader, name.encode() + b"\n")
        head = out.readline().split()
        if not head:
            raise ObjectsGone("git cat-file ended early")
        if len(head) != 3:
            return None
        data = out.read(int(head[2]) + 1)[:-1]
        return Object(head[0].decode(), head[1].decode(), data)

    def blob(self, oid: str) -> bytes | None:
        """A blob's content, None if the repository lacks it (a partial clone)."""
        found = self.read(oid)
        return found.data if found is not None and found.kind == "blob" else None

    def tree(self, oid: str) -> dict[bytes, Entry]:
        """The entries of a tree by name; of no tree ("") there are none."""
        if oid not in self._trees:
            found = self.read(oid) if oid else None
            if oid and (found is None or found.kind != "tree"):
                raise ObjectsGone(f"tree {oid} cannot be read")
            self._trees[oid] = _parse_tree(found.data) if found is not None else {}
        return self._trees[oid]

    def entry(self, tree: str, path: bytes) -> Entry | None:
        """What a tree has at a path; a folder counts as nothing, and so does what is below a submodule."""
        *folders, name = path.split(b"/")
        for folder in folders:
            found = self.tree(tree).get(folder)
            if found is None or found.mode != _DIRECTORY:
                return None
            tree = found.oid
        found = self.tree(tree).get(name)
        return found if found is not None and found.mode != _DIRECTORY else None

    def write_blobs(self, contents: Sequence[bytes]) -> list[str]:
        """Their ids, once they are in the repository as they are."""
        if not contents:
            return []
        with tempfile.TemporaryDirectory(prefix="git-safety-") as folder:
            names = [os.path.join(folder, str(number)) for number in range(len(contents))]
            for name, data in zip(names, contents, strict=True):
                with open(name, "xb") as file:
                    file.write(data)
            fed = "".join(name + "\n" for name in names).encode()
            self._git.user(self._root, ["hash-object", "-w", "--no-filters", "--stdin-paths"], input=fed)
        return [hash_object("blob", data).hex() for data in contents]

    def build(self, tree: str, changes: Mapping[bytes, Entry | None]) -> str:
        """The tree with these paths set or, for None, gone; only folders that change are made anew. Raises Clash."""
        return self._build(tree, changes, b"") or self._make({})

    def _build(self, tree: str, changes: Mapping[bytes, Entry | None], above: bytes) -> str:
        """Like ``build``; "" for a folder with nothing left in it."""
        entries = dict(self.tree(tree))
        leaves: dict[bytes, Entry | None] = {}
        deeper: dict[bytes, dict[bytes, Entry | None]] = {}
        for path, entry in changes.items():
            name, slash, rest = path.partition(b"/")
            if slash:
                deeper.setdefault(name, {})[rest] = entry
            else:
                leaves[name] = entry
        for name, entry in leaves.items():
            if entry is None and name in entries and entries[name].mode != _DIRECTORY:
                del entries[name]
        for name, below in deeper.items():
            there = entries.get(name)
            if there is not None and there.mode != _DIRECTORY:
                if any(below.values()):
                    raise Clash(above + name)
                continue
            made = self._build(there.oid if there is not None else "", below, above + name + b"/")
            entries.pop(name, None)
            if made:
                entries[name] = Entry(_DIRECTORY, made)
        for name, entry in leaves.items():
            if entry is not None:
                if name in entries and entries[name].mode == _DIRECTORY:
                    raise Clash(above + name)
                entries[name] = entry
        return self._make(entries) if entries else ""

    def _make(self, entries: Mapping[bytes, Entry]) -> str:
        if self._maker is None:
            self._maker = self._git.start_user(self._root, ["mktree", "-z", "--missing", "--batch"])
        lines = [
            b"%o %s %s\t%s\0" % (entry.mode, _KINDS.get(entry.mode, "blob").encode(), entry.oid.encode(), name)
            for name, entry in entries.items()
        ]
        made = _ask(self._maker, b"".join(lines) + b"\0").readline().strip().decode()
        if not made:
            raise ObjectsGone("git mktree ended early")
        self._trees[made] = dict(entries)
        return made


def _ask(running: Running, question: bytes) -> IO[bytes]:
    """Sends a question; what comes back is where the answer is read."""
    assert running.process.stdin is not None and running.process.stdout is not None
    try:
        running.process.stdin.write(question)
        running.process.stdin.flush()
    except BrokenPipeError:
        pass  # the end of its output tells the same
    return running.process.stdout


def _parse_tree(raw: bytes) -> dict[bytes, Entry]:
    entries: dict[bytes, Entry] = {}
    at = 0
    while at < len(raw):
        space = raw.index(b" ", at)
        nul = raw.index(b"\0", space)
        entries[raw[space + 1 : nul]] = Entry(int(raw[at:space], 8), raw[nul + 1 : nul + 21].hex())
        at = nul + 21
    return entries
