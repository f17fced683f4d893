"""The pager is git's pager."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from safety.terminal.pager import command, git_preferences, page


@pytest.mark.parametrize(
    ("environ", "configured", "pager"),
    [
        ({}, None, "less"),
        ({"PAGER": "more"}, None, "more"),
        ({"PAGER": "more"}, "delta", "delta"),
        ({"GIT_PAGER": "bat -p", "PAGER": "more"}, "delta", "bat -p"),
        ({"GIT_PAGER": "cat"}, "delta", ""),
        ({"GIT_PAGER": ""}, None, ""),
        ({"PAGER": "cat"}, None, ""),
    ],
)
def test_the_order_is_gits(environ: dict[str, str], configured: str | None, pager: str) -> None:
    """GIT_PAGER, core.pager, PAGER, less; ``cat`` and the empty value mean none."""
    assert command(environ, configured) == pager


def test_settings_come_from_git(tmp_path: Path) -> None:
    """core.pager and color.ui of the repository and the user, not what we ourselves give to every call of git."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q", tmp_path / "r"], env=env, check=True)
    assert git_preferences(env, os.fsencode(tmp_path / "r")) == {}
    (tmp_path / ".gitconfig").write_text("[core]\n\tpager = less -S\n[color]\n\tui = never\n")
    assert git_preferences(env, os.fsencode(tmp_path / "r")) == {"core.pager": "less -S", "color.ui": "never"}


def test_the_pager_gets_the_text_and_less_its_options(tmp_path: Path) -> None:
    """The text arrives whole; LESS is set only where the user has none; a pager that leaves at once is no error."""
    out = tmp_path / "out"
    page(f"cat > {out}; echo $LESS >> {out}", "zeile ü\n", {"PATH": os.environ["PATH"]})
    assert out.read_text() == "zeile ü\nFRX\n"
    page(f"echo $LESS > {out}", "x" * 10_000_000, {"PATH": os.environ["PATH"], "LESS": "i"})
    assert out.read_text() == "i\n"
