"""Text that grows or changes a little at a time (logs, packed-refs, flag lists), kept in pieces so that a change adds only the
pieces it touches.

Up to 16 kB a text is a blob. Above, it is a tree with the single entry ``%chunks``: a tree of groups, each a tree of chunks,
which are blobs; the text is all of them in order. Cuts follow from the content alone: a chunk ends after a line whose checksum
is low for its length, so an edit moves the cuts near it and no others, and equal texts have equal ids. Names are numbers within
the group. Source: bup, restic.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from safety.plumbing.odb import ObjectStore
from safety.store.trees import FILE, TREE, Entries, Entry, parse_entries, parse_tree, serialize_entries
from safety.types import ObjectId

CHUNKS = b"%chunks"
LARGEST_BLOB = 16 << 10

# Appending a line adds at most one chunk, its group and the list of groups: below 16 kB together.
SMALLEST_CHUNK, USUAL_CHUNK, LARGEST_CHUNK = 1 << 10, 4 << 10, 8 << 10
SMALLEST_GROUP, USUAL_GROUP, LARGEST_GROUP = 16, 48, 96

_CUTS_PER_BYTE = (1 << 32) // (USUAL_CHUNK - SMALLEST_CHUNK)


def write_text(odb: ObjectStore, data: bytes) -> Entry:
    """Stores a text; gives the tree entry for it: a blob, or the tree that holds its chunks."""
    if len(data) <= LARGEST_BLOB:
        return FILE, odb.write("blob", data)
    chunks = [odb.write("blob", chunk) for chunk in cut(data)]
    groups = [odb.write("tree", _numbered(group, FILE)) for group in _grouped(chunks)]
    listed = odb.write("tree", _numbered(groups, TREE))
    return TREE, odb.write("tree", serialize_entries({CHUNKS: (TREE, listed)}))


def read_text(odb: ObjectStore, oid: ObjectId) -> bytes:
    """The text behind an id that ``write_text`` gave."""
    kind, data = odb.read(oid)
    if kind == "blob":
        return data
    _, listed = parse_entries(data)[CHUNKS]
    groups = parse_tree(odb.tree(listed))
    return b"".join([odb.blob(chunk) for _, _, group in groups for _, _, chunk in parse_tree(odb.tree(group))])


def is_chunked(entries: Entries) -> bool:
    """Whether a tree with these entries is a text in chunks and not a directory."""
    return len(entries) == 1 and CHUNKS in entries


def cut(data: bytes) -> Iterator[bytes]:
    """The chunks of a text, in order."""
    start, end = 0, len(data)
    while start < end:
        stop = _chunk_end(data, start) if end - start > LARGEST_CHUNK else end
        yield data[start:stop]
        start = stop


def _chunk_end(data: bytes, start: int) -> int:
    """Where the chunk that begins at ``start`` ends: after the first fitting line, else the best one, else at the limit."""
    limit = start + LARGEST_CHUNK
    best, best_at = 1 << 32, limit
    line = data.find(b"\n", start + SMALLEST_CHUNK - 1, limit) + 1
    while line:
        after = data.find(b"\n", line, limit) + 1
        if not after:
            break
        rank = zlib.crc32(data[line:after]) // (after - line)
        if rank < _CUTS_PER_BYTE:
            return after
        if rank < best:
            best, best_at = rank, after
        line = after
    return best_at


def _grouped(chunks: list[ObjectId]) -> Iterator[list[ObjectId]]:
    start = 0
    for at, oid in enumerate(chunks, 1):
        length = at - start
        low = int.from_bytes(oid[:4]) < (1 << 32) // (USUAL_GROUP - SMALLEST_GROUP)
        if length == LARGEST_GROUP or (length >= SMALLEST_GROUP and low):
            yield chunks[start:at]
            start = at
    if start < len(chunks):
        yield chunks[start:]


def _numbered(oids: list[ObjectId], mode: int) -> bytes:
    return serialize_entries({b"%06d" % number: (mode, oid) for number, oid in enumerate(oids)})
