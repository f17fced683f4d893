"""The gate: at a turn's end the repository's own checks judge the agent's files; a failure stops what would commit (design 7).

It runs where a commit of ours would follow, or where ``gate.enabled`` is ``on``.
"""

from __future__ import annotations

from collections.abc import Iterator

from safety.hooks import priorities
from safety.hooks.answers import StopPropagation
from safety.hooks.events import HookType
from safety.hooks.message import Message
from safety.session import Session
from safety.tools.spec import HookSpec, ToolSpec
from safety.types import Decision


def turn_opens(session: Session) -> None:
    session.renew_trust()


def turn_ends(session: Session) -> Iterator[Message | Decision | StopPropagation]:
    settings = session.settings
    wanted = settings.gate_enabled == "on" or (settings.gate_enabled == "auto" and settings.autocommit_enabled)
    if session.is_run or not wanted:
        return
    from safety.commands.check import judge  # loaded when a turn ends, not for each event

    try:
        verdict = judge(session, session.id)
    except Exception as fault:  # noqa: BLE001 - a fault of ours stops the commit, and is not sent to the model as one of its code
        session.notices.append(f"git-safety: the checks could not be run, nothing is committed: {type(fault).__name__}: {fault}")
        yield StopPropagation()
        return
    session.notices.extend(f"git-safety: {text.removeprefix('git-safety: ')}" for text in verdict.notices)
    yield from (Message("system", text) for text in verdict.messages)
    if verdict.feedback:
        yield Decision("deny", verdict.feedback)
    if verdict.blocks:
        yield StopPropagation()


TOOL = ToolSpec(
    name="precommit",
    desc="At a turn's end the repository's own checks judge the files that the agent changed.",
    hooks={
        "turn_pre": HookSpec(HookType.TURN_PRE, turn_opens, priorities.TRUST),
        "turn_post": HookSpec(HookType.TURN_POST, turn_ends, priorities.GATE, {"role": "guard"}),
    },
)
