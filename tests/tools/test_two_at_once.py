"""Two conversations in one repository: both end at the same time, and one works while the other's checks run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.process import Forked
from tests.support.repo import RepoBuilder
from tests.tools.test_interrupted_end import end_all, event, pids, until
from tests.tools.turn_ends import NO_BAD_WORDS, checks, files_of, settings, starts

MEETING = """#!/bin/sh
echo $$ >>{folder}/pids
while ! test -e {folder}/done; do sleep 0.05; done
"""


def both_write(repo: RepoBuilder, *, same: bool = False) -> None:
    for session in ("one", "two"):
        starts(repo, session_id=session)
    for session in ("one", "two"):
        path = "a.txt" if same else f"{session}.txt"
        with repo.call(session=session, tool="edit", input={"path": str(repo.path(path))}):
            if same:
                repo.replace(path, *(("line 1\n", "one 1\n") if session == "one" else ("line 9\n", "two 9\n")))
            else:
                repo.write(path, session)


def ended(repo: RepoBuilder, sessions: tuple[str, ...] = ("one", "two")) -> list[dict[str, object]]:
    """Both ends at once; the answers."""
    asked = [{"event": "turn.post", "session_id": session, "cwd": str(repo.root)} for session in sessions]
    running = [Forked(["hook", "--agent", "generic"], repo.root, repo.env, json.dumps(one).encode()) for one in asked]
    done = [one.wait() for one in running]
    assert [one.code for one in done] == [0] * len(sessions), [one.text for one in done]
    return [json.loads(one.out) for one in done]


@pytest.mark.parametrize("checked", [True, False], ids=["checks", "no checks"])
@pytest.mark.parametrize("same", [True, False], ids=["one file", "two files"])
def test_two_ends_at_once(repo: RepoBuilder, checked: bool, same: bool) -> None:
    """Each makes its own commit, one after the other, and nothing is left."""
    settings(repo)
    if checked:
        checks(repo, NO_BAD_WORDS)
    base = repo.head()
    both_write(repo, same=same)
    answers = ended(repo)
    assert [answer["decision"] for answer in answers] == ["stop", "stop"], answers
    assert repo.git("rev-list", "--count", f"{base}..") == "2" and repo.status() == "", answers
    assert sorted(files_of(repo) + files_of(repo, "HEAD~1")) == (["a.txt"] * 2 if same else ["one.txt", "two.txt"])
    for _ in range(2):
        assert repo.run("undo", "--now").code in (0, 3)  # a commit below the other's stays
    assert repo.git("diff", base) == ""


def test_one_end_heard_twice_at_once(repo: RepoBuilder) -> None:
    """The same end in two processes at the same time is one commit."""
    settings(repo)
    checks(repo, NO_BAD_WORDS)
    base = repo.head()
    starts(repo)
    with repo.call():
        repo.write("a.txt", "agent\n")
    ended(repo, (repo.session, repo.session))
    assert repo.git("rev-list", "--count", f"{base}..") == "1" and repo.status() == ""
    rows = json.loads(repo.must("log", "--json", "--all").out)["rows"]
    assert [row["handle"] for row in rows if row["handle"][1:].isdigit()] == ["t1"]


def test_another_works_while_checks_run(repo: RepoBuilder, tmp_path: Path) -> None:
    """No lock of ours is held while checks run: another conversation's call begins and ends meanwhile, and its change is its own."""
    outside = tmp_path / "outside"
    outside.mkdir()
    settings(repo)
    checks(repo, MEETING.format(folder=outside))
    starts(repo, session_id="one")
    with repo.call(session="one"):
        repo.write("one.txt", "one\n")
    repo.session = "one"
    process = event(repo, "turn.post")
    try:
        until(lambda: len(pids(outside)) == 1)
        starts(repo, session_id="two")
        with repo.call(session="two"):
            repo.write("two.txt", "two\n")
        assert process.poll() is None
        (outside / "done").touch()
        out, err = process.communicate(timeout=60)
    except BaseException:
        process.kill()
        end_all(pids(outside))
        raise
    assert process.returncode == 0, out + err
    assert files_of(repo) == ["one.txt"] and repo.status() == "?? two.txt"
    repo.hook("turn.post", session_id="two")
    assert files_of(repo) == ["two.txt"]


def test_user_works_while_checks_run(repo: RepoBuilder, tmp_path: Path) -> None:
    """What the user stages, commits and edits while the checks run is neither lost nor in our commit."""
    outside = tmp_path / "outside"
    outside.mkdir()
    settings(repo)
    checks(repo, MEETING.format(folder=outside))
    starts(repo)
    with repo.call():
        repo.write("one.txt", "one\n")
    process = event(repo, "turn.post")
    try:
        until(lambda: len(pids(outside)) == 1)
        with repo.user():
            repo.write("b.txt", "user\n")
            repo.git("commit", "-qam", "user's")
            repo.write("mine", "user\n")
            repo.git("add", "mine")
            repo.write("a.txt", "user\n")
        (outside / "done").touch()
        out, err = process.communicate(timeout=60)
    except BaseException:
        process.kill()
        end_all(pids(outside))
        raise
    assert process.returncode == 0, out + err
    assert files_of(repo) == ["one.txt"] and files_of(repo, "HEAD~1") == ["b.txt"]
    assert sorted(repo.status().split("\n")) == [" M a.txt", "A  mine"]
