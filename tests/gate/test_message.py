"""The texts for the model and the user, to the letter where they are fixed ([ux] 2.7), and their limits ([gate] A7)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from safety.gate.message import line_for_user, message_for_model
from safety.gate.plain import plain, shown
from safety.gate.results import CheckFailure, GateResult, Line

FAILED = GateResult(
    "failed",
    "prek",
    failures=(
        CheckFailure(
            "ruff-check",
            1,
            0.1,
            (Line("src/client.py:41:5 F841 local variable `resp` is assigned to but never used", "yours"),),
        ),
        CheckFailure(
            "mypy",
            1,
            0.4,
            (
                Line("src/util.py:12 Missing return statement", "older"),
                Line('src/client.py:77 Argument 1 to "retry" has incompatible type "str"', "yours"),
            ),
        ),
    ),
    fixed=(b"src/client.py",),
    log=Path("/state/checks.log"),
    files=4,
    warn_only=True,
)

TEXT = """\
git-safety: 2 checks failed, nothing was committed (try 1 of 3, 4 files of this turn checked)

ruff-check, exit 1
  src/client.py:41:5 F841 local variable `resp` is assigned to but never used        [yours]
mypy, exit 1
  src/client.py:77 Argument 1 to "retry" has incompatible type "str"                 [yours]
  src/util.py:12 Missing return statement                                            [older, leave it]

Changed by the checks, read again before editing: src/client.py
Full output: git safety show t15 --checks
Fix what is marked [yours] and end your turn. Leave commits, --no-verify and the check configuration alone."""


def test_failed() -> None:
    """The report of a failure: verdict, checks with the agent's lines first, what was changed, where all of it is, what to do."""
    assert message_for_model(FAILED, 1, 3, "t15", 6000) == TEXT


def test_the_check_that_changed_a_file_is_named_when_it_is_one() -> None:
    """If a single check says that it changed files, it stands beside their names."""
    fixer = CheckFailure("ruff-format", 0, 0.1, (), modified=True)
    text = message_for_model(replace(FAILED, failures=(*FAILED.failures, fixer)), 1, 3, "t15")
    assert "editing: src/client.py (ruff-format)\n" in text
    assert "\nruff-format, failed, keeps changing files\n" in text


def test_the_user_hears_one_line() -> None:
    """Sent back, and handed over at the end, with the checks' names and the tries that were made."""
    assert line_for_user(FAILED, 1, 3, "Claude Code") == "git-safety: 2 checks failed, sent back to Claude Code (1 of 3)"
    last = replace(FAILED, failures=FAILED.failures[1:])
    assert line_for_user(last, 4, 3, "Claude Code", "t15") == (
        "mypy still fails after 3 tries; nothing committed, files as the agent left them: git safety show t15 --checks"
    )
    assert line_for_user(last, 3, 3, "Claude Code", sent_back=False).startswith("mypy still fails after 2 tries;")


WHY = {
    "tool_missing": "the checks could not run: their tool is not installed",
    "config_error": "the checks could not run: their configuration is not valid",
    "env_failed": "the checks could not be set up",
    "timeout": "the checks did not end in time",
    "cancelled": "the checks were cancelled",
    "internal_error": "the checks could not run",
}


@pytest.mark.parametrize("status", WHY)
def test_what_the_model_cannot_mend(status: str) -> None:
    """One line for the model that sends it nowhere; the user gets the reason."""
    result = GateResult(status, text="the reason\nand more")  # type: ignore[arg-type]
    assert message_for_model(result, 1, 3, "t15") == (
        f"git-safety: {WHY[status]}, nothing was committed. This is not your fault, do not try to fix it."
    )
    assert line_for_user(result, 1, 3, "Codex") == f"git-safety: {WHY[status]}; nothing committed: the reason"


def test_checks_that_were_not_run_are_named() -> None:
    """The line names the checks that could not be set up, or started."""
    result = GateResult("env_failed", skipped=("mypy: could not be set up or started", "x: left out by setting"))
    assert message_for_model(result, 1, 3, "t15").startswith("git-safety: these checks could not be set up: mypy, nothing was")


