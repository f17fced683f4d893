"""Where a turn's end commits, and where it does not: the states, layouts and conversions a repository can have ([gate] B5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.repo import NINE_LINES, RepoBuilder
from tests.tools.turn_ends import NO_BAD_WORDS, checks, edit, end, ends, files_of, settings, starts, told


def turn(repo: RepoBuilder, path: str = "a.txt", data: str = "agent\n", **fields: str) -> str:
    """One turn that writes one file; gives what the user is told at its end."""
    starts(repo)
    edit(repo, path, data)
    return ends(repo)


def test_protected_branch_is_named_once(repo: RepoBuilder) -> None:
    """``warn`` speaks once in a conversation, and again in the next one."""
    settings(repo, autocommit={"enabled": True})
    assert "protected branch main" in turn(repo, data="one\n")
    assert "protected branch" not in turn(repo, data="two\n")
    repo.session = "another"
    assert "protected branch main" in turn(repo, data="three\n")
    assert repo.git("rev-list", "--count", "HEAD") == "4"


@pytest.mark.parametrize("word", ["refuse", "branch"])
def test_protected_branch(repo: RepoBuilder, word: str) -> None:
    """``refuse`` commits nothing, ``branch`` on a branch of the conversation's own, every time."""
    settings(repo, autocommit={"enabled": True, "protected_branches": word})
    base = repo.head()
    said = [turn(repo, data="one\n"), turn(repo, data="two\n")]
    assert all("protected" in text for text in said[:1]) and repo.git("rev-parse", "main") == base
    if word == "branch":
        assert repo.branch() == "agent/session-1" and repo.git("rev-list", "--count", "main..") == "2"
    else:
        assert repo.branch() == "main" and repo.git("log", "--all", "--oneline").count("\n") == 0


def test_detached_head(repo: RepoBuilder) -> None:
    """Nothing is committed and the user is told how; on a branch again, all of it is committed."""
    settings(repo, autocommit={"enabled": True})
    repo.git("checkout", "-q", "--detach")
    base = repo.head()
    assert "detached" in turn(repo)
    assert repo.head() == base
    repo.git("switch", "-q", "-c", "topic")
    turn(repo, "b.txt")
    assert files_of(repo) == ["a.txt", "b.txt"]


def test_unborn_head(empty_repo: RepoBuilder) -> None:
    """The first commit holds the agent's file; what the user had staged is still staged; undo unmakes the branch again."""
    settings(empty_repo)
    empty_repo.write("mine", "user\n")
    empty_repo.git("add", "mine")
    before = empty_repo.picture()
    turn(empty_repo, "new.txt")
    assert empty_repo.git("ls-tree", "--name-only", "HEAD") == "new.txt" and empty_repo.status() == "A  mine"
    empty_repo.undo()
    empty_repo.assert_is(before)


def test_first_file_of_all(empty_repo: RepoBuilder) -> None:
    """In a repository where nothing was ever staged the agent's file is the first commit."""
    settings(empty_repo)
    turn(empty_repo, "new.txt")
    assert files_of(empty_repo) == ["new.txt"] and empty_repo.status() == ""
    empty_repo.undo()
    assert empty_repo.git("rev-parse", "-q", "--verify", "HEAD", check=False) == "" and not empty_repo.exists("new.txt")


def test_file_that_no_snapshot_holds(repo: RepoBuilder) -> None:
    """A file over the limit is not committed, and that is said; one that git ignores is not spoken of."""
    settings(repo, snapshots={"max_file_mib": 1})
    starts(repo)
    with repo.call():
        repo.write("big.bin", b"x" * (2 << 20))
        repo.write("cache/big.bin", b"x" * (2 << 20))
        repo.write("a.txt", "agent\n")
    said = ends(repo)
    assert "not committed: big.bin, no snapshot holds it" in said and "cache" not in said and files_of(repo) == ["a.txt"]


