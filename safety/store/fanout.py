"""Directories as our trees hold them: a directory with very many entries is spread over 256 small trees, so that changing one
entry of 50,000 adds 10 kB and not 2 MB.

Such a directory's tree has the single entry ``%fan``, a tree of up to 16 trees named by the first hex digit of the sha1 of the
entry's name, each a tree of up to 16 by the second digit, which hold the entries. The form depends on the number of entries
alone, so equal directories have equal ids whatever happened before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from safety.plumbing.odb import ObjectStore
from safety.store.trees import TREE, Entries, Entry, parse_entries, serialize_entries
from safety.types import ObjectId

FAN = b"%fan"
LARGEST_PLAIN = 1000  # entries
CACHED_ENTRIES = 100_000

Difference = tuple[bytes, Entry | None, Entry | None]


class Trees:
    """Reads and writes directories with the fan-out out of sight. Remembers what it has parsed, up to a bound.

    Names here are encoded ones. A directory without entries is None, never the empty tree.
    """

    def __init__(self, odb: ObjectStore) -> None:
        self.odb = odb
        self._parsed: dict[ObjectId, Entries] = {}
        self._held = 0

    def stored(self, tree: ObjectId) -> Entries:
        """One tree object's entries as they are stored. The dict is shared: not to be changed."""
        entries = self._parsed.get(tree)
        if entries is None:
            entries = parse_entries(self.odb.tree(tree))
            if self._held > CACHED_ENTRIES:
                self._parsed.clear()
                self._held = 0
            self._parsed[tree] = entries
            self._held += len(entries) + 4
        return entries

    def get(self, tree: ObjectId | None, name: bytes) -> Entry | None:
        """The entry called ``name`` of a directory."""
        if tree is None:
            return None
        entries = self.stored(tree)
        if len(entries) == 1 and FAN in entries:
            for part in (FAN, *_digits(name)):
                entry = entries.get(part)
                if entry is None:
                    return None
                entries = self.stored(entry[1])
        return entries.get(name)

    def entries(self, tree: ObjectId | None) -> Entries:
        """All entries of a directory, in no order to rely on. The dict may be shared: not to be changed."""
        if tree is None:
            return {}
        stored = self._passing(tree)
        if not _is_fanned(stored):
            return stored
        found: Entries = {}
        for leaf in self._leaves(stored[FAN][1]):
            found.update(leaf)
        return found

    def changed(self, tree: ObjectId | None, changes: Mapping[bytes, Entry | None]) -> ObjectId | None:
        """The directory with some entries set, or removed where the entry is None."""
        changes = {name: entry for name, entry in changes.items() if self.get(tree, name) != entry}
        if not changes:
            return tree
        stored = self.stored(tree) if tree is not None else {}
        if _is_fanned(stored):
            return self._changed_fan(stored[FAN][1], changes)
        return self._write(_merged(stored, changes))

    def differences(self, old: ObjectId | None, new: ObjectId | None) -> Iterator[Difference]:
        """Each name whose entry differs between two directories, with both entries. What has equal ids is not read."""
        if old == new:
            return
        before = self.stored(old) if old is not None else {}
        after = self.stored(new) if new is not None else {}
        if _is_fanned(before) and _is_fanned(after):
            yield from self._fan_differences(before[FAN][1], after[FAN][1])
        else:
            yield from _differences(self.entries(old), self.entries(new))

    def _passing(self, tree: ObjectId) -> Entries:
        # For reading whole directories: what is read once only must not push out what is looked at again and again.
        return self._parsed.get(tree) or parse_entries(self.odb.tree(tree))

    def _leaves(self, fan: ObjectId) -> Iterator[Entries]:
        for _, half in self._passing(fan).values():
            for _, leaf in self._passing(half).values():
                yield self._passing(leaf)

    def _changed_fan(self, fan: ObjectId, changes: Mapping[bytes, Entry | None]) -> ObjectId | None:
        grouped: dict[bytes, dict[bytes, dict[bytes, Entry | None]]] = {}
        for name, entry in changes.items():
            first, second = _digits(name)
            grouped.setdefault(first, {}).setdefault(second, {})[name] = entry
        halves = dict(self.stored(fan))
        for first, group in grouped.items():
            leaves = dict(self.stored(halves[first][1])) if first in halves else {}
            for second, part in group.items():
                old = self.stored(leaves[second][1]) if second in leaves else {}
                _set(leaves, second, self._write_plain(_merged(old, part)))
            _set(halves, first, self._write_plain(leaves))
        if None in changes.values() and not self._has_many(halves):
            return self._write({name: entry for _, half in halves.values() for name, entry in self._half(half).items()})
        return self._write_plain({FAN: (TREE, self._write_some(halves))})

    def _half(self, half: ObjectId) -> Entries:
        return {name: entry for _, leaf in self.stored(half).values() for name, entry in self.stored(leaf).items()}

    def _has_many(self, halves: Entries) -> bool:
        count = 0
        for _, half in halves.values():
            for _, leaf in self.stored(half).values():
                count += len(self.stored(leaf))
                if count > LARGEST_PLAIN:
                    return True
        return False

    def _write(self, entries: Entries) -> ObjectId | None:
        if len(entries) <= LARGEST_PLAIN:
            return self._write_plain(entries)
        spread: dict[bytes, dict[bytes, Entries]] = {}
        for name, entry in entries.items():
            first, second = _digits(name)
            spread.setdefault(first, {}).setdefault(second, {})[name] = entry
        halves: Entries = {}
        for first, group in spread.items():
            leaves = {second: (TREE, self._write_some(leaf)) for second, leaf in group.items()}
            halves[first] = (TREE, self._write_some(leaves))
        return self._write_some({FAN: (TREE, self._write_some(halves))})

    def _write_plain(self, entries: Entries) -> ObjectId | None:
        return self._write_some(entries) if entries else None

    def _write_some(self, entries: Entries) -> ObjectId:
        return self.odb.write("tree", serialize_entries(entries))

    def _fan_differences(self, old: ObjectId, new: ObjectId) -> Iterator[Difference]:
        for _, half, other_half in _differences(self.stored(old), self.stored(new)):
            for _, leaf, other_leaf in _differences(self._optional(half), self._optional(other_half)):
                yield from _differences(self._optional(leaf), self._optional(other_leaf))

    def _optional(self, entry: Entry | None) -> Entries:
        return {} if entry is None else self.stored(entry[1])


def _is_fanned(stored: Entries) -> bool:
    return len(stored) == 1 and FAN in stored


def _digits(name: bytes) -> tuple[bytes, bytes]:
    digits = hashlib.sha1(name, usedforsecurity=False).hexdigest().encode()
    return digits[:1], digits[1:2]


def _merged(entries: Entries, changes: Mapping[bytes, Entry | None]) -> Entries:
    merged = dict(entries)
    for name, entry in changes.items():
        if entry is None:
            merged.pop(name, None)
        else:
            merged[name] = entry
    return merged


def _set(entries: Entries, name: bytes, tree: ObjectId | None) -> None:
    if tree is None:
        entries.pop(name, None)
    else:
        entries[name] = (TREE, tree)


def _differences(old: Entries, new: Entries) -> Iterator[Difference]:
    for name, entry in old.items():
        other = new.get(name)
        if other != entry:
            yield name, entry, other
    for name, entry in new.items():
        if name not in old:
            yield name, None, entry
