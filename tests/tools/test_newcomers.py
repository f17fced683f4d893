"""What somebody met who knew nothing but the README: each was wrong once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import process
from tests.support.repo import RepoBuilder
from tests.tools.turn_ends import settings


def test_named_files_in_the_home_folder_come_back(env: dict[str, str], tmp_path: Path) -> None:
    """The home folder is too wide for a scan; what a tool names there is held all the same, and undo works."""
    home = RepoBuilder(Path(env["HOME"]), env, init=False)
    home.write("notes", "mine\n")
    home.agent_writes("notes", "agent\n")
    home.undo()
    assert home.read("notes") == "mine\n"


def test_a_look_makes_no_workspace(env: dict[str, str], tmp_path: Path) -> None:
    """A folder that was only looked at does not take in the repositories that are made below it later."""
    outer = RepoBuilder(tmp_path / "par", env, init=False)
    for words in (
        ["log"],
        ["status"],
        ["undo"],
        ["undo", "--dry-run"],
        ["redo"],
        ["doctor", "--fast"],
        ["trust", "--list"],
        ["find", "x"],
    ):
        outer.run(*words)
    one, two = (RepoBuilder(tmp_path / "par" / name, env) for name in "ab")
    for repo in (one, two):
        repo.write("f", "1\n")
        repo.commit("first")
        repo.agent_runs("echo 2 >f")
    one.undo()
    assert (one.read("f"), two.read("f")) == ("1\n", "2\n")


@pytest.mark.parametrize("broken", ["{", '{"gate": {"enabled": "maybe"}}', "[]"])
def test_settings_that_cannot_be_read_take_no_undo_away(repo: RepoBuilder, broken: str) -> None:
    """What looks or takes back works with the defaults and names the file in one line; what lets things run refuses as before."""
    repo.agent_writes("src/new.py", "x\n")
    settings(repo)
    file = Path(repo.env["XDG_CONFIG_HOME"]) / "git-safety" / "settings.json"
    file.write_text(broken)
    for words in (
        ["log"],
        ["show"],
        ["diff"],
        ["status"],
        ["find", "new"],
        ["undo"],
        ["redo"],
        ["restore", "--before", "t1", "src"],
    ):
        done = repo.must(*words)
        assert len([line for line in done.err.splitlines() if str(file) in line and "defaults" in line]) == 1, done.text
    repo.must("recover", code=4)
    assert not repo.exists("src/new.py")
    doctor = repo.must("doctor", "--fast", code=1)
    assert str(file) in doctor.out and "$EDITOR" in doctor.out
    for words in (["commit"], ["trust"], ["snapshot"], ["store", "forget"]):
        repo.must(*words, code=2)
    assert repo.hook_raw("tool.execute.pre", call_id="c", tool="shell", input={"command": "make"}).code == 1
    settings(repo)


def test_fail_closed_holds_whatever_fails(repo: RepoBuilder) -> None:
    """With ``fail_closed`` a call is denied also where the handler that takes the snapshot breaks."""
    settings(repo, fail_closed=True, autocommit={"enabled": False})
    repo.hook("turn.pre", prompt="x")
    folder = next((repo.state / "stores").glob("*.git")) / "objects"
    folder.rename(folder.with_name("gone"))
    folder.write_text("no folder\n")
    try:
        done = repo.hook_raw("tool.execute.pre", call_id="c", tool="shell", input={"command": "make"})
    finally:
        folder.unlink()
        folder.with_name("gone").rename(folder)
    assert json.loads(done.out)["decision"] == "deny"


def test_commit_typed_with_an_option(repo: RepoBuilder) -> None:
    """``/commit --dry-run`` commits nothing, any other option is refused."""
    settings(repo, autocommit={"enabled": False})
    base = repo.head()
    with repo.agent():
        repo.write("a.txt", "agent\n")
    for prompt, word in (("/commit --dry-run", "Would commit 1 file"), ("/commit --all", "typed /commit")):
        answer: dict[str, Any] = repo.hook("turn.pre", prompt=prompt)
        assert answer["handled"] and word in answer["notices"][0] and repo.head() == base, answer


def test_commit_takes_every_handle(repo: RepoBuilder) -> None:
    """``@`` is the newest turn, as it is for show and undo."""
    settings(repo, autocommit={"enabled": False})
    with repo.agent():
        repo.write("a.txt", "agent\n")
    repo.must("commit", "@", "-m", "by handle")
    assert repo.git("log", "-1", "--format=%s") == "by handle"


def test_commit_where_there_is_no_repository(folder: RepoBuilder) -> None:
    """It says so, instead of that all is committed."""
    settings(folder, autocommit={"enabled": False})
    folder.run("run", "--", "sh", "-c", "echo x >y")
    done = folder.must("commit", code=1)
    assert "no git repository" in done.text


def test_runs_of_a_person_are_one_conversation(repo: RepoBuilder) -> None:
    """Two commands under ``run``, then one commit with both, which names no agent."""
    settings(repo, autocommit={"enabled": False})
    for name in ("one", "two"):
        repo.must("run", "-q", "--", "sh", "-c", f"echo x >{name}")
    repo.must("commit")
    assert repo.git("show", "--format=", "--name-only").splitlines() == ["one", "two"]
    assert "Assisted-by" not in repo.git("log", "-1", "--format=%B")


def test_unknown_agent_is_an_error(repo: RepoBuilder) -> None:
    """A name without an adapter is not taken for the generic form."""
    done = process.run(["hook", "--agent", "nosuch"], repo.root, repo.env, b"{}")
    assert done.code == 1 and "unknown-agent" in done.err


def test_missing_plugin_does_not_make_run_lie(repo: RepoBuilder) -> None:
    """``run`` calls no handlers: a plugin that is not there does not make it say that nothing is protected."""
    settings(repo, plugins=["nosuch"])
    done = repo.must("run", "--", "sh", "-c", "echo x >y")
    assert "not protected" not in done.text and os.path.exists(repo.path("y"))


def test_what_a_commit_left_out_can_be_included_after_it(repo: RepoBuilder) -> None:
    """The first commit names the file that holds the user's line too, the second one takes it whole when asked to."""
    settings(repo, autocommit={"enabled": False})
    with repo.user():
        repo.replace("a.txt", "line 5\n", "line 5, mine\n")
    with repo.agent():
        repo.replace("a.txt", "line 5, mine\n", "line 5, the agent's\n")
        repo.write("new", "agent\n")
    repo.must("commit", code=3)
    assert repo.git("show", "--format=", "--name-only").splitlines() == ["new"]
    repo.must("commit", "--include-mine")
    assert repo.git("show", "--format=", "--name-only").splitlines() == ["a.txt"] and repo.status() == ""


def test_an_empty_message_is_no_message(repo: RepoBuilder) -> None:
    """``-m ''`` is refused instead of passed over."""
    assert "empty message" in repo.must("commit", "-m", "", code=2).text
