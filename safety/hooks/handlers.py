"""``Hook``: a handler with its place in the order; and the check of its signature, made once, when it is registered."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from safety.faults import SafetyError
from safety.hooks.events import EVENTS, Event, HookType
from safety.types import Decision

Role: TypeAlias = Literal["guard", "record"]
Handler: TypeAlias = Callable[..., Any]


class HookRefused(SafetyError):
    """A handler cannot be registered as asked for."""

    code = "hook-refused"


@dataclass
class Hook:
    """A registered handler.

    ``role``: the failure of a ``guard`` denies at a decision event, that of a ``record`` is only reported; None: as the event has it.
    ``timeout_s``: run in a thread of its own and not waited for longer. ``observer``: always run, after all others; says nothing and
    its failure changes nothing. ``names`` are the keywords it takes, None if all.
    """

    name: str
    hook_type: HookType
    func: Handler
    priority: int = 0
    enabled: bool = True
    async_mode: bool = False
    role: Role | None = None
    timeout_s: float | None = None
    observer: bool = False
    id: str = ""
    names: frozenset[str] | None = field(default=None, repr=False, compare=False)
    named: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __lt__(self, other: Hook) -> bool:
        """Higher priority first; ties by name from z to a, as gptme has it ([gptme] 0.7)."""
        return (self.priority, self.name) > (other.priority, other.name)

    @property
    def fails_closed(self) -> bool:
        """True if its failure at a decision event denies."""
        return self.role == "guard" or (self.role is None and EVENTS[self.hook_type].closed)


def prepare(hook: Hook) -> Hook:
    """The same hook with its keywords noted. Raises HookRefused if it cannot be called as its event calls."""
    if not callable(hook.func):
        raise _refused(hook, "is not callable")
    if hook.role not in (None, "guard", "record"):
        raise _refused(hook, f"has the role {hook.role!r}; there are guard and record")
    if hook.timeout_s is not None and not hook.timeout_s > 0:
        raise _refused(hook, f"has a timeout of {hook.timeout_s} s")
    row = EVENTS[hook.hook_type]
    if hook.async_mode and row.answers:
        raise _refused(hook, "cannot be async: its answer is waited for")
    if is_coroutine(hook.func):
        raise _refused(hook, "is an `async def`; use a plain function, with async_mode=True to run beside the others")
    try:
        signature = inspect.signature(hook.func)
    except (TypeError, ValueError):  # a builtin may not tell
        return hook
    _check_parameters(hook, row, signature)
    if mentions_decision(signature.return_annotation, hook.func):
        if not row.decides:
            raise _refused(hook, "returns a Decision, which counts for nothing there")
        if hook.async_mode or hook.observer:
            raise _refused(
                hook, f"returns a Decision, which counts for nothing from an {'async one' if hook.async_mode else 'observer'}"
            )
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    hook.named = frozenset(
        name
        for name, parameter in signature.parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    )
    hook.names = None if inspect.Parameter.VAR_KEYWORD in kinds else hook.named
    return hook


def is_coroutine(func: Handler) -> bool:
    call = getattr(type(func), "__call__", None)  # noqa: B004 - the method itself is wanted
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in (func, call))


def mentions_decision(annotation: object, func: Handler) -> bool:
    """True if a return annotation, as an object or as text, has ``Decision`` in it."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        try:
            nodes = list(ast.walk(ast.parse(annotation, mode="eval")))
        except SyntaxError:
            return False
        known = getattr(inspect.unwrap(func), "__globals__", {})
        return any(_named(node, known) is Decision for node in nodes)
    return annotation is Decision or any(mentions_decision(each, func) for each in typing.get_args(annotation))


def _named(node: ast.AST, known: Mapping[str, Any]) -> object:
    """What a name or ``package.module.name`` of an annotation stands for, else None."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    return getattr(_named(node.value, known), node.attr, None) if isinstance(node, ast.Attribute) else None


def _check_parameters(hook: Hook, row: Event, signature: inspect.Signature) -> None:
    """The event's positional arguments fit, and nothing else is demanded than what the event hands over by name."""
    known = (*row.keywords, "session", *(("outcome",) if hook.observer else ()))
    parameters = list(signature.parameters.values())
    by_position = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    wanted = len(row.positional)
    takes_any = any(each.kind == each.VAR_POSITIONAL for each in parameters)
    if len(by_position) < wanted and not takes_any:
        raise _refused(hook, f"must take {wanted} by position: {', '.join(row.positional)}", signature)
    for each in parameters:
        if each in by_position[:wanted] or each.default is not each.empty or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            continue
        if each.kind == each.POSITIONAL_ONLY:
            raise _refused(hook, f"takes {each.name} by position only; it is handed by name", signature)
        if each.name not in known:
            raise _refused(hook, f"demands {each.name}, which is not handed over; {', '.join(known)} are", signature)


def _refused(hook: Hook, why: str, signature: inspect.Signature | None = None) -> HookRefused:
    shown = f" (its signature is {signature})" if signature else ""
    return HookRefused(f"handler {hook.name!r} for {hook.hook_type.value} {why}{shown}")
