"""Whose change a commit at a turn's end holds: the agent's calls', and nothing that anybody else did before, between or after them."""

from __future__ import annotations

import json
import os

from tests.support.repo import NINE_LINES, RepoBuilder
from tests.tools.turn_ends import checks, edit, end, ends, files_of, patch_of, settings, starts


def head_text(repo: RepoBuilder, path: str = "a.txt") -> str:
    return repo.git("show", f"HEAD:{path}") + "\n"


def test_user_edits_between_two_calls_stay_out(repo: RepoBuilder) -> None:
    """A file, and a line of the agent's file, that changed between two calls are the user's."""
    settings(repo)
    starts(repo)
    edit(repo, "a.txt", NINE_LINES.replace("line 1\n", "agent 1\n"))
    repo.replace("a.txt", "line 5\n", "user 5\n")
    repo.write("b.txt", "user\n")
    with repo.call():
        repo.replace("a.txt", "line 9\n", "agent 9\n")
    ends(repo)

    assert head_text(repo) == NINE_LINES.replace("line 1\n", "agent 1\n").replace("line 9\n", "agent 9\n")
    assert patch_of(repo) == ["-line 5", "+user 5", "-b", "+user"]


def test_user_changes_the_same_line_after_the_turn(repo: RepoBuilder) -> None:
    """Where the user has written over the agent's line before the commit, the commit is not made of either."""
    settings(repo, autocommit={"enabled": False})
    base = repo.head()
    with repo.agent():
        repo.replace("a.txt", "line 5\n", "agent 5\n")
    with repo.user():
        repo.replace("a.txt", "agent 5\n", "user 5\n")
    done = repo.must("commit", code=4)

    assert repo.head() == base and "a.txt" in done.text and patch_of(repo) == ["-line 5", "+user 5"]


def test_user_changes_another_line_after_the_turn(repo: RepoBuilder) -> None:
    """A user's later line elsewhere in the file stays out and in the work tree."""
    settings(repo, autocommit={"enabled": False})
    with repo.agent():
        repo.replace("a.txt", "line 1\n", "agent 1\n")
    with repo.user():
        repo.replace("a.txt", "line 9\n", "user 9\n")
    repo.must("commit")

    assert head_text(repo) == NINE_LINES.replace("line 1\n", "agent 1\n") and patch_of(repo) == ["-line 9", "+user 9"]


def test_line_committed_before_and_changed_again(repo: RepoBuilder) -> None:
    """What the user has committed of an earlier turn by hand is no obstacle to the next change of the same line."""
    settings(repo, autocommit={"enabled": False})
    with repo.agent():
        repo.replace("a.txt", "line 5\n", "first 5\n")
    repo.git("commit", "-qam", "by hand")
    with repo.agent():
        repo.replace("a.txt", "first 5\n", "second 5\n")
    repo.must("commit")

    assert head_text(repo) == NINE_LINES.replace("line 5\n", "second 5\n") and repo.status() == ""


def test_line_committed_by_the_verb_and_changed_again(repo: RepoBuilder) -> None:
    """The same after ``git safety commit`` at the command line, with the next commit made by the turn's end."""
    settings(repo, autocommit={"enabled": False})
    with repo.agent():
        repo.replace("a.txt", "line 5\n", "first 5\n")
    repo.must("commit")
    settings(repo)
    starts(repo)
    with repo.call():
        repo.replace("a.txt", "first 5\n", "second 5\n")
    ends(repo)

    assert head_text(repo) == NINE_LINES.replace("line 5\n", "second 5\n") and repo.status() == ""


def test_agent_commits_itself_and_goes_on(repo: RepoBuilder) -> None:
    """The agent's own commit stands; ours holds what it did after it, on the same line too."""
    settings(repo)
    starts(repo)
    with repo.call("git commit -qam agent"):
        repo.replace("a.txt", "line 5\n", "first 5\n")
        repo.git("commit", "-qam", "agent")
    with repo.call():
        repo.replace("a.txt", "first 5\n", "second 5\n")
    ends(repo)

    assert repo.git("log", "--format=%s", "-2").splitlines() == ["chore(agent): update a.txt", "agent"]
    assert patch_of(repo, "HEAD~1", "HEAD") == ["-first 5", "+second 5"] and repo.status() == ""


def test_agent_commits_all_itself(repo: RepoBuilder) -> None:
    """Nothing is left to commit, and nothing is said."""
    settings(repo)
    starts(repo)
    with repo.call("git commit"):
        repo.write("new.txt", "new\n")
        repo.commit("agent")
    assert not ends(repo) and repo.git("log", "-1", "--format=%s") == "agent"


