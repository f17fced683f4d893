"""``undo -p``: pieces of a plan, merged on content."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from safety.commands import redo, undo
from safety.commands.args import RedoArgs, UndoArgs
from safety.commands.report import Choose, Hunk, UndoReport
from safety.store.apply import UndoRefused
from tests.commands.conftest import Work
from tests.support.repo import NINE_LINES

THIRTY = "".join(f"line {number}\n" for number in range(1, 31))


def offered(work: Work) -> Choose:
    report = undo.run(work.session, UndoArgs(patch=True))
    assert isinstance(report, Choose)
    return report


def undo_some(work: Work, wanted: Callable[[Hunk], bool]) -> UndoReport:
    """Undoes the pieces that are wanted, as a terminal would ask for them."""
    chosen = frozenset(hunk.id for hunk in flat(offered(work).hunks) if wanted(hunk))
    return undo_ids(work, chosen)


def undo_ids(work: Work, ids: Iterable[str]) -> UndoReport:
    args = replace(UndoArgs(patch=True), hunks=frozenset(ids), plan=offered(work).plan_token)
    report = undo.run(work.session, args)
    assert isinstance(report, UndoReport)
    return report


def flat(hunks: Iterable[Hunk]) -> list[Hunk]:
    return [each for hunk in hunks for each in (hunk, *hunk.parts)]


def test_one_of_two_hunks(work: Work) -> None:
    """Only the chosen piece is undone; the other stays, and redo brings the first back."""
    work.write("long", THIRTY)
    work.agent_does("sed -i 's/line 3$/THREE/; s/line 27$/TWENTYSEVEN/' long")

    choose = offered(work)
    assert [(hunk.path, hunk.header) for hunk in choose.hunks] == [(b"long", "@@ -1,6 +1,6 @@"), (b"long", "@@ -24,7 +24,7 @@")]
    assert choose.hunks[0].lines[2:4] == (b"-THREE\n", b"+line 3\n")
    assert (choose.title.handle, choose.command) == ("t1", "git safety undo t1")
    report = undo_ids(work, [choose.hunks[1].id])

    assert work.read("long") == THIRTY.replace("line 3\n", "THREE\n")
    assert [(line.verb, line.path) for line in report.lines] == [("restored", b"long")]
    redo.run(work.session, RedoArgs())
    assert work.read("long") == THIRTY.replace("line 3\n", "THREE\n").replace("line 27", "TWENTYSEVEN")


def test_a_part_of_a_split_hunk(work: Work) -> None:
    """Changes close to each other are one piece with parts; any of them can be undone alone."""
    work.agent_does("sed -i 's/line 2/TWO/; s/line 4/FOUR/; s/line 6/SIX/' a.txt")

    [hunk] = offered(work).hunks
    assert [part.lines for part in hunk.parts] == [
        (b"-TWO\n", b"+line 2\n"),
        (b"-FOUR\n", b"+line 4\n"),
        (b"-SIX\n", b"+line 6\n"),
    ]
    undo_ids(work, [hunk.parts[0].id, hunk.parts[2].id])

    assert work.read("a.txt") == NINE_LINES.replace("line 4", "FOUR")


def test_the_users_edit_stays(work: Work) -> None:
    """Pieces are between what is there now and what an undo would write, so the user's lines are in neither."""
    work.write("long", THIRTY)
    work.agent_does("sed -i 's/line 3$/THREE/; s/line 27$/TWENTYSEVEN/' long")
    work.sh("sed -i 's/line 15/MINE/; 1d' long")

    undo_some(work, lambda hunk: b"-THREE\n" in hunk.lines)

    assert work.read("long") == THIRTY.replace("line 15", "MINE").replace("line 27", "TWENTYSEVEN").replace("line 1\n", "", 1)


