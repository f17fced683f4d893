"""Permission before a tool runs: a table of what is refused and what a person is asked about, by tool and pattern."""

from __future__ import annotations

import re

from safety.hooks.events import HookType, ToolExecutePreData
from safety.tools.spec import HookSpec, ToolSpec
from safety.types import Decision

# (tools, what its command or path matches, the decision, the reason for the model); the first line that fits counts.
RULES = (
    ("shell", r"\bgit\s+(-\S+\s+([^-\s]\S*\s+)?)*push\b", "deny", "Pushing is done by a person."),
    (
        "shell",
        r"\b(curl|wget)\b[^|]*\|\s*(ba|z)?sh\b",
        "deny",
        "Nothing from the network is run unseen. Save it, and read it first.",
    ),
    ("write|edit|patch", r"(^|/)\.env\b", "ask", "It writes a file of secrets."),
    ("shell", r"\b(pip|npm|apt)\s+install\b", "ask", "It installs something."),
)


def before(data: ToolExecutePreData) -> Decision | None:
    call = data.tool_use
    text = str(call.input.get("command") or call.input.get("path") or "")
    for tools, pattern, action, reason in RULES:
        if re.fullmatch(tools, call.tool) and re.search(pattern, text):
            return Decision(action, reason)
    return None


TOOL = ToolSpec(
    name="permission",
    desc="Refuses some calls and asks about others, by a table.",
    hooks={"pre": HookSpec(HookType.TOOL_EXECUTE_PRE, before, 50, {"role": "guard"})},
)
