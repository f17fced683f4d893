"""The generic hook protocol, as a harness speaks it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from safety.adapters.calls import declared_paths
from safety.adapters.wire import generic
from safety.adapters.wire.generic import BadEvent, parse
from tests.support.repo import NINE_LINES, RepoBuilder
from tests.tools.turn_ends import settings

CALL = {"call_id": "c1", "tool": "shell", "input": {"command": "./x"}}


def event(**fields: Any) -> bytes:
    return json.dumps({"event": "turn.pre", "session_id": "s", "cwd": "/tmp", **fields}).encode()


# -- events and answers --------------------------------------------------------------------------------------------------


def test_a_whole_conversation(repo: RepoBuilder) -> None:
    """Each event is answered in form: a decision where one is due, empty lists left out, exit code 0, standard error silent."""
    expected: dict[str, dict[str, Any]] = {
        "session.start": {},
        "turn.pre": {},
        "tool.execute.pre": {"decision": "allow"},
        "tool.execute.post": {},
        "cwd.changed": {},
        "turn.post": {"decision": "stop"},
        "session.end": {},
    }
    fields: dict[str, dict[str, Any]] = {
        "turn.pre": {"prompt": "do it"},
        "tool.execute.pre": CALL,
        "tool.execute.post": {**CALL, "result": "fine"},
        "cwd.changed": {"old_cwd": str(repo.root), "new_cwd": str(repo.path("src"))},
    }
    for name, answer in expected.items():
        done = repo.hook_raw(name, agent={"name": "Tester", "model": "m-1", "more": 1}, later=[1], **fields.get(name, {}))
        assert (done.code, json.loads(done.out), done.err) == (0, answer, "")


@pytest.mark.parametrize("session_id", ["s9", "run-9", "run-0123456789ab", "@run-9"])
def test_a_session_id_is_any_text(repo: RepoBuilder, session_id: str) -> None:
    """What a harness calls its conversation decides nothing: the checks stand at its turn's end, and it is no command of ``run``."""
    settings(repo, gate={"command": ["false"]})
    repo.session = session_id
    repo.hook("turn.pre", prompt="x")
    with repo.call():
        repo.write("a.txt", "agent\n")
    assert repo.hook_raw("turn.post").code == 2
    repo.hook("session.end")

    title = json.loads(repo.must("show", "t1", "--json").out)["title"]
    assert (title["session"], title["command"]) == (session_id, False)
    undone = repo.must("undo", "--session", session_id)
    assert "created by the command" not in undone.out and repo.read("a.txt") == NINE_LINES


def test_declared_call_captures_its_paths_alone(repo: RepoBuilder) -> None:
    """A write tool's path is declared: the change of another file in the meantime is not the agent's."""
    repo.hook("turn.pre", prompt="x")
    call = {"call_id": "w", "tool": "write", "input": {"path": "src/app.py", "content": "agent"}}
    repo.hook("tool.execute.pre", **call)
    repo.write("src/app.py", "agent")
    repo.write("b.txt", "user\n")
    repo.hook("tool.execute.post", **call)
    repo.hook("turn.post")

    repo.undo()

    assert (repo.read("src/app.py"), repo.read("b.txt")) == ("print('app')\n", "user\n")


def test_path_through_a_link_is_found(repo: RepoBuilder) -> None:
    """A cwd or path that runs through a symbolic link, or back by .., declares the file that is really written."""
    repo.path("link").symlink_to("src/lib")
    other = repo.root.parent / "door"
    other.symlink_to(repo.root)
    for number, (cwd, path) in enumerate(
        [(other, "src/app.py"), (repo.root, "link/../app.py"), (repo.path("link"), "../../b.txt")]
    ):
        call = {"call_id": f"l{number}", "tool": "edit", "input": {"file_path": path}, "cwd": str(cwd)}
        name = os.path.basename(path)
        real = "src/app.py" if name == "app.py" else "b.txt"
        before = repo.read(real)
        repo.hook("turn.pre", prompt="x", cwd=str(cwd))
        repo.hook("tool.execute.pre", **call)
        repo.write(real, f"agent {number}")
        repo.hook("tool.execute.post", **call)
        repo.hook("turn.post", cwd=str(cwd))
        repo.undo()
        assert repo.read(real) == before


