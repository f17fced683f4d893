"""ToolSpec and ToolUse: how a feature brings its hooks and commands, and how a tool of an agent's own loop is run under them.

The shape is gptme's ([gptme] 2): hooks are named ``<tool>.<hook>``, a spec without ``execute`` brings hooks and commands only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from safety.faults import SafetyError
from safety.hooks.registry import HookRegistry
from safety.session import Denied, current_session, in_session

if TYPE_CHECKING:
    from safety.commands.report import Report
    from safety.hooks.events import HookType
    from safety.session import Call, Session

#: A command typed as ``/name words``: it acts on the session and gives a report, as a verb of the command line does.
Command = Callable[["Session", Sequence[str]], "Report"]
_current: ContextVar[ToolUse | None] = ContextVar("tool_use", default=None)


class BadCommand(SafetyError):
    """A command in a prompt with words that make no sense."""

    code, exit_code = "usage", 2


@dataclass(frozen=True)
class HookSpec:
    """One hook of a bundle: its moment, its function, its place in the order, and what `register_hook` takes besides."""

    moment: HookType
    function: Callable[..., Any]
    priority: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, order=False)
class ToolSpec:
    """One feature. Equal by name, sorted by ``load_priority`` and name."""

    name: str
    desc: str
    instructions: str = field(default="", compare=False)
    functions: tuple[Callable[..., Any], ...] = field(default=(), compare=False)
    execute: Callable[..., Any] | None = field(default=None, compare=False)
    hooks: Mapping[str, HookSpec] = field(default_factory=dict, compare=False, hash=False)
    commands: Mapping[str, Command] = field(default_factory=dict, compare=False, hash=False)
    available: bool | Callable[[], bool] = field(default=True, compare=False)
    load_priority: int = field(default=0, compare=False)
    read_only: bool = field(default=False, compare=False)

    @property
    def is_available(self) -> bool:
        return self.available() if callable(self.available) else self.available

    def register_hooks(self, registry: HookRegistry) -> None:
        """Adds the bundle's hooks; a second time replaces them."""
        for key, hook in self.hooks.items():
            registry.register(f"{self.name}.{key}", hook.moment, hook.function, hook.priority, **hook.options)

    def __lt__(self, other: ToolSpec) -> bool:
        return (self.load_priority, self.name) < (other.load_priority, other.name)


def current_tool_use() -> ToolUse | None:
    """The tool call that is being carried out; None outside of one."""
    return _current.get()


@dataclass(frozen=True)
class ToolUse:
    """One call of a tool by an agent whose loop runs in this process."""

    spec: ToolSpec
    call: Call

    def execute(self, session: Session) -> str:
        """Runs the tool as `Session.around` does and gives its result as text. Raises Denied when it may not run."""
        if self.spec.execute is None:
            raise Denied(f"{self.spec.name} cannot be called")
        run = self.spec.execute
        token = _current.set(self)
        try:
            return session.around(self.call, lambda given: str(run(**given)))
        finally:
            _current.reset(token)


__all__ = [
    "BadCommand",
    "Command",
    "Denied",
    "HookSpec",
    "ToolSpec",
    "ToolUse",
    "current_session",
    "current_tool_use",
    "in_session",
]
