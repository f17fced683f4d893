"""AGENTS.md and its like: what governs the folder an agent works in reaches the model when it gets there ([gate] C6, C7)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from safety.hooks import priorities
from safety.hooks.events import HookType, ToolExecutePreData
from safety.hooks.message import Message
from safety.plumbing.repo import find_root
from safety.session import Call, Session
from safety.tools.spec import HookSpec, ToolSpec

if TYPE_CHECKING:
    from safety.commands.report import Report

USER_FILE = b"AGENTS.md"  # beside the user's settings
MOST_FOLDERS = 20  # of one call; a call that names more files is no edit of a few


def starts(session: Session, workspace: Path | None = None) -> Iterator[Message]:
    return _tell(session, os.fsencode(workspace) if workspace is not None else session.root, "session_start")


def moved(session: Session, old_cwd: str, new_cwd: str) -> Iterator[Message]:
    return _tell(session, os.fsencode(new_cwd), "session_start" if old_cwd == new_cwd else "cwd_changed")


def touches(data: ToolExecutePreData, session: Session) -> Iterator[Message]:
    """A file that a tool is about to change may lie under rules that the model has not seen."""
    call: Call = data.tool_use
    folders = dict.fromkeys(os.path.dirname(path) for path in call.paths or ())
    for folder in session.first_touch([folder for folder in folders if os.path.isdir(folder)][:MOST_FOLDERS]):
        yield from _tell(session, folder, "file_touched")


def turn_opens(session: Session) -> Iterator[Message]:
    """What was told once and has changed since is told again; where nothing was told, nothing is looked up."""
    if session.conversations.load(session.id).instructions:
        yield from _tell(session, session.root, "changed")


def _tell(session: Session, cwd: bytes, event: str) -> Iterator[Message]:
    given = session.settings
    if given.agents_md_enabled == "off":
        return
    from safety.instructions.inject import InstructionSettings, instructions_for
    from safety.instructions.loaded import Loaded

    names = tuple(name.encode() for name in given.agents_md_names) or InstructionSettings().names
    settings = InstructionSettings(
        given.agents_md_enabled,
        names,
        given.agents_md_event_max_kb,
        given.agents_md_session_max_kb,
        given.agents_md_walk_above_root,
    )
    root = find_root(cwd)
    state = session.sessions.load(session.id)
    user_file = os.path.join(session.config_folder, USER_FILE)
    home = session.environ.get("HOME")
    injection = instructions_for(
        cwd,
        event,
        Loaded.from_json(session.conversations.load(session.id).instructions),
        settings,
        root=root,
        trusted=not session.distrust(root or cwd),
        boundary=lambda: os.urandom(4).hex(),
        user_file=user_file if os.path.isfile(user_file) else None,
        agent_changed=session.agent_changed,
        ignored=partial(_ignored, session, root) if root is not None else None,
        home=os.fsencode(home) if home else None,
        turn=str(state.turn),
        time_ms=session.now_ms(),
    )
    session.keep_instructions(injection.loaded.to_json())
    session.notices.extend(f"git-safety: {text}" for text in injection.notices)
    for text in injection.messages:
        yield Message("system", text)


def _ignored(session: Session, root: bytes, folders: Sequence[bytes]) -> Collection[bytes]:
    """Those of some folders of a repository that git ignores."""
    from safety.plumbing.ignore import ignored_paths
    from safety.plumbing.run import GitError

    try:
        return ignored_paths(session.place.git, root, folders)
    except GitError:  # then none is left out
        return frozenset()


def typed(session: Session, words: Sequence[str]) -> Report:
    """``/agents``."""
    from safety.commands import agents
    from safety.commands.args import AgentsArgs

    return agents.run(session, AgentsArgs(session=session.id))


TOOL = ToolSpec(
    name="agents_md_inject",
    desc="Tells the model the AGENTS.md files that govern where it works, once each, closest last.",
    hooks={
        "start": HookSpec(HookType.SESSION_START, starts, priorities.AGENTS_MD),
        "cwd": HookSpec(HookType.CWD_CHANGED, moved, priorities.AGENTS_MD),
        "pre": HookSpec(HookType.TOOL_EXECUTE_PRE, touches, priorities.AGENTS_MD, {"role": "record"}),
        "turn": HookSpec(HookType.TURN_PRE, turn_opens, priorities.AGENTS_MD),
    },
    commands={"agents": typed},
)
