"""Tools of ours for a model: plain typed functions that give text and raise nothing, in the form that all frameworks take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from safety.adapters.embed.wrapping import MARK
from safety.faults import SafetyError

if TYPE_CHECKING:
    from safety.adapters.embed.net import Net

CHECK_LINES = 60


def offered(net: Net, undo: bool) -> list[Callable[..., str]]:
    """``safety_snapshot``, ``safety_check`` and ``safety_explain``; with ``undo`` also ``safety_undo``."""

    def safety_snapshot(path: str = "") -> str:
        """Take a file or folder into the safety snapshot, whatever its size, so that deleting or overwriting it can be undone.

        Args:
            path: The file or folder, relative to the project; empty takes the whole project.
        """
        return _said(lambda: _snapshot(net, path))

    def safety_check() -> str:
        """Run the project's own checks on the files that were changed so far, and tell what they found."""
        return _said(lambda: _check(net))

    def safety_explain(command: str) -> str:
        """Tell whether a shell command would be allowed, and what it would lose for good. Runs nothing.

        Args:
            command: The shell command to be judged.
        """
        return _said(lambda: _explain(net, command))

    def safety_undo(dry_run: bool = False) -> str:
        """Take back what you have changed in this turn or, if that is nothing, in the newest one that changed something.

        Args:
            dry_run: Only tell what would be taken back.
        """
        return _said(lambda: _undo(net, dry_run))

    tools: list[Callable[..., str]] = [safety_snapshot, safety_check, safety_explain, *([safety_undo] if undo else [])]
    for tool in tools:
        setattr(tool, MARK, net)
    return tools


def _said(work: Callable[[], str]) -> str:
    try:
        return work()
    except (SafetyError, OSError) as fault:
        return f"git-safety: {fault.message if isinstance(fault, SafetyError) else fault}"


def _snapshot(net: Net, path: str) -> str:
    from safety.commands import snapshot
    from safety.commands.args import SnapshotArgs
    from safety.commands.report import SnapshotReport

    home = net.session.environ.get("HOME", "")
    report = snapshot.run(net.session, SnapshotArgs(paths=net.absolute(path, home) if path else ()))
    assert isinstance(report, SnapshotReport)
    left = [f"not covered: {net.told_path(line.path)} {line.note}".rstrip() for line in report.lines]
    return "\n".join([f"Snapshot {report.handle}: {report.files} files.", *left])


def _check(net: Net) -> str:
    from safety.commands.check import judge
    from safety.session import checks_log

    session = net.session
    with session.locked():
        session.refresh()
        verdict = judge(session, session.id, asked=True)
    log = checks_log(session.place.state, session.sessions.load(session.id).turn)
    written = log.read_text("utf-8", "replace").splitlines()[-CHECK_LINES:] if verdict.blocks and log.exists() else []
    return "\n".join([*(verdict.notices or ("No checks had anything to look at.",)), *written])


def _explain(net: Net, command: str) -> str:
    from safety.commands import explain
    from safety.commands.args import ExplainArgs
    from safety.commands.report import TextReport

    report = explain.run(net.session, ExplainArgs(text=command))
    assert isinstance(report, TextReport)
    return "\n".join(report.lines)


def _undo(net: Net, dry_run: bool) -> str:
    done = net.undo(dry_run=dry_run)
    if done.nothing:
        return done.nothing
    told = [(name, getattr(done, name)) for name in ("restored", "removed", "merged", "kept", "not_covered")]
    lines = [f"{name.replace('_', ' ')}: {', '.join(paths)}" for name, paths in told if paths]
    return "\n".join([f"{'Would undo' if dry_run else 'Undid'} {done.handle}.", *lines, *done.git])
