"""The registry: what is taken in and what is refused, in which order it stands, and whose it is."""

from __future__ import annotations

import contextvars
import functools
import logging
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import safety.types
from safety.hooks import (
    Hook,
    HookRefused,
    HookRegistry,
    HookType,
    Message,
    clear_hooks,
    disable_hook,
    enable_hook,
    get_hooks,
    get_registry,
    register_hook,
    set_registry,
    trigger_hook,
    unregister_hook,
)
from safety.hooks.events import DECISION_EVENTS, EVENTS
from safety.types import Decision
from tests.hooks.moments import ADVISORY, ALL, DECISION, WITH_ANSWER, said
from tests.support.typed import assert_only_the_wrong_is_found

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def registry() -> HookRegistry:
    return HookRegistry()


def nothing(*args: Any, **kwargs: Any) -> None: ...


def test_there_are_23_events_each_with_a_row() -> None:
    """Values are category.event; three of the events decide."""
    assert len(HookType) == 23 and set(EVENTS) == set(HookType)
    assert all("." in each.value or each is HookType.ELICIT for each in HookType)
    assert {HookType.TOOL_EXECUTE_PRE, HookType.TOOL_CONFIRM, HookType.TURN_POST} == DECISION_EVENTS
    assert {each for each in HookType if EVENTS[each].closed} == {HookType.TOOL_EXECUTE_PRE, HookType.TOOL_CONFIRM}


def test_higher_priority_first_then_names_from_z_to_a(registry: HookRegistry) -> None:
    """The order of gptme, ties included."""
    for name, priority in (("a", 1), ("c", 5), ("b", 5), ("d", 9)):
        registry.register(name, HookType.STEP_PRE, nothing, priority)
    assert [hook.name for hook in registry.get_hooks(HookType.STEP_PRE)] == ["d", "c", "b", "a"]


