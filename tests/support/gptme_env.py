"""The environment with gptme in it: ``python -m tests.support.gptme_env`` makes it once, beside the checkout's own.

gptme needs packages that nothing here does, so it is not among the development dependencies. SAFETY_GPTME_VENV names an environment
that is there already; it must have this checkout installed with the extra ``gptme``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
HOW = "python -m tests.support.gptme_env makes it; SAFETY_GPTME_VENV names one; SAFETY_TESTS_NO_GPTME=1 leaves these tests out"


def folder() -> Path:
    return Path(os.environ.get("SAFETY_GPTME_VENV") or PROJECT / ".venv-gptme")


def is_left_out() -> bool:
    return os.environ.get("SAFETY_TESTS_NO_GPTME") == "1"


def build() -> int:
    """Makes the environment if it is not there; gives the exit code of what failed."""
    if (folder() / "bin" / "gptme").exists() or is_left_out():
        return 0
    for words in (
        [sys.executable, "-m", "venv", str(folder())],
        [str(folder() / "bin" / "python"), "-m", "pip", "install", "-q", "-e", f"{PROJECT}[gptme]"],
    ):
        if code := subprocess.run(words).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(build())
