"""Undo of a turn whose end has committed: as a whole, in parts, with work of the user's on top, and pushed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.repo import NINE_LINES, RepoBuilder
from tests.tools.turn_ends import ends, files_of, settings, starts


@pytest.fixture
def committed(repo: RepoBuilder) -> RepoBuilder:
    """A repository whose last turn has changed two files and committed them, with something of the user's staged before."""
    settings(repo)
    repo.write("mine", "user\n")
    repo.git("add", "mine")
    starts(repo)
    with repo.call():
        repo.replace("a.txt", "line 1\n", "agent 1\n")
        repo.replace("a.txt", "line 9\n", "agent 9\n")
        repo.write("b.txt", "agent\n")
    ends(repo)
    assert files_of(repo) == ["a.txt", "b.txt"]
    return repo


def test_whole_undo_and_redo(committed: RepoBuilder) -> None:
    """Files, index and branch go back; redo brings the very commit again, and undo takes it back once more."""
    after, commit = committed.picture(), committed.head()
    committed.undo()
    assert committed.read("a.txt") == NINE_LINES and committed.status() == "A  mine" and committed.head() != commit
    committed.redo()
    committed.assert_is(after)
    assert committed.head() == commit
    committed.undo()
    assert committed.read("b.txt") == "b\n" and committed.status() == "A  mine"


def test_undo_of_one_path(committed: RepoBuilder) -> None:
    """Only that file goes back; the commit stands, and the next commit does not hold the file again."""
    commit = committed.head()
    committed.undo("--", "b.txt")
    assert committed.head() == commit and committed.read("b.txt") == "b\n" and "agent" in committed.read("a.txt")
    assert committed.status().splitlines() == [" M b.txt", "A  mine"]
    starts(committed)
    with committed.call():
        committed.write("c.txt", "agent\n")
    ends(committed)
    assert files_of(committed) == ["c.txt"] and " M b.txt" in committed.status()


def test_choice_of_hunks_without_a_terminal(committed: RepoBuilder) -> None:
    """Nobody is there to choose: nothing is undone, the command for all of it is named."""
    commit = committed.head()
    done = committed.run("undo", "-p")
    assert done.code == 4 and "git safety undo t1" in done.text
    assert committed.head() == commit and committed.status() == "A  mine"


def test_undo_with_a_commit_of_the_users_on_top(committed: RepoBuilder) -> None:
    """The user has committed since: no commit is moved, the files are reversed, the user's stay. What a revert is for is said."""
    commit = committed.head()[:7]
    committed.write("c.txt", "user\n")
    committed.git("add", "c.txt")
    committed.git("commit", "-qm", "user's")
    head = committed.head()
    said = f"there are commits on top of {commit} now; commits stay, files are set back; to take the commit back: git revert {commit}"
    assert said in committed.undo(code=3).text
    assert committed.head() == head and committed.read("a.txt") == NINE_LINES and committed.read("c.txt") == "user\n"
    committed.redo()
    assert committed.head() == head and committed.read("b.txt") == "agent\n" and committed.status() == ""


def test_undo_of_a_pushed_commit(committed: RepoBuilder, tmp_path: Path) -> None:
    """What was pushed stays on the branch and is named; the files are reversed in the work tree."""
    committed.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    committed.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    committed.git("push", "-q", "-u", "origin", "main")
    head = committed.head()
    assert "push" in committed.undo(code=3).text
    assert committed.head() == head
    assert committed.read("a.txt") == NINE_LINES


def test_undo_in_the_prompt(committed: RepoBuilder) -> None:
    """``/undo`` takes the commit back as the command line does."""
    commit = committed.head()
    answer = starts(committed, "/undo")
    assert answer["handled"] and committed.head() != commit and committed.read("b.txt") == "b\n"


def test_undo_of_the_turn_before(committed: RepoBuilder) -> None:
    """The turn before the last has a commit below another of ours: its files are reversed, both commits stand."""
    starts(committed)
    with committed.call():
        committed.write("c.txt", "agent\n")
    ends(committed)
    head = committed.head()
    committed.undo("t1", code=3)
    assert committed.head() == head and committed.read("a.txt") == NINE_LINES
    assert committed.read("c.txt") == "agent\n"


def test_undo_after_the_user_changed_branches(committed: RepoBuilder) -> None:
    """The branch that holds the commit goes back only where that harms nothing on the branch the user is on now."""
    committed.git("switch", "-q", "-c", "other", "HEAD~1")
    other = committed.head()
    done = committed.run("undo", "--json")
    assert "Traceback" not in done.text
    assert committed.branch() == "other" and committed.head() == other
    assert committed.read("a.txt") == NINE_LINES and committed.status() == "A  mine"
