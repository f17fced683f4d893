"""Git directories that are not the workspace's alone: a `.git` that only leads to one, work trees beside it, a repository made anew."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.repo import RepoBuilder


def tree_picture(top: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below a folder, git's own among them: mode and content."""
    picture = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        content = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        picture[str(path.relative_to(top))] = (mode, content)
    return picture


@pytest.fixture
def main(tmp_path: Path, folder: RepoBuilder) -> Path:
    """A repository beside the workspace, with an object that no ref names."""
    place = tmp_path / "main"
    place.mkdir()
    folder.sh("git init -q; echo a >a; git add a; git commit -qm one; echo hook >.git/hooks/pre-push", cwd=place)
    folder.git("hash-object", "-w", "--stdin", cwd=place, input="precious\n")
    return place


@pytest.fixture
def linked(main: Path, folder: RepoBuilder) -> RepoBuilder:
    """The workspace as a linked work tree of it."""
    folder.root.rmdir()
    folder.git("worktree", "add", "-q", str(folder.root), "-b", "side", cwd=main)
    return folder


@pytest.mark.parametrize("reach", ['echo "gitdir: {0}" >{1}', "ln -s {0} {1}"])
@pytest.mark.parametrize("where", [".git", "lib/.git"])
def test_repository_that_a_new_link_leads_to_stays(folder: RepoBuilder, main: Path, where: str, reach: str) -> None:
    """The agent's link goes, what it leads to was there before. Rule: absent from a snapshot is not "did not exist"."""
    repo = folder
    repo.write("lib/x", "x")
    before = tree_picture(main)
    repo.agent_runs(reach.format(main / ".git", where))

    repo.undo()
    assert not repo.exists(where)
    assert tree_picture(main) == before

    repo.must("redo")
    assert repo.exists(where)
    assert tree_picture(main) == before


def test_own_directory_of_a_linked_work_tree_stays(linked: RepoBuilder, main: Path) -> None:
    """A `.git` file that was away for a while comes to the agent's account, its work tree's HEAD and index do not."""
    repo = linked
    repo.sh("mv .git ../dotgit")
    repo.agent_runs("cp ../dotgit .git; echo z >>a; git commit -qam z")

    repo.run("undo", "--json")

    assert (main / ".git/worktrees").is_dir()
    assert not repo.exists(".git")


@pytest.mark.parametrize("act", ["rm .git; echo z >>a", "rm -rf a .git", "rm -rf $PWD/* $PWD/.git"])
def test_link_that_the_agent_removed(linked: RepoBuilder, main: Path, act: str) -> None:
    """Undo and redo are about the link alone; the directory it led to is shared. Rule: redo takes away what undo brought."""
    repo = linked
    before, shared = tree_picture(repo.root), tree_picture(main)
    repo.agent_runs(act)
    after = tree_picture(repo.root)

    repo.undo()
    assert (tree_picture(repo.root), tree_picture(main)) == (before, shared)

    repo.must("redo")
    assert (tree_picture(repo.root), tree_picture(main)) == (after, shared)


@pytest.mark.parametrize("is_used", [False, True])
def test_linked_work_tree_that_the_agent_made(folder: RepoBuilder, main: Path, is_used: bool) -> None:
    """Its folder goes, unless the user worked in it; what it shares with the repository outside stays. Rule: see above."""
    repo = folder
    repo.write("w", "w")
    repo.agent_runs(f"git -C {main} worktree add -q --detach {repo.root}/lib")
    if is_used:
        with repo.user():
            repo.sh("cd lib; echo user >u; git add u; git commit -qm u")

    done = repo.run("undo", "--json")

    assert done.code == (3 if is_used else 0)
    assert (repo.exists("lib/.git"), repo.exists("lib/a")) == (is_used, is_used)


@pytest.mark.parametrize("place", ["inside", "../outside"])
def test_link_to_a_git_directory_that_the_agent_removed(repo: RepoBuilder, place: str) -> None:
    """The link comes and goes, what it leads to stays, wherever it lies. Rule: redo takes away what undo brought."""
    repo.sh(f"mv .git {place}; ln -s {place} .git")
    before = tree_picture(repo.root), tree_picture(repo.root / place)
    repo.agent_runs("rm .git; echo agent >a.txt")
    after = tree_picture(repo.root), tree_picture(repo.root / place)

    repo.undo()
    assert (tree_picture(repo.root), tree_picture(repo.root / place)) == before
    repo.must("redo")
    assert (tree_picture(repo.root), tree_picture(repo.root / place)) == after


def test_separate_git_directory_that_the_agent_removed(folder: RepoBuilder) -> None:
    """It is laid back where it lay, and nothing above it is spoken of."""
    repo = folder
    repo.sh("git init -q --separate-git-dir=../sep; echo a >a; git add a; git commit -qm one")
    head = repo.head()
    repo.agent_runs("rm -rf ../sep; echo b >a")

    repo.undo()

    assert (repo.head(), repo.status()) == (head, "")


def test_removed_work_tree_gets_its_objects_where_git_reads_them(linked: RepoBuilder, main: Path) -> None:
    """A linked work tree that was removed and pruned, its commit with it. Rule: objects belong to the common directory."""
    repo = linked
    repo.sh("git checkout -q --detach; echo k >k; git add k; git commit -qm k; echo staged >s; git add s")
    head = repo.head()
    repo.agent_runs(
        f"cd {main}; git worktree remove --force {repo.root}; git reflog expire --expire=now --all; git gc -q --prune=now;"
        f" mkdir {repo.root}"
    )

    repo.run("undo", "--json")

    assert repo.head() == head
    assert repo.git("ls-files", "s") == "s"
    assert not list((main / ".git/worktrees").rglob("*.pack"))
    subprocess.run(["git", "fsck", "--full"], cwd=main, env=repo.env, check=True, capture_output=True)