@pytest.mark.parametrize("state", ["merge", "rebase", "cherry-pick", "bisect"])
def test_something_in_progress(repo: RepoBuilder, state: str) -> None:
    """In the middle of a merge and its like nothing is committed, and nothing of that state changes."""
    settings(repo)
    repo.commit("two", b_txt="two\n")
    repo.git("switch", "-q", "-c", "side", "HEAD~1")
    repo.commit("side", b_txt="side\n")
    repo.git(*{"bisect": ["bisect", "start"], "cherry-pick": ["cherry-pick", "main"]}.get(state, [state, "main"]), check=False)
    base, index = repo.head(), repo.git("ls-files", "-s")
    assert "in progress" in turn(repo)
    assert (repo.head(), repo.git("ls-files", "-s")) == (base, index)


def test_no_repository(folder: RepoBuilder) -> None:
    """In a plain folder nothing is committed and nothing is said, at the first turn and the second; who asks for a commit is told."""
    settings(folder)
    assert turn(folder) == "" and turn(folder, data="two\n") == ""
    assert "no git repository" in folder.must("commit", code=1).text


def member(repo: RepoBuilder, name: str) -> RepoBuilder:
    """A repository of its own below the workspace."""
    inner = RepoBuilder(repo.path(name), repo.env)
    inner.write("in.txt", "in\n")
    inner.commit("inner")
    return inner


def test_folder_of_several_repositories(folder: RepoBuilder) -> None:
    """Each repository gets its own commit; where one refuses, its part waits and is committed later."""
    settings(folder)
    one, two = member(folder, "one"), member(folder, "two")
    two.write(".git/hooks/commit-msg", "#!/bin/sh\nexit 1\n", 0o755)
    base = two.head()
    starts(folder)
    with folder.call():
        folder.write("one/in.txt", "agent\n")
        folder.write("two/in.txt", "agent\n")
        folder.write("loose", "agent\n")
    assert "commit-msg" in ends(folder)
    assert files_of(one) == ["in.txt"] and one.status() == "" and two.head() == base
    two.remove(".git/hooks/commit-msg")
    turn(folder, "one/new.txt")
    assert files_of(one) == ["new.txt"] and files_of(two) == ["in.txt"]


def test_nested_repository(repo: RepoBuilder) -> None:
    """A change inside a nested repository is that one's commit, checked by its own checks; the outer one gets its own part."""
    settings(repo)
    repo.write(".gitignore", "inner/\n")
    checks(repo, NO_BAD_WORDS)
    inner = member(repo, "inner")
    starts(repo)
    with repo.call():
        inner.write("in.txt", "BAD for the outer one only\n")
        repo.write("a.txt", "agent\n")
    ends(repo)
    assert files_of(inner) == ["in.txt"] and files_of(repo) == ["a.txt"]


def test_submodule(repo: RepoBuilder, tmp_path: Path) -> None:
    """A change inside a submodule is committed there; the outer repository's pointer is the user's to move."""
    settings(repo)
    source = RepoBuilder(tmp_path / "source", repo.env)
    source.commit("source", in_txt="in\n")
    repo.git("submodule", "add", "-q", str(source.root), "sub")
    repo.commit("submodule")
    base = repo.head()
    repo.git("switch", "-q", "-C", "topic", cwd=repo.path("sub"))
    turn(repo, "sub/in.txt")
    assert repo.git("log", "-1", "--format=%an", cwd=repo.path("sub")) == "Dana" and repo.head() == base
    assert repo.status() == " M sub"


def test_linked_work_tree(repo: RepoBuilder, tmp_path: Path) -> None:
    """A linked work tree commits on its own branch; the main one is untouched."""
    settings(repo, autocommit={"enabled": True})
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = RepoBuilder(tmp_path / "side", repo.env, init=False)
    base = repo.head()
    turn(side)
    assert files_of(side) == ["a.txt"] and side.branch() == "side" and side.status() == ""
    assert repo.head() == base and repo.status() == ""


