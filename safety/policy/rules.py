"""Effects, set against what the snapshot just taken holds: allow, ask or deny, and why.

The order of a decision ([guard] 0): what is destroyed? Does the snapshot hold it? Then it may be done. What no snapshot holds is asked
about, or refused where it is beyond repair. A snapshot that failed, or left a touched path out, turns allow into ask.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from safety.policy import places
from safety.policy.git_calls import is_protected
from safety.policy.values import ACTIONS, UNKNOWN, Action, Answer, CallFacts, Coverage, Effect, Question, Thing, stricter

#: Every kind of effect, and what is lost when it cannot be undone; ``{}`` is what it falls upon.
KINDS: Mapping[str, str] = {
    "path.remove": "{}",
    "path.overwrite": "what {} holds now",
    "path.mode": "the permissions of {}",
    "worktree.discard": "uncommitted edits in {}",
    "worktree.clean": "untracked files in {}",
    "worktree.remove": "uncommitted work in {}",
    "submodule.discard": "uncommitted work in {}",
    "index.reset": "what is staged in {}",
    "ref.move": "where {} pointed",
    "ref.delete": "{}",
    "stash.drop": "{}",
    "reflog.expire": "the reflog: {}",
    "objects.prune": "{}",
    "history.rewrite": "the history of {} as it was",
    "git.forget": "{}",
    "config.write": "a setting: {}",
    "hook.write": "a hook: {}",
    "gate.bypass": "nothing yet, but the checks before a commit do not run: {}",
    "remote.overwrite": "commits on {} that may be nowhere on this machine",
    "remote.delete": "{}, which is not on this machine",
    "remote.publish": "nothing here, but what is published stays public: {}",
    "network.contact": "nothing; it speaks to {}",
    "network.send": "control over {}",
    "network.run": "control over the machine: {}",
    "network.shell": "control over the machine, to {}",
    "secret.leak": "a secret: {}",
    "process.kill": "what these processes hold: {}",
    "service.stop": "a service: {}",
    "service.destroy": "{}",
    "data.destroy": "data: {}",
    "disk.destroy": "a whole disk: {}",
    "system.change": "a part of the system's or the user's set-up: {}",
    "self.defense": "the guard itself: {}",
    "unknown.run": "nobody can tell: {}",
}
#: What text from outside may have told the agent to do: after such a text these weigh one step more.
_TAINTED = ("network.", "secret.", "self.", "remote.")
#: How many losses, or names of files, a sentence takes.
_SHOWN = 5
#: What ``git safety snapshot X &&`` in front of a text does not cover: it may run although the snapshot failed.
_UNJOINABLE = re.compile(r"[;\n]|\|\||(?<![&>])&(?![&>])")


@dataclass(frozen=True, slots=True)
class UserRule:
    """One line of the settings. It meets an effect when everything it names does: the first words of the command, a pattern of its
    path, its kind (``remote.*`` for all of a family). ``project``: it stands in the project's settings and may only make stricter.
    """

    action: Action
    command: tuple[str, ...] = ()
    path: str = ""
    effect: str = ""
    project: bool = False

    def meets(self, effect: Effect, words: tuple[str, ...]) -> bool:
        if self.command and words[: len(self.command)] != self.command:
            return False
        if self.path and not any(_path_meets(path, self.path) for path in effect.paths):
            return False
        if self.effect and not fnmatch.fnmatchcase(effect.kind, self.effect):
            return False
        return bool(self.command or self.path or self.effect)


@dataclass(frozen=True)
class UserRules:
    """The rules of the user and of the project; deny beats ask beats allow."""

    rules: tuple[UserRule, ...] = ()

    def says(self, effect: Effect, words: tuple[str, ...]) -> Action | None:
        """What they say of an effect. A project's ``allow`` says nothing, and nothing allows what takes the guard away."""
        found = [
            rule.action
            for rule in self.rules
            if rule.meets(effect, words) and not (rule.action == "allow" and (rule.project or effect.kind == "self.defense"))
        ]
        return max(found, key=ACTIONS.index) if found else None

    def of_commands(self, commands: Iterable[tuple[str, ...]]) -> tuple[Action, tuple[str, ...]]:
        """The strictest that rules which name nothing but a command say, and which command that is."""
        strictest: tuple[Action, tuple[str, ...]] = ("allow", ())
        for words in commands:
            for rule in self.rules:
                alone = rule.command and not rule.path and not rule.effect and words[: len(rule.command)] == rule.command
                if alone and ACTIONS.index(rule.action) > ACTIONS.index(strictest[0]):
                    strictest = (rule.action, words)
        return strictest


