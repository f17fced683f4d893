"""Settings as a turn's end meets them: wrong ones, and commands of the user's that refuse, hang or talk nonsense."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.repo import RepoBuilder
from tests.tools.turn_ends import edit, end, ends, files_of, settings, starts, told

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"autocommit": {"enabled": "yes"}}, "autocommit.enabled"),
    ({"autocommit": True}, "autocommit"),
    ({"autocommit": {"protected_branches": "maybe"}}, "autocommit.protected_branches"),
    ({"gate": {"max_attempts": -1}}, "gate.max_attempts"),
    ({"gate": {"max_attempts": "3"}}, "gate.max_attempts"),
    ({"gate": {"command": "make check"}}, "gate.command"),
    ({"gate": {"timeout_s": None}}, "gate.timeout_s"),
    ({"gate": []}, "gate"),
    ({"gate": {"enabled": {"on": True}}}, "gate.enabled"),
    ({"trust": {"default": "yes"}}, "trust.default"),
    ({"trust": {"default": ["trusted"]}}, "trust.default"),
    ({"hooks": []}, "hooks"),
    ({"hooks": {"Stop": "x"}}, "hooks.Stop"),
    ({"hooks": {"Stop": [{"command": 3}]}}, "command"),
    ({"hooks": {"Halt": []}}, "Halt"),
    ({"hooks": {"Stop": ["no.such"]}}, "no.such"),
    ({"hook_options": {"timeout_ms": 0}}, "timeout_ms"),
    ({"hook_options": {"fail_closed_events": ["TURN_PRE"]}}, "TURN_PRE"),
]


@pytest.mark.parametrize(("values", "key"), WRONG, ids=[json.dumps(values) for values, _ in WRONG])
def test_wrong_value(repo: RepoBuilder, values: dict[str, Any], key: str) -> None:
    """Every event names the key at fault, once on standard error and once for the user; the turn ends and nothing is committed."""
    settings(repo, **values)
    base = repo.head()
    for event in ("turn.pre", "turn.post"):
        done = repo.hook_raw(event, prompt="x")
        assert done.code == 1 and key in done.err and key in told(json.loads(done.out)), done.text
        assert "Traceback" not in done.text and len(done.err.splitlines()) == 1
    assert json.loads(done.out)["decision"] == "stop" and repo.head() == base
    assert key in repo.must("commit", code=2).text
    settings(repo)


def test_unknown_words_only_warn(repo: RepoBuilder) -> None:
    """An unknown key is for ``doctor`` to name; the turn's end works."""
    settings(repo, gate={"colour": "red"}, colour="blue")
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    ends(repo)
    assert files_of(repo) == ["a.txt"]
    assert "gate.colour" in (report := repo.run("doctor", "--fast").text) and "colour" in report


def command(repo: RepoBuilder, script: str, event: str = "Stop", **more: Any) -> None:
    """A command of the user's settings at an event."""
    file = Path(repo.env["HOME"], "command.sh")
    file.write_text("#!/bin/sh\n" + script)
    file.chmod(0o755)
    settings(repo, hooks={event: [{"command": [str(file)], "timeout_ms": 5000, **more}]})


def test_command_refuses_the_end(repo: RepoBuilder) -> None:
    """Exit code 2 goes back with what it said and nothing is committed; once it is content, all of it is."""
    command(repo, "test -e ok && exit 0; echo 'write the file ok' >&2; exit 2\n")
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    answer, said = end(repo)
    assert answer["decision"] == "continue" and "write the file ok" in answer["reason"] and "write the file ok" in said
    assert repo.head() == base
    edit(repo, "ok", "")
    ends(repo)
    assert files_of(repo) == ["a.txt", "ok"]


def test_command_that_refuses_every_end(repo: RepoBuilder) -> None:
    """It does not keep the agent for ever; the user is told, nothing is committed."""
    command(repo, "echo never >&2; exit 2\n")
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    answers = []
    while len(answers) < 20 and (not answers or answers[-1]["decision"] == "continue"):
        answers.append(end(repo)[0])
    assert answers[-1]["decision"] == "stop" and "never" in told(answers[-1]) and len(answers) > 3 and repo.head() == base


BROKEN = {
    "garbage": "echo '{]'\n",
    "array": "echo '[1]'\n",
    "word": 'echo \'{"decision": "perhaps"}\'\n',
    "code": "exit 7\n",
    "signal": "kill -9 $$\n",
    "bytes": "head -c 100000 /dev/urandom\n",
}


@pytest.mark.parametrize("role", ["guard", "record"])
@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
def test_command_that_is_broken(repo: RepoBuilder, script: str, role: str) -> None:
    """The turn ends and the user is told; behind a guard that could not judge nothing is committed, behind a record it is."""
    command(repo, script, role=role)
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    assert "command" in ends(repo)
    assert (repo.head() == base) == (role == "guard")


@pytest.mark.parametrize("role", ["guard", "record"])
def test_command_that_hangs(repo: RepoBuilder, role: str) -> None:
    """It is ended in time with all it started."""
    command(repo, f"echo $$ >{repo.env['HOME']}/pid; sleep 300 & sleep 300\n", role=role, timeout_ms=300)
    began = time.monotonic()
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    said = ends(repo)
    assert time.monotonic() - began < 60 and "300 ms" in said and (repo.head() == base) == (role == "guard")
    assert not Path(f"/proc/{Path(repo.env['HOME'], 'pid').read_text().strip()}/environ").exists()


def test_command_refuses_a_call(repo: RepoBuilder) -> None:
    """At a tool's start exit code 2 denies the call, and the call has changed nothing that a commit could hold."""
    command(repo, "grep -q secret && { echo 'not that' >&2; exit 2; }; exit 0\n", "PreToolUse")
    starts(repo)
    done = repo.hook_raw("tool.execute.pre", tool="shell", call_id="1", input={"command": "cat secret"})
    assert done.code == 2 and json.loads(done.out)["reason"] == "not that"
    edit(repo, "a.txt", "agent\n")
    ends(repo)
    assert files_of(repo) == ["a.txt"]


@pytest.mark.parametrize(
    "hooks",
    [{"Stop": ["precommit.turn_post"]}, {"PostToolUse": ["auto_snapshots.settle"]}, {"PreToolUse": ["autocommit.turn_post"]}],
)
def test_project_names_our_own_handlers(repo: RepoBuilder, hooks: dict[str, Any]) -> None:
    """A project may name what is on offer; at whatever event, that breaks nothing and commits nothing by itself."""
    settings(repo, autocommit={"enabled": False})
    repo.write(".git-safety.json", json.dumps({"hooks": hooks}))
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    assert end(repo)[0]["decision"] == "stop" and repo.head() == base
    repo.undo()


BROKEN_FILES = [
    "{",
    "[]",
    '{"hooks": []}',
    '{"gate": []}',
    '{"autocommit": {"enabled": 1}}',
    '{"gate": {"enabled": {"x": 1}}}',
    "\udcff",
]


@pytest.mark.parametrize("content", BROKEN_FILES)
def test_broken_project_file(repo: RepoBuilder, content: str) -> None:
    """A project's file that nobody can use, the agent's doing perhaps, switches nothing off: it is left out and ``doctor`` names it."""
    settings(repo)
    starts(repo)
    with repo.call():
        repo.write(".git-safety.json", content.encode("utf-8", "surrogateescape"))
    edit(repo, "a.txt", "agent\n")
    ends(repo)
    assert files_of(repo) == [".git-safety.json", "a.txt"]
    assert ".git-safety.json" in repo.run("doctor", "--fast").text
    repo.undo()
    assert not repo.exists(".git-safety.json")
