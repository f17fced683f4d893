"""``allow``: lets one call pass that the guard stopped. For people; an agent that types it is stopped itself."""

from __future__ import annotations

from safety.commands.args import AllowArgs
from safety.commands.judging import allow_once
from safety.commands.report import Report, TextReport
from safety.session import Session


def run(session: Session, args: AllowArgs) -> Report:
    """Gives a TextReport."""
    allow_once(session, args.id)
    line = f"The call {args.id} may pass once within the next hour. Tell the agent to try again."
    return TextReport(root=session.root, lines=(line,), data={"allowed": args.id})
