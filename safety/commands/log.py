"""``log``: placeholder until its engineer's version lands."""

from __future__ import annotations

from safety.commands.args import LogArgs
from safety.commands.report import LogReport, Report
from safety.session import Session


def run(session: Session, args: LogArgs) -> Report:
    """An empty log."""
    return LogReport(root=session.root)
