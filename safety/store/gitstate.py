"""The undo rule for what git itself recorded: HEAD, branches, tags, stash, in-progress state, the index.

HEAD, its branch, the index and the in-progress state are one group, decided together (design 5.5): (a) a branch only moved back
applies even if files are kept; (b) a branch switch applies only if every differing path can be set; (c) where the user committed on
top, refs and index stay; (d) in-progress state applies only if the whole set equals base byte for byte. Everything here is pure: the
values come from snapshots, ancestry is asked through a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from safety.plumbing.index import IndexEntry
from safety.plumbing.refs import (
    NULL_HEX,
    PACKED_REFS,
    STASH,
    STASH_LOG,
    GitView,
    RefUpdate,
    StashEntry,
    is_in_progress,
    is_per_worktree,
    view,
)
from safety.store.members import MemberPlace
from safety.store.snapshot import Snapshot
from safety.types import Present

Group = tuple[IndexEntry, ...]
Committed = Callable[[bytes], tuple[int, bytes] | None]

REMOTES = b"refs/remotes/"
ORIG_HEAD = b"ORIG_HEAD"  # outlives what wrote it: no sign of anything in progress
AUTO_MERGE = b"AUTO_MERGE"  # left by many commands, no sign of an operation in progress
STATE_FILES = (b"HEAD", PACKED_REFS, b"index", b"FETCH_HEAD", b"shallow", b"logs/HEAD", STASH_LOG)
NEVER_UNDONE = (REMOTES, b"refs/safety/")  # refs of other work trees never reach a GitValue


@dataclass(frozen=True)
class GitValue:
    """The git state of one member in one snapshot. ``index`` is by path; ``raw_index`` where it is only known as bytes."""

    exists: bool
    head: bytes = b""
    refs: Mapping[bytes, bytes] = field(default_factory=dict)
    symrefs: Mapping[bytes, bytes] = field(default_factory=dict)
    progress: Mapping[bytes, bytes] = field(default_factory=dict)
    orig_head: bytes | None = None
    broken: frozenset[bytes] = frozenset()
    stash: tuple[StashEntry, ...] = ()
    index: Mapping[bytes, Group] = field(default_factory=dict)
    raw_index: bytes | None = None
    reuc: bytes | None = None

    @property
    def branch(self) -> bytes | None:
        return self.head[5:].strip() if self.head.startswith(b"ref:") else None

    @property
    def commit(self) -> bytes | None:
        """What HEAD stands for, None if unborn."""
        return self.refs.get(self.branch) if self.branch is not None else (self.head or None)


def read_value(
    snapshot: Snapshot, place: MemberPlace, *, with_index: bool = True, packed_refs: Snapshot | None = None
) -> GitValue:
    """The member's git state in a snapshot; ``exists`` is False where there was no git directory.

    ``packed_refs``: the snapshot to read that file from, where git would not read the one of this snapshot.
    """

    def read(name: bytes) -> bytes | None:
        try:
            return (packed_refs or snapshot if name == PACKED_REFS else snapshot).read(place.file(name))
        except KeyError:
            return None

    if read(b"HEAD") is None:
        return GitValue(False)
    names = set(snapshot.git_files(place.common))
    if place.own != place.common:
        names = {name for name in names if not is_per_worktree(name)} | {
            name for name in snapshot.git_files(place.own) if is_per_worktree(name)
        }
    if isinstance(snapshot.state(place.file(PACKED_REFS)), Present):
        names.add(PACKED_REFS)  # a folder, too
    seen: GitView = view(read, sorted(names))
    index: dict[bytes, Group] = {}
    raw = reuc = None
    image = snapshot.index(place.path) if with_index else None
    if image is not None:
        raw, reuc = image.raw, image.reuc
        for entry in image.entries:
            item = IndexEntry(entry.path, entry.stage, entry.mode, entry.oid, entry.flags)
            index[item.path] = (*index.get(item.path, ()), item)
    progress = {name: content for name, content in seen.in_progress.items() if name != ORIG_HEAD}
    orig_head = seen.in_progress.get(ORIG_HEAD)
    return GitValue(True, seen.head, seen.refs, seen.symrefs, progress, orig_head, seen.broken, seen.stash, index, raw, reuc)


def state_files(place: MemberPlace, path: bytes) -> bool:
    """Whether a captured git path is decided here (HEAD, refs, logs, in-progress, index) and not file by file."""
    for base in (place.own, place.common):
        if path == base:
            return True
        if path.startswith(base + b"/"):
            name = path[len(base) + 1 :]
            if name.startswith(tuple(file + b"/" for file in STATE_FILES)):
                return False  # a folder in the place of the file
            if name in STATE_FILES or name.split(b"/", 1)[0] in (b"refs", b"logs", b"worktrees") or is_in_progress(name):
                return True
    return False


@dataclass(frozen=True)
class Surroundings:
    """What the decision depends on beside the three values.

    ``elsewhere``: branches checked out in other work trees now; ``elsewhere_then``: when the agent's change was recorded.
    ``is_pushed(commit)``: whether this repository pushed it. ``is_ancestor(a, b)``: whether commit a is in the history of b.
    ``was_stashed_here(entry)``: whether a stash entry was made from this work tree's HEAD. ``paths_differ(a, b)``: the work tree
    paths that differ between two commits (None stands for no commit). ``kept_paths``: paths the file plan keeps. ``was_used()``:
    whether the git directory has anything that the last piece did not leave there. ``jj``: a jj repository manages the refs.
    """

    elsewhere: frozenset[bytes]
    elsewhere_then: frozenset[bytes]
    is_ancestor: Callable[[bytes, bytes], bool]
    paths_differ: Callable[[bytes | None, bytes | None], frozenset[bytes]]
    was_stashed_here: Callable[[bytes], bool]
    is_pushed: Callable[[bytes], bool]
    committed: Committed
    kept_paths: frozenset[bytes]
    was_used: Callable[[], bool]
    jj: bool = False


@dataclass(frozen=True)
class GitPlan:
    """What is to happen to one member's git state.

    ``updates`` are refs by compare-and-swap, ``head`` the new HEAD (None: stays), ``progress`` in-progress files to write (None:
    to remove) with the content that must be there, ``stash`` the new list (None: stays), ``index`` the entry groups to set
    (empty: to remove), each applied only where the current group is as ``index_base`` says; ``reuc`` its resolve-undo extension,
    old and new. ``logs`` are reflogs that were cut or deleted: (lines to have in front, what was left of them). ``held_paths``
    are paths that must be kept because a branch switch could not be taken back. ``lay_back`` and ``take_away`` are about the
    whole git directory, ``repair`` about one that is there but lost what git cannot do without: its files come back one by one,
    objects and index follow.
    """

    member: bytes
    now: GitValue
    target: GitValue
    updates: tuple[RefUpdate, ...] = ()
    head: bytes | None = None
    progress: Mapping[bytes, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    stash: tuple[StashEntry, ...] | None = None
    index: Mapping[bytes, tuple[Group, Group]] = field(default_factory=dict)
    raw_index: tuple[bytes | None, bytes | None] | None = None
    reuc: tuple[bytes | None, bytes | None] | None = None
    logs: Mapping[bytes, tuple[bytes, bytes]] = field(default_factory=dict)
    lay_back: bool = False
    take_away: bool = False
    repair: bool = False
    stays: bool = False
    notes: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    held_paths: frozenset[bytes] = frozenset()

    @property
    def acts(self) -> bool:
        return bool(
            self.updates
            or self.head is not None
            or self.progress
            or self.stash is not None
            or self.index
            or self.raw_index
            or self.reuc
            or self.logs
            or self.lay_back
            or self.take_away
            or self.repair
        )


@dataclass
class _Outcome:
    value: GitValue
    notes: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    held: frozenset[bytes] = frozenset()
    stays: bool = False


def plan_git(member: bytes, now: GitValue, pieces: Sequence[tuple[GitValue, GitValue]], around: Surroundings) -> GitPlan:
    """The plan that takes back the pieces (before, after; oldest first) from the state of now."""
    outcome = _Outcome(now)
    lay_back = take_away = False
    for theirs, base in reversed(_joined(pieces)):
        ours = outcome.value
        if not base.exists and theirs.exists:
            if ours.exists:
                outcome.kept.append("a new .git is there now; the old one stays in the snapshot")
                continue
            outcome.value, lay_back = theirs, True
        elif base.exists and not theirs.exists:
            if not ours.exists:
                continue
            if not _same_state(ours, base) or around.was_used():
                outcome.kept.append("the repository the agent made has changes of yours; it stays")
                outcome.stays = True
                continue
            outcome.value, take_away, lay_back = theirs, True, False
        elif base.exists and ours.exists:
            _undo_state(outcome, base, theirs, around)
    return _difference(member, now, outcome, lay_back, take_away)


def replace_repository(member: bytes, now: GitValue, before: GitValue, after: GitValue, *, was_used: bool) -> GitPlan:
    """The plan where the agent put a new repository in the old one's place: the old one back, unless the new one was used since."""
    if was_used or not _same_state(now, after):
        kept = ("the agent put a new repository in the place of yours, and it was used since; the old one stays in the snapshot",)
        return GitPlan(member, now, now, kept=kept, stays=True)
    return GitPlan(
        member, now, before, lay_back=True, take_away=True, notes=("the repository that the agent put in its place removed",)
    )


