"""Hunks: git agrees with what is shown, and applying them is exact."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safety.plumbing.diff import Hunk, apply, hunks, is_binary, split_hunk, split_lines, unified

LINE = st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"\r\n", b"x\ry\n", b"\xff\n"])
TEXT = st.builds(lambda lines, last: b"".join(lines) + last, st.lists(LINE, max_size=14), st.sampled_from([b"", b"end", b"a"]))


def numbered(count: int) -> list[bytes]:
    return [b"line %d\n" % number for number in range(count)]


@given(old=TEXT, new=TEXT, context=st.integers(0, 4))
def test_all_hunks_applied_give_the_new_text(old: bytes, new: bytes, context: int) -> None:
    """To the byte, for any context, whole or split; equal texts have no hunk."""
    found = hunks(old, new, context=context)

    assert apply(old, found) == new
    assert apply(old, [part for hunk in found for part in split_hunk(hunk)]) == new
    assert apply(old, []) == old
    assert (found == []) == (old == new)


@given(old=TEXT, new=TEXT)
def test_a_shown_diff_is_one_that_git_applies(old: bytes, new: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """`git apply` turns the old file into the new one by our text."""
    folder = tmp_path_factory.mktemp("apply")
    (folder / "f").write_bytes(old)
    patch = unified(old, new, b"a/f", b"b/f")
    if old == new:
        assert patch == []
        return

    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin", "GIT_CEILING_DIRECTORIES": str(folder.parent)},
        input=b"\n".join(patch) + b"\n",
        check=True,
        capture_output=True,
    )

    assert (folder / "f").read_bytes() == new


def test_the_text_is_that_of_git(tmp_path: Path, env: dict[str, str]) -> None:
    """Header, context, missing last line end: the same lines as `git diff` for a plain case."""
    old, new = numbered(30), numbered(30)
    new[3:4] = [b"changed\n", b"added\n"]
    del new[20]
    new[-1] = b"line 29"
    (tmp_path / "a").write_bytes(b"".join(old))
    (tmp_path / "b").write_bytes(b"".join(new))
    shown = subprocess.run(
        ["git", "diff", "--no-index", "a", "b"], cwd=tmp_path, env=env, capture_output=True, check=False
    ).stdout
    theirs = [line.split(b" @@")[0] + b" @@" if line.startswith(b"@@") else line for line in shown.splitlines()[2:]]

    assert unified(b"".join(old), b"".join(new), b"a/a", b"b/b") == theirs


def test_hunks_can_be_chosen_one_by_one() -> None:
    """Each hunk applies without the others, in any order given."""
    old, new = numbered(40), numbered(40)
    new[2], new[20], new[38] = b"A\n", b"B\n", b"C\n"
    first, second, third = hunks(b"".join(old), b"".join(new))

    chosen = apply(b"".join(old), [third, first])

    assert chosen == b"".join([*old[:2], b"A\n", *old[3:38], b"C\n", old[39]])
    assert apply(b"".join(old), [second]) == b"".join([*old[:20], b"B\n", *old[21:]])


def test_a_last_line_without_end_gets_one_when_another_follows() -> None:
    """Choosing only some hunks never glues two lines together."""
    old, new = b"a\nb", b"A\nb\nc\n"
    parts = [part for hunk in hunks(old, new, context=0) for part in split_hunk(hunk)]

    assert apply(old, parts) == new
    assert apply(b"a\nb", [Hunk(2, (), 2, (b"c\n",), "+")]) == b"a\nb\nc\n"


def test_a_hunk_that_does_not_fit_is_refused() -> None:
    """Other content, a place beyond the end, or two that overlap raise ValueError."""
    hunk = hunks(b"a\nb\n", b"a\nc\n")[0]

    for old, chosen in ((b"x\nb\n", [hunk]), (b"a\n", [hunk]), (b"a\nb\n", [hunk, hunk])):
        with pytest.raises(ValueError, match="does not fit"):
            apply(old, chosen)


def test_lines_end_at_newline_only() -> None:
    """Carriage returns, form feeds and other separators belong to their line."""
    assert split_lines(b"a\rb\x0cc\x85d\r\ne") == [b"a\rb\x0cc\x85d\r\n", b"e"]
    assert (split_lines(b""), split_lines(b"\n")) == ([], [b"\n"])


def test_binary_content_is_only_named() -> None:
    """As git says it."""
    assert unified(b"\0", b"x", b"a", b"b") == [b"Binary files a and b differ"]
    assert (is_binary(b"x" * 8000 + b"\0"), is_binary(b"x\0")) == (False, True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (numbered(50_000), [line if number % 500 else b"new\n" for number, line in enumerate(numbered(50_000))]),
        ([b"a\n", b"b\n"] * 5_000, [b"b\n", b"a\n", b"a\n"] * 4_000),
        (numbered(20_000), numbered(20_000)[::-1]),
    ],
    ids=["spread", "repetitive", "reversed"],
)
def test_big_texts_do_not_take_long(old: list[bytes], new: list[bytes]) -> None:
    """No quadratic case: each of these is done in well under three seconds."""
    began = time.monotonic()

    assert apply(b"".join(old), hunks(b"".join(old), b"".join(new))) == b"".join(new)
    assert time.monotonic() - began < 3
