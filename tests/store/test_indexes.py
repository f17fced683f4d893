from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safety.plumbing.index import ASSUME_VALID, INTENT_TO_ADD, SKIP_WORKTREE, parse_index
from safety.plumbing.odb import ObjectStore
from safety.store.indexes import IndexImage, IndexItem, IndexOdd, member_name, member_path
from safety.store.snapshot import Editor, Snapshot, changed_indexes, changes
from safety.store.trees import EXECUTABLE, FILE, GITLINK, LINK
from safety.types import ObjectId, Present
from tests.store.bare import Counted
from tests.support.repo import RepoBuilder

A, B = b"a" * 20, b"b" * 20


def stored(odb: ObjectStore, image: IndexImage | None, member: bytes = b"", tree: ObjectId | None = None) -> Snapshot:
    editor = Editor(odb, tree)
    editor.put_index(member, image)
    return Snapshot(odb, editor.finish())


def test_everything_staging_means_comes_back(odb: ObjectStore) -> None:
    """Stages, flags, gitlinks, names of any bytes, the version and the resolve-undo record."""
    items = [
        IndexItem(b"%", 0, FILE, A, 0),
        IndexItem(b".gitmodules", 0, FILE, A, 0),
        IndexItem(b"a\nb/c", 0, FILE, A, SKIP_WORKTREE),
        IndexItem(b"both", 1, FILE, A, 0),
        IndexItem(b"both", 2, EXECUTABLE, B, 0),
        IndexItem(b"both", 3, LINK, A, 0),
        IndexItem(b"d-x", 0, FILE, A, 0),
        IndexItem(b"d/e/f", 0, LINK, B, ASSUME_VALID | SKIP_WORKTREE),
        IndexItem(b"d0", 0, FILE, A, INTENT_TO_ADD),
        IndexItem(b"sub", 0, GITLINK, B, 0),
        IndexItem(b"theirs/x", 3, FILE, B, ASSUME_VALID),
    ]
    image = IndexImage(4, tuple(items), b"path\0100644\0\xff\n", None)
    snapshot = stored(odb, image)
    assert snapshot.index(b"") == image and snapshot.members() == [b""]


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.tuples(
            st.lists(st.sampled_from([b"a", b"b", b"a.b", b".git", b"%"]), min_size=1, max_size=3).map(b"/".join),
            st.integers(0, 3),
        ),
        st.tuples(
            st.sampled_from([FILE, EXECUTABLE, LINK, GITLINK]), st.sampled_from([A, B]), st.sampled_from([0, 0, ASSUME_VALID])
        ),
        max_size=12,
    )
)
def test_any_index_comes_back_or_is_refused(odb: ObjectStore, found: dict[tuple[bytes, int], tuple[int, ObjectId, int]]) -> None:
    """What comes back is what was put; only an index with a file and a directory of one name is refused."""
    items = tuple(sorted(IndexItem(path, stage, *rest) for (path, stage), rest in found.items()))
    is_odd = any((path[:end], stage) in found for path, stage in found for end in range(len(path)) if path[end : end + 1] == b"/")
    image = IndexImage(2, items)
    if is_odd:
        with pytest.raises(IndexOdd):
            stored(odb, image)
    else:
        assert stored(odb, image).index(b"") == image


@pytest.mark.parametrize(
    "items",
    [
        [(b"a", 0, FILE, A, 0), (b"a", 0, FILE, B, 0)],
        [(b"a", 0, FILE, A, 0), (b"a/b", 0, FILE, B, 0)],
        [(b"a", 0, FILE, A, 0), (b"a.c", 0, FILE, B, 0), (b"a/b", 0, FILE, B, 0)],
        [(b"a/x", 0, FILE, A, 0), (b"b", 0, FILE, B, 0), (b"a/y", 0, FILE, B, 0)],
        [(b"a", 0, 0o100664, A, 0)],
        [(b"a", 0, 0o040000, A, 0)],
        [(b"a", 0, FILE, bytes(20), 0)],
    ],
)
def test_an_index_no_tree_can_say_is_refused(odb: ObjectStore, items: list[tuple[bytes, int, int, bytes, int]]) -> None:
    """Nothing is lost in silence: the caller then keeps the bytes."""
    with pytest.raises(IndexOdd):
        stored(odb, IndexImage(2, tuple(items)))


def test_an_index_kept_as_bytes(odb: ObjectStore) -> None:
    """Small or big, and told from one with entries."""
    for data in (b"DIRC\0\0\0\x02 small", b"DIRC" + bytes(range(256)) * 500):
        assert stored(odb, IndexImage(0, (), None, data)).index(b"") == IndexImage(0, (), None, data)