def _joined(pieces: Sequence[tuple[GitValue, GitValue]]) -> list[tuple[GitValue, GitValue]]:
    joined: list[tuple[GitValue, GitValue]] = []
    for theirs, base in pieces:
        if joined and joined[-1][1] == theirs:
            joined[-1] = (joined[-1][0], base)
        else:
            joined.append((theirs, base))
    return joined


def _same_state(first: GitValue, second: GitValue) -> bool:
    return (
        first.head,
        dict(first.refs),
        dict(first.progress),
        [e.oid for e in first.stash],
        dict(first.index),
        first.raw_index,
    ) == (
        second.head,
        dict(second.refs),
        dict(second.progress),
        [e.oid for e in second.stash],
        dict(second.index),
        second.raw_index,
    )


def _undo_state(outcome: _Outcome, base: GitValue, theirs: GitValue, around: Surroundings) -> None:
    """One step of the fold: ``outcome.value`` is ours before and after."""
    if around.jj and (base.head, base.refs) != (theirs.head, theirs.refs):
        outcome.kept.append("jj manages the refs of this repository; take its operation back with: jj undo")
        _undo_index(outcome, base, theirs, _nothing_committed)
        return
    committed = around.committed if outcome.value.commit != base.commit else _nothing_committed
    ours = outcome.value
    follows, decided = _undo_group(outcome, base, theirs, around)
    _undo_other_refs(outcome, base, theirs, around, decided)
    _undo_stash(outcome, base, theirs, around)
    if follows:
        _undo_index(outcome, base, theirs, committed)
        # ORIG_HEAD goes with what it was written for: where the user took that back already, it is the user's.
        apart = replace(base, orig_head=theirs.orig_head) == theirs
        if ours.orig_head == base.orig_head and (apart or outcome.value != ours):
            outcome.value = replace(outcome.value, orig_head=theirs.orig_head)
    for ref in sorted({*base.symrefs, *theirs.symrefs}):
        if base.symrefs.get(ref) != theirs.symrefs.get(ref) and outcome.value.symrefs.get(ref) != theirs.symrefs.get(ref):
            old = theirs.symrefs.get(ref, b"").decode("utf-8", "replace")
            name = ref.decode("utf-8", "replace")
            outcome.kept.append(
                f"symbolic ref {name} stays: git symbolic-ref {name} {old}" if old else f"symbolic ref {name} of the agent stays"
            )


