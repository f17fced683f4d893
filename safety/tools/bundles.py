"""The table of bundles, and the registry a session starts with. To add a bundle: its file, a line here, its test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from safety.hooks.registry import HookRegistry
from safety.tools.spec import Command, ToolSpec

BUNDLES = ("auto_snapshots", "guard", "precommit", "autocommit", "agents_md_inject", "injection_screening", "audit_log")


def load(names: Iterable[str] = BUNDLES) -> tuple[ToolSpec, ...]:
    """The specs of the named bundles, in the order in which they are loaded."""
    return tuple(sorted(import_module(f"safety.tools.{name}").TOOL for name in names))


def registry_of(specs: Iterable[ToolSpec]) -> HookRegistry:
    """A registry of its own with the hooks of these bundles that are available."""
    registry = HookRegistry()
    for spec in specs:
        if spec.is_available:
            spec.register_hooks(registry)
    return registry


def commands_of(specs: Iterable[ToolSpec]) -> Mapping[str, Command]:
    """The commands of these bundles, by the name that is typed after the slash."""
    return {name: command for spec in specs if spec.is_available for name, command in spec.commands.items()}
