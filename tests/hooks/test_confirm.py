"""May this call run: the chain, the person at the terminal, and what nobody but a person allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from safety.hooks import ConfirmationResult, HookRegistry, HookType, StopPropagation, get_confirmation
from safety.hooks.answers import ConfirmAction
from safety.hooks.confirm import ASKED_MAX, Auto, auto_handler, cli_handler, confirm
from safety.types import Decision

YES, NO = ConfirmationResult.confirm(), ConfirmationResult.skip("no")
LOST = Decision("ask", "3 commits are lost for good", unrecoverable=True)


@dataclass(frozen=True)
class Use:
    tool: str = "shell"
    content: str = "rm -rf x"


@dataclass
class Terminal:
    """Answers in order, and what was shown and asked."""

    answers: list[Any] = field(default_factory=list)
    edited: str | None = None
    shown: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)

    def ask(self, question: str) -> str | None:
        self.asked.append(question)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[no-any-return]

    def handler(self, auto: Auto | None = None) -> Any:
        return cli_handler(
            ask=self.ask, show=self.shown.append, edit=lambda text: self.edited, copy=self.copied.append, auto=auto
        )


@pytest.fixture
def registry() -> HookRegistry:
    return HookRegistry()


def add(registry: HookRegistry, name: str, answer: Any, priority: int = 0, **more: Any) -> list[str]:
    """Registers a handler that gives ``answer``; the list grows with each call."""
    calls: list[str] = []

    def handler(tool_use: Any, preview: Any, workspace: Any) -> Any:
        calls.append(preview or tool_use.content)
        if isinstance(answer, Exception):
            raise answer
        return answer(tool_use) if callable(answer) and not isinstance(answer, type) else answer

    registry.register(name, HookType.TOOL_CONFIRM, handler, priority, **more)
    return calls


def asked(registry: HookRegistry, **more: Any) -> ConfirmationResult:
    return get_confirmation(Use(), registry=registry, **more)


# -- the chain -----------------------------------------------------------------------------------------------------------------------


def test_the_first_answer_is_the_result(registry: HookRegistry) -> None:
    """None falls through; those below the answer are not asked."""
    above = add(registry, "above", None, 3)
    add(registry, "yes", YES, 2)
    below = add(registry, "below", NO, 1)
    assert (asked(registry).action, len(above), below) == (ConfirmAction.CONFIRM, 1, [])


@pytest.mark.parametrize(("given", "action"), [(True, "confirm"), (False, "skip")])
def test_a_plain_yes_or_no_is_an_answer(registry: HookRegistry, given: bool, action: str) -> None:
    """As gptme takes it."""
    add(registry, "a", given)
    assert asked(registry).action == action


def test_nobody_answers(registry: HookRegistry) -> None:
    """Confirm, or skip if the caller says so; with handlers that fall through and with none."""
    for _ in range(2):
        assert asked(registry).action == "confirm"
        assert asked(registry, default_confirm=False).action == "skip"
        add(registry, "a", None)
    assert confirm("Sure?", registry=registry, default=False) is False


def test_a_failing_handler_skips(registry: HookRegistry) -> None:
    """An error or an answer that is none is a no, with the reason; one below cannot make it a yes."""
    for answer in (ValueError("boom"), "yes"):
        add(registry, "bad", answer, 2)
        below = add(registry, "below", YES, 1)
        result = asked(registry)
        assert (result.action, below) == ("skip", []) and "bad" in (result.message or "")


def test_no_higher_confirm_beats_a_guards_denial(registry: HookRegistry) -> None:
    """Neither a confirm nor a stop above the guard keeps it from being heard."""
    add(registry, "guard", ConfirmationResult.skip("lost for good", unrecoverable=True), 150, role="guard")
    for above in (YES, True, ConfirmationResult.edit("rm y"), StopPropagation(), StopPropagation):
        add(registry, "above", (lambda value: lambda use: value)(above), 200)
        result = asked(registry)
        assert (result.action, result.message, result.unrecoverable) == ("skip", "lost for good", True)


def test_a_denial_from_above_asks_no_further(registry: HookRegistry) -> None:
    """What is refused needs no question."""
    add(registry, "guard", Decision("deny", "no"), 150, role="guard")
    below = add(registry, "cli", YES)
    assert (asked(registry), below) == (ConfirmationResult.skip("no"), [])


def test_a_guards_question_reopens_what_was_answered(registry: HookRegistry) -> None:
    """A confirm above the guard is taken back, and the question goes on down the chain."""
    add(registry, "above", YES, 200)
    add(registry, "guard", Decision("ask", "sure?"), 150, role="guard")
    below = add(registry, "below", NO, 0)
    assert (asked(registry).action, len(below)) == ("skip", 1)


def test_only_a_person_confirms_the_unrecoverable(registry: HookRegistry) -> None:
    """A confirm that no person gave to this question is passed over; with nobody left the call is skipped."""
    add(registry, "guard", LOST, 150, role="guard")
    allowlist = add(registry, "allowlist", YES, 10)
    result = asked(registry)
    assert (result.action, result.message, result.unrecoverable, len(allowlist)) == ("skip", LOST.reason, True, 1)
    add(registry, "server", ConfirmationResult.confirm(by_user=True), 0)
    assert asked(registry).action == "confirm"


def test_a_question_for_the_recoverable_may_be_answered_by_anyone(registry: HookRegistry) -> None:
    """An allowlist answers an ordinary question."""
    add(registry, "guard", Decision("ask", "sure?"), 150, role="guard")
    add(registry, "allowlist", YES, 10)
    assert asked(registry).action == "confirm"


def test_an_edit_is_judged_again(registry: HookRegistry) -> None:
    """The guard sees what the edit made of the call; its verdict on that stands."""
    seen = add(
        registry, "guard", lambda use: Decision("deny", "still no") if use.content == "rm -rf y" else None, 150, role="guard"
    )
    edits = {"rm -rf x": ConfirmationResult.edit("rm -rf y")}
    add(registry, "cli", lambda use: edits.get(use.content))
    assert (asked(registry), seen) == (ConfirmationResult.skip("still no"), ["rm -rf x", "rm -rf y"])
    edits["rm -rf x"] = ConfirmationResult.edit("ls")
    assert asked(registry) == ConfirmationResult.edit("ls")


def test_a_yes_is_to_what_an_edit_made_of_the_call(registry: HookRegistry) -> None:
    """An edit below a guard's question is not lost when the question is answered."""
    add(registry, "guard", lambda use: Decision("ask", "sure?") if use.content == "rm -rf x" else None, 150, role="guard")
    add(registry, "safer", lambda use: Decision("edit", "", {"content": "trash x"}) if use.content == "rm -rf x" else None, 50)
    add(registry, "cli", YES)
    assert asked(registry) == ConfirmationResult.edit("trash x")


