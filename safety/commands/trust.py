"""``trust``: this repository's checks and hooks may run, and its instructions reach a model (design 7)."""

from __future__ import annotations

import os

from safety import trust as book
from safety.commands.args import TrustArgs
from safety.commands.report import Report, TextReport
from safety.plumbing.repo import find_root
from safety.session import Session

MOST_NAMED = 20


def run(session: Session, args: TrustArgs) -> Report:
    """Gives a TextReport; with ``listing`` exit code 4 where nothing is trusted. Raises TrustFileBroken."""
    home = session.place.home
    if args.listing:
        found = book.list_trusted(home)
        lines = tuple(
            f"{os.fsdecode(one.root)}  {len(one.files)} {'file' if len(one.files) == 1 else 'files'}" for one in found
        ) or ("Nothing is trusted.",)
        data = {"roots": [os.fsdecode(one.root) for one in found]}
        return TextReport(root=session.root, lines=lines, data=data, exit_code=0 if found else 4)
    one = book.trust(home, find_root(session.cwd) or session.root, session.now_ms())
    names = [os.fsdecode(path) for path in one.files]
    told = [f"Trusted {os.fsdecode(one.root)}: its checks and hooks run before a commit, its instructions reach the agent."]
    told += [f"  {name}" for name in names[:MOST_NAMED]]
    told += [f"  and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    told.append("When one of these changes, you are asked again." if names else "It has neither checks nor instructions yet.")
    return TextReport(root=session.root, lines=tuple(told), data={"root": os.fsdecode(one.root), "files": names})
