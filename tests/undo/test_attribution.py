"""Whose change is it: calls without an end, several agents at once, changes between calls, tools that only read."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from safety.runtime.open import open_session
from safety.session import Call
from tests.support.process import PROJECT
from tests.support.repo import NINE_LINES, RepoBuilder


def shell(call_id: str, command: str = "./agent-step") -> dict[str, object]:
    return {"call_id": call_id, "tool": "shell", "input": {"command": command}}


@pytest.mark.parametrize("next_session", ["session-1", "another"])
def test_call_without_an_end_takes_no_later_change(repo: RepoBuilder, next_session: str) -> None:
    """What happened after the agent died belongs to nobody's undo. Rule: only a call's own POST ends what is the agent's."""
    repo.hook("turn.pre", prompt="die")
    repo.hook("tool.execute.pre", **shell("c1"))
    repo.write("a.txt", "half of the agent's work\n")
    with repo.user():
        repo.write("b.txt", "a day of work\n")
        repo.write("new", "a day of work\n")
    repo.agent_writes("src/app.py", "agent\n", session=next_session)

    repo.undo()
    for _ in range(2):
        repo.run("undo", "--json")
    repo.run("undo", "--json", "--now", "t1")

    assert (repo.read("b.txt"), repo.read("new")) == ("a day of work\n", "a day of work\n")
    assert repo.read("src/app.py") == "print('app')\n"


def test_unattributed_change_can_be_included(repo: RepoBuilder) -> None:
    """What a dead call left is undone when asked for. Rule: unattributed only with the switch or by path."""
    with repo.turn():
        repo.hook("tool.execute.pre", **shell("c1"))
        repo.write("a.txt", "agent\n")
        with repo.call():
            repo.write("b.txt", "agent\n")

    first = repo.undo("--dry-run")
    assert "a.txt" not in first.paths("restored")
    repo.undo("--include-unattributed")

    assert (repo.read("a.txt"), repo.read("b.txt")) == (NINE_LINES, "b\n")


def test_capture_during_a_call_does_not_make_it_the_users(repo: RepoBuilder) -> None:
    """A snapshot taken by hand while a call is open leaves the call's work the agent's.

    Rule: a mixed checkpoint while calls are open.
    """
    with repo.turn(), repo.call():
        repo.write("a.txt", "agent\n")
        repo.must("snapshot")
        repo.must("status")
        repo.write("new", "agent\n")

    repo.undo()

    assert (repo.read("a.txt"), repo.exists("new")) == (NINE_LINES, False)


def test_two_agents_overlapping_with_declared_paths(repo: RepoBuilder) -> None:
    """Each of two overlapping turns is undone alone. Rule: at the last POST each path goes to its only declarer."""
    one = {"tool": "write", "input": {"path": str(repo.path("a.txt"))}, "session": "one"}
    two = {"tool": "write", "input": {"path": str(repo.path("b.txt"))}, "session": "two"}
    with repo.turn(session="one"), repo.call(**one), repo.turn(session="two"), repo.call(**two):  # type: ignore[arg-type]
        repo.write("b.txt", "two\n")
        repo.write("a.txt", "one\n")

    repo.must("undo", "--json", "--turn", "t1")

    assert (repo.read("a.txt"), repo.read("b.txt")) == (NINE_LINES, "two\n")


def test_declared_path_beside_a_long_shell_call(repo: RepoBuilder) -> None:
    """The writer's file is the writer's, all else the shell's.

    Rule: only declarer first, then the only call of unknown effect.
    """
    with repo.turn(session="shell"), repo.call(session="shell"):
        repo.write("a.txt", "shell\n")
        repo.agent_writes("b.txt", "writer\n", session="writer")
        repo.write("src/app.py", "shell\n")

    repo.must("undo", "--json", "--turn", "t1", "--now")

    assert (repo.read("a.txt"), repo.read("src/app.py"), repo.read("b.txt")) == (NINE_LINES, "print('app')\n", "writer\n")


