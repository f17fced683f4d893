"""A model behind an endpoint, by the real client against a server of ours; and the verb that talks to it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from safety.agent import messages as m
from safety.agent.journal import UNKNOWN
from safety.agent.messages import ToolCall
from safety.agent.model import ModelFailed, NoClient, endpoint
from tests.support.chat_server import HEAD, USAGE, ChatServer, Line, chat_server
from tests.support.process import PROJECT
from tests.support.repo import NINE_LINES, RepoBuilder
from tests.terminal.test_on_a_terminal import on_terminal

WRITE = Line("I write it.", (("write", {"path": "a.txt", "content": "agent\n"}), ("shell", {"command": "pwd"})))
TOOLS = [{"type": "function", "function": {"name": "write", "parameters": {"type": "object", "properties": {}}}}]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence and the command that installs it."""
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(NoClient) as raised:
        endpoint("x", "http://127.0.0.1:1/v1", {})
    assert "openai package" in raised.value.message and raised.value.hint == "pip install openai"


real = pytest.mark.skipif(find_spec("openai") is None, reason="the extra git-safety[openai] is not installed")


@real
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_reply(stream: bool) -> None:
    """Text, calls with whole arguments, and usage with its cached part, however it comes; the key goes along."""
    with chat_server([WRITE]) as server:
        model = endpoint("test", server.base_url, {"OPENAI_API_KEY": "k1"}, stream=stream)
        *pieces, reply = model.reply([{"role": "user", "content": "go"}], TOOLS)
        model.client.close()
    assert isinstance(reply, m.Reply) and "".join(map(str, pieces)).replace(" ", "") == reply.text.replace(" ", "") == "Iwriteit."
    assert [(each.id, each.name, json.loads(each.arguments)) for each in reply.calls] == [
        ("c1", "write", {"path": "a.txt", "content": "agent\n"}),
        ("c2", "shell", {"command": "pwd"}),
    ]
    assert reply.usage == m.Usage(USAGE["prompt_tokens"], 60, USAGE["completion_tokens"])
    assert server.keys == ["Bearer k1"] and server.asked[0]["messages"] == [{"role": "user", "content": "go"}]
    assert server.asked[0]["tools"] == TOOLS


@real
def test_a_reply_that_breaks_off_is_none() -> None:
    """Half a call must not run."""
    with chat_server([Line("half", WRITE.calls, breaks_off=True)]) as server:
        model = endpoint("test", server.base_url, {})
        with pytest.raises(ModelFailed, match="broke off"):
            list(model.reply([{"role": "user", "content": "go"}], TOOLS))
        model.client.close()


def choice(**said: Any) -> str:
    """A body with one choice that holds this."""
    return json.dumps({**HEAD, "choices": [{"index": 0, "finish_reason": "stop", **said}]})


