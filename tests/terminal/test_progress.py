"""The progress bar appears late, on a terminal only, and leaves nothing behind."""

from __future__ import annotations

import io
import time

from safety.terminal.progress import QUIET_S, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_short_work_shows_nothing() -> None:
    """Within the first second nothing is drawn."""
    out = Terminal()
    progress = Progress(out, enabled=True)
    progress("files", 5, 10)
    progress.clear()
    assert out.getvalue() == ""


def test_nobody_watching_sees_nothing() -> None:
    """Without a terminal nothing is drawn, however long it takes."""
    out = io.StringIO()
    progress = Progress(out, enabled=False, started=time.monotonic() - 60)
    progress("files", 5, 10)
    progress.clear()
    assert out.getvalue() == ""


def test_long_work_shows_how_far_it_is() -> None:
    """From the first second on the label and the count are there; afterwards the line is cleared."""
    out = Terminal()
    progress = Progress(out, enabled=True, started=time.monotonic() - QUIET_S)
    progress("first [snapshot]", 8410, 100_000)
    progress("unknown end", 3)
    progress.clear()
    assert "first [snapshot]" in out.getvalue() and "8410/100000" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K") or "\x1b[?25h" in out.getvalue()


def test_waiting_for_an_answer_does_not_count() -> None:
    """Cleared, the second begins anew, so that short work after a question draws nothing."""
    out = Terminal()
    progress = Progress(out, enabled=True, started=time.monotonic() - 60)
    progress.clear()
    progress("files", 0, 2)
    progress.clear()
    assert out.getvalue() == ""
