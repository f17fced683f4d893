"""The root of every error a person may see: a sentence, a stable code, and a hint that can be typed."""

from __future__ import annotations


class SafetyError(Exception):
    """An expected failure. Subclasses stand beside the code that raises them and set ``code`` and ``exit_code``.

    ``hint`` is a command one can type, or empty. The exit codes are those of the command line: 1 failed and nothing changed,
    2 usage, 3 done with something kept, 4 nothing to do.
    """

    code = "error"
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def sentence(self) -> str:
        """The message and, in brackets, the hint: for where there is one line."""
        return f"{self.message} ({self.hint})" if self.hint else self.message


def quoted(text: str) -> str:
    """A word as it was typed, in quotes, for a message; a byte that is no text as ``\\xff``."""
    return f"'{''.join(map(_shown, text))}'" if any(map(_is_odd, text)) else repr(text)


def _is_odd(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"


def _shown(char: str) -> str:
    return f"\\x{ord(char) - 0xDC00:02x}" if _is_odd(char) else repr(char)[1:-1]
