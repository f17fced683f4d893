"""What an agent, or its end, does to a repository beyond commits: broken files, replaced repositories, work trees, killed runs."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repo import RepoBuilder


def later(repo: RepoBuilder) -> None:
    """A second commit, so that there is something to go back from."""
    repo.write("b.txt", "second\n")
    repo.commit("second")


def test_the_users_unstaging_does_not_keep_the_agents_commit(repo: RepoBuilder) -> None:
    """``git reset`` after the agent's commit writes ORIG_HEAD, and the commit still goes. Rule: ORIG_HEAD decided on its own."""
    before = repo.head()
    repo.agent_runs("echo agent >agent; git add agent; git commit -qm agent")
    with repo.user():
        repo.sh("echo user >user; git add user; git reset -q")

    repo.undo()

    assert repo.head() == before
    assert not repo.exists("agent")
    assert repo.read("user") == "user\n"


@pytest.mark.parametrize("orig_head", ["rm -f .git/ORIG_HEAD", "git update-ref ORIG_HEAD refs/heads/main"])
def test_branch_moved_back_though_the_user_left_it(repo: RepoBuilder, orig_head: str) -> None:
    """A branch that the agent wrecked is set back after the user checked out another. Rule: each ref by its own three values."""
    later(repo)
    repo.sh("git checkout -q -b dev; echo d >d; git add d; git commit -qm dev; git checkout -q main")
    dev = repo.git("rev-parse", "dev")
    repo.agent_runs(f"git checkout -q dev; git update-ref refs/heads/dev HEAD~2; git reset -q --hard; {orig_head}")
    with repo.user():
        repo.git("checkout", "-q", "main")

    repo.run("undo", "--json")

    assert repo.git("rev-parse", "dev") == dev
    assert repo.branch() == "main"


def test_agents_branch_goes_though_the_user_left_it(repo: RepoBuilder) -> None:
    """A branch the agent made and the user left again is deleted. Rule: each ref by its own three values."""
    repo.agent_runs("git checkout -q -b feature; git commit -q --allow-empty -m f")
    with repo.user():
        repo.git("checkout", "-q", "main")

    repo.run("undo", "--json")

    assert repo.git("branch", "--format=%(refname:short)") == "main"


def test_turn_that_only_fetched_is_not_chosen(repo: RepoBuilder, tmp_path: Path) -> None:
    """Bare undo takes the newest turn that changed what undo sets back. Rule: refs/remotes is never the agent's."""
    repo.git("init", "-q", "--bare", str(tmp_path / "up"))
    repo.sh(f"git remote add origin {tmp_path}/up; git push -q origin main; git -C {tmp_path}/up branch new main")
    repo.agent_runs("rm b.txt")
    repo.agent_runs("git fetch -q")

    repo.undo()

    assert repo.read("b.txt") == "b\n"


def test_reset_onto_a_fetched_commit(repo: RepoBuilder, tmp_path: Path) -> None:
    """The user's unpushed commit comes back to its branches, the agent's new refs go. Rule: pushed means pushed from here."""
    up = tmp_path / "up"
    repo.git("init", "-q", "--bare", str(up))
    repo.sh(f"git remote add origin {up}; git push -q origin main; git clone -q -b main {up} {tmp_path}/other")
    repo.sh("echo up >g; git add g; git commit -qm up; git push -q", cwd=tmp_path / "other")
    repo.write("mine", "mine\n")
    mine = repo.commit("mine")
    repo.git("branch", "dev")
    repo.agent_runs(
        "git fetch -q; git reset -q --hard origin/main; git branch -qf dev origin/main;"
        " git branch -q new origin/main; git tag t origin/main"
    )

    repo.undo()

    refs = repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")
    assert refs.splitlines() == [f"refs/heads/dev {mine}", f"refs/heads/main {mine}"]
    assert repo.read("mine") == "mine\n"


def test_broken_config(repo: RepoBuilder) -> None:
    """A configuration that no git can read comes back: our own command needs no git that starts it."""
    before = repo.picture()
    repo.agent_runs("echo '[broken' >>.git/config; echo agent >a.txt")

    repo.undo()

    repo.assert_is(before)


