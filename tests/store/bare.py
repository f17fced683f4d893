"""A real bare repository of ours for the tests of the store's trees, and git's own opinion of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from safety.plumbing.odb import ObjectStore, hash_object
from safety.types import ObjectId

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


def git(store: Path, *args: str, ok: tuple[int, ...] = (0,)) -> bytes:
    """What a git command prints, errors included."""
    done = subprocess.run(["git", f"--git-dir={store}", *args], capture_output=True, env=ENVIRONMENT)
    assert done.returncode in ok, (args, done.returncode, done.stderr)
    return done.stdout + done.stderr


def make_store(path: Path) -> ObjectStore:
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True, env=ENVIRONMENT)
    return ObjectStore(path)


def fsck(odb: ObjectStore) -> bytes:
    """git's complaints about a store, its hygiene rules included; empty when there are none."""
    said = git(odb.git_dir, "fsck", "--full", "--strict", "--no-dangling", "--no-progress", ok=tuple(range(32)))
    return b"\n".join(line for line in said.splitlines() if not line.startswith(b"notice:"))


class Counted(ObjectStore):
    """An object store that counts what it is asked: trees read, and bytes and numbers of objects that were new."""

    def __init__(self, git_dir: Path) -> None:
        super().__init__(git_dir)
        self.trees_read = 0
        self.new_objects = 0
        self.new_bytes = 0

    def tree(self, oid: ObjectId) -> bytes:
        self.trees_read += 1
        return super().tree(oid)

    def write(self, kind: str, data: bytes) -> ObjectId:
        before = self.exists(hash_object(kind, data))
        if not before:
            self.new_objects += 1
            self.new_bytes += len(data)
        return super().write(kind, data)

    def reset(self) -> None:
        self.trees_read = self.new_objects = self.new_bytes = 0
