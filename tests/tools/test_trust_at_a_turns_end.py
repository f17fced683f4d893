"""Trust as a turn's end asks for it: nobody's checks run unseen, and neither the agent nor the project decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.repo import RepoBuilder
from tests.tools.turn_ends import CONFIG, checks, edit, end, ends, files_of, settings, starts, told

RAN = "#!/bin/sh\necho ran >>../ran\n"


@pytest.fixture
def ran(repo: RepoBuilder) -> Path:
    """What the repository's check writes when it runs."""
    checks(repo, RAN)
    return repo.root.parent / "ran"


@pytest.mark.parametrize("word", ["ask", "untrusted", "trusted"])
def test_default(repo: RepoBuilder, ran: Path, word: str) -> None:
    """``trusted`` runs the checks and commits; the others do neither and name the command; ``git safety trust`` is then enough."""
    settings(repo, trust={"default": word})
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    said = ends(repo)
    assert ran.exists() == (word == "trusted") == (repo.head() != base) and ("git safety trust" in said) == (word != "trusted")
    if word != "trusted":
        repo.must("trust")
        edit(repo, "b.txt", "agent\n")
        ends(repo)
        assert ran.exists() and files_of(repo) == ["a.txt", "b.txt"]


def test_refused_by_the_user(repo: RepoBuilder, ran: Path) -> None:
    """``git safety untrust`` stands against a default of ``trusted``."""
    settings(repo)
    repo.must("untrust")
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    assert "not trusted" in ends(repo) and not ran.exists() and repo.head() == base


@pytest.mark.parametrize("given", [True, False], ids=["given", "default"])
def test_agent_changes_the_checks(repo: RepoBuilder, ran: Path, given: bool) -> None:
    """Checks that the agent changed do not run in that turn, committed nothing either; the user's next prompt renews the trust."""
    settings(repo, trust={"default": "ask" if given else "trusted"})
    if given:
        repo.must("trust")
    base = repo.head()
    starts(repo)
    edit(repo, ".pre-commit-config.yaml", CONFIG % ("other", "other", "types: [text]"))
    assert "by the agent" in ends(repo) and not ran.exists() and repo.head() == base
    starts(repo, "fine")
    edit(repo, "a.txt", "agent\n")
    ends(repo)
    assert ran.exists() and files_of(repo) == [".pre-commit-config.yaml", "a.txt"]


def test_agent_installs_a_hook(repo: RepoBuilder) -> None:
    """A hook of git's that the agent has written does not run at its turn's end."""
    settings(repo, trust={"default": "ask"})
    repo.must("trust")
    base = repo.head()
    starts(repo)
    with repo.call():
        repo.write(".git/hooks/post-commit", "#!/bin/sh\ntouch ran\n", 0o755)
        repo.write("a.txt", "agent\n")
    ends(repo)
    assert not repo.exists("ran") and repo.head() == base


def test_agent_points_git_at_other_hooks(repo: RepoBuilder) -> None:
    """Nor do hooks in a folder that it has told git to look for them in."""
    settings(repo, trust={"default": "ask"})
    repo.must("trust")
    base = repo.head()
    starts(repo)
    with repo.call():
        repo.write("tools/hooks/commit-msg", "#!/bin/sh\ntouch ran\n", 0o755)
        repo.git("config", "core.hooksPath", "tools/hooks")
    ends(repo)
    assert not repo.exists("ran") and repo.head() == base


def test_agent_changes_the_checks_while_sent_back(repo: RepoBuilder) -> None:
    """It was sent back to mend its file and mends the checks instead: they do not run, and our own text is no word of the user's."""
    settings(repo, trust={"default": "ask"})
    checks(repo, "#!/bin/sh\nexit 1\n")
    repo.must("trust")
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    assert end(repo)[0]["decision"] == "continue"
    starts(repo, "the text that went back")
    edit(repo, ".pre-commit-config.yaml", "repos: []\n")
    assert "by the agent" in ends(repo) and repo.head() == base


def test_agent_trusts_for_itself(repo: RepoBuilder, ran: Path) -> None:
    """An untrusted repository stays so for a project file of the agent's making that says otherwise."""
    settings(repo, trust={"default": "ask"})
    starts(repo)
    with repo.call():
        repo.write(".git-safety.json", json.dumps({"trust": {"default": "trusted"}}))
        repo.write("a.txt", "agent\n")
    ends(repo)
    assert not ran.exists()


LOOSER: list[dict[str, Any]] = [
    {"trust": {"default": "trusted"}},
    {"gate": {"command": ["sh", "-c", "touch ../ran"], "enabled": "on"}},
    {"autocommit": {"enabled": True}},
    {"autocommit": {"message_command": ["sh", "-c", "touch ../ran"]}},
    {"hooks": {"Stop": [{"command": "touch ../ran"}]}},
    {"gate": {"backend": "hook"}},
    {"plugins": ["evil"]},
]


@pytest.mark.parametrize("project", LOOSER, ids=[json.dumps(one)[:40] for one in LOOSER])
def test_project_may_not_loosen(repo: RepoBuilder, project: dict[str, Any]) -> None:
    """What a project may not set has no effect: nothing runs, nothing is committed, and ``doctor`` names it."""
    settings(repo, autocommit={"enabled": False}, trust={"default": "ask"})
    repo.write(".git-safety.json", json.dumps(project))
    checks(repo, RAN)
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    ends(repo)
    assert repo.head() == base and not (repo.root.parent / "ran").exists()
    report = repo.run("doctor", "--fast").text
    assert ".git-safety.json" in report or "project" in report, report


def test_project_switches_the_commit_off(repo: RepoBuilder) -> None:
    """To tighten is a project's right: it can keep the commit from being made."""
    settings(repo)
    repo.write(".git-safety.json", json.dumps({"autocommit": {"enabled": False}}))
    base = repo.head()
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    ends(repo)
    assert repo.head() == base


@pytest.mark.parametrize("content", ["", "[]", "{", '{"v": 9, "roots": []}', '{"v": 1, "roots": [{"root": 3}]}'])
def test_broken_trust_file(repo: RepoBuilder, ran: Path, content: str) -> None:
    """Nothing is trusted, the user is told which file to look at, the turn ends, the next one too."""
    settings(repo, trust={"default": "ask"})
    repo.must("trust")
    (repo.state / "trust.json").write_text(content)
    base = repo.head()
    for number in range(2):
        starts(repo, str(number))
        edit(repo, "a.txt", f"agent {number}\n")
        answer, _ = end(repo)
        assert answer["decision"] == "stop" and "trust.json" in told(answer)
    assert not ran.exists() and repo.head() == base
    assert "trust.json" in repo.must("trust", code=1).text
    assert (repo.state / "trust.json").read_text() == content


def test_nothing_to_trust(repo: RepoBuilder) -> None:
    """A repository without a check or a hook is committed in without a question."""
    settings(repo, trust={"default": "ask"})
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    assert "trust" not in ends(repo) and files_of(repo) == ["a.txt"]


def test_change_from_elsewhere_asks_again(repo: RepoBuilder, ran: Path) -> None:
    """Checks that a pull has changed are not the ones that were trusted."""
    settings(repo, trust={"default": "ask"})
    repo.must("trust")
    repo.write(".pre-commit-config.yaml", CONFIG % ("other", "other", "types: [text]"))
    repo.commit("pulled")
    starts(repo)
    edit(repo, "a.txt", "agent\n")
    assert "has changed" in ends(repo) and not ran.exists()
