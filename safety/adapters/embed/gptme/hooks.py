"""What we do at gptme's moments. Each is a hook of one of our bundles (`specs`)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from safety.adapters.embed.gptme import conversations, takeover
from safety.adapters.embed.gptme.running import ENDS, ends, wrap


def session_starts(logdir: Any, workspace: Any = None, initial_msgs: Any = None) -> Iterator[Any]:
    conversation = conversations.at(logdir, workspace)
    session = conversation.session
    if session is None:
        return
    takeover.take_late(session)
    if not conversation.is_part:
        from safety.runtime.inherit import hand_down

        hand_down(session.id)
        _know_instructions(conversation)
    if not conversation.is_sub:
        takeover.introduce(conversation)
    conversation.to_user()
    yield from conversation.to_model()


def session_ends(manager: Any) -> None:
    conversation = conversations.of(manager)
    session = conversation.session
    if session is not None and not conversation.is_part:
        if conversation.is_sub:
            session.close_turn()
        else:
            session.end()
    conversation.to_user()
    conversations.forget(conversation)


def turn_begins(manager: Any) -> Iterator[Any]:
    """gptme calls it for each message in the user's name; what gptme itself says in that name begins no turn of the user's."""
    conversation = conversations.of(manager)
    session = conversation.session
    if session is None or conversation.is_part:
        return
    said = manager.log[-1].content if manager.log else ""
    conversation.goes_on = is_gptmes_own(said)
    if not conversation.goes_on:
        conversation.prompt = said
        session.messages.extend(session.turn_start(said).messages)
    conversation.to_user()
    yield from conversation.to_model()


def step_begins(manager: Any) -> Iterator[Any]:
    yield from conversations.of(manager).to_model()


def tool_begins(data: Any) -> None:
    """Tools that were loaded after us, as those of MCP servers are, are wrapped when they are first called."""
    from gptme.tools import get_tool

    tool = get_tool(data.tool_use.tool) if data.tool_use is not None else None
    if tool is not None:
        wrap(tool)


def tool_ended(data: Any) -> Iterator[Any]:
    conversation = conversations.current()
    if conversation is not None:
        yield from conversation.to_model()


def cwd_changed(old_cwd: str, new_cwd: str) -> Iterator[Any]:
    conversation = conversations.current()
    if conversation is not None and conversation.session is not None:
        conversation.session.cwd_changed(os.fsencode(old_cwd), os.fsencode(new_cwd))
        conversation.to_user()
        yield from conversation.to_model()


def turn_ended(manager: Any) -> Iterator[Any]:
    """The turn's end: the checks and the commit. What fails is kept for `loop_goes_on`, which is where gptme can be sent back to work."""
    from gptme.hooks import StopPropagation

    conversation = conversations.of(manager)
    session = conversation.session
    if session is None or conversation.is_part:
        return
    cut = _cut(manager.log)
    if cut == "interrupted" or conversation.is_sub:
        session.close_turn()
    elif cut == "limit":
        session.end()
    elif not _has_open_tool(manager.log):  # gptme-server asks before the tools of a message have run
        conversation.feedback = ends(conversation)
        if conversation.feedback:
            yield StopPropagation()
    conversation.to_user()


def loop_goes_on(manager: Any, prompt_queue: Any) -> Iterator[Any]:
    """Sends the model back to work, before whatever the user has lined up; nobody else has to prod it then."""
    from gptme.hooks import StopPropagation
    from gptme.message import Message

    conversation = conversations.of(manager)
    if conversation.feedback:
        prompt_queue.insert(0, Message("system", conversation.feedback))
        conversation.feedback = ""
        yield StopPropagation()


def generation_begins(messages: Any) -> Iterator[Any]:
    """gptme ends the conversation here once ``complete`` stands in the last reply, carried out or not: not if its work is sent back."""
    from gptme.hooks import StopPropagation
    from gptme.logmanager import LogManager
    from gptme.message import Message

    manager = LogManager.get_current_log()
    if manager is None or not _says_complete(messages):
        return
    conversation = conversations.of(manager)
    if not conversation.leads:
        return
    if not conversation.held and (reason := ends(conversation)):
        conversation.held = True
        message = Message("system", reason)
        manager.append(message)
        yield message
    if conversation.held:
        conversation.held = False
        yield StopPropagation()


#: What gptme prods the model with in the user's name (its tools/complete.py). The tag alone does not tell: a user may type it.
_PRODS = re.compile(
    r"<system>(?:"
    r"No tool call detected\. Please continue with a tool call, or use `complete` if done\."
    r"|No tool call detected in last message\. You have incomplete todos:\n.*remove them before finishing\."
    r"|No tool call detected in last message\. Did you mean to finish\? .*to end the session\."
    r"|You appear stuck: the same tool call \(`.* if you are genuinely blocked\."
    r")</system>",
    re.DOTALL,
)


def is_gptmes_own(text: str) -> bool:
    """Whether a message in the user's name is gptme's own prodding."""
    return _PRODS.fullmatch(text) is not None


# -- reading gptme's log -----------------------------------------------------------------------------------------------------


def _since_reply(log: Any) -> Iterator[Any]:
    for message in reversed(log.messages):
        if message.role in ("assistant", "user"):
            return
        yield message


def _cut(log: Any) -> str:
    """Why the turn was cut off, as gptme notes it after the last reply; empty if it was not."""
    from gptme.constants import DECLINED_CONTENT, INTERRUPT_CONTENT

    for message in _since_reply(log):
        if not message.call_id and message.content in (INTERRUPT_CONTENT, DECLINED_CONTENT):
            return "interrupted"
        if (message.metadata or {}).get("max_steps_stop"):
            return "limit"
    return ""


def _tool_uses(messages: Any) -> list[Any]:
    from gptme.tools import ToolUse

    for message in reversed(messages):
        if message.role == "assistant":
            return [use for use in ToolUse.iter_from_content(message.content) if use.is_runnable]
        if message.role == "user":
            break
    return []


def _has_open_tool(log: Any) -> bool:
    return log.messages[-1].role == "assistant" and bool(_tool_uses(log.messages)) if log.messages else False


def _says_complete(messages: Any) -> bool:
    return any(use.tool == ENDS for use in _tool_uses(messages))


def _know_instructions(conversation: Any) -> None:
    """gptme has given its model the instruction files of the start itself: they are known, and not sent again."""
    from gptme.prompts import _loaded_agent_files_var

    session = conversation.session
    told = len(session.notices)
    session.started(os.fsencode(conversation.workspace))
    del session.notices[told:]  # what is not sent at the start, gptme has sent
    known = _loaded_agent_files_var.get() or ()
    loaded = session.conversations.load(session.id).instructions.get("records", ())
    if all(record["realpath"] in known for record in loaded):
        session.messages.clear()
