"""Puts a tool between PRE and POST and leaves it looking as it did: name, docstring, signature and type hints are the tool's own."""

from __future__ import annotations

import functools
import inspect
import os
import types
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from safety.hooks.caller import attempt
from safety.session import Denied, spoken

if TYPE_CHECKING:
    from safety.adapters.embed.net import Net

Tool: TypeAlias = Callable[..., Any]
#: Which paths a tool changes: parameters by name, or a function of the tool's arguments; None from it: it may change anything.
Paths: TypeAlias = "str | Iterable[str] | Callable[..., SomePaths | None]"
#: One path, or several.
SomePaths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"
#: What becomes of a refusal: the tool's result, or an exception.
OnDenied: TypeAlias = Literal["text", "raise"]

MARK = "__git_safety_net__"  # on what needs no wrapping: it is the net's already
_OMITTED = object()


def protected(net: Net, tool: Tool, *, reads: bool = False, paths: Paths | None = None, denied: OnDenied | None = None) -> Tool:
    """The tool as one that runs between PRE and POST of ``net``. Raises TypeError for what cannot be wrapped so."""
    if getattr(tool, MARK, None) is net:
        return tool
    if isinstance(tool, staticmethod | classmethod):
        return type(tool)(protected(net, tool.__func__, reads=reads, paths=paths, denied=denied))
    shape = shape_of(tool)
    returns_text = denied == "text" or (denied is None and shape.may_give_text)

    def refused(fault: Denied, began: bool) -> str:
        if began or not returns_text:  # what the tool itself raises is no refusal of ours
            raise fault
        return str(fault)

    async def later(*args: Any, **kwargs: Any) -> Any:
        bound = shape.bind(*args, **kwargs)
        given = shape.input_of(bound)
        began = False

        async def run(allowed: Mapping[str, Any]) -> Any:
            nonlocal began
            now = shape.changed(bound, given, allowed)
            began = True
            return await (tool(*args, **kwargs) if now is bound else tool(*now.args, **now.kwargs))

        try:
            return await net.acall(shape.name, given, run, _declared(net, shape, bound, reads, paths))
        except Denied as fault:
            return refused(fault, began)

    def at_once(*args: Any, **kwargs: Any) -> Any:
        bound = shape.bind(*args, **kwargs)
        given = shape.input_of(bound)
        began = False

        def run(allowed: Mapping[str, Any]) -> Any:
            nonlocal began
            now = shape.changed(bound, given, allowed)
            began = True
            return shape.finished(tool(*args, **kwargs) if now is bound else tool(*now.args, **now.kwargs))

        try:
            return net.call(shape.name, given, run, _declared(net, shape, bound, reads, paths))
        except Denied as fault:
            return refused(fault, began)

    return _disguised(later if _is_async(tool) else at_once, tool, shape, net)


def _is_async(tool: Tool) -> bool:
    own = tool.func if isinstance(tool, functools.partial) else tool
    return inspect.iscoroutinefunction(own) or inspect.iscoroutinefunction(getattr(own, "__call__", None))  # noqa: B004


def texts_of(paths: SomePaths) -> list[str]:
    """The paths as texts; a text or a path object is one path, not the letters of one. Raises TypeError for what is none."""
    return [os.fsdecode(one) for one in ([paths] if isinstance(paths, str | bytes | os.PathLike) else paths)]


def _declared(net: Net, shape: Shape, bound: inspect.BoundArguments, reads: bool, paths: Paths | None) -> list[str] | bool | None:
    """The paths a call changes as texts; True: whatever the tool's name and arguments say; None: anything.

    Where the parameters that hold the paths hold none, or what can be none, the tool has an idea of its own. Raises Denied where a
    function that is to tell them fails and the net is strict.
    """
    if reads:
        return []
    if paths is None:
        return True
    if callable(paths):
        told: list[str] | None
        told, fault = attempt(lambda: None if (found := paths(*bound.args, **bound.kwargs)) is None else texts_of(found))
        if fault is not None:
            net.unsure(f"the paths of {shape.name} could not be told: {spoken(fault) or type(fault).__name__}")
        return told
    values: list[object] = []
    for name in [paths] if isinstance(paths, str) else paths:
        value = bound.arguments.get(name)
        values += value if isinstance(value, list | tuple | set | frozenset) else [] if value is None else [value]
    texts = [os.fsdecode(one) for one in values if isinstance(one, str | bytes | os.PathLike)]
    return texts if texts and len(texts) == len(values) else None


