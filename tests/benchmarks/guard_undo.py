"""Runs the recoverable lines of a guard corpus for real, each in its own built context, and undoes them: what is told recoverable must be.

    python tests/benchmarks/guard_undo.py FILE.jsonl

Takes the lines that are destructive, recoverable, and of git or of files inside the workspace. Work tree, index, refs, stash, HEAD and
ignored files are compared byte for byte, by the state that the tests compare. Exit code 1 if one did not come back.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from tests.benchmarks.guard_corpus import Builder  # noqa: E402
from tests.support.state import state_of  # noqa: E402

KINDS = ("git-worktree", "git-history", "git-stash", "git-submodule", "fs-inside", "fs-ignored", "wrapped", "interpreter")


def main() -> int:
    lines = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    wanted = [line for line in lines if line["destructive"] and line["recoverable"] and line["kind"] in KINDS]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="guard-undo-") as folder:
        for number, line in enumerate(wanted):
            context = Builder(Path(folder) / str(number)).context(line["context"])
            env = {**context.env, "PYTHONPATH": str(PROJECT), "GIT_SAFETY_HOME": f"{context.base}/state"}
            root = Path(context.cwd)
            before = state_of(root)
            ours = [sys.executable, "-m", "safety.terminal"]
            command = context.line(line["cmd"])
            ran = subprocess.run([*ours, "run", "--", "bash", "-c", command], cwd=root, env=env, capture_output=True, text=True)
            if ran.returncode == 0 and "not protected" in ran.stderr:
                print(f"NOT PROTECTED {line['id']} {command!r}: {ran.stderr.strip()}")
            changed = bool(before.differences(state_of(root))) if root.is_dir() else True
            where = root if root.is_dir() else root.parent
            undone = subprocess.run([*ours, "undo", "--yes"], cwd=where, env=env, capture_output=True, text=True)
            differences = before.differences(state_of(root)) if root.is_dir() else ["the workspace is gone"]
            if differences:
                failed += 1
                print(f"MISS {line['id']} {line['context']} {command!r}: {differences[:3]}\n{undone.stdout}{undone.stderr}")
            elif not changed:
                print(f"did nothing here: {line['context']} {command!r}")
    print(f"{len(wanted) - failed} of {len(wanted)} came back")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
