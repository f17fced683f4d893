"""Runs a command under strace and kills it, or holds it up, at a chosen system call.

The command runs in a fork that waits until strace is attached, so that only its own calls are counted, not those of an
interpreter starting. ``children`` follows the git processes it starts too; each process then has a count of its own.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.process import Forked, Result

#: Calls that change something on disk, by kind. A question mark lets a name be unknown on this processor.
KINDS: dict[str, tuple[str, ...]] = {
    "write": ("write", "pwrite64", "writev", "?pwritev", "?sendfile", "copy_file_range"),
    "rename": ("?rename", "?renameat", "renameat2"),
    "link": ("?link", "linkat", "?symlink", "symlinkat"),
    "unlink": ("?unlink", "unlinkat", "?rmdir"),
    "mkdir": ("?mkdir", "mkdirat"),
    "create": ("?open", "openat", "?creat"),
    "mode": ("?chmod", "fchmod", "fchmodat", "ftruncate"),
}
_CREATES = re.compile(r"^\d+ +(creat\(|open(at)?\(.*O_CREAT)")
_CALL = re.compile(r"^(\d+) +(\w+)\(")
_PR_SET_PTRACER = 0x59616D61


def available() -> bool:
    """True if strace is here and may trace."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "-e", "trace=none", "true"], capture_output=True).returncode == 0


@dataclass(frozen=True, order=True)
class Point:
    """The ``number``-th call of a kind; ``children``: in whichever process gets that far, else in the command's own."""

    kind: str
    children: bool
    number: int

    def __str__(self) -> str:
        return f"{self.kind}:{'all' if self.children else 'own'}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> Point:
        kind, who, number = text.split(":")
        return cls(kind, who == "all", int(number))


@dataclass(frozen=True)
class Command:
    """What to run, where and with what."""

    args: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdin: bytes = b""


def traced(command: Command, options: Sequence[str]) -> tuple[Result, str]:
    """Runs the command with strace attached; gives its result and strace's log."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        ready, go = os.pipe()
        child = Forked(command.args, command.cwd, command.env, command.stdin, gate=lambda: _wait(ready, go))
        os.close(ready)
        tracer = subprocess.Popen(
            ["strace", "-o", str(log), *options, "-p", str(child.pid)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert tracer.stderr is not None
        attached = tracer.stderr.readline()
        assert b"attached" in attached, attached
        os.write(go, b"x")
        os.close(go)
        result = child.wait()
        tracer.stderr.read()
        tracer.wait()
        tracer.stderr.close()
        return result, log.read_text(errors="replace")


def _wait(ready: int, go: int) -> None:
    """In the child: lets any process of this user trace it, then waits for the go."""
    os.close(go)
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(-1 & 0xFFFFFFFFFFFFFFFF), 0, 0, 0)
    os.read(ready, 1)
    os.close(ready)


def points(command: Command) -> list[Point]:
    """All points at which a run of the command can be killed, found by one run that is only watched."""
    names = [name for kind in KINDS.values() for name in kind]
    result, log = traced(command, ["-f", "-e", "trace=" + ",".join(names)])
    assert result.code in (0, 3), f"exit {result.code}: {result.text}"
    counted: dict[tuple[str, str], int] = {}
    found: set[Point] = set()
    own = ""
    for line in log.splitlines():
        call = _CALL.match(line)
        if not call or "resumed>" in line:
            continue
        process, name = call.groups()
        own = own or process
        for kind, calls in KINDS.items():
            if name in calls or f"?{name}" in calls:
                counted[process, kind] = counted.get((process, kind), 0) + 1
                if kind != "create" or _CREATES.match(line):
                    found.add(Point(kind, True, counted[process, kind]))
                    if process == own:
                        found.add(Point(kind, False, counted[process, kind]))
    return sorted(found)


def kill(command: Command, point: Point) -> tuple[Result, bool]:
    """Runs the command and kills it on entering the point's call. False if no process got that far."""
    names = ",".join(KINDS[point.kind])
    options = ["-e", f"trace={names}", "-e", f"inject={names}:signal=KILL:when={point.number}"]
    result, log = traced(command, [*(["-f"] if point.children else []), *options])
    return result, "killed by SIGKILL" in log


@contextmanager
def held_up(command: Command, calls: str, number: int, delay_ms: int) -> Iterator[Forked]:
    """The command, started so that it waits before its ``number``-th call of these. The block waits for its end."""
    ready, go = os.pipe()
    child = Forked(command.args, command.cwd, command.env, command.stdin, gate=lambda: _wait(ready, go))
    os.close(ready)
    inject = f"inject={calls}:delay_enter={delay_ms * 1000}:when={number}"
    tracer = subprocess.Popen(
        ["strace", "-o", os.devnull, "-e", f"trace={calls}", "-e", inject, "-p", str(child.pid)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert tracer.stderr is not None
    assert b"attached" in tracer.stderr.readline()
    os.write(go, b"x")
    os.close(go)
    yield child
    tracer.stderr.read()
    tracer.wait()
    tracer.stderr.close()
