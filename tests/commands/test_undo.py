"""What ``undo`` and ``redo`` say: notes, sizes and counts, git's lines, and answers where there is nothing to do."""

from __future__ import annotations

import errno
import itertools
import os
from dataclasses import replace
from typing import Any

import pytest

from safety.adapters import prompts
from safety.commands import carry, diff, log, redo, restore, snapshot, undo
from safety.commands.args import DiffArgs, LogArgs, RedoArgs, RestoreArgs, SnapshotArgs, UndoArgs
from safety.commands.report import Ask, Choose, DiffReport, Hint, LogReport, PathLine, SnapshotReport, UndoReport
from safety.runtime.open import open_session
from safety.session import Call, CaptureFailed
from safety.store.oplog import UnknownHandle
from safety.terminal.drawing import View
from safety.terminal.render import render
from safety.terminal.screen import plain as text_of
from tests.commands.conftest import Work
from tests.support.repo import NINE_LINES, RepoBuilder


def undone(work: Work, code: int = 0, **args: Any) -> UndoReport:
    report = undo.run(work.session, UndoArgs(**args))
    assert isinstance(report, UndoReport)
    assert report.exit_code == code, report
    return report


def redone(work: Work) -> UndoReport:
    report = redo.run(work.session, RedoArgs())
    assert isinstance(report, UndoReport)
    return report


def line_of(report: UndoReport, path: bytes) -> PathLine:
    return next(line for line in report.lines if line.path == path)


def git_lines(report: UndoReport) -> list[str]:
    return [line.note for line in report.lines if line.verb == "git"]


def first_line(report: UndoReport) -> str:
    return text_of(render(report, View(report.root, 0))).split("\n")[0]


def test_a_dry_run_counts_lines(work: Work) -> None:
    """Lines that would come and go, of what is text; the real run names no counts."""
    work.agent_does("rm src/app.py; sed -i 's/line 3/three/' a.txt; printf 'x\\ny\\n' >new; head -c 9 /dev/zero >zeros")

    report = undone(work, dry_run=True)

    counts = {line.path: (line.added, line.deleted) for line in report.lines if line.path}
    assert counts[b"a.txt"] == (1, 1) and counts[b"new"] == (0, 2) and counts[b"zeros"] == (None, None)
    assert (counts[b"src/app.py"][0] or 0) > 0
    assert {(line.added, line.deleted) for line in undone(work).lines} == {(None, None)}


def test_what_is_not_covered_has_its_size(work: Work) -> None:
    """In the dry run and in the real one, with what becomes of it."""
    work.agent_does("truncate -s 40M big; echo x >b.txt")
    for dry_run in (True, False):
        line = line_of(undone(work, 3, dry_run=dry_run), b"big")
        assert (line.size, line.note) == (40 << 20, "40 MiB, over the size limit of snapshots; left as it is")


def test_what_is_gone_for_good_is_called_so(work: Work) -> None:
    """What no snapshot held and is not there any more: it cannot be restored, and where that is all, nothing is called undone."""
    work.write("big", b"x")
    os.truncate(work.root / "big", 40 << 20)
    work.write(".gitignore", "node_modules/\n")
    work.write("node_modules/m.js", "m\n")
    work.agent_does("rm -rf big node_modules")

    for dry_run in (True, False):
        report = undone(work, 3, dry_run=dry_run)
        assert line_of(report, b"big").note == "40 MiB, over the size limit of snapshots; gone, cannot be restored"
        assert line_of(report, b"node_modules").note.endswith("; gone, cannot be restored")
    assert first_line(report).startswith("Nothing undone of t1")


def test_notes(work: Work) -> None:
    """A mode that changed alone, a merge, and who made what goes."""
    work.agent_does("chmod +x b.txt; sed -i 's/line 3/three/' a.txt; echo n >new")
    work.write("a.txt", NINE_LINES.replace("line 3", "three").replace("line 8", "mine"))

    report = undone(work)

    assert line_of(report, b"b.txt").note == "mode 755 -> 644"
    assert (line_of(report, b"a.txt").verb, line_of(report, b"a.txt").note) == ("merged", "your later changes stay")
    assert line_of(report, b"new").note == "created by the agent"