def test_refusal_gives_code_2_and_its_reason(repo: RepoBuilder) -> None:
    """A state folder that cannot be used, with ``fail_closed``: the call is denied, in the answer and on standard error."""
    settings = Path(repo.env["XDG_CONFIG_HOME"], "git-safety/settings.json")
    settings.parent.mkdir(parents=True)
    broken = Path(repo.env["HOME"], "file")
    broken.write_text("")
    repo.env["GIT_SAFETY_HOME"] = str(broken)

    open_answer = repo.hook_raw("tool.execute.pre", **CALL)
    settings.write_text('{"fail_closed": true}')
    closed_answer = repo.hook_raw("tool.execute.pre", **CALL)
    end = repo.hook_raw("turn.post")
    repo.env["GIT_SAFETY_HOME"] = str(repo.state)

    assert (open_answer.code, json.loads(open_answer.out)["decision"]) == (1, "allow")
    assert (closed_answer.code, json.loads(closed_answer.out)["decision"]) == (1, "deny")
    assert json.loads(closed_answer.out)["reason"]
    assert (end.code, json.loads(end.out)["decision"]) == (1, "stop")
    for done in (open_answer, closed_answer, end):
        assert done.err.startswith("git-safety: state-unusable: ")
        assert done.err.count("\n") == 1
        assert "not protected" in json.loads(done.out)["notices"][0]


# -- commands in a prompt ------------------------------------------------------------------------------------------------


def test_undo_and_redo_in_a_prompt(repo: RepoBuilder) -> None:
    """/undo and /redo are carried out; the user is told what happened, the model in one line, and the model is not called."""
    repo.agent_runs("echo agent >a.txt")

    answer = repo.hook("turn.pre", prompt=" /undo ")

    assert (answer["handled"], repo.read("a.txt")) == (True, NINE_LINES)
    assert "a.txt" in "\n".join(answer["notices"])
    assert len(answer["messages"]) == 1 and "t1" in answer["messages"][0]
    answer = repo.hook("turn.pre", prompt="/redo")
    assert (answer["handled"], repo.read("a.txt")) == (True, "agent\n")


def test_undo_in_a_prompt_sees_its_own_conversation(repo: RepoBuilder) -> None:
    """Another conversation's newer turn is left alone."""
    repo.agent_runs("echo mine >a.txt", session="one")
    repo.agent_runs("echo other >b.txt", session="two")
    repo.session = "one"

    repo.hook("turn.pre", prompt="/undo")

    assert (repo.read("a.txt"), repo.read("b.txt")) == (NINE_LINES, "other\n")
    answer = repo.hook("turn.pre", prompt="/undo")
    assert (answer["handled"], repo.read("b.txt")) == (True, "other\n")
    assert "messages" not in answer


def test_undo_after_a_turn_without_an_end(repo: RepoBuilder) -> None:
    """A harness that never sends turn.post can have its newest turn undone too."""
    repo.hook("turn.pre", prompt="x")
    with repo.call():
        repo.write("a.txt", "agent\n")

    repo.hook("turn.pre", prompt="/undo")

    assert repo.read("a.txt") == NINE_LINES


def test_wrong_and_coming_commands_are_answered(repo: RepoBuilder) -> None:
    """A command with an argument that makes no sense, and one that is still to come, tell so and are handled."""
    for prompt, word in [
        ("/undo t99", "t99"),
        ("/undo --force", "typed"),
        ("/undo a b", "typed"),
        ("/restore a.txt", "does not exist yet"),
    ]:
        answer = repo.hook("turn.pre", prompt=prompt)
        assert answer["handled"] is True
        assert word in answer["notices"][0], answer


def test_other_prompts_are_prompts(repo: RepoBuilder) -> None:
    """A path or a foreign command at the start of a prompt is no command of ours."""
    for prompt in ("/etc/hosts is wrong", "/model opus", "undo it", "/undone", "", "/"):
        assert "handled" not in repo.hook("turn.pre", prompt=prompt)


