"""What a commit holds: the agent's changes hunk by hunk, and nothing of the user's ([gate] B4)."""

from __future__ import annotations

import os

from safety.commit.values import Step
from tests.commit.conftest import LINES, Work


def test_only_the_agents_files_are_committed(work: Work) -> None:
    """Staged, dirty and untracked files of the user's stay exactly that, next to a changed and a new file of the agent's."""
    work.append("b.txt", "user\n")
    work.write("c.txt", "staged\n")
    work.git("add", "c.txt")
    work.write("todo.txt", "todo\n")
    work.agent_edits("a.txt", "line 15", "AGENT")
    work.agent_makes("src/new.py", "new\n")
    staged = work.staged()

    assert work.commits() == "M a.txt\nA src/new.py"

    assert work.status() == " M b.txt\nM  c.txt\n?? todo.txt"
    assert work.staged() == staged


def test_status_is_clean_after_the_commit_and_needs_no_refresh(work: Work) -> None:
    """The index follows: changed, new, removed files and folders show nowhere, and even a bare diff-files reads no file."""
    with work.step("a.txt", "lib/l.py", "src/app.py"):
        work.append("a.txt", "agent\n")
        work.write("lib/l.py", "l\n")
        work.remove("src/app.py")

    assert work.commits() == "M a.txt\nA lib/l.py\nD src/app.py"

    assert work.git("diff-files") == ""
    assert work.status() == ""


def test_the_users_unstaged_line_in_the_same_file_stays_unstaged(work: Work) -> None:
    """Of a file that both changed, the commit has the agent's line only."""
    work.replace("a.txt", "line 2\n", "USER\n")
    work.agent_edits("a.txt", "line 15", "AGENT")

    assert work.commits() == "M a.txt"

    assert work.git("show", "HEAD:a.txt") + "\n" == LINES.replace("line 15", "AGENT")
    assert work.changed_lines() == ["-line 2", "+USER"]
    assert work.staged() == ""


def test_staged_and_unstaged_lines_in_the_same_file_stay_what_they_are(work: Work) -> None:
    """The user's staged line 2 and unstaged line 8 look in both diffs as they did, though the agent's line 15 is committed."""
    work.replace("a.txt", "line 2\n", "STAGED\n")
    work.git("add", "a.txt")
    work.replace("a.txt", "line 8\n", "UNSTAGED\n")
    staged, unstaged = work.changed_lines("--cached"), work.changed_lines()
    work.agent_edits("a.txt", "line 15", "AGENT")

    assert work.commits() == "M a.txt"

    assert work.changed_lines("HEAD^", "HEAD") == ["-line 15", "+AGENT"]
    assert work.changed_lines("--cached") == staged
    assert work.changed_lines() == unstaged


def test_a_user_edit_made_after_the_agent_is_not_committed(work: Work) -> None:
    """What is on disk does not count, only what the steps say."""
    work.agent_edits("a.txt", "line 15", "AGENT")
    work.replace("a.txt", "line 2\n", "USER\n")

    assert work.commits() == "M a.txt"

    assert work.changed_lines() == ["-line 2", "+USER"]


def test_a_user_edit_between_two_steps_is_not_committed(work: Work) -> None:
    """Two steps on one path with a user's edit in between give both of the agent's lines and not the user's."""
    work.agent_edits("a.txt", "line 5\n", "FIRST\n")
    work.replace("a.txt", "line 10", "USER")
    work.agent_edits("a.txt", "line 15", "SECOND")

    assert work.commits() == "M a.txt"

    assert work.changed_lines() == ["-line 10", "+USER"]
    assert work.changed_lines("HEAD^", "HEAD") == ["-line 5", "+FIRST", "-line 15", "+SECOND"]


def test_the_same_or_a_neighbouring_line_is_left_out(work: Work) -> None:
    """Where the user's and the agent's change cannot be told apart the path is named, and nothing else of the commit suffers."""
    work.replace("a.txt", "line 15", "USER")
    work.replace("b.txt", "line 4", "USER")
    work.agent_edits("a.txt", "USER", "AGENT")
    work.agent_edits("b.txt", "line 5", "AGENT")
    work.agent_edits("c.txt", "c", "agent")
    plan = work.plan()

    assert work.commits() == "M c.txt"

    assert [(left.path, left.code) for left in plan.left_out] == [(b"a.txt", "overlap"), (b"b.txt", "overlap")]
    assert work.status() == " M a.txt\n M b.txt"


def test_include_mine_commits_such_a_path_whole(work: Work) -> None:
    """Asked for, a path that cannot be told apart is committed as the agent left it; so is a user's new file it edited."""
    work.replace("a.txt", "line 15", "USER")
    work.write("mine.txt", "mine\n")
    work.git("add", "mine.txt")
    work.agent_edits("a.txt", "USER", "AGENT")
    work.agent_edits("mine.txt", "mine", "both")

    assert work.commits(include_mine=True) == "M a.txt\nA mine.txt"

    assert work.status() == ""


