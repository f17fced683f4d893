"""The table of handlers, one a context, and the functions that act on the current one; names as gptme has them ([gptme] 1)."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Literal, overload

from safety.hooks.caller import Outcome, Trace, call_hooks
from safety.hooks.events import (
    AdvisoryHandler,
    ElicitHandler,
    GenerationPreHandler,
    HookOptions,
    HookType,
    ToolConfirmHandler,
    ToolExecutePostHandler,
    ToolExecutePreHandler,
    TurnPostHandler,
)
from safety.hooks.handlers import Handler, Hook, HookRefused, Role, prepare

log = logging.getLogger(__name__)

TRACES_KEPT = 200


class HookRegistry:
    """Handlers by event, in the order they are called, and what became of the last calls.

    ``traces`` holds the last calls of events that have handlers, oldest first; ``failed`` counts failures by event and handler.
    Every method may be called from any thread.
    """

    def __init__(self, options: HookOptions | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.options = options or HookOptions()
        self.clock = clock
        self.hooks: dict[HookType, list[Hook]] = {}
        self.traces: deque[Trace] = deque(maxlen=TRACES_KEPT)
        self.failed: Counter[tuple[str, str]] = Counter()
        self._ids = itertools.count(1)
        self._lock = threading.RLock()

    def register(
        self,
        name: str,
        hook_type: HookType | str,
        func: Handler,
        priority: int = 0,
        enabled: bool = True,
        async_mode: bool = False,
        *,
        role: Role | None = None,
        timeout_s: float | None = None,
        observer: bool = False,
    ) -> str:
        """Adds a handler, in place of one of the same name and event, and gives its id. Raises HookRefused if it does not fit."""
        hook_type = known_event(hook_type)
        hook = Hook(name, hook_type, func, priority, enabled, async_mode, role, timeout_s, observer)
        prepare(hook)
        with self._lock:
            hook.id = f"h{next(self._ids)}"
            others = [each for each in self.hooks.get(hook_type, ()) if each.name != name]
            if len(others) < len(self.hooks.get(hook_type, ())):
                log.info("hook %r at %s replaces the one of the same name", name, hook_type.value)
            self.hooks[hook_type] = sorted([*others, hook])
        return hook.id

    def unregister(self, name: str = "", hook_type: HookType | str | None = None, *, id: str = "") -> None:
        """Takes handlers out by name, of one event or of all; or the one with this id. Nothing of that name is no failure."""
        only = known_event(hook_type) if hook_type else None
        with self._lock:
            for each, hooks in self.hooks.items():
                if only in (None, each):
                    self.hooks[each] = [hook for hook in hooks if not ((name and hook.name == name) or (id and hook.id == id))]

    def get_hooks(self, hook_type: HookType | str | None = None) -> list[Hook]:
        """All handlers, or those of an event in the order they are called. The list is the caller's own."""
        if hook_type:
            return list(self.handlers(known_event(hook_type)))
        with self._lock:
            return [hook for hooks in self.hooks.values() for hook in hooks]

    def handlers(self, hook_type: HookType) -> list[Hook]:
        """The handlers of an event as they are called. The list is replaced, never changed, when handlers come and go."""
        return self.hooks.get(hook_type, _NONE)

    def enable_hook(self, name: str, hook_type: HookType | str | None = None) -> None:
        self._set_enabled(name, hook_type, True)

    def disable_hook(self, name: str, hook_type: HookType | str | None = None) -> None:
        self._set_enabled(name, hook_type, False)

    def clear(self, hook_type: HookType | str | None = None) -> None:
        """Takes all handlers out, or those of an event."""
        with self._lock:
            if hook_type:
                self.hooks.pop(known_event(hook_type), None)
            else:
                self.hooks.clear()

    def trigger(self, hook_type: HookType, *args: Any, session: Any = None, **kwargs: Any) -> Outcome:
        """``call_hooks`` on this registry. All handlers have run when it returns; the outcome iterates over the messages."""
        return call_hooks(self, hook_type, *args, session=session, **kwargs)

    def remember(self, trace: Trace) -> None:
        """Keeps what became of an event, if it had handlers; of the many chunks of a reply only those that went wrong or no further."""
        if trace.failures or trace.stopped_by or (trace.steps and trace.event != HookType.GENERATION_CHUNK.value):
            self.traces.append(trace)
        for failure in trace.failures:
            self.count_failure(trace.event, failure.hook)

    def count_failure(self, event: str, name: str) -> None:
        with self._lock:
            self.failed[event, name] += 1

    def _set_enabled(self, name: str, hook_type: HookType | str | None, enabled: bool) -> None:
        with self._lock:
            for hook in self.get_hooks(hook_type):
                if hook.name == name:
                    hook.enabled = enabled


_NONE: list[Hook] = []


def known_event(hook_type: HookType | str) -> HookType:
    """The event itself, also by its value. Raises HookRefused for what is none."""
    try:
        return HookType(hook_type)
    except ValueError:
        raise HookRefused(f"there is no event {hook_type!r}") from None


