"""Context with each prompt: the branch and what is not committed, so that the model need not ask."""

from __future__ import annotations

from collections.abc import Iterator

from safety.hooks.events import HookType
from safety.hooks.message import Message
from safety.session import Session
from safety.tools.spec import HookSpec, ToolSpec

SHOWN = 20


def prompted(session: Session) -> Iterator[Message]:
    done = session.place.git.user(session.root, ["status", "--short", "--branch"], check=False)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode == 0 and lines:
        more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        yield Message("system", "\n".join(["The repository as the user sees it:", *lines[:SHOWN], *more]))


TOOL = ToolSpec(
    name="context_inject",
    desc="Tells the model with each prompt on which branch it is and what is not committed.",
    hooks={"turn": HookSpec(HookType.TURN_PRE, prompted)},
)
