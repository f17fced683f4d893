"""An agent for tests: a scripted model in a real session, and what it did."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from safety.agent import messages as m
from safety.agent.journal import Journal, open_journal
from safety.agent.loop import Loop
from safety.agent.scripted import Say, Scripted
from safety.hooks.answers import ElicitationResponse
from safety.hooks.events import EVENTS, HookType
from safety.hooks.message import Message
from safety.runtime.open import open_session
from safety.session import Session
from tests.support.repo import RepoBuilder

SESSION = "agent-1"


def opened(repo: RepoBuilder) -> Session:
    return open_session(os.fsencode(repo.root), SESSION, repo.env, {"name": "reference"})


def journal(repo: RepoBuilder) -> Journal:
    return open_journal(Path(repo.env["HOME"]) / "agent")


def loop(repo: RepoBuilder, *lines: Say, session: Session | None = None, **more: Any) -> Loop:
    return Loop(session or opened(repo), journal(repo), more.pop("model", None) or Scripted(lines), **more)


def play(repo: RepoBuilder, *lines: Say, prompts: Iterable[str] = ("do it",), **more: Any) -> list[m.Event]:
    """All that happens when the model says these lines."""
    return list(loop(repo, *lines, **more).run(prompts))


def call(tool: str, **given: str) -> Say:
    return Say("", ((tool, given),))


def results(events: Iterable[m.Event]) -> list[tuple[str, str]]:
    """Tool and status of each call that ended, those of sub-agents too."""
    flat = [event.event if isinstance(event, m.Inner) else event for event in events]
    return [(event.tool, event.status) for event in flat if isinstance(event, m.Ended)]


def listen_everywhere(session: Session, check: Callable[[HookType, dict[str, Any]], None]) -> None:
    """Registers a handler at every moment that is handed on what it was handed, by name. One answers, one goes on once."""
    heard: set[HookType] = set()

    def listener(moment: HookType) -> Any:
        def listen(*args: Any, **fields: Any) -> Any:
            fields.pop("session", None)
            check(moment, {**dict(zip(EVENTS[moment].positional, args, strict=True)), **fields})
            if moment is HookType.ELICIT:
                return ElicitationResponse.text("blue")
            if moment is HookType.LOOP_CONTINUE and moment not in heard:
                heard.add(moment)
                return Message("user", "and now the rest")
            return None

        return listen

    for moment in HookType:
        session.hooks.register("test.listener", moment, listener(moment))
