"""The repository's own checks on what the agent changed, and nothing else ([gate] A7). No verb: ``commit`` and a turn's end ask for it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from safety.commands.pending import Pending, agents_lines, pending
from safety.gate.attempts import next_attempt
from safety.gate.message import line_for_user, message_for_model
from safety.gate.results import Checked, GateResult, GateSettings
from safety.gate.run import run_gate
from safety.session import Session, checks_log
from safety.store.history import turns
from safety.store.snapshot import Snapshot
from safety.trust import runs_anything
from safety.types import Absent, Present

LOGS_KEPT = 50


@dataclass(frozen=True)
class Verdict:
    """``ran``: checks have run and passed. ``blocks``: nothing may be committed. ``feedback``: what goes back to the model.

    ``notices``: what the user is told.
    """

    blocks: bool = False
    feedback: str = ""
    notices: tuple[str, ...] = ()
    ran: bool = False


def judge(session: Session, wanted: str | None, *, turn: int = 0) -> Verdict:
    """Runs the checks on what a conversation (None: the newest) has changed since its last commit, or in one turn.

    What they fix is recorded as part of the newest turn. The state of now must have been captured. Raises SafetyError.
    """
    head = session.log.head()
    if head is None:
        return Verdict()
    now = Snapshot(session.log.odb, head.tree)
    newest = next((item for item in turns(session.log) if wanted is None or item.session == wanted), None)
    if newest is None:
        return Verdict()
    total = Verdict()
    for place in pending(session, wanted, now, turn):
        checked = _checked(session, place, now)
        if checked.files or checked.deleted:
            one = _judge_one(session, place, checked, newest.number, newest.session)
            total = Verdict(
                total.blocks or one.blocks,
                "\n\n".join(filter(None, (total.feedback, one.feedback))),
                (*total.notices, *one.notices),
                total.ran or one.ran,
            )
    return total


def _checked(session: Session, place: Pending, now: Snapshot) -> Checked:
    prefix = place.member + b"/" if place.member else b""
    files, deleted, lines = [], [], {}
    for path in place.paths:
        state = now.state(prefix + path)
        if isinstance(state, Absent):
            deleted.append(path)
        elif isinstance(state, Present) and state.kind != "dir":
            files.append(path)
            if state.kind == "file":
                lines[path] = agents_lines(session, place, path, session.log.odb.blob(state.oid))
    first = {step.path: step.before for step in reversed(place.steps)}

    def before(path: bytes) -> bytes | None:
        state = first.get(path)
        return session.log.odb.blob(state.oid) if isinstance(state, Present) and state.kind == "file" else None

    return Checked(place.root, tuple(files), tuple(deleted), lines, before)


def _judge_one(session: Session, place: Pending, checked: Checked, turn: int, conversation: str) -> Verdict:
    settings = settings_of(session)
    refusal = session.distrust(checked.root) if runs_anything(checked.root) else ""
    if refusal:
        return Verdict(blocks=True, notices=(f"nothing was committed: {refusal}",))
    result = run_gate(session.place.git, session.environ, checked, settings, session.place.state / "checks")
    if result.log is not None:
        os.replace(result.log, checks_log(session.place.state, turn))
        _drop_old_logs(result.log.parent)
    prefix = place.member + b"/" if place.member else b""
    if result.fixed:
        fixed = tuple(prefix + path for path in result.fixed)
        session.record_own("gate", turn, fixed, conversation=conversation, summary=result.backend)
    return _verdict(session, result, settings, turn, conversation)


def _drop_old_logs(folder: Path) -> None:
    for old in sorted(folder.glob("*.log"), key=os.path.getmtime)[:-LOGS_KEPT]:
        old.unlink(missing_ok=True)


def _verdict(session: Session, result: GateResult, settings: GateSettings, turn: int, conversation: str) -> Verdict:
    with session.locked():
        state = session.sessions.load(conversation)
        state.checks, sends_back = next_attempt(state.checks, result, settings.max_attempts)
        ran = result.status in ("passed", "passed_with_fixes")
        if ran:
            state.checks["passed"] = True
        if state.turn:
            session.sessions.save(state)
    attempt = int(state.checks.get("attempt", 1))
    agent = session.agent.get("name", "") or state.agent.get("name", "") or "the agent"
    told = line_for_user(result, attempt, settings.max_attempts, agent, f"t{turn}", sends_back)
    feedback = ""
    if sends_back:
        feedback = message_for_model(result, attempt, settings.max_attempts, f"t{turn}", settings.max_message_chars)
    return Verdict(result.blocks_commit, feedback, (told,) if told else (), ran)


def settings_of(session: Session) -> GateSettings:
    """The settings ``gate.*`` in effect."""
    given = session.settings
    return GateSettings(
        given.gate_enabled,
        given.gate_backend,
        given.gate_command,
        given.gate_timeout_s,
        given.gate_max_attempts,
        given.gate_preexisting,
        given.gate_skip,
        given.gate_allow_partial,
        given.gate_max_message_chars,
    )
