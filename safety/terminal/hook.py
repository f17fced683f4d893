"""``git-safety hook``: hands the event on standard input to the adapter of the agent that sent it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Routes by ``--agent``; the adapter reads standard input, answers on standard output and gives the exit code."""
    from safety.adapters.wire import generic

    words = list(argv)
    agent = (
        words[words.index("--agent") + 1]
        if "--agent" in words[:-1]
        else next((w[8:] for w in words if w.startswith("--agent=")), "")
    )
    if agent not in ("", "generic"):
        sys.stderr.write(
            f"git-safety: unknown-agent: there is no adapter for {agent!r}; the documented form is --agent generic\n"
        )
        return 1
    return generic.main(argv, environ, sys.stdin.buffer, sys.stdout.buffer, sys.stderr)
