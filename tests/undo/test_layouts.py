"""Repositories that are not plain: other formats, shallow, partial, bare, moved, gone; folders that come and go."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.process import PROJECT
from tests.support.repo import NINE_LINES, RepoBuilder, standard
from tests.support.state import dot_git_fingerprint, git


def edits_come_back(repo: RepoBuilder) -> None:
    """Undo of a few edits in whatever repository this is."""
    repo.write("u", "untracked\n")
    repo.write("b.txt", "dirty\n")
    before = repo.picture()
    repo.agent_runs("echo agent >a.txt; rm u b.txt; echo n >n; git add -A 2>/dev/null || true")
    repo.run("undo", "--json")
    after = repo.picture()
    assert after.files == before.files


def test_sha256_repository(folder: RepoBuilder) -> None:
    """Files of a sha256 repository are undone; what git state is not covered is said. Rule: files covered, the rest said."""
    folder.git("init", "-q", "--object-format=sha256", ".")
    standard(folder)
    edits_come_back(folder)
    said = folder.must("log", "--not-covered", "--json").out
    assert "object-format" in said and "index-as-bytes" in said


def test_unknown_extension(repo: RepoBuilder) -> None:
    """Files of a repository that this git cannot open are undone. Rule: files covered, the rest said."""
    repo.sh("git config core.repositoryFormatVersion 1; git config extensions.fromTheFuture true")
    repo.write("u", "untracked\n")
    with repo.agent():
        repo.write("a.txt", "agent\n")
        repo.remove("u")

    done = repo.run("undo", "--json")

    assert done.code in (0, 3), done.text
    assert (repo.read("a.txt"), repo.read("u")) == (NINE_LINES, "untracked\n")
    repo.sh("sed -i '/fromTheFuture/d; /extensions/d' .git/config")


def test_shallow_clone(repo: RepoBuilder) -> None:
    """A shallow clone is seeded without its missing history and laid back whole. Rule: shallow taken over."""
    repo.commit("second", b_txt="2\n")
    clone = RepoBuilder(repo.root.parent / "clone", repo.env, init=False)
    clone.git("clone", "-q", "--depth", "1", f"file://{repo.root}", ".")
    before = clone.picture()
    clone.agent_runs("rm -rf .git; echo agent >a.txt")

    clone.undo()

    clone.assert_is(before)
    clone.git("fsck", "--full")


def test_deepened_history_stays(repo: RepoBuilder) -> None:
    """History that the agent fetched for a shallow clone is not cut off again. Rule: never undone: refs/remotes, FETCH_HEAD, shallow."""
    repo.commit("second", b_txt="2\n")
    clone = RepoBuilder(repo.root.parent / "clone", repo.env, init=False)
    clone.git("clone", "-q", "--depth", "1", f"file://{repo.root}", ".")
    clone.agent_runs("git fetch -q --unshallow; echo agent >a.txt")

    clone.undo()

    assert clone.read("a.txt") == NINE_LINES
    assert len(clone.git("log", "--format=%h").splitlines()) == 2
    clone.git("fsck", "--full")


def test_partial_clone_never_fetches(repo: RepoBuilder) -> None:
    """A partial clone is covered without one request to its remote. Rule: never a fetch."""
    repo.sh("git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true")
    repo.commit("second", b_txt="2\n")
    # git's own check needs a remote to forgive what a partial clone lacks, and the store has none: a state folder apart
    env = {**repo.env, "GIT_SAFETY_HOME": str(repo.state.parent / "partial")}
    clone = RepoBuilder(repo.root.parent / "clone", env, init=False)
    clone.git("clone", "-q", "--filter=blob:none", f"file://{repo.root}", ".")
    gone = repo.root.parent / "gone"
    repo.root.rename(gone)
    before = clone.picture()
    clone.agent_runs("echo agent >a.txt; git commit -qam agent")

    clone.undo()

    clone.assert_is(before)
    clone.must("store", "fsck")
    gone.rename(repo.root)


def test_git_file_pointing_elsewhere(repo: RepoBuilder) -> None:
    """A work tree whose .git is a file with the real directory elsewhere. Rule: discovery by reading files."""
    repo.sh("mv .git ../real; echo 'gitdir: ../real' >.git")
    before = repo.picture()
    repo.agent_runs("echo agent >a.txt; git commit -qam agent; rm b.txt")

    repo.undo()

    repo.assert_is(before)


def test_replace_refs_are_plain_content(repo: RepoBuilder) -> None:
    """Replaced objects do not fool the capture. Rule: GIT_NO_REPLACE_OBJECTS everywhere."""
    repo.commit("second", b_txt="2\n")
    repo.git("replace", "HEAD", "HEAD~1")
    before = repo.picture()
    repo.agent_runs("git replace -d HEAD >/dev/null; echo agent >a.txt; git commit -qam agent")

    repo.undo()

    repo.assert_is(before)


def test_bare_repository_inside_does_not_run(repo: RepoBuilder) -> None:
    """A planted bare repository with a program as fsmonitor is files like others.

    Rule: safe.bareRepository, no foreign configuration.
    """
    repo.sh(
        f"git init -q --bare planted; git -C planted config core.fsmonitor 'touch {repo.root.parent}/ran'; "
        "git -C planted config core.worktree ."
    )
    repo.agent_runs("echo agent >a.txt; echo x >planted/description")

    repo.undo()

    assert repo.read("a.txt") == NINE_LINES
    assert not (repo.root.parent / "ran").exists()


def undo_in_the_lost_folder(repo: RepoBuilder) -> None:
    """Undo from a shell that stands in the folder which is gone."""
    script = 'cd "$0" && rmdir "$0" && exec "$1" -m safety.terminal undo'
    repo.root.mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", script, str(repo.root), sys.executable],
        env={**repo.env, "PYTHONPATH": str(PROJECT), "PWD": str(repo.root)},
        cwd="/",
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def undo_in_the_folder_made_anew(repo: RepoBuilder) -> None:
    """Undo after a person has made the folder again, empty."""
    repo.root.mkdir()
    repo.undo()


@pytest.mark.parametrize("undo", [undo_in_the_lost_folder, undo_in_the_folder_made_anew])
def test_whole_folder_removed(repo: RepoBuilder, undo: Callable[[RepoBuilder], None]) -> None:
    """The workspace folder itself comes back with its repository. Rule: found by registry when the directory is gone."""
    repo.sh(
        "git tag v1; echo st >>a.txt; git stash -q; echo u >u; echo s >s; git add s; "
        "printf '#!/bin/sh\\n' >.git/hooks/x; chmod 700 .git/hooks/x"
    )
    before = repo.picture()
    with repo.agent():
        shutil.rmtree(repo.root)

    undo(repo)

    repo.assert_is(before)
    repo.git("fsck", "--full", "--strict")


def test_whole_folder_removed_under_run(repo: RepoBuilder) -> None:
    """A protected command that removes the folder it runs in is undone from the same shell. Rule: found by registry."""
    before = repo.picture()
    repo.must("run", "--", "/bin/sh", "-c", f"cd / && rm -rf {repo.root}")
    assert not repo.root.exists()

    undo_in_the_lost_folder(repo)

    repo.assert_is(before)


def test_moved_folder_is_not_mixed(repo: RepoBuilder, tmp_path: Path) -> None:
    """A folder replaced by another one of the same name shares no undo with it. Rule: the witness tells a replaced folder."""
    repo.agent_runs("echo agent >a.txt")
    repo.root.rename(tmp_path / "old")
    repo.root.mkdir()
    repo.git("init", "-q", ".")
    repo.commit("unrelated", a_txt="unrelated\n")

    done = repo.run("undo", "--json")

    assert done.code in (1, 4), done.text
    assert repo.read("a.txt") == "unrelated\n"
    shutil.rmtree(repo.root)
    (tmp_path / "old").rename(repo.root)


def test_folder_put_back_from_a_copy_goes_on(repo: RepoBuilder, tmp_path: Path) -> None:
    """Another folder with the same history is the same workspace. Rule: a new generation only if path and history both differ."""
    repo.agent_runs("echo agent >a.txt")
    repo.sh(f"cp -a . {tmp_path}/copy; mv {repo.root} {tmp_path}/old; mv {tmp_path}/copy {repo.root}")

    repo.undo()

    assert repo.read("a.txt") == NINE_LINES


def moved(repo: RepoBuilder, name: str = "moved") -> None:
    """The user moves the workspace's folder."""
    root = repo.root.with_name(name)
    repo.root.rename(root)
    repo.watched = [root if folder == repo.root else folder for folder in repo.watched]
    repo.root = root