@pytest.mark.parametrize("how", ["autocrlf", "attributes"])
def test_line_ends(repo: RepoBuilder, how: str) -> None:
    """With CRLF on the disk and LF in git only the agent's line differs in the commit, and status is clean."""
    settings(repo)
    if how == "autocrlf":
        repo.git("config", "core.autocrlf", "true")
    else:
        repo.write(".gitattributes", "* text=auto eol=crlf\n")
        repo.commit("attributes")
    repo.remove("a.txt")
    repo.git("checkout", "a.txt")
    assert b"\r\n" in repo.read_bytes("a.txt")
    starts(repo)
    with repo.call():
        repo.write("a.txt", repo.read_bytes("a.txt").replace(b"line 5", b"agent 5"))
        repo.write("new.txt", b"new\r\n")
    ends(repo)
    assert repo.git("show", "HEAD:a.txt") + "\n" == NINE_LINES.replace("line 5", "agent 5")
    assert "\r" not in repo.git("show", "HEAD:new.txt") and repo.status() == ""
    edit(repo, "a.txt", repo.read_bytes("a.txt").replace(b"agent 5", b"again 5").decode())
    ends(repo)
    assert repo.git("show", "HEAD:a.txt") + "\n" == NINE_LINES.replace("line 5", "again 5") and repo.status() == ""


def test_filter_without_its_program(repo: RepoBuilder) -> None:
    """A required filter whose program is missing (LFS): that file is left out and named, the others are committed."""
    settings(repo)
    repo.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    repo.commit("attributes")
    for key, value in (
        ("clean", "git-lfs-missing clean -- %f"),
        ("smudge", "git-lfs-missing smudge -- %f"),
        ("required", "true"),
    ):
        repo.git("config", f"filter.lfs.{key}", value)
    starts(repo)
    with repo.call():
        repo.write("big.bin", b"\0big\n")
        repo.write("a.txt", "agent\n")
    assert "big.bin, a filter of the repository failed" in ends(repo)
    assert files_of(repo) == ["a.txt"]


def test_intent_to_add(repo: RepoBuilder) -> None:
    """What the user intends to add stays so."""
    settings(repo)
    repo.write("mine", "user\n")
    repo.git("add", "-N", "mine")
    turn(repo)
    assert files_of(repo) == ["a.txt"] and repo.status() == "A mine".rjust(7)


def test_sparse_checkout(repo: RepoBuilder) -> None:
    """Folders that are not checked out stay in the commit's tree."""
    settings(repo)
    repo.git("sparse-checkout", "set", "--cone", "src/lib")
    assert not repo.exists("src/deep") and not repo.exists("other")
    turn(repo, "src/lib/util.py")
    assert files_of(repo) == ["src/lib/util.py"] and repo.status() == ""


def test_index_lock_of_another_git(repo: RepoBuilder) -> None:
    """Somebody's index.lock is waited for and left alone; the turn ends, and the next one commits both."""
    settings(repo)
    repo.write(".git/index.lock", "")
    base = repo.head()
    assert "index.lock" in turn(repo)
    assert repo.head() == base and repo.exists(".git/index.lock")
    repo.remove(".git/index.lock")
    turn(repo, "b.txt")
    assert files_of(repo) == ["a.txt", "b.txt"]


def test_no_identity(repo: RepoBuilder) -> None:
    """Without a name for the commit there is none, and the two commands are named."""
    settings(repo)
    Path(repo.env["HOME"], ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n[gc]\n\tauto = 0\n")
    base = repo.head()
    assert "git config user.name" in turn(repo) and repo.head() == base


def test_hook_of_a_stashing_runner(repo: RepoBuilder) -> None:
    """An installed pre-commit hook does not run again where the gate has run the checks, and hides no edit of the user's."""
    settings(repo)
    checks(repo, NO_BAD_WORDS)
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\n# File generated by pre-commit: x\ntouch hook-ran\n", 0o755)
    with repo.user():
        repo.write("b.txt", "user\n")
    turn(repo)
    assert files_of(repo) == ["a.txt"] and not repo.exists("hook-ran") and repo.read("b.txt") == "user\n"


def test_nothing_is_committed_unless_asked(repo: RepoBuilder) -> None:
    """Off is the default: no commit, no checks, no word."""
    settings(repo, autocommit={})
    checks(repo, "#!/bin/sh\ntouch ran; exit 1\n")
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    answer, _ = end(repo)
    assert answer["decision"] == "stop" and told(answer) == "" and repo.head() == base and not repo.exists("ran")