def test_new_file_that_the_agent_commits_and_changes(repo: RepoBuilder) -> None:
    """A file it made and committed in one call and changed in the next: the second change is committed."""
    settings(repo)
    starts(repo)
    with repo.call("git commit"):
        repo.write("new.txt", "one\n")
        repo.commit("agent")
    edit(repo, "new.txt", "two\n")
    ends(repo)
    assert repo.git("show", "HEAD:new.txt") == "two" and repo.status() == ""


def test_new_file_that_the_user_committed(repo: RepoBuilder) -> None:
    """A file of an earlier turn that the user has committed, changed by the agent in the next turn."""
    settings(repo, autocommit={"enabled": False})
    with repo.agent():
        repo.write("new.txt", "one\n")
    repo.commit("by hand")
    settings(repo)
    starts(repo)
    edit(repo, "new.txt", "two\n")
    ends(repo)
    assert repo.git("show", "HEAD:new.txt") == "two" and repo.status() == ""


def test_two_sessions_one_commit_each(repo: RepoBuilder) -> None:
    """Each conversation's commit holds its own file, whoever ends first."""
    settings(repo)
    for session in ("one", "two"):
        starts(repo, session_id=session)
    for session in ("one", "two"):
        with repo.call(session=session, tool="write", input={"path": str(repo.path(f"{session}.txt"))}):
            repo.write(f"{session}.txt", session)
    for session in ("two", "one"):
        repo.hook("turn.post", session_id=session)
        assert files_of(repo) == [f"{session}.txt"]


def test_two_sessions_on_one_line(repo: RepoBuilder) -> None:
    """The second session works on the first one's uncommitted line: its commit does not take the first one's work along unsaid."""
    settings(repo)
    starts(repo, session_id="one")
    starts(repo, session_id="two")
    with repo.call(session="one"):
        repo.replace("a.txt", "line 5\n", "one 5\n")
    with repo.call(session="two"):
        repo.replace("a.txt", "line 1\n", "two 1\n")
    repo.hook("turn.post", session_id="two")
    assert head_text(repo) == NINE_LINES.replace("line 1\n", "two 1\n")
    repo.hook("turn.post", session_id="one")
    assert repo.status() == "" and repo.git("log", "--format=%s").count("agent") == 2


def test_undone_turn_is_not_committed(repo: RepoBuilder) -> None:
    """A turn that was undone is in no later commit; undone and redone it is."""
    settings(repo, autocommit={"enabled": False})
    with repo.agent():
        repo.write("a.txt", "agent\n")
    repo.undo()
    repo.must("commit", code=4)
    with repo.agent():
        repo.write("b.txt", "agent\n")
    repo.must("commit")
    assert files_of(repo) == ["b.txt"]


def test_redone_turn_is_committed(repo: RepoBuilder) -> None:
    """What was undone and redone is the agent's again."""
    settings(repo, autocommit={"enabled": False})
    with repo.agent():
        repo.write("a.txt", "agent\n")
    repo.undo()
    repo.redo()
    repo.must("commit")
    assert files_of(repo) == ["a.txt"]


def test_file_of_an_earlier_turn_that_failed(repo: RepoBuilder) -> None:
    """A turn whose checks failed to the end leaves its file to the next turn that passes."""
    settings(repo, gate={"max_attempts": 1})
    checks(repo, '#!/bin/sh\n! grep -n BAD "$@" /dev/null\n')
    starts(repo)
    edit(repo, "new.txt", "BAD\n")
    while end(repo)[0]["decision"] == "continue":
        pass
    starts(repo, "and now?")
    edit(repo, "new.txt", "good\n")
    edit(repo, "a.txt", "good\n")
    ends(repo)
    assert files_of(repo) == ["a.txt", "new.txt"] and repo.status() == ""


def test_formatter_between_two_calls(repo: RepoBuilder) -> None:
    """What a formatter does to the agent's file between two calls is nobody's for certain: the commit is made without failing."""
    settings(repo)
    starts(repo)
    edit(repo, "new.txt", "one  \ntwo  \n")
    repo.write("new.txt", "one\ntwo\n")
    with repo.call():
        repo.append("new.txt", "three\n")
    told = ends(repo)
    assert "new.txt" in told and repo.read("new.txt") == "one\ntwo\nthree\n"


def test_kinds_of_change(repo: RepoBuilder) -> None:
    """Renamed, made executable, linked, deleted: one commit has them all, and undo takes all of it back."""
    settings(repo)
    repo.write("gone.txt", "gone\n")
    repo.write("old.txt", "".join(f"{number}\n" for number in range(50)))
    repo.commit("more")
    before = repo.picture()
    starts(repo)
    with repo.call():
        repo.path("old.txt").rename(repo.path("renamed.txt"))
        repo.path("a.txt").chmod(0o755)
        repo.link("link", "a.txt")
        repo.remove("gone.txt")
    ends(repo)

    assert repo.status() == ""
    assert repo.git("show", "--format=", "--name-status", "-M", "HEAD").splitlines() == [
        "M\ta.txt",
        "D\tgone.txt",
        "A\tlink",
        "R100\told.txt\trenamed.txt",
    ]
    repo.undo()
    repo.assert_is(before)


