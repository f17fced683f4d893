"""The end of a turn with checks and a commit: what is judged, what goes back, what the commit holds, what stays the user's."""

from __future__ import annotations

import json

import pytest

from tests.support.repo import NINE_LINES, RepoBuilder
from tests.tools.turn_ends import NO_BAD_WORDS, STRIP, checks, edit, end, files_of, settings


@pytest.fixture(params=["prek", "pre-commit"])
def backend(request: pytest.FixtureRequest, repo: RepoBuilder) -> str:
    settings(repo, gate={"backend": request.param})
    return str(request.param)


def test_clean_change_is_committed_and_nothing_else(repo: RepoBuilder, backend: str) -> None:
    """The commit holds the agent's file; what the user had staged and changed is as it was."""
    checks(repo, NO_BAD_WORDS)
    with repo.user():
        repo.write("b.txt", "BAD, by the user\n")
        repo.write("mine", "BAD, new\n")
        repo.write("src/app.py", "staged\n")
        repo.git("add", "src/app.py")
    repo.hook("turn.pre", prompt="fix it")
    edit(repo, "a.txt", NINE_LINES + "line 10\n")
    repo.hook("turn.post")

    assert files_of(repo) == ["a.txt"]
    assert sorted(line.strip() for line in repo.status().splitlines()) == ["?? mine", "M  src/app.py", "M b.txt"]
    assert "Assisted-by:" in repo.git("log", "-1", "--format=%B")
    assert "Signed-off-by" not in repo.git("log", "-1", "--format=%B")


def test_failure_goes_back_and_blocks_the_commit(repo: RepoBuilder, backend: str) -> None:
    """A failing check stops the commit, its text goes back, the repaired turn is committed as one."""
    checks(repo, NO_BAD_WORDS)
    base = repo.head()
    repo.hook("turn.pre", prompt="fix it")
    edit(repo, "a.txt", NINE_LINES + "BAD\n")
    answer, said = end(repo)

    assert answer["decision"] == "continue" and repo.head() == base
    first = answer["reason"].splitlines()[0]
    assert first.startswith("git-safety: 1 check failed, nothing was committed (try 1 of 3")
    assert "a.txt:10" in answer["reason"] and "[yours]" in answer["reason"] and said.strip()

    repo.hook("turn.pre", prompt="the harness sends our text")
    edit(repo, "a.txt", NINE_LINES + "GOOD\n")
    assert end(repo)[0]["decision"] == "stop"
    assert files_of(repo) == ["a.txt"] and repo.git("show", "HEAD:a.txt").endswith("GOOD")
    assert [row["handle"] for row in json.loads(repo.must("log", "--json").out)["rows"] if row["handle"][1:].isdigit()] == ["t1"]


def test_same_failure_does_not_go_back_for_ever(repo: RepoBuilder) -> None:
    """The agent is asked a few times and no more; then the turn ends, the files stay, nothing is committed."""
    settings(repo)
    checks(repo, NO_BAD_WORDS)
    base = repo.head()
    repo.hook("turn.pre", prompt="fix it")
    edit(repo, "a.txt", "BAD\n")
    answers = [end(repo)[0]["decision"] for _ in range(4)]

    assert answers[0] == "continue" and answers[-1] == "stop" and answers.count("continue") <= 3
    assert repo.head() == base and repo.read("a.txt") == "BAD\n"


def test_fixers_work_is_committed_and_undone_with_the_turn(repo: RepoBuilder, backend: str) -> None:
    """What a check repairs is part of the turn: the commit holds it, and undo takes all of it back."""
    checks(repo, STRIP)
    before = repo.picture()
    base = repo.head()
    repo.hook("turn.pre", prompt="write")
    edit(repo, "new.txt", "text   \n")
    assert end(repo)[0]["decision"] == "stop"

    assert repo.read("new.txt") == "text\n" and repo.git("show", "HEAD:new.txt") == "text"
    repo.undo()
    assert repo.head() == base
    repo.assert_is(before)


