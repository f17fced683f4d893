"""Measures what the gate adds to the bare runner: the same checks on the same file, alternating, in one run.

    python tests/benchmarks/gate.py [--rounds N] [--only RUNNER]

Two repositories: 1,000 files with 5 checks, where the gate may add 10 % or 15 ms, whichever is more, and 20,000 files, where it may add
50 ms. Prints medians and the ratio; exit code 1 if a bar is missed. The bar is held to what the gate does beside running the checks, for
the difference of two whole runs is mostly the noise of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from safety.gate import process, run  # noqa: E402
from safety.gate.backends import Backend, choose  # noqa: E402
from safety.gate.results import Checked, GateSettings  # noqa: E402
from safety.plumbing.repo import open_repository  # noqa: E402
from safety.plumbing.run import Git  # noqa: E402
from tests.benchmarks import workspaces  # noqa: E402

RUNNERS = ("prek", "pre-commit")
CHECKS = (
    ("compile", f"{sys.executable} -m py_compile", False),
    ("conflict", 'sh -c \'! grep -l "^<<<<<<<" "$@"\' --', True),
    ("debug", "sh -c '! grep -l breakpoint \"$@\"' --", True),
    ("one", "true", True),
    ("two", "true", True),
)


def made(folder: Path, files: int) -> Path:
    root = workspaces.packed(folder / str(files) / "work", files)
    hooks = [
        {
            "id": name,
            "name": name,
            "entry": entry,
            "language": "system",
            "pass_filenames": True,
            "files": "" if every else r"\.py$",
        }
        for name, entry, every in CHECKS
    ]
    (root / ".pre-commit-config.yaml").write_text(json.dumps({"repos": [{"repo": "local", "hooks": hooks}]}))
    (root / "new.py").write_text("x = 1\n")
    workspaces.git(root, "add", ".pre-commit-config.yaml")
    workspaces.git(root, "commit", "-qm", "checks")
    for path in [root / ".pre-commit-config.yaml", *root.glob("d*/s*/*")]:
        os.utime(path, (1e9, 1e9))
    workspaces.git(root, "update-index", "-q", "--refresh")
    return root


class Inside:
    """How long the gate has waited for its runner."""

    def __init__(self) -> None:
        self.seconds, self._started = 0.0, run.run_check
        run.run_check = self  # type: ignore[assignment]

    def __call__(self, *args: Any) -> process.Ended:
        began = time.perf_counter()
        try:
            return self._started(*args)
        finally:
            self.seconds += time.perf_counter() - began


def measured(root: Path, runner: str, rounds: int, inside: Inside) -> tuple[float, float, float]:
    """Medians in milliseconds: the runner alone, the gate with it, the gate's own part."""
    env = workspaces.environment(root.parent)
    git, settings = Git(env), GateSettings(backend=runner)
    repository = open_repository(os.fsencode(root))
    assert repository is not None
    backend = choose(git, repository, env, settings)
    assert isinstance(backend, Backend), backend
    checked = Checked(os.fsencode(root), (b"new.py",), (), {}, {}.get)
    bare_ms, gate_ms, own_ms = [], [], []
    for number in range(rounds + 1):  # the first one warms up
        began = time.perf_counter()
        subprocess.run(
            backend.starts(checked.files)[0], cwd=root, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        between = time.perf_counter()
        inside.seconds = 0.0
        result = run.run_gate(git, env, checked, settings, root.parent / "logs")
        ended = time.perf_counter()
        assert result.status == "passed", result
        if number:
            bare_ms.append((between - began) * 1000)
            gate_ms.append((ended - between) * 1000)
            own_ms.append((ended - between - inside.seconds) * 1000)
    return statistics.median(bare_ms), statistics.median(gate_ms), statistics.median(own_ms)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=RUNNERS)
    options = parser.parse_args()
    missed, inside = 0, Inside()
    with tempfile.TemporaryDirectory(prefix="gate-") as folder:
        for files in (1_000, 20_000):
            root = made(Path(folder), files)
            for runner in [options.only] if options.only else RUNNERS:
                bare, gate, own = measured(root, runner, options.rounds, inside)
                limit = max(bare * 0.1, 15) if files == 1_000 else 50
                passed = own <= limit
                missed += not passed
                row = f"{files:>6} files  {runner:<10}  bare {bare:6.1f} ms  gate {gate:6.1f} ms  x{gate / bare:4.2f}"
                print(f"{row}  own part {own:5.1f} of {limit:4.1f} ms  {'ok' if passed else 'MISSED'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
