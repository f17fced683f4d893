"""The page about gptme shows what gptme shows."""

from __future__ import annotations

import re
import shlex

from tests.adapters.gptme.conftest import DONE, Gptme, patch
from tests.support.gptme_env import PROJECT
from tests.support.repo import RepoBuilder

_BLOCK = re.compile(r"<!-- gptme: first -->\n+```console\n\$ (?P<command>[^\n]*)\n(?P<shown>.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_first_minutes_are_as_shown(gptme: Gptme) -> None:
    """The command and the typed ``/undo`` of the page give the lines that stand under them, in that order."""
    found = _BLOCK.search((PROJECT / "docs/gptme.md").read_text())
    assert found is not None
    name, prompt = shlex.split(found["command"])
    assert name == "gptme"
    repo = RepoBuilder(gptme.home / "src/api", gptme.repo.env)
    repo.write("client.py", "def get(): ...\n")
    repo.commit("start")
    ran = gptme.run([patch("client.py", "def get(): ...", "def get(retry=3): ..."), DONE], prompt, "-", "/undo", cwd=repo.root)
    rest = ran.out.splitlines()
    for line in found["shown"].splitlines():
        if line != "...":
            line = next((shown for shown in rest if shown.endswith(line)), "")
            assert line, f"{line!r} is not shown, but\n{ran.out}"
            rest = rest[rest.index(line) + 1 :]
    assert repo.read("client.py") == "def get(): ...\n"
