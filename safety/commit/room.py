"""A folder of ours in the git directory while a commit is made, one commit at a time; and the index lock, which says whose it is.

The folder's lock is a flock, so it ends with the process that holds it. Whoever holds it may put away what a killed commit left:
the folder itself, and an ``index.lock`` whose content names the folder, which no other program writes ([gate] B5: never another's).
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from safety.commit.interrupts import Interrupts
from safety.faults import SafetyError
from safety.plumbing.repo import Repository, open_repository
from safety.plumbing.run import Git

NAME = b"git-safety-commit"
_MARK = "git-safety commit"
_LONGEST_PAUSE_S = 0.1
_MAX_LOCK_BYTES = 4096


class CommitBusy(SafetyError):
    """Another program holds the index, or another commit of ours is being made, longer than we wait."""

    code = "commit-busy"


@dataclass(frozen=True, slots=True)
class Room:
    """The folder, and the index and index lock of the work tree it belongs to; absolute paths."""

    folder: bytes
    index: bytes
    index_lock: bytes

    @property
    def draft(self) -> bytes:
        """Where the next index is made ready."""
        return os.path.join(self.folder, b"next-index")

    @property
    def hook_index(self) -> bytes:
        """The index that hooks are shown. Beside the folder: a hook takes its relative name along into other repositories."""
        return self.folder + b"-index"


def room_of(repository: Repository) -> Room:
    """Where the folder of a work tree is, made or not."""
    git_dir = repository.git_dir
    return Room(os.path.join(git_dir, NAME), os.path.join(git_dir, b"index"), os.path.join(git_dir, b"index.lock"))


@contextmanager
def enter(git: Git, repository: Repository, wait_s: float, interrupts: Interrupts) -> Iterator[Room]:
    """The folder, empty, for the duration of the block; what a killed commit left is put in order first.

    Raises CommitBusy when another commit of ours does not end in time.
    """
    room = room_of(repository)
    descriptor = _locked(room.folder, time.monotonic() + wait_s, interrupts)
    try:
        _put_in_order(git, repository.root, room)
        yield room
    finally:
        # The lock's name goes last: who opens the next one then finds nothing of ours beside it.
        _empty(room)
        with suppress(OSError):
            os.unlink(os.path.join(room.folder, b"lock"))
            os.rmdir(room.folder)
        os.close(descriptor)


def sweep(git: Git, root: bytes) -> bool:
    """Puts in order what a killed commit left in the work tree at ``root``; whether there was anything. Waits for nobody."""
    repository = open_repository(root)
    if repository is None or not os.path.lexists(room_of(repository).folder):
        return False
    try:
        with Interrupts() as interrupts, enter(git, repository, 0, interrupts):
            return True
    except CommitBusy:
        return False


def _locked(folder: bytes, ends_at: float, interrupts: Interrupts) -> int:
    pause = 0.001
    while True:
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            descriptor = os.open(os.path.join(folder, b"lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # its last holder has just removed the folder
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, os.path.join(folder, b"lock")):
                return descriptor
        except BlockingIOError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= ends_at:
            raise CommitBusy("another commit is being made here", "wait for it to end, then try again")
        with interrupts.allowed():
            time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def _is_at(descriptor: int, path: bytes) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _put_in_order(git: Git, root: bytes, room: Room) -> None:
    """Finishes or takes back what a killed commit of ours began: after this HEAD and the index agree and no lock of ours is left."""
    note = _read_note(room.index_lock)
    if note is not None:
        new, branch = note["new"], note["branch"]
        if git.user(root, ["merge-base", "--is-ancestor", new, "HEAD"], check=False).returncode == 0:
            if os.path.lexists(room.draft):
                os.rename(room.draft, room.index)
        elif branch:
            # The branch it began was not yet HEAD's.
            git.user(root, ["update-ref", "-d", branch, new], check=False)
        os.unlink(room.index_lock)
    _empty(room)


def _empty(room: Room) -> None:
    """All but the lock goes."""
    for name in (room.hook_index, room.hook_index + b".lock"):
        with suppress(FileNotFoundError):
            os.unlink(name)
    with os.scandir(room.folder) as found:
        for item in found:
            if item.name != b"lock":
                shutil.rmtree(item.path) if item.is_dir(follow_symlinks=False) else os.unlink(item.path)


def _read_note(lock: bytes) -> dict[str, str] | None:
    """What an index lock of ours says; None for anyone else's."""
    try:
        with open(lock, "rb") as file:
            note = json.loads(file.read(_MAX_LOCK_BYTES))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) and note.get("what") == _MARK else None


@contextmanager
def hold_index(room: Room, new: str, branch: str, wait_s: float, interrupts: Interrupts) -> Iterator[None]:
    """Holds the index lock for the duration of the block; ``new`` is the commit that HEAD is about to become, ``branch`` a new one.

    The lock appears complete, by a link, and is never written to. Raises CommitBusy when another program keeps it for ``wait_s``.
    """
    note = os.path.join(room.folder, b"note")
    with open(note, "x") as file:
        json.dump({"what": _MARK, "new": new, "branch": branch, "process": os.getpid()}, file)
    ends_at = time.monotonic() + wait_s
    pause = 0.005
    while True:
        try:
            os.link(note, room.index_lock)
            break
        except FileExistsError:
            if time.monotonic() >= ends_at:
                os.unlink(note)
                hint = "wait for it, or remove that file if no git runs"
                raise CommitBusy(f"another git is at work: {os.fsdecode(room.index_lock)} exists", hint) from None
        with interrupts.allowed():
            time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)
    try:
        yield
    finally:
        # Somebody may have removed our lock by hand and taken it.
        if os.path.lexists(room.index_lock) and os.path.samefile(note, room.index_lock):
            os.unlink(room.index_lock)
        os.unlink(note)
