"""Files of the store that share their inode with the user's repository: which they are, their checksums, how they become ours.

Also the other idle work a seed leaves: making it durable.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import sys
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safety.store.packs import loose_files, packs, sync_folder, write_whole

PACK_PARTS = (".pack", ".rev", ".promisor", ".idx")  # the index last: a pack is there once its index is
_PIECE = 1 << 20
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class LinkedFile:
    """A file of the store that shares its inode with the user's repository; ``name`` is below ``objects/``.

    ``sha1`` is the checksum that a pack, a pack index or a reverse index ends with; for a loose object it is the object's id.
    """

    name: str
    size: int
    sha1: str

    def is_sound(self, path: str) -> bool:
        """Whether the file at ``path`` has this size and checksum; reads all of it. False if it is gone."""
        try:
            return os.stat(path).st_size == self.size and _checksum(path, is_loose=self.name[2] == "/") == self.sha1
        except FileNotFoundError:
            return False


def linked_files(git_dir: Path) -> list[LinkedFile]:
    """What ``linked.json`` lists, whether it is still there or not."""
    return [LinkedFile(*row) for row in load_json(git_dir / "linked.json").get("files", [])]


def save_linked(git_dir: Path, files: Iterable[LinkedFile]) -> None:
    """Replaces the list of shared files."""
    save_json(git_dir / "linked.json", {"files": sorted([file.name, file.size, file.sha1] for file in files)})


def load_json(path: Path) -> dict[str, Any]:
    """A small file of the store that can be done without; empty when it is gone or torn."""
    try:
        raw = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):  # rebuilt or done without: see the module's docstring
        return {}
    return raw if isinstance(raw, dict) else {}


def save_json(path: Path, raw: dict[str, Any]) -> None:
    """Replaces such a file as a whole."""
    write_whole(path, json.dumps(raw, separators=(",", ":")).encode("ascii"), durable=False)


def copy_bytes(out: int, source: int, size: int) -> None:
    """Copies ``size`` bytes. Raises FileNotFoundError when the source became shorter: somebody is at it."""
    at = 0
    while at < size:
        moved = (
            os.sendfile(out, source, at, size - at) if sys.platform == "linux" else os.write(out, os.pread(source, _PIECE, at))
        )
        if not moved:
            raise FileNotFoundError(errno.ENOENT, "became shorter while it was copied")
        at += moved


@dataclass(frozen=True, slots=True)
class Unshared:
    """What ``unshare_links`` did.

    ``damaged`` are shared files the user's side has changed; the store's objects in them are lost.
    """

    replaced: int
    copied_bytes: int
    left: int
    damaged: tuple[str, ...]


def unshare_links(git_dir: Path, *, copy_budget: int) -> Unshared:
    """Replaces shared files by copies of our own, smallest first, as far as the budget goes; each is checked while it is copied.

    Then makes all that was seeded durable. For idle times: it may take seconds.
    """
    left, damaged = [], []
    replaced = copied = 0
    for file in sorted(linked_files(git_dir), key=lambda file: file.size):
        path = f"{git_dir}/objects/{file.name}"
        try:
            info = os.stat(path)
        except FileNotFoundError:
            continue
        if info.st_nlink == 1 and file.is_sound(path):
            continue  # the user's git has let go of it
        if copied + info.st_size > copy_budget:
            left.append(file)
        elif _replace_by_copy(path, file):
            replaced += 1
            copied += info.st_size
        else:
            left.append(file)
            damaged.append(file.name)
    if (git_dir / "linked.json").exists():
        save_linked(git_dir, left)
    _sync_seed(git_dir)
    return Unshared(replaced, copied, len(left), tuple(damaged))


def _replace_by_copy(path: str, file: LinkedFile) -> bool:
    temporary = f"{os.path.dirname(path)}/tmp_obj_unshare_{os.getpid()}_{next(_numbers)}"
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        out = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        try:
            copy_bytes(out, source, os.fstat(source).st_size)
            os.fsync(out)
        finally:
            os.close(out)
        if not file.is_sound(temporary):
            return False
        os.replace(temporary, path)
        return True
    finally:
        os.close(source)
        if os.path.exists(temporary):
            os.unlink(temporary)


def _checksum(path: str, *, is_loose: bool) -> str:
    """The object's id, for a loose object; else the sha1 of all but the last 20 bytes, if that is what those 20 bytes say."""
    with open(path, "rb") as file:
        if is_loose:
            return _loose_id(file.read())
        left = os.fstat(file.fileno()).st_size - 20
        digest = hashlib.sha1(usedforsecurity=False)
        while left > 0:
            piece = file.read(min(_PIECE, left))
            if not piece:
                break
            digest.update(piece)
            left -= len(piece)
        return digest.hexdigest() if file.read() == digest.digest() else ""


def _loose_id(packed: bytes) -> str:
    try:
        return hashlib.sha1(zlib.decompress(packed), usedforsecurity=False).hexdigest()
    except zlib.error:
        return ""


def _sync_seed(git_dir: Path) -> None:
    sources = load_json(git_dir / "seed.json")
    if not sources or all(source.get("synced") for source in sources.values()):
        return
    folders = {f"{git_dir}/objects", f"{git_dir}/objects/pack"}
    paths = [pack.stem + suffix for pack in packs(git_dir) for suffix in PACK_PARTS]
    for _, path in loose_files(f"{git_dir}/objects"):
        paths.append(path)
        folders.add(os.path.dirname(path))
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    for folder in folders:
        sync_folder(folder)
    for source in sources.values():
        source["synced"] = True
    save_json(git_dir / "seed.json", sources)
