"""The journal: the conversation on disk, a JSON line for each thing that happened, before anything follows from it.

A process that is killed leaves whole lines, and at most one torn one at the end, which is left out. What was read back says of each
call of the last reply whether it was never started, finished, or started with nobody knowing how far it came.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from safety.agent.messages import Json, ToolCall, Usage, joined
from safety.faults import SafetyError

SHORTENED = "({} characters were left out here to make room)"
KEPT_WHOLE = 4  # the newest results, which a trimmed context keeps
LEFT = 200  # characters of each older one
CHARACTERS_A_TOKEN = 4


class JournalFailed(SafetyError):
    """What happened could not be written down, so nothing may follow from it."""

    code = "journal-failed"


@dataclass(frozen=True)
class Result:
    """What a call came to."""

    status: str
    text: str


UNKNOWN = Result("unknown", "The agent was ended while this ran; nobody knows how far it came. It was not run again: look first.")
UNTOUCHED = Result("error", "This was not run: the user interrupted.")
BROKEN_OFF = Result("error", "The user interrupted this; it may have run in part.")


@dataclass
class Journal:
    """One conversation. Made by `open_journal`; each method that changes it writes its line first."""

    path: Path
    messages: list[Json] = field(default_factory=list)
    prompt: str | None = None  # of the turn that is open
    started: set[str] = field(default_factory=set)
    results: dict[str, Result] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    cwd: str = ""
    is_fresh: bool = False  # the open turn has no message yet: its start was not heard to its end

    def open_turn(self, prompt: str) -> None:
        self._write(turn=prompt)

    def close_turn(self) -> None:
        self._write(turn=None)

    def add(self, message: Json, usage: Usage | None = None) -> None:
        """Adds a message, half characters in it replaced: no request could hold them, now or later."""
        sendable = json.loads(joined(json.dumps(message, ensure_ascii=False)).encode("utf-8", "replace"))
        self._write(message=sendable, **({"usage": vars(usage)} if usage else {}))

    def answer(self, call: ToolCall, text: str) -> None:
        self.add({"role": "tool", "tool_call_id": call.id, "content": text})

    def start(self, call_id: str) -> None:
        self._write(start=call_id)

    def finish(self, call_id: str, result: Result, cwd: str) -> None:
        """Keeps what a call came to, and the folder the shell stands in since."""
        self._write(finish=call_id, **vars(result), cwd=cwd)

    def spend(self, usage: Usage) -> None:
        """Counts what a sub-agent took."""
        self._write(usage=vars(usage))

    def trim(self, most: int) -> tuple[int, int]:
        """Shortens old results of tools if the context is larger than that; gives about how many tokens it had and has."""
        before = self.tokens
        if before > most and shortened(self.messages) != self.messages:
            self._write(trim=True)
        return before, self.tokens

    @property
    def tokens(self) -> int:
        """About how many tokens the messages are."""
        return len(json.dumps(self.messages)) // CHARACTERS_A_TOKEN

    @property
    def waiting(self) -> Iterator[tuple[str, ToolCall]]:
        """The calls of the last reply that have no answer, each with an id that is its own in the whole conversation."""
        at = max((at for at, each in enumerate(self.messages) if each["role"] == "assistant"), default=-1)
        answered = {each.get("tool_call_id") for each in self.messages[at + 1 :]} if at >= 0 else set()
        for number, call in enumerate(self.messages[at].get("tool_calls", ()) if at >= 0 else (), 1):
            if call["id"] not in answered:
                yield f"{at}.{number}", ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])

    @property
    def is_answered(self) -> bool:
        """Whether the model has spoken last and calls nothing."""
        return bool(self.messages) and self.messages[-1]["role"] == "assistant" and not self.messages[-1].get("tool_calls")

    def below(self, call_id: str) -> Journal:
        """The journal of the sub-agent that a call starts, beside this one."""
        return open_journal(self.path.parent, f"{self.path.stem}-{call_id}")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps other processes out of the conversation while inside, after a look at what they wrote before. Raises JournalFailed."""
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)  # itself: no file is left behind
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as fault:
                raise JournalFailed("another process is in this conversation") from fault
            vars(self).update(vars(open_journal(self.path.parent, self.path.stem)))
            yield
        finally:
            os.close(folder)

    # -- inside ----------------------------------------------------------------------------------------------------------------

    def _opened(self) -> FileIO:
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise self._failed(fault) from fault
        return open(fd, "ab", buffering=0)

    def _failed(self, fault: OSError) -> JournalFailed:
        return JournalFailed(f"the conversation cannot be written to {self.path}: {fault.strerror or fault}")

    def _write(self, **line: Any) -> None:
        data = json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode("ascii")
        data = b"\n" + data + b"\n"  # the line before may have no end
        with self._opened() as file:
            try:
                while data:  # a disk that is nearly full takes a part, and says no to the rest
                    data = data[file.write(data) :]
            except OSError as fault:
                raise self._failed(fault) from fault
        self._take(line)

    def _take(self, line: Json) -> None:
        if "turn" in line:
            self.prompt, self.is_fresh = line["turn"], line["turn"] is not None
        if "message" in line:
            self.messages.append({**line["message"]})
            self.is_fresh = False
        if "usage" in line:
            self.usage += Usage(**line["usage"])
        if "start" in line:
            self.started.add(line["start"])
        if "finish" in line:
            self.results[line["finish"]] = Result(line["status"], line["text"])
        if "cwd" in line:
            self.cwd = line["cwd"]
        if "trim" in line:
            self.messages[:] = shortened(self.messages)


def open_journal(folder: Path, name: str = "conversation") -> Journal:
    """The journal of that name in ``folder``, with all that was written to it before. Raises JournalFailed if it cannot be read."""
    journal = Journal(folder / f"{name}.jsonl")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = journal.path.read_bytes().splitlines()
    except FileNotFoundError:
        lines = []
    except OSError as fault:
        raise JournalFailed(f"the conversation {journal.path} cannot be read: {fault.strerror or fault}") from fault
    for number, raw in enumerate(lines, 1):
        try:
            line = json.loads(raw)
        except ValueError:  # an empty line, or one that a kill has torn
            continue
        try:
            journal._take(line)
        except (AttributeError, LookupError, TypeError) as fault:  # to leave it out would be to forget what was done
            raise JournalFailed(f"line {number} of the conversation {journal.path} is from another version") from fault
    return journal


def shortened(messages: list[Json]) -> list[Json]:
    """The messages with all but the newest results of tools cut to their beginning."""
    tools = [at for at, each in enumerate(messages) if each["role"] == "tool"]
    old = set(tools[:-KEPT_WHOLE])
    return [_cut(each) if at in old else each for at, each in enumerate(messages)]


def _cut(message: Json) -> Json:
    text = str(message["content"])
    left_out = len(text) - LEFT
    return message if left_out <= LEFT else {**message, "content": f"{text[:LEFT]}\n{SHORTENED.format(left_out)}"}


__all__ = ["BROKEN_OFF", "UNKNOWN", "UNTOUCHED", "Journal", "JournalFailed", "Result", "open_journal", "shortened"]
