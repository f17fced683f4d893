"""``python -m tests``: lint, types, and all tests (the floors and the examples of the documentation among them), as CI runs them.

First it makes the environment with gptme in it, once (``tests/support/gptme_env.py``); where that fails, the tests that need it fail.

Words after it go to pytest: ``python -m tests --long``, ``python -m tests tests/terminal``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STEPS = (["tests.support.gptme_env"], ["ruff", "check", "--quiet", "."], ["mypy"], ["pytest", "-q"])


def main() -> int:
    """0 when every step passed; all run, and pytest comes last so that its summary ends the output."""
    failed = []
    for step in STEPS:
        words = [*step, *sys.argv[1:]] if step[0] == "pytest" else step
        print(f"== {' '.join(words)}", flush=True)
        if subprocess.run([sys.executable, "-m", *words], cwd=Path(__file__).resolve().parents[1]).returncode:
            failed.append(step[0])
    if failed:
        print(f"== failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


sys.exit(main())
