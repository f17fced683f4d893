"""The real gptme, in its own environment, with a model that says what a test has it say."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import gptme_env
from tests.support.chat_server import Json, Line, chat_server
from tests.support.repo import RepoBuilder

FENCE = "```"
TIMEOUT_S = 100
CONFIG = """\
[prompt]
[env]
[[providers]]
name = "scripted"
base_url = "{url}"
api_key = "none"
default_model = "one"
"""


def block(tool: str, text: str = "") -> str:
    """A tool call as a code block: the tool, with its arguments, and the text."""
    return f"{FENCE}{tool}\n{text}\n{FENCE}"


DONE = block("complete")


def save(path: str, text: str) -> str:
    return block(f"save {path}", text)


def shell(command: str) -> str:
    return block("shell", command)


def patch(path: str, old: str, new: str, tool: str = "patch") -> str:
    return block(f"{tool} {path}", f"<<<<<<< ORIGINAL\n{old}\n=======\n{new}\n>>>>>>> UPDATED")


def native(tool: str, **given: Any) -> Line:
    """A tool call in the model's own format."""
    return Line(calls=((tool, given),))


#: What the model says: a text, a line, or a function that is handed the messages and gives the text.
Reply = str | Line | Callable[[list[Json]], str]


def text_of(message: Json) -> str:
    """A message's text, be it one or a list of parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


class Script:
    """The model: its replies in order, and the messages it was asked each with. A question for a title is none of the conversation."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.replies = list(replies)
        self.asked: list[list[Json]] = []
        self._lock = threading.Lock()

    def __call__(self, body: Json) -> Line:
        messages = list(body["messages"])
        if not text_of(messages[0]).startswith("You are gptme"):
            return Line("a-title")
        with self._lock:
            self.asked.append(messages)
            reply = self.replies.pop(0) if self.replies else "Nothing left to say."
        return reply if isinstance(reply, Line) else Line(reply if isinstance(reply, str) else reply(messages))


@dataclass(frozen=True)
class Ran:
    """One run of gptme: its output, what the model was asked, and the conversation as gptme keeps it."""

    code: int
    out: str
    asked: list[list[Json]]
    log: list[Json]

    @property
    def told(self) -> str:
        """All that the model was shown, in its last question or after it."""
        return "\n".join([*(text_of(message) for messages in self.asked for message in messages), self.logged])

    @property
    def logged(self) -> str:
        return "\n".join(message["content"] for message in self.log)

    def said(self, role: str) -> list[str]:
        """What is in the log in the name of a role, but for the prompt that gptme begins with."""
        first = next((number for number, message in enumerate(self.log) if message["role"] == "user"), 0)
        return [message["content"] for message in self.log[first:] if message["role"] == role]


class Gptme:
    """Runs the real command in a workspace. ``config`` is added to the user's configuration of gptme."""

    def __init__(self, repo: RepoBuilder) -> None:
        self.repo = repo
        self.bin = gptme_env.folder() / "bin"
        self.home = Path(repo.env["HOME"])
        self.config = ""
        self._names = itertools.count(1)
        self.env = {
            **repo.env,
            "PATH": f"{self.bin}:{repo.env['PATH']}",
            "TERM": "dumb",
            "GPTME_CHECK_UPDATES": "0",
            "GPTME_TIKTOKEN_TIMEOUT": "0",
            "PYTHONPATH": str(gptme_env.PROJECT),
            "PYTHONDONTWRITEBYTECODE": "1",
            # Nothing but this machine is to be reached, and what is tried fails at once.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "HTTP_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def run(
        self,
        replies: Sequence[Reply],
        *words: str,
        env: dict[str, str] | None = None,
        name: str = "",
        cwd: Path | None = None,
        code: int | None = 0,
        out_only: bool = False,
    ) -> Ran:
        """``gptme -n WORDS``, held to an exit code; with no words the prompt is ``do it``."""
        name = name or f"talk-{next(self._names)}"
        model = Script(replies)
        fixed = ["-n", "-m", "scripted/one", "--name", name, "--system", "short"]
        with chat_server(answer=model) as server:
            self.write_config(server.base_url)
            done = subprocess.run(
                [str(self.bin / "gptme"), *fixed, *(words or ("do it",))],
                cwd=cwd or self.repo.root,
                env={**self.env, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if out_only else subprocess.STDOUT,
                timeout=TIMEOUT_S,
            )
        ran = Ran(done.returncode, done.stdout.decode("utf-8", "replace"), model.asked, self.read_log(name))
        assert code is None or ran.code == code, ran.out
        assert "Error executing hook" not in ran.out, ran.out
        return ran

    def write_config(self, url: str) -> None:
        folder = self.home / ".config/gptme"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(CONFIG.format(url=url) + self.config)

    def settings(self, **values: Any) -> None:
        """Writes the user's settings of git-safety."""
        folder = self.home / ".config/git-safety"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(values))

    def read_log(self, name: str) -> list[Json]:
        found = sorted((self.home / ".local/share/gptme/logs").glob(f"{name}/conversation.jsonl"))
        return [json.loads(line) for line in found[-1].read_text().splitlines()] if found else []


@pytest.fixture
def gptme(repo: RepoBuilder) -> Iterator[Gptme]:
    """gptme in a repository with one commit."""
    if gptme_env.is_left_out():
        pytest.skip("SAFETY_TESTS_NO_GPTME=1")
    if not os.access(gptme_env.folder() / "bin" / "gptme", os.X_OK):
        pytest.fail(f"there is no environment with gptme in it: {gptme_env.HOW}")
    yield Gptme(repo)
