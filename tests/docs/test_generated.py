"""The man page and the completions say what the parsers say, and the shells agree with them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.generate import SHARE, files

BASH = SHARE / "bash-completion/completions/git-safety"
ZSH = SHARE / "zsh/site-functions/_git-safety"
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C"}


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_generated_files_are_fresh(path: Path) -> None:
    """What is in ``share/`` is what the table of verbs gives; if not: python -m tests.docs.generate."""
    assert path.read_text() == files()[path]


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_man_page_is_sound() -> None:
    """groff has nothing to complain about."""
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", str(SHARE / "man/man1/git-safety.1")], capture_output=True, env=ENV)
    assert done.stderr == b"" and b"EXIT STATUS" in re.sub(rb".\x08", b"", done.stdout)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["git", "safety", "und"], ["undo"]),
        (["git", "-C", "x", "safety", "re"], ["redo", "restore", "recover"]),
        (["git", "safety", "undo", "--dr"], ["--dry-run"]),
        (["git", "safety", "help", "exit"], ["exit-codes"]),
        (["git-safety", "st"], ["status", "store"]),
        (["git-safety", "restore", "--b"], ["--before"]),
    ],
)
def test_bash_completes(words: list[str], offered: list[str]) -> None:
    """By the function that git's completion calls, and for the script's own name."""
    function = "_git_safety" if words[0] == "git" else "__git_safety_alone"
    script = f'. "{BASH}"; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; {function}; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=ENV)
    assert (done.stdout.split(), done.stderr) == (offered, "")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_the_completion() -> None:
    """zsh finds no fault in the file."""
    done = subprocess.run(["zsh", "-n", str(ZSH)], capture_output=True, text=True, env=ENV)
    assert (done.returncode, done.stderr) == (0, "")
