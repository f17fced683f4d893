"""Foreign text made harmless, and numbers and times as people read them."""

from __future__ import annotations

import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safety.terminal.text import (
    age,
    ago,
    clean,
    columns,
    count,
    duration,
    moment,
    one_line,
    pad,
    quote_path,
    relative,
    shell_path,
    shorten,
    size,
)

NOW = 1_796_040_000_000  # 2026-11-30 12:00 UTC


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, with ümlaut and 日本語 and 🙂", "plain, with ümlaut and 日本語 and 🙂"),
        ("\x1b[2J\x1b]0;title\x07", "\\e[2J\\e]0;title\\x07"),
        ("a\rb\nc\td\x7f", "a\\rb\\nc\\td\\x7f"),
        ("c1 \x9b31m \x85", "c1 \\x9b31m \\x85"),
        ("bidi \u202e \u2066 \u200f \u061c", "bidi \\u202e \\u2066 \\u200f \\u061c"),
        ("zero\u200bwidth\u200d\ufeff\u2060", "zero\\u200bwidth\\u200d\\ufeff\\u2060"),
        ("tag \U000e0041\U000e007f", "tag \\U000e0041\\U000e007f"),
        ("selector \U000e0100, filler \u3164\u2800", "selector \\U000e0100, filler \\u3164\\u2800"),
        ("lines\u2028\u2029", "lines\\u2028\\u2029"),
        (b"no utf-8: \xff\xfe", "no utf-8: \\xff\\xfe"),
        ("soft\xadhyphen", "soft\\xadhyphen"),
    ],
)
def test_hidden_characters_become_visible(text: str | bytes, shown: str) -> None:
    """Nothing that a terminal would obey, hide or reorder by reaches it; all else stays as it is."""
    assert clean(text) == shown


@given(st.text() | st.binary())
def test_no_control_or_format_character_survives(text: str | bytes) -> None:
    """Whatever goes in, what comes out is printable, encodable, and unchanged by a second pass."""
    shown = clean(text)
    shown.encode()
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert clean(shown) == shown


def test_blocks_keep_their_line_ends() -> None:
    """``keep`` lets through what it names and nothing more."""
    assert clean("a\tb\nc\x1b", keep="\n\t") == "a\tb\nc\\e"


def test_one_line_takes_the_first_that_says_something() -> None:
    """A prompt of many lines is shown by its first words, cut to the width."""
    assert one_line("\n\n  clean up\x1b[1m  \nmore") == "clean up\\e[1m"
    assert one_line("clean up the build scripts", 12) == "clean up..."
    assert one_line("") == ""


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (b"src/app.py", "src/app.py"),
        (b"with space", "with space"),
        ("ä/日本".encode(), "ä/日本"),
        (b'say "hi"', '"say \\"hi\\""'),
        (b"back\\slash", '"back\\\\slash"'),
        (b"tab\tnl\n\x01\x7f", '"tab\\tnl\\n\\001\\177"'),
        (b"bad\xff", '"bad\\377"'),
        ("rtl\u202e".encode(), '"rtl\\342\\200\\256"'),
    ],
)
def test_paths_are_quoted_as_git_does(path: bytes, shown: str) -> None:
    """As git with ``core.quotePath=false``, and more careful with what is invisible."""
    assert quote_path(path) == shown


@given(st.binary(min_size=1).filter(lambda path: b"\0" not in path))
def test_shell_paths_come_back_from_a_shell(path: bytes) -> None:
    """What is shown for pasting is one line without anything hidden."""
    shown = shell_path(path)
    assert clean(shown) == shown


@pytest.mark.parametrize("path", [b"a b", b"it's", b"\n'\\\"$x`", b"\xff\x01", "\u202e'".encode(), b"-n"])
def test_a_pasted_path_is_the_path(path: bytes) -> None:
    """bash reads the quoted word as the very bytes of the path."""
    done = subprocess.run(["bash", "-c", f"printf %s. {shell_path(path)}"], capture_output=True, env={"LC_ALL": "C.UTF-8"})
    assert done.stdout == path + b"."


def test_paths_are_seen_from_where_the_user_stands() -> None:
    """Inside the workspace relative to the current folder, outside of it absolute."""
    assert relative(b"src/a", b"/r", b"/r") == b"src/a"
    assert relative(b"src/a", b"/r", b"/r/src") == b"a"
    assert relative(b"a", b"/r", b"/r/src/deep") == b"../../a"
    assert relative(b"a", b"/r", b"/elsewhere") == b"/r/a"
    assert relative(b"/etc/x", b"/r", b"/r") == b"/etc/x"
    assert relative(b"a", b"/r", b"/r2") == b"/r/a"


def test_columns_count_wide_and_combining_characters() -> None:
    """A wide character takes two columns, a combining one none; padding and cutting go by columns."""
    assert columns("日本") == 4
    assert columns("e\u0301") == 1
    assert pad("日", 4) == "日  "
    assert shorten("日本語日本語", 8) == "日本..."


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1536, "1.5 KiB"),
        (32 << 20, "32 MiB"),
        (412 << 20, "412 MiB"),
        (2 << 30, "2 GiB"),
        ((1 << 20) - 1, "1 MiB"),
        (5 << 50, "5120 TiB"),
    ],
)
def test_sizes(number: int, text: str) -> None:
    """Sizes have at most one decimal and the right unit."""
    assert size(number) == text


@pytest.mark.parametrize(
    ("gone_s", "text"),
    [
        (-5, "just now"),
        (0, "just now"),
        (59, "just now"),
        (60, "1 min"),
        (7199, "1 h"),
        (86400 * 3, "3 d"),
        (86400 * 31, "30 Oct"),
        (86400 * 400, "26 Oct 2025"),
    ],
)
def test_ages(gone_s: int, text: str) -> None:
    """From ``just now`` over minutes, hours and days to a date."""
    assert age(NOW - gone_s * 1000, NOW) == text


def test_ages_in_sentences() -> None:
    """``ago`` reads well after a comma."""
    assert ago(NOW - 3000, NOW, seconds=True) == "3 s ago"
    assert ago(NOW - 120_000, NOW) == "2 min ago"
    assert ago(NOW - 86400_000 * 31, NOW) == "on 30 Oct"


def test_small_words() -> None:
    """Numbers agree with their nouns; durations have one unit that fits."""
    assert (count(1, "file"), count(0, "file"), count(2000, "call")) == ("1 file", "0 files", "2,000 calls")
    assert (duration(4), duration(1234), duration(185_000)) == ("4 ms", "1.2 s", "3 min 5 s")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("10m", NOW - 600_000),
        ("2 h ago", NOW - 7_200_000),
        ("1 minute ago", NOW - 60_000),
        ("2 hours ago", NOW - 7_200_000),
        ("1 week", NOW - 7 * 86400_000),
        ("3 mins", NOW - 180_000),
        ("3d", NOW - 3 * 86400_000),
        ("11:30", NOW - 1_800_000),
        ("12:30", NOW - 86400_000 + 1_800_000),
        ("today", NOW - 12 * 3600_000),
        ("yesterday", NOW - 36 * 3600_000),
        ("2026-11-29", NOW - 36 * 3600_000),
        ("2026-11-30 11:00", NOW - 3600_000),
        ("2026-11-30T13:00:00+02:00", NOW - 3600_000),
        ("t14", None),
        ("@-", None),
        ("before", None),
        ("25:99", None),
        ("1 month ago", None),
    ],
)
def test_moments(text: str, at: int | None) -> None:
    """The times that people type; a clock time is the last one that has passed. The test runs in UTC (see conftest)."""
    assert moment(text, NOW) == at
