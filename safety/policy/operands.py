"""The words after a program's name as options and operands, the way getopt and git's parse-options read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from safety.policy.shell import Word


@dataclass(frozen=True)
class Spec:
    """Which options a program knows. ``short`` maps letters to names, ``valued`` are names that take the next word if none is glued."""

    short: dict[str, str] = field(default_factory=dict)
    long: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    abbreviates: bool = True
    stops: bool = False
    """Options end at the first operand."""


@lru_cache(maxsize=512)
def spec(text: str, *, abbreviates: bool = True, stops: bool = False) -> Spec:
    """``f|force n|dry-run e|exclude= x color=?``: names an option, its letter in front; ``=`` takes a value, ``=?`` only a glued one."""
    short: dict[str, str] = {}
    long: set[str] = set()
    valued: set[str] = set()
    for item in text.split():
        name, equals, optional = item.partition("=")
        names = name.split("|")
        full = names[-1]
        for alias in names:
            if len(alias) == 1:
                short[alias] = full
        if len(full) > 1:
            long.add(full)
        if equals and not optional:
            valued.add(full)
    return Spec(short, frozenset(long), frozenset(valued), abbreviates, stops)


@dataclass
class Given:
    """What stood after the name. ``options`` in their order with their values, ``rest`` the operands, ``literal`` those after ``--``."""

    options: list[tuple[str, Word | None]] = field(default_factory=list)
    rest: list[Word] = field(default_factory=list)
    literal: list[Word] | None = None

    def has(self, *names: str) -> bool:
        return any(name in names for name, _ in self.options)

    def last(self, *names: str) -> str | None:
        """Which of the names was given last."""
        return next((name for name, _ in reversed(self.options) if name in names), None)

    def values(self, *names: str) -> list[Word]:
        return [value for name, value in self.options if name in names and value is not None]

    def value(self, *names: str) -> str | None:
        found = self.values(*names)
        return found[-1].text if found else None

    def on(self, name: str) -> bool:
        """Whether an option is on, its ``no-`` form, if it comes later, counted."""
        return self.last(name, f"no-{name}") == name

    @property
    def operands(self) -> list[Word]:
        """All operands, before and after ``--``."""
        return [*self.rest, *(self.literal or ())]

    @property
    def unsure(self) -> bool:
        """Whether some word before ``--`` is not known, so that it could be an option."""
        return any(not word.certain and not _path_like(word.text) for word in self.rest)


def read(words: Iterable[Word], known: Spec) -> Given:
    """Reads the words after the program (or the verb)."""
    given = Given()
    rest = iter(words)
    for word in rest:
        text = word.text
        if text == "--":
            given.literal = list(rest)
        elif text.startswith("--"):
            _read_long(text[2:], word, rest, known, given)
        elif text.startswith("-") and len(text) > 1:
            _read_short(text[1:], word, rest, known, given)
        else:
            given.rest.append(word)
            if known.stops:
                given.rest.extend(rest)
    return given


def _read_long(text: str, word: Word, rest: Iterator[Word], known: Spec, given: Given) -> None:
    name, equals, value = text.partition("=")
    full = full_name(name, known.long) if known.abbreviates else name
    if equals:
        given.options.append((full, Word(value, word.certain)))
    else:
        given.options.append((full, next(rest, None) if full in known.valued else None))


def _read_short(text: str, word: Word, rest: Iterator[Word], known: Spec, given: Given) -> None:
    for at, letter in enumerate(text):
        name = known.short.get(letter, letter)
        if name in known.valued:
            glued = text[at + 1 :]
            given.options.append((name, Word(glued, word.certain) if glued else next(rest, None)))
            return
        given.options.append((name, None))


def full_name(name: str, known: frozenset[str]) -> str:
    """The one known option that begins with ``name``; ``name`` itself if it is known, or begins none or several."""
    if name in known:
        return name
    if name.startswith("no-") and name[3:] in known:
        return name
    found = [full for full in known if full.startswith(name)]
    if not found and name.startswith("no-"):
        found = [f"no-{full}" for full in known if full.startswith(name[3:]) and name != "no-"]
    return found[0] if len(found) == 1 else name


def _path_like(text: str) -> bool:
    return "/" in text or "." in text
