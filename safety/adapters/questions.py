"""Questions that a session's handlers put to whoever follows them, a page or another program, and the answers that fit.

No network here: ``question_server`` carries it. The handlers wait in the tool's own thread; other sessions go on.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safety.commands.judging import text_of
from safety.faults import SafetyError
from safety.hooks import priorities
from safety.hooks.answers import ConfirmationResult, ElicitationRequest, ElicitationResponse, FormField
from safety.hooks.confirm import Auto
from safety.hooks.elicitation import SECRET_SHOWN, field_value
from safety.hooks.events import HookType
from safety.session import Call, Session, editable_field, given_id
from safety.types import Decision

CONFIRM, ELICIT = "questions.confirm", "questions.elicit"
SHOWN_MAX = 64 << 10  # characters of a call's text; a longer one is cut, and cannot be edited
CLOSED_KEPT = 500

#: What may be answered to "may this call run?", and what each answer may carry besides.
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "confirm": (),
    "skip": ("message",),
    "edit": ("content",),
    "snapshot": (),
    "auto": ("count",),
}

Answer = Mapping[str, Any]


class BadAnswer(SafetyError):
    """An answer that does not fit its question."""

    code = "bad-answer"


class NoQuestion(SafetyError):
    """There is no question of that id."""

    code = "no-question"


class AlreadyAnswered(SafetyError):
    """Somebody was quicker, or the question was given up."""

    code = "already-answered"

    def __init__(self, closed: Mapping[str, str]) -> None:
        super().__init__(f"{closed['id']} is closed already: {closed['how']}, by {closed['by']}")
        self.closed = closed


@dataclass(eq=False)
class Question:
    """One question. ``read`` gives the answer that a body stands for, or raises BadAnswer; ``how`` and ``by`` say what closed it:
    an action, or ``expired``, ``withdrawn``, ``left`` (nobody follows any more)."""

    id: str
    owner: object
    shown: Mapping[str, Any]
    read: Callable[[Answer], Any]
    since: float
    until: float | None
    how: str = ""
    by: str = ""
    answer: Any = None


@dataclass(eq=False)
class Feed:
    """What one follower has not been told yet, as ``(number, event, data)``; ``wake`` is called when there is more."""

    wake: Callable[[], None]
    events: deque[tuple[int, str, Mapping[str, Any]]] = field(default_factory=deque)


class Questions:
    """The open questions of all attached sessions. Every method may be called from any thread.

    Nobody follows: a handler has no opinion, so that a terminal is asked. The last one goes: the question waits for ``grace_s``, as a
    page that is loaded again takes a moment, and is then the terminal's.
    """

    def __init__(self, *, grace_s: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.grace_s = grace_s
        self.clock = clock
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._open: dict[str, Question] = {}
        self._closed: dict[str, tuple[int, Mapping[str, str]]] = {}
        self._feeds: set[Feed] = set()
        self._left_at = -math.inf
        self._ended = False

    # -- sessions ----------------------------------------------------------------------------------------------------------------

    def attach(
        self,
        session: Session,
        *,
        every: bool = False,
        deadline_s: float | None = None,
        snapshot: Callable[[Any], str] | None = None,
        auto: Auto | None = None,
    ) -> None:
        """Puts the questions of a session here: what a guard asks (with ``every``, each call), and what the agent asks its user.

        ``deadline_s``: after it the call is skipped. ``snapshot`` takes what the call would lose into a snapshot and gives why it could
        not, or nothing; with it ``snapshot`` is offered for the unrecoverable. ``auto`` is what ``auto`` counts in.
        """
        counted = Auto() if auto is None else auto

        def confirm(
            tool_use: Any, preview: str | None = None, workspace: Path | None = None, decision: Decision | None = None
        ) -> ConfirmationResult | None:
            asked = decision if decision is not None and decision.action == "ask" else None
            if (asked is None and not every) or not self.followed():
                return None
            unrecoverable = asked is not None and asked.unrecoverable
            if not unrecoverable and counted.take():
                return ConfirmationResult.confirm()
            shown = _call_shown(tool_use, preview, workspace)
            editable = shown.pop("editable")
            actions = ["confirm", "skip"]
            actions += ["edit"] if editable else []
            actions += ["snapshot"] if snapshot and unrecoverable else []
            actions += ["auto"] if not unrecoverable else []
            shown |= {"reason": asked.reason if asked else "", "unrecoverable": unrecoverable, "actions": actions}
            while True:
                question = self.ask(session, "confirm", shown, lambda body: _read_confirm(body, actions), deadline_s)
                if question is None or question.how in ("left", "withdrawn"):
                    return None
                if question.how == "expired":
                    return ConfirmationResult.skip(
                        f"Nobody answered within {deadline_s:g} s, so it was not run", unrecoverable=unrecoverable
                    )
                if question.how == "skip":
                    why = question.answer or "Declined by the user"
                    return ConfirmationResult.skip(why, unrecoverable=unrecoverable, by_user=True)
                if question.how == "edit":
                    return ConfirmationResult.edit(question.answer, by_user=True)
                if question.how == "auto":
                    counted.left = question.answer
                if question.how != "snapshot" or snapshot is None or not (why := snapshot(tool_use)):
                    return ConfirmationResult.confirm(by_user=True)
                shown["problem"] = f"It could not be taken into a snapshot: {why}"

        def elicit(request: ElicitationRequest) -> ElicitationResponse | None:
            question = self.ask(
                session, "elicit", _request_shown(request), lambda body: _read_elicited(body, request), deadline_s
            )
            if question is None or question.how in ("left", "withdrawn"):
                return None
            response: ElicitationResponse | None = question.answer
            return response or ElicitationResponse.cancel()

        session.hooks.register(CONFIRM, HookType.TOOL_CONFIRM, confirm, priorities.SERVER_CONFIRM)
        session.hooks.register(ELICIT, HookType.ELICIT, elicit, priorities.SERVER_CONFIRM)

    def detach(self, session: Session) -> None:
        """Takes the handlers of a session away; what it has asked is withdrawn, and the terminal's."""
        session.hooks.unregister(CONFIRM)
        session.hooks.unregister(ELICIT)
        with self._changed:
            for question in [each for each in self._open.values() if each.owner is session.hooks]:
                self._close(question, "withdrawn", "the session")

    def ask(
        self,
        session: Session,
        kind: str,
        shown: Mapping[str, Any],
        read: Callable[[Answer], Any],
        deadline_s: float | None = None,
    ) -> Question | None:
        """Waits until a question is closed and gives it; None where nobody is there to see it. An interrupt withdraws it."""
        with self._changed:
            if not self.followed():
                return None
            now, number = self.clock(), next(self._numbers)
            about = {"id": f"q{number}", "kind": kind, "session": given_id(session.id), **shown}
            until = None if deadline_s is None else now + deadline_s
            question = self._open[about["id"]] = Question(about["id"], session.hooks, about, read, now, until)
            try:
                self._tell(number, "question", self._view(question))
                while not question.how:
                    now = self.clock()
                    if until is not None and now >= until:
                        self._close(question, "expired", "nobody")
                    elif not self.followed():
                        self._close(question, "left", "nobody")
                    else:
                        limits = [until, None if self._feeds else self._left_at + self.grace_s]
                        self._changed.wait(min((limit - now for limit in limits if limit is not None), default=None))
            finally:
                if not question.how:
                    self._close(question, "withdrawn", "the session")
        return question

    # -- followers ---------------------------------------------------------------------------------------------------------------

    def followed(self) -> bool:
        """Whether somebody would see a question, or has been gone for a moment only."""
        with self._changed:
            return not self._ended and (bool(self._feeds) or self.clock() - self._left_at < self.grace_s)

    def follow(self, wake: Callable[[], None], after: int | None = None) -> Feed:
        """A feed with the ids of all that is open, what was closed since the event ``after``, and every open question."""
        with self._changed:
            feed = Feed(wake)
            feed.events.append((0, "open", {"ids": list(self._open)}))
            if after is not None:
                feed.events += [(number, "answered", closed) for number, closed in self._closed.values() if number > after]
            feed.events += [(int(each.id[1:]), "question", self._view(each)) for each in self._open.values()]
            self._feeds.add(feed)
            self._changed.notify_all()
            return feed

    def leave(self, feed: Feed) -> None:
        with self._changed:
            self._feeds.discard(feed)
            self._left_at = self.clock()
            self._changed.notify_all()

    def answer(self, id: str, body: Answer, by: str) -> Question:
        """Closes a question with an answer; the first one counts. Raises NoQuestion, AlreadyAnswered, BadAnswer."""
        with self._changed:
            question = self._open.get(id)
            if question is None:
                if id in self._closed:
                    raise AlreadyAnswered(self._closed[id][1])
                raise NoQuestion("there is no such question")
            answer = question.read(body)
            question.answer = answer
            self._close(question, str(body.get("action") or "answer"), by)
            return question

    def begin(self) -> None:
        """Takes questions again after an `end`."""
        with self._changed:
            self._ended = False

    def end(self) -> None:
        """Withdraws what is open; from now on every question is the terminal's."""
        with self._changed:
            self._ended = True
            for question in list(self._open.values()):
                self._close(question, "withdrawn", "the server's end")
            self._changed.notify_all()

    # -- inside, with the lock held ----------------------------------------------------------------------------------------------

    def _close(self, question: Question, how: str, by: str) -> None:
        question.how, question.by = how, by
        del self._open[question.id]
        number = next(self._numbers)
        closed = {"id": question.id, "session": question.shown["session"], "how": how, "by": by}
        self._closed[question.id] = number, closed
        if len(self._closed) > CLOSED_KEPT:
            del self._closed[next(iter(self._closed))]
        self._tell(number, "answered", closed)
        self._changed.notify_all()

    def _tell(self, number: int, event: str, data: Mapping[str, Any]) -> None:
        for feed in self._feeds:
            feed.events.append((number, event, data))
            feed.wake()

    def _view(self, question: Question) -> Mapping[str, Any]:
        now = self.clock()
        left = None if question.until is None else max(0.0, question.until - now)
        return {**question.shown, "age_s": round(now - question.since, 3), "deadline_s": left}