def test_path_of_two_unknown_calls_is_not_undone_by_one(repo: RepoBuilder) -> None:
    """What either of two shell calls may have done is shared, and said to be: undo of one asks or leaves it. Rule: otherwise shared."""
    with repo.turn(session="one"), repo.call(session="one"), repo.turn(session="two"), repo.call(session="two"):
        repo.write("a.txt", "one or two\n")

    said = repo.must("log").out
    assert "shared with t1" in said and "shared with t2" in said and "no change" not in said
    assert "while t1 and t2 both ran" in said
    assert "shared: t1 and t2 both ran" in repo.must("show", "t1").out
    asked = repo.must("undo", code=4).out
    assert "1 path changed while t1 and t2 both ran" in asked and "died" not in asked
    for turn in ("t1", "t2"):
        done = repo.must("undo", turn, code=3)
        assert done.out.startswith("Nothing undone of") and "changed while t1 and t2 both ran" in done.out
        assert f"git safety undo {turn} --include-unattributed" in done.out and "no call's end" not in done.text

    assert repo.read("a.txt") == "one or two\n"
    repo.undo("t2", "--include-unattributed")
    assert repo.read("a.txt") == NINE_LINES


def test_declared_call_owns_its_paths_only(repo: RepoBuilder) -> None:
    """The user's save elsewhere during a write call is not the agent's.

    Rule: a declared-path call owns its declared paths only.
    """
    with repo.agent(tool="write", input={"path": str(repo.path("a.txt"))}):
        repo.write("a.txt", "agent\n")
        repo.write("b.txt", "user\n")
        repo.write("new", "user\n")

    repo.undo()

    assert (repo.read("a.txt"), repo.read("b.txt"), repo.read("new")) == (NINE_LINES, "user\n", "user\n")


def test_older_user_change_before_a_declared_call(repo: RepoBuilder) -> None:
    """A user's change that a declared call never looked at is not the next shell call's.

    Rule: a scan call scans before the tool runs.
    """
    repo.agent_runs("echo agent >src/app.py")
    with repo.turn():
        with repo.user():
            repo.write("b.txt", "user\n")
        with repo.call(tool="write", input={"path": str(repo.path("a.txt"))}):
            repo.write("a.txt", "agent\n")
        with repo.call():
            repo.write("new", "agent\n")

    repo.undo()

    assert (repo.read("a.txt"), repo.read("b.txt"), repo.exists("new")) == (NINE_LINES, "user\n", False)


def test_change_between_calls_is_nobodys(repo: RepoBuilder) -> None:
    """What a formatter or the user changes between two calls of a turn stays.

    Rule: inside a turn, between calls: unattributed.
    """
    with repo.turn():
        with repo.call():
            repo.write("a.txt", "agent\n")
        repo.write("b.txt", "somebody\n")
        with repo.call():
            repo.write("new", "agent\n")

    repo.undo()

    assert (repo.read("a.txt"), repo.read("b.txt"), repo.exists("new")) == (NINE_LINES, "somebody\n", False)


def test_undo_names_what_it_leaves_between_calls(repo: RepoBuilder) -> None:
    """Neither a file nor a branch that appeared between two calls is passed over in silence, and both can be asked for."""
    with repo.turn():
        with repo.call():
            repo.write("a.txt", "agent\n")
        repo.write("b.txt", "somebody\n")
        repo.git("branch", "somebodys")
        with repo.call():
            repo.write("new", "agent\n")

    told = " ".join(repo.undo().report["notices"])
    assert "no call's end explains it" in told and "b.txt" in told and "somebodys made at" in told
    assert repo.git("branch", "--list", "somebodys")

    repo.undo("t1", "--include-unattributed")
    assert (repo.read("b.txt"), repo.git("branch", "--list", "somebodys")) == ("b\n", "")


def test_change_after_the_last_call_of_a_turn_is_nobodys(repo: RepoBuilder) -> None:
    """A write after the last POST is not undone. Rule: inside a turn, between calls: unattributed."""
    with repo.turn():
        with repo.call():
            repo.write("a.txt", "agent\n")
        repo.write("b.txt", "somebody\n")

    repo.undo()

    assert (repo.read("a.txt"), repo.read("b.txt")) == (NINE_LINES, "somebody\n")


