"""Questions and git's letters for pieces."""

from __future__ import annotations

from io import StringIO

import pytest

from safety.commands.report import Hunk
from safety.terminal.choose import pieces, yes
from safety.terminal.drawing import View
from safety.terminal.screen import Line, plain

VIEW = View(b"/r", 0)
SMALL = (Hunk("a1x", b"a"), Hunk("a1y", b"a"))
HUNKS = (
    Hunk("a1", b"a", "@@ -1 +1 @@", (b"-old\x1b", b"+new"), parts=SMALL),
    Hunk("a2", b"a"),
    Hunk("b1", b"b"),
    Hunk("b2", b"b"),
)


@pytest.mark.parametrize(
    ("typed", "answer"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False), ("yo\n", False)]
)
def test_only_yes_means_yes(typed: str, answer: bool) -> None:
    """Enter, anything else and the end of input mean no."""
    out = StringIO()
    assert yes("Go\x1b on?", StringIO(typed), out) is answer
    assert out.getvalue().startswith("Go\\e on? [y/N] ")


def choose(letters: str) -> tuple[set[str], str]:
    shown: list[Line] = []
    chosen = pieces(HUNKS, StringIO("".join(f"{letter}\n" for letter in letters)), shown.extend, b"/r", VIEW)
    return set(chosen), plain(shown)


@pytest.mark.parametrize(
    ("letters", "chosen"),
    [
        ("yyyy", {"a1", "a2", "b1", "b2"}),
        ("nnnn", set()),
        ("ynyn", {"a1", "b1"}),
        ("yq", {"a1"}),
        ("an", {"a1", "a2"}),
        ("dy", {"b1"}),
        ("syn", {"a1x"}),
        ("sa", {"a1x", "a1y", "a2"}),
        ("y", {"a1"}),
        ("xy?", {"a1"}),
    ],
)
def test_gits_letters(letters: str, chosen: set[str]) -> None:
    """y n q a d s ? as in ``git add -p``; the end of input stops with what was chosen."""
    assert choose(letters)[0] == chosen


def test_pieces_are_shown_clean() -> None:
    """The lines of a piece come with visible escapes, and ``s`` is offered only where it can split."""
    text = choose("yn")[1]
    assert "-old\\e\n+new\n" in text
    assert text.count("[y,n,q,a,d,s,?]") == 1
