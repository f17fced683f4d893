"""What a call came to is on disk before any handler sees it: a crash loses no result, and who starts again sees what finished."""

from __future__ import annotations

import json
import os
from pathlib import Path

from safety.runtime.open import open_session
from safety.session import Call, Session
from safety.store.turns import MOST_OF_A_RESULT
from tests.support.repo import NINE_LINES, RepoBuilder

KILLER = """
import os, signal
from safety.net import HookSpec, HookType, ToolSpec

def dies(data, session):
    if os.path.exists(os.path.join(session.root, b"kill")):
        os.kill(os.getpid(), signal.SIGKILL)

TOOL = ToolSpec("killer", "", hooks={"post": HookSpec(HookType.TOOL_EXECUTE_POST, dies, %d)})
"""


def plugin(repo: RepoBuilder, name: str, code: str) -> None:
    """A plugin of the user's, named in the settings."""
    folder = Path(repo.env["XDG_CONFIG_HOME"]) / "git-safety"
    (folder / "plugins").mkdir(parents=True, exist_ok=True)
    (folder / "plugins" / f"{name}.py").write_text(code)
    (folder / "settings.json").write_text(json.dumps({"plugins": [name]}))


def opened(repo: RepoBuilder) -> Session:
    return open_session(os.fsencode(repo.root), repo.session, repo.env)


def test_killed_in_a_post_handler(repo: RepoBuilder) -> None:
    """A handler above the snapshots kills the process: the result is there, the next event goes on, the turn's change is nobody's
    for certain but in the turn, and nothing is lost."""
    plugin(repo, "killer", KILLER % 500)
    repo.hook("turn.pre", prompt="x")
    call = {"call_id": "c1", "tool": "shell", "input": {"command": "./x"}}
    repo.hook("tool.execute.pre", **call)
    repo.write("a.txt", "agent\n")
    repo.write("kill", "")
    done = repo.hook_raw("tool.execute.post", **call, result="it worked \ud83d\ude00")
    repo.remove("kill")

    assert done.code == -9
    kept = opened(repo).finished_calls()
    assert [(one.call_id, one.status, one.result) for one in kept.values()] == [("c1", "ok", "it worked \U0001f600")]
    assert kept["c1"].digest == next(line["digest"] for line in map(json.loads, reversed(audited(repo))) if "digest" in line)

    repo.hook("tool.execute.post", **call, result="it worked")
    repo.hook("turn.post")
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


def test_killed_below_the_snapshots(repo: RepoBuilder) -> None:
    """The snapshot was taken already, so the change is the agent's and the call is not heard as open any more."""
    plugin(repo, "killer", KILLER % 10)
    repo.hook("turn.pre", prompt="x")
    call = {"call_id": "c1", "tool": "write", "input": {"path": "a.txt"}}
    repo.hook("tool.execute.pre", **call)
    repo.write("a.txt", "agent\n")
    repo.write("kill", "")
    assert repo.hook_raw("tool.execute.post", **call, error="disk on fire").code == -9
    repo.remove("kill")

    session = opened(repo)
    assert not session.sessions.load(repo.session).pending
    one = session.finished_calls()["c1"]
    assert (one.status, one.result) == ("error", "disk on fire")
    repo.hook("turn.post")
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


def audited(repo: RepoBuilder) -> list[str]:
    return (opened(repo).place.state / "audit.jsonl").read_text().splitlines()


def test_results_are_cut_and_last_a_turn(repo: RepoBuilder) -> None:
    """A long result keeps its first 32 kB and its length; the next turn begins with none; odd bytes and odd text are no fault."""
    session = opened(repo)
    session.turn_start("x")
    for number, text in enumerate(["ä" * MOST_OF_A_RESULT, "\ud800", "", "\x00\udcff"]):
        call = Call(f"c{number}", "read", {"n": number}, os.fsencode(repo.root), paths=())
        session.pre(call)
        session.post(call, text)
    kept = opened(repo).finished_calls()

    assert list(kept) == ["c0", "c1", "c2", "c3"]
    assert (kept["c0"].result, kept["c0"].bytes) == ("ä" * (MOST_OF_A_RESULT // 2), 2 * MOST_OF_A_RESULT)
    assert [kept[f"c{number}"].result for number in (1, 2, 3)] == ["\ud800", "", "\x00\udcff"]
    assert not session.take_notices()
    session.turn_end()
    assert len(session.finished_calls()) == 4
    session.turn_start("y")
    assert session.finished_calls() == {}


def test_a_torn_line_costs_itself(repo: RepoBuilder) -> None:
    """Killed while it was written: the line is left out, those before and after it are read."""
    session = opened(repo)
    session.turn_start("x")
    call = Call("c", "read", {}, os.fsencode(repo.root), paths=())
    session.post(call, "first")
    (file,) = (session.place.state / "sessions").glob("*.results")
    file.write_bytes(file.read_bytes()[:-20])
    for name in ("d", "e"):
        session.post(Call(name, "read", {}, os.fsencode(repo.root), paths=()), name)
    assert list(session.finished_calls()) == ["d", "e"]


def test_a_result_that_cannot_be_kept_is_told(repo: RepoBuilder) -> None:
    """The call goes on, its change is recorded, the user hears of it."""
    session = opened(repo)
    session.turn_start("x")
    file = session.sessions.path(session.id).with_suffix(".results")
    file.mkdir()
    call = Call("c", "write", {}, os.fsencode(repo.root), paths=(b"a.txt",))
    session.pre(call)
    repo.write("a.txt", "agent\n")
    session.post(call, "fine")
    assert [text for text in session.take_notices() if "could not be kept" in text]
    file.rmdir()
    session.turn_end()
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


def test_purge_forgets_results(repo: RepoBuilder) -> None:
    """What a tool read aloud of a purged file is gone with it."""
    repo.hook("turn.pre", prompt="x")
    with repo.call(tool="read", input={"path": "secret"}):
        pass
    repo.write("secret", "s3cr3t\n")
    repo.must("snapshot")
    repo.remove("secret")
    repo.ledger.forget()
    assert list((opened(repo).place.state / "sessions").glob("*.results"))
    repo.must("purge", "--yes", "secret")
    assert not list((opened(repo).place.state / "sessions").glob("*.results"))
