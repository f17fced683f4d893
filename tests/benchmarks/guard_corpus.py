"""Holds the guard to a corpus of labelled commands, each judged in its context, which is built for real. No line is ever executed.

    python tests/benchmarks/guard_corpus.py FILE.jsonl [--no-snapshot] [--keep]

A line has ``cmd``, ``context``, ``label``, ``recoverable``, ``destructive`` and ``kind``. ``/w`` and ``/home/u`` in it stand for folders
of this run. The guard is told of a snapshot that holds tracked and untracked files, the index and the refs, and no ignored file. Ends
with one line of JSON: ``unrecoverable_stopped`` (of lines destructive and not recoverable), ``deny_stopped`` (labelled deny),
``harmless_stopped`` (not destructive, labelled allow), ``recoverable_stopped`` (destructive and recoverable), in percent, and
``p99_ms`` of parse, effects and rules with the context handed in. Exit code 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from safety.commands.guard_facts import World, answer  # noqa: E402
from safety.plumbing.run import Git  # noqa: E402
from safety.policy.effects import effects_of, questions_of  # noqa: E402
from safety.policy.rules import Verdict, judge  # noqa: E402
from safety.policy.shell import parse  # noqa: E402
from safety.policy.values import TREE_AND_REFS, Answer, CallFacts, Coverage, Question  # noqa: E402

LIMIT = 50 << 20
IGNORED = ".env\ndata/\n*.log\nnode_modules/\nbuild/\ndist/\n__pycache__/\n"
TRACKED = {
    ".gitignore": IGNORED,
    ".env.example": "A=\n",
    ".claude/settings.json": "{}\n",
    "README.md": "# Read me\n",
    "CHANGELOG.md": "# Changes\n",
    "Makefile": "all:\n\ttrue\n",
    "main.py": "print(1)\n",
    "other.py": "print(2)\n",
    "run.sh": "true\n",
    "install.sh": "true\n",
    "package.json": "{}\n",
    "package-lock.json": "{}\n",
    "schema.sql": "SELECT 1;\n",
    "last.patch": "",
    "fix.patch": "",
    "docs/guide.md": "guide\n",
    "scripts/test.sh": "true\n",
    "src/app.py": "app = 1\n",
    "src/util.py": "util = 1\n",
    "src/old/legacy.py": "legacy = 1\n",
    "src/main.py": "main = 1\n",
    "src/index.js": "1\n",
    "lib/util.py": "lib = 1\n",
    "docs/index.md": "index\n",
    "tests/test_app.py": "assert True\n",
    **dict.fromkeys(
        """
        setup.py pyproject.toml requirements.txt config.py config.yml config.json Dockerfile LICENSE index.html app.py
        data.csv notes.md TODO.md tsconfig.json Cargo.toml go.mod .pre-commit-config.yaml .github/workflows/ci.yml
        x.json log.txt a.txt b.txt a.py b.py
        """.split(),
        "text\n",
    ),
}
HOME_FILES = (
    ".bashrc",
    ".profile",
    ".netrc",
    ".ssh/id_rsa",
    ".ssh/authorized_keys",
    ".aws/credentials",
    ".gnupg/secring.gpg",
    ".config/gh/hosts.yml",
    ".claude/settings.json",
    ".kube/config",
    "notes.txt",
    "projects/other/main.py",
    "projects/script.py",
    "Documents/letter.txt",
)


@dataclass
class Context:
    """One built state of the workspace. ``base`` stands for the root of the corpus's world."""

    base: Path
    cwd: str
    repository: str | None
    env: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> str:
        return str(self.base / "home/u")

    def facts(self) -> CallFacts:
        git_dir = f"{self.repository}/.git" if self.repository else None
        own = (f"{self.home}/.local/state/git-safety", f"{self.home}/.config/git-safety")
        return CallFacts(
            self.cwd,
            self.home,
            self.cwd,
            self.repository,
            git_dir,
            temp=("/tmp", "/var/tmp"),
            own=own,
            variables={"TMPDIR": "/tmp"},
        )

    def line(self, cmd: str) -> str:
        """A command of the corpus with the folders of this run."""
        cmd = re.sub(r"/home/u(?![\w.-])", lambda _: self.home, cmd)
        return re.sub(r"(?<![\w.\-/])/w(?=/[a-z]|[\s\"');]|$)", lambda _: str(self.base / "w"), cmd)


