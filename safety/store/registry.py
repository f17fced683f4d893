"""Which workspace a folder belongs to, found without asking the folder: it may be gone.

One file a workspace under ``workspaces/``, named after the real path of its root. The nearest recorded ancestor wins, else the git top
level, else the folder itself. A witness (device and inode of the root, root commits) tells a folder that was replaced from one that is
the same: a replaced one gets a new generation of its log, never a silent mix (redteam A8).
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safety.faults import SafetyError
from safety.plumbing.reading import open_regular
from safety.plumbing.repo import find_root, open_repository
from safety.store.packs import write_whole

STATE_VERSION = 1


class StateUnusable(SafetyError):
    """The state folder cannot be made or written."""

    code = "state-unusable"


class StateNewer(SafetyError):
    code = "newer-state"


@dataclass(frozen=True)
class Entry:
    """One workspace: its root, the store that keeps its operations, the log's name there, and the witness."""

    root: bytes
    key: str
    store: str
    generation: int = 1
    device: int = 0
    inode: int = 0
    history: str = ""

    @property
    def chain(self) -> str:
        return f"{self.key}-{self.generation}"


def key_of(path: bytes) -> str:
    return hashlib.sha256(path).hexdigest()[:16]


def prepare_home(home: Path) -> None:
    """Makes the state folder (0700) and checks its version. Raises StateUnusable, StateNewer."""
    try:
        home.mkdir(parents=True, mode=0o700, exist_ok=True)
        for name in ("stores", "workspaces"):
            (home / name).mkdir(mode=0o700, exist_ok=True)
        found = _version(home / "version")
    except OSError as fault:
        raise StateUnusable(
            f"the state folder {home} cannot be used: {fault.strerror}", "set GIT_SAFETY_HOME to a folder you can write"
        ) from fault
    if not found.isdigit() or int(found) > STATE_VERSION:
        raise StateNewer(
            f"the state folder {home} was written by a newer git-safety (format {found[:20]})",
            "upgrade git-safety, then try again",
        )


def _version(path: Path) -> str:
    """The version of the state folder, written there if it is new. An empty file was left by a killed writer of before."""
    try:
        if found := path.read_text().strip():
            return found
    except FileNotFoundError:
        pass
    write_whole(path, f"{STATE_VERSION}\n".encode(), durable=False)
    return str(STATE_VERSION)


def real_path(path: bytes) -> bytes:
    """The path without symbolic links, also for what does not exist (any more)."""
    return os.path.realpath(path)


def find(home: Path, cwd: bytes, too_wide: frozenset[bytes] = frozenset()) -> Entry | None:
    """The recorded workspace that holds the folder, nearest first; one that is ``too_wide`` only holds itself."""
    path = start = real_path(cwd)
    while True:
        entry = load(home, key_of(path))
        if entry is not None and entry.root == path and (path == start or path not in too_wide):
            return entry
        parent = os.path.dirname(path)
        if parent == path:
            return None
        path = parent


def locate(home: Path, cwd: bytes, too_wide: frozenset[bytes] = frozenset()) -> Entry:
    """The workspace of a folder, recorded or not yet. ``too_wide``: folders that are never the workspace of what is below them."""
    entry = find(home, cwd, too_wide)
    if entry is not None:
        return entry
    path = real_path(cwd)
    root = find_root(path)
    if root is not None and (real_path(root) == path or real_path(root) not in too_wide):
        repository = open_repository(root)
        if repository is not None and repository.problem is None and not repository.bare:
            return Entry(real_path(root), key_of(real_path(root)), key_of(real_path(repository.common_dir)))
    return Entry(path, key_of(path), key_of(path))


def load(home: Path, key: str) -> Entry | None:
    try:
        raw = json.loads((home / "workspaces" / f"{key}.json").read_bytes())
        return Entry(
            raw["root"].encode("latin-1"), key, raw["store"], raw["generation"], raw["device"], raw["inode"], raw["history"]
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UnicodeError):
        return None


def everything(home: Path) -> list[Entry]:
    """All recorded workspaces."""
    found = []
    for path in sorted((home / "workspaces").glob("*.json")):
        entry = load(home, path.stem)
        if entry is not None:
            found.append(entry)
    return found


def save(home: Path, entry: Entry) -> None:
    raw: dict[str, Any] = {
        "v": STATE_VERSION,
        "root": entry.root.decode("latin-1"),
        "store": entry.store,
        "generation": entry.generation,
        "device": entry.device,
        "inode": entry.inode,
        "history": entry.history,
    }
    write_whole(home / "workspaces" / f"{entry.key}.json", json.dumps(raw).encode("ascii"), durable=False)


def forget(home: Path, entry: Entry) -> None:
    """The folder is no workspace any more; what was stored for it stays."""
    (home / "workspaces" / f"{entry.key}.json").unlink(missing_ok=True)


def witnessed(entry: Entry, history: str) -> Entry:
    """The entry to go on with: a new generation if both the folder and its history are others than recorded.

    ``history`` tells one repository's history from another's ("" for none); see ``first_commit``.
    """
    try:
        info = os.stat(entry.root)
    except OSError:
        return entry
    seen = replace(entry, device=info.st_dev, inode=info.st_ino, history=history or entry.history)
    if not entry.inode or (info.st_dev, info.st_ino) == (entry.device, entry.inode):
        return seen
    if history and history == entry.history:
        return seen
    return replace(seen, generation=entry.generation + 1, history=history)


def first_commit(root: bytes) -> str:
    """The first id in HEAD's log: without a spawn, enough to tell a repository's history from another's; "" where there is none."""
    repository = open_repository(root)
    if repository is None:
        return ""
    try:
        file = open_regular(repository.git_dir + b"/logs/HEAD", follow=True)
        if file is None:
            return ""
        with file:
            return file.readline()[41:81].decode("ascii", "replace")
    except OSError:
        return ""
