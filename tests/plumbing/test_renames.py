"""A file put in the place of another, by exchange where the system has one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from safety.plumbing import renames
from safety.plumbing.odb import ObjectStore
from safety.plumbing.renames import EXCHANGE, NOREPLACE, Rename, load_rename, put_in_place
from tests.support.store import store_git


def test_new_takes_the_place_and_nothing_stays_beside(tmp_path: Path) -> None:
    """Over another file and where there is none: afterwards there is the one name with the new bytes."""
    place = tmp_path / "file"
    for text in ("first", "second", "third"):
        (tmp_path / "new").write_text(text)
        put_in_place(tmp_path / "new", place)
        assert [entry.name for entry in tmp_path.iterdir()] == ["file"] and place.read_text() == text


def test_an_exchange_is_what_is_done(tmp_path: Path) -> None:
    """The file that was open before keeps its bytes and its name is gone: it was exchanged and removed, not written over."""
    done: list[int] = []
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    load_rename()(-100, os.fsencode(tmp_path / "a"), -100, os.fsencode(tmp_path / "b"), EXCHANGE)
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text(), done) == ("old", "new", [])
    with pytest.raises(FileExistsError):
        load_rename()(-100, os.fsencode(tmp_path / "a"), -100, os.fsencode(tmp_path / "b"), NOREPLACE)


def test_without_exchange_it_is_a_replace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that cannot exchange costs time, nothing else."""

    def missing(*words: object) -> None:
        raise OSError(errno.EINVAL, "not here")

    wanted: Callable[[], Rename] = lambda: missing  # noqa: E731 - what load_rename gives
    monkeypatch.setattr(renames, "load_rename", wanted)
    (tmp_path / "new").write_text("new")
    (tmp_path / "file").write_text("old")
    put_in_place(tmp_path / "new", tmp_path / "file")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "new"


def test_a_ref_that_git_wrote_is_never_left_at_the_locks_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of an exchange, the old ref lies where the lock was. The next one must know it for ours, so a ref that
    git itself wrote, which looks like git's lock, is replaced the slow way once."""
    store_git(tmp_path, "init", "-q", "--bare", str(tmp_path))
    odb = ObjectStore(tmp_path)
    one, two, three = (odb.write("blob", text) for text in (b"1", b"2", b"3"))
    store_git(tmp_path, "update-ref", "refs/safety/x", one.hex())

    def killed(path: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", killed)
        odb.move_ref("refs/safety/x", one, two)
        with pytest.raises(KeyboardInterrupt):
            odb.move_ref("refs/safety/x", two, three)
    assert odb.ref("refs/safety/x") == three
    assert (tmp_path / "refs/safety/x.lock").exists()
    odb.move_ref("refs/safety/x", three, one)
    assert odb.ref("refs/safety/x") == one and not (tmp_path / "refs/safety/x.lock").exists()
