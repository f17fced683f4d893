"""Which workspace a folder belongs to, found without asking the folder: it may be gone.

One file a workspace under ``workspaces/``, named after the real path of its root. The nearest recorded ancestor wins, else the git top
level, else the folder itself. A witness (device and inode of the root, root commits) tells a folder that was replaced from one that is
the same: a replaced one gets a new generation of its log, never a silent mix (redteam A8). It also tells where a folder was moved to,
see ``moved``: the file goes by the new root then, what is named after ``key`` stays.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safety.faults import SafetyError
from safety.plumbing.reading import first_line
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
    """One workspace: its root, the store that keeps its operations, the log's name there, and the witness.

    ``key`` names the log and the state folder. It comes from the root at first contact and outlives a move, so no two roots share one.
    """

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
        entry = recorded(home, path)
        if entry is not None and (path == start or path not in too_wide):
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
            return Entry(real_path(root), _free_key(home, real_path(root)), key_of(real_path(repository.common_dir)))
    return new_entry(home, path)


def new_entry(home: Path, path: bytes) -> Entry:
    """A folder that is recorded nowhere yet, with a store of its own."""
    return Entry(path, _free_key(home, path), key_of(path))


def _free_key(home: Path, root: bytes) -> str:
    """The key of a new workspace: that of its root, unless a folder that was moved away from there has it still."""
    taken = {entry.key for entry in everything(home)}
    keys = (key_of(root + b"\0%d" % number if number else root) for number in itertools.count())
    return next(key for key in keys if key not in taken)


def file_of(home: Path, root: bytes) -> Path:
    return home / "workspaces" / f"{key_of(root)}.json"


def recorded(home: Path, root: bytes) -> Entry | None:
    """The workspace recorded for just this root."""
    entry = _load(file_of(home, root))
    return entry if entry is not None and entry.root == root else None


def _load(file: Path) -> Entry | None:
    try:
        raw = json.loads(file.read_bytes())
        key = raw.get("key", file.stem)
        return Entry(
            raw["root"].encode("latin-1"), key, raw["store"], raw["generation"], raw["device"], raw["inode"], raw["history"]
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UnicodeError):
        return None


def files(home: Path) -> Iterator[tuple[Path, Entry]]:
    """All recorded workspaces, each with its file: not that of its root where a kill has cut a move short."""
    for file in sorted((home / "workspaces").glob("*.json")):
        entry = _load(file)
        if entry is not None:
            yield file, entry


def everything(home: Path) -> list[Entry]:
    """All recorded workspaces."""
    return [entry for _, entry in files(home)]


def save(home: Path, entry: Entry) -> None:
    raw: dict[str, Any] = {
        "v": STATE_VERSION,
        "root": entry.root.decode("latin-1"),
        "key": entry.key,
        "store": entry.store,
        "generation": entry.generation,
        "device": entry.device,
        "inode": entry.inode,
        "history": entry.history,
    }
    write_whole(file_of(home, entry.root), json.dumps(raw).encode("ascii"), durable=False)


def forget(home: Path, entry: Entry) -> None:
    """The folder is no workspace any more; what was stored for it stays."""
    file_of(home, entry.root).unlink(missing_ok=True)


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
        return (first_line(repository.git_dir + b"/logs/HEAD") or b"")[41:81].decode("ascii", "replace")
    except OSError:
        return ""
