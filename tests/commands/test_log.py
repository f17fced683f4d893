"""``log``: its rows, filters and limits."""

from __future__ import annotations

import time

import pytest

from safety.commands import log, redo, restore, show, snapshot, undo
from safety.commands.args import LogArgs, RedoArgs, RestoreArgs, ShowArgs, SnapshotArgs, UndoArgs
from safety.commands.report import LogReport, LogRow, ShowReport, to_json
from safety.store.oplog import UnknownHandle
from safety.terminal.drawing import View
from safety.terminal.render import render
from safety.terminal.screen import plain
from tests.commands.conftest import Work
from tests.support.repo import RepoBuilder


def rows_of(work: Work, **args: object) -> tuple[LogRow, ...]:
    report = log.run(work.session, LogArgs(**args))  # type: ignore[arg-type]
    assert isinstance(report, LogReport)
    return report.rows


def test_nothing_recorded(work: Work) -> None:
    """An empty log is an empty report, not an error."""
    report = log.run(work.session, LogArgs())
    assert isinstance(report, LogReport)
    assert (report.rows, report.exit_code, report.note) == ((), 0, "")


def test_turns_newest_first_with_the_user_between_them(work: Work) -> None:
    """Turns and the user's own changes are rows in the order of time; first contact is none."""
    work.agent_does("sed -i s/2/two/ a.txt; rm b.txt", "first\nmore words")
    work.write("mine.txt", "1\n2\n")
    work.agent_does("echo new >new.txt", "second")

    rows = rows_of(work)

    assert [(row.handle[:2], row.actor, row.agent) for row in rows if row.actor == "agent"] == [
        ("t2", "agent", "Claude Code"),
        ("t1", "agent", "Claude Code"),
    ]
    assert [row.actor for row in rows] == ["agent", "user", "agent"]
    assert [(row.text, row.calls, row.files, row.added, row.deleted) for row in rows] == [
        ("second", 1, 1, 1, 0),
        ("", 0, 1, 2, 0),
        ("first", 1, 2, 1, 2),
    ]
    assert [row.current for row in rows] == [True, False, False]


def test_a_turn_without_change_is_a_row_and_a_checkpoint_without_change_is_none(work: Work) -> None:
    """People look for the question they asked; nobody looks for a look at the folder."""
    work.agent_does("true", "why is login slow?")
    work.git("commit", "-q", "--allow-empty", "-m", "the user's")
    work.agent_does("true", "and now?")

    assert [(row.handle, row.files) for row in rows_of(work)] == [("t2", 0), ("t1", 0)]


def test_a_row_tells_what_changed_of_git(work: Work) -> None:
    """A turn that only moved to another branch did change something, and one that removed the git directory did more than files."""
    work.agent_does("git checkout -q -b other")
    work.agent_does("echo new >new.txt")
    work.agent_does("echo new >c.txt; git add c.txt; git commit -qm c")
    work.agent_does("rm -rf a.txt .git")
    work.agent_does("git init -q .")

    rows = rows_of(work)
    assert [(row.handle, row.files, row.git) for row in rows if row.actor == "agent"] == [
        ("t5", 0, ".git made"),
        ("t4", 1, ".git removed"),
        ("t3", 1, "git"),
        ("t2", 1, ""),
        ("t1", 0, "git"),
    ]
    drawn = plain(render(log.run(work.session, LogArgs()), View(work.session.root, 0, 0, b"")))
    assert "no change" not in drawn and "1 file, .git removed" in drawn
    assert {row["git"] for row in to_json(log.run(work.session, LogArgs()))["rows"]} == {"", "git", ".git made", ".git removed"}
    removed = show.run(work.session, ShowArgs(handle="t4"))
    assert isinstance(removed, ShowReport) and removed.git_notes == ("the repository was removed",)


def test_first_contact_only_with_verbose(work: Work) -> None:
    """-v shows where the log begins; no file counts as changed by being seen for the first time."""
    work.agent_does("true")

    last = rows_of(work, verbose=True)[-1]

    assert (last.text, last.files, last.added) == ("first contact", 0, 0)


def test_running_turn_that_has_changed_nothing_yet(work: Work) -> None:
    """An open turn is on top before it leaves anything in the log."""
    work.agent_does("echo 1 >b.txt", "one")
    talk = work.talk("s2", "Codex")
    talk.turn_start("two")

    top = rows_of(work)[0]

    assert (top.handle, top.state, top.text, top.agent, top.current) == ("t2", "running", "two", "Codex", True)
    talk.turn_end()


def test_running_turn_with_changes(work: Work) -> None:
    """The open turn has its files so far, its prompt, and its open calls with -v."""
    talk = work.talk("s1", "Claude Code")
    talk.turn_start("go on")
    with work.step(talk, "one"):
        work.write("b.txt", "agent\n")
    with work.step(talk, "two"):
        row = rows_of(work, verbose=True)[0]
    talk.turn_end()

    assert (row.state, row.text, row.files, row.calls) == ("running", "go on", 1, 2)
    assert [(call.handle, call.status, call.text) for call in row.calls_detail] == [
        ("t1.1", "done", "one"),
        ("t1.2", "open", "two"),
    ]


