"""Measures what a hook costs: a process for each event beside a bare interpreter, and in a warm process what the moments add to the
captures alone.

    python tests/benchmarks/start.py [--rounds N] [--files N] [--keep]

Medians of interleaved rounds, with compiled modules at hand as an installed package has them. Exit code 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from tests.benchmarks import workspaces  # noqa: E402
from tests.benchmarks.workspaces import change, name  # noqa: E402

NET_MS = 25.0  # import safety.net over a bare interpreter
DECLARED_MS = 3.0  # one moment of a declared path, warm, all handlers included
ADDED_MS = 1.0  # of that what the moments add to the captures
AUDIT_MS = 0.1  # one line of the audit log
STARTS: Mapping[str, str] = {
    "import safety.net": "import safety.net",
    "from safety.net import register_hook, HookType": "from safety.net import register_hook, HookType",
    "from safety.net import open_session": "from safety.net import open_session",
    "from safety.net import open_session, ToolSpec, Call": "from safety.net import open_session, ToolSpec, Call",
}


@dataclass(frozen=True)
class Row:
    """One figure in milliseconds; ``bare`` is what it is held beside, ``limit`` the bar of the difference (of the value, without it)."""

    name: str
    value: float
    bare: float | None = None
    limit: float | None = None

    @property
    def passed(self) -> bool:
        return self.limit is None or self.value - (self.bare or 0.0) <= self.limit

    def __str__(self) -> str:
        beside = (
            ""
            if self.bare is None
            else f"  beside {self.bare:8.2f}  x{self.value / self.bare:5.2f}  adds {self.value - self.bare:7.2f}"
        )
        bar = "" if self.limit is None else f"  at most {self.limit:g} {'ok' if self.passed else 'MISSED'}"
        return f"{self.name:<52}{self.value:8.2f} ms{beside}{bar}"


def processes(folder: Path, rounds: int) -> Iterator[Row]:
    """Whole processes, in milliseconds of processor time, which a busy machine changes little."""
    root = workspaces.packed(folder / "small/work", 100)
    env = {**workspaces.environment(root.parent), "PYTHONPATH": str(PROJECT), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    # Each event comes as a harness sends it, in a turn that stays open; calls are new ones each time.
    events = [
        *({"event": "turn.pre", "prompt": "x"},),
        *(
            {"event": f"tool.execute.{when}", "tool": tool, "input": given}
            for tool, given in TOOLS.items()
            for when in ("pre", "post")
        ),
        *({"event": "turn.post"},),
    ]
    found: dict[str, list[float]] = {}
    for number in range(rounds + 1):  # the first one compiles
        taken = {"bare": spent(env, ["-c", "pass"], b"", root)}
        taken |= {label: spent(env, ["-c", code], b"", root) for label, code in STARTS.items()}
        for event in events:
            given = {**event, "session_id": "bench", "cwd": str(root), "call_id": f"c{number}-{event.get('tool')}"}
            label = f"event {event['event']} {event.get('tool', '')}".rstrip()
            if event["event"] == "tool.execute.post" and event["tool"] != "read":
                change(root, range(1), number + 1)
            taken[label] = spent(env, ["-m", "safety.terminal", "hook", "--agent", "generic"], json.dumps(given).encode(), root)
        for label, value in taken.items():
            found.setdefault(label, []).extend([value] if number else [])
    bare = statistics.median(found.pop("bare"))
    for label, values in found.items():
        yield Row(label, statistics.median(values), bare, NET_MS if label == "import safety.net" else None)


TOOLS: Mapping[str, Mapping[str, str]] = {"read": {"path": name(0)}, "write": {"path": name(0)}, "shell": {"command": "./x"}}


def spent(env: Mapping[str, str], words: list[str], given: bytes, cwd: Path) -> float:
    """The processor time of an interpreter and all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *words], input=given, env=env, cwd=cwd, capture_output=True)
    assert done.returncode == 0 and b"not protected" not in done.stdout, done
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def moments(folder: Path, files: int, rounds: int) -> Iterator[Row]:
    """A declared path in a warm process: the moments with every bundle, beside the captures alone, in turns."""
    from safety.runtime.open import open_session
    from safety.session import Call, Session
    from safety.tools import audit_log

    root = workspaces.copy(workspaces.packed(folder / "warm/template", files), folder / "warm/work")
    env = workspaces.environment(root.parent)
    session = open_session(os.fsencode(root), "bench", env)
    session.turn_start("bench")
    found: dict[str, list[float]] = {label: [] for label in ("pre", "post", "before", "after", "audit")}
    audited = audit_log._write

    def write(session: Session, *args: object, **fields: object) -> None:
        found["audit"].append(timed(lambda: audited(session, *args, **fields)))  # type: ignore[arg-type]

    audit_log._write = write
    for number in range(2 * rounds + 10):
        target = root / name(number % 7)
        call = Call(f"c{number}", "write", {"path": str(target)}, os.fsencode(root), paths=(os.fsencode(target),))
        whole = number % 2
        first = timed(lambda c=call, w=whole: session.pre(c) if w else session.capture_before(c))
        target.write_bytes(workspaces.content(number % 7, number + 1))
        last = timed(lambda c=call, w=whole: session.post(c, "fine", None) if w else session.capture_after(c))
        assert not session.take_notices()
        found["pre" if whole else "before"].append(first)
        found["post" if whole else "after"].append(last)
    audit_log._write = audited
    middle = {label: statistics.median(values[5:]) for label, values in found.items()}
    yield Row("before a call that declares a path", middle["pre"], limit=DECLARED_MS)
    yield Row("after a call that declares a path", middle["post"], limit=DECLARED_MS)
    yield Row("before it: moments beside the capture alone", middle["pre"], middle["before"], ADDED_MS)
    yield Row("after it: moments beside the capture alone", middle["post"], middle["after"], ADDED_MS)
    yield Row("one line of the audit log", middle["audit"], limit=AUDIT_MS)


def timed(step: Callable[[], object]) -> float:
    began = time.perf_counter()
    step()
    return (time.perf_counter() - began) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--keep", action="store_true", help="leave the folders of this run")
    parser.add_argument("--only", choices=("processes", "moments"))
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="git-safety-start-"))
    missed = 0
    try:
        for part in [asked.only] if asked.only else ["processes", "moments"]:
            rows = processes(folder, asked.rounds) if part == "processes" else moments(folder, asked.files, asked.rounds * 10)
            for row in rows:
                missed += not row.passed
                sys.stdout.write(f"{row}\n")
    finally:
        if not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
