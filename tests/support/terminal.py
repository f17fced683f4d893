"""A program at a terminal of its own: what it shows is waited for, what a person would type is typed."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

WAIT_S = 120
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\r|\x07")


class Terminal:
    """Runs until `close`. ``screen`` is all that was shown, without colours and cursor movements, and without what ``noise`` matches:
    lines that another thread of the program puts anywhere."""

    def __init__(self, args: Sequence[str], cwd: Path, env: Mapping[str, str], noise: str = "(?!)") -> None:
        self._noise = re.compile(noise)
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            args, cwd=cwd, env=dict(env), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self._raw = b""
        self._seen = 0

    @property
    def screen(self) -> str:
        return self._noise.sub("", _CONTROLS.sub("", self._raw.decode("utf-8", "replace")))

    def wait_for(self, text: str) -> None:
        """Waits until ``text`` is shown, after what was waited for before."""
        until = time.monotonic() + WAIT_S
        while (at := self.screen.find(text, self._seen)) < 0:
            left = until - time.monotonic()
            assert left > 0 and self._read(left), f"never shown: {text!r}, but\n{self.screen[self._seen :]}"
        self._seen = at + len(text)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def line(self, text: str = "") -> None:
        """Types a line once the program reads keys by itself: before that the terminal would make another key of the line's end."""
        until = time.monotonic() + WAIT_S
        while termios.tcgetattr(self._ours)[0] & termios.ICRNL and time.monotonic() < until:
            self._read(0.02)
        self.type(text + "\r")

    def interrupt(self) -> None:
        """Ctrl-C, as the terminal's driver would pass it on."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Waits for the program to end by itself."""
        until = time.monotonic() + WAIT_S
        while self._read(max(0.0, until - time.monotonic())):
            pass
        return self.process.wait(timeout=WAIT_S)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._ours)

    def _read(self, wait_s: float) -> bool:
        if not select.select([self._ours], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # the other side is closed
            return False
        self._raw += data
        return bool(data)
