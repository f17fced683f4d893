"""One git command with its words read, and the table of verbs that the families of git effects fill."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from safety.policy import places
from safety.policy.operands import Given, Spec, spec
from safety.policy.patterns import Pattern
from safety.policy.scene import Scene
from safety.policy.shell import Command, GitCommand, Word
from safety.policy.values import Effect, Question

_PROTECTED = Pattern(
    r"(?:refs/heads/)?(?:main|master|trunk|develop|development|dev|prod|production|staging|stable|default|release(?:[/-].*)?"
    r"|HEAD)"
)
_OWN_REF = Pattern(r"refs/(?:git-)?safety(?:/.*)?")


@dataclass(frozen=True)
class Call:
    """One git command: its words read, and where it acts. ``where`` is the work tree's folder, None if not known."""

    command: Command
    git: GitCommand
    given: Given
    where: str | None
    scene: Scene

    @property
    def ours(self) -> bool:
        """Surely the workspace's own repository, by its name."""
        facts = self.scene.facts
        if facts.repository is None or self.where is None or not self.own_git_dir:
            return False
        return self.where in (facts.repository, facts.root)

    @property
    def own_git_dir(self) -> bool:
        """Whether no other git directory was named."""
        named = self.git.git_dir or self.command.env.get("GIT_DIR") or ""
        path = places.absolute(named, self.git.cwd or self.command.cwd) if named else None
        return not named or path == self.scene.facts.git_dir

    @property
    def folder(self) -> str:
        return self.where or ""

    def refs(self, kind: str, target: str, *pieces: str, merged: str = "", instead: str = "") -> Effect:
        """An effect upon refs, which a snapshot of the same repository brings back."""
        if _OWN_REF.fullmatch(target):
            return Effect("self.defense", target, "deny")
        question = Question("merged", merged, (self.folder,)) if merged else Question("refs", self.folder)
        return Effect(kind, target, "ask", pieces=pieces or ("refs",), question=question, instead=instead, ours=self.ours)

    def discards(self, *paths: Word, index: bool = False) -> Effect:
        """Edits of tracked files that are thrown away, all or those below some paths."""
        names = tuple(word.text for word in paths if word.certain) if all(word.certain for word in paths) else ()
        if self.where is None or not self.own_git_dir:
            return Effect(
                "worktree.discard", self.folder or "another repository", "ask", detail="the repository is not the workspace's"
            )
        return Effect(
            "worktree.discard",
            self.where,
            "ask",
            question=Question("discard", self.where, names),
            pieces=("index",) if index else (),
            instead="git stash",
        )

    def submodules(self, *names: str) -> Effect:
        return Effect(
            "submodule.discard", " ".join(names) or "all submodules", "ask", question=Question("submodules", self.folder, names)
        )


Handler = Callable[[Call], Iterable[Effect]]
VERBS: dict[str, tuple[Spec, Handler]] = {}


def verb(names: str, options: str = "", **flags: bool) -> Callable[[Handler], Handler]:
    def put(handler: Handler) -> Handler:
        for name in names.split():
            VERBS[name] = (spec(options, **flags), handler)
        return handler

    return put


def is_protected(branch: str) -> bool:
    return bool(_PROTECTED.fullmatch(branch))


def unverified(call: Call) -> Iterator[Effect]:
    if call.given.on("no-verify"):
        yield Effect(
            "gate.bypass", f"git {call.git.verb} --no-verify", "ask", instead=f"git {call.git.verb}, without --no-verify"
        )


def aborts(call: Call) -> Iterator[Effect]:
    if call.given.has("abort", "skip", "quit"):
        yield call.discards(index=True)


_UNITS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
    "fortnight": 1209600,
    "month": 2592000,
    "year": 31536000,
}


def lenient(when: str | None) -> bool:
    """Whether an expiry date keeps at least the last day. git reads ``2.weeks.ago``; whatever it cannot read is now."""
    text = (when or "").lower().strip()
    if text in ("never", "false"):
        return True
    match = re.fullmatch(
        r"(\d+|a|an|one|two|three|last)[. ]?(second|minute|hour|day|week|fortnight|month|year)s?(?:[. ]ago)?", text
    )
    if match:
        count = int(match[1]) if match[1].isdigit() else {"two": 2, "three": 3}.get(match[1], 1)
        return count * _UNITS[match[2]] >= 86400
    return bool(re.fullmatch(r"(?:19|20)[0-2]\d[-/.][01]?\d[-/.][0-3]?\d.*", text)) and not text.startswith(("209", "208", "207"))
