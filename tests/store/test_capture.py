"""Captures as the engine takes them, in one process."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from safety.runtime.open import open_session
from safety.session import Call, Session
from safety.store.capture import after_apply
from safety.store.snapshot import Snapshot
from tests.support.environment import isolated
from tests.support.state import dot_git_fingerprint

CAPTURES = 1000


def session_in(tmp_path: Path) -> tuple[Path, Session]:
    env = isolated(tmp_path)
    root = tmp_path / "work"
    root.mkdir()
    script = (
        "git init -q -b main .; for i in 1 2 3; do echo $i >f$i; done; git add .; git commit -qm first; "
        "echo s >s; git add s; git stash -q; echo u >u"
    )
    subprocess.run(["sh", "-c", script], cwd=root, env=env, check=True)
    return root, open_session(os.fsencode(root), "s", env)


def test_a_thousand_captures_leave_the_git_directory_alone(tmp_path: Path) -> None:
    """After 1,000 captures every file under .git has the bytes, inode and mtime it had before.

    Rule: captures write nothing into the user's repository, borrow nothing from it, and change no mtime in it.
    """
    root, session = session_in(tmp_path)
    before = dot_git_fingerprint(root)
    session.turn_start("work")
    for number in range(CAPTURES // 2):
        paths = (b"f1",) if number % 5 else None
        call = Call(f"c{number}", "write" if paths else "shell", {}, session.root, paths)
        session.pre(call)
        (root / "f1").write_text(f"{number}\n" if number % 7 else "1\n")  # known content again and again
        session.post(call)
    session.turn_end()

    assert session.take_notices() == []
    assert dot_git_fingerprint(root) == before
    operations = sum(1 for _ in session.log.walk())
    assert operations > CAPTURES // 3


def test_unchanged_workspace_adds_nothing(tmp_path: Path) -> None:
    """A capture that finds nothing changed is no operation and writes no object."""
    _, session = session_in(tmp_path)
    with session.locked():
        first = session.refresh()
    objects = session.place.odb.loose_count()
    with session.locked():
        assert session.refresh().oid == first.oid

    assert session.place.odb.loose_count() == objects


def test_lost_caches_cost_time_only(tmp_path: Path) -> None:
    """Without the private index and the caches the next capture finds the same and nothing else."""
    root, session = session_in(tmp_path)
    with session.locked():
        first = session.refresh()
    for name in ("index", "index.synced", "directories.json", "gitfiles.json"):
        (session.place.state / name).unlink()
    with session.locked():
        assert session.refresh().oid == first.oid
    for name in ("index", "index.synced", "directories.json", "gitfiles.json"):
        (session.place.state / name).write_bytes(b"\0garbage")
    (root / "f2").write_text("changed\n")
    with session.locked():
        second = session.refresh()

    assert second.parent == first.oid


def test_damaged_private_index_is_made_anew(tmp_path: Path) -> None:
    """A private index that git cannot read is no failure: it only saves work."""
    root, session = session_in(tmp_path)
    with session.locked():
        first = session.refresh()
    (session.place.state / "index").write_bytes(b"DIRC" + b"\xff" * 40)
    (root / "f2").write_text("changed\n")

    with session.locked():
        second = session.refresh()

    assert (second.parent, session.take_notices(), second.record.not_covered) == (first.oid, [], ())


def test_lock_of_a_git_that_was_killed_is_nobodys(tmp_path: Path) -> None:
    """A git that was killed as it wrote the private index leaves its lock, and a later capture is no failure for it.

    Rule: only the holder of the workspace's lock writes there.
    """
    root, session = session_in(tmp_path)
    with session.locked():
        first = session.refresh()
    (session.place.state / "index.lock").touch()
    (root / "f2").unlink()

    with session.locked():
        second = session.refresh()

    assert (second.parent, session.take_notices(), second.record.not_covered) == (first.oid, [], ())


def test_git_files_that_came_before_a_kill_and_went_after_it_are_gone(tmp_path: Path) -> None:
    """A cache that a kill left behind its snapshot does not keep a branch alive that is gone from the disk."""
    root, session = session_in(tmp_path)
    cache = session.place.state / "gitfiles.json"
    with session.locked():
        session.refresh()
    behind = cache.read_bytes()
    git(root, "branch", "passing")
    with session.locked():
        session.refresh()
    cache.write_bytes(behind)  # as if killed after the operation was published and before its caches were
    git(root, "branch", "-D", "passing")
    with session.locked():
        newest = session.refresh()

    assert b"refs/heads/passing" not in refs_of(session, newest.tree)


def test_a_draft_that_never_became_an_operation_hides_nothing(tmp_path: Path) -> None:
    """What a killed undo saw of git's files is captured anew: no cache is ahead of its snapshot."""
    root, session = session_in(tmp_path)
    with session.locked():
        head = session.refresh()
        git(root, "branch", "new")
        later = replace(session.place, now_ns=lambda: time.time_ns() + 10**10)  # so that what it sees is not too new to be trusted
        after_apply(later, head.tree, (), [b""])  # and then killed
        newest = session.refresh()

    assert b"refs/heads/new" in refs_of(session, newest.tree)


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], env=isolated(root.parent), check=True, capture_output=True)


def refs_of(session: Session, tree: bytes) -> list[bytes]:
    return [name for name in Snapshot(session.place.odb, tree).git_files(b".git") if name.startswith(b"refs/")]