def test_a_configuration_of_the_agents_is_shown_to_it() -> None:
    """Who broke the configuration in this turn sees what is wrong with it."""
    result = GateResult("config_error", text="At key: repos\nExpected a list", config_is_agents=True)
    text = message_for_model(result, 1, 3, "t15")
    assert text.startswith("git-safety: the checks could not run: their configuration is not valid, nothing was committed.")
    assert "  At key: repos\n  Expected a list" in text and "not your fault" not in text


def test_when_there_is_nothing_to_say() -> None:
    """A run that passed, had nothing to do, or is not configured is no message."""
    for status in ("passed", "nothing_to_check", "not_configured"):
        assert message_for_model(GateResult(status), 1, 3, "t15") == ""  # type: ignore[arg-type]
    assert line_for_user(GateResult("passed", files=2), 1, 3, "Codex") == "git-safety: checks passed (2 files of this turn)"
    assert line_for_user(GateResult("nothing_to_check"), 1, 3, "Codex") == ""
    assert line_for_user(GateResult("not_configured"), 1, 3, "Codex") == ""


def test_fixes_are_told() -> None:
    """Files that the checks changed must be read again; older failures are the user's to hear of."""
    fixed = GateResult("passed_with_fixes", fixed=(b"a.py", b"b\nc.py"))
    assert message_for_model(fixed, 1, 3, "t15").endswith("read again before editing: a.py, b\\nc.py")
    older = GateResult("failed", failures=(CheckFailure("mypy", 1, 0.1, (), older=True),), warn_only=True)
    assert message_for_model(older, 1, 3, "t15") == ""
    assert message_for_model(replace(older, fixed=(b"a.py",)), 1, 3, "t15").endswith("editing: a.py")
    assert line_for_user(older, 1, 3, "Codex") == "git-safety: 1 check failed on what was there before this turn"


def noisy(lines: list[str], checks: int = 1) -> GateResult:
    said = tuple(Line(text, "yours") for text in lines)
    return replace(FAILED, failures=tuple(CheckFailure(f"check-{number}", 1, 0.1, said) for number in range(checks)))


def test_limits_of_one_check() -> None:
    """40 lines and 2,000 characters a check, both ends kept, repeated lines folded."""
    text = message_for_model(noisy([f"a.py:{number}: wrong" for number in range(1000)]), 1, 3, "t15")
    block = text.split("\n\n")[1].split("\n")
    assert len(block) <= 41 and sum(map(len, block)) <= 2100
    assert "a.py:0:" in block[1] and "a.py:999:" in block[-1] and "lines left out]" in text
    folded = message_for_model(noisy(["a.py:1: same"] * 500), 1, 3, "t15")
    assert folded.count("same") == 1 and "(x500)" in folded
    long = message_for_model(noisy(["x" * 100_000]), 1, 3, "t15")
    assert len(long) < 2500


@pytest.mark.parametrize("longest", [6000, 1500, 300, 50])
def test_limit_of_all(longest: int) -> None:
    """However much there is, the whole stays below the limit, and the first line and the last ones are there while there is room."""
    result = noisy([f"a.py:{number}: wrong {'word ' * 9}" for number in range(500)], checks=30)
    text = message_for_model(result, 2, 3, "t15", longest)
    assert len(text) <= longest
    if longest >= 1500:
        assert text.startswith("git-safety: 30 checks failed, nothing was committed (try 2 of 3, 4 files of this turn checked)\n")
        assert text.endswith("Leave commits, --no-verify and the check configuration alone.")


def test_foreign_text_is_made_plain() -> None:
    """No escape sequence, control character or hidden character of a check's reaches a model or a terminal."""
    assert plain(b"\x1b[31mred\x1b[0m \x1b]0;title\x07ok\x1b]8;;http://x\x1b\\link") == "red oklink"
    assert plain("\x9b5mblink") == "blink"
    assert plain("50%\r100%\r\nnext\u202e\u200b\U000e0041\x00\x08") == "100%\nnext"
    assert plain(b"\xff\xfe") == "\ufffd\ufffd"
    assert shown(b"b\xe9\x1b[31m\n.py") == "b\\xe9\\n.py"
    result = noisy(["\x1b[2Ja.py:1: \x1b[31mwrong\x1b[0m"])
    assert "\x1b" not in message_for_model(result, 1, 3, "t15")
