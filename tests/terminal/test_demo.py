"""The demonstration: it goes the same wherever it is shown, and leaves nothing behind."""

from __future__ import annotations

import os
import shlex
import sys

import pytest

from tests.support.process import PROJECT, run_spawned
from tests.support.repo import RepoBuilder

HOSTILE = """[core]
hooksPath = /nowhere/hooks
autocrlf = true
[commit]
gpgsign = true
[init]
defaultBranch = odd/name
templateDir = /nowhere/template
[user]
useConfigOnly = true
"""


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"LC_ALL": "C"},
        {"TMPDIR": "."},
        {"TMPDIR": "/nowhere"},
        {"HOME": "/nowhere"},
        {"GIT_DIR": "/nowhere", "TZ": "Asia/Tokyo"},
    ],
    ids=" ".join,
)
def test_it_goes_everywhere(repo: RepoBuilder, odd: dict[str, str]) -> None:
    """All comes back, whatever the environment and the user's settings of git are; the folder and the store are gone after it."""
    (repo.root.parent / "home" / ".gitconfig").write_text(HOSTILE)
    folder = repo.root.parent / "shown"
    folder.mkdir()
    done = run_spawned(["demo"], folder, {**repo.env, "TMPDIR": str(folder), **odd})
    assert (done.code, done.err) == (0, "") and "all is as it was.\n" in done.out and "prices.db too" in done.out
    assert os.listdir(folder) == []


def test_in_a_folder_that_is_gone(repo: RepoBuilder) -> None:
    """It needs none."""
    words = f"{shlex.quote(sys.executable)} -m safety.terminal demo"
    done = repo.sh(f"mkdir gone; cd gone; rmdir ../gone; PYTHONPATH={shlex.quote(str(PROJECT))} {words}")
    assert "prices.db too" in done
