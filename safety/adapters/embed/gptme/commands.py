"""``/undo`` and friends, typed into gptme. What they do is the session's; what becomes of the conversation's messages is told here."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from safety.adapters.embed.gptme import conversations
from safety.adapters.embed.gptme.conversations import Conversation, Removed
from safety.adapters.embed.gptme.hooks import is_gptmes_own

if TYPE_CHECKING:
    from safety.commands.report import UndoReport
    from safety.store.history import Turn

log = logging.getLogger(__name__)

_USAGE = "it is typed /undo [tN] [--files | --messages]"


def _handler(name: str, does: Callable[[Conversation, Any, Sequence[str]], None], says: str) -> Callable[[Any], Sequence[Any]]:
    def typed(ctx: Any) -> Sequence[Any]:
        conversation = conversations.of(ctx.manager)
        if conversation.session is None:
            _drop_command(ctx.manager)
            conversations.show("git-safety could not be opened, so there is nothing on record here")
        else:
            try:
                does(conversation, ctx.manager, ctx.args)
            except Exception as fault:  # noqa: BLE001 - gptme would end with its conversation
                log.error("git-safety: /%s failed", name, exc_info=fault)
                _drop_command(ctx.manager)
                conversations.show(f"git-safety: /{name} failed: {type(fault).__name__}: {fault}")
            for text in conversation.session.take_notices():
                conversations.show(text)
        return ()  # a message that is given back would have the model answer

    typed.__name__, typed.__doc__ = name, says
    return typed


def _plain(name: str) -> Callable[[Conversation, Any, Sequence[str]], None]:
    def does(conversation: Conversation, manager: Any, words: Sequence[str]) -> None:
        _drop_command(manager)
        done = _carry_out(conversation, name, words)
        for text in done.notices:
            conversations.show(text)

    return does


def _undo(conversation: Conversation, manager: Any, words: Sequence[str]) -> None:
    """The turn's files and its messages, or one of the two."""
    only = {word for word in words if word in ("--files", "--messages")}
    rest = [word for word in words if word not in only]
    if len(only) > 1 or len(rest) > 1 or not all(word.startswith("t") for word in rest):
        _drop_command(manager)
        conversations.show(f"git-safety: {_USAGE}")
    elif "--messages" in only:
        handle = rest[0] if rest else ""
        span = _span(conversation, manager, handle)
        if span is None:
            _drop_command(manager)
            conversations.show("git-safety: there is no such turn in this conversation")
        else:
            number = _take_out(conversation, manager, handle, span)
            conversations.show(f"Took {_count(number)} out of the conversation; no file was changed.")
    else:
        _undo_files(conversation, manager, rest, with_messages=not only)


def _undo_files(conversation: Conversation, manager: Any, rest: Sequence[str], *, with_messages: bool) -> None:
    from safety.adapters.prompts import path_lines
    from safety.commands.report import NOTHING_DONE, is_done, summary

    assert conversation.session is not None
    done = [_carry_out(conversation, "undo", rest)]
    if not _did(done[0]):
        _drop_command(manager)
        for text in done[0].notices:
            conversations.show(text)
        return
    title = done[0].report.titles[0]
    span = _span(conversation, manager, title.handle) if with_messages else None
    what = ""
    if span is None:
        _drop_command(manager)
    else:  # gptme may have prodded the model on after its turn was over: to the user that is one exchange
        others = [turn for turn in _turns_of(conversation, manager, span) if not turn.undone and turn.handle != title.handle]
        done += [more for turn in others if _did(more := _carry_out(conversation, "undo", [turn.handle]))]
        what = f" and its {_count(_take_out(conversation, manager, title.handle, span))}"
    reports: list[UndoReport] = [one.report for one in done]
    for text in dict.fromkeys(text for report in reports for text in report.notices):
        conversations.show(text)
    said = f': "{_first_line(title.prompt)}"' if title.prompt else ""
    word = "Undid" if what or any(is_done(line) for report in reports for line in report.lines) else NOTHING_DONE["undo"]
    conversations.show(f"{word} {', '.join(report.titles[0].handle for report in reports)}{what}{said}")
    for report in reports:
        for line in path_lines(report):
            conversations.show(line)
    lines = tuple(line for report in reports for line in report.lines)
    counts = ", ".join(f"{number} {'file' if number == 1 else 'files'} {verb}" for verb, number in summary(lines).items())
    conversations.show(
        f"{counts or 'No file was changed'}. /redo takes it back; /undo --files or --messages does one of the two."
    )
    if with_messages and span is None and title.session != conversation.session.given_id:
        conversations.show(f"The messages of {title.handle} stay: it was a turn of another conversation, {title.session}.")
    _tell_model(manager, [text for one in done for text in one.messages])


def _did(done: Any) -> bool:
    """Whether an undo or redo did something."""
    from safety.commands.report import UndoReport

    return isinstance(done.report, UndoReport) and not done.report.nothing


def _redo(conversation: Conversation, manager: Any, words: Sequence[str]) -> None:
    """The files of the newest undo, and the messages that went with them."""
    _drop_command(manager)
    done = _carry_out(conversation, "redo", words)
    for text in done.notices:
        conversations.show(text)
    if _did(done):
        _put_back(conversation, manager, done.report)
        _tell_model(manager, done.messages)


