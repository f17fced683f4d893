"""``git safety watch``: changed paths, one a line, until it is ended."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from safety.terminal import watch
from safety.terminal.arguments import UsageError
from tests.support.process import PROJECT
from tests.support.repo import RepoBuilder

DEADLINE_S = 30.0


class Watching:
    """A running ``watch``; ``lines`` grows as it prints."""

    def __init__(self, words: list[str], cwd: Path, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "safety.terminal", "watch", *words],
            cwd=cwd,
            env={**env, "PYTHONPATH": str(PROJECT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self._out = self.process.stdout
        self._text = b""

    @property
    def lines(self) -> list[str]:
        return self._text.decode().splitlines()

    def ready(self, file: Path) -> None:
        """Touches a file until it is heard of."""
        end = time.monotonic() + DEADLINE_S
        while not self._text:
            assert time.monotonic() < end
            file.touch()
            self._read(0.1)
        file.unlink()

    def prints(self, line: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while line not in self.lines:
            left = end - time.monotonic()
            assert left > 0, (line, self.lines)
            self._read(left)

    def _read(self, timeout_s: float) -> None:
        if select.select([self._out], [], [], timeout_s)[0]:
            self._text += os.read(self._out.fileno(), 1 << 16)

    def ends(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Sends the signal; gives exit code and standard error."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, err.decode()


@pytest.fixture
def watching(repo: RepoBuilder) -> Iterator[Callable[..., Watching]]:
    started: list[Watching] = []

    def start(*words: str, cwd: Path | None = None) -> Watching:
        one = Watching(list(words), cwd or repo.root, repo.env)
        started.append(one)
        one.ready((cwd or repo.root) / "ready")
        return one

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_prints_changes_until_it_is_ended(watching: Callable[..., Watching], repo: RepoBuilder, number: int) -> None:
    """Each change is printed at once; git's own files are not; a signal ends it with 0 and not a word."""
    one = watching("--format", "paths")
    repo.write("new.txt", "x")
    one.prints("new.txt")
    repo.git("add", "-A")
    repo.commit("two")
    repo.write("src/lib/util.py", "x")
    one.prints("src/lib/util.py")

    assert one.ends(number) == (0, "")
    assert not [line for line in one.lines if ".git/" in line or line == ".git"]


def test_paths_are_relative_to_the_folder_and_quoted(watching: Callable[..., Watching], repo: RepoBuilder) -> None:
    """From a subfolder the whole workspace is heard, seen from there; odd names come quoted, as git quotes them."""
    one = watching(cwd=repo.path("src"))
    repo.write("b.txt", "x")
    repo.write('src/new\n"line"', "x")
    repo.write(b"src/\xff", "x")
    one.prints("../b.txt")
    one.prints('"new\\n\\"line\\""')
    one.prints('"\\377"')


def test_json_lines(watching: Callable[..., Watching], repo: RepoBuilder) -> None:
    """Each line is an object whose path is exact, surrogate escapes for bytes that are no UTF-8."""
    one = watching("--format=json")
    repo.write(b"\xff", "x")
    one.prints('{"path": "\\udcff"}')
    assert all(set(json.loads(line)) == {"path"} for line in one.lines)


def test_plain_folder_and_state_inside(tmp_path: Path, env: dict[str, str]) -> None:
    """It works without git, and our own state folder below the watched one is not heard."""
    env["GIT_SAFETY_HOME"] = str(tmp_path / "state")
    one = Watching([], tmp_path, env)
    try:
        one.ready(tmp_path / "ready")
        (tmp_path / "state/x").mkdir(parents=True)
        (tmp_path / "end").touch()
        one.prints("end")
        assert one.ends() == (0, "")
        assert set(one.lines) == {"ready", "end"}
    finally:
        one.process.kill()
        one.process.communicate()


def test_reader_that_leaves(watching: Callable[..., Watching], repo: RepoBuilder) -> None:
    """When nobody reads any more it ends by itself, in peace."""
    one = watching()
    assert one.process.stdout is not None
    one.process.stdout.close()
    repo.write("a.txt", "x")
    assert one.process.wait(DEADLINE_S) == 0
    assert one.process.stderr is not None
    assert one.process.stderr.read() == b""


def test_formats() -> None:
    """``--json`` is short for the json format; all else is a usage error."""
    assert [watch.parse(words) for words in ([], ["--json"], ["--format", "json"], ["--format=paths"])] == [
        "paths",
        "json",
        "json",
        "paths",
    ]
    for words in (["--format"], ["--format", "xml"], ["x"]):
        with pytest.raises(UsageError):
            watch.parse(words)
