from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safety.plumbing.odb import ObjectStore
from safety.store.chunks import CHUNKS, LARGEST_BLOB, LARGEST_CHUNK, LARGEST_GROUP, SMALLEST_CHUNK, cut, read_text, write_text
from safety.store.trees import FILE, TREE, parse_entries, parse_tree
from tests.store.bare import Counted, fsck

BOUND = 16_000  # new bytes an edit of one line may add, uncompressed


def log_lines(count: int, chance: random.Random) -> list[bytes]:
    who = b"A U Thor <author@example.org> 17000%05d +0200\tcommit: the %dth change, %s\n"
    return [
        b"%040x %040x " % (chance.getrandbits(160), chance.getrandbits(160)) + who % (n, n, b"x" * chance.randrange(60))
        for n in range(count)
    ]


def packed_refs(count: int, chance: random.Random) -> list[bytes]:
    head = b"# pack-refs with: peeled fully-peeled sorted \n"
    return [head, *(b"%040x refs/remotes/origin/topic/%06d\n" % (chance.getrandbits(160), number) for number in range(count))]


def fresh_bytes(odb: Counted, data: bytes) -> int:
    odb.reset()
    oid = write_text(odb, data)[1]
    added = odb.new_bytes
    assert read_text(odb, oid) == data
    return added


@pytest.mark.parametrize("size", [0, 1, LARGEST_BLOB - 1, LARGEST_BLOB])
def test_small_text_is_a_blob(odb: ObjectStore, size: int) -> None:
    """Up to 16 kB a text is stored as git stores it."""
    mode, oid = write_text(odb, b"x" * size)
    assert mode == FILE and odb.blob(oid) == b"x" * size and read_text(odb, oid) == b"x" * size


@pytest.mark.parametrize(
    "data",
    [
        b"x" * (LARGEST_BLOB + 1),  # no line end at all
        b"\n" * 100_000,
        b"one line\n" * 20_000,
        (b"y" * 9000 + b"\n") * 30,
        bytes(range(256)) * 400,
        b"x" * 50_000 + b"\n" + b"short\n" * 5000,
    ],
)
def test_big_text_comes_back(odb: ObjectStore, data: bytes) -> None:
    """Above, it is a tree of chunks within their bounds, whatever its lines look like."""
    mode, oid = write_text(odb, data)
    assert mode == TREE and list(parse_entries(odb.tree(oid))) == [CHUNKS]
    assert read_text(odb, oid) == data
    chunks = list(cut(data))
    assert b"".join(chunks) == data
    assert all(SMALLEST_CHUNK <= len(chunk) <= LARGEST_CHUNK for chunk in chunks[:-1]) and 0 < len(chunks[-1]) <= LARGEST_CHUNK


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=300), st.integers(1, 400)), min_size=1, max_size=12))
def test_any_text_comes_back(odb: ObjectStore, runs: list[tuple[bytes, int]]) -> None:
    """Reading gives the bytes that were written, whichever form they took."""
    data = b"".join(piece * count for piece, count in runs)
    assert read_text(odb, write_text(odb, data)[1]) == data
    assert b"".join(cut(data)) == data


def test_equal_texts_have_equal_ids(odb: ObjectStore, chance: random.Random) -> None:
    """The form depends on the content only, not on what was stored before."""
    lines = log_lines(500, chance)
    whole = write_text(odb, b"".join(lines))
    write_text(odb, b"".join(lines[:250]))
    assert write_text(odb, b"".join(lines)) == whole


def test_appending_to_a_log_adds_little(own_odb: Counted, chance: random.Random) -> None:
    """One more line in a 5 MB log costs less than 16 kB of new objects, every time."""
    lines = log_lines(27_000, chance)
    text = b"".join(lines)
    assert len(text) > 5_000_000
    write_text(own_odb, text)
    for line in log_lines(40, chance):
        text += line
        assert fresh_bytes(own_odb, text) < BOUND


def test_changing_a_line_adds_little(own_odb: Counted, chance: random.Random) -> None:
    """One other line in a 3 MB packed-refs file costs less than 16 kB nearly always, and never much more.

    Cuts near an edit are found again after a line or two; a bad place can need a third or fourth chunk.
    """
    lines = packed_refs(42_000, chance)
    assert sum(map(len, lines)) > 3_000_000
    write_text(own_odb, b"".join(lines))
    added = []
    for _ in range(60):
        edited = list(lines)
        at = chance.randrange(1, len(lines))
        edited[at : at + chance.choice((0, 1, 1))] = chance.choice(([], [b"%040x refs/heads/other\n" % chance.getrandbits(160)]))
        added.append(fresh_bytes(own_odb, b"".join(edited)))
    added.sort()
    assert added[len(added) // 2] < 12_000
    assert added[int(len(added) * 0.9)] < BOUND
    assert added[-1] < 3 * BOUND


def test_chunks_are_of_the_intended_size(own_odb: Counted, chance: random.Random) -> None:
    """About 4 kB a chunk and 48 chunks a group, so that a group's list costs no more than a chunk."""
    for lines in (log_lines(20_000, chance), packed_refs(40_000, chance)):
        text = b"".join(lines)
        chunks = list(cut(text))
        assert 3000 < len(text) / len(chunks) < 5000
        _, listed = parse_entries(own_odb.tree(write_text(own_odb, text)[1]))[CHUNKS]
        sizes = [len(parse_tree(own_odb.tree(group))) for _, _, group in parse_tree(own_odb.tree(listed))]
        assert max(sizes) <= LARGEST_GROUP and 20 < sum(sizes) / len(sizes) < 80
    assert fsck(own_odb) == b""