NO_RULES = UserRules()


@dataclass(frozen=True)
class Verdict:
    """What may be done. ``recoverable``: everything it touches is held or not lost, so nobody needs to be asked where nobody is there.

    ``rule`` is the kind of the effect that decided. ``loses``: what would be gone for good, in words. ``lost`` are the paths among
    that, ``holds`` the snapshot that brings the rest back. ``instead``: what one may do at once in its place.
    """

    action: Action
    rule: str = ""
    loses: str = ""
    holds: str = ""
    instead: str = ""
    reason: str = ""
    recoverable: bool = True
    lost: tuple[Thing, ...] = ()
    effects: tuple[tuple[Effect, Action], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class _Found:
    """One effect judged. ``destroys``: it changes something that a snapshot must hold."""

    effect: Effect
    action: Action
    lost: tuple[Thing, ...] = ()
    destroys: bool = False
    why: str = ""


def judge(
    effects: Iterable[Effect],
    answers: Mapping[Question, Answer],
    coverage: Coverage,
    rules: UserRules = NO_RULES,
    *,
    taint: str = "",
    facts: CallFacts | None = None,
    commands: Iterable[tuple[str, ...]] = (),
    text: str = "",
) -> Verdict:
    """The verdict on a call. ``taint`` names what the agent has read that may not be the user's word. ``commands`` are the words of the
    simple commands, for rules that name only a command. ``text`` is the call as one types it, empty for a tool that takes no command.

    An effect whose question has no answer counts as if what it touches was lost.
    """
    found = [_judge(effect, answers, coverage, facts) for effect in effects]
    found = [_ruled(one, rules, taint) for one in found]
    action: Action = "allow"
    for one in found:
        action = stricter(action, one.action)
    judged = tuple((one.effect, one.action) for one in found)
    spoken, words = rules.of_commands(commands)
    if ACTIONS.index(spoken) > ACTIONS.index(action):
        return Verdict(
            spoken,
            "user.rule",
            holds=coverage.snapshot,
            reason=f"a rule of the settings names {' '.join(words[:3])}",
            effects=judged,
        )
    holds = coverage.snapshot if any(one.destroys for one in found) else ""
    if action == "allow":
        return Verdict("allow", holds=holds, effects=judged)
    stopped = sorted((one for one in found if one.action != "allow"), key=lambda one: -ACTIONS.index(one.action))
    first = stopped[0]
    return Verdict(
        action,
        first.effect.kind,
        _all_losses(stopped),
        holds,
        _instead(stopped, coverage, facts, text),
        first.why or _reason(first, coverage),
        recoverable=False,
        lost=tuple(dict.fromkeys(thing for one in stopped for thing in one.lost)),
        effects=judged,
    )


def _judge(effect: Effect, answers: Mapping[Question, Answer], coverage: Coverage, facts: CallFacts | None) -> _Found:
    if effect.weight == "allow" and effect.question is None:
        return _Found(effect, "allow")
    asked = effect.question
    if (
        effect.ours
        and effect.pieces
        and coverage.has(effect.pieces)
        and (asked is None or asked.kind in ("refs", "merged", "config"))
    ):
        return _Found(effect, "allow", destroys=True)
    if asked is None:
        return _Found(effect, effect.weight)
    answer = answers.get(asked, UNKNOWN)
    if answer.nothing:
        # A path that is not there now may be there when the command comes to it; a snapshot would have told.
        risky = asked.kind in ("lost", "listed") and not coverage.snapshot and not _remakes(effect, facts.root if facts else "")
        return _Found(effect, "ask" if risky else "allow", destroys=risky)
    if asked.kind in ("refs", "merged", "config"):
        held = answer.value == "ours" and coverage.has(effect.pieces) and bool(effect.pieces)
        return _Found(effect, "allow" if held else effect.weight, destroys=True)
    if asked.kind == "branch":
        return _Found(effect, effect.weight if not answer.known or is_protected(answer.value) else "allow")
    if not answer.known:
        return _Found(effect, effect.weight)
    root = facts.root if facts else ""
    lost = tuple(thing for thing in answer.things if not coverage.covers(thing) and not _made_again(thing, root))
    if effect.pieces and not coverage.has(effect.pieces):
        return _Found(effect, stricter("ask", effect.weight), lost, True)
    if not lost:
        return _Found(effect, "allow", destroys=bool(answer.things))
    return _Found(effect, stricter("ask", effect.weight), lost, True)


def _remakes(effect: Effect, root: str) -> bool:
    names = effect.question.detail if effect.question else ()
    return places.made_again(effect.target, root) or (bool(names) and all(places.made_again(name) for name in names))


def _made_again(thing: Thing, root: str) -> bool:
    """Whether a build or a package manager makes it again: told by its name, where git does not track it."""
    return thing.sort in ("ignored", "untracked", "ignored-directory") and places.made_again(thing.path, root)


def _ruled(one: _Found, rules: UserRules, taint: str) -> _Found:
    effect = one.effect
    action, why = one.action, one.why
    if taint and effect.kind.startswith(_TAINTED):
        action = ACTIONS[min(ACTIONS.index(action) + 1, 2)]
        why = f"text from outside was read before ({taint})"
    said = rules.says(effect, tuple(effect.command.split(" "))) if rules.rules else None
    if said == "allow":
        action, why = "allow", ""
    elif said is not None and ACTIONS.index(said) > ACTIONS.index(action):
        action, why = said, "a rule of the settings says so"
    return _Found(effect, action, one.lost, one.destroys, why)


def _path_meets(path: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(path, pattern) or places.inside(path, pattern.rstrip("/"))


# ---- words -----------------------------------------------------------------------------------------------------------------------


def _loses(one: _Found) -> str:
    if one.lost:
        shown = ", ".join(thing.path for thing in one.lost[:3])
        return shown if len(one.lost) <= 3 else f"{shown} and {len(one.lost) - 3} more"
    return KINDS.get(one.effect.kind, "{}").format(one.effect.target or one.effect.detail or "something")


def _all_losses(stopped: list[_Found]) -> str:
    losses = list(dict.fromkeys(_loses(one) for one in stopped))
    return "; ".join(losses[:_SHOWN]) + (f"; and {len(losses) - _SHOWN} more" if len(losses) > _SHOWN else "")


def _instead(stopped: list[_Found], coverage: Coverage, facts: CallFacts | None, text: str) -> str:
    """A way to do all of it that can be undone; empty where something of it would still be stopped.

    For files that no snapshot holds: to take them into one first.
    """
    if all(_mended_by_snapshot(one, coverage, facts) for one in stopped):
        names = list(dict.fromkeys(_typed(thing.path, facts) for one in stopped for thing in one.lost))
        taken = f"git safety snapshot {' '.join(names) if len(names) <= _SHOWN else '.'}"
        return f"{taken} && {text}" if 0 < len(text) <= 200 and not _UNJOINABLE.search(text) else f"{taken}, then the same again"
    ways = {one.effect.instead for one in stopped}
    return ways.pop() if len(ways) == 1 else ""


def _mended_by_snapshot(one: _Found, coverage: Coverage, facts: CallFacts | None) -> bool:
    """Whether nothing stops it but files of the workspace that the snapshot left out and a named one would hold."""
    return (
        bool(one.lost and coverage.snapshot)
        and not one.why
        and one.effect.kind.startswith(("path.", "worktree."))
        and (not one.effect.pieces or coverage.has(one.effect.pieces))
        and all(facts is None or places.inside(thing.path, facts.root) for thing in one.lost)
    )


def _typed(path: str, facts: CallFacts | None) -> str:
    """The path as one types it in the folder of the call."""
    near = path.removeprefix(facts.cwd + "/") if facts else path
    return shlex.quote(f"./{near}" if near.startswith("-") else near)


def _reason(one: _Found, coverage: Coverage) -> str:
    if one.destroys and not coverage.snapshot:
        return f"no snapshot was taken{': ' + coverage.why_not if coverage.why_not else ''}"
    if one.lost:
        return "the snapshot does not hold it"
    return one.effect.detail or "no snapshot brings it back"


def analysis_failed(danger: Iterable[str], error: str) -> Verdict:
    """The verdict when the text could not be analysed: ask where it holds a danger word, else allow. The caller logs it either way."""
    words = tuple(danger)
    if not words:
        return Verdict("allow", "analysis.failed", reason=f"the guard failed: {error}")
    return Verdict(
        "ask",
        "analysis.failed",
        f"nobody can tell: the command holds {', '.join(words[:5])}",
        reason=f"the guard failed: {error}",
        recoverable=False,
    )
