"""SIGINT, SIGTERM and SIGHUP held back while a commit is between two states, and let through where it can be given up."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

_Handler = Callable[[int, FrameType | None], object]


class Terminated(BaseException):
    """SIGTERM or SIGHUP (the argument) came; the process ends as soon as what it holds is put away."""


class Interrupts:
    """Inside the block the signals wait, but for the time of ``allowed``; what has come ends the process (or its wait) afterwards.

    Python runs handlers in the main thread only, so elsewhere there is nothing to hold back. A signal that is ignored stays so.
    """

    def __init__(self) -> None:
        self._before: dict[int, _Handler | int | None] = {}
        self._waiting: int | None = None
        self._allowed = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                before = signal.getsignal(number)
                if callable(before) or before is signal.SIG_DFL:
                    self._before[number] = before
                    signal.signal(number, self._came)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        number = self._waiting
        for each, before in self._before.items():
            signal.signal(each, before)
        if isinstance(value, Terminated):
            number = value.args[0]
        if number is not None:
            os.kill(os.getpid(), number)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Inside the block, and at its begin, a signal has its effect at once."""
        self._allowed = True
        try:
            if self._waiting is not None:
                number, self._waiting = self._waiting, None
                self._act(number, None)
            yield
        finally:
            self._allowed = False

    def _came(self, number: int, frame: FrameType | None) -> None:
        if self._allowed:
            self._allowed = False
            self._act(number, frame)
        else:
            self._waiting = number

    def _act(self, number: int, frame: FrameType | None) -> None:
        before = self._before[number]
        if callable(before):
            before(number, frame)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise Terminated(number)