@real
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    "raw",
    ["<html>Login</html>", "{oops", "5", "[1]", choice(), choice(message=None, delta=None), choice(message={"content": [1]}),
     json.dumps({**HEAD, "choices": None}), json.dumps({**HEAD, "choices": [], "usage": {"prompt_tokens": "many"}}),
     choice(message={"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "x", "input": "y"}}]})],
)  # fmt: skip
def test_an_answer_that_is_none(raw: str, stream: bool) -> None:
    """HTML, half a JSON, another shape: one sentence that names the model, and no traceback."""
    with chat_server([Line(raw=f"data: {raw}\n\n" if stream and not raw.startswith("<") else raw)]) as server:
        model = endpoint("test", server.base_url, {}, stream=stream)
        with pytest.raises(ModelFailed, match="test"):
            list(model.reply([{"role": "user", "content": "go"}], TOOLS))
        model.client.close()


def pieces(*calls: dict[str, Any]) -> str:
    """A stream of pieces of calls, and its end."""
    return streamed(*({"tool_calls": [each]} for each in calls))


def streamed(*deltas: dict[str, Any]) -> str:
    """A stream of deltas, and its end."""
    choices = [{"delta": each, "index": 0, "finish_reason": None} for each in deltas]
    end = {"delta": {}, "index": 0, "finish_reason": "stop"}
    return "".join(f"data: {json.dumps({**HEAD, 'choices': [each]})}\n\n" for each in (*choices, end))


@real
@pytest.mark.parametrize(
    ("sent", "calls"),
    [
        (
            [
                {"index": 0, "id": "a", "function": {"name": "re", "arguments": ""}},
                {"index": 0, "function": {"name": "ad", "arguments": "{}"}},
            ],
            [("a", "read", "{}")],
        ),
        ([{"index": 0, "id": "a", "function": {"name": "read", "arguments": half}} for half in "{}"], [("a", "read", "{}")]),
        (
            [{"index": 0, "id": name, "function": {"name": "read", "arguments": "{}"}} for name in "ab"],
            [("a", "read", "{}"), ("b", "read", "{}")],
        ),
        (
            [{"id": name, "function": {"name": "read", "arguments": "{}"}} for name in "ab"],
            [("a", "read", "{}"), ("b", "read", "{}")],
        ),
        ([{"index": 0, "id": "a", "function": {"name": "read"}}], [("a", "read", "{}")]),
    ],
    ids=["a name in pieces", "a name again and again", "all numbered 0", "not numbered", "without arguments"],
)
def test_calls_as_endpoints_cut_them(sent: list[dict[str, Any]], calls: list[tuple[str, str, str]]) -> None:
    """Each is put together as it was meant, and is a call that the next request may hold."""
    with chat_server([Line(raw=pieces(*sent))]) as server:
        model = endpoint("test", server.base_url, {})
        *_, reply = model.reply([{"role": "user", "content": "go"}], TOOLS)
        model.client.close()
    assert isinstance(reply, m.Reply) and [(each.id, each.name, each.arguments) for each in reply.calls] == calls


@pytest.mark.parametrize("ids", [("", ""), ("x", "x"), ("call_2", "")])
def test_each_call_has_an_id_of_its_own(ids: tuple[str, ...]) -> None:
    """Whatever the endpoint gave, or each would be answered by the other's result."""
    calls = m.Reply("", tuple(ToolCall(each, "read", "{}") for each in ids)).message()["tool_calls"]
    assert [each["id"] for each in calls] == ["call_1", "call_2"]


@real
def test_an_error_of_the_endpoint() -> None:
    """It comes out as one sentence that has the endpoint's words."""
    with chat_server([Line("no such model", status=404)]) as server:
        model = endpoint("test", server.base_url, {})
        with pytest.raises(ModelFailed, match="no such model"):
            list(model.reply([{"role": "user", "content": "go"}], TOOLS))
        model.client.close()


# -- the verb --------------------------------------------------------------------------------------------------------------------


def options(server: ChatServer, *more: str) -> list[str]:
    return ["agent", "--base-url", server.base_url, "--model", "test", *more]


@real
def test_a_prompt_on_the_command_line(repo: RepoBuilder) -> None:
    """It is carried out under protection and shown; the tools were offered; undo takes it back."""
    with chat_server([WRITE, Line("It is done.")]) as server:
        done = repo.must(*options(server), "write", "it", env={"OPENAI_API_KEY": "k2"})
    assert done.out.splitlines() == ["I write it.", "  write   a.txt", "  shell   pwd", "It is done."]
    assert {each["function"]["name"] for each in server.asked[0]["tools"]} >= {
        "read",
        "write",
        "edit",
        "patch",
        "shell",
        "subagent",
    }
    assert server.asked[0]["messages"][-1] == {"role": "user", "content": "write it"} and server.keys[0] == "Bearer k2"
    assert repo.read("a.txt") == "agent\n"
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


@real
def test_the_key_is_not_in_the_shell(repo: RepoBuilder) -> None:
    """A command of the model's does not see what the endpoint is paid with."""
    with chat_server([Line("", (("shell", {"command": "env"}),)), Line("Seen.")]) as server:
        repo.must(*options(server), "look", env={"OPENAI_API_KEY": "k3"})
    told = server.asked[1]["messages"][-1]["content"]
    assert "HOME=" in told and "k3" not in told


@real
def test_prompts_from_standard_input_and_going_on(repo: RepoBuilder) -> None:
    """A line is a prompt, /undo is carried out here; --continue gives the model all that was said before."""
    with chat_server([WRITE, Line("Done."), Line("Hello.")]) as server:
        done = repo.must(*options(server, "--no-stream"), stdin=b"write it\n\n/undo\n")
        assert repo.read("a.txt") == NINE_LINES and "Undid t1" in done.out
        repo.must(*options(server, "--continue"), "hello")
    said = [each["content"] for each in server.asked[-1]["messages"]]
    assert said[1] == "write it" and said[-2].startswith("git-safety: the user typed /undo") and said[-1] == "hello"


@real
def test_events_as_json(repo: RepoBuilder) -> None:
    """One object a line, each with its name."""
    with chat_server([WRITE, Line("Done.")]) as server:
        done = repo.must(*options(server, "--json"), "go")
    events = [json.loads(line) for line in done.out.splitlines()]
    names = [event["event"] for event in events if event["event"] != "chunk"]
    assert names == ["prompted", "replied", "started", "ended", "started", "ended", "replied"]
    assert events[-1]["total"] == {"prompt": 200, "cached": 120, "completion": 14}
    repo.undo()


@real
def test_events_of_a_sub_agent_as_json(repo: RepoBuilder) -> None:
    """They lie under ``inner``, each with its own name."""
    with chat_server([Line("", (("subagent", {"task": "look"}),)), Line("Seen."), Line("Done.")]) as server:
        done = repo.must(*options(server, "--json"), "go")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [each["inner"]["event"] for each in events if each["event"] == "inner"] == ["chunk", "replied"]


@real
@pytest.mark.parametrize(("typed", "runs"), [("n\n", False), ("\n", False), ("y\n", True)])
def test_the_guards_question_on_a_terminal(repo: RepoBuilder, typed: str, runs: bool) -> None:
    """Whoever sits there reads what would be lost and answers; Enter means no."""
    with open(repo.write("big.bin", ""), "wb") as file:
        file.truncate(40 << 20)
    repo.ledger.forget()
    with chat_server([Line("", (("shell", {"command": "rm big.bin"}),)), Line("Done.")]) as server:
        code, said = on_terminal(options(server, "go"), repo.root, repo.env, typed)
    assert code == 0 and "big.bin" in said and "Run shell? [y/N" in said
    assert repo.exists("big.bin") is not runs
    assert ("not run:" in said) is not runs


@real
def test_an_interrupt_at_the_guards_question(repo: RepoBuilder) -> None:
    """It says no, and the turn is over: the model is not asked for more, and a script does not go on."""
    with open(repo.write("big.bin", ""), "wb") as file:
        file.truncate(40 << 20)
    repo.ledger.forget()
    with chat_server([Line("", (("shell", {"command": "rm big.bin"}),))]) as server:
        code, said = on_terminal(options(server, "go"), repo.root, repo.env, signals=[(b"[y/N", signal.SIGINT)])
    assert code == 130 and "Interrupted." in said and "terminal.confirm failed" not in said and repo.exists("big.bin")


@real
@pytest.mark.parametrize("name", ["TERM", "HUP"])
def test_a_command_does_not_outlive_the_agent(repo: RepoBuilder, name: str) -> None:
    """A signal that ends the agent ends what it runs; what that did is recorded, and the model is told that nobody knows."""
    command = f"echo half >a.txt; echo $$ >pid; kill -{name} $PPID; exec sleep 60"
    with chat_server([Line("", (("shell", {"command": command}),)), Line("I see.")]) as server:
        repo.must(*options(server, "go"), code=128 + getattr(signal, f"SIG{name}"))
        with pytest.raises(ProcessLookupError):
            os.kill(int(repo.read("pid")), 0)
        repo.must(*options(server, "--continue"), stdin=b"")
    assert server.asked[1]["messages"][-1]["content"] == UNKNOWN.text
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES and not repo.exists("pid")


@real
def test_texts_that_no_request_can_hold(repo: RepoBuilder) -> None:
    """Half characters of a prompt, a reply or a path do not end the conversation, now or when it goes on."""
    wrong = Line(raw=choice(message={"role": "assistant", "content": "half \ud800", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "write", "arguments": '{"path": "caf\\udce9", "content": "x"}'}}
    ]}))  # fmt: skip
    with chat_server([wrong, Line("Done."), Line("Hello.")]) as server:
        repo.must(*options(server, "--no-stream"), stdin=b"caf\xe9\n")
        repo.must(*options(server, "--continue"), "hello")
    assert [each["content"] for each in server.asked[-1]["messages"][1:4]] == ["caf?", "half ?", "Created caf?."]
    repo.undo()


