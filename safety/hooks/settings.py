"""The ``hooks`` and ``hook_options`` of ``settings.json``: which handlers are registered, and what their failures may do.

.. code-block:: json

    {"hooks": {"PreToolUse": ["guard.check", {"command": ["./check.sh"], "timeout_ms": 2000}]},
     "hook_options": {"fail_closed_events": ["PreToolUse"], "timeout_ms": 60000, "on_timeout": "deny"}}

An event goes by its value, its member's name, or one of four aliases. A text is the name of a handler on offer, an object is a
command, which gets the event as JSON on standard input. Two layers are read: the user's, of which every error is raised, and the
project's, which may only tighten and names no commands; what it may not is left out and told in ``problems``, so that a folder
somebody sent can neither loosen nor stop anything.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from safety.faults import SafetyError
from safety.hooks.answers import ElicitationResponse, StopPropagation
from safety.hooks.caller import HandlerTimeout
from safety.hooks.events import DECISION_EVENTS, EVENTS, HookOptions, HookType, OnTimeout
from safety.hooks.handlers import Handler, Role
from safety.hooks.message import Message
from safety.hooks.priorities import EXTERNAL_COMMAND
from safety.hooks.registry import HookRegistry
from safety.types import Decision

ALIASES: Mapping[str, HookType] = {
    "UserPromptSubmit": HookType.TURN_PRE,
    "PreToolUse": HookType.TOOL_EXECUTE_PRE,
    "PostToolUse": HookType.TOOL_EXECUTE_POST,
    "Stop": HookType.TURN_POST,
}
EVENT_NAMES: Mapping[str, HookType] = {
    **{hook_type.value: hook_type for hook_type in HookType},
    **{hook_type.name: hook_type for hook_type in HookType},
    **ALIASES,
}
TIMEOUT_MS_MAX = 600_000
ON_TIMEOUT = ("ask", "deny")  # from loose to tight


class SettingsInvalid(SafetyError):
    """A value in the settings that cannot be used; the message begins with its key."""

    code, exit_code = "settings-invalid", 2


class CommandFailed(SafetyError):
    """An external command ended badly or answered what is no answer."""

    code = "hook-command-failed"


@dataclass(frozen=True)
class Command:
    """An external command: a list is run as it is, a text by a shell."""

    command: str | tuple[str, ...]
    timeout_ms: int
    priority: int = EXTERNAL_COMMAND
    role: Role | None = None

    @property
    def shown(self) -> str:
        return self.command if isinstance(self.command, str) else " ".join(self.command)


@dataclass(frozen=True)
class Ran:
    """What a command left. ``timed_out``: it was ended because it took too long."""

    code: int
    out: bytes = b""
    err: bytes = b""
    timed_out: bool = False


@dataclass(frozen=True)
class Offer:
    """A handler that settings may name, at ``event`` only if that is given. ``tightens``: a project may name it too, since it can
    only refuse more."""

    func: Handler
    priority: int = 0
    role: Role | None = None
    timeout_s: float | None = None
    observer: bool = False
    tightens: bool = False
    event: HookType | None = None


Entry: TypeAlias = str | Command
Describe: TypeAlias = Callable[[Any], Mapping[str, Any]]
RunCommand: TypeAlias = Callable[[str | tuple[str, ...], bytes, float], Ran]


@dataclass(frozen=True)
class HookSettings:
    """Both layers joined. ``names_of_project`` are those entries that came from the project; ``problems`` one line each."""

    hooks: Mapping[HookType, tuple[Entry, ...]]
    options: HookOptions
    names_of_project: frozenset[tuple[HookType, str]] = frozenset()
    problems: tuple[str, ...] = ()


def read_settings(user: Mapping[str, Any], project: Mapping[str, Any] | None = None) -> HookSettings:
    """The two layers, as parsed JSON, joined. Raises SettingsInvalid for the user's own mistakes."""
    options = _options(user.get("hook_options", {}), "hook_options")
    hooks = _hooks(user.get("hooks", {}), options, "hooks")
    problems: list[str] = []
    if project:
        options = _tightened(options, project.get("hook_options", {}), problems)
    named: set[tuple[HookType, str]] = set()
    for hook_type, name in _project_names((project or {}).get("hooks", {}), problems):
        if name not in hooks.get(hook_type, ()):
            hooks[hook_type] = (*hooks.get(hook_type, ()), name)
            named.add((hook_type, name))
    return HookSettings(hooks, options, frozenset(named), tuple(problems))


