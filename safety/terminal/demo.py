"""``git safety demo``: a small repository is made, a real command wrecks it under protection, and undo brings it back. Then the
reference agent works there. Nothing is faked but the model, which is a script: the command lines are those that are shown, the
session, the gate and the commit are real, and the folder is compared with a copy after each part.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from safety.agent.journal import open_journal
from safety.agent.loop import Loop
from safety.agent.scripted import Say, Scripted
from safety.plumbing.run import Git
from safety.runtime.open import open_session
from safety.terminal.arguments import parser
from safety.terminal.draw_agent import lines
from safety.terminal.text import count
from safety.terminal.verbs import BY_NAME
from safety.terminal.window import Window

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


# What the agent's model says: the first prompt's replies, and after them the second's.
_AGENT = (
    Say("I start over.", (("shell", {"command": "rm -rf src; mkdir src; echo 'RATE = 0.19  # FIXME' > src/tax.py"}),)),
    Say("Done."),
    Say("I see.", (("write", {"path": "src/tax.py", "content": "RATE = 0.19\nREDUCED = 0.07\n"}),)),
    Say("Done."),
    Say("", (("shell", {"command": "rm -f prices.db"}),)),
    Say("I leave it."),
)
_PROMPTS = ("add the reduced rate", "/undo", "free some space")
_CHECK = "! grep -n FIXME"
_TOO_LARGE = 40 << 20
_SETTINGS = {
    "trust": {"default": "trusted"},
    "autocommit": {"enabled": True, "protected_branches": "allow"},
    "gate": {"command": ["sh", "-c", f'{_CHECK} "$@"', "sh", "{files}"]},
}


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """0 when everything came back, 1 when it did not (which would be a bug)."""
    keep = parser(BY_NAME["demo"]).parse_args(list(argv)).keep
    top = os.path.abspath(tempfile.mkdtemp(prefix="git-safety-demo-"))
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
    own = {
        "GIT_SAFETY_HOME": state,
        "XDG_CONFIG_HOME": f"{state}-settings",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return {**quiet, **_PEOPLE, **own}


def _play(folder: str, environ: Mapping[str, str]) -> int:
    _build(folder, environ)
    git = Git(environ)
    before = dict(_fingerprint(folder, git))
    came_from = os.open(".", os.O_RDONLY | os.O_CLOEXEC)  # it may be gone, and then has no name
    try:
        _say(f"A small project: {count(len(_FILES), 'committed file')}, a note that is not committed, a .env that git ignores.\n")
        _type(["run", "--", *_WRECK], folder, environ)
        gone = sorted(before.keys() - dict(_fingerprint(folder, git)).keys())
        _say(f"\nGone: {', '.join(gone)} and the branch idea.\n")
        _type(["undo"], folder, environ)
    finally:
        os.fchdir(came_from)
        os.close(came_from)
    if _is_wrong(folder, git, before):
        return 1
    _say("\nEvery file compared byte for byte, the branches and the index: all is as it was.\n")
    if _let_agent_work(folder, environ, git):
        return 1
    _say("\nAgain all is as it was, prices.db too.\n")
    _say("Do this with a command of yours:  git safety run -- COMMAND\n")
    return 0


def _is_wrong(folder: str, git: Git, before: Mapping[str, str]) -> bool:
    after = dict(_fingerprint(folder, git))
    wrong = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    if wrong:
        _say(f"\nNot as before: {', '.join(wrong)}. That is a bug; please report it.\n")
    return bool(wrong)


def _let_agent_work(folder: str, environ: Mapping[str, str], git: Git) -> bool:
    """A conversation with the reference agent, and whether the folder is another one after it than before."""
    settings = os.path.join(environ["XDG_CONFIG_HOME"], "git-safety")
    os.makedirs(settings)
    with open(os.path.join(settings, "settings.json"), "w", encoding="utf-8") as file:
        json.dump(_SETTINGS, file)
    with open(os.path.join(folder, "prices.db"), "wb") as db:
        db.truncate(_TOO_LARGE)
    before = dict(_fingerprint(folder, git))
    window = Window(environ, os.fsencode(folder))
    _say(
        f"\nNow an agent, its model a script. The project's check: {_CHECK}. A prices.db of 40 MiB is too large for snapshots.\n"
    )
    with closing(open_session(os.fsencode(folder), "demo", environ, {"name": "agent"})) as session:
        journal = open_journal(Path(f"{environ['GIT_SAFETY_HOME']}-agent"))
        for event in Loop(session, journal, Scripted(_AGENT)).run(_typed_prompts()):
            window.draw(lines(event))
    return _is_wrong(folder, git, before)


def _typed_prompts() -> Iterator[str]:
    for prompt in _PROMPTS:
        _say(f"\n> {prompt}\n")
        yield prompt


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
