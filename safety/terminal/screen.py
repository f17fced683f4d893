"""Styled lines, and the way to put them on a stream: plain, or in colours by ``rich``. Nothing here reads markup out of a
text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO, TypeAlias

#: A piece of text and the name of its style ("" for none), and a line of such pieces, without its line end.
Span: TypeAlias = tuple[str, str]
Line: TypeAlias = tuple[Span, ...]

#: Style names used by the drawing, and what they are in ``rich``. The eight basic colours follow the user's own scheme.
STYLES = {
    "": "",
    "bold": "bold",
    "dim": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "red",
    "name": "cyan",
    "add": "green",
    "del": "red",
    "hunk": "cyan",
}


def line(*parts: str | Span) -> Line:
    """A line of plain texts and ``(text, style)`` pairs."""
    return tuple(part if isinstance(part, tuple) else (part, "") for part in parts)


def plain(lines: Iterable[Line]) -> str:
    """The lines as text without colours; no line has spaces at its end."""
    return "".join("".join(text for text, _ in spans).rstrip() + "\n" for spans in lines)


def coloured(lines: Iterable[Line]) -> str:
    """The lines with the escape sequences of their styles."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    console = Console(
        file=out, force_terminal=True, color_system="standard", markup=False, highlight=False, emoji=False, soft_wrap=True,
        legacy_windows=False,
    )  # fmt: skip
    for spans in lines:
        text = Text()
        for part, style in spans:
            text.append(part, STYLES[style])
        text.rstrip()
        console.print(text)
    return out.getvalue()


def write(stream: TextIO, lines: Iterable[Line], colour: bool) -> None:
    """Puts the lines on ``stream``; a character that its encoding lacks is written as an escape."""
    text = coloured(lines) if colour else plain(lines)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()
