"""Linked work trees outside the workspace: what became of them is told, since no snapshot of it holds their files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.repo import RepoBuilder


@pytest.fixture
def linked(repo: RepoBuilder) -> Path:
    """The folder of a linked work tree with a branch of its own, beside the repository."""
    repo.git("worktree", "add", "-q", "-b", "side", "../linked")
    return repo.root.parent / "linked"


@pytest.mark.parametrize("command", ["git worktree remove --force ../linked", "git worktree prune"])
def test_removed_work_tree_is_named(repo: RepoBuilder, linked: Path, command: str) -> None:
    """With its branch left, nothing else of the repository changes: undo, show and the log name it all the same."""
    if "prune" in command:
        shutil.rmtree(linked)
    repo.agent_runs(command)

    said = repo.run("undo")
    assert said.code == 3 and f"the linked work tree {linked} was removed; its files are in no snapshot" in said.text
    shown = repo.must("show", "t1").out
    assert f"the linked work tree {linked} was removed" in shown and "Nothing changed" not in shown
    assert "linked work tree outside of the workspace" in repo.must("log", "--not-covered").out


def test_lock_is_set_back(repo: RepoBuilder, linked: Path) -> None:
    """It is a file of git's like any other, and told in words."""
    repo.agent_runs("git worktree lock ../linked")
    repo.agent_runs("git worktree unlock ../linked")

    for turn, became, is_locked in (("t2", "unlocked", True), ("t1", "locked", False)):
        repo.undo(turn)
        assert ("locked" in repo.git("worktree", "list", "--porcelain")) == is_locked
        assert f"the linked work tree {linked} was {became}" in repo.must("show", turn).out


def test_added_work_tree_without_a_branch_is_named(repo: RepoBuilder, linked: Path) -> None:
    """One on no branch leaves no other trace in the repository. It stays."""
    other = linked.with_name("other")
    repo.agent_runs("git worktree add -q --detach ../other")

    said = repo.run("undo")

    assert said.code == 3 and f"git worktree remove {other}" in said.text
    assert other.is_dir()
    assert f"the linked work tree {other} was added" in repo.must("show", "t1").out


def test_work_tree_in_which_only_something_happened_is_no_change(repo: RepoBuilder, linked: Path) -> None:
    """A commit there changes what git keeps of it, and no work tree came or went."""
    repo.agent_runs("cd ../linked; echo x >b.txt; git add b.txt; git reset -q --hard")

    assert "linked work tree" not in repo.must("show", "t1").out + repo.run("undo").text
