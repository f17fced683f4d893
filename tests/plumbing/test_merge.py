"""Three-way merge: clean or nothing, exact to the byte, deaf to configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safety.plumbing.merge import MAX_BYTES, line_end, merge_text, merge_trivial
from safety.plumbing.run import Git

BASE = b"".join(b"line %d\n" % number for number in range(20))


@pytest.fixture
def git(env: dict[str, str]) -> Git:
    return Git(env)


def crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


def test_distant_changes_merge(git: Git) -> None:
    """Both sides' changes are in the merge, and nothing else differs."""
    ours, theirs = BASE.replace(b"line 1\n", b"mine\n"), BASE.replace(b"line 18\n", b"")

    assert merge_text(git, BASE, ours, theirs) == BASE.replace(b"line 1\n", b"mine\n").replace(b"line 18\n", b"")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (BASE.replace(b"line 5\n", b"a\n"), BASE.replace(b"line 5\n", b"b\n")),
        (BASE.replace(b"line 5\n", b"a\n"), BASE.replace(b"line 6\n", b"b\n")),
        (BASE.replace(b"line 5\n", b""), BASE.replace(b"line 5\n", b"b\n")),
        (BASE + b"a\n", BASE + b"b\n"),
        (BASE + b"a", BASE + b"a\nb\n"),
    ],
)
def test_a_conflict_is_no_merge(git: Git, ours: bytes, theirs: bytes) -> None:
    """Overlapping or touching changes give None, never text with markers."""
    assert merge_text(git, BASE, ours, theirs) is None


def test_when_one_side_is_unchanged_the_other_is_the_merge() -> None:
    """Also for binary content, and without starting git."""
    git = Git({"PATH": ""})
    for data in (b"text\n", b"\0binary", b"", b"x" * (MAX_BYTES + 1)):
        assert merge_text(git, b"base", b"base", data) == data
        assert merge_text(git, b"base", data, b"base") == data
        assert merge_text(git, b"base", data, data) == data
    assert merge_trivial(b"1", b"2", b"3") is None


@pytest.mark.parametrize("side", [0, 1, 2])
def test_binary_or_huge_content_does_not_merge(git: Git, side: int) -> None:
    """A NUL byte anywhere, or more than 10 MB, on any side gives None."""
    sides = [BASE, BASE.replace(b"line 1\n", b"a\n"), BASE.replace(b"line 18\n", b"b\n")]
    assert merge_text(git, *sides) is not None

    for addition in (b"line\0\n", b"x" * MAX_BYTES):
        changed = list(sides)
        changed[side] = b"%s%s" % (sides[side], addition)
        assert merge_text(git, *changed) is None


def test_line_ends_are_kept_or_the_merge_refused(git: Git) -> None:
    """CRLF files merge as CRLF; sides that end their lines differently do not merge."""
    ours, theirs = BASE.replace(b"line 1\n", b"a\n"), BASE.replace(b"line 18\n", b"b\n")
    both = ours.replace(b"line 18\n", b"b\n")

    assert merge_text(git, crlf(BASE), crlf(ours), crlf(theirs)) == crlf(both)
    assert merge_text(git, BASE, crlf(ours), theirs) is None
    assert merge_text(git, BASE, ours, crlf(theirs)) is None


def test_a_missing_last_line_end_is_kept(git: Git) -> None:
    """A file without a final newline merges without one, and a side that removed or added it wins against one that did not."""
    bare = BASE[:-1]
    top = b"mine\n" + BASE

    assert merge_text(git, bare, b"mine\n" + bare, bare.replace(b"line 12\n", b"b\n")) == b"mine\n" + bare.replace(
        b"line 12\n", b"b\n"
    )
    assert merge_text(git, BASE, top, bare) == b"mine\n" + bare
    assert merge_text(git, bare, b"mine\n" + bare, BASE) == top


def test_a_block_the_user_moved_away_is_kept(git: Git) -> None:
    """Theirs removes lines that ours has meanwhile moved: a conflict, or the user's copy survives."""
    block = b"one\ntwo\nthree\n"
    merged = merge_text(git, BASE + block, block + BASE, BASE)

    assert merged is None or merged == block + BASE


def test_configuration_has_no_say(env: dict[str, str], tmp_path: Path) -> None:
    """Merge settings and attributes of the user change nothing, and no file is left behind."""
    Path(env["HOME"], ".gitconfig").write_text("[merge]\n\tconflictStyle = bogus\n[broken\n")
    folder = tmp_path / "state"
    folder.mkdir()

    merged = merge_text(Git(env), BASE, b"a\n" + BASE, BASE + b"b\n", folder=folder)

    assert merged == b"a\n" + BASE + b"b\n"
    assert list(folder.iterdir()) == []


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\r\n", b"\xff\n"]), max_size=8).map(b"".join)


@given(base=LINES, ours=LINES, theirs=LINES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_merge_holds_only_lines_of_its_sides(git: Git, base: bytes, ours: bytes, theirs: bytes) -> None:
    """Whatever comes back has no markers and no invented line, and the two sides are equal partners."""
    merged = merge_text(git, base, ours, theirs)

    assert merged == merge_text(git, base, theirs, ours)
    if merged is not None:
        assert set(merged.splitlines(True)) <= set((ours + theirs).splitlines(True))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (b"x", None),
        (b"a\n", b"\n"),
        (b"a\r\n", b"\r\n"),
        (b"a\r\nb\n", b""),
        (b"a\r\nb\r\nc\n", b"\r\n"),
        (b"a\rb\n", b"\n"),
    ],
)
def test_line_end_is_what_most_lines_have(data: bytes, expected: bytes | None) -> None:
    """None without any, empty for a tie."""
    assert line_end(data) == expected
