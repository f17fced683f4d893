"""``recover``: finishes an undo, redo or restore that was interrupted."""

from __future__ import annotations

from safety.commands import carry
from safety.commands.args import RecoverArgs
from safety.commands.ondisk import on_disk
from safety.commands.report import PathLine, Report, TextReport, UndoReport, Verb
from safety.session import Session
from safety.store.files import Tree
from safety.store.journal import read_journal
from safety.store.restore import MERGED, REMOVED, RESTORED

_VERBS: dict[str, Verb] = {RESTORED: "restored", REMOVED: "removed", MERGED: "merged"}
_LARGEST = 1 << 30


def run(session: Session, args: RecoverArgs) -> Report:
    """Says what was finished; exit code 4 where nothing was interrupted. Raises UndoRefused, WorkspaceBusy."""
    if args.dry_run:
        return _left(session)
    with session.locked():
        finished = carry.recover(session)
    if not finished:
        return UndoReport(root=session.root, action="recover", nothing="no undo was interrupted", exit_code=4)
    return TextReport(
        root=session.root, lines=tuple(text[:1].upper() + text[1:] + "." for text in finished), data={"finished": list(finished)}
    )


def _left(session: Session) -> Report:
    """What an interrupted undo has still to do, by the journal and the disk of now."""
    found = read_journal(session.place)
    if found is None:
        return UndoReport(root=session.root, action="recover", nothing="no undo was interrupted", exit_code=4, dry_run=True)
    job = found[0]
    lines: list[PathLine] = []
    with Tree(session.root) as tree:
        for step in job.steps:
            state = on_disk(tree, step.path, _LARGEST)
            if state == step.ours:
                lines.append(PathLine(_VERBS[step.verb], step.path))
            elif state != step.target:
                lines.append(PathLine("kept", step.path, "changed since", "edited-since"))
    lines += [PathLine("git", note=note) for _, plan in job.git for note in plan.notes]
    kept = any(line.verb == "kept" for line in lines)
    return UndoReport(
        root=session.root,
        action="recover",
        subject=f"an interrupted {job.record.get('kind', 'undo')}",
        lines=tuple(lines),
        dry_run=True,
        exit_code=3 if kept else 0,
    )
