"""``git safety version`` with words after it; the bare form is answered by the door itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from safety.release import VERSION
from safety.terminal.arguments import UsageError


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Prints the version, with ``--json`` as an object."""
    if list(argv) == ["--json"]:
        sys.stdout.write(json.dumps({"report": "version", "version": VERSION}) + "\n")
    elif argv:
        raise UsageError("version takes nothing but --json", "git safety version")
    else:
        sys.stdout.write(f"git-safety {VERSION}\n")
    return 0
