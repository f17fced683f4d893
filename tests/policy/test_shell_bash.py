"""What bash itself calls is what the reader finds, for texts written at random; and no text at all makes it fail."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safety.policy.shell import parse
from tests.benchmarks.guard_texts import HARD, WORDS
from tests.policy.against_bash import Bash, Writer, accounts_for


@pytest.mark.parametrize("seed", range(120))
def test_bash_calls_nothing_unread(seed: int, tmp_path: Path) -> None:
    """Each call that bash makes, in its folder and with its words, is among the commands read."""
    bash = Bash(tmp_path)
    text = Writer(random.Random(seed)).text()
    commands = bash.parsed(text)
    for called in bash.calls(text):
        assert any(accounts_for(command, called) for command in commands), (called, text)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=40), st.sampled_from((" ", "", "\n")))
def test_any_text(parts: list[str], joiner: str) -> None:
    """Whatever the text: an answer, the same each time."""
    text = joiner.join(parts)
    assert parse(text, "/w", home="/h") == parse(text, "/w", home="/h")


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("rm -f'\"`$(){}[]<>|&;\\\n#=~*!ab"), max_size=60))
def test_any_quoting(text: str) -> None:
    """As one quoted word the text is that word: nothing in it runs."""
    quoted = "'" + text.replace("'", "'\\''") + "'"
    found = parse(f"echo {quoted}", "/w", home="/h")
    assert [[word.text for word in command.words] for command in found.commands] == [["echo", text]]
    assert not found.trouble


def test_hard_texts() -> None:
    """Deep nesting, unbalanced quotes, a megabyte: answered without delay."""
    parse("true", "/w")
    begin = time.perf_counter()
    for text in HARD:
        parse(text, "/w")
    assert time.perf_counter() - begin < 0.2 * len(HARD)