def test_snapshots_in_a_prompt(repo: RepoBuilder) -> None:
    """/snapshots lists what could be undone, and what the user did between."""
    repo.agent_runs("echo agent >a.txt")
    with repo.agent():
        pass
    with repo.user():
        repo.write("b.txt", "mine\n")
    repo.agent_runs("echo agent >a.txt; echo agent >c.txt")

    answer = repo.hook("turn.pre", prompt="/snapshots")

    assert answer["handled"] is True
    rows = [row.partition("  ")[2] for row in answer["notices"][0].splitlines()]
    assert [row for row in rows if "first contact" not in row] == [
        "an agent: do it, 1 file", "you, 1 file", "an agent: do it, no change", "an agent: do it, 1 file",
    ]  # fmt: skip


# -- what is no event ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "bad-json"),
        (b"{", "bad-json"),
        (b"[]", "bad-json"),
        (b"null", "bad-json"),
        (b"\xff\xfe{}", "bad-json"),
        (b"[" * 100_000, "bad-json"),
        (b'{"event": ' * 50_000, "bad-json"),
        (b"{}", "missing-field"),
        (event(event=None), "missing-field"),
        (event(event="nonsense"), "unknown-event"),
        (event(event=["turn.pre"]), "bad-field"),
        (event(session_id=""), "missing-field"),
        (event(session_id=7), "bad-field"),
        (event(cwd=None), "missing-field"),
        (event(cwd="src"), "bad-field"),
        (event(cwd="/a\0b"), "bad-field"),
        (event(cwd="/a\ud800"), "bad-field"),
        (event(prompt=["x"]), "bad-field"),
        (event(agent="Tester"), "bad-field"),
        (event(agent={"name": 1}), "bad-field"),
        (event(event="tool.execute.pre"), "missing-field"),
        (event(event="tool.execute.pre", tool="shell"), "missing-field"),
        (event(event="tool.execute.pre", call_id="c"), "missing-field"),
        (event(event="tool.execute.pre", **{**CALL, "input": "ls"}), "bad-field"),
        (event(event="tool.execute.pre", **CALL, paths="a"), "bad-field"),
        (event(event="tool.execute.pre", **CALL, paths=["a", 1]), "bad-field"),
        (event(event="tool.execute.pre", **CALL, paths=["a\0"]), "bad-field"),
        (event(event="tool.execute.post", **CALL, error=True), "bad-field"),
        (event(event="cwd.changed", new_cwd="/tmp"), "missing-field"),
        (event(event="cwd.changed", old_cwd="/tmp", new_cwd="x"), "bad-field"),
    ],
)
def test_bad_input_is_answered_with_its_code(env: dict[str, str], raw: bytes, code: str) -> None:
    """Whatever comes in, the answer is JSON with a notice, exit code 1, and one line with a code and a sentence."""
    answer = generic.respond(raw, env)

    assert (answer.code, answer.said.partition(":")[0]) == (1, code)
    assert len(answer.said.partition(": ")[2]) > 10
    assert json.loads(json.dumps(answer.body))["notices"]
    assert not Path(env["GIT_SAFETY_HOME"]).exists()


def test_bad_input_names_the_decision_it_can(env: dict[str, str]) -> None:
    """A bad tool event still gets a decision; with ``fail_closed`` an event nobody can read is refused."""
    assert generic.respond(event(event="tool.execute.pre"), env).body["decision"] == "allow"
    assert generic.respond(event(event="turn.post", cwd="x"), env).body["decision"] == "stop"
    assert "decision" not in generic.respond(b"{", env).body
    settings = Path(env["XDG_CONFIG_HOME"], "git-safety/settings.json")
    settings.parent.mkdir(parents=True)
    settings.write_text('{"fail_closed": true}')
    assert generic.respond(event(event="tool.execute.pre"), env).body["decision"] == "deny"
    assert generic.respond(b"{", env).body["decision"] == "deny"


