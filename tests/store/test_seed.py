"""The seed: whole, independent of the user's repository, and made without changing a byte or mtime in it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

import safety.store.seed as seeding
from safety.store.linked import linked_files, unshare_links
from safety.store.packs import packs
from safety.store.seed import create_store, is_complete
from tests.store.storekit import Shelf, everything_in, picture_of_git_dir, write_loose_blobs
from tests.support.repo import RepoBuilder
from tests.support.store import borrowed, fsck


@pytest.fixture
def user(tmp_path: Path, env: dict[str, str]) -> RepoBuilder:
    """A repository of three commits, one branch, one annotated tag and one stash."""
    repo = RepoBuilder(tmp_path / "work", env)
    for number in range(3):
        repo.commit(f"commit {number}", a_txt=f"content {number}\n", b_txt="same\n")
    repo.git("tag", "-a", "v1", "-m", "one")
    repo.git("branch", "other", "HEAD~1")
    repo.write("a.txt", "stashed\n")
    repo.git("stash")
    return repo


@pytest.fixture
def shelf(tmp_path: Path, user: RepoBuilder) -> Shelf:
    return Shelf(tmp_path, user)


def pack_all(repo: RepoBuilder) -> Path:
    """Packs everything; gives the pack."""
    repo.git("repack", "-adq")
    return next((repo.root / ".git/objects/pack").glob("*.pack"))


def no_reflinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeding, "_reflink", lambda out, source: False)


def test_create_store_is_private_and_bare_and_can_be_repeated(tmp_path: Path) -> None:
    """A new store is a bare repository only its owner can read, with raw attributes, no hooks, and no collection of its own."""
    git_dir = tmp_path / "stores/a.git"

    create_store(git_dir)
    create_store(git_dir)

    assert git_dir.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in git_dir.iterdir()) == ["HEAD", "config", "info", "objects", "refs"]
    assert (git_dir / "info/attributes").read_text() == "* -text -eol -filter -ident -working-tree-encoding\n"
    assert [path.name for path in git_dir.parent.iterdir()] == ["a.git"]
    fsck(git_dir)


def test_seed_takes_loose_and_packed_objects_and_touches_nothing(shelf: Shelf, user: RepoBuilder) -> None:
    """All objects are in the store; the user's git directory is byte for byte and mtime for mtime as before."""
    pack_all(user)
    user.commit("loose", c_txt="loose\n")
    before = picture_of_git_dir(user)

    report = shelf.seed()

    assert (report.complete, report.problem, report.packs) == (True, "", 1)
    assert report.loose > 0
    assert shelf.objects() == everything_in(user)
    assert picture_of_git_dir(user) == before
    assert borrowed(shelf.git_dir) == []
    assert is_complete(shelf.git_dir, shelf.objects_dir)
    fsck(shelf.git_dir)


def test_seed_survives_removal_of_the_users_git_directory(shelf: Shelf, user: RepoBuilder) -> None:
    """`rm -rf .git` takes nothing from the store, whether files were copied or linked."""
    pack_all(user)
    head, all_objects = user.head(), everything_in(user)
    shelf.seed(copy_budget=0)

    shutil.rmtree(user.root / ".git")

    assert shelf.objects() == all_objects
    assert shelf.has_history(head)
    fsck(shelf.git_dir)


