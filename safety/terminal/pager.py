"""The pager, found as git finds it: GIT_PAGER, core.pager, PAGER, less."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from safety.plumbing.run import Git


def git_preferences(environ: Mapping[str, str], cwd: bytes) -> dict[str, str]:
    """The user's ``core.pager`` and ``color.ui``, by lower-case name; one start of git. Empty when git has nothing to say."""
    wanted = ["config", "--show-scope", "--get-regexp", r"^(core\.pager|color\.ui)$"]
    found = Git(environ).user(cwd, wanted, check=False, deadline_s=5).stdout.decode("utf-8", "replace")
    rows = [row.split("\t", 1) for row in found.splitlines() if "\t" in row]
    # Scope "command" is what we ourselves give to every call.
    return {setting.partition(" ")[0].lower(): setting.partition(" ")[2] for scope, setting in rows if scope != "command"}


def command(environ: Mapping[str, str], configured: str | None) -> str:
    """The shell command of the user's pager; empty when there is none (``cat`` or an empty value). ``configured``: core.pager."""
    wanted = environ.get("GIT_PAGER", configured)
    if wanted is None:
        wanted = environ.get("PAGER", "less")
    return "" if wanted.strip() in ("", "cat") else wanted


def page(command: str, text: str, environ: Mapping[str, str]) -> None:
    """Shows ``text`` through ``command``, a line for the shell. Ends quietly when the reader leaves early."""
    child = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, env={"LESS": "FRX", "LV": "-c", **environ})
    try:
        child.communicate(text.encode("utf-8", "backslashreplace"))
    except BrokenPipeError:
        pass
    except KeyboardInterrupt:
        # The key belongs to the pager, which goes on; so wait for it.
        child.wait()
