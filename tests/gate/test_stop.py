"""Checks that do not end, and runs that are ended from outside: the user's work stays and nothing is left behind ([gate] A3, A5)."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gate.conftest import PYTHON, GateKit
from tests.support import process, state

# In its own session, in the background, and the check itself; the last one takes no notice of SIGINT and SIGTERM.
TREE = """{} setsid sleep 600 & a=$!
sleep 600 > /dev/null 2>&1 & b=$!
(trap '' INT TERM; sleep 600) & c=$!
echo "$a $b $c $$" > ../started
wait"""

PROGRAM = """
import os, sys
from pathlib import Path
from safety.gate.results import Checked, GateSettings
from safety.gate.run import run_gate
from safety.plumbing.run import Git
root, logs, backend = sys.argv[1:]
checked = Checked(os.fsencode(root), (b"a.txt",), (), {}, {}.get)
print(run_gate(Git(dict(os.environ)), dict(os.environ), checked, GateSettings(backend=backend), Path(logs)).status)
"""


class Away:
    """A gate run in another process, on checks that have started, with work of the user's about."""

    def __init__(self, kit: GateKit) -> None:
        repo = kit.repo
        kit.checks(tree=TREE)
        repo.write("b.txt", "staged\n")
        repo.git("add", "b.txt")
        repo.write("b.txt", "edited since\n")
        repo.write("a.txt", "agent\n")
        self.kit, self.before, self.work = kit, kit.picture(), repo.picture()
        started = repo.root.parent / "started"
        os.mkfifo(started)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(repo.root), str(kit.log_dir), kit.backend],
            env={**kit.env, "PYTHONPATH": str(process.PROJECT)},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.children = [Child(int(pid)) for pid in started.read_text().split()]

    def end(self, number: int) -> str:
        """Sends the signal to the group, waits, and gives what the process printed."""
        os.killpg(self.process.pid, number)
        out, _ = self.process.communicate(timeout=60)
        return out.strip()

    def assert_untouched(self) -> None:
        assert self.kit.picture() == self.before
        state.assert_same(self.work, self.kit.repo.picture())
        assert not self.kit.stashed()

    def close(self) -> None:
        for child in self.children:
            child.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Child:
    """A process of a check's; a handle to it, so that its number cannot be another's by now."""

    def __init__(self, pid: int) -> None:
        self.handle = os.pidfd_open(pid)

    def ended(self, within_s: float = 5) -> bool:
        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        return bool(poll.poll(within_s * 1000))

    def close(self) -> None:
        try:
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.close(self.handle)


def runs(pid: str) -> bool:
    """Whether a process is there and not only waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def away(runner: GateKit) -> Iterator[Away]:
    started = Away(runner)
    yield started
    started.close()


def test_sigint(away: Away) -> None:
    """^C ends the checks; the result says so."""
    assert away.end(signal.SIGINT) == "cancelled"
    assert away.process.returncode == 0
    assert all(child.ended() for child in away.children)
    away.assert_untouched()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm(away: Away, number: int) -> None:
    """SIGTERM and SIGHUP end the checks, then this process."""
    assert away.end(number) == ""
    assert away.process.returncode == -number
    assert all(child.ended() for child in away.children)
    away.assert_untouched()


def test_sigkill(away: Away) -> None:
    """After SIGKILL index, HEAD and files are as before; the next run ends what was left and removes its index."""
    away.end(signal.SIGKILL)
    state.assert_same(away.work, away.kit.repo.picture())
    git = away.kit.repo.root / ".git"
    assert (git / "safety-gate.index").exists()
    (git / "safety-gate.index").unlink()
    away.assert_untouched()

    (git / "safety-gate.index").write_bytes(b"torn")
    (git / "safety-gate.index.lock").write_bytes(b"")
    away.kit.repo.write("tools/tree.sh", "exit 0\n")
    assert away.kit.run("a.txt").status == "passed"
    assert all(child.ended() for child in away.children)
    assert away.kit.picture() == away.before


def test_timeout_ends_the_whole_tree(runner: GateKit) -> None:
    """At the deadline nothing that a check has started survives, in whatever session it is, and nothing has changed."""
    runner.checks(tree=TREE.replace("../started", ".git/pids"))
    runner.repo.write("a.txt", "agent\n")
    before = runner.picture()
    assert runner.run("a.txt", timeout_s=1.5).status == "timeout"
    pids = runner.repo.read(".git/pids").split()
    assert not [pid for pid in pids if runs(pid)]
    runner.repo.remove(".git/pids")
    assert runner.picture() == before


def test_what_a_check_leaves_running_is_ended(runner: GateKit) -> None:
    """A check that passes and leaves a process behind: the run ends at once, and so does the process."""
    runner.checks(leaves="{} sleep 600 > /dev/null 2>&1 & echo $! > .git/pid")
    assert runner.run("a.txt").status == "passed"
    assert not runs(runner.repo.read(".git/pid").strip())


def test_a_job_with_a_group_of_its_own_is_ended(runner: GateKit) -> None:
    """So is one that has left the process group, as the jobs of some runners do."""
    job = "import os; os.setpgid(0, 0); print(file=open('.git/go', 'w')); os.execvp('sleep', ['sleep', '600'])"
    runner.checks(leaves=f'{{}} {PYTHON} -c "{job}" > /dev/null 2>&1 & echo $! > .git/pid; read x < .git/go')
    os.mkfifo(runner.repo.path(".git/go"))
    assert runner.run("a.txt").status == "passed"
    assert not runs(runner.repo.read(".git/pid").strip())


def test_one_run_at_a_time(runner: GateKit) -> None:
    """While another run holds the repository, this one waits until its own deadline and says so; afterwards it runs."""
    import fcntl

    runner.checks(fine="{} exit 0")
    folder = os.open(runner.repo.root / ".git", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    result = runner.run("a.txt", timeout_s=0.1)
    assert (result.status, result.blocks_commit) == ("timeout", True) and "another run" in result.text
    os.close(folder)
    assert runner.run("a.txt").status == "passed"


def test_a_noisy_check_is_capped(runner: GateKit) -> None:
    """20 MB of output make neither a large log nor a large result, and both ends are kept."""
    runner.checks(noise="{} echo first; yes 0123456789abcdef | head -c 20000000; echo last; exit 1")
    result = runner.run("a.txt", before={"a.txt": "a\n"})
    assert result.status == "failed" and result.blocks_commit
    assert sum(len(line.text) for failure in result.failures for line in failure.lines) < 2_000_000
    assert result.log is not None and result.log.stat().st_size < 10_000_000
    assert "first" in result.log.read_text() and "last" in result.log.read_text()[-1000:]
