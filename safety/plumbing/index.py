"""Git's index file, read and written by our own code: versions 2, 3 and 4, split and sparse ones included.

Git's own plumbing cannot put back an intent-to-add entry, and libgit2 refuses split and sparse indexes, so an exact undo of
staging needs this module. ``parse_index`` always gives a plain, full list of entries; ``serialize_index`` always writes a plain
index file. Source: git's Documentation/gitformat-index.txt.

Two things a writer must know:

* Stat data that was *racy* in the index it came from (the file was changed in or after the second that index was written) stops
  being racy in a newer file, and git would then trust it. Give the new file the old one's mtime, or call ``forget_racy_stat``.
* A zeroed stat makes git compare the file's content once, nothing else.
"""

from __future__ import annotations

import errno
import hashlib
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from stat import S_ISREG
from typing import NamedTuple

from safety.faults import SafetyError
from safety.plumbing.pause import collector_paused

ASSUME_VALID = 0x8000
SKIP_WORKTREE = 0x4000
INTENT_TO_ADD = 0x2000

ZERO_STAT = bytes(40)
NULL_ID = bytes(20)

_EXTENDED = 0x4000  # in the first flag word on disk: a second flag word follows
_EXTENDED_BITS = SKIP_WORKTREE | INTENT_TO_ADD
_NAME_MASK = 0x0FFF
_DIRECTORY = 0o040000
_GITLINK = 0o160000
_SIGNATURE = b"DIRC"
_HEADER = struct.Struct(">4sII")
_ENTRY = struct.Struct(">40s20sH")
_EXTENDED_ENTRY = struct.Struct(">40s20sHH")
_WORD = struct.Struct(">H")
_PADDING = tuple(bytes(8 - length % 8) for length in range(8))

ReadTree = Callable[[bytes], bytes]
SharedIndex = Callable[[str], bytes]
CacheTree = dict[bytes, tuple[int, int, "bytes | None"]]


class IndexCorrupt(SafetyError):
    """The bytes are not an index file git would read."""

    code = "index-corrupt"


class IndexUnsupported(SafetyError):
    """The index uses something this module does not know, or lacks a part it refers to (shared index, tree)."""

    code = "index-unsupported"


class IndexEntry(NamedTuple):
    """One entry. ``flags``: bits of ASSUME_VALID, SKIP_WORKTREE, INTENT_TO_ADD. ``stat``: the 40 bytes ctime to size as stored.

    Equality looks at the stat data too; compare ``identity`` where that is noise. Entries sort in git's order.
    """

    path: bytes
    stage: int
    mode: int
    oid: bytes
    flags: int = 0
    stat: bytes = ZERO_STAT

    @property
    def identity(self) -> tuple[int, int, bytes, int]:
        """Stage, mode, object id and flags: what staging means, without the stat cache."""
        return self[1:5]

    @property
    def size(self) -> int:
        """The cached file size, modulo 2**32."""
        return int.from_bytes(self.stat[36:40], "big")

    @property
    def mtime(self) -> tuple[int, int]:
        """The cached modification time as seconds and nanoseconds."""
        return int.from_bytes(self.stat[8:12], "big"), int.from_bytes(self.stat[12:16], "big")


@dataclass(slots=True)
class IndexFile:
    """A whole index, joined and expanded, entries in git's order.

    ``resolve_undo`` and ``cache_tree`` are the raw REUC and TREE extensions. ``checksum`` is the trailing 20 bytes of the file
    read (null when git was told to skip it). ``was_split`` and ``was_sparse`` say what a written file would no longer be.
    """

    version: int
    entries: list[IndexEntry]
    resolve_undo: bytes | None = None
    cache_tree: bytes | None = None
    checksum: bytes = b""
    was_split: bool = False
    was_sparse: bool = False

    def groups(self) -> dict[bytes, tuple[IndexEntry, ...]]:
        """All stages of each path together, in index order: the unit that is kept or replaced as a whole."""
        found: dict[bytes, tuple[IndexEntry, ...]] = {}
        for entry in self.entries:
            path = entry[0]
            found[path] = (*found[path], entry) if path in found else (entry,)
        return found


