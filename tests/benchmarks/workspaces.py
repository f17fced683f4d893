"""Workspaces of a size and shape, made fast: files of 0.9 kB, fifty to a folder, one packed commit."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

WORDS = [f"word{number:04d}" for number in range(4000)]


def content(number: int, version: int = 0) -> bytes:
    """About 0.9 kB of text that no other file shares."""
    chance = random.Random(number * 1_000_003 + version)
    lines = [" ".join(chance.choices(WORDS, k=6)) for _ in range(16)]
    return f"file {number} version {version}\n".encode() + "\n".join(lines).encode()[:880] + b"\n"


def name(number: int) -> str:
    return f"d{number // 2500:03d}/s{number // 50 % 50:02d}/f{number:06d}.txt"


def environment(folder: Path) -> dict[str, str]:
    from tests.support.environment import isolated

    return isolated(folder)


def git(root: Path, *args: str, input: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", "-C", str(root), *args], input=input, check=True, capture_output=True, env=environment(root.parent)
    ).stdout


def packed(root: Path, files: int) -> Path:
    """A clean repository of ``files`` files, all in one pack."""
    root.mkdir(parents=True)
    git(root, "init", "-q")
    git(root, "fast-import", "--quiet", "--force", input=b"".join(_import(files)))
    git(root, "reset", "-q", "--hard", "main")
    git(root, "repack", "-adq")
    return root


def _import(files: int) -> Iterator[bytes]:
    yield b"commit refs/heads/main\ncommitter D <d@example.test> 1700000000 +0000\ndata 5\nfirst\n"
    for number in range(files):
        data = content(number)
        yield b"M 100644 inline %s\ndata %d\n%s\n" % (name(number).encode(), len(data), data)


def copy(template: Path, root: Path) -> Path:
    """A copy with its times, and an index that knows its files again, all older than a second as in a workspace at rest."""
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", str(template), str(root)], check=True)
    time.sleep(1.1)
    git(root, "update-index", "-q", "--refresh")
    time.sleep(1.1)
    return root


def change(root: Path, numbers: range, version: int) -> int:
    """Writes a new version of these files; gives the number of bytes written."""
    size = 0
    for number in numbers:
        data = content(number, version)
        (root / name(number)).write_bytes(data)
        size += len(data)
    return size


def flat(root: Path, files: int = 50_000) -> Path:
    """All files in one folder, untracked names beside a packed commit."""
    root.mkdir(parents=True)
    git(root, "init", "-q")
    stream = [b"commit refs/heads/main\ncommitter D <d@example.test> 1700000000 +0000\ndata 5\nfirst\n"]
    for number in range(files):
        stream.append(b"M 100644 inline flat/f%06d.txt\ndata 8\n%08d\n" % (number, number))
    git(root, "fast-import", "--quiet", "--force", input=b"".join(stream))
    git(root, "reset", "-q", "--hard", "main")
    git(root, "repack", "-adq")
    return root


def wide_index(root: Path, entries: int = 100_000) -> Path:
    """A small work tree whose index has a hundred thousand entries, all but a few skipped."""
    packed(root, 100)
    blob = git(root, "hash-object", "-w", "--stdin", input=b"elsewhere\n").strip()
    lines = b"".join(b"100644 %s\telse/d%03d/f%06d\n" % (blob, number // 500, number) for number in range(entries))
    git(root, "update-index", "--index-info", input=lines)
    paths = b"".join(b"else/d%03d/f%06d\0" % (number // 500, number) for number in range(entries))
    git(root, "update-index", "-z", "--skip-worktree", "--stdin", input=paths)
    return root


def long_reflog(root: Path, size: int = 5 << 20) -> Path:
    packed(root, 1000)
    head = git(root, "rev-parse", "HEAD").strip()
    line = b"%s %s Dana <dana@example.test> 17%08d +0000\tcommit: number %08d\n"
    lines = b"".join(line % (head, head, number, number) for number in range(size // len(line % (head, head, 0, 0))))
    for log in ("logs/HEAD", "logs/refs/heads/main"):
        (root / ".git" / log).parent.mkdir(parents=True, exist_ok=True)
        (root / ".git" / log).write_bytes(lines)
    return root


def packed_refs(root: Path, size: int = 3 << 20) -> Path:
    packed(root, 1000)
    head = git(root, "rev-parse", "HEAD").strip()
    line = b"%s refs/tags/v%08d\n"
    lines = b"".join(line % (head, number) for number in range(size // len(line % (head, 0))))
    (root / ".git/packed-refs").write_bytes(b"# pack-refs with: peeled fully-peeled sorted \n" + lines)
    return root


def loose_refs(root: Path, refs: int = 50_000) -> Path:
    packed(root, 1000)
    head = git(root, "rev-parse", "HEAD")
    for number in range(refs):
        file = root / f".git/refs/heads/b{number // 500:03d}/r{number:06d}"
        if number % 500 == 0:
            file.parent.mkdir(parents=True)
        file.write_bytes(head)
    return root


def with_large_file(root: Path, size: int = 200 << 20) -> Path:
    packed(root, 10_000)
    chance = random.Random(7)
    with open(root / "large.bin", "wb") as file:
        for _ in range(size >> 20):
            file.write(chance.randbytes(1 << 20))
    return root


def with_ignored_files(root: Path, files: int = 50_000) -> Path:
    packed(root, 10_000)
    (root / ".gitignore").write_text("node_modules/\n")
    git(root, "add", ".gitignore")
    git(root, "commit", "-qm", "ignore")
    for number in range(files):
        folder = root / f"node_modules/p{number // 50:04d}"
        if number % 50 == 0:
            folder.mkdir(parents=True)
        (folder / f"f{number}.js").write_bytes(b"x\n")
    return root


def disk_bytes(folder: Path) -> int:
    """What a folder takes on disk, in blocks as allocated."""
    return sum(
        os.lstat(os.path.join(at, entry)).st_blocks * 512
        for at, folders, names in os.walk(folder)
        for entry in (*folders, *names)
    )
