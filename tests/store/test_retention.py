"""Retention: what is forgotten, what a prune removes and never removes, and that repacking loses nothing and saves much."""

from __future__ import annotations

import os
import random
import shutil
import zlib
from pathlib import Path

import pytest

import safety.store.prune as pruning
import safety.store.seed as seeding
from safety.runtime.open import open_session
from safety.session import Call
from safety.store.anchors import anchor
from safety.store.oplog import OpLog, Record
from safety.store.packs import StoreBusy, alone, generation, packs, store_size, taking_part, write_pack, write_whole
from safety.store.retention import KeepRules, forget, prune, repack_loose, repack_packs, tidy
from safety.store.snapshot import Snapshot
from safety.store.storerefs import refs_below
from safety.types import Present
from tests.store.storekit import DAY_MS, Shelf
from tests.support.repo import RepoBuilder
from tests.support.store import fsck

KEEP_ALL = KeepRules(max_age_ms=10_000 * DAY_MS, max_bytes=1 << 40, min_free_percent=0, newest=1)
PLENTY = 1 << 50


def write_operation(shelf: Shelf, path: bytes, content: bytes) -> str:
    """An operation that sets one file; gives the blob's id."""
    oid = shelf.odb.write("blob", content)
    shelf.operation(lambda editor: editor.put(path, Present("file", 0o644, oid)))
    return oid.hex()


def ids(shelf: Shelf) -> list[str]:
    return [operation.id for operation in shelf.log.walk()]


