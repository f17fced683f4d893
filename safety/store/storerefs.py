"""The store's refs as files: all below a prefix at once, many added or removed at once.

Single ones move by ``ObjectStore.move_ref``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from safety.store.packs import sync_folder
from safety.types import ObjectId

LOG, ANCHOR, KEEP, PIN = "refs/safety/log/", "refs/safety/anchor/", "refs/safety/keep/", "refs/safety/pin/"


def refs_below(git_dir: Path, prefix: str) -> dict[str, ObjectId]:
    """All refs of the store below a prefix (which ends in ``/``), packed ones too; broken ones are left out."""
    found = {name: oid for name, oid in _packed_refs(git_dir).items() if name.startswith(prefix)}
    for folder, _, names in os.walk(git_dir / prefix):
        for name in names:
            if not name.endswith(".lock"):
                path = os.path.join(folder, name)
                try:
                    text = Path(path).read_bytes().strip()
                    found[os.path.relpath(path, git_dir)] = _checked_id(text)
                except (FileNotFoundError, ValueError):
                    continue
    return found


def _checked_id(text: bytes) -> ObjectId:
    oid = bytes.fromhex(text.decode("ascii"))
    if len(oid) != 20:
        raise ValueError("not an object id")
    return oid


def _packed_refs(git_dir: Path) -> dict[str, ObjectId]:
    try:
        lines = (git_dir / "packed-refs").read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    return {os.fsdecode(line[41:]): _checked_id(line[:40]) for line in lines if len(line) > 41 and line[:1] not in (b"#", b"^")}


def rewrite_packed_refs(git_dir: Path, added: dict[str, ObjectId], removed: Iterable[str]) -> None:
    """Adds refs to ``packed-refs`` and takes others out of it, at once and durably.

    Raises FileExistsError while git holds its lock.
    """
    lock = git_dir / "packed-refs.lock"
    descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            refs = _packed_refs(git_dir)
            for name in removed:
                refs.pop(name, None)
            refs.update(added)
            file.write(b"# pack-refs with: sorted \n")
            for name in sorted(refs, key=os.fsencode):
                file.write(refs[name].hex().encode("ascii") + b" " + os.fsencode(name) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(lock, git_dir / "packed-refs")
    except BaseException:  # only to clean up; nothing is swallowed
        lock.unlink(missing_ok=True)
        raise
    sync_folder(git_dir)


def delete_refs(git_dir: Path, names: Iterable[str]) -> None:
    """Removes refs of ours that no one else moves (``keep``, ``pin``, whole chains), packed or not."""
    gone = list(names)
    if any(name in _packed_refs(git_dir) for name in gone):
        rewrite_packed_refs(git_dir, {}, gone)
    for name in gone:
        (git_dir / name).unlink(missing_ok=True)