def test_an_edit_that_never_settles_is_refused(registry: HookRegistry) -> None:
    """A handler that edits for ever does not hang the call."""
    add(registry, "editor", lambda use: ConfirmationResult.edit(use.content + "!"))
    assert asked(registry).action == "skip"


def test_an_edit_that_cannot_be_judged_is_refused(registry: HookRegistry) -> None:
    """A call that has no place for a text is not run with the old one unseen; the host may say how to put it in."""
    add(registry, "editor", lambda use: ConfirmationResult.edit("ls"))
    use = (1, 2)
    assert get_confirmation(use, "x", registry=registry).action == "skip"
    result = get_confirmation(use, "x", registry=registry, apply_edit=lambda use, text: SimpleNamespace(content=text))
    assert result == ConfirmationResult.edit("ls")


def test_an_edit_without_a_text_is_refused(registry: HookRegistry) -> None:
    """A decision that edits something else than the text is not a confirmation of it."""
    add(registry, "editor", Decision("edit", "", {"command": "ls"}))
    assert asked(registry) == ConfirmationResult.skip("an edit without a text")


def test_an_interrupt_at_the_question_is_a_no(registry: HookRegistry) -> None:
    """Ctrl-C while asked: the tool does not run."""
    terminal = Terminal([KeyboardInterrupt()])
    registry.register("cli", HookType.TOOL_CONFIRM, terminal.handler())
    assert asked(registry).action == "skip"


# -- the terminal --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "action"),
    [
        (["y"], "confirm"),
        ([" YES "], "confirm"),
        (["n"], "skip"),
        ([""], "skip"),
        ([None], "skip"),
        (["what"] * ASKED_MAX, "skip"),
    ],
    ids=str,
)
def test_what_a_person_answers(answers: list[str | None], action: str) -> None:
    """y runs it; n, Enter, the end of input and what nobody understands do not."""
    terminal = Terminal(list(answers))
    assert terminal.handler()(Use()).action == action
    assert terminal.shown[0] == "rm -rf x" and terminal.answers == []


