"""Measures the product beside git and beside other tools, in one run, and holds each bar to its number.

    python tests/benchmarks/run.py [--sizes 1k,10k,100k] [--only NAME] [--rounds N] [--operations N] [--cache DIR] [--keep] [--write]

Times are medians of interleaved rounds, so that a busy machine slows both sides of a ratio. ``--cache`` keeps the made workspaces
for the next run; ``--keep`` leaves what the run made (removing it slows a run soon after); ``--write`` puts the table into
docs/benchmarks.md. Exit code 1 if a bar is missed.
"""

# ruff: noqa: B023 - each closure over a loop's name is called before the loop goes on

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from tests.benchmarks import peers, workspaces  # noqa: E402
from tests.benchmarks.workspaces import change, copy, disk_bytes, git, name  # noqa: E402

SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000}
CALLS_A_TURN = 10
STATUS = ("git", "status", "--porcelain=v2", "-uall", "--ignored")


@dataclass(frozen=True)
class Row:
    """One measured figure. ``limit`` is the bar it is held to, in the same unit; None: for information."""

    name: str
    case: str
    value: float
    unit: str = "ms"
    limit: float | None = None
    note: str = ""

    @property
    def passed(self) -> bool:
        return self.limit is None or self.value <= self.limit


@dataclass(frozen=True)
class Bench:
    """Where things are made and how often they are measured."""

    folder: Path
    cache: Path
    sizes: Mapping[str, int]
    rounds: int
    operations: int

    def template(self, label: str, make: Callable[[Path], Path]) -> Path:
        root = self.cache / label / "work"
        if not (root.parent / "made").exists():
            shutil.rmtree(root.parent, ignore_errors=True)
            make(root)
            (root.parent / "made").touch()
        return root

    def fresh(self, label: str, make: Callable[[Path], Path]) -> Workspace:
        """A copy of a template with an empty state folder.

        Nothing is removed before the end: for minutes ext4 passes over inodes just freed, one by one, whenever a file is made near
        them, which multiplies the time of every step that makes files.
        """
        here = Path(tempfile.mkdtemp(prefix=label + "-", dir=self.folder))
        return Workspace(copy(self.template(label, make), here / "work"), workspaces.environment(here))

    def sized(self, label: str) -> Workspace:
        return self.fresh(label, lambda root: workspaces.packed(root, self.sizes[label]))