def test_user_line_in_the_same_file_stays_out(repo: RepoBuilder) -> None:
    """Two hunks of one file, one staged, one not, neither the agent's: the commit has only the agent's third."""
    settings(repo)
    with repo.user():
        repo.replace("a.txt", "line 2\n", "line 2, staged\n")
        repo.git("add", "a.txt")
        repo.replace("a.txt", "line 5\n", "line 5, not staged\n")
    staged, unstaged = repo.git("diff", "--cached"), repo.git("diff")
    repo.hook("turn.pre", prompt="x")
    with repo.call():
        repo.replace("a.txt", "line 9\n", "line 9, the agent\n")
    repo.hook("turn.post")

    assert repo.git("show", "HEAD:a.txt") + "\n" == NINE_LINES.replace("line 9\n", "line 9, the agent\n")
    changed = [line for line in repo.git("diff", "--cached").splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == [line for line in staged.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    changed = [line for line in repo.git("diff").splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == [line for line in unstaged.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def test_what_the_user_took_back_is_not_committed(repo: RepoBuilder) -> None:
    """A change of an earlier turn that the user has undone by hand does not come back in a later commit."""
    settings(repo, autocommit={"enabled": False})
    with repo.agent():
        repo.write("b.txt", "agent\n")
    with repo.user():
        repo.write("b.txt", "b\n")
    with repo.agent():
        repo.write("a.txt", "agent\n")

    done = repo.must("commit", "--json", code=3)
    assert files_of(repo) == ["a.txt"] and "b.txt" in done.out


def test_secret_is_refused(repo: RepoBuilder) -> None:
    """A token in an added line stops the commit and is not repeated."""
    settings(repo)
    token = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    base = repo.head()
    with repo.turn(), repo.call():
        repo.write("conf.py", f'TOKEN = "{token}"\n')

    done = repo.must("commit", code=1)
    assert repo.head() == base and "conf.py" in done.text and token not in done.text


def test_untrusted_repository_runs_nothing(repo: RepoBuilder) -> None:
    """Checks of a repository nobody has trusted do not run, nothing is committed, one line says how to trust it."""
    settings(repo, trust={"default": "ask"})
    checks(repo, "#!/bin/sh\ntouch ran\n")
    base = repo.head()
    repo.hook("turn.pre", prompt="x")
    edit(repo, "a.txt", "agent\n")
    answer, _ = end(repo)

    assert answer["decision"] == "stop" and repo.head() == base and not repo.exists("ran")
    assert any("git safety trust" in text for text in answer["notices"])
    repo.must("trust")
    repo.must("commit")
    assert files_of(repo) == ["a.txt"] and repo.exists("ran")


def test_command_in_the_prompt_commits(repo: RepoBuilder) -> None:
    """``/commit`` in a prompt is carried out and not sent to the model; undo of the turn takes the commit back too."""
    settings(repo, autocommit={"enabled": False})
    base = repo.head()
    with repo.agent():
        repo.write("a.txt", "agent\n")
    answer = repo.hook("turn.pre", prompt="/commit fix: the words")

    assert answer["handled"] and repo.git("log", "-1", "--format=%s") == "fix: the words"
    repo.undo()
    assert repo.head() == base and repo.read("a.txt") == NINE_LINES


def test_refusing_commit_msg_hook_leaves_all_as_it_was(repo: RepoBuilder) -> None:
    """A commit-msg hook that says no is not gone round."""
    settings(repo)
    repo.write(".git/hooks/commit-msg", '#!/bin/sh\ngrep -q TICKET "$1" || { echo no ticket; exit 1; }\n', 0o755)
    base, index = repo.head(), repo.git("ls-files", "-s")
    repo.hook("turn.pre", prompt="x")
    edit(repo, "a.txt", "agent\n")
    end(repo)

    assert (repo.head(), repo.git("ls-files", "-s"), repo.read("a.txt")) == (base, index, "agent\n")
