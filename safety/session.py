"""The session: one agent conversation in one workspace, the value that carries the engines.

Its methods are the engine protocol for every host: ``turn_start``, ``pre``, ``post``, ``turn_end``, ``cwd_changed``. They never raise:
what could not be protected is a notice for the user, and with ``fail_closed`` a denial. A session assumes no process: everything it has
to remember between two calls lies in the state folder.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from safety.hooks.answers import EDITS_MAX, ConfirmAction
from safety.hooks.caller import Outcome, attempt, call_hooks
from safety.hooks.events import HookType, ToolExecutePostData, ToolExecutePreData
from safety.hooks.message import Message
from safety.hooks.registry import HookRegistry
from safety.recorder import (
    COMMAND_FIELDS,
    RUN_PREFIX,
    Call,
    CaptureFailed,
    Recorder,
    given_id,
    harness_id,
    is_one_conversation,
    spoken,
    state_folder,
    taken,
)
from safety.store.turns import Finished
from safety.types import Decision

Gave = TypeVar("Gave")

REMEMBERED_FOLDERS = 500
CANCELLED_WAIT_S = 2.0  # for the snapshot before a call; whoever is still asking a person then is left behind
AUDIT_LOG = "audit.jsonl"  # in the state folder: who was called at each moment, and what was decided
DISTRUST = {
    "never-asked": "was never trusted, so its checks and hooks do not run",
    "refused": "is not trusted",
    "default": "is not trusted",
    "replaced": "is another folder than the one that was trusted",
    "other-remote": "comes from another remote than when it was trusted",
    "changed": "has changed since it was trusted",
    "changed-by-agent": "had its checks changed by the agent in this turn",
}


@dataclass(frozen=True)
class TurnStart:
    """What the start of a turn came to. ``handled``: the prompt was a command of ours, the model is not to be called."""

    handled: bool = False
    messages: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class ToolFailed(Exception):
    """What a tool of a host failed with, as text."""


class Denied(Exception):
    """A tool call that was refused; the text is for the model."""


@dataclass(frozen=True)
class Feedback:
    """A text that goes back to the agent instead of ending the turn."""

    reason: str


@dataclass(frozen=True)
class Session(Recorder):
    """Made by ``runtime.open_session``: a recorder, and the handlers that hear of each moment."""

    environ: Mapping[str, str] = field(default_factory=dict)
    config_folder: bytes = b""
    cwd: bytes = b""
    hooks: HookRegistry = field(default_factory=HookRegistry)
    commands: Mapping[str, Callable[[Session, Sequence[str]], Any]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    _agent_changed: dict[tuple[int, bytes | None], frozenset[bytes]] = field(default_factory=dict)

    # -- what hosts call -------------------------------------------------------------------------------------------------------

    def turn_start(self, prompt: str = "") -> TurnStart:
        """Opens a turn; what changed since the last one is recorded as the user's."""
        self._trigger(HookType.TURN_PRE, prompt=prompt)
        return TurnStart(messages=self.take_messages())

    def pre(self, call: Call) -> Decision:
        """What comes before a tool call: the snapshot first, then whoever may refuse it, so that the guard knows what is held.

        Opens a turn if none is open. A call that is denied has no end to wait for; what an edit makes of one is what is confirmed, and
        it may change other paths than those that were named. While a person was asked, files may have been saved: what lies before
        the call is captured again (design 5.4). An ``ask`` that comes back found nobody to answer it.
        """
        decision = self._trigger(HookType.TOOL_EXECUTE_PRE, ToolExecutePreData(None, self._workspace, call)).decision
        was_asked = False
        if decision.action != "deny" and any(not each.observer for each in self.hooks.get_hooks(HookType.TOOL_CONFIRM)):
            decision, was_asked = self._confirmed(call, decision)
        if decision.action == "deny":
            self._withdraw(call)
        elif decision.input is not None and call.paths is not None:
            self.captured_again(call, replace(call, input=decision.input, paths=None))
        elif was_asked:
            self.captured_again(call)
        return decision

    def allowed(self, call: Call) -> Mapping[str, Any]:
        """PRE, for a host that runs the tool itself: the input that the call may run with. POST is the host's to send.

        Raises Denied where it may not run, with the text for the model, and what propagates; POST has heard then that the call did not
        run. A question that nobody answered is a no.
        """
        try:
            decision = self.pre(call)
        except BaseException as fault:
            self._unrun(call, _said(fault))
            raise
        if decision.action in ("deny", "ask"):
            self._unrun(call, decision.reason)
            raise Denied(decision.reason or "it was not confirmed")
        return call.input if decision.input is None else decision.input

    def captured_again(self, call: Call, now: Call | None = None) -> None:
        """The state before a call that is open, anew: a person was asked about it after PRE, and may have saved files meanwhile.

        ``now``: what an edit has made of the call.
        """
        if self._withdraw(call):
            self.capture_before(now or call)

    def around(self, call: Call, run: Callable[[Mapping[str, Any]], Gave]) -> Gave:
        """Runs a tool between PRE and POST and gives what it gave; ``run`` gets the input that was allowed.

        Raises Denied, with the text for the model, where it may not run; else what the tool raises. POST comes in every case, with the
        error if there was one; an interrupt before the tool runs leaves it unrun.
        """
        with in_session(self):
            given = self.allowed(call)
            try:
                result = run(given)
            except BaseException as fault:
                self.post(call, None, _said(fault))
                raise
            self.post(call, spoken(result), None)
            return result

    async def aaround(self, call: Call, run: Callable[[Mapping[str, Any]], Awaitable[Gave]]) -> Gave:
        """`around` for a tool that is awaited: PRE and POST run in threads of their own, so that no other task waits for git or a person.

        Cancelled before the tool runs, it does not run; PRE is not waited for where a person is asked. POST is waited for in any case.
        """
        with in_session(self):
            given = await beside(lambda: self.allowed(call), lambda: self._unrun(call, "it was cancelled before it ran"))
            try:
                result = await run(given)
            except GeneratorExit as fault:  # whoever awaited it is gone, so nothing can be waited for
                self.post(call, None, _said(fault))
                raise
            except BaseException as fault:
                said = _said(fault)
                await beside(lambda: self.post(call, None, said))
                raise
            text = spoken(result)
            await beside(lambda: self.post(call, text, None))
            return result

    def post(self, call: Call, result: str | None = None, error: str | None = None) -> None:
        """What comes after a tool call, whether it worked or not: the result on disk, the snapshot, and whoever looks at the result."""
        self._keep_result(call, result, error)
        texts = () if result is None else (Message("system", result),)
        fault = None if error is None else ToolFailed(error)
        self._trigger(HookType.TOOL_EXECUTE_POST, ToolExecutePostData(None, self._workspace, call, texts, fault))

    def turn_end(self) -> Feedback | None:
        """Ends the turn; twice is once. Gives what goes back to the agent instead, and the turn then stays open."""
        feedback = self.judge_turn()
        if feedback is None:
            self.close_turn(scan=False)
        return feedback

    def judge_turn(self) -> Feedback | None:
        """Whoever stands at a turn's end: what goes back to the agent. The turn stays open; without feedback the host closes it."""
        if self._guarded(lambda: self.sessions.load(self.id).is_open, False):
            outcome = self._trigger(HookType.TURN_POST)
            if outcome.decision.action == "deny":
                if self._goes_back(outcome) and self._guarded(self._continue, False):
                    return Feedback(outcome.decision.reason)
                if outcome.interrupted or not outcome.failures:  # else it is among the notices already
                    self.notices.append(f"git-safety: {outcome.decision.reason}")
        return None

    def cwd_changed(self, old: bytes, new: bytes) -> None:
        """The agent's folder changed; equal folders stand for a start there. `take_messages` has what the model should know."""
        self._trigger(HookType.CWD_CHANGED, old_cwd=os.fsdecode(old), new_cwd=os.fsdecode(new))

    def started(self, cwd: bytes) -> None:
        """A conversation begins in ``cwd``. `take_messages` has what the model should know."""
        self._trigger(HookType.SESSION_START, workspace=Path(os.fsdecode(cwd)))

    def end(self, *, scan: bool = True, **fields: Any) -> None:
        """The conversation is over: an open turn is ended, and of a finished ``run`` nothing but the log stays.

        What would have gone back to the agent is told to the user. The handlers of SESSION_END get ``fields`` of the host's.
        """
        if self.is_run:
            self.close_turn(scan=scan)
            self.sessions.drop(self.id)
            return
        if (feedback := self.turn_end()) is not None:
            self.notices.append(feedback.reason)
            self.close_turn(scan=scan)
        self._trigger(HookType.SESSION_END, **fields)

    def finished_calls(self) -> Mapping[str, Finished]:
        """What the calls of the newest turn came to, by id: for a host that starts again and asks which of them ran to their end."""
        return self.sessions.results(self.id)

    def take_messages(self) -> tuple[str, ...]:
        """Texts for the model that have gathered, in order, each once."""
        return tuple(dict.fromkeys(taken(self.messages)))

    # -- what the bundles use ---------------------------------------------------------------------------------------------------

    def first_touch(self, folders: Collection[bytes]) -> list[bytes]:
        """Those of some folders that no call of this turn has touched before; they are known from now on."""
        if self.told_folders.issuperset(folders):
            return []

        def work() -> list[bytes]:
            state = self.sessions.load(self.id)
            new = [folder for folder in folders if folder.decode("latin-1") not in state.touched]
            if new:
                state.touched = [*state.touched, *(folder.decode("latin-1") for folder in new)][-REMEMBERED_FOLDERS:]
                self._save(state)
            self.told_folders.update(folders)
            return new

        return self._guarded(work, [])

    def keep_instructions(self, loaded: Mapping[str, Any]) -> None:
        """Remembers which instruction files the model was given."""

        def work() -> None:
            state = self.conversations.load(self.id)
            if state.instructions != loaded:
                state.instructions, state.heard_ms = dict(loaded), self.now_ms()
                self.conversations.save(state)

        self._guarded(work, None)

    def agent_changed(self) -> frozenset[bytes]:
        """Absolute paths that an agent has changed in the newest turn here: it is not to trust its own rules.

        A walk over the turn's part of the log, so it is asked for only where something to judge is new.
        """
        key = (self.sessions.load(self.id).turn, self.log.head_id())
        if key not in self._agent_changed:
            from safety.store.history import owned_by, pieces

            found = pieces(self.log, owned_by(self.log, key[0]), key[0], None) if key[0] else []
            self._agent_changed.clear()
            self._agent_changed[key] = frozenset(os.path.join(self.root, path) for piece in found for path in piece.paths)
        return self._agent_changed[key]

    def distrust(self, root: bytes) -> str:
        """Why the checks and hooks of the repository at ``root`` must not run and its instructions not be sent, as a sentence.

        Empty where they may. Raises SafetyError when ``trust.json`` cannot be read.
        """
        from safety.trust import is_trusted

        found = is_trusted(self.place.home, root, self.settings.trust_default, self.agent_changed)
        if found.ok:
            return ""
        name = os.fsdecode(os.path.basename(root))
        why = DISTRUST.get(found.reason, "is not trusted")
        changed = ", ".join(os.fsdecode(path) for path in found.changed[:3])
        return f"{name} {why}{f' ({changed})' if changed else ''}; look at it, then: git safety trust"

    def renew_trust(self) -> None:
        """The user has seen the last turn and spoken again: what the agent changed in a trusted repository's checks counts as seen."""
        from safety.trust import renew

        state = self.sessions.load(self.id)
        if not state.continued:
            renew(self.place.home, self.root, self.agent_changed)

    def taint(self, why: str) -> None:
        """Remembers for the rest of the turn that a tool's output was flagged."""

        def work() -> None:
            state = self.sessions.load(self.id)
            state.taint = why
            self._save(state)

        self._guarded(work, None)

    def stopped_before(self, effect: str, call_id: str) -> bool:
        """Whether a call with the same effect was stopped in this turn and did not run; this one is remembered as the last of them."""

        def work() -> bool:
            state = self.sessions.load(self.id)
            last = state.asked.get(effect)
            state.asked[effect] = call_id
            self._save(state)
            return last is not None and last != call_id and state.done.get(last) != "ok"

        return self._guarded(work, False)

    def told_once(self, texts: Sequence[str]) -> frozenset[str]:
        """Those of the texts that the user has been told before in this conversation; from now on all of them are."""

        def work() -> frozenset[str]:
            state = self.sessions.load(self.id)
            known = frozenset(texts) & frozenset(state.told)
            if len(known) < len(set(texts)):
                state.told += [text for text in dict.fromkeys(texts) if text not in known]
                self._save(state)
            return known

        return self._guarded(work, frozenset())

    # -- inside ----------------------------------------------------------------------------------------------------------------

    def _confirmed(self, call: Call, decision: Decision) -> tuple[Decision, bool]:
        """What TOOL_CONFIRM makes of a call, and whether a person answered; an edited text is judged and asked about again."""
        was_asked = False
        for _ in range(EDITS_MAX):
            asked = call if decision.input is None else replace(call, input=decision.input)
            so_far = None if decision.action == "allow" else decision
            outcome = self._trigger(HookType.TOOL_CONFIRM, asked, None, self._workspace, decision=so_far)
            answer = outcome.answer
            was_asked = was_asked or bool(answer and answer.by_user)
            if answer is None or answer.action is not ConfirmAction.EDIT or outcome.decision.action != "edit":
                return outcome.decision, was_asked
            place = editable_field(asked.input)
            if place is None:
                return Decision("deny", "the edited text has no place in this call"), was_asked
            given = {**asked.input, place: answer.edited_content}
            if given == asked.input:
                return Decision("edit", "", given), was_asked
            decision = replace(decision, action="ask" if decision.action == "ask" else "edit", input=given)
        return Decision("deny", f"edited {EDITS_MAX} times and never settled"), was_asked

    def _unrun(self, call: Call, why: str) -> None:
        self._withdraw(call)
        self.post(call, None, why)

    @staticmethod
    def _goes_back(outcome: Outcome) -> bool:
        """Whether a refusal is one that the agent can do something about: not a fault of the handler that refused, no Ctrl-C."""
        return not outcome.interrupted and outcome.decided_by not in {failure.hook for failure in outcome.failures}

    def _keep_result(self, call: Call, result: str | None, error: str | None) -> None:
        """Before any handler runs, so that no handler's crash loses what the tool gave (design 4)."""
        status, text = ("ok", result or "") if error is None else ("error", error)
        try:
            self.sessions.keep_result(self.id, call.id, call.digest, status, text)
        except OSError as fault:
            self.notices.append(f"git-safety: the result of {call.tool} could not be kept: {fault.strerror or fault}")

    def _trigger(self, moment: HookType, *args: Any, **fields: Any) -> Outcome:
        """Calls the handlers of a moment; their texts wait for the host, what failed among them is told to the user.

        An observer's failure changes nothing for anybody, so it is told once in a conversation. A Ctrl-C is none.
        """
        outcome = call_hooks(self.hooks, moment, *args, session=self, **fields)
        self.messages.extend(message.content for message in outcome.messages)
        if outcome.failures:
            observers = {hook.name for hook in self.hooks.get_hooks(moment) if hook.observer}
            failures = [each for each in outcome.failures if each.kind != "interrupted"]
            texts = {f"git-safety: {each.hook} failed: {each.detail or each.kind}": each.hook for each in failures}
            known = self.told_once([text for text, hook in texts.items() if hook in observers]) if observers else frozenset()
            self.notices.extend(text for text in texts if text not in known)
        return outcome

    @property
    def _workspace(self) -> Path:
        return Path(os.fsdecode(self.root))