def _group_of(value: GitValue) -> tuple[object, ...]:
    return value.head, value.commit, dict(value.progress)


NOTHING_DECIDED: frozenset[bytes] = frozenset()


def _undo_group(outcome: _Outcome, base: GitValue, theirs: GitValue, around: Surroundings) -> tuple[bool, frozenset[bytes]]:
    """HEAD, its branch and the in-progress state. Gives whether the index may follow, and the branches that are decided by that."""
    ours = outcome.value
    branches = frozenset(branch for branch in (base.branch, theirs.branch) if branch is not None)
    if _group_of(base) == _group_of(theirs):
        return True, NOTHING_DECIDED
    if _group_of(ours) == _group_of(theirs):
        return True, NOTHING_DECIDED
    if _group_of(ours) != _group_of(base):
        return _keep_group(outcome, base, theirs, around)
    pushed = _pushed(base, theirs, around)
    if pushed is not None:
        outcome.kept.append(f"commit {_short(pushed)} was pushed and stays: git revert {_short(pushed)}")
        return False, branches
    switched = base.head != theirs.head and base.commit != theirs.commit
    if switched:
        held = around.paths_differ(base.commit, theirs.commit) & around.kept_paths
        if held:
            outcome.held |= around.paths_differ(base.commit, theirs.commit)
            name = next(iter(sorted(held))).decode("utf-8", "replace")
            outcome.kept.append(f"HEAD stays on {_name(base)}: {name} could not be set back")
            return False, branches
    refs = dict(ours.refs)
    for branch in sorted(branches):
        if base.refs.get(branch) == theirs.refs.get(branch) or ours.refs.get(branch) != base.refs.get(branch):
            continue
        if branch in around.elsewhere:
            outcome.kept.append(f"{_branch_name(branch)} is checked out in another work tree and stays")
            return False, branches
        _set(refs, branch, theirs.refs.get(branch))
    if base.branch is not None and base.branch not in theirs.refs and base.branch != theirs.branch:
        outcome.notes.append(f"branch {_branch_name(base.branch)} removed")
    outcome.value = replace(ours, head=theirs.head, refs=refs, progress=dict(theirs.progress))
    if note := group_note(base, theirs):
        outcome.notes.append(note)
    return True, branches