def test_undo_marks_the_turn_and_redo_takes_the_mark_away(work: Work) -> None:
    """Undo, redo and restore are rows of their own; the state follows the newest of them."""
    work.agent_does("echo 1 >b.txt")
    undo.run(work.session, UndoArgs())
    rows = rows_of(work)
    assert [(row.actor, row.text, row.state) for row in rows] == [("undo", "undo t1", ""), ("agent", "do it", "undone")]

    redo.run(work.session, RedoArgs())
    rows = rows_of(work)
    assert [(row.text, row.state) for row in rows] == [("redo t1", ""), ("undo t1", "undone"), ("do it", "")]

    restore.run(work.session, RestoreArgs(when="before", handle="t1", paths=(work.at("b.txt"),)))
    assert [(row.actor, row.text) for row in rows_of(work)][0] == ("restore", "restore b.txt")


def test_what_no_call_explains_is_not_the_agents(work: Work) -> None:
    """A change between two calls is a row of its own that names the turn."""
    with work.turn("go") as talk:
        with work.step(talk):
            work.write("b.txt", "agent\n")
        work.write("formatter.txt", "x\n")
        with work.step(talk):
            work.write("src/app.py", "agent\n")

    rows = rows_of(work)

    assert {(row.actor, row.text, row.files) for row in rows} == {("agent", "go", 2), ("unattributed", "during t1", 1)}


def test_two_agents_at_once(work: Work) -> None:
    """Each path is counted for the conversation that declared it, also in a snapshot taken while both calls were open."""
    first, second = work.talk("s1", "Claude Code"), work.talk("s2", "Codex")
    first.turn_start("one")
    second.turn_start("two")
    with work.step(first, paths=["b.txt"]), work.step(second, paths=["src/app.py"]):
        work.write("b.txt", "one\n")
        work.write("src/app.py", "two\n")
    first.turn_end()
    second.turn_end()

    rows = {row.handle: row for row in rows_of(work, stat=True) if row.actor == "agent"}

    assert {handle: [line.path for line in row.changes] for handle, row in rows.items()} == {
        "t1": [b"b.txt"],
        "t2": [b"src/app.py"],
    }


def test_commit_of_a_turn(work: Work) -> None:
    """A commit made in the turn is named; one that was only checked out is not."""
    work.git("branch", "older")
    work.commit("second", b_txt="2\n")
    work.agent_does("echo 3 >b.txt; git commit -qam agent")
    made = work.head()
    work.agent_does("git -c core.hooksPath=/dev/null reset -q --hard older")

    rows = [row for row in rows_of(work) if row.actor == "agent"]

    assert rows[1].commit == made[:7]
    assert rows[0].files == 1


def test_filters(work: Work) -> None:
    """--agent, --mine, --since, -n and -- PATH leave rows out and say so where none is left."""
    work.agent_does("echo 1 >b.txt", "one", "s1", "Claude Code")
    work.write("mine", "x\n")
    between = int(time.time() * 1000)
    time.sleep(0.02)
    work.agent_does("echo 2 >src/app.py", "two", "s2", "Codex")

    assert [row.text for row in rows_of(work, agent="codex")] == ["two"]
    assert [row.actor for row in rows_of(work, mine=True)] == ["user"]
    assert [row.handle for row in rows_of(work, since_ms=between) if row.actor == "agent"] == ["t2"]
    assert [row.handle for row in rows_of(work, limit=1)] == ["t2"]
    assert [row.text for row in rows_of(work, paths=(work.at("b.txt"),))] == ["one"]
    assert [(row.text, row.files) for row in rows_of(work, paths=(work.at("src"),))] == [("two", 1)]
    report = log.run(work.session, LogArgs(agent="nobody"))
    assert isinstance(report, LogReport) and report.note


