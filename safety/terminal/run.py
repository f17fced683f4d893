"""``git safety run``: any command under protection. It keeps its terminal, its descriptors, its signals and its exit code.

The command stays in our process group, so Ctrl-C, Ctrl-Z and the terminal's other signals reach it as they would without us. We
block them and only wait: what the terminal sent is left alone, what another process sent to us is passed on, and we stop when it
stops.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from safety.terminal.arguments import UsageError
from safety.terminal.progress import Progress
from safety.terminal.protect import Protection, Summary
from safety.terminal.text import clean, count, quote_path

MOST_NAMED = 3  # paths in the closing line
NOT_STARTED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127

_PASSED_ON = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH,
)  # fmt: skip
_FROM_KEYBOARD = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH)
_SI_KERNEL = 0x80  # Linux: the terminal sent it, to the whole process group


@dataclass(frozen=True)
class RunArgs:
    """``summary`` is the file for the summary, ``name`` the name in the log."""

    command: tuple[str, ...]
    quiet: bool = False
    name: str = ""
    summary: str = ""


def parse(words: Sequence[str]) -> RunArgs:
    """Our options end at ``--`` or at the first word that is none. Raises UsageError."""
    found: dict[str, str] = {}
    left = list(words)
    while left and left[0].startswith("-"):
        word = left.pop(0)
        if word == "--":
            break
        option, equals, value = word.partition("=")
        if word in ("-q", "--quiet"):
            found["quiet"] = "yes"
        elif option in ("--json", "--name"):
            if not equals and not left:
                raise UsageError(f"{option} needs a value", "git safety run -h")
            found[option[2:]] = value if equals else left.pop(0)
        else:
            raise UsageError(f"unknown option {word}; the command comes after --", "git safety run -h")
    if not left:
        raise UsageError("no command to run", "git safety run -- COMMAND")
    return RunArgs(tuple(left), "quiet" in found, found.get("name", ""), found.get("json", ""))


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs the command and gives its exit code, as a shell would: 128+n for a signal, 126 and 127 if it cannot be started.

    125 is ours: protection could not be set up and ``fail_closed`` is on. Raises UsageError before anything is run.
    """
    args = parse(argv)
    report = _SummaryFile(args.summary) if args.summary else None
    code, summary = _run(args, environ)
    if summary.turns and not args.quiet and os.isatty(sys.stderr.fileno()):
        _say(summary_line(summary))
    if report is not None:
        report.write({"command": list(args.command), "exit_code": code, **summary.as_json()})
    return code


def _run(args: RunArgs, environ: Mapping[str, str]) -> tuple[int, Summary]:
    program, code = find_program(args.command[0], environ)
    if code:
        _say(f"{args.command[0]}: {program}")
        return code, Summary()
    protection = Protection(_folder(), args.command, args.name, environ)
    progress = Progress(sys.stderr, os.isatty(sys.stderr.fileno()))
    try:
        protection.begin(progress)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT, protection.finish("not started")
    finally:
        progress.clear()
    before = protection.problem
    if before:
        _say(f"not protected: {before}")
    if protection.denied:
        _say("the command was not run, because fail_closed is on")
        return NOT_STARTED, protection.finish("not started")
    with Signals() as signals:
        code, summary = _supervise(program, args, environ, protection, signals)
    if summary.problem != before:
        _say(f"not protected: {summary.problem}")
    return code, summary


def _supervise(
    program: str, args: RunArgs, environ: Mapping[str, str], protection: Protection, signals: Signals
) -> tuple[int, Summary]:
    """Starts the command, waits for its end, records what it did."""
    try:
        pid = start(program, args.command, {**environ, **protection.environment}, signals.before)
    except OSError as error:
        # It was found; what a second look misses is the interpreter that its first line names.
        _say(f"{args.command[0]}: {'no such interpreter' if error.errno == errno.ENOENT else error.strerror}")
        return NOT_EXECUTABLE, protection.finish("not started")
    # The command may delete the folder we stand in.
    os.chdir("/")
    protection.observe()
    code = wait(pid, signals, protection.capturing)
    return code, _finish(protection, code, signals)


def _finish(protection: Protection, code: int, signals: Signals) -> Summary:
    """The last capture, in a thread, so that a second Ctrl-C can still end us."""
    done: list[Summary] = []
    here = threading.get_ident()

    def work() -> None:
        done.append(protection.finish(f"exit code {code}" if code else ""))
        signal.pthread_kill(here, signal.SIGCHLD)

    threading.Thread(target=work, daemon=True).start()
    asked = False
    while not done:
        number, _ = signals.wait()
        if done or number not in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            continue
        if asked:
            return Summary(problem="ended before the last snapshot; the command's last changes are not recorded")
        asked = True
        _say("recording what changed; once more to leave it unrecorded")
    return done[0]


# -- the program -------------------------------------------------------------------------------------------------------------


def find_program(name: str, environ: Mapping[str, str]) -> tuple[str, int]:
    """The file to execute and 0, or what is wrong with it in words and 126 or 127."""
    if "/" not in name:
        path = environ.get("PATH", os.defpath)
        if found := shutil.which(name, path=path):
            return found, 0
        return ("permission denied", NOT_EXECUTABLE) if shutil.which(name, os.F_OK, path) else ("command not found", NOT_FOUND)
    try:
        mode = os.stat(name).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "no such file", NOT_FOUND
    except OSError as error:
        return str(error.strerror), NOT_EXECUTABLE
    if stat.S_ISDIR(mode):
        return "is a directory", NOT_EXECUTABLE
    return (name, 0) if os.access(name, os.X_OK) else ("permission denied", NOT_EXECUTABLE)


