"""git-safety inside gptme (0.35.1): found by its entry point, no configuration.

Our bundles are gptme ToolSpecs that bring gptme's hooks and commands for them; what they do is the session's. gptme's
TOOL_EXECUTE_PRE cannot refuse, its POST does not come when a tool raises, and many tools never ask for confirmation: so each tool's
``execute`` is wrapped (`running`), and the hooks do the rest (`hooks`).
"""

from __future__ import annotations

from typing import Any


def plugin() -> Any:
    """The GptmePlugin; gptme calls what its entry point names."""
    from gptme.plugins.plugin import GptmePlugin

    from safety.adapters.embed.gptme.specs import register_commands, register_hooks, specs

    return GptmePlugin(name="git-safety", tools=list(specs()), register_hooks=register_hooks, register_commands=register_commands)