def test_default_limit_counts_the_rest(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without -n the log ends by itself and says how much is older; with -n the user has said it."""
    for number in range(4):
        work.agent_does(f"echo {number} >b.txt")
    monkeypatch.setattr(log, "SHOWN", 2)

    report = log.run(work.session, LogArgs())
    assert isinstance(report, LogReport)
    assert ([row.handle for row in report.rows], report.more >= 2) == (["t4", "t3"], True)
    asked = log.run(work.session, LogArgs(limit=3))
    assert isinstance(asked, LogReport)
    assert (len(asked.rows), asked.more) == (3, 0)


def test_a_turn_by_its_handle(work: Work) -> None:
    """``log t1`` is that turn with its calls, ``log t1.2`` the one call, a prefix of an id that operation."""
    with work.turn() as talk:
        with work.step(talk, "make it"):
            work.write("b.txt", "1\n")
        with work.step(talk, "fail", error="boom"):
            work.write("src/app.py", "2\n")
    work.agent_does("echo x >x")
    work.write("mine", "m\n")
    taken = snapshot.run(work.session, SnapshotArgs())

    [row] = rows_of(work, handle="t1")
    assert [(call.handle, call.tool, call.text, call.status, len(call.changes)) for call in row.calls_detail] == [
        ("t1.1", "shell", "make it", "done", 1),
        ("t1.2", "shell", "fail", "failed", 1),
    ]
    [row] = rows_of(work, handle="t1.2")
    assert (row.handle, row.files, [call.handle for call in row.calls_detail]) == ("t1.2", 1, ["t1.2"])
    [row] = rows_of(work, handle=taken.handle[:8])  # type: ignore[attr-defined]
    assert (row.handle, row.files) == (taken.handle, 1)  # type: ignore[attr-defined]
    with pytest.raises(UnknownHandle):
        rows_of(work, handle="t9")


def test_stat_and_patch(work: Work) -> None:
    """--stat names the files, -p has the patches."""
    work.agent_does("sed -i s/2/two/ a.txt; printf '\\0x' >bin")

    [row] = rows_of(work, stat=True, patch=True)

    assert [(line.path, line.change, line.added, line.deleted) for line in row.changes] == [
        (b"a.txt", "modified", 1, 1),
        (b"bin", "added", None, None),
    ]
    assert row.patches[0].patch.startswith(b"diff --git a/a.txt b/a.txt\n")
    assert row.patches[1].binary


def test_not_covered(work: Work) -> None:
    """--not-covered keeps the rows that have something no snapshot holds, with the reason; ignored folders are no news."""
    work.write(".gitignore", "node_modules/\n")
    work.write("node_modules/x", "x")
    work.agent_does("mkfifo pipe")
    work.agent_does("echo 1 >b.txt")

    [row] = rows_of(work, not_covered=True)

    assert (row.handle, row.not_covered) == ("t1", 1)
    assert [(line.path, line.reason) for line in row.uncovered] == [(b"pipe", "special-file")]


def test_snapshot_row_has_its_name(work: Work) -> None:
    """A snapshot by hand is a row although nothing changed, with the name it is pinned by."""
    work.agent_does("echo 1 >b.txt")
    snapshot.run(work.session, SnapshotArgs(name="before the upgrade"))

    top = rows_of(work)[0]

    assert (top.actor, top.text, top.pin) == ("user", "snapshot before the upgrade", "before the upgrade")


def test_all_workspaces(work: Work, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """--all has the rows of every workspace, the one with the newest row first; a damaged store is a notice."""
    other = Work(tmp_path / "other", work.env, init=False)
    work.agent_does("echo 1 >b.txt", "here")
    other.agent_does("echo 1 >o.txt", "there")

    rows = rows_of(work, all_workspaces=True)

    assert [(row.workspace, row.text) for row in rows] == [(other.at(""), "there"), (work.at(""), "here")]


def test_credentials_are_hidden(work: Work) -> None:
    """Prompts and commands are shown without what looks like a secret."""
    command = "curl -H 'Authorization: Bearer abcdefghijklmnop' https://u:hunter2@example.test"
    with work.turn("use ghp_0123456789abcdefghij please") as talk, work.step(talk, command):
        work.write("b.txt", "x\n")

    [row] = rows_of(work, handle="t1")

    assert row.text == "use *** please"
    assert row.calls_detail[0].text == "curl -H 'Authorization: Bearer ***' https://u:***@example.test"


def test_log_only_reads(work: Work) -> None:
    """A log of a changed workspace takes no snapshot and writes nothing at all."""
    work.agent_does("echo 1 >b.txt")
    work.write("mine", "unseen\n")
    session = work.session
    before = work.snapshot_of_state()

    for args in (LogArgs(), LogArgs(verbose=True, stat=True, patch=True), LogArgs(all_workspaces=True), LogArgs(handle="t1")):
        log.run(session, args)

    assert work.snapshot_of_state() == before


def test_plain_folder(plain: Work) -> None:
    """Without git there is a log all the same."""
    plain.write("x", "1\n")
    plain.agent_does("echo 2 >x")

    [row] = rows_of(plain)

    assert (row.files, row.added, row.deleted, row.commit) == (1, 1, 1, "")


def test_log_names_ignored_folders_that_a_turn_stirred(repo: RepoBuilder) -> None:
    """A new or a removed file directly in one, even if nothing else changed; undo and the plain log are not troubled with it."""
    repo.write(".gitignore", "/build/\n")
    repo.write("build/deep/x", "1\n")
    repo.agent_runs("echo 1 >build/new")
    repo.agent_runs("rm build/new; echo 1 >y")
    repo.agent_runs("rm build/deep/x; echo 1 >z")

    said = repo.must("log", "--not-covered").out
    assert [line.split()[1] for line in said.splitlines() if line.startswith(("@", "o"))] == ["t2", "t1"]
    assert said.count("build/  an ignored dependency, build or cache folder in which something came or went") == 2
    assert "not covered" not in repo.must("log").out
    for undone in ("z", "y"):
        done = repo.undo()
        assert (done.paths("removed"), done.paths("not covered")) == ([undone], [])
    assert repo.run("undo").code == 4