def noise(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


# ---- forget


def test_forget_cuts_by_age_but_never_the_newest(shelf: Shelf) -> None:
    """Operations over 30 days old go, except the newest N; the log then ends there, for git too, and nothing was rewritten."""
    for number in range(6):
        write_operation(shelf, b"f", b"%d" % number)
        shelf.now_ms += 10 * DAY_MS
    before, head = ids(shelf), shelf.log.head_id()
    rules = KeepRules(max_age_ms=30 * DAY_MS, max_bytes=1 << 40, min_free_percent=0, newest=2)

    done = forget(shelf.git, shelf.odb, rules, shelf.now_ms)

    assert done.operations == 4
    assert ids(shelf) == before[:2]
    assert shelf.log.head_id() == head
    assert shelf.plain("rev-list", "--count", head.hex() if head else "") == "2"
    assert forget(shelf.git, shelf.odb, rules, shelf.now_ms).operations == 0
    oldest = list(shelf.log.walk())[-1]
    assert shelf.log.tree_before(oldest) is None
    fsck(shelf.git_dir)


def test_forget_does_nothing_while_the_clock_is_behind(shelf: Shelf) -> None:
    """A clock set back proves nothing about age."""
    for number in range(3):
        write_operation(shelf, b"f", b"%d" % number)

    assert (
        forget(shelf.git, shelf.odb, KeepRules(max_age_ms=0, newest=1), shelf.now_ms - 10 * DAY_MS, free=PLENTY).operations == 0
    )


def test_pinned_operations_stay_without_those_before_them(shelf: Shelf) -> None:
    """A pin keeps its own snapshot through forget and prune, not its ancestors'."""
    blobs = [write_operation(shelf, b"f", b"%d" % number) for number in range(5)]
    pinned = list(shelf.log.walk())[2]
    shelf.odb.move_ref("refs/safety/pin/mine", None, pinned.oid)
    shelf.now_ms += 100 * DAY_MS

    forget(shelf.git, shelf.odb, KeepRules(newest=1, min_free_percent=0), shelf.now_ms)
    prune(shelf.git, shelf.odb)

    assert len(ids(shelf)) == 1
    assert Snapshot(shelf.odb, pinned.tree).read(b"f") == b"2"
    assert [blob in shelf.objects() for blob in blobs] == [False, False, True, False, True]
    fsck(shelf.git_dir)


def test_forget_by_size_drops_as_many_old_operations_as_needed(shelf: Shelf) -> None:
    """Over its limit, the store loses its oldest operations until what is left fits, and no more."""
    for number in range(10):
        write_operation(shelf, b"f%d" % (number % 2), noise(100_000, number))
    limit = store_size(shelf.git_dir).own_bytes - 250_000

    done = tidy(shelf.git, shelf.odb, KeepRules(max_bytes=limit, min_free_percent=0, newest=2), shelf.now_ms)

    assert 3 <= done.forgotten <= 5
    assert done.over_by == 0
    assert store_size(shelf.git_dir).own_bytes <= limit
    fsck(shelf.git_dir)


def test_a_full_disk_takes_the_oldest_operations(shelf: Shelf) -> None:
    """Below the floor of free space operations are dropped, the newest N never, and the rest of the want is said."""
    for number in range(5):
        write_operation(shelf, b"f", noise(10_000, number))

    done = forget(shelf.git, shelf.odb, KeepRules(newest=2, min_free_percent=5), shelf.now_ms, free=0)

    assert done.operations == 3
    assert done.over_by > 0


def test_a_long_history_of_the_user_leaves_room_for_operations(tmp_path: Path, env: dict[str, str]) -> None:
    """Operations are not dropped one after the other because the user's own history is over the limit."""
    user = RepoBuilder(tmp_path / "work", env)
    for number in range(4):
        user.write("big", noise(1_000_000, number))
        user.commit(f"{number}")
    shelf = Shelf(tmp_path, user)
    shelf.seed()
    shelf.capture()
    for number in range(5):
        write_operation(shelf, b"f", noise(1000, number))

    done = forget(shelf.git, shelf.odb, KeepRules(max_bytes=2_000_000, min_free_percent=0, newest=1), shelf.now_ms)

    assert (done.operations, done.over_by) == (0, 0)


def test_a_retired_chain_can_go_altogether(shelf: Shelf) -> None:
    """An earlier generation has no newest operations to keep; its ref, anchor and lists go with it."""
    old = OpLog(shelf.odb, shelf.git_dir, "main-0", lambda: 1000)
    old.append(shelf.odb.write("tree", b""), Record("kkkkkkkkkkkk", "first", "user"))
    write_operation(shelf, b"f", b"new")

    done = forget(shelf.git, shelf.odb, KeepRules(min_free_percent=0), shelf.now_ms, retired=frozenset({"main-0"}))
    prune(shelf.git, shelf.odb)

    assert done.operations == 1
    assert list(refs_below(shelf.git_dir, "refs/safety/log/")) == ["refs/safety/log/main-1"]
    assert not (shelf.git_dir / "heads/main-0").exists()
    fsck(shelf.git_dir)


# ---- prune


def test_prune_keeps_everything_an_operation_names(shelf: Shelf, user: RepoBuilder) -> None:
    """Amended, stashed, staged, tagged and branched objects: all that a kept operation names stays, with its closure."""
    amended = user.commit("will be amended", a_txt="two\n")
    user.write("b.txt", "amended\n")
    user.git("add", "-A")
    user.git("commit", "-q", "--amend", "-m", "amended")
    user.git("tag", "-a", "v1", "-m", "one")
    user.write("a.txt", "stashed\n")
    user.git("stash")
    user.write("staged.txt", "staged\n")
    user.git("add", "staged.txt")
    user.write("staged.txt", "edited after\n")
    shelf.capture()
    named = [user.git("rev-parse", name) for name in ("HEAD", "v1", "stash", "stash^2", ":staged.txt")] + [amended]
    user.git("reset", "-q", "--hard", amended)
    shelf.capture()
    extra = shelf.odb.write("blob", b"nobody names this").hex()
    write_pack(shelf.git, shelf.git_dir, [shelf.odb.write("blob", b"nor this").hex().encode()])

    done = prune(shelf.git, shelf.odb)

    assert done.objects >= 2
    assert set(named) <= shelf.objects()
    assert extra not in shelf.objects()
    for name in (*named[:1], named[2], amended):
        assert shelf.has_history(name)
    fsck(shelf.git_dir)


def test_prune_drops_anchors_of_forgotten_operations(shelf: Shelf, user: RepoBuilder) -> None:
    """What only forgotten operations named goes: a commit of a deleted branch, an annotated tag, a staged blob."""
    user.git("checkout", "-q", "-b", "gone")
    commit = user.commit("gone", a_txt="gone\n")
    user.git("tag", "-a", "v1", "-m", "one")
    tag = user.git("rev-parse", "v1")
    shelf.capture()
    user.git("checkout", "-q", "main")
    user.git("branch", "-D", "gone")
    user.git("tag", "-d", "v1")
    (user.root / ".git/logs/HEAD").unlink()
    shelf.capture()
    shelf.now_ms += 100 * DAY_MS

    prune(shelf.git, shelf.odb)
    assert {commit, tag} <= shelf.objects()
    forget(shelf.git, shelf.odb, KeepRules(newest=1, min_free_percent=0), shelf.now_ms)
    prune(shelf.git, shelf.odb)

    assert shelf.objects().isdisjoint({commit, tag})
    assert refs_below(shelf.git_dir, "refs/safety/keep/") == {}
    assert shelf.has_history(user.head())
    fsck(shelf.git_dir)


def test_prune_lets_shared_packs_be(tmp_path: Path, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hard-linked seed is neither rewritten nor changed; it costs the store nothing."""
    monkeypatch.setattr(seeding, "_reflink", lambda out, source: False)
    user.git("repack", "-adq")
    pack = next((user.root / ".git/objects/pack").glob("*.pack"))
    shelf = Shelf(tmp_path, user)
    shelf.seed(copy_budget=0)
    content = pack.read_bytes()
    write_operation(shelf, b"f", b"x")

    prune(shelf.git, shelf.odb)

    assert pack.read_bytes() == content
    assert (shelf.git_dir / "objects/pack" / pack.name).samefile(pack)


def test_what_stays_in_a_shared_pack_stays_whole(tmp_path: Path, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead commit in a pack that is let be keeps its loose tree: when the user takes it up again, it is taken to be whole."""
    monkeypatch.setattr(seeding, "_reflink", lambda out, source: False)
    base = user.head()
    dead = user.commit("dead", a_txt="dead\n")
    tree = user.git("rev-parse", "HEAD^{tree}")
    loose = (user.root / ".git/objects" / tree[:2] / tree[2:]).read_bytes()
    user.git("pack-objects", "-q", ".git/objects/pack/pack", input=f"{base}\n{dead}\n")
    user.git("prune-packed", "-q")
    assert (user.root / ".git/objects" / tree[:2] / tree[2:]).read_bytes() == loose
    user.git("reset", "-q", "--hard", base)
    shutil.rmtree(user.root / ".git/logs")
    (user.root / ".git/ORIG_HEAD").unlink()
    shelf = Shelf(tmp_path, user)
    shelf.seed(copy_budget=0)
    shelf.capture()

    prune(shelf.git, shelf.odb)

    assert dead in shelf.objects()
    assert shelf.bring(dead) == set()
    assert shelf.has_history(dead)


def test_prune_spares_what_a_capture_names_meanwhile(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable object in an old pack that a capture takes up while the new pack is written does not go with the old one."""
    blob = shelf.odb.write("blob", b"was unreachable")
    write_pack(shelf.git, shelf.git_dir, [blob.hex().encode()])
    loose = shelf.odb.write("blob", b"loose and unreachable")
    pack_first, state = write_pack, {"first": True}

    def with_capture_beside(*args: object, **options: object) -> object:
        if state.pop("first", None):
            write_operation(shelf, b"f", b"was unreachable")
            write_operation(shelf, b"g", b"loose and unreachable")
        return pack_first(*args, **options)  # type: ignore[arg-type]

    write_operation(shelf, b"first", b"first")
    monkeypatch.setattr(pruning, "write_pack", with_capture_beside)
    prune(shelf.git, shelf.odb)

    assert {blob.hex(), loose.hex()} <= shelf.objects()
    fsck(shelf.git_dir)


def test_prune_waits_for_captures_and_gives_up(shelf: Shelf) -> None:
    """While a capture takes part nothing is removed."""
    write_operation(shelf, b"f", b"x")
    with taking_part(shelf.git_dir), pytest.raises(StoreBusy):
        prune(shelf.git, shelf.odb, wait_s=0.05)
    before = generation(shelf.git_dir)

    prune(shelf.git, shelf.odb)

    assert generation(shelf.git_dir) == before + 1


def test_any_number_take_part_but_one_is_alone(shelf: Shelf) -> None:
    """The lock is shared by captures and exclusive for removal."""
    with taking_part(shelf.git_dir), taking_part(shelf.git_dir):
        pass
    with alone(shelf.git_dir), pytest.raises(StoreBusy), alone(shelf.git_dir, 0.01):
        pass


STEPS = ("_reanchor", "_plan", "write_pack", "_remove", "remove_pack", "remove_files", "raise_generation", "sweep")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_a_prune_killed_at_any_step_loses_nothing(
    shelf: Shelf, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    """Before or after each step a kill leaves every operation whole, and the next prune finishes the work."""
    user.git("tag", "-a", "v1", "-m", "one")
    user.commit("second", a_txt="two\n")
    shelf.capture()
    write_operation(shelf, b"f", b"named")
    garbage = shelf.odb.write("blob", b"garbage")
    repack_loose(shelf.git, shelf.odb, threshold=1)
    loose_garbage = shelf.odb.write("blob", b"more garbage")
    real = getattr(pruning, step)

    def killed(*args: object, **options: object) -> None:
        if after:
            real(*args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(pruning, step, killed)
    with pytest.raises(KeyboardInterrupt):
        prune(shelf.git, shelf.odb)
    monkeypatch.undo()

    shelf.odb.refresh()
    assert Snapshot(shelf.odb, next(shelf.log.walk()).tree).read(b"f") == b"named"
    assert shelf.has_history(user.head())
    fsck(shelf.git_dir)
    prune(shelf.git, shelf.odb)
    assert shelf.objects().isdisjoint({garbage.hex(), loose_garbage.hex()})
    fsck(shelf.git_dir)


def test_prune_sweeps_what_dead_writers_left(shelf: Shelf) -> None:
    """Old temporary files and halves of packs go, fresh ones stay."""
    write_operation(shelf, b"f", b"x")
    pack_dir = shelf.git_dir / "objects/pack"
    old = [
        pack_dir / "tmp_pack_x",
        pack_dir / "pack-12.pack",
        shelf.git_dir / "objects/tmp_obj_1",
        shelf.git_dir / "objects/ab/tmp_obj_1",
    ]
    old[-1].parent.mkdir(exist_ok=True)
    for path in old:
        path.write_bytes(b"half")
        os.utime(path, (1, 1))
    fresh = pack_dir / "tmp_pack_fresh"
    fresh.write_bytes(b"half")

    done = prune(shelf.git, shelf.odb)

    assert done.leftovers == 4
    assert not any(path.exists() for path in old)
    assert fresh.exists()


def test_prune_of_a_partial_clones_store_works(tmp_path: Path, user: RepoBuilder, env: dict[str, str]) -> None:
    """Objects that the user's repository never had do not stop it."""
    user.git("config", "uploadpack.allowFilter", "true")
    user.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{user.root}", str(tmp_path / "clone"))
    clone = RepoBuilder(tmp_path / "clone", env, init=False)
    shelf = Shelf(tmp_path / "s", clone)
    shelf.seed()
    shelf.bring(clone.head())
    anchor(shelf.odb, shelf.log.chain, [clone.head().encode()])
    shelf.operation(lambda editor: editor.put_git(b".git/HEAD", clone.head().encode() + b"\n", 0o644))
    garbage = shelf.odb.write("blob", b"garbage").hex()

    prune(shelf.git, shelf.odb)

    assert clone.head() in shelf.objects()
    assert garbage not in shelf.objects()


def test_low_disk_still_removes_loose_objects(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room for a new pack the old ones stay, and the report says why."""
    write_operation(shelf, b"f", b"x")
    garbage = shelf.odb.write("blob", b"garbage").hex()
    packed = shelf.odb.write("blob", b"packed").hex()
    write_pack(shelf.git, shelf.git_dir, [packed.encode()])
    (shelf.git_dir / "objects" / packed[:2] / packed[2:]).unlink()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": 0})())

    done = prune(shelf.git, shelf.odb)

    assert done.problem == "disk-low"
    assert garbage not in shelf.objects()
    assert packed in shelf.objects()


# ---- what is shared with the user's repository


@pytest.mark.parametrize(("max_bytes", "shared"), [(2 << 30, False), (1000, True)])
def test_an_idle_store_makes_shared_packs_its_own(
    tmp_path: Path, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch, max_bytes: int, shared: bool
) -> None:
    """What was linked at the seed is copied while the limit leaves room; then the user may empty their packs in place."""
    monkeypatch.setattr(seeding, "_reflink", lambda out, source: False)
    user.git("repack", "-adq")
    shelf = Shelf(tmp_path, user)
    shelf.seed(copy_budget=0)
    shelf.capture()
    assert any(pack.is_shared for pack in packs(shelf.git_dir))

    tidy(shelf.git, shelf.odb, KeepRules(max_bytes=max_bytes, min_free_percent=0), shelf.now_ms)

    assert any(pack.is_shared for pack in packs(shelf.git_dir)) == shared
    if not shared:
        for file in (user.root / ".git/objects/pack").iterdir():
            file.chmod(0o644)
            file.write_bytes(b"")
        fsck(shelf.git_dir)


# ---- repack


def test_repack_loose_packs_all_loose_objects_and_only_them(shelf: Shelf, user: RepoBuilder) -> None:
    """Reachable or not, every loose object is in a new pack, and its file is gone; other packs are not touched."""
    shelf.capture()
    shelf.odb.write("blob", b"nobody names this")
    before, old_packs = shelf.objects(), {pack.stem for pack in packs(shelf.git_dir)}

    assert repack_loose(shelf.git, shelf.odb, threshold=10_000) == 0
    count = repack_loose(shelf.git, shelf.odb, threshold=1)

    assert count > 0
    assert shelf.objects() == before
    assert shelf.plain("count-objects").startswith("0 ")
    assert old_packs < {pack.stem for pack in packs(shelf.git_dir)}
    fsck(shelf.git_dir)


def test_a_repack_leaves_no_empty_folders(shelf: Shelf) -> None:
    """The folders of objects that were packed go, unless somebody captures; what is written afterwards finds its place."""
    folders = shelf.git_dir / "objects"
    write_operation(shelf, b"f", b"1")
    with taking_part(shelf.git_dir):
        repack_loose(shelf.git, shelf.odb, threshold=1, wait_s=0)
    assert list(folders.glob("??"))

    write_operation(shelf, b"f", b"2")
    kept = shelf.odb.write("blob", b"not packed").hex()
    torn = folders / kept[:2] / kept[2:]
    torn.chmod(0o644)
    torn.write_bytes(torn.read_bytes()[:-4])
    repack_loose(shelf.git, shelf.odb, threshold=1)
    assert [folder.name for folder in folders.glob("??")] == [kept[:2]]

    torn.unlink()
    assert shelf.odb.read(bytes.fromhex(write_operation(shelf, b"f", b"3")))[1] == b"3"
    fsck(shelf.git_dir)


def test_repack_steps_over_a_torn_object(shelf: Shelf) -> None:
    """One empty or damaged loose file does not keep all others loose for ever."""
    write_operation(shelf, b"f", b"x")
    torn = shelf.odb.write("blob", b"torn").hex()
    path = shelf.git_dir / "objects" / torn[:2] / torn[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-4])

    assert repack_loose(shelf.git, shelf.odb, threshold=1) > 0
    assert [file.name for file in (shelf.git_dir / "objects").glob("??/*")] == [torn[2:]]


def test_later_repacks_take_in_the_tree_packs_before(shelf: Shelf) -> None:
    """The packs of trees grow together, so that their number stays small however often is repacked."""
    for number in range(12):
        write_operation(shelf, b"dir/f", b"%d" % number)
        repack_loose(shelf.git, shelf.odb, threshold=1)

    listed = (shelf.git_dir / "tree-packs").read_text().split()
    assert len(listed) <= 3
    assert {f"{shelf.git_dir}/objects/pack/{name}" for name in listed} <= {pack.stem for pack in packs(shelf.git_dir)}
    fsck(shelf.git_dir)


def test_a_tree_pack_that_was_in_use_goes_at_the_next_repack(shelf: Shelf) -> None:
    """While somebody captures, the old pack stays as a double; the next repack takes it in and removes it."""
    write_operation(shelf, b"dir/f", b"1")
    repack_loose(shelf.git, shelf.odb, threshold=1)
    (old,) = (shelf.git_dir / "tree-packs").read_text().split()
    write_operation(shelf, b"dir/f", b"2")
    with taking_part(shelf.git_dir):
        repack_loose(shelf.git, shelf.odb, threshold=1, wait_s=0)
    assert (shelf.git_dir / "objects/pack" / f"{old}.pack").exists()

    write_operation(shelf, b"dir/f", b"3")
    repack_loose(shelf.git, shelf.odb, threshold=1)

    assert not (shelf.git_dir / "objects/pack" / f"{old}.pack").exists()
    fsck(shelf.git_dir)


def test_the_upkeep_of_a_turns_end_does_not_wait_for_itself(repo: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session packs anew takes the place of its old packs at once: it holds no lock meanwhile."""
    monkeypatch.setattr("safety.store.repack.LOOSE_THRESHOLD", -1)
    session = open_session(os.fsencode(repo.root), "s", repo.env)
    for number in range(4):
        session.turn_start("x")
        call = Call(f"c{number}", "shell", {}, os.fsencode(repo.root))
        session.pre(call)
        repo.write("a.txt", f"{number}\n")
        session.post(call, "ok")
        session.turn_end()

    assert not session.take_notices()
    listed = (session.place.store_dir / "tree-packs").read_text().split()
    assert len(listed) == 1
    assert generation(session.place.store_dir) == 3


def test_repack_packs_unites_small_packs(shelf: Shelf) -> None:
    """Many small packs become one; every object stays."""
    for number in range(5):
        write_operation(shelf, b"f", b"%d" % number)
        repack_loose(shelf.git, shelf.odb, threshold=1)
    before = shelf.objects()

    assert repack_packs(shelf.git, shelf.odb, most=10) == 0
    assert repack_packs(shelf.git, shelf.odb, most=3) == 5

    assert len(packs(shelf.git_dir)) <= 4
    assert shelf.objects() == before
    fsck(shelf.git_dir)


@pytest.mark.parametrize("files", [100, 3000])
def test_small_edits_take_little_room_after_a_repack(shelf: Shelf, chance: random.Random, files: int) -> None:
    """After a repack an operation costs at most 1.2 times its changed content, compressed, and 2 kB; in a huge directory too."""
    lines = [b"line %d of a file that has some text in it\n" % number for number in range(50)]
    blob = shelf.odb.write("blob", b"".join(lines))
    shelf.operation(lambda editor: editor.put_tree(b"src", [(0o100644, b"f%d.txt" % n, blob) for n in range(files)], "work"))
    repack_loose(shelf.git, shelf.odb, threshold=1)
    before = packed_bytes(shelf)
    changed = 0
    for number in range(300):
        lines[chance.randrange(50)] = b"edit number %d\n" % number
        path = b"src/f%d.txt" % chance.randrange(files)
        write_operation(shelf, path, b"".join(lines))
        changed += len(zlib.compress(b"".join(lines)))

    repack_loose(shelf.git, shelf.odb, threshold=1)

    assert packed_bytes(shelf) - before <= 1.2 * changed + 300 * 2000
    fsck(shelf.git_dir)


def packed_bytes(shelf: Shelf) -> int:
    return sum(path.stat().st_size for path in (shelf.git_dir / "objects").rglob("*") if path.is_file())


@pytest.mark.parametrize("durable", [True, False])
def test_a_small_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, durable: bool) -> None:
    """Where the new one cannot take its place there is an error, what stood there stays, and no draft is left."""
    path = tmp_path / "file"
    write_whole(path, b"one", durable=durable)
    write_whole(path, b"two", durable=durable)
    assert path.read_bytes() == b"two"

    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "taken", b"three", durable=durable)
    assert sorted(os.listdir(tmp_path)) == ["file", "taken"]