@dataclass(frozen=True)
class Shape:
    """What a tool is called and how. ``owner`` is its first parameter where that is the object it belongs to.

    ``signature`` is what it shows, ``own`` its outermost decorator's.
    """

    name: str
    signature: inspect.Signature
    function: Any
    own: inspect.Signature
    owner: str = ""

    def bind(self, /, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        """The arguments of a call. Raises TypeError where the tool cannot be called so.

        A decorator that shows the signature of what it decorates may add arguments to those that it is given.
        """
        try:
            return self.signature.bind(*args, **kwargs)
        except TypeError:
            if self.own == self.signature:
                raise
            return self.own.bind(*args, **kwargs)

    @property
    def may_give_text(self) -> bool:
        """Whether a text is a result that the tool's annotation allows for."""
        hint = self.signature.return_annotation
        if isinstance(hint, str):
            try:
                hint = typing.get_type_hints(self.function).get("return", hint)
            except (NameError, TypeError, AttributeError, SyntaxError):
                return hint in ("str", "Any", "object")
        if typing.get_origin(hint) is typing.Annotated:
            hint = typing.get_args(hint)[0]
        if typing.get_origin(hint) in (typing.Union, types.UnionType):
            return str in typing.get_args(hint)
        return hint in (inspect.Signature.empty, str, object) or hint is Any

    def input_of(self, bound: inspect.BoundArguments) -> dict[str, Any]:
        """The arguments by parameter name, defaults included, as far as they are plain data: what guards and the log see."""
        bound.apply_defaults()
        given: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            parameters = bound.signature.parameters
            values: Iterable[tuple[str, Any]] = [(name, value)]
            if parameters[name].kind is inspect.Parameter.VAR_KEYWORD:  # a parameter of the same name comes first
                values = [(each, one) for each, one in value.items() if each not in parameters]
            given |= {each: data for each, one in values if each != self.owner and (data := _plain(one)) is not _OMITTED}
        return given

    def changed(
        self, bound: inspect.BoundArguments, given: Mapping[str, Any], allowed: Mapping[str, Any]
    ) -> inspect.BoundArguments:
        """The arguments with what a guard has made of them. Raises Denied where the tool cannot be called that way."""
        if allowed is given or allowed == given:
            return bound
        arguments, parameters = dict(bound.arguments), bound.signature.parameters
        rest = next((p.name for p in parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD), "")
        for name in {**given, **allowed}:
            if name in given and name in allowed and given[name] == allowed[name]:
                continue
            home = arguments if name in parameters else dict(arguments[rest]) if rest else None
            if home is None or name == self.owner or (name in arguments and name not in given):
                raise Denied(f"not run: a hook changed {name}, which {self.name} cannot take")
            if name in allowed:
                home[name] = _as_before(allowed[name], home.get(name))
            else:
                home.pop(name, None)
            if home is not arguments:
                arguments[rest] = home
        missing = [
            name
            for name, parameter in parameters.items()
            if name not in arguments and parameter.default is parameter.empty and parameter.kind not in _VARIADIC
        ]
        if missing:
            raise Denied(f"not run: a hook took away {missing[0]}, without which {self.name} cannot be called")
        now = inspect.BoundArguments(bound.signature, arguments)
        now.apply_defaults()
        return now

    def finished(self, result: Any) -> Any:
        """The result, if the tool's work is done with it. Raises TypeError where it would begin only now, after POST."""
        if inspect.isawaitable(result) or isinstance(result, Iterator | AsyncIterator):
            if inspect.iscoroutine(result):
                result.close()
            raise TypeError(f"{self.name} gives a {type(result).__name__}, so its work begins after the call: {_INSTEAD}")
        return result


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_INSTEAD = "make it a plain function or an `async def` that returns its result"


def shape_of(tool: Tool) -> Shape:
    """What a tool looks like to whoever calls it. Raises TypeError for what is no function that returns its result."""
    if not callable(tool):
        raise TypeError(f"{tool!r} is no function; protect the function first, then make the framework's tool of it")
    if isinstance(tool, type):
        raise TypeError(f"{tool.__name__} is a class; protect a function, a method, or an instance that can be called")
    own = tool.func if isinstance(tool, functools.partial) else tool
    function = own if hasattr(own, "__code__") or hasattr(own, "__wrapped__") else getattr(type(own), "__call__", own)  # noqa: B004
    if inspect.isgeneratorfunction(inspect.unwrap(function)) or inspect.isasyncgenfunction(inspect.unwrap(function)):
        raise TypeError(f"{_name(tool)} is a generator, so its work begins after the call: {_INSTEAD}")
    try:
        signature, as_it_is = inspect.signature(tool), inspect.signature(tool, follow_wrapped=False)
    except ValueError:  # some builtins tell nobody
        signature = as_it_is = inspect.signature(lambda *args, **kwargs: None)
    first = next(iter(signature.parameters), "")
    return Shape(_name(tool), signature, function, as_it_is, first if first in ("self", "cls") else "")


def _name(tool: Any) -> str:
    own = tool.func if isinstance(tool, functools.partial) else tool
    name = getattr(own, "__name__", None) or getattr(own, "name", None)
    return name if isinstance(name, str) and name else type(own).__name__


def _disguised(wrapper: Tool, tool: Tool, shape: Shape, net: Net) -> Tool:
    """The wrapper with everything that frameworks read of a tool."""
    if hasattr(tool, "__code__") or inspect.isroutine(tool):
        functools.update_wrapper(wrapper, tool)
        wrapper.__annotations__ = dict(getattr(tool, "__annotations__", {}))
    else:  # a partial or an object: its attributes are no function's, and its type hints lie with what it calls
        functools.update_wrapper(wrapper, shape.function, updated=())
        wrapper.__name__ = wrapper.__qualname__ = shape.name
        wrapper.__doc__ = shape.function.__doc__ or getattr(tool, "__doc__", None)
        wrapper.__signature__ = shape.signature  # type: ignore[attr-defined]
        hints = getattr(shape.function, "__annotations__", {})
        wrapper.__annotations__ = {name: hint for name, hint in hints.items() if name in {*shape.signature.parameters, "return"}}
    setattr(wrapper, MARK, net)
    return wrapper


def _plain(value: Any) -> Any:
    """The value as JSON could hold it, paths as texts; ``_OMITTED`` if it is or holds anything else, or itself."""
    try:
        return _as_json(value)
    except RecursionError:
        return _OMITTED


def _as_json(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        return path if isinstance(path, str) else os.fsdecode(path)
    if isinstance(value, list | tuple):
        items = [_as_json(one) for one in value]
        return _OMITTED if any(one is _OMITTED for one in items) else items
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        pairs = {key: _as_json(one) for key, one in value.items()}
        return _OMITTED if any(one is _OMITTED for one in pairs.values()) else pairs
    return _OMITTED


def _as_before(value: Any, before: Any) -> Any:
    """A changed value in the kind that the tool was called with."""
    if isinstance(before, os.PathLike) and isinstance(value, str):
        from pathlib import Path

        return Path(value)
    return tuple(value) if isinstance(before, tuple) and isinstance(value, list) else value


Runs: TypeAlias = Callable[[Mapping[str, Any]], Any]
RunsLater: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any]]