# ---- reading ---------------------------------------------------------------------------------------------------------------


def parse_index(data: bytes, *, shared_index: SharedIndex | None = None, read_tree: ReadTree | None = None) -> IndexFile:
    """The index stored in ``data``.

    ``shared_index(hex)`` gives the bytes of ``sharedindex.<hex>``, wanted for a split index; ``read_tree(oid)`` gives raw tree
    bytes, wanted for a sparse one, whose directories become skip-worktree entries. Both may raise OSError, KeyError or a
    SafetyError for "not there".

    Raises IndexCorrupt, or IndexUnsupported.
    """
    with collector_paused():
        raw = _parse_raw(data)
        index = IndexFile(raw.version, raw.entries, raw.extensions.get(b"REUC"), raw.extensions.get(b"TREE"), raw.checksum)
        link = raw.extensions.get(b"link")
        sparse = b"sdir" in raw.extensions
        if link is not None and link[:20] != NULL_ID:
            base = _read_shared(link, shared_index)
            sparse = sparse or b"sdir" in base.extensions
            index.entries = _join(base.entries, raw.entries, link)
            index.was_split = True
        if sparse or any(entry[2] == _DIRECTORY for entry in index.entries):
            if not sparse:
                raise IndexCorrupt("the index has directory entries but is not marked sparse")
            index.entries = _expand(index.entries, read_tree)
            index.was_sparse = True
            # Its counts are those of the collapsed entries.
            index.cache_tree = None
        _check_order(index.entries)
    return index


class _Raw(NamedTuple):
    version: int
    entries: list[IndexEntry]
    extensions: dict[bytes, bytes]
    checksum: bytes


def _parse_raw(data: bytes) -> _Raw:
    """One file as it stands: nothing joined, nothing expanded."""
    if len(data) < _HEADER.size + 20:
        raise IndexCorrupt("the index file is too short")
    signature, version, count = _HEADER.unpack_from(data)
    if signature != _SIGNATURE:
        raise IndexCorrupt("not an index file (bad signature)")
    if version not in (2, 3, 4):
        raise IndexUnsupported(f"index version {version} is not known")
    checksum = data[-20:]
    if checksum != NULL_ID and hashlib.sha1(memoryview(data)[:-20]).digest() != checksum:
        if hashlib.sha256(memoryview(data)[:-32]).digest() == data[-32:]:
            raise IndexUnsupported("the index belongs to a sha256 repository")
        raise IndexCorrupt("the index file does not match its checksum")
    try:
        entries, end = _parse_packed(data, count) if version == 4 else _parse_padded(data, count)
    except (struct.error, IndexError, ValueError) as error:
        raise IndexCorrupt("the index file ends within an entry") from error
    return _Raw(version, entries, _parse_extensions(data, end), checksum)


def _parse_padded(data: bytes, count: int) -> tuple[list[IndexEntry], int]:
    """Entries of versions 2 and 3, and where they end."""
    # 100,000 turns of this loop are the cost of every capture that finds a changed index: no calls that can be spared.
    limit = len(data) - 20
    unpack, new, cls = _ENTRY.unpack_from, tuple.__new__, IndexEntry
    entries: list[IndexEntry] = []
    append = entries.append
    modes: dict[bytes, int] = {}
    offset = 12
    for _ in range(count):
        stat, oid, word = unpack(data, offset)
        name_at = offset + 62
        flags = 0
        if word & 0xC000:
            flags, name_at = _parse_flags(data, offset, word)
        length = word & 0x0FFF
        if length == 0x0FFF:  # or longer
            length = data.index(b"\0", name_at, limit) - name_at
        end = name_at + length
        # Padded with 1 to 8 NULs to a multiple of 8, counted from the entry's start.
        offset += (end - offset + 8) & -8
        raw_mode = stat[24:28]
        mode = modes.get(raw_mode)
        if mode is None:
            mode = modes[raw_mode] = int.from_bytes(raw_mode, "big")
        append(new(cls, (data[name_at:end], word >> 12 & 3, mode, oid, flags, stat)))
    if offset > limit:
        raise ValueError("entries run into the checksum")
    return entries, offset


