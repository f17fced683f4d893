"""Any framework in ten lines, as docs/python.md shows it: four functions for the framework's own hooks, and rules of the program's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from safety.net import Decision, HookType, Net

FEEDBACK = "fix.txt is missing, create it"
VETO = ".env is protected"


@dataclass
class Answer:
    """What a framework's hook wants to know: allow, deny or edit; the text for the model; the arguments to run with."""

    action: str = "allow"
    message: str = ""
    args: Mapping[str, Any] | None = None


class Gate:
    def __init__(self, folder: str, **options: Any) -> None:
        self.net = Net(folder, **options)

    def turn_start(self, prompt: str = "") -> None:
        self.net.turn_start(prompt)

    def pre(self, tool: str, args: dict[str, Any]) -> Answer:
        decision = self.net.pre(tool, args)
        return Answer(decision.action, decision.reason, decision.input)

    def post(self, tool: str, args: dict[str, Any], result: object, error: object = None) -> None:
        self.net.post(tool, args, result, error)

    def turn_end(self) -> str | None:
        return self.net.turn_end()


def with_rules(gate: Gate, veto: str = VETO, feedback: str = FEEDBACK) -> Gate:
    """The gate with rules of the program's own: one refuses, one edits, one sends the agent back to work."""

    def before(data: Any) -> Decision | None:
        given = data.tool_use.input
        if given.get("path", "").endswith(".env"):
            return Decision("deny", veto)
        return Decision("edit", input={**given, "content": "EDITED"}) if given.get("content") == "EDIT-ME" else None

    def at_end() -> Decision | None:
        return None if os.path.exists(os.path.join(gate.net.path, "fix.txt")) else Decision("deny", feedback)

    gate.net.hooks.register("rules.before", HookType.TOOL_EXECUTE_PRE, before)
    gate.net.hooks.register("rules.at_end", HookType.TURN_POST, at_end)
    return gate
