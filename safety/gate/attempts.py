"""How often a failure goes back to the model. Several clients would loop for ever, so the count is ours ([gate] A7)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from safety.gate.lines import key
from safety.gate.results import GateResult

MOST_REPEATS = 2


def next_attempt(previous: Mapping[str, Any], result: GateResult, max_attempts: int = 3) -> tuple[dict[str, Any], bool]:
    """The state after this result, and whether the model gets another try.

    The state is ``{}`` at each message of the user's; ``attempt`` in it is the number that the texts show. A failure goes back at most
    ``max_attempts`` times, and not again when the same one has repeated twice. Anything but a failure of the turn's ends the count.
    """
    if not result.goes_back:
        return {}, False
    attempt = _number(previous, "attempt") + 1
    print_now = fingerprint(result)
    repeats = _number(previous, "repeats") + 1 if previous.get("fingerprint") == print_now else 0
    state = {"attempt": attempt, "fingerprint": print_now, "repeats": repeats}
    return state, attempt <= max_attempts and repeats < MOST_REPEATS


def fingerprint(result: GateResult) -> str:
    """What makes two failures the same: the checks and what they say, without numbers."""
    said = sorted((failure.id, *sorted({key(line.text) for line in failure.lines})) for failure in result.failures)
    return hashlib.sha256(repr(said).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _number(state: Mapping[str, Any], name: str) -> int:
    value = state.get(name)
    return value if isinstance(value, int) else 0
