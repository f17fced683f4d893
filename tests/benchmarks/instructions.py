"""Measures what a warm lookup of instruction files costs: each turn and each change of folder pays it.

    python tests/benchmarks/instructions.py [--rounds N]

Ten folders deep, a file in each, all of it sent before, 200 entries beside each file. Exit code 1 if the bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from safety.instructions.inject import InstructionSettings, instructions_for  # noqa: E402
from safety.instructions.loaded import Loaded  # noqa: E402

DEPTH, ENTRIES, LIMIT_MS = 10, 200, 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.realpath(os.fsencode(folder))
        here = root
        for depth in range(DEPTH):
            here = os.path.join(here, b"d%d" % depth)
            os.mkdir(here)
            for number in range(ENTRIES):
                open(here + b"/f%d" % number, "w").close()
            with open(here + b"/AGENTS.md", "w") as file:
                file.write(f"rule {depth}\n" * 50)
        settings = InstructionSettings()
        first, cold_ms = timed(here, root, Loaded(), settings)
        state = json.dumps(first.to_json())
        warm_ms = statistics.median(timed(here, root, Loaded.from_json(json.loads(state)), settings)[1] for _ in range(rounds))
    passed = warm_ms <= LIMIT_MS
    sys.stdout.write(f"cold {cold_ms:.2f} ms, warm {warm_ms:.2f} ms (at most {LIMIT_MS:g}): {'ok' if passed else 'MISSED'}\n")
    return 0 if passed else 1


def timed(cwd: bytes, root: bytes, loaded: Loaded, settings: InstructionSettings) -> tuple[Loaded, float]:
    began = time.perf_counter()
    done = instructions_for(cwd, "changed", loaded, settings, root=root, trusted=True, boundary=lambda: "0a1b2c3d")
    return done.loaded, (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    sys.exit(main())
