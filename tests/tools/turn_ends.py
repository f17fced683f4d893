"""The end of a turn as tests drive it: the user's settings, a repository's own checks, what the hook answers, what was committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.repo import RepoBuilder

CONFIG = """\
repos:
- repo: local
  hooks:
  - {id: %s, name: %s, entry: sh tools/check.sh, language: system, %s}
"""
NO_BAD_WORDS = '#!/bin/sh\nfor f in "$@"; do grep -n BAD "$f" /dev/null && rc=1; done\nexit ${rc:-0}\n'
STRIP = '#!/bin/sh\nfor f in "$@"; do if grep -q " $" "$f"; then sed -i "s/ *$//" "$f"; echo "fixed $f"; rc=1; fi; done\nexit ${rc:-0}\n'


def settings(repo: RepoBuilder, **more: Any) -> None:
    """The user's settings: trusted, and a commit at each turn's end."""
    folder = Path(repo.env["XDG_CONFIG_HOME"]) / "git-safety"
    folder.mkdir(parents=True, exist_ok=True)
    values = {
        "autocommit": {"enabled": True, "protected_branches": "allow", "detached": "allow"},
        "trust": {"default": "trusted"},
        **more,
    }
    (folder / "settings.json").write_text(json.dumps(values))


def checks(repo: RepoBuilder, script: str, kind: str = "types: [text]", name: str = "words") -> None:
    """A repository with one check of its own, committed."""
    repo.write(".pre-commit-config.yaml", CONFIG % (name, name, kind))
    repo.write("tools/check.sh", script, 0o755)
    repo.commit("checks")


def end(repo: RepoBuilder) -> tuple[dict[str, Any], str]:
    """The answer to the end of the turn, and standard error."""
    done = repo.hook_raw("turn.post")
    assert done.code in (0, 2), done.text
    return json.loads(done.out), done.err


def edit(repo: RepoBuilder, path: str, data: str) -> None:
    with repo.call():
        repo.write(path, data)


def files_of(repo: RepoBuilder, commit: str = "HEAD") -> list[str]:
    return repo.git("show", "--format=", "--name-only", commit).splitlines()


def told(answer: dict[str, Any]) -> str:
    """All that the user is told."""
    return "\n".join(answer.get("notices", []))


def ends(repo: RepoBuilder) -> str:
    """Ends a turn that has to end; gives what the user is told."""
    answer, said = end(repo)
    assert answer["decision"] == "stop", said
    return told(answer)


def starts(repo: RepoBuilder, prompt: str = "do it", **fields: Any) -> dict[str, Any]:
    return repo.hook("turn.pre", prompt=prompt, **fields)


def patch_of(repo: RepoBuilder, *args: str) -> list[str]:
    """The lines that a diff takes away and adds, without their places."""
    lines = repo.git("diff", *args).splitlines()
    return [line for line in lines if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]
