"""A summary at the turn's end, for the user: what the turn changed, and how to take it back."""

from __future__ import annotations

from safety.hooks.events import HookType
from safety.session import Session
from safety.tools.spec import HookSpec, ToolSpec


def ends(session: Session) -> None:
    found = session.last_turn_summary()
    if found is None:
        return
    counts = ((found.changed, "changed"), (found.removed, "removed"), (len(found.uncovered), "not covered"))
    said = ", ".join(f"{number} {word}" for number, word in counts if number)
    session.notices.append(f"{found.handle}: {said}. {'Take it back: /undo' if found.undoable else 'It cannot be taken back'}")


TOOL = ToolSpec(
    name="summary",
    desc="Says at a turn's end what it changed.",
    hooks={"stop": HookSpec(HookType.TURN_POST, ends, 3)},  # below the gate, which stops what stands below it when it refuses
)
