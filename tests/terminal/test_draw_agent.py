"""What the reference agent's terminal shows of calls and questions."""

from __future__ import annotations

import pytest

from safety.agent import messages as m
from safety.hooks.elicitation import ElicitationRequest, terminal_handler
from safety.terminal.draw_agent import lines
from safety.terminal.screen import plain


def test_a_denial_says_once_that_nothing_was_run() -> None:
    """The guard's own words begin with it, others' do not."""
    guards = m.Ended("c", "shell", "denied", "Not allowed: git-safety: not run, it cannot be undone: rm -rf ~ would lose /home/x")
    assert plain(lines(guards)) == "  not run: it cannot be undone: rm -rf ~ would lose /home/x\n"
    assert plain(lines(m.Ended("c", "shell", "denied", "No pushes here."))) == "  not run: No pushes here.\n"


@pytest.mark.parametrize(("question", "shown"), [("Which?", "Which? "), ("Name it", "Name it: "), ("Name:", "Name: ")])
def test_a_question_is_shown_once(question: str, shown: str) -> None:
    """Where it is answered, not in the line of the call; it ends in one mark."""
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "this"

    assert plain(lines(m.Started("c", "ask_user", {"question": question}))) == "  ask_user\n"
    assert terminal_handler(ask=ask, ask_secret=ask, show=asked.append)(ElicitationRequest("text", question)).value == "this"
    assert asked == [shown]


def test_a_long_name_of_a_tool_stands_apart() -> None:
    """What the call is about begins after a space."""
    assert plain(lines(m.Started("c", "subagent", {"task": "look"}))) == "  subagent look\n"