def apply_settings(
    registry: HookRegistry,
    settings: HookSettings,
    offers: Mapping[str, Offer],
    run: RunCommand | None = None,
    describe: Describe | None = None,
) -> tuple[str, ...]:
    """Registers what the settings name and sets the registry's options. Gives what was left out, one line each, the problems first.

    ``run`` runs commands and ends them in time; ``describe`` gives what a command is told of the session (its id, its folder).
    Raises SettingsInvalid for a name of the user's that is not on offer, and for a command when ``run`` is not handed in.
    """
    registry.options = settings.options
    left_out = list(settings.problems)
    for hook_type, entries in settings.hooks.items():
        for position, entry in enumerate(entries):
            key = f"hooks.{hook_type.value}[{position}]"
            if isinstance(entry, Command):
                if run is None:
                    raise SettingsInvalid(f"{key}.command: commands are not run here")
                registry.register(
                    f"command:{entry.shown}",
                    hook_type,
                    command_handler(hook_type, entry, run, describe),
                    entry.priority,
                    role=entry.role,
                )
                continue
            offer = offers.get(entry)
            if offer is not None and offer.event not in (None, hook_type):
                offer = None
            from_project = (hook_type, entry) in settings.names_of_project
            if offer is None or (from_project and not offer.tightens):
                why = f"{key}: {entry!r} is not a handler on offer{_near(entry, offers)}" if offer is None else ""
                if not from_project:
                    raise SettingsInvalid(why)
                left_out.append(f"project {why or f'{key}: {entry!r} may only be named in your own settings'}")
                continue
            registry.register(
                entry, hook_type, offer.func, offer.priority, role=offer.role, timeout_s=offer.timeout_s, observer=offer.observer
            )
    return tuple(left_out)


def event_named(name: str, key: str) -> HookType:
    """The event of a value, a member's name or an alias."""
    if name not in EVENT_NAMES:
        raise SettingsInvalid(f"{key}: there is no event {name!r}{_near(name, EVENT_NAMES)}")
    return EVENT_NAMES[name]


# -- reading -----------------------------------------------------------------------------------------------------------------------


def _hooks(value: Any, options: HookOptions, key: str) -> dict[HookType, tuple[Entry, ...]]:
    hooks: dict[HookType, tuple[Entry, ...]] = {}
    for name, entries in _object(value, key).items():
        hook_type = event_named(name, f"{key}.{name}")
        if not isinstance(entries, list):
            raise SettingsInvalid(f"{key}.{name}: a list of names or commands is wanted, not {_kind(entries)}")
        found = (_entry(entry, options, f"{key}.{name}[{position}]") for position, entry in enumerate(entries))
        hooks[hook_type] = tuple(dict.fromkeys((*hooks.get(hook_type, ()), *found)))
    return hooks


def _entry(value: Any, options: HookOptions, key: str) -> Entry:
    if isinstance(value, str) and value.strip():
        return value
    if not isinstance(value, dict):
        raise SettingsInvalid(f"{key}: a name or an object with command is wanted, not {_kind(value)}")
    _known(value, ("command", "timeout_ms", "priority", "role", "type"), key)
    command = value.get("command")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        command = tuple(command)
    elif not (isinstance(command, str) and command.strip()):
        raise SettingsInvalid(f"{key}.command: a text or a list of texts is wanted, not {_kind(command)}")
    if value.get("type", "command") != "command":
        raise SettingsInvalid(f"{key}.type: only 'command' is known, not {value['type']!r}")
    role = value.get("role")
    if role not in (None, "guard", "record"):
        raise SettingsInvalid(f"{key}.role: 'guard' or 'record' is wanted, not {role!r}")
    priority = value.get("priority", EXTERNAL_COMMAND)
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise SettingsInvalid(f"{key}.priority: a whole number is wanted, not {_kind(priority)}")
    return Command(command, _timeout_ms(value.get("timeout_ms", options.timeout_ms), f"{key}.timeout_ms"), priority, role)


