"""The store seen from outside: bare git repositories below the state folder, and every content that the user must never lose."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path


def blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def stores(state: Path) -> list[Path]:
    """Every git repository below the state folder that is ours: those with a ``safety`` ref or history, not scratch ones."""
    found = []
    for folder, folders, names in os.walk(state):
        if "HEAD" in names and "objects" in folders and "refs" in folders:
            found.append(Path(folder))
            folders.clear()
    return sorted(found)


def store_git(store: Path, *args: str, input: bytes = b"", ok: tuple[int, ...] = (0,)) -> bytes:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    done = subprocess.run(["git", f"--git-dir={store}", *args], input=input, capture_output=True, env=env)
    assert done.returncode in ok, f"git {args} in the store: {done.returncode} {done.stderr.decode(errors='replace')}"
    return done.stdout + done.stderr


def fsck(store: Path) -> None:
    """git's own full check, with its hygiene rules as errors."""
    complaints = [
        line
        for line in store_git(
            store, "fsck", "--full", "--strict", "--no-dangling", "--no-progress", ok=(0, 1, 2, 3, 4, 8)
        ).splitlines()
        if not line.startswith((b"notice:", b"dangling", b"unreachable", b"Checking"))
    ]
    assert not complaints, f"the store {store} is not sound:\n" + b"\n".join(complaints[:20]).decode(errors="replace")


def borrowed(store: Path) -> list[Path]:
    """Files by which a store would depend on another object database."""
    return [path for path in (store / "objects/info/alternates", store / "objects/info/http-alternates") if path.exists()]


def reachable(state: Path) -> set[str]:
    """Ids of all objects that the refs of the stores keep alive."""
    ids: set[str] = set()
    for store in stores(state):
        listed = store_git(store, "rev-list", "--objects", "--no-object-names", "--all", "--missing=allow-any")
        ids.update(listed.decode().split())
    return ids


class Ledger:
    """Every content that was ever the user's. Nothing in it may vanish from both the disk and the store."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}

    def note(self, content: bytes, label: str) -> None:
        self._seen.setdefault(blob_id(content), label)

    def note_tree(self, root: Path, below_bytes: int = 1 << 20) -> None:
        """Takes in all files and link targets below ``root``, but for git directories and what is larger than the limit."""
        for full in user_files(root):
            if os.lstat(full).st_size <= below_bytes:
                self.note(content_of(full), os.fsdecode(full))

    def forgive(self, content: bytes) -> None:
        """The user themselves threw this away."""
        self._seen.pop(blob_id(content), None)

    def forget(self) -> None:
        """The history was cut on purpose; only what is noted from now on counts."""
        self._seen.clear()

    def missing(self, roots: Iterable[Path], state: Path) -> list[str]:
        """Labels of contents that are neither on disk below ``roots`` nor kept by the store."""
        left = set(self._seen)
        for root in roots:
            left -= {blob_id(content_of(full)) for full in user_files(root)}
        if left:
            left -= reachable(state)
        return sorted(self._seen[oid] for oid in left)


def user_files(root: Path) -> Iterator[bytes]:
    """Regular files and links below ``root``, outside ``.git``."""
    for folder, folders, names in os.walk(os.fsencode(root)):
        folders[:] = [name for name in folders if name != b".git"]
        for name in [*names, *(name for name in folders if os.path.islink(os.path.join(folder, name)))]:
            full = os.path.join(folder, name)
            mode = os.lstat(full).st_mode
            if stat.S_ISLNK(mode) or stat.S_ISREG(mode):
                yield full


def content_of(full: bytes) -> bytes:
    if os.path.islink(full):
        return os.readlink(full)
    try:
        with open(full, "rb") as file:
            return file.read()
    except PermissionError:
        return b""
