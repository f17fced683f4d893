from __future__ import annotations

import os
import random

import pytest

from safety.plumbing.odb import ObjectStore
from safety.store.fanout import FAN, LARGEST_PLAIN, Trees
from safety.store.trees import EXECUTABLE, FILE, GITLINK, LINK, TREE, Entries, Entry, parse_entries, parse_tree, serialize_tree
from safety.types import ObjectId
from tests.store.bare import Counted, fsck, git


def some_id(number: int) -> ObjectId:
    return number.to_bytes(20, "big")


def flat(count: int, start: int = 0) -> Entries:
    return {b"file%d" % number: (FILE, some_id(number + 1)) for number in range(start, start + count)}


def test_items_come_back_in_gits_order() -> None:
    """A directory sorts as if its name ended in a slash; ids may hold any byte, also ones that look like an entry."""
    tricky = b"\x00100644 a\x00bbbbbbbbbb"
    items = [
        (TREE, b"a", tricky),
        (FILE, b"a-b", some_id(1)),
        (LINK, b"a0", b"\n" * 20),
        (GITLINK, b"z", tricky),
        (EXECUTABLE, b"a.b", some_id(3)),
    ]
    raw = serialize_tree(items)
    assert [name for _, name, _ in parse_tree(raw)] == [b"a-b", b"a.b", b"a", b"a0", b"z"]
    assert sorted(parse_tree(raw)) == sorted(items)
    assert parse_entries(raw) == {name: (mode, oid) for mode, name, oid in items}
    assert serialize_tree(parse_tree(raw)) == raw
    assert parse_tree(b"") == [] and serialize_tree([]) == b""


def test_git_reads_what_we_write(own_odb: ObjectStore) -> None:
    """``ls-tree`` shows the same items, and ``mktree`` makes the same object of them."""
    blob = own_odb.write("blob", b"x")
    empty = own_odb.write("tree", b"")
    names = [bytes((number,)) + b"n" for number in range(1, 256) if number != 47]
    items = [(FILE, name, blob) for name in names] + [(TREE, name + b"d", empty) for name in names]
    tree = own_odb.write("tree", serialize_tree(items))
    listed = git(own_odb.git_dir, "ls-tree", "-z", tree.hex())
    assert [line.split(b"\t", 1)[1] for line in listed.split(b"\0")[:-1]] == [
        name for _, name, _ in parse_tree(own_odb.tree(tree))
    ]
    assert fsck(own_odb) == b""


def test_fan_out_begins_above_the_threshold(odb: ObjectStore) -> None:
    """1,000 entries are one plain tree, 1,001 are spread over three levels, and reading hides which it is."""
    trees = Trees(odb)
    plain, fanned = trees.changed(None, flat(LARGEST_PLAIN)), trees.changed(None, flat(LARGEST_PLAIN + 1))
    assert plain is not None and fanned is not None
    assert len(trees.stored(plain)) == LARGEST_PLAIN
    assert list(trees.stored(fanned)) == [FAN]
    assert Trees(odb).entries(plain) == flat(LARGEST_PLAIN)
    assert Trees(odb).entries(fanned) == flat(LARGEST_PLAIN + 1)
    for name in (b"file0", b"file999", b"file1000"):
        assert Trees(odb).get(fanned, name) == flat(LARGEST_PLAIN + 1)[name]
    assert Trees(odb).get(fanned, b"other") is None and Trees(odb).get(None, b"other") is None