def test_input_beyond_the_limit_is_refused(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An event too large to be one is not parsed; one just below is."""
    monkeypatch.setattr(generic, "MAX_INPUT_BYTES", 1000)
    assert generic.respond(event(prompt="x" * 1000), env).said.startswith("input-too-large")
    with pytest.raises(BadEvent):
        parse(event(prompt="x" * 1000), env)
    assert parse(event(prompt="x" * 800), env).prompt == "x" * 800


def test_bad_input_through_the_door(repo: RepoBuilder) -> None:
    """From outside: JSON on standard output, one line on standard error, no traceback."""
    done = repo.run("hook", "--agent", "generic", stdin=b"{nonsense")

    assert done.code == 1
    assert json.loads(done.out)["notices"]
    assert done.err.startswith("git-safety: bad-json: ")
    assert done.err.count("\n") == 1


def test_a_fault_of_ours_is_an_answer_too(repo: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody expected gives an answer in form and code 1; the traceback is in the log, not on standard error."""

    def broken(*words: object) -> generic.Answer:
        raise RuntimeError("boom")

    monkeypatch.setattr(generic, "_EVENTS", {**generic._EVENTS, "tool.execute.pre": broken})
    if os.environ.get("SAFETY_TESTS_SPAWN") == "1":
        pytest.skip("a spawned process does not know the fault")

    done = repo.hook_raw("tool.execute.pre", **CALL)

    assert (done.code, json.loads(done.out)["decision"]) == (1, "allow")
    assert "internal-error: RuntimeError: boom" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in (repo.state / "errors.log").read_text()


def test_vanished_cwd(repo: RepoBuilder) -> None:
    """A cwd that was deleted still finds its workspace: the call of a tool that deletes it is recorded and undone."""
    before = repo.picture()
    here = str(repo.path("src/lib"))
    repo.hook("turn.pre", prompt="x", cwd=here)
    repo.hook("tool.execute.pre", **CALL, cwd=here)
    repo.remove("src")
    repo.hook("tool.execute.post", **CALL, cwd=here, result="")
    repo.hook("turn.post", cwd=here)

    repo.undo()

    repo.assert_is(before)


# -- paths of a call -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "given", "declared"),
    [
        ("shell", {"command": "ls"}, None),
        ("read", {"path": "a"}, ()),
        ("Grep", {"pattern": "x"}, ()),
        ("list-dir", {}, ()),
        ("write", {"path": "a"}, (b"/project/a",)),
        ("Edit", {"file_path": "/other/./a/"}, (b"/other/a",)),
        ("multi_edit", {"paths": ["a", "b/c", "a"]}, (b"/project/a", b"/project/b/c")),
        ("write", {"filename": "~/.rc"}, (b"/home/dana/.rc",)),
        ("write", {"path": "../x/../y"}, (b"/y",)),
        ("write", {"path": "od\udcff"}, (b"/project/od\xff",)),
        ("write", {"path": "a\0"}, None),
        ("write", {"path": "a\ud800"}, None),
        ("write", {"path": 7}, None),
        ("write", {"path": "a", "paths": ["b", 7]}, None),
        ("write", {"path": ""}, None),
        ("write", {}, None),
        ("patch", {"patch": "--- a\n+++ b\n"}, None),
        ("mcp__files__write", {"path": "a"}, None),
        ("unknown", {"path": "a"}, None),
    ],
)
def test_paths_that_a_call_declares(tool: str, given: dict[str, Any], declared: tuple[bytes, ...] | None) -> None:
    """Reading tools declare nothing, writing tools their paths, all others may change anything."""
    assert declared_paths(tool, given, b"/project", "/home/dana") == declared


def test_paths_the_harness_knows_win(env: dict[str, str]) -> None:
    """The event's own ``paths`` say more than a tool's name; an empty list means that nothing is changed."""
    call = parse(event(event="tool.execute.pre", **CALL, paths=["x", "/abs"]), env).call
    assert call is not None and call.paths == (b"/tmp/x", b"/abs")
    call = parse(event(event="tool.execute.pre", **CALL, paths=[]), env).call
    assert call is not None and call.paths == ()
