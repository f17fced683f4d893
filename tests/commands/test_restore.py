"""``restore``: the old state whatever was changed since, as an operation that can be taken back."""

from __future__ import annotations

import time

import pytest

from safety.commands import pin, redo, restore, snapshot
from safety.commands.args import PinArgs, RedoArgs, RestoreArgs, SnapshotArgs
from safety.commands.report import UndoReport
from safety.commands.restore import NothingThatOld, NoVersion, UnknownPath
from safety.store.oplog import UnknownHandle
from safety.terminal.text import moment
from tests.commands.conftest import Work
from tests.support.repo import NINE_LINES


def restored(work: Work, when: str, handle: str, *paths: str, **args: object) -> UndoReport:
    report = restore.run(work.session, RestoreArgs(when=when, handle=handle, paths=tuple(map(work.at, paths)), **args))  # type: ignore[arg-type]
    assert isinstance(report, UndoReport)
    assert report.action == "restore"
    return report


def verbs(report: UndoReport) -> list[tuple[str, bytes]]:
    return sorted((line.verb, line.path) for line in report.lines)


def test_takes_the_old_state_over_the_users_edit(work: Work) -> None:
    """Unlike undo, restore merges nothing: the file is as it was, and what was there is one redo away."""
    work.agent_does("sed -i s/3/three/ a.txt")
    work.write("a.txt", NINE_LINES.replace("line 8", "mine"))

    report = restored(work, "before", "t1", "a.txt")

    assert (verbs(report), report.exit_code, report.subject) == ([("restored", b"a.txt")], 0, "a.txt as before t1")
    assert work.read("a.txt") == NINE_LINES
    redo.run(work.session, RedoArgs())
    assert work.read("a.txt") == NINE_LINES.replace("line 8", "mine")


def test_before_and_after(work: Work) -> None:
    """Every recorded version is reachable: before and after turns and calls."""
    with work.turn() as talk:
        for number in (1, 2):
            with work.step(talk):
                work.write("b.txt", f"{number}\n")
    work.agent_does("echo 3 >b.txt")

    for when, handle, content in (
        ("before", "t1", "b\n"),
        ("after", "t1.1", "1\n"),
        ("before", "t2", "2\n"),
        ("after", "@", "3\n"),
        ("before", "t1.2", "1\n"),
    ):
        restored(work, when, handle, "b.txt")
        assert work.read("b.txt") == content, (when, handle)


def test_a_folder(work: Work) -> None:
    """All below a folder: what went comes back, what came goes, what is elsewhere stays."""
    work.agent_does("rm -rf src/lib; echo x >src/new.py; echo agent >b.txt")

    report = restored(work, "before", "t1", "src")

    assert [pair for pair in verbs(report) if b"." in pair[1]] == [("removed", b"src/new.py"), ("restored", b"src/lib/util.py")]
    assert (work.read("src/lib/util.py"), work.exists("src/new.py"), work.read("b.txt")) == ("UTIL = 1\n", False, "agent\n")
    assert next(line.note for line in report.lines if line.verb == "removed") == "was not there then"


def test_the_whole_workspace_but_not_git(work: Work) -> None:
    """Restoring everything leaves git's own state alone, and says so for a path in it."""
    work.agent_does("echo 1 >b.txt; git commit -qam agent; git branch extra")
    head = work.head()

    restored(work, "before", "t1", ".")

    assert (work.read("b.txt"), work.head(), "extra" in work.git("branch")) == ("b\n", head, True)
    with pytest.raises(UnknownPath):
        restored(work, "before", "t1", ".git/config")