def test_equal_pieces_are_told_apart(work: Work) -> None:
    """The same change in three places has three ids."""
    block = "x\n" * 10
    work.write("same", f"a\n{block}a\n{block}a\n{block}")
    work.agent_does("sed -i s/a/b/ same")

    hunks = offered(work).hunks
    assert len({each.id for each in flat(hunks)}) == len(flat(hunks)) >= 3
    undo_ids(work, [hunks[1].id])

    assert work.read("same") == f"b\n{block}a\n{block}b\n{block}"


def test_ids_are_stable(work: Work) -> None:
    """Asked twice, and after the user added lines far above, a piece has the same id."""
    work.write("long", THIRTY)
    work.agent_does("sed -i 's/line 27$/TWENTYSEVEN/' long")
    before = [hunk.id for hunk in offered(work).hunks]
    work.write("long", "mine\n" + work.read("long"))

    assert [hunk.id for hunk in offered(work).hunks] == before


def test_what_changed_since_is_refused(work: Work) -> None:
    """A piece that is no more what was shown is not undone, nor is any other."""
    work.agent_does("sed -i 's/line 2/TWO/' a.txt; echo agent >b.txt")
    ids = [hunk.id for hunk in offered(work).hunks]
    work.write("b.txt", "mine\n")

    with pytest.raises(UndoRefused):
        undo.run(work.session, UndoArgs(patch=True, hunks=frozenset(ids)))

    assert (work.read("a.txt"), work.read("b.txt")) == (NINE_LINES.replace("line 2", "TWO"), "mine\n")


def test_whole_choices(work: Work) -> None:
    """Files that came or went, binary content, a mode and a type are one piece each."""
    work.write("bin", b"\0one")
    work.link("link", "a.txt")
    work.agent_does("printf '\\0two' >bin; rm src/app.py; echo new >new; chmod 644 tool.sh; rm link; echo file >link")

    hunks = {hunk.path: hunk for hunk in offered(work).hunks}
    assert {path: (hunk.lines, hunk.note) for path, hunk in hunks.items()} == {
        b"bin": ((), "binary content"),
        b"link": ((), "make it a symbolic link again"),
        b"new": ((), "remove it"),
        b"src/app.py": ((), "bring it back"),
        b"tool.sh": ((), "mode 644 -> 755"),
    }
    undo_ids(work, [hunks[path].id for path in (b"bin", b"tool.sh", b"src/app.py")])

    assert work.read_bytes("bin") == b"\0one"
    assert (work.mode("tool.sh"), work.read("src/app.py"), work.read("new"), work.read("link")) == (
        0o755,
        "print('app')\n",
        "new\n",
        "file\n",
    )
    undo_some(work, lambda hunk: True)
    assert (work.exists("new"), work.path("link").is_symlink()) == (False, True)


def test_mode_and_content_apart(work: Work) -> None:
    """A file with both has a piece for each."""
    work.agent_does("echo 'echo hi' >>tool.sh; chmod 644 tool.sh")

    assert [hunk.note for hunk in offered(work).hunks] == ["", "mode 644 -> 755"]
    undo_some(work, lambda hunk: bool(hunk.note))

    assert (work.read("tool.sh"), work.mode("tool.sh")) == ("#!/bin/sh\necho hi\n", 0o755)


def test_folders_follow_their_files(work: Work) -> None:
    """A folder comes back with the first of its files and goes with the last; it is no piece of its own."""
    work.agent_does("rm -rf src; mkdir -p made/deep; echo 1 >made/deep/1; echo 2 >made/2")

    paths = [hunk.path for hunk in offered(work).hunks]
    assert paths == [b"made/2", b"made/deep/1", b"src/app.py", b"src/lib/util.py"]
    undo_some(work, lambda hunk: hunk.path in (b"src/lib/util.py", b"made/deep/1"))

    assert (work.exists("src/app.py"), work.exists("src/lib/util.py")) == (False, True)
    assert (work.exists("made/deep"), work.read("made/2")) == (False, "2\n")


