"""The journal: a loop that is killed at any point goes on where it was; nothing that finished is repeated, nothing is lost."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from safety.agent.journal import UNKNOWN, JournalFailed, open_journal
from safety.agent.scripted import Say
from tests.agent.kit import call, journal, loop, play, results
from tests.support.repo import RepoBuilder

PROJECT = Path(__file__).resolve().parents[2]

AGENT = """
import json, os, signal, sys
from pathlib import Path
from safety.agent import tools
from safety.agent.journal import open_journal
from safety.agent.loop import Loop
from safety.agent.scripted import Say, Scripted
from safety.hooks.events import HookType
from safety.runtime.open import open_session

left = int(sys.argv[1])  # the moment, counted from 0, at which it is killed; -1: never
aside = Path(sys.argv[2])

def count(desk, name):
    # Counts, once a call, where neither undo nor the journal knows of it.
    with open(aside / "ran", "a") as file:
        file.write(name + "\\n")
    if os.environ.get("DIE_INSIDE") == name:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{name} counted"

tools.TOOLS = {**tools.TOOLS, "count": count}
session = open_session(os.getcwdb(), "agent-1", os.environ, {"name": "reference"})

def die(moment):
    global left
    if left == 0:
        (aside / "died").write_text(moment.value)
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1

for moment in HookType:
    for name, priority in (("first", 1000), ("last", -1000)):
        session.hooks.register(f"test.{name}", moment, lambda *_, at=moment: die(at), priority)

model = Scripted(
    [
        Say("", (("count", {"name": "one"}), ("write", {"path": "b.txt", "content": "agent\\n"}), ("count", {"name": "two"}))),
        Say("", (("subagent", {"task": "below"}),)),
        Say("That is all."),
    ],
    {"below": [Say("", (("count", {"name": "three"}),)), Say("Counted.")]},
)
for event in Loop(session, open_journal(aside), model).run([] if (aside / "conversation.jsonl").exists() else ["go"]):
    pass
