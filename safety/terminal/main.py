"""The door of ``git-safety``: finds the verb, hands on its words, draws what comes back. Whatever goes wrong inside ends here
as one ``Error:`` and never as a traceback.

Imports only what every call needs, so that ``--version`` and hooks cost little more than the interpreter: the parser, the
drawing, the engine and ``rich`` come in when a verb wants them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from safety.faults import SafetyError
from safety.release import VERSION

# `typing` costs as much as all the rest of `--version`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, TextIO

INTERRUPTED = 130
BROKEN_PIPE = 141
_MAX_LOG_BYTES = 1 << 20


def entry() -> NoReturn:
    """The console script."""
    if sys.platform == "win32":
        sys.exit(refuse_windows(sys.stderr))
    sys.exit(main(sys.argv[1:], os.environ))


def refuse_windows(stderr: TextIO) -> int:
    """Windows has other file modes, locks and renames; git-safety runs beside it."""
    stderr.write("Error: git-safety runs on Linux and macOS; on Windows it works inside WSL\nHint: wsl --install\n")
    return 1


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Runs one command line and gives its exit code. The streams are the process's own; nothing else of it is read here."""
    words = list(argv)
    try:
        if words[:1] == ["hook"] and words[1:2] not in (["-h"], ["--help"]):
            from safety.terminal import hook

            return hook.main(words[1:], environ)
        return _main(words, environ)
    except BrokenPipeError:
        # The reader left (`| head`). Python would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return INTERRUPTED
    except SafetyError as error:
        return _fail(error, words)
    except Exception as error:  # noqa: BLE001 - the mouth: what nobody expected becomes a line and a log entry
        return _fail(_logged(error, environ), words)


def _main(words: list[str], environ: Mapping[str, str]) -> int:
    if words[:1] in (["--version"], ["version"], ["-V"]) and len(words) == 1:
        sys.stdout.write(f"git-safety {VERSION}\n")
        return 0
    from safety.terminal import dispatch

    return dispatch.run(words, environ)


def _fail(error: SafetyError, words: Sequence[str]) -> int:
    from safety.commands.report import ErrorReport, to_json
    from safety.terminal.render import error as drawn
    from safety.terminal.screen import plain

    report = ErrorReport(
        code=error.code, message=error.message, causes=_causes(error), hint=error.hint, exit_code=error.exit_code
    )  # fmt: skip
    own = words[: words.index("--")] if "--" in words else words
    if "--json" in own and own[:1] != ["run"]:
        import json

        sys.stdout.write(json.dumps(to_json(report), indent=2) + "\n")
    else:
        sys.stderr.write(plain(drawn(report)))
    return error.exit_code


def _causes(error: BaseException) -> tuple[str, ...]:
    """The sentences of what was raised before, from ``raise ... from``, as far as they say more than those above them."""
    said = [getattr(error, "message", "")]
    cause = error.__cause__
    while cause is not None and len(said) < 6:
        text = getattr(cause, "message", "") or str(cause) or type(cause).__name__
        if not any(text in each for each in said):
            said.append(text)
        cause = cause.__cause__
    return tuple(said[1:])


class InternalError(SafetyError):
    """A fault of ours."""

    code = "internal-error"


def _logged(error: Exception, environ: Mapping[str, str]) -> SafetyError:
    """The error as a sentence that names the file with its traceback. Without a writable folder the sentence says so."""
    if isinstance(error, MemoryError):
        return InternalError("out of memory; nothing more was done")
    name = f"git-safety failed inside ({type(error).__name__}: {error})"
    path = os.path.join(state_folder(environ), "errors.log")
    try:
        _append(path, error)
    except OSError as problem:
        return InternalError(f"{name}; the details could not be written to {path}: {problem.strerror}", "git safety doctor")
    return InternalError(f"{name}; the details are in {path}", "git safety doctor")


def _append(path: str, error: Exception) -> None:
    import traceback

    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    full = os.path.exists(path) and os.path.getsize(path) > _MAX_LOG_BYTES
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (os.O_TRUNC if full else os.O_APPEND)
    entry = f"git-safety {VERSION}, Python {sys.version.split()[0]}\n{''.join(traceback.format_exception(error))}\n"
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="backslashreplace") as log:
        log.write(entry)


def state_folder(environ: Mapping[str, str]) -> str:
    """Where the store and the log of errors are. Read here too, since the log must work when nothing else does."""
    if own := environ.get("GIT_SAFETY_HOME"):
        return own
    home = environ.get("HOME") or os.path.expanduser("~")
    state = environ.get("XDG_STATE_HOME", "")
    return os.path.join(state if os.path.isabs(state) else os.path.join(home, ".local", "state"), "git-safety")


if __name__ == "__main__":
    entry()
