"""The commit at a turn's end, and ``/commit``: HEAD and the agent's change, nothing of the user's. Off unless asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from safety.hooks import priorities
from safety.hooks.events import HookType
from safety.session import Session
from safety.tools.spec import BadCommand, HookSpec, ToolSpec

if TYPE_CHECKING:
    from safety.commands.report import Report


def turn_ends(session: Session) -> None:
    """Tells the user, never the model: what it could do about a refused commit is not to commit by itself ([gate] A7)."""
    if session.is_run or not session.settings.autocommit_enabled:
        return
    from safety.commands import commit  # loaded when a commit is due, not for each event
    from safety.commands.args import CommitArgs

    ran = bool(session.sessions.load(session.id).checks.get("passed"))
    done = commit.commit(session, CommitArgs(judged=True, checked=ran, session=session.id))
    if not done.nothing:
        known = session.told_once(done.once)
        session.notices.extend(f"git-safety: {text}" for text in done.told if text not in known)


def typed(session: Session, words: Sequence[str]) -> Report:
    """``/commit [--dry-run] [MESSAGE...]``."""
    from safety.commands import commit
    from safety.commands.args import CommitArgs

    options = [word for word in words if word.startswith("-")]
    if options not in ([], ["--dry-run"]):
        raise BadCommand("it is typed /commit [--dry-run] [MESSAGE]", "git safety commit -h")
    message = " ".join(word for word in words if not word.startswith("-"))
    return commit.run(session, CommitArgs(message=message, dry_run=bool(options), session=session.id))


TOOL = ToolSpec(
    name="autocommit",
    desc="Commits what the agent changed in a turn, after its checks passed; /commit does it when asked.",
    hooks={"turn_post": HookSpec(HookType.TURN_POST, turn_ends, priorities.AUTOCOMMIT, {"role": "guard"})},
    commands={"commit": typed},
)
