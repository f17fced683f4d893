"""The tools: plain functions with typed arguments, of which the model sees the name, the first line of the docstring and the arguments.

Each gets the desk it works at first and gives text. What it raises is text for the model too. To add one: a function, a name in TOOLS.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from safety.adapters.calls import declared_paths, read_paths
from safety.agent.messages import Json, ToolCall
from safety.agent.moments import trigger
from safety.hooks.caller import attempt
from safety.hooks.elicitation import ElicitationRequest, elicit
from safety.hooks.events import HookType
from safety.session import Call, Session

MOST_OUTPUT = 200_000  # characters of a file, bytes of a command's output; what is larger is cut in its middle
MOST_BYTES = 10_000_000  # of a file that is read or edited
SHELL_TIMEOUT_S = 300.0
# Marks are whole lines; a heading underlined with more than seven signs is none.
BLOCK = re.compile(r"^<{7}[^\n]*\n(.*?)^={7}[ \t\r]*\n(.*?)^>{7}[^\n]*\n?", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"^(<{7}|={7}[ \t\r]*$|>{7})", re.MULTILINE)
# The shell waits for a word of ours: one that we were interrupted before we knew of it must not run. The folder that the command
# leaves behind is asked for when the shell ends, however it ends.
BEFORE = "read -r _ || exit; exec </dev/null; trap 'pwd -P >\"$GIT_SAFETY_AGENT_PWD\"' EXIT\n"


class ToolFailed(Exception):
    """What a tool could not do, as text for the model."""


@dataclass
class Desk:
    """Where the tools work: the session, and the folder that the shell stands in."""

    session: Session
    cwd: str

    @property
    def workspace(self) -> Path:
        return Path(os.fsdecode(self.session.root))

    @property
    def folder(self) -> str:
        """Where relative paths begin: the shell's folder, or the workspace once that is gone."""
        return self.cwd if os.path.isdir(self.cwd) else os.fsdecode(self.session.root)

    def path(self, name: str) -> Path:
        home = self.session.environ.get("HOME", "")
        return Path(self.folder, os.path.join(home, name[2:]) if name.startswith("~/") and home else name)

    def call(self, call_id: str, tool: str, given: Mapping[str, str]) -> Call:
        """The call as the session knows it, with the paths that it may change and those that it reads."""
        home, folder = self.session.environ.get("HOME", ""), os.fsencode(self.folder)
        paths = () if tool in TOUCHES_NOTHING else declared_paths(tool, given, folder, home)
        return Call(call_id, tool, given, folder, paths, reads=read_paths(tool, given, folder, home))

    def tell(self, moment: HookType, **fields: Any) -> None:
        """Triggers a moment of a file; what its handlers say goes to the model."""
        outcome = trigger(self.session, moment, workspace=self.workspace, **fields)
        self.session.messages.extend(message.content for message in outcome.messages)


Tool = Callable[..., str]


def read(desk: Desk, path: str) -> str:
    """Give the text of a file."""
    return cut(_text(desk.path(path)))


def write(desk: Desk, path: str, content: str) -> str:
    """Write a whole file, new or in place of what was there."""
    file = desk.path(path)
    data = content.encode()  # a text that cannot be written leaves the file as it was
    created = not file.exists()
    if not created:
        _regular(file)
    desk.tell(HookType.FILE_SAVE_PRE, path=file, content=content)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    desk.tell(HookType.FILE_SAVE_POST, path=file, content=content, created=created)
    return f"{'Created' if created else 'Wrote'} {path}."


def edit(desk: Desk, path: str, old: str, new: str) -> str:
    """Replace a piece of a file that is there exactly once."""
    return _patch(desk, path, [(old, new)])


def patch(desk: Desk, path: str, patch: str) -> str:
    """Replace pieces of a file, given as blocks: <<<<<<< line, old lines, ======= line, new lines, >>>>>>> line."""
    pairs = BLOCK.findall(patch)
    if MARK.search(BLOCK.sub("", patch)):
        raise ToolFailed("a block is not complete: <<<<<<<, old lines, =======, new lines, >>>>>>>")
    if any(MARK.search(lines) for pair in pairs for lines in pair):
        raise ToolFailed("a line inside of a block looks like one of its marks: use edit")
    if not pairs:
        raise ToolFailed("there is no block in this patch")
    return _patch(desk, path, pairs)


def _patch(desk: Desk, path: str, pairs: list[tuple[str, str]]) -> str:
    file = desk.path(path)
    text = _text(file)
    if "\r\n" in text:  # models write plain line ends
        pairs = [(_crlf(old), _crlf(new)) for old, new in pairs]
    for old, new in pairs:
        times = len(re.findall(f"(?={re.escape(old)})", text)) if old else "no number of"  # overlapping ones too
        if times != 1:
            raise ToolFailed(f"this is in {path} {times} times, not once: {old!r}")
        text = text.replace(old, new)
    data = text.encode()
    shown = "".join(f"<<<<<<<\n{old}\n=======\n{new}\n>>>>>>>\n" for old, new in pairs)
    desk.tell(HookType.FILE_PATCH_PRE, path=file, patch=shown)
    file.write_bytes(data)
    desk.tell(HookType.FILE_PATCH_POST, path=file, patch=shown)
    return f"Changed {path}."