def test_a_new_file_of_the_users_is_not_committed(work: Work) -> None:
    """Untracked or staged, a file that the user has not committed yet stays so though the agent edited it."""
    work.write("mine.txt", "mine\n")
    work.write("staged.txt", "staged\n")
    work.git("add", "staged.txt")
    work.agent_edits("mine.txt", "mine", "agent")
    work.agent_edits("staged.txt", "staged", "agent")
    plan = work.plan()

    assert (plan.paths, [left.code for left in plan.left_out]) == ((), ["new", "new"])
    assert work.make(plan).status == "nothing"
    assert work.status() == "AM staged.txt\n?? mine.txt"


def test_a_file_the_user_deleted_or_changed_is_not_deleted_for_them(work: Work) -> None:
    """Deleting what the user changed, or changing what the user deleted from the index, is left out."""
    work.append("a.txt", "user\n")
    with work.step("a.txt"):
        work.remove("a.txt")
    work.git("rm", "-q", "--cached", "b.txt")
    work.agent_edits("b.txt", "line 5", "AGENT")
    plan = work.plan()

    assert [(left.path, left.code) for left in plan.left_out] == [(b"a.txt", "yours"), (b"b.txt", "gone")]
    assert work.make(plan).status == "nothing"


def test_a_staged_change_on_the_same_line_keeps_the_path_out(work: Work) -> None:
    """When only the index is in the way, the path is left out and staging is as before."""
    work.replace("a.txt", "line 15", "STAGED")
    work.git("add", "a.txt")
    work.replace("a.txt", "STAGED", "line 15")
    work.agent_edits("a.txt", "line 15", "AGENT")
    staged = work.staged()
    plan = work.plan()

    assert [left.code for left in plan.left_out] == ["staged"]
    assert work.make(plan).status == "nothing"
    assert work.staged() == staged


def test_what_the_agent_staged_itself_is_committed(work: Work) -> None:
    """An older version of the agent's own that it had staged is no work of the user's."""
    work.agent_edits("a.txt", "line 15", "FIRST")
    work.git("add", "a.txt")
    work.agent_edits("a.txt", "FIRST", "SECOND")
    work.agent_makes("new.txt", "one\n")
    work.git("add", "new.txt")

    assert work.commits() == "M a.txt\nA new.txt"

    assert work.status() == ""


def test_binary_files_are_committed_whole_or_not_at_all(work: Work) -> None:
    """The agent's own change of a binary file is committed; one that the user changed before is not."""
    work.write("logo.bin", b"\0user")
    with work.step("logo.bin"):
        work.write("logo.bin", b"\0agent")
    work.agent_makes("other.bin", b"\0\xff")
    plan = work.plan()

    assert [left.code for left in plan.left_out] == ["binary"]
    assert work.commits() == "A other.bin"


def test_modes_links_and_types(work: Work) -> None:
    """An executable bit, a symbolic link, a file that becomes a link, a folder that becomes a file and the reverse."""
    work.write("folder/x", "x\n")
    work.commit("more")
    with work.step("tool.sh", "link", "c.txt", "folder/x", "folder", "b.txt", "b.txt/deep/y"):
        work.path("tool.sh").chmod(0o755)
        work.link("link", "a.txt")
        work.remove("c.txt")
        work.link("c.txt", "nowhere")
        work.remove("folder")
        work.write("folder", "now a file\n")
        work.remove("b.txt")
        work.write("b.txt/deep/y", "y\n")

    assert work.commits() == "D b.txt\nA b.txt/deep/y\nT c.txt\nA folder\nD folder/x\nA link\nM tool.sh"

    assert work.status() == ""
    assert work.git("ls-tree", "HEAD", "tool.sh").startswith("100755 blob")


def test_a_mode_the_user_changed_is_the_users(work: Work) -> None:
    """The agent's line is committed without the user's executable bit."""
    work.path("a.txt").chmod(0o755)
    work.agent_edits("a.txt", "line 15", "AGENT")

    assert work.commits() == "M a.txt"

    assert work.git("ls-tree", "HEAD", "a.txt").startswith("100644")
    assert work.changed_lines() == []
    assert "old mode 100644\nnew mode 100755" in work.git("diff")


def test_without_file_modes_none_is_committed(work: Work) -> None:
    """Where core.fileMode is off, what the disk says of permissions means nothing."""
    work.git("config", "core.fileMode", "false")
    with work.step("a.txt", "new.sh"):
        work.append("a.txt", "agent\n")
        work.path("a.txt").chmod(0o755)
        work.write("new.sh", "new\n", 0o755)

    assert work.commits() == "M a.txt\nA new.sh"

    assert {line[:6] for line in work.git("ls-tree", "HEAD", "a.txt", "new.sh").splitlines()} == {"100644"}


def test_odd_names_are_names(work: Work) -> None:
    """Newline, quotes, a leading dash or colon, no UTF-8, magic characters."""
    names = ["-dash.txt", ":(top)x", "a\nb", 'q"uote', "tab\there", os.fsdecode(b"\xff\xfe"), "st*r", " lead"]
    for name in names:
        work.agent_makes(name, "x\n")

    work.commits()

    listed = work.git("ls-tree", "-z", "--name-only", "HEAD").split("\0")
    assert set(names) <= set(listed)
    assert work.status() == ""


