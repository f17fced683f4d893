"""What the checks changed: our own hashes of the agent's files, and what else of the work tree changed meanwhile.

A runner's word is not enough: a fixer that changes an untracked file passes with both, and a file that the user saves during the run is put
on the check ([gate] A3, A4).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping

from safety.plumbing.run import Git


def states(root: bytes, files: Iterable[bytes]) -> dict[bytes, bytes]:
    """Type, mode and content of each file as one value."""
    return {path: _state(os.path.join(root, path)) for path in files}


def changed(root: bytes, before: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
    """The files that no longer are as they were."""
    return tuple(path for path, state in before.items() if _state(os.path.join(root, path)) != state)


def _state(path: bytes) -> bytes:
    try:
        info = os.lstat(path)
        kind = b"%o " % info.st_mode
        if stat.S_ISLNK(info.st_mode):
            return kind + os.readlink(path)
        if stat.S_ISREG(info.st_mode):
            with open(path, "rb") as file:
                return kind + hashlib.file_digest(file, "sha1").digest()
        return kind
    except OSError as fault:
        return b"unreadable %d" % (fault.errno or 0)


def touched_since(git: Git, root: bytes, began_ns: int, but: Iterable[bytes], tracked_too: bool) -> tuple[bytes, ...]:
    """Paths of the work tree outside of ``but`` that were written, made or removed since ``began_ns``, a time that the file
    system itself has stamped.

    Asked of git with the real index, which still says what a file was that a check has set back to HEAD. Ignored files, and the removal of
    untracked ones, are not seen. Without ``tracked_too`` only untracked files are looked for: a runner that passes has compared the others
    itself, which costs as much as all else of a gate at 20,000 files.
    """
    others = git.start_user(root, ["ls-files", "-z", "--others", "--exclude-standard"])
    with others:
        listed = b""
        if tracked_too:
            listed = git.user(root, ["diff-files", "-z", "--name-only", "--ignore-submodules=all", "--no-ext-diff"]).stdout
        listed += others.wait().stdout
    known = set(but)
    paths = sorted({path for path in listed.split(b"\0") if path} - known)
    return tuple(path for path in paths if _changed_at(root, path) >= began_ns)


def _changed_at(root: bytes, path: bytes) -> int:
    """When a path last changed; for one that is gone, when its folder did."""
    while True:
        try:
            return os.lstat(os.path.join(root, path)).st_ctime_ns
        except (FileNotFoundError, NotADirectoryError):
            if not path:
                return 0
            path = os.path.dirname(path)
        except OSError:
            return 0