class Workspace:
    """A workspace under test and a session in this process, as a daemon would hold it."""

    def __init__(self, root: Path, env: dict[str, str]) -> None:
        self.root = root
        self.env = env
        self.state = Path(env["GIT_SAFETY_HOME"])
        self.count = 0

    def session(self):  # type: ignore[no-untyped-def]
        from safety.runtime.open import open_session

        return open_session(os.fsencode(self.root), "bench", self.env)

    def call(self, session, step: Callable[[], object], path: str | None = None) -> tuple[float, float]:  # type: ignore[no-untyped-def]
        """One tool call around ``step``; gives the milliseconds of its two captures."""
        from safety.session import Call

        self.count += 1
        paths = None if path is None else (os.fsencode(self.root / path),)
        call = Call(f"c{self.count}", "write" if path else "shell", {}, os.fsencode(self.root), paths=paths)
        before = timed(lambda: session.pre(call))
        step()
        after = timed(lambda: session.post(call, "", None))
        notices = session.take_notices()
        assert not notices, notices
        return before, after

    def command(self, *words: str) -> float:
        """A whole process of the command line, in milliseconds."""
        env = {**self.env, "PYTHONPATH": str(PROJECT)}
        return timed(lambda: self._checked([sys.executable, "-m", "safety.terminal", *words], env))

    def _checked(self, argv: list[str], env: dict[str, str]) -> None:
        done = subprocess.run(argv, cwd=self.root, env=env, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def status(self) -> float:
        return timed(lambda: subprocess.run(STATUS, cwd=self.root, env=self.env, stdout=subprocess.DEVNULL, check=True))

    def three_starts(self) -> float:
        return timed(lambda: [subprocess.run(["git", "--version"], stdout=subprocess.DEVNULL, check=True) for _ in range(3)])


def timed(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return (time.perf_counter() - start) * 1000


def median(values: list[float]) -> float:
    return statistics.median(values)


# -- what is measured ---------------------------------------------------------------------------------------------------------


def declared(bench: Bench) -> Iterator[Row]:
    """Capture of a declared path in a warm process."""
    found: dict[str, float] = {}
    for label in bench.sizes:
        at = bench.sized(label)
        session = at.session()
        session.turn_start("bench")
        times = []
        for number in range(bench.rounds * 10 + 5):
            target = number % min(500, bench.sizes[label])
            times.append(at.call(session, lambda n=number, t=target: change(at.root, range(t, t + 1), n + 1), name(target)))
        found[label] = median([after for _, after in times[5:]])
        yield Row("declared path, after the call", label, found[label], limit=3.0)
        yield Row("declared path, before the call", label, median([before for before, _ in times[5:]]), limit=3.0)
    if len(found) > 1:
        yield Row("declared path, largest / smallest", "all", max(found.values()) / min(found.values()), "x", limit=1.5)


def scan(bench: Bench) -> Iterator[Row]:
    """Warm scans beside git status and three bare starts of git."""
    for label, files in bench.sizes.items():
        at = bench.sized(label)
        session = at.session()
        session.turn_start("bench")
        for kind, amount in (("clean", 0), ("one changed", 1), ("1,000 changed", min(1000, files))):
            ours, status, starts = [], [], []
            for number in range(bench.rounds + 1):
                version = 1000 * (amount + 1) + number
                step = (lambda v=version: change(at.root, range(amount), v)) if amount else (lambda: None)
                before, after = at.call(session, step)
                ours += [after] if amount else [before, after]
                status.append(at.status())
                starts.append(at.three_starts())
            reference = median(status[1:]) + median(starts[1:])
            bar = 1.3 * reference if files >= 10_000 and amount <= 1 else None
            parts = f"git status {median(status[1:]):.0f} + three starts {median(starts[1:]):.0f}"
            note = f"{parts}: ratio {median(ours[1:]) / reference:.2f}"
            yield Row(f"scan, {kind}", label, median(ours[1:]), limit=bar, note=note)


def first(bench: Bench) -> Iterator[Row]:
    """First contact with a packed clean repository, in a warm process."""
    for label, files in bench.sizes.items():
        times = []
        for _ in range(max(1, bench.rounds // 3)):
            at = bench.sized(label)
            times.append(timed(lambda w=at: w.session().turn_start("bench")))
        yield Row("first contact", label, median(times), limit=800.0 if files == 100_000 else None)


def undo(bench: Bench) -> Iterator[Row]:
    """Undo of files, the whole process, beside git checkout of the same files."""
    for label, files in bench.sizes.items():
        at = bench.sized(label)
        for amount in (1, min(1000, files)):
            ours, theirs = [], []
            listed = at.root.parent / "listed"
            listed.write_text("\n".join(name(number) for number in range(amount)))
            for number in range(bench.rounds):
                session = at.session()
                session.turn_start("bench")
                at.call(session, lambda n=number: change(at.root, range(amount), 5000 + n))
                session.turn_end()
                ours.append(at.command("undo"))
                change(at.root, range(amount), 7000 + number)
                argv = ["git", "checkout", "-q", f"--pathspec-from-file={listed}"]
                theirs.append(timed(lambda a=argv: subprocess.run(a, cwd=at.root, env=at.env, check=True)))
            reference = median(theirs)
            bar = 1.5 * reference if (amount, files) == (1000, 100_000) else None
            note = f"git checkout --pathspec-from-file {reference:.0f}: ratio {median(ours) / reference:.2f}"
            yield Row(f"undo of {amount:,} files, whole process", label, median(ours), limit=bar, note=note)


def odd(bench: Bench) -> Iterator[Row]:
    """Large and numerous things beside the tracked files."""
    for label, make in {
        "200 MB untracked file": workspaces.with_large_file,
        "50k ignored files": workspaces.with_ignored_files,
    }.items():
        at = bench.fresh(label.replace(" ", "-"), make)
        yield Row("first contact", label, timed(lambda: at.session().turn_start("bench")))
        session = at.session()
        times, status = [], []
        for number in range(bench.rounds):
            times += at.call(session, lambda n=number: change(at.root, range(1), 100 + n))
            status.append(at.status())
        yield Row("scan, one changed", label, median(times), note=f"git status {median(status):.0f}")


def memory(bench: Bench) -> Iterator[Row]:
    """Peak memory of a process that meets a workspace, scans it twice and undoes a thousand files."""
    script = (
        "import os, resource, sys\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from tests.benchmarks.workspaces import change\n"
        "from safety.runtime.open import open_session\n"
        "from safety.session import Call\n"
        "from safety.commands.args import UndoArgs\n"
        "from safety.commands import undo\n"
        "root = sys.argv[1]\n"
        "session = open_session(os.fsencode(root), 'bench')\n"
        "session.turn_start('x')\n"
        "call = Call('c', 'shell', {}, os.fsencode(root))\n"
        "session.pre(call)\n"
        "change(Path(root), range(1000), 9)\n"
        "session.post(call, '', None)\n"
        "session.turn_end()\n"
        "undo.run(session, UndoArgs())\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform == 'darwin' else 1024))\n"
    )
    for label, files in bench.sizes.items():
        at = bench.sized(label)
        done = subprocess.run([sys.executable, "-c", script, str(at.root), str(PROJECT)], env=at.env, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        yield Row("peak memory", label, float(done.stdout), "MB", limit=200.0 if files == 100_000 else None)


def growth(bench: Bench) -> Iterator[Row]:
    """What many operations add to the store, before and after the idle repack."""
    cases: dict[str, tuple[Callable[[Path], Path], Callable[[Workspace, int], bytes], str | None]] = {
        "1k files": (lambda root: workspaces.packed(root, 1_000), _write_one, None),
        "100k files": (lambda root: workspaces.packed(root, 100_000), _write_one, name(7)),
        "flat folder of 50k": (workspaces.flat, _write_flat, "flat/f000007.txt"),
        "index of 100k": (workspaces.wide_index, _stage_one, None),
        "5 MB reflog": (workspaces.long_reflog, _commit_one, None),
        "3 MB packed-refs": (workspaces.packed_refs, _move_packed_ref, None),
        "50k refs": (workspaces.loose_refs, _move_loose_ref, None),
    }
    for label, (make, step, path) in cases.items():
        at = bench.fresh("growth-" + label.replace(" ", "-"), make)
        session = at.session()
        session.turn_start("first contact")
        session.turn_end()
        start, changed, loose, before = disk_bytes(at.state), 0, 0, 0.0
        for number in range(bench.operations):
            if number % CALLS_A_TURN == 0:
                session.turn_start("bench")
            data: list[bytes] = []
            at.call(session, lambda n=number: data.append(step(at, n)), path)
            changed += len(zlib.compress(data[0]))
            if number % CALLS_A_TURN == CALLS_A_TURN - 1:
                loose = max(loose, count_loose(at.state))
                before = max(before, (disk_bytes(at.state) - start) / (number + 1)) if number >= bench.operations // 2 else before
                session.turn_end()
        repack_now(session)
        after = disk_bytes(at.state) - start
        each = f"{bench.operations:,} operations, {label}"
        yield Row("growth an operation, before repack", each, before / 1024, "kB", limit=32.0)
        yield Row("most loose objects", each, float(loose), "", limit=2000.0)
        bar = 1.2 * changed / bench.operations / 1024 + 2.0
        yield Row("growth an operation, after repack", each, after / bench.operations / 1024, "kB", limit=bar)


def repack_now(session) -> None:  # type: ignore[no-untyped-def]
    """What an idle moment does, without waiting for the number of loose objects that calls for it."""
    from safety.store.repack import repack_loose, repack_packs

    repack_loose(session.place.git, session.place.odb, threshold=1)
    repack_packs(session.place.git, session.place.odb, most=1)


def count_loose(state: Path) -> int:
    return sum(1 for _ in state.glob("stores/*/objects/[0-9a-f][0-9a-f]/*"))


def _write_one(at: Workspace, number: int) -> bytes:
    data = workspaces.content(7, number + 1)
    (at.root / name(7)).write_bytes(data)
    return data


def _write_flat(at: Workspace, number: int) -> bytes:
    data = b"%08d changed\n" % number
    (at.root / "flat/f000007.txt").write_bytes(data)
    return data


def _stage_one(at: Workspace, number: int) -> bytes:
    data = _write_one(at, number)
    git(at.root, "add", name(7))
    return data


def _commit_one(at: Workspace, number: int) -> bytes:
    """The new file, the reflog lines and the objects of the commit are what changed."""
    data = _write_one(at, number)
    git(at.root, "commit", "-qam", f"commit {number}")
    tree = git(at.root, "cat-file", "commit", "HEAD")
    trees = b"".join(git(at.root, "cat-file", "tree", f"HEAD:{folder}") for folder in ("", "d000", "d000/s00"))
    return data + tree + trees + tree


def _move_packed_ref(at: Workspace, number: int) -> bytes:
    file = at.root / ".git/packed-refs"
    lines = file.read_bytes().split(b"\n")
    lines[1 + number * 37 % (len(lines) - 2)] = lines[1 + number * 37 % (len(lines) - 2)].replace(b"refs/tags/v", b"refs/tags/w")
    head, rest = lines[0], sorted(lines[1:-1], key=lambda line: line[41:])
    file.write_bytes(b"\n".join([head, *rest, b""]))
    return b"x" * 60


def _move_loose_ref(at: Workspace, number: int) -> bytes:
    file = at.root / f".git/refs/heads/b{number % 100:03d}/new{number}"
    file.write_bytes(git(at.root, "rev-parse", "HEAD"))
    return file.read_bytes() + file.name.encode()


def others(bench: Bench) -> Iterator[Row]:
    """One step of other tools, one file changed before each, beside a scan and a declared capture of ours."""
    for label in bench.sizes:
        at = bench.sized(label)
        session = at.session()
        session.turn_start("bench")
        at.call(session, lambda: change(at.root, range(1), 1))
        ours = [at.call(session, lambda n=number: change(at.root, range(1), 50 + n))[1] for number in range(bench.rounds)]
        yield Row("one step: git-safety, scan", label, median(ours))
        for peer, step in peers.PEERS.items():
            state = Path(tempfile.mkdtemp(prefix="peer-", dir=at.root.parent))
            step(at.root, state, at.env)
            times = []
            for number in range(bench.rounds):
                change(at.root, range(1), 60 + number)
                times.append(timed(lambda s=step, where=state: s(at.root, where, at.env)))
            yield Row(f"one step: {peer}", label, median(times), note=f"{median(times) / median(ours):.1f} times ours")


CASES: Mapping[str, Callable[[Bench], Iterator[Row]]] = {
    case.__name__: case for case in (declared, scan, first, undo, odd, memory, growth, others)
}


# -- the table ----------------------------------------------------------------------------------------------------------------


def table(rows: list[Row]) -> str:
    lines = ["| what | case | measured | bar | | beside |", "| --- | --- | ---: | ---: | --- | --- |"]
    for row in rows:
        bar = "" if row.limit is None else f"{row.limit:,.1f} {row.unit}".strip()
        verdict = "" if row.limit is None else "pass" if row.passed else "**miss**"
        lines.append(f"| {row.name} | {row.case} | {row.value:,.1f} {row.unit} | {bar} | {verdict} | {row.note} |")
    return "\n".join(lines) + "\n"


def about() -> str:
    version = subprocess.run(["git", "--version"], capture_output=True).stdout.decode().strip()
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}, {version}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1k,10k,100k")
    parser.add_argument("--only", default="", help="one or several of: " + ", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--operations", type=int, default=1000)
    parser.add_argument("--cache", default="")
    parser.add_argument("--keep", action="store_true", help="leave the folders of this run, and say where")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="git-safety-bench-"))
    cache = Path(asked.cache) if asked.cache else folder / "cache"
    bench = Bench(folder, cache, {label: SIZES[label] for label in asked.sizes.split(",")}, asked.rounds, asked.operations)
    rows: list[Row] = []
    try:
        for label in asked.only.split(",") if asked.only else CASES:
            for row in CASES[label](bench):
                rows.append(row)
                print(table([row]).splitlines()[-1], flush=True)
    finally:
        if asked.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if asked.write:
        text = f"# Benchmarks\n\nMade by `python tests/benchmarks/run.py --write` on {about()}.\n\n{table(rows)}"
        (PROJECT / "docs/benchmarks.md").write_text(text)
    missed = [row for row in rows if not row.passed]
    print(f"{len(rows)} figures, {len(missed)} bars missed, on {about()}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
