"""How the loop triggers the moments that the session does not trigger by itself."""

from __future__ import annotations

from typing import Any

from safety.hooks.caller import Outcome, call_hooks
from safety.hooks.events import EVENTS, HookType
from safety.session import Session


def trigger(session: Session, moment: HookType, *args: Any, **fields: Any) -> Outcome:
    """Calls the handlers of a moment with those fields that it has; what failed among them is told to the user."""
    known = {name: value for name, value in fields.items() if name in EVENTS[moment].keywords}
    outcome = call_hooks(session.hooks, moment, *args, session=session, **known)
    session.notices.extend(f"git-safety: {each.hook} failed: {each.detail or each.kind}" for each in outcome.failures)
    return outcome
