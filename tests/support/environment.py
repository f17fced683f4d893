"""An environment of one's own: home, configuration, state; nothing of the machine's but PATH."""

from __future__ import annotations

import os
import sys
from pathlib import Path

GITCONFIG = """\
[user]
	name = Dana
	email = dana@example.test
[init]
	defaultBranch = main
[advice]
	detachedHead = false
[protocol "file"]
	allow = always
[gc]
	auto = 0
"""


def isolated(folder: Path) -> dict[str, str]:
    """Makes a home below ``folder`` and gives the whole environment for commands that shall know no other."""
    home = folder / "home"
    (home / ".config").mkdir(parents=True, exist_ok=True)
    (home / ".gitconfig").write_text(GITCONFIG)
    return {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "NO_COLOR": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_SAFETY_HOME": str(folder / "state"),
        "GIT_SAFETY_DAEMON": "0",
    }
