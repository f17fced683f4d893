"""``git-safety hook``: hands the event on standard input to the adapter of the agent that sent it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Routes by ``--agent``; the adapter reads standard input, answers on standard output and gives the exit code."""
    from safety.adapters.wire import generic

    return generic.main(argv, environ, sys.stdin.buffer, sys.stdout.buffer, sys.stderr)