def test_at_a_time_a_name_an_operation(work: Work) -> None:
    """--at takes a moment, a pin, an operation's id, a turn (then its end)."""
    work.agent_does("echo 1 >b.txt")
    moment = int(time.time() * 1000)
    time.sleep(0.02)
    taken = snapshot.run(work.session, SnapshotArgs(name="good"))
    work.agent_does("echo 2 >b.txt")

    for handle, at_ms in (("", moment), ("good", None), (taken.handle[:6], None), ("t1", None)):  # type: ignore[attr-defined]
        work.write("b.txt", "now\n")
        restored(work, "at", handle, "b.txt", at_ms=at_ms)
        assert work.read("b.txt") == "1\n", (handle, at_ms)
    with pytest.raises(UnknownHandle):
        restored(work, "at", "", "b.txt", at_ms=1000)


def test_nothing_differs(work: Work) -> None:
    """Then nothing is done: exit code 4, no operation."""
    work.agent_does("echo 1 >src/app.py")
    operations = len(list(work.session.log.walk()))

    report = restored(work, "before", "t1", "b.txt")

    assert (report.exit_code, bool(report.nothing), report.lines) == (4, True, ())
    assert len(list(work.session.log.walk())) == operations


def test_paths_and_handles_that_are_unknown(work: Work) -> None:
    """A path that never was and a handle that never was are errors."""
    work.agent_does("echo 1 >b.txt")
    with pytest.raises(UnknownPath):
        restored(work, "before", "t1", "no/such")
    with pytest.raises(UnknownHandle):
        restored(work, "before", "t7", "b.txt")


def test_what_was_not_covered_then(work: Work) -> None:
    """A path whose old content no snapshot holds is left alone and named: exit code 3, the rest is restored."""
    work.sh("head -c 40000000 /dev/zero >big")
    work.agent_does("echo 1 >b.txt; echo small >big")

    report = restored(work, "before", "t1", "big", "b.txt")

    assert (report.exit_code, verbs(report)) == (3, [("not covered", b"big"), ("restored", b"b.txt")])
    assert (work.read("big"), work.read("b.txt")) == ("small\n", "b\n")


def test_inside_a_folder_that_is_not_covered(work: Work) -> None:
    """Asked for alone, such a path is an answer with exit code 3, not "no such path"."""
    work.write(".gitignore", "node_modules/\n")
    work.write("node_modules/m/x", "1\n")
    work.agent_does("echo 2 >node_modules/m/x; echo 1 >b.txt")

    report = restored(work, "before", "t1", "node_modules/m/x")

    assert (report.exit_code, verbs(report)) == (3, [("not covered", b"node_modules/m/x")])
    assert work.read("node_modules/m/x") == "2\n"


def test_dry_run_and_plan(work: Work) -> None:
    """A dry run changes nothing and names its plan; the plan is refused once the folder has moved on."""
    work.agent_does("echo 1 >b.txt; echo new >new")

    report = restored(work, "before", "t1", "b.txt", "new", dry_run=True)

    assert (report.dry_run, verbs(report), work.read("b.txt")) == (True, [("removed", b"new"), ("restored", b"b.txt")], "1\n")
    work.write("b.txt", "mine\n")
    refused = restored(work, "before", "t1", "b.txt", "new", plan=report.plan_token)
    assert (refused.exit_code, work.read("b.txt"), work.exists("new")) == (4, "mine\n", True)
    again = restored(work, "before", "t1", "b.txt", "new", dry_run=True)
    restored(work, "before", "t1", "b.txt", "new", plan=again.plan_token)
    assert (work.read("b.txt"), work.exists("new")) == ("b\n", False)


def test_modes_links_and_ignored_files(work: Work) -> None:
    """All that a snapshot knows of a path comes back: mode, link target, content of ignored files."""
    work.write(".env", "KEY=1\n", 0o600)
    work.link("link", "a.txt")
    work.agent_does("rm .env link tool.sh; echo x >tool.sh")

    restored(work, "before", "t1", ".env", "link", "tool.sh")

    assert (work.read(".env"), work.mode(".env"), work.mode("tool.sh"), work.read("link")) == (
        "KEY=1\n",
        0o600,
        0o755,
        NINE_LINES,
    )


