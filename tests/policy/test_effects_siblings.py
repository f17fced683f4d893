"""Whole verdicts on many commands, each in its context, which is built for real. No command is executed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks.guard_corpus import Builder, judged

LINES = Path(__file__).with_name("guard_siblings.txt")


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("guard"))


def siblings() -> Iterator[tuple[str, str, str]]:
    for line in LINES.read_text().splitlines():
        if line and not line.startswith("#"):
            wanted, context, command = line.split(" ", 2)
            yield wanted, context, command.replace("\\n", "\n") if "<<" in command else command


def test_only_what_cannot_be_undone_is_stopped(contexts: Builder) -> None:
    """``stop``: deny or ask. ``allow`` and ``undo``: nobody is asked, as nothing is lost or the snapshot holds it."""
    wrong = []
    for wanted, context, command in siblings():
        found = judged({"cmd": command}, contexts.context(context), snapshot=True)
        if found.stopped != (wanted == "stop"):
            wrong.append(f"{wanted} {context} {command!r}: {found.verdict.action} {found.verdict.rule} {found.verdict.loses}")
    assert not wrong, "\n".join(wrong)


def test_without_a_snapshot_what_it_would_hold_is_asked_about(contexts: Builder) -> None:
    """``undo`` lines are stopped when the snapshot failed; what stops with a snapshot stops without one, too."""
    wrong = []
    for wanted, context, command in siblings():
        if wanted != "allow" and not judged({"cmd": command}, contexts.context(context), snapshot=False).stopped:
            wrong.append(f"{context} {command!r}")
    assert not wrong, "\n".join(wrong)
