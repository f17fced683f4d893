"""A tool use of gptme as a call: what it is given, by name, and the paths that it may change.

gptme has two shapes for one call: of a code block there are ``content`` and ``args``, of a native call ``kwargs`` and nothing else.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from safety.adapters.calls import absolute_paths

_COMMANDS = {"shell": "command", "tmux": "command", "ipython": "code", "python": "code"}
_FILES = {"save": "content", "append": "content", "patch": "patch", "morph": "edit", "hashline_edit": "edit"}
#: Change no file of the workspace themselves, or talk to the user or to gptme only. A sub-agent's own calls are calls.
_QUIET = frozenset(
    "read recall rag vision screenshot choice elicit form clarify todo progress vent complete subagent request_tool_change".split()
)
_PREFIXES = ("save ", "append ", "patch ")


@dataclass(frozen=True)
class Given:
    """What ``ToolSpec.execute`` was handed."""

    code: str | None
    args: Sequence[str] | None
    kwargs: Mapping[str, Any] | None


def text_field(tool: str) -> str:
    """The name under which the text of a call stands: what a person may edit before it runs."""
    return _COMMANDS.get(tool) or _FILES.get(tool) or "content"


def input_of(tool: str, given: Given) -> dict[str, Any]:
    """The arguments by name, whichever shape they came in."""
    named = dict(given.kwargs or {})
    if given.code is not None:
        named[text_field(tool)] = given.code
    if tool in _FILES and given.args:
        named["path"] = _path(given.args)
    elif given.args:
        named["paths" if tool == "patch_many" else "args"] = list(given.args)
    if tool == "patch_many" and "patches" in named:
        named["paths"] = _patched(named["patches"])
    if tool == "tmux" and isinstance(named.get("command"), str):
        named = {**named, "tmux": named["command"], "command": "\n".join(_typed(named["command"]))}
    return named


def paths_of(tool: str, named: Mapping[str, Any], *, reads: bool, cwd: bytes) -> tuple[bytes, ...] | None:
    """The paths that the call may change: none where it ``reads`` only, None where it may change anything."""
    if reads or tool in _QUIET:
        return ()
    if tool in _FILES:
        texts = [named.get("path")]
    elif tool == "patch_many":
        listed = named.get("paths")
        texts = list(listed) if isinstance(listed, list) else []
    else:
        return None
    known = [text for text in texts if isinstance(text, str) and text]
    return absolute_paths(known, cwd, os.path.expanduser("~")) if known and len(known) == len(texts) else None


def reads_of(tool: str, named: Mapping[str, Any], cwd: bytes) -> tuple[bytes, ...]:
    """The paths that gptme's ``read`` shows to the model: one by name or in the block's first line, or a line each."""
    if tool != "read":
        return ()
    lines = [line.strip() for line in str(named.get("content") or "").splitlines()]
    texts = [named["path"]] if named.get("path") else [" ".join(named["args"])] if named.get("args") else lines
    known = [text for text in texts if isinstance(text, str) and text and not text.startswith("#")]
    return absolute_paths(known, cwd, os.path.expanduser("~")) or ()


def edited(tool: str, named: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The arguments with another text, as a person left it."""
    changed = {**named, text_field(tool): text}
    return input_of(tool, Given(None, None, {**changed, "command": text})) if tool == "tmux" else changed


def given_back(tool: str, given: Given, named: Mapping[str, Any]) -> Given:
    """What the tool is to be handed where one of our handlers made something else of its input."""
    field = text_field(tool)
    if given.code is not None:
        return replace(given, code=str(named.get(field, "")))
    return replace(given, kwargs=dict(named))


def _path(args: Sequence[str]) -> str:
    """As gptme reads it: the words of the block's first line, with the tool's name before them or not."""
    text = " ".join(args)
    return text.split(" ", 1)[1] if text.startswith(_PREFIXES) else text


def _patched(patches: Any) -> list[Any]:
    """The path of each patch of a native call; a text is JSON."""
    try:
        listed = json.loads(patches) if isinstance(patches, str) else patches
        return [patch["path"] for patch in listed]
    except (ValueError, TypeError, KeyError):
        return [None]


def _typed(text: str) -> Iterator[str]:
    """What a tmux call would have a shell run: what a session is started with, and the keys that are sent."""
    for line in text.replace(";", "\n").splitlines():
        try:
            words = shlex.split(line)
        except ValueError:
            yield line
            continue
        if words[:1] in (["new-session"], ["new_session"]):
            yield " ".join(words[1:])
        elif words[:1] in (["send-keys"], ["send_keys"]):
            yield " ".join(word for word in words[2:] if word not in ("Enter", "C-m"))