def _keep_group(outcome: _Outcome, base: GitValue, theirs: GitValue, around: Surroundings) -> tuple[bool, frozenset[bytes]]:
    """The group has moved since: it stays. Branches that are not checked out any more are then like any other ref."""
    ours = outcome.value
    on_top = ours.head == base.head and base.commit and ours.commit and ours.commit != base.commit
    if on_top and around.is_ancestor(base.commit or b"", ours.commit or b""):
        note = f"there are commits on top of {_short(base.commit)} now; commits stay, files are set back"
        was_there = {theirs.commit, *theirs.refs.values()}
        if base.commit not in was_there and not around.is_ancestor(base.commit or b"", theirs.commit or b""):
            note += f"; to take the commit back: git revert {_short(base.commit)}"
        outcome.kept.append(note)
        return False, frozenset({base.branch} if base.branch is not None else ())
    if dict(ours.progress) != dict(base.progress) and dict(base.progress) != dict(theirs.progress):
        outcome.kept.append("the merge or rebase in progress has moved on since; it stays")
    elif ours.head != theirs.head and base.head != theirs.head or ours.head == base.head:
        outcome.kept.append(f"HEAD has moved since ({_name(ours)} {_short(ours.commit)}); it stays")
    return False, NOTHING_DECIDED


def _undo_other_refs(
    outcome: _Outcome, base: GitValue, theirs: GitValue, around: Surroundings, decided: frozenset[bytes]
) -> None:
    ours = outcome.value
    refs = dict(ours.refs)
    for ref in sorted({*base.refs, *theirs.refs}):
        old, new = base.refs.get(ref), theirs.refs.get(ref)
        if old == new or ref == STASH or ref.startswith(NEVER_UNDONE) or ref in decided:
            continue
        current = refs.get(ref)
        if current == new:
            continue
        if ref in around.elsewhere_then:
            continue  # a branch that another work tree had checked out is never taken for the agent's
        if current != old:
            outcome.kept.append(f"{_branch_name(ref)} has moved since; it stays")
        elif ref in around.elsewhere or ref == ours.branch:
            outcome.kept.append(f"{_branch_name(ref)} is checked out; it stays")
        elif old is not None and around.is_pushed(old) and not (new is not None and around.is_ancestor(old, new)):
            outcome.kept.append(f"{_branch_name(ref)} was pushed; it stays")
        else:
            _set(refs, ref, new)
            outcome.notes.append(f"{_full_name(ref)} {'back' if new else 'removed'}")
    outcome.value = replace(ours, refs=refs)


