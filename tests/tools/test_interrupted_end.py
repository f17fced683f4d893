"""A turn's end that is cut short: in the middle of a check, of a hook of git's, or of a command of the user's settings.

Files, index and HEAD are as they were, nothing of it goes on running, and the next end works.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.process import PROJECT
from tests.support.repo import RepoBuilder
from tests.tools.turn_ends import checks, edit, ends, files_of, settings, starts

PATIENCE_S = 30
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]

# Says that it runs and waits for a file that allows it to end, unless that is there already.
WAITS = """#!/bin/sh
test -e {folder}/done && exit 0
echo $$ >>{folder}/pids
sleep 300 &
echo $! >>{folder}/pids
wait
"""


def until(what: Callable[[], bool]) -> None:
    """Waits until it is so; a test that waits for ever fails."""
    ends_at = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.02)


def pids(folder: Path) -> list[int]:
    try:
        return [int(word) for word in (folder / "pids").read_text().split()]
    except (FileNotFoundError, ValueError):
        return []


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def end_all(started: list[int]) -> None:
    for pid in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def event(repo: RepoBuilder, name: str) -> subprocess.Popen[bytes]:
    """One event that is being answered, in a process and a group of its own."""
    given = {"event": name, "session_id": repo.session, "cwd": str(repo.root)}
    process = subprocess.Popen(
        [sys.executable, "-m", "safety.terminal", "hook", "--agent", "generic"],
        cwd=repo.root,
        env={**repo.env, "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(given).encode())
    process.stdin.close()
    process.stdin = None
    return process


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


def waiting_check(repo: RepoBuilder, folder: Path) -> None:
    settings(repo, gate={"backend": "prek"})
    checks(repo, WAITS.format(folder=folder), "types: [text], pass_filenames: false")


def waiting_hook(repo: RepoBuilder, folder: Path) -> None:
    settings(repo)
    repo.write(".git/hooks/prepare-commit-msg", WAITS.format(folder=folder), 0o755)


def waiting_command(repo: RepoBuilder, folder: Path) -> None:
    repo.write("../outside/wait.sh", WAITS.format(folder=folder), 0o755)
    settings(repo, hooks={"Stop": [{"command": [str(folder / "wait.sh")], "timeout_ms": 200_000}]})


@pytest.mark.parametrize("number", SIGNALS, ids=[one.name for one in SIGNALS])
@pytest.mark.parametrize(
    ("where", "group"),
    [(waiting_check, False), (waiting_check, True), (waiting_hook, False), (waiting_command, False)],
    ids=["check", "check, whole group", "hook", "command"],
)
def test_signal_in_the_middle(
    repo: RepoBuilder, outside: Path, where: Callable[[RepoBuilder, Path], None], group: bool, number: signal.Signals
) -> None:
    """Whatever the signal hits, the next turn's end commits what this one did not."""
    where(repo, outside)
    with repo.user():
        repo.write("mine", "user\n")
        repo.write("b.txt", "user\n")
        repo.git("add", "mine")
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    base, index, head = repo.picture(), repo.git("ls-files", "-s"), repo.head()
    process = event(repo, "turn.post")
    try:
        until(lambda: len(pids(outside)) == 2)
        (os.killpg if group else os.kill)(process.pid, number)
        out, err = process.communicate(timeout=PATIENCE_S)
    except BaseException:
        process.kill()
        end_all(pids(outside))
        raise
    started = pids(outside)
    assert "Traceback" not in err.decode() and repo.head() == head and repo.git("ls-files", "-s") == index
    assert process.returncode != 0 or json.loads(out)["decision"] == "stop"
    if number != signal.SIGKILL:
        repo.assert_is(base)
        until(lambda: not any(map(runs, started)))
    elif where is not waiting_check:  # the marks of a check are looked for at the next end, nothing else has any
        end_all(started)

    (outside / "done").touch()
    starts(repo)
    edit(repo, "c.txt", "agent\n")
    ends(repo)
    until(lambda: not any(map(runs, started)))
    assert files_of(repo) == ["a.txt", "c.txt"] and sorted(repo.status().split("\n")) == [" M b.txt", "A  mine"]
    assert not [name for name in os.listdir(repo.path(".git")) if "lock" in name or "safety" in name]
