"""``call_hooks``: the one function that calls handlers, and so the one place that says what their answers mean."""

from __future__ import annotations

import contextvars
import json
import logging
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from safety.hooks.answers import ConfirmAction, ConfirmationResult, ElicitationResponse, StopPropagation
from safety.hooks.events import EVENTS, Event, HookType
from safety.hooks.handlers import Hook
from safety.hooks.message import Message
from safety.types import Decision

if TYPE_CHECKING:
    from safety.hooks.registry import HookRegistry

log = logging.getLogger(__name__)

SLOW_S = 5.0
RANK = {"allow": 0, "edit": 1, "ask": 2, "deny": 3}

#: ``raised``, ``timeout``, ``garbage`` (an answer that is none), ``refused`` (an answer that does not count there), ``lost-edit``
#: (a second edit of the same input), ``interrupted`` (Ctrl-C).
FailureKind: TypeAlias = Literal["raised", "timeout", "garbage", "refused", "lost-edit", "interrupted"]


class HandlerTimeout(Exception):
    """Raised by a handler that bounds itself (an external command): it took longer than it may."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in one handler. ``detail`` is short; a traceback goes to the log only."""

    hook: str
    kind: FailureKind
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One handler's part in a call. ``result``: ``ok``, ``stopped``, ``failed``, ``skipped``, ``started`` (async),
    ``ended`` (raised what propagates)."""

    hook: str
    id: str
    result: str
    seconds: float = 0.0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """How one event went, without what was handed over or said: handlers in the order they came up."""

    event: str
    steps: tuple[Step, ...]
    action: str
    decided_by: str
    stopped_by: str
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """What an event came to. Iterates over its messages, so ``for message in trigger_hook(...)`` works.

    ``decided_by`` is the handler whose decision stands; empty = nobody had an opinion, and ``decision`` is the allow of silence.
    ``stopped_by`` is the handler after which no lower one was called. ``answer`` is the confirmation or the elicited response.
    """

    messages: tuple[Message, ...]
    decision: Decision
    stopped_by: str
    failures: tuple[Failure, ...]
    trace: Trace
    decided_by: str = ""
    answer: Any = None

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def __repr__(self) -> str:
        return f"<Outcome {self.trace.event} {self.decision.action} messages={len(self.messages)} failures={self.failures}>"

    @property
    def interrupted(self) -> bool:
        """True if the user pressed Ctrl-C while a decision event was handled."""
        return any(failure.kind == "interrupted" for failure in self.failures)


def call_hooks(registry: HookRegistry, hook_type: HookType, /, *args: Any, session: Any = None, **kwargs: Any) -> Outcome:
    """Calls the handlers of an event, highest priority first, and gives the merged result.

    ===================================  =====================================================  =====================
    handler does                         decision event                                         advisory event
    ===================================  =====================================================  =====================
    nothing                              no opinion                                             nothing
    yields or returns messages           kept in order                                          kept in order
    yields, returns or raises a stop     lower priorities skipped, recorded                     the same
    gives a Decision                     merged, most restrictive wins                          refused (1)
    raises or gives garbage, guard       deny, reason shown, traceback to the log               skipped, counted
    raises or gives garbage, record      reported; deny if the event is in fail_closed_events   skipped, counted
    raises or gives garbage, no role     a guard where the event is closed, else a record       skipped, counted
    exceeds its timeout_s                deny or ask, by ``on_timeout`` (2)                     skipped, counted
    KeyboardInterrupt                    deny: the tool does not run; lower ones skipped        propagates
    SessionCompleteException             propagates                                             propagates
    ===================================  =====================================================  =====================

    (1) When it is registered, if its annotation tells; else recorded as a failure when it is called. (2) Whatever the role where
    the event is closed; at one that is open only for a guard, others are reported.

    The order of restriction is deny, ask, edit, allow; of equals the higher priority's stands and the reasons are joined. An ask
    keeps the input of an edit, so that a yes runs what the edit made of it. Of two edits the second is lost, and recorded: nobody
    has seen both. An edited input was judged by nobody but its maker, so the host fires the event again with it.

    TOOL_CONFIRM and ELICIT end at the first answer. At TOOL_CONFIRM handlers with role guard are heard in any case, and an ask of
    theirs reopens a question that was answered above them: no higher confirm and no stop passes a guard. What a guard calls
    unrecoverable only an answer ``by_user`` confirms. A ``decision`` handed to TOOL_CONFIRM is what the event before it came to, so a
    question of that one is answered here too.

    Keywords that a handler does not name are left out; ``session`` goes only to those that name it. A list, set or dict is handed
    to each handler as a copy, payloads are frozen and hold tuples and read-only mappings; what lies deeper is shared. Observers
    run last and always, even when something propagates; they may name ``outcome``, and what they say is recorded, not used.
    Async handlers are started first, in daemon threads with a copied context; their output is only logged. A handler with
    ``timeout_s`` runs in a thread with a copied context too: what it sets there is not seen here, and when it takes too long it is
    left behind.
    """
    row = EVENTS[hook_type]
    call = _Call(registry, hook_type, row, args, kwargs, session)
    hooks = [hook for hook in registry.handlers(hook_type) if hook.enabled]
    passing: BaseException | None = None
    at = ""
    try:
        for hook in hooks:
            if hook.async_mode:
                call.start(hook)
        for hook in hooks:
            at = hook.name
            if hook.async_mode or hook.observer:
                continue
            if call.stopped_by and not call.heard_anyway(hook):
                call.steps.append(Step(hook.name, hook.id, "skipped"))
            else:
                call.hear(hook)
    except BaseException as error:  # noqa: BLE001 - kept until the observers have run, then raised
        passing = call.held(error, at)
    outcome = call.outcome()
    for hook in hooks:
        if hook.observer and not hook.async_mode:
            try:
                call.observe(hook, outcome)
            except BaseException as error:  # noqa: BLE001 - as above
                passing = passing or call.held(error, hook.name)
            outcome = call.outcome()
    registry.remember(outcome.trace)
    if passing is not None:
        raise passing
    return outcome


def as_decision(result: ConfirmationResult) -> Decision:
    """A confirmation as a decision: confirm allows, skip denies, an edit hands over ``content``."""
    if result.action is ConfirmAction.EDIT:
        return Decision("edit", result.message or "", {"content": result.edited_content or ""})
    action = "allow" if result.action is ConfirmAction.CONFIRM else "deny"
    return Decision(action, result.message or "", unrecoverable=result.unrecoverable)


def merge(first: Decision, second: Decision) -> Decision:
    """The more restrictive of two decisions, the first of equals; with the reasons of both if they are equal."""
    if RANK[second.action] > RANK[first.action]:
        winner, other = second, first
    else:
        winner, other = first, second
    reason, given = winner.reason, winner.input
    if winner.action == other.action and other.reason and other.reason not in reason.split("\n"):
        reason = f"{reason}\n{other.reason}" if reason else other.reason
    if winner.action == "ask" and given is None:
        given = other.input
    unrecoverable = winner.unrecoverable or (other.unrecoverable and RANK[other.action] >= RANK["ask"])
    return Decision(winner.action, reason, given, unrecoverable)


def trace_lines(traces: Iterable[Trace]) -> Iterator[str]:
    """Traces as JSON, one line each, oldest first."""
    for trace in traces:
        yield json.dumps(
            {
                "event": trace.event,
                "action": trace.action,
                "decided_by": trace.decided_by,
                "stopped_by": trace.stopped_by,
                "handlers": [
                    {"name": each.hook, "id": each.id, "result": each.result, "ms": _ms(each.seconds), "messages": each.messages}
                    for each in trace.steps
                ],
                "failures": [{"name": each.hook, "kind": each.kind, "detail": each.detail} for each in trace.failures],
            },
            ensure_ascii=True,
        )


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def attempt(function: Callable[..., Any], *args: Any) -> tuple[Any, Exception | SystemExit | None]:
    """What foreign code gives, or what it raised. For code that is not a handler but as little ours, as a plugin's is."""
    try:
        return function(*args), None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything, and exiting is not its business
        return None, error


