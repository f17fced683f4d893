"""Our bundles as ToolSpecs of gptme's: the hooks and commands that each brings. Names of our own, as gptme loads one of a name only."""

from __future__ import annotations

from functools import cache
from typing import Any

from safety.adapters.embed.gptme import asking, commands, hooks, takeover
from safety.adapters.embed.gptme.running import wrap_loaded

#: name, what it does, hooks (key: moment, function, priority), commands. Priorities: snapshots 90 and guard 150 as everywhere; the gate
#: at 5, where gptme's was; the ends of a turn before `complete` (1000 and 999), which would end the session.
_TABLE: tuple[tuple[str, str, dict[str, tuple[str, Any, int]], tuple[str, ...]], ...] = (
    (
        "safety_snapshots",
        "A snapshot before and after each tool call, so that /undo takes back exactly what was done.",
        {
            "start": ("session.start", hooks.session_starts, 90),
            "end": ("session.end", hooks.session_ends, 90),
            "turn": ("turn.pre", hooks.turn_begins, 90),
            "step": ("step.pre", hooks.step_begins, 0),
            "pre": ("tool.execute.pre", hooks.tool_begins, 90),
            "post": ("tool.execute.post", hooks.tool_ended, 90),
        },
        ("undo", "redo", "snapshots"),
    ),
    (
        "safety_guard",
        "Asks before what cannot be undone, and before nothing else.",
        {"confirm": ("tool.confirm", asking.confirm, 150)},
        (),
    ),
    (
        "safety_precommit",
        "At a turn's end the repository's own checks judge the files that the agent changed.",
        {
            "turn_post": ("turn.post", hooks.turn_ended, 5),
            "loop": ("loop.continue", hooks.loop_goes_on, 2000),
            "complete": ("generation.pre", hooks.generation_begins, 2000),
        },
        (),
    ),
    ("safety_autocommit", "Commits what the agent changed in a turn, after its checks passed.", {}, ("commit",)),
    (
        "safety_agents_md",
        "Tells the model the AGENTS.md files that govern where it works, once each.",
        {"cwd": ("cwd.changed", hooks.cwd_changed, 0)},
        ("agents",),
    ),
)


@cache
def specs() -> tuple[Any, ...]:
    """The specs. They have nothing for a model to call, and so no place in its prompt."""
    from gptme.tools.base import ToolSpec

    return tuple(
        ToolSpec(
            name,
            desc,
            hooks=moments,
            commands={word: commands.HANDLERS[word] for word in words},
            disabled_by_default=True,
        )
        for name, desc, moments, words in _TABLE
    )


def register_hooks() -> None:
    """gptme calls it for each context: the main one, and each thread of a sub-agent."""
    takeover.take_over()
    for spec in specs():
        spec.register_hooks()
    wrap_loaded()


def register_commands() -> None:
    """Without an owner: a command of a tool that is not loaded would be refused, and ours are none of the model's tools."""
    from gptme.commands import register_command

    for spec in specs():
        for name, handler in spec.commands.items():
            takeover.replaces_command(name)
            register_command(name, handler)
