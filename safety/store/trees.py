"""Git's tree objects as raw bytes: what git would write, byte for byte, without asking libgit2 whether it likes a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from safety.types import ObjectId

TreeItem: TypeAlias = tuple[int, bytes, ObjectId]  # mode, name, id
Entry: TypeAlias = tuple[int, ObjectId]  # mode, id
Entries: TypeAlias = dict[bytes, Entry]

TREE, FILE, EXECUTABLE, LINK, GITLINK = 0o040000, 0o100644, 0o100755, 0o120000, 0o160000

_ITEM = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)


class _Modes(dict[bytes, int]):
    def __missing__(self, text: bytes) -> int:
        return int(text, 8)


_MODES = _Modes({b"%o" % mode: mode for mode in (TREE, FILE, EXECUTABLE, LINK, GITLINK)})
_PREFIXES = {mode: b"%o " % mode for mode in (TREE, FILE, EXECUTABLE, LINK, GITLINK)}


def parse_tree(raw: bytes) -> list[TreeItem]:
    """The items of a tree object, in stored order."""
    modes = _MODES
    return [(modes[mode], name, oid) for mode, name, oid in _ITEM.findall(raw)]


def parse_entries(raw: bytes) -> Entries:
    """The items of a tree object by name, in stored order."""
    modes = _MODES
    return {name: (modes[mode], oid) for mode, name, oid in _ITEM.findall(raw)}


def serialize_tree(items: Iterable[TreeItem]) -> bytes:
    """The bytes of the tree object with these items, which may come in any order. Names must be unique."""
    return serialize_entries({name: (mode, oid) for mode, name, oid in items})


def serialize_entries(entries: Mapping[bytes, Entry]) -> bytes:
    """The bytes of the tree object with these entries."""
    # git sorts a directory as if its name ended in "/".
    keys = sorted([name + b"/" if entry[0] == TREE else name for name, entry in entries.items()])
    parts: list[bytes] = []
    for key in keys:
        name = key[:-1] if key[-1] == 47 else key
        mode, oid = entries[name]
        parts += (_PREFIXES[mode], name, b"\0", oid)
    return b"".join(parts)
