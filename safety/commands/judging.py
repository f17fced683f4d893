"""The guard's verdict on one call: what it would do, against what the snapshot just taken can bring back ([guard] 0, [ux] 2.8)."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from safety.commands.guard_facts import World, answer
from safety.plumbing.repo import find_root, open_repository
from safety.policy.effects import effects_of, effects_of_tool, questions_of
from safety.policy.gitwords import git_words
from safety.policy.rules import UserRule, UserRules, Verdict, analysis_failed, judge
from safety.policy.scan import danger_words
from safety.policy.shell import Parsed, parse
from safety.policy.values import TREE_AND_REFS, CallFacts, Coverage
from safety.session import COMMAND_FIELDS, Call, Session
from safety.store.linked import linked_files
from safety.store.packs import write_whole
from safety.store.snapshot import Snapshot

log = logging.getLogger(__name__)

ALLOWED_FILE, ALLOWED_MS = "allowed-once.json", 3_600_000
HELD = TREE_AND_REFS | {"ignored", "nested-repository", "submodule", "config", "hooks", "reflog", "git-directory"}
_LETTERS = "bcdfghjkmnpqrstvwxz23456789"  # none that is taken for another
_KINDS = {
    "delete": "delete",
    "remove": "delete",
    "delete_file": "delete",
    "move": "move-to",
    "rename": "move-to",
    "append": "append",
}


@dataclass(frozen=True)
class Judgement:
    """A verdict on a call. ``text`` is the command, or the tool and its paths; ``id`` names it for ``allow --once``."""

    verdict: Verdict
    text: str
    id: str = ""

    @property
    def effect(self) -> str:
        """Names what was stopped, however the command was phrased."""
        stopped = sorted({(effect.kind, effect.target) for effect, action in self.verdict.effects if action != "allow"})
        return hashlib.sha256(repr(stopped or self.text).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    @property
    def question(self) -> str:
        """One line, loss first, for a person who is asked."""
        verdict = self.verdict
        safer = f" Safer: {verdict.instead}." if verdict.instead else ""
        return f"git-safety: cannot be undone. Would lose {_cut(verdict.loses, 240)}: {_cut(verdict.reason, 60)}.{safer} ({verdict.rule})"

    @property
    def denial(self) -> str:
        """For a model: what was not run and why, and the way out."""
        verdict = self.verdict
        lines = [
            f"git-safety: not run, it cannot be undone: {_cut(self.text, 120)} would lose {_cut(verdict.loses, 400)} ({verdict.reason})."
        ]
        if verdict.instead:
            lines.append(f"Do this instead: {verdict.instead}")
        lines.append(f"Or leave it and tell the user, who can allow this one call: git safety allow --once {self.id}")
        lines.append("Do not rephrase the command; the check looks at its effect.")
        return "\n".join(lines)


def judgement(session: Session, call: Call) -> Judgement:
    """The verdict on a call. A fault of the analysis is an ask where the text holds a danger word, else an allow, and is logged."""
    text = text_of(call)
    named = _id(session, text)
    try:
        verdict = _judge(session, call, text)
    except Exception as fault:  # noqa: BLE001 - a guard that fails must neither let a danger through nor stop all work ([guard] 6)
        log.warning("the guard failed at a call of %s", call.tool, exc_info=True)
        verdict = analysis_failed(danger_words(text), type(fault).__name__)
    if verdict.action != "allow" and _take_allowance(session, named):
        verdict = Verdict("allow", "allowed.once", holds=verdict.holds)
    return Judgement(verdict, text, named)


def explained(session: Session, text: str) -> Judgement:
    """The verdict on a command text as if an agent ran it now; a snapshot is taken first, as one would be."""
    with session.locked():
        session.refresh()
    call = Call("explain", "shell", {"command": text}, session.cwd or session.root)
    return Judgement(_judge(session, call, text), text, _id(session, text))


def allow_once(session: Session, named: str) -> None:
    """Lets the call of that id pass one time within the next hour."""
    with session.locked():
        allowed = {**_allowances(session), named: session.now_ms()}
        _write_allowances(session, allowed)


def text_of(call: Call) -> str:
    """The command that a call would run; of a file tool its name and paths."""
    command = command_of(call)
    if command is not None:
        return command
    return " ".join([call.tool, *(os.fsdecode(path) for path in call.paths or ())])


def command_of(call: Call) -> str | None:
    """What a shell would get to do what the call does: a command, or the Python code of a tool that runs it; None for other tools."""
    for name in COMMAND_FIELDS:
        value = call.input.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return shlex.join(value)
    code = call.input.get("code")
    if not isinstance(code, str) or "python" not in call.tool.lower():
        return None
    lines = code.splitlines()
    typed = [line.lstrip()[1:] for line in lines if line.lstrip().startswith("!")]  # IPython hands these to a shell
    python = "\n".join(line for line in lines if not line.lstrip().startswith(("!", "%")))
    return "\n".join([shlex.join(["python3", "-c", python]), *typed])


def _judge(session: Session, call: Call, text: str) -> Verdict:
    facts = _facts(session, call)
    commands: list[tuple[str, ...]] = []
    parsed = None
    if not call.paths and command_of(call) is not None:
        parsed = parse(text, facts.cwd, home=facts.home, variables=facts.variables or {})
        effects = effects_of(parsed, facts)
        commands = [tuple(word.text for word in command.words) for command in parsed.commands]
    elif call.paths or call.reads:
        kind = _KINDS.get(call.tool.lower().replace("-", "_"), "write") if call.paths else "read"
        paths = [(os.fsdecode(path), os.path.realpath(os.fsdecode(path))) for path in call.paths or call.reads]
        effects = effects_of_tool(kind, paths, facts)
    else:
        return Verdict("allow")
    rules = rules_of(session)
    if not effects and not rules.rules:
        return Verdict("allow")
    coverage = coverage_of(session, call)
    if parsed is not None:
        coverage = replace(coverage, left_out=_but_snapshotted(coverage.left_out, parsed, text, facts.cwd))
    answers = answer(World(session.place.git, facts), questions_of(effects, coverage)) if effects else {}
    taint = session.sessions.load(session.id).taint if effects else ""
    return judge(
        effects, answers, coverage, rules, taint=taint, facts=facts, commands=commands, text=text if parsed is not None else ""
    )


def _but_snapshotted(left_out: tuple[str, ...], parsed: Parsed, text: str, cwd: str) -> tuple[str, ...]:
    """What the command itself takes into a snapshot first: ``git safety snapshot PATH && ...``, which stops where that fails."""
    if ";" in text or "||" in text or "\n" in text:
        return left_out
    taken: list[str] = []
    for command in parsed.commands:
        words = [word.text for word in command.words]
        if command.name == "git-safety" or (command.name == "git" and git_words(command).verb == "safety"):
            at = words.index("safety") + 1 if "safety" in words else 1
            if words[at : at + 1] == ["snapshot"]:
                taken += [os.path.normpath(os.path.join(command.cwd or cwd, word)) for word in words[at + 1 :] if word[:1] != "-"]
    return tuple(out for out in left_out if not any(out == path or out.startswith(path + "/") for path in taken))


def _facts(session: Session, call: Call) -> CallFacts:
    root = session.root
    top = find_root(root)
    repository = open_repository(top) if top is not None else None
    variables = {name: session.environ[name] for name in ("HOME", "USER", "TMPDIR", "PWD") if name in session.environ}
    own = (os.fsdecode(session.place.home), os.fsdecode(session.config_folder), ".git-safety.json")
    return CallFacts(
        cwd=os.fsdecode(call.cwd),
        home=session.environ.get("HOME", ""),
        root=os.fsdecode(root),
        repository=os.fsdecode(top) if top is not None else None,
        git_dir=os.fsdecode(repository.git_dir) if repository is not None else None,
        temp=tuple(dict.fromkeys((*CallFacts.temp, *([variables["TMPDIR"]] if "TMPDIR" in variables else [])))),
        own=tuple(filter(None, own)),
        variables=variables,
    )


def coverage_of(session: Session, call: Call) -> Coverage:
    """What the snapshot before the call holds; nothing where it failed or takes in named files only."""
    if call.id in session.uncaptured:
        return Coverage(why_not="it failed")
    head = session.log.head()
    if head is None or session.place.declared_only:
        return Coverage(why_not="this folder is too wide" if session.place.declared_only else "")
    root = os.fsdecode(session.root)
    left = tuple(os.path.join(root, os.fsdecode(path)) for path, _ in Snapshot(session.log.odb, head.tree).not_covered())
    # What the store shares with the repository by a hard link is one file, not a copy (design 5.1).
    return Coverage(head.id, HELD - {"git-directory"} if linked_files(session.place.store_dir) else HELD, left)


def rules_of(session: Session) -> UserRules:
    """The rules of the settings."""
    return UserRules(
        tuple(
            UserRule(
                rule["action"],
                tuple(str(rule.get("command", "")).split()),
                str(rule.get("path", "")),
                str(rule.get("effect", "")),
                bool(rule.get("project")),
            )
            for rule in session.settings.guard_rules
        )
    )


def _id(session: Session, text: str) -> str:
    digest = hashlib.sha256(session.root + b"\0" + text.encode("utf-8", "surrogatepass")).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:4])


def _allowances(session: Session) -> Mapping[str, int]:
    try:
        raw = json.loads((session.place.state / ALLOWED_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    fresh = session.now_ms() - ALLOWED_MS
    return {str(name): at for name, at in raw.items() if isinstance(at, int) and at >= fresh} if isinstance(raw, dict) else {}


def _take_allowance(session: Session, named: str) -> bool:
    allowed = dict(_allowances(session))
    if allowed.pop(named, None) is None:
        return False
    _write_allowances(session, allowed)
    return True


def _write_allowances(session: Session, allowed: Mapping[str, int]) -> None:
    write_whole(session.place.state / ALLOWED_FILE, json.dumps(allowed).encode("ascii"), durable=False)


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def words_of(verdict: Verdict) -> Iterable[str]:
    """The effects a verdict rests on, one a line: ``ask    path.remove  data``."""
    for effect, action in verdict.effects:
        yield f"{action:<6} {effect.kind}  {effect.target or effect.detail}".rstrip()