# ---- contexts --------------------------------------------------------------------------------------------------------------------


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Builder:
    """Makes the contexts below ``folder``, each in a world of its own, when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, Context] = {}

    def context(self, name: str) -> Context:
        if name not in self.made:
            self.made[name] = self._make(name)
        return self.made[name]

    def _make(self, name: str) -> Context:
        base = self.folder / name
        home = base / "home/u"
        write(home, dict.fromkeys(HOME_FILES, "x\n"))
        (home / ".gitconfig").write_text(
            '[user]\n\tname = U\n\temail = u@example.test\n[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n'
        )
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
        write(base / "w/sibling", {"src/main.py": "x\n"})
        if name == "norepo":
            write(base / "w/scratch", {**TRACKED, "notes.txt": "n\n", "node_modules/a/index.js": "a\n"})
            return Context(base, str(base / "w/scratch"), None, env)
        root = base / "w/repo"
        context = Context(base, str(root), str(root), env)
        root.mkdir(parents=True)
        self._git(context, "init", "-q", "--bare", str(base / "w/origin.git"))
        self._git(context, "init", "-q", ".")
        write(root, TRACKED)
        self._git(context, "add", "-A")
        self._git(context, "commit", "-qm", "one")
        write(root, {"src/app.py": "app = 2\n"})
        self._git(context, "commit", "-qam", "two")
        self._git(context, "remote", "add", "origin", str(base / "w/origin.git"))
        self._git(context, "branch", "feature")
        self._git(context, "push", "-qu", "origin", "main", "feature")
        getattr(self, f"_make_{name.replace('-', '_')}", self._make_dirty)(context, root)
        return context

    def _git(self, context: Context, *args: str, cwd: str = "", check: bool = True) -> None:
        subprocess.run(["git", *args], cwd=cwd or context.cwd, env=context.env, check=check, capture_output=True)

    def _make_clean(self, context: Context, root: Path) -> None:
        pass

    def _make_dirty(self, context: Context, root: Path) -> None:
        write(root, {"src/util.py": "util = 2\n", "src/app.py": "app = 3\n"})
        self._git(context, "add", "src")
        write(
            root, {"src/app.py": "app = 4\n", "README.md": "# Read me\nmore\n", "notes.txt": "notes\n", "drafts/one.md": "one\n"}
        )

    def _make_ignored(self, context: Context, root: Path) -> None:
        self._make_dirty(context, root)
        write(
            root,
            {
                ".env": "KEY=1\n",
                "data/local.db": "db\n",
                "debug.log": "log\n",
                "node_modules/a/index.js": "a\n",
                "build/out.js": "o\n",
            },
        )

    def _make_unpushed(self, context: Context, root: Path) -> None:
        for text in ("first", "second"):
            write(root, {"src/app.py": f"app = '{text}'\n"})
            self._git(context, "stash", "-q")
        for branch in ("wip", "topic", "feature", "old"):
            self._git(
                context,
                "checkout",
                "-q",
                branch if branch == "feature" else "-B",
                *([] if branch == "feature" else [branch, "main"]),
            )
            write(root, {f"{branch}.txt": branch})
            self._git(context, "add", "-A")
            self._git(context, "commit", "-qm", branch)
        self._git(context, "checkout", "-q", "main")
        for number in range(6):
            write(root, {"other.py": f"print({number})\n"})
            self._git(context, "commit", "-qam", f"local {number}")
        self._git(context, "tag", "v1.0")
        self._make_dirty(context, root)

    def _make_mid_merge(self, context: Context, root: Path) -> None:
        self._git(context, "checkout", "-q", "feature")
        write(root, {"main.py": "print('theirs')\n"})
        self._git(context, "commit", "-qam", "theirs")
        self._git(context, "checkout", "-q", "main")
        write(root, {"main.py": "print('ours')\n"})
        self._git(context, "commit", "-qam", "ours")
        self._git(context, "merge", "feature", check=False)
        write(root, {"main.py": "print('both')\n"})

    def _make_wt_clean(self, context: Context, root: Path) -> None:
        self._git(context, "worktree", "add", "-q", "-b", "wt", str(root.parent / "wt"))

    def _make_wt_dirty(self, context: Context, root: Path) -> None:
        self._make_wt_clean(context, root)
        write(root.parent / "wt", {"README.md": "edited\n", "new.txt": "new\n"})

    def _make_sub_dirty(self, context: Context, root: Path) -> None:
        source = root.parent / "library"
        write(source, {"lib.c": "int x;\n"})
        self._git(context, "init", "-q", ".", cwd=str(source))
        self._git(context, "add", "-A", cwd=str(source))
        self._git(context, "commit", "-qm", "lib", cwd=str(source))
        self._git(context, "submodule", "--quiet", "add", str(source), "sub")
        self._git(context, "commit", "-qm", "submodule")
        write(root / "sub", {"lib.c": "int edited;\n"})
        self._make_dirty(context, root)

    def _make_nested_repo(self, context: Context, root: Path) -> None:
        nested = root / "vendor/lib"
        write(nested, {"lib.py": "x = 1\n"})
        self._git(context, "init", "-q", ".", cwd=str(nested))
        self._git(context, "add", "-A", cwd=str(nested))
        self._git(context, "commit", "-qm", "lib", cwd=str(nested))
        write(nested, {"lib.py": "x = 2\n"})
        self._make_dirty(context, root)

    def _make_biguntracked(self, context: Context, root: Path) -> None:
        self._make_dirty(context, root)
        with open(root / "big.bin", "wb") as file:
            file.truncate(LIMIT + 1)


# ---- judging ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """A line with its verdict. ``pure_ms``: parse, effects and rules, ``first_ms`` the first time; ``facts_ms``: the look at the world."""

    line: Mapping[str, Any]
    verdict: Verdict
    pure_ms: float
    first_ms: float
    facts_ms: float

    @property
    def stopped(self) -> bool:
        return self.verdict.action != "allow"


def judged(line: Mapping[str, Any], context: Context, *, snapshot: bool, repeat: int = 0) -> Judged:
    """The verdict on a line; ``repeat`` further rounds for the time it takes."""
    facts = context.facts()
    text = context.line(line["cmd"])
    covers = snapshot and context.repository is not None
    coverage = Coverage("s1", TREE_AND_REFS) if covers else Coverage(why_not="off")
    world = World(Git(context.env), facts, LIMIT)
    timed = []
    answers: dict[Question, Answer] = {}
    facts_ms = 0.0
    for rounds in range(repeat + 1):
        begin = time.perf_counter()
        parsed = parse(text, facts.cwd, home=facts.home, variables=facts.variables or {}, top=facts.repository or "")
        effects = effects_of(parsed, facts)
        questions = questions_of(effects, coverage)
        asked = time.perf_counter()
        if not rounds:
            answers = answer(world, questions)
            facts_ms = (time.perf_counter() - asked) * 1000
        answered = time.perf_counter()
        verdict = judge(effects, answers, coverage, facts=facts)
        timed.append((asked - begin + time.perf_counter() - answered) * 1000)
    # The first round loads the tables and patterns that the line needs; of the others the middle one, as the machine has other work, too.
    return Judged(line, verdict, statistics.median(timed[1:] or timed), timed[0], facts_ms)


def sort_of(line: Mapping[str, Any]) -> str:
    if line["destructive"]:
        return "recoverable" if line["recoverable"] else "unrecoverable"
    return "harmless" if line["label"] == "allow" else "gate"


def share(found: Iterable[Judged]) -> float:
    items = list(found)
    return round(100 * sum(item.stopped for item in items) / len(items), 2) if items else 0.0


def quantile(values: Iterable[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


def report(found: list[Judged], *, snapshot: bool) -> dict[str, float]:
    sorts = ("unrecoverable", "recoverable", "harmless", "gate")
    print(f"{'kind':15}" + "".join(f"{sort:>16}" for sort in sorts))
    for kind in sorted({item.line["kind"] for item in found}):
        cells = []
        for sort in sorts:
            items = [item for item in found if item.line["kind"] == kind and sort_of(item.line) == sort]
            cells.append(f"{sum(item.stopped for item in items)}/{len(items)}" if items else "")
        print(f"{kind:15}" + "".join(f"{cell:>16}" for cell in cells))
    wanted = {"unrecoverable": True, "gate": True, "harmless": False, "recoverable": not snapshot}
    for item in found:
        sort = sort_of(item.line)
        if item.stopped != wanted[sort]:
            verdict = item.verdict
            where = f"MISS {sort:13} {item.line['kind']:13} {item.line['context']:9}"
            print(f"{where} {verdict.action:5} {verdict.rule} | {item.line['cmd']!r} | {verdict.loses}")
    return {
        "unrecoverable_stopped": share(item for item in found if sort_of(item.line) == "unrecoverable"),
        "deny_stopped": share(item for item in found if item.line["label"] == "deny"),
        "harmless_stopped": share(item for item in found if sort_of(item.line) == "harmless"),
        "recoverable_stopped": share(item for item in found if sort_of(item.line) == "recoverable"),
        "gate_stopped": share(item for item in found if sort_of(item.line) == "gate"),
        "p99_ms": round(quantile((item.pure_ms for item in found), 0.99), 3),
        "worst_ms": round(max((item.pure_ms for item in found), default=0.0), 3),
        "first_p99_ms": round(quantile((item.first_ms for item in found), 0.99), 3),
        "facts_p99_ms": round(quantile((item.facts_ms for item in found), 0.99), 1),
        "lines": len(found),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--no-snapshot", action="store_true", help="as if no snapshot had been taken")
    parser.add_argument("--keep", action="store_true", help="leave the built contexts")
    given = parser.parse_args()
    lines = [json.loads(text) for text in given.file.read_text().splitlines() if text.strip()]
    folder = Path(tempfile.mkdtemp(prefix="guard-"))
    try:
        builder = Builder(folder)
        for line in lines:
            builder.context(line["context"])
        parse("true", "/")  # loads the parser
        found = [judged(line, builder.context(line["context"]), snapshot=not given.no_snapshot, repeat=5) for line in lines]
        totals = report(found, snapshot=not given.no_snapshot)
    finally:
        if given.keep:
            print(f"contexts: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(totals))
    if given.no_snapshot:
        return 0 if totals["recoverable_stopped"] == 100 else 1
    bars = totals["unrecoverable_stopped"] >= 97 and totals["deny_stopped"] >= 99 and totals["harmless_stopped"] <= 1
    return 0 if bars and totals["recoverable_stopped"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