@pytest.mark.parametrize(("bound_ms", "said"), [(-1, True), (carry.LONG_CALL_MS, False)])
def test_what_changed_in_a_long_call_is_named(work: Work, monkeypatch: pytest.MonkeyPatch, bound_ms: int, said: bool) -> None:
    """The user may have saved a file that is found changed around a call of many seconds. What a tool declared is its own."""
    monkeypatch.setattr(carry, "LONG_CALL_MS", bound_ms)
    with work.turn() as talk:
        with work.step(talk):
            work.write("b.txt", "agent\n")
        with work.step(talk, paths=["a.txt"]):
            work.write("a.txt", "agent\n")

    report = undone(work)

    assert ("changed during a long call" in line_of(report, b"b.txt").note) == said
    assert "long call" not in line_of(report, b"a.txt").note


def test_a_burst_of_a_long_run_is_a_long_call(work: Work) -> None:
    """A short call that was cut out of a run of many seconds is marked; with a person there it is asked about, once."""
    clock = itertools.count(1_700_000_000_000, 10)
    late = [0]
    talk = open_session(os.fsencode(work.root), "run-1", work.env, clock=lambda: next(clock) + late[0])

    def burst(number: int, path: str) -> None:
        call = Call(f"run-1.{number}", "run", {"command": "./long"}, os.fsencode(work.root), None)
        talk.open_turn("./long", scan=False)
        talk.capture_before(call, "./long", scan=False)
        work.write(path, "burst\n")
        talk.capture_after(call)

    burst(1, "a.txt")
    late[0] = carry.LONG_CALL_MS + 1000
    burst(2, "b.txt")
    talk.end(scan=False)

    assert "long call" in line_of(undone(work, dry_run=True, handle="t2"), b"b.txt").note
    assert "long call" not in line_of(undone(work, dry_run=True, handle="t1", can_ask=True), b"a.txt").note
    args = UndoArgs(handle="t2", can_ask=True)
    asked = undo.run(work.session, args)
    assert isinstance(asked, Ask) and asked.code == "long-call" and "b.txt" in asked.question
    assert work.read("b.txt") == "burst\n"
    done = undo.run(work.session, replace(args, **asked.answer))
    assert isinstance(done, UndoReport) and "long call" in line_of(done, b"b.txt").note
    assert first_line(undone(work, handle="t1", can_ask=True)).startswith("Undid t1")


def test_commits_taken_off(work: Work) -> None:
    """The line of a branch says by how many commits it moves; a redo says that they are back."""
    before = work.head()[:7]
    work.agent_does("echo 1 >b.txt; git commit -qam one; echo 2 >b.txt; git commit -qam two")
    after = work.head()[:7]

    assert git_lines(undone(work, dry_run=True)) == [f"main {after} -> {before}, 2 commits taken off"]
    assert git_lines(undone(work)) == [f"main {after} -> {before}, 2 commits taken off"]
    assert git_lines(redone(work)) == [f"main {before} -> {after}, 2 commits back"]


def test_a_switch_to_another_branch_takes_no_commit_off(work: Work) -> None:
    """Only the branch itself counts, not the way between two."""
    work.git("branch", "older")
    work.commit("second", b_txt="2\n")
    work.git("checkout", "-q", "older")
    work.agent_does("git checkout -q main; git branch -q side; git tag v1")

    lines = git_lines(undone(work))

    assert not any("commit" in line for line in lines)
    assert {"branch side removed", "tag v1 removed"} <= set(lines)


def test_a_dry_run_tells_that_git_comes_back(work: Work) -> None:
    """What would happen to a whole git directory, and to an index alone, is said before as well."""
    work.agent_does("rm -rf .git")
    assert git_lines(undone(work, dry_run=True)) == git_lines(undone(work)) == [".git laid back"]
    work.agent_does("echo 1 >b.txt; git add b.txt; git rm -q --cached a.txt")
    assert git_lines(undone(work, dry_run=True)) == git_lines(undone(work)) == ["index: 2 entries as before"]