def test_user_change_between_turns(repo: RepoBuilder) -> None:
    """What the user changed between two turns stays through undo of both.

    Rule: outside turns what a capture finds is the user's.
    """
    repo.agent_runs("echo 1 >a.txt")
    with repo.user():
        repo.write("b.txt", "user\n")
    repo.agent_runs("echo 2 >a.txt")

    repo.undo()
    assert repo.read("a.txt") == "1\n"
    repo.undo()

    assert (repo.read("a.txt"), repo.read("b.txt")) == (NINE_LINES, "user\n")


def test_reading_command_owns_nothing(repo: RepoBuilder) -> None:
    """A change seen around a command that only reads is not undone. Rule: unexplained is unattributed."""
    with repo.turn():
        with repo.call("cat a.txt"):
            repo.write("b.txt", "user, meanwhile\n")
        with repo.call():
            repo.write("new", "agent\n")

    repo.undo()

    assert (repo.read("b.txt"), repo.exists("new")) == ("user, meanwhile\n", False)


def test_turn_that_changed_nothing_is_not_what_undo_takes(repo: RepoBuilder) -> None:
    """Undo goes past turns without change to the newest with one. Rule: the newest turn that changed something."""
    repo.agent_runs("echo agent >a.txt")
    repo.agent_runs("cat a.txt >/dev/null")

    done = repo.undo()

    assert repo.read("a.txt") == NINE_LINES
    assert [title["handle"] for title in done.report["titles"]] == ["t1"]


def test_newest_of_another_session_is_asked_about(repo: RepoBuilder) -> None:
    """If the newest change is another session's than the newest turn, nobody is surprised: exit 4 and the command. Rule: ask."""
    repo.agent_runs("echo agent >a.txt", session="one")
    repo.agent_runs("true", session="two")

    done = repo.run("undo")

    assert done.code == 4
    assert "git safety undo" in done.text
    assert repo.read("a.txt") == "agent\n"


def test_running_turn_is_asked_about(repo: RepoBuilder) -> None:
    """A turn that still runs is undone only with --now. Rule: still running: ask, else exit 4 with the exact command."""
    repo.hook("turn.pre", prompt="long")
    with repo.call():
        repo.write("a.txt", "agent\n")

    done = repo.run("undo")

    assert done.code == 4
    assert "--now" in done.text
    repo.undo("--now")
    assert repo.read("a.txt") == NINE_LINES


def test_events_are_idempotent(repo: RepoBuilder) -> None:
    """Twice the same event is once. Rule: de-duplicated by session, event and call id; turn.post may come twice."""
    repo.hook("turn.pre", prompt="x")
    for event in ("tool.execute.pre", "tool.execute.pre"):
        repo.hook(event, **shell("c1"))
    repo.write("a.txt", "agent\n")
    for event in ("tool.execute.post", "tool.execute.post"):
        repo.hook(event, **shell("c1"), result="")
    repo.hook("turn.post")
    repo.hook("turn.post")

    repo.undo()

    assert repo.read("a.txt") == NINE_LINES


def test_first_event_may_be_a_tool(repo: RepoBuilder) -> None:
    """A harness without session and turn events is covered. Rule: the first tool event opens a turn."""
    repo.hook("tool.execute.pre", **shell("c1"))
    repo.write("a.txt", "agent\n")
    repo.hook("tool.execute.post", **shell("c1"), result="")

    repo.run("undo", "--json", "--now")

    assert repo.read("a.txt") == NINE_LINES


def test_failed_tool_is_recorded_all_the_same(repo: RepoBuilder) -> None:
    """A tool that raised may have changed files. Rule: POST fires with the error."""
    repo.hook("turn.pre", prompt="x")
    repo.hook("tool.execute.pre", **shell("c1"))
    repo.write("a.txt", "agent\n")
    repo.hook("tool.execute.post", **shell("c1"), error="exit 1")
    repo.hook("turn.post")

    repo.undo()

    assert repo.read("a.txt") == NINE_LINES


