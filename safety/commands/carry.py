"""What undo, redo, restore and recover share: acting on a plan under the journal, recording it, and saying what came of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from safety.commands.changes import Contents, count_lines, is_below
from safety.commands.gitnotes import commits_moved
from safety.commands.report import Hint, PathLine, UndoReport, Verb
from safety.commands.uncovered import reason_text
from safety.session import Session
from safety.store.apply import carry_out as apply_job
from safety.store.capture import after_apply
from safety.store.gitstate import GitPlan, group_note
from safety.store.journal import Job, Outcome, read_journal, remove_journal
from safety.store.members import MemberPlace
from safety.store.oplog import Record
from safety.store.recovery import remaining, sweep_temporaries
from safety.store.restore import KEPT, MERGED, NOT_COVERED, REMOVED, RESTORED, UNCHANGED, Piece, Step
from safety.store.snapshot import Snapshot
from safety.store.takeback import Whole
from safety.types import Absent, PathState, Present, Unknown

LONG_CALL_MS = 10_000
# A dry run counts lines in so many bytes of content and no more.
BYTES_COUNTED = 16 << 20
_VERBS: dict[str, Verb] = {
    RESTORED: "restored",
    REMOVED: "removed",
    MERGED: "merged",
    UNCHANGED: "unchanged",
    KEPT: "kept",
    NOT_COVERED: "not covered",
}


def relative(session: Session, path: bytes) -> bytes:
    """A path as snapshots know it: relative to the workspace when inside."""
    root = session.root
    if path == root:
        return b""
    if path.startswith(root + b"/"):
        return path[len(root) + 1 :]
    head, tail = os.path.split(path)
    real = os.path.join(os.path.realpath(head), tail) if tail else os.path.realpath(path)
    if real == root:
        return b""
    return real[len(root) + 1 :] if real.startswith(root + b"/") else real


def carry_out(
    session: Session, whole: Whole, report: UndoReport, *, kind: str, undoes: Sequence[str], parts: Sequence[Piece]
) -> UndoReport:
    """Acts on the plan and records it. The caller holds the lock and has captured what is there now.

    ``undoes`` are operation ids and turn handles that count as taken back from then on.
    """
    subject = report.subject or ", ".join(title.handle for title in report.titles)
    job = whole.job(session.new_id(), {"kind": kind, "undoes": list(undoes), "subject": subject})
    outcome = apply_job(session.place, job, _progress(session))
    return _finish(session, job, outcome, whole, report, parts)


def recover(session: Session) -> tuple[str, ...]:
    """Finishes an interrupted undo, redo or restore; gives sentences about it, none where nothing was interrupted."""
    found = read_journal(session.place)
    if found is None:
        return ()
    job, locks = found
    left = remaining(session.place, job)
    sweep_temporaries(session.place, job, locks)
    session.refresh(unlimited=True)
    outcome = apply_job(session.place, left, resumed=True)
    whole = Whole(SimpleNamespace(steps=left.steps), left.git, left.now, left.theirs)  # type: ignore[arg-type]
    report = _finish(session, job, outcome, whole, UndoReport(root=session.root), ())
    done = sum(line.verb in ("restored", "removed", "merged") for line in report.lines)
    return (
        f"finished an interrupted {job.record.get('kind', 'undo')}: {done} {'file' if done == 1 else 'files'} were still to do",
    )


def _finish(session: Session, job: Job, outcome: Outcome, whole: Whole, report: UndoReport, parts: Sequence[Piece]) -> UndoReport:
    touched = [step.path for step in (*job.steps, *outcome.steps) if step.acts or step.verb == KEPT]
    head = session.log.head()
    members = [member.path for member, _ in job.git]
    if members:
        members += Snapshot(session.log.odb, job.theirs).members()
    draft = after_apply(session.place, None if head is None else head.tree, touched, members)
    kept = tuple(step.path for step in outcome.steps if step.verb in (KEPT, NOT_COVERED))
    record = Record(
        job.id,
        str(job.record.get("kind", "undo")),
        "restore" if job.record.get("kind") == "restore" else "undo",
        session=session.id,
        undoes=tuple(job.record.get("undoes", ())),
        kept=kept,
        git_changed=draft.git_changed,
        summary=str(job.record.get("subject", "")),
    )
    session.append(draft.tree, record)
    draft.settle()
    session.place.odb.sync()
    remove_journal(session.place)
    done = replace(
        whole,
        files=replace(whole.files, steps=tuple(sorted(outcome.steps, key=lambda step: step.path)))
        if hasattr(whole.files, "now")
        else whole.files,
    )
    return lines_of(session, replace(report, handle=job.id), done, parts, outcome)


def lines_of(
    session: Session, report: UndoReport, whole: Whole, parts: Sequence[Piece], outcome: Outcome | None = None
) -> UndoReport:
    """The report with a line for each path and for git, and its exit code by the rule of the protocol page."""
    steps = outcome.steps if outcome is not None else whole.files.steps
    befores = _befores(session, parts)
    long = seen_in_long_calls(session, parts)
    above = _folders_above(steps)
    shown = sorted((step for step in steps if _is_shown(step, above)), key=lambda step: step.path)
    lines = [_line(report, step, befores.get(step.path, Snapshot(session.log.odb, None)), long) for step in shown]
    if report.dry_run:
        lines = _counted(Contents(session.log.odb), lines, steps)
    kept = outcome.kept if outcome is not None else [text for _, plan in whole.git for text in plan.kept]
    lines.extend(PathLine("git", note=note) for note in _git_notes(session, whole, outcome, bool(kept)))
    lines.extend(PathLine("git", note=text, reason="kept") for text in kept)
    left_out = any(line.verb in ("kept", "not covered") for line in lines) or bool(kept)
    hints = [hint for line in [line for line in lines if line.verb == "kept"][:3] for hint in _ways_on(report, line.path, parts)]
    return replace(report, lines=tuple(lines), hints=(*report.hints, *hints), exit_code=3 if left_out else report.exit_code)


def _ways_on(report: UndoReport, path: bytes, parts: Sequence[Piece]) -> list[Hint]:
    """What can be typed about a path that was kept: the old version against yours, and the command that takes the old one.

    Both name the oldest of the turns that changed it. ``restore`` and a comparison with now leave git's own files aside.
    """
    if not report.titles:
        return []
    handle = report.titles[-1].handle
    if len(report.titles) > 1:
        turn = next((piece.turn for piece in parts if any(is_below(one, [path]) for one in piece.paths)), 0)
        handle = f"t{turn}" if turn else handle
    if b".git" in path.split(b"/"):
        return [Hint("what the turn changed", f"git safety diff {handle}", (path,), path)]
    return [
        Hint("both versions", f"git safety diff --now {handle}", (path,), path),
        Hint("take the old", f"git safety restore --before {handle}", (path,), path),
    ]


def _folders_above(steps: Sequence[Step]) -> frozenset[bytes]:
    """The folders that a file which the plan acts on lies below."""
    found: set[bytes] = set()
    for step in steps:
        folder = step.path.rpartition(b"/")[0] if step.acts and not _is_folder(step) else b""
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition(b"/")[0]
    return frozenset(found)


def _is_folder(step: Step) -> bool:
    kinds = {state.kind for state in (step.ours, step.target) if isinstance(state, Present)}
    return kinds == {"dir"}


def _is_shown(step: Step, above: frozenset[bytes]) -> bool:
    """Folders are told by their files, unless they stand for themselves (an empty one, a mode); reflogs are told by git's lines."""
    if step.note == "reflog":
        return False
    if not _is_folder(step):
        return True
    if step.verb == RESTORED:
        return True
    return step.verb == REMOVED and step.path not in above


