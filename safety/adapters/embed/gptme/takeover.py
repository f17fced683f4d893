"""gptme's own hooks and commands that ours stand in for: taken out, and named to the user once."""

from __future__ import annotations

import os
from typing import Any

from safety.adapters.embed.gptme import conversations

#: The hook, its moment, and what the user knows it by.
_HOOKS = (
    ("precommit.precommit_full", "turn.post", "precommit"),
    ("precommit.precommit_file", "file.save.post", "precommit"),
    ("autocommit.autocommit", "turn.post", "autocommit"),
    ("agents_md_inject.on_cwd_change", "cwd.changed", "agents_md_inject"),
    ("tool_target_instructions.on_tool_post", "tool.execute.post", "tool_target_instructions"),
)
_SNAPSHOTS = (("auto_snapshots.pre", "tool.execute.pre"), ("auto_snapshots.post", "tool.execute.post"))
_SCREENING = ("injection_screening", "tool.execute.post")
_replaced: dict[str, None] = {}


def take_over() -> None:
    """Takes gptme's own out of the current registry."""
    for name, moment, known_as in _HOOKS:
        if _take(name, moment):
            _replaced[known_as] = None


def take_late(session: Any) -> None:
    """At the session's start, takes out what ours stand in for only where they work and are on.

    gptme's snapshots are a plugin as we are, and may be registered after us.
    """
    from gptme.hooks.auto_snapshots import _enabled
    from gptme.hooks.injection_screening import _get_hygiene_mode

    snapshots = [_take(*hook) for hook in _SNAPSHOTS]
    if any(snapshots) and _enabled():
        _replaced["auto_snapshots"] = None
    if session.settings.screening_phrases and _take(*_SCREENING) and _get_hygiene_mode() != "off":
        _replaced["injection_screening"] = None


def _take(name: str, moment: str) -> bool:
    """Takes a hook out of the current registry; whether it was there."""
    from gptme.hooks import HookType, get_hooks, unregister_hook

    if not any(hook.name == name for hook in get_hooks(HookType(moment))):
        return False
    unregister_hook(name, HookType(moment))
    return True


def replaces_command(name: str) -> None:
    from gptme.commands import get_registered_commands

    if name in get_registered_commands():
        _replaced[f"/{name}"] = None


def introduce(conversation: Any) -> None:
    """Says once a session that it is protected and what of gptme's is replaced. Where the output is for a machine, nothing."""
    from gptme.message import is_output_json, is_output_quiet

    session = conversation.session
    if is_output_json() or is_output_quiet():
        return
    home, root = os.path.expanduser("~"), os.fsdecode(session.root)
    shown = f"~{root[len(home) :]}" if root == home or root.startswith(home + "/") else root
    is_off = {"autocommit"} if not session.settings.autocommit_enabled else set()
    names = [f"{name} (off)" if name in is_off else name for name in _replaced]
    replaced = f" Replaces gptme's own: {', '.join(names)}" if names else ""
    conversations.show(f"git-safety: on for {shown}.{replaced}")
