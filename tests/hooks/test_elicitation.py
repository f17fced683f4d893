"""Questions of the agent to the user: who answers, what fits, and that secrets stay where they belong."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from safety.hooks import ElicitationRequest, ElicitationResponse, FormField, HookRegistry, HookType, elicit, trace_lines
from safety.hooks.elicitation import TRIES_MAX, terminal_handler

SECRET = "hunter2"


class Terminal:
    """Answers in order, a secret's apart; keeps what was shown and asked."""

    def __init__(self, *answers: Any, secrets: tuple[Any, ...] = ()) -> None:
        self.answers, self.secrets = list(answers), list(secrets)
        self.shown: list[str] = []

    def __call__(self, request: ElicitationRequest) -> ElicitationResponse:
        return terminal_handler(ask=self.ask, ask_secret=self.ask_secret, show=self.shown.append)(request)

    def ask(self, prompt: str) -> Any:
        return self.given(prompt, self.answers)

    def ask_secret(self, prompt: str) -> Any:
        return self.given(prompt, self.secrets)

    def given(self, prompt: str, answers: list[Any]) -> Any:
        self.shown.append(prompt)
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def request(kind: Any, **more: Any) -> ElicitationRequest:
    return ElicitationRequest(kind, "Which?", **more)


@pytest.mark.parametrize(
    ("asked", "typed", "value"),
    [
        (request("text"), ["some text "], "some text"),
        (request("text", default="d"), [""], "d"),
        (request("choice", options=("a", "b")), ["2"], "b"),
        (request("choice", options=("a", "b")), ["a"], "a"),
        (request("choice", options=("a", "b")), ["3", "x", "1"], "a"),
        (request("choice", options=("a", "b"), default="b"), [""], "b"),
        (request("choice"), ["free"], "free"),
        (request("confirmation"), ["y"], "yes"),
        (request("confirmation"), [""], "no"),
        (request("confirmation", default="yes"), [""], "yes"),
        (request("confirmation"), ["perhaps", "n"], "no"),
    ],
    ids=repr,
)
def test_one_value(asked: ElicitationRequest, typed: list[str], value: str) -> None:
    """Text, a choice by number or text, yes or no; what does not fit is asked for again."""
    terminal = Terminal(*typed)
    assert (terminal(asked), terminal.answers) == (ElicitationResponse.text(value), [])


@pytest.mark.parametrize(
    ("typed", "values"), [(["1, 3"], ("a", "c")), (["3,3"], ("c",)), ([""], ()), (["9", "2"], ("b",))], ids=str
)
def test_several_values(typed: list[str], values: tuple[str, ...]) -> None:
    """Numbers with commas, each once; none is an answer, one that does not fit is not."""
    assert Terminal(*typed)(request("multi_choice", options=("a", "b", "c"))).values == values


@pytest.mark.parametrize("answer", [None, KeyboardInterrupt(), EOFError()], ids=repr)
@pytest.mark.parametrize("kind", ["text", "choice", "multi_choice", "secret", "confirmation", "form"])
def test_giving_up_cancels(kind: str, answer: Any) -> None:
    """The end of input and Ctrl-C."""
    asked = request(kind, options=("a",), fields=(FormField("f", "F"),))
    assert Terminal(answer, secrets=(answer,))(asked) == ElicitationResponse.cancel()


def test_what_never_fits_cancels() -> None:
    """Nobody is asked for ever."""
    assert Terminal(*["x"] * TRIES_MAX)(request("choice", options=("a", "b"))).cancelled


def test_a_form() -> None:
    """Every field in its type, a required one until it is filled, a secret only in ``secrets``."""
    fields = (
        FormField("name", "Name"),
        FormField("port", "Port", "number", default="80"),
        FormField("ratio", "Ratio", "number"),
        FormField("fast", "Fast", "boolean"),
        FormField("kind", "Kind", "choice", ("a", "b")),
        FormField("note", "Note", required=False),
        FormField("key", "Key", "secret"),
    )
    terminal = Terminal("", "Dana", "", "many", "nan", "0.5", "yes", "2", "", secrets=(SECRET,))
    response = terminal(request("form", fields=fields))
    assert json.loads(response.value or "") == {
        "name": "Dana",
        "port": 80,
        "ratio": 0.5,
        "fast": True,
        "kind": "b",
        "note": "",
        "key": "<secret provided>",
    }
    assert response.secrets == {"key": SECRET} and SECRET not in repr(response)


def test_the_first_handler_that_answers(caplog: pytest.LogCaptureFixture) -> None:
    """None and a failure are passed over; with nobody, the fallback; without one, cancelled."""
    registry = HookRegistry()
    assert elicit(request("text"), registry=registry).cancelled
    assert elicit(request("text"), registry=registry, fallback=Terminal("typed")).value == "typed"
    registry.register("none", HookType.ELICIT, lambda request: None, 3)
    registry.register("bad", HookType.ELICIT, lambda request: 1 / 0, 2)
    assert elicit(request("text"), registry=registry, fallback=Terminal("typed")).value == "typed"
    registry.register("answers", HookType.ELICIT, lambda request: ElicitationResponse.text("x"), 1)
    assert elicit(request("text"), registry=registry, fallback=Terminal()).value == "x"


@pytest.mark.parametrize("asked", [request("secret"), request("text", sensitive=True)], ids=repr)
def test_a_secret_is_seen_by_nobody_else(asked: ElicitationRequest, caplog: pytest.LogCaptureFixture) -> None:
    """Not in the log, the trace, a repr or on the screen; marked sensitive whatever the handler says."""
    caplog.set_level(logging.DEBUG)
    registry = HookRegistry()
    terminal = Terminal(SECRET, secrets=(SECRET,))
    registry.register("terminal", HookType.ELICIT, terminal)
    response = elicit(asked, registry=registry)
    assert (response.value, response.sensitive) == (SECRET, True)
    registry.register("careless", HookType.ELICIT, lambda request: ElicitationResponse.text(SECRET), 1)
    careless = elicit(asked, registry=registry)
    assert careless.sensitive
    seen = [caplog.text, repr(response), repr(careless), str(terminal.shown), *trace_lines(registry.traces)]
    assert SECRET not in "".join(seen)


def test_a_default_that_is_secret_is_not_shown() -> None:
    """Neither in the request's repr nor in a form field's, nor in the prompt."""
    field = FormField("key", "Key", "secret", default=SECRET)
    asked = ElicitationRequest("secret", "Key", fields=(field,), default=SECRET)
    terminal = Terminal("", secrets=("",))
    response = terminal(ElicitationRequest("form", "Form", fields=(field,)))
    assert response.secrets == {"key": SECRET}
    assert SECRET not in repr(asked) + repr(field) + str(terminal.shown)