def test_a_folder_that_became_a_file(work: Work) -> None:
    """The folder and all in it come back in the file's place."""
    work.agent_does("rm -rf src; echo file >src")

    restored(work, "before", "t1", "src")

    assert (work.read("src/app.py"), work.read("src/lib/util.py")) == ("print('app')\n", "UTIL = 1\n")


def test_many_files_at_once(work: Work) -> None:
    """A thousand files are restored without asking each for each."""
    work.sh("mkdir many; for i in $(seq 1000); do echo $i >many/$i; done")
    work.agent_does("rm -rf many")

    report = restored(work, "before", "t1", "many")

    assert sum(line.verb == "restored" and not line.folder for line in report.lines) == 1000
    assert work.read("many/1000") == "1000\n"


def test_a_pin_outlives_the_log(work: Work) -> None:
    """A pinned state is restored by its name after all else was forgotten."""
    from safety.commands import store
    from safety.commands.args import StoreArgs

    work.agent_does("echo 1 >b.txt")
    pin.run(work.session, PinArgs(name="one", handle="t1"))
    for number in range(5):
        work.agent_does(f"echo {number} >b.txt; echo {number} >a.txt")
    store.run(work.session, StoreArgs(action="forget", keep_operations=2))
    store.run(work.session, StoreArgs(action="prune"))

    restored(work, "at", "one", "b.txt")

    assert work.read("b.txt") == "1\n"


def test_a_file_outside_the_workspace(work: Work) -> None:
    """What a tool named outside is restored too, also over an edit that no snapshot has seen yet."""
    outside = work.root.parent / "outside.txt"
    outside.write_text("before\n")
    with work.turn() as talk, work.step(talk, paths=[str(outside)]):
        outside.write_text("agent\n")
    outside.write_text("mine\n")

    report = restore.run(work.session, RestoreArgs(when="before", handle="t1", paths=(bytes(outside),)))

    assert (report.exit_code, outside.read_text()) == (0, "before\n")
    redo.run(work.session, RedoArgs())
    assert outside.read_text() == "mine\n"


def test_folder_without_git(plain: Work) -> None:
    """A plain folder is restored the same way."""
    plain.write("x", "1\n")
    plain.agent_does("rm x; echo n >n")

    restored(plain, "before", "t1", ".")

    assert (plain.read("x"), plain.exists("n")) == ("1\n", False)


def test_neither_a_time_nor_a_name(work: Work) -> None:
    """The sentence says what was looked for."""
    work.agent_does("echo 1 >b.txt")
    with pytest.raises(UnknownHandle, match=r"'25:00' is neither a time \(1h, 14:30, yesterday, 2026-11-30\) nor the name"):
        restored(work, "at", "25:00", "b.txt")


def test_without_a_version_those_that_there_are_are_named(work: Work) -> None:
    """The turns that changed the file, newest first, and a command to type; a file that no turn changed has none."""
    work.agent_does("echo 1 >b.txt")
    work.agent_does("echo 2 >a.txt")
    work.agent_does("echo 3 >b.txt")
    with pytest.raises(NoVersion, match="b.txt was changed in t3, t1: say --before t3, --before t1, or --at") as raised:
        restored(work, "", "", "b.txt")
    assert (raised.value.hint, raised.value.exit_code) == ("git safety restore --before t3 b.txt", 2)
    with pytest.raises(NoVersion, match="no turn changed src") as raised:
        restored(work, "", "", "src")
    assert raised.value.hint == "git safety log -v -- src"


def test_a_time_before_everything(work: Work) -> None:
    """Nothing to do, and the oldest moment that would do, as one can type it."""
    work.agent_does("echo 1 >b.txt")
    with pytest.raises(NothingThatOld, match="the oldest moment is ") as raised:
        restored(work, "at", "", "b.txt", at_ms=1000)
    assert raised.value.exit_code == 4
    at_ms = moment(raised.value.message.partition("moment is ")[2], work.session.now_ms())
    assert at_ms is not None
    restored(work, "at", "", "b.txt", at_ms=at_ms)