def test_a_folder_that_became_a_file_is_one_piece(work: Work) -> None:
    """A path and all under it go together."""
    work.agent_does("rm -rf src; echo file >src; echo agent >b.txt")

    hunks = offered(work).hunks
    assert [hunk.path for hunk in hunks] == [b"b.txt", b"src"]
    undo_ids(work, [hunks[1].id])

    assert (work.read("src/app.py"), work.read("src/lib/util.py"), work.read("b.txt")) == (
        "print('app')\n",
        "UTIL = 1\n",
        "agent\n",
    )


def test_an_empty_folder_is_a_piece(work: Work) -> None:
    """With nothing in it, it stands for itself."""
    work.agent_does("mkdir empty; echo agent >b.txt")

    assert [(hunk.path, hunk.note) for hunk in offered(work).hunks][1] == (b"empty", "remove the folder")
    undo_some(work, lambda hunk: hunk.path == b"empty")

    assert (work.exists("empty"), work.read("b.txt")) == (False, "agent\n")


def test_git_state_is_one_piece(work: Work) -> None:
    """Commits, index and branches come off together, or stay while files are undone."""
    head = work.head()
    work.agent_does("echo agent >b.txt; git commit -qam agent; echo more >>b.txt")
    tip = work.head()

    git = [hunk for hunk in offered(work).hunks if hunk.note.startswith("git: ")]
    assert len(git) == 1
    undo_some(work, lambda hunk: hunk.path == b"b.txt")
    assert (work.head(), work.read("b.txt")) == (tip, "b\n")
    undo_some(work, lambda hunk: hunk.note.startswith("git: "))
    assert work.head() == head


def test_branch_switch_only_with_all_of_its_files(work: Work) -> None:
    """Where not every file goes along, the switch stays and says so."""
    work.agent_does("git checkout -qb side; echo agent >b.txt; echo agent >a.txt; git commit -qam side")

    report = undo_some(work, lambda hunk: hunk.path != b"b.txt")

    assert work.branch() == "side"
    assert report.exit_code == 3
    assert any("branch switch stays" in line.note for line in report.lines if line.verb == "git")
    assert (work.read("a.txt"), work.read("b.txt")) == (NINE_LINES, "agent\n")


def test_all_pieces_are_the_whole_undo(work: Work) -> None:
    """Choosing everything leaves what an undo leaves."""
    before = work.picture()
    work.agent_does(
        "sed -i 's/line 2/TWO/; s/line 8/EIGHT/' a.txt; rm -rf src; mkdir d; echo 1 >d/1; chmod 755 b.txt; "
        "git checkout -qb side; git add -A; git commit -qm x"
    )

    undo_some(work, lambda hunk: True)

    work.assert_is(before)


def test_nothing_chosen_changes_nothing(work: Work) -> None:
    """No piece, no change."""
    work.agent_does("echo agent >b.txt")

    report = undo_ids(work, [])

    assert (work.read("b.txt"), report.lines) == ("agent\n", ())


def test_text_without_last_line_end(work: Work) -> None:
    """The end of a file is content like any other."""
    work.write("end", THIRTY + "last")
    work.agent_does("sed -i 's/line 3$/THREE/' end; printf '!\\n' >>end")

    undo_some(work, lambda hunk: b"+last" in hunk.lines)

    assert work.read("end") == THIRTY.replace("line 3\n", "THREE\n") + "last"


def test_crlf_and_odd_bytes(work: Work) -> None:
    """Bytes that are no text and line ends of any kind come through."""
    old = b"one\r\n" + b"x\n" * 10 + b"\xff\xfe\n"
    work.write("odd", old)
    with work.turn() as talk, work.step(talk):
        work.write("odd", old.replace(b"one\r\n", b"1\r\n").replace(b"\xff\xfe", b"\xfe\xff"))

    undo_some(work, lambda hunk: b"+one\r\n" in hunk.lines)

    assert work.read_bytes("odd") == old.replace(b"\xff\xfe", b"\xfe\xff")
