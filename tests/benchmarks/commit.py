"""Measures a commit of three files beside git's own, in one run.

    python tests/benchmarks/commit.py [--rounds 15] [--files 1000]

Both act in turns in one repository without hooks, ours in a warm process. Prints the medians; exit code 1 if ours is over its bar.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from safety.commit.make import make_commit  # noqa: E402
from safety.commit.plan import plan_commit  # noqa: E402
from safety.commit.values import CommitSettings, Side, Step  # noqa: E402
from safety.plumbing.run import Git  # noqa: E402
from tests.support.environment import isolated  # noqa: E402

BAR_MS = 60
FOLDERS = 40
CHANGED = 3


def main() -> int:
    parser = argparse.ArgumentParser(description="a commit of three files, beside git's own")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--files", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = isolated(Path(folder))
        root = make_repository(Path(folder, "work"), env, options.files)
        git = Git(env)
        ours: list[float] = []
        theirs: list[float] = []
        one_round(git, root, env, 0)  # warm
        for number in range(1, options.rounds + 1):
            mine, bare = one_round(git, root, env, number)
            ours.append(mine)
            theirs.append(bare)
    mine, bare = statistics.median(ours), statistics.median(theirs)
    print(f"{options.files} files, {CHANGED} changed: ours {mine:.1f} ms, git commit {bare:.1f} ms, ratio {mine / bare:.2f}")
    return 0 if mine <= BAR_MS or options.files > 1000 else 1


def make_repository(root: Path, env: dict[str, str], files: int) -> Path:
    for number in range(files):
        path = root / f"d{number % FOLDERS}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line {number}\n" * 20)
    for args in (["init", "-q", "."], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *args], cwd=root, env=env, check=True)
    return root


def one_round(git: Git, root: Path, env: dict[str, str], number: int) -> tuple[float, float]:
    """Milliseconds of our commit of three files and of git's of three others."""
    steps = []
    for name in names(0):
        old = (root / name).read_bytes()
        (root / name).write_bytes(old + b"round %d\n" % number)
        new = (root / name).read_bytes()
        steps.append(Step(os.fsencode(name), Side(0o100644, old), Side(0o100644, new)))
    start = time.perf_counter()
    plan = plan_commit(git, os.fsencode(root), steps, CommitSettings())
    result = make_commit(git, plan, "ours\n", {"name": "agent", "model": "m"})
    mine = time.perf_counter() - start
    assert result.status == "committed", result
    others = names(CHANGED)
    for name in others:
        with open(root / name, "a") as file:
            file.write(f"round {number}\n")
    start = time.perf_counter()
    subprocess.run(["git", "commit", "-q", "-m", "theirs", "--", *others], cwd=root, env=env, check=True)
    return mine * 1000, (time.perf_counter() - start) * 1000


def names(first: int) -> list[str]:
    return [f"d{number % FOLDERS}/f{number}.txt" for number in range(first, first + CHANGED)]


if __name__ == "__main__":
    raise SystemExit(main())
