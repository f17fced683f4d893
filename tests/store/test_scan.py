"""What a scan makes of files that the user's own index vouches for, and what it reads again.

The scan's clock is ahead, so that files made a moment ago count as old: git's stat cache is trusted then, as it is in real life.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

import safety.store.capture as capturing
from safety.runtime.open import open_session
from safety.store.capture import everything
from safety.store.declared import Draft
from safety.store.gitdir import GitDirectories
from safety.store.place import Place
from safety.store.snapshot import Snapshot
from safety.types import STIRRED, NotCovered
from tests.support.repo import RepoBuilder

AHEAD_NS = 60 * 10**9


@pytest.fixture
def place(user: RepoBuilder) -> Iterator[Place]:
    session = open_session(os.fsencode(user.root), "s", user.env)
    yield replace(session.place, now_ns=lambda: time.time_ns() + AHEAD_NS)


def scanned(place: Place, before: Draft | None = None) -> Draft:
    draft = everything(place, None if before is None else before.tree)
    draft.settle()
    return draft


CONVERSIONS = {
    "autocrlf": r"git config core.autocrlf input; printf 'l1\r\nl2\r\n' >w",
    "text": r"echo '* text=auto' >.gitattributes; printf 'l1\r\nl2\r\n' >w",
    "ident": "echo 'w ident' >.gitattributes; echo '$Id: anything $' >w",
    "encoding": r"echo 'w working-tree-encoding=UTF-16' >.gitattributes; printf '\376\377\0h\0i' >w",
    "filter": "git config filter.f.clean 'tr a-z b-za'; echo 'w filter=f' >.gitattributes; echo data >w",
}


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_converted_content_is_taken_as_it_lies_on_disk(user: RepoBuilder, place: Place, conversion: str) -> None:
    """A clean entry whose blob holds other bytes than the file is not believed. Rule: suspect entries are hashed raw."""
    user.sh(f"{CONVERSIONS[conversion]}; touch -d @1500000000 w; git add -A 2>/dev/null; git diff --quiet")
    assert user.git("rev-parse", ":w") != user.git("hash-object", "--no-filters", "w")

    draft = scanned(place)

    assert Snapshot(place.odb, draft.tree).read(b"w") == user.read_bytes("w")


def test_settings_of_the_repository_do_not_blind_a_scan(user: RepoBuilder, place: Place) -> None:
    """A mode is seen though git itself was told not to look at it. Rule: what the file system can do is never read from there."""
    for setting in ("core.fileMode=false", "core.trustctime=false"):
        user.git("config", *setting.split("="))
    first = scanned(place)
    user.sh("chmod 755 a.txt")
    assert user.status() == ""

    assert scanned(place, first).changed == [b"a.txt"]


def test_what_did_not_change_in_git_is_not_read_again(user: RepoBuilder, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the index nor a folder of refs; each is when it changes. Rule: read again only where time stamps changed."""
    user.git("branch", "deep/er")
    first = scanned(place)
    read: list[bytes] = []
    look, read_index = GitDirectories._read, capturing.read_index

    def noted(self: GitDirectories, top: bytes, path: bytes, *args: object, **named: object) -> None:
        read.append(path)
        look(self, top, path, *args, **named)  # type: ignore[arg-type]

    def noted_index(git_dir: bytes, odb: object) -> object:
        read.append(b"index")
        return read_index(git_dir, odb)  # type: ignore[arg-type]

    monkeypatch.setattr(GitDirectories, "_read", noted)
    monkeypatch.setattr(capturing, "read_index", noted_index)

    user.write("a.txt", "two\n")
    second = scanned(place, first)
    assert [path for path in read if path.startswith((b".git/refs", b"index"))] == []
    user.sh("git branch deep/new; git add a.txt")
    third = scanned(place, second)

    assert third.git_changed
    assert [path for path in read if path.startswith((b".git/refs", b"index"))] == [b".git/refs/heads/deep", b"index"]


def test_ignored_folder_in_which_a_name_came_or_went_is_remarked_on(user: RepoBuilder, place: Place) -> None:
    """Once, and it is no change; not for a file written in place, nor for what happens deeper or in a ``__pycache__``.

    Rule: one lstat, never a walk.
    """
    user.write(".gitignore", "build/\n__pycache__/\n")
    user.write("build/deep/x", "1\n")
    user.write("__pycache__/x", "1\n")
    user.write("build/out", "1\n")
    draft = scanned(place)

    def remarks() -> list[NotCovered]:
        nonlocal draft
        draft = scanned(place, draft)
        assert not draft.is_change
        return draft.not_covered

    assert remarks() == []
    user.write("build/out", "2\n")
    user.write("__pycache__/y", "1\n")
    user.remove("build/deep/x")
    assert remarks() == []
    user.write("build/new", "1\n")
    assert remarks() == [NotCovered(b"build", STIRRED)]
    assert remarks() == []
    user.remove("build/new")
    user.write("build/deep/y", "1\n")
    assert remarks() == [NotCovered(b"build", STIRRED)]


def test_ignored_folders_are_known_again_after_the_cache_is_lost(user: RepoBuilder, place: Place) -> None:
    """The snapshot names them; what came or went between the two scans is missed."""
    user.write(".gitignore", "build/\n")
    user.write("sub/build/x", "1\n")
    draft = scanned(place)
    (place.state / "directories.json").unlink()
    draft = scanned(place, draft)
    assert not draft.has_stirred
    user.write("sub/build/y", "1\n")
    assert scanned(place, draft).has_stirred
