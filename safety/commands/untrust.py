"""``untrust``: takes trust back, also where the default is to trust."""

from __future__ import annotations

import os

from safety import trust as book
from safety.commands.args import UntrustArgs
from safety.commands.report import Report, TextReport
from safety.plumbing.repo import find_root
from safety.session import Session


def run(session: Session, args: UntrustArgs) -> Report:
    """Gives a TextReport. Raises TrustFileBroken."""
    root = find_root(session.cwd) or session.root
    was = book.untrust(session.place.home, root, session.now_ms())
    told = f"{os.fsdecode(root)} is not trusted {'any more' if was else 'now'}: its checks and hooks do not run."
    return TextReport(root=session.root, lines=(told,), data={"root": os.fsdecode(root), "was_trusted": was})