@pytest.mark.parametrize("wreck", [": >.git/index", "truncate -s 60 .git/index"])
def test_broken_index(repo: RepoBuilder, wreck: str) -> None:
    """An index that git cannot read is a change like any other and comes back. Rule: bad bytes are kept raw, compared raw."""
    repo.sh("echo staged >b.txt; git add b.txt; echo unstaged >b.txt")
    before = repo.picture()
    repo.agent_runs(wreck)

    repo.undo()

    repo.assert_is(before)


@pytest.mark.parametrize("wreck", [": >.git/refs/heads/other", "echo junk >.git/refs/heads/other", ": >.git/HEAD"])
def test_broken_ref(repo: RepoBuilder, wreck: str) -> None:
    """A ref file that names nothing does not stand in the way of undo, and is mended by it. Rule: nothing blocks the files."""
    repo.git("branch", "other")
    before = repo.picture()
    repo.agent_runs(f"rm b.txt; {wreck}")

    repo.undo()

    repo.assert_is(before)


def test_repository_replaced_by_a_new_one(repo: RepoBuilder, tmp_path: Path) -> None:
    """``rm -rf .git; git init`` is undone to the old repository with all it held. Rule: lay back, refs/remotes and work trees too."""
    later(repo)
    repo.sh("git update-ref refs/remotes/origin/main HEAD~1; git worktree add -q -b linked ../linked")
    before = repo.picture()
    remote = repo.git("rev-parse", "refs/remotes/origin/main")
    repo.agent_runs("rm -rf .git; git init -q; git add -A; git commit -qm fresh")

    repo.undo()

    repo.assert_is(before)
    assert repo.git("rev-parse", "refs/remotes/origin/main") == remote
    assert repo.git("status", "-sb", cwd=tmp_path / "linked") == "## linked"


def test_replaced_repository_that_the_user_used_stays(repo: RepoBuilder) -> None:
    """A commit of the user's in the agent's new repository keeps it there, whole, and undo says so. Rule: never over user work."""
    repo.agent_runs("rm -rf .git; git init -q; git add -A; git commit -qm fresh")
    with repo.user():
        repo.sh("echo user >user; git add user; git commit -qm user")
    head = repo.head()

    done = repo.undo(code=3)

    assert repo.head() == head
    assert repo.git("status", "--porcelain") == ""
    assert "used since" in done.text


def test_agents_repository_that_the_user_used_stays_whole(folder: RepoBuilder) -> None:
    """It keeps its settings, hooks and excludes as well. Rule: a repository is taken away whole or not at all."""
    folder.write("a", "a\n")
    folder.agent_runs(
        "git init -q; git add -A; git commit -qm x; echo '*.o' >>.git/info/exclude;"
        " echo '#!/bin/sh' >.git/hooks/pre-push; git config alias.x y"
    )
    with folder.user():
        folder.sh("echo user >user; git add user; git commit -qm user")

    folder.undo(code=3)

    assert folder.git("config", "alias.x") == "y"
    assert folder.read(".git/hooks/pre-push") == "#!/bin/sh\n"
    assert "*.o" in folder.read(".git/info/exclude")
    assert len(folder.git("log", "--format=%h").splitlines()) == 2


def test_linked_work_tree_removed_from_inside(repo: RepoBuilder, tmp_path: Path) -> None:
    """The work tree the agent worked in comes back as one, with index and branch. Rule: its git directory is laid back."""
    repo.git("worktree", "add", "-q", "-b", "linked", "../linked")
    linked = RepoBuilder(tmp_path / "linked", repo.env, init=False)
    linked.sh("echo staged >>b.txt; git add b.txt; echo user >user")
    linked.agent_runs(f"cd {repo.root}; git worktree remove --force ../linked; git branch -qD linked")

    linked.root.mkdir()
    linked.undo()

    assert linked.status().splitlines() == ["M  b.txt", "?? user"]
    assert linked.branch() == "linked"
    assert repo.status() == ""


