"""The recorder: what happens in a workspace becomes operations of its log, each with whose doing it was.

It is the engine under a session: turns opened and closed, the state before and after each call, what belongs to nobody, upkeep. Its
methods never raise unless they say so: what could not be protected is a notice for the user, and with ``fail_closed`` a denial.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from safety.faults import SafetyError
from safety.hooks.caller import attempt
from safety.plumbing.pause import collector_paused
from safety.store import registry
from safety.store.attribution import OpenCall, actor_between_calls, group_of_mixed, settle_owners
from safety.store.lock import hold
from safety.store.oplog import Operation, OpLog, Record
from safety.store.packs import taking_part
from safety.store.place import NO_LIMITS, Limits, Place
from safety.store.turns import Pending, Sessions, SessionState, is_running, own_process
from safety.types import Decision

# What only some events need is imported where it is used: a hook is a process for each event.
if TYPE_CHECKING:
    from safety.store.declared import Draft
    from safety.store.history import TurnCounts
    from safety.store.retention import KeepRules

Answer = TypeVar("Answer")

LOCK_WAIT_S = 20.0
RUN_PREFIX = "run-"
_APART = "@"  # before an id of a harness's that would be taken for one of a `run`
COMMAND_FIELDS = ("command", "cmd", "script")  # of a call's input: where a text for a shell stands
PROMPT_LENGTH = 500
SUMMARY_LENGTH = 300
LONGEST_JUDGED = 10_000
TIDY_EVERY_MS = 24 * 3_600_000
UPKEEP_CALLS = 50
MOST_SENT_BACK = 10  # times in a turn, by whomever: a command of the user's may refuse every end


class CaptureFailed(SafetyError):
    code = "capture-failed"


@dataclass(frozen=True)
class Call:
    """One tool call. ``paths`` are the paths it names, None where it may change anything, empty where it changes nothing.

    ``reads`` are absolute paths that a call which changes nothing shows to the model.
    """

    id: str
    tool: str
    input: Mapping[str, Any]
    cwd: bytes
    paths: tuple[bytes, ...] | None = None
    agent: Mapping[str, str] | None = None
    reads: tuple[bytes, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Names the input without giving it away, in the log, the results and the audit."""
        try:
            text = json.dumps(self.input, sort_keys=True, default=spoken)
        except (TypeError, ValueError, RecursionError):  # keys of several kinds, a number of 5000 digits, a list that holds itself
            text = spoken(self.input)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


