"""``Work``: a repository in which an agent makes steps and a commit is made of them, with the user's work beside it watched."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from safety.commit.make import make_commit
from safety.commit.message import default_message
from safety.commit.plan import plan_commit
from safety.commit.values import CommitPlan, CommitResult, CommitSettings, Side, Step
from safety.plumbing.run import Git
from tests.support.repo import NINE_LINES, RepoBuilder

LINES = "".join(f"line {number}\n" for number in range(1, 21))
AGENT = {"name": "claude-code", "model": "opus-5"}


@dataclass(frozen=True)
class Picture:
    """All that a failed commit must leave as it was."""

    files: dict[str, tuple[int, bytes]]
    index: bytes | None
    refs: str
    config: bytes
    git_dir: list[str]


class Work(RepoBuilder):
    """The builder, with steps."""

    def __init__(self, root: Path, env: dict[str, str]) -> None:
        super().__init__(root, env)
        self.steps: list[Step] = []

    @contextmanager
    def step(self, *paths: str | bytes) -> Iterator[None]:
        """One tool call of the agent's that touches these paths."""
        before = [self.side(path) for path in paths]
        yield
        for path, old in zip(paths, before, strict=True):
            self.steps.append(Step(os.fsencode(path), old, self.side(path)))

    def agent_edits(self, path: str, old: str, new: str) -> None:
        with self.step(path):
            self.replace(path, old, new)

    def agent_makes(self, path: str, data: str | bytes, mode: int | None = None) -> None:
        with self.step(path):
            self.write(path, data, mode)

    def side(self, path: str | bytes) -> Side | None:
        full = self.path(path)
        if full.is_symlink():
            return Side(0o120000, os.fsencode(os.readlink(full)))
        if not full.is_file():
            return None
        return Side(0o100755 if full.stat().st_mode & 0o100 else 0o100644, full.read_bytes())

    def plan(self, root: Path | None = None, steps: Sequence[Step] | None = None, **options: Any) -> CommitPlan:
        plain = {key: options.pop(key) for key in ("include_mine", "scanner") if key in options}
        wanted = self.steps if steps is None else steps
        return plan_commit(Git(self.env), os.fsencode(root or self.root), wanted, CommitSettings(**options), **plain)

    def make(self, plan: CommitPlan | None = None, message: str = "", *, ran: bool = False, **options: Any) -> CommitResult:
        plan = plan or self.plan(**options)
        return make_commit(Git(self.env), plan, message or default_message(plan), AGENT, pre_commit_ran=ran)

    def commits(self, *, base: str = "HEAD^", **options: Any) -> str:
        """Makes the commit, holds it to have been made on ``base``, and gives ``status path`` of each path in it."""
        expected = self.git("rev-parse", base.replace("HEAD^", "HEAD"))
        result = self.make(**options)
        assert result.status == "committed", result
        assert self.head() == result.oid
        assert self.git("rev-parse", "HEAD^") == expected
        assert_clean_up(self)
        return self.git("diff-tree", "-r", "--no-commit-id", "--name-status", "HEAD").replace("\t", " ")

    def staged(self) -> str:
        return self.git("diff", "--cached", "-U0")

    def unstaged(self) -> str:
        return self.git("diff", "-U0")

    def changed_lines(self, *args: str) -> list[str]:
        """The lines with a plus or minus of a diff."""
        shown = self.git("diff", "-U0", *args).splitlines()
        return [line for line in shown if line[:1] in "+-" and line[:3] not in ("+++", "---")]

    def hook(self, name: str, script: str, folder: str = ".git/hooks") -> Path:  # type: ignore[override]
        return self.write(f"{folder}/{name}", "#!/bin/sh\n" + script, 0o755)

    def whole(self) -> Picture:
        """The work tree, the index, the refs, the configuration, and what lies in the git directory."""
        files = {}
        for folder, folders, names in os.walk(self.root):
            if ".git" in folders:
                folders.remove(".git")
            for name in names:
                path = Path(folder, name)
                info = path.lstat()
                data = os.fsencode(os.readlink(path)) if stat.S_ISLNK(info.st_mode) else path.read_bytes()
                files[str(path.relative_to(self.root))] = (info.st_mode, data)
        index = self.root / ".git/index"
        refs = self.git("for-each-ref") + self.git("symbolic-ref", "-q", "HEAD", check=False)
        return Picture(
            files,
            index.read_bytes() if index.exists() else None,
            refs + (self.root / ".git/HEAD").read_text(),
            (self.root / ".git/config").read_bytes(),
            sorted(name for name in os.listdir(self.root / ".git") if name not in ("objects",)),
        )


def assert_clean_up(work: Work) -> None:
    """Nothing of ours is left in the git directory, and git finds nothing wrong."""
    names = [str(path.relative_to(work.root)) for path in (work.root / ".git").rglob("*")]
    assert not [name for name in names if name.endswith(".lock") or "git-safety" in name]
    work.git("fsck", "--strict", "--no-dangling")


def quoted(path: Path) -> str:
    return shlex.quote(str(path))


@pytest.fixture
def fresh(tmp_path: Path, env: dict[str, str]) -> Work:
    """A repository before its first commit."""
    return Work(tmp_path / "work", env)


@pytest.fixture
def work(fresh: Work) -> Work:
    """A repository with one commit of a few files."""
    fresh.write("a.txt", LINES)
    fresh.write("b.txt", NINE_LINES)
    fresh.write("c.txt", "c\n")
    fresh.write("src/app.py", "print('app')\n")
    fresh.write("tool.sh", "#!/bin/sh\n")
    fresh.write("logo.bin", b"\0\1\2")
    fresh.write(".gitignore", "*.log\n")
    fresh.commit("first")
    return fresh
