"""The guard: asks before what the snapshot just taken cannot bring back, and before nothing else ([guard] 0)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from safety.hooks import priorities
from safety.hooks.events import HookType
from safety.session import Call, Session
from safety.tools.spec import HookSpec, ToolSpec
from safety.types import Decision


def confirm(tool_use: Call, preview: str | None, workspace: Path | None, session: Session) -> Decision | None:
    if not session.settings.guard_enabled or (tool_use.paths == () and not _shows_a_secret(tool_use, session)):
        return None
    if tool_use.paths and not session.uncaptured and all(_is_plain(path, session) for path in tool_use.paths):
        return None
    try:
        from safety.commands.judging import judgement  # loaded when there is something to judge
    except ImportError as fault:  # half an installation: as when the analysis fails, but without the words to look for
        return Decision("ask", f"git-safety: the guard cannot be loaded ({fault})")
    found = judgement(session, tool_use)
    if found.verdict.action == "allow":
        return None
    unrecoverable = not found.verdict.recoverable
    if session.stopped_before(found.effect, tool_use.id):
        return Decision("deny", f"{found.denial}\nIt was stopped before in this turn.", unrecoverable=unrecoverable)
    if found.verdict.action == "deny":
        return Decision("deny", found.denial, unrecoverable=unrecoverable)
    return Decision("ask", f"{found.question} Allow it: git safety allow --once {found.id}", unrecoverable=unrecoverable)


def _shows_a_secret(call: Call, session: Session) -> bool:
    """Whether a call that changes nothing reads what may be a credential, by its name or by the name that a link leads to."""
    if not call.reads:
        return False
    from safety.policy.secret_paths import is_secret_path

    home = session.environ.get("HOME", "")
    return any(is_secret_path(os.fsdecode(name), home) for path in call.reads for name in (path, os.path.realpath(path)))


def _is_plain(path: bytes, session: Session) -> bool:
    """Whether a declared path is an ordinary file of the workspace that the snapshot holds, whatever is done to it."""
    root = session.root + b"/"
    if not path.startswith(root) or b"/.git" in path or os.path.realpath(path) != path:
        return False
    try:
        info = os.lstat(path)
    except OSError:
        return True
    return stat.S_ISREG(info.st_mode) and info.st_size <= session.place.limits.max_file


TOOL = ToolSpec(
    name="guard",
    desc="Asks before what cannot be undone, and before nothing else.",
    hooks={"confirm": HookSpec(HookType.TOOL_CONFIRM, confirm, priorities.GUARD, {"role": "guard"})},
)