# -- what is shown -----------------------------------------------------------------------------------------------------------------


def _call_shown(tool_use: Any, preview: str | None, workspace: Path | None) -> dict[str, Any]:
    """A call as data. ``editable``: whether its text may come back changed."""
    text, paths, more, editable = preview, [], {}, False
    if isinstance(tool_use, Call):
        place = editable_field(tool_use.input)
        text, editable = (text_of(tool_use), False) if place is None else (tool_use.input[place], True)
        paths = [os.fsdecode(path) for path in tool_use.paths or ()]
        more = {name: value for name, value in tool_use.input.items() if name != place}
    elif isinstance(content := getattr(tool_use, "content", None), str):
        text, editable = preview or content, True
    text = text or ""
    return {
        "workspace": str(workspace or ""),
        "tool": str(getattr(tool_use, "tool", None) or ""),
        "call": str(getattr(tool_use, "id", None) or ""),
        "text": text[:SHOWN_MAX],
        "input": json.dumps(more, default=str)[:SHOWN_MAX] if more else "",
        "paths": paths,
        "cut": len(text) > SHOWN_MAX,
        "editable": editable and len(text) <= SHOWN_MAX,
    }


def _request_shown(request: ElicitationRequest) -> dict[str, Any]:
    return {
        "type": request.type,
        "prompt": request.prompt,
        "description": request.description or "",
        "options": list(request.options),
        "default": None if request.sensitive else request.default,
        "sensitive": request.sensitive,
        "fields": [
            {
                "name": each.name,
                "prompt": each.prompt,
                "type": each.type,
                "options": list(each.options),
                "required": each.required,
                "default": None if each.type == "secret" or request.sensitive else each.default,
            }
            for each in request.fields
        ],
    }


