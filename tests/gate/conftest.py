"""A repository with checks of its own, and the gate over it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from safety.gate.results import Checked, GateResult, GateSettings
from safety.gate.run import run_gate
from safety.plumbing.run import Git
from tests.support.repo import RepoBuilder

RUNNERS = ("prek", "pre-commit")


class GateKit:
    """Writes checks, lets the agent write, runs the gate."""

    def __init__(self, repo: RepoBuilder, log_dir: Path) -> None:
        self.repo = repo
        self.env = dict(repo.env)
        self.log_dir = log_dir
        self.backend = "auto"

    def checks(self, **scripts: str) -> None:
        """One check for each script of sh, which gets the names as arguments; committed. ``{}`` before it: more keys, as JSON."""
        hooks = []
        for name, script in scripts.items():
            keys, script = json.JSONDecoder().raw_decode(script)[0], script.partition("}")[2]
            self.repo.write(f"tools/{name}.sh", script.strip() + "\n")
            hook = {"id": name, "name": name, "entry": f"sh tools/{name}.sh", "language": "system", "files": r"\.(txt|py)$"}
            hooks.append({**hook, "require_serial": True, **keys})
        self.config(json.dumps({"repos": [{"repo": "local", "hooks": hooks}]}))

    def config(self, text: str) -> None:
        self.repo.write(".pre-commit-config.yaml", text)
        self.repo.commit("checks")

    def run(
        self,
        *files: str | bytes,
        deleted: Sequence[bytes] = (),
        lines: Mapping[bytes, frozenset[int] | None] | None = None,
        before: Mapping[str, str] | None = None,
        root: Path | None = None,
        **settings: object,
    ) -> GateResult:
        then = {os.fsencode(path): text.encode() for path, text in (before or {}).items()}
        checked = Checked(
            os.fsencode(root or self.repo.root), tuple(map(os.fsencode, files)), tuple(deleted), lines or {}, then.get
        )
        chosen = GateSettings(**{"backend": self.backend, **settings})  # type: ignore[arg-type]
        return run_gate(Git(self.env), self.env, checked, chosen, self.log_dir)

    def only_on_path(self, folder: Path, *programs: str) -> None:
        """Leaves nothing but these programs, and what a shell needs, on PATH."""
        folder.mkdir()
        for program in ("git", "sh", "grep", "sed", "cat", "env", *programs):
            found = shutil.which(program, path=self.env["PATH"])
            assert found, program
            (folder / program).symlink_to(found)
        self.env["PATH"] = str(folder)

    def picture(self) -> tuple[str, str, str, list[str]]:
        """What no gate run may change: the index's bytes, HEAD, git's configuration, the names in the git directory."""
        git = self.repo.root / ".git"
        index = hashlib.sha256((git / "index").read_bytes()).hexdigest()
        names = sorted(str(path.relative_to(git)) for path in git.rglob("*") if "objects" not in path.parts)
        return index, self.repo.git("rev-parse", "HEAD"), (git / "config").read_text(), names

    def stashed(self) -> list[Path]:
        """Patches in which a runner has hidden edits."""
        home = Path(self.env["HOME"])
        return [path for path in home.rglob("*") if path.is_file() and path.name.startswith("patch")]


@pytest.fixture
def gate(repo: RepoBuilder, tmp_path: Path) -> GateKit:
    return GateKit(repo, tmp_path / "logs")


@pytest.fixture(params=RUNNERS)
def runner(gate: GateKit, request: pytest.FixtureRequest) -> GateKit:
    """The gate with each of the two runners."""
    gate.backend = request.param
    return gate


def ids(result: GateResult) -> list[str]:
    return [failure.id for failure in result.failures]


def tags(result: GateResult) -> list[str]:
    return [line.tag for failure in result.failures for line in failure.lines]


PYTHON = sys.executable
