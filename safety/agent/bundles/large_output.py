"""Large output: the whole of it goes to a file, the model gets the beginning, the end, and where the rest lies."""

from __future__ import annotations

import hashlib
import os

from safety.hooks.events import HookType
from safety.hooks.message import Message
from safety.session import Call, Session
from safety.tools.spec import HookSpec, ToolSpec

MOST = 8_000  # characters that go to the model whole
HEAD, TAIL = 3_000, 1_000


def shortened(message: Message, tool_use: Call, session: Session) -> Message | None:
    text = message.content
    if len(text) <= MOST:
        return None
    folder = session.place.state / "outputs"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}.txt"
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8", errors="surrogatepass") as opened:
        opened.write(text)
    left_out = len(text) - HEAD - TAIL
    note = f"({left_out} characters of {tool_use.tool} left out; all {len(text)} are in {file})"
    return message.replace(content=f"{text[:HEAD]}\n{note}\n{text[-TAIL:]}")


TOOL = ToolSpec(
    name="large_output",
    desc="Puts large output into a file and shows the model a preview.",
    hooks={"transform": HookSpec(HookType.TOOL_TRANSFORM, shortened)},
)