def _parse_packed(data: bytes, count: int) -> tuple[list[IndexEntry], int]:
    """Entries of version 4, whose paths are written as a difference to the path before, and where they end."""
    limit = len(data) - 20
    unpack, new, cls = _ENTRY.unpack_from, tuple.__new__, IndexEntry
    entries: list[IndexEntry] = []
    append = entries.append
    find = data.index
    modes: dict[bytes, int] = {}
    offset = 12
    path = b""
    for _ in range(count):
        stat, oid, word = unpack(data, offset)
        flags = 0
        name_at = offset + 62
        if word & 0xC000:
            flags, name_at = _parse_flags(data, offset, word)
        strip = data[name_at]
        name_at += 1
        if strip & 0x80:
            strip, name_at = _parse_varint(data, name_at - 1)
        end = find(b"\0", name_at, limit)
        keep = len(path) - strip
        if keep < 0:
            raise ValueError("a path shortens the one before by more than its length")
        path = path[:keep] + data[name_at:end]
        offset = end + 1
        raw_mode = stat[24:28]
        mode = modes.get(raw_mode)
        if mode is None:
            mode = modes[raw_mode] = int.from_bytes(raw_mode, "big")
        append(new(cls, (path, word >> 12 & 3, mode, oid, flags, stat)))
    if offset > limit:
        raise ValueError("entries run into the checksum")
    return entries, offset


def _parse_flags(data: bytes, offset: int, word: int) -> tuple[int, int]:
    """Our flag bits of the entry at ``offset`` and where its name begins."""
    flags = word & ASSUME_VALID
    if not word & _EXTENDED:
        return flags, offset + 62
    extended: int = _WORD.unpack_from(data, offset + 62)[0]
    if extended & ~_EXTENDED_BITS:
        raise IndexUnsupported(f"unknown entry flags {extended:#06x} in the index")
    return flags | extended, offset + 64


def _parse_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Git's offset encoding, as in pack files: the number and where it ends."""
    byte = data[offset]
    number = byte & 0x7F
    while byte & 0x80:
        offset += 1
        byte = data[offset]
        number = (number + 1 << 7) | byte & 0x7F
        if number > len(data):
            raise ValueError("a path length is out of range")
    return number, offset + 1


def _parse_extensions(data: bytes, offset: int) -> dict[bytes, bytes]:
    limit = len(data) - 20
    extensions: dict[bytes, bytes] = {}
    while offset < limit:
        if offset + 8 > limit:
            raise IndexCorrupt("the index file ends within an extension")
        name = data[offset : offset + 4]
        end = offset + 8 + int.from_bytes(data[offset + 4 : offset + 8], "big")
        if end > limit:
            raise IndexCorrupt("the index file ends within an extension")
        if not 0x41 <= name[0] <= 0x5A and name not in (b"link", b"sdir"):
            raise IndexUnsupported(f"the index needs the unknown extension {name!r}")
        extensions[name] = data[offset + 8 : end]
        offset = end
    return extensions


def _check_order(entries: list[IndexEntry]) -> None:
    previous = b""
    previous_stage = 0
    for entry in entries:
        path = entry[0]
        if path <= previous and (path < previous or not path or not 0 < previous_stage < entry[1]):
            raise IndexCorrupt(f"entries of the index are out of order at {path!r}")
        previous = path
        previous_stage = entry[1]


# ---- split and sparse ------------------------------------------------------------------------------------------------------


def _read_shared(link: bytes, shared_index: SharedIndex | None) -> _Raw:
    if len(link) < 20:
        raise IndexCorrupt("the link extension is too short")
    name = link[:20].hex()
    if shared_index is None:
        raise IndexUnsupported("the index is split and its shared part is not at hand")
    try:
        data = shared_index(name)
    except (OSError, KeyError, SafetyError) as error:
        raise IndexUnsupported(f"the shared index {name} cannot be read") from error
    base = _parse_raw(data)
    if base.checksum != link[:20]:
        raise IndexCorrupt(f"the shared index {name} is another file than its name says")
    if base.extensions.get(b"link", NULL_ID)[:20] != NULL_ID:
        raise IndexCorrupt(f"the shared index {name} is itself split")
    return base