def _options(value: Any, key: str) -> HookOptions:
    value = _object(value, key)
    _known(value, ("fail_closed_events", "timeout_ms", "on_timeout"), key)
    standard = HookOptions()
    events = value.get("fail_closed_events", [])
    if not isinstance(events, list):
        raise SettingsInvalid(f"{key}.fail_closed_events: a list of events is wanted, not {_kind(events)}")
    closed: set[HookType] = set()
    for position, name in enumerate(events):
        where = f"{key}.fail_closed_events[{position}]"
        hook_type = event_named(name, where) if isinstance(name, str) else None
        if hook_type is None or hook_type not in DECISION_EVENTS:
            known = ", ".join(sorted(each.value for each in DECISION_EVENTS))
            raise SettingsInvalid(f"{where}: nothing is decided at {name!r}; things are at {known}")
        closed.add(hook_type)
    on_timeout = value.get("on_timeout", standard.on_timeout)
    if on_timeout not in ON_TIMEOUT:
        raise SettingsInvalid(f"{key}.on_timeout: 'deny' or 'ask' is wanted, not {on_timeout!r}")
    timeout_ms = _timeout_ms(value.get("timeout_ms", standard.timeout_ms), f"{key}.timeout_ms")
    return HookOptions(frozenset(closed), timeout_ms, cast(OnTimeout, on_timeout))


