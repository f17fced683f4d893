"""A progress bar for work that takes over a second, on a terminal only."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

QUIET_S = 1.0


class Progress:
    """Called by an engine as ``progress(label, done, total)``; draws from the second on which the work has gone on too long.

    ``total`` None: the end is not known. Cheap to call often; `clear` takes the bar away. ``started``: by ``time.monotonic``.
    """

    def __init__(self, stream: TextIO, enabled: bool, started: float | None = None) -> None:
        self._stream = stream
        self._enabled = enabled
        self._start = time.monotonic() if started is None else started
        self._bar: Bar | None = None
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        if not self._enabled or (self._bar is None and time.monotonic() - self._start < QUIET_S):
            return
        if self._bar is None:
            self._bar = _bar(self._stream)
        if label not in self._tasks:
            self._tasks[label] = self._bar.add_task(label, total=total)
        self._bar.update(self._tasks[label], completed=done, total=total)

    def clear(self) -> None:
        """Removes what was drawn. The next call may draw again, after as long as at first: a person may have been asked meanwhile."""
        self._start = time.monotonic()
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._tasks = None, {}


def _bar(stream: TextIO) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(file=stream, highlight=False, emoji=False),
        transient=True,
    )
    bar.start()
    return bar
