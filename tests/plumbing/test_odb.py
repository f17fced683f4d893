"""The store's objects and refs: real git reads what we write, damage is named, nothing that exists is touched."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safety.plumbing import odb
from safety.plumbing.odb import (
    STREAM_ABOVE,
    ChangedWhileReading,
    Commit,
    ObjectCorrupt,
    ObjectMissing,
    ObjectStore,
    RefLocked,
    RefMoved,
    SourceObjects,
    hash_object,
)

Environment = dict[str, str]
REF = "refs/safety/ops/w1"
MISSING = bytes.fromhex("12" * 20)


@pytest.fixture
def git_dir(tmp_path: Path, env: Environment) -> Path:
    """An empty bare repository."""
    run_git(env, tmp_path, "init", "-q", "--bare", "store.git")
    return tmp_path / "store.git"


@pytest.fixture
def store(git_dir: Path) -> ObjectStore:
    return ObjectStore(git_dir)


def run_git(env: Environment, folder: Path, *args: str, input: bytes | None = None) -> bytes:
    """Git itself, as the judge."""
    done = subprocess.run(["git", *args], cwd=folder, env=env, input=input, check=True, capture_output=True)
    return done.stdout.strip()


def loose_file(git_dir: Path, oid: bytes) -> Path:
    return git_dir / "objects" / oid.hex()[:2] / oid.hex()[2:]


def everything(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """Each file's inode, size and mtime, folders too."""
    return {path: (info.st_ino, info.st_size, info.st_mtime_ns) for path in folder.rglob("*") for info in [path.lstat()]}


def pack_all(env: Environment, git_dir: Path, oids: list[bytes]) -> None:
    """Puts objects into a pack, and their loose files away."""
    given = b"".join(oid.hex().encode() + b"\n" for oid in oids)
    run_git(env, git_dir, "pack-objects", "-q", "objects/pack/pack", input=given)
    run_git(env, git_dir, "prune-packed", "-q")


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small limits, so that a test reaches streaming with little data."""
    monkeypatch.setattr(odb, "STREAM_ABOVE", 1000)
    monkeypatch.setattr(odb, "CHUNK", 300)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    """An empty open file."""
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


# -- objects


@given(data=st.binary(max_size=2000), kind=st.sampled_from(["blob", "tree", "commit", "tag"]))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_back(store: ObjectStore, kind: str, data: bytes) -> None:
    """Kind, content, size and id of any bytes survive."""
    oid = store.write(kind, data)

    assert oid == hash_object(kind, data)
    assert store.read(oid) == (kind, data)
    assert (store.exists(oid), store.size(oid)) == (True, len(data))


def test_git_reads_our_objects_and_finds_them_sound(env: Environment, git_dir: Path, store: ObjectStore) -> None:
    """Blob, tree and commit of ours pass a strict fsck, and git gives the same content back."""
    blob = store.write("blob", b"hello\n")
    tree = store.write("tree", b"100644 a.txt\0" + blob)
    first = store.commit(tree, [], b"one", 1_700_000_000_999)
    second = store.commit(tree, [first], b"two\n\nbody\n", 1_700_000_001_000)
    store.move_ref(REF, None, second)

    assert run_git(env, git_dir, "fsck", "--strict", "--full", "--no-dangling") == b""
    assert run_git(env, git_dir, "cat-file", "blob", f"{REF}:a.txt") == b"hello"
    shown = run_git(env, git_dir, "log", "--format=%an <%ae> %at %s", REF)
    assert shown == b"git-safety <git-safety@localhost> 1700000001 two\ngit-safety <git-safety@localhost> 1700000000 one"
    assert store.read_commit(second) == Commit(tree, (first,), b"two\n\nbody\n")
    assert store.tree(tree) == b"100644 a.txt\0" + blob


def test_objects_of_git_are_read_loose_and_packed(env: Environment, git_dir: Path, store: ObjectStore) -> None:
    """What git wrote after the store was opened is found at once, also when it moves from a loose file to a pack."""
    assert not store.exists(hash_object("blob", b"late\n"))

    oid = bytes.fromhex(run_git(env, git_dir, "hash-object", "-w", "--stdin", input=b"late\n").decode())
    loose = store.read(oid)
    pack_all(env, git_dir, [oid])

    assert loose == store.read(oid) == ("blob", b"late\n")
    assert (store.exists(oid), store.size(oid), loose_file(git_dir, oid).exists()) == (True, 5, False)


def test_a_repack_by_another_process_loses_nothing(env: Environment, git_dir: Path, store: ObjectStore) -> None:
    """Packs that vanish under an open store are replaced in its eyes by the new one, with and without ``refresh``."""
    tree = store.write("tree", b"")
    oids = [tree]
    parents: list[bytes] = []
    for number in range(4):
        parents = [store.commit(tree, parents, b"%d" % number, number)]
        oids += parents
        store.move_ref(REF, store.ref(REF), parents[0])
        run_git(env, git_dir, "repack", "-dq")
        assert all(store.exists(oid) for oid in oids)

    run_git(env, git_dir, "repack", "-adq")

    assert [store.read(oid)[0] for oid in oids] == ["tree"] + ["commit"] * 4
    store.refresh()
    assert [store.read(oid)[0] for oid in oids] == ["tree"] + ["commit"] * 4


def test_an_object_that_exists_is_not_touched(env: Environment, git_dir: Path, store: ObjectStore, file: int) -> None:
    """Writing a loose or a packed object again leaves every file and folder as it is: a hard-linked pack is the user's."""
    os.write(file, b"loose")
    loose, packed = store.write("blob", b"loose"), store.write("blob", b"packed")
    pack_all(env, git_dir, [packed])
    for path in git_dir.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    before = everything(git_dir / "objects")

    assert (store.write("blob", b"loose"), store.write("blob", b"packed"), store.write_fd(file, 5)) == (loose, packed, loose)

    assert everything(git_dir / "objects") == before


