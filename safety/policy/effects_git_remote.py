"""What git does to remotes and settings, and what a push does to others."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from safety.policy.git_calls import Call, is_protected, lenient, unverified, verb
from safety.policy.operands import Given
from safety.policy.path_effects import writing
from safety.policy.patterns import Pattern
from safety.policy.scene import Scene
from safety.policy.shell import Command, GitCommand, Word
from safety.policy.values import Effect, Question


@verb(
    "remote", "v|verbose add delete push all t= m= f n|dry-run p|prune tags no-tags mirror= a|auto d|delete q", abbreviates=False
)
def _remote(call: Call) -> Iterator[Effect]:
    given = call.given
    words = [word.text for word in given.operands]
    subverb = words[0] if words else ""
    name = words[1] if len(words) > 1 else ""
    if subverb in ("remove", "rm"):
        yield Effect(
            "config.write",
            f"remote {name}: its address, its settings and its remote-tracking branches",
            "ask",
            pieces=("config", "refs"),
        )
    elif subverb == "set-url" and not given.has("add"):
        yield Effect("config.write", f"the address of remote {name}", "ask", pieces=("config",))
    elif (subverb == "prune" or (subverb == "update" and given.has("prune"))) and not given.has("dry-run"):
        yield call.refs("ref.delete", f"remote-tracking branches of {name or 'the remotes'}")
    elif subverb == "set-branches" and not given.has("add"):
        yield Effect("config.write", f"what is fetched from {name}", "ask", pieces=("config",))


_READS_CONFIG = ("get", "get-all", "get-regexp", "get-urlmatch", "list", "l", "get-color", "get-colorbool", "name-only")
_GATE_KEYS = ("core.hookspath", "init.templatedir")
_COMMAND_KEYS = Pattern(
    r"core\.(?:fsmonitor|sshcommand|pager|editor|askpass|alternaterefscommand|gitproxy)|sequence\.editor|gpg\.(?:\w+\.)?program"
    r"|credential\.(?:.+\.)?helper|diff\.external|(?:diff|difftool|mergetool|filter|merge|browser|man|pager)\..*"
    r"(?:command|textconv|cmd|clean|smudge|process|driver|path)|pager\..*|uploadpack\.packobjectshook|alias\..*"
    r"|interactive\.difffilter"
    r"|remote\..*\.(?:uploadpack|receivepack|vcs)|sendemail\..*cmd|trailer\..*(?:command|cmd)|web\.browser|receive\.proc.*"
)
_REDIRECT_KEYS = Pattern(r"url\..*\.(?:insteadof|pushinsteadof)|remote\..*\.(?:url|pushurl|proxy)|http\.proxy|core\.gitproxy")


@verb(
    "config",
    "f|file= global system local worktree blob= get get-all get-regexp get-urlmatch= add replace-all unset unset-all"
    " rename-section"
    " remove-section l|list e|edit z|null name-only show-origin show-scope type= bool int path default= get-color="
    " get-colorbool= fixed-value"
    " includes all regexp value= comment= url= append",
)
def _config(call: Call) -> Iterator[Effect]:
    given = call.given
    words = [word.text for word in given.operands]
    if (
        words[:1]
        and words[0] in ("get", "list", "set", "unset", "rename-section", "remove-section", "edit")
        and not given.has(*_READS_CONFIG)
    ):
        subverb, *words = words
    else:
        named = given.last("unset", "unset-all", "rename-section", "remove-section", "edit", "replace-all", "add")
        subverb = "get" if given.has(*_READS_CONFIG) else (named or ("set" if len(words) > 1 else "get"))
    if subverb in ("get", "list") or not words:
        return
    key = words[0].lower()
    scope = given.last("global", "system", "local", "worktree", "file") or "local"
    if key.startswith(("safety.", "git-safety.")):
        yield Effect("self.defense", key, "ask")
    elif key in _GATE_KEYS or (key == "core.bare" and subverb == "set"):
        yield Effect("gate.bypass", f"{key}: which hooks run, for good", "ask", instead="leave the hooks as they are")
    elif subverb in ("unset", "unset-all", "remove-section", "rename-section"):
        yield _changes_config(call, key, scope, subverb)
    elif subverb in ("set", "replace-all", "add") and len(words) > 1:
        if _COMMAND_KEYS.fullmatch(key):
            yield from _command_of(key, words[1], call.scene, call.where)
        if key.startswith("gc.") and "expire" in key and not lenient(words[1]):
            yield Effect("config.write", f"{key}: old objects go at the next clean-up", "ask")
        elif subverb != "add":
            yield _changes_config(call, key, scope, "set", words[1])


def _changes_config(call: Call, key: str, scope: str, how: str, value: str = "") -> Effect:
    question = Question("config", key, (scope, call.folder, how, value))
    return Effect("config.write", key, "ask", pieces=("config",) if scope in ("local", "worktree") else (), question=question)


def _command_of(key: str, value: str, scene: Scene, where: str | None) -> Iterator[Effect]:
    """What git would run because of a setting."""
    if key.startswith("alias.") and not value.startswith("!"):
        value = f"git {value}"
    if value.lower() not in ("true", "false", "0", "1", ""):
        yield from scene.again(value.removeprefix("!"), where)


def configured(git: GitCommand) -> Iterator[Effect]:
    """What ``-c`` settings of this one command switch off; what they make git run, the parse has followed."""
    for key in git.config:
        lower = key.lower()
        if lower in _GATE_KEYS:
            yield Effect("gate.bypass", f"-c {key}", "ask", instead="the same command without it")


def runs(git: GitCommand, command: Command, scene: Scene, given: Given) -> Iterator[Effect]:
    """What an address makes git run, and the files that options name."""
    for word in given.rest:
        if word.text.startswith("ext::"):
            yield from scene.again(word.text[5:], command.cwd)
    output = (
        given.value("output")
        if git.verb in ("diff", "log", "show", "format-patch")
        else given.value("o")
        if git.verb == "archive"
        else None
    )
    if output:
        yield from writing(scene.target(Word(output), command.cwd), scene)


@verb(
    "push send-pack",
    "f|force d|delete n|dry-run all branches mirror tags follow-tags prune atomic porcelain q|quiet v|verbose u|set-upstream"
    " progress thin"
    " force-with-lease=? force-if-includes no-force-with-lease verify no-verify signed=? o|push-option= repo= receive-pack= exec="
    " recurse-submodules=? 4|ipv4 6|ipv6",
)
def _push(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.on("no-verify"):
        yield from unverified(call)
    if given.on("dry-run"):
        return
    remote = given.value("repo") or (given.rest[0].text if given.rest else "")
    specs = given.operands[1:] if not given.has("repo") else given.operands
    yield Effect("network.contact", remote or "the remote", "allow")
    yield from _unknown_remote(call, remote)
    forced = given.on("force") or given.unsure
    lease = given.last("force-with-lease", "no-force-with-lease") == "force-with-lease"
    config = {key.lower(): value or "" for key, value in call.git.config.items()}
    configured = any(
        key.startswith("remote.") and key.endswith(".push") and value.startswith("+") for key, value in config.items()
    )
    mirror = given.on("mirror") or any(key.startswith("remote.") and key.endswith(".mirror") for key in config)
    if mirror:
        yield Effect("remote.overwrite", f"every ref of {remote or 'the remote'}", "deny", instead="git push --all")
        return
    if given.on("prune"):
        yield Effect(
            "remote.delete",
            f"branches of {remote or 'the remote'} that are not here",
            "ask",
            instead="git push --prune --dry-run",
        )
    if given.on("delete"):
        for word in specs or [Word("branches", False)]:
            yield Effect("remote.delete", f"{word.text} on {remote or 'the remote'}", "ask")
        return
    for word in specs:
        text = word.text
        if not word.certain and not re.match(r"[\w/.-]", text):
            forced = True
        if text.startswith(":") and len(text) > 1:
            yield Effect("remote.delete", f"{text[1:]} on {remote}", "ask")
        elif text.startswith("+"):
            yield _overwrites(call, remote, text.partition(":")[2] or text[1:], leased=False)
    if forced or configured:
        yield from (_overwrites(call, remote, dst, leased=False) for dst in _destinations(call, specs))
    elif lease:
        yield from (_overwrites(call, remote, dst, leased=_leased(given, dst)) for dst in _destinations(call, specs))


def _destinations(call: Call, specs: list[Word]) -> list[str]:
    """The branches that a push goes to; an empty name is the one checked out."""
    if call.given.has("all", "branches"):
        return ["all branches"]
    names = [word.text.partition(":")[2] or word.text for word in specs if not word.text.startswith((":", "+"))]
    return ["" if name in ("HEAD", "@") else name for name in names] or [""]


def _leased(given: Given, dst: str) -> bool:
    """Whether a lease covers the branch: one without a name covers all, one with names only those."""
    named = [value.text.partition(":")[0] for value in given.values("force-with-lease")]
    return not named or dst in named or not dst


def _overwrites(call: Call, remote: str, dst: str, *, leased: bool) -> Effect:
    where = f"{dst or 'the current branch'} on {remote or 'the remote'}"
    if leased:
        safer = f"git push {shlex.quote(remote or 'origin')} to a branch of its own"
        if dst == "all branches" or is_protected(dst):
            return Effect("remote.overwrite", where, "ask", detail="protected", instead=safer)
        if dst:
            # What the lease saw is a remote-tracking branch, which the snapshot holds.
            return Effect(
                "remote.overwrite", where, "ask", pieces=("refs",), ours=call.ours, question=Question("refs", call.folder)
            )
        return Effect(
            "remote.overwrite", where, "ask", question=Question("branch", call.folder), detail="protected", instead=safer
        )
    typed = "".join(f" {shlex.quote(word)}" for word in (remote, dst) if word)
    return Effect("remote.overwrite", where, "deny", instead=f"git push --force-with-lease{typed}")


def _unknown_remote(call: Call, remote: str) -> Iterator[Effect]:
    """Sending the history to a place that was no remote before this call."""
    scene = call.scene
    if re.match(r"[a-z+]+://|[^/\s]+@[^/\s]+:|[\w.-]+\.[a-z]{2,}:", remote):
        yield Effect("network.send", f"the history to {remote}", "ask", question=Question("remote", remote, (call.folder,)))
        return
    if not remote or remote in scene.facts.remotes:
        return
    for other in scene.parsed.commands:
        if other.name == "git" and other is not call.command:
            words = [word.text for word in other.words]
            if "remote" in words and ("add" in words or "set-url" in words) and remote in words:
                yield Effect("network.send", f"the history to {words[-1]}", "deny")
                return