@pytest.mark.parametrize("below", ["", "src/lib"])
def test_moved_folder_is_taken_over(repo: RepoBuilder, below: str) -> None:
    """A moved repository keeps its log: undo there, and the next turn there. Rule: same witness, and the old place has it no more."""
    before = repo.picture()
    repo.agent_runs("rm b.txt; echo agent >a.txt; git add -A; git commit -qm agent; echo more >>a.txt")
    moved(repo)

    repo.undo(cwd=repo.path(below))
    repo.assert_is(before)

    repo.agent_runs("echo again >a.txt")
    moved(repo, "again")
    assert "t2" in repo.must("log").out
    repo.undo()
    repo.assert_is(before)


def test_moved_plain_folder_is_taken_over(folder: RepoBuilder) -> None:
    """Without a history a file that lies there as it was stands in for the first commit."""
    folder.write("a", "a\n")
    folder.write("sub/b", "b\n")
    before = folder.picture()
    folder.agent_runs("rm a")
    moved(folder)

    folder.undo()

    folder.assert_is(before)


def test_new_folder_at_the_old_place_begins_anew(repo: RepoBuilder) -> None:
    """What is made where a moved folder was shares neither log nor state with it. Rule: no two roots have one key."""
    old = repo.root
    repo.agent_runs("echo agent >a.txt")
    moved(repo)
    repo.must("log")
    new = RepoBuilder(old, repo.env)
    new.commit("unrelated", a_txt="unrelated\n")
    new.run("run", "--", "rm", "a.txt")
    assert "t2" not in new.must("log").out

    new.undo()
    repo.undo()

    assert (new.read("a.txt"), repo.read("a.txt")) == ("unrelated\n", NINE_LINES)


