"""The guard's questions, answered from repositories that are really there."""

from __future__ import annotations

from pathlib import Path

import pytest

from safety.commands.guard_facts import World, answer
from safety.plumbing.run import Git
from safety.policy.values import Answer, Question
from tests.benchmarks.guard_corpus import LIMIT, Builder, Context


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("facts"))


def ask(context: Context, kind: str, subject: str, *detail: str) -> Answer:
    """``subject`` below the workspace, unless it is a name."""
    question = Question(kind, subject, detail)
    return answer(World(Git(context.env), context.facts(), LIMIT), [question])[question]


def sorts(context: Context, kind: str, path: str, *detail: str) -> set[tuple[str, str]]:
    found = ask(context, kind, f"{context.cwd}/{path}".rstrip("/"), *detail)
    assert found.known and found.nothing == (not found.things)
    return {(str(Path(thing.path).relative_to(Path(context.cwd).parent)), thing.sort) for thing in found.things}


def test_what_a_removal_takes(contexts: Builder) -> None:
    """Each path with what it is to a snapshot: tracked, untracked, ignored, too large, a repository of its own."""
    ignored = contexts.context("ignored")
    assert sorts(ignored, "lost", "src") == {
        ("repo/src/app.py", "tracked"),
        ("repo/src/util.py", "tracked"),
        ("repo/src", "tracked"),
    }
    assert sorts(ignored, "lost", "data") == {("repo/data", "ignored")}
    assert sorts(ignored, "lost", "data/local.db") == {("repo/data/local.db", "ignored")}
    assert sorts(ignored, "lost", "d*") >= {
        ("repo/data", "ignored"),
        ("repo/drafts/one.md", "untracked"),
        ("repo/debug.log", "ignored"),
    }
    assert sorts(ignored, "lost", "", ".env") == {("repo/.env", "ignored")}
    assert sorts(ignored, "lost", "absent") == set()
    assert sorts(contexts.context("biguntracked"), "lost", "big.bin") == {("repo/big.bin", "too-large")}
    assert ("repo/vendor/lib", "nested-repository") in sorts(contexts.context("nested-repo"), "lost", "vendor")
    assert ("repo/sub", "submodule") in sorts(contexts.context("sub-dirty"), "lost", "sub")
    assert ("scratch/main.py", "untracked") in sorts(contexts.context("norepo"), "lost", "main.py")


def test_what_a_write_takes(contexts: Builder) -> None:
    """A new file takes nothing; a file copied into a folder goes below it; a link is followed."""
    ignored = contexts.context("ignored")
    assert sorts(ignored, "overwritten", ".env") == {("repo/.env", "ignored")}
    assert sorts(ignored, "overwritten", "new.txt") == set()
    assert sorts(ignored, "overwritten", "src", "app.py") == {("repo/src/app.py", "tracked")}
    assert sorts(ignored, "overwritten", "src", "new.py") == set()


def test_what_git_would_throw_away(contexts: Builder) -> None:
    """Edits, what clean takes by its options, and which repository it is."""
    dirty, clean, ignored = (contexts.context(name) for name in ("dirty", "clean", "ignored"))
    assert {path for path, _ in sorts(dirty, "discard", "")} == {"repo/src/app.py", "repo/src/util.py", "repo/README.md"}
    assert {path for path, _ in sorts(dirty, "discard", "", "README.md")} == {"repo/README.md"}
    assert sorts(clean, "discard", "") == set()
    assert {sort for _, sort in sorts(ignored, "clean", "", "d", "--")} == {"untracked"}
    assert ("repo/.env", "ignored") in sorts(ignored, "clean", "", "d", "x", "--")
    assert sorts(ignored, "clean", "", "X", "--", "data") == {("repo/data", "ignored")}
    nested = contexts.context("nested-repo")
    assert ("repo/vendor/lib", "nested-repository") not in sorts(nested, "clean", "", "d", "--")
    assert ("repo/vendor/lib", "nested-repository") in sorts(nested, "clean", "", "d", "ff", "--")
    assert sorts(contexts.context("norepo"), "discard", "") == set()


def test_other_work_trees_submodules_and_branches(contexts: Builder) -> None:
    """A clean linked work tree and a merged branch lose nothing; other repositories are not the workspace's."""
    for name, nothing in (("wt-dirty", False), ("wt-clean", True)):
        context = contexts.context(name)
        assert ask(context, "worktree", str(context.base / "w/wt")).nothing is nothing
        assert ask(context, "refs", str(context.base / "w/wt")).value == "ours"
    sub = contexts.context("sub-dirty")
    assert not ask(sub, "submodules", sub.cwd).nothing
    assert ask(sub, "refs", f"{sub.cwd}/sub").value == "other"
    assert ask(contexts.context("dirty"), "submodules", contexts.context("dirty").cwd).nothing
    unpushed = contexts.context("unpushed")
    assert not ask(unpushed, "merged", "wip", unpushed.cwd).nothing
    assert ask(unpushed, "merged", "gone", unpushed.cwd).nothing
    assert ask(unpushed, "branch", unpushed.cwd).value == "main"


def test_settings_remotes_and_ignored_paths(contexts: Builder) -> None:
    """A value that is set would be lost; a known address is no news; what git ignores reaches no commit."""
    context = contexts.context("ignored")
    assert not ask(context, "config", "remote.origin.url", "local", context.cwd, "set", "x").nothing
    assert ask(context, "config", "core.unheard", "local", context.cwd, "set", "x").nothing
    assert ask(context, "remote", str(context.base / "w/origin.git"), context.cwd).nothing
    assert not ask(context, "remote", "https://example.net/x.git", context.cwd).known
    assert ask(context, "ignored", f"{context.cwd}/.env").nothing
    assert not ask(context, "ignored", f"{context.cwd}/src/x").known
    assert not ask(context, "unheard", "x").known
