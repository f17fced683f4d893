"""Purge: afterwards nothing in the store holds the content, and everything else is as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import safety.store.prune as pruning
import safety.store.seed as seeding
from safety.store.anchors import purged_ids
from safety.store.prune import PURGING, prune
from safety.store.purge import purge
from safety.store.repack import repack_loose
from safety.store.snapshot import Snapshot
from safety.types import Present, Unknown
from tests.store.storekit import Shelf
from tests.support.repo import RepoBuilder
from tests.support.store import blob_id, fsck

SECRET = "the secret 4711"


def contents_with(shelf: Shelf, text: str) -> list[str]:
    """Objects of the store, reachable or not, that contain the text; and files of the store that do."""
    found = [oid for oid in shelf.objects() if text.encode() in shelf.odb.read(bytes.fromhex(oid))[1]]
    for folder, _, names in os.walk(shelf.git_dir):
        found += [name for name in names if text.encode() in (Path(folder) / name).read_bytes()]
    return found


@pytest.mark.parametrize("packed", [False, True])
def test_purge_leaves_nothing_of_an_untracked_file(shelf: Shelf, user: RepoBuilder, packed: bool) -> None:
    """Every version that any operation held is gone, loose or packed; ids, order and all other content stay."""
    shelf.capture()
    for number in range(3):
        user.write("sub/.env", f"{SECRET} {number}\n")
        user.write("b.txt", f"b {number}\n")
        shelf.capture()
    user.remove("sub/.env")
    shelf.capture()
    if packed:
        repack_loose(shelf.git, shelf.odb, threshold=1)
    before = [(operation.id, operation.record) for operation in shelf.log.walk()]

    done = purge(shelf.git, shelf.odb, b"sub/.env")

    assert (done.operations, done.blobs, done.spared, done.in_history) == (3, 3, (), False)
    assert contents_with(shelf, SECRET) == []
    assert [(operation.id, operation.record) for operation in shelf.log.walk()] == before
    snapshots = [Snapshot(shelf.odb, operation.tree) for operation in shelf.log.walk()]
    assert isinstance(snapshots[1].state(b"sub/.env"), Unknown)
    assert [snapshot.read(b"b.txt") for snapshot in snapshots[1:4]] == [b"b 2\n", b"b 1\n", b"b 0\n"]
    assert isinstance(snapshots[4].state(b"a.txt"), Present)
    fsck(shelf.git_dir)


@pytest.mark.parametrize("linked", [False, True])
def test_purge_takes_the_content_out_of_the_seed(
    tmp_path: Path, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    """A committed secret goes from the store's packs, shared ones too; the user's repository is not touched and is named."""
    monkeypatch.setattr(seeding, "_reflink", lambda out, source: False)
    user.write("key", SECRET + " old\n")
    user.commit("oops")
    user.write("key", SECRET + " new\n")
    user.commit("oops again")
    user.git("repack", "-adq")
    pack = next((user.root / ".git/objects/pack").glob("*.pack"))
    shelf = Shelf(tmp_path, user)
    shelf.seed(copy_budget=0 if linked else 1 << 20)
    shelf.capture()
    content = pack.read_bytes()

    done = purge(shelf.git, shelf.odb, b"key")

    assert (done.blobs, done.in_history) == (2, True)
    assert contents_with(shelf, SECRET) == []
    assert pack.read_bytes() == content
    assert user.git("cat-file", "-p", "HEAD:key") == SECRET + " new"
    assert user.head() in shelf.objects()
    assert shelf.bring(user.git("rev-parse", "HEAD:key")) == {user.git("rev-parse", "HEAD:key")}
    assert contents_with(shelf, SECRET) == []


def test_content_that_another_path_names_is_spared(shelf: Shelf, user: RepoBuilder) -> None:
    """The same bytes under another name, in an operation or in a commit, are not the purged path's alone."""
    user.write("x", "shared with a snapshot\n")
    user.write("y", "shared with a snapshot\n")
    user.write("z", "one\n")
    shelf.capture()

    done_x = purge(shelf.git, shelf.odb, b"x")
    done_z = purge(shelf.git, shelf.odb, b"z")

    assert done_x.spared == (blob_id(b"shared with a snapshot\n"),)
    assert done_z.spared == (blob_id(b"one\n"),)
    snapshot = Snapshot(shelf.odb, next(shelf.log.walk()).tree)
    assert snapshot.read(b"y") == b"shared with a snapshot\n"
    assert isinstance(snapshot.state(b"x"), Unknown)
    fsck(shelf.git_dir)


def test_purge_of_a_directory_takes_all_below(shelf: Shelf, user: RepoBuilder) -> None:
    """All files below a directory go with it."""
    user.write("keys/a", SECRET + "a")
    user.write("keys/deep/b", SECRET + "b")
    user.write("keys2", "not below\n")
    shelf.capture()

    done = purge(shelf.git, shelf.odb, b"keys")

    assert done.blobs == 2
    assert contents_with(shelf, SECRET) == []
    assert Snapshot(shelf.odb, next(shelf.log.walk()).tree).read(b"keys2") == b"not below\n"


def test_purge_reaches_pinned_and_staged_content(shelf: Shelf, user: RepoBuilder) -> None:
    """A pin moves to the rewritten operation; a staged blob goes, its index entry still names it."""
    user.write("key", SECRET)
    user.git("add", "key")
    pinned = shelf.capture()
    shelf.odb.move_ref("refs/safety/pin/mine", None, pinned.oid)

    done = purge(shelf.git, shelf.odb, b"key")

    assert done.in_history
    assert contents_with(shelf, SECRET) == []
    moved = shelf.odb.ref("refs/safety/pin/mine")
    assert moved == shelf.log.head_id() != pinned.oid
    image = Snapshot(shelf.odb, shelf.log.read(moved or b"").tree).index(b"")
    assert image is not None
    assert b"key" in [entry.path for entry in image.entries]
    assert pinned.oid not in shelf.log.remembered()


def test_a_file_captured_again_after_a_purge_is_kept(shelf: Shelf, user: RepoBuilder) -> None:
    """Who goes on using the content has it covered again; no later prune takes it."""
    user.write("key", SECRET)
    shelf.capture()
    purge(shelf.git, shelf.odb, b"key")

    shelf.capture()
    prune(shelf.git, shelf.odb)

    assert Snapshot(shelf.odb, next(shelf.log.walk()).tree).read(b"key") == SECRET.encode()
    fsck(shelf.git_dir)


@pytest.mark.parametrize("step", ["_remove", "write_pack", "remove_pack"])
def test_a_killed_purge_is_finished_by_the_next_prune(
    tmp_path: Path, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Once the operations are rewritten, a kill leaves a note of what is still to go."""
    user.write("key", SECRET)
    user.commit("oops")
    user.git("repack", "-adq")
    shelf = Shelf(tmp_path, user)
    shelf.seed()
    shelf.capture()

    def killed(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pruning, step, killed)
    with pytest.raises(KeyboardInterrupt):
        purge(shelf.git, shelf.odb, b"key")
    monkeypatch.undo()
    assert len(purged_ids(shelf.git_dir, PURGING)) == 1

    prune(shelf.git, shelf.odb)

    assert contents_with(shelf, SECRET) == []


def test_purge_of_an_unknown_path_changes_nothing(shelf: Shelf) -> None:
    """Nothing there, nothing rewritten."""
    shelf.capture()
    head = shelf.log.head_id()

    done = purge(shelf.git, shelf.odb, b"nowhere")

    assert (done.operations, done.blobs) == (0, 0)
    assert shelf.log.head_id() == head
    fsck(shelf.git_dir)