@dataclass(frozen=True)
class Recorder:
    """One conversation's part in the log of one workspace. ``settings`` is opaque here but for ``fail_closed`` and ``store_*``."""

    id: str
    place: Place
    entry: registry.Entry
    log: OpLog
    settings: Any
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    agent: Mapping[str, str] = field(default_factory=dict)
    run_parent: str = ""
    on_progress: Callable[[str, int, int], None] | None = None
    is_new: bool = False
    process: str = ""  # the agent, where it is a process of its own whose death ends the turn, in the form of ``own_process``
    notices: list[str] = field(default_factory=list)
    told_folders: set[bytes] = field(default_factory=set)
    uncaptured: set[str] = field(default_factory=set)  # calls of this process before which no snapshot could be taken
    _generation: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log.on_damage = self._step_back

    @property
    def root(self) -> bytes:
        """The workspace that is acted on."""
        return self.place.root

    @property
    def is_run(self) -> bool:
        """Whether this process is the agent, so that its death ends the call."""
        return _is_run(self.id)

    @property
    def given_id(self) -> str:
        """The id as the harness gave it."""
        return given_id(self.id)

    @property
    def fails_closed(self) -> bool:
        return bool(getattr(self.settings, "fail_closed", False))

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.place.state / "sessions")

    @property
    def conversations(self) -> Sessions:
        """What belongs to a conversation wherever it works: the instruction files that its model was given."""
        return Sessions(self.place.home / "conversations")

    @property
    def interrupted(self) -> bool:
        """Whether an undo was interrupted and waits to be finished."""
        from safety.store.journal import journal_file

        return journal_file(self.place).exists()

    def open_turn(self, prompt: str = "", *, scan: bool = True) -> None:
        """The engine's part of a turn's start. The turn that our own feedback sent back to the agent is still the same one.

        ``scan`` False: the agent never stopped, what changed since its last call's end belongs to the next call.
        """

        def work() -> None:
            state = self.sessions.load(self.id)
            if state.is_open and state.continued:
                state.continued = False
                self._save(state)
                return
            if state.is_open:
                self._close_turn(state, scan=scan)
            self._open_turn(state, prompt, scan=scan)

        self._guarded(work, None)

    def capture_before(self, call: Call, prompt: str = "", *, scan: bool = True) -> Decision:
        """The engine's part of PRE: the state before a tool call; opens a turn (for ``prompt``) if none is. ``scan`` as for ``open_turn``.

        Denies only what could not be protected under ``fail_closed``.
        """
        failed = (
            Decision("deny", "git-safety could not take a snapshot, and fail_closed is set") if self.fails_closed else Decision()
        )

        def work() -> Decision:
            state = self.sessions.load(self.id)
            if call.id in state.pending or call.id in state.done:
                return Decision()
            paths = captured_paths(self.place, call)
            if not state.is_open:
                self._open_turn(state, prompt)
                outside = tuple(path for path in paths or () if path.startswith(b"/"))
                if outside or self.place.declared_only:
                    self._checkpoint(paths or (), state)
            elif scan and (paths is None or paths):
                self._checkpoint(paths, state)
            state.calls += 1
            declared_text = None if paths is None else [path.decode("latin-1") for path in paths]
            command = call.input.get("command")
            state.pending[call.id] = Pending(
                call.id, state.calls, call.tool, call.digest, _summary(call), declared_text, self.now_ms(),
                command=command if isinstance(command, str) and len(command) <= LONGEST_JUDGED else "",
            )  # fmt: skip
            self._save(state)
            return Decision()

        decision = self._guarded(work, None)
        if decision is None:
            self.uncaptured.add(call.id)
            return failed
        return decision

    def capture_after(self, call: Call, error: str | None = None) -> None:
        """The engine's part of POST: what changed since PRE is the call's own."""
        number = self._guarded(lambda: self._post(call, error), 0)
        if number and number % UPKEEP_CALLS == 0:  # a turn may be of any length
            self._look_after(self._keep_small)

    def settle_turn(self) -> None:
        """Late calls lose their claim, and what changed since the last call's end is recorded, before anybody judges the turn."""

        def work() -> None:
            state = self.sessions.load(self.id)
            if state.is_open:
                self._settle_turn(state)

        self._guarded(work, None)

    def close_turn(self, *, scan: bool = True) -> None:
        """The engine's part of a turn's end; nobody else is asked. ``scan`` False: what changed since the last call is recorded."""
        self._guarded(lambda: self._end_turn(scan), None)
        self._look_after(self._keep_small, self.tidy)

    def record_own(
        self,
        kind: str,
        turn: int,
        paths: tuple[bytes, ...] | None,
        *,
        members: tuple[bytes, ...] = (),
        conversation: str = "",
        summary: str = "",
        status: str = "ok",
        left_out: Iterable[bytes] = (),
    ) -> bool:
        """Records what a check (``gate``: these paths) or a commit of ours (``commit``: the git state of these members) has just changed.

        It is part of the turn, so that ``undo`` takes it back with the rest, and of the ``conversation`` whose turn it is, this one if
        empty. ``left_out`` are paths that a commit did not take. Gives whether anything had changed. Raises SafetyError.
        """
        with self.locked(), self._system_errors():
            draft = self._git_state(members) if paths is None else self._declared(paths)
            if not draft.is_change:
                draft.settle()
                return False
            whose = conversation or self.id
            agent = dict(self.agent or self.sessions.load(whose).agent)
            record = Record(
                self.new_id(), kind, kind, session=whose, agent=agent, turn=turn, scope=paths, summary=summary, status=status
            )
            self._append(draft, replace(record, declared=members, kept=tuple(left_out)) if paths is None else record)
            return True

    def snapshot(self, paths: Sequence[bytes] | None, name: str = "") -> Operation:
        """A snapshot by hand: of everything, or of named paths whatever their size. Raises SafetyError."""
        with self.locked(), self._system_errors():
            scope = None if paths is None else tuple(paths)
            draft = self._everything() if scope is None else self._declared(scope, NO_LIMITS)
            record = replace(self._checkpoint_record(scope, 0), kind="snapshot", pins=(name,) if name else (), summary=name)
            return self._append(draft, record)

    def last_turn_summary(self) -> TurnCounts | None:
        """What this session's newest turn came to; None when it changed nothing."""
        from safety.store.history import counts_of_turn

        state = self.sessions.load(self.id)
        return counts_of_turn(self.log, state.turn) if state.turn else None

    def take_notices(self) -> list[str]:
        """Texts for the user that have gathered, each once."""
        return list(dict.fromkeys(taken(self.notices)))

    def close(self) -> None:
        """A look is no contact: a folder in which nothing was recorded is not kept as a workspace, which would hold what is below it."""
        if self.is_new and self.log.head_id() is None:
            registry.forget(self.place.home, self.entry)

    # -- what commands use -----------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The workspace lock, re-entrant in a thread; no object leaves the store while it is held."""
        with hold(self.place.state / "lock", LOCK_WAIT_S), taking_part(self.place.store_dir) as generation:
            if self._generation and self._generation[0] != generation:
                self.place.odb.refresh()
            self._generation[:] = [generation]
            yield

    def refresh(self, *, unlimited: bool = False) -> Operation:
        """Records what is on disk now and gives the newest operation. The caller holds the lock.

        Raises SafetyError when the state cannot be captured.
        """
        with self._system_errors():
            self._bury_dead()
            head = self.log.head()
            draft = self._everything(replace(self.place.limits, deadline_s=None) if unlimited else None)
            if head is not None and not draft.is_change:
                draft.settle()
                return head
            return self._append(draft, self._checkpoint_record(None, 0))

    def open_turns(self) -> list[SessionState]:
        """Sessions of this workspace whose turn is running."""
        return [state for state in self.sessions.all() if state.is_open and self._is_alive(state)]

    @property
    def is_taken_over(self) -> bool:
        """Whether a turn is open below this ``run``: what changes is that one's to record."""
        return any(state.within == self.id for state in self.open_turns())

    def append(self, tree: bytes, record: Record) -> Operation:
        """Publishes an operation. The caller holds the lock.

        ``last_turn`` tells readers of the log where a turn cannot reach back any further, so it counts turns without a record yet.
        """
        newest = max((state.turn for state in self.sessions.all() if state.is_open), default=0)
        return self.log.append(tree, replace(record, last_turn=newest))

    def tidy(self) -> None:
        """The keep rules, when the store is over its cap or a day has gone by. Not under the lock: pruning waits until nobody captures.

        Nothing is forgotten by rules that stand in for settings nobody can read.
        """
        if self.settings.broken:
            return
        from safety.store.packs import store_size

        stamp = self.place.store_dir / "tidied"
        try:
            age_ms = self.now_ms() - int(stamp.stat().st_mtime * 1000)
        except OSError:
            age_ms = TIDY_EVERY_MS if stamp.parent.exists() else 0
            stamp.touch()
        if age_ms >= TIDY_EVERY_MS or store_size(self.place.store_dir).own_bytes > self.settings.store_max_mib << 20:
            from safety.store.retention import tidy

            rules = self.keep_rules
            tidy(self.place.git, self.place.odb, rules, self.now_ms())
            for kept in (self.sessions, self.conversations):
                kept.drop_older_than(self.now_ms() - rules.max_age_ms)
            stamp.touch()

    @property
    def keep_rules(self) -> KeepRules:
        """The settings ``store.*`` as rules."""
        from safety.store.retention import DAY_MS, KeepRules

        settings = self.settings
        return KeepRules(
            settings.store_keep_days * DAY_MS,
            settings.store_max_mib << 20,
            settings.store_min_free_percent,
            spared=settings.store_keep_operations,
        )

    # -- inside ----------------------------------------------------------------------------------------------------------------

    def _withdraw(self, call: Call) -> bool:
        """Takes back that a call is open, as if its PRE had not been heard. Gives whether it was."""

        def work() -> bool:
            state = self.sessions.load(self.id)
            known = state.pending.pop(call.id, None)
            if known is None:
                return False
            if known.call == state.calls:  # the next call has this number, unless one has come since
                state.calls -= 1
            self._save(state)
            return True

        return self._guarded(work, False)

    @contextmanager
    def _system_errors(self) -> Iterator[None]:
        """A full disk or a folder without permission is an expected failure: a sentence, not a traceback."""
        try:
            yield
        except OSError as fault:
            raise CaptureFailed(
                f"the state could not be captured: {fault.strerror or fault}; nothing was changed", "git safety doctor"
            ) from fault

    def _guarded(self, work: Callable[[], Answer], failed: Answer) -> Answer:
        """Runs the work under the lock; a failure becomes a notice and ``failed``."""
        try:
            with self.locked():
                return work()
        except SafetyError as fault:
            self.notices.append(f"git-safety: not protected: {fault.sentence}")
        except OSError as fault:
            self.notices.append(f"git-safety: not protected: {fault.strerror or fault}")
        return failed

    def _before(self) -> bytes | None:
        head = self.log.head()
        return None if head is None else head.tree

    def _everything(self, limits: Limits | None = None) -> Draft:
        before = self._before()
        if self.place.declared_only and before is not None:
            from safety.store.declared import Draft

            return Draft(before, before, [], False, [])
        if self.place.declared_only:
            return self._declared(())
        from safety.store.capture import everything

        return everything(self.place, before, limits)

    def _declared(self, paths: Iterable[bytes], limits: Limits | None = None) -> Draft:
        from safety.store.declared import declared

        return declared(self.place, self._before(), paths, limits)

    def _git_state(self, members: Sequence[bytes]) -> Draft:
        from safety.store.capture import after_apply

        return after_apply(self.place, self._before(), (), members)

    def _open_calls(self) -> list[OpenCall]:
        """Calls between PRE and POST in every session that is alive."""
        states = [state for state in self.sessions.all() if self._is_alive(state)]
        outer = {state.within for state in states if state.is_open}
        return [call for state in states for call in state.open_calls(deferred=state.session in outer)]

    def _bury_dead(self) -> None:
        """Ends the turns of sessions that died in a call: what changed since their last sign of life is nobody's for certain.

        It is recorded in their turn, so that ``undo`` can name it and take it back when asked (redteam D1).
        """
        for state in self.sessions.all():
            if not state.is_open or self._is_alive(state):
                continue
            draft = self._everything()
            state.is_open = False
            state.pending.clear()
            self.sessions.save(state)
            if draft.is_change and self.log.head_id() is not None:
                record = self._checkpoint_record(None, state.turn)  # where other calls are open, it may be theirs
                actor = "mixed" if record.open_calls else "unattributed"
                agent = dict(state.agent)
                self._append(draft, replace(record, actor=actor, session=state.session, agent=agent, turn=state.turn))
            self._close_record(state)

    def _is_alive(self, state: SessionState) -> bool:
        return state.session == self.id or state.is_alive(self.now_ms())

    def _checkpoint_record(self, scope: tuple[bytes, ...] | None, turn: int) -> Record:
        everyone, turns = self._open_calls(), self.open_turns()
        actor = actor_between_calls(everyone, bool(turns))
        open_calls = [call for call in everyone if not call.deferred] or everyone
        if not turn and turns:
            turn = turns[0].turn
        kind = "checkpoint" if self.log.head_id() is not None else "first"
        return Record(
            self.new_id(),
            kind,
            "user" if kind == "first" else actor,
            session=self.id,
            turn=0 if actor == "user" else turn,
            scope=scope,
            running_ms=self._longest_run_ms(turns) if actor == "mixed" else 0,
            open_calls=tuple(call.key for call in open_calls),
            owners={} if open_calls else self._settle(None, ()),  # no call is open any more, so nobody else will
        )

    def _longest_run_ms(self, turns: Sequence[SessionState]) -> int:
        began = [state.began_ms for state in turns if state.began_ms and _is_run(state.session)]
        return self.now_ms() - min(began) if began else 0

    def _checkpoint(self, paths: tuple[bytes, ...] | None, state: SessionState) -> Operation | None:
        with collector_paused():
            draft = self._everything() if paths is None else self._declared(paths)
            if not draft.is_change and self.log.head_id() is not None:
                draft.settle()
                return None
            return self._append(draft, self._checkpoint_record(paths, state.turn if state.is_open else 0))

    def _append(self, draft: Draft, record: Record) -> Operation:
        covered = [item for item in draft.not_covered if item.reason != "ignored-directory"][:200]
        for item in covered:
            if item.reason == "refused-by-git" and record.kind == "first":
                self.notices.append(f"git-safety: files are covered, git state is not: {item.detail}")
        operation = self.append(draft.tree, replace(record, not_covered=tuple(covered), git_changed=draft.git_changed))
        draft.settle()
        return operation

    def _save(self, state: SessionState) -> None:
        state.heard_ms = self.now_ms()
        state.within = self.run_parent
        if self.is_run or self.process:  # a worker that was forked ends without the agent; a daemon goes on without its parent
            state.process = self.process if self.process and is_running(self.process) else own_process()
        if self.agent:
            state.agent = dict(self.agent)
        self.sessions.save(state)

    def _open_turn(self, state: SessionState, prompt: str, *, scan: bool = True) -> None:
        if self.place.declared_only and self.log.head_id() is None:
            self.notices.append(
                f"git-safety: {os.fsdecode(self.root)} is too wide to be scanned: only files that a tool names are covered here"
            )
        self._bury_dead()
        if scan or self.log.head_id() is None:
            self._checkpoint(None, state)
        head = self.log.head()
        numbers = [other.turn for other in self.sessions.all()]
        state.turn = max([head.record.last_turn if head else 0, *numbers]) + 1
        state.is_open, state.prompt, state.calls = True, prompt[:PROMPT_LENGTH], 0
        state.continued, state.sent_back, state.checks, state.taint, state.touched = False, 0, {}, "", []
        state.asked = {}
        self.told_folders.clear()
        state.started_ms = self.now_ms()
        state.began_ms = state.began_ms or state.started_ms
        state.pending.clear()
        self.sessions.drop_results(self.id)
        self._save(state)

    def _post(self, call: Call, error: str | None) -> int:
        """Gives the call's number in its turn, 0 for one that is not open."""
        state = self.sessions.load(self.id)
        pending = state.pending.get(call.id)
        if pending is None:
            if call.id not in state.done:
                self._checkpoint(captured_paths(self.place, call), state)
            return 0
        scope = None if pending.declared is None else tuple(path.encode("latin-1") for path in pending.declared)
        draft = None
        if scope is None or scope:
            draft = self._everything() if scope is None else self._declared(scope)
        everyone = [other for other in self._open_calls() if other.call_id != call.id]
        others = [other for other in everyone if not other.deferred]
        own = next(other for other in state.open_calls() if other.call_id == call.id)
        reads = scope is None and _reads_only(pending.command)
        status = "error" if error else "ok"
        pushed = not error and "push" in pending.command and _pushes(pending.command)
        if draft is not None and (draft.is_change or draft.has_stirred or pushed or (self._unsettled() and (others or not everyone))):
            record = Record(
                self.new_id(),
                "call",
                self._actor_of(reads, bool(others)),
                session=self.id,
                agent=dict(self.agent or state.agent),
                turn=state.turn,
                call=pending.call,
                call_id=call.id,
                tool=pending.tool,
                digest=pending.digest,
                summary=pending.summary,
                prompt=state.prompt,
                declared=() if reads else scope,
                scope=scope,
                status=status,
                pushed=pushed,
                duration_ms=max(0, self.now_ms() - pending.started_ms),
                running_ms=max(0, self.now_ms() - state.began_ms) if self.is_run else 0,
                open_calls=tuple(item.key for item in ([own, *others] if others else everyone)),
            )
            if not everyone:
                record = replace(record, owners=self._settle(record, draft.changed))
            self._append(draft, record)
        elif draft is not None:
            draft.settle()
        del state.pending[call.id]
        state.finish(call.id, status)
        self._save(state)
        return pending.call

    @staticmethod
    def _actor_of(reads: bool, has_others: bool) -> str:
        """A command that only reads owns nothing of what was seen to change. Beside a call that is open still, it may be that one's."""
        if has_others:
            return "mixed"
        return "unattributed" if reads else "agent"

    def _unsettled(self) -> bool:
        return bool(group_of_mixed(self.log.walk()))

    def _settle(self, own: Record | None, changed: Iterable[bytes]) -> Mapping[str, Mapping[bytes, str]]:
        """Owners of the mixed checkpoints so far; ``own`` is the record that is about to settle them."""
        group = group_of_mixed(self.log.walk())
        if not group:
            return {}
        from safety.store.snapshot import changes

        pairs = [(item.record, changes(self.log.odb, self.log.tree_before(item), item.tree)) for item in reversed(group)]
        if own is not None:
            pairs.append((own, list(changed)))
        owners = settle_owners(pairs)
        return {item.id: owners[item.id] for item in group if item.id in owners}

    def _continue(self) -> bool:
        """Counts one more time that the turn is sent back; False where that was often enough, as several hosts would do it for ever."""
        state = self.sessions.load(self.id)
        if state.sent_back >= max(MOST_SENT_BACK, self.settings.gate_max_attempts):
            return False
        state.sent_back += 1
        state.continued = True
        self._save(state)
        return True

    def _close_turn(self, state: SessionState, *, scan: bool = True) -> None:
        self._settle_turn(state, scan=scan)
        self._write_end(state)

    def _settle_turn(self, state: SessionState, *, scan: bool = True) -> None:
        for call_id in list(state.pending):
            state.finish(call_id, "late")
        late = bool(state.pending)
        state.pending.clear()
        self.sessions.save(state)
        if scan or late:
            self._checkpoint(None, state)

    def _end_turn(self, scan: bool) -> None:
        state = self.sessions.load(self.id)
        if state.is_open:
            self._close_turn(state, scan=scan)

    def _write_end(self, state: SessionState) -> None:
        """The turn gets its closing record, and what it wrote is made durable."""
        self._close_record(state)
        state.is_open = state.continued = False
        self._save(state)
        self._note_witness()
        self.place.odb.sync()

    def _close_record(self, state: SessionState) -> None:
        """The record that ends a turn; it settles what overlapping calls left open, if no call is open any more."""
        head = self.log.head()
        if head is not None:
            owners: Mapping[str, Mapping[bytes, str]] = {}
            if not self._open_calls():
                owners = self._settle(None, ())
            record = Record(
                self.new_id(),
                "turn",
                "agent",
                session=state.session,  # another one's, where that is buried
                agent=dict(state.agent),
                turn=state.turn,
                prompt=state.prompt,
                calls=state.calls,
                duration_ms=max(0, self.now_ms() - state.started_ms),
                owners=owners,
            )
            self.append(head.tree, record)

    def _note_witness(self) -> None:
        """A turn may have replaced or removed the folder itself: it stays the same workspace, unless that goes on elsewhere by now."""
        try:
            info = os.stat(self.root)
            seen = replace(self.entry, device=info.st_dev, inode=info.st_ino)
        except OSError:
            seen = replace(self.entry, device=0, inode=0)
        if (seen.device, seen.inode) != (self.entry.device, self.entry.inode):
            known = registry.recorded(self.place.home, self.root)
            if known is not None and known.key == self.entry.key:
                registry.save(self.place.home, seen)

    def _step_back(self) -> bool:
        """The head was lost with the power: the newest whole operation takes its place, and nothing is believed of the caches."""
        from safety.store.anchors import rebuild_anchor
        from safety.store.fsck import repair_head
        from safety.store.privateindex import PrivateIndex

        repaired = repair_head(self.place.odb, self.place.chain)
        PrivateIndex(self.place).forget()
        for name in ("directories.json", "gitfiles.json"):
            (self.place.state / name).unlink(missing_ok=True)
        rebuild_anchor(
            self.place.odb, self.place.chain, ()
        )  # the next capture reads every git file anew and anchors what it names
        if repaired is not None:
            self.notices.append("git-safety: the newest operation was damaged; the log was stepped back to the one before")
        return repaired is not None

    def _keep_small(self) -> None:
        """Small object files into a pack once there are many."""
        from safety.store.repack import LOOSE_THRESHOLD, repack_loose

        if self.place.odb.loose_count() > LOOSE_THRESHOLD:
            repack_loose(self.place.git, self.place.odb, threshold=LOOSE_THRESHOLD)

    def _look_after(self, *upkeep: Callable[[], None]) -> None:
        """Never under the lock: what is packed anew goes only when nobody captures, and we would be waiting for ourselves."""
        try:
            for work in upkeep:
                work()
        except (SafetyError, OSError) as fault:
            self.notices.append(f"git-safety: the store could not be tidied: {fault}")