def test_turns_are_named_from_the_newest(work: Work) -> None:
    """``@`` and ``@-`` are turns, whatever else the log holds, as everywhere."""
    work.agent_does("echo 1 >b.txt")
    work.agent_does("echo 1 >a.txt")
    work.write("mine", "x\n")
    snapshot.run(work.session, SnapshotArgs())

    assert undone(work, handle="@-").titles[0].handle == "t1"
    assert undone(work, handle="@").titles[0].handle == "t2"


def test_nothing_undone_is_said_and_the_next_older_turn_named(work: Work) -> None:
    """A turn whose every path was edited since: the heading does not call it undone, and older turns can be reached."""
    work.agent_does("echo one >old.txt")
    work.agent_does("echo gone >gone.txt")
    work.agent_does("echo agent >b.txt")
    (work.root / "gone.txt").unlink()
    work.write("b.txt", "mine\n")
    for _ in range(2):  # it stays the newest
        report = undone(work, 3)
        assert first_line(report).startswith("Nothing undone of t3")
        assert Hint("Next older turn", "git safety undo t1") in report.hints  # t2 is as before already
    dry = undone(work, 3, dry_run=True)
    assert first_line(dry).startswith("Would undo nothing of t3") and Hint("Next older turn", "git safety undo t1") in dry.hints
    assert first_line(undone(work, handle="t1")).startswith("Undid t1")


def test_the_hints_of_what_is_kept_work(work: Work) -> None:
    """Each names the oldest of the turns undone that changed the path; the comparison shows the old version and the user's."""
    work.agent_does("echo agent >b.txt; echo agent >src/app.py")
    work.agent_does("echo two >c.txt; echo two >src/app.py")
    work.write("b.txt", "mine\n")
    work.write("src/app.py", "mine\n")

    report = undone(work, 3, count=2)

    commands = {(hint.command, *hint.paths) for hint in report.hints}
    for path in (b"b.txt", b"src/app.py"):
        assert {("git safety restore --before t1", path), ("git safety diff --now t1", path)} <= commands
    shown = diff.run(work.session, DiffArgs(handles=("t1",), to_now=True, paths=(work.at("b.txt"),)))
    assert isinstance(shown, DiffReport) and b"-b\n+mine" in shown.patches[0].patch
    assert restore.run(work.session, RestoreArgs(handle="t1", when="before", paths=(work.at("b.txt"),))).exit_code == 0
    assert work.read("b.txt") == "b\n"


def test_the_hint_of_a_kept_path_of_the_newer_turn(work: Work) -> None:
    """Of two turns undone at once only one changed the path: the hint names that one."""
    work.agent_does("echo one >c.txt")
    work.agent_does("echo agent >b.txt")
    work.write("b.txt", "mine\n")
    assert ("git safety restore --before t2", (b"b.txt",)) in {
        (hint.command, hint.paths) for hint in undone(work, 3, count=2).hints
    }


def test_what_git_ignores_is_called_so_whatever_call_touched_it(work: Work) -> None:
    """Each note is from before the first change of its path, not from before the turn's last call."""
    work.write(".env", "secret\n")
    with work.turn() as talk:
        with work.step(talk):
            (work.root / ".env").unlink()
        with work.step(talk):
            work.write("b.txt", "agent\n")
    report = undone(work)
    assert line_of(report, b".env").note == "ignored by git" and line_of(report, b"b.txt").note == ""
    compact = list(prompts.path_lines(report))
    assert "  restored  .env  ignored by git" in compact


def test_a_turn_without_changes(work: Work) -> None:
    """Nothing is undone and nothing is recorded."""
    work.agent_does("true")
    head = work.session.log.head_id()

    report = undone(work, 4, handle="t1")

    assert (report.nothing, work.session.log.head_id()) == ("t1 changed nothing", head)


