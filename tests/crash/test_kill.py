"""SIGKILL at every system call that writes. After each: the store is sound, no byte of the user's is lost, the next command
works, and the interrupted one, run again, ends where it would have ended.

A run samples points; ``--long`` takes them all; ``--point undo=write:own:17`` takes one.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support import inject
from tests.support.environment import isolated
from tests.support.inject import Command, Point
from tests.support.process import Result
from tests.support.repo import NINE_LINES, RepoBuilder, standard
from tests.support.state import State
from tests.support.store import Ledger, fsck, reachable, stores

pytestmark = pytest.mark.skipif(not inject.available(), reason="strace is not here or may not trace")

SAMPLE = 200


@dataclass
class Scene:
    """A workspace in which one command is about to run. ``finish`` is what is done after it, however often it was run."""

    repo: RepoBuilder
    args: tuple[str, ...]
    stdin: bytes = b""
    finish: Callable[[RepoBuilder], None] = field(default=lambda repo: None)
    outcome: Callable[[RepoBuilder], object] = field(default=RepoBuilder.picture)

    def command(self) -> Command:
        return Command(self.args, self.repo.root, self.repo.env, self.stdin)


def event(repo: RepoBuilder, name: str, **fields: object) -> bytes:
    return json.dumps({"event": name, "session_id": repo.session, "cwd": str(repo.root), **fields}).encode()


SHELL = {"call_id": "killed", "tool": "shell", "input": {"command": "./agent-step"}}
HOOK = ("hook", "--agent", "generic")


def rich(repo: RepoBuilder) -> None:
    """A repository with something of each kind to lose."""
    standard(repo)
    repo.sh("git checkout -q -b other; echo O >o; git add o; git commit -qm o; git checkout -q main; git tag -a v1 -m v1")
    repo.sh("echo stashed >>a.txt; git stash -q; echo staged >b.txt; git add b.txt; echo unstaged >b.txt; ln -s a.txt link")
    repo.sh("echo KEY >.env; mkdir -p empty/dir; echo u >untracked; chmod 600 untracked")


def wild(repo: RepoBuilder) -> None:
    """A turn that touches all of it."""
    repo.sh("sed -i 's/line 2/agent 2/' a.txt; rm -rf src empty; echo new >new; mkdir -p made/in; echo m >made/in/m")
    repo.sh(
        "chmod 755 untracked; ln -sfn b.txt link; rm .env; rm tool.sh; mkdir tool.sh; echo t >tool.sh/t; "
        "git stash drop -q; git branch -qD other"
    )
    repo.sh("git add -A; git commit -qm agent; git checkout -q -b agents; echo more >b.txt")


def first_contact(repo: RepoBuilder) -> Scene:
    rich(repo)
    return Scene(repo, ("snapshot",), finish=turn_and_undo)


def turn_and_undo(repo: RepoBuilder) -> None:
    with repo.agent(session="after"):
        wild(repo)
    repo.undo()


def before_a_call(repo: RepoBuilder) -> Scene:
    rich(repo)
    repo.agent_runs("echo earlier >earlier", session="earlier")
    repo.hook("turn.pre", prompt="x")
    repo.write("a.txt", NINE_LINES + "the user's\n")
    repo.write("src/new/deep", "the user's too\n")

    def finish(repo: RepoBuilder) -> None:
        wild(repo)
        repo.hook("tool.execute.post", **SHELL, result="")
        repo.hook("turn.post")
        repo.undo()

    return Scene(repo, HOOK, event(repo, "tool.execute.pre", **SHELL), finish)


def after_a_call(repo: RepoBuilder) -> Scene:
    rich(repo)
    repo.hook("turn.pre", prompt="x")
    repo.hook("tool.execute.pre", **SHELL)
    wild(repo)

    def finish(repo: RepoBuilder) -> None:
        repo.hook("turn.post")
        repo.undo()

    return Scene(repo, HOOK, event(repo, "tool.execute.post", **SHELL, result=""), finish)


def after_a_declared_call(repo: RepoBuilder) -> Scene:
    rich(repo)
    call = {"call_id": "declared", "tool": "write", "input": {"path": str(repo.path("src/app.py")), "content": "x"}}
    repo.hook("turn.pre", prompt="x")
    repo.hook("tool.execute.pre", **call)
    repo.write("src/app.py", "agent\n")

    def finish(repo: RepoBuilder) -> None:
        repo.hook("turn.post")
        repo.undo()

    return Scene(repo, HOOK, event(repo, "tool.execute.post", **call, result=""), finish)


def undo(repo: RepoBuilder) -> Scene:
    rich(repo)
    with repo.agent():
        wild(repo)
    repo.replace("a.txt", "line 8", "user 8")
    repo.write("made/in/mine", "mine\n")
    return Scene(repo, ("undo",))


def redo(repo: RepoBuilder) -> Scene:
    rich(repo)
    with repo.agent():
        wild(repo)
    repo.undo()
    repo.replace("a.txt", "line 8", "user 8")
    repo.write("mine", "mine\n")
    return Scene(repo, ("redo",))


def undo_of_a_lost_repository(repo: RepoBuilder) -> Scene:
    rich(repo)
    repo.agent_runs("rm -rf .git src; echo agent >a.txt")
    return Scene(repo, ("undo",))


def handles(repo: RepoBuilder) -> object:
    """What the log still knows and the store still holds."""
    rows = repo.must("log", "--json").report["rows"]
    return [row["handle"] for row in rows if row["actor"] == "agent"], sorted(reachable(repo.state))


def seven_turns(repo: RepoBuilder) -> None:
    rich(repo)
    for number in range(7):
        repo.agent_runs(f"echo {number} >b.txt; echo {number} >new{number}; rm -f new{number - 2}")


def forget(repo: RepoBuilder) -> Scene:
    seven_turns(repo)
    return Scene(repo, ("store", "forget", "--keep-operations", "6"), finish=lambda repo: None, outcome=handles)


def prune(repo: RepoBuilder) -> Scene:
    seven_turns(repo)
    repo.must("store", "forget", "--keep-operations", "6")
    return Scene(repo, ("store", "prune"), finish=lambda repo: None, outcome=handles)


SCENES = (first_contact, before_a_call, after_a_call, after_a_declared_call, undo, redo, undo_of_a_lost_repository, forget, prune)


class Stage:
    """One prepared scene, put back to its beginning for each point."""

    def __init__(self, folder: Path, make: Callable[[RepoBuilder], Scene]) -> None:
        self.here = folder / "here"
        self.template = folder / "template"
        self.scene = make(RepoBuilder(self.here / "work", isolated(self.here)))
        self.ledger = Ledger()
        self.ledger.note_tree(self.scene.repo.root)
        subprocess.run(["cp", "-a", str(self.here), str(self.template)], check=True)
        self.points = inject.points(self.scene.command())
        self.expected = self.end(first=True)

    def set(self) -> None:
        """Puts everything back but the root folder itself: by its inode the product tells it from a replaced one."""
        root = self.scene.repo.root
        subprocess.run(["find", str(self.here), "-mindepth", "1", "!", "-path", str(root), "-delete"], check=True)
        subprocess.run(["cp", "-a", f"{self.template}/.", str(self.here)], check=True)

    def end(self, first: bool = False) -> object:
        """Runs the command to its end and gives the outcome."""
        repo = self.scene.repo
        if not first:
            done = repo.run(*self.scene.args, stdin=self.scene.stdin)
            assert done.code in (0, 3, 4), f"run again: exit {done.code}\n{done.text}"
        self.scene.finish(repo)
        return self.scene.outcome(repo)

    def complaints(self, point: Point) -> Iterator[str]:
        """What is wrong after a kill at this point; nothing if all is well."""
        self.set()
        repo = self.scene.repo
        result, fired = inject.kill(self.scene.command(), point)
        steps: tuple[tuple[str, Callable[[], None]], ...] = (
            ("the killed command's words", lambda: no_traceback(result)),
            ("the store after the kill", lambda: sound(repo)),
            ("the user's bytes after the kill", self.nothing_lost),
            ("the next command", lambda: no_traceback(repo.must("status"))),
            ("the interrupted command again", self.ends_as_expected),
            ("the user's bytes at the end", self.nothing_lost),
            ("the store at the end", lambda: sound(repo)),
            ("our own check", lambda: no_traceback(repo.must("store", "fsck"))),
        )
        for name, step in steps if fired else ():
            try:
                step()
            except AssertionError as failure:
                yield f"{name}: {str(failure)[:1500]}"
                return

    def ends_as_expected(self) -> None:
        outcome = self.end()
        if isinstance(outcome, State) and isinstance(self.expected, State):
            assert not (lines := self.expected.differences(outcome)), "\n".join(lines[:10])
        else:
            assert outcome == self.expected

    def nothing_lost(self) -> None:
        missing = self.ledger.missing([self.scene.repo.root], self.scene.repo.state)
        assert not missing, f"lost: {missing}"


def no_traceback(result: Result) -> None:
    assert "Traceback" not in result.text and "failed inside" not in result.text, result.text


def sound(repo: RepoBuilder) -> None:
    for store in stores(repo.state):
        fsck(store)


def spread(points: list[Point], count: int, chance: random.Random) -> list[Point]:
    """``count`` points evenly spread over all, each drawn from its own stretch."""
    if count >= len(points):
        return points
    width = len(points) / count
    return [points[int(width * number + chance.random() * width)] for number in range(count)]


@pytest.mark.parametrize("make", SCENES, ids=lambda make: make.__name__)
def test_killed_anywhere(
    make: Callable[[RepoBuilder], Scene], tmp_path: Path, request: pytest.FixtureRequest, chance: random.Random
) -> None:
    """Killed at any writing call, the command harms nothing and can be run again."""
    wanted = request.config.getoption("--point")
    if wanted and wanted.split("=")[0] != make.__name__:
        pytest.skip("another scene's point is wanted")
    stage = Stage(tmp_path, make)
    chosen = stage.points if request.config.getoption("--long") else spread(stage.points, SAMPLE // len(SCENES) + 1, chance)
    if wanted:
        chosen = [Point.parse(wanted.split("=")[1])]

    failures = []
    for point in chosen:
        for line in stage.complaints(point):
            failures.append(f"--point {make.__name__}={point}\n    {line}")
            print(failures[-1], flush=True)  # a whole sweep takes long: shown with -s while it runs

    assert not failures, f"{len(failures)} of {len(chosen)} points ({len(stage.points)} in all):\n" + "\n".join(failures)
