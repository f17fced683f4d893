"""The generic hook protocol: one JSON object in, one JSON object out, an exit code (docs: the hook protocol).

An event is read by `parse`, carried out by its function in ``_EVENTS``, and answered. What fails is an answer too: the decision
that ``fail_closed`` asks for, a notice for the user, code 1, one line on standard error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, TextIO

from safety.adapters.calls import absolute_paths, declared_paths, path_bytes, read_paths
from safety.faults import SafetyError
from safety.runtime.config import fails_closed
from safety.runtime.open import open_session
from safety.session import Call, Session, harness_id

MAX_INPUT_BYTES = 64 << 20
ALLOWED, FAILED, REFUSED = 0, 1, 2


class BadEvent(SafetyError):
    """The input is no event of the protocol."""

    code = "bad-event"


class BadJson(BadEvent):
    code = "bad-json"


class BadField(BadEvent):
    code = "bad-field"


class MissingField(BadEvent):
    code = "missing-field"


class UnknownEvent(BadEvent):
    code = "unknown-event"


class InputTooLarge(BadEvent):
    code = "input-too-large"


@dataclass(frozen=True)
class Event:
    """One event, checked. ``call`` is set for the events of a tool."""

    name: str
    session_id: str
    cwd: bytes
    agent: Mapping[str, str] | None = None
    prompt: str = ""
    call: Call | None = None
    result: str | None = None
    error: str | None = None
    old_cwd: bytes = b""
    new_cwd: bytes = b""


@dataclass
class Answer:
    """What goes out. ``code`` is the exit code, ``said`` the line for standard error."""

    body: dict[str, object] = field(default_factory=dict)
    code: int = ALLOWED
    said: str = ""

    def tell(self, name: str, texts: Sequence[str]) -> None:
        """Adds to ``messages`` or ``notices``; nothing to tell leaves no empty list."""
        if texts:
            self.body[name] = [*self._told(name), *texts]

    def _told(self, name: str) -> list[str]:
        told = self.body.get(name, [])
        return list(told) if isinstance(told, list) else []


def main(argv: Sequence[str], environ: Mapping[str, str], stdin: BinaryIO, stdout: BinaryIO, stderr: TextIO) -> int:
    """Answers the one event on ``stdin``. What nobody expected is answered as well, then raised for the mouth to log."""
    raw = stdin.read(MAX_INPUT_BYTES + 1)
    try:
        answer = respond(raw, environ)
    except Exception as error:
        _write(failure(_name(raw), "internal-error", f"{type(error).__name__}: {error}", environ), stdout, stderr)
        raise
    return _write(answer, stdout, stderr)


def respond(raw: bytes, environ: Mapping[str, str]) -> Answer:
    """The answer to one event, expected failures included."""
    try:
        event = parse(raw, environ)
        session = open_session(event.cwd, harness_id(event.session_id), environ, agent=event.agent)
        try:
            answer = _EVENTS[event.name](session, event)
            answer.tell("messages", session.take_messages())
            answer.tell("notices", session.take_notices())
        finally:
            session.close()
    except SafetyError as error:
        return failure(_name(raw), error.code, error.message, environ)
    return answer


def failure(event: str, code: str, sentence: str, environ: Mapping[str, str]) -> Answer:
    """The answer of a hook that failed: nothing is refused unless ``fail_closed`` says so."""
    answer = Answer(code=FAILED, said=f"{code}: {sentence}")
    closed = fails_closed(environ)
    if event == "turn.post":
        answer.body["decision"] = "stop"
    elif event == "tool.execute.pre" or (closed and event not in _EVENTS):
        answer.body["decision"] = "deny" if closed else "allow"
        if closed:
            answer.body["reason"] = f"git-safety failed, and fail_closed is on: {sentence}"
    answer.tell("notices", [f"git-safety: not protected: {sentence}"])
    return answer


def _write(answer: Answer, stdout: BinaryIO, stderr: TextIO) -> int:
    if answer.said:
        stderr.write(f"git-safety: {' '.join(answer.said.split())}\n" if answer.code == FAILED else f"{answer.said}\n")
        stderr.flush()
    stdout.write(json.dumps(answer.body).encode() + b"\n")
    stdout.flush()
    return answer.code


# -- the events --------------------------------------------------------------------------------------------------------------


def _session_start(session: Session, event: Event) -> Answer:
    session.started(event.cwd)
    return Answer()


def _turn_pre(session: Session, event: Event) -> Answer:
    answer = Answer()
    if event.prompt.lstrip().startswith("/"):
        from safety.adapters.prompts import carry_out  # needed by no other event

        done = carry_out(session, event.prompt)
        if done is not None:
            answer.body["handled"] = True
            answer.tell("messages", done.messages)
            answer.tell("notices", done.notices)
            return answer
    start = session.turn_start(event.prompt)
    if start.handled:
        answer.body["handled"] = True
    answer.tell("messages", start.messages)
    answer.tell("notices", start.notices)
    return answer


def _tool_pre(session: Session, event: Event) -> Answer:
    assert event.call is not None
    decision = session.pre(event.call)
    answer = Answer({"decision": decision.action})
    if decision.reason:
        answer.body["reason"] = decision.reason
    if decision.action == "edit" and decision.input is not None:
        answer.body["input"] = dict(decision.input)
    if decision.action == "deny":
        answer.code, answer.said = REFUSED, decision.reason
    return answer


def _tool_post(session: Session, event: Event) -> Answer:
    assert event.call is not None
    session.post(event.call, event.result, event.error)
    return Answer()


def _cwd_changed(session: Session, event: Event) -> Answer:
    session.cwd_changed(event.old_cwd, event.new_cwd)
    return Answer()


def _turn_post(session: Session, event: Event) -> Answer:
    feedback = session.turn_end()
    if feedback is None:
        return Answer({"decision": "stop"})
    return Answer({"decision": "continue", "reason": feedback.reason}, REFUSED, feedback.reason)


def _session_end(session: Session, event: Event) -> Answer:
    session.end()
    return Answer()


_EVENTS: Mapping[str, Callable[[Session, Event], Answer]] = {
    "session.start": _session_start,
    "turn.pre": _turn_pre,
    "tool.execute.pre": _tool_pre,
    "tool.execute.post": _tool_post,
    "cwd.changed": _cwd_changed,
    "turn.post": _turn_post,
    "session.end": _session_end,
}


# -- reading an event --------------------------------------------------------------------------------------------------------


def parse(raw: bytes, environ: Mapping[str, str]) -> Event:
    """The event in ``raw``. Raises BadEvent, with the field at fault named."""
    fields = _Fields(_object(raw))
    name = fields.text("event")
    if name not in _EVENTS:
        raise UnknownEvent(f"there is no event {name[:80]!r}; the events are {', '.join(_EVENTS)}")
    cwd = fields.folder("cwd")
    is_tool, moved = name.startswith("tool."), name == "cwd.changed"
    return Event(
        name=name,
        session_id=fields.text("session_id"),
        cwd=cwd,
        agent=fields.agent(),
        prompt=fields.optional("prompt") or "",
        call=_call(fields, cwd, environ.get("HOME", "")) if is_tool else None,
        result=fields.optional("result"),
        error=fields.optional("error"),
        old_cwd=fields.folder("old_cwd") if moved else b"",
        new_cwd=fields.folder("new_cwd") if moved else b"",
    )


def _object(raw: bytes) -> Mapping[str, object]:
    if len(raw) > MAX_INPUT_BYTES:
        raise InputTooLarge(f"the event is larger than {MAX_INPUT_BYTES >> 20} MiB")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadJson(f"standard input is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadJson(f"standard input is not a JSON object but {_kind(value)}")
    return value


def _name(raw: bytes) -> str:
    """The event's name if it can be made out at all, for an answer about a bad event."""
    try:
        return str(_object(raw).get("event", ""))
    except BadEvent:
        return ""


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "nothing")


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "a string"),
    (list, "a list"),
    (dict, "an object"),
)


