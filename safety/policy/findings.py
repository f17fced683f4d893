"""What all shells of one parse share: what was found, and how much more may be done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from safety.policy.scan import danger_words
from safety.policy.tokens import MAX_STEPS
from safety.policy.words import Code, Command, Parsed, Word


class Findings:
    """What all shells of one parse share: what was found, and how much more may be done."""

    def __init__(self, grammar: Callable[[], Callable[[bytes], Any]], aliases: Mapping[str, str]) -> None:
        self.grammar = grammar  # gives what turns simplified text into a tree's root
        self.git_aliases = aliases
        self.commands: list[Command] = []
        self.codes: list[Code] = []
        self.trouble: list[str] = []
        self.danger: list[str] = []
        self.scanned = False
        self.foreign = ""  # powershell or cmd, where the text is for it
        self.nodes = 0
        self.traps: list[tuple[Any, Word]] = []  # a shell, and what it runs when it ends
        self.level = 0
        self.characters = 0
        self.steps = [MAX_STEPS]

    def scan(self, text: str, why: str) -> None:
        self.scanned = True
        self.trouble.append(why)
        self.danger += danger_words(text)

    def parsed(self) -> Parsed:
        trouble, danger = dict.fromkeys(self.trouble), dict.fromkeys(self.danger)
        return Parsed(tuple(self.commands), tuple(self.codes), tuple(trouble), self.scanned, tuple(danger))
