"""``agents``: the instruction files that the model was given, with scope, size, when and why ([gate] C6)."""

from __future__ import annotations

import os

from safety.commands.args import AgentsArgs
from safety.commands.report import Report, TextReport
from safety.instructions.loaded import Loaded, listing
from safety.session import Session


def run(session: Session, args: AgentsArgs) -> Report:
    """Gives a TextReport; exit code 4 where none was given."""
    heard = sorted(session.conversations.all(), key=lambda state: state.heard_ms)
    wanted = args.session or (heard[-1].session if heard else session.id)
    rows = listing(Loaded.from_json(session.conversations.load(wanted).instructions))
    lines = tuple(
        f"{os.fsdecode(row.path)}  for {os.fsdecode(row.scope) or '.'}  {row.bytes} bytes  {row.sha[:12]}  {row.why}"
        for row in rows
    )
    data = {
        "files": [
            {"path": os.fsdecode(row.path), "scope": os.fsdecode(row.scope), "bytes": row.bytes, "why": row.why} for row in rows
        ]
    }
    return TextReport(
        root=session.root, lines=lines or ("No instruction file was given to the model.",), data=data, exit_code=0 if rows else 4
    )
