"""A turn that our checks send back: it ends in every case, whatever the harness, the user or the checks do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from safety.commands.check import LOG_BYTES, _keep
from tests.support.repo import RepoBuilder
from tests.tools.turn_ends import NO_BAD_WORDS, checks, edit, end, ends, files_of, settings, starts

# A check that is never content: each run adds a line.
RESTLESS = '#!/bin/sh\nfor f in "$@"; do echo "run $$" >>"$f"; done\nexit 1\n'


def handles(repo: RepoBuilder) -> list[str]:
    rows = json.loads(repo.must("log", "--json", "--all").out)["rows"]
    return [row["handle"] for row in rows if row["handle"][1:].isdigit()]


def bad_turn(repo: RepoBuilder) -> None:
    checks(repo, NO_BAD_WORDS)
    starts(repo)
    edit(repo, "a.txt", "BAD\n")


def test_end_heard_many_times(repo: RepoBuilder) -> None:
    """The same end five times is one turn and one commit."""
    settings(repo)
    checks(repo, NO_BAD_WORDS)
    starts(repo)
    edit(repo, "a.txt", "good\n")
    assert [end(repo)[0]["decision"] for _ in range(5)] == ["stop"] * 5
    assert repo.git("rev-list", "--count", "HEAD") == "3" and handles(repo) == ["t1"]


def test_end_without_a_start(repo: RepoBuilder) -> None:
    """No turn, no call: nothing happens; a call without a start opens a turn that ends in a commit."""
    settings(repo)
    assert ends(repo) == "" and repo.git("rev-list", "--count", "HEAD") == "1"
    edit(repo, "a.txt", "agent\n")
    ends(repo)
    assert files_of(repo) == ["a.txt"]


def test_turn_without_a_call(repo: RepoBuilder) -> None:
    """The agent only spoke: no check runs."""
    settings(repo)
    checks(repo, "#!/bin/sh\ntouch ran\n")
    starts(repo)
    assert ends(repo) == "" and not repo.exists("ran")


def test_user_types_something_else_after_continue(repo: RepoBuilder) -> None:
    """Our text went back, but the user speaks instead: the agent mends it there, and one commit has both."""
    settings(repo)
    bad_turn(repo)
    assert end(repo)[0]["decision"] == "continue"
    starts(repo, "never mind, do b")
    edit(repo, "b.txt", "agent\n")
    edit(repo, "a.txt", "GOOD\n")
    ends(repo)
    assert files_of(repo) == ["a.txt", "b.txt"] and repo.status() == ""


def test_every_try_can_be_read_afterwards(repo: RepoBuilder) -> None:
    """What failed at first is still told when the second try has passed and written nothing."""
    settings(repo)
    bad_turn(repo)
    answer = end(repo)[0]
    assert answer["decision"] == "continue" and "git safety show t1 --checks" in answer["reason"]
    edit(repo, "a.txt", "GOOD\n")
    ends(repo)
    shown = repo.must("show", "t1", "--checks").out
    headings = [line.rpartition(": ")[2] for line in shown.splitlines() if line.startswith("== ")]
    assert headings == ["failed", "passed"]
    assert "BAD" in shown.partition("passed")[0]


def test_output_of_tries_is_bounded(tmp_path: Path) -> None:
    """The newest output stays, the oldest goes."""
    kept, written = tmp_path / "t1.log", tmp_path / "checks-x.log"
    for number in range(3):
        written.write_bytes(b"%d\n" % number * (LOG_BYTES // 4))
        _keep(written, kept, f"== try {number}")
    data = kept.read_bytes()
    assert len(data) < LOG_BYTES + 100 and data.startswith(b"(what came before") and data.endswith(b"2\n")
    assert b"== try 2\n" in data and b"== try 0\n" not in data


def test_harness_that_ignores_continue(repo: RepoBuilder) -> None:
    """It begins the next turn without the model having seen our text: no call fails, the count of tries ends it."""
    settings(repo, gate={"max_attempts": 2})
    bad_turn(repo)
    answers = []
    for number in range(6):
        answers.append(end(repo)[0]["decision"])
        starts(repo, f"prompt {number}")
        edit(repo, "b.txt", f"{number}\n")
    assert answers[0] == "continue" and "stop" in answers[:3]
    assert repo.git("rev-list", "--count", "HEAD") == "2"


@pytest.mark.parametrize(("most", "sent_back"), [(0, 0), (1, 1), (2, 2)])
def test_number_of_tries(repo: RepoBuilder, most: int, sent_back: int) -> None:
    """``gate.max_attempts`` is how often a failure goes back; 0 is never, and the user is told each time."""
    settings(repo, gate={"max_attempts": most})
    bad_turn(repo)
    answers = []
    for number in range(4):
        answers.append(end(repo)[0])
        if answers[-1]["decision"] == "stop":
            break
        starts(repo, "our text")
        edit(repo, "a.txt", "BAD\n" * (number + 2))
    assert [answer["decision"] for answer in answers] == ["continue"] * sent_back + ["stop"]
    assert "words" in " ".join(answers[-1]["notices"])


def test_checks_that_never_rest(repo: RepoBuilder) -> None:
    """Checks that change the file at every run end the turn after the tries, without a commit, and undo takes all of it back."""
    settings(repo)
    checks(repo, RESTLESS)
    before = repo.picture()
    base = repo.head()
    starts(repo)
    edit(repo, "new.txt", "agent\n")
    answers = [end(repo)[0]["decision"] for _ in range(5)]
    assert answers[-1] == "stop" and repo.head() == base and repo.exists("new.txt")
    repo.undo()
    repo.assert_is(before)


def test_session_end_instead_of_turn_end(repo: RepoBuilder) -> None:
    """The conversation ends in the middle of a turn: its checks and its commit are made then, and nobody is sent back."""
    settings(repo)
    bad_turn(repo)
    done = repo.hook("session.end")
    assert "decision" not in done and "words" in " ".join(done["notices"])
    repo.session = "next"
    starts(repo)
    edit(repo, "b.txt", "agent\n")
    ends(repo)
    assert files_of(repo) == ["b.txt"]


def test_call_still_open_at_the_end(repo: RepoBuilder) -> None:
    """A call without an end: its change is nobody's, so it is not committed; the turn ends all the same."""
    settings(repo)
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    repo.hook("tool.execute.pre", tool="shell", call_id="lost", input={"command": "x"})
    repo.write("b.txt", "late\n")
    ends(repo)
    assert files_of(repo) == ["a.txt"] and repo.status() == " M b.txt"


def test_check_that_prints_without_end(repo: RepoBuilder) -> None:
    """The text that goes back stays below its limit, without control characters."""
    settings(repo)
    checks(repo, '#!/bin/sh\nprintf "\\033[31mred\\033[0m \\007\\n"; seq 1 200000; exit 1\n')
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    answer, said = end(repo)
    assert answer["decision"] == "continue" and len(answer["reason"]) <= 6000
    assert "\033" not in answer["reason"] + said and "\007" not in answer["reason"]
