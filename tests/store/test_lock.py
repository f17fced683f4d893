"""The workspace lock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from safety.store.lock import WorkspaceBusy, hold


def test_second_process_waits_with_a_bound(tmp_path: Path) -> None:
    """Another process gets a sentence that names the holder, not a hang."""
    lock = tmp_path / "lock"
    script = (
        f"from safety.store.lock import hold\nfrom pathlib import Path\nwith hold(Path({str(lock)!r}), 0.05): print('got it')"
    )
    project = Path(__file__).resolve().parents[2]
    with hold(lock, 1):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=project)
    assert "WorkspaceBusy" in done.stderr and "process" in done.stderr

    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=project).stdout == "got it\n"


def test_reentrant_in_a_thread(tmp_path: Path) -> None:
    """The holder may take it again; it is free after the outer block."""
    lock = tmp_path / "lock"
    with hold(lock, 1), hold(lock, 0):
        pass
    with hold(lock, 0):
        pass


def test_death_of_the_holder_frees_it(tmp_path: Path) -> None:
    """A killed holder leaves nothing that anyone has to remove."""
    lock = tmp_path / "lock"
    script = (
        "import os, signal\nfrom safety.store.lock import hold\nfrom pathlib import Path\n"
        f"with hold(Path({str(lock)!r}), 1): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).resolve().parents[2])

    with hold(lock, 0):
        pass


def test_failure_is_one_of_ours(tmp_path: Path) -> None:
    """Busy is an expected failure with a code."""
    assert WorkspaceBusy("x").code == "workspace-busy"
    with pytest.raises(OSError), hold(tmp_path / "no" / "lock", 0):
        pass