_current: ContextVar[HookRegistry | None] = ContextVar("safety_hook_registry", default=None)


def get_registry() -> HookRegistry:
    """The registry of this context, a new one if it has none yet. A plain new thread has none of its own ([gptme] 0.7)."""
    registry = _current.get()
    if registry is None:
        registry = HookRegistry()
        _current.set(registry)
    return registry


def set_registry(registry: HookRegistry) -> None:
    _current.set(registry)


@overload
def register_hook(
    name: str,
    hook_type: Literal[HookType.TOOL_EXECUTE_PRE],
    func: ToolExecutePreHandler,
    priority: int = 0,
    enabled: bool = True,
    async_mode: bool = False,
    *,
    role: Role | None = None,
    timeout_s: float | None = None,
    observer: bool = False,
) -> str: ...
@overload
def register_hook(
    name: str,
    hook_type: Literal[HookType.TOOL_EXECUTE_POST],
    func: ToolExecutePostHandler,
    priority: int = 0,
    enabled: bool = True,
    async_mode: bool = False,
    *,
    role: Role | None = None,
    timeout_s: float | None = None,
    observer: bool = False,
) -> str: ...
@overload
def register_hook(
    name: str,
    hook_type: Literal[HookType.TOOL_CONFIRM],
    func: ToolConfirmHandler,
    priority: int = 0,
    enabled: bool = True,
    *,
    role: Role | None = None,
    timeout_s: float | None = None,
    observer: bool = False,
) -> str: ...
@overload
def register_hook(
    name: str,
    hook_type: Literal[HookType.ELICIT],
    func: ElicitHandler,
    priority: int = 0,
    enabled: bool = True,
    *,
    role: Role | None = None,
    timeout_s: float | None = None,
    observer: bool = False,
) -> str: ...
@overload
def register_hook(
    name: str,
    hook_type: Literal[HookType.GENERATION_PRE],
    func: GenerationPreHandler,
    priority: int = 0,
    enabled: bool = True,
    async_mode: bool = False,
    *,
    role: Role | None = None,
    timeout_s: float | None = None,
    observer: bool = False,
) -> str: ...
@overload
def register_hook(
    name: str,
    hook_type: Literal[HookType.TURN_POST],
    func: TurnPostHandler,
    priority: int = 0,
    enabled: bool = True,
    async_mode: bool = False,
    *,
    role: Role | None = None,
    timeout_s: float | None = None,
    observer: bool = False,
) -> str: ...
@overload
def register_hook(
    name: str,
    hook_type: Literal[
        HookType.STEP_PRE,
        HookType.STEP_POST,
        HookType.TURN_PRE,
        HookType.MESSAGE_TRANSFORM,
        HookType.TOOL_TRANSFORM,
        HookType.FILE_SAVE_PRE,
        HookType.FILE_SAVE_POST,
        HookType.FILE_PATCH_PRE,
        HookType.FILE_PATCH_POST,
        HookType.SESSION_START,
        HookType.SESSION_END,
        HookType.GENERATION_POST,
        HookType.GENERATION_CHUNK,
        HookType.GENERATION_INTERRUPT,
        HookType.LOOP_CONTINUE,
        HookType.CWD_CHANGED,
        HookType.CACHE_INVALIDATED,
    ],
    func: AdvisoryHandler,
    priority: int = 0,
    enabled: bool = True,
    async_mode: bool = False,
    *,
    role: Role | None = None,
    timeout_s: float | None = None,
    observer: bool = False,
) -> str: ...
def register_hook(
    name: str,
    hook_type: HookType,
    func: Handler,
    priority: int = 0,
    enabled: bool = True,
    async_mode: bool = False,
    *,
    role: Role | None = None,
    timeout_s: float | None = None,
    observer: bool = False,
) -> str:
    """``HookRegistry.register`` on the current registry. Where the event is not known beforehand, call that one: it is untyped."""
    return get_registry().register(
        name, hook_type, func, priority, enabled, async_mode, role=role, timeout_s=timeout_s, observer=observer
    )


def unregister_hook(name: str = "", hook_type: HookType | str | None = None, *, id: str = "") -> None:
    get_registry().unregister(name, hook_type, id=id)


def trigger_hook(hook_type: HookType, *args: Any, session: Any = None, **kwargs: Any) -> Outcome:
    """``call_hooks`` on the current registry."""
    return call_hooks(get_registry(), hook_type, *args, session=session, **kwargs)


def get_hooks(hook_type: HookType | str | None = None) -> list[Hook]:
    return get_registry().get_hooks(hook_type)


def enable_hook(name: str, hook_type: HookType | str | None = None) -> None:
    get_registry().enable_hook(name, hook_type)


def disable_hook(name: str, hook_type: HookType | str | None = None) -> None:
    get_registry().disable_hook(name, hook_type)


def clear_hooks(hook_type: HookType | str | None = None) -> None:
    get_registry().clear(hook_type)
