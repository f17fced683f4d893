"""``git safety demo``: a small repository is made, a real command wrecks it under protection, and undo brings it back. Nothing
is faked: the steps are the command lines that are shown, and the folder is compared with a copy at the end.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from safety.plumbing.run import Git
from safety.terminal.arguments import parser
from safety.terminal.text import count
from safety.terminal.verbs import BY_NAME

_FILES = {
    "README.md": "# shop\n\nHow to build: make\n",
    "src/app.py": "def total(prices):\n    return sum(prices)\n",
    "src/tax.py": "RATE = 0.19\n",
    ".gitignore": ".env\n",
}
_YOURS = {"notes.txt": "call the bank\n", ".env": "API_KEY=not-a-real-one\n"}
_WRECK = ("sh", "-c", "rm -rf src .env notes.txt; echo done > README.md; git commit -qam cleanup; git branch -qD idea")
# Who commits, and when: always the same, so that the commit ids shown are as well.
_WHEN = "2026-01-01T12:00:00+00:00"
_PEOPLE = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "demo"), ("EMAIL", "demo@localhost"), ("DATE", _WHEN))
}
# Compared by what git says of them (branches, index), or added to only (objects, logs).
_NOT_COMPARED = (".git/objects", ".git/logs", ".git/index", ".git/COMMIT_EDITMSG", ".git/packed-refs", ".git/refs")


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """0 when everything came back, 1 when it did not (which would be a bug)."""
    keep = parser(BY_NAME["demo"]).parse_args(list(argv)).keep
    top = tempfile.mkdtemp(prefix="git-safety-demo-")
    try:
        return _play(os.path.join(top, "shop"), _environment(environ, os.path.join(top, "state")))
    finally:
        if keep:
            sys.stdout.write(f"Kept: {top}\n")
        else:
            shutil.rmtree(top, ignore_errors=True)


def _environment(environ: Mapping[str, str], state: str) -> dict[str, str]:
    """The user's environment with a store of its own and without their git settings, so that it goes the same everywhere."""
    quiet = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    own = {"GIT_SAFETY_HOME": state, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return {**quiet, **_PEOPLE, **own}


def _play(folder: str, environ: Mapping[str, str]) -> int:
    _build(folder, environ)
    git = Git(environ)
    before = dict(_fingerprint(folder, git))
    came_from = os.getcwd()
    try:
        _say(f"A small project: {count(len(_FILES), 'committed file')}, a note that is not committed, a .env that git ignores.\n")
        _type(["run", "--", *_WRECK], folder, environ)
        gone = sorted(before.keys() - dict(_fingerprint(folder, git)).keys())
        _say(f"\nGone: {', '.join(gone)} and the branch idea.\n")
        _type(["undo"], folder, environ)
    finally:
        os.chdir(came_from)
    after = dict(_fingerprint(folder, git))
    wrong = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    if wrong:
        _say(f"\nNot as before: {', '.join(wrong)}. That is a bug; please report it.\n")
        return 1
    _say("\nEvery file compared byte for byte, the branches and the index: all is as it was.\n")
    _say("Do this with a command of yours:  git safety run -- COMMAND\n")
    return 0


def _type(words: list[str], folder: str, environ: Mapping[str, str]) -> None:
    from safety.terminal.main import main as command

    _say(f"\n$ git safety {shlex.join(words)}\n")
    os.chdir(folder)  # each time: `run` leaves the folder, so that the command may remove it
    command(words, environ)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _build(folder: str, environ: Mapping[str, str]) -> None:
    os.makedirs(folder)
    git = Git(environ)
    root = os.fsencode(folder)
    git.user(root, ["init", "-q", "-b", "main"])
    _write(folder, _FILES)
    git.user(root, ["add", "-A"])
    git.user(root, ["commit", "-q", "-m", "first"], extra_env=_PEOPLE)
    git.user(root, ["branch", "idea"])
    _write(folder, _YOURS)


def _write(folder: str, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def _fingerprint(folder: str, git: Git) -> Iterator[tuple[str, str]]:
    """What must come back: every file's mode and bytes, git's own among them, and what git says of branches and index."""
    yield "the index", git.user(os.fsencode(folder), ["ls-files", "-s"]).stdout.decode()
    yield "the branches", git.user(os.fsencode(folder), ["for-each-ref"]).stdout.decode()
    for top, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(top, name)
            short = os.path.relpath(path, folder)
            if not short.startswith(_NOT_COMPARED):
                with open(path, "rb") as file:
                    yield short, f"{os.lstat(path).st_mode:o} {hashlib.sha256(file.read()).hexdigest()}"
