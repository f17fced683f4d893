"""What the loop does around the model: turns, gate, interrupts, sub-agents, usage, refusals, commands typed into the prompt."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from safety.agent import loop as loop_module
from safety.agent import messages as m
from safety.agent.journal import BROKEN_OFF, UNTOUCHED, JournalFailed
from safety.agent.messages import ToolCall
from safety.agent.scripted import Say, Scripted
from safety.hooks.confirm import auto_handler
from safety.hooks.events import HookType
from safety.hooks.message import Message
from safety.types import Decision
from tests.agent.kit import call, journal, loop, opened, play, results
from tests.support.repo import NINE_LINES, RepoBuilder
from tests.tools.turn_ends import NO_BAD_WORDS, checks, settings

WRITE = call("write", path="a.txt", content="agent\n")


def kinds(events: Sequence[m.Event], kind: type) -> list[m.Event]:
    return [event for event in events if isinstance(event, kind)]


def last(events: Sequence[m.Event]) -> str:
    """What the model was told of the last call."""
    return [event.text for event in events if isinstance(event, m.Ended)][-1]


def test_the_loop_can_be_read_at_a_sitting() -> None:
    """It is documentation: under 250 lines."""
    assert len(Path(loop_module.__file__).read_text().splitlines()) < 250


def test_a_failed_gate_sends_the_agent_back(repo: RepoBuilder) -> None:
    """The checks' text goes back as a user message, the agent mends it, and what is committed is good."""
    settings(repo)
    checks(repo, NO_BAD_WORDS)
    bad, good = (call("write", path="a.txt", content=f"{word}\n") for word in ("BAD", "good"))
    events = play(repo, bad, Say("Done."), good, Say("Now it is."))
    (sent,) = kinds(events, m.SentBack)
    assert isinstance(sent, m.SentBack) and "words" in sent.reason and "a.txt" in sent.reason
    assert {"role": "user", "content": sent.reason} in journal(repo).messages
    assert repo.git("show", "HEAD:a.txt") == "good" and repo.git("rev-list", "--count", "HEAD") == "3"


@pytest.mark.parametrize(("most", "sent"), [(1, 1), (2, 2)])
def test_sending_back_is_bounded(repo: RepoBuilder, most: int, sent: int) -> None:
    """An agent that never mends it is let go after the gate's number of tries, and nothing is committed."""
    settings(repo, gate={"max_attempts": most})
    checks(repo, NO_BAD_WORDS)
    lines = [line for number in range(9) for line in (call("write", path="a.txt", content=f"BAD {number}\n"), Say("Done."))]
    events = play(repo, *lines)
    assert len(kinds(events, m.SentBack)) == sent
    assert repo.git("rev-list", "--count", "HEAD") == "2" and journal(repo).prompt is None


def test_a_handler_that_never_lets_go_is_bounded(repo: RepoBuilder) -> None:
    """A deny at every end comes to an end by the session's own bound."""
    session = opened(repo)
    session.hooks.register("test.never", HookType.TURN_POST, lambda: Decision("deny", "again"))
    events = play(repo, session=session)
    assert len(kinds(events, m.SentBack)) == 10
    assert journal(repo).prompt is None


def test_a_denied_call_gives_its_reason_to_the_model(repo: RepoBuilder) -> None:
    """The tool does not run; the model reads why, and goes on."""
    session = opened(repo)
    session.hooks.register("test.no", HookType.TOOL_EXECUTE_PRE, lambda data: Decision("deny", "not on a Friday"))
    events = play(repo, WRITE, Say("Then not."), session=session)
    assert results(events) == [("write", "denied")] and "not on a Friday" in last(events)
    assert repo.read("a.txt") == NINE_LINES


