"""A question of the agent to the user: ``elicit`` and the handler that puts it on a terminal. How to ask and show is handed in."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

from safety.hooks.answers import ElicitationRequest, ElicitationResponse, FormField
from safety.hooks.caller import call_hooks
from safety.hooks.events import HookType
from safety.hooks.registry import HookRegistry, get_registry

__all__ = ["ElicitationRequest", "ElicitationResponse", "FormField", "elicit", "terminal_handler"]

SECRET_SHOWN = "<secret provided>"
TRIES_MAX = 3

T = TypeVar("T")
ElicitFunction = Callable[[ElicitationRequest], ElicitationResponse]


def elicit(
    request: ElicitationRequest,
    *,
    fallback: ElicitFunction | None = None,
    session: Any = None,
    registry: HookRegistry | None = None,
) -> ElicitationResponse:
    """The user's answer by the handlers of ELICIT, the first that gives one; else by ``fallback``; else cancelled.

    An answer to a sensitive request is always marked sensitive. A failing handler is passed over.
    """
    outcome = call_hooks(registry or get_registry(), HookType.ELICIT, request, session=session)
    answer: ElicitationResponse | None = outcome.answer
    if answer is None:
        answer = fallback(request) if fallback and not outcome.stopped_by else ElicitationResponse.cancel()
    return dataclasses.replace(answer, sensitive=True) if request.sensitive and not answer.sensitive else answer


def terminal_handler(
    *, ask: Callable[[str], str | None], ask_secret: Callable[[str], str | None], show: Callable[[str], None]
) -> ElicitFunction:
    """A handler that asks line by line. ``ask`` and ``ask_secret`` give the line typed, None at its end, which cancels; so does Ctrl-C.

    What does not fit is asked for again, up to three times, then cancelled. A secret is never shown, nor is its default.
    """

    def terminal_elicit(request: ElicitationRequest) -> ElicitationResponse:
        try:
            return _asked(request, ask, ask_secret, show)
        except (_GivenUp, KeyboardInterrupt, EOFError):
            return ElicitationResponse.cancel()

    return terminal_elicit


class _GivenUp(Exception):
    """The input ended, or nothing fitting was typed."""


Ask = Callable[[str], str | None]
Show = Callable[[str], None]


def _asked(request: ElicitationRequest, ask: Ask, ask_secret: Ask, show: Show) -> ElicitationResponse:
    if request.description:
        show(request.description)
    if request.type == "form" and request.fields:
        return _form(request, ask, ask_secret, show)
    if request.type == "multi_choice" and request.options:
        _show_options(request, show)
        return ElicitationResponse.multi(
            _until(ask, f"{request.prompt} (numbers, with commas): ", _several(request.options), show)
        )
    if request.type == "secret":
        return ElicitationResponse.text(
            _until(ask_secret, _before_answer(request.prompt), lambda line: line, show), sensitive=True
        )
    read: Callable[[str], str | None]
    if request.type == "confirmation":
        yes = (request.default or "").lower() in ("y", "yes", "true")
        read, prompt = _yes_or_no(yes), f"{request.prompt} [{'Y/n' if yes else 'y/N'}]: "
    elif request.type == "choice" and request.options:
        _show_options(request, show)
        read, prompt = _one(request.options, request.default), "Number: "
    else:
        hint = f" [{request.default}]" if request.default and not request.sensitive else ""
        read, prompt = (lambda line: line.strip() or request.default or ""), _before_answer(request.prompt + hint)
    return ElicitationResponse.text(_until(ask, prompt, read, show), sensitive=request.sensitive)


def _before_answer(prompt: str) -> str:
    """A question has its own mark."""
    return f"{prompt} " if prompt.rstrip().endswith(("?", ":")) else f"{prompt}: "


def _form(request: ElicitationRequest, ask: Ask, ask_secret: Ask, show: Show) -> ElicitationResponse:
    """All fields as one JSON object; a secret field's value is only in ``secrets``."""
    show(request.prompt)
    values: dict[str, object] = {}
    secrets: dict[str, str] = {}
    for field in request.fields:
        value = _field(field, ask, ask_secret, show)
        if field.type == "secret" and value:
            secrets[field.name], value = str(value), SECRET_SHOWN
        values[field.name] = value
    return ElicitationResponse(json.dumps(values), sensitive=request.sensitive, secrets=secrets)


def _field(field: FormField, ask: Ask, ask_secret: Ask, show: Show) -> object:
    hint = f" [{field.default}]" if field.default is not None and field.type != "secret" else ""
    optional = "" if field.required else " (may be left empty)"
    if field.type == "choice" and field.options:
        show("\n".join(f"  {number}. {option}" for number, option in enumerate(field.options, 1)))
    prompt = f"{field.prompt}{hint}{optional}: "
    return _until(ask_secret if field.type == "secret" else ask, prompt, lambda line: field_value(field, line), show)[0]


def field_value(field: FormField, line: str) -> tuple[object] | None:
    """What a line stands for in a field, in a tuple; None if it does not fit. An empty one stands for the default."""
    text = (line if field.type == "secret" else line.strip()) or field.default or ""
    if not text:
        return None if field.required else ("" if field.type in ("text", "secret") else None,)
    if field.type == "boolean":
        known = _yes_or_no(False)(text)
        return None if known is None else (known == "yes",)
    if field.type == "number":
        return _number(text)
    if field.type == "choice" and field.options:
        chosen = _one(field.options, None)(text)
        return None if chosen is None else (chosen,)
    return (text,)


def _until(ask: Ask, prompt: str, read: Callable[[str], T | None], show: Show) -> T:
    for _ in range(TRIES_MAX):
        line = ask(prompt)
        if line is None:
            raise _GivenUp
        value = read(line)
        if value is not None:
            return value
        show("That does not fit.")
    raise _GivenUp


def _show_options(request: ElicitationRequest, show: Show) -> None:
    show("\n".join([request.prompt, *(f"  {number}. {option}" for number, option in enumerate(request.options, 1))]))


def _one(options: tuple[str, ...], default: str | None) -> Callable[[str], str | None]:
    """An option by its number or its text; the default for an empty line."""

    def read(line: str) -> str | None:
        text = line.strip() or default or ""
        if text in options:
            return text
        return options[int(text) - 1] if text.isascii() and text.isdigit() and 1 <= int(text) <= len(options) else None

    return read


def _several(options: tuple[str, ...]) -> Callable[[str], tuple[str, ...] | None]:
    """Options by number, each once; an empty line is none of them, one that does not fit is no answer."""

    def read(line: str) -> tuple[str, ...] | None:
        chosen = [_one(options, None)(part) for part in line.split(",") if part.strip()]
        found = [option for option in chosen if option is not None]
        return tuple(dict.fromkeys(found)) if len(found) == len(chosen) else None

    return read


def _yes_or_no(default: bool) -> Callable[[str], str | None]:
    known = {"y": "yes", "yes": "yes", "true": "yes", "1": "yes", "n": "no", "no": "no", "false": "no", "0": "no"}
    return lambda line: known.get(line.strip().lower()) if line.strip() else ("yes" if default else "no")


def _number(text: str) -> tuple[int | float] | None:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return (number,) if math.isfinite(number) else None
    return None
