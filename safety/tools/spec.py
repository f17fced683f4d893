"""ToolSpec and ToolUse: how a feature brings its hooks and commands, and how a tool of an agent's own loop is run under them.

The shape is gptme's ([gptme] 2): hooks are named ``<tool>.<hook>``, a spec without ``execute`` brings hooks and commands only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from safety.faults import SafetyError
from safety.hooks.registry import HookRegistry

if TYPE_CHECKING:
    from safety.commands.report import Report
    from safety.hooks.events import HookType
    from safety.session import Call, Session

#: A command typed as ``/name words``: it acts on the session and gives a report, as a verb of the command line does.
Command = Callable[["Session", Sequence[str]], "Report"]
_session: ContextVar[Session | None] = ContextVar("session", default=None)
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


def current_session() -> Session | None:
    """The session in which a tool's function or a command is running; None outside of one."""
    return _session.get()


def current_tool_use() -> ToolUse | None:
    """The tool call that is being carried out; None outside of one."""
    return _current.get()


@contextmanager
def in_session(session: Session) -> Iterator[None]:
    """Makes ``session`` the current one for what runs inside."""
    token = _session.set(session)
    try:
        yield
    finally:
        _session.reset(token)


class Denied(Exception):
    """A tool call that was refused; the text is for the model."""


@dataclass(frozen=True)
class ToolUse:
    """One call of a tool by an agent whose loop runs in this process."""

    spec: ToolSpec
    call: Call

    def execute(self, session: Session, confirm: Callable[[ToolUse, str], bool] | None = None) -> str:
        """Runs the tool between PRE and POST and gives its result. Raises Denied when it may not run, else what the tool raises.

        POST comes in every case in which the tool was started, with the error if it raised. An interrupt before the tool runs leaves
        it unrun. ``confirm`` answers an ``ask``; without it an ``ask`` is a no.
        """
        if self.spec.execute is None:
            raise Denied(f"{self.spec.name} cannot be called")
        token = _current.set(self)
        try:
            with in_session(session):
                decision = session.pre(self.call)
                given = dict(self.call.input if decision.input is None else decision.input)
                asked = decision.action == "ask"
                if decision.action == "deny" or (asked and not (confirm is not None and confirm(self, decision.reason))):
                    session.post(self.call, None, decision.reason)
                    raise Denied(decision.reason or "it was not confirmed")
                try:
                    result = str(self.spec.execute(**given))
                except BaseException as fault:
                    session.post(self.call, None, f"{type(fault).__name__}: {fault}")
                    raise
                session.post(self.call, result, None)
                return result
        finally:
            _current.reset(token)