@real
def test_a_character_that_comes_in_halves(repo: RepoBuilder) -> None:
    """Servers that count in UTF-16 cut a character in two: it is whole on the screen, in the file, and in the next request."""
    words = [{"content": each} for each in ("A\ud83d", "\ude00", "B")]
    call = {"index": 0, "id": "a", "function": {"name": "write", "arguments": ""}}
    halves = ({"index": 0, "function": {"arguments": each}} for each in ('{"path": "e.txt", "content": "A\ud83d', '\ude00B"}'))
    deltas = (*words, *({"tool_calls": [each]} for each in (call, *halves)))
    with chat_server([Line(raw=streamed(*deltas)), Line("Done.")]) as server:
        done = repo.must(*options(server), "go")
    assert "A😀B" in done.out and repo.read("e.txt") == "A😀B"
    assert server.asked[-1]["messages"][2]["content"] == "A😀B"


@real
def test_half_a_character_at_the_end_of_a_reply() -> None:
    """It is given as it came, once, and the reply is the sum of its pieces."""
    with chat_server([Line(raw=streamed({"content": "half \ud83d"}))]) as server:
        model = endpoint("test", server.base_url, {})
        *said, reply = model.reply([{"role": "user", "content": "go"}], TOOLS)
        model.client.close()
    assert isinstance(reply, m.Reply) and "".join(map(str, said)) == reply.text == "half \ud83d"