def _befores(session: Session, parts: Sequence[Piece]) -> dict[bytes, Snapshot]:
    """For each path the snapshot before the oldest piece that changed it."""
    found: dict[bytes, Snapshot] = {}
    for piece in parts:
        before = Snapshot(session.log.odb, piece.before)
        for path in piece.paths:
            found.setdefault(path, before)
    return found


def seen_in_long_calls(session: Session, parts: Sequence[Piece]) -> frozenset[bytes]:
    """Paths found changed around a call that ran long and named none: the user may have written one of them (design 5.4 rule 4).

    A short call that was cut out of a long ``run`` at a pause is as long as the run: in the pause before it the user may have written.
    """
    found: set[bytes] = set()
    for piece in parts:
        record = session.log.find(piece.operation)
        if record is not None and record.declared is None and max(record.duration_ms, record.running_ms) > LONG_CALL_MS:
            found.update(piece.paths)
    return frozenset(found)


def _counted(contents: Contents, lines: Sequence[PathLine], steps: Sequence[Step]) -> list[PathLine]:
    """The lines of a dry run with the number of text lines that would come and go."""
    acting = {step.path: step for step in steps if step.acts}
    left = BYTES_COUNTED
    found: list[PathLine] = []
    for line in lines:
        step = acting.get(line.path)
        states: list[PathState] = [step.ours, step.target] if step is not None and left > 0 else []
        if states and not any(isinstance(state, Unknown) for state in states):
            left -= sum(contents.size(state) for state in states)
            counts = count_lines(contents, states[0], states[1])
            line = line if counts is None else replace(line, added=counts[0], deleted=counts[1])
        found.append(line)
    return found


