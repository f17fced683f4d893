"""Questions on a terminal: yes or no, and git's ``-p`` letters for pieces of a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from safety.commands.report import Hunk
from safety.terminal.draw_undo import hunk
from safety.terminal.drawing import View
from safety.terminal.screen import Line, line
from safety.terminal.text import clean

_HELP = """\
y - undo this piece
n - leave this piece as it is
q - leave this and all that follow
a - undo this and all that follow in the file
d - leave this and all that follow in the file
s - split this piece into smaller ones
? - this help"""


def yes(question: str, answers: TextIO, out: TextIO) -> bool:
    """Whether the user typed y or yes. Enter, anything else and the end of input mean no."""
    out.write(f"{clean(question)} [y/N] ")
    out.flush()
    answer = answers.readline()
    if not answer.endswith("\n"):
        out.write("\n")
    return answer.strip().lower() in ("y", "yes")


def pieces(hunks: Sequence[Hunk], answers: TextIO, draw: Callable[[list[Line]], None], root: bytes, view: View) -> frozenset[str]:
    """The ids that the user chose, by git's letters. The end of input stops as ``q`` does; what was chosen before stays
    chosen.
    """
    waiting, chosen = list(hunks), set[str]()
    while waiting:
        piece = waiting.pop(0)
        draw(hunk(piece, root, view))
        letter = _letter("y,n,q,a,d,s,?" if piece.parts else "y,n,q,a,d,?", answers, draw)
        same = [each for each in waiting if each.path == piece.path]
        if letter == "q":
            break
        if letter == "s":
            waiting = [*piece.parts, *waiting]
            continue
        if letter in "ya":
            chosen.add(piece.id)
        if letter == "a":
            chosen.update(each.id for each in same)
        if letter in "ad":
            waiting = [each for each in waiting if each.path != piece.path]
    return frozenset(chosen)


def _letter(allowed: str, answers: TextIO, draw: Callable[[list[Line]], None]) -> str:
    while True:
        draw([line((f"Undo this piece [{allowed}]? ", "bold"))])
        answer = answers.readline()
        if not answer:
            return "q"
        letter = answer.strip().lower()[:1]
        if letter and letter in allowed.replace(",", "").replace("?", ""):
            return letter
        draw([line((each, "dim")) for each in _HELP.splitlines()])
