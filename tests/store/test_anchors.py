"""Anchors: what an operation names is in the store with its closure, stays there, and comes back without a fetch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import safety.store.anchors as anchoring
from safety.plumbing.odb import SourceObjects
from safety.store.anchors import anchor, anchors_of, bring_over, send_back
from safety.store.shallow import read_ids
from safety.store.storerefs import refs_below
from tests.store.storekit import Shelf, everything_in, picture_of_git_dir
from tests.support.repo import RepoBuilder
from tests.support.store import fsck


def forget_and_collect(repo: RepoBuilder) -> None:
    """The user (or the agent) makes git throw away all that no ref names."""
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")


def raw(*ids: str) -> list[bytes]:
    return [bytes.fromhex(oid) for oid in ids]


# ---- bring over


def test_new_commits_come_over_with_all_they_refer_to(shelf: Shelf, user: RepoBuilder) -> None:
    """Commits, trees, blobs and an annotated tag made since the seed arrive; the user's repository is not touched."""
    user.write("sub/deep/file", "deep\n")
    user.commit("second", a_txt="two\n")
    user.git("tag", "-a", "v1", "-m", "one")
    tag, head = user.git("rev-parse", "v1"), user.head()
    before = picture_of_git_dir(user)

    missing = shelf.bring(tag, head)

    assert missing == set()
    assert shelf.objects() == everything_in(user)
    assert picture_of_git_dir(user) == before


