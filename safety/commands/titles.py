"""How turns and paths are named in reports."""

from __future__ import annotations

from collections.abc import Collection

from safety.commands.redact import redacted
from safety.commands.report import TurnTitle
from safety.session import RUN_PREFIX, given_id
from safety.store.history import Turn


def agent_name(turn: Turn) -> str:
    return turn.agent or ("run" if turn.session.startswith(RUN_PREFIX) else "an agent")


def both_ran(turns: Collection[int]) -> str:
    """``t1 and t2 both ran``, of turns that ran at once."""
    handles = [f"t{number}" for number in sorted(turns)]
    return f"{', '.join(handles[:-1])} and {handles[-1]} {'both' if len(handles) == 2 else 'all'} ran"


def title_of(turn: Turn, call: int | None = None) -> TurnTitle:
    """The line that names a turn, or one call of it."""
    handle = f"{turn.handle}.{call}" if call else turn.handle
    command = turn.session.startswith(RUN_PREFIX)
    calls = 0 if command else turn.calls
    return TurnTitle(handle, agent_name(turn), turn.ended_ms, calls, redacted(turn.prompt), command, given_id(turn.session))