def _git_notes(session: Session, whole: Whole, outcome: Outcome | None, is_kept: bool) -> list[str]:
    """What was done, or in a dry run would be done, to git's state, with the number of commits that this moves a branch by."""
    notes = list(outcome.notes) if outcome is not None else [note for _, plan in whole.git for note in plan.notes]
    for member, plan in whole.git:
        if outcome is None:
            notes += _of_directory(member, plan)
        if plan.index and plan.now.index and not plan.notes and not is_kept:
            notes.append(f"index: {len(plan.index)} {'entry' if len(plan.index) == 1 else 'entries'} as before")
        moved = commits_moved(session.log.odb, plan.now, plan.target)
        group = group_note(plan.now, plan.target)
        if moved and group in notes:
            notes[notes.index(group)] = f"{group}, {moved}"
    return notes


def _of_directory(member: MemberPlace, plan: GitPlan) -> list[str]:
    """What a plan would do to a whole git directory."""
    words = {"laid back": plan.lay_back, "removed": plan.take_away, "repaired": plan.repair}
    top = os.fsdecode(member.common if plan.repair else member.top)
    return [f"{top} {word}" for word, applies in words.items() if applies]


def _line(report: UndoReport, step: Step, before: Snapshot, long: frozenset[bytes]) -> PathLine:
    note, reason, size = step.note, "", None
    code = note.partition(":")[0]
    state = next((s for s in (step.ours, step.target) if isinstance(s, Unknown)), None)
    if step.verb == NOT_COVERED:
        reason = code
        digits = step.note.partition(":")[2]
        size = int(digits) if digits.isdigit() and int(digits) else (state.size if state else None) or None
        gone = isinstance(step.ours, Absent) and isinstance(before.state(step.path), Unknown)
        note = f"{reason_text(code, size or 0)}; {'gone, cannot be restored' if gone else 'left as it is'}"
    elif step.verb == KEPT:
        reason = "edited-since"
    elif step.verb == REMOVED and not note:
        is_run = bool(report.titles) and all(title.command for title in report.titles)
        note = "" if report.action == "redo" else f"created by the {'command' if is_run else 'agent'}"
    elif step.verb == MERGED and not note:
        note = "your later changes stay"
    elif step.verb == RESTORED and not note and (mode := _mode_note(step)):
        note = mode
    elif not note and before.area(step.path) == "private" and not step.path.startswith(b"/"):
        note = "ignored by git"
    if step.acts and step.path in long:
        note = f"{note}, changed during a long call" if note else "changed during a long call"
    folder = _is_folder(step) or reason in ("ignored-directory", "mount-point")
    return PathLine(_VERBS[step.verb], step.path, note, reason, size=size, folder=folder)


def _mode_note(step: Step) -> str:
    """What a step does that leaves the content alone."""
    ours, target = step.ours, step.target
    if isinstance(ours, Present) and isinstance(target, Present) and (ours.kind, ours.oid) == (target.kind, target.oid):
        return f"mode {ours.mode:o} -> {target.mode:o}"
    return ""


def _progress(session: Session) -> Any:
    def tell(done: int, total: int) -> None:
        if session.on_progress is not None:
            with contextlib.suppress(OSError):
                session.on_progress("setting files back", done, total)

    return tell
