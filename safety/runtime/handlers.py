"""The handlers of a session: those of our bundles, of plugins that the settings name, and of the settings' own table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safety.hooks.caller import attempt
from safety.hooks.registry import HookRegistry
from safety.runtime.config import Settings
from safety.tools.bundles import commands_of, load, registry_of
from safety.tools.spec import Command, ToolSpec

if TYPE_CHECKING:
    from safety.hooks.settings import Ran
    from safety.session import Session

PLUGIN_FOLDER = "plugins"  # beside the user's settings


@dataclass(frozen=True)
class Handlers:
    """The registry, the commands that a prompt may hold, and a line for each thing of the settings or of a plugin that was left out."""

    registry: HookRegistry
    commands: Mapping[str, Command]
    left_out: tuple[str, ...]


def handlers_for(settings: Settings, environ: Mapping[str, str], folder: Path, root: bytes) -> Handlers:
    """The handlers of a session in the workspace at ``root``. Raises SettingsInvalid.

    ``folder`` is where the user's settings lie, ``root`` where external commands are run.
    """
    specs = load()
    registry = registry_of(specs)
    commands = dict(commands_of(specs))
    told: list[str] = []
    if settings.plugins:
        told += _start_plugins(settings, registry, commands, folder)
    if settings.hooks or settings.hook_options or any(settings.project_hooks.values()):
        from safety.hooks.settings import apply_settings, read_settings

        user = {"hooks": settings.hooks, "hook_options": settings.hook_options}
        wanted = read_settings(user, settings.project_hooks)
        told += apply_settings(registry, wanted, _offers(specs), partial(_run, environ, root), _describe)
    if settings.fail_closed:
        from safety.hooks.events import DECISION_EVENTS

        registry.options = replace(registry.options, fail_closed_events=DECISION_EVENTS)
    return Handlers(registry, commands, tuple(told))


def _offers(specs: tuple[ToolSpec, ...]) -> Mapping[str, Any]:
    from safety.hooks.settings import Offer

    return {
        f"{spec.name}.{key}": Offer(
            hook.function,
            hook.priority,
            hook.options.get("role"),
            hook.options.get("timeout_s"),
            bool(hook.options.get("observer")),
            tightens=True,
            event=hook.moment,
        )
        for spec in specs
        for key, hook in spec.hooks.items()
    }


def _start_plugins(settings: Settings, registry: HookRegistry, commands: dict[str, Command], folder: Path) -> list[str]:
    from safety.hooks.plugins import PluginFailure, discover, start

    found = discover([folder / PLUGIN_FOLDER], allow=settings.plugins)
    failures = [*found.failures, *start(found.plugins, registry, commands=commands)]
    for plugin in found.plugins:
        for tool in plugin.tools:
            _, error = attempt(_bring, tool, registry, commands)
            if error is not None:
                failures.append(PluginFailure(plugin.name, "hooks", f"{type(error).__name__}: {error}"))
    missing = set(settings.plugins) - {plugin.name for plugin in found.plugins} - {failure.name for failure in failures}
    return [f"plugin {failure.name}: {failure.detail}" for failure in failures] + [
        f"plugin {name}: there is none of that name" for name in sorted(missing)
    ]


def _bring(tool: Any, registry: HookRegistry, commands: dict[str, Command]) -> None:
    """Adds a plugin's hooks and commands: all of them, or none where one does not fit."""
    if not getattr(tool, "is_available", True):
        return
    named = dict(getattr(tool, "commands", {}))
    if hasattr(tool, "register_hooks"):
        tool.register_hooks(HookRegistry())
        tool.register_hooks(registry)
    for name, command in named.items():
        commands.setdefault(name, command)


def _describe(session: Session) -> Mapping[str, Any]:
    return {"session_id": session.given_id, "cwd": os.fsdecode(session.cwd), "root": os.fsdecode(session.root)}


def _run(environ: Mapping[str, str], root: bytes, command: str | tuple[str, ...], given: bytes, timeout_s: float) -> Ran:
    from safety.gate.process import run_program
    from safety.hooks.settings import Ran

    return Ran(*run_program(command, given, timeout_s, environ, root if os.path.isdir(root) else b"/"))