def _carry_out(conversation: Conversation, name: str, words: Sequence[str]) -> Any:
    from safety.adapters.prompts import Done, carry_out

    assert conversation.session is not None
    return carry_out(conversation.session, " ".join([f"/{name}", *words])) or Done((f"git-safety: there is no /{name} here",))


# -- the conversation's messages ---------------------------------------------------------------------------------------------


def _drop_command(manager: Any) -> None:
    """Takes the command itself out of the log, as gptme does with its own; nothing else.

    ``LogManager.undo`` removes a last message that begins with ``/undo`` on its own account, and counts only then.
    """
    if _is_command(manager.log):
        manager.undo(0 if manager.log[-1].content.startswith("/undo") else 1, quiet=True)


def _is_command(log: Any) -> bool:
    return bool(log) and log[-1].role == "user" and log[-1].content.startswith("/")


Span = tuple[int, int]


def _exchanges(manager: Any) -> list[Span]:
    """Where each exchange lies: from what the user said up to what they said next, or to the command that is being carried out."""
    messages = manager.log.messages
    end = len(messages) - 1 if _is_command(manager.log) else len(messages)
    said = [at for at in range(end) if messages[at].role == "user" and not is_gptmes_own(messages[at].content)]
    return list(zip(said, [*said[1:], end], strict=False))


def _span(conversation: Conversation, manager: Any, handle: str) -> Span | None:
    """The exchange of a turn; without a handle the newest, whatever became of it. None where the log has it no more."""
    spans = _exchanges(manager)
    if handle:
        spans = [span for span in spans if handle in (turn.handle for turn in _turns_of(conversation, manager, span))]
    return spans[-1] if spans else None


def _turns_of(conversation: Conversation, manager: Any, span: Span) -> list[Turn]:
    """The turns of this conversation in which something of an exchange was said, newest first.

    What the user said does not tell (`_answered_ms`), nor what was said of an undo, which may stand after an exchange that is older.
    """
    from safety.store.history import turns

    assert conversation.session is not None
    said = [one for one in manager.log.messages[slice(*span)] if one.role != "user" and not one.pinned]
    said_ms = [one.timestamp.timestamp() * 1000 for one in said]
    own = [turn for turn in turns(conversation.session.log) if turn.session == conversation.session.id]
    ends_ms = [math.inf, *(turn.started_ms for turn in own)]
    return [turn for turn, end_ms in zip(own, ends_ms, strict=False) if any(turn.started_ms <= ms < end_ms for ms in said_ms)]


def _take_out(conversation: Conversation, manager: Any, handle: str, span: Span) -> int:
    """Takes an exchange out of the log, and the command with it; gptme keeps the log as it was in a branch. Gives how many messages the
    exchange had: what is pinned (a system prompt after ``/tools load``, what was told of an undo) is none of it, and stays."""
    messages = list(manager.log.messages)
    if _is_command(manager.log):
        messages.pop()
    exchange = [one for one in messages[slice(*span)] if not one.pinned]
    pinned = [one for one in messages[slice(*span)] if one.pinned]
    conversation.removed.append(Removed(handle, exchange))
    manager.edit([*messages[: span[0]], *pinned, *messages[span[1] :]])
    return len(exchange)


def _put_back(conversation: Conversation, manager: Any, report: UndoReport) -> None:
    handles = {title.handle for title in report.titles}
    found = next((one for one in reversed(conversation.removed) if one.handle in handles), None)
    if found is not None:
        conversation.removed.remove(found)
        messages = list(manager.log.messages)
        at = _place(manager, found.messages)
        manager.edit([*messages[:at], *found.messages, *messages[at:]])


def _place(manager: Any, exchange: Sequence[Any]) -> int:
    """Where in the log an exchange belongs by its time, whatever was taken out or put back meanwhile."""
    messages = manager.log.messages
    spans = _exchanges(manager)
    at = next((span[0] for span in spans if _answered_ms(messages[slice(*span)]) > _answered_ms(exchange)), len(messages))
    while at and messages[at - 1].pinned and messages[at - 1].timestamp.timestamp() > exchange[-1].timestamp.timestamp():
        at -= 1  # what was pinned after it
    return at


def _answered_ms(exchange: Sequence[Any]) -> float:
    """When an exchange was first answered. What the user said does not tell: gptme makes all prompts of a run at its start."""
    first = next((one for one in exchange if one.role != "user" and not one.pinned), exchange[0])
    return float(first.timestamp.timestamp() * 1000)


def _tell_model(manager: Any, texts: Sequence[str]) -> None:
    """Pinned: after any other system message at the log's end gptme would have the model answer at once."""
    from gptme.message import Message

    for text in texts:
        manager.append(Message("system", text, hide=True, quiet=True, pinned=True))


def _count(number: int) -> str:
    return f"{number} {'message' if number == 1 else 'messages'}"


def _first_line(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= 60 else line[:57].rstrip() + "..."


#: What gptme calls, by the word after the slash.
HANDLERS = {
    "undo": _handler("undo", _undo, "Take back the agent's last turn: its files and its messages"),
    "redo": _handler("redo", _redo, "Take an undo back"),
    "commit": _handler("commit", _plain("commit"), "Commit what the agent changed, after the repository's own checks"),
    "snapshots": _handler("snapshots", _plain("snapshots"), "List the turns that can be undone"),
    "agents": _handler("agents", _plain("agents"), "List the instruction files that the model was given"),
}
