"""The end of a turn in gptme: the checks, the commit, and the way back to the model."""

from __future__ import annotations

import json

import pytest

from tests.adapters.gptme.conftest import DONE, Gptme, save, shell

BAD = "print('bad')"


@pytest.fixture
def checked(gptme: Gptme) -> Gptme:
    """A trusted repository whose one check refuses the word ``bad``, and settings that commit at a turn's end."""
    hook = {"id": "no-bad", "name": "no bad", "entry": "sh no-bad.sh", "language": "system", "files": r"\.py$"}
    gptme.repo.write("no-bad.sh", 'if grep -n bad "$@"; then printf "NO-BAD \\377 refuses it\\n"; exit 1; fi\n')
    gptme.repo.write(".pre-commit-config.yaml", json.dumps({"repos": [{"repo": "local", "hooks": [hook]}]}))
    gptme.repo.commit("checks")
    gptme.repo.must("trust")
    gptme.settings(autocommit={"enabled": True})
    return gptme


def commits(gptme: Gptme) -> list[str]:
    return gptme.repo.git("log", "--format=%s").splitlines()


def test_a_failing_check_goes_back_to_the_model(checked: Gptme) -> None:
    """Edit, then finish, in one turn: the model is told and goes on; once fixed, the agent's change alone is committed."""
    repo = checked.repo
    repo.replace("a.txt", "line 9", "the user's line")
    ran = checked.run(
        [
            save("src/app.py", BAD),
            shell("sed -i '1s/line/LINE/' a.txt"),
            "Finished.",
            save("src/app.py", "print('good')"),
            "Finished now.",
            DONE,
        ],
        "make it good",
    )
    before_fix = "\n".join(str(message) for message in ran.asked[3])
    assert "refuses it" in before_fix and "src/app.py" in before_fix
    assert len(commits(checked)) == 3, ran.out
    assert repo.git("show", "HEAD:src/app.py") == "print('good')"
    assert repo.git("show", "HEAD:a.txt").splitlines()[::8] == ["LINE 1", "line 9"]
    assert repo.git("diff", "--name-only", "HEAD") == "a.txt" and "+the user's line" in repo.git("diff", "HEAD")
    assert ran.said("user")[0] == "make it good" and ran.out.count("git-safety: on for") == 1


def test_complete_waits_for_the_checks(checked: Gptme) -> None:
    """A turn that ends with ``complete`` is ended first: a failing check stops it, a passing one commits. Also from a sub-folder,
    for a new file with a name that git quotes, and where it stands behind another call in one message."""
    ran = checked.run([save("src/app.py", BAD), DONE, save("src/app.py", "print('good')"), DONE])
    assert "refuses it" in str(ran.asked[2]) and ran.logged.count("Task complete") == 1
    assert len(commits(checked)) == 3

    repo = checked.repo
    ran = checked.run(
        [shell("mkdir -p below/deep && cd below/deep"), save("schlécht.py", BAD), DONE, shell("rm *.py"), DONE], name="deep"
    )
    assert "schl" in str(ran.asked[3]) and "refuses it" in str(ran.asked[3])
    assert len(commits(checked)) == 3 and not repo.status()

    both = f"{save('src/app.py', BAD)}\n\n{DONE}"
    ran = checked.run([both, save("src/app.py", "print('better')"), DONE], name="both", env={"GPTME_BREAK_ON_TOOLUSE": "0"})
    assert "refuses it" in str(ran.asked[1]) and len(commits(checked)) == 4


def test_the_name_of_a_conversation_decides_nothing(checked: Gptme) -> None:
    """Its turns are checked and committed, and undone, also where its name begins as the sessions of ``run`` do."""
    ran = checked.run([save("src/app.py", BAD), DONE, save("src/app.py", "print('good')"), DONE], name="run-talk")
    assert "refuses it" in str(ran.asked[2]) and len(commits(checked)) == 3, ran.out
    ran = checked.run([], "/undo", name="run-talk")
    assert "Undid t1 and its " in ran.out and len(commits(checked)) == 2, ran.out


def test_it_never_loops_for_ever(checked: Gptme) -> None:
    """A model that fixes nothing is sent back a few times, then the run ends by itself and nothing is committed; the user is told."""
    ran = checked.run([save("src/app.py", BAD), *["Finished."] * 30], code=None)
    assert 3 <= len(ran.asked) <= 12, ran.out
    assert len(commits(checked)) == 2 and "no-bad still fails after 2 tries" in ran.out


def test_nothing_is_said_where_nothing_changed(checked: Gptme) -> None:
    """A turn that changed nothing adds no message of ours, and the run ends as soon as gptme ends it."""
    ran = checked.run(["Hello.", "Still hello.", "Hello again."], "hello", code=None)
    assert len(ran.asked) == 3 and "git-safety" not in ran.told
    assert len(commits(checked)) == 2


def test_the_commit_command_is_ours(gptme: Gptme) -> None:
    """``/commit`` commits what the agent changed, new files too, with nothing of the user's, and asks no model."""
    repo = gptme.repo
    repo.write("mine.txt", "the user's\n")
    ran = gptme.run([save("new.txt", "new"), DONE], "add a file", "-", "/commit a new file", "-", "/snapshots", "-", "/agents")
    assert commits(gptme) == ["a new file", "first"] and len(ran.asked) == 2, ran.out
    assert repo.git("show", "--name-only", "--format=", "HEAD") == "new.txt" and repo.exists("mine.txt")
    assert "t1  gptme: add a file" in ran.out
