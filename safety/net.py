"""The public API: ``from safety.net import Net``; for hosts and handlers ``open_session, Call, ToolSpec, HookType, register_hook``.

Each name is imported when it is first used, so that importing this module costs next to nothing.
"""

from __future__ import annotations

# `typing` costs more than all the rest of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from safety.adapters.embed.net import Net
    from safety.adapters.embed.results import Change, Undone
    from safety.adapters.embed.turn import Turn
    from safety.faults import SafetyError
    from safety.hooks import (
        HookRegistry,
        HookType,
        Message,
        StopPropagation,
        clear_hooks,
        disable_hook,
        enable_hook,
        get_hooks,
        get_registry,
        register_hook,
        set_registry,
        trigger_hook,
        unregister_hook,
    )
    from safety.runtime.open import open_session
    from safety.session import Call, Feedback, Session, TurnStart
    from safety.tools.spec import Denied, HookSpec, ToolSpec, ToolUse, current_session, current_tool_use
    from safety.types import Decision

_HOMES = {
    "safety.adapters.embed.net": ("Net",),
    "safety.adapters.embed.results": ("Change", "Undone"),
    "safety.adapters.embed.turn": ("Turn",),
    "safety.faults": ("SafetyError",),
    "safety.hooks": (
        "HookRegistry",
        "HookType",
        "Message",
        "StopPropagation",
        "clear_hooks",
        "disable_hook",
        "enable_hook",
        "get_hooks",
        "get_registry",
        "register_hook",
        "set_registry",
        "trigger_hook",
        "unregister_hook",
    ),
    "safety.runtime.open": ("open_session",),
    "safety.session": ("Call", "Feedback", "Session", "TurnStart"),
    "safety.tools.spec": ("Denied", "HookSpec", "ToolSpec", "ToolUse", "current_session", "current_tool_use"),
    "safety.types": ("Decision",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = [
    "Call",
    "Change",
    "Decision",
    "Denied",
    "Feedback",
    "HookRegistry",
    "HookSpec",
    "HookType",
    "Message",
    "Net",
    "SafetyError",
    "Session",
    "StopPropagation",
    "ToolSpec",
    "ToolUse",
    "Turn",
    "TurnStart",
    "Undone",
    "clear_hooks",
    "current_session",
    "current_tool_use",
    "disable_hook",
    "enable_hook",
    "get_hooks",
    "get_registry",
    "open_session",
    "register_hook",
    "set_registry",
    "trigger_hook",
    "unregister_hook",
]


def __getattr__(name: str) -> object:
    """The public name, imported on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'safety.net' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