def test_undo_typed_in_the_conversation(repo: RepoBuilder) -> None:
    """/undo and /redo in a prompt are carried out and answered with handled. Rule: commands in turn.pre."""
    repo.agent_runs("echo agent >a.txt")

    answer = repo.hook("turn.pre", prompt="/undo")

    assert (answer.get("handled"), repo.read("a.txt")) == (True, NINE_LINES)
    answer = repo.hook("turn.pre", prompt="/redo")
    assert (answer.get("handled"), repo.read("a.txt")) == (True, "agent\n")


def test_a_first_look_outside_the_workspace_is_no_change(repo: RepoBuilder, tmp_path: Path) -> None:
    """Of files outside that a later call names, and the folders above them, undo and show do not say that they changed meanwhile."""
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    for path in (one, other):
        path.write_text("as it was\n")
    with repo.turn():
        with repo.call():
            repo.write("a.txt", "agent\n")
        with repo.call(tool="write", input={"path": str(one)}):
            one.write_text("agent\n")
        with repo.call(tool="write", input={"path": str(other)}):
            pass
    assert "meanwhile" not in repo.must("show", "t1").out
    assert "left alone" not in repo.must("undo").out
    assert one.read_text() == other.read_text() == "as it was\n"


def test_declared_path_outside_the_workspace(repo: RepoBuilder) -> None:
    """A declared path outside is undone too, ignored or not. Rule: declared paths outside and ignored are covered."""
    outside = repo.root.parent / "elsewhere/conf"
    outside.parent.mkdir()
    outside.write_text("mine\n")
    repo.watched.append(outside.parent)
    with repo.agent(tool="write", input={"path": str(outside), "content": "agent\n"}, paths=[str(outside)]):
        outside.write_text("agent\n")

    repo.undo()

    assert outside.read_text() == "mine\n"


def test_declared_relative_path_from_a_subfolder(repo: RepoBuilder) -> None:
    """A relative path is relative to the call's cwd. Rule: the workspace is found from cwd."""
    with repo.agent(tool="write", input={"path": "app.py", "content": "agent"}, cwd=str(repo.path("src"))):
        repo.write("src/app.py", "agent")

    repo.undo(cwd=repo.path("src"))

    assert repo.read("src/app.py") == "print('app')\n"


def test_run_is_one_turn(repo: RepoBuilder) -> None:
    """A protected command keeps its output and exit code and is undone as one turn.

    Rule: run closes a turn when the command ends.
    """
    before = repo.picture()

    done = repo.run("run", "--", "/bin/sh", "-c", "echo out; echo err >&2; echo agent >a.txt; rm -rf src; exit 7")

    assert (done.code, done.out) == (7, "out\n")
    assert done.err.startswith("err\n")
    repo.undo()
    repo.assert_is(before)


def test_run_passes_signals_on(repo: RepoBuilder) -> None:
    """A command ended by a signal gives 128 + n. Rule: run gives the command's own code."""
    assert repo.run("run", "--", "/bin/sh", "-c", "kill -TERM $$").code == 128 + signal.SIGTERM
    assert repo.run("run", "--", "/nonexistent/command").code == 127
    assert repo.run("run", "--", str(repo.path("b.txt"))).code == 126


