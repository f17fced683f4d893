"""ToolSpec and ToolUse: a tool of an agent's own loop, run between PRE and POST under all that has a say in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest

from safety.hooks import ConfirmationResult, HookRegistry
from safety.net import Call, Decision, Denied, HookSpec, HookType, ToolSpec, ToolUse, current_session, current_tool_use
from safety.runtime.open import open_session
from safety.session import Session
from tests.support.repo import NINE_LINES, RepoBuilder


@pytest.fixture
def session(repo: RepoBuilder) -> Session:
    session = open_session(os.fsencode(repo.root), repo.session, repo.env)
    session.turn_start("x")
    return session


class Tool:
    """A tool that writes, and notes what it was given and what was current."""

    def __init__(self, repo: RepoBuilder, fails: BaseException | None = None) -> None:
        self.repo, self.fails = repo, fails
        self.given: list[dict[str, Any]] = []
        self.current: list[tuple[Any, Any]] = []

    def __call__(self, **given: Any) -> str:
        self.given.append(given)
        self.current.append((current_tool_use(), current_session()))
        self.repo.write(given.get("path", "a.txt"), given.get("content", "agent\n"))
        if self.fails is not None:
            raise self.fails
        return "written"

    def use(self, call_id: str = "c1", paths: tuple[str, ...] | None = None, **given: Any) -> ToolUse:
        named = None if paths is None else tuple(os.fsencode(self.repo.path(path)) for path in paths)
        call = Call(call_id, "writer", given or {"content": "agent\n"}, os.fsencode(self.repo.root), paths=named)
        return ToolUse(ToolSpec("writer", "Writes.", execute=self), call)


def events(session: Session) -> list[str]:
    return [trace.event for trace in session.hooks.traces]


def end_and_undo(repo: RepoBuilder, session: Session) -> None:
    assert not session.take_notices()
    session.turn_end()
    repo.undo()


def test_a_call_from_beginning_to_end(repo: RepoBuilder, session: Session) -> None:
    """PRE, the tool, POST; inside the tool the call and the session are the current ones, outside nothing is."""
    tool = Tool(repo)
    use = tool.use()
    assert use.execute(session) == "written"

    assert events(session)[-3:] == ["tool.execute.pre", "tool.confirm", "tool.execute.post"]
    assert tool.current == [(use, session)] and (current_tool_use(), current_session()) == (None, None)
    assert session.finished_calls()["c1"].result == "written"
    end_and_undo(repo, session)
    assert repo.read("a.txt") == NINE_LINES


@pytest.mark.parametrize("fault", [ValueError("boom"), SystemExit(3), KeyboardInterrupt()])
def test_post_comes_when_the_tool_raises(repo: RepoBuilder, session: Session, fault: BaseException) -> None:
    """What it raised comes out, POST had the error, what it changed before is the agent's."""
    seen: list[BaseException | None] = []
    session.hooks.register("mine.post", HookType.TOOL_EXECUTE_POST, lambda data: seen.append(data.error))
    with pytest.raises(type(fault)):
        Tool(repo, fault).use().execute(session)
    assert type(fault).__name__ in str(seen[0]) and session.finished_calls()["c1"].status == "error"
    end_and_undo(repo, session)
    assert repo.read("a.txt") == NINE_LINES


def test_a_denied_call_does_not_run(repo: RepoBuilder, session: Session) -> None:
    """The reason comes out for the model, the tool is not called, the call is not open any more."""
    session.hooks.register("mine.guard", HookType.TOOL_EXECUTE_PRE, lambda data: Decision("deny", "not today"), role="guard")
    tool = Tool(repo)
    with pytest.raises(Denied, match="not today"):
        tool.use().execute(session)
    assert not tool.given and not session.sessions.load(session.id).pending


def test_a_spec_without_a_function_cannot_be_called(repo: RepoBuilder, session: Session) -> None:
    """It brings hooks and commands only."""
    with pytest.raises(Denied, match="cannot be called"):
        ToolUse(ToolSpec("hooks-only", ""), Call("c", "hooks-only", {}, b"/")).execute(session)
    assert "tool.execute.pre" not in events(session)


def test_a_question_needs_somebody_to_answer(repo: RepoBuilder, session: Session) -> None:
    """An ask of PRE is a no where nobody confirms; who confirms is told why it is asked, and the answer counts."""
    session.hooks.register("mine.guard", HookType.TOOL_EXECUTE_PRE, lambda data: Decision("ask", "sure?"), role="guard")
    tool, asked = Tool(repo), []
    with pytest.raises(Denied, match="sure?"):
        tool.use("c1").execute(session)
    assert not tool.given and not session.sessions.load(session.id).pending

    def person(call: Call, preview: Any, workspace: Any, decision: Decision) -> ConfirmationResult:
        asked.append((call.id, decision.reason))
        return ConfirmationResult.confirm(by_user=True) if call.id == "c3" else ConfirmationResult.skip("no", by_user=True)

    session.hooks.register("mine.person", HookType.TOOL_CONFIRM, person)
    with pytest.raises(Denied, match="no"):
        tool.use("c2").execute(session)
    assert not tool.given and not session.sessions.load(session.id).pending
    assert tool.use("c3").execute(session) == "written"
    assert asked == [("c2", "sure?"), ("c3", "sure?")]


