"""The moments at which handlers are called: one row each, with what is handed over and what an answer may do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Concatenate, Literal, TypeAlias

from safety.hooks.answers import ConfirmationResult, ElicitationRequest, ElicitationResponse, StopPropagation
from safety.hooks.message import Message
from safety.types import Decision


class HookType(str, Enum):  # noqa: UP042 - as gptme has it, str() gives the member's name
    """The 23 events, with gptme's names and values ([gptme] 1)."""

    STEP_PRE = "step.pre"
    STEP_POST = "step.post"
    TURN_PRE = "turn.pre"
    TURN_POST = "turn.post"
    MESSAGE_TRANSFORM = "message.transform"
    TOOL_EXECUTE_PRE = "tool.execute.pre"
    TOOL_EXECUTE_POST = "tool.execute.post"
    TOOL_TRANSFORM = "tool.transform"
    FILE_SAVE_PRE = "file.save.pre"
    FILE_SAVE_POST = "file.save.post"
    FILE_PATCH_PRE = "file.patch.pre"
    FILE_PATCH_POST = "file.patch.post"
    SESSION_START = "session.start"
    SESSION_END = "session.end"
    GENERATION_PRE = "generation.pre"
    GENERATION_POST = "generation.post"
    GENERATION_CHUNK = "generation.chunk"
    GENERATION_INTERRUPT = "generation.interrupt"
    LOOP_CONTINUE = "loop.continue"
    CWD_CHANGED = "cwd.changed"
    CACHE_INVALIDATED = "cache.invalidated"
    TOOL_CONFIRM = "tool.confirm"
    ELICIT = "elicit"


@dataclass(frozen=True)
class Event:
    """One row: how handlers of an event are called and what their answers may do.

    ``positional`` names what is handed by position; ``keywords`` what may be handed by name, of which a handler names what it wants
    (and ``session``, always). ``decides``: a ``Decision`` of a handler counts (a decision event), else the event is advisory.
    ``closed``: a handler that fails and was given no role denies. ``deny_ends``: after a deny no lower handler is called.
    ``answers``: the type of which the first answer is the result, and ends the chain. ``secret``: what is handed or answered may be
    a secret, so the text of an error is not kept.
    """

    positional: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    decides: bool = False
    closed: bool = False
    deny_ends: bool = False
    answers: type | None = None
    secret: bool = False


EVENTS: Mapping[HookType, Event] = MappingProxyType(
    {
        HookType.STEP_PRE: Event((), ("manager",)),
        HookType.STEP_POST: Event((), ("manager",)),
        HookType.TURN_PRE: Event((), ("manager", "prompt")),
        # Where the gate stands: a deny sends the agent back to work, and the commit below it must not happen. Open by default,
        # since a handler that fails at the end of every turn would keep the agent going for ever ([gptme] 0.5).
        HookType.TURN_POST: Event((), ("manager",), decides=True, deny_ends=True),
        # The message yielded stands in for the one handed over; none: it stays as it is.
        HookType.MESSAGE_TRANSFORM: Event((), ("message", "manager", "workspace")),
        HookType.TOOL_EXECUTE_PRE: Event(("data",), decides=True, closed=True),
        HookType.TOOL_EXECUTE_POST: Event(("data",)),
        HookType.TOOL_TRANSFORM: Event((), ("message", "tool_use", "workspace")),
        HookType.FILE_SAVE_PRE: Event((), ("log", "workspace", "path", "content")),
        HookType.FILE_SAVE_POST: Event((), ("log", "workspace", "path", "content", "created")),
        HookType.FILE_PATCH_PRE: Event((), ("log", "workspace", "path", "patch")),
        HookType.FILE_PATCH_POST: Event((), ("log", "workspace", "path", "patch")),
        HookType.SESSION_START: Event((), ("logdir", "workspace", "initial_msgs")),
        HookType.SESSION_END: Event((), ("logdir", "manager")),
        HookType.GENERATION_PRE: Event(("messages",), ("workspace", "manager", "model")),
        HookType.GENERATION_POST: Event((), ("message", "workspace")),
        HookType.GENERATION_CHUNK: Event((), ("chunk", "workspace")),
        HookType.GENERATION_INTERRUPT: Event((), ("manager", "workspace")),
        HookType.LOOP_CONTINUE: Event((), ("manager", "interactive", "prompt_queue", "no_confirm")),
        HookType.CWD_CHANGED: Event((), ("log", "workspace", "old_cwd", "new_cwd", "tool_use")),
        HookType.CACHE_INVALIDATED: Event((), ("manager", "reason", "tokens_before", "tokens_after")),
        # ``decision`` is what the handlers above have decided so far.
        HookType.TOOL_CONFIRM: Event(
            ("tool_use", "preview", "workspace"),
            ("decision",),
            decides=True,
            closed=True,
            deny_ends=True,
            answers=ConfirmationResult,
        ),
        HookType.ELICIT: Event(("request",), answers=ElicitationResponse, secret=True),
    }
)