def test_what_nobody_answers_does_not_run(repo: RepoBuilder) -> None:
    """The guard's question stands in the answer, and what cannot be undone was not done."""
    big = repo.write("big.bin", "")
    with open(big, "wb") as file:
        file.truncate(40 << 20)
    repo.ledger.forget()
    events = play(repo, call("shell", command="rm big.bin"), Say("Then not."))
    assert results(events) == [("shell", "denied")] and "big.bin" in last(events)
    assert big.exists()
    session = opened(repo)
    session.hooks.register("terminal.confirm", HookType.TOOL_CONFIRM, auto_handler())
    again = (Say(""), Say(""), call("shell", command="rm big.bin"), Say("Then not."))
    assert results(play(repo, *again, session=session)) == [("shell", "denied")] and big.exists()


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (("read", {"path": "nowhere"}), "No such file"),
        (("write", {"path": "a.txt"}), "path, content"),
        (("write", {"path": "a.txt", "content": "x", "mode": "7"}), "path, content"),
        (("launch", {}), "There is no tool 'launch'"),
        (("edit", {"path": "a.txt", "old": "line", "new": "x"}), "9 times"),
        (("edit", {"path": "a.txt", "old": "", "new": "x"}), "not once"),
        (("patch", {"path": "a.txt", "patch": "no block"}), "no block"),
        (("patch", {"path": "a.txt", "patch": "<<<<<<<\nline 1\n"}), "not complete"),
        (("shell", {"command": "echo out; exit 3"}), "out\n\nExit code 3."),
        (("ask_user", {"question": "Why?"}), "did not answer"),
    ],
)
def test_what_a_tool_cannot_do_is_text(repo: RepoBuilder, wanted: tuple[str, dict[str, str]], says: str) -> None:
    """Nothing is raised, nothing is changed; the model reads what went wrong."""
    assert says in last(play(repo, Say("", (wanted,)), Say("I see.")))
    assert repo.read("a.txt") == NINE_LINES


@pytest.mark.parametrize("arguments", ["", "{path:", "[1]", '"a.txt"', "[" * 100_000])
def test_arguments_that_are_no_json(repo: RepoBuilder, arguments: str) -> None:
    """The model is told what the tool takes; the next request has an object there, which every server can read."""

    class Sloppy(Scripted):
        def reply(self, messages: Sequence[m.Json], tools: Sequence[m.Json]) -> Iterator[str | m.Reply]:
            yield m.Reply("", (ToolCall("1", "read", arguments),)) if len(messages) < 3 else m.Reply("I see.")

    assert "JSON object" in last(play(repo, model=Sloppy()))
    (asked,) = [each["tool_calls"] for each in journal(repo).messages if "tool_calls" in each]
    assert asked[0]["function"]["arguments"] == "{}"


def test_what_a_tool_gives_is_text(repo: RepoBuilder) -> None:
    """A tool of one's own may give anything; it is kept, and told to the model, as text."""
    made = loop(repo, call("mine"), Say("Done."))
    made.tools["mine"] = lambda desk: Path("x")  # type: ignore[assignment,return-value]
    assert results(list(made.run(["do it"]))) == [("mine", "ok")]
    assert [each.text for each in journal(repo).results.values()] == ["x"]


def test_several_calls_in_one_reply(repo: RepoBuilder) -> None:
    """They run in their order, each under its own id, and each is undone with the turn."""
    both = Say("", (("write", {"path": "n.txt", "content": "1\n"}), ("edit", {"path": "n.txt", "old": "1", "new": "2"})))
    events = play(repo, both, Say("Done."))
    assert results(events) == [("write", "ok"), ("edit", "ok")] and repo.read("n.txt") == "2\n"
    answers = [each["tool_call_id"] for each in journal(repo).messages if each["role"] == "tool"]
    assert answers == ["call_1", "call_2"]
    repo.undo()
    assert not repo.exists("n.txt")


def test_a_sub_agent_is_part_of_the_turn(repo: RepoBuilder) -> None:
    """Its calls are undone with the turn, its last words are the call's result, what it took is counted; it has no sub-agents."""
    model = Scripted(
        (call("subagent", task="tidy"), Say("Done.")),
        {"tidy": (Say("", (("shell", {"command": "echo x >x; rm b.txt"}), ("subagent", {"task": "more"}))), Say("Tidied."))},
    )
    events = play(repo, model=model)
    assert results(events) == [("shell", "ok"), ("subagent", "error"), ("subagent", "ok")] and last(events) == "Tidied."
    own = sum(event.usage.prompt for event in events if isinstance(event, m.Replied))
    assert journal(repo).usage.prompt > own
    repo.undo()
    assert repo.read("b.txt") == "b\n" and not repo.exists("x")


def test_a_sub_agents_work_is_judged_and_committed(repo: RepoBuilder) -> None:
    """Also what a call inside of a call changed is the agent's."""
    settings(repo)
    checks(repo, NO_BAD_WORDS)
    model = Scripted(
        (call("subagent", task="x"), Say("Done."), Say("I leave it.")),
        {"x": (call("shell", command="echo BAD >a.txt"), Say("."))},
    )
    assert len(kinds(play(repo, model=model), m.SentBack)) >= 1
    repo.write("a.txt", NINE_LINES)