def start(program: str, command: Sequence[str], environ: Mapping[str, str], mask: set[signal.Signals]) -> int:
    """The process id of the command, started with the signal mask we had, every inherited descriptor, and SIGPIPE as usual.

    A file without a first line that names its interpreter is given to ``/bin/sh``, as a shell does. Raises OSError.
    """
    usual = [signal.SIGPIPE, signal.SIGXFSZ]  # ignored by Python
    try:
        return os.posix_spawn(program, list(command), environ, setsigmask=mask, setsigdef=usual)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    words = ["sh", program, *command[1:]]
    return os.posix_spawn("/bin/sh", words, environ, setsigmask=mask, setsigdef=usual)


def wait(pid: int, signals: Signals, capturing: threading.Lock) -> int:
    """Waits for the end of ``pid``, passing signals on and stopping with it; gives its exit code as a shell does.

    We never stop with ``capturing`` held: the lock of the workspace would stop with us.
    """
    while True:
        number, typed = signals.wait()
        if number == signal.SIGCHLD:
            found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if found and os.WIFSTOPPED(status):
                with capturing:
                    _stop_too()
            elif found:
                code = os.waitstatus_to_exitcode(status)
                return 128 - code if code < 0 else code
        elif not typed:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _stop_too() -> None:
    """Stops us as the command was stopped, if a shell is there to continue us: we are in the terminal's foreground."""
    if _in_foreground():
        os.kill(os.getpid(), signal.SIGSTOP)


def _in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


class Signals:
    """Holds back every signal that we would pass on, and the news of children, and hands them out one by one."""

    def __init__(self) -> None:
        self._held = {*_PASSED_ON, signal.SIGCHLD}
        self.before: set[signal.Signals] = set()

    def __enter__(self) -> Self:
        if signal.getsignal(signal.SIGCHLD) != signal.SIG_DFL:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would take the exit code away
        self.before = {signal.Signals(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, self._held)}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while hasattr(signal, "sigtimedwait") and signal.sigtimedwait(self._held, 0):
            pass  # what came too late for the command is for nobody
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)

    def wait(self) -> tuple[int, bool]:
        """The next signal, and whether the command got it too, because it was sent to the terminal's whole foreground group.

        The kernel does that for Ctrl-C. A member of the group that sends us the same means the group as well: an editor that
        suspends itself, or a parent that relays what it got, as git does for ``git safety``.
        """
        if not hasattr(signal, "sigwaitinfo"):  # macOS: the sender is not told
            number = signal.sigwait(self._held)
            return number, number in _FROM_KEYBOARD and _in_foreground()
        info = signal.sigwaitinfo(self._held)
        typed = info.si_code == _SI_KERNEL or (info.si_signo in _FROM_KEYBOARD and _in_group(info.si_pid) and _in_foreground())
        return info.si_signo, typed


def _in_group(pid: int) -> bool:
    try:
        return os.getpgid(pid) == os.getpgrp()
    except OSError:
        return False


# -- what is said ------------------------------------------------------------------------------------------------------------


def summary_line(summary: Summary) -> str:
    """One line about what changed, what of it cannot be taken back, and how to take the rest back."""
    lost = _lost([path for turn in summary.turns for path in turn.uncovered])
    if len(summary.turns) > 1:
        return ". ".join(filter(None, [f"{summary.turns[0].handle} … {summary.turns[-1].handle}, git safety log", lost]))
    turn = summary.turns[0]
    changed = [f"changed {count(turn.changed, 'file')}"] if turn.changed else []
    noun = "path" if lost else "file"  # an ignored folder is one path
    removed = [f"removed {turn.removed}" if changed else f"removed {count(turn.removed, noun)}"] if turn.removed else []
    said = ", ".join(changed + removed) or ("changed the state of git" if turn.undoable else "changed what no snapshot holds")
    rest = "Take the rest back" if lost else "Take it back"
    return ". ".join(filter(None, [f"{turn.handle} {said}", lost, f"{rest}: git safety undo" if turn.undoable else ""]))


def _lost(paths: Sequence[str]) -> str:
    """``1 path cannot be taken back: big.db``; empty for none."""
    names = [quote_path(os.fsencode(path)) for path in paths[:MOST_NAMED]]
    more = [f"{len(paths) - MOST_NAMED} more"] if len(paths) > MOST_NAMED else []
    return f"{count(len(paths), 'path')} cannot be taken back: {', '.join(names + more)}" if paths else ""


def _say(text: str) -> None:
    """One line on standard error; nobody may be there to read it."""
    with suppress(OSError, ValueError):
        print(f"git-safety: {clean(text)}", file=sys.stderr, flush=True)


def _folder() -> bytes:
    """The current folder; empty if it is gone."""
    try:
        return os.getcwdb()
    except OSError:
        return b""


class _SummaryFile:
    """The file of ``--json``, opened before the command runs, since the command may delete the folder it is in."""

    def __init__(self, name: str) -> None:
        self._name = os.path.abspath(name)
        try:
            self._file = open(self._name, "ab")  # noqa: SIM115 - held while the command runs
        except OSError as error:
            raise UsageError(f"cannot write {name}: {error.strerror}", "git safety run -h") from error

    def write(self, value: Mapping[str, object]) -> None:
        text = (json.dumps(value, indent=2) + "\n").encode()
        try:
            with self._file as file:
                seen = os.fstat(file.fileno())
                if stat.S_ISREG(seen.st_mode):
                    file.truncate(0)
                if seen.st_nlink:
                    file.write(text)
                    return
            with open(self._name, "wb") as again:
                again.write(text)
        except OSError as error:
            _say(f"could not write {self._name}: {error.strerror}")
