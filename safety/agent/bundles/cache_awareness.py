"""The endpoint's cache: the model hears when its context was cut, the user when hardly anything of a large request was cached."""

from __future__ import annotations

from collections.abc import Iterator

from safety.hooks.events import HookType
from safety.hooks.message import Message
from safety.session import Session
from safety.tools.spec import HookSpec, ToolSpec

LARGE = 10_000  # tokens of a request from which on its cached part matters
LITTLE = 0.2


def invalidated(reason: str, tokens_before: int, tokens_after: int) -> Iterator[Message]:
    yield Message(
        "system",
        f"Your context was shortened ({reason}: {tokens_before} to {tokens_after} tokens). Old results of tools are gone; "
        "read again what you still need.",
    )


def replied(message: Message, session: Session) -> None:
    usage = (message.metadata or {})["usage"]
    if usage.prompt >= LARGE and usage.cached < LITTLE * usage.prompt:
        session.notices.append(f"only {usage.cached} of {usage.prompt} tokens of this request were cached")


TOOL = ToolSpec(
    name="cache_awareness",
    desc="Tells model and user when the context's cache is lost.",
    hooks={
        "invalidated": HookSpec(HookType.CACHE_INVALIDATED, invalidated),
        "replied": HookSpec(HookType.GENERATION_POST, replied),
    },
)
