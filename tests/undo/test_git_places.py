"""What an agent may leave in the place of a git directory's own files: a folder, a link, a pipe, nonsense."""

from __future__ import annotations

import itertools
import os
import subprocess

import pytest

from tests.support.repo import RepoBuilder

FILES = ("HEAD", "config", "index", "packed-refs", "refs/heads/main", "logs/HEAD", "info/exclude", "objects", "refs")
INSTEAD = {
    "an empty folder": "mkdir {0}",
    "a folder with a file": "mkdir {0}; echo x >{0}/inner",
    "a link to nowhere": "ln -s nowhere {0}",
    "nonsense": "echo nonsense >{0}",
    "nothing": ":",
}
ALSO = ("", "git add agent; git branch agents; git commit -qm agents agent", "git add -A; git tag agents")


@pytest.fixture
def packed(repo: RepoBuilder) -> RepoBuilder:
    """Refs packed and loose, something staged, a stash."""
    repo.sh(
        "git branch side; git tag v1; git pack-refs --all; echo s >>a.txt; git stash -q; echo two >b.txt; git commit -qam two"
    )
    repo.sh("echo staged >staged; git add staged; echo more >>b.txt")
    return repo


def git_picture(repo: RepoBuilder) -> dict[str, str]:
    said = {
        "status": "status --porcelain=v2 --branch",
        "refs": "for-each-ref",
        "staged": "ls-files -s -v",
        "stash": "stash list",
        "log": "reflog show --format=%H:%gs HEAD",
        "config": "config --local --list",
    }
    return {name: repo.git(*command.split()) for name, command in said.items()}


@pytest.mark.parametrize(
    ("name", "instead", "too"),
    # what was written into objects that are gone then is nowhere
    [case for case in itertools.product(FILES, INSTEAD, ALSO) if case[0] != "objects" or not case[2]],
)
def test_undone_whatever_stands_there(packed: RepoBuilder, name: str, instead: str, too: str) -> None:
    """Undo gives back a repository that git reads, with its refs, index, stash and settings.

    Rule: a git directory is restored by what it held, not by what git can still say of it.
    """
    repo = packed
    before = git_picture(repo)
    wreck = f"rm -rf .git/{name}; {INSTEAD[instead].format('.git/' + name)}"

    repo.agent_runs(f"echo agent >agent; {too or ':'}; echo agent >a.txt; {wreck}")
    repo.undo()

    now = git_picture(repo)
    assert now.pop("log").endswith(before.pop("log"))  # only ever appended to
    assert now == before
    subprocess.run(["git", "fsck", "--full"], cwd=repo.root, env=repo.env, check=True, capture_output=True)
    assert not repo.exists("agent")


@pytest.mark.parametrize("name", [*FILES, "hooks/post-commit"])
def test_pipe_is_named_and_nothing_waits_for_it(packed: RepoBuilder, name: str) -> None:
    """Files come back, the pipe stays and is said; git, which would wait for it, is not asked. Rule: FIFOs are never opened."""
    repo = packed
    repo.agent_runs(f"rm -rf .git/{name}; mkfifo .git/{name}; echo agent >a.txt")

    done = repo.run("undo", "--json")

    assert repo.read("a.txt") != "agent\n"
    assert done.code == 3
    assert f".git/{name}" in done.text
    os.unlink(repo.path(f".git/{name}"))


def test_repository_made_anew_is_the_users(repo: RepoBuilder) -> None:
    """After a wreck that was left, a new repository in the same folder is seen whole: undo of the next turn does not take it away.

    Rule: what a scan marks without reading it is not gone.
    """
    repo.agent_runs("rm -rf .git/objects; echo nonsense >.git/objects")
    with repo.user():
        repo.sh("rm -rf .git; git init -q; git add -A; git commit -qm anew")
    head = repo.head()

    repo.agent_runs("echo agent >a.txt")
    repo.undo()

    assert repo.head() == head