def test_an_empty_index_is_not_a_missing_one(odb: ObjectStore) -> None:
    """A repository before its first ``add`` has no index; one after ``rm --cached .`` has an empty one."""
    empty = stored(odb, IndexImage(2, ()))
    assert empty.index(b"") == IndexImage(2, ()) and empty.index_id(b"") is not None
    gone = stored(odb, None, tree=empty.tree)
    assert gone.index(b"") is None and gone.members() == [] and gone.tree == Editor(odb, None).finish()


@pytest.mark.parametrize(
    "member", [b"", b"sub", b"a/b/.git/modules/x", b"%root", b"%2F", b"a%2Fb", b"a/b", b".git", b"/outside/repo", b"\xff\n"]
)
def test_members_have_names_of_their_own(odb: ObjectStore, member: bytes) -> None:
    """Each member's index is found under its path, whatever that is."""
    assert member_path(member_name(member)) == member
    others = [b"", b"a/b", b"a%2Fb", b"%root", b"%2F"]
    assert len({member_name(path) for path in {member, *others}}) == len({member, *others})
    snapshot = stored(odb, IndexImage(3, ((b"x", 0, FILE, A, 0),)), member)
    assert snapshot.members() == [member] and snapshot.index(member) is not None and snapshot.index(member + b"x") is None


def test_changed_indexes(odb: ObjectStore) -> None:
    """Only members whose index means something else are named, in both directions; files do not count."""
    one, other = IndexImage(2, ((b"a", 0, FILE, A, 0),)), IndexImage(2, ((b"a", 0, FILE, B, 0),))
    before = stored(odb, one, b"x/y", stored(odb, one).tree)
    after = stored(odb, other, b"x/y", before.tree)
    assert changed_indexes(odb, before.tree, after.tree) == changed_indexes(odb, after.tree, before.tree) == [b"x/y"]
    assert changed_indexes(odb, None, after.tree) == [b"", b"x/y"] and changed_indexes(odb, after.tree, after.tree) == []
    assert stored(odb, one, b"x/y", after.tree).tree == before.tree and changes(odb, before.tree, after.tree) == []
    editor = Editor(odb, before.tree)
    editor.put(b"file", Present("file", 0o644, A))
    editor.remove_index(b"never there")
    assert changed_indexes(odb, before.tree, editor.finish()) == []


def test_a_clean_index_shares_its_trees_with_the_files(own_odb: Counted) -> None:
    """Staged as on disk, the trees are those of ``work/`` and cost nothing more."""
    editor = Editor(own_odb, None)
    items = [(b"d%d/f%d" % (number // 10, number), 0, FILE, A, 0) for number in range(100)]
    for path, *_ in items:
        editor.put(path, Present("file", 0o644, A))
    tree = editor.finish()
    own_odb.reset()
    stored(own_odb, IndexImage(2, tuple(sorted(items))), tree=tree)
    assert own_odb.new_objects == 4  # extra, the member, the list of members, the snapshot


def test_many_flags_are_chunked(own_odb: Counted) -> None:
    """A sparse checkout of 20,000 entries: clearing one flag adds little."""
    items = [IndexItem(b"d%03d/file%d" % (number // 50, number), 0, FILE, A, SKIP_WORKTREE) for number in range(20_000)]
    items.sort()
    before = stored(own_odb, IndexImage(2, tuple(items)))
    own_odb.reset()
    items[7000] = items[7000]._replace(flags=0)
    after = stored(own_odb, IndexImage(2, tuple(items)), tree=before.tree)
    assert own_odb.new_bytes < 25_000
    assert after.index(b"") == IndexImage(2, tuple(items))


def test_a_real_index(repo: RepoBuilder, own_odb: Counted) -> None:
    """Of a repository in a merge conflict with an intent-to-add entry; entries as objects or as tuples; what git lists comes
    back."""
    repo.git("checkout", "-qb", "other")
    repo.commit("theirs", c_txt="theirs\n")
    repo.git("checkout", "-q", "-")
    repo.commit("ours", c_txt="ours\n")
    repo.git("merge", "other", check=False)
    repo.write("later.txt", "later\n")
    repo.git("add", "-N", "later.txt")
    index = parse_index(Path(repo.root, ".git/index").read_bytes())
    assert {entry.stage for entry in index.entries} == {0, 2, 3}

    as_objects = [SimpleNamespace(**entry._asdict()) for entry in index.entries]
    snapshots = [
        stored(own_odb, IndexImage(index.version, tuple(entries), index.resolve_undo)) for entries in (index.entries, as_objects)
    ]

    assert snapshots[0].tree == snapshots[1].tree
    image = snapshots[0].index(b"")
    assert image is not None and image.version == index.version
    assert [tuple(item) for item in image.entries] == [entry[:5] for entry in index.entries]