# -- what an answer may be ---------------------------------------------------------------------------------------------------------


def _read_confirm(body: Answer, actions: list[str]) -> Any:
    """What the action carries: the message, the text or the count."""
    action = body.get("action")
    if action not in actions:
        raise BadAnswer(f"`action` is one of {', '.join(actions)}")
    _only(body, "action", *ACTIONS[action])
    if action == "edit":
        return _text(body.get("content"), "content")
    if action == "skip" and body.get("message") is not None:
        return _text(body["message"], "message")
    count = body.get("count")
    if action == "auto" and count is not None and (type(count) is not int or not 1 <= count <= 999_999):
        raise BadAnswer("`count` is a whole number from 1 to 999999, or left out for all")
    return count


def _read_elicited(body: Answer, request: ElicitationRequest) -> ElicitationResponse | None:
    """The response; None for one that is cancelled."""
    if body.get("action") == "cancel":
        _only(body, "action")
        return None
    if body.get("action", "answer") != "answer":
        raise BadAnswer("`action` is one of answer, cancel")
    if request.type == "form" and request.fields:
        _only(body, "action", "fields")
        return _read_form(body.get("fields"), request)
    if request.type == "multi_choice" and request.options:
        _only(body, "action", "values")
        values = body.get("values")
        if not isinstance(values, list) or any(value not in request.options for value in values):
            raise BadAnswer("`values` is a list of some of the options")
        return ElicitationResponse.multi(tuple(dict.fromkeys(values)))
    _only(body, "action", "value")
    value = body.get("value")
    if request.type == "confirmation":
        return ElicitationResponse.text("yes" if _truth(value, "value") else "no", sensitive=request.sensitive)
    if request.type == "choice" and request.options and (request.default if value is None else value) not in request.options:
        raise BadAnswer("`value` is one of the options")
    return ElicitationResponse.text(_text(request.default if value is None else value, "value"), sensitive=request.sensitive)