def test_without_a_snapshot_of_now_nothing_is_undone(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what is there cannot be captured, undo refuses before its first write. Rule: no safety snapshot, no undo."""
    work.agent_does("echo agent >b.txt")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("safety.store.capture.everything", full)
    with pytest.raises(CaptureFailed):
        undone(work)

    assert work.read("b.txt") == "agent\n"


def test_nothing_recorded_yet(work: Work) -> None:
    """A first word in a new folder is no word about turns that are all undone."""
    assert undone(work, 4).nothing == "no agent has worked here yet"
    work.agent_does("echo 1 >b.txt")
    undone(work)
    assert undone(work, 4).nothing == "no turn here changed anything that is not undone already"


def test_a_path_in_place_of_a_handle(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint is the command that was meant."""
    work.agent_does("echo 1 >b.txt")
    monkeypatch.chdir(work.root)
    with pytest.raises(UnknownHandle) as caught:
        undone(work, handle="b.txt")
    assert caught.value.hint == "git safety undo -- b.txt"


def test_the_question_names_the_turn(work: Work) -> None:
    """What is about to be undone is said, not only its number."""
    work.agent_does("echo 1 >b.txt", "tidy up", "s1")
    work.agent_does("true", "look", "s2")

    report = undo.run(work.session, UndoArgs())

    assert isinstance(report, Ask)
    assert report.question == (
        "The newest turn, t2, has nothing to undo. Before it, of another session: t1 (Claude Code, tidy up). Undo that?"
    )


def test_taking_a_restore_and_a_part_back(work: Work) -> None:
    """A redo of what was no undo of a turn says what it takes back, and so does the log."""
    work.agent_does("sed -i 's/line 1/one/; s/line 9/nine/' a.txt; echo 1 >b.txt")
    restore.run(work.session, RestoreArgs(when="before", handle="t1", paths=(work.at("b.txt"),)))
    assert first_line(redone(work)) == "Took back the restore of b.txt as before t1"

    offered = undo.run(work.session, UndoArgs(patch=True))
    assert isinstance(offered, Choose)
    undone(work, patch=True, hunks=frozenset({offered.hunks[0].id}))
    assert first_line(redone(work)) == "Took back the undo of a part of t1"

    shown = log.run(work.session, LogArgs())
    assert isinstance(shown, LogReport)
    assert [row.text for row in shown.rows[:4]] == [
        "took back the undo of a part of t1",
        "undo of a part of t1",
        "took back the restore of b.txt as before t1",
        "restore b.txt",
    ]


def test_a_snapshot_of_a_home_folder_says_that_it_holds_nothing(work: Work) -> None:
    """A folder that is too wide to be looked at is no success."""
    work.env["HOME"] = os.fspath(work.root)
    report = snapshot.run(work.session, SnapshotArgs())
    assert isinstance(report, SnapshotReport)
    assert (report.files, report.exit_code) == (0, 3)
    assert "too wide" in report.notices[0]


def test_folders_that_stand_for_themselves(work: Work) -> None:
    """An empty folder that goes and a folder's mode are told; a folder that goes with its files is told by those."""
    work.write("kept/x", "1\n")
    work.agent_does("mkdir empty; mkdir full; echo 1 >full/x; chmod 700 kept")

    report = undone(work)

    lines = {(line.verb, line.path, line.folder) for line in report.lines}
    assert lines == {("removed", b"empty", True), ("removed", b"full/x", False), ("restored", b"kept", True)}
    assert line_of(report, b"kept").note == "mode 700 -> 755"
    assert "Take this undo back" in text_of(render(report, View(report.root, 0)))


def test_a_stash_is_no_operation_in_progress(work: Work) -> None:
    """What git notes down on the way is not told as an operation."""
    work.write("b.txt", "mine\n")
    work.agent_does("git stash -q")
    assert git_lines(undone(work)) == ["1 stash entry of the agent removed"]


def test_a_turn_that_has_changed_nothing_yet_is_named(repo: RepoBuilder) -> None:
    """Undo and status speak of the same turn while it runs."""
    repo.hook("turn.pre", prompt="do it")
    assert "the turn that is running has changed nothing yet" in repo.undo(code=4).text.lower()
    assert "nothing to undo yet" in repo.run("status").text