def test_truncating_the_users_pack_does_not_touch_a_copy(
    shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`: > pack` in the user's repository leaves a copied seed whole."""
    no_reflinks(monkeypatch)
    pack, all_objects = pack_all(user), everything_in(user)
    report = shelf.seed()

    pack.chmod(0o644)
    pack.write_bytes(b"")

    assert report.linked_bytes == 0
    assert report.copied_bytes > 0
    assert shelf.objects() == all_objects
    fsck(shelf.git_dir)


def test_linked_files_are_listed_and_damage_through_the_link_is_seen(
    shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without reflinks and budget the seed is linked, and says so; a truncation by the user is found by checksum."""
    no_reflinks(monkeypatch)
    pack = pack_all(user)
    report = shelf.seed(copy_budget=0)
    listed = linked_files(shelf.git_dir)

    assert report.linked_bytes > 0
    assert {Path(file.name).suffix for file in listed} >= {".pack", ".idx"}
    assert all(file.is_sound(f"{shelf.git_dir}/objects/{file.name}") for file in listed)
    assert all(pack.is_shared for pack in packs(shelf.git_dir))

    pack.chmod(0o644)
    pack.write_bytes(b"")

    unsound = [file.name for file in listed if not file.is_sound(f"{shelf.git_dir}/objects/{file.name}")]
    assert unsound == [f"pack/{pack.name}"]


def test_unshare_replaces_links_by_copies_within_the_budget(
    shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When idle, links become files of our own; then the user may truncate theirs."""
    no_reflinks(monkeypatch)
    pack, all_objects = pack_all(user), everything_in(user)
    shelf.seed(copy_budget=0)
    before = picture_of_git_dir(user)

    none = unshare_links(shelf.git_dir, copy_budget=10)
    done = unshare_links(shelf.git_dir, copy_budget=1 << 20)

    assert (none.replaced, none.left > 0) == (0, True)
    assert (done.left, done.damaged) == (0, ())
    assert linked_files(shelf.git_dir) == []
    assert picture_of_git_dir(user) == before
    pack.chmod(0o644)
    pack.write_bytes(b"")
    assert shelf.objects() == all_objects
    fsck(shelf.git_dir)


def test_unshare_does_not_copy_what_the_user_has_damaged(
    shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared file whose content is no longer what was linked is reported, not copied."""
    no_reflinks(monkeypatch)
    pack = pack_all(user)
    shelf.seed(copy_budget=0)
    pack.chmod(0o644)
    pack.write_bytes(pack.read_bytes()[:-30] + b"x" * 30)

    done = unshare_links(shelf.git_dir, copy_budget=1 << 20)

    assert done.damaged == (f"pack/{pack.name}",)


def test_what_cannot_be_linked_is_copied(shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another file system, or where links to it are forbidden, even what is over the budget is copied."""
    pack_all(user)

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(fcntl, "ioctl", refused)

    report = shelf.seed(copy_budget=0)

    assert (report.complete, report.linked_bytes) == (True, 0)
    assert shelf.objects() == everything_in(user)


def test_seed_survives_a_collection_by_the_user(shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """History that the user throws away and collects stays in a linked seed."""
    no_reflinks(monkeypatch)
    pack_all(user)
    gone = user.head()
    shelf.seed(copy_budget=0)

    user.git("reset", "-q", "--hard", "HEAD~1")
    user.git("tag", "-d", "v1")
    user.git("stash", "clear")
    user.git("reflog", "expire", "--expire=now", "--all")
    user.git("gc", "-q", "--prune=now")

    assert gone not in everything_in(user)
    assert shelf.has_history(gone)
    fsck(shelf.git_dir)


def test_seed_never_takes_what_binds_or_describes_other_files(shelf: Shelf, user: RepoBuilder) -> None:
    """No keep files, bitmaps, multi-pack-index, commit-graph, temporary files or alternates arrive in the store."""
    pack = pack_all(user)
    user.git("repack", "-adbq")
    user.git("multi-pack-index", "write")
    user.git("commit-graph", "write")
    next((user.root / ".git/objects/pack").glob("*.pack")).with_suffix(".keep").touch()
    (pack.parent / "tmp_pack_abc").write_bytes(b"half")
    (pack.parent / "pack-half.pack").write_bytes(b"half")

    shelf.seed()

    names = {path.suffix or path.name for path in (shelf.git_dir / "objects/pack").iterdir()}
    assert names <= {".pack", ".idx", ".rev"}
    assert sorted(path.name for path in (shelf.git_dir / "objects/info").iterdir()) == []
    assert shelf.objects() == everything_in(user)


def test_seed_follows_alternates_of_alternates_and_borrows_nothing(tmp_path: Path, env: dict[str, str]) -> None:
    """A clone that shares with a clone that shares: the store has all objects, also when both donors are gone."""
    first = RepoBuilder(tmp_path / "first", env)
    first.commit("one", a_txt="one\n")
    first.git("clone", "-q", "--shared", str(first.root), str(tmp_path / "second"))
    second = RepoBuilder(tmp_path / "second", env, init=False)
    second.commit("two", b_txt="two\n")
    second.git("clone", "-q", "--shared", str(second.root), str(tmp_path / "third"))
    third = RepoBuilder(tmp_path / "third", env, init=False)
    head = third.commit("three", c_txt="three\n")
    shelf = Shelf(tmp_path, third)

    report = shelf.seed()

    assert report.complete
    assert borrowed(shelf.git_dir) == []
    shutil.rmtree(first.root)
    shutil.rmtree(second.root)
    assert shelf.has_history(head)
    fsck(shelf.git_dir)


def test_seed_of_a_shallow_clone_takes_its_end_over(tmp_path: Path, user: RepoBuilder, env: dict[str, str]) -> None:
    """A shallow clone's store ends where the clone does and is sound."""
    user.git("clone", "-q", "--depth=1", f"file://{user.root}", str(tmp_path / "clone"))
    clone = RepoBuilder(tmp_path / "clone", env, init=False)
    shelf = Shelf(tmp_path, clone)

    report = shelf.seed()

    assert report.complete
    assert (shelf.git_dir / "shallow").read_text().split() == (clone.root / ".git/shallow").read_text().split()
    assert shelf.has_history(clone.head())
    fsck(shelf.git_dir)


def test_seed_of_a_partial_clone_fetches_nothing(tmp_path: Path, user: RepoBuilder, env: dict[str, str]) -> None:
    """A blobless clone is seeded as it is; the objects that it lacks stay away."""
    user.git("config", "uploadpack.allowFilter", "true")
    user.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{user.root}", str(tmp_path / "clone"))
    clone = RepoBuilder(tmp_path / "clone", env, init=False)
    before = picture_of_git_dir(clone)
    shelf = Shelf(tmp_path, clone)

    report = shelf.seed()

    assert (report.complete, report.promisor) == (True, True)
    assert picture_of_git_dir(clone) == before
    assert clone.head() in shelf.objects()
    assert user.git("rev-parse", "HEAD:a.txt") not in shelf.objects()


def test_many_loose_objects_come_as_one_pack(tmp_path: Path, env: dict[str, str]) -> None:
    """20,000 loose objects do not become 20,000 files of the store."""
    user = RepoBuilder(tmp_path / "work", env)
    write_loose_blobs(user, 20_000)
    assert int(user.git("count-objects").split()[0]) == 20_000
    shelf = Shelf(tmp_path, user)

    report = shelf.seed()

    assert (report.complete, report.piped, report.loose) == (True, True, 20_000)
    assert shelf.objects() == everything_in(user)
    assert int(shelf.plain("count-objects").split()[0]) == 0


def test_seed_of_a_damaged_pack_is_said_and_not_taken(shelf: Shelf, user: RepoBuilder) -> None:
    """A pack cut short would answer for objects it cannot give, so it stays out and the seed is not called complete."""
    pack = pack_all(user)
    pack.chmod(0o644)
    pack.write_bytes(pack.read_bytes()[:100])

    report = shelf.seed()

    assert not report.complete
    assert "damaged" in report.problem
    assert packs(shelf.git_dir) == []


def test_seed_beside_repacks_is_complete_every_time(tmp_path: Path, user: RepoBuilder) -> None:
    """Seeding while the user's git repacks again and again never fails and never misses an object."""
    stop = threading.Event()

    def repack() -> None:
        while not stop.is_set():
            subprocess.run(["git", "repack", "-adfq"], cwd=user.root, env=user.env, check=True)

    repacker = threading.Thread(target=repack)
    repacker.start()
    try:
        for number in range(10):
            shelf = Shelf(tmp_path / str(number), user)
            report = shelf.seed()
            assert report.complete, report.problem
            assert shelf.has_history(user.head())
    finally:
        stop.set()
        repacker.join()


def test_a_vanishing_pack_makes_it_list_again(shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack that is collected between listing and taking is found again under its new name."""
    pack_all(user)
    user.commit("more", c_txt="more\n")
    take, state = seeding._Seeder._take_pack, {"first": True}

    def collected_meanwhile(self: object, folder: str, stem: str, size: int) -> None:
        if state.pop("first", None):
            pack_all(user)
        take(self, folder, stem, size)  # type: ignore[arg-type]

    monkeypatch.setattr(seeding._Seeder, "_take_pack", collected_meanwhile)

    report = shelf.seed()

    assert report.complete
    assert everything_in(user) <= shelf.objects()
    fsck(shelf.git_dir)


def test_a_repository_that_never_holds_still_is_read_by_git(
    shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When every listing was outdated, git itself packs all that the user's refs, logs and index reach."""
    pack_all(user)
    monkeypatch.setattr(seeding._Seeder, "_take_pack", lambda *args: None)

    report = shelf.seed()

    assert (report.complete, report.piped) == (True, True)
    assert shelf.has_history(user.head())
    assert shelf.has_history(user.git("rev-parse", "stash"))


def test_a_killed_seeding_is_taken_up_again(shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeding that dies between a pack and its index leaves a store that says so, and the next one completes it."""
    pack_all(user)
    take = seeding._Seeder._take

    def die_at_index(self: seeding._Seeder, source: str, name: str, copied: bool) -> None:
        if name.endswith(".idx"):
            raise KeyboardInterrupt
        take(self, source, name, copied)

    monkeypatch.setattr(seeding._Seeder, "_take", die_at_index)
    with pytest.raises(KeyboardInterrupt):
        shelf.seed()
    assert not is_complete(shelf.git_dir, shelf.objects_dir)
    monkeypatch.undo()

    assert shelf.seed().complete
    assert shelf.objects() == everything_in(user)
    fsck(shelf.git_dir)


def test_disk_full_is_a_report(shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """No room for the copy: the report says so, and no half file stays."""
    no_reflinks(monkeypatch)
    pack_all(user)

    def full(out: int, source: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(seeding, "copy_bytes", full)

    report = shelf.seed()

    assert (report.complete, report.problem) == (False, "disk-full")
    assert [path for path in (shelf.git_dir / "objects").rglob("*") if path.is_file()] == []


def test_a_pipe_called_like_a_pack_is_never_opened_for_reading(shelf: Shelf, user: RepoBuilder) -> None:
    """An agent's FIFO among the packs does not hang the seeding."""
    pack = pack_all(user)
    os.mkfifo(pack.parent / "pack-x.pack")
    (pack.parent / "pack-x.idx").write_bytes(b"\377tOc")

    report = shelf.seed()

    assert report.complete
    assert shelf.has_history(user.head())
