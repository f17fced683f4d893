"""The observer, on real folders: what counts, what does not, and that it says when it cannot know."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from safety.watch import observer
from safety.watch.observer import Batch, Observer

DEADLINE_S = 20.0

pytestmark = pytest.mark.skipif(not observer.HAS_INOTIFY, reason="needs inotify")


class Ear:
    """Keeps every batch; ``until`` waits for something to have been heard."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self._wake = threading.Condition()

    def __call__(self, batch: Batch) -> None:
        with self._wake:
            self.batches.append(batch)
            self._wake.notify_all()

    @property
    def paths(self) -> list[bytes]:
        return [path for batch in self.batches for path in batch.paths]

    @property
    def complete(self) -> bool:
        return all(batch.complete for batch in self.batches)

    def until(self, true: Callable[[], bool]) -> None:
        with self._wake:
            assert self._wake.wait_for(true, DEADLINE_S), self.batches

    def hears(self, *paths: bytes) -> None:
        self.until(lambda: set(paths) <= set(self.paths))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "src/deep").mkdir(parents=True)
    (folder / "src/deep/a.txt").write_text("a")
    (folder / "b.txt").write_text("b")
    return folder


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def watch(root: Path, ear: Ear) -> Iterator[Callable[..., Observer]]:
    """Starts an observer on ``root``; it is stopped, and its threads gone, after the test."""
    started = []

    def start(**options: object) -> Observer:
        watching = Observer(os.fsencode(root), ear, **options)  # type: ignore[arg-type]
        watching.start()
        started.append(watching)
        assert watching.wait_ready(DEADLINE_S)
        return watching

    threads = set(threading.enumerate())
    yield start
    for watching in started:
        watching.stop()
    left = set(threading.enumerate()) - threads
    for thread in left:
        thread.join(DEADLINE_S)
    assert not [thread for thread in left if thread.is_alive()]