def _join(base: list[IndexEntry], own: list[IndexEntry], link: bytes) -> list[IndexEntry]:
    """``base`` with the deletions, replacements (nameless, first in ``own``) and additions of a split index applied."""
    deleted: list[int] = []
    replaced: list[int] = []
    if len(link) > 20:
        deleted, offset = _parse_ewah(link, 20, len(base))
        replaced, offset = _parse_ewah(link, offset, len(base))
        if offset != len(link):
            raise IndexCorrupt("garbage at the end of the link extension")
    if len(replaced) > len(own) or set(deleted) & set(replaced):
        raise IndexCorrupt("the link extension does not fit its index")
    joined: list[IndexEntry | None] = list(base)
    for position, entry in zip(replaced, own, strict=False):
        if entry.path:
            raise IndexCorrupt("a replacement in a split index has a name")
        joined[position] = entry._replace(path=base[position].path)
    for position in deleted:
        joined[position] = None
    by_key = {(entry[0], entry[1]): entry for entry in joined if entry is not None}
    for entry in own[len(replaced) :]:
        if not entry.path:
            raise IndexCorrupt("an added entry in a split index has no name")
        if entry.stage == 0:
            for stage in (1, 2, 3):
                by_key.pop((entry.path, stage), None)
        by_key[entry.path, entry.stage] = entry
    return sorted(by_key.values())


def _parse_ewah(data: bytes, offset: int, limit: int) -> tuple[list[int], int]:
    """Positions of the set bits of an EWAH bitmap, all below ``limit``, and where the bitmap ends.

    Source: git's ewah/ewah_bitmap.c and ewah/ewah_io.c.
    """
    if offset + 8 > len(data):
        raise IndexCorrupt("a bitmap of the link extension is cut short")
    words = int.from_bytes(data[offset + 4 : offset + 8], "big")
    end = offset + 8 + 8 * words + 4
    if end > len(data):
        raise IndexCorrupt("a bitmap of the link extension is cut short")
    buffer = struct.unpack_from(f">{words}Q", data, offset + 8)
    positions: list[int] = []
    base = at = 0
    while at < words:
        marker = buffer[at]
        at += 1
        run = (marker >> 1 & 0xFFFFFFFF) * 64
        literals = marker >> 33
        if marker & 1:
            if base + run > limit + 63:
                raise IndexCorrupt("a bitmap of the link extension names entries that do not exist")
            positions.extend(range(base, base + run))
        base += run
        for literal in buffer[at : at + literals]:
            while literal:
                low = literal & -literal
                positions.append(base + low.bit_length() - 1)
                literal ^= low
            base += 64
        at += literals
    if positions and positions[-1] >= limit:
        raise IndexCorrupt("a bitmap of the link extension names entries that do not exist")
    return positions, end


def _expand(entries: list[IndexEntry], read_tree: ReadTree | None) -> list[IndexEntry]:
    """Directory entries of a sparse index replaced by the files of their trees."""
    expanded: list[IndexEntry] = []
    for entry in entries:
        if entry[2] != _DIRECTORY:
            expanded.append(entry)
            continue
        if read_tree is None:
            raise IndexUnsupported("the index is sparse and its trees are not at hand")
        if not entry.path.endswith(b"/") or entry.stage:
            raise IndexCorrupt(f"bad directory entry {entry.path!r} in the sparse index")
        expanded += _expand_tree(entry.path, entry.oid, read_tree)
    expanded.sort()
    return expanded