def test_interrupted_run_ends_with_its_command(repo: RepoBuilder) -> None:
    """SIGINT to the terminal's group reaches the command, whose doing is still undone. Rule: the command keeps its signals."""
    env = {**repo.env, "PYTHONPATH": str(PROJECT)}
    script = "trap 'echo caught >>b.txt; exit 9' INT; echo agent >a.txt; echo ready; while :; do sleep 0.05; done"
    running = subprocess.Popen(
        [sys.executable, "-m", "safety.terminal", "run", "--", "/bin/sh", "-c", script],
        cwd=repo.root,
        env=env,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == b"ready\n"
    time.sleep(0.1)
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(timeout=20) == 9
    running.stdout.close()

    repo.undo()

    assert (repo.read("a.txt"), repo.read("b.txt")) == (NINE_LINES, "b\n")


@pytest.mark.parametrize("hooks_inside", [False, True])
def test_nested_protection(repo: RepoBuilder, hooks_inside: bool) -> None:
    """Under run, an inner record wins; one undo takes the whole back or the inner turn alone.

    Rule: the outer keeps only the rest.
    """
    script = Path(repo.env["HOME"], "agent.py")
    script.write_text(
        "import json, os, subprocess, sys\n"
        "def hook(event, **more):\n"
        "    payload = json.dumps({'event': event, 'session_id': 'inner', 'cwd': os.getcwd(), **more}).encode()\n"
        "    subprocess.run([sys.executable, '-m', 'safety.terminal', 'hook', '--agent', 'generic'], input=payload, check=True,\n"
        "        stdout=subprocess.DEVNULL)\n"
        "call = {'call_id': 'c1', 'tool': 'shell', 'input': {'command': './x'}}\n"
        f"inside = {hooks_inside}\n"
        "if inside:\n"
        "    hook('turn.pre', prompt='p'); hook('tool.execute.pre', **call)\n"
        "open('a.txt', 'w').write('agent')\n"
        "if inside:\n"
        "    hook('tool.execute.post', **call, result=''); hook('turn.post')\n"
    )
    before = repo.picture()

    done = repo.run("run", "--", sys.executable, str(script), env={"PYTHONPATH": str(PROJECT)})

    assert done.code == 0, done.text
    repo.undo()
    repo.assert_is(before)


RUN = shlex.join([sys.executable, "-m", "safety.terminal", "run", "--", "/bin/sh", "-c"])


def within(script: str) -> str:
    """A line of a shell script that runs the script under a protection of its own."""
    return f"{RUN} {shlex.quote(script)}"


def changed(repo: RepoBuilder, turn: str) -> list[str]:
    return sorted(row["path"] for row in repo.must("show", turn, "--json").report["changes"])


@pytest.mark.parametrize(
    ("script", "turns"),
    [
        (f"echo o >>a.txt; {within('echo i >b.txt; git commit -qam i')}; echo o >new", {"t1": ["a.txt", "new"], "t2": ["b.txt"]}),
        (f"echo >1; {within('echo >2')}; echo >3; {within('echo >4')}; echo >5", {"t1": ["1", "3", "5"], "t2": ["2"], "t3": ["4"]}),
        (within(f"echo >1; {within('echo >2')}; echo >3") + "; echo >4", {"t1": ["4"], "t2": ["1", "3"], "t3": ["2"]}),
        (within("echo >1; kill -KILL $PPID") + " || true; echo >2", {"t1": ["1", "2"]}),
    ],
    ids=["one", "two", "three deep", "killed"],
)  # fmt: skip
def test_outer_run_keeps_what_no_inner_one_explains(repo: RepoBuilder, script: str, turns: dict[str, list[str]]) -> None:
    """A run below a run owns what it did itself, the outer one the rest; undo after undo takes all of it back.

    Rule: the outer keeps what no inner record explains.
    """
    before = repo.picture()
    repo.must("run", "--", "/bin/sh", "-c", script, env={"PYTHONPATH": str(PROJECT)})

    assert {turn: changed(repo, turn) for turn in turns} == turns
    for _ in turns:
        repo.undo()
    repo.assert_is(before)


def test_hooks_below_a_run_leave_it_the_rest(repo: RepoBuilder) -> None:
    """Before, between and after the turns of an agent below it the run owns what changes; between two calls of a turn nobody does."""
    outer = open_session(os.fsencode(repo.root), "run-1", repo.env)
    call = Call("run-1.1", "run", {"command": "agent"}, os.fsencode(repo.root))
    outer.pre(call)
    repo.env["GIT_SAFETY_RUN"] = outer.id
    repo.write("before", "o\n")
    with repo.turn():
        with repo.call():
            repo.write("inside", "i\n")
        repo.write("gap", "nobody\n")
        with repo.call():
            repo.write("inside2", "i\n")
    repo.write("between", "o\n")
    repo.agent_runs("echo i >inside3")
    repo.write("after", "o\n")
    outer.post(call)
    outer.end(scan=False)
    outer.close()

    assert outer.last_turn_summary() is None  # of a finished run nothing but the log stays
    removed = [repo.undo(turn).paths("removed") for turn in ("t3", "t2", "t1")]
    assert removed == [["inside3"], ["inside", "inside2"], ["after", "before", "between"]]
    assert repo.exists("gap")


def test_runs_at_once_share_whatever_runs_below_one(repo: RepoBuilder) -> None:
    """A run that was started below another shares with a third beside both, as the other does. Rule: overlapping calls share.

    While its turn is open the outer one does not cut its own.
    """
    root = os.fsencode(repo.root)
    below = {**repo.env, "GIT_SAFETY_RUN": "run-1"}
    one, two, three = (open_session(root, f"run-{n}", below if n == 3 else repo.env) for n in (1, 2, 3))
    calls = {session.id: Call(f"{session.id}.1", "run", {"command": "x"}, root) for session in (one, two, three)}
    one.pre(calls[one.id])
    two.pre(calls[two.id])
    repo.write("1", "one or two\n")
    three.pre(calls[three.id])
    assert (one.is_taken_over, two.is_taken_over) == (True, False)
    repo.write("2", "two or three\n")
    for session in (three, one, two):
        session.post(calls[session.id])
        session.end(scan=False)
        session.close()
        repo.write("3", "one or two\n")
        assert not one.is_taken_over

    for turn in ("t3", "t2", "t1"):
        repo.run("undo", turn, "--json")
        assert repo.exists("1") and repo.exists("2") and repo.exists("3")
    repo.must("undo", "t1", "--include-unattributed", "--now")
    assert (repo.exists("1"), repo.exists("2"), repo.exists("3")) == (False, True, False)


def test_run_that_dies_after_an_inner_one_owns_nothing(repo: RepoBuilder) -> None:
    """What it did before the inner one began is nobody's for certain then. Rule: a call without an end owns nothing."""
    script = f"echo o >1; {within('echo i >2')}; echo o >3; kill -KILL $PPID"
    repo.run("run", "--", "/bin/sh", "-c", script, env={"PYTHONPATH": str(PROJECT)})

    repo.undo("t2")
    assert (repo.exists("1"), repo.exists("2"), repo.exists("3")) == (True, False, True)
    asked = repo.run("undo")
    assert asked.code == 4 and "--include-unattributed" in asked.text
    repo.must("undo", "t1", "--include-unattributed", "--now")
    assert not repo.exists("1") and not repo.exists("3")


def test_hook_answers_errors_in_form(repo: RepoBuilder) -> None:
    """A bad payload gives exit 1 with a code and a sentence, never a traceback. Rule: exit codes of the hook."""
    for payload in (
        b"",
        b"{",
        b"[]",
        b'{"event": "x"}',
        json.dumps({"event": "nonsense", "session_id": "s", "cwd": "/"}).encode(),
    ):
        done = repo.run("hook", "--agent", "generic", stdin=payload)
        assert (done.code, bool(done.err.strip()), "Traceback" in done.text) == (1, True, False), (payload, done.text)
    assert "unknown-event" in done.text


def test_a_run_has_no_gap_between_bursts(repo: RepoBuilder) -> None:
    """What a running command writes while one burst ends and the next begins is its own, not nobody's.

    Rule: a call that follows at once takes over the state its forerunner ended with.
    """
    session = open_session(os.fsencode(repo.root), "run-1", repo.env)
    first, second, third = (Call(f"run-1.{n}", "run", {"command": "x"}, os.fsencode(repo.root)) for n in (1, 2, 3))
    session.pre(first)
    session.post(first)
    repo.sh("echo gap >gap; git reflog expire --expire=now --all")
    session.capture_before(second, scan=False)
    session.post(second)
    repo.write("late", "late\n")
    session.open_turn("x", scan=False)
    session.capture_before(third, scan=False)
    session.post(third)
    session.end(scan=False)
    session.close()

    repo.undo("t2")
    assert not repo.exists("late")
    repo.undo("t1")
    assert not repo.exists("gap")
    actors = {row["actor"] for row in repo.must("log", "--json").report["rows"]}
    assert "unattributed" not in actors