def test_each_kind_of_write_is_heard(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """Create, modify, append, delete, rename and chmod, in any folder; a name of odd bytes too."""
    watch()
    odd = b"od\xffd\n name"
    (root / "new.txt").write_text("new")
    (root / "src/deep/a.txt").write_text("changed")
    (root / "b.txt").rename(root / "c.txt")
    (root / "src/deep/a.txt").chmod(0o600)
    Path(os.fsdecode(os.fsencode(root) + b"/" + odd)).write_text("odd")
    ear.hears(b"new.txt", b"src/deep/a.txt", b"b.txt", b"c.txt", odd)
    (root / "new.txt").unlink()
    ear.until(lambda: ear.paths.count(b"new.txt") == 2)
    assert ear.complete


def test_reading_is_not_heard(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """Opening, reading, listing and closing a file are no writes."""
    watch()
    (root / "b.txt").read_text()
    os.listdir(root / "src")
    (root / "src/deep/a.txt").stat()
    (root / "end").touch()
    ear.hears(b"end")
    assert ear.paths == [b"end"]


def test_new_folders_are_entered(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """Folders made, copied in or moved in after the start are watched, and what they already hold is told."""
    watch()
    (root / "x/y/z").mkdir(parents=True)
    (root / "x/y/z/one").write_text("1")
    ear.hears(b"x", b"x/y", b"x/y/z", b"x/y/z/one")
    shutil.copytree(root / "x", root / "copy")
    ear.hears(b"copy/y/z/one")
    other = root.parent / "elsewhere"
    (other / "in").mkdir(parents=True)
    (other / "in/two").write_text("2")
    other.rename(root / "moved")
    ear.hears(b"moved", b"moved/in/two")
    (root / "moved/in/three").write_text("3")
    ear.hears(b"moved/in/three")
    assert ear.complete


def test_renamed_folder_is_followed_under_its_new_name(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """After a rename inside the root, writes come with the new path, never the old."""
    watch()
    (root / "src").rename(root / "lib")
    ear.hears(b"src", b"lib", b"lib/deep/a.txt")
    ear.batches.clear()
    (root / "lib/deep/a.txt").write_text("again")
    ear.hears(b"lib/deep/a.txt")
    assert not [path for path in ear.paths if path.startswith(b"src")]


def test_folder_moved_away_is_no_longer_watched(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """What happens in a folder after it left the root is nobody's business."""
    watch()
    (root / "src").rename(root.parent / "away")
    ear.hears(b"src")
    (root.parent / "away/deep/a.txt").write_text("outside")
    (root / "end").touch()
    ear.hears(b"end")
    assert b"src/deep/a.txt" not in ear.paths


def test_git_is_never_heard(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """Git commands at the root and in a nested repository made later leave one event: the real edit."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*args: str, cwd: Path = root) -> None:
        identity = ("-c", "user.name=D", "-c", "user.email=d@d")
        subprocess.run(["git", *identity, *args], cwd=cwd, check=True, env=env, capture_output=True)

    git("init", "-q")
    watch()
    git("add", "-A")
    git("commit", "-qm", "one")
    git("gc", "-q")
    (root / "b.txt").write_text("real")
    git("status")
    ear.hears(b"b.txt")
    assert ear.paths == [b"b.txt"]
    git("init", "-q", "nested")
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=root / "nested")
    (root / "end").touch()
    ear.hears(b"end")
    assert set(ear.paths) == {b"b.txt", b"nested", b"end"}


def test_skipped_paths_are_not_entered(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """What ``skip`` takes is silent, now and when it is made later."""
    (root / "cache").mkdir()
    watch(skip=lambda path: path.rpartition(b"/")[2] == b"cache")
    (root / "cache/x").write_text("x")
    (root / "src/cache").mkdir()
    (root / "src/cache/y").write_text("y")
    (root / "end").touch()
    ear.hears(b"end")
    assert ear.paths == [b"end"]


def test_writes_close_together_are_one_batch(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """A hundred writes within the settling time give each path once, in one batch; ``stop`` ends that time and loses nothing."""
    watching = watch(settle_s=DEADLINE_S)
    for number in range(100):
        (root / "b.txt").write_text(str(number))
    (root / "end").touch()
    heard = watching._changes
    with heard._wake:
        assert heard._wake.wait_for(lambda: b"end" in heard._paths, DEADLINE_S)
    assert ear.batches == []
    watching.stop()
    watching.stop()
    assert ear.batches == [Batch((b"b.txt", b"end"), True)]


def test_overflow_is_told_and_new_folders_are_found(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """When the kernel's queue runs over, a batch is incomplete, and folders made meanwhile are watched all the same."""
    gate, held = threading.Event(), threading.Event()

    def skip(path: bytes) -> bool:
        held.set()
        return not gate.wait(DEADLINE_S)

    (root / "src").rename(root.parent / "src")
    gate.set()
    watch(skip=skip)
    gate.clear()
    held.clear()
    (root / "b.txt").write_text("hold the reader here")
    assert held.wait(DEADLINE_S)
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(limit // 2 + 1):
        os.close(os.open(root / f"f{number % 1000}", os.O_CREAT | os.O_WRONLY))
        os.unlink(root / f"f{number % 1000}")
    (root / "late").mkdir()
    gate.set()
    ear.until(lambda: not ear.complete)
    (root / "late/file").touch()
    ear.hears(b"late/file")
    ear.batches.clear()
    (root / "b.txt").write_text("after")
    ear.hears(b"b.txt")
    assert ear.batches[-1].complete


def test_root_that_goes_and_comes_back(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """A deleted root is told as incomplete; when it is there again it is watched again, also told as incomplete."""
    watching = watch()
    shutil.rmtree(root)
    ear.until(lambda: not ear.complete)
    ear.batches.clear()
    root.mkdir()
    (root / "again").write_text("x")
    ear.hears(b"again")
    assert not ear.complete
    ear.until(lambda: watching._tree.rooted)
    ear.batches.clear()
    (root / "more").write_text("x")
    ear.hears(b"more")
    assert ear.complete


def test_root_that_was_moved_is_gone(watch: Callable[..., Observer], root: Path, ear: Ear) -> None:
    """A root renamed away is not watched under a path that is no longer its own."""
    watch()
    root.rename(root.parent / "other")
    ear.until(lambda: not ear.complete)
    root.mkdir()
    (root / "here").touch()
    ear.hears(b"here")


def test_unreadable_folder_makes_batches_incomplete(ear: Ear) -> None:
    """A folder that cannot be watched is not passed over in silence."""
    root = Path(tempfile.mkdtemp())
    (root / "closed").mkdir(0)
    root.chmod(0o777)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        watching = Observer(os.fsencode(root), ear)
        watching.start()
        assert watching.wait_ready(DEADLINE_S)
        (root / "b.txt").write_text("x")
        ear.hears(b"b.txt")
        watching.stop()
        assert not ear.complete
    finally:
        os.seteuid(user)
        (root / "closed").chmod(0o755)
        shutil.rmtree(root)


def test_no_watch_to_spare_gives_all_back(root: Path, ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the system's limit the observer gives up whole, says so, and stops cleanly."""
    watching = Observer(os.fsencode(root), ear)
    real = observer.inotify.InotifyFD._get_or_create_watch

    def limited(self: observer.inotify.InotifyFD, path: bytes, mask: observer.inotify.Mask) -> observer.inotify.Watch:
        if path.endswith(b"deep"):
            raise OSError(28, "inotify watch limit reached")
        return real(self, path, mask)

    monkeypatch.setattr(observer.inotify.InotifyFD, "_get_or_create_watch", limited)
    watching.start()
    ear.until(lambda: bool(watching.problem))
    ear.until(lambda: not ear.complete)
    assert "max_user_watches" in watching.problem
    watching.stop()


def test_portable_observer_hears_writes_but_promises_nothing(
    monkeypatch: pytest.MonkeyPatch, watch: Callable[..., Observer], root: Path, ear: Ear
) -> None:
    """Without inotify the paths are the same, ``.git`` and skipped folders are left out, and no batch is complete."""
    monkeypatch.setattr(observer, "HAS_INOTIFY", False)
    (root / ".git").mkdir()
    watch(skip=lambda path: path == b"src")
    (root / ".git/HEAD").write_text("x")
    (root / "src/deep/a.txt").write_text("x")
    (root / "b.txt").read_text()
    (root / "b.txt").rename(root / "c.txt")
    (root / "end").touch()
    ear.hears(b"end", b"b.txt", b"c.txt")
    assert set(ear.paths) == {b"b.txt", b"c.txt", b"end"}
    assert not ear.complete