def test_copied_folder_is_not_taken_over(repo: RepoBuilder, tmp_path: Path) -> None:
    """A copy has no log, whether or not the folder it was made from is there still. Rule: the inode is another."""
    repo.agent_runs("echo agent >a.txt")
    repo.sh(f"cp -a . {tmp_path}/copy; cp -a . {tmp_path}/other")
    assert "No agent has worked here" in repo.run("undo", cwd=tmp_path / "copy").text
    moved(repo)

    assert "No agent has worked here" in repo.run("undo", cwd=tmp_path / "other").text
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


def test_other_folder_with_the_same_inode_is_not_taken_over(folder: RepoBuilder) -> None:
    """File systems use an inode again: a folder in which nothing is as it was is another one."""
    folder.write("a", "a\n")
    folder.agent_runs("echo agent >>a")
    moved(folder)
    folder.write("a", "unrelated\n")
    folder.write("b", "unrelated\n")

    assert "No agent has worked here" in folder.run("undo").text


def test_workspace_through_a_link(repo: RepoBuilder) -> None:
    """A workspace entered through a symbolic link is the same workspace. Rule: keyed by the real path of the root."""
    link = repo.root.parent / "link"
    link.symlink_to(repo.root)
    repo.agent_runs("echo agent >a.txt", cwd=str(link))

    repo.undo()

    assert repo.read("a.txt") == NINE_LINES


def test_undo_from_a_subfolder(repo: RepoBuilder) -> None:
    """Undo in a folder below takes the turn of the workspace. Rule: nearest recorded ancestor."""
    repo.agent_runs("echo agent >a.txt")

    repo.undo(cwd=repo.path("src/lib"))

    assert repo.read("a.txt") == NINE_LINES


def test_git_init_in_a_folder_already_recorded(folder: RepoBuilder) -> None:
    """git init inside an open turn does not change the workspace. Rule: nearest recorded ancestor first."""
    folder.write("a.txt", "a\n")
    folder.mkdir("sub")
    folder.write("sub/s", "s\n")
    before = folder.picture()
    with folder.turn():
        with folder.call():
            folder.write("a.txt", "agent\n")
        with folder.call(cwd=str(folder.path("sub"))):
            folder.sh("cd sub; git init -q .; git add .; git commit -qm x; echo agent >s")

    folder.undo()

    folder.assert_is(before)


def test_jj_colocated_repository(repo: RepoBuilder) -> None:
    """The .jj folder of a colocated repository is covered as files. Rule: .jj as private."""
    repo.write(".jj/repo/store/type", "git\n")
    repo.write(".jj/.gitignore", "/*\n")
    before = repo.picture()
    repo.agent_runs("rm -rf .jj; echo agent >a.txt")

    repo.run("undo", "--json")

    repo.assert_is(before)