class Interrupted(Scripted):
    """Ctrl-C arrives in the middle of its second reply."""

    def reply(self, messages: Sequence[m.Json], tools: Sequence[m.Json]) -> Iterator[str | m.Reply]:
        if len(self.asked) == 1:
            self.asked.append(messages)
            yield "I was about"
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("Ctrl-C did not arrive")
        yield from super().reply(messages, tools)


def test_an_interrupt_while_the_model_speaks(repo: RepoBuilder) -> None:
    """What had come is kept, the turn is over, nobody is asked at its end, and the next prompt goes on from there."""
    session = opened(repo)
    ends: list[str] = []
    session.hooks.register("test.end", HookType.TURN_POST, lambda: ends.append("heard"))
    model = Interrupted((WRITE, Say("Never said."), Say("Hello again.")))
    events = list(loop(repo, session=session, model=model).run(["do it", "go on"]))
    assert m.Interrupted("I was about") in events and ends == ["heard"]
    texts = [each["content"] for each in journal(repo).messages]
    assert texts[-3:-1] == ["I was about", "go on"]
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


def test_an_interrupt_while_a_piece_is_shown(repo: RepoBuilder) -> None:
    """Whoever draws hands Ctrl-C into the loop, and it is as if it had come there."""
    events = loop(repo, Say("one\ntwo")).run(["do it"])
    while next(events) != m.Chunk("one\n"):
        pass
    assert events.throw(KeyboardInterrupt) == m.Interrupted("one\n")  # type: ignore[attr-defined]
    assert list(events) == [] and journal(repo).prompt is None


def test_a_journal_that_cannot_be_written_stops_the_loop(repo: RepoBuilder) -> None:
    """A tool does not run when that it starts cannot be kept; what failed is said."""
    made = loop(repo, WRITE, Say("Done."))
    events = made.run(["do it"])
    while not isinstance(next(events), m.Started):
        pass
    made.journal.path.unlink()
    made.journal.path.mkdir()
    with pytest.raises(JournalFailed, match="Is a directory"):
        list(events)
    assert repo.read("a.txt") == NINE_LINES


def test_an_interrupt_while_a_tool_runs(repo: RepoBuilder) -> None:
    """The command is ended, the calls after it do not run, what it did is the agent's, and the model is told all of it."""
    both = Say(
        "", (("shell", {"command": "echo half >a.txt; kill -INT $PPID; exec sleep 60"}), ("write", {"path": "n", "content": "n"}))
    )
    events = play(repo, both)
    assert m.Interrupted("") in events and not repo.exists("n")
    told = [each["content"] for each in journal(repo).messages if each["role"] == "tool"]
    assert told == [BROKEN_OFF.text, UNTOUCHED.text]
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


@pytest.mark.parametrize("at", [m.Prompted, m.Replied, m.Started, m.Ended, m.SentBack])
def test_an_interrupt_at_any_event(repo: RepoBuilder, at: type) -> None:
    """Wherever Ctrl-C comes, the turn is over, each call has its one answer, and the next prompt goes on from there."""
    session = opened(repo)
    session.hooks.register("test.once", HookType.TURN_POST, lambda: Decision("deny", "again"))
    both = Say("", (("write", {"path": "n", "content": "n"}), ("read", {"path": "n"})))
    events = loop(repo, both, Say("Done."), Say("Done."), Say("Done."), session=session).run(["do it", "go on"])
    while not isinstance(next(events), at):
        pass
    rest = [events.throw(KeyboardInterrupt), *events]  # type: ignore[attr-defined]
    assert rest[0] == m.Interrupted("") and m.Prompted("go on") in rest
    messages = journal(repo).messages
    answers = [each["tool_call_id"] for each in messages if each["role"] == "tool"]
    assert answers == [call["id"] for each in messages for call in each.get("tool_calls", ())]
    assert journal(repo).prompt is None


def test_a_handler_that_asks_can_end_the_turn(repo: RepoBuilder) -> None:
    """The call does not run, and the model is asked for nothing more."""

    def ask(data: object) -> None:
        raise m.Stopped

    session = opened(repo)
    session.hooks.register("test.ask", HookType.TOOL_EXECUTE_PRE, ask)
    events = play(repo, WRITE, Say("Never said."), session=session)
    assert results(events) == [("write", "error")] and last(events) == UNTOUCHED.text
    assert m.Interrupted("") in events and repo.read("a.txt") == NINE_LINES


