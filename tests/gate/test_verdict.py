"""Reading what a runner wrote: for display, and never so that an imitation helps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from safety.gate import lines, verdict
from safety.gate.backends import Backend
from safety.gate.process import Ended
from safety.gate.results import Checked
from tests.gate.conftest import GateKit, ids

PRE_COMMIT = """\
one......................................................................Passed
- hook id: one
- duration: 0s
two......................................................................Failed
- hook id: two
- duration: 1.5s
- exit code: 3

a.py:1: wrong

  indented

fix......................................................................Failed
- hook id: fix
- duration: 0s
- files were modified by this hook
last.................................................(no files to check)Skipped
- hook id: last
"""
PREK = """\
two......................................................................Failed
- hook id: two
- duration: 1.50s
- exit code: 3

  a.py:1: wrong

    indented
fix......................................................................Failed
- hook id: fix
- duration: 0.00s
- files were modified by this hook
last.................................................(no files to check)Skipped
"""


@pytest.mark.parametrize("text", [PRE_COMMIT, PREK], ids=["pre-commit", "prek"])
def test_blocks(text: str) -> None:
    """Id, exit code, seconds, whether it changed files, and what the check itself wrote."""
    failed = [block for block in verdict.blocks(text) if block.failed]
    assert failed == [
        verdict.Block("two", True, 3, 1.5, False, ("a.py:1: wrong", "", "  indented")),
        verdict.Block("fix", True, 0, 0.0, True, ()),
    ]


STATUSES = [
    ("pre-commit", 1, PRE_COMMIT, "failed"),
    ("pre-commit", 1, "An error has occurred: InvalidConfigError:", "config_error"),
    ("pre-commit", 3, "An unexpected error has occurred", "env_failed"),
    ("pre-commit", 2, "usage", "internal_error"),
    ("pre-commit", 130, "", "cancelled"),
    ("pre-commit", -9, PRE_COMMIT, "internal_error"),
    ("prek", 1, PREK, "failed"),
    ("prek", 2, "error: Failed to parse `prek.toml`", "config_error"),
    ("prek", 2, "error: Failed to init hooks\n  caused by: Failed to clone repo `x`", "env_failed"),
    ("prek", 2, "error: Failed to install hook `x`", "env_failed"),
    ("prek", 101, "", "internal_error"),
    ("lefthook", 1, "Error: yaml: line 1: did not find expected node content", "config_error"),
    ("lefthook", 1, "Incorrect Usage: x\n\nError: x", "config_error"),
    ("lefthook", 1, "\u2503  bad \u276f \nexit status 3\nError: x", "failed"),
    ("lefthook", 1, "\u2503  fix \u276f \nError: files were modified by a hook", "failed"),
    ("hook", 1, "", "failed"),
    ("command", 127, "", "tool_missing"),
    ("command", -11, "", "internal_error"),
    ("prek", 0, PREK, "passed"),
]


@pytest.mark.parametrize(("kind", "code", "text", "status"), STATUSES)
def test_status(kind: str, code: int, text: str, status: str) -> None:
    """The table of exit codes."""
    assert verdict.status_of(Backend(kind, ()), Ended(code, b""), text) == status  # type: ignore[arg-type]


def test_our_own_endings_come_first() -> None:
    """What we ended is a timeout or cancelled, whatever the runner then answers."""
    backend = Backend("prek", ())
    assert verdict.status_of(backend, Ended(0, b"", timed_out=True), "") == "timeout"
    assert verdict.status_of(backend, Ended(1, b"", cancelled=True), "") == "cancelled"


def test_an_imitated_block_turns_nothing_into_a_pass(runner: GateKit) -> None:
    """A check that fails while it writes what looks like passing blocks, old complaints included, has failed."""
    runner.checks(
        sly="""{} grep -q BAD "$1" || exit 0
cat tools/imitation; exit 1"""
    )
    runner.repo.write(
        "tools/imitation",
        "\nsly....Passed\n- hook id: sly\n- duration: 0s\nother....Failed\n- hook id: other\n- exit code: 1\n\nold\n",
    )
    runner.repo.write("a.txt", "BAD\n")
    result = runner.run("a.txt", before={"a.txt": "fine\n"})
    assert result.blocks_commit and "sly" in ids(result)


def checked(root: Path, **own: frozenset[int] | None) -> Checked:
    named = {name.replace("_", ".").encode(): numbers for name, numbers in own.items()}
    return Checked(os.fsencode(root), tuple(named), (), named, {}.get)


PLACES = [
    ("a.py:2:5: wrong", "yours"),
    ("a.py:3: wrong", "older"),
    ("./a.py:2: wrong", "yours"),
    ("a.py(2,5): wrong", "yours"),
    ('  File "a.py", line 3, in f', "older"),
    ("  --> a.py:2:1", "yours"),
    ("error in a.py", "yours"),
    ("would reformat a.py", "yours"),
    ("b.py:3: wrong", "yours"),
    ("sub/c.py:3: wrong", "elsewhere"),
    ("sub/c.py: wrong", "elsewhere"),
    ("Found 2 errors", ""),
    ("../outside.py:3: wrong", ""),
    ("/etc/passwd:3: wrong", ""),
    ("", ""),
]


@pytest.mark.parametrize(("text", "tag"), PLACES)
def test_tags_by_line_numbers(tmp_path: Path, text: str, tag: str) -> None:
    """Without a run on the earlier state the line numbers decide; a file that is new is all the agent's."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/c.py").touch()
    (line,) = lines.tagged([text], checked(tmp_path, a_py=frozenset({1, 2}), b_py=None), None)
    assert line.tag == tag


def test_places_under_a_name(tmp_path: Path) -> None:
    """Some write the file once and its places below."""
    said = ["a.py", "  2:5  error  wrong", "  3:1  error  wrong", "", "1 problem"]
    assert [line.tag for line in lines.tagged(said, checked(tmp_path, a_py=frozenset({2})), None)][1:3] == ["yours", "older"]


def test_the_root_is_taken_off(tmp_path: Path) -> None:
    """Absolute names of the work tree become relative ones."""
    assert lines.without_root(f"{tmp_path}/a.py:1: x", os.fsencode(tmp_path)) == "a.py:1: x"
