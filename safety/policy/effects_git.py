"""What git commands would do: one function a verb, told from the verb's options alone.

git takes every unique prefix of a long option and bundles letters ([guard] 1.2); ``operands.read`` knows both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from safety.policy import effects_git_refs, effects_git_tree, places  # noqa: F401 - they put their verbs into the table
from safety.policy.effects_git_remote import configured, runs
from safety.policy.git_calls import VERBS, Call
from safety.policy.operands import read, spec
from safety.policy.scene import Scene
from safety.policy.shell import Command, git_words
from safety.policy.values import Effect


def git_effects(command: Command, scene: Scene) -> Iterator[Effect]:
    """Every effect of one git command."""
    git = git_words(command)
    if not git.verb:
        # A verb that is not certain but has a default counts as its default.
        word = command.words[-len(git.args) - 1]
        if word.certain or not re.fullmatch(r"[a-z][a-z-]+", word.text):
            return
        git = replace(git, verb=word.text)
    yield from configured(git)
    known, handler = VERBS.get(git.verb, (_PLAIN, _nothing))
    given = read(git.args, known)
    if given.has("help") or (given.has("h") and "h" not in known.short):
        return
    yield from runs(git, command, scene, given)
    where = places.absolute(git.work_tree, git.cwd or command.cwd) if git.work_tree else (git.cwd or command.cwd)
    if git.git_dir and not git.work_tree and where is not None:
        named = places.absolute(git.git_dir, where)
        if named is not None and named != scene.facts.git_dir:
            where = named.removesuffix("/.git")
    yield from handler(Call(command, git, given, where, scene))


_PLAIN = spec("output=")


def _nothing(call: Call) -> Iterator[Effect]:
    yield from ()
