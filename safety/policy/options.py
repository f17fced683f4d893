"""Reading a command's options: unique prefixes of long ones, bundles of short ones, and where they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from safety.policy.words import Word


class Options(NamedTuple):
    """``given``: each option with its value, in order, short ones apart (``-fd`` is ``-f`` and ``-d``), long ones in full.

    ``operands`` come in order; those from ``paths_at`` on stood behind ``--`` (None: there was none).
    """

    given: tuple[tuple[str, Word | None], ...]
    operands: tuple[Word, ...]
    paths_at: int | None

    def has(self, *names: str) -> bool:
        return any(name in names for name, _ in self.given)

    def value(self, *names: str) -> Word | None:
        """The value of the last of these options that was given."""
        return next((value for name, value in reversed(self.given) if name in names), None)


def canonical(option: str, known: Iterable[str]) -> str:
    """``--ha`` is ``--hard`` where no other known long option starts so ([guard] 1.2); a ``=value`` stays behind it.

    ``known`` is as for ``read_options``. What matches nothing, or several, comes back as it is.
    """
    if not option.startswith("--") or len(option) == 2:
        return option
    name, equals, value = option.partition("=")
    names = {each.rstrip("=?") for each in known}
    if name in names:
        return option
    found = [each for each in names if each.startswith(name)]
    return f"{found[0]}{equals}{value}" if len(found) == 1 else option


def read_options(args: Sequence[Word], values: str = "", known: Iterable[str] = (), *, mixed: bool = True) -> Options:
    """Read ``args``, the words behind a command's name.

    ``values``: the short options that take a value. ``known``: the long options, those that need a value with ``=`` at the end, those
    that may have one glued on with ``=?``. ``mixed``: options may also stand behind operands (git, GNU); else the first operand ends
    them.
    """
    known = tuple(known)
    needing = {name[:-1] for name in known if name.endswith("=")}
    given: list[tuple[str, Word | None]] = []
    operands: list[Word] = []
    i = 0
    while i < len(args):
        word, text = args[i], args[i].text
        i += 1
        if text == "--" and word.certain:
            return Options(tuple(given), (*operands, *args[i:]), len(operands))
        if text.startswith("--"):
            name, equals, value = canonical(text, known).partition("=")
            if equals:
                given.append((name, Word(value, word.certain, word.glob, word.made_by)))
            elif name in needing and i < len(args):
                given.append((name, args[i]))
                i += 1
            else:
                given.append((name, None))
        elif len(text) > 1 and text[0] == "-":
            for at, letter in enumerate(text[1:], 2):
                if letter in values:
                    rest = text[at:]
                    given.append((f"-{letter}", Word(rest, word.certain) if rest else args[i] if i < len(args) else None))
                    i += not rest
                    break
                given.append((f"-{letter}", None))
        else:
            operands.append(word)
            if not mixed:
                return Options(tuple(given), (*operands, *args[i:]), None)
    return Options(tuple(given), tuple(operands), None)


def command_at(words: Sequence[Word], values: str = "", longs: Iterable[str] = (), begin: int = 1) -> int:
    """Where the wrapped command starts in a wrapper's ``words``: behind its options and their values."""
    longs = tuple(longs)
    i = begin
    while i < len(words):
        text = words[i].text
        if not words[i].certain and not text.startswith("-"):
            return i
        if text == "--":
            return i + 1
        if text.startswith("--"):
            name = canonical(text, longs)
            i += 2 if "=" not in name and name in longs else 1
        elif text.startswith("-") and len(text) > 1:
            taken = next((at for at, letter in enumerate(text[1:], 2) if letter in values), 0)
            i += 2 if taken == len(text) else 1
        else:
            return i
    return min(i, len(words))
