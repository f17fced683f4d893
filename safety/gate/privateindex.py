"""The index that checks see: HEAD and the agent's files, none of what the user has staged ([gate] A4).

A copy of the real one, so that its stat data saves git from reading every file again: ``read-tree`` without it costs 0.9 s at 20,000 files
([gate] A2). Its name is relative wherever ``.git`` is a folder: a check that makes a repository of its own would otherwise write into it.
``GIT_DIR`` and ``GIT_WORK_TREE`` are never set: such a check would write ``core.worktree`` into the user's configuration.
"""

from __future__ import annotations

import os
import re
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
        _remove(os.path.join(repository.git_dir, name))


def _remove(path: bytes) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _make(git: Git, repository: Repository, index: bytes) -> None:
    with git.start_user(repository.root, ["rev-parse", "-q", "--verify", "HEAD^{tree}"], check=False) as asked:
        data = _copy(os.path.join(repository.git_dir, b"index"), index)
        tree = asked.wait().stdout.strip().decode("ascii")
    if not tree:  # before the first commit
        _remove(index)
    elif cached_tree(data, len(tree) // 2) != bytes.fromhex(tree):
        _git(git, repository.root, index, ["read-tree", "--reset", "HEAD"])


def cached_tree(data: bytes, id_length: int) -> bytes | None:
    """The tree that an index says all its entries make up; None if it does not say, as when something is staged.

    Read without the entries before it: of all places where the extension's name stands only the one counts from which the extensions
    follow each other up to the checksum at the end.
    """
    at = data.rfind(b"TREE")
    while at >= 0:
        names, next_at = [], at
        while next_at + 8 <= len(data) - id_length:
            names.append(data[next_at : next_at + 4])
            next_at += 8 + int.from_bytes(data[next_at + 4 : next_at + 8], "big")
        if next_at == len(data) - id_length and b"link" not in names:
            found = re.compile(rb"\0(?:0|[1-9][0-9]*) [0-9]+\n").match(data, at + 8)
            return data[found.end() : found.end() + id_length] if found else None
        at = data.rfind(b"TREE", 0, at)
    return None


def _copy(source: bytes, target: bytes) -> bytes:
    """Copies with the mtime: git takes an entry for unchanged only if its file is older than the index. Gives the content."""
    try:
        with open(source, "rb") as file:
            data, info = file.read(), os.fstat(file.fileno())
    except FileNotFoundError:
        return b""
    with open(target, "wb") as file:
        file.write(data)
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
    return data


def _put(git: Git, root: bytes, index: bytes, paths: Iterable[bytes]) -> None:
    names = b"".join(path + b"\0" for path in paths)
    if names:
        _git(git, root, index, ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], names)


def _git(git: Git, root: bytes, index: bytes, args: Sequence[str], input: bytes | None = None) -> None:
    # A split index would put a second file beside the user's.
    args = ["-c", "core.splitIndex=false", *args]
    git.user(root, args, input=input, extra_env={"GIT_INDEX_FILE": os.fsdecode(index)})