def test_ids_may_be_raw_and_what_is_there_costs_nothing(shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids come in as 20 bytes or in hexadecimal; for what the store has neither the user's objects nor git are asked."""
    monkeypatch.setattr(anchoring, "_Carrier", None)

    assert bring_over(shelf.git, shelf.odb, shelf.root, shelf.objects_dir, raw(user.head())) == frozenset()
    assert shelf.bring(user.head()) == set()


def test_a_big_closure_is_carried_by_git(shelf: Shelf, user: RepoBuilder) -> None:
    """More objects than the limit arrive as a pack, the same objects as in process."""
    for number in range(2100):
        (user.root / f"f{number}").write_text(f"{number}\n")
    user.commit("many")

    missing = shelf.bring(user.head())

    assert missing == set()
    assert int(shelf.plain("count-objects").split()[0]) < 100
    assert shelf.has_history(user.head())


def test_a_big_blob_is_carried_by_git(shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a big blob nor its commit passes through our memory; both arrive."""
    monkeypatch.setattr(anchoring, "BIGGEST_IN_PROCESS", 1000)
    monkeypatch.setattr(shelf.odb, "write", None)
    user.write("big", b"x" * 2000)
    user.commit("big")

    assert shelf.bring(user.head()) == set()
    assert shelf.has_history(user.head())


def test_what_the_user_lacks_is_reported_and_the_rest_comes(shelf: Shelf, user: RepoBuilder) -> None:
    """A blob that is gone from the user's repository does not keep its commit from being brought over."""
    user.write("b.txt", "will be lost\n")
    user.commit("second", a_txt="two\n")
    blob = user.git("rev-parse", "HEAD:b.txt")
    (user.root / ".git/objects" / blob[:2] / blob[2:]).unlink()

    missing = shelf.bring(user.head(), "ab" * 20)

    assert missing == {blob, "ab" * 20}
    assert user.head() in shelf.objects()
    assert user.git("rev-parse", "HEAD:a.txt") in shelf.objects()


@pytest.mark.parametrize("limit", [2000, 0])
def test_a_history_with_a_hole_is_carried_all_the_same(
    shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """A missing commit stops git's walk but not ours."""
    monkeypatch.setattr(anchoring, "MOST_IN_PROCESS", limit)
    lost = user.commit("second", a_txt="two\n")
    head = user.commit("third", a_txt="three\n")
    (user.root / ".git/objects" / lost[:2] / lost[2:]).unlink()

    assert shelf.bring(head) == {lost}
    assert head in shelf.objects()


@pytest.mark.parametrize("limit", [0, 2000])
def test_replaced_objects_come_as_they_are(shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """A commit that the user replaced by another comes over with its own tree, by either way. Rule: no replacing in our calls."""
    monkeypatch.setattr(anchoring, "MOST_IN_PROCESS", limit)
    first = user.head()
    second = user.commit("second", a_txt="two\n")
    user.git("replace", second, first)

    assert shelf.bring(second) == set()
    assert shelf.has_history(second)


def test_gitlinks_are_not_followed(shelf: Shelf, user: RepoBuilder) -> None:
    """A submodule's commit is not an object of this repository and is not missed."""
    user.git("update-index", "--add", "--cacheinfo", "160000," + "ab" * 20 + ",sub")
    user.git("commit", "-q", "-m", "gitlink")

    assert shelf.bring(user.head()) == set()


def test_without_a_complete_seed_presence_proves_nothing(tmp_path: Path, user: RepoBuilder) -> None:
    """A commit that a broken-off seeding left in the store without its tree is completed."""
    shelf = Shelf(tmp_path / "new", user)
    _, data = SourceObjects(shelf.objects_dir).read(bytes.fromhex(user.head()))
    shelf.odb.write("commit", data)

    assert shelf.bring(user.head()) == set()
    assert shelf.has_history(user.head())


def test_nothing_is_fetched_from_a_partial_clones_remote(tmp_path: Path, user: RepoBuilder, env: dict[str, str]) -> None:
    """New commits of a blobless clone come over; the blobs that only the remote has are reported, by either way of carrying."""
    user.git("config", "uploadpack.allowFilter", "true")
    user.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{user.root}", str(tmp_path / "clone"))
    clone = RepoBuilder(tmp_path / "clone", env, init=False)
    shelf = Shelf(tmp_path / "s", clone)
    shelf.seed()
    old_blob = user.git("rev-parse", "HEAD:a.txt")
    user.write("x.txt", "x\n")
    user.commit("more")
    clone.git("fetch", "-q")
    new = clone.git("rev-parse", "origin/main")
    packs_before = sorted((clone.root / ".git/objects/pack").iterdir())

    missing = shelf.bring(new)

    assert missing == {user.git("rev-parse", "HEAD:x.txt"), old_blob}
    assert missing.isdisjoint(shelf.objects())
    assert new in shelf.objects()
    assert sorted((clone.root / ".git/objects/pack").iterdir()) == packs_before


def test_a_shallow_clone_that_is_deepened_is_followed(tmp_path: Path, user: RepoBuilder, env: dict[str, str]) -> None:
    """After `fetch --unshallow` the store gets the older history and forgets that it ended."""
    for number in range(3):
        user.commit(f"more {number}", a_txt=f"{number}\n")
    user.git("clone", "-q", "--depth=2", f"file://{user.root}", str(tmp_path / "clone"))
    clone = RepoBuilder(tmp_path / "clone", env, init=False)
    shelf = Shelf(tmp_path / "s", clone)
    shelf.seed()
    assert shelf.bring(clone.head()) == set()
    assert len(read_ids(shelf.git_dir / "shallow")) == 1

    clone.git("fetch", "-q", "--unshallow")
    assert shelf.bring(clone.head()) == set()

    assert read_ids(shelf.git_dir / "shallow") == frozenset()
    assert shelf.plain("rev-list", "--count", clone.head()) == "4"
    fsck(shelf.git_dir)


def test_a_history_cut_shorter_by_the_user_stays_whole_in_the_store(
    tmp_path: Path, user: RepoBuilder, env: dict[str, str]
) -> None:
    """`fetch --depth=1` in a full clone does not cut what the store already has."""
    for number in range(3):
        user.commit(f"more {number}", a_txt=f"{number}\n")
    user.git("clone", "-q", f"file://{user.root}", str(tmp_path / "clone"))
    clone = RepoBuilder(tmp_path / "clone", env, init=False)
    shelf = Shelf(tmp_path / "s", clone)
    shelf.seed()

    clone.git("fetch", "-q", "--depth=1")
    assert (clone.root / ".git/shallow").exists()
    assert shelf.bring(clone.head()) == set()

    assert shelf.plain("rev-list", "--count", clone.head()) == "4"


# ---- anchor


def test_anchored_objects_survive_a_prune_of_the_store(shelf: Shelf, user: RepoBuilder) -> None:
    """Commits, an annotated tag, a tree and a blob stay when git collects the store; without an anchor they would not."""
    user.commit("second", a_txt="two\n")
    user.git("tag", "-a", "v1", "-m", "one")
    blob = user.git("hash-object", "-w", "--stdin", input="only a blob\n")
    tag, head, tree = user.git("rev-parse", "v1"), user.head(), user.git("rev-parse", "HEAD^{tree}")
    shelf.bring(tag, head, blob)

    anchor(shelf.odb, "c", raw(tag, head, blob, tree))
    shelf.plain("repack", "-adq")
    shelf.plain("prune", "--expire=now")
    shelf.odb.refresh()

    assert {tag, head, blob, tree} <= shelf.objects()
    assert shelf.has_history(head)
    assert sorted(refs_below(shelf.git_dir, "refs/safety/keep/")) == sorted(
        f"refs/safety/keep/{oid}" for oid in (tag, blob, tree)
    )
    fsck(shelf.git_dir)


def test_anchors_grow_by_what_is_new(shelf: Shelf, user: RepoBuilder) -> None:
    """Each anchor has the one before as first parent and only new ids beside; known ids make no new anchor."""
    first = user.head()
    second = user.commit("second", a_txt="two\n")
    shelf.bring(second)

    one = anchor(shelf.odb, "c", raw(first))
    same = anchor(shelf.odb, "c", raw(first))
    two = anchor(shelf.odb, "c", [first.encode(), second.encode()])

    assert one == same and one is not None and two is not None
    assert shelf.odb.read_commit(two).parents == (one, bytes.fromhex(second))
    assert anchors_of(shelf.odb, two) == set(raw(first, second))


def test_the_list_of_known_ids_is_rebuilt_when_it_is_not_this_chains(shelf: Shelf, user: RepoBuilder) -> None:
    """A cache that is torn, outdated or gone is made again from the anchors."""
    second = user.commit("second", a_txt="two\n")
    shelf.bring(second)
    head = anchor(shelf.odb, "c", raw(second))
    cache = shelf.git_dir / "anchors/c"
    for damage in (b"", cache.read_bytes()[:-3], b"x" * 48):
        cache.write_bytes(damage)
        assert anchor(shelf.odb, "c", raw(second)) == head


def test_thousands_of_tags_become_packed_refs(shelf: Shelf, user: RepoBuilder) -> None:
    """Many keep refs are written at once, git reads them, and a later single one goes beside."""
    head = user.head()
    tags = [
        user.git("mktag", input=f"object {head}\ntype commit\ntag v{number}\ntagger D <d@e> {number} +0000\n\nx\n")
        for number in range(20)
    ]
    shelf.bring(*tags)

    anchor(shelf.odb, "c", raw(*tags))
    anchor(shelf.odb, "c", raw(user.git("rev-parse", "HEAD^{tree}")))

    assert len(shelf.plain("for-each-ref", "refs/safety/keep").splitlines()) == 21
    assert not (shelf.git_dir / f"refs/safety/keep/{tags[0]}").exists()
    assert (shelf.git_dir / "packed-refs").exists()
    fsck(shelf.git_dir)


def test_what_the_store_lacks_is_not_anchored(shelf: Shelf, user: RepoBuilder) -> None:
    """An id without an object makes no ref that does not resolve."""
    assert anchor(shelf.odb, "c", [b"ab" * 20]) is None
    assert shelf.plain("for-each-ref") == ""


# ---- send back


def test_send_back_restores_collected_history_as_one_pack(shelf: Shelf, user: RepoBuilder) -> None:
    """A branch that was deleted and collected comes back with one new pack, holding only what was missing."""
    base = user.head()
    user.git("checkout", "-q", "-b", "feature")
    user.write("new/file", "new\n")
    gone = user.commit("feature work", a_txt="feature\n")
    shelf.bring(gone)
    user.git("checkout", "-q", "main")
    user.git("branch", "-D", "feature")
    forget_and_collect(user)
    assert gone not in everything_in(user)
    before = everything_in(user)

    missing = send_back(shelf.git, shelf.odb, shelf.git_dir, shelf.root, [gone.encode(), base.encode()])

    assert missing == frozenset()
    assert user.git("rev-list", "--objects", gone, f"^{base}").count("\n") + 1 == len(everything_in(user) - before)
    user.git("fsck", "--full")


def test_send_back_writes_nothing_when_nothing_is_missing(shelf: Shelf, user: RepoBuilder) -> None:
    """All there: not a file of the user's git directory changes."""
    second = user.commit("second", a_txt="two\n")
    user.git("reset", "-q", "--hard", "HEAD~1")
    shelf.bring(second)
    before = picture_of_git_dir(user)

    assert send_back(shelf.git, shelf.odb, shelf.git_dir, shelf.root, [second.encode(), user.head().encode()]) == frozenset()
    assert picture_of_git_dir(user) == before


def test_send_back_completes_a_commit_whose_tree_was_collected(shelf: Shelf, user: RepoBuilder) -> None:
    """That a commit is there does not prove that its tree is: what no ref reaches is looked at below too."""
    base = user.head()
    gone = user.commit("second", a_txt="two\n")
    tree = user.git("rev-parse", "HEAD^{tree}")
    shelf.bring(gone)
    user.git("reset", "-q", "--hard", base)
    (user.root / ".git/objects" / tree[:2] / tree[2:]).unlink()

    assert send_back(shelf.git, shelf.odb, shelf.git_dir, shelf.root, raw(gone)) == frozenset()
    assert tree in everything_in(user)


def test_send_back_mends_damage_below_refs_when_asked(shelf: Shelf, user: RepoBuilder) -> None:
    """After files below `objects` were deleted, what refs reach is looked for as well."""
    head = user.head()
    blob = user.git("rev-parse", "HEAD:a.txt")
    (user.root / ".git/objects" / blob[:2] / blob[2:]).unlink()

    assert send_back(shelf.git, shelf.odb, shelf.git_dir, shelf.root, raw(head)) == frozenset()
    assert blob not in everything_in(user)
    assert send_back(shelf.git, shelf.odb, shelf.git_dir, shelf.root, raw(head), trust_refs=False) == frozenset()
    assert blob in everything_in(user)


def test_send_back_says_what_nobody_has(shelf: Shelf, user: RepoBuilder) -> None:
    """An id that neither side has comes back."""
    assert send_back(shelf.git, shelf.odb, shelf.git_dir, shelf.root, [b"ab" * 20]) == {b"ab" * 20}


def test_send_back_fills_a_git_directory_that_is_laid_beside(shelf: Shelf, user: RepoBuilder, tmp_path: Path) -> None:
    """After `rm -rf .git` the objects go into a git directory beside, which is whole once it is renamed."""
    user.git("tag", "-a", "v1", "-m", "one")
    head, tag = user.commit("second", a_txt="two\n"), user.git("rev-parse", "v1")
    shelf.bring(head, tag)
    small_files = tmp_path / "small"
    shutil.copytree(user.root / ".git", small_files, ignore=shutil.ignore_patterns("objects"))
    shutil.rmtree(user.root / ".git")
    beside = user.root / ".git.safety-abc"
    shutil.copytree(small_files, beside)

    missing = send_back(shelf.git, shelf.odb, shelf.git_dir, shelf.root, raw(head, tag), laid_beside=beside)
    beside.rename(user.root / ".git")

    assert missing == frozenset()
    assert user.head() == head
    assert user.status() == ""
    user.git("fsck", "--full")
    assert [path.name for path in shelf.git_dir.iterdir() if path.name.startswith("tmp")] == []


def test_a_partial_clone_laid_back_still_is_one(tmp_path: Path, user: RepoBuilder, env: dict[str, str]) -> None:
    """The pack laid back for a partial clone is marked, so that git takes what it lacks for promised and not for lost."""
    user.git("config", "uploadpack.allowFilter", "true")
    user.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{user.root}", str(tmp_path / "clone"))
    clone = RepoBuilder(tmp_path / "clone", env, init=False)
    shelf = Shelf(tmp_path / "s", clone)
    shelf.seed()
    head = clone.head()
    beside = tmp_path / "beside"
    shutil.copytree(clone.root / ".git", beside, ignore=shutil.ignore_patterns("objects"))
    shutil.rmtree(clone.root / ".git")

    missing = send_back(shelf.git, shelf.odb, shelf.git_dir, shelf.root, raw(head), laid_beside=beside)
    beside.rename(clone.root / ".git")

    assert len(missing) == 1
    clone.git("fsck", "--full")
    assert clone.git("cat-file", "-p", "HEAD:a.txt") == "one"
