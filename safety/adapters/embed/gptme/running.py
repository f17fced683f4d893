"""A tool's ``execute``, wrapped: the snapshot and the guard before it, what it changed after it, whether it worked or raised."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from safety.adapters.embed.gptme import conversations
from safety.adapters.embed.gptme.asking import Running, running
from safety.adapters.embed.gptme.calls import Given, given_back, input_of, paths_of, reads_of

if TYPE_CHECKING:
    from safety.adapters.embed.gptme.conversations import Conversation
    from safety.session import Call, Session

ENDS = "complete"  # the tool with which a model ends the conversation


def wrap(tool: Any) -> None:
    """Puts ours around the tool's ``execute``, once; gptme's own description of it stays. A tool without one is left alone."""
    inner = tool.execute
    if inner is None or hasattr(inner, "git_safety"):
        return

    @functools.wraps(inner)
    def execute(code: str | None = None, args: Any = None, kwargs: Any = None) -> Iterator[Any]:
        yield from run(tool, inner, Given(code, args, kwargs))

    execute.git_safety = True  # type: ignore[attr-defined]
    object.__setattr__(tool, "execute", execute)  # ToolSpec is frozen


def wrap_loaded() -> None:
    from gptme.tools import get_tools

    for tool in get_tools():
        wrap(tool)


def run(tool: Any, inner: Callable[..., Any], given: Given) -> Iterator[Any]:
    """One call. Outside of a conversation, and where we are not able to protect it, the tool runs as it would without us."""
    from gptme.message import Message

    conversation = conversations.current()
    if conversation is None:
        yield from _results(inner, given)
    elif tool.name == ENDS and conversation.leads:
        if reason := ends(conversation):
            conversation.held = True
            yield Message("system", reason)
        else:
            yield from _results(inner, given)
    elif (call := _call(conversation, tool, given)) is not None and conversation.session is not None:
        yield from _protected(conversation, conversation.session, call, inner, given)
    elif (call is None or call.paths != ()) and conversations.fails_closed():
        yield Message("system", f"git-safety cannot protect this and fail_closed is set, so {tool.name} was not run.")
    else:
        yield from _results(inner, given)


def ends(conversation: Conversation) -> str:
    """Ends the turn; gives what the model has to do first, if its work is sent back."""
    feedback = conversation.session.turn_end() if conversation.session is not None else None
    conversation.to_user()
    return feedback.reason if feedback is not None else ""


def _protected(
    conversation: Conversation, session: Session, call: Call, inner: Callable[..., Any], given: Given
) -> Iterator[Any]:
    from gptme.message import Message

    from safety.session import Denied

    now = Running(conversation, session, call)
    before, texts, error = running.get(), [], None
    running.set(now)
    try:
        _same_prompt(conversation, session)
        try:
            allowed = session.allowed(now.call)
        except Denied as denied:
            if now.interrupted:
                raise KeyboardInterrupt from None
            yield Message("system", str(denied))
            return
        if allowed is not now.call.input:
            given = given_back(call.tool, given, allowed)
        try:
            for message in _results(inner, given):
                texts.append(message.content)
                yield message
        except GeneratorExit:  # whoever reads has enough
            raise
        except BaseException as fault:
            error = f"{type(fault).__name__}: {fault}"
            raise
        finally:
            session.post(now.call, "\n".join(texts) if error is None else None, error)
    finally:
        running.set(before)
        conversation.to_user()


def _call(conversation: Conversation, tool: Any, given: Given) -> Call | None:
    """The call as the session wants it; None where a fault of ours keeps us from telling. Its id is our own: a model may use one twice."""
    try:
        from safety.runtime.open import new_id
        from safety.session import Call

        named, cwd = input_of(tool.name, given), _cwd(conversation)
        reads = tool.read_only and not tool.is_mcp  # a server says of its own tools what it likes
        paths = paths_of(tool.name, named, reads=reads, cwd=cwd)
        return Call(f"{tool.name}-{new_id()}", tool.name, named, cwd, paths, reads=reads_of(tool.name, named, cwd))
    except Exception as fault:  # noqa: BLE001 - the tool has to run also where we fail
        conversation.failed(fault)
        return None


def _cwd(conversation: Conversation) -> bytes:
    """Where a tool works now: in a server each conversation has a folder of its own, else it is the process's."""
    from gptme.tools.shell import get_workspace_cwd

    try:
        return os.fsencode(get_workspace_cwd() or os.getcwd())
    except OSError:  # it is gone
        return os.fsencode(conversation.workspace)


def _same_prompt(conversation: Conversation, session: Session) -> None:
    """What the model does after gptme's own prodding is still what the user asked for."""
    if conversation.goes_on and conversation.leads:
        conversation.goes_on = False
        if not any(state.session == session.id for state in session.open_turns()):
            session.open_turn(conversation.prompt)


def _results(inner: Callable[..., Any], given: Given) -> Iterator[Any]:
    """The tool's messages: gptme's tools give one, several or none."""
    from gptme.message import Message

    result = inner(given.code, given.args, given.kwargs)
    if isinstance(result, Message):
        yield result
    elif result is not None:
        yield from result