def test_a_missing_object_is_named(store: ObjectStore, file: int) -> None:
    """Every way of reading raises ObjectMissing with the id and a hint."""
    for read in (store.read, store.blob, store.tree, store.size, store.read_commit, lambda oid: store.copy_to_fd(oid, file)):
        with pytest.raises(ObjectMissing) as caught:
            read(MISSING)
        assert (MISSING.hex() in caught.value.message, bool(caught.value.hint)) == (True, True)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"not zlib",
        zlib.compress(b"blob 9\0other con"),
        zlib.compress(b"blob 7\0other c"),
        zlib.compress(b"blob 8\0content")[:-6],
        zlib.compress(b"what 7\0content"),
        zlib.compress(b"no header at all, and quite a long text for one" * 3),
    ],
)
def test_a_damaged_loose_object_is_never_given_out(git_dir: Path, store: ObjectStore, file: int, damage: bytes) -> None:
    """Truncated, replaced or foreign content raises ObjectCorrupt; no byte of it reaches a file."""
    oid = store.write("blob", b"content")
    path = loose_file(git_dir, oid)
    path.chmod(0o644)
    path.write_bytes(damage)

    for read in (store.read, store.blob, lambda oid: store.copy_to_fd(oid, file)):
        with pytest.raises(ObjectCorrupt) as caught:
            read(oid)
        assert oid.hex() in caught.value.message
    assert os.fstat(file).st_size == 0


def test_a_damaged_loose_object_with_a_sound_twin_in_a_pack_is_read(
    env: Environment, git_dir: Path, store: ObjectStore, file: int
) -> None:
    """The pack's copy answers when the loose file is damaged."""
    oid = store.write("blob", b"content")
    pack_all(env, git_dir, [oid])
    loose_file(git_dir, oid).parent.mkdir(exist_ok=True)
    loose_file(git_dir, oid).write_bytes(b"rubbish")

    store.copy_to_fd(oid, file)

    assert store.read(oid) == ("blob", b"content")
    assert store.size(oid) == 7
    assert os.pread(file, 100, 0) == b"content"


