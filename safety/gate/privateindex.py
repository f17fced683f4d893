"""The index that checks see: HEAD and the agent's files, none of what the user has staged ([gate] A4).

A copy of the real one, so that its stat data saves git from reading every file again: ``read-tree`` without it costs 0.9 s at 20,000 files
([gate] A2). Its name is relative wherever ``.git`` is a folder: a check that makes a repository of its own would otherwise write into it.
``GIT_DIR`` and ``GIT_WORK_TREE`` are never set: such a check would write ``core.worktree`` into the user's configuration.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from safety.plumbing.repo import Repository
from safety.plumbing.run import Git

NAME = b"safety-gate.index"
_LOCK = NAME + b".lock"


@contextmanager
def private_index(git: Git, repository: Repository, files: Sequence[bytes], deleted: Sequence[bytes]) -> Iterator[bytes]:
    """Makes the index and gives the value for ``GIT_INDEX_FILE``, for a process that runs in the work tree's root.

    It is gone after the block. Raises GitError. The caller holds the repository's gate lock.
    """
    index = os.path.join(repository.git_dir, NAME)
    try:
        _make(git, repository, index)
        _put(git, repository.root, index, [*files, *deleted])
        yield b".git/" + NAME if os.path.isdir(os.path.join(repository.root, b".git")) else index
    finally:
        sweep(repository)


def left_over(repository: Repository) -> bool:
    """Whether an earlier run was killed before it could clear up."""
    return any(os.path.lexists(os.path.join(repository.git_dir, name)) for name in (NAME, _LOCK))


def sweep(repository: Repository) -> None:
    """Removes the index and the lock that a killed git has left on it."""
    for name in (NAME, _LOCK):
        try:
            os.unlink(os.path.join(repository.git_dir, name))
        except FileNotFoundError:
            pass


def has_commit(git: Git, root: bytes) -> bool:
    """Whether HEAD names a commit."""
    return git.user(root, ["rev-parse", "-q", "--verify", "HEAD^{commit}"], check=False).returncode == 0


def _make(git: Git, repository: Repository, index: bytes) -> None:
    _copy(os.path.join(repository.git_dir, b"index"), index)
    done = _git(git, repository.root, index, ["read-tree", "--reset", "HEAD"], check=False)
    if done != 0:
        if os.path.lexists(index):
            os.unlink(index)
        if has_commit(git, repository.root):
            _git(git, repository.root, index, ["read-tree", "HEAD"])


def _copy(source: bytes, target: bytes) -> None:
    """Copies with the mtime: git takes an entry for unchanged only if its file is older than the index."""
    try:
        with open(source, "rb") as file:
            data, info = file.read(), os.fstat(file.fileno())
    except FileNotFoundError:
        return
    with open(target, "wb") as file:
        file.write(data)
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))


def _put(git: Git, root: bytes, index: bytes, paths: Iterable[bytes]) -> None:
    nested = _Nested(root)
    names = b"".join(path + b"\0" for path in paths if not nested.holds(path))
    if names:
        _git(git, root, index, ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], names)


class _Nested:
    """Which folders are, or lie in, another repository; git would refuse their files."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._known = {b"": False}

    def holds(self, path: bytes) -> bool:
        folder = os.path.dirname(path)
        if folder not in self._known:
            self._known[folder] = self.holds(folder) or os.path.lexists(os.path.join(self._root, folder, b".git"))
        return self._known[folder]


def _git(git: Git, root: bytes, index: bytes, args: Sequence[str], input: bytes | None = None, check: bool = True) -> int:
    # A split index would put a second file beside the user's.
    args = ["-c", "core.splitIndex=false", *args]
    return git.user(root, args, input=input, check=check, extra_env={"GIT_INDEX_FILE": os.fsdecode(index)}).returncode
