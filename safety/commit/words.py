"""How a change and a path are named in a sentence."""

from __future__ import annotations

from safety.commit.values import Change


def verb(change: Change) -> str:
    """``add``, ``remove`` or ``update``."""
    return "add" if change.old is None else "remove" if change.new is None else "update"


def shown_path(path: bytes) -> str:
    """A path as text on one line: what cannot be printed is escaped."""
    return on_one_line(path.decode("utf-8", "backslashreplace"))


def on_one_line(text: str) -> str:
    """The text with what cannot be printed escaped."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