class _Fields:
    """The fields of an event, each checked as it is taken. null counts as missing."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def optional(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise BadField(f"{name} must be a string, not {_kind(value)}")

    def text(self, name: str) -> str:
        value = self.optional(name)
        if not value:
            raise MissingField(f"{name} is missing")
        return value

    def folder(self, name: str) -> bytes:
        path = path_bytes(self.text(name))
        if path is None or not os.path.isabs(path):
            raise BadField(f"{name} must be an absolute path")
        return path

    def object(self, name: str) -> Mapping[str, object]:
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise BadField(f"{name} must be an object, not {_kind(value)}")
        return value

    def paths(self) -> list[str] | None:
        value = self._values.get("paths")
        if value is None:
            return None
        if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
            return value
        raise BadField("paths must be a list of strings")

    def agent(self) -> Mapping[str, str] | None:
        known = self.object("agent")
        for name, value in known.items():
            if name in ("name", "model") and value is not None and not isinstance(value, str):
                raise BadField(f"agent.{name} must be a string, not {_kind(value)}")
        return {name: value for name, value in known.items() if name in ("name", "model") and isinstance(value, str)} or None


def _call(fields: _Fields, cwd: bytes, home: str) -> Call:
    tool, given = fields.text("tool"), fields.object("input")
    named = fields.paths()
    if named is not None:
        paths = absolute_paths(named, cwd, home)
        if paths is None:
            raise BadField("paths holds something that is no path")
    else:
        paths = declared_paths(tool, given, cwd, home)
    reads = read_paths(tool, given, cwd, home)
    return Call(id=fields.text("call_id"), tool=tool, input=given, cwd=cwd, paths=paths, agent=fields.agent(), reads=reads)