def _expand_tree(prefix: bytes, oid: bytes, read_tree: ReadTree) -> Iterator[IndexEntry]:
    pending = [(prefix, oid)]
    while pending:
        prefix, oid = pending.pop()
        try:
            raw = read_tree(oid)
        except (OSError, KeyError, SafetyError) as error:
            raise IndexUnsupported(f"tree {oid.hex()} of the sparse index cannot be read") from error
        offset = 0
        while offset < len(raw):
            space = raw.find(b" ", offset)
            nul = raw.find(b"\0", space)
            octal = raw[offset:space]
            if space < 0 or nul < 0 or nul + 21 > len(raw) or not octal.isdigit() or octal.strip(b"01234567"):
                raise IndexCorrupt(f"tree {oid.hex()} of the sparse index is corrupt")
            mode = int(octal, 8)
            path = prefix + raw[space + 1 : nul]
            child = raw[nul + 1 : nul + 21]
            offset = nul + 21
            if mode == _DIRECTORY:
                pending.append((path + b"/", child))
            else:
                yield IndexEntry(path, 0, _canonical_mode(mode), child, SKIP_WORKTREE)


def _canonical_mode(mode: int) -> int:
    """What git makes of a tree's mode in the index (old trees hold 100664)."""
    if mode & 0o170000 == 0o100000:
        return 0o100755 if mode & 0o100 else 0o100644
    return mode


# ---- the cache tree --------------------------------------------------------------------------------------------------------


def parse_cache_tree(raw: bytes) -> CacheTree:
    """A raw TREE extension as ``{directory: (entry count, subtree count, tree id)}``, the root being ``b""``.

    The count is -1 and the id None where the tree is not known. Raises IndexCorrupt.
    """
    tree: CacheTree = {}
    # Open directories: prefix of the names below, and how many of those are still to come.
    stack: list[tuple[bytes, int]] = []
    offset = 0
    while offset < len(raw):
        nul = raw.find(b"\0", offset)
        line_end = raw.find(b"\n", nul)
        if nul < 0 or line_end < 0:
            raise IndexCorrupt("the cache tree is cut short")
        try:
            entry_count, subtree_count = map(int, raw[nul + 1 : line_end].split(b" "))
        except ValueError as error:
            raise IndexCorrupt("the cache tree holds a bad count") from error
        prefix = stack[-1][0] if stack else b""
        name = raw[offset:nul]
        if bool(stack) != bool(name) or (not stack and tree):
            raise IndexCorrupt("the cache tree holds a bad name")
        path = prefix + name
        offset = line_end + 1
        oid = None
        if entry_count >= 0:
            oid = raw[offset : offset + 20]
            offset += 20
            if offset > len(raw):
                raise IndexCorrupt("the cache tree is cut short")
        tree[path] = (entry_count, subtree_count, oid)
        if stack:
            stack[-1] = (prefix, stack[-1][1] - 1)
        stack.append((path + b"/" if path else b"", subtree_count))
        while stack and stack[-1][1] <= 0:
            stack.pop()
    if stack:
        raise IndexCorrupt("the cache tree is cut short")
    return tree


# ---- writing ---------------------------------------------------------------------------------------------------------------


def serialize_index(index: IndexFile) -> bytes:
    """The bytes of an index file that holds ``index``'s entries, sorted, with its REUC and TREE extensions if it has them.

    Version 4 stays 4; else 3 if an entry is skip-worktree or intent-to-add, 2 if none is. Whoever changed entries sets
    ``cache_tree`` to None first, or git would commit stale trees.

    Raises IndexCorrupt for entries that no index can hold (a path twice, an empty path, a NUL in a path, a directory).
    """
    with collector_paused():
        entries = sorted(index.entries)
        _check_order(entries)
        extended, heads = _entry_heads(entries)
        version = 4 if index.version == 4 else 3 if extended else 2
        parts = [_HEADER.pack(_SIGNATURE, version, len(entries))]
        parts += _packed_parts(entries, heads) if version == 4 else _padded_parts(entries, heads)
        for name, extension in ((b"TREE", index.cache_tree), (b"REUC", index.resolve_undo)):
            if extension is not None:
                parts += (name, len(extension).to_bytes(4, "big"), extension)
        data = b"".join(parts)
    return data + hashlib.sha1(data).digest()