def test_users_other_work_trees_survive_the_loss_of_git(repo: RepoBuilder) -> None:
    """After rm -rf .git and undo, linked work trees and submodules work as before. Rule: worktrees and modules are laid back."""
    repo.sh("git worktree add -q ../wt -b side; git init -q ../lib; cd ../lib; echo l >l; git add .; git commit -qm l; cd -")
    repo.sh("git submodule -q add ../lib lib; git commit -qm sub; echo dirty >>../wt/b.txt; cd ../wt; git add b.txt")
    wt = repo.root.parent / "wt"
    before = (
        repo.picture(),
        git(os.fsencode(wt), "status", "--porcelain=v2"),
        repo.git("worktree", "list"),
        repo.git("submodule", "status"),
    )
    repo.agent_runs("rm -rf .git")

    repo.undo()

    assert (
        git(os.fsencode(wt), "status", "--porcelain=v2"),
        repo.git("worktree", "list"),
        repo.git("submodule", "status"),
    ) == before[1:]
    repo.assert_is(before[0])
    repo.git("fsck", "--full", "--strict")


def test_executable_settings_that_come_back_are_listed(repo: RepoBuilder) -> None:
    """Hooks of the agent's that a redo brings back are named. Rule: executable settings that stem from an agent are listed."""
    repo.agent_runs(
        "git config core.fsmonitor /bin/true; printf '#!/bin/sh\\n' >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit"
    )
    repo.undo()

    done = repo.redo()

    assert "fsmonitor" in done.text or "pre-commit" in done.text


@pytest.mark.parametrize("command", ["git gc -q --prune=now", "git repack -adfq", "git pack-refs --all", "git prune-packed"])
def test_housekeeping_of_the_user_between_turns(repo: RepoBuilder, command: str) -> None:
    """What git's housekeeping moves about is neither undone nor lost. Rule: objects are brought over at each capture."""
    repo.sh("echo s1 >b.txt; git add b.txt")
    repo.agent_runs("echo agent >a.txt")
    with repo.user():
        repo.sh(f"echo s2 >b.txt; git add b.txt; git reflog expire --expire=now --all; {command}")
    repo.agent_runs("git reset -q --hard; git checkout -q -b x; git commit -q --allow-empty -m x")

    repo.undo()
    assert (repo.read("b.txt"), repo.git("show", ":b.txt"), repo.branch()) == ("s2\n", "s2", "main")
    repo.undo()

    assert repo.read("a.txt") == NINE_LINES
    repo.git("fsck", "--full")


def test_undo_leaves_objects_alone_that_nobody_needs(repo: RepoBuilder) -> None:
    """An undo of plain edits writes nothing under .git but the index at most. Rule: only what refs and index need is brought."""
    repo.agent_runs("echo agent >a.txt; rm b.txt")
    before = {path: seen for path, seen in dot_git_fingerprint(repo.root).items() if b"/objects" in path}

    repo.undo()

    assert {path: seen for path, seen in dot_git_fingerprint(repo.root).items() if b"/objects" in path} == before


ODD_GIT_FILES = {
    "nowhere": b"gitdir: nowhere\n",
    "itself": b"gitdir: .git\n",
    "here": b"gitdir: .\n",
    "no line": b"hello",
    "empty": b"",
    "binary": b"\xff\xfe\0",
    "long": b"gitdir: " + b"x" * 5000,
    "large": b"gitdir: x" + b" " * (2 << 20),
    "to a file": b"gitdir: ../a.txt\n",
    "below a file": b"gitdir: ../a.txt/x\n",
}


@pytest.mark.parametrize("content", ODD_GIT_FILES.values(), ids=ODD_GIT_FILES)
def test_a_git_file_that_git_would_not_take_is_a_file(repo: RepoBuilder, content: bytes) -> None:
    """A folder with an odd `.git` file does not keep anything from being protected; the file comes back like any other."""
    repo.write("inner/.git", content)
    repo.write("inner/work.txt", "work\n")
    with repo.agent():
        repo.sh("rm -rf inner; echo agent >>a.txt")
    repo.undo()
    assert repo.read_bytes("inner/.git") == content
    assert (repo.read("inner/work.txt"), repo.read("a.txt")) == ("work\n", NINE_LINES)
