"""How often a failure goes back ([gate] A7)."""

from __future__ import annotations

from typing import Any

import pytest

from safety.gate.attempts import next_attempt
from safety.gate.results import CheckFailure, GateResult, Line


def failure(text: str, name: str = "mypy") -> GateResult:
    return GateResult("failed", failures=(CheckFailure(name, 1, 0.1, (Line(text, "yours"),)),), warn_only=True)


def rounds(*results: GateResult, max_attempts: int = 3) -> list[bool]:
    state: dict[str, Any] = {}
    sent = []
    for result in results:
        state, back = next_attempt(state, result, max_attempts)
        sent.append(back)
    return sent


def test_three_times() -> None:
    """Failures that differ go back as often as the setting says, then to the user."""
    assert rounds(*(failure(text) for text in "abcde")) == [True, True, True, False, False]
    assert rounds(failure("a"), max_attempts=0) == [False]


def test_the_same_failure_twice_again() -> None:
    """The same failure, line numbers aside, stops when it has repeated twice; another one in between begins anew."""
    same = [failure(f"a.py:{number}: wrong") for number in (1, 22, 333)]
    assert rounds(*same, max_attempts=9) == [True, True, False]
    assert rounds(same[0], same[1], failure("other"), same[2], max_attempts=9) == [True] * 4
    assert rounds(failure("x", "one"), failure("x", "two"), failure("x", "three"), max_attempts=9) == [True] * 3


@pytest.mark.parametrize("status", ["passed", "passed_with_fixes", "timeout", "tool_missing", "env_failed", "cancelled"])
def test_only_failures_count(status: str) -> None:
    """Anything else sends nothing back and ends the count."""
    state, _ = next_attempt({}, failure("a"))
    assert next_attempt(state, GateResult(status)) == ({}, False)  # type: ignore[arg-type]


def test_a_state_that_is_damaged_counts_as_none() -> None:
    """Whatever stands in the state, the answer comes."""
    state, back = next_attempt({"attempt": "x", "repeats": None, "fingerprint": 3}, failure("a"))
    assert (state["attempt"], back) == (1, True)


def test_older_failures_do_not_go_back() -> None:
    """What failed before the turn goes back only where the setting says that it blocks."""
    older = CheckFailure("mypy", 1, 0.1, (), older=True)
    assert rounds(GateResult("failed", failures=(older,), warn_only=True)) == [False]
    assert rounds(GateResult("failed", failures=(older,), warn_only=False)) == [True]