def editable_field(given: Mapping[str, Any]) -> str | None:
    """The argument of a call that holds the text it would run or write, which a person may edit; None if it has none."""
    return next((name for name in (*COMMAND_FIELDS, "content") if isinstance(given.get(name), str)), None)


_current: ContextVar[Session | None] = ContextVar("session", default=None)


def current_session() -> Session | None:
    """The session in which a tool's function or a command is running; None outside of one."""
    return _current.get()


@contextmanager
def in_session(session: Session) -> Iterator[None]:
    """Makes ``session`` the current one for what runs inside."""
    with having(_current, session):
        yield


@contextmanager
def having(variable: ContextVar[Any], value: object) -> Iterator[None]:
    """Gives the variable a value for what runs inside."""
    token = variable.set(value)
    try:
        yield
    finally:
        with suppress(ValueError):  # a task whose loop is gone is closed from another context, where nothing was set
            variable.reset(token)


async def beside(work: Callable[[], Gave], undo: Callable[[], None] | None = None) -> Gave:
    """What ``work`` gives, from a thread of its own: one that waits for a person must not hold one of the loop's few workers.

    A cancelled task waits for the thread's end. With ``undo`` it does so for a moment only, and what was done is undone, however late.
    """
    from asyncio import CancelledError, wait, wrap_future
    from concurrent.futures import Future

    done: Future[Gave] = Future()
    done.set_running_or_notify_cancel()  # from now on it cannot be cancelled, only left
    context = copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as fault:  # noqa: BLE001 - raised where it is waited for
            done.set_exception(fault)

    def undone(_: object) -> None:
        if undo is not None and done.exception() is None:
            context.run(undo)

    Thread(target=run, name="safety-call", daemon=True).start()
    waiting = wrap_future(done)
    cancelled: CancelledError | None = None
    while not waiting.done():
        try:
            await wait([waiting], timeout=CANCELLED_WAIT_S if cancelled and undo else None)
            if cancelled and undo:
                break
        except CancelledError as fault:
            cancelled = fault
    if cancelled is None:
        return waiting.result()
    waiting.cancel()
    done.add_done_callback(undone)
    raise cancelled


def _said(fault: BaseException) -> str:
    text, _ = attempt(str, fault)
    return f"{type(fault).__name__}: {text or ''}"


def checks_log(state: Path, turn: int) -> Path:
    """Where the full output of a turn's checks lies."""
    return state / "checks" / f"t{turn}.log"


__all__ = [
    "AUDIT_LOG",
    "COMMAND_FIELDS",
    "RUN_PREFIX",
    "Call",
    "CaptureFailed",
    "Decision",
    "Denied",
    "Feedback",
    "Session",
    "TurnStart",
    "beside",
    "checks_log",
    "current_session",
    "editable_field",
    "given_id",
    "harness_id",
    "having",
    "in_session",
    "is_one_conversation",
    "spoken",
    "state_folder",
]