def taken(texts: list[str]) -> list[str]:
    """What a list held, which is empty then but for what another thread has added meanwhile."""
    found = texts[:]
    del texts[: len(found)]
    return found


def captured_paths(place: Place, call: Call) -> tuple[bytes, ...] | None:
    """The paths a call declares, as snapshots know them; None where it declares none.

    Links on the way are resolved, because the tool will follow them; where the path itself is a link, its target is declared too.
    """
    if call.paths is None:
        return None
    found: dict[bytes, None] = {}
    for path in call.paths:
        absolute = os.path.normpath(os.path.join(call.cwd, path))
        head, name = os.path.split(absolute)
        for place_of_it in (os.path.join(os.path.realpath(head), name), os.path.realpath(absolute)):
            inside = place_of_it.startswith(place.root + b"/")
            if place_of_it != place.root:
                found[place_of_it[len(place.root) + 1 :] if inside else place_of_it] = None
    return tuple(found)


def _summary(call: Call) -> str:
    """The command, or the path that the tool was given, cut to a line."""
    for name in ("command", "cmd", "path", "file_path", "filename"):
        value = call.input.get(name)
        if isinstance(value, str) and value:
            return value.strip()[:SUMMARY_LENGTH]
        if isinstance(value, list) and value:
            return " ".join(map(spoken, value))[:SUMMARY_LENGTH]
    return ""


