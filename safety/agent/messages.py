"""What goes between the loop, the model and whoever watches: replies, usage, events. Messages are those of Chat Completions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Usage:
    """Tokens of one reply, or of several. ``cached`` is the part of ``prompt`` that the endpoint had seen before."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.cached + other.cached, self.completion + other.completion)

    def cost(self, prices: Prices) -> float:
        fresh = self.prompt - self.cached
        return (fresh * prices.prompt + self.cached * prices.cached + self.completion * prices.completion) / 1e6


@dataclass(frozen=True)
class Prices:
    """What a million tokens cost. An endpoint does not say; whoever pays knows."""

    prompt: float = 0.0
    cached: float = 0.0
    completion: float = 0.0


@dataclass(frozen=True)
class Limits:
    """``steps`` of a turn before its end is heard; ``context_tokens`` above which old results are shortened; how often handlers of
    LOOP_CONTINUE may go on after one prompt."""

    steps: int = 100
    context_tokens: int = 100_000
    continues: int = 10


LIMITS = Limits()


@dataclass(frozen=True)
class ToolCall:
    """One call as the model made it; ``arguments`` is its JSON, which may be none."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """One whole reply of the model: all that was streamed before, its calls, what it took."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)

    def message(self) -> Json:
        """The reply as the next request has it. Calls that share an id, or have none, are numbered: each has an answer of its own."""
        ids = [each.id for each in self.calls]
        if "" in ids or len(set(ids)) < len(ids):
            ids = [f"call_{number}" for number in range(1, len(ids) + 1)]
        calls = [
            {"id": name, "type": "function", "function": {"name": each.name, "arguments": _object(each.arguments)}}
            for name, each in zip(ids, self.calls, strict=True)
        ]
        return {"role": "assistant", "content": self.text, **({"tool_calls": calls} if calls else {})}


def joined(text: str) -> str:
    """The text with its surrogate pairs as the characters they are: servers that count in UTF-16 cut between the two halves."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _object(arguments: str) -> str:
    """The arguments, or an empty object where they are none: many servers parse them, and would refuse every later request."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


class Model(Protocol):
    """An endpoint, or what stands for one."""

    @property
    def name(self) -> str: ...

    def reply(self, messages: Sequence[Json], tools: Sequence[Json]) -> Iterator[str | Reply]:
        """Pieces of text as they come, then the whole Reply. Raises ModelFailed."""
        ...


class Stopped(BaseException):
    """Ends the turn as Ctrl-C does. For a handler that asks: a Ctrl-C that it lets through would only deny the one call."""


STOPS = (KeyboardInterrupt, Stopped)


# -- what the loop yields ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prompted:
    """The user's text, as it went into the conversation."""

    text: str


@dataclass(frozen=True)
class Chunk:
    """A piece of a reply, as it came."""

    text: str


@dataclass(frozen=True)
class Replied:
    """A whole reply, after the handlers; ``total`` is what the conversation took so far."""

    text: str
    usage: Usage
    total: Usage


@dataclass(frozen=True)
class Started:
    """A tool call that is about to be judged and run."""

    id: str
    tool: str
    input: Json


@dataclass(frozen=True)
class Ended:
    """What a tool call came to, as the model is told. ``status``: ok, error, denied, unknown (nobody knows whether it ran)."""

    id: str
    tool: str
    status: str
    text: str


@dataclass(frozen=True)
class Inner:
    """An event of the sub-agent that the call ``id`` started."""

    id: str
    event: Event


@dataclass(frozen=True)
class Told:
    """A sentence for the user, not for the model."""

    text: str


@dataclass(frozen=True)
class SentBack:
    """The turn does not end yet: this went back to the model."""

    reason: str


@dataclass(frozen=True)
class Interrupted:
    """Ctrl-C: the turn is over. ``text`` is what had come of the reply."""

    text: str


@dataclass(frozen=True)
class Trimmed:
    """The context was made smaller."""

    tokens_before: int
    tokens_after: int


Event: TypeAlias = Prompted | Chunk | Replied | Started | Ended | Inner | Told | SentBack | Interrupted | Trimmed