def test_an_empty_file_left_by_a_power_cut_is_written_anew(git_dir: Path, store: ObjectStore) -> None:
    """A loose file of no length does not count as the object."""
    oid = store.write("blob", b"content")
    loose_file(git_dir, oid).chmod(0o644)
    loose_file(git_dir, oid).write_bytes(b"")

    assert not store.exists(oid)
    store.write("blob", b"content")

    assert store.read(oid) == ("blob", b"content")


def test_a_damaged_pack_is_named(env: Environment, git_dir: Path, store: ObjectStore) -> None:
    """Bytes changed inside a pack raise ObjectCorrupt, not an error of the library."""
    oid = store.write("blob", os.urandom(4000))
    pack_all(env, git_dir, [oid])
    (pack,) = (git_dir / "objects/pack").glob("*.pack")
    data = bytearray(pack.read_bytes())
    data[2000] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(data)

    with pytest.raises(ObjectCorrupt):
        ObjectStore(git_dir).read(oid)


def test_a_kind_that_was_not_asked_for_is_an_error(store: ObjectStore, file: int) -> None:
    """A tree where a blob was expected raises ObjectCorrupt."""
    tree = store.write("tree", b"")

    for read in (store.blob, store.read_commit, lambda oid: store.copy_to_fd(oid, file)):
        with pytest.raises(ObjectCorrupt):
            read(tree)


# -- files


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("size", [0, 1, 300, 999, 1000, 1001, 5000])
@pytest.mark.parametrize("alike", [True, False])
def test_a_file_goes_in_and_comes_out(
    env: Environment, git_dir: Path, store: ObjectStore, tmp_path: Path, size: int, alike: bool
) -> None:
    """Whole or in pieces, the blob is the file, git agrees, and no file position is used."""
    data = b"a" * size if alike else os.urandom(size)
    (tmp_path / "in").write_bytes(data)

    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as target:
        source.seek(size)
        oid = store.write_fd(source.fileno(), size)
        store.copy_to_fd(oid, target.fileno())

    assert oid == hash_object("blob", data)
    assert (tmp_path / "out").read_bytes() == data
    assert run_git(env, git_dir, "hash-object", "--stdin", input=data).decode() == oid.hex()
    assert run_git(env, git_dir, "fsck", "--full", "--no-dangling") == b""


