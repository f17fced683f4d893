"""Recovery: what an interrupted undo left, judged against *now*.

Equal to target is done, equal to ours is still to do, anything else was changed since and is kept. It never rolls back. A state
that only our own hands pass through is still to do. Only temporary names and locks of this job are removed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from safety.plumbing.reading import first_line
from safety.plumbing.refs import NULL_HEX, STASH, STASH_LOCKS, finish_stash, view_on_disk
from safety.store.files import TEMPORARY_PREFIX, Tree, state_of
from safety.store.gitstate import GitPlan
from safety.store.journal import Job, journal_file
from safety.store.members import MemberPlace, absolute_path
from safety.store.place import Place
from safety.store.restore import KEPT, Step
from safety.store.snapshot import Snapshot
from safety.types import Absent, ObjectId, PathState, Present

LOCK_WAIT_S = 1.0


def sweep_temporaries(place: Place, job: Job, locks: Mapping[str, Sequence[int]]) -> None:
    """Removes what the interrupted job left: its temporary names, after what they displaced is safely back or safely stored."""
    prefix = TEMPORARY_PREFIX + job.id.encode() + b"-"
    folders = {step.path.rpartition(b"/")[0] for step in job.steps}
    for member, plan in job.git:
        folders.add(member.own)
        folders.update((member.own + b"/" + name).rpartition(b"/")[0] for name in plan.progress)
    with Tree(place.root) as tree:
        for folder in sorted(folders):
            try:
                names = os.listdir(tree.directory(folder))
            except OSError:
                continue
            for name in map(os.fsencode, names):
                if name.startswith(prefix):
                    state_of(tree, place.odb, (folder + b"/" if folder else b"") + name)  # whatever it holds is in the store now
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=tree.directory(folder))
    for text, (device, inode) in locks.items():
        lock = text.encode("latin-1")
        with contextlib.suppress(OSError):
            info = os.lstat(lock)
            if (info.st_dev, info.st_ino) == (device, inode):
                os.unlink(lock)


def _drop_locks_of_our_git(place: Place, job: Job) -> None:
    """A git of ours that died with us leaves locks on what it was to set, and no journal can name them beforehand.

    Git holds these for a moment only: one that was made after the journal and is the same after a while was ours.
    """
    paths = set()
    for member, plan in job.git:
        own, common = absolute_path(place.root, member.own), absolute_path(place.root, member.common)
        if plan.updates or plan.head is not None or plan.stash is not None:
            paths |= {own + b"/HEAD.lock", common + b"/packed-refs.lock"}
            paths |= {common + b"/" + update.ref + b".lock" for update in plan.updates}
        if plan.stash is not None:
            paths |= {common + b"/" + name for name in STASH_LOCKS}
    with contextlib.suppress(OSError):
        began = os.stat(journal_file(place)).st_mtime_ns
        found = {path: info for path in paths if (info := _lstat(path)) is not None and info.st_mtime_ns >= began}
        ends_at = time.monotonic() + LOCK_WAIT_S
        while found and time.monotonic() < ends_at:
            time.sleep(0.02)
            found = {
                path: info for path, info in found.items() if (now := _lstat(path)) is not None and now.st_ino == info.st_ino
            }
        for path in found:
            os.unlink(path)


def _lstat(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def remaining(place: Place, job: Job) -> Job:
    """The part of an interrupted job that is still to do: steps and refs that are already at their target are left out."""
    _drop_locks_of_our_git(place, job)  # first: a stash that is half written is finished under its lock
    steps = []
    with Tree(place.root) as tree:
        for step in job.steps:
            state = state_of(tree, place.odb, step.path)
            if state == step.target:
                continue
            if isinstance(step.ours, Present) and isinstance(state, Absent) and _displaced_exists(tree, place, step, job.id):
                state = step.ours
            if state == step.ours or is_on_the_way(step.ours, state, step.target):
                steps.append(replace(step, ours=state))
            else:
                steps.append(replace(step, verb=KEPT, target=state, ours=state, note="changed since the undo was interrupted"))
    git = tuple((member, _remaining_git(place, job, member, plan)) for member, plan in job.git)
    return replace(job, steps=tuple(steps), git=git)


def is_on_the_way(ours: PathState, state: PathState, target: PathState) -> bool:
    """Whether the exchanger's own hands leave this for a moment between ours and target, where it takes more than one call."""
    if not isinstance(target, Present):
        return False
    if isinstance(state, Absent):  # between rmdir or unlink of a swap and what takes its place
        return isinstance(ours, Present) and (ours.kind == "dir") != (target.kind == "dir")
    if not isinstance(state, Present) or state.kind != target.kind:
        return False
    if target.kind == "dir":  # a folder's own mode comes last, after what it holds
        return not (isinstance(ours, Present) and ours.kind == "dir") or state.mode == target.mode | 0o700
    opened = {ours.mode | 0o400, ours.mode | 0o200} if isinstance(ours, Present) else set()
    return isinstance(ours, Present) and replace(state, mode=ours.mode) == ours and state.mode in opened


