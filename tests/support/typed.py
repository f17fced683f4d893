"""Samples for the type checker: what is right passes, and each line that ends with ``# wrong`` is found fault with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def assert_only_the_wrong_is_found(sample: str, folder: Path) -> None:
    """mypy, strict, finds fault with the lines of the sample that are marked, and with no other."""
    file = folder / "sample.py"
    file.write_text(sample)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", "--cache-dir", folder, file],
        cwd=PROJECT,
        env={"PYTHONPATH": str(PROJECT), "PATH": ""},
        capture_output=True,
        text=True,
    )
    faults = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    wrong = {number for number, line in enumerate(sample.splitlines(), 1) if line.endswith("# wrong")}
    assert faults == wrong, done.stdout + done.stderr
