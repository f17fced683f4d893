"""A repository's index inside a snapshot: what is staged, without the stat data that only speaks of one disk.

``index/<member>`` holds one tree a stage (``0`` to ``3``; their small trees mostly are those of the user's commits), ``flags``
(one line an entry that has any: stage, flags in hex, encoded path) and ``extra`` (JSON: version, resolve-undo in hex). An index
that could only be kept as bytes is the single entry ``raw``. A member's name is its encoded path with ``/`` as ``%2F``; the
workspace's own is ``%root``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from safety.faults import SafetyError
from safety.store.chunks import read_text, write_text
from safety.store.fanout import Trees
from safety.store.names import decode, decode_path, encode_all, encode_path
from safety.store.trees import EXECUTABLE, FILE, GITLINK, LINK, TREE, Entries, Entry
from safety.types import ObjectId

INDEX = b"index"
ROOT_MEMBER = b"%root"
NULL_ID = bytes(20)

_MODES = frozenset({FILE, EXECUTABLE, LINK, GITLINK})
_FIELDS = ("path", "stage", "mode", "oid", "flags")


class IndexOdd(SafetyError):
    """An index that no tree can say: a file and a directory of one name, a path twice, a mode or an id git would not write.

    It can still be kept as bytes.
    """

    code = "index-odd"


class IndexItem(NamedTuple):
    """One index entry: what staging means. ``flags`` as in ``plumbing.index``."""

    path: bytes
    stage: int
    mode: int
    oid: ObjectId
    flags: int


@dataclass(frozen=True)
class IndexImage:
    """A captured index. ``entries`` are sorted by path and stage; each has the fields of ``IndexItem`` first, or as attributes.

    ``reuc`` is the raw resolve-undo extension. With ``raw`` the index is kept as these bytes alone and ``entries`` is empty.
    ``tree`` (only when writing) is a stored tree that already holds exactly these entries, all of stage 0 and without flags.
    """

    version: int
    entries: tuple[Any, ...]
    reuc: bytes | None = None
    raw: bytes | None = None
    tree: ObjectId | None = None


def member_name(member: bytes) -> bytes:
    """The name below ``index/`` of a member repository, given by its path."""
    return encode_path(member).replace(b"/", b"%2F") if member else ROOT_MEMBER


def member_path(name: bytes) -> bytes:
    """The member's path that ``member_name`` made ``name`` from."""
    return b"" if name == ROOT_MEMBER else decode_path(name.replace(b"%2F", b"/"))


def write_index(trees: Trees, image: IndexImage) -> ObjectId:
    """Stores an image; gives its tree. Raises IndexOdd."""
    odb = trees.odb
    if image.raw is not None:
        return _written(trees, {b"raw": write_text(odb, image.raw)})
    flags: list[bytes] = []
    stages = [_StageTree(trees) for _ in range(4)]
    for path, stage, mode, oid, bits in _plain(image.entries) if image.tree is None else ():
        stages[stage].add(path, mode, oid)
        if bits:
            flags.append(b"%d %x %b\n" % (stage, bits, encode_path(path)))
    entries: Entries = {}
    if image.tree is not None:
        entries[b"0"] = (TREE, image.tree)
    for stage, tree in enumerate(stages):
        written = tree.finish()
        if written is not None:
            entries[b"%d" % stage] = (TREE, written)
    if flags:
        entries[b"flags"] = write_text(odb, b"".join(flags))
    extra = {"reuc": None if image.reuc is None else image.reuc.hex(), "version": image.version}
    entries[b"extra"] = write_text(odb, json.dumps(extra, sort_keys=True).encode())
    return _written(trees, entries)


def read_index(trees: Trees, tree: ObjectId) -> IndexImage:
    """The image that ``write_index`` stored."""
    stored = trees.stored(tree)
    if b"raw" in stored:
        return IndexImage(0, (), None, read_text(trees.odb, stored[b"raw"][1]))
    flags = _read_flags(trees, stored)
    items: list[IndexItem] = []
    for stage in range(4):
        if b"%d" % stage in stored:
            for path, (mode, oid) in _files(trees, stored[b"%d" % stage][1]):
                items.append(IndexItem(path, stage, mode, oid, flags.get((stage, path), 0) if flags else 0))
    items.sort()
    extra = json.loads(read_text(trees.odb, stored[b"extra"][1]))
    reuc = extra["reuc"]
    return IndexImage(extra["version"], tuple(items), None if reuc is None else bytes.fromhex(reuc))


class _StageTree:
    """Writes the trees of one stage while entries come in path order; only the directories on the way to the newest are held."""

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self._names: list[bytes] = []  # of the directories that are open, outermost first
        self._open: list[dict[bytes, Entry]] = [{}]
        self._directory = b""  # the innermost, with its slash

    def add(self, path: bytes, mode: int, oid: ObjectId) -> None:
        at = path.rfind(b"/") + 1
        if path[:at] != self._directory:
            self._enter(path[:at])
        entries = self._open[-1]
        name = path[at:]
        if mode not in _MODES or oid == NULL_ID or name in entries:
            raise IndexOdd(f"the index entry {path!r} cannot be kept in a tree")
        entries[name] = (mode, oid)

    def finish(self) -> ObjectId | None:
        self._leave(0)
        return self._close(self._open.pop())

    def _enter(self, directory: bytes) -> None:
        wanted = directory.split(b"/")[:-1]
        shared = 0
        for name, other in zip(self._names, wanted, strict=False):
            if name != other:
                break
            shared += 1
        self._leave(shared)
        for name in wanted[shared:]:
            if name in self._open[-1]:
                raise IndexOdd(f"the index holds {directory!r} after a file of that name, or out of order")
            self._names.append(name)
            self._open.append({})
        self._directory = directory

    def _leave(self, depth: int) -> None:
        while len(self._names) > depth:
            tree = self._close(self._open.pop())
            name = self._names.pop()
            if tree is not None:
                self._open[-1][name] = (TREE, tree)

    def _close(self, entries: dict[bytes, Entry]) -> ObjectId | None:
        names = encode_all(entries)
        if names != list(entries):
            entries = dict(zip(names, entries.values(), strict=True))
        return self._trees.changed(None, entries)


def _plain(entries: Iterable[Any]) -> Iterator[tuple[bytes, int, int, ObjectId, int]]:
    entries = tuple(entries)
    if all(isinstance(entry, tuple) for entry in islice(entries, 1)):
        return map(itemgetter(0, 1, 2, 3, 4), entries)
    return map(attrgetter(*_FIELDS), entries)


def _files(trees: Trees, tree: ObjectId) -> Iterator[tuple[bytes, Entry]]:
    """Path and entry of every file below a stage's tree, in no order to rely on."""
    waiting = [(b"", tree)]
    while waiting:
        prefix, oid = waiting.pop()
        for name, entry in trees.entries(oid).items():
            path = prefix + decode(name)
            if entry[0] == TREE:
                waiting.append((path + b"/", entry[1]))
            else:
                yield path, entry


def _read_flags(trees: Trees, stored: Entries) -> dict[tuple[int, bytes], int]:
    if b"flags" not in stored:
        return {}
    flags: dict[tuple[int, bytes], int] = {}
    for line in read_text(trees.odb, stored[b"flags"][1]).split(b"\n")[:-1]:
        stage, bits, path = line.split(b" ", 2)
        flags[int(stage), decode_path(path)] = int(bits, 16)
    return flags


def _written(trees: Trees, entries: Entries) -> ObjectId:
    tree = trees.changed(None, entries)
    assert tree is not None
    return tree
