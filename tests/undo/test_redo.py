"""Redo, several undos, parts of a turn, dry runs and their tokens, restore."""

from __future__ import annotations

from tests.support.repo import NINE_LINES, RepoBuilder
from tests.support.store import blob_id, reachable


def test_redo_keeps_what_the_user_did_after_undo(repo: RepoBuilder) -> None:
    """User edits between undo and redo stay. Rule: user operations between do not end redo and are honoured by the same table."""
    repo.agent_runs("echo agent >b.txt; echo n >n; sed -i 's/line 2/agent 2/' a.txt")
    repo.undo()
    with repo.user():
        repo.write("mine", "mine\n")
        repo.replace("a.txt", "line 8", "user 8")

    repo.redo()

    assert (repo.read("b.txt"), repo.read("n"), repo.read("mine")) == ("agent\n", "n\n", "mine\n")
    assert repo.read("a.txt") == NINE_LINES.replace("line 2", "agent 2").replace("line 8", "user 8")


def test_redo_does_not_overwrite_the_users_own(repo: RepoBuilder) -> None:
    """A file the user changed after undo in the same lines is kept by redo.

    Rule: redo is the same table with the sides swapped.
    """
    repo.agent_runs("echo agent >b.txt")
    repo.undo()
    with repo.user():
        repo.write("b.txt", "user\n")

    done = repo.redo(code=3)

    assert repo.read("b.txt") == "user\n"
    assert done.paths("kept") == ["b.txt"]


def test_redo_says_that_the_users_own_came_back_first(repo: RepoBuilder) -> None:
    """Of a file that the agent deleted or renamed and the user changed after the undo redo does not say that the agent created it."""
    repo.agent_runs("rm b.txt")
    repo.undo()
    with repo.user():
        repo.write("b.txt", "user\n")
    assert "b.txt  changed by you since it came back" in repo.must("redo", code=3).out

    repo.agent_runs("mv a.txt c.txt")
    repo.undo()
    with repo.user():
        repo.append("a.txt", "user\n")
    assert "a.txt  changed by you since it came back" in repo.must("redo", code=3).out
    assert repo.read("a.txt") == NINE_LINES + "user\n" and repo.read("c.txt") == NINE_LINES


def test_a_new_turn_ends_redo(repo: RepoBuilder) -> None:
    """After a new agent turn there is nothing to redo. Rule: the newest undo not followed by a new agent operation."""
    repo.agent_runs("echo agent >b.txt")
    repo.undo()
    repo.agent_runs("echo other >a.txt")

    repo.redo(code=4)

    assert (repo.read("b.txt"), repo.read("a.txt")) == ("b\n", "other\n")


def test_undo_walks_back_and_redo_walks_forth(repo: RepoBuilder) -> None:
    """Three turns are undone one by one and come back one by one.

    Rule: undo takes the newest not undone, redo the newest undo.
    """
    pictures = [repo.picture()]
    for number in range(3):
        repo.agent_runs(f"echo {number} >b.txt; echo {number} >new{number}; git add -A; git commit -qm {number}")
        pictures.append(repo.picture())

    for picture in reversed(pictures[:-1]):
        repo.undo()
        repo.assert_is(picture)
    repo.undo(code=4)
    for picture in pictures[1:]:
        repo.redo()
        repo.assert_is(picture)
    repo.redo(code=4)


def test_undo_redo_undo(repo: RepoBuilder) -> None:
    """A redone turn can be undone again. Rule: redo makes the turn undoable."""
    before = repo.picture()
    repo.agent_runs("echo agent >b.txt; rm a.txt")
    for _ in range(3):
        repo.undo()
        repo.assert_is(before)
        repo.redo()
        assert (repo.read("b.txt"), repo.exists("a.txt")) == ("agent\n", False)


def test_several_turns_at_once(repo: RepoBuilder) -> None:
    """-n 2 takes two turns. Rule: which, by count."""
    repo.agent_runs("echo 0 >b.txt")
    first = repo.picture()
    repo.agent_runs("echo 1 >b.txt")
    repo.agent_runs("echo 2 >b.txt; echo 2 >new")

    repo.undo("-n", "2")

    repo.assert_is(first)


def test_an_older_turn_alone(repo: RepoBuilder) -> None:
    """A turn below others is undone where no path clashes. Rule: before and after are recorded per operation."""
    repo.agent_runs("echo 1 >b.txt")
    repo.agent_runs("echo 2 >src/app.py")

    repo.undo("--turn", "t1")

    assert (repo.read("b.txt"), repo.read("src/app.py")) == ("b\n", "2\n")


def test_an_older_turn_below_a_newer_edit_of_the_same_file(repo: RepoBuilder) -> None:
    """What a later turn did on top stays. Rule: ours is neither base nor theirs: merge or keep."""
    repo.agent_runs("sed -i 's/line 2/first 2/' a.txt; echo 1 >b.txt")
    repo.agent_runs("sed -i 's/line 8/second 8/' a.txt; echo 2 >b.txt")

    done = repo.run("undo", "--json", "--turn", "t1")

    assert done.code == 3, done.text
    assert repo.read("a.txt") == NINE_LINES.replace("line 8", "second 8")
    assert repo.read("b.txt") == "2\n"


