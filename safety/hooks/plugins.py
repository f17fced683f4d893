"""Plugins: bundles that others ship, from folders and from entry points, taken generously and never at the price of ours.

What cannot be loaded or taken is recorded in ``Discovered.failures``, never raised. Which folders may be looked in is the caller's
to say: a plugin is code that runs.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from safety.hooks.caller import attempt
from safety.hooks.registry import HookRegistry

log = logging.getLogger(__name__)

GROUP = "git_safety.plugins"
MODULE_PREFIX = "git_safety_plugin_"


@dataclass(frozen=True)
class Plugin:
    """What a plugin brings. ``tools`` are ToolSpecs; the callables are given what they register with, or its settings."""

    name: str
    tools: tuple[Any, ...] = ()
    register_hooks: Callable[[HookRegistry], object] | None = None
    register_commands: Callable[[Any], object] | None = None
    init: Callable[[Mapping[str, Any]], object] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", tuple(self.tools))


@dataclass(frozen=True)
class PluginFailure:
    """A plugin that was left out, or something it could not do."""

    name: str
    where: str
    detail: str


@dataclass(frozen=True)
class Discovered:
    """The plugins found, each name once, sorted by name; and what was left out. ``shadowed`` names entry points a folder stands for."""

    plugins: tuple[Plugin, ...]
    failures: tuple[PluginFailure, ...]
    shadowed: tuple[str, ...] = field(default=())


class NotAPlugin(TypeError):
    """An object that none of the accepted shapes fits."""


def coerce(name: str, value: Any) -> Plugin:
    """A plugin from a plugin, a ToolSpec, a list of them, or a factory without arguments that gives one of these (one level).

    A ToolSpec is known by its ``name`` beside ``hooks``, ``commands`` or ``functions``. Raises NotAPlugin for anything else; what a
    factory raises is passed on.
    """
    plugin = _coerced(name, value)
    if plugin is None and callable(value):
        plugin = _coerced(name, value())
    if plugin is None:
        raise NotAPlugin(f"a {type(value).__name__} is no plugin, no ToolSpec, no list of them and no factory of one")
    return plugin


def _coerced(name: str, value: Any) -> Plugin | None:
    if isinstance(value, Plugin):
        return value
    if isinstance(value, type):
        return None
    if isinstance(value, (list, tuple)):
        return Plugin(name, tuple(value)) if value and all(is_tool(each) for each in value) else None
    if is_tool(value):
        return Plugin(name, (value,))
    given = getattr(value, "name", None)
    if isinstance(given, str) and (hasattr(value, "register_hooks") or hasattr(value, "tools")):
        parts = {part: getattr(value, part, None) for part in ("register_hooks", "register_commands", "init")}
        tools = tuple(getattr(value, "tools", None) or ())
        if all(part is None or callable(part) for part in parts.values()) and all(is_tool(each) for each in tools):
            return Plugin(given, tools, **parts)
    return None


def is_tool(value: Any) -> bool:
    """True for what looks like a ToolSpec."""
    shaped = any(hasattr(value, part) for part in ("hooks", "commands", "functions"))
    return not isinstance(value, (type, ModuleType, Plugin)) and isinstance(getattr(value, "name", None), str) and shaped


def discover(
    folders: Sequence[Path] = (),
    allow: Iterable[str] | None = None,
    entry_points: Callable[[], Iterable[metadata.EntryPoint]] | None = None,
) -> Discovered:
    """The plugins in ``folders`` and behind the entry points of our group; a folder's stands in for an entry point of its name.

    ``allow`` names those that are loaded, None all; one that is not on it is not even imported. The second call with the same
    folders and names gives the first one's result, until ``clear_cache``.
    """
    key = (tuple(folder.absolute() for folder in folders), None if allow is None else frozenset(allow))
    if key not in _cache:
        _cache[key] = _discover(key[0], key[1], entry_points or (lambda: metadata.entry_points(group=GROUP)))
    return _cache[key]


_cache: dict[tuple[tuple[Path, ...], frozenset[str] | None], Discovered] = {}


def clear_cache() -> None:
    """Forgets what was found and unloads the modules that came from folders, so that the next ``discover`` reads them anew."""
    _cache.clear()
    importlib.invalidate_caches()
    for name in [name for name in sys.modules if name.startswith(MODULE_PREFIX)]:
        del sys.modules[name]


def start(
    plugins: Iterable[Plugin],
    registry: HookRegistry,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    commands: Any = None,
) -> tuple[PluginFailure, ...]:
    """Lets each plugin initialise and register; what one fails at is given back and keeps none of the others.

    A plugin whose ``init`` fails registers nothing. Its hooks come with its ToolSpecs too, which is their room's business.
    """
    failures: list[PluginFailure] = []
    for plugin in plugins:
        steps = (
            ("init", plugin.init, (settings or {}).get(plugin.name, {})),
            ("register_hooks", plugin.register_hooks, registry),
            ("register_commands", plugin.register_commands, commands),
        )
        for where, step, given in steps:
            if step is None:
                continue
            _, error = attempt(step, given)
            if error is not None:
                failures.append(_failure(plugin.name, where, error))
                if where == "init":
                    break
    return tuple(failures)


def _discover(
    folders: Sequence[Path], allow: frozenset[str] | None, entry_points: Callable[[], Iterable[metadata.EntryPoint]]
) -> Discovered:
    found: dict[str, Plugin] = {}
    failures: list[PluginFailure] = []
    shadowed: list[str] = []

    def take(name: str, where: str, load: Callable[..., Any], *args: Any) -> None:
        plugin, error = attempt(lambda: coerce(name, load(*args)))
        if error is not None:
            failures.append(_failure(name, where, error))
        elif allow is not None and plugin.name not in allow:
            failures.append(PluginFailure(plugin.name, where, "not among those allowed"))
        elif plugin.name in found:
            shadowed.append(f"{plugin.name} ({where})")
        else:
            found[plugin.name] = plugin

    for folder in folders:
        for path in _candidates(folder):
            if path.stem in found:
                shadowed.append(f"{path.stem} ({path})")
            elif allow is None or path.stem in allow:
                take(path.stem, str(path), _load, path)
    for entry in sorted(entry_points(), key=lambda entry: (entry.name, entry.value)):
        if entry.name in found:
            shadowed.append(f"{entry.name} ({entry.value})")
        elif allow is None or entry.name in allow:
            take(entry.name, entry.value, entry.load)
    return Discovered(tuple(found[name] for name in sorted(found)), tuple(failures), tuple(shadowed))


def _candidates(folder: Path) -> list[Path]:
    """The packages and modules of a folder that could be plugins, sorted; the folder itself if it is a package."""
    if (folder / "__init__.py").is_file():
        return [folder]
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    named = [entry for entry in entries if entry.stem.isidentifier() and not entry.name.startswith("_")]
    return [entry for entry in named if entry.suffix == ".py" or (entry / "__init__.py").is_file()]


def _load(path: Path) -> Any:
    """What a plugin's module says it is: its ``plugin``, else the ToolSpecs in it and in the modules of its ``tools`` folder."""
    module = _module(f"{MODULE_PREFIX}{path.stem}", path)
    if hasattr(module, "plugin") and not isinstance(module.plugin, ModuleType):
        return module.plugin
    modules = [module]
    for each in sorted((path / "tools").glob("[!_]*.py")):
        modules.append(importlib.import_module(f"{module.__name__}.tools.{each.stem}"))
    tools = {id(value): value for each in modules for value in vars(each).values() if is_tool(value)}
    return list(tools.values())


def _module(name: str, path: Path) -> ModuleType:
    file, inside = (path / "__init__.py", [str(path)]) if path.is_dir() else (path, None)
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=inside)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _, error = attempt(spec.loader.exec_module, module)
    if error is not None:
        del sys.modules[name]
        raise error
    return module


def _failure(name: str, where: str, error: BaseException) -> PluginFailure:
    log.warning("plugin %r (%s) was left out", name, where, exc_info=error)
    return PluginFailure(name, where, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
