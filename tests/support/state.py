"""What a folder looks like, whole and comparable: files with type, bytes and mode, folders, and what git would say."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

IN_PROGRESS = (
    b"MERGE_HEAD", b"MERGE_MSG", b"MERGE_MODE", b"CHERRY_PICK_HEAD", b"REVERT_HEAD", b"REBASE_HEAD", b"SQUASH_MSG", b"ORIG_HEAD",
    b"AUTO_MERGE", b"BISECT_LOG", b"BISECT_START", b"BISECT_TERMS", b"BISECT_NAMES", b"BISECT_EXPECTED_REV",
    b"rebase-merge", b"rebase-apply", b"sequencer",
)  # fmt: skip
SETTINGS = (
    b"config",
    b"config.worktree",
    b"hooks",
    b"info/exclude",
    b"info/attributes",
    b"info/sparse-checkout",
    b"description",
    b"shallow",
)
FLAGS_KEPT = 0x8000 | 1 << 29 | 1 << 30  # assume-unchanged, intent-to-add, skip-worktree


@dataclass(frozen=True)
class State:
    """``files``: path to (kind, mode, bytes or target); ``repositories``: path of each repository to its facts."""

    files: Mapping[bytes, tuple[str, int, bytes]]
    repositories: Mapping[bytes, Mapping[str, object]]

    def differences(self, other: State) -> list[str]:
        """One line a difference, for people; empty if the same."""
        lines = [
            f"file {path!r}: {_short(self.files.get(path))} -> {_short(other.files.get(path))}"
            for path in sorted(self.files.keys() | other.files.keys())
            if self.files.get(path) != other.files.get(path)
        ]
        for path in sorted(self.repositories.keys() | other.repositories.keys()):
            mine, theirs = self.repositories.get(path), other.repositories.get(path)
            if mine is None or theirs is None:
                lines.append(f"repository {path!r}: {'gone' if theirs is None else 'new'}")
                continue
            lines += [f"git {path!r} {fact}: {line}" for fact in mine for line in _unlike(mine[fact], theirs[fact])]
        return lines


def assert_same(before: State, after: State) -> None:
    """Fails with every difference named."""
    lines = before.differences(after)
    assert not lines, "not as before:\n  " + "\n  ".join(lines[:40])


def state_of(root: str | Path | bytes) -> State:
    """The whole picture of a folder, repositories inside it included. Object databases, reflogs and index stat data are left
    out.
    """
    top = os.fsencode(root)
    files: dict[bytes, tuple[str, int, bytes]] = {}
    repositories: dict[bytes, Mapping[str, object]] = {}
    for path, full in _walk(top, b""):
        kind = os.lstat(full).st_mode
        mode = stat.S_IMODE(kind)
        if stat.S_ISLNK(kind):
            files[path] = ("link", 0o777, os.readlink(full))
        elif stat.S_ISDIR(kind):
            files[path] = ("dir", mode, b"")
        elif stat.S_ISREG(kind):
            files[path] = ("file", mode, _read(full))
        else:
            files[path] = ("special", mode, b"")
        if os.path.basename(full) == b".git" and is_repository(os.path.dirname(full)):
            repositories[os.path.dirname(path)] = facts(os.path.dirname(full))
    return State(files, repositories)


def _walk(top: bytes, path: bytes) -> Iterator[tuple[bytes, bytes]]:
    yield path or b".", os.path.join(top, path) if path else top
    for entry in sorted(os.scandir(os.path.join(top, path)), key=lambda entry: entry.name):
        below = os.path.join(path, entry.name)
        is_git = entry.name == b".git" and is_repository(os.path.join(top, path))
        if entry.is_dir(follow_symlinks=False) and not is_git:
            yield from _walk(top, below)
        else:
            yield below, entry.path


def is_repository(root: bytes) -> bool:
    """True if ``root`` has a ``.git`` that git would take."""
    pointer = os.path.join(root, b".git")
    if os.path.isfile(pointer):
        return _read(pointer).startswith(b"gitdir:")
    return os.path.isfile(os.path.join(pointer, b"HEAD")) and all(
        os.path.isdir(os.path.join(pointer, name)) for name in (b"objects", b"refs")
    )


def git_dir_of(root: bytes) -> bytes:
    pointer = os.path.join(root, b".git")
    if os.path.isfile(pointer):
        return os.path.normpath(os.path.join(root, _read(pointer)[len(b"gitdir:") :].strip()))
    return pointer


def facts(root: bytes) -> dict[str, object]:
    """What git knows about the work tree at ``root``, in comparable form."""
    git_dir = git_dir_of(root)
    common_file = os.path.join(git_dir, b"commondir")
    common = os.path.normpath(os.path.join(git_dir, _read(common_file).strip())) if os.path.exists(common_file) else git_dir
    if not os.path.exists(os.path.join(git_dir, b"HEAD")):
        return {"broken": True}
    return {
        "HEAD": _read(os.path.join(git_dir, b"HEAD")),
        "refs": tuple(git(root, "for-each-ref", "--format=%(refname) %(objectname) %(symref)").splitlines()),
        "stash": tuple(git(root, "log", "-g", "--format=%H %gs", "refs/stash", "--", ok=(0, 128)).splitlines()),
        "index": index_of(root),
        "in progress": {name: value for name in IN_PROGRESS for name, value in _small_files(git_dir, name)},
        "settings": {name: value for name in SETTINGS for name, value in _small_files(common, name)},
    }


def index_of(root: bytes) -> tuple[bytes, ...]:
    """The index as lines: mode, object, stage, flags, path."""
    text = git(root, "ls-files", "--stage", "--debug", "-t", "--full-name")
    entries = re.findall(rb"^(\S) (\d+ [0-9a-f]+ \d)\t(.*)\n(?:  .*\n){4}  size: .*flags: ([0-9a-f]+)\n", text, re.MULTILINE)
    resolved = git(root, "ls-files", "--resolve-undo")
    return (*(b"%s %s %x" % (name, entry, int(flags, 16) & FLAGS_KEPT) for _, entry, name, flags in entries), resolved)


def reflogs_of(root: str | Path) -> dict[bytes, bytes]:
    logs = os.path.join(git_dir_of(os.fsencode(root)), b"logs")
    return {path: _read(full) for path, full in _walk(logs, b"") if os.path.isfile(full)} if os.path.isdir(logs) else {}


def dot_git_fingerprint(root: str | Path | bytes) -> dict[bytes, tuple[object, ...]]:
    """Each file and folder under ``.git``: kind and mode, size, mtime, inode and a digest of its bytes."""
    prints: dict[bytes, tuple[object, ...]] = {}
    for folder, folders, names in os.walk(os.path.join(os.fsencode(root), b".git")):
        for name in [b".", *folders, *names]:
            full = os.path.join(folder, name)
            seen = os.lstat(full)
            digest = hashlib.sha1(_read(full)).hexdigest() if stat.S_ISREG(seen.st_mode) else ""
            prints[full] = (seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ino, digest)
    return prints


def git(root: bytes, *args: str, ok: tuple[int, ...] = (0,)) -> bytes:
    """A git question asked without touching anything."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    env |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    done = subprocess.run(["git", "-C", root, *args], env=env, capture_output=True)
    assert done.returncode in ok, f"git {args}: {done.returncode} {done.stderr!r}"
    return done.stdout


def _small_files(folder: bytes, name: bytes) -> Iterator[tuple[bytes, tuple[int, bytes]]]:
    full = os.path.join(folder, name)
    if os.path.isdir(full) and not os.path.islink(full):
        for child in sorted(os.listdir(full)):
            yield from _small_files(folder, os.path.join(name, child))
    elif os.path.lexists(full):
        seen = os.lstat(full).st_mode
        yield name, (seen, os.readlink(full) if stat.S_ISLNK(seen) else _read(full))


def _read(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 90 else text[:80] + "..."


def _unlike(mine: object, theirs: object) -> list[str]:
    if mine == theirs:
        return []
    if isinstance(mine, tuple) and isinstance(theirs, tuple):
        return [f"- {_short(item)}" for item in mine if item not in theirs] + [
            f"+ {_short(item)}" for item in theirs if item not in mine
        ]
    if isinstance(mine, dict) and isinstance(theirs, dict):
        keys = [key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key)]
        return [f"{key!r}: {_short(mine.get(key))} -> {_short(theirs.get(key))}" for key in sorted(keys)]
    return [f"{_short(mine)} -> {_short(theirs)}"]