def _displaced_exists(tree: Tree, place: Place, step: Step, tag: str) -> bool:
    """A removal was caught between its rename and the check: the file lies under a temporary name; it is put back first."""
    folder, _, name = step.path.rpartition(b"/")
    prefix = TEMPORARY_PREFIX + tag.encode() + b"-"
    try:
        names = [os.fsencode(other) for other in os.listdir(tree.directory(folder))]
    except OSError:
        return False
    for other in names:
        path = (folder + b"/" if folder else b"") + other
        if other.startswith(prefix) and state_of(tree, place.odb, path) == step.ours:
            if isinstance(step.target, Absent):
                return False  # the removal was done; the sweep drops the file
            os.link(other, name, src_dir_fd=tree.directory(folder), dst_dir_fd=tree.directory(folder), follow_symlinks=False)
            return True
    return False


def _has_head_log_of(place: Place, member: MemberPlace, tree: ObjectId | None) -> bool:
    """Whether the git directory on disk is the one of the snapshot already, by the first line of HEAD's log."""
    try:
        wanted = Snapshot(place.odb, tree).read(member.own + b"/logs/HEAD").partition(b"\n")[0]
        return first_line(absolute_path(place.root, member.own) + b"/logs/HEAD") == wanted
    except (KeyError, OSError):
        return False


def _remaining_git(place: Place, job: Job, member: MemberPlace, plan: GitPlan) -> GitPlan:
    own, common = absolute_path(place.root, member.own), absolute_path(place.root, member.common)
    if plan.repair:
        return plan
    if plan.lay_back or plan.take_away:
        exists = os.path.lexists(own)
        is_old = exists and plan.lay_back and plan.take_away and _has_head_log_of(place, member, job.theirs)
        return replace(
            plan,
            lay_back=plan.lay_back and (not exists or plan.take_away) and not is_old,
            take_away=plan.take_away and exists and not is_old,
        )
    if not os.path.isdir(own):
        return replace(plan, updates=(), head=None, progress={}, stash=None, index={}, raw_index=None)
    now = view_on_disk(own, common)
    updates = tuple(u for u in plan.updates if now.refs.get(u.ref, NULL_HEX) != u.new)
    moved = [u for u in updates if now.refs.get(u.ref, NULL_HEX) != u.old]
    if moved:
        return replace(
            plan,
            updates=(),
            head=None,
            progress={},
            stash=None,
            index={},
            raw_index=None,
            kept=(*plan.kept, "refs moved since the undo was interrupted; they stay"),
        )
    head = plan.head if plan.head is not None and now.head == plan.now.head else None
    progress = {name: pair for name, pair in plan.progress.items() if now.in_progress.get(name) == pair[0]}
    stash = plan.stash if plan.stash is not None and [e.oid for e in now.stash] == [e.oid for e in plan.now.stash] else None
    top = plan.target.refs.get(STASH)
    if (
        plan.stash is not None
        and top
        and [e.oid for e in now.stash] == [e.oid for e in plan.stash]
        and now.refs.get(STASH) != top
    ):
        finish_stash(common, plan.stash, top)  # its log is written first; a kill before its ref leaves the two apart
    return replace(plan, updates=updates, head=head, progress=progress, stash=stash)
