"""A model that is a script: what it says and calls is written down beforehand. No network, no key; for demonstrations and tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from safety.agent.journal import CHARACTERS_A_TOKEN
from safety.agent.messages import Json, Reply, ToolCall, Usage


@dataclass(frozen=True)
class Say:
    """One reply: a text, and calls as (tool, arguments)."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, str]], ...] = ()


HELLO = (
    Say("I am a script and no model; I can only look around.", (("shell", {"command": "ls"}),)),
    Say("That is what lies here. For more, give me a model."),
)


@dataclass
class Scripted:
    """Gives its lines in order, by how often it has spoken in the conversation, so that it goes on where it was killed.

    Past its last line it has nothing to say. ``tasks`` are the lines of sub-agents, by the task; ``asked`` the requests that it got.
    """

    lines: Sequence[Say] = HELLO
    tasks: Mapping[str, Sequence[Say]] = field(default_factory=dict)
    name: str = "script"
    asked: list[Sequence[Json]] = field(default_factory=list)

    def reply(self, messages: Sequence[Json], tools: Sequence[Json]) -> Iterator[str | Reply]:
        self.asked.append(list(messages))
        at = sum(each["role"] == "assistant" for each in messages)
        begun = next((each["content"] for each in messages if each["role"] == "user"), "")
        lines = self.tasks.get(begun, self.lines)
        line = lines[at] if at < len(lines) else Say("Done.")
        yield from line.text.splitlines(keepends=True)
        calls = tuple(ToolCall(f"call_{number}", tool, json.dumps(given)) for number, (tool, given) in enumerate(line.calls, 1))
        seen = max((number for number, each in enumerate(messages) if each["role"] == "assistant"), default=0)
        yield Reply(
            line.text, calls, Usage(_tokens(messages), _tokens(messages[:seen]), len(line.text) // CHARACTERS_A_TOKEN + 1)
        )


def _tokens(messages: Sequence[Json]) -> int:
    return len(json.dumps(list(messages))) // CHARACTERS_A_TOKEN