def test_form_does_not_depend_on_the_way(odb: ObjectStore) -> None:
    """Growing and shrinking across the threshold, by one or by many, ends in the tree that is built at once."""
    trees = Trees(odb)
    full = flat(LARGEST_PLAIN + 1)
    at_once = {count: trees.changed(None, flat(count)) for count in (1, 999, 1000, 1001, 1002, 1500)}
    grown = trees.changed(at_once[1000], {b"file1000": full[b"file1000"]})
    assert grown == at_once[1001]
    assert trees.changed(grown, {b"file1000": None}) == at_once[1000]
    assert trees.changed(trees.changed(grown, {b"file1001": (FILE, some_id(1002))}), {b"file1001": None}) == at_once[1001]
    assert trees.changed(at_once[1500], {b"file%d" % number: None for number in range(1, 1500)}) == at_once[1]
    assert trees.changed(at_once[1], flat(1499, 1)) == at_once[1500]
    assert trees.changed(at_once[1500], dict.fromkeys(flat(1500))) is None
    # one out, one in: the number stays above, the form too
    moved = trees.changed(at_once[1001], {b"file0": None, b"other": (FILE, some_id(7))})
    assert moved == trees.changed(None, {**flat(1000, 1), b"other": (FILE, some_id(7))})


def test_random_changes_end_in_the_canonical_tree(odb: ObjectStore, chance: random.Random) -> None:
    """Any run of changes around the threshold ends in the tree of the entries, and differences are exact."""
    trees = Trees(odb)
    model = flat(990)
    tree = trees.changed(None, model)
    for _ in range(25):
        changes: dict[bytes, Entry | None] = {}
        for _ in range(chance.choice((1, 2, 30))):
            name = b"file%d" % chance.randrange(1100)
            changes[name] = (
                None if chance.random() < 0.45 else (chance.choice((FILE, EXECUTABLE, TREE)), some_id(chance.randrange(9)))
            )
        old, old_model = tree, dict(model)
        tree = Trees(odb).changed(tree, changes)
        for name, entry in changes.items():
            if entry is None:
                model.pop(name, None)
            else:
                model[name] = entry
        assert tree == trees.changed(None, model)
        assert trees.entries(tree) == model
        expected = {(name, old_model.get(name), model.get(name)) for name in old_model.keys() | model.keys()}
        assert set(Trees(odb).differences(old, tree)) == {item for item in expected if item[1] != item[2]}


def test_a_change_that_changes_nothing_writes_nothing(own_odb: Counted) -> None:
    """Setting what is there, or removing what is not, gives the same id and no new object."""
    trees = Trees(own_odb)
    for count in (3, 1200):
        tree = trees.changed(None, flat(count))
        own_odb.reset()
        assert trees.changed(tree, {b"file0": (FILE, some_id(1)), b"nothing": None}) == tree
        assert own_odb.new_objects == 0


def test_one_entry_of_50000_costs_little(own_odb: Counted) -> None:
    """A change in a huge directory writes four small trees and reads four."""
    tree = Trees(own_odb).changed(None, flat(50_000))
    own_odb.reset()
    changed = Trees(own_odb).changed(tree, {b"file25000": (FILE, some_id(5))})
    assert own_odb.new_objects == 4 and own_odb.new_bytes < 16_000
    assert own_odb.trees_read == 4
    own_odb.reset()
    assert [name for name, _, _ in Trees(own_odb).differences(tree, changed)] == [b"file25000"]
    assert own_odb.trees_read == 8
    own_odb.reset()
    assert Trees(own_odb).changed(changed, {b"file25000": None}) is not None
    assert own_odb.new_objects == 4 and own_odb.trees_read < 30


def test_differences_of_the_two_forms(odb: ObjectStore) -> None:
    """A plain and a fanned directory are compared by what they hold."""
    trees = Trees(odb)
    plain, fanned = trees.changed(None, flat(1000)), trees.changed(None, flat(1001))
    expected = (b"file1000", None, (FILE, some_id(1001)))
    assert list(trees.differences(plain, fanned)) == [expected]
    assert list(trees.differences(fanned, plain)) == [(b"file1000", expected[2], None)]
    assert len(list(trees.differences(None, fanned))) == 1001 and list(trees.differences(fanned, fanned)) == []


def test_the_cache_is_bounded(odb: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered does not grow with what is read."""
    monkeypatch.setattr("safety.store.fanout.CACHED_ENTRIES", 50)
    trees = Trees(odb)
    written = [trees.changed(None, {b"x": (FILE, os.urandom(20))}) for _ in range(100)]
    assert all(len(trees.stored(tree)) == 1 for tree in written if tree is not None)
    assert len(trees._parsed) < 20