def test_one_call_of_a_turn(repo: RepoBuilder) -> None:
    """--call takes that call only. Rule: calls are operations of their own."""
    with repo.turn():
        with repo.call():
            repo.write("b.txt", "one\n")
        with repo.call():
            repo.write("src/app.py", "two\n")

    repo.undo("--call", "t1.1")

    assert (repo.read("b.txt"), repo.read("src/app.py")) == ("b\n", "two\n")


def test_one_path_of_a_turn(repo: RepoBuilder) -> None:
    """``-- PATH`` takes that path only, a folder all below it. Rule: the plan is cut to the paths."""
    repo.agent_runs("echo agent >b.txt; echo agent >src/app.py; rm src/lib/util.py")

    repo.undo("--", "src")

    assert (repo.read("b.txt"), repo.read("src/app.py"), repo.read("src/lib/util.py")) == (
        "agent\n",
        "print('app')\n",
        "UTIL = 1\n",
    )


def test_dry_run_changes_nothing(repo: RepoBuilder) -> None:
    """A dry run tells the plan and touches neither the workspace nor its git directory. Rule: plan is pure."""
    repo.agent_runs("echo agent >b.txt; git commit -qam agent; echo n >n")
    before = repo.picture()

    done = repo.undo("--dry-run")

    repo.assert_is(before)
    assert (done.paths("restored"), done.paths("removed")) == (["b.txt"], ["n"])
    assert done.report["plan_token"]


def test_plan_token_binds_to_the_state(repo: RepoBuilder) -> None:
    """A token is refused once the workspace has moved on, and accepted before. Rule: preview bound to state."""
    repo.agent_runs("echo agent >b.txt; echo n >n")
    token = repo.undo("--dry-run").report["plan_token"]
    with repo.user():
        repo.write("b.txt", "user\n")

    done = repo.run("undo", "--json", "--plan", token)
    assert done.code in (1, 4), done.text
    assert (repo.read("b.txt"), repo.exists("n")) == ("user\n", True)

    fresh = repo.run("undo", "--json", "--dry-run").report["plan_token"]
    repo.undo("--plan", fresh, code=3)
    assert (repo.read("b.txt"), repo.exists("n")) == ("user\n", False)


def test_nothing_to_undo(repo: RepoBuilder) -> None:
    """Without a turn there is nothing to do: exit 4, one sentence. Rule: exit codes."""
    done = repo.run("undo")

    assert done.code == 4
    assert len(done.text.strip().splitlines()) <= 3


def test_partly_undone_counts_as_undone(repo: RepoBuilder) -> None:
    """A partly undone turn counts as undone, and the undo is in the log. Rule: the newest not undone; partly undone is undone."""
    repo.agent_runs("echo agent >b.txt; echo agent >src/app.py")
    with repo.user():
        repo.write("b.txt", "user\n")
        repo.write("a.txt", "user\n")
    repo.undo(code=3)
    repo.undo(code=4)

    listed = repo.must("log", "--json").report

    assert any(row["actor"] == "undo" or row["state"] == "undone" for row in listed["rows"])


def test_safety_snapshot_has_no_budget(repo: RepoBuilder) -> None:
    """A large file that a restore displaces is in the store first. Rule: the safety snapshot takes every path of the plan."""
    repo.agent_writes("b.txt", "agent\n")
    big = b"user's own" * (4 << 20)
    with repo.user():
        repo.write("b.txt", big)

    repo.run("restore", "--before", "t1", "b.txt")

    if repo.read_bytes("b.txt") != big:
        assert repo.read("b.txt") == "b\n"
        assert blob_id(big) in reachable(repo.state)


def test_restore_before_and_after(repo: RepoBuilder) -> None:
    """restore gives one path as it was before or after a turn. Rule: every version recorded is reachable."""
    repo.agent_runs("echo 1 >b.txt")
    repo.agent_runs("echo 2 >b.txt")

    repo.must("restore", "--before", "t1", "b.txt")
    assert repo.read("b.txt") == "b\n"
    repo.must("restore", "--after", "t1", "b.txt")
    assert repo.read("b.txt") == "1\n"


def test_handles_are_never_reused(repo: RepoBuilder) -> None:
    """A turn after an undo has a handle of its own. Rule: handles per workspace, never reused."""
    repo.agent_runs("echo 1 >b.txt")
    repo.undo()
    repo.agent_runs("echo 2 >b.txt")

    handles = [row["handle"] for row in repo.must("log", "--json").report["rows"] if row["actor"] == "agent"]

    assert handles == ["t2", "t1"]


def test_undo_with_text_report(repo: RepoBuilder) -> None:
    """The clean case is four lines that begin with what was undone and end with the next command. Rule: what the user sees."""
    repo.agent_runs("echo agent >b.txt; echo agent >src/app.py")

    done = repo.must("undo")

    lines = done.out.strip().splitlines()
    assert lines[0].startswith("Undid t1")
    assert [line.split() for line in lines if line.startswith("  ")] == [["restored", "b.txt"], ["restored", "src/app.py"]]
    assert lines[-1].endswith("git safety redo")
