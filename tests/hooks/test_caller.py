"""The caller, row by row of its table, at every event."""

from __future__ import annotations

import contextvars
import dataclasses
import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from safety.hooks import (
    ConfirmationResult,
    ElicitationResponse,
    HookOptions,
    HookRegistry,
    HookType,
    Message,
    Outcome,
    StopPropagation,
    call_hooks,
    trace_lines,
)
from safety.hooks.caller import HandlerTimeout, merge
from safety.hooks.events import EVENTS
from safety.types import Decision
from tests.hooks.moments import ADVISORY, ALL, CLOSED, DECISION, handed, said

Handler = Callable[..., Any]


@pytest.fixture
def registry() -> HookRegistry:
    return HookRegistry()


def fire(registry: HookRegistry, hook_type: HookType, **more: Any) -> Outcome:
    args, kwargs = handed(hook_type)
    return call_hooks(registry, hook_type, *args, **kwargs, **more)


def giving(value: Any) -> Handler:
    return lambda *args, **kwargs: value


def yielding(*values: Any) -> Handler:
    def handler(*args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from values

    return handler


def raising(error: BaseException | type[BaseException]) -> Handler:
    def handler(*args: Any, **kwargs: Any) -> None:
        raise error

    return handler


def noting(calls: list[str], name: str) -> Handler:
    return lambda *args, **kwargs: calls.append(name)


def kinds(outcome: Outcome) -> list[tuple[str, str]]:
    return [(failure.hook, failure.kind) for failure in outcome.failures]


# -- nothing, messages, order --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook_type", ALL)
def test_nothing_said_is_no_opinion(registry: HookRegistry, hook_type: HookType) -> None:
    """A handler that gives None leaves the allow of silence, which nobody decided."""
    registry.register("a", hook_type, giving(None))
    outcome = fire(registry, hook_type)
    assert (outcome.messages, outcome.decision, outcome.decided_by, outcome.stopped_by, outcome.failures) == (
        (),
        Decision(),
        "",
        "",
        (),
    )
    assert [step.result for step in outcome.trace.steps] == ["ok"]


@pytest.mark.parametrize("hook_type", ALL)
def test_messages_are_kept_in_order(registry: HookRegistry, hook_type: HookType) -> None:
    """Yielded, listed and returned messages come out by priority, then as given; the outcome iterates over them."""
    registry.register("low", hook_type, giving(said("4")), priority=1)
    registry.register("high", hook_type, yielding(said("1"), said("2")), priority=3)
    registry.register("middle", hook_type, giving([said("3")]), priority=2)
    outcome = fire(registry, hook_type)
    assert [message.content for message in outcome] == ["1", "2", "3", "4"]
    assert outcome.failures == ()


def test_a_generator_may_return_its_decision(registry: HookRegistry) -> None:
    """What a generator returns counts as if it were yielded last."""

    def handler(data: object) -> Any:
        yield said("why")
        return Decision("deny", "no")

    registry.register("a", HookType.TOOL_EXECUTE_PRE, handler)
    outcome = fire(registry, HookType.TOOL_EXECUTE_PRE)
    assert (outcome.messages, outcome.decision) == ((said("why"),), Decision("deny", "no"))


# -- stop ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook_type", ALL)
@pytest.mark.parametrize(
    "stop",
    [yielding(said("m"), StopPropagation()), yielding(said("m"), StopPropagation), giving([said("m"), StopPropagation()])],
    ids=["yields", "yields the class", "returns a list"],
)
def test_a_stop_skips_lower_priorities(registry: HookRegistry, hook_type: HookType, stop: Handler) -> None:
    """After a stop no lower handler is called, what was said before it stays, and the outcome names who stopped."""
    calls: list[str] = []
    registry.register("above", hook_type, noting(calls, "above"), priority=3)
    registry.register("stopper", hook_type, stop, priority=2)
    registry.register("below", hook_type, noting(calls, "below"), priority=1)
    outcome = fire(registry, hook_type)
    assert (calls, outcome.stopped_by, list(outcome)) == (["above"], "stopper", [said("m")])
    assert [(step.hook, step.result) for step in outcome.trace.steps] == [
        ("above", "ok"),
        ("stopper", "stopped"),
        ("below", "skipped"),
    ]


@pytest.mark.parametrize("hook_type", ALL)
@pytest.mark.parametrize("stop", [raising(StopPropagation), giving(StopPropagation())], ids=["raises", "returns"])
def test_a_stop_may_be_raised_or_returned(registry: HookRegistry, hook_type: HookType, stop: Handler) -> None:
    """Raising or returning a stop is the same as yielding it, and no failure."""
    calls: list[str] = []
    registry.register("stopper", hook_type, stop, priority=2)
    registry.register("below", hook_type, noting(calls, "below"), priority=1)
    outcome = fire(registry, hook_type)
    assert (calls, outcome.stopped_by, outcome.failures, outcome.decision) == ([], "stopper", (), Decision())


def test_a_stopped_generator_is_closed(registry: HookRegistry) -> None:
    """What a generator has opened is closed when its stop is taken."""
    closed: list[bool] = []
    held: list[Any] = []

    def handler() -> Iterator[Any]:
        try:
            yield StopPropagation()
            yield said("never")
        finally:
            closed.append(True)

    def keeps(manager: object) -> Iterator[Any]:
        held.append(handler())
        return held[0]  # type: ignore[no-any-return]

    registry.register("a", HookType.STEP_PRE, keeps)
    assert (list(fire(registry, HookType.STEP_PRE)), closed) == ([], [True])


# -- decisions -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook_type", DECISION)
@pytest.mark.parametrize("first", ["allow", "edit", "ask", "deny"])
@pytest.mark.parametrize("second", ["allow", "edit", "ask", "deny"])
def test_the_most_restrictive_decision_wins(registry: HookRegistry, hook_type: HookType, first: str, second: str) -> None:
    """deny > ask > edit > allow, whichever stands higher; of equals the higher one's."""
    order = ["allow", "edit", "ask", "deny"]
    made = {each: Decision(each, "", {"content": "x"} if each == "edit" else None) for each in order}
    registry.register("high", hook_type, giving(made[first]), priority=2)
    registry.register("low", hook_type, yielding(made[second]), priority=1)
    outcome = fire(registry, hook_type)
    winner = max(first, second, key=order.index)
    assert outcome.decision.action == winner
    assert outcome.decided_by == ("high" if first == winner else "low")
    assert outcome.failures == ()


def test_equal_decisions_join_their_reasons() -> None:
    """Two denials are both explained, the same reason once."""
    assert merge(Decision("deny", "a"), Decision("deny", "b")).reason == "a\nb"
    assert merge(Decision("deny", "a"), Decision("deny", "a")).reason == "a"
    assert merge(Decision("deny"), Decision("ask", "b")).reason == ""


def test_an_ask_keeps_an_edit() -> None:
    """A yes to the question runs what the edit made of the input, whichever came first."""
    edit, ask = Decision("edit", "", {"command": "ls"}), Decision("ask", "sure?")
    assert merge(edit, ask) == merge(ask, edit) == Decision("ask", "sure?", {"command": "ls"})
    assert merge(edit, Decision("deny", "no")).input is None


def test_the_unrecoverable_stays_so() -> None:
    """An ask for the unrecoverable is still one after it met another question; an allow of silence takes nothing from it."""
    assert merge(Decision("ask", "a", unrecoverable=True), Decision("ask", "b")).unrecoverable
    assert merge(Decision("ask", "a"), Decision("ask", "b", unrecoverable=True)).unrecoverable
    assert merge(Decision("ask", "a", unrecoverable=True), Decision("allow")).unrecoverable


def test_the_second_edit_is_lost_and_recorded(registry: HookRegistry) -> None:
    """Of two edits the higher stands; the other is not silently dropped."""
    registry.register("high", HookType.TOOL_EXECUTE_PRE, giving(Decision("edit", "", {"a": 1})), priority=2)
    registry.register("low", HookType.TOOL_EXECUTE_PRE, giving(Decision("edit", "", {"a": 2})), priority=1)
    outcome = fire(registry, HookType.TOOL_EXECUTE_PRE)
    assert (outcome.decision.input, kinds(outcome)) == ({"a": 1}, [("low", "lost-edit")])


@pytest.mark.parametrize("hook_type", ADVISORY)
def test_a_decision_at_an_advisory_event_counts_for_nothing(registry: HookRegistry, hook_type: HookType) -> None:
    """Where registration could not tell, the call records it, and the next handler is called."""
    calls: list[str] = []
    registry.register("a", hook_type, giving(Decision("deny", "no")), priority=1)
    registry.register("b", hook_type, noting(calls, "b"))
    outcome = fire(registry, hook_type)
    assert (outcome.decision, kinds(outcome), calls) == (Decision(), [("a", "refused")], ["b"])


def test_a_deny_at_the_turns_end_keeps_the_commit_from_happening(registry: HookRegistry) -> None:
    """A gate that refuses, or fails, skips what stands below it."""
    for gate in (giving(Decision("deny", "checks failed")), raising(ValueError("boom"))):
        calls: list[str] = []
        registry.register("gate", HookType.TURN_POST, gate, priority=5, role="guard")
        registry.register("autocommit", HookType.TURN_POST, noting(calls, "commit"), priority=1)
        outcome = fire(registry, HookType.TURN_POST)
        assert (outcome.decision.action, outcome.stopped_by, calls) == ("deny", "gate", [])


# -- failures ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook_type", ALL)
@pytest.mark.parametrize("role", ["guard", "record", None])
@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(0)], ids=["an error", "an exit"])
def test_a_handler_that_raises(
    registry: HookRegistry, hook_type: HookType, role: Any, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """A guard's failure denies with the reason at a decision event; everywhere else it is recorded, counted and passed over."""
    calls: list[str] = []
    registry.register("bad", hook_type, raising(error), priority=2, role=role)
    registry.register("good", hook_type, noting(calls, "good"), priority=1)
    outcome = fire(registry, hook_type)
    closed = hook_type in DECISION and (role == "guard" or (role is None and hook_type in CLOSED))
    assert outcome.decision.action == ("deny" if closed else "allow")
    if closed:
        assert "bad" in outcome.decision.reason and type(error).__name__ in outcome.decision.reason
    assert kinds(outcome) == [("bad", "raised")]
    assert registry.failed[hook_type.value, "bad"] == 1
    assert calls == ([] if closed and EVENTS[hook_type].deny_ends else ["good"])
    assert "bad" in caplog.text and (hook_type is HookType.ELICIT or "Traceback" in caplog.text or error.__traceback__ is None)


def test_an_error_that_cannot_be_put_into_words(registry: HookRegistry) -> None:
    """Its class is told."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    registry.register("a", HookType.TOOL_EXECUTE_PRE, raising(Mute()))
    outcome = fire(registry, HookType.TOOL_EXECUTE_PRE)
    assert (outcome.decision.action, outcome.failures[0].detail) == ("deny", "Mute")


@pytest.mark.parametrize("hook_type", DECISION)
def test_fail_closed_events_deny_for_a_recorder(hook_type: HookType) -> None:
    """A recorder's failure denies where the settings say so, and only there."""
    registry = HookRegistry(HookOptions(fail_closed_events=frozenset({hook_type})))
    registry.register("snapshots", hook_type, raising(OSError("disk full")), role="record")
    assert fire(registry, hook_type).decision.action == "deny"


@pytest.mark.parametrize("hook_type", ALL)
@pytest.mark.parametrize("garbage", ["text", b"bytes", 42, {"a": 1}, {}, object(), [1, "x"], True], ids=repr)
def test_garbage_is_a_failure(registry: HookRegistry, hook_type: HookType, garbage: Any) -> None:
    """An answer that is none is recorded, texts are not taken apart, and from a guard it denies."""
    if garbage is True and hook_type is HookType.TOOL_CONFIRM:
        garbage = ElicitationResponse.cancel()  # a plain yes is an answer there, as in gptme
    registry.register("a", hook_type, giving(garbage), role="guard")
    outcome = fire(registry, hook_type)
    assert kinds(outcome) == [("a", "garbage")]
    assert (outcome.messages, outcome.decision.action) == ((), "deny" if hook_type in DECISION else "allow")


@pytest.mark.parametrize("hook_type", ALL)
def test_messages_beside_garbage_are_kept(registry: HookRegistry, hook_type: HookType) -> None:
    """What is of use in a mixed answer is used, the rest recorded."""
    registry.register("a", hook_type, yielding(said("1"), 42, None, said("2")), role="record")
    outcome = fire(registry, hook_type)
    assert (list(outcome), kinds(outcome)) == ([said("1"), said("2")], [("a", "garbage")])


@pytest.mark.parametrize("bad", [Decision("block"), Decision("edit")], ids=["no such action", "an edit of nothing"])
def test_a_malformed_decision_is_garbage(registry: HookRegistry, bad: Decision) -> None:
    """A decision that says nothing fails closed, at TOOL_EXECUTE_PRE."""
    registry.register("a", HookType.TOOL_EXECUTE_PRE, giving(bad))
    outcome = fire(registry, HookType.TOOL_EXECUTE_PRE)
    assert (outcome.decision.action, kinds(outcome)) == ("deny", [("a", "garbage")])


def test_a_coroutine_is_garbage_and_closed(registry: HookRegistry) -> None:
    """A coroutine that a plain function returns is not left unawaited."""

    async def later() -> None: ...

    registry.register("a", HookType.STEP_PRE, lambda **_: later())
    assert kinds(fire(registry, HookType.STEP_PRE)) == [("a", "garbage")]


@pytest.mark.parametrize("hook_type", ALL)
def test_messages_before_a_failure_are_kept(registry: HookRegistry, hook_type: HookType) -> None:
    """A generator that breaks half-way has said what it said."""

    def handler(*args: Any, **kwargs: Any) -> Iterator[Message]:
        yield said("1")
        raise ValueError("boom")

    registry.register("a", hook_type, handler)
    outcome = fire(registry, hook_type)
    assert (list(outcome), kinds(outcome)) == ([said("1")], [("a", "raised")])


# -- time ----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hanging() -> Iterator[Handler]:
    """A handler that hangs until the test is over, and then is waited for."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def handler(*args: Any, **kwargs: Any) -> Iterator[Message]:
        threads.append(threading.current_thread())
        over.wait(60)
        yield said("too late")

    yield handler
    over.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("hook_type", ALL)
@pytest.mark.parametrize("on_timeout", ["deny", "ask"])
def test_a_handler_that_hangs(hook_type: HookType, on_timeout: Any, hanging: Handler) -> None:
    """Beyond its timeout a handler is left behind: deny or ask by setting where a guard decides, else skipped."""
    registry = HookRegistry(HookOptions(on_timeout=on_timeout))
    calls: list[str] = []
    registry.register("slow", hook_type, hanging, priority=2, timeout_s=0.01, role="guard")
    registry.register("next", hook_type, noting(calls, "next"), priority=1)
    outcome = fire(registry, hook_type)
    assert outcome.decision.action == (on_timeout if hook_type in DECISION else "allow")
    assert (outcome.messages, kinds(outcome)) == ((), [("slow", "timeout")])
    assert calls == ([] if outcome.stopped_by else ["next"])
    assert bool(outcome.stopped_by) == (outcome.decision.action == "deny" and EVENTS[hook_type].deny_ends)


def test_a_recorder_that_hangs_before_a_tool_is_asked_about(hanging: Handler) -> None:
    """A timeout is a decision at a closed event whatever the role; at the turn's end, which is open, only a guard's."""
    registry = HookRegistry(HookOptions(on_timeout="ask"))
    registry.register("slow", HookType.TOOL_EXECUTE_PRE, hanging, timeout_s=0.01, role="record")
    registry.register("slow", HookType.TURN_POST, hanging, timeout_s=0.01)
    assert fire(registry, HookType.TOOL_EXECUTE_PRE).decision.action == "ask"
    assert fire(registry, HookType.TURN_POST).decision.action == "allow"


@pytest.mark.parametrize("hook_type", ALL)
def test_a_handler_within_its_timeout_counts(registry: HookRegistry, hook_type: HookType) -> None:
    """A handler with a timeout says, stops and fails like any other."""
    registry.register("a", hook_type, yielding(said("1"), StopPropagation()), timeout_s=60, priority=2)
    registry.register("b", hook_type, giving(said("2")), priority=1)
    outcome = fire(registry, hook_type)
    assert (list(outcome), outcome.stopped_by) == ([said("1")], "a")


def test_a_handler_may_bound_itself(registry: HookRegistry) -> None:
    """An external command's own timeout is a timeout."""
    registry.register("a", HookType.TOOL_EXECUTE_PRE, raising(HandlerTimeout("took longer than 5 ms")))
    assert kinds(fire(registry, HookType.TOOL_EXECUTE_PRE)) == [("a", "timeout")]


def test_a_slow_handler_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    """Above five seconds, by the registry's clock, the log says so once."""
    times = iter([0.0, 5.1, 10.0, 14.9])
    registry = HookRegistry(clock=lambda: next(times))
    registry.register("slow", HookType.STEP_PRE, giving(None), priority=1)
    registry.register("fast", HookType.STEP_PRE, giving(None))
    outcome = fire(registry, HookType.STEP_PRE)
    assert [message for message in caplog.messages if "long time" in message] == ["hook 'slow' is taking a long time (5.1 s)"]
    assert [step.seconds for step in outcome.trace.steps] == pytest.approx([5.1, 4.9])


# -- what is not a failure -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook_type", ALL)
@pytest.mark.parametrize("timeout_s", [None, 60])
def test_an_interrupt(registry: HookRegistry, hook_type: HookType, timeout_s: float | None) -> None:
    """Ctrl-C during a decision event denies and skips the rest, an observer excepted; at an advisory event it propagates."""
    calls: list[str] = []
    registry.register("a", hook_type, raising(KeyboardInterrupt), priority=2, timeout_s=timeout_s)
    registry.register("b", hook_type, noting(calls, "b"), priority=1)
    registry.register("audit", hook_type, noting(calls, "audit"), observer=True)
    if hook_type in DECISION:
        outcome = fire(registry, hook_type)
        assert (outcome.decision, outcome.interrupted) == (Decision("deny", "interrupted by the user"), True)
        assert kinds(outcome) == [("a", "interrupted")]
    else:
        with pytest.raises(KeyboardInterrupt):
            fire(registry, hook_type)
    assert calls == ["audit"]


@pytest.mark.parametrize("hook_type", ALL)
def test_the_end_of_a_session_propagates(registry: HookRegistry, hook_type: HookType) -> None:
    """An exception of the class name SessionCompleteException, or below it, ends the session; observers have run."""

    class SessionCompleteException(Exception): ...

    class Done(SessionCompleteException): ...

    calls: list[str] = []
    registry.register("a", hook_type, raising(Done("done")), priority=2)
    registry.register("b", hook_type, noting(calls, "b"), priority=1)
    registry.register("audit", hook_type, noting(calls, "audit"), observer=True)
    with pytest.raises(SessionCompleteException):
        fire(registry, hook_type)
    assert calls == ["audit"]
    [trace] = registry.traces
    assert (trace.stopped_by, [step.result for step in trace.steps]) == ("a", ["ended", "ok"])


# -- what is handed over -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook_type", ALL)
def test_a_handler_that_mutates_its_input(registry: HookRegistry, hook_type: HookType) -> None:
    """Lists, payloads and what they hold are as the host gave them for the next handler, and for the host."""

    def mutates(*args: Any, **kwargs: Any) -> None:
        for each in (*args, *kwargs.values()):
            if isinstance(each, list):
                each.append("mutated")
            elif dataclasses.is_dataclass(each):
                for field in dataclasses.fields(each):
                    with pytest.raises(dataclasses.FrozenInstanceError):
                        setattr(each, field.name, "mutated")
                    held = getattr(each, field.name)
                    assert not isinstance(held, (list, dict, set))

    seen: list[Any] = []
    registry.register("mutates", hook_type, mutates, priority=2)
    registry.register("next", hook_type, lambda *args, **kwargs: seen.append((args, kwargs)), priority=1)
    args, kwargs = handed(hook_type)
    outcome = call_hooks(registry, hook_type, *args, **kwargs)
    assert outcome.failures == ()
    assert seen == [handed(hook_type)] == [(args, kwargs)]


def test_keywords_are_filtered_by_what_a_handler_names(registry: HookRegistry) -> None:
    """A handler gets what it names; one with ``**kwargs`` all of it but the session, which has to be named."""
    seen: dict[str, Any] = {}
    registry.register("few", HookType.FILE_SAVE_PRE, lambda path: seen.update(few=path))
    registry.register("all", HookType.FILE_SAVE_PRE, lambda **given: seen.update(all=sorted(given)))
    registry.register(
        "session", HookType.FILE_SAVE_PRE, lambda path, session, **given: seen.update(session=(session, sorted(given)))
    )
    registry.register("none", HookType.FILE_SAVE_PRE, lambda: seen.update(none=True))
    outcome = call_hooks(registry, HookType.FILE_SAVE_PRE, session="S", path="p", content="c", extra=1)
    assert seen == {"few": "p", "all": ["content", "extra", "path"], "session": ("S", ["content", "extra"]), "none": True}
    assert outcome.failures == ()


def test_a_missing_argument_is_the_handlers_failure(registry: HookRegistry) -> None:
    """An event fired without what a handler needs is a recorded failure, not a crash of the host."""
    registry.register("a", HookType.FILE_SAVE_PRE, lambda path, content: None)
    assert kinds(call_hooks(registry, HookType.FILE_SAVE_PRE, path="p")) == [("a", "raised")]


# -- observers and async -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook_type", ALL)
def test_observers_always_run_and_never_matter(registry: HookRegistry, hook_type: HookType) -> None:
    """After a stop too, after all others, with the outcome if they name it; what they do or say changes nothing."""
    seen: list[Any] = []
    registry.register("o1", hook_type, raising(ValueError("boom")), priority=9, observer=True, role="guard")
    registry.register("o2", hook_type, giving([said("noise"), StopPropagation()]), priority=8, observer=True)
    registry.register("o3", hook_type, lambda *args, outcome=None, **kwargs: seen.append(outcome.stopped_by), observer=True)
    registry.register("stopper", hook_type, giving(StopPropagation()), priority=1)
    outcome = fire(registry, hook_type)
    assert (seen, list(outcome), outcome.decision, outcome.stopped_by) == (["stopper"], [], Decision(), "stopper")
    assert kinds(outcome) == [("o1", "raised"), ("o2", "refused")]
    assert [step.hook for step in outcome.trace.steps] == ["stopper", "o1", "o2", "o3"]


@pytest.mark.parametrize("hook_type", [each for each in ALL if not EVENTS[each].answers])
def test_async_handlers_run_beside(registry: HookRegistry, hook_type: HookType) -> None:
    """They are started and not waited for; what they say, stop or decide counts for nothing."""
    begin, done = threading.Event(), threading.Event()

    def beside(*args: Any, **kwargs: Any) -> Iterator[Any]:
        assert begin.wait(60)
        yield said("noise")
        yield Decision("deny", "no")
        yield StopPropagation()

    def last(*args: Any, **kwargs: Any) -> None:
        assert begin.wait(60)
        done.set()

    registry.register("beside", hook_type, beside, priority=-9, async_mode=True)
    registry.register("last", hook_type, last, priority=-10, async_mode=True)
    registry.register("sync", hook_type, giving(said("1")))
    outcome = fire(registry, hook_type)
    assert not done.is_set()
    begin.set()
    assert done.wait(60)
    assert (list(outcome), outcome.decision, outcome.stopped_by) == ([said("1")], Decision(), "")
    assert [step.result for step in outcome.trace.steps] == ["started", "started", "ok"]


@pytest.mark.parametrize("hook_type", [HookType.STEP_PRE, HookType.TOOL_EXECUTE_PRE])
def test_a_thread_that_cannot_be_started_is_a_failure(
    registry: HookRegistry, hook_type: HookType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many threads: the handler has failed, the event goes on."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    registry.register("beside", hook_type, giving(None), async_mode=True)
    registry.register("bound", hook_type, giving(None), timeout_s=60)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    outcome = fire(registry, hook_type)
    assert kinds(outcome) == [("beside", "raised"), ("bound", "raised")]
    assert outcome.decision.action == ("deny" if hook_type in DECISION else "allow")


def test_an_async_failure_is_logged_and_counted(registry: HookRegistry, caplog: pytest.LogCaptureFixture) -> None:
    """It changes nothing for the host, and doctor can show it."""
    before = set(threading.enumerate())
    registry.register("bad", HookType.STEP_PRE, raising(ValueError("boom")), async_mode=True)
    assert fire(registry, HookType.STEP_PRE).failures == ()
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
    assert registry.failed[HookType.STEP_PRE.value, "bad"] == 1
    assert "boom" in caplog.text


PLACE = contextvars.ContextVar("place", default="nowhere")


@pytest.mark.parametrize("how", [{"async_mode": True}, {"timeout_s": 60}], ids=str)
def test_a_thread_of_its_own_has_a_copied_context(registry: HookRegistry, how: dict[str, Any]) -> None:
    """What the host has set is seen there, what is set there is not seen by the host."""
    seen: list[str] = []
    done = threading.Event()

    def handler(manager: object) -> None:
        seen.append(PLACE.get())
        PLACE.set("elsewhere")
        done.set()

    registry.register("a", HookType.STEP_PRE, handler, **how)
    token = PLACE.set("here")
    try:
        fire(registry, HookType.STEP_PRE)
        assert done.wait(60)
        assert (seen, PLACE.get()) == (["here"], "here")
    finally:
        PLACE.reset(token)


# -- answers -------------------------------------------------------------------------------------------------------------------------


def test_the_first_elicited_answer_ends_the_chain(registry: HookRegistry) -> None:
    """A handler that gives none is passed over, one that fails too; those below the answer are not asked."""
    calls: list[str] = []
    registry.register("a", HookType.ELICIT, raising(ValueError("boom")), priority=4)
    registry.register("b", HookType.ELICIT, giving(None), priority=3)
    registry.register("c", HookType.ELICIT, giving(ElicitationResponse.text("x")), priority=2)
    registry.register("d", HookType.ELICIT, noting(calls, "d"), priority=1)
    outcome = fire(registry, HookType.ELICIT)
    assert (outcome.answer, outcome.stopped_by, calls) == (ElicitationResponse.text("x"), "c", [])


@pytest.mark.parametrize("hook_type", [HookType.STEP_PRE, HookType.TOOL_EXECUTE_PRE, HookType.ELICIT])
def test_an_answer_out_of_place_is_garbage(registry: HookRegistry, hook_type: HookType) -> None:
    """A confirmation is an answer at TOOL_CONFIRM only."""
    registry.register("a", hook_type, giving(ConfirmationResult.confirm()))
    assert kinds(fire(registry, hook_type)) == [("a", "garbage")]


# -- trace ---------------------------------------------------------------------------------------------------------------------------


def test_the_trace_as_lines(registry: HookRegistry) -> None:
    """One JSON object a call: who was called in what order, for how long, who stopped, what failed; nothing that was said."""
    times = iter([0.0, 0.002, 1.0, 1.0])
    registry = HookRegistry(clock=lambda: next(times))
    registry.register("bad", HookType.TOOL_EXECUTE_PRE, raising(ValueError("boom")), priority=2)
    registry.register("stop", HookType.TOOL_EXECUTE_PRE, yielding(said("hush"), StopPropagation()), priority=1)
    registry.register("low", HookType.TOOL_EXECUTE_PRE, giving(None))
    fire(registry, HookType.TOOL_EXECUTE_PRE)
    [line] = trace_lines(registry.traces)
    assert json.loads(line) == {
        "event": "tool.execute.pre",
        "action": "deny",
        "decided_by": "bad",
        "stopped_by": "stop",
        "handlers": [
            {"name": "bad", "id": "h1", "result": "failed", "ms": 2.0, "messages": 0},
            {"name": "stop", "id": "h2", "result": "stopped", "ms": 0.0, "messages": 1},
            {"name": "low", "id": "h3", "result": "skipped", "ms": 0.0, "messages": 0},
        ],
        "failures": [{"name": "bad", "kind": "raised", "detail": "ValueError: boom"}],
    }
    assert "hush" not in line


def test_the_ring_is_bounded_and_silence_is_not_kept(registry: HookRegistry) -> None:
    """Events nobody listens to leave no trace, nor do chunks that went well; of the others the last are kept."""
    fire(registry, HookType.STEP_PRE)
    registry.register("a", HookType.GENERATION_CHUNK, giving(None))
    fire(registry, HookType.GENERATION_CHUNK)
    assert not registry.traces
    registry.register("a", HookType.STEP_PRE, giving(None))
    for _ in range(300):
        fire(registry, HookType.STEP_PRE)
    assert len(registry.traces) == 200


def test_a_secret_in_an_error_goes_nowhere(registry: HookRegistry, caplog: pytest.LogCaptureFixture) -> None:
    """At ELICIT the text of an error is left out of the log, the failures and the trace."""
    caplog.set_level(logging.DEBUG)
    registry.register("a", HookType.ELICIT, raising(ValueError("hunter2 is too short")), priority=1)
    registry.register("b", HookType.ELICIT, giving(ElicitationResponse.text("hunter2", sensitive=True)))
    outcome = fire(registry, HookType.ELICIT)
    assert "hunter2" not in caplog.text + repr(outcome) + repr(outcome.answer) + "".join(trace_lines(registry.traces))
    assert kinds(outcome) == [("a", "raised")]
