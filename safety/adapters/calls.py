"""What a tool call of a host may touch: told by the tool's name and its arguments, as all hosts spell them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

#: Tools that change nothing, and tools that change the files their arguments name; every other tool may change anything.
_READING = frozenset({"read", "read_file", "view", "view_file", "grep", "glob", "ls", "list", "list_files", "list_dir", "search"})
_WRITING = frozenset(
    {"write", "write_file", "create", "create_file", "edit", "edit_file", "multi_edit", "multiedit", "str_replace", "insert",
     "append", "patch", "save", "notebook_edit", "notebookedit"}
)  # fmt: skip
_PATH_FIELDS = ("path", "paths", "file_path", "filename", "notebook_path")


def declared_paths(tool: str, given: Mapping[str, object], cwd: bytes, home: str) -> tuple[bytes, ...] | None:
    """The paths that a call of ``tool`` may change, absolute; None: anything may change.

    A reading tool declares none at all. A writing tool whose arguments name no path, or not as plain texts, declares nothing.
    """
    kind = _kind(tool)
    if kind in _READING:
        return ()
    if kind not in _WRITING:
        return None
    named = _named(given)
    return absolute_paths(named, cwd, home) if named else None


def read_paths(tool: str, given: Mapping[str, object], cwd: bytes, home: str) -> tuple[bytes, ...]:
    """The paths that a call of a reading tool names, absolute; none for every other tool."""
    return absolute_paths(_named(given), cwd, home) or () if _kind(tool) in _READING else ()


def _kind(tool: str) -> str:
    return tool.lower().replace("-", "_")


def _named(given: Mapping[str, object]) -> list[str]:
    """The paths in the arguments; nothing where one of them is no plain text."""
    named: list[object] = []
    for name in _PATH_FIELDS:
        value = given.get(name)
        named += value if isinstance(value, list) else [] if value is None else [value]
    texts = [value for value in named if isinstance(value, str) and value]
    return texts if len(texts) == len(named) else []


def absolute_paths(texts: Sequence[str], cwd: bytes, home: str) -> tuple[bytes, ...] | None:
    """The paths as absolute bytes, each once; None if one of them can be no path."""
    found: dict[bytes, None] = {}
    for text in texts:
        path = path_bytes(os.path.join(home, text[2:]) if text.startswith("~/") and home else text)
        if path is None:
            return None
        full = os.path.join(cwd, path)
        if b".." in full.split(b"/"):  # behind a link it does not lead where the text says
            full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        found[os.path.normpath(full)] = None
    return tuple(found)


def path_bytes(text: str) -> bytes | None:
    """The path as the system wants it; None if there can be no such path."""
    if "\0" in text:
        return None
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return None
