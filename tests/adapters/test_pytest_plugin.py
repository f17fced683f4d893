"""The pytest plugin: what a project that tests its agent gets, and what every other one pays."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PLUGIN = "safety.adapters.embed.pytest_plugin"

PROJECTS_TESTS = """\
import pytest

def test_undo(safety_net, tmp_path):
    (tmp_path / "old.txt").write_text("old")
    @safety_net.protect
    def tool(text: str) -> str:
        (tmp_path / "old.txt").write_text(text)
        return "ok"
    with safety_net.turn("x") as turn:
        assert tool("new") == "ok"
    assert [(one.path, one.before, one.after) for one in turn.changes] == [("old.txt", b"old", b"new")]
    assert turn.undo().restored == ("old.txt",) and safety_net.notices == ()
    assert not safety_net.session.place.home.is_relative_to(tmp_path)

def test_strict_and_of_its_own(safety_net, tmp_path):
    assert safety_net.strict and not safety_net.undo().paths and list(tmp_path.iterdir()) == []
    assert safety_net.session.settings.screening_invisible  # the user's settings turn it off

def test_left_open(safety_net, tmp_path):
    safety_net.protect(lambda: (tmp_path / "x").write_text("x"))()
    pytest.fail("as planned")
"""


def run_tests(folder: Path, env: Mapping[str, str], *args: str) -> str:
    """What pytest says of the tests in a folder, warnings being errors."""
    words = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *args, "."]
    done = subprocess.run(words, cwd=folder, env={**env, "PYTHONPATH": str(PROJECT)}, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_a_project_gets_a_net_for_each_test(tmp_path: Path, env: dict[str, str]) -> None:
    """It is over the test's own folder, knows nothing of the user's settings and store, and goes with the test also where that fails."""
    settings = Path(env["XDG_CONFIG_HOME"]) / "git-safety/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"screening": {"invisible": false}}')
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_agent.py").write_text(PROJECTS_TESTS)
    said = run_tests(project, env, "-p", PLUGIN)
    assert "1 failed, 2 passed" in said and "as planned" in said and "error" not in said.lower().replace("-w error", ""), said
    assert not Path(env["GIT_SAFETY_HOME"]).exists()


@pytest.mark.parametrize("folder", ["tmp", "build/tmp"])
def test_the_folder_of_a_test_is_the_workspace(tmp_path: Path, env: dict[str, str], folder: str) -> None:
    """Also where it lies in the repository whose agent is tested, ignored there or not: that is no business of the net's."""
    subprocess.run(["git", "init", "-q", tmp_path], env=env, check=True)
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "test_it.py").write_text(
        "import os\n"
        "def test_it(safety_net, tmp_path):\n"
        "    with safety_net.turn() as turn:\n"
        "        safety_net.protect(lambda: (tmp_path / 'x').write_text('x'))()\n"
        "    assert [one.path for one in turn.changes] == ['x'] and turn.undo().removed == ('x',)\n"
        "    assert safety_net.session.root == os.fsencode(tmp_path)\n"
    )
    (tmp_path / folder).parent.mkdir(exist_ok=True)
    said = run_tests(tmp_path, env, "-p", PLUGIN, f"--basetemp={folder}")
    assert "1 passed" in said, said


def test_the_plugin_is_announced_under_its_own_name(tmp_path: Path, env: dict[str, str]) -> None:
    """So a conftest may name it as well: one plugin under two names would stop pytest."""
    points = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert points == {PLUGIN: PLUGIN}
    (tmp_path / "conftest.py").write_text(f'pytest_plugins = ["{PLUGIN}"]\n')
    (tmp_path / "test_it.py").write_text("def test_it(safety_net): pass\n")
    assert "1 passed" in run_tests(tmp_path, env, "-p", PLUGIN)


def test_other_projects_pay_nothing() -> None:
    """Beside pytest the plugin loads itself and three empty rooms."""
    code = f"import sys, pytest, tempfile; old = set(sys.modules); import {PLUGIN}; print(*sorted(set(sys.modules) - old))"
    env = {"PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["safety", "safety.adapters", "safety.adapters.embed", PLUGIN]
