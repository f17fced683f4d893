"""What a commit of the agent's changes would hold, and why there would be none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from safety.commit.delta import compute_delta
from safety.commit.objects import Objects
from safety.commit.room import sweep
from safety.commit.staging import Staging
from safety.commit.state import BY_DEFAULT, Refusal, State, is_protected, named_protected, read_state, refusal, short
from safety.commit.values import (
    GITLINK,
    Change,
    CommitPlan,
    CommitSettings,
    Entry,
    Finding,
    Request,
    Scanner,
    Step,
)
from safety.commit.words import shown_path
from safety.faults import SafetyError
from safety.plumbing.diff import hunks, is_binary, unified
from safety.plumbing.run import Git

DIFF_BYTES = 8 << 10


def plan_commit(
    git: Git,
    root: bytes,
    steps: Sequence[Step],
    settings: CommitSettings,
    *,
    include_mine: bool = False,
    scanner: Scanner | None = None,
) -> CommitPlan:
    """The commit of ``steps`` on HEAD as it is now; ``root`` is the top of the work tree.

    Objects are written into the repository, nothing else is. With ``include_mine`` a path whose changes cannot be told from the
    user's is committed whole, as the last step left it. ``scanner`` looks for secrets; one found refuses the whole commit.
    What cannot be done is said in the plan, not raised.
    """
    return plan_request(git, Request(root, tuple(steps), settings, include_mine, scanner))


def plan_request(git: Git, request: Request) -> CommitPlan:
    """The same for a request that is at hand."""
    plan = CommitPlan(request)
    try:
        sweep(git, request.root)
        state = read_state(git, request.root)
        if isinstance(state, Refusal):
            return _refused(plan, state)
        with Objects(git, request.root) as objects:
            return _plan(git, request, state, objects, plan)
    except SafetyError as fault:
        return _refused(plan, Refusal(fault.code, fault.message, fault.hint))
    except OSError as fault:
        return _refused(plan, Refusal("unreadable", f"the repository cannot be read or written: {fault.strerror}"))


def _plan(git: Git, request: Request, state: State, objects: Objects, plan: CommitPlan) -> CommitPlan:
    head = objects.read("HEAD")
    plan = replace(plan, head=head.oid if head is not None else "", branch=state.branch, config=dict(state.config))
    if (refused := refusal(state, request.settings, plan.head)) is not None:
        return _refused(plan, refused)
    staging = Staging(state.repository, objects)
    if unmerged := staging.unmerged:
        names = f"{shown_path(unmerged[0])} has" if len(unmerged) == 1 else f"{len(unmerged)} files have"
        return _refused(plan, Refusal("unmerged", f"{names} conflicts that are not resolved", "git status"))
    tree = head.data[5:45].decode() if head is not None else ""
    delta = compute_delta(git, objects, state, request, tree, staging)
    left_out = tuple(delta.left_out[path] for path in sorted(delta.left_out))
    plan = replace(plan, tree=delta.tree, changes=delta.changes, left_out=left_out)
    findings = tuple(_findings(objects, request.scanner, delta.changes)) if request.scanner is not None else ()
    if findings:
        places = [f"{shown_path(one.path)}:{one.line}" if one.line else shown_path(one.path) for one in findings]
        said = ", ".join(f"{place} looks like a secret ({one.rule})" for place, one in zip(places, findings, strict=True))
        return replace(_refused(plan, Refusal("secrets", said, findings[0].hint)), secrets=findings)
    stat, diff = _shown(objects, delta.changes)
    return replace(_with_branch(plan, state, request.settings), diff_stat=stat, diff=diff)


def _refused(plan: CommitPlan, refused: Refusal) -> CommitPlan:
    return replace(plan, refusal=refused.code, reason=refused.reason, hint=refused.hint)


def _with_branch(plan: CommitPlan, state: State, settings: CommitSettings) -> CommitPlan:
    """The plan with what a protected branch asks for: a word, or another branch."""
    if not plan.changes or settings.protected_branches not in ("warn", "branch") or not is_protected(state, settings):
        return plan
    if settings.protected_branches == "branch":
        notice = f"{named_protected(state)}; the commit is on {settings.branch}"
        return replace(plan, new_branch="refs/heads/" + settings.branch, notices=(*plan.notices, notice))
    return replace(plan, notices=(*plan.notices, f"committed on the protected branch {short(state.branch)} {BY_DEFAULT}"))


def _findings(objects: Objects, scanner: Scanner, changes: Sequence[Change]) -> Iterator[Finding]:
    """What the scanner finds in the paths and the lines that these changes add."""
    for change in changes:
        if change.new is None or change.new.mode == GITLINK:
            continue
        if change.old is None and (found := scanner.path_rule(change.path)) is not None:
            yield found
        old, new = _text(objects, change.old), _text(objects, change.new)
        if new and not is_binary(new):
            yield from scanner.scan(change.path, list(added_lines(b"" if is_binary(old) else old, new)))


def added_lines(old: bytes, new: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that ``new`` has and ``old`` has not, each with its number from 1 and without its end."""
    for hunk in hunks(old, new, context=0):
        for number, line in enumerate(hunk.new_lines, hunk.new_start + 1):
            yield number, line.rstrip(b"\n")


def _shown(objects: Objects, changes: Sequence[Change]) -> tuple[str, str]:
    """How many lines each path gains and loses, and the diff, cut at DIFF_BYTES: what a writer of messages is given."""
    stat: list[str] = []
    parts: list[bytes] = []
    size = 0
    for change in changes:
        old, new = _text(objects, change.old), _text(objects, change.new)
        lines = _head(change) + unified(old, new, b"a/" + change.path, b"b/" + change.path)
        added, gone = (sum(line.startswith(mark) for line in lines[len(_head(change)) + 2 :]) for mark in (b"+", b"-"))
        binary = is_binary(old) or is_binary(new)
        stat.append(f"{shown_path(change.path)} | {'binary' if binary else f'+{added} -{gone}'}")
        if size <= DIFF_BYTES:
            parts += lines
            size += sum(map(len, lines)) + len(lines)
    text = b"".join(line + b"\n" for line in parts)
    if len(text) > DIFF_BYTES:
        text = text[:DIFF_BYTES].rpartition(b"\n")[0] + b"\n[cut]\n"
    return "\n".join(stat), text.decode("utf-8", "replace")


def _head(change: Change) -> list[bytes]:
    """The lines of a diff that say what kind of change it is."""
    lines = [b"diff --git a/%s b/%s" % (change.path, change.path)]
    if change.old is None and change.new is not None:
        lines.append(b"new file mode %o" % change.new.mode)
    elif change.new is None and change.old is not None:
        lines.append(b"deleted file mode %o" % change.old.mode)
    elif change.old is not None and change.new is not None and change.old.mode != change.new.mode:
        lines += [b"old mode %o" % change.old.mode, b"new mode %o" % change.new.mode]
    return lines


def _text(objects: Objects, entry: Entry | None) -> bytes:
    if entry is None:
        return b""
    if entry.mode == GITLINK:
        return b"Subproject commit " + entry.oid.encode() + b"\n"
    return objects.blob(entry.oid) or b""