def _crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _text(file: Path) -> str:
    """The text of a file, its line ends as they are. Raises ToolFailed where it is too large, or may never end."""
    _regular(file)
    with open(file, "rb") as opened:
        data = opened.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ToolFailed(f"{file} has more than {MOST_BYTES} bytes: look at a part of it with the shell")
    return data.decode()


def _regular(file: Path) -> None:
    """Nothing, for a file; raises ToolFailed for a pipe or a device, which could be waited for without end."""
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise ToolFailed(f"{file} is no regular file")


def shell(desk: Desk, command: str) -> str:
    """Run a command in a shell; the folder it ends in is where the next one begins."""
    with tempfile.TemporaryDirectory(prefix="git-safety-agent-") as room, open(os.path.join(room, "out"), "w+b") as out:
        where = os.path.join(room, "pwd")
        late = False
        with subprocess.Popen(
            ["/bin/sh", "-c", BEFORE + command],
            cwd=desk.folder,
            env={**desk.session.environ, "GIT_SAFETY_AGENT_PWD": where},
            stdin=subprocess.PIPE,
            stdout=out,  # a file: whatever it leaves running in the background keeps no pipe open
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                process.communicate(b"go\n", SHELL_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                late = True
            finally:
                if process.returncode is None:  # too late, or Ctrl-C
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if os.path.isfile(where):  # empty: it ended in a folder that is gone
            desk.cwd = os.fsdecode(Path(where).read_bytes()).rstrip("\n") or desk.cwd
        text = _output(out)
    if late:
        raise ToolFailed(f"{text}\nIt was ended after {SHELL_TIMEOUT_S:g} s.")
    return text if process.returncode == 0 else f"{text}\nExit code {process.returncode}."


def _output(out: BinaryIO) -> str:
    """What a command printed, as text; of too much both ends, so that it need not fit into memory."""
    size = out.seek(0, os.SEEK_END)
    if size <= MOST_OUTPUT:
        out.seek(0)
        return out.read(size).decode("utf-8", "replace")
    ends = []
    for start in (0, size - MOST_OUTPUT // 2):
        out.seek(start)
        ends.append(out.read(MOST_OUTPUT // 2).decode("utf-8", "replace"))
    return f"{ends[0]}\n... {size - MOST_OUTPUT} bytes left out ...\n{ends[1]}"


def ask_user(desk: Desk, question: str) -> str:
    """Ask the user something that only they can know."""
    answer = elicit(ElicitationRequest("text", question), session=desk.session, registry=desk.session.hooks)
    if answer.cancelled:
        return "The user did not answer."
    return "The user has answered, but you are not to see it." if answer.sensitive else str(answer.value)


def cut(text: str, most: int = MOST_OUTPUT) -> str:
    """The text, with its middle left out if it is too long."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n... {len(text) - most} characters left out ...\n{text[-most // 2 :]}"


TOOLS: Mapping[str, Tool] = {each.__name__: each for each in (read, write, edit, patch, shell, ask_user)}
TOUCHES_NOTHING = frozenset({"ask_user", "subagent"})  # no file by themselves; what a sub-agent calls declares its own


def fields_of(tool: Tool) -> list[str]:
    """The names of a tool's arguments; all are texts, none may be left out."""
    return [name for name in inspect.signature(tool).parameters if name != "desk"]


def understood(wanted: ToolCall, tools: Mapping[str, Tool]) -> tuple[dict[str, str], str]:
    """The arguments of a call, and what is wrong with it, if anything is."""
    if wanted.name not in tools:
        return {}, f"There is no tool {wanted.name!r}; there are {', '.join(tools)}."
    given, _ = attempt(json.loads, wanted.arguments)
    fields = fields_of(tools[wanted.name])
    if not isinstance(given, dict) or set(given) != set(fields) or not all(isinstance(each, str) for each in given.values()):
        return {}, f"{wanted.name} takes a JSON object with the texts {', '.join(fields)}."
    return given, ""


def schema(name: str, tool: Tool) -> Json:
    """A tool as the request describes it."""
    fields = fields_of(tool)
    properties = {field: {"type": "string"} for field in fields}
    parameters = {"type": "object", "properties": properties, "required": fields, "additionalProperties": False}
    summary = (inspect.getdoc(tool) or "").partition("\n")[0]
    return {"type": "function", "function": {"name": name, "description": summary, "parameters": parameters}}
