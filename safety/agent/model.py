"""A model behind an endpoint that speaks Chat Completions, by the ``openai`` package (the extra ``git-safety[openai]``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safety.agent.messages import Json, Reply, ToolCall, Usage, joined
from safety.faults import SafetyError


class ModelFailed(SafetyError):
    """The endpoint gave no whole reply. The conversation stays as it was, to be gone on with."""

    code = "model-failed"


class NoClient(SafetyError):
    code, exit_code = "no-openai", 2


@dataclass(frozen=True)
class Endpoint:
    """A model of an endpoint. Without ``stream`` a reply comes whole."""

    name: str
    client: Any
    stream: bool = True

    def reply(self, messages: Sequence[Json], tools: Sequence[Json]) -> Iterator[str | Reply]:
        from openai import OpenAIError

        try:
            yield from self._streamed(messages, tools) if self.stream else self._whole(messages, tools)
        except OpenAIError as fault:
            raise ModelFailed(f"the model {self.name} gave no reply: {fault}") from fault
        except (AttributeError, TypeError, ValueError) as fault:  # the client hands on whatever the endpoint said
            raise ModelFailed(f"no Chat Completion came back from {self.name}") from fault

    def _whole(self, messages: Sequence[Json], tools: Sequence[Json]) -> Iterator[str | Reply]:
        answer = self.client.chat.completions.create(model=self.name, messages=messages, tools=tools)
        if not answer.choices:
            raise ModelFailed(f"the model {self.name} gave an empty answer")
        said = answer.choices[0].message
        calls = tuple(_call(each.id, each.function.name, each.function.arguments) for each in said.tool_calls or ())
        text = "" + (said.content or "")  # raises TypeError, where it is no text
        if text:
            yield text
        yield Reply(text, calls, _usage(answer.usage))

    def _streamed(self, messages: Sequence[Json], tools: Sequence[Json]) -> Iterator[str | Reply]:
        text, usage, is_whole = "", Usage(), False
        half = ""  # of a character, the rest of which is to come
        calls: list[list[str]] = []  # id, name, arguments
        at: dict[int | None, list[str]] = {}  # by the index that their pieces bear
        with self.client.chat.completions.create(
            model=self.name, messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}
        ) as pieces:
            for piece in pieces:
                usage = _usage(piece.usage) if piece.usage else usage
                for choice in piece.choices[:1]:
                    is_whole = is_whole or choice.finish_reason is not None
                    for each in choice.delta.tool_calls or ():
                        if each.index not in at or each.id not in (None, "", at[each.index][0]):  # some number all of them 0
                            at[each.index] = ["", "", ""]
                            calls.append(at[each.index])
                        call = at[each.index]
                        call[0] = each.id or call[0]
                        if each.function:
                            call[1] += "" if each.function.name in (None, call[1]) else each.function.name  # some repeat it
                            call[2] += each.function.arguments or ""
                    if choice.delta.content:
                        said = joined(half + choice.delta.content)
                        half = said[-1] if "\ud800" <= said[-1] <= "\udbff" else ""
                        if said := said.removesuffix(half):
                            text += said
                            yield said
        if not is_whole:  # half a call must not run
            raise ModelFailed(f"the reply of {self.name} broke off")
        if half:
            yield half
        yield Reply(text + half, tuple(_call(*call) for call in calls), usage)


def endpoint(name: str, base_url: str, environ: Mapping[str, str], *, stream: bool = True) -> Endpoint:
    """The model ``name`` at ``base_url``; the key is OPENAI_API_KEY, which a server of one's own may not want. Raises NoClient."""
    try:
        from openai import OpenAI
    except ImportError as fault:
        raise NoClient(
            "a model needs the openai package, which is not installed here", "pip install openai"
        ) from fault
    return Endpoint(name, OpenAI(base_url=base_url, api_key=environ.get("OPENAI_API_KEY") or "none"), stream)


def _call(call_id: str | None, name: str | None, arguments: Any) -> ToolCall:
    """A call as the next request may have it: texts, whatever was left out or sent as JSON itself."""
    text = joined(arguments) if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolCall(str(call_id or ""), str(name or ""), text or "{}")


def _usage(given: Any) -> Usage:
    details = getattr(given, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or 0
    return Usage(int(given.prompt_tokens or 0), int(cached), int(given.completion_tokens or 0)) if given else Usage()
