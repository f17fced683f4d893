"""The terminal, or what stands for it: where answers go, in which form, and who answers questions."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TextIO

from safety.commands import report as r
from safety.terminal import choose, pager, render
from safety.terminal.drawing import View
from safety.terminal.progress import Progress
from safety.terminal.screen import Line, coloured, line, plain, write


class Window:
    """One command's view of the outside. Colours and pager only on a terminal; with ``json`` nothing but one object is
    written.
    """

    def __init__(self, environ: Mapping[str, str], cwd: bytes, json: bool = False, pager: bool = False, colour: str = "") -> None:
        self._environ = environ
        self._json = json
        self._pager = pager
        self._colour = colour
        self._asked = bool(colour)
        self._cwd = cwd
        self.progress = Progress(sys.stderr, enabled=not json and sys.stderr.isatty() and environ.get("TERM") != "dumb")

    def settings(self, settings: object) -> None:
        """Takes ``ui.color`` and ``ui.pager`` over; what was said on the command line wins."""
        if not self._asked:
            self._colour = str(getattr(settings, "ui_color", "auto"))
        if str(getattr(settings, "ui_pager", "auto")) == "never":
            self._pager = False

    def note(self, sentence: str) -> None:
        """A line on standard error, beside the answer."""
        if sentence:
            self.progress.clear()
            write(sys.stderr, [line(f"git-safety: {sentence}")], self._colours(sys.stderr))

    def show(self, report: r.Report) -> None:
        """Writes the report: raw bytes, JSON, or lines, through the pager where that is wanted."""
        self.progress.clear()
        if self._json:
            sys.stdout.write(json.dumps(r.to_json(report), indent=2) + "\n")
            sys.stdout.flush()
            return
        if isinstance(report, r.RawReport):
            sys.stdout.flush()
            sys.stdout.buffer.write(report.data)
            sys.stdout.buffer.flush()
            return
        write(sys.stderr, render.notices(report), self._colours(sys.stderr))
        if isinstance(report, r.ErrorReport):
            write(sys.stderr, render.error(report), self._colours(sys.stderr))
            return
        lines = render.render(report, self.view())
        colour = self._colours(sys.stdout)
        if self._pager and sys.stdout.isatty() and (command := pager.command(self._environ, self._git.get("core.pager"))):
            pager.page(command, coloured(lines) if colour else plain(lines), self._environ)
        else:
            write(sys.stdout, lines, colour)

    def draw(self, lines: Iterable[Line]) -> None:
        """Writes lines as they come, without a pager."""
        write(sys.stdout, lines, self._colours(sys.stdout))

    @property
    def can_ask(self) -> bool:
        """Whether a person is there to answer."""
        return not self._json and sys.stdin.isatty() and sys.stderr.isatty()

    def answer(self, report: r.Ask | r.Choose) -> Mapping[str, object] | None:
        """What to change in the arguments before the verb runs again; empty: the answer was no; None: there is nobody to ask."""
        if not self.can_ask:
            return None
        self.progress.clear()
        if isinstance(report, r.Ask):
            lines = render.render(report.plan, self.view()) if report.plan else []
            write(sys.stderr, lines, self._colours(sys.stderr))
            answered = choose.yes(report.question, sys.stdin, sys.stderr)
            self.progress.clear()  # the time that the person took is not ours
            return report.answer if answered else {}
        picked = choose.pieces(
            report.hunks, sys.stdin, lambda drawn: write(sys.stderr, drawn, self._colours(sys.stderr)), report.root, self.view()
        )
        self.progress.clear()
        return {"hunks": picked, "plan": report.plan_token} if picked else {}

    def view(self) -> View:
        """Where the reader is, for the drawing."""
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
        home = os.fsencode(self._environ.get("HOME", ""))
        return View(self._cwd, time.time_ns() // 1_000_000, width, home)

    def _colours(self, stream: TextIO) -> bool:
        if self._colour in ("always", "never"):
            return self._colour == "always"
        if self._environ.get("NO_COLOR") or self._environ.get("TERM") in (None, "", "dumb") or not stream.isatty():
            return False
        return self._git.get("color.ui") not in ("never", "false", "no", "off", "0")

    @cached_property
    def _git(self) -> dict[str, str]:
        return pager.git_preferences(self._environ, self._cwd)