def _undo_stash(outcome: _Outcome, base: GitValue, theirs: GitValue, around: Surroundings) -> None:
    """The stash is a list keyed by commit: what the agent pushed goes, what it dropped comes back at its place.

    All work trees share the list; an entry that was not made from this one's HEAD is somebody else's (redteam C4).
    """
    before, after = [entry.oid for entry in theirs.stash], [entry.oid for entry in base.stash]
    if before == after:
        _undo_bare_stash(outcome, base, theirs)
        return
    added = {oid for oid in after if oid not in before and around.was_stashed_here(oid)}
    current = [entry for entry in outcome.value.stash if entry.oid not in added]
    present = {entry.oid for entry in current}
    dropped = [entry for entry in theirs.stash if entry.oid not in after and entry.oid not in present]
    for entry in dropped:
        place = _place_of(entry, theirs.stash, current)
        current.insert(place, entry)
    if [entry.oid for entry in current] == [entry.oid for entry in outcome.value.stash]:
        return
    refs = dict(outcome.value.refs)
    # A list that expired left its ref behind, alone: it was there before the agent's entry, so it is there after it.
    alone = theirs.refs.get(STASH) if not theirs.stash else None
    _set(refs, STASH, current[0].oid if current else alone)
    outcome.value = replace(outcome.value, stash=tuple(current), refs=refs)
    if dropped:
        outcome.notes.append(f"{len(dropped)} stash {'entry' if len(dropped) == 1 else 'entries'} back")
    if added:
        outcome.notes.append(f"{len(added)} stash {'entry' if len(added) == 1 else 'entries'} of the agent removed")


def _undo_bare_stash(outcome: _Outcome, base: GitValue, theirs: GitValue) -> None:
    """``refs/stash`` may come or go alone: without its log it is no list, but still a ref; without it git sees none of its log."""
    ours = outcome.value
    if base.refs.get(STASH) == theirs.refs.get(STASH) or ours.refs.get(STASH) != base.refs.get(STASH):
        return
    refs = dict(ours.refs)
    _set(refs, STASH, theirs.refs.get(STASH))
    outcome.value = replace(ours, refs=refs)


def _place_of(entry: StashEntry, old: Sequence[StashEntry], current: Sequence[StashEntry]) -> int:
    """Before the first later neighbour that is still there, else at the end (entries are newest first)."""
    position = [item.oid for item in old].index(entry.oid)
    ids = [item.oid for item in current]
    for later in old[position + 1 :]:
        if later.oid in ids:
            return ids.index(later.oid)
    for earlier in reversed(old[:position]):
        if earlier.oid in ids:
            return ids.index(earlier.oid) + 1
    return len(ids)


def _nothing_committed(path: bytes) -> None:
    return None


def _undo_index(outcome: _Outcome, base: GitValue, theirs: GitValue, committed: Committed) -> None:
    """Per path: an entry group (all stages and flags) that equals base gets theirs, any other stays."""
    ours = outcome.value
    if base.raw_index is not None or theirs.raw_index is not None:
        if base.raw_index != theirs.raw_index:
            if ours.raw_index == base.raw_index:
                outcome.value = replace(ours, raw_index=theirs.raw_index, index=theirs.index, reuc=theirs.reuc)
                outcome.notes.append("the index is as before")
            elif ours.raw_index != theirs.raw_index:
                outcome.kept.append("the index has changed since; it stays")
        return
    if base.reuc != theirs.reuc and ours.reuc == base.reuc:
        outcome.value = ours = replace(ours, reuc=theirs.reuc)
    index = dict(ours.index)
    kept = 0
    for path in {*base.index, *theirs.index}:
        old, new = base.index.get(path, ()), theirs.index.get(path, ())
        if old == new:
            continue
        current = index.get(path, ())
        if len(current) == 1 and committed(path) == (current[0].mode, current[0].oid):
            continue  # committed since: it belongs to the commit
        if current == old:
            if new:
                index[path] = new
            else:
                index.pop(path, None)
        elif current != new:
            kept += 1
    if kept:
        outcome.kept.append(f"{kept} staged {'path' if kept == 1 else 'paths'} changed since; what you staged stays")
    if index != ours.index:
        outcome.value = replace(ours, index=index)