def spoken(value: object) -> str:
    """The value as text; its type where it has none: a host's object may fail at it, which must not cost the call or its result."""
    text, fault = attempt(str, value)
    return f"<{type(value).__name__}>" if fault else str(text)


def harness_id(given: str) -> str:
    """The session id of a conversation that a harness calls ``given``: the same, but never that of a ``run``."""
    return f"{_APART}{given}" if given.lstrip(_APART).startswith(RUN_PREFIX) else given


def given_id(session_id: str) -> str:
    """What the harness called the conversation: `harness_id` the other way."""
    return session_id[1:] if session_id.startswith(_APART) and harness_id(session_id[1:]) == session_id else session_id


def is_one_conversation(first: str, second: str) -> bool:
    """Whether two sessions are one to a person: commands run one after another are one conversation with the shell."""
    return first == second or (_is_run(first) and _is_run(second))


def _is_run(session: str) -> bool:
    return session.startswith(RUN_PREFIX)


def _reads_only(command: str) -> bool:
    from safety.policy.reading import reads_only

    return reads_only(command)


def _pushes(command: str) -> bool:
    from safety.policy.reading import pushes

    return pushes(command)


def state_folder(home: Path, entry: registry.Entry) -> Path:
    """Where a workspace's caches, lock and session files lie."""
    return home / "workspaces" / entry.key
