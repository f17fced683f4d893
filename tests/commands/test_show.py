"""``show``: one turn, call or operation in full."""

from __future__ import annotations

import time

import pytest

from safety.commands import show, snapshot, undo
from safety.commands.args import ShowArgs, SnapshotArgs, UndoArgs
from safety.commands.report import ShowReport, TextReport
from safety.store.oplog import UnknownHandle
from tests.commands.conftest import Work


def shown(work: Work, handle: str = "", **args: object) -> ShowReport:
    report = show.run(work.session, ShowArgs(handle=handle, **args))  # type: ignore[arg-type]
    assert isinstance(report, ShowReport)
    return report


def lines(report: ShowReport) -> list[tuple[bytes, str, int | None, int | None]]:
    return [(line.path, line.change, line.added, line.deleted) for line in report.changes]


def test_nothing_yet(work: Work) -> None:
    """Where no agent has worked, that is the answer, with exit code 4; a handle that does not exist is an error."""
    report = show.run(work.session, ShowArgs())
    assert isinstance(report, TextReport) and report.exit_code == 4
    with pytest.raises(UnknownHandle):
        show.run(work.session, ShowArgs(handle="t1"))


def test_every_kind_of_change(work: Work) -> None:
    """Added, modified, deleted, moved, mode, type: each path once, with lines counted where it is text."""
    work.link("link", "a.txt")
    time.sleep(1.1)  # git compares change times by the second only
    work.agent_does(
        "sed -i s/2/two/ a.txt; echo n >new; rm src/app.py; mv src/lib/util.py util.py; chmod 600 b.txt; "
        "rm link; echo was-a-link >link; printf '\\0\\1' >bin; mkdir empty; chmod 700 src",
        "all sorts",
    )

    report = shown(work)

    assert (report.title.handle, report.title.prompt, report.title.agent, report.title.session) == (
        "t1",
        "all sorts",
        "Claude Code",
        "s1",
    )
    assert lines(report) == [
        (b"a.txt", "modified", 1, 1),
        (b"b.txt", "mode", 0, 0),
        (b"bin", "added", None, None),
        (b"empty", "added", 0, 0),
        (b"link", "type", 1, 1),
        (b"new", "added", 1, 0),
        (b"src", "mode", 0, 0),
        (b"src/app.py", "deleted", 0, 1),
        (b"util.py", "renamed", 0, 0),
    ]
    by_path = {line.path: line for line in report.changes}
    assert by_path[b"util.py"].old_path == b"src/lib/util.py"
    assert by_path[b"b.txt"].note == "mode 644 -> 600"
    assert by_path[b"link"].note == "symbolic link -> file"
    assert by_path[b"empty"].note == "folder"
    assert by_path[b"bin"].size == 2


def test_calls_and_certainty(work: Work) -> None:
    """What a tool named is declared, what a shell did is scanned; each call has its own changes."""
    with work.turn() as talk:
        with work.step(talk, paths=["b.txt"]):
            work.write("b.txt", "written\n")
        with work.step(talk, "./x"):
            work.write("src/app.py", "run\n")

    report = shown(work, "t1")

    assert [(call.handle, call.text, [line.path for line in call.changes]) for call in report.calls] == [
        ("t1.1", "b.txt", [b"b.txt"]),
        ("t1.2", "./x", [b"src/app.py"]),
    ]
    assert {line.path: line.certainty for line in report.changes} == {b"b.txt": "declared", b"src/app.py": "scanned"}
    one = shown(work, "t1.2")
    assert (one.title.handle, [call.handle for call in one.calls], [line.path for line in one.changes]) == (
        "t1.2",
        ["t1.2"],
        [b"src/app.py"],
    )
    with pytest.raises(UnknownHandle):
        shown(work, "t1.3")


def test_a_call_that_changed_nothing(work: Work) -> None:
    """It is known by its number although nothing is on record of it."""
    with work.turn() as talk:
        with work.step(talk):
            work.write("b.txt", "1\n")
        with work.step(talk):
            pass

    report = shown(work, "t1.2")

    assert (report.title.handle, report.changes, report.calls) == ("t1.2", (), ())


def test_net_change(work: Work) -> None:
    """A file made and removed again is no change; one that others touched in between says so."""
    with work.turn() as talk:
        with work.step(talk):
            work.write("gone", "x\n")
            work.write("b.txt", "agent\n")
        work.write("b.txt", "somebody\n")
        with work.step(talk):
            work.remove("gone")
            work.write("b.txt", "agent again\n")

    report = shown(work)

    assert lines(report) == [(b"b.txt", "modified", 1, 1)]
    assert "others" in report.changes[0].note
    assert [line.path for line in report.unattributed] == [b"b.txt"]


