"""Which command texts surely change nothing."""

from __future__ import annotations

import pytest

from safety.policy.reading import reads_only


@pytest.mark.parametrize(
    "command",
    [
        "cat a.txt",
        "cat 'a b' | grep x | wc -l",
        "git status --porcelain",
        "git log --oneline -n 3",
        "ls -la",
        "grep -rn x .",
        "git diff HEAD~1 -- a",
    ],
)
def test_reading_commands(command: str) -> None:
    """A reader, or a pipe of readers, changes nothing."""
    assert reads_only(command)


@pytest.mark.parametrize(
    "command",
    [
        "", "cat a > b", "cat a; rm b", "cat $(rm a)", "cat a && rm b", "sed -i s/a/b/ c", "tee a", "cat a | tee b",
        "find . -delete", "git checkout .", "git diff --output=a", "git log --output a",
        "git -c alias.status='!rm a' status", "cat `rm a`", "cat a\nrm b", "sort -o a a", "cat 'a", "./cat",
        "git grep -Oless x", "git show --ext-diff", "FOO=1 cat a", "sudo cat a",
    ],
)  # fmt: skip
def test_anything_else_may_change_anything(command: str) -> None:
    """What is not surely a reader is not taken for one."""
    assert not reads_only(command)