def test_help_asks_again() -> None:
    """? shows the answers, and the next answer counts."""
    terminal = Terminal(["?", "y"])
    assert terminal.handler()(Use()).action == "confirm"
    assert any("do not run it" in text for text in terminal.shown) and "y/N/e/c/a/?" in terminal.asked[0]


@pytest.mark.parametrize(
    ("edited", "result"), [("ls", ConfirmationResult.edit("ls", by_user=True)), ("rm -rf x", None), (None, None)]
)
def test_a_person_edits(edited: str | None, result: ConfirmationResult | None) -> None:
    """e gives the changed text; unchanged or given up is not run."""
    terminal = Terminal(["e"], edited)
    given = terminal.handler()(Use())
    assert given == result if result else given.action == "skip"


def test_a_person_copies() -> None:
    """c copies and does not run."""
    terminal = Terminal(["c"])
    assert terminal.handler()(Use()).action == "skip" and terminal.copied == ["rm -rf x"]


def test_only_what_is_possible_is_offered() -> None:
    """Without an editor or a text to edit, e is not an answer."""
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return "e"

    assert cli_handler(ask=ask, show=lambda text: None)(Use(), None, None, None).action == "skip"
    assert asked[0] == "Run shell? [y/N/a/?] "


@pytest.mark.parametrize("why", ["", "it is too large"])
def test_snapshot_first_then_run(why: str) -> None:
    """``s`` is offered for the unrecoverable where a snapshot can be taken; the call runs only if that worked."""
    taken: list[Any] = []
    asked: list[str] = []
    shown: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return "s" if len(asked) == 1 else "n"

    def snapshot(use: Any) -> str:
        taken.append(use)
        return why

    handler = cli_handler(ask=ask, show=shown.append, snapshot=snapshot)
    result = handler(Use(), None, None, LOST)
    assert taken == [Use()] and "/s/" in asked[0]
    assert result.action == ("skip" if why else "confirm")
    assert any("it is too large" in text for text in shown) == bool(why)
    handler(Use(), None, None, Decision("ask", "why not"))
    assert "/s/" not in asked[-1]


@pytest.mark.parametrize(("answer", "unasked"), [("a 2", 2), ("auto 1", 1), ("a", 50), ("a 0", 0)])
def test_auto_runs_the_next_ones_unasked(answer: str, unasked: int) -> None:
    """a N runs this and the next N without a question, a all of them; what runs is shown all the same."""
    terminal = Terminal([answer, "n"])
    handler = terminal.handler()
    results = [handler(Use()).action for _ in range(unasked + 1)]
    assert results == ["confirm"] * (unasked + 1)
    assert len(terminal.asked) == 1 and len(terminal.shown) == unasked + 1
    if unasked < 50:
        assert handler(Use()).action == "skip"


@pytest.mark.parametrize("auto", [Auto(None), Auto(3)], ids=str)
def test_auto_never_covers_the_unrecoverable(registry: HookRegistry, auto: Auto) -> None:
    """It is asked about under a and a N, does not count, and a is no answer to it."""
    left = auto.left
    terminal = Terminal(["a", "a 5", "n"])
    registry.register("cli", HookType.TOOL_CONFIRM, terminal.handler(auto))
    add(registry, "guard", LOST, 150, role="guard")
    result = asked(registry)
    assert (result.action, result.by_user, auto.left) == ("skip", True, left)
    assert LOST.reason in terminal.shown and "/a/" not in terminal.asked[0] and len(terminal.asked) == 3
    terminal.answers = ["y"]
    assert asked(registry).action == "confirm"


def test_nobody_there(registry: HookRegistry) -> None:
    """The automatic handler confirms, also an ordinary question, but skips the unrecoverable with the guard's reason."""
    registry.register("auto", HookType.TOOL_CONFIRM, auto_handler())
    assert asked(registry).action == "confirm"
    add(registry, "guard", Decision("ask", "sure?"), 150, role="guard")
    assert asked(registry).action == "confirm"
    add(registry, "guard", LOST, 150, role="guard")
    result = asked(registry)
    assert (result.action, result.message, result.unrecoverable) == ("skip", LOST.reason, True)


Maker = Callable[[], ConfirmationResult]


@pytest.mark.parametrize(
    ("made", "action"),
    [(ConfirmationResult.confirm, "confirm"), (ConfirmationResult.skip, "skip"), (lambda: ConfirmationResult.edit("x"), "edit")],
)
def test_the_factories(made: Maker, action: str) -> None:
    """As gptme names them; a skip always has a message."""
    assert made().action == action and (action != "skip" or made().message)
