"""The tools: what they do to odd files, odd texts and odd commands, of which a model makes plenty."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from safety.agent import tools
from safety.agent.tools import Desk, ToolFailed
from tests.agent.kit import opened
from tests.support.repo import NINE_LINES, RepoBuilder


@pytest.fixture
def desk(repo: RepoBuilder) -> Iterator[Desk]:
    session = opened(repo)
    yield Desk(session, str(repo.root))
    session.close()


def test_line_ends_stay_as_they_are(repo: RepoBuilder, desk: Desk) -> None:
    """A model reads them, and an edit of one line, or of several with plain ends, leaves all others alone."""
    repo.write("dos.txt", b"one\r\ntwo\r\nthree")
    assert tools.read(desk, "dos.txt") == "one\r\ntwo\r\nthree"
    tools.edit(desk, "dos.txt", "two", "2")
    tools.edit(desk, "dos.txt", "one\n2\n", "1\n2\n")
    assert repo.read_bytes("dos.txt") == b"1\r\n2\r\nthree"


@pytest.mark.parametrize("tool", ["write", "edit"])
def test_a_text_that_is_none_leaves_the_file_as_it_was(repo: RepoBuilder, desk: Desk, tool: str) -> None:
    """Half a character, as JSON can hold it, is an error before the file is opened."""
    with pytest.raises(UnicodeEncodeError):
        tools.write(desk, "a.txt", "x\ud800") if tool == "write" else tools.edit(desk, "a.txt", "line 1", "\ud800")
    assert repo.read("a.txt") == NINE_LINES


@pytest.mark.parametrize("tool", ["read", "write", "edit"])
def test_a_pipe_is_not_waited_for(repo: RepoBuilder, desk: Desk, tool: str) -> None:
    """Neither is a device, which may never end."""
    os.mkfifo(repo.path("pipe"))
    more = {"read": (), "write": ("x",), "edit": ("x", "y")}[tool]
    for name in ("pipe", "/dev/zero"):
        with pytest.raises(ToolFailed, match="no regular file"):
            tools.TOOLS[tool](desk, name, *more)


def test_a_file_that_is_too_large_is_not_read(repo: RepoBuilder, desk: Desk) -> None:
    """It would not fit into memory; one that is only long is cut in its middle."""
    with open(repo.write("huge", ""), "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ToolFailed, match="look at a part"):
        tools.read(desk, "huge")
    repo.write("long", "x" * 300_000)
    assert "100000 characters left out" in tools.read(desk, "long")
    repo.remove("huge")


def test_marks_of_a_patch_are_whole_lines(repo: RepoBuilder, desk: Desk) -> None:
    """An underlined heading is no mark; a line that is one inside of a block is refused and changes nothing."""
    repo.write("h.rst", "Title\n==========\nbody\n")
    tools.patch(desk, "h.rst", "<<<<<<< old\nTitle\n==========\n=======\nName\n==========\n>>>>>>> new\n")
    assert repo.read("h.rst") == "Name\n==========\nbody\n"
    conflict = "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"
    repo.write("c.txt", conflict)
    for old, new in ((conflict, "a\n"), ("a\n", "a\n=======\n")):
        with pytest.raises(ToolFailed, match="use edit|not complete"):
            tools.patch(desk, "c.txt", f"<<<<<<<\n{old}=======\n{new}>>>>>>>\n")
    assert repo.read("c.txt") == conflict


def test_places_that_overlap_are_two(repo: RepoBuilder, desk: Desk) -> None:
    """Which of them is meant nobody knows."""
    repo.write("x", "}\n}\n}\n")
    with pytest.raises(ToolFailed, match="2 times"):
        tools.edit(desk, "x", "}\n}\n", "}\n")


def test_a_command_that_prints_without_end(desk: Desk) -> None:
    """Both ends are kept, whatever lies between them."""
    text = tools.shell(desk, "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert text.startswith("first\n") and text.endswith("last\n") and len(text) < 201_000 and "bytes left out" in text


def test_a_shell_that_ends_in_a_folder_that_is_gone(repo: RepoBuilder, desk: Desk) -> None:
    """It stands where it stood before; and one that breaks our own notes is answered all the same."""
    tools.shell(desk, "cd src; mkdir gone; cd gone; rmdir ../gone")
    assert desk.cwd == str(repo.root)
    assert tools.shell(desk, 'echo ran; mkdir "$GIT_SAFETY_AGENT_PWD"; trap - EXIT') == "ran\n"
