"""Cost: the model hears when the conversation has passed another step of tokens, the user hears it in money too."""

from __future__ import annotations

from collections.abc import Iterator

from safety.hooks.events import HookType
from safety.hooks.message import Message
from safety.session import Session
from safety.tools.spec import HookSpec, ToolSpec

STEPS = (50_000, 200_000, 500_000, 1_000_000, 5_000_000)


def replied(message: Message, session: Session) -> Iterator[Message]:
    facts = message.metadata or {}
    total, usage = facts["total"], facts["usage"]
    now = total.prompt + total.completion
    before = now - usage.prompt - usage.completion
    passed = [step for step in STEPS if before < step <= now]
    if passed:
        cost = f", about {facts['cost']:.2f}" if facts.get("cost") else ""
        session.notices.append(f"{now} tokens so far, {total.cached} of them cached{cost}")
        yield Message("system", f"This conversation has taken over {passed[-1]} tokens. Be short; read only what you need.")


TOOL = ToolSpec(
    name="cost_awareness",
    desc="Tells model and user when a conversation gets expensive.",
    hooks={"replied": HookSpec(HookType.GENERATION_POST, replied)},
)
