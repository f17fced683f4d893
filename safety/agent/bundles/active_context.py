"""Active context: the files that were named last go along with each request as they are now, and are not kept in the conversation."""

from __future__ import annotations

import os
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence

from safety.hooks.events import HookType
from safety.hooks.message import Message
from safety.session import Session
from safety.tools.spec import HookSpec, ToolSpec

FILES, BYTES, LOOKED_AT = 3, 4_000, 6
NAME = re.compile(r"(?<![\w./-])[\w./-]+\.\w+")  # from a word's start only: a long one would be tried from each letter on


def requested(messages: Sequence[Message], session: Session) -> Iterator[Message]:
    said = " ".join(message.content for message in messages[1:][-LOOKED_AT:])
    names = list(dict.fromkeys(reversed(NAME.findall(said))))
    shown = [text for name in names if (text := _file(session, name))][:FILES]
    if shown:
        yield Message("system", "Files that were named, as they are now:\n\n" + "\n\n".join(shown))


def _file(session: Session, name: str) -> str:
    """The file's beginning under its name; empty if it is no small text of the workspace."""
    path = os.path.realpath(os.path.join(session.root, os.fsencode(name)))
    if not path.startswith(session.root + b"/") or b"/." in path[len(session.root) :] or not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        data = file.read(BYTES)
    try:
        return f"{name}:\n{getincrementaldecoder('utf-8')().decode(data)}"  # the last character may be cut in half
    except UnicodeDecodeError:
        return ""


TOOL = ToolSpec(
    name="active_context",
    desc="Shows the model the files that were named last as they are now.",
    hooks={"request": HookSpec(HookType.GENERATION_PRE, requested)},
)