DECISION_EVENTS = frozenset(hook_type for hook_type, event in EVENTS.items() if event.decides)


def _hold(value: Any) -> Any:
    """Lists as tuples and mappings read-only, so that one handler cannot change what the next one sees."""
    if isinstance(value, list):
        return tuple(value)
    return MappingProxyType(dict(value)) if isinstance(value, dict) else value


@dataclass(frozen=True)
class ToolExecuteData:
    """What both tool events hand over. ``log`` and ``tool_use`` are the host's own values; ``workspace`` is the session's root."""

    log: Any = None
    workspace: Path | None = None
    tool_use: Any = None

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, _hold(getattr(self, each.name)))


@dataclass(frozen=True)
class ToolExecutePreData(ToolExecuteData):
    """Handed over before a tool runs."""


@dataclass(frozen=True)
class ToolExecutePostData(ToolExecuteData):
    """Handed over after a tool ran, also when it raised: then ``error`` is the exception and ``result_msgs`` what came before it."""

    result_msgs: tuple[Message, ...] = ()
    error: BaseException | None = None


OnTimeout: TypeAlias = Literal["deny", "ask"]


@dataclass(frozen=True)
class HookOptions:
    """What the user may set for all handlers.

    ``fail_closed_events``: decision events at which any handler's failure denies, a recorder's too. ``timeout_ms`` bounds external
    commands. ``on_timeout`` is the decision when a handler of a decision event takes too long.
    """

    fail_closed_events: frozenset[HookType] = frozenset()
    timeout_ms: int = 60_000
    on_timeout: OnTimeout = "deny"


# What handlers are, for the type checker. Any of them may also name ``session``; which keywords an event knows is checked when it
# is registered, since a handler names only those that it wants.
Advice: TypeAlias = Message | StopPropagation | Iterable[Message | StopPropagation] | None
Verdict: TypeAlias = Message | StopPropagation | Decision | Iterable[Message | StopPropagation | Decision] | None
Confirmation: TypeAlias = ConfirmationResult | Decision | StopPropagation | bool | None

AdvisoryHandler: TypeAlias = Callable[..., Advice]
TurnPostHandler: TypeAlias = Callable[..., Verdict]
ToolExecutePreHandler: TypeAlias = Callable[Concatenate[ToolExecutePreData, ...], Verdict]
ToolExecutePostHandler: TypeAlias = Callable[Concatenate[ToolExecutePostData, ...], Advice]
GenerationPreHandler: TypeAlias = Callable[Concatenate[list[Message], ...], Advice]
ToolConfirmHandler: TypeAlias = Callable[Concatenate[Any, str | None, Path | None, ...], Confirmation]
ElicitHandler: TypeAlias = Callable[Concatenate[ElicitationRequest, ...], ElicitationResponse | StopPropagation | None]