"""


def started(repo: RepoBuilder, at: int, **more: str) -> int:
    """Runs the agent until it ends, or is killed at that moment; gives its exit code."""
    aside = repo.root.parent / "aside"
    done = subprocess.run(
        [sys.executable, "-c", AGENT, str(at), str(aside)],
        cwd=repo.root,
        env={**repo.env, "PYTHONPATH": str(PROJECT), **more},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def ran(repo: RepoBuilder) -> list[str]:
    file = repo.root.parent / "aside" / "ran"
    return file.read_text().split() if file.exists() else []


def told(repo: RepoBuilder, name: str = "conversation") -> list[str]:
    """What the model was told of its calls."""
    messages = open_journal(repo.root.parent / "aside", name).messages
    return [each["content"] for each in messages if each["role"] == "tool"]


MOMENTS = 116  # more than the story has; each counts twice, before and after all other handlers
FILE_MOMENTS = (27, 28)  # before and after a write, inside of a tool


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "point" in metafunc.fixturenames:
        every = metafunc.config.getoption("--long")
        metafunc.parametrize("point", range(MOMENTS) if every else (*range(0, MOMENTS, 10), *FILE_MOMENTS))


def test_killed_at_any_moment(repo: RepoBuilder, point: int) -> None:
    """Killed at this moment and started again: each call ran once, each has its result, and undo takes all of it back.

    The moments of a file are inside of the tool, so there nobody knows, and what it did is nobody's for certain.
    """
    if started(repo, point) == 0:
        assert point > MOMENTS // 2, "the story is shorter than the points"
        at = ""
    else:
        at = (repo.root.parent / "aside" / "died").read_text()
        assert started(repo, -1) == 0
    assert ran(repo) == ["one", "two", "three"]
    inside = at.startswith("file.")
    assert told(repo) == ["one counted", UNKNOWN.text if inside else "Wrote b.txt.", "two counted", "Counted."]
    assert told(repo, "conversation-5.1") == ["three counted"]
    assert open_journal(repo.root.parent / "aside").prompt is None
    assert repo.read("b.txt") == ("b\n" if at == "file.save.pre" else "agent\n")
    if at != "file.save.pre":
        repo.undo(*(["--include-unattributed"] if inside else []))
    assert repo.read("b.txt") == "b\n"


@pytest.mark.parametrize(("name", "heard"), [("one", 0), ("two", 2), ("three", None)])
def test_killed_inside_a_tool(repo: RepoBuilder, name: str, heard: int | None) -> None:
    """It is not run again: the model is told that nobody knows whether it ran. All that follows runs once."""
    assert started(repo, -1, DIE_INSIDE=name) == -signal.SIGKILL
    assert started(repo, -1) == 0
    assert ran(repo) == ["one", "two", "three"]
    if heard is None:
        assert told(repo, "conversation-5.1") == [UNKNOWN.text]
    else:
        expected = ["one counted", "Wrote b.txt.", "two counted", "Counted."]
        expected[heard] = UNKNOWN.text
        assert told(repo) == expected


def test_a_torn_line_costs_itself(tmp_path: Path) -> None:
    """A line that a kill has cut is left out, those before and after it are read."""
    kept = open_journal(tmp_path)
    kept.open_turn("x")
    kept.add({"role": "user", "content": "x"})
    kept.start("1.1")
    kept.path.write_bytes(kept.path.read_bytes()[:-5])
    again = open_journal(tmp_path)
    assert (again.prompt, len(again.messages), again.started) == ("x", 1, set())
    again.start("1.2")
    assert open_journal(tmp_path).started == {"1.2"}


def test_two_processes_are_not_in_one_conversation(repo: RepoBuilder) -> None:
    """The second is refused while the first is there; afterwards it reads what the first has written."""
    first, second = loop(repo, Say("One.")), loop(repo, Say("One."), Say("Two."))
    events = first.run(["one"])
    next(events)
    with pytest.raises(JournalFailed, match="another process"):
        list(second.run(["two"]))
    list(events)
    list(second.run(["two"]))
    assert [each["content"] for each in journal(repo).messages] == ["one", "One.", "two", "Two."]


def test_a_line_that_is_written_in_part_is_an_error(tmp_path: Path) -> None:
    """A full disk takes what fits; that must not count as written, and the next line is not lost in it."""
    kept = open_journal(tmp_path)
    kept.open_turn("x")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (kept.path.stat().st_size + 20, limit[1]))
    try:
        with pytest.raises(JournalFailed):
            kept.add({"role": "user", "content": "x" * 100})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert kept.messages == []
    kept.start("1.1")
    assert vars(open_journal(tmp_path)) == vars(kept) and kept.started == {"1.1"}


@pytest.mark.parametrize("line", ["5", '{"usage": {"tokens": 1}}', '{"finish": "1.1"}', '{"message": "hello"}'])
def test_a_journal_of_another_version_is_refused(tmp_path: Path, line: str) -> None:
    """To leave a line out would be to forget what was done; the sentence names it."""
    kept = open_journal(tmp_path)
    kept.open_turn("x")
    kept.path.write_text(kept.path.read_text() + line + "\n")
    with pytest.raises(JournalFailed, match="line 3"):
        open_journal(tmp_path)


def test_a_journal_that_cannot_be_read(tmp_path: Path) -> None:
    """A sentence with the reason."""
    (tmp_path / "conversation.jsonl").mkdir()
    (tmp_path / "file").write_text("")
    for folder in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(JournalFailed, match="cannot be read"):
            open_journal(folder)


def test_what_was_read_back_is_what_was_written(repo: RepoBuilder) -> None:
    """Messages, results, usage and the shell's folder are the same in a second process; only its owner may read the file."""
    made = loop(repo, call("shell", command="cd src; pwd"), Say("Done."))
    list(made.run(["do it"]))
    again = journal(repo)
    assert vars(again) == vars(made.journal)
    assert again.usage.prompt > again.usage.cached > 0 and again.cwd == str(repo.path("src"))
    assert again.path.stat().st_mode & 0o777 == 0o600


def test_a_second_conversation_goes_on_from_the_first(repo: RepoBuilder) -> None:
    """The model is given all that was said before, and the shell stands where it stood."""
    play(repo, call("shell", command="cd src"), Say("There."), prompts=["go to src"])
    lines = (call("shell", command="cd src"), Say("There."), call("write", path="here.txt", content="x"), Say("Done."))
    assert ("write", "ok") in results(play(repo, *lines, prompts=["write here"]))
    assert repo.exists("src/here.txt")
