"""``store``: how large it is, what may be forgotten, reclaiming space, and whether it is sound."""

from __future__ import annotations

import os
from dataclasses import replace

from safety.commands.args import StoreArgs
from safety.commands.report import Hint, Report, TextReport
from safety.commands.uncovered import size_text
from safety.session import Session
from safety.store import registry
from safety.store.chains import chains, read_chain
from safety.store.fsck import Problem, fsck
from safety.store.packs import store_size
from safety.store.prune import prune
from safety.store.retention import DAY_MS, KeepRules, forget

_SHOWN_PROBLEMS = 50


def run(session: Session, args: StoreArgs) -> Report:
    """Gives a TextReport. ``fsck`` has exit code 1 where the store is not sound. Raises StoreBusy, WorkspaceBusy."""
    return {"status": _status, "forget": _forget, "prune": _prune, "fsck": _fsck}[args.action](session, args)


def keep_rules(session: Session, args: StoreArgs) -> KeepRules:
    """The rules of the settings, with what this command line says instead. A number of operations drops all older ones."""
    rules = session.keep_rules
    if args.keep_operations is not None:
        rules = replace(rules, newest=args.keep_operations, spared=args.keep_operations, max_age_ms=0)
    if args.keep_days is not None:
        rules = replace(rules, max_age_ms=args.keep_days * DAY_MS, spared=args.keep_operations or 0)
    return rules if args.max_mib is None else replace(rules, max_bytes=args.max_mib << 20)


def _status(session: Session, args: StoreArgs) -> Report:
    size = store_size(session.place.store_dir)
    operations = sum(1 for _ in session.log.walk())
    limit = session.settings.store_max_mib << 20
    lines = [
        f"{size_text(size.own_bytes)} of {size_text(limit)}, {operations:,} operations of this workspace",
        f"{size.packs:,} packs, {size.loose:,} loose objects",
    ]
    if size.shared_bytes:
        lines.append(f"{size_text(size.shared_bytes)} more lie in files that your repository holds too")
    lines.append(os.fsdecode(session.place.store_dir))
    data = {
        "own_bytes": size.own_bytes,
        "shared_bytes": size.shared_bytes,
        "max_bytes": limit,
        "packs": size.packs,
        "loose": size.loose,
        "operations": operations,
        "path": os.fsdecode(session.place.store_dir),
    }
    return TextReport(root=session.root, lines=tuple(lines), data=data)


def _forget(session: Session, args: StoreArgs) -> Report:
    rules = keep_rules(session, args)
    with session.locked():
        if args.dry_run:
            count = _forgettable(session, rules)
            return TextReport(
                root=session.root, lines=(f"Would forget {_operations(count)} by number and age.",), data={"would_forget": count}
            )
        done = forget(session.place.git, session.place.odb, rules, session.now_ms(), retired=retired(session))
    lines = [f"Forgot {_operations(done.operations)}." if done.operations else "Nothing to forget by the rules."]
    if done.over_by:
        lines.append(f"Still {size_text(done.over_by)} above the limit, in what the rules keep.")
    hints = (Hint("Reclaim the space", "git safety store prune"),) if done.operations else ()
    return TextReport(
        root=session.root, lines=tuple(lines), hints=hints, data={"forgotten": done.operations, "over_by_bytes": done.over_by}
    )


def retired(session: Session) -> frozenset[str]:
    """Chains of the store that no workspace goes on with: earlier generations, and folders that are gone."""
    home = session.place.home
    alive = {
        entry.chain for entry in registry.everything(home) if entry.store == session.entry.store and os.path.lexists(entry.root)
    }
    return frozenset(chains(session.place.store_dir)) - alive - {session.place.chain}


def _forgettable(session: Session, rules: KeepRules) -> int:
    """How many operations number and age alone would let go; by size it may be more."""
    odb, gone = session.place.odb, retired(session)
    limit = session.now_ms() - rules.max_age_ms
    count = 0
    for chain in chains(session.place.store_dir):
        keep = 0 if chain in gone else rules.newest
        count += sum(place >= keep and operation.record.time_ms < limit for place, operation in enumerate(read_chain(odb, chain)))
    return count


def _prune(session: Session, args: StoreArgs) -> Report:
    if args.dry_run:
        return TextReport(
            root=session.root, lines=("Would remove what no kept operation names; how much shows only when it is done.",), data={}
        )
    done = prune(session.place.git, session.place.odb)
    lines = [f"Removed {done.objects:,} objects, {size_text(done.freed_bytes) if done.freed_bytes > 0 else '0 bytes'} freed."]
    if done.problem:
        lines.append("Too little room on the disk to write packs anew; the rest stays until there is more.")
    data = {
        "objects": done.objects,
        "packs": done.packs,
        "leftovers": done.leftovers,
        "freed_bytes": done.freed_bytes,
        "problem": done.problem,
    }
    return TextReport(root=session.root, lines=tuple(lines), data=data, exit_code=3 if done.problem else 0)


def _fsck(session: Session, args: StoreArgs) -> Report:
    problems = fsck(session.place.git, session.place.odb)
    errors = [problem for problem in problems if problem.severity == "error"]
    lines = [problem_text(problem) for problem in problems[:_SHOWN_PROBLEMS]]
    if len(problems) > _SHOWN_PROBLEMS:
        lines.append(f"... and {len(problems) - _SHOWN_PROBLEMS:,} more")
    lines.append(
        f"{len(errors):,} {'error' if len(errors) == 1 else 'errors'}: the store is not sound."
        if errors
        else "The store is sound."
    )
    data = {
        "sound": not errors,
        "problems": [{"severity": p.severity, "code": p.code, "where": p.where, "detail": p.detail} for p in problems],
    }
    return TextReport(root=session.root, lines=tuple(lines), data=data, exit_code=1 if errors else 0)


def problem_text(problem: Problem) -> str:
    return " ".join(
        filter(None, [f"{problem.severity}: {problem.code}", problem.where, f"({problem.detail})" if problem.detail else ""])
    )


def _operations(number: int) -> str:
    return f"{number:,} {'operation' if number == 1 else 'operations'}"