def _read_form(given: Any, request: ElicitationRequest) -> ElicitationResponse:
    if not isinstance(given, dict):
        raise BadAnswer("`fields` is an object with a value for each field")
    _only(given, *(each.name for each in request.fields))
    values: dict[str, object] = {}
    secrets: dict[str, str] = {}
    for each in request.fields:
        value = _read_field(each, given.get(each.name))
        if each.type == "secret" and value:
            secrets[each.name], value = str(value), SECRET_SHOWN
        values[each.name] = value
    return ElicitationResponse(json.dumps(values), sensitive=request.sensitive, secrets=secrets)


def _read_field(each: FormField, value: Any) -> object:
    """A field's value; what is left out has its default or, where it may be left empty, nothing."""
    line = {None: "", True: "yes", False: "no"}.get(value) if value is None or isinstance(value, bool) else None
    if line is None:
        line = repr(value) if type(value) in (int, float) and each.type == "number" else _text(value, each.name)
    if line and each.type == "choice" and each.options and line not in each.options:
        raise BadAnswer(f"`{each.name}` is one of its options")
    found = field_value(each, line)
    if found is None:
        raise BadAnswer(
            f"`{each.name}` is a {each.type} and may not be left out" if each.required else f"`{each.name}` is a {each.type}"
        )
    return found[0]


def _only(body: Answer, *names: str) -> None:
    if more := sorted(set(body) - set(names)):
        raise BadAnswer(f"`{more[0][:80]}` has no place in this answer; it takes {', '.join(names)}")


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise BadAnswer(f"`{name}` is a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadAnswer(f"`{name}` is no text that can be written down: it holds half a character") from None
    return value


def _truth(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise BadAnswer(f"`{name}` is true or false")
    return value