def test_ignored_files_and_what_git_would_not_take_stay_out(work: Work) -> None:
    """An ignored file is passed over without a word; a path outside, in .git or below a link is named."""
    work.link("link", "src")
    work.git("add", "link")
    work.git("commit", "-qm", "link")
    work.agent_makes("build.log", "log\n")
    work.agent_makes("c.txt", "agent\n")
    file = work.side("c.txt")
    for path in (b"/etc/passwd", b".git/config", b"x/../y", b"link/deep", b"sub/.GIT/hooks/x"):
        work.steps.append(Step(path, None, file))
    plan = work.plan()

    assert plan.paths == (b"c.txt",)
    assert {left.path: left.code for left in plan.left_out} == {
        b"/etc/passwd": "outside",
        b".git/config": "outside",
        b"x/../y": "outside",
        b"link/deep": "below-link",
        b"sub/.GIT/hooks/x": "outside",
    }
    assert work.commits() == "M c.txt"


def test_a_change_that_is_gone_again_makes_no_commit(work: Work) -> None:
    """Undone by the agent itself, or by the user on the disk, or committed by the agent: nothing is left to commit."""
    work.agent_edits("a.txt", "line 15", "AGENT")
    work.agent_edits("a.txt", "AGENT", "line 15")
    work.agent_edits("b.txt", "line 5", "AGENT")
    work.replace("b.txt", "AGENT", "line 5")
    work.agent_makes("c.txt", "agent\n")
    work.git("commit", "-qam", "the agent's own")
    plan = work.plan()

    assert [(left.path, left.code) for left in plan.left_out] == [(b"b.txt", "taken-back")]
    assert (work.make(plan).status, work.git("log", "-1", "--format=%s")) == ("nothing", "the agent's own")


def test_the_first_commit_leaves_the_users_staged_file_staged(fresh: Work) -> None:
    """Before there is a HEAD the root commit holds the agent's file only."""
    fresh.write("mine.txt", "mine\n")
    fresh.git("add", "mine.txt")
    fresh.agent_makes("agent.txt", "agent\n")

    result = fresh.make()

    assert result.status == "committed"
    assert fresh.git("ls-tree", "-r", "--name-only", "HEAD") == "agent.txt"
    assert fresh.git("log", "--format=%P") == ""
    assert fresh.status() == "A  mine.txt"


def test_the_first_commit_of_all_needs_no_index(fresh: Work) -> None:
    """In a repository that has neither HEAD nor index."""
    fresh.agent_makes("src/agent.txt", "agent\n")

    assert fresh.make().status == "committed"
    assert fresh.status() == ""


def test_intent_to_add_is_kept(work: Work) -> None:
    """The user's own stays one; a new file that the agent marked so is committed."""
    work.write("later.txt", "later\n")
    work.agent_makes("new.txt", "new\n")
    work.git("add", "-N", "later.txt", "new.txt")

    assert work.commits() == "A new.txt"

    assert work.status() == " A later.txt"
    assert "new file mode" in work.git("diff", "later.txt")


def test_hidden_entries_are_left_alone(work: Work) -> None:
    """Skip-worktree and assume-unchanged say that changes of this file are not for committing; the flags stay."""
    work.git("update-index", "--skip-worktree", "a.txt")
    work.git("update-index", "--assume-unchanged", "b.txt")
    work.agent_edits("a.txt", "line 15", "AGENT")
    with work.step("b.txt"):
        work.remove("b.txt")
    work.agent_makes("c.txt", "agent\n")
    plan = work.plan()

    assert [left.code for left in plan.left_out] == ["hidden", "hidden"]
    assert work.commits() == "M c.txt"
    assert work.git("ls-files", "-v", "a.txt", "b.txt") == "S a.txt\nh b.txt"


def test_a_staged_file_where_the_agents_folder_is(work: Work) -> None:
    """A path is not put into an index in which the user has a file in place of its folder."""
    work.write("x", "user\n")
    work.git("add", "x")
    work.remove("x")
    work.agent_makes("x/y", "agent\n")
    work.agent_makes("c.txt", "agent\n")
    plan = work.plan()

    assert {left.path: left.code for left in plan.left_out} == {b"x/y": "clash"}
    assert work.commits() == "M c.txt"
    assert work.git("ls-files", "x") == "x"


def test_a_folder_where_head_has_a_file(work: Work) -> None:
    """The user replaced a file by a folder and has not committed that; what the agent made in it waits."""
    work.remove("c.txt")
    work.mkdir("c.txt")
    work.agent_makes("c.txt/new", "agent\n")
    work.agent_makes("b.txt", "agent\n")
    plan = work.plan()

    assert {left.path: left.code for left in plan.left_out} == {b"c.txt/new": "clash"}
    assert work.commits() == "M b.txt"
