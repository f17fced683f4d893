"""Regular expressions that are compiled when they are first used: a guard is loaded for every call, and most calls need few of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator


class Pattern:
    """Like ``re.compile(text, flags)``, but later."""

    __slots__ = ("_flags", "_made", "_text")

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text = text
        self._flags = flags
        self._made: re.Pattern[str] | None = None

    def _pattern(self) -> re.Pattern[str]:
        if self._made is None:
            self._made = re.compile(self._text, self._flags)
        return self._made

    def match(self, text: str) -> re.Match[str] | None:
        return self._pattern().match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._pattern().fullmatch(text)

    def search(self, text: str) -> re.Match[str] | None:
        return self._pattern().search(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._pattern().finditer(text)

    def sub(self, new: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self._pattern().sub(new, text)
