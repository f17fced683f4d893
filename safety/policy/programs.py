"""Programs and what they do: a family of effects puts a function for each of its programs into one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from safety.policy.operands import Given, Spec, read, spec
from safety.policy.scene import Scene
from safety.policy.shell import Command
from safety.policy.values import Effect

Handler: TypeAlias = Callable[[Command, Given, Scene], Iterable[Effect]]
_PROGRAMS: dict[str, tuple[Spec, Handler]] = {}


def program(names: str, options: str = "", **flags: bool) -> Callable[[Handler], Handler]:
    """Puts a function into the table, with the options that its programs know."""

    def put(handler: Handler) -> Handler:
        for name in names.split():
            _PROGRAMS[name] = (spec(options, **flags), handler)
        return handler

    return put


def options_of(name: str) -> Spec:
    return _PROGRAMS[name][0]


def program_effects(command: Command, scene: Scene) -> Iterator[Effect]:
    """What the program itself does; redirections are the shell's."""
    found = _PROGRAMS.get(command.name)
    if found is None:
        return
    known, handler = found
    given = read(command.words[1:], known)
    if not given.has("help", "version"):
        yield from handler(command, given, scene)