@real
def test_without_standard_input(repo: RepoBuilder) -> None:
    """There is no prompt to come, and that is all."""
    with chat_server([Line("Done.")]) as server:
        words = [sys.executable, "-m", "safety.terminal", *options(server)]
        for more, asked in (([], 0), (["go"], 1)):
            command = shlex.join([*words, *more]) + " <&-"
            done = subprocess.run(
                ["/bin/sh", "-c", command], cwd=repo.root, env={**repo.env, "PYTHONPATH": str(PROJECT)}, capture_output=True
            )
            assert (done.returncode, done.stderr, len(server.asked)) == (0, b"", asked)


@real
def test_snapshot_it_first_then_run(repo: RepoBuilder) -> None:
    """What is too large for the automatic snapshots is taken in, the command runs, and undo brings it back."""
    with open(repo.write("big.bin", ""), "wb") as file:
        file.truncate(40 << 20)
    repo.ledger.forget()
    with chat_server([Line("", (("shell", {"command": "rm big.bin"}),)), Line("Done.")]) as server:
        code, said = on_terminal(options(server, "go"), repo.root, repo.env, "s\n")
    assert code == 0 and "[y/N/s/?]" in said and not repo.exists("big.bin")
    repo.undo()
    assert repo.path("big.bin").stat().st_size == 40 << 20


@real
def test_an_endpoint_that_is_not_there(repo: RepoBuilder) -> None:
    """A sentence and no traceback; what was begun can be gone on with."""
    with chat_server([Line("broken", status=400), WRITE, Line("Done.")]) as server:
        done = repo.must(*options(server), "write it", code=1)
        assert "gave no reply" in done.err and done.err.count("broken") == 1
        repo.must(*options(server, "--continue"), stdin=b"")
    assert repo.read("a.txt") == "agent\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--model", "x"], "--base-url"),
        (["--base-url", "http://127.0.0.1:1", "--model", "x", "--bundle", "none", "go"], "permission"),
    ],
)
def test_what_cannot_be_understood(repo: RepoBuilder, words: list[str], says: str) -> None:
    """A usage error, before anything is opened."""
    assert says in repo.must("agent", *words, code=2).err
