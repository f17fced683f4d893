"""Sample bundles, each a ToolSpec of its own in a file of its own: to be read, copied and changed. None is on unless named."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from safety.faults import SafetyError
from safety.session import Session

SAMPLES = (
    "permission", "log", "large_output", "context_inject", "summary", "cost_awareness", "cache_awareness", "active_context",
)  # fmt: skip


class NoSuchBundle(SafetyError):
    code, exit_code = "no-such-bundle", 2


def switch_on(session: Session, names: Iterable[str]) -> None:
    """Adds the hooks of these samples to the session's. Raises NoSuchBundle."""
    for name in names:
        if name not in SAMPLES:
            raise NoSuchBundle(f"there is no sample bundle {name!r}; there are {', '.join(SAMPLES)}")
        import_module(f"safety.agent.bundles.{name}").TOOL.register_hooks(session.hooks)