def _entry_heads(entries: list[IndexEntry]) -> tuple[bool, list[bytes]]:
    """The fixed part of each entry, and whether any needs the second flag word (so version 3)."""
    pack = _ENTRY.pack
    heads: list[bytes] = []
    append = heads.append
    raw_modes: dict[int, bytes] = {}
    extended = False
    for path, stage, mode, oid, flags, stat in entries:
        raw_mode = raw_modes.get(mode)
        if raw_mode is None:
            raw_mode = raw_modes[mode] = _raw_mode(path, mode)
        if stat[24:28] != raw_mode:
            stat = _stat_with_mode(stat, raw_mode)
        length = len(path)
        if len(oid) != 20 or b"\0" in path:
            raise IndexCorrupt(f"bad path or object id of {path!r}")
        word = (length if length < _NAME_MASK else _NAME_MASK) | stage << 12 | flags & 0x8000  # noqa: FURB136 - min() is slow
        if flags & 0x6000:
            extended = True
            append(_EXTENDED_ENTRY.pack(stat, oid, word | _EXTENDED, flags & _EXTENDED_BITS))
        else:
            append(pack(stat, oid, word))
    return extended, heads


def _padded_parts(entries: list[IndexEntry], heads: list[bytes]) -> list[bytes]:
    padding = _PADDING
    return [head + entry[0] + padding[len(head) + len(entry[0]) & 7] for head, entry in zip(heads, entries, strict=True)]


def _packed_parts(entries: list[IndexEntry], heads: list[bytes]) -> list[bytes]:
    number = int.from_bytes
    parts: list[bytes] = []
    append = parts.append
    previous = b""
    for head, entry in zip(heads, entries, strict=True):
        path = entry[0]
        shortest = min(len(path), len(previous))
        differing = number(path[:shortest], "big") ^ number(previous[:shortest], "big")
        common = shortest - (differing.bit_length() + 7 >> 3)
        append(head + _varint(len(previous) - common) + path[common:] + b"\0")
        previous = path
    return parts


def _raw_mode(path: bytes, mode: int) -> bytes:
    if mode & 0o170000 not in (0o100000, 0o120000, _GITLINK):
        raise IndexCorrupt(f"mode {mode:o} of {path!r} cannot be in an index")
    return mode.to_bytes(4, "big")


def _stat_with_mode(stat: bytes, raw_mode: bytes) -> bytes:
    if len(stat) not in (0, 40):
        raise IndexCorrupt("stat data is not 40 bytes long")
    stat = stat or ZERO_STAT
    return stat[:24] + raw_mode + stat[28:]


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    encoded = [number & 0x7F]
    number >>= 7
    while number:
        number -= 1
        encoded.append(0x80 | number & 0x7F)
        number >>= 7
    return bytes(reversed(encoded))


def forget_racy_stat(entries: Iterable[IndexEntry], index_mtime_s: int) -> list[IndexEntry]:
    """``entries`` with the stat data zeroed where an index file of that mtime could not vouch for it.

    Git compares whole seconds unless built otherwise, so the second counts.
    """
    return [entry._replace(stat=ZERO_STAT) if entry.mtime[0] >= index_mtime_s else entry for entry in entries]


def changed(index: IndexFile, entries: Iterable[IndexEntry]) -> IndexFile:
    """``index`` holding ``entries`` instead, sorted, and without the cache tree that no longer fits."""
    return replace(index, entries=sorted(entries), cache_tree=None)


# ---- knowing that nothing changed ------------------------------------------------------------------------------------------


#: A file that is not there, also below what is no folder or has a name that no file can have (a `.git` file may say anything).
_NO_SUCH_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


def read_signature(path: bytes | os.PathLike[str]) -> tuple[int, int, int, bytes] | None:
    """Size, mtime (ns), inode and trailing checksum of the index file, None if there is none.

    Equal signatures mean an unchanged index. Every writer of git renames a new file into place, so the inode alone is nearly
    enough; the checksum covers reused inodes, the mtime an index written without checksum.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as fault:
        if fault.errno in _NO_SUCH_FILE:
            return None
        raise
    try:
        status = os.fstat(descriptor)
        if not S_ISREG(status.st_mode):
            return None
        tail = os.pread(descriptor, 20, max(0, status.st_size - 20))
    finally:
        os.close(descriptor)
    return status.st_size, status.st_mtime_ns, status.st_ino, tail
