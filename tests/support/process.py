"""Runs ``git-safety`` the way a client does: arguments, standard input, exit code, output; nothing else of it is known here.

By default a command runs in a fork of this process, with the product's modules already loaded: the same bytes in and out as a
spawned interpreter, 150 ms cheaper. ``SAFETY_TESTS_SPAWN=1`` spawns for real.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
PRELOADED = (
    *("pygit2", "safety.terminal.main", "safety.runtime.open", "safety.adapters.wire.generic"),
    # What a hook loads only when its event needs it.
    *("safety.store.capture", "safety.store.retention", "safety.store.history", "safety.trust", "safety.instructions.inject"),
    *(
        f"safety.tools.{name}"
        for name in "auto_snapshots precommit autocommit agents_md_inject injection_screening audit_log".split()
    ),
)
TIMEOUT_S = 120
CHUNK = 1 << 16


@dataclass(frozen=True)
class Result:
    """What a command left behind. ``code`` is negative for a signal, as in ``subprocess``."""

    args: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def report(self) -> dict[str, Any]:
        """The report of a command that was given ``--json``."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def paths(self, verb: str) -> list[str]:
        """The paths that a report of undo or redo gives for a verb, sorted."""
        return sorted(line["path"] for line in self.report.get("lines", []) if line["verb"] == verb)

    def notes(self, verb: str) -> str:
        """All that the report says beside the paths of a verb."""
        return "\n".join(
            f"{line['path']} {line['note']} {line['reason']}" for line in self.report.get("lines", []) if line["verb"] == verb
        )


def preload() -> None:
    """Loads what a command needs, once, so that forks find it loaded. What does not exist yet is left out."""
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue


def spawning() -> bool:
    return os.environ.get("SAFETY_TESTS_SPAWN") == "1" or not hasattr(os, "fork")


class Forked:
    """A command running in a fork. ``gate`` is called in the child before the first line of the product runs."""

    def __init__(
        self,
        args: Sequence[str],
        cwd: str | Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        gate: Callable[[], None] | None = None,
        timeout_s: int = TIMEOUT_S,
    ) -> None:
        self.args = tuple(args)
        self._out = tempfile.TemporaryFile()  # noqa: SIM115 - closed by wait()
        self._err = tempfile.TemporaryFile()  # noqa: SIM115 - closed by wait()
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            sys.stdout.flush()
            sys.stderr.flush()
            self.pid = os.fork()
            if self.pid == 0:
                _become(self.args, os.fspath(cwd), env, given.fileno(), self._out.fileno(), self._err.fileno(), gate, timeout_s)

    def wait(self) -> Result:
        _, status = os.waitpid(self.pid, 0)
        texts = []
        for file in (self._out, self._err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "surrogateescape"))
            file.close()
        return Result(self.args, os.waitstatus_to_exitcode(status), *texts)


def _become(
    args: tuple[str, ...],
    cwd: str,
    env: Mapping[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
    gate: Callable[[], None] | None,
    timeout_s: int,
) -> None:
    """The child's whole life; never returns."""
    code = 70
    try:
        os.setsid()
        for number, descriptor in enumerate((stdin, stdout, stderr)):
            os.dup2(descriptor, number)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(timeout_s)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8", errors="surrogateescape")
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8", errors="surrogateescape"
        )
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(2, "w", closefd=False)), encoding="utf-8", errors="backslashreplace"
        )
        sys.argv = ["git-safety", *args]
        if gate is not None:
            gate()
        try:
            importlib.import_module("safety.terminal.main").entry()  # not by runpy: what pytest has loaded, it cannot run
            code = 0
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - the mouth of the forked child
        import traceback

        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        os._exit(code)


def run_spawned(
    args: Sequence[str],
    cwd: str | Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    prefix: Sequence[str] = (),
    timeout_s: int = TIMEOUT_S,
) -> Result:
    """Runs the command in a fresh interpreter, under another program if asked."""
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "safety.terminal", *args],
        cwd=cwd,
        env={**env, "PYTHONPATH": str(PROJECT)},
        input=stdin,
        capture_output=True,
        timeout=timeout_s,
    )
    texts = (part.decode("utf-8", "surrogateescape") for part in (done.stdout, done.stderr))
    return Result(tuple(args), done.returncode, *texts)


def run(args: Sequence[str], cwd: str | Path, env: Mapping[str, str], stdin: bytes = b"", timeout_s: int = TIMEOUT_S) -> Result:
    if spawning():
        return run_spawned(args, cwd, env, stdin, timeout_s=timeout_s)
    return Forked(args, cwd, env, stdin, timeout_s=timeout_s).wait()