def test_git_notes(work: Work) -> None:
    """What happened to refs, HEAD, the index and the stash is told in sentences, not as files of .git."""
    work.git("branch", "old")
    work.agent_does(
        "git checkout -qb side; echo 1 >b.txt; git commit -qam one; echo 2 >b.txt; git commit -qam two; git tag v1; "
        "git branch -qD old; echo st >a.txt; git stash -q; echo s >s; git add s; git config some.key x"
    )

    report = shown(work)

    notes = "\n".join(report.git_notes)
    tip = work.head()[:7]
    assert "HEAD moved from main to side" in notes
    assert f"side made at {tip}" in notes
    assert f"tag v1 made at {tip}" in notes
    assert "old deleted, was " in notes
    assert "stash: 1 entry added" in notes
    assert "index: " in notes
    assert [line.path for line in report.changes] == [b".git/config", b"b.txt", b"s"]


def test_git_notes_of_commits(work: Work) -> None:
    """A branch that moved forward says by how many commits, one that moved back how many were taken off."""
    work.agent_does("echo 1 >b.txt; git commit -qam one; echo 2 >b.txt; git commit -qam two")
    work.agent_does("git reset -q --hard HEAD~1")

    assert any(note.endswith(", 2 commits") for note in shown(work, "t1").git_notes)
    assert any(note.endswith(", 1 commit taken off") for note in shown(work, "t2").git_notes)


def test_repository_that_came_and_went(work: Work) -> None:
    """A whole .git is one sentence, not its files."""
    work.agent_does("rm -rf .git")
    assert shown(work).git_notes == ("the repository was removed",)
    assert shown(work).changes == ()
    undo.run(work.session, UndoArgs())
    work.agent_does("git init -q new; echo x >new/x")
    report = shown(work)
    assert report.git_notes == ("new: the repository was made",)
    assert [line.path for line in report.changes] == [b"new/x"]


def test_not_covered(work: Work) -> None:
    """What no snapshot holds is named with its reason."""
    work.agent_does("mkfifo pipe; echo 1 >b.txt")

    report = shown(work)

    assert [(line.path, line.reason) for line in report.not_covered] == [(b"pipe", "special-file")]


def test_state_paths_and_patches(work: Work) -> None:
    """An undone turn says so; -- PATH keeps to those paths; -p has the patches."""
    work.agent_does("echo 1 >b.txt; echo 2 >src/app.py")
    undo.run(work.session, UndoArgs())

    report = shown(work, "t1", patch=True, paths=(work.at("src"),))

    assert (report.state, [line.path for line in report.changes], report.hints) == ("undone", [b"src/app.py"], ())
    assert [patch.path for patch in report.patches] == [b"src/app.py"]


def test_handles(work: Work) -> None:
    """@ is the newest turn, @- the one before, an operation's id any operation, a call's id its call."""
    work.agent_does("echo 1 >b.txt", "one")
    work.agent_does("echo 2 >b.txt", "two")
    work.write("mine", "x\n")
    taken = snapshot.run(work.session, SnapshotArgs(name="here"))

    assert [shown(work, handle).title.handle for handle in ("", "@", "@-", "t1")] == ["t2", "t2", "t1", "t1"]
    by_id = shown(work, taken.handle)  # type: ignore[attr-defined]
    assert (by_id.title.agent, by_id.title.prompt, lines(by_id)) == ("you", "snapshot here", [(b"mine", "added", 1, 0)])
    assert shown(work, "here").title.handle == taken.handle  # type: ignore[attr-defined]
    call = next(operation for operation in work.session.log.walk() if operation.record.kind == "call")
    assert shown(work, call.id).title.handle == "t2.1"


def test_running_turn(work: Work) -> None:
    """An open turn is shown before and after its first change."""
    talk = work.talk("s1", "Claude Code")
    talk.turn_start("go")
    first = shown(work)
    assert (first.title.handle, first.title.prompt, first.state, first.changes) == ("t1", "go", "running", ())
    with work.step(talk):
        work.write("b.txt", "1\n")
        assert [call.status for call in shown(work).calls] == ["open"]
    assert lines(shown(work)) == [(b"b.txt", "modified", 1, 1)]
    talk.turn_end()


def test_names_that_are_no_text(work: Work) -> None:
    """Paths are bytes; git directories inside odd names are no matter."""
    name = b'od\xff "d\n.git'
    with work.turn() as talk, work.step(talk):
        work.write(name, "x\n")

    assert lines(shown(work)) == [(name, "added", 1, 0)]
