"""The repository's own checks on what the agent changed, and nothing else ([gate] A7). No verb: ``commit`` and a turn's end ask for it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from safety.commands.pending import Pending, agents_lines, pending
from safety.gate.attempts import next_attempt
from safety.gate.message import line_for_user, message_for_model
from safety.gate.results import Checked, GateResult, GateSettings
from safety.gate.run import run_gate
from safety.session import Session, checks_log, is_one_conversation
from safety.store.history import Turn, turns
from safety.store.snapshot import Snapshot
from safety.trust import runs_anything
from safety.types import Absent, Present

LOGS_KEPT = 50
LOG_BYTES = 16 << 20
MOST_NAMED = 5


@dataclass(frozen=True)
class Verdict:
    """``ran``: checks have run and passed. ``blocks``: nothing may be committed. ``feedback``: what goes back to the model.

    ``notices``: what the user is told; ``messages``: what the model should know although its turn has ended.
    """

    blocks: bool = False
    feedback: str = ""
    notices: tuple[str, ...] = ()
    ran: bool = False
    messages: tuple[str, ...] = ()


def judge(session: Session, wanted: str | None, *, turn: int = 0, asked: bool = False) -> Verdict:
    """Runs the checks on what a conversation (None: the newest) has changed since its last commit, or in one turn.

    ``asked``: a person asked for them, so that nothing goes back to the model and no try is used up. What they fix is recorded as
    part of the newest turn. The state of now must have been captured. Raises SafetyError.
    """
    head = session.log.head()
    if head is None:
        return Verdict()
    now = Snapshot(session.log.odb, head.tree)
    newest = next((item for item in turns(session.log) if wanted is None or is_one_conversation(item.session, wanted)), None)
    if newest is None:
        return Verdict()
    total = Verdict()
    for place in pending(session, wanted, now, turn):
        checked = _checked(session, place, now)
        if checked.files or checked.deleted:
            one = _judge_one(session, place, checked, newest, asked)
            total = Verdict(
                total.blocks or one.blocks,
                "\n\n".join(filter(None, (total.feedback, one.feedback))),
                (*total.notices, *one.notices),
                total.ran or one.ran,
                (*total.messages, *one.messages),
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


def _judge_one(session: Session, place: Pending, checked: Checked, turn: Turn, asked: bool) -> Verdict:
    settings = settings_of(session)
    refusal = session.distrust(checked.root) if runs_anything(checked.root) else ""
    if refusal:
        return Verdict(blocks=True, notices=(f"nothing was committed: {refusal}",))
    result = run_gate(session.place.git, session.environ, checked, settings, session.place.state / "checks")
    if result.log is not None:
        named = f" in {os.fsdecode(place.member)}" if place.member else ""
        clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(session.now_ms() / 1000))
        heading = f"== {clock}  {result.backend or 'checks'}{named}: {result.status.replace('_', ' ')}"
        _keep(result.log, checks_log(session.place.state, turn.number), heading)
        _drop_old_logs(result.log.parent)
    prefix = place.member + b"/" if place.member else b""
    if result.fixed:
        fixed = tuple(prefix + path for path in result.fixed)
        session.record_own("gate", turn.number, fixed, conversation=turn.session, summary=result.backend)
    return _verdict(session, result, settings, turn, asked)


def _keep(written: Path, kept: Path, heading: str) -> None:
    """Puts what one try wrote behind the earlier ones of the same turn; beyond ``LOG_BYTES`` the oldest output goes."""
    try:
        earlier = kept.read_bytes()
    except FileNotFoundError:
        earlier = b""
    output = written.read_bytes() or b"(nothing was written)\n"
    output += b"" if output.endswith(b"\n") else b"\n"
    whole = earlier + (b"\n" if earlier else b"") + os.fsencode(heading) + b"\n" + output
    if len(whole) > LOG_BYTES:
        whole = b"(what came before is no longer kept)\n" + whole[-LOG_BYTES:].partition(b"\n")[2]
    written.write_bytes(whole)
    os.replace(written, kept)


def _drop_old_logs(folder: Path) -> None:
    for old in sorted(folder.glob("*.log"), key=os.path.getmtime)[:-LOGS_KEPT]:
        old.unlink(missing_ok=True)


def _verdict(session: Session, result: GateResult, settings: GateSettings, turn: Turn, asked: bool) -> Verdict:
    ran = result.status in ("passed", "passed_with_fixes")
    if asked:
        told = line_for_user(result, 1, settings.max_attempts, "", turn.handle, False)
        return Verdict(result.blocks_commit, "", _told(told, result), ran)
    with session.locked():
        state = session.sessions.load(turn.session)
        state.checks, sends_back = next_attempt(state.checks, result, settings.max_attempts)
        if ran:
            state.checks["passed"] = True
        if state.turn:
            session.sessions.save(state)
    attempt = int(state.checks.get("attempt", 1))
    agent = session.agent.get("name", "") or state.agent.get("name", "") or "the agent"
    told = line_for_user(result, attempt, settings.max_attempts, agent, turn.handle, sends_back)
    text = message_for_model(result, attempt, settings.max_attempts, turn.handle, settings.max_message_chars)
    tell = bool(text) and result.status == "passed_with_fixes"
    return Verdict(result.blocks_commit, text if sends_back else "", _told(told, result), ran, (text,) if tell else ())


def _told(line: str, result: GateResult) -> tuple[str, ...]:
    """What the user is told: the line on the checks, and what else in the work tree changed while they ran."""
    elsewhere = [os.fsdecode(path) for path in result.touched_elsewhere]
    more = f" and {len(elsewhere) - MOST_NAMED} more" if len(elsewhere) > MOST_NAMED else ""
    names = f"changed while the checks ran, not committed: {', '.join(elsewhere[:MOST_NAMED])}{more}" if elsewhere else ""
    return tuple(filter(None, (line, names)))


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