def test_a_file_just_over_the_limit_is_streamed_with_bounded_memory(env: Environment, git_dir: Path, tmp_path: Path) -> None:
    """A sparse file of 64 MiB goes in and out of a process whose memory stays far below that."""
    with open(tmp_path / "big", "wb") as file:
        file.truncate(8 * STREAM_ABOVE)
    program = (
        "import os, resource, sys; from pathlib import Path; from safety.plumbing.odb import ObjectStore\n"
        "store = ObjectStore(Path(sys.argv[1])); store.exists(b'x' * 20)\n"
        "scale = 1 if sys.platform == 'darwin' else 1024\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale\n"
        "fd = os.open(sys.argv[2], os.O_RDONLY); out = os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT)\n"
        "oid = store.write_fd(fd, os.fstat(fd).st_size); store.copy_to_fd(oid, out)\n"
        "print(oid.hex(), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale - before) >> 20)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, git_dir, tmp_path / "big", tmp_path / "out"],
        env={**env, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )

    name, grown_mib = done.stdout.split()
    assert int(grown_mib) < 32
    assert name == run_git(env, git_dir, "hash-object", "--no-filters", str(tmp_path / "big")).decode()
    assert (tmp_path / "out").stat().st_size == 8 * STREAM_ABOVE


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("size", [500, 5000])
def test_a_file_that_grew_gives_what_it_was_and_one_that_shrank_is_refused(store: ObjectStore, file: int, size: int) -> None:
    """A growing log is stored as of the size that was seen; a shorter file raises and leaves no object."""
    os.write(file, b"x" * size + b"later lines")

    assert store.blob(store.write_fd(file, size)) == b"x" * size
    with pytest.raises(ChangedWhileReading):
        store.write_fd(file, size + 100)


@pytest.mark.usefixtures("pieces")
def test_a_file_that_differs_between_two_readings_is_refused(
    git_dir: Path, store: ObjectStore, file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was hashed must be what is stored: a write in between raises and leaves neither object nor temporary file."""
    os.write(file, b"x" * 5000)
    true_exists = store.exists

    def exists_and_write(oid: bytes) -> bool:
        os.pwrite(file, b"y", 2500)
        return true_exists(oid)

    monkeypatch.setattr(store, "exists", exists_and_write)

    with pytest.raises(ChangedWhileReading):
        store.write_fd(file, 5000)

    assert [path for path in (git_dir / "objects").rglob("*") if path.is_file()] == []


@pytest.mark.usefixtures("pieces")
def test_damage_in_a_big_blob_is_noticed(git_dir: Path, store: ObjectStore, file: int) -> None:
    """Streaming out verifies the content at its end, and a cut file at once."""
    os.write(file, os.urandom(5000))
    oid = store.write_fd(file, 5000)
    path = loose_file(git_dir, oid)
    path.chmod(0o644)
    whole = path.read_bytes()

    for damage in (zlib.compress(b"blob 5000\0" + b"z" * 5000), whole[:3000], whole[:3000] + b"\0" * 50 + whole[3050:]):
        path.write_bytes(damage)
        with pytest.raises(ObjectCorrupt):
            store.copy_to_fd(oid, file)


def test_a_failed_write_leaves_nothing(git_dir: Path, store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk raises OSError; no object and no temporary file stay."""

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        store.write("blob", b"content")
    monkeypatch.undo()

    assert not store.exists(hash_object("blob", b"content"))
    assert list(git_dir.rglob("tmp_*")) == []


# -- refs


def test_a_ref_moves_only_from_where_it_was_expected(env: Environment, git_dir: Path, store: ObjectStore) -> None:
    """Compare-and-swap in all its cases; git sees the result, and no lock stays."""
    one, two = (store.commit(store.write("tree", b""), [], word, 0) for word in (b"one", b"two"))

    assert store.ref(REF) is None
    with pytest.raises(RefMoved) as absent:
        store.move_ref(REF, one, two)
    store.move_ref(REF, None, one)
    with pytest.raises(RefMoved) as present:
        store.move_ref(REF, None, two)
    store.move_ref(REF, one, two, durable=True)
    with pytest.raises(RefMoved) as other:
        store.move_ref(REF, one, one)

    assert [error.value.found for error in (absent, present, other)] == [None, one, two]
    assert store.ref(REF) == two
    assert run_git(env, git_dir, "rev-parse", REF).decode() == two.hex()
    assert list(git_dir.rglob("*.lock")) == []


def test_packed_refs_are_seen_and_moved(env: Environment, git_dir: Path, store: ObjectStore) -> None:
    """After `git pack-refs` a ref is read from packed-refs, whole names only, and the next move wins over it."""
    one, two = (store.commit(store.write("tree", b""), [], word, 0) for word in (b"one", b"two"))
    store.move_ref(REF, None, one)
    store.move_ref("refs/safety/keep/" + REF, None, two)
    run_git(env, git_dir, "pack-refs", "--all", "--prune")
    assert not (git_dir / REF).exists()

    assert (store.ref(REF), store.ref("refs/safety/keep/" + REF), store.ref("safety/ops/w1")) == (one, two, None)
    store.move_ref(REF, one, two)

    assert store.ref(REF) == two
    assert run_git(env, git_dir, "rev-parse", REF).decode() == two.hex()


def test_a_ref_that_holds_no_id_is_corrupt(git_dir: Path, store: ObjectStore) -> None:
    """An empty or cut ref file, as after a power cut, is named instead of read as absent."""
    (git_dir / REF).parent.mkdir(parents=True)
    for text in (b"", b"1234\n", b"ref: refs/heads/x\n"):
        (git_dir / REF).write_bytes(text)
        with pytest.raises(ObjectCorrupt):
            store.ref(REF)


def test_many_writers_lose_no_move(git_dir: Path, store: ObjectStore) -> None:
    """Eight threads that each append commits until they succeed make one chain with every commit in it."""
    tree = store.write("tree", b"")
    store.move_ref(REF, None, store.commit(tree, [], b"root", 0))

    def append(name: bytes) -> None:
        own = ObjectStore(git_dir)
        for number in range(10):
            while True:
                head = own.ref(REF)
                assert head is not None
                try:
                    own.move_ref(REF, head, own.commit(tree, [head], b"%s %d" % (name, number), 0))
                    break
                except RefMoved:
                    continue

    threads = [threading.Thread(target=append, args=(b"%d" % number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    head, seen = store.ref(REF), 0
    while head is not None:
        parents = store.read_commit(head).parents
        head, seen = (parents[0] if parents else None), seen + 1
    assert seen == 81


def test_a_killed_writer_blocks_nobody(env: Environment, git_dir: Path, store: ObjectStore) -> None:
    """A process killed while it holds the ref's lock leaves a lock that the next one knows for stale."""
    one = store.commit(store.write("tree", b""), [], b"one", 0)
    program = (
        "import os, signal, sys; from pathlib import Path; from safety.plumbing import odb\n"
        "odb._write_all = lambda fd, data: os.kill(os.getpid(), signal.SIGKILL)\n"
        "odb.ObjectStore(Path(sys.argv[1])).move_ref(sys.argv[2], None, bytes.fromhex(sys.argv[3]))\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, git_dir, REF, one.hex()],
        env={**env, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert (git_dir / (REF + ".lock")).exists()
    assert store.ref(REF) is None

    store.move_ref(REF, None, one)

    assert store.ref(REF) == one
    assert list(git_dir.rglob("*.lock")) == []


def test_a_lock_of_git_is_respected(git_dir: Path, store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock file that is not ours is waited for, then reported with the file's name, and never removed."""
    monkeypatch.setattr(odb, "_LOCK_WAIT_S", 0.05)
    lock = git_dir / (REF + ".lock")
    lock.parent.mkdir(parents=True)
    lock.write_bytes(b"")

    with pytest.raises(RefLocked) as caught:
        store.move_ref(REF, None, MISSING)

    assert str(lock) in caught.value.hint
    assert lock.exists()


def test_the_store_works_under_a_broken_user_configuration(env: Environment, tmp_path: Path) -> None:
    """Neither reading packs nor moving refs reads ~/.gitconfig."""
    run_git(env, tmp_path, "init", "-q", "--bare", "store.git")
    Path(env["HOME"], ".gitconfig").write_text("[broken\n")
    program = (
        "import sys; from pathlib import Path; from safety.plumbing.odb import ObjectStore\n"
        "store = ObjectStore(Path(sys.argv[1])); oid = store.commit(store.write('tree', b''), [], b'x', 0)\n"
        "store.exists(b'x' * 20); store.move_ref('refs/x', None, oid); print(store.ref('refs/x') == oid)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "store.git"],
        env={**env, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )

    assert done.stdout == b"True\n"


# -- upkeep


def test_sync_flushes_each_new_object_once(git_dir: Path, store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of any process since the last sync are flushed with their folders; old ones are left alone."""
    flushed: set[bytes] = set()
    monkeypatch.setattr(odb, "_fsync_path", flushed.add)
    old = [store.write("blob", b"%d" % number) for number in range(5)]
    assert store.sync() == 5
    wanted = {os.fsencode(loose_file(git_dir, oid)) for oid in old}
    assert wanted < flushed and {os.path.dirname(path) for path in wanted} < flushed

    for path in (git_dir / "objects").rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    flushed.clear()
    new = ObjectStore(git_dir).write("blob", b"new")

    assert store.sync() == 1
    assert os.fsencode(loose_file(git_dir, new)) in flushed
    assert flushed.isdisjoint(wanted)


def test_sync_really_flushes(store: ObjectStore) -> None:
    """One and many objects go through the real system call; an empty store is fine too."""
    assert store.sync() == 0
    store.write("blob", b"one")
    assert store.sync() == 1
    for number in range(20):
        store.write("blob", b"%d" % number)
    assert store.sync() == 21


def test_loose_count_is_near(store: ObjectStore) -> None:
    """The estimate is within a third for two thousand objects and 0 for none."""
    assert store.loose_count() == 0
    for number in range(2000):
        store.write("blob", b"%d" % number)

    assert 1300 < store.loose_count() < 2700


def test_git_prune_sweeps_what_a_killed_writer_left(env: Environment, git_dir: Path) -> None:
    """Our temporary files carry the name that `git prune` removes."""
    left = git_dir / "objects" / f"tmp_obj_{os.getpid()}_1_1"
    left.write_bytes(b"half")

    run_git(env, git_dir, "prune", "--expire=now")

    assert not left.exists()


# -- the user's objects


def test_a_users_objects_are_read_through_alternates_and_left_alone(env: Environment, tmp_path: Path) -> None:
    """Loose, packed and borrowed objects are found, with kind and size, and nothing in the repository changes."""
    run_git(env, tmp_path, "init", "-q", "--bare", "donor.git")
    donor = bytes.fromhex(run_git(env, tmp_path / "donor.git", "hash-object", "-w", "--stdin", input=b"donor").decode())
    run_git(env, tmp_path, "init", "-q", "--bare", "user.git")
    user = tmp_path / "user.git"
    (user / "objects/info/alternates").write_text(str(tmp_path / "donor.git/objects") + "\n")
    packed = bytes.fromhex(run_git(env, user, "hash-object", "-w", "--stdin", input=b"packed").decode())
    pack_all(env, user, [packed])
    source = SourceObjects(user / "objects")
    assert not source.exists(hash_object("blob", b"loose"))
    loose = bytes.fromhex(run_git(env, user, "hash-object", "-w", "--stdin", input=b"loose").decode())
    before = everything(tmp_path)

    contents = [source.read(oid) for oid in (donor, packed, loose)]
    headers = [source.header(oid) for oid in (donor, packed, loose)]

    assert contents == [("blob", b"donor"), ("blob", b"packed"), ("blob", b"loose")]
    assert headers == [("blob", 5), ("blob", 6), ("blob", 5)]
    assert all(source.exists(oid) for oid in (donor, packed, loose))
    assert everything(tmp_path) == before


def test_missing_and_damaged_objects_of_the_user_are_named(env: Environment, tmp_path: Path) -> None:
    """A gone directory has no objects; a damaged one raises ObjectCorrupt, a missing one ObjectMissing."""
    run_git(env, tmp_path, "init", "-q", "--bare", "user.git")
    oid = bytes.fromhex(run_git(env, tmp_path / "user.git", "hash-object", "-w", "--stdin", input=b"content").decode())
    source = SourceObjects(os.fsencode(tmp_path / "user.git/objects"))
    loose_file(tmp_path / "user.git", oid).chmod(0o644)
    loose_file(tmp_path / "user.git", oid).write_bytes(zlib.compress(b"blob 7\0CONTENT"))

    with pytest.raises(ObjectCorrupt):
        source.read(oid)
    for missing in (source, SourceObjects(tmp_path / "gone")):
        assert not missing.exists(MISSING)
        with pytest.raises(ObjectMissing):
            missing.read(MISSING)
        with pytest.raises(ObjectMissing):
            missing.header(MISSING)
    with pytest.raises(ObjectMissing):
        SourceObjects(tmp_path / "gone").read(oid)


def test_no_descriptor_stays_open(store: ObjectStore, git_dir: Path, env: Environment) -> None:
    """Reading, writing and moving refs leave no file open but the packs, and ``refresh`` lets those go."""
    oid = store.write("blob", b"x")
    pack_all(env, git_dir, [oid])
    folder = "/dev/fd"
    store.exists(MISSING)
    store.refresh()
    gc.collect()
    before = len(os.listdir(folder))

    for number in range(20):
        store.read(store.write("blob", b"%d" % number))
        store.move_ref(REF, store.ref(REF), hash_object("blob", b"%d" % number))
        with pytest.raises(RefMoved):
            store.move_ref(REF, None, MISSING)
    store.read(oid)
    store.sync()
    store.refresh()
    gc.collect()

    assert len(os.listdir(folder)) == before