def test_an_interrupt_while_a_sub_agent_works(repo: RepoBuilder) -> None:
    """It is over with the turn; what it did is undone with it, and the next prompt goes on."""
    model = Scripted(
        (call("subagent", task="x"), Say("Hello again.")),
        {"x": (call("shell", command="echo half >a.txt; kill -INT $PPID; exec sleep 60"), Say("Never said."))},
    )
    events = list(loop(repo, model=model).run(["do it", "go on"]))
    assert results(events) == [("shell", "error"), ("subagent", "error")] and last(events) == BROKEN_OFF.text
    assert m.Prompted("go on") in events and journal(repo).messages[-1]["content"] == "Hello again."
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


def test_commands_typed_into_the_prompt(repo: RepoBuilder) -> None:
    """/undo is carried out here, the model is not called, and hears of it with the next prompt."""
    model = Scripted((WRITE, Say("Done.")))
    events = list(loop(repo, model=model).run(["do it", "/undo", "and?"]))
    assert repo.read("a.txt") == NINE_LINES
    assert any(isinstance(event, m.Told) and event.text.startswith("Undid t1") for event in events)
    assert len(model.asked) == 3 and "the user typed /undo" in model.asked[-1][-2]["content"]


def test_handlers_put_messages_in_place_of_others(repo: RepoBuilder) -> None:
    """What MESSAGE_TRANSFORM and TOOL_TRANSFORM yield is what the model gets; what GENERATION_PRE yields goes along once."""
    session = opened(repo)
    hide = lambda message: Message(message.role, message.content.replace("secret", "***"))  # noqa: E731 - said once, used twice
    session.hooks.register("test.message", HookType.MESSAGE_TRANSFORM, hide)
    session.hooks.register("test.tool", HookType.TOOL_TRANSFORM, hide)
    session.hooks.register("test.extra", HookType.GENERATION_PRE, lambda messages: Message("system", "by the way"))
    model = Scripted((call("shell", command="echo my secret"), Say("It is secret.")))
    list(loop(repo, session=session, model=model).run(["the secret"]))
    assert [each["content"] for each in journal(repo).messages] == ["the ***", "", "my ***\n", "It is ***."]
    assert [each["content"] for each in model.asked[1][1:]] == ["the ***", "", "my ***\n", "by the way"]


def test_what_it_took_is_counted(repo: RepoBuilder) -> None:
    """Totals hold all replies, cached tokens apart, and what that costs where the prices are known."""
    session, costs = opened(repo), []
    session.hooks.register("test.cost", HookType.GENERATION_POST, lambda message: costs.append(message.metadata["cost"]))
    prices = m.Prices(prompt=10, cached=1, completion=20)
    events = list(loop(repo, WRITE, Say("Done."), session=session, prices=prices).run(["do it"]))
    replies = [event for event in events if isinstance(event, m.Replied)]
    assert replies[-1].total == replies[0].usage + replies[1].usage == journal(repo).usage
    assert 0 < replies[1].usage.cached < replies[1].usage.prompt
    total = replies[-1].total
    assert costs[-1] == pytest.approx((total.prompt - total.cached) * 1e-5 + total.cached * 1e-6 + total.completion * 2e-5)


def test_a_model_that_never_stops_calling_is_stopped(repo: RepoBuilder) -> None:
    """After so many steps the turn ends, and the user is told."""
    events = play(repo, *[call("shell", command="true")] * 9, limits=m.Limits(steps=3))
    assert len(results(events)) == 3
    assert m.Told("git-safety: stopped after 3 steps") in events


def test_a_trimmed_context_keeps_the_newest_results(repo: RepoBuilder) -> None:
    """Old results are cut to their beginning, once, and the request is smaller from then on."""
    lines = [call("shell", command=f"seq {number}000 {number}900") for number in range(1, 8)]
    events = play(repo, *lines, Say("Done."), limits=m.Limits(context_tokens=6500))
    (first, *_) = kinds(events, m.Trimmed)
    assert isinstance(first, m.Trimmed) and first.tokens_after < 6500 < first.tokens_before
    told = [each["content"] for each in journal(repo).messages if each["role"] == "tool"]
    assert "left out here" in told[0] and told[0].startswith("1000\n") and "left out" not in told[-1]


def test_a_shell_whose_folder_is_gone(repo: RepoBuilder) -> None:
    """It goes on in the workspace's root; and what was left running in the background holds nothing up."""
    events = play(
        repo,
        call("shell", command="mkdir -p x/y; cd x/y"),
        call("shell", command="rm -r ../../x"),
        call("shell", command="pwd; sleep 30 & echo $! >pid"),
        Say("Done."),
    )
    assert last(events) == f"{repo.root}\n"
    assert Path(repo.path("pid")).exists()
    repo.sh("kill $(cat pid); rm pid")