def test_odd_names(repo: RepoBuilder) -> None:
    """A line feed, a byte that is no UTF-8, a dash in front, a colon, a quote, a glob."""
    settings(repo)
    names = [b"new\nline", b"not-\xff-utf8", b"-dash", b":colon", b'"quote', b"*glob", b" blank "]
    starts(repo)
    with repo.call():
        for name in names:
            repo.write(name, "agent\n")
    ends(repo)
    listed = repo.git("show", "--format=", "--name-only", "-z", "HEAD").rstrip("\0").split("\0")
    assert sorted(map(os.fsencode, listed)) == sorted(names) and repo.status() == ""


def test_ignored_file_is_not_committed(repo: RepoBuilder) -> None:
    """What git ignores stays out, and the user is not told of it."""
    settings(repo)
    starts(repo)
    edit(repo, ".env", "agent\n")
    edit(repo, "a.txt", "agent\n")
    assert ".env" not in ends(repo) and files_of(repo) == ["a.txt"]


def test_json_names_the_commit(repo: RepoBuilder) -> None:
    """The machine's answer of the verb has the commit's id and what was left out."""
    settings(repo, autocommit={"enabled": False})
    with repo.agent():
        repo.write("a.txt", "agent\n")
    done = json.loads(repo.must("commit", "--json").out)
    assert repo.head() in json.dumps(done)


def test_one_turn_by_its_handle_leaves_the_others(repo: RepoBuilder) -> None:
    """``commit t2`` holds that turn; the turn before it is committed by the next ``commit``."""
    settings(repo, autocommit={"enabled": False})
    for name in ("one", "two"):
        with repo.agent():
            repo.write(name, name)
    repo.must("commit", "t2")
    assert files_of(repo) == ["two"]
    repo.must("commit")
    assert files_of(repo) == ["one"]
    repo.must("commit", code=4)


def test_undone_commit_gives_back_what_else_it_held(repo: RepoBuilder) -> None:
    """A commit held two turns' files and its turn is undone: the other turn's file is on the disk, and in the next commit."""
    settings(repo, autocommit={"enabled": False})
    for name in ("one", "two"):
        with repo.agent():
            repo.write(name, name)
    repo.hook("turn.pre", prompt="/commit both")
    assert files_of(repo) == ["one", "two"]
    repo.undo()
    assert repo.status() == "?? one"
    repo.must("commit")
    assert files_of(repo) == ["one"]


def test_user_committed_beside_unfinished_lines(repo: RepoBuilder) -> None:
    """The user has committed the agent's line but not their own in that file; the agent changes its line again."""
    settings(repo, autocommit={"enabled": False})
    with repo.user():
        repo.replace("a.txt", "line 9\n", "user 9\n")
    with repo.agent():
        repo.replace("a.txt", "line 1\n", "first 1\n")
    repo.sh(
        "git diff a.txt > p; sed -i 's/^-line 9/ line 9/; /^+user 9/d' p; git apply --cached --recount p; rm p; git commit -qm part"
    )
    assert patch_of(repo) == ["-line 9", "+user 9"]
    with repo.agent():
        repo.replace("a.txt", "first 1\n", "second 1\n")
    repo.must("commit")
    assert patch_of(repo, "HEAD~1", "HEAD") == ["-first 1", "+second 1"] and patch_of(repo) == ["-line 9", "+user 9"]


def test_renamed_with_unfinished_lines(repo: RepoBuilder) -> None:
    """The agent renames a file that the user has changed and not committed: neither half is committed, other renames are."""
    settings(repo)
    repo.commit("more", c_txt="c\n")
    with repo.user():
        repo.replace("a.txt", "line 5\n", "user 5\n")
    starts(repo)
    with repo.call():
        repo.mkdir("moved")
        for name in ("a.txt", "c.txt"):
            repo.path(name).rename(repo.path("moved/" + name))
    said = ends(repo)
    assert files_of(repo) == ["moved/c.txt"]
    assert "not committed: a.txt" in said and "not committed: moved/a.txt" in said
    assert sorted(repo.status().split("\n")) == [" D a.txt", "?? moved/a.txt"]


def test_users_new_file_renamed(repo: RepoBuilder) -> None:
    """A file that the user has never committed does not get in under the name that the agent gave it; a file of its own does."""
    settings(repo)
    with repo.user():
        repo.write("mine", "the user's\n")
    starts(repo)
    edit(repo, "draft", "the agent's\n")
    with repo.call():
        repo.path("mine").rename(repo.path("theirs"))
        repo.path("draft").rename(repo.path("final"))
    said = ends(repo)
    assert "not committed: theirs" in said
    assert files_of(repo) == ["final"] and repo.status() == "?? theirs", said
