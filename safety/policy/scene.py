"""What the families of commands share while a call is read: its facts, the whole parse, and how a word becomes a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from safety.policy import places
from safety.policy.patterns import Pattern
from safety.policy.shell import Code, Command, Parsed, Word
from safety.policy.values import CallFacts, Effect

#: Reads a further text, as a shell in a folder would run it.
Again = Callable[[str, str | None], Iterable[Effect]]


@dataclass(frozen=True)
class Target:
    """A path that a word names. ``path`` is absolute and may hold a pattern; None: it cannot be told."""

    path: str | None
    word: str


@dataclass(frozen=True)
class Scene:
    """One call being read."""

    facts: CallFacts
    parsed: Parsed
    again: Again
    code: Callable[[Code], Iterable[Effect]]

    def target(self, word: Word, cwd: str | None) -> Target:
        """The path that a word names when a program is given it in ``cwd``."""
        if not word.certain:
            fresh = word.made_by == "mktemp" and word.text.startswith(("$", "`"))
            return Target(f"{self.facts.temp[0]}/of-its-own" if fresh else None, word.text)
        return Target(places.absolute(word.text, cwd), word.text)


def shown(command: Command) -> str:
    """The command as one would type it, short enough for a sentence."""
    text = " ".join(word.text or "''" for word in command.words)
    return text if len(text) <= 200 else text[:199] + "…"


def labelled(effects: Iterable[Effect], command: str) -> Iterator[Effect]:
    """The same effects, each with the command it comes from."""
    for effect in effects:
        yield effect if effect.command else replace(effect, command=command)


_SECRET_VARIABLE = Pattern(
    r"(?<!\\)\$\{?(?!#)(?:\w*_)?(?:SECRET|TOKEN|PASSWORD|PASSWD|PASS|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|CREDENTIALS?"
    r"|SECRETS)(?:_(?!FILE|PATH|URL|NAME|ID\b)\w*)?"
    r"(?:\}|(?![\w:]))"
)


def names_secret(word: Word) -> bool:
    """Whether a word that is not known holds a variable whose name says that it is a secret."""
    return not word.certain and bool(_SECRET_VARIABLE.search(word.text))


def home_path(path: str, scene: Scene) -> str:
    """``~`` at the front, which most of these calls do not know but whose writer meant it."""
    return scene.facts.home + path[1:] if path == "~" or path.startswith("~/") else path