def test_the_same_name_and_event_replaces(registry: HookRegistry, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, has a new id, and an old id no longer takes anything out; another event's handler of that name stays."""
    caplog.set_level(logging.INFO)
    old = registry.register("a", HookType.STEP_PRE, nothing)
    registry.register("a", HookType.STEP_POST, nothing)
    new = registry.register("a", "step.pre", nothing, 7)
    assert [(hook.id, hook.priority) for hook in registry.get_hooks(HookType.STEP_PRE)] == [(new, 7)] and old != new
    assert "replaces" in caplog.text
    registry.unregister(id=old)
    assert len(registry.get_hooks()) == 2
    registry.unregister(id=new)
    assert [hook.hook_type for hook in registry.get_hooks()] == [HookType.STEP_POST]


def test_the_functions_act_on_the_current_registry(registry: HookRegistry) -> None:
    """register, trigger, disable, enable, unregister and clear, by gptme's names."""
    old = get_registry()
    try:
        set_registry(registry)
        register_hook("a", HookType.STEP_PRE, lambda manager: said(manager))
        register_hook("b", HookType.STEP_POST, lambda manager: said(manager))
        assert [message.content for message in trigger_hook(HookType.STEP_PRE, manager="m")] == ["m"]
        disable_hook("a")
        assert list(trigger_hook(HookType.STEP_PRE, manager="m")) == [] and len(get_hooks()) == 2
        enable_hook("a", HookType.STEP_PRE)
        assert len(list(trigger_hook(HookType.STEP_PRE, manager="m"))) == 1
        unregister_hook("a", HookType.STEP_POST)
        unregister_hook("a")
        assert [hook.name for hook in get_hooks()] == ["b"]
        clear_hooks(HookType.STEP_PRE)
        assert len(get_hooks()) == 1
        clear_hooks()
        assert get_hooks() == registry.get_hooks() == []
    finally:
        set_registry(old)


def test_each_context_has_its_own_registry() -> None:
    """A plain new thread starts with an empty one; a copied context shares its registry."""
    found: dict[str, HookRegistry] = {}
    mine = get_registry()
    plain = threading.Thread(target=lambda: found.update(plain=get_registry()))
    copied = threading.Thread(target=contextvars.copy_context().run, args=(lambda: found.update(copied=get_registry()),))
    for thread in (plain, copied):
        thread.start()
        thread.join()
    assert found["copied"] is mine and found["plain"] is not mine


def test_a_handler_registered_meanwhile_waits_for_the_next_time(registry: HookRegistry) -> None:
    """An event goes through the handlers that were there when it began."""
    calls: list[str] = []

    def registers(manager: object) -> None:
        registry.register("late", HookType.STEP_PRE, lambda: calls.append("late"), -1)
        registry.unregister("low")

    registry.register("high", HookType.STEP_PRE, registers, 2)
    registry.register("low", HookType.STEP_PRE, lambda: calls.append("low"))
    registry.trigger(HookType.STEP_PRE, manager=None)
    assert calls == ["low"]


# -- refusals ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook_type", ALL)
def test_a_wrong_signature_is_refused(registry: HookRegistry, hook_type: HookType) -> None:
    """What demands more than is handed over, takes less by position, or takes names by position is refused with both named."""
    row = EVENTS[hook_type]
    wrong = [lambda *args, surprise: None, lambda *args, outcome: None]
    if row.positional:
        wrong.append(lambda: None)
    else:
        wrong.append(lambda surprise: None)
        wrong.append(lambda manager, /: None)
    for func in wrong:
        with pytest.raises(HookRefused, match=hook_type.value) as refused:
            registry.register("a", hook_type, func)
        assert "its signature is (" in refused.value.message
    assert registry.get_hooks() == []


@pytest.mark.parametrize("hook_type", ALL)
def test_a_right_signature_is_taken(registry: HookRegistry, hook_type: HookType) -> None:
    """All it hands over by name, defaults beyond, the session, bound methods, partials and callable objects."""
    row = EVENTS[hook_type]
    names = ", ".join([*row.positional, *row.keywords, "session", "more=None"])
    registry.register("all", hook_type, eval(f"lambda {names}: None"))

    class Bundle:
        def method(self, *args: Any, **kwargs: Any) -> None: ...

        def __call__(self, *args: Any) -> None: ...

    registry.register("method", hook_type, Bundle().method)
    registry.register("object", hook_type, Bundle())
    registry.register("partial", hook_type, functools.partial(nothing, "first"))
    assert len(registry.get_hooks(hook_type)) == 4


def gives_decision(*args: Any) -> Decision: ...
def may_give_decision(*args: Any) -> Decision | None: ...
def yields_decision(*args: Any) -> Iterator[Message | Decision]: ...
def returns_decision(*args: Any) -> Generator[Message, None, safety.types.Decision]: ...


DECIDING = [gives_decision, may_give_decision, yields_decision, returns_decision]


@pytest.mark.parametrize("hook_type", ADVISORY)
@pytest.mark.parametrize("func", DECIDING)
def test_a_decision_at_an_advisory_event_is_refused(registry: HookRegistry, hook_type: HookType, func: Any) -> None:
    """Where the annotation tells, however it is written, registration refuses."""
    with pytest.raises(HookRefused, match="Decision"):
        registry.register("a", hook_type, func)


@pytest.mark.parametrize("hook_type", DECISION)
@pytest.mark.parametrize("func", DECIDING)
def test_a_decision_at_a_decision_event_is_taken(registry: HookRegistry, hook_type: HookType, func: Any) -> None:
    """There it counts; not from an async handler or an observer, which are refused."""
    registry.register("a", hook_type, func)
    with pytest.raises(HookRefused):
        registry.register("b", hook_type, func, observer=True)
    if hook_type not in WITH_ANSWER:
        with pytest.raises(HookRefused):
            registry.register("c", hook_type, func, async_mode=True)


async def coroutine(*args: Any) -> None: ...


async def async_generator(*args: Any) -> Any:
    yield None


@pytest.mark.parametrize("func", [coroutine, async_generator, "text"], ids=str)
def test_what_cannot_be_called_plainly_is_refused(registry: HookRegistry, func: Any) -> None:
    """An async def would never run, a text cannot be called."""
    with pytest.raises(HookRefused):
        registry.register("a", HookType.STEP_PRE, func)


@pytest.mark.parametrize("hook_type", WITH_ANSWER)
def test_whose_answer_is_waited_for_is_not_async(registry: HookRegistry, hook_type: HookType) -> None:
    """A confirmation and an elicitation have no async form."""
    with pytest.raises(HookRefused, match="async"):
        registry.register("a", hook_type, nothing, async_mode=True)


def test_odd_values_are_refused(registry: HookRegistry) -> None:
    """An unknown event, role or timeout has its sentence."""
    for arguments, wrong in (
        ({"hook_type": "step.before"}, "step.before"),
        ({"role": "boss"}, "boss"),
        ({"timeout_s": 0}, "timeout"),
    ):
        given: dict[str, Any] = {"hook_type": HookType.STEP_PRE, **arguments}
        with pytest.raises(HookRefused, match=wrong):
            registry.register("a", func=nothing, **given)


def test_a_hook_can_be_made_by_itself() -> None:
    """As gptme's code does; it compares by its place in the order."""
    hooks = [Hook(name, HookType.STEP_PRE, nothing, priority) for name, priority in (("a", 1), ("b", 2))]
    assert [hook.name for hook in sorted(hooks)] == ["b", "a"]


# -- types and imports ---------------------------------------------------------------------------------------------------------------

SAMPLE = """
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safety.hooks import (
    ConfirmationResult, ElicitationRequest, ElicitationResponse, HookType, Message, StopPropagation, ToolExecutePostData,
    ToolExecutePreData, register_hook,
)
from safety.types import Decision


def pre(data: ToolExecutePreData, session: Any) -> Decision | None: raise NotImplementedError
def post(data: ToolExecutePostData) -> Iterator[Message | StopPropagation]: yield StopPropagation()
def confirms(tool_use: Any, preview: str | None, workspace: Path | None) -> ConfirmationResult | None: raise NotImplementedError
def elicits(request: ElicitationRequest) -> ElicitationResponse | None: raise NotImplementedError
def saves(path: Path, content: str) -> Message: raise NotImplementedError
def decides(manager: Any) -> Decision: raise NotImplementedError


register_hook("ok", HookType.TOOL_EXECUTE_PRE, pre, 5, role="guard")
register_hook("ok", HookType.TOOL_EXECUTE_POST, post)
register_hook("ok", HookType.TOOL_CONFIRM, confirms)
register_hook("ok", HookType.ELICIT, elicits)
register_hook("ok", HookType.FILE_SAVE_PRE, saves)
register_hook("ok", HookType.TURN_POST, decides)
register_hook("wrong", HookType.TOOL_EXECUTE_PRE, post)  # wrong
register_hook("wrong", HookType.TOOL_EXECUTE_POST, pre)  # wrong
register_hook("wrong", HookType.TOOL_CONFIRM, elicits)  # wrong
register_hook("wrong", HookType.TOOL_CONFIRM, confirms, async_mode=True)  # wrong
register_hook("wrong", HookType.ELICIT, confirms)  # wrong
register_hook("wrong", HookType.STEP_PRE, decides)  # wrong
register_hook("wrong", HookType.STEP_PRE, saves, role="boss")  # wrong
"""


def test_the_type_checker_tells_right_from_wrong(tmp_path: Path) -> None:
    """mypy takes each right registration of the sample and finds fault with each wrong one."""
    assert_only_the_wrong_is_found(SAMPLE, tmp_path)


def test_importing_the_package_costs_nothing() -> None:
    """``import safety.hooks`` loads no other module; every name it lists is there."""
    code = "import sys, safety; old = set(sys.modules); import safety.hooks; print(*sorted(set(sys.modules) - old))"
    env = {"PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["safety.hooks"]
    import safety.hooks

    assert all(getattr(safety.hooks, name) is not None for name in dir(safety.hooks))
    assert callable(safety.hooks.elicit) and callable(safety.hooks.get_confirmation)
    with pytest.raises(AttributeError):
        _ = safety.hooks.nonsense
