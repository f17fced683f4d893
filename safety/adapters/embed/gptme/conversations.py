"""gptme's conversations and the session of each.

A conversation is known by its log folder; hooks are handed it, a running tool finds it in gptme's context. A sub-agent, be it a thread
or a process of its own, works in its parent's turn: its session has the parent's id, and only the parent opens and ends turns.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safety.faults import SafetyError

if TYPE_CHECKING:
    from safety.hooks.confirm import Auto
    from safety.session import Session

log = logging.getLogger(__name__)


@dataclass
class Removed:
    """Messages that an undo took out of the log, and of which turn."""

    handle: str
    messages: list[Any]


@dataclass
class Conversation:
    """One conversation. ``session`` is None where none could be opened.

    ``is_sub``: a sub-agent's; ``is_part``: whose calls belong to its parent's turn. ``prompt`` is what the user said last, ``goes_on``
    that gptme has prodded the model since. ``feedback`` waits to be sent to the model, ``held``: the model said ``complete`` and was
    refused. ``removed``: for redo, newest last.
    """

    logdir: Path
    workspace: Path
    session: Session | None = None
    is_sub: bool = False
    is_part: bool = False
    prompt: str = ""
    goes_on: bool = False
    feedback: str = ""
    held: bool = False
    auto: Auto | None = None
    removed: list[Removed] = field(default_factory=list)
    told: set[str] = field(default_factory=set)

    @property
    def leads(self) -> bool:
        """Whether its turns are its own to end, with checks and a commit."""
        return not (self.is_sub or self.is_part)

    def to_user(self) -> None:
        """Tells the user what has gathered."""
        for text in self.session.take_notices() if self.session is not None else ():
            say(text)

    def to_model(self) -> Iterator[Any]:
        """What has gathered for the model, as hidden messages of gptme's."""
        from gptme.message import Message

        for text in self.session.take_messages() if self.session is not None else ():
            yield Message("system", text, hide=True)

    def failed(self, fault: Exception) -> None:
        """Tells the user of a fault of ours, once; the log has where it was."""
        log.error("git-safety failed", exc_info=fault)
        self.once(f"git-safety: not protected: {type(fault).__name__}: {fault}")

    def once(self, text: str) -> None:
        if text not in self.told:
            self.told.add(text)
            say(text)


_known: dict[Path, Conversation] = {}
_lock = threading.RLock()


def at(logdir: Any, workspace: Any = None) -> Conversation:
    """The conversation whose log lies there; its session is opened for ``workspace`` when it is first asked for."""
    folder = Path(logdir).resolve()
    with _lock:
        found = _known.get(folder)
        if found is None:
            found = _known[folder] = Conversation(folder, Path(workspace or os.getcwd()))
        if found.session is None:
            _open(found)
        return found


def of(manager: Any) -> Conversation:
    return at(manager.logdir, manager.workspace)


def current() -> Conversation | None:
    """The conversation in whose context this runs; None where gptme has none."""
    from gptme.logmanager import LogManager

    manager = LogManager.get_current_log()
    return None if manager is None else of(manager)


def forget(conversation: Conversation) -> None:
    with _lock:
        _known.pop(conversation.logdir, None)
    if conversation.session is not None:
        conversation.session.close()


def is_interactive() -> bool:
    """Whether a person sits before this conversation's terminal."""
    from gptme.config import get_config

    chat = get_config().chat
    return bool(chat and chat.interactive) and threading.current_thread() is threading.main_thread() and os.isatty(0)


def say(text: str) -> None:
    """Tells the user; where gptme's output is for a machine, its log."""
    from gptme.message import is_output_json, is_output_quiet

    if is_output_json() or is_output_quiet():
        log.warning("%s", text)
    else:
        show(text)


def show(text: str) -> None:
    from gptme.util import console

    console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)


def fails_closed() -> bool:
    from safety.runtime import inherit

    return inherit.fails_closed()


# -- opening -----------------------------------------------------------------------------------------------------------------


def _open(conversation: Conversation) -> None:
    """Opens the session, if it can be opened; else the user is told why, once."""
    from safety.adapters.embed.gptme.asking import prepare
    from safety.session import harness_id

    try:
        parent, conversation.is_sub = _parent(conversation.logdir)
        own = _session(conversation, harness_id(conversation.logdir.name))
        if parent and _is_member(own, parent):
            own.close()
            own, conversation.is_part = _session(conversation, parent), True
    except SafetyError as fault:
        conversation.once(f"git-safety: not protected: {fault.sentence}")
        return
    except Exception as fault:  # noqa: BLE001 - a fault of ours, or a gptme that is not as we know it: it has to work without us
        conversation.failed(fault)
        return
    conversation.session = own
    prepare(conversation, own)


def _session(conversation: Conversation, session_id: str) -> Session:
    from gptme.llm.models import get_default_model

    from safety.runtime.open import open_session

    model = get_default_model()
    agent = {"name": "gptme", "model": model.full} if model is not None else {"name": "gptme"}
    return open_session(os.fsencode(conversation.workspace), session_id, agent=agent)


def _is_member(own: Session, parent: str) -> bool:
    """Whether the parent works in the same workspace, and on a turn."""
    return own.sessions.load(parent).is_open


def _parent(logdir: Path) -> tuple[str, bool]:
    """The id of the session that this conversation is a sub-agent of, empty if none is known; and whether it is a sub-agent at all."""
    from gptme.tools.subagent import types
    from gptme.tools.subagent.execution import get_current_agent_id

    from safety.runtime.inherit import handed_down
    from safety.session import harness_id

    is_sub = get_current_agent_id() is not None
    spawned = [agent for agent in list(types._subagents) if Path(agent.logdir).resolve() == logdir]
    for agent in spawned:
        parent = _known.get(Path(agent.parent_logdir).resolve()) if agent.parent_logdir else None
        if parent is not None and parent.session is not None:
            return parent.session.id, True
    inherited = handed_down()
    return ("" if inherited == harness_id(logdir.name) else inherited), is_sub or bool(spawned)