@dataclass(slots=True)
class _Heard:
    """What one handler gave. ``error`` is what it raised, ``wrong`` what it gave and should not have."""

    messages: list[Message]
    items: list[Any]
    stop: bool = False
    error: BaseException | None = None
    wrong: str = ""


class _Call:
    """The state of one event while its handlers are called."""

    __slots__ = (
        "registry", "hook_type", "row", "args", "kwargs", "session", "shared", "messages", "failures", "steps", "decision", "decided_by",
        "stopped_by", "answer", "clock",
    )  # fmt: skip

    def __init__(
        self, registry: HookRegistry, hook_type: HookType, row: Event, args: tuple[Any, ...], kwargs: dict[str, Any], session: Any
    ) -> None:
        self.registry = registry
        self.hook_type = hook_type
        self.row = row
        self.args = args
        self.kwargs = kwargs
        self.session = session
        self.clock = registry.clock
        self.shared = not any(type(each) in _COPIED for each in (*args, *kwargs.values()))
        self.messages: list[Message] = []
        self.failures: list[Failure] = []
        self.steps: list[Step] = []
        self.decision: Decision | None = kwargs.pop("decision", None) if row.answers is ConfirmationResult else None
        self.decided_by = ""
        self.stopped_by = ""
        self.answer: Any = None

    # -- one handler ---------------------------------------------------------------------------------------------------------------

    def hear(self, hook: Hook) -> None:
        """Calls a handler and lets its answer count."""
        began = self.clock()
        heard = self.ask(hook)
        seconds = self.clock() - began
        if seconds > SLOW_S:
            log.warning("hook %r is taking a long time (%.1f s)", hook.name, seconds)
        self.messages += heard.messages
        before = len(self.failures)
        for item in heard.items:
            self.count(hook, item)
        if heard.wrong:
            self.failed(hook, "garbage", heard.wrong)
        if heard.error is not None:
            self.raised(hook, heard.error)
        ends = heard.error is not None and propagates(heard.error)
        if (heard.stop or ends) and not self.stopped_by:
            self.stopped_by = hook.name
        result = "ended" if ends else "failed" if len(self.failures) > before else "stopped" if heard.stop else "ok"
        self.steps.append(Step(hook.name, hook.id, result, seconds, len(heard.messages)))
        if ends and heard.error is not None:
            raise heard.error
        if self.decision is not None and self.decision.action == "deny" and self.row.deny_ends and not self.stopped_by:
            self.stopped_by = hook.name

    def ask(self, hook: Hook, **more: Any) -> _Heard:
        args, kwargs = self.handed(hook, more)
        if hook.timeout_s is None:
            return _listen(hook.func, args, kwargs)
        box: list[_Heard] = []
        done = threading.Event()

        def run() -> None:
            box.append(_listen(hook.func, args, kwargs))
            done.set()

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(run,), daemon=True, name=f"hook-{hook.name}")
        _, error = attempt(thread.start)  # there may be too many already
        if error is not None:
            return _Heard([], [], error=error)
        if not done.wait(hook.timeout_s):
            return _Heard([], [], error=HandlerTimeout(f"took longer than {hook.timeout_s:g} s"))
        return box[0]

    def handed(self, hook: Hook, more: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments for one handler: only what it names, and its own copies of what it could change."""
        args, kwargs = self.args, self.kwargs
        if not self.shared:
            args = tuple(_own(each) for each in args)
            kwargs = {name: _own(value) for name, value in kwargs.items()}
        if hook.names is not None and kwargs:
            kwargs = {name: value for name, value in kwargs.items() if name in hook.names}
        named = hook.named
        if named:
            if "session" in named and "session" not in kwargs:
                kwargs = {**kwargs, "session": self.session}
            if self.row.answers is ConfirmationResult and "decision" in named:
                kwargs = {**kwargs, "decision": self.decision}
            for name, value in more.items():
                if name in named:
                    kwargs = {**kwargs, name: value}
        return args, kwargs

    def start(self, hook: Hook) -> None:
        """Starts an async handler and does not wait for it."""
        args, kwargs = self.handed(hook, {})
        context = contextvars.copy_context()
        beside = (_run_beside, self.registry, hook, args, kwargs)
        thread = threading.Thread(target=context.run, args=beside, daemon=True, name=f"async-hook-{hook.name}")
        _, error = attempt(thread.start)
        if error is not None:
            self.note(hook, "raised", error)
        self.steps.append(Step(hook.name, hook.id, "failed" if error else "started"))

    def observe(self, hook: Hook, outcome: Outcome) -> None:
        """Calls an observer: what it says is recorded and changes nothing."""
        began = self.clock()
        heard = self.ask(hook, outcome=outcome)
        seconds = self.clock() - began
        failures = len(self.failures)
        if heard.error is not None:
            if not isinstance(heard.error, (Exception, SystemExit)):
                raise heard.error
            self.note(hook, "timeout" if isinstance(heard.error, HandlerTimeout) else "raised", heard.error)
        if heard.messages or heard.items or heard.stop or heard.wrong:
            self.failures.append(Failure(hook.name, "refused", "an observer says nothing"))
        self.steps.append(Step(hook.name, hook.id, "failed" if len(self.failures) > failures else "ok", seconds))

    # -- what an answer means ------------------------------------------------------------------------------------------------------

    def count(self, hook: Hook, item: Any) -> None:
        """Lets a decision or an answer count, or records that it does not."""
        row = self.row
        if isinstance(item, Decision):
            if not row.decides:
                self.failed(hook, "refused", "a Decision counts for nothing at an advisory event")
            elif item.action not in RANK or (item.action == "edit" and item.input is None):
                self.failed(hook, "garbage", f"a Decision {item.action!r}{' without input' if item.action == 'edit' else ''}")
            else:
                self.decide(hook, item)
                if row.answers and hook.role == "guard" and item.action == "ask" and self.answer is not None:
                    self.answer, self.stopped_by = None, ""
        elif row.answers is not None and isinstance(
            item, (row.answers, bool) if row.answers is ConfirmationResult else row.answers
        ):
            self.answered(hook, item)
        else:
            self.failed(hook, "garbage", f"a {type(item).__name__}")

    def decide(self, hook: Hook, decision: Decision) -> None:
        before = self.decision
        if before is None:
            self.decision, self.decided_by = decision, hook.name
            return
        if decision.action == before.action == "edit" and decision.input != before.input:
            self.failures.append(Failure(hook.name, "lost-edit", f"{self.decided_by} has edited the same input"))
        self.decision = merge(before, decision)
        if RANK[decision.action] > RANK[before.action]:
            self.decided_by = hook.name

    def answered(self, hook: Hook, answer: Any) -> None:
        """The first answer is the result and ends the chain; a confirm that may not be given is passed over."""
        if self.row.answers is not ConfirmationResult:
            self.answer, self.stopped_by = answer, hook.name
            return
        if isinstance(answer, bool):
            answer = ConfirmationResult.confirm() if answer else ConfirmationResult.skip("Declined by user")
        decision, before = as_decision(answer), self.decision
        if before is not None and before.action == "deny":
            return
        if decision.action != "deny" and before is not None and before.action == "ask":
            if before.unrecoverable and not answer.by_user:
                self.failures.append(Failure(hook.name, "refused", "only the user may confirm what nothing brings back"))
                return
            # The question that a guard put is answered, and a yes is to what an edit made of the call, if one did.
            if decision.action == "allow" and before.input is not None:
                decision = Decision("edit", "", before.input)
            self.decision, self.decided_by = decision, hook.name
        elif self.answer is None or before is None or RANK[decision.action] > RANK[before.action]:
            self.decide(hook, decision)
        else:
            return
        self.answer = answer
        self.stopped_by = self.stopped_by or hook.name

    def heard_anyway(self, hook: Hook) -> bool:
        """True for a guard at TOOL_CONFIRM, unless the call is denied already."""
        denied = self.decision is not None and self.decision.action == "deny"
        return hook.role == "guard" and self.row.answers is ConfirmationResult and not denied

    # -- failures ------------------------------------------------------------------------------------------------------------------

    def raised(self, hook: Hook, error: BaseException) -> None:
        if isinstance(error, KeyboardInterrupt) or propagates(error):
            return
        self.failed(hook, "timeout" if isinstance(error, HandlerTimeout) else "raised", error)

    def failed(self, hook: Hook, kind: FailureKind, why: BaseException | str) -> None:
        """Records a failure and, at a decision event, decides what follows from it."""
        detail = self.note(hook, kind, why)
        if not self.row.decides:
            return
        options = self.registry.options
        closed = hook.fails_closed or self.hook_type in options.fail_closed_events
        if kind == "timeout" and (closed or self.row.closed):
            self.decide(hook, Decision(options.on_timeout, f"{hook.name} could not judge this: {detail}"))
        elif closed:
            self.decide(hook, Decision("deny", f"{hook.name} could not judge this, so it does not go on: {detail}"))

    def note(self, hook: Hook, kind: FailureKind, why: BaseException | str) -> str:
        """Records and logs a failure; the text of an error that may hold a secret is left out of both."""
        if isinstance(why, BaseException):
            detail = type(why).__name__ if self.row.secret else _short(why)
            _log_error(hook, why, self.row.secret)
        else:
            detail = why
            log.warning("hook %r at %s: %s (%s)", hook.name, hook.hook_type.value, detail, kind)
        self.failures.append(Failure(hook.name, kind, detail))
        return detail

    def held(self, error: BaseException, name: str) -> BaseException | None:
        """What is to be raised in the end: all but a Ctrl-C at a decision event, which denies instead."""
        if not isinstance(error, KeyboardInterrupt) or not self.row.decides:
            return error
        self.failures.append(Failure(name, "interrupted", "Ctrl-C"))
        self.decision = merge(Decision("deny", "interrupted by the user"), self.decision or Decision())
        self.decided_by = name
        self.stopped_by = self.stopped_by or name
        return None

    # -- the whole -----------------------------------------------------------------------------------------------------------------

    def outcome(self) -> Outcome:
        decision = self.decision or Decision()
        failures = tuple(self.failures)
        trace = Trace(self.hook_type.value, tuple(self.steps), decision.action, self.decided_by, self.stopped_by, failures)
        return Outcome(tuple(self.messages), decision, self.stopped_by, failures, trace, self.decided_by, self.answer)


_COPIED = (list, dict, set, bytearray)
_ANSWERS = (Decision, ConfirmationResult, ElicitationResponse, bool)


def _own(value: Any) -> Any:
    return value.copy() if type(value) in _COPIED else value


def propagates(error: BaseException) -> bool:
    """True for what a host ends a session with, known by its class name as in gptme, and for what is no error at all."""
    if any(each.__name__ == "SessionCompleteException" for each in type(error).__mro__):
        return True
    return not isinstance(error, (Exception, SystemExit))


def _listen(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Heard:
    """Calls a handler to its end and sorts what it gives. What it raises is in ``error``, whatever it is."""
    heard = _Heard([], [])
    try:
        result = func(*args, **kwargs)
        if result is not None:
            _sort(result, heard)
    except StopPropagation:
        heard.stop = True
    except BaseException as error:  # noqa: BLE001 - the one place where a handler may raise anything
        heard.error = error
    return heard


def _sort(result: Any, heard: _Heard) -> None:
    if _take(result, heard):
        return
    close = getattr(result, "close", None)
    if hasattr(result, "__await__"):
        heard.wrong = f"a {type(result).__name__}"
        if callable(close):
            close()
    elif isinstance(result, Mapping) or not hasattr(result, "__iter__") or isinstance(result, (str, bytes, bytearray)):
        heard.wrong = f"a {type(result).__name__}"
    else:
        iterator = iter(result)
        try:
            while not heard.stop:
                item = next(iterator)
                if item is not None and not _take(item, heard):
                    heard.wrong = f"a {type(item).__name__}"
        except StopIteration as end:
            if end.value is not None and not _take(end.value, heard):
                heard.wrong = f"a {type(end.value).__name__}"
        finally:
            if callable(close):
                close()


def _take(item: Any, heard: _Heard) -> bool:
    """Takes one message, stop, decision or answer; False if it is none of them."""
    if isinstance(item, Message):
        heard.messages.append(item)
    elif isinstance(item, StopPropagation) or item is StopPropagation:
        heard.stop = True
    elif isinstance(item, _ANSWERS):
        heard.items.append(item)
    else:
        return False
    return True


def _run_beside(registry: HookRegistry, hook: Hook, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """An async handler's whole life: its output goes to the log, its failure is counted."""
    began = registry.clock()
    heard = _listen(hook.func, args, kwargs)
    seconds = registry.clock() - began
    if seconds > (hook.timeout_s or SLOW_S):
        log.warning("async hook %r is taking a long time (%.1f s)", hook.name, seconds)
    for message in heard.messages:
        log.debug("async hook %r said: %.100s", hook.name, message.content)
    if heard.stop or heard.items:
        log.debug("async hook %r stopped or decided something, which counts for nothing", hook.name)
    if heard.error is not None:
        _log_error(hook, heard.error, EVENTS[hook.hook_type].secret)
    if heard.error is not None or heard.wrong:
        registry.count_failure(hook.hook_type.value, hook.name)


def _log_error(hook: Hook, error: BaseException, secret: bool) -> None:
    if secret:
        frames = "".join(traceback.format_tb(error.__traceback__))
        log.error("hook %r at %s raised %s\n%s", hook.name, hook.hook_type.value, type(error).__name__, frames)
    else:
        log.error("hook %r at %s failed", hook.name, hook.hook_type.value, exc_info=error)


def _short(error: BaseException) -> str:
    said, _ = attempt(str, error)
    text = " ".join((said or "").split())
    shown = text if len(text) <= 200 else text[:197] + "..."
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__