def test_linked_work_tree_of_the_agent_goes_with_its_branch(repo: RepoBuilder) -> None:
    """``git worktree add -b`` and a commit there leave nothing behind. Rule: a work tree that undo removes holds no branch."""
    before = repo.picture()
    repo.agent_runs("git worktree add -q -b wt wt; cd wt; echo q >q; git add q; git commit -qm q")

    repo.undo()

    repo.assert_is(before)
    assert repo.git("branch", "--format=%(refname:short)") == "main"
    assert len(repo.git("worktree", "list").splitlines()) == 1


def test_modes_of_state_files(repo: RepoBuilder) -> None:
    """HEAD, config, refs and logs are readable again for whom they were. Rule: the mode of a private file is part of it."""
    watched = ["HEAD", "config", "refs/heads/main", "logs/HEAD"]

    def modes() -> list[int]:
        return [stat.S_IMODE(os.stat(repo.path(".git") / name).st_mode) for name in watched]

    before = modes()
    repo.agent_runs("chmod -R go-rwx,u+x .")
    assert modes() != before

    repo.undo()

    assert modes() == before
    assert repo.mode("b.txt") == 0o644


def test_symbolic_ref_is_reported(repo: RepoBuilder) -> None:
    """A symbolic ref that the agent turned is not set back, and the report says how to. Rule: what is not undone is said."""
    repo.git("symbolic-ref", "refs/heads/current", "refs/heads/main")
    repo.git("branch", "other")
    repo.agent_runs("git symbolic-ref refs/heads/current refs/heads/other")

    done = repo.undo(code=3)

    assert "git symbolic-ref refs/heads/current refs/heads/main" in done.text


def test_undo_that_only_kept_is_not_the_end_of_it(repo: RepoBuilder) -> None:
    """A turn whose undo changed nothing is found again once the way is free. Rule: kept is not undone."""
    repo.agent_runs("echo one >n")
    repo.agent_runs("echo two >>n")

    repo.undo("t1", code=3)
    assert repo.read("n") == "one\ntwo\n"
    repo.undo()
    repo.undo()

    assert not repo.exists("n")


def start(repo: RepoBuilder, script: str) -> subprocess.Popen[bytes]:
    """``git safety run`` of a shell script; both ends of the talk are pipes."""
    command = [sys.executable, "-m", "safety.terminal", "run", "--", "/bin/sh", "-c", script]
    environ = {**repo.env, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(command, cwd=repo.root, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_killed_run_is_not_the_users(repo: RepoBuilder) -> None:
    """What a run did whose process died is kept apart, and undone when asked. Rule: no explanation, no owner; never silently."""
    run = start(repo, "rm b.txt; echo n >n; echo ready; read go")
    assert run.stdout and run.stdin
    assert run.stdout.readline() == b"ready\n"
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdin.close()
    run.stdout.close()

    asked = repo.run("undo")
    assert asked.code == 4 and "--include-unattributed" in asked.text
    repo.must("undo", "t1", "--include-unattributed", "--now")

    assert repo.read("b.txt") == "b\n"
    assert not repo.exists("n")


def test_two_runs_at_once_are_shared(repo: RepoBuilder) -> None:
    """Neither undo takes the other's files silently; both are found, named and reachable. Rule: overlapping calls share."""
    first = start(repo, "echo ready; read go; echo A >first; read go")
    second = start(repo, "echo ready; read go; echo B >second")
    assert first.stdin and first.stdout and second.stdin and second.stdout
    assert first.stdout.readline() == b"ready\n"
    assert second.stdout.readline() == b"ready\n"
    first.stdin.write(b"go\n")
    first.stdin.flush()
    second.communicate(b"go\n", timeout=60)
    first.communicate(b"go\n", timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)

    done = repo.run("undo", "t1", "--json")
    assert done.code == 3, done.text
    kept = json.dumps(json.loads(done.out))
    assert "first" in kept and "second" in kept
    assert repo.exists("first") and repo.exists("second")

    repo.must("undo", "t2", "--include-unattributed", "--now")
    assert not repo.exists("first") and not repo.exists("second")