def _difference(member: bytes, now: GitValue, outcome: _Outcome, lay_back: bool, take_away: bool) -> GitPlan:
    target = outcome.value
    notes, kept = tuple(outcome.notes), tuple(outcome.kept)
    if lay_back or take_away:
        return GitPlan(member, now, target, lay_back=lay_back, take_away=take_away, notes=notes, kept=kept)
    updates = tuple(
        RefUpdate(ref, target.refs.get(ref, NULL_HEX), now.refs.get(ref, NULL_HEX))
        for ref in sorted({*now.refs, *target.refs})
        if now.refs.get(ref) != target.refs.get(ref)
        and (ref != STASH or not (now.stash or target.stash))
        and ref not in now.broken
    )
    progress = {
        name: (now.progress.get(name), target.progress.get(name))
        for name in sorted({*now.progress, *target.progress})
        if now.progress.get(name) != target.progress.get(name)
    }
    if now.orig_head != target.orig_head:
        progress[ORIG_HEAD] = (now.orig_head, target.orig_head)
    index = {
        path: (now.index.get(path, ()), target.index.get(path, ()))
        for path in sorted({*now.index, *target.index})
        if now.index.get(path, ()) != target.index.get(path, ())
    }
    is_listed = bool(target.stash) and target.refs.get(STASH) != now.refs.get(STASH)
    stash = target.stash if is_listed or [e.oid for e in target.stash] != [e.oid for e in now.stash] else None
    raw = (now.raw_index, target.raw_index) if now.raw_index != target.raw_index else None
    head = target.head if target.head != now.head else None
    reuc = (now.reuc, target.reuc) if now.reuc != target.reuc else None
    return GitPlan(
        member,
        now,
        target,
        updates,
        head,
        progress,
        stash,
        index,
        raw,
        reuc,
        notes=notes,
        kept=kept,
        held_paths=outcome.held,
        stays=outcome.stays,
    )


def _pushed(base: GitValue, theirs: GitValue, around: Surroundings) -> bytes | None:
    """The commit the agent made on the checked-out branch if it is in a remote-tracking ref, None if taking it off is safe."""
    if base.branch != theirs.branch or not base.commit or base.commit == theirs.commit:
        return None
    if theirs.commit and around.is_ancestor(base.commit, theirs.commit):
        return None  # the branch was moved back; nothing of base is taken off
    return base.commit if around.is_pushed(base.commit) else None


def _set(refs: dict[bytes, bytes], ref: bytes, value: bytes | None) -> None:
    if value is None:
        refs.pop(ref, None)
    else:
        refs[ref] = value


def _short(commit: bytes | None) -> str:
    return commit.decode()[:7] if commit else "no commit"


def _branch_name(ref: bytes) -> str:
    return (
        ref.removeprefix(b"refs/heads/").decode("utf-8", "replace")
        if ref.startswith(b"refs/heads/")
        else ref.removeprefix(b"refs/").decode("utf-8", "replace")
    )


def _name(value: GitValue) -> str:
    return _branch_name(value.branch) if value.branch is not None else "a detached HEAD"


def _full_name(ref: bytes) -> str:
    """With the kind of ref where there is a word for it: ``branch idea``, ``tag v1``."""
    name = _branch_name(ref)
    return f"branch {name}" if ref.startswith(b"refs/heads/") else f"tag {name[5:]}" if name.startswith("tags/") else name


def group_note(base: GitValue, theirs: GitValue) -> str:
    """What taking HEAD, its branch and the operation in progress back from ``base`` to ``theirs`` is called; empty for nothing
    that has a name (``AUTO_MERGE`` alone, say).
    """
    if base.head != theirs.head and (base.branch or theirs.branch):
        return f"back on {_name(theirs)} ({_short(theirs.commit)}), was on {_name(base)}"
    if base.commit != theirs.commit:
        return f"{_name(theirs)} {_short(base.commit)} -> {_short(theirs.commit)}"
    before, after = ({name for name in value.progress if name != AUTO_MERGE} for value in (base, theirs))
    if before == after:
        return "the operation in progress is where it was" if after and base.progress != theirs.progress else ""
    return "the operation in progress is back" if after else "the operation in progress is gone"
