"""``git safety watch``: prints the paths that change in the workspace, until it is ended."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

from safety.faults import quoted
from safety.runtime.open import state_home
from safety.store.registry import locate
from safety.terminal.arguments import UsageError
from safety.terminal.dispatch import working_folder
from safety.terminal.text import quote_path
from safety.watch.observer import Batch, Observer, WatchFailed
from safety.watch.skips import inside

_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Prints until SIGTERM, SIGINT or SIGHUP, or until nobody reads any more; then gives 0.

    Paths are relative to the current folder. In the ``json`` format each line is an object with ``path``; one with ``complete``
    false says that more may have changed.
    """
    form = parse(argv)
    ends = {number for number in _ENDS if signal.getsignal(number) != signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        here, home = os.path.realpath(working_folder(environ)), state_home(environ)
        root = locate(home, here).root
        printer = Printer(form, root, here, sys.stdout.buffer)
        observer = Observer(root, printer, skip=inside(root, os.path.realpath(os.fsencode(home))))
        printer.observer = observer
        observer.start()
        signal.sigwait(ends)
        observer.stop()
    finally:
        while signal.sigpending() & ends:
            signal.sigwait(ends)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if observer.problem:
        raise WatchFailed(f"nothing more is heard: {observer.problem}", "sysctl fs.inotify.max_user_watches=1048576")
    if printer.problem:
        raise WatchFailed(printer.problem)
    return 0


def parse(words: Sequence[str]) -> str:
    """The format. ``--json``, which every verb has, is short for ``--format json``."""
    left, form = list(words), "paths"
    while left:
        option, equals, value = left.pop(0).partition("=")
        if option == "--json" and not equals:
            form = "json"
        elif option == "--format" and (equals or left):
            form = value if equals else left.pop(0)
        else:
            raise UsageError(f"watch does not know {quoted(option)}", "git safety watch -h")
    if form not in _FORMATS:
        raise UsageError(f"no format {quoted(form)}; there are {', '.join(_FORMATS)}", "git safety watch -h")
    return form


class Printer:
    """Writes batches to a stream, flushed at once. Ends the process in peace when nobody reads, or nothing is heard, any more."""

    observer: Observer | None = None
    problem = ""

    def __init__(self, form: str, root: bytes, here: bytes, stream: BinaryIO) -> None:
        self._line = _FORMATS[form]
        self._json = form == "json"
        self._root = root
        self._here = here
        self._stream = stream
        self._warned = False

    def __call__(self, batch: Batch) -> None:
        lines = [self._line(os.path.relpath(os.path.join(self._root, path), self._here)) for path in batch.paths]
        if not batch.complete and self._json:
            lines.append(b'{"complete": false}\n')
        try:
            self._stream.write(b"".join(lines))
            self._stream.flush()
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.problem = f"cannot write: {error.strerror}"
            # Python would try again, and complain, when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            self._end()
        if not batch.complete and not self._json and not self._warned:
            self._warned = True
            sys.stderr.write("git-safety: more may have changed than is listed\n")
        if self.observer is not None and self.observer.problem:
            self._end()

    def _end(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def _path_line(path: bytes) -> bytes:
    return quote_path(path).encode("utf-8", "surrogateescape") + b"\n"


def _json_line(path: bytes) -> bytes:
    return json.dumps({"path": path.decode("utf-8", "surrogateescape")}).encode() + b"\n"


_FORMATS: Mapping[str, Callable[[bytes], bytes]] = {"paths": _path_line, "json": _json_line}