USES = {
    "a linked work tree": "git worktree add -q --detach ../other",
    "a setting": "git config user.mine yes",
    "a hook": "echo mine >.git/hooks/pre-push",
    "an ignore rule": "echo mine >>.git/info/exclude",
    "an object": "echo precious | git hash-object -w --stdin >/dev/null",
    "a commit that HEAD left": "git checkout -q --detach; git commit -q --allow-empty -m mine; git checkout -q -",
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("act", ["", "rm -rf .git; "])
def test_repository_of_the_agents_that_was_used_stays(folder: RepoBuilder, use: str, act: str) -> None:
    """Any use counts, also one that moves no ref. Rule: what is not as the agent left it is not taken away."""
    repo = folder
    repo.write("a", "a\n")
    if act:
        repo.sh("git init -q; git add -A; git commit -qm old")
    repo.agent_runs(act + "git init -q; git add -A; git commit -qm made")
    made = repo.head()
    with repo.user():
        repo.sh(USES[use])
    before = tree_picture(repo.path(".git"))

    done = repo.run("undo", "--json")

    assert done.code == 3
    assert tree_picture(repo.path(".git")) == before
    assert made in repo.git("log", "--all", "--format=%H")


def test_objects_that_were_removed_are_not_the_whole(repo: RepoBuilder) -> None:
    """Redo of a turn that removed the objects does not remove the rest. Rule: only what came whole goes whole."""
    repo.agent_runs("rm -rf .git/objects; echo agent >a.txt")
    repo.undo()

    repo.run("redo", "--json")

    assert repo.exists(".git/HEAD")
    assert repo.exists(".git/config")
    assert repo.read("a.txt") == "agent\n"


def test_expired_reflogs_are_no_new_repository(repo: RepoBuilder) -> None:
    """The agent's commit goes and comes back, by its ref. Rule: a repository with the old one's commits is the old one."""
    repo.agent_runs("git reflog expire --expire=all --all; echo z >>a.txt; git commit -qam x")
    made = repo.head()
    repo.undo()
    with repo.user():
        repo.git("branch", "mine")

    repo.must("redo")

    assert repo.head() == made
    assert repo.git("branch", "--list", "mine")


def test_sha256_history_is_said_to_be_missing(folder: RepoBuilder) -> None:
    """Of a sha256 repository no snapshot holds objects: what comes back is not called whole. Rule: never report what did not happen."""
    repo = folder
    repo.sh("git init -q --object-format=sha256; echo a >a; git add a; git commit -qm one")
    repo.agent_runs("rm -rf .git")

    done = repo.run("undo", "--json")

    assert done.code == 3
    assert "sha256" in done.text


def test_sha256_refs_stay(folder: RepoBuilder) -> None:
    """Files are undone and redone, git state is left and said. Rule: never half a git state."""
    repo = folder
    repo.sh("git init -q --object-format=sha256; echo a >a; git add a; git commit -qm one")
    repo.agent_runs("git checkout -qb x; echo x >x; git add x; git commit -qm onx")
    refs = repo.git("for-each-ref")

    done = repo.run("undo", "--json")
    assert done.code == 3
    assert (repo.exists("x"), repo.git("for-each-ref")) == (False, refs)

    repo.run("redo", "--json")
    assert (repo.exists("x"), repo.git("for-each-ref")) == (True, refs)


@pytest.mark.parametrize(
    "acts",
    [
        ("git checkout -q other; echo z >>b.txt", "echo mine >mine; git add mine; git commit -qm mine"),
        ("git reset -q --soft HEAD~1", "git commit -qm mine"),
    ],
)
def test_no_advice_to_revert_the_users_own_commit(repo: RepoBuilder, acts: tuple[str, str]) -> None:
    """Only a commit of the agent's is named for ``git revert``. Rule: a hint that is followed does what it says."""
    repo.sh("git branch other; echo two >two; git add two; git commit -qm two")
    repo.agent_runs(acts[0])
    with repo.user():
        repo.sh(acts[1])

    assert "git revert" not in repo.run("undo", "--json").text


def test_work_tree_moved_inside_the_workspace(repo: RepoBuilder) -> None:
    """Two folders, one directory of git's: it is set back once, its lock with it. Rule: a lock of ours never stays."""
    repo.sh("git worktree add -q in1 -b side")
    listed = repo.git("worktree", "list")
    repo.agent_runs("git worktree move in1 in2; cd in2; echo z >>a.txt; git commit -qam z")

    repo.undo()

    assert repo.git("worktree", "list") == listed
    assert repo.git("-C", "in1", "status", "--porcelain") == ""
    assert not list(repo.path(".git").rglob("*.lock"))


@pytest.mark.parametrize("act", ["git worktree add -q sub/in2 -b new", "rm -rf in1; git worktree prune; git branch -qD side"])
def test_branch_of_a_work_tree_is_set_back_once(repo: RepoBuilder, act: str) -> None:
    """Members that share refs do not meet each other's locks. Rule: a ref moves once."""
    repo.sh("git worktree add -q in1 -b side")
    before = repo.git("for-each-ref"), repo.git("worktree", "list")
    repo.agent_runs(act)
    after = repo.git("for-each-ref")

    repo.undo()
    assert (repo.git("for-each-ref"), repo.git("worktree", "list")) == before
    repo.must("redo")
    assert repo.git("for-each-ref") == after
