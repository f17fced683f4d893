"""Which runner is chosen, and what is never run ([gate] A7)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from safety.gate.backends import NO_FILE, Backend
from tests.gate.conftest import GateKit

MARK = "#!/bin/sh\necho ran >> .git/ran\n"


def hook(gate: GateKit, text: str, folder: str = ".git/hooks") -> None:
    gate.repo.write(f"{folder}/pre-commit", text, 0o755)


def test_prek_comes_first(gate: GateKit) -> None:
    """With both installed prek runs."""
    gate.checks(fine="{} exit 0")
    assert gate.run("a.txt").backend == "prek"


def test_pre_commit_without_prek(gate: GateKit, tmp_path: Path) -> None:
    """Without prek our own interpreter's pre-commit runs."""
    gate.checks(fine="{} exit 0")
    gate.only_on_path(tmp_path / "bin")
    result = gate.run("a.txt")
    assert (result.backend, result.status) == ("pre-commit", "passed")


def test_pre_commit_on_path(gate: GateKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it in our interpreter the one on PATH runs."""
    gate.checks(fine="{} exit 0")
    gate.only_on_path(tmp_path / "bin", "pre-commit")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = gate.run("a.txt")
    assert (result.backend, result.status) == ("pre-commit", "passed")


def test_a_module_of_the_repositorys_is_not_loaded(gate: GateKit) -> None:
    """A ``yaml.py`` in the root does not get between pre-commit and its own."""
    gate.backend = "pre-commit"
    gate.repo.write("yaml.py", "raise SystemExit(0)\n")
    gate.checks(nobad="{} exit 1")
    assert gate.run("a.txt").status == "failed"


def test_a_command_comes_before_all(gate: GateKit) -> None:
    """``gate.command`` runs alone, with the names where it has ``{files}``."""
    gate.checks(nobad="{} exit 1")
    result = gate.run("a.txt", "b.txt", command=("sh", "-c", 'echo "$@" > .git/names', "sh", "{files}"))
    assert (result.backend, result.status) == ("gate.command", "passed")
    assert gate.repo.read(".git/names") == "a.txt b.txt\n"


def test_a_command_that_fails(gate: GateKit) -> None:
    """Its output is tagged like a check's."""
    result = gate.run("a.txt", command=("sh", "-c", "echo a.txt:3: wrong; exit 4"))
    assert (result.status, result.goes_back) == ("failed", True)
    (failure,) = result.failures
    assert (failure.exit_code, [(line.text, line.tag) for line in failure.lines]) == (4, [("a.txt:3: wrong", "yours")])


def test_a_command_that_is_not_there(gate: GateKit) -> None:
    """It stops the commit, and the model is sent back to nothing."""
    result = gate.run("a.txt", command=("no-such-program-of-anyone",))
    assert (result.status, result.blocks_commit, result.goes_back) == ("tool_missing", True, False)
    assert "no-such-program-of-anyone" in result.text


@pytest.mark.parametrize("configured", [False, True], ids=["hooks", "core.hooksPath"])
def test_a_plain_hook(gate: GateKit, configured: bool) -> None:
    """The repository's own hook runs where git would find it; what git would not run is none."""
    if configured:
        gate.repo.git("config", "core.hooksPath", ".githooks")
    folder = ".githooks" if configured else ".git/hooks"
    gate.repo.write(f"{folder}/pre-commit", MARK, 0o644)
    assert gate.run("a.txt").status == "not_configured"
    hook(gate, MARK + "git diff --cached --name-only; exit 1\n", folder)
    gate.repo.write("a.txt", "agent\n")
    gate.repo.write("b.txt", "user\n")
    gate.repo.git("add", "b.txt")
    before = gate.picture()
    result = gate.run("a.txt")
    assert (result.backend, result.status) == ("the pre-commit hook", "failed")
    assert [line.text for failure in result.failures for line in failure.lines] == ["a.txt"]
    assert gate.repo.read(".git/ran") == "ran\n"
    gate.repo.remove(".git/ran")
    assert gate.picture() == before


@pytest.mark.parametrize("runner", ["prek", "pre-commit"])
def test_an_installed_shim_is_not_run(gate: GateKit, runner: str) -> None:
    """The hook that a runner installs would hide the user's edits: with its configuration gone it is not run either."""
    gate.checks(nobad="{} exit 1")
    program = [sys.executable, "-m", "pre_commit"] if runner == "pre-commit" else ["prek"]
    subprocess.run([*program, "install"], cwd=gate.repo.root, env=gate.env, check=True, capture_output=True)
    gate.repo.git("rm", "-q", ".pre-commit-config.yaml")
    gate.repo.write("b.txt", "user\n")
    result = gate.run("a.txt")
    assert (result.status, result.blocks_commit) == ("not_configured", False)
    assert runner in result.text
    assert gate.run("a.txt", enabled="on").status == "tool_missing"


HUSKY = '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n'


@pytest.mark.parametrize(
    "text",
    [
        HUSKY,
        MARK + "npx lint-staged\n",
        MARK + "exec lefthook run pre-commit\n",
        MARK + "git stash -k\n",
        MARK + "pre-commit run\n",
    ],
    ids=["husky", "lint-staged", "lefthook", "git stash", "pre-commit"],
)
def test_hooks_that_hide_edits_are_not_run(gate: GateKit, text: str) -> None:
    """Managers that hide the user's edits are left out, and that is said."""
    gate.repo.git("config", "core.hooksPath", ".husky/_")
    hook(gate, text, ".husky/_" if text is HUSKY else ".githooks")
    if text is not HUSKY:
        gate.repo.git("config", "core.hooksPath", ".githooks")
    result = gate.run("a.txt")
    assert (result.status, result.blocks_commit) == ("not_configured", False)
    assert "was not run" in result.text
    assert not gate.repo.exists(".git/ran")


def test_names_for_a_runner() -> None:
    """Never no name at all, never one that reads as an option, never more than the system takes."""
    for kind in ("prek", "pre-commit"):
        backend = Backend(kind, (b"run",), "x")  # type: ignore[arg-type]
        assert backend.starts([]) == [(b"run", b"--files", NO_FILE)]
        assert backend.starts([b"-x"], "one") == [(b"run", b"one", b"--files", b"./-x")]
        many = [b"%0100d" % number for number in range(40_000)]
        starts = backend.starts(many)
        assert max(sum(len(word) + 9 for word in start) for start in starts) < 1_000_000
        assert [name for start in starts for name in start[2:]] == many
