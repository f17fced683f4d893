"""The files of a store's object database: its packs, loose objects, leftovers, and the lock that keeps objects from vanishing.

Objects are only ever added under the shared side of ``store.lock`` and only ever removed under its exclusive side. The number
in that file is raised by each removal: who keeps an ``ObjectStore`` open across it must ``refresh`` it, because an open pack
answers for objects that are gone from the disk.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident

from safety.faults import SafetyError
from safety.plumbing.run import Git
from safety.types import ObjectId

LOCK_NAME = "store.lock"
_PAUSE_S = 0.005
_PIECE = 1 << 20
_FANOUT = re.compile(r"[0-9a-f]{2}")
_LOOSE_NAME = re.compile(r"[0-9a-f]{38}")
# What belongs to a pack beside the pack itself. The index comes last when a pack arrives and goes first when it leaves.
COMPANIONS = (".rev", ".promisor", ".mtimes", ".bitmap", ".keep")
_CACHES = ("multi-pack-index",)


class StoreBusy(SafetyError):
    """Captures are under way and did not end in time, so nothing may be removed from the store now."""

    code = "store-busy"


@contextlib.contextmanager
def taking_part(git_dir: Path) -> Iterator[int]:
    """Keeps every object of the store in place for the block; gives the store's generation (see ``generation``).

    Any number may take part at once. Blocks only while a removal runs, which is short.
    """
    descriptor = os.open(git_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _flock(descriptor, fcntl.LOCK_SH)
        yield _number(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def alone(git_dir: Path, wait_s: float = 2.0) -> Iterator[None]:
    """Makes sure that nobody takes part during the block, so that objects may be removed. Raises StoreBusy after ``wait_s``."""
    descriptor = os.open(git_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + wait_s
    try:
        while not _flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if time.monotonic() >= deadline:
                raise StoreBusy("the store is in use by a capture", "wait for it to end, then try again")
            time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(descriptor)


def generation(git_dir: Path) -> int:
    """A number that grows each time objects were removed from the store."""
    try:
        descriptor = os.open(git_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        return _number(descriptor)
    finally:
        os.close(descriptor)


def raise_generation(git_dir: Path) -> None:
    """Says that objects are about to be removed; the caller is ``alone``."""
    descriptor = os.open(git_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, b"%020d\n" % (_number(descriptor) + 1), 0)
    finally:
        os.close(descriptor)


def _number(descriptor: int) -> int:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else 0


def _flock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how)
    except OSError as fault:
        if fault.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if fault.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise
    return True


# ---- what is there -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pack:
    """One complete pack: the path of its files without suffix, their size in all, and how many names its ``.pack`` has."""

    stem: str
    size: int
    links: int

    @property
    def is_shared(self) -> bool:
        """Whether the user's repository still holds the same inode: removing it frees nothing."""
        return self.links > 1


def packs(git_dir: Path) -> list[Pack]:
    """All packs that have an index, smallest first."""
    folder = f"{git_dir}/objects/pack"
    found = []
    names = set(os.listdir(folder))
    for name in names:
        stem = name[:-4]
        if not name.endswith(".idx") or stem + ".pack" not in names:
            continue
        info = os.stat(f"{folder}/{stem}.pack")
        found.append(Pack(f"{folder}/{stem}", info.st_size + os.stat(f"{folder}/{name}").st_size, info.st_nlink))
    return sorted(found, key=lambda pack: (pack.size, pack.stem))


def pack_ids(pack: Pack) -> list[ObjectId]:
    """Ids of all objects in the pack, sorted. Raises ValueError if its index is not one."""
    with open(pack.stem + ".idx", "rb") as file:
        head = file.read(8 + 1024)
        if head[:8] != b"\377tOc\0\0\0\2" or len(head) != 8 + 1024:
            raise ValueError(f"{pack.stem}.idx is not a version 2 pack index")
        count = int.from_bytes(head[-4:], "big")
        data = file.read(20 * count)
    if len(data) != 20 * count:
        raise ValueError(f"{pack.stem}.idx is cut short")
    return [data[at : at + 20] for at in range(0, len(data), 20)]


def loose_files(objects: str) -> Iterator[tuple[ObjectId, str]]:
    """Id and path of every loose object below an ``objects`` folder, in no order. Folders that vanish meanwhile are skipped."""
    for prefix in sorted(filter(_FANOUT.fullmatch, _listed(objects))):
        folder = f"{objects}/{prefix}"
        for name in _listed(folder):
            if _LOOSE_NAME.fullmatch(name):
                yield bytes.fromhex(prefix + name), f"{folder}/{name}"


