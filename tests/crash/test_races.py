"""The user saves while undo is at work, and many agents work at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.support import inject, process
from tests.support.inject import Command
from tests.support.repo import RepoBuilder


def save_in_place(repo: RepoBuilder) -> None:
    repo.write("b.txt", "the user's save\n")


def save_by_rename(repo: RepoBuilder) -> None:
    repo.write(".b.txt.swp", "the user's save\n").rename(repo.path("b.txt"))


@pytest.mark.skipif(not inject.available(), reason="strace is not here or may not trace")
@pytest.mark.parametrize("save", [save_in_place, save_by_rename])
@pytest.mark.parametrize(
    "act", ["echo agent >b.txt", "rm b.txt; echo agent >b.txt; chmod 700 b.txt", "mv b.txt c.txt; echo agent >b.txt"]
)
def test_save_between_check_and_exchange(repo: RepoBuilder, act: str, save: Callable[[RepoBuilder], None]) -> None:
    """A save right before the exchange is still there afterwards. Rule: exchange, verify what came out, else swap back."""
    repo.agent_runs(act)
    command = Command(("undo", "--json"), repo.root, repo.env)
    names = set(os.listdir(repo.root))
    with inject.held_up(command, "renameat2", 1, 700) as undo:
        until = time.monotonic() + 5
        while time.monotonic() < until and set(os.listdir(repo.root)) <= names:
            time.sleep(0.005)
        time.sleep(0.1)
        save(repo)
        repo.ledger.note(b"the user's save\n", "the user's save")
        done = undo.wait()

    assert done.code in (0, 3), done.text
    assert repo.read("b.txt") == "the user's save\n", done.text


@pytest.mark.parametrize("agents", [2, 8, 16])
def test_many_agents_at_once(repo: RepoBuilder, agents: int) -> None:
    """Calls of many sessions at once all succeed, and each turn can be undone alone. Rule: one lock, waited for with a bound."""
    before = repo.picture()
    running = []
    for number in range(agents):
        script = (
            "import json, os, subprocess, sys\n"
            f"call = {{'call_id': 'c{number}', 'tool': 'write', 'input': {{'path': os.path.join(os.getcwd(), 'f{number}')}}}}\n"
            "def hook(event, **more):\n"
            f"    fields = {{'session_id': 's{number}', 'cwd': os.getcwd(), 'prompt': 'p', **call}}\n"
            "    payload = json.dumps({'event': event, **fields}).encode()\n"
            "    done = subprocess.run([sys.executable, '-m', 'safety.terminal', 'hook', '--agent', 'generic'], input=payload,\n"
            "        capture_output=True)\n"
            "    if done.returncode or b'notices' in done.stdout and json.loads(done.stdout).get('notices'):\n"
            "        sys.exit(f'{event}: {done.returncode} {done.stdout} {done.stderr}')\n"
            "hook('turn.pre'); hook('tool.execute.pre')\n"
            f"open('f{number}', 'w').write('agent')\n"
            "hook('tool.execute.post'); hook('turn.post')\n"
        )
        running.append(start(repo, script))
    for child in running:
        _, errors = child.communicate(timeout=120)
        assert child.returncode == 0, errors.decode()

    for _ in range(agents):
        repo.undo("--yes")

    repo.assert_is(before)


def start(repo: RepoBuilder, script: str) -> subprocess.Popen[bytes]:
    env = {**repo.env, "PYTHONPATH": str(process.PROJECT)}
    return subprocess.Popen([sys.executable, "-c", script], cwd=repo.root, env=env, stderr=subprocess.PIPE)


def test_undo_while_an_agent_writes_elsewhere(repo: RepoBuilder) -> None:
    """Undo of one agent's turn while another's call is open leaves the other's half-done work.

    Rule: open calls own what they did.
    """
    repo.agent_runs("echo one >a.txt", session="one")
    with repo.turn(session="two"), repo.call(session="two"):
        repo.write("b.txt", "two, half done\n")
        repo.must("undo", "--json", "--turn", "t1", "--yes")
        repo.write("b.txt", "two\n")

    assert repo.read("b.txt") == "two\n"
    repo.undo("--yes")
    assert repo.read("b.txt") == "b\n"
