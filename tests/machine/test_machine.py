"""Random lives of a workspace: an agent, a user and git act in any order, with undo, redo, housekeeping and crashes between.

Held after every step: no content that was ever the user's is gone from both disk and store, captures leave ``.git`` alone, the
store is sound. Undo and redo in a row are the identity.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from tests.support import inject
from tests.support.environment import isolated
from tests.support.inject import Command, Point
from tests.support.process import Result
from tests.support.repo import RepoBuilder
from tests.support.state import assert_same, dot_git_fingerprint
from tests.support.store import blob_id, content_of, fsck, reachable, store_git, stores, user_files

CAN_KILL = inject.available()
STEPS_A_LIFE = 40
STEPS, LONG_STEPS = 2_000, 20_000

PATHS = ["a.txt", "b.txt", "src/m.py", "src/deep/n.py", "new.txt", "made/x", "x.log", ".env", "link"]
BRANCHES = ["main", "side", "topic"]

path = st.sampled_from(PATHS)
branch = st.sampled_from(BRANCHES)

#: One primitive change: the first word names it, the rest are its operands.
change = st.one_of(
    st.tuples(st.just("write"), path),
    st.tuples(st.just("edit first"), path),
    st.tuples(st.just("edit last"), path),
    st.tuples(st.just("delete"), path),
    st.tuples(st.just("move"), path, path),
    st.tuples(st.just("chmod"), path, st.sampled_from([0o600, 0o644, 0o755])),
    st.tuples(st.just("link"), path),
    st.tuples(st.just("empty folder"), st.sampled_from(["empty", "made", "src/deep/e"])),
    st.tuples(st.just("folder for file"), path),
    st.tuples(
        st.just("git"), st.sampled_from(["add -A", "reset -q --hard", "reset -q", "clean -fdq", "stash -q -u", "stash pop -q"])
    ),
    st.tuples(
        st.just("git"),
        st.sampled_from(["commit -qam x", "commit -q --amend -m y", "reset -q --soft HEAD~1", "tag -f t", "stash clear"]),
    ),
    st.tuples(st.just("git"), branch.map(lambda name: f"checkout -q {name}")),
    st.tuples(st.just("git"), branch.map(lambda name: f"checkout -q -b {name}")),
    st.tuples(st.just("git"), branch.map(lambda name: f"branch -qD {name}")),
    st.tuples(st.just("git"), branch.map(lambda name: f"merge -q --no-edit {name}")),
    st.tuples(
        st.just("git"), st.sampled_from(["merge --abort", "checkout -q --detach", "rm -rq --cached .", "gc -q --prune=now"])
    ),
)
changes = st.lists(change, min_size=1, max_size=4)


class Life(RuleBasedStateMachine):
    """One workspace from its first commit to the end of a sequence."""

    problems: ClassVar[list[str]] = []

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="git-safety-life-"))
        env = isolated(self.folder)
        env["GIT_TEMPLATE_DIR"] = ""
        self.repo = RepoBuilder(self.folder / "work", env)
        self.theirs: dict[str, str] = {}
        self.count = 0
        self.steps = 0
        self.session = 0
        self.turns = 0
        self.call_is_open = False

    # -- acting -----------------------------------------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        repo = self.repo
        for name in ("a.txt", "b.txt", "src/m.py", "src/deep/n.py"):
            repo.write(name, self.text("first"))
        repo.write(".gitignore", "*.log\n.env\n")
        repo.commit("first")
        repo.sh("git branch side; git checkout -q side; echo side >>a.txt; git commit -qam side; git checkout -q main")
        repo.write(".env", self.text("secret"))
        repo.write("new.txt", self.text("untracked"))
        self.claim()

    def text(self, who: str) -> str:
        """Ten lines that no other text shares whole."""
        self.count += 1
        return "".join(f"{who if line in (0, 9) else 'common'} {self.count if line in (0, 9) else line}\n" for line in range(10))

    def act(self, who: str, steps: list[tuple[Any, ...]]) -> None:
        """Carries the changes out as far as they make sense now."""
        for step in steps:
            with contextlib.suppress(OSError):
                self.act_once(who, *step)

    def act_once(self, who: str, what: str, *operands: Any) -> None:
        repo = self.repo
        if what == "git":
            if (repo.root / ".git").is_dir():
                subprocess.run(["git", *operands[0].split()], cwd=repo.root, env=repo.env, capture_output=True)
            return
        full = repo.path(operands[0])
        if what == "write":
            if full.is_symlink():
                full.unlink()
            repo.write(operands[0], self.text(who))
        elif what.startswith("edit") and full.is_file() and not full.is_symlink():
            self.count += 1
            lines = full.read_text().splitlines(keepends=True) or [""]
            lines[0 if what == "edit first" else -1] = f"{who} {self.count}\n"
            full.write_text("".join(lines))
        elif what == "delete" and os.path.lexists(full):
            repo.remove(operands[0])
        elif what == "move" and os.path.lexists(full):
            repo.path(operands[1]).parent.mkdir(parents=True, exist_ok=True)
            full.rename(repo.path(operands[1]))
        elif what == "chmod" and full.is_file() and not full.is_symlink():
            full.chmod(operands[1])
        elif what == "link" and not os.path.lexists(full):
            repo.link(operands[0], "a.txt")
        elif what == "empty folder":
            full.mkdir(parents=True, exist_ok=True)
        elif what == "folder for file" and full.is_file():
            full.unlink()
            repo.write(operands[0] + "/inside", self.text(who))

    def hook(self, event: str, **fields: Any) -> None:
        """One event, in this process."""
        from safety.adapters.wire import generic

        payload = {"event": event, "session_id": f"s{self.session}", "cwd": str(self.repo.root), **fields}
        out, err = io.BytesIO(), io.StringIO()
        code = generic.main(["--agent", "generic"], self.repo.env, io.BytesIO(json.dumps(payload).encode()), out, err)
        assert code == 0, f"{event}: exit {code}: {out.getvalue()!r} {err.getvalue()}"

    def quiet(self, step: Callable[[], object]) -> None:
        """Runs a step that may not touch the git directory."""
        before = dot_git_fingerprint(self.repo.root)
        step()
        assert dot_git_fingerprint(self.repo.root) == before, "a capture touched .git"

    def product(self, *words: str) -> Result:
        done = self.repo.run(*words)
        assert "Traceback" not in done.text and "failed inside" not in done.text, f"{words}: {done.text}"
        assert done.code in (0, 2, 3, 4), f"{words}: exit {done.code} {done.text}"
        return done

    # -- the ledger -------------------------------------------------------------------------------------------------------------

    def on_disk(self) -> dict[str, str]:
        return {blob_id(content_of(full)): os.fsdecode(full) for full in user_files(self.repo.root)}

    def stored(self, ids: set[str]) -> set[str]:
        """Those of the ids that a store holds."""
        held: set[str] = set()
        for store in stores(self.repo.state):
            listed = store_git(store, "cat-file", "--batch-check=%(objectname) %(objecttype)", input="\n".join(ids).encode())
            held |= {line.split()[0] for line in listed.decode().splitlines() if line.endswith(" blob")}
        return held

    def claim(self) -> None:
        """All that is on disk now is the user's to keep."""
        self.theirs.update(self.on_disk())

    def release(self) -> None:
        """What the user themselves just took from the disk, and no capture had seen, was theirs to lose."""
        gone = self.theirs.keys() - self.on_disk().keys()
        for oid in gone - self.stored(set(gone)) if gone else ():
            del self.theirs[oid]

    @invariant()
    def nothing_is_lost(self) -> None:
        gone = set(self.theirs.keys() - self.on_disk().keys())
        if gone:
            lost = gone - self.stored(gone)
            assert not lost, f"lost: {[self.theirs[oid] for oid in lost]}"

    @invariant()
    def store_is_sound(self) -> None:
        self.steps += 1
        if self.steps % 8 == 0:
            for store in stores(self.repo.state):
                fsck(store)

    # -- rules ------------------------------------------------------------------------------------------------------------------

    @rule(steps=changes)
    def user_acts(self, steps: list[tuple[Any, ...]]) -> None:
        self.act("user", steps)
        self.release()
        self.claim()

    @rule(calls=st.lists(changes, min_size=1, max_size=2), other=st.booleans())
    def agent_turn(self, calls: list[list[tuple[Any, ...]]], other: bool) -> None:
        self.session += other
        self.quiet(self.turn_begins)
        for steps in calls:
            self.shell_call(steps)
        self.quiet(lambda: self.hook("turn.post"))

    def turn_begins(self) -> None:
        self.turns += 1
        self.hook("turn.pre", prompt="do")

    # the strongest claim has four rules, since rules are drawn alike
    @rule(calls=st.lists(changes, min_size=1, max_size=2))
    def agent_turn_undone_at_once(self, calls: list[list[tuple[Any, ...]]]) -> None:
        self.undone_at_once(calls)

    @rule(call=changes)
    def agent_call_undone_at_once(self, call: list[tuple[Any, ...]]) -> None:
        self.undone_at_once([call])

    @rule(mine=changes, call=changes)
    def agent_call_after_the_users_undone_at_once(self, mine: list[tuple[Any, ...]], call: list[tuple[Any, ...]]) -> None:
        self.user_acts(mine)
        self.undone_at_once([call])

    @rule(first=change, second=change)
    def agent_change_undone_at_once(self, first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
        self.undone_at_once([[first], [second]])

    def undone_at_once(self, calls: list[list[tuple[Any, ...]]]) -> None:
        """When nobody else acts, undo gives exactly what was there before, and redo what was there after."""
        before = self.repo.picture()
        self.agent_turn(calls, other=False)
        after = self.repo.picture()
        if not self.call_is_open and before.differences(after):
            done = self.product("undo", "--yes")
            assert done.code == 0, f"undo: exit {done.code}\n{done.text}"
            assert_same(before, self.repo.picture())
            done = self.product("redo", "--yes")
            assert done.code == 0, f"redo: exit {done.code}\n{done.text}"
            assert_same(after, self.repo.picture())

    def shell_call(self, steps: list[tuple[Any, ...]]) -> None:
        self.count += 1
        call = {"call_id": f"c{self.count}", "tool": "shell", "input": {"command": "./step"}}
        self.claim()
        self.quiet(lambda: self.hook("tool.execute.pre", **call))
        self.act("agent", steps)
        self.quiet(lambda: self.hook("tool.execute.post", **call, result=""))

    @rule(name=path)
    def agent_writes(self, name: str) -> None:
        self.count += 1
        call = {"call_id": f"c{self.count}", "tool": "write", "input": {"path": str(self.repo.path(name)), "content": ""}}
        self.quiet(self.turn_begins)
        self.quiet(lambda: self.hook("tool.execute.pre", **call))
        self.act("agent", [("write", name)])
        self.quiet(lambda: self.hook("tool.execute.post", **call, result=""))
        self.quiet(lambda: self.hook("turn.post"))

    @precondition(lambda self: self.steps > STEPS_A_LIFE * 2 // 3)
    @rule(steps=changes)
    def agent_dies_and_user_goes_on(self, steps: list[tuple[Any, ...]]) -> None:
        self.count += 1
        self.session += 1
        self.call_is_open = True
        self.turn_begins()
        self.hook("tool.execute.pre", call_id=f"c{self.count}", tool="shell", input={"command": "./step"})
        self.user_acts(steps)
        self.session += 1

    @rule(name=path)
    def user_saves_during_a_call(self, name: str) -> None:
        self.count += 1
        call = {"call_id": f"c{self.count}", "tool": "write", "input": {"path": str(self.repo.path("a.txt")), "content": ""}}
        self.turn_begins()
        self.hook("tool.execute.pre", **call)
        self.act("agent", [("write", "a.txt")])
        if name != "a.txt":
            self.user_acts([("write", name)])
        self.hook("tool.execute.post", **call, result="")
        self.hook("turn.post")

    @rule(verb=st.sampled_from(["status", "snapshot", "log", "diff"]))
    def looks(self, verb: str) -> None:
        self.quiet(lambda: self.product(verb))

    @rule()
    def undo(self) -> None:
        self.product("undo", "--yes", "--now")

    @rule()
    def redo(self) -> None:
        self.product("redo", "--yes")

    @rule(count=st.integers(2, 3))
    def undo_some(self, count: int) -> None:
        self.product("undo", "--yes", "--now", "-n", str(count))

    @precondition(lambda self: self.turns > 1)
    @rule(back=st.integers(0, 6))
    def undo_an_older_turn(self, back: int) -> None:
        self.product("undo", "--yes", "--now", "--turn", f"t{max(1, self.turns - back)}")

    @precondition(lambda self: self.turns > 0)
    @rule(back=st.integers(0, 6), name=path, when=st.sampled_from(["--before", "--after"]))
    def restore(self, back: int, name: str, when: str) -> None:
        self.product("restore", "--yes", when, f"t{max(1, self.turns - back)}", name)

    @rule()
    def undo_then_redo(self) -> None:
        before = self.repo.picture()
        if self.product("undo", "--yes", "--now").code in (0, 3):
            self.nothing_is_lost()
            done = self.product("redo", "--yes")
            assert done.code in (0, 3, 4), done.text
            assert_same(before, self.repo.picture())

    @rule()
    def users_git_collects(self) -> None:
        subprocess.run(
            ["/bin/sh", "-c", "git reflog expire --expire=now --all; git gc -q --prune=now"],
            cwd=self.repo.root,
            env=self.repo.env,
            capture_output=True,
        )

    @rule(keep=st.integers(4, 30))
    def forget_and_prune(self, keep: int) -> None:
        self.product("store", "forget", "--keep-operations", str(keep))
        self.product("store", "prune")
        disk, kept = self.on_disk(), reachable(self.repo.state)
        self.theirs = {oid: label for oid, label in self.theirs.items() if oid in disk or oid in kept}

    @precondition(lambda self: self.steps > 3 and CAN_KILL)
    @rule(
        words=st.sampled_from(
            [
                ("undo", "--yes", "--now"),
                ("redo", "--yes"),
                ("snapshot",),
                ("store", "prune"),
                ("undo", "--yes", "--turn", "t1"),
            ]
        ),
        point=st.builds(Point, st.sampled_from(["write", "rename", "unlink", "mkdir"]), st.booleans(), st.integers(1, 40)),
    )
    def crash(self, words: tuple[str, ...], point: Point) -> None:
        """The command is killed at some system call that writes; then it is run again."""
        inject.kill(Command(words, self.repo.root, self.repo.env), point)
        self.nothing_is_lost()
        for store in stores(self.repo.state):
            fsck(store)
        self.product("recover")
        self.product(*words)

    def teardown(self) -> None:
        if (problem := sys.exception()) is not None:
            # kept here too: when a replay goes another way, hypothesis tells only that it did
            self.problems.append("".join(traceback.format_exception(problem))[-3000:])
        try:
            for store in stores(self.repo.state):
                fsck(store)
            done = self.product("store", "fsck")
            assert done.code == 0 or not stores(self.repo.state), done.text
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def test_random_lives(request: pytest.FixtureRequest) -> None:
    """No random sequence of acts loses a byte of the user's, touches .git by a capture, or leaves the store unsound."""
    steps = LONG_STEPS if request.config.getoption("--long") else STEPS
    phases = [Phase.generate] + ([Phase.shrink] if os.environ.get("SAFETY_TESTS_SHRINK") else [])
    Life.problems.clear()
    try:
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            seed(request.config.getoption("--seed"))(Life),
            settings=settings(
                max_examples=steps // STEPS_A_LIFE,
                stateful_step_count=STEPS_A_LIFE,
                deadline=None,
                database=None,
                phases=phases,
                suppress_health_check=list(HealthCheck),
                print_blob=True,
            ),
        )
    except Flaky as flaky:
        pytest.fail("a replay went another way; what was seen first:\n" + "\n".join(Life.problems[:1]) + str(flaky))