@pytest.mark.parametrize("named", [True, False])
def test_what_the_user_saves_while_asked_is_the_users(repo: RepoBuilder, session: Session, named: bool) -> None:
    """The state before a call is taken again after a person has answered ([redteam], design 5.4)."""

    def person(call: Call, preview: Any, workspace: Any) -> ConfirmationResult:
        repo.write("a.txt", "saved during the dialog\n")
        return ConfirmationResult.confirm(by_user=True)

    session.hooks.register("mine.person", HookType.TOOL_CONFIRM, person)
    assert Tool(repo).use(paths=("a.txt",) if named else None).execute(session) == "written"
    end_and_undo(repo, session)
    assert repo.read("a.txt") == "saved during the dialog\n"


def test_a_confirmation_handler_answers(repo: RepoBuilder, session: Session) -> None:
    """TOOL_CONFIRM comes after PRE, so whoever confirms knows what is held."""
    session.hooks.register("mine.confirm", HookType.TOOL_CONFIRM, lambda use, preview, workspace: ConfirmationResult.skip("no"))
    tool = Tool(repo)
    with pytest.raises(Denied, match="no"):
        tool.use().execute(session)
    assert events(session)[-3:-1] == ["tool.execute.pre", "tool.confirm"] and not tool.given


@pytest.mark.parametrize("ask", [False, True])
def test_an_edit_changes_what_the_tool_gets(repo: RepoBuilder, session: Session, ask: bool) -> None:
    """It runs with the edited input, also after a yes to a question; whoever confirms sees that one; and what it writes elsewhere
    than the call named is the agent's."""
    edited = {"path": "b.txt", "content": "edited\n"}
    confirmed: list[Mapping[str, Any]] = []
    session.hooks.register("mine.edit", HookType.TOOL_EXECUTE_PRE, lambda data: Decision("edit", input=edited))
    if ask:
        session.hooks.register("mine.ask", HookType.TOOL_EXECUTE_PRE, lambda data: Decision("ask", "sure?"))


    def person(use: Call, preview: Any, workspace: Any) -> ConfirmationResult:
        confirmed.append(use.input)
        return ConfirmationResult.confirm(by_user=True)

    session.hooks.register("mine.person", HookType.TOOL_CONFIRM, person)
    tool = Tool(repo)
    tool.use(paths=("a.txt",), path="a.txt", content="agent\n").execute(session)

    assert tool.given == [edited] and confirmed == [edited]
    assert (repo.read("a.txt"), repo.read("b.txt")) == (NINE_LINES, "edited\n")
    end_and_undo(repo, session)
    assert repo.read("b.txt") == "b\n"


def test_an_interrupt_before_the_tool_leaves_it_unrun(repo: RepoBuilder, session: Session) -> None:
    """Ctrl-C while handlers judge: denied, the tool is not called."""

    def interrupted(data: Any) -> None:
        raise KeyboardInterrupt

    session.hooks.register("mine.slow", HookType.TOOL_EXECUTE_PRE, interrupted)
    tool = Tool(repo)
    with pytest.raises(Denied, match="interrupted"):
        tool.use().execute(session)
    assert not tool.given and (current_tool_use(), current_session()) == (None, None)


def test_a_denied_call_claims_nothing(repo: RepoBuilder, session: Session) -> None:
    """A harness sends no POST for what it did not run: nothing is open then, and no later call is one of two that may have done it."""
    session.hooks.register(
        "mine.guard", HookType.TOOL_EXECUTE_PRE, lambda data: Decision("deny", "no") if data.tool_use.id == "c1" else None
    )
    here = os.fsencode(repo.root)
    assert session.pre(Call("c1", "shell", {}, here)).action == "deny"
    assert not session.sessions.load(session.id).pending
    repo.write("b.txt", "the user\n")
    call = Call("c2", "shell", {}, here)
    assert session.pre(call).action == "allow"
    repo.write("a.txt", "agent\n")
    session.post(call, "fine")
    newest = session.log.head()
    assert newest is not None and (newest.record.actor, newest.record.call_id) == ("agent", "c2")
    end_and_undo(repo, session)
    assert (repo.read("a.txt"), repo.read("b.txt")) == (NINE_LINES, "the user\n")


def test_the_end_of_a_conversation_is_heard_after_its_last_turn(repo: RepoBuilder, session: Session) -> None:
    """SESSION_END comes once, with what the host hands over, and the turn is closed by then."""
    heard: list[tuple[Any, bool]] = []

    def over(session: Session, logdir: Any = None) -> None:
        heard.append((logdir, session.sessions.load(session.id).is_open))

    session.hooks.register("mine.end", HookType.SESSION_END, over)
    session.end(logdir=repo.root)
    assert heard == [(repo.root, False)]


def test_specs_are_known_by_name_and_sorted(repo: RepoBuilder) -> None:
    """Equal by name, hashable, in order of ``load_priority`` then name; hooks are named after their spec; registering twice replaces."""

    def looks(manager: Any) -> None:
        return None

    one = ToolSpec("b", "x", hooks={"look": HookSpec(HookType.TURN_PRE, looks, 5)}, load_priority=1)
    assert one == ToolSpec("b", "x") and len({one, ToolSpec("b", "x")}) == 1
    assert [spec.name for spec in sorted([one, ToolSpec("c", ""), ToolSpec("a", "")])] == ["a", "c", "b"]
    registry = HookRegistry()
    one.register_hooks(registry)
    one.register_hooks(registry)
    assert [(hook.name, hook.priority) for hook in registry.get_hooks()] == [("b.look", 5)]
    assert not ToolSpec("d", "", available=lambda: False).is_available