def is_torn(path: str, oid: ObjectId) -> bool:
    """Whether a loose object's file is empty, cut short, or has another content than its name says."""
    digest = hashlib.sha1(usedforsecurity=False)
    unpacker = zlib.decompressobj()
    try:
        with open(path, "rb") as file:
            while piece := unpacker.unconsumed_tail or file.read(_PIECE):
                digest.update(unpacker.decompress(piece, _PIECE))
            digest.update(unpacker.flush())
    except zlib.error:
        return True
    return not unpacker.eof or digest.digest() != oid


def leftovers(git_dir: Path) -> list[str]:
    """Temporary files of writers that died, and halves of packs. Only meaningful while nobody takes part."""
    objects = f"{git_dir}/objects"
    found = []
    names = set(_listed(f"{objects}/pack"))
    for name in names:
        stem, _, suffix = name.rpartition(".")
        half = (
            suffix in ("pack", "idx", *(companion[1:] for companion in COMPANIONS))
            and not {stem + ".pack", stem + ".idx"} <= names
        )
        if half or name.startswith(("tmp_", ".tmp-")):
            found.append(f"{objects}/pack/{name}")
    for prefix in filter(_FANOUT.fullmatch, _listed(objects)):
        found += [f"{objects}/{prefix}/{name}" for name in _listed(f"{objects}/{prefix}") if not _LOOSE_NAME.fullmatch(name)]
    for folder in (objects, str(git_dir)):
        found += [f"{folder}/{name}" for name in _listed(folder) if name.startswith(("tmp_", ".tmp-")) or ".new-" in name]
    return sorted(found)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


@dataclass(frozen=True, slots=True)
class StoreSize:
    """What a store takes on disk.

    ``own_bytes`` would be freed with it, ``shared_bytes`` lie in files that the user's repository holds too.
    """

    own_bytes: int
    shared_bytes: int
    packs: int
    loose: int


def store_size(git_dir: Path) -> StoreSize:
    """Disk use of a store, its small files included."""
    own = shared = loose = 0
    for folder, _, names in os.walk(git_dir):
        in_fanout = _FANOUT.fullmatch(os.path.basename(folder)) is not None
        for name in names:
            try:
                info = os.lstat(f"{folder}/{name}")
            except FileNotFoundError:
                continue
            if info.st_nlink > 1 and stat.S_ISREG(info.st_mode):
                shared += info.st_blocks * 512
            else:
                own += info.st_blocks * 512
            loose += in_fanout and len(name) == 38
    return StoreSize(own, shared, len(packs(git_dir)), loose)


# ---- writing and removing ------------------------------------------------------------------------------------------------------


def write_pack(git: Git, git_dir: Path, lines: Iterable[bytes], *, window: int = 10, deadline_s: float = 3600) -> Pack | None:
    """Writes exactly the named objects into one new, synced pack; None if there are none.

    A line is a hexadecimal id, or the id, a space and a path: objects with like paths become deltas of each other. Nothing is
    walked, so objects that these ones refer to may be missing.
    """
    fed = b"".join(line + b"\n" for line in lines)
    if not fed:
        return None
    base = f"{git_dir}/objects/pack/pack"
    args = ["pack-objects", "-q", "--delta-base-offset", "--non-empty", f"--window={window}", "--depth=50", base]
    done = git.store(git_dir, args, input=fed, deadline_s=deadline_s)
    stem = f"{base}-{done.stdout.decode().strip()}"
    sync_folder(f"{git_dir}/objects/pack")
    return Pack(stem, os.stat(stem + ".pack").st_size + os.stat(stem + ".idx").st_size, 1)


def remove_pack(pack: Pack) -> None:
    """Unlinks a pack, the index first, so that no reader sees an index without its pack. A shared inode keeps its other name."""
    for suffix in (".idx", *COMPANIONS, ".pack"):
        _unlink(pack.stem + suffix)


def remove_pack_caches(git_dir: Path) -> None:
    """Unlinks what describes several packs at once and would name removed ones."""
    for name in _CACHES:
        _unlink(f"{git_dir}/objects/pack/{name}")


def remove_files(paths: Iterable[str]) -> int:
    """Unlinks files, those already gone included; gives how many were there."""
    return sum(_unlink(path) for path in paths)


def _unlink(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def sync_folder(folder: str | Path) -> None:
    """Makes names that were added to the folder or removed from it durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replaces a small file as a whole; with ``durable`` it is on the disk when this returns. On an OSError the old one stays."""
    temporary = path.with_name(f"{path.name}.new-{os.getpid()}-{get_ident()}")  # sessions may share a process
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        sync_folder(path.parent)