def _timeout_ms(value: Any, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= TIMEOUT_MS_MAX:
        raise SettingsInvalid(f"{key}: a number from 1 to {TIMEOUT_MS_MAX} is wanted, not {value!r}")
    return value


def _tightened(options: HookOptions, value: Any, problems: list[str]) -> HookOptions:
    """The user's options with what a project tightens: more closed events, deny for ask. A timeout is the user's alone: a shorter
    one skips a check at an advisory event, a longer one waits."""
    try:
        wanted = _options(value, "hook_options")
    except SettingsInvalid as error:
        problems.append(f"project {error.message}")
        return options
    if "timeout_ms" in value and wanted.timeout_ms != options.timeout_ms:
        problems.append("project hook_options.timeout_ms: may only be set in your own settings")
    on_timeout = options.on_timeout
    if "on_timeout" in value:
        if ON_TIMEOUT.index(wanted.on_timeout) < ON_TIMEOUT.index(on_timeout):
            problems.append("project hook_options.on_timeout: a project may only tighten")
        else:
            on_timeout = wanted.on_timeout
    return HookOptions(options.fail_closed_events | wanted.fail_closed_events, options.timeout_ms, on_timeout)


def _project_names(value: Any, problems: list[str]) -> list[tuple[HookType, str]]:
    found: list[tuple[HookType, str]] = []
    if not isinstance(value, dict):
        problems.append(f"project hooks: an object is wanted, not {_kind(value)}")
        return found
    for event, entries in value.items():
        if event not in EVENT_NAMES or not isinstance(entries, list):
            problems.append(f"project hooks.{event}: {'a list is wanted' if event in EVENT_NAMES else 'there is no such event'}")
            continue
        for position, entry in enumerate(entries):
            if isinstance(entry, str) and entry.strip():
                found.append((EVENT_NAMES[event], entry))
            else:
                problems.append(f"project hooks.{event}[{position}]: a project may name handlers on offer only, and no commands")
    return found


def _object(value: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise SettingsInvalid(f"{key}: an object is wanted, not {_kind(value)}")
    return value


def _known(value: Mapping[str, Any], known: Sequence[str], key: str) -> None:
    for name in value:
        if name not in known:
            raise SettingsInvalid(f"{key}.{name}: there is no such setting{_near(name, known)}")


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _kind(value: Any) -> str:
    return {"NoneType": "nothing", "dict": "an object", "list": "a list", "str": "a text", "bool": "true or false"}.get(
        type(value).__name__, "a number"
    )


# -- external commands -------------------------------------------------------------------------------------------------------------


def command_handler(hook_type: HookType, command: Command, run: RunCommand, describe: Describe | None = None) -> Handler:
    """A handler that runs ``command`` with the event as JSON on its standard input and reads its answer.

    Exit code 0: standard output is empty or a JSON object with ``decision``, ``reason``, ``input`` and ``messages``. Exit code 2:
    deny, with what is on standard error as the reason; at an advisory event, a stop. Anything else is a failure of the handler.
    """
    row = EVENTS[hook_type]

    def external(*args: Any, session: Any = None, **kwargs: Any) -> list[Any]:
        given = {**(describe(session) if describe and session is not None else {}), **event_json(hook_type, args, kwargs)}
        ran = run(command.command, json.dumps(given, ensure_ascii=True).encode("ascii"), command.timeout_ms / 1000)
        if ran.timed_out:
            raise HandlerTimeout(f"took longer than {command.timeout_ms} ms")
        complaint = ran.err.decode("utf-8", "replace").strip()
        if ran.code == 2:
            return [Decision("deny", complaint or "refused by a hook")] if row.decides else [StopPropagation()]
        if ran.code:
            raise CommandFailed(f"exit code {ran.code}{': ' + complaint[-200:] if complaint else ''}")
        return _answers(ran.out, row.decides)

    return external


# The words for a turn that goes on or ends, as the hook protocol has them.
_AT_TURN_END = {"continue": "deny", "stop": "allow"}


def _answers(out: bytes, decides: bool) -> list[Any]:
    text = out.decode("utf-8", "replace").strip()
    if not text:
        return []
    try:
        answer = json.loads(text)
    except ValueError:
        raise CommandFailed("its standard output is not JSON") from None
    if not isinstance(answer, dict):
        raise CommandFailed("its standard output is not a JSON object")
    messages, reason, changed = answer.get("messages", []), answer.get("reason", ""), answer.get("input")
    if not isinstance(messages, list) or not all(isinstance(each, str) for each in messages):
        raise CommandFailed("messages is not a list of texts")
    if not isinstance(reason, str) or not (changed is None or isinstance(changed, dict)):
        raise CommandFailed("reason is not a text, or input not an object")
    given: list[Any] = [Message("system", each) for each in messages]
    action = answer.get("decision")
    if isinstance(action, str) and (decides or action != "allow"):
        given.append(Decision(_AT_TURN_END.get(action, action), reason, changed))
    elif action is not None and not isinstance(action, str):
        raise CommandFailed("decision is not a text")
    return given


def event_json(hook_type: HookType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """An event as a JSON object: its name, and what is handed over by its names. Values that are not data are left out."""
    row = EVENTS[hook_type]
    given: dict[str, Any] = {**dict(zip(row.positional, args, strict=False)), **kwargs}
    data = given.pop("data", None)
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        given |= {field.name: getattr(data, field.name) for field in dataclasses.fields(data) if field.name != "log"}
    return {"event": hook_type.value, **{name: plain for name, value in given.items() if (plain := _plain(value)) is not _OPAQUE}}


_OPAQUE = object()


def _plain(value: Any) -> Any:
    """A value as JSON has it, or ``_OPAQUE``."""
    if isinstance(value, ElicitationResponse):
        return _OPAQUE
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, Mapping):
        return {str(name): plain for name, each in value.items() if (plain := _plain(each)) is not _OPAQUE}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain for each in value if (plain := _plain(each)) is not _OPAQUE]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    return _OPAQUE
