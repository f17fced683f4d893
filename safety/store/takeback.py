"""Taking operations back as one: files and git state of every member, planned together and carried out under one journal.

This is where ``restore`` (files) and ``gitstate`` (git) meet: what a branch switch needs from the files, what kept files mean for a
branch switch, and which of a git directory's files are decided one by one (config, hooks) like any other file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from safety.plumbing.merge import merge_text
from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore, loose_times_ns
from safety.plumbing.refs import NULL_HEX, PACKED_REFS, STASH_LOG
from safety.plumbing.repo import ConfigBroken, other_worktrees, parse_config
from safety.store.chunks import read_text
from safety.store.gitstate import (
    REMOTES,
    STATE_FILES,
    GitPlan,
    GitValue,
    Surroundings,
    plan_git,
    read_value,
    replace_repository,
    state_files,
)
from safety.store.journal import Job
from safety.store.members import MemberPlace, absolute_path, captured_path, is_repository, member_place
from safety.store.oplog import OpLog
from safety.store.place import Place
from safety.store.restore import KEPT, FilePlanner, Merge, Piece, Plan, Step
from safety.store.snapshot import Snapshot, changed_indexes, changes
from safety.store.trees import parse_tree
from safety.store.worktrees import worktree_changes
from safety.types import ABSENT, ObjectId, PathState, Present, Unknown

GIT_FILES_NEVER_UNDONE = (b"FETCH_HEAD", b"COMMIT_EDITMSG", b"shallow", b"gitk.cache")
PUSHED = b"update by push"  # what git writes into a remote-tracking ref's log
LOG_LINES = 50
READ_BY_GIT = (b"HEAD", b"config", b"index", b"logs", b"objects", b"packed-refs", b"refs")
SPECIAL = Unknown("special-file")  # a FIFO, socket or device
WORKTREE_NOTES = {
    "removed": "the linked work tree {0} was removed; its files are in no snapshot of this workspace",
    "added": "the linked work tree {0} stays: git worktree remove {0}",
}


@dataclass(frozen=True)
class Whole:
    """A complete plan: file steps (git directories' plain files among them) and one git plan a member that changed."""

    files: Plan
    git: tuple[tuple[MemberPlace, GitPlan], ...]
    now: ObjectId | None
    theirs: ObjectId | None
    base: ObjectId | None = None

    @property
    def acts(self) -> bool:
        return any(step.acts for step in self.files.steps) or any(plan.acts for _, plan in self.git)

    @property
    def token(self) -> str:
        """Names this exact plan, for ``undo --plan``."""
        parts = [
            self.files.token,
            *(repr((plan.member, plan.updates, plan.head, sorted(plan.index), plan.stash)) for _, plan in self.git),
        ]
        import hashlib

        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    def job(self, identity: str, record: Mapping[str, object]) -> Job:
        return Job(identity, self.files.steps, self.git, self.now, self.theirs, self.base, record)


class Planner:
    """Plans taking back a list of operations' own changes from the state of now."""

    def __init__(self, place: Place, now: ObjectId | None) -> None:
        self.place = place
        self.now = Snapshot(place.odb, now)
        self.now_id = now
        self._values: dict[tuple[ObjectId | None, bytes], GitValue] = {}
        self._foreign: dict[tuple[ObjectId | None, bytes], bool] = {}

    def changes_anything(self, pieces: Sequence[Piece]) -> bool:
        """Whether there is anything in the pieces that undo would ever set back (a fetch or a gc changes only what it never does)."""
        members = self._members(pieces)
        made = {path for member in members for path in self._made_by_git(member)}
        if any(path not in made for piece in pieces for path in self._file_paths(piece, members, None)):
            return True
        for piece in pieces:
            for member in members:
                before, after = (_without_remotes(self._value(tree, member)) for tree in (piece.before, piece.after))
                if before != after:
                    return True
        return any(self._logs(member, pieces) or self._worktree_notes(member, pieces) for member in members)

    def plan(self, pieces: Sequence[Piece], *, only: Sequence[bytes] | None = None, with_git: bool = True) -> Whole:
        """``pieces`` oldest first; with ``only`` just the paths at or below those, and no git state."""
        members = self._members(pieces) if with_git and only is None else []
        broken = [member for member in members if self._is_broken(member, pieces)]
        unbroken = [member for member in members if self._was_ruin(member, pieces)]
        members = [member for member in members if member not in broken and member not in unbroken]
        files = FilePlanner(self.place.odb, self.now_id, self._merge())
        own = {path for member in (*members, *broken, *unbroken) for path in self._made_by_git(member)}
        own |= {member.own + b"/index" for member in unbroken}
        chosen = [
            replace(piece, paths=tuple(p for p in self._file_paths(piece, members, only) if p not in own)) for piece in pieces
        ]
        plan = files.plan(chosen, self._branch_rule(pieces) if only is None else lambda *_: None)
        git: list[tuple[MemberPlace, GitPlan]] = []
        kept = frozenset(step.path for step in plan.steps if step.verb == KEPT)
        held: set[bytes] = set()
        git.extend(
            (member, self._held_up(member) or GitPlan(member.path, GitValue(False), GitValue(True), repair=True))
            for member in broken
        )
        for member in members:
            git_plan = self._held_up(member) or self._plan_member(member, pieces, kept)
            if git_plan.lay_back and self._is_foreign_format(pieces[0].before, member):
                note = "the objects of a sha256 repository are in no snapshot; what was pushed comes back with: git fetch"
                git_plan = replace(git_plan, kept=(*git_plan.kept, note))
            if not (git_plan.lay_back or git_plan.take_away or git_plan.stays):
                git_plan = replace(
                    git_plan, kept=(*git_plan.kept, *self._worktree_notes(member, pieces)), logs=self._logs(member, pieces)
                )
            held |= git_plan.held_paths
            if git_plan.acts or git_plan.kept:
                git.append((member, git_plan))
        plan = self._keep_used_repositories(plan, git)
        if held:
            plan = replace(
                plan,
                steps=tuple(
                    Step(s.path, KEPT, s.ours, s.ours, "goes with the branch switch that stays")
                    if s.path in held and s.acts
                    else s
                    for s in plan.steps
                ),
            )
        laid = tuple(member.top for member, item in git if item.lay_back or item.take_away)
        if laid:
            plan = replace(
                plan,
                steps=tuple(
                    s
                    for s in plan.steps
                    if not (s.path + b"/").startswith(tuple(place + b"/" for place in laid))
                    and not (s.path.startswith(b"/") and any(place.startswith(s.path + b"/") for place in laid))
                ),
            )
        return Whole(
            self._plain(plan), tuple(git), self.now_id, pieces[0].before if pieces else None, pieces[-1].after if pieces else None
        )

    def _keep_used_repositories(self, plan: Plan, git: Sequence[tuple[MemberPlace, GitPlan]]) -> Plan:
        """A repository of the agent's that stays, because the user works in it, stays whole."""
        tops = tuple(member.top + b"/" for member, item in git if item.stays)
        below = tuple(member.path + b"/" if member.path else b".git/" for member, item in git if item.stays)
        if not tops:
            return plan
        steps = []
        for step in plan.steps:
            if step.path.startswith(tops) or step.path + b"/" in tops:
                continue
            if (step.path.startswith(below) or step.path + b"/" in below) and step.acts:
                step = Step(step.path, KEPT, step.ours, step.ours, "its repository stays")
            steps.append(step)
        return replace(plan, steps=tuple(steps))

    # -- which

    def _file_paths(self, piece: Piece, members: Sequence[MemberPlace], only: Sequence[bytes] | None) -> Iterable[bytes]:
        away = [member for member in members if not self._is_seen(piece, member)]
        unseen = tuple(place + b"/" for member in away for place in (member.own, member.common))
        for path in piece.paths:
            if unseen and (path + b"/").startswith(unseen):
                continue
            if only is not None:
                if any(path == chosen or path.startswith(chosen + b"/") or not chosen for chosen in only):
                    yield path
                continue
            passing = path.rpartition(b"/")[2] in GIT_FILES_NEVER_UNDONE and b".git/" in path
            if not passing and (not any(state_files(member, path) for member in members) or self._is_plain(piece, members, path)):
                yield path

    def _is_seen(self, piece: Piece, member: MemberPlace) -> bool:
        """Whether both snapshots of a piece tell of the git directory.

        One that lies in no `.git` of the workspace is only seen while a `.git` leads to it: where the piece brought or took that
        `.git`, the directory was there before and stays, unless it is known to have gone.
        """
        if not member.top.startswith(b"/") and b".git" in member.top.split(b"/"):
            return True
        before, after = Snapshot(self.place.odb, piece.before), Snapshot(self.place.odb, piece.after)
        places = [member_place(snapshot, self.place.root, member.path) for snapshot in (before, after)]
        return places[0] == places[1] or (places[0] == member and after.state(member.top) == ABSENT)

    def _made_by_git(self, member: MemberPlace) -> set[bytes]:
        """Paths that come back with what git is told; not a file or a link in the place of the objects."""
        objects = member.common + b"/objects"
        state = self.now.state(objects)
        is_folder = not isinstance(state, Present) or state.kind == "dir"
        return {member.common + b"/info/refs", objects} if is_folder else {member.common + b"/info/refs"}

    def _is_plain(self, piece: Piece, members: Sequence[MemberPlace], path: bytes) -> bool:
        """Whether a file of git's state is set back as a file all the same: only its mode changed, or it holds no ref git could move."""
        before, after = (Snapshot(self.place.odb, tree).state(path) for tree in (piece.before, piece.after))
        if isinstance(before, Present) and isinstance(after, Present) and (before.kind, before.oid) == (after.kind, after.oid):
            return True
        for member in members:
            if self._is_foreign_format(self.now_id, member):
                continue
            name = path.removeprefix(member.common + b"/")
            if name.startswith(b"worktrees/") and name.endswith((b"/gitdir", b"/locked")):
                head = path.rpartition(b"/")[0] + b"/HEAD"  # else the whole directory came or went
                return all(isinstance(Snapshot(self.place.odb, tree).state(head), Present) for tree in (piece.before, piece.after))
            broken = {member.common + b"/" + name for name in self._value(self.now_id, member).broken}
            single = {member.file(name) for name in STATE_FILES}
            kinds = {state.kind if isinstance(state, Present) else "" for state in (before, after)}
            odd = SPECIAL in (before, after) or "dir" in kinds or ("link" in kinds and len(kinds) > 1)
            if path in broken or (path in single and odd):
                return True
        return False

    def _is_broken(self, member: MemberPlace, pieces: Sequence[Piece]) -> bool:
        """Whether the agent left a git directory that is there but no repository any more (HEAD or objects removed, say)."""
        before = Snapshot(self.place.odb, pieces[0].before)
        return (
            is_repository(before, member)
            and not is_repository(self.now, member)
            and isinstance(self.now.state(member.top), Present)
        )

    def _was_ruin(self, member: MemberPlace, pieces: Sequence[Piece]) -> bool:
        """Whether taking back leads to a git directory that lacked a part: then each file is decided for itself, the rest stays."""
        before = Snapshot(self.place.odb, pieces[0].before)
        return not is_repository(before, member) and isinstance(before.state(member.top), Present)

    @cached_property
    def _special(self) -> list[bytes]:
        return [path for path, state in self.now.not_covered() if state == SPECIAL]

    @property
    def _log(self) -> OpLog:
        return OpLog(self.place.odb, self.place.store_dir, self.place.chain, lambda: 0)

    def _held_up(self, member: MemberPlace) -> GitPlan | None:
        """The plan that leaves all git state, where git would wait for ever at a FIFO in the place of one of its files."""
        for path in self._special:
            name = next((path[len(top) + 1 :] for top in (member.own, member.common) if path.startswith(top + b"/")), b"")
            if name.split(b"/")[0] in READ_BY_GIT:
                text = os.fsdecode(path)
                note = f"git state stays: {text} is a pipe, socket or device; remove it, then: git safety undo"
                return GitPlan(member.path, GitValue(False), GitValue(False), kept=(note,))
        if is_repository(self.now, member) and self._is_foreign_format(self.now_id, member):
            note = "git state stays: no snapshot holds the objects of a sha256 repository"
            return GitPlan(member.path, GitValue(False), GitValue(False), kept=(note,))
        return None

    def _is_foreign_format(self, tree: ObjectId | None, member: MemberPlace) -> bool:
        """Whether it is a sha256 repository."""
        key = (tree, member.common)
        if key not in self._foreign:
            config: Mapping[str, bytes] = {}
            with suppress(ConfigBroken):
                config = parse_config(self._read(Snapshot(self.place.odb, tree), member.file(b"config")))
            self._foreign[key] = config.get("extensions.objectformat", b"sha1").lower() != b"sha1"
        return self._foreign[key]

    def _members(self, pieces: Sequence[Piece]) -> list[MemberPlace]:
        """Members whose git state some piece touched, outer ones first."""
        found: dict[bytes, MemberPlace] = {}
        for piece in pieces:
            snapshots = [Snapshot(self.place.odb, piece.before), Snapshot(self.place.odb, piece.after)]
            touched = set(changed_indexes(self.place.odb, piece.before, piece.after))
            touched |= {
                path[: path.find(b".git")].rstrip(b"/")
                for path in piece.paths
                if b".git" in path.split(b"/") and not path.startswith(b"/")
            }
            if any(path.startswith(b"/") or b".git/modules/" in path for path in piece.paths):
                touched |= {member for snapshot in snapshots for member in snapshot.members()}
            for name in touched:
                for snapshot in snapshots:
                    place = member_place(snapshot, self.place.root, name)
                    if place is not None and is_repository(snapshot, place):
                        found.setdefault(name, place)
        # two folders may lead to one directory, one after the other (`git worktree move`) or both
        first = Snapshot(self.place.odb, pieces[0].before if pieces else None)
        by_own: dict[bytes, MemberPlace] = {}
        for place in sorted(found.values(), key=lambda place: (member_place(first, self.place.root, place.path) != place, place.path)):
            by_own.setdefault(place.own, place)
        return sorted(by_own.values(), key=lambda place: place.path)

    def _logs(self, member: MemberPlace, pieces: Sequence[Piece]) -> dict[bytes, tuple[bytes, bytes]]:
        """Reflogs are append-only: one that the agent cut or deleted gets its lines back, under what was appended since."""
        found: dict[bytes, tuple[bytes, bytes]] = {}
        for path in sorted({path for piece in pieces for path in piece.paths}):
            inside = path.startswith((member.own + b"/logs/", member.common + b"/logs/"))
            if not inside or path.endswith(b"/" + STASH_LOG):
                continue
            now = lines = left = self._read(self.now, path)
            for piece in reversed(pieces):
                if path in piece.paths and self._is_seen(piece, member):
                    before, after = (self._read(Snapshot(self.place.odb, tree), path) for tree in (piece.before, piece.after))
                    if not after.startswith(before) and lines.startswith(after):
                        lines, left = before + lines[len(after) :], after
            if lines != now:
                found[path] = (lines[: len(lines) - len(now) + len(left)], left)
        return found

    def _worktree_notes(self, member: MemberPlace, pieces: Sequence[Piece]) -> list[str]:
        """Linked work trees outside the workspace that came or went, whose files are in no snapshot of it."""
        before, after = Snapshot(self.place.odb, pieces[0].before), Snapshot(self.place.odb, pieces[-1].after)
        prefix = member.common + b"/worktrees/"
        names = {path[len(prefix) :].split(b"/")[0] for piece in pieces for path in piece.paths if path.startswith(prefix)}
        return [
            WORKTREE_NOTES[change.became].format(os.fsdecode(change.folder))
            for change in worktree_changes(before, after, member.common, names)
            if change.became in WORKTREE_NOTES and not change.folder.startswith(self.place.root + b"/")
        ]

    @staticmethod
    def _read(snapshot: Snapshot, path: bytes) -> bytes:
        try:
            return snapshot.read(path)
        except KeyError:
            return b""

    # -- git

    def _value(self, tree: ObjectId | None, member: MemberPlace) -> GitValue:
        key = (tree, member.path)
        if key not in self._values:
            snapshot = Snapshot(self.place.odb, tree)
            exists = is_repository(snapshot, member)
            self._values[key] = read_value(snapshot, self._as_it_was(snapshot, member)) if exists else GitValue(False)
        return self._values[key]

    def _as_it_was(self, snapshot: Snapshot, member: MemberPlace) -> MemberPlace:
        """The member, or the one that had its git directory in a snapshot: a work tree may be moved."""
        paths = snapshot.members()
        if member.path in paths:
            return member
        places = (member_place(snapshot, self.place.root, path) for path in paths)
        return next((place for place in places if place is not None and place.own == member.own), member)

    def _has_work_tree(self, snapshot: Snapshot, member: MemberPlace) -> bool:
        return member_place(snapshot, self.place.root, self._as_it_was(snapshot, member).path) is not None

    def _plan_member(self, member: MemberPlace, pieces: Sequence[Piece], kept: frozenset[bytes]) -> GitPlan:
        last = pieces[-1]
        pieces = [piece for piece in pieces if self._is_seen(piece, member)]
        if not pieces:
            is_used = member.own != member.common and any(self._since(member.own, last))
            notes = ("the work tree the agent made has changes of yours; it stays",) if is_used else ()
            return GitPlan(member.path, GitValue(True), GitValue(True), kept=notes, stays=is_used)
        trees = [tree for piece in pieces for tree in (piece.before, piece.after)] + [self.now_id]
        values = {tree: self._value(tree, member) for tree in trees}
        for tree in (tree for tree, value in values.items() if PACKED_REFS in value.broken):
            # comes back as a file, if the user did not mend it; what else happened to refs is seen without it
            whole = Snapshot(self.place.odb, pieces[0].before)
            values[tree] = read_value(Snapshot(self.place.odb, tree), member, packed_refs=whole)
        if any(value.exists and not self._has_work_tree(Snapshot(self.place.odb, tree), member) for tree, value in values.items()):
            # the work tree was removed but not its git directory (a submodule): its index was not looked at then
            values = {tree: replace(value, index={}, raw_index=None) for tree, value in values.items()}
        if len(pieces) >= 1 and self._was_replaced(member, pieces[0].before, pieces[-1].after):
            now, old, new = (values[tree] for tree in (self.now_id, pieces[0].before, pieces[-1].after))
            return replace_repository(member.path, now, old, new, was_used=self._was_used(member, pieces[-1]))
        sides = [(values[piece.before], values[piece.after]) for piece in pieces]
        return plan_git(
            member.path, values[self.now_id], [side for side in sides if side[0] != side[1]], self._around(member, kept, pieces)
        )

    def _was_replaced(self, member: MemberPlace, before: ObjectId | None, after: ObjectId) -> bool:
        """Whether the agent put another repository in the place of the old one (``rm -rf .git; git init``), by HEAD's logs."""
        old, new = (self._read(Snapshot(self.place.odb, tree), member.own + b"/logs/HEAD") for tree in (before, after))
        first = new.partition(b"\n")[0]
        if not old or not first.startswith(NULL_HEX) or first in old:
            return False
        # logs that were cut begin anew as well
        was, is_now = self._value(before, member).commit, self._value(after, member).commit
        return not (was and is_now and (self._is_ancestor(was, is_now) or self._is_ancestor(is_now, was)))

    def _was_used(self, member: MemberPlace, last: Piece) -> bool:
        """Whether a git directory has anything, an object that nothing names too, which it had not at the end of a piece."""
        if any(self._since(member.top, last)):
            return True
        record = self._log.find(last.operation)
        objects = absolute_path(self.place.root, member.common) + b"/objects"
        if record is None or not objects.startswith(absolute_path(self.place.root, member.top) + b"/"):
            return False
        return any(made_ns > record.time_ms * 1_000_000 for made_ns in loose_times_ns(objects))

    def _since(self, top: bytes, last: Piece) -> Iterable[bytes]:
        """Paths in a git directory that have changed since a piece."""
        for path in changes(self.place.odb, last.after, self.now_id, ("git",)):
            if path.startswith(top + b"/") and path.rpartition(b"/")[2] not in GIT_FILES_NEVER_UNDONE:
                yield path

    def _around(self, member: MemberPlace, kept: frozenset[bytes], pieces: Sequence[Piece]) -> Surroundings:
        common = absolute_path(self.place.root, member.common)
        elsewhere = self._branches_elsewhere(member, pieces[0].before) if os.path.isdir(common) else frozenset()
        root = self.place.root + b"/" + member.path if member.path else self.place.root
        prefix = member.path + b"/" if member.path else b""
        return Surroundings(
            elsewhere=elsewhere,
            elsewhere_then=self._branches_elsewhere_then(member, pieces[0].before, pieces[-1].after),
            is_ancestor=self._is_ancestor,
            paths_differ=lambda a, b: frozenset(
                prefix + path
                for path in tree_difference(self.place.odb, commit_tree(self.place.odb, a), commit_tree(self.place.odb, b))
            ),
            was_stashed_here=lambda entry: self._was_head(member, entry),
            is_pushed=lambda commit: (
                self._is_pushed(member, commit, pieces[0].before) or self._push_seen(member, commit, pieces[0])
            ),
            committed=lambda path: tree_entry(
                self.place.odb, commit_tree(self.place.odb, self._value(self.now_id, member).commit), path
            ),
            kept_paths=kept,
            was_used=lambda: self._was_used(member, pieces[-1]),
            jj=os.path.isdir(root + b"/.jj"),
        )

    def _was_head(self, member: MemberPlace, entry: bytes) -> bool:
        """Whether a stash entry's first parent was ever this work tree's HEAD, by its log."""
        try:
            parents = self.place.odb.read_commit(bytes.fromhex(entry.decode())).parents
        except (ObjectMissing, ObjectCorrupt, ValueError):
            return True
        heads = self._read(self.now, member.own + b"/logs/HEAD")
        return not heads or not parents or parents[0].hex().encode() in heads

    def _branches_elsewhere(self, member: MemberPlace, before: ObjectId | None) -> frozenset[bytes]:
        """Branches that other work trees have checked out; not those of work trees in here that the agent made and that will go."""
        common, own = absolute_path(self.place.root, member.common), absolute_path(self.place.root, member.own)
        old = Snapshot(self.place.odb, before)
        found: set[bytes] = set()
        for head in other_worktrees(common, own):
            admin = captured_path(self.place.root, head.git_dir)
            folder = self._read(self.now, admin + b"/gitdir").strip()
            if folder.startswith(self.place.root + b"/") and old.state(admin) == ABSENT:
                continue
            found.update(head.branches)
        return frozenset(found)

    def _branches_elsewhere_then(self, member: MemberPlace, before: ObjectId | None, after: ObjectId) -> frozenset[bytes]:
        """Branches that other work trees had checked out, by their HEAD files; not those of work trees that the agent made in here."""
        old, snapshot = Snapshot(self.place.odb, before), Snapshot(self.place.odb, after)
        heads = [member.common + b"/HEAD"] if member.own != member.common else []
        for name in snapshot.git_files(member.common):
            if (
                name.startswith(b"worktrees/")
                and name.endswith(b"/HEAD")
                and name.count(b"/") == 2
                and member.common + b"/" + name[:-5] != member.own
            ):
                admin = member.common + b"/" + name[: -len(b"/HEAD")]
                inside = self._read(snapshot, admin + b"/gitdir").strip().startswith(self.place.root + b"/")
                if not (inside and old.state(admin) == ABSENT):
                    heads.append(member.common + b"/" + name)
        texts = (self._read(snapshot, head) for head in heads)
        return frozenset(text[5:].strip() for text in texts if text.startswith(b"ref:"))

    def _is_ancestor(self, first: bytes, second: bytes) -> bool:
        if first == second:
            return True
        done = self.place.git.store(
            self.place.store_dir, ["merge-base", "--is-ancestor", first, second], check=False, deadline_s=60
        )
        return done.returncode == 0

    def _is_pushed(self, member: MemberPlace, commit: bytes, before: ObjectId | None) -> bool:
        """Whether a commit is in a remote-tracking ref because it was pushed from here; what was fetched may leave a branch again."""
        value = self._value(self.now_id, member)
        for ref, tip in value.refs.items():
            if not ref.startswith(REMOTES) or not self._is_ancestor(commit, tip):
                continue
            lines = self._read(self.now, member.file(b"logs/" + ref)).splitlines()[-LOG_LINES:]
            arrival = next((line for line in lines if self._is_ancestor(commit, line[41:81])), None)
            if arrival is not None:
                if PUSHED in arrival.partition(b"\t")[2]:
                    return True
                continue
            old = self._value(before, member).refs.get(ref)
            if old is None or not self._is_ancestor(commit, old):
                return True
        return False

    def _push_seen(self, member: MemberPlace, commit: bytes, since: Piece) -> bool:
        """Whether a branch held a commit when a call since then was seen to push: by URL or to a fork no ref tells (redteam C7)."""
        for operation in self._log.walk():
            if operation.record.pushed:
                value = self._value(operation.tree, member)
                tips = {value.commit, *(tip for ref, tip in value.refs.items() if ref.startswith(b"refs/heads/"))}
                if any(tip and self._is_ancestor(commit, tip) for tip in tips):
                    return True
            if operation.id == since.operation:
                break
        return False

    def _branch_rule(self, pieces: Sequence[Piece]) -> Callable[[bytes, PathState], str | None]:
        """Redteam E1: after the user switched branches, a path that equals the new HEAD's entry belongs to that branch."""
        rules: list[tuple[bytes, str, ObjectId | None]] = []
        last = pieces[-1].after if pieces else None
        for name in [b"", *self.now.members()]:
            place = member_place(self.now, self.place.root, name)
            if place is None or any(rule[0] == name for rule in rules):
                continue
            now, base = self._head(self.now_id, place), self._head(last, place)
            if now.exists and base.exists and now.head != base.head:
                label = now.branch.removeprefix(b"refs/heads/").decode("utf-8", "replace") if now.branch else "the commit"
                rules.append((name, label, commit_tree(self.place.odb, now.commit)))
        rules.sort(key=lambda rule: -len(rule[0]))

        def belongs(path: bytes, state: PathState) -> str | None:
            for name, label, tree in rules:
                if name and not path.startswith(name + b"/"):
                    continue
                if b".git" in path.split(b"/"):
                    return None
                entry = tree_entry(self.place.odb, tree, path[len(name) + 1 :] if name else path)
                if entry is None:
                    return label if state == ABSENT else None
                same = isinstance(state, Present) and state.oid == entry[1] and (state.kind == "link") == (entry[0] == 0o120000)
                return label if same else None
            return None

        return belongs

    def _head(self, tree: ObjectId | None, member: MemberPlace) -> GitValue:
        snapshot = Snapshot(self.place.odb, tree)
        return read_value(snapshot, member, with_index=False) if is_repository(snapshot, member) else GitValue(False)

    # -- content

    def _merge(self) -> Merge:
        odb, git = self.place.odb, self.place.git

        def merge(base: ObjectId, ours: ObjectId, theirs: ObjectId) -> ObjectId | None:
            merged = merge_text(git, _content(odb, base), _content(odb, ours), _content(odb, theirs))
            return None if merged is None else odb.write("blob", merged)

        return merge

    def _plain(self, plan: Plan) -> Plan:
        """Steps on big git files name their content as one blob, as it is on disk, not as the chunks it is stored in."""
        steps = []
        for step in plan.steps:
            ours, target = self._blob(step.ours), self._blob(step.target)
            steps.append(step if ours is step.ours and target is step.target else replace(step, ours=ours, target=target))
        return replace(plan, steps=tuple(steps))

    def _blob(self, state: PathState) -> PathState:
        if not isinstance(state, Present) or state.kind != "file" or self.place.odb.header(state.oid)[0] != "tree":
            return state
        return replace(state, oid=self.place.odb.write("blob", _content(self.place.odb, state.oid)))


def _content(odb: ObjectStore, oid: ObjectId) -> bytes:
    return read_text(odb, oid) if odb.header(oid)[0] == "tree" else odb.blob(oid)


def _without_remotes(value: GitValue) -> GitValue:
    return replace(value, refs={ref: oid for ref, oid in value.refs.items() if not ref.startswith(REMOTES)})


def commit_tree(odb: ObjectStore, commit: bytes | None) -> ObjectId | None:
    """The tree of a user's commit (hex) in the store, None for no commit or one the store lacks."""
    if not commit:
        return None
    try:
        return odb.read_commit(bytes.fromhex(commit.decode())).tree
    except (ObjectMissing, ObjectCorrupt, ValueError):
        return None


def tree_entry(odb: ObjectStore, tree: ObjectId | None, path: bytes) -> tuple[int, ObjectId] | None:
    """Mode and id of a path in one of the user's own trees."""
    found: tuple[int, ObjectId] | None = (0o40000, tree) if tree is not None else None
    for part in path.split(b"/"):
        if found is None or found[0] != 0o40000:
            return None
        try:
            items = parse_tree(odb.tree(found[1]))
        except (ObjectMissing, ObjectCorrupt):
            return None
        found = next(((mode, oid) for mode, name, oid in items if name == part), None)
    return found


def tree_difference(odb: ObjectStore, first: ObjectId | None, second: ObjectId | None, prefix: bytes = b"") -> Iterable[bytes]:
    """Paths that differ between two of the user's own trees."""
    if first == second:
        return
    try:
        old = {name: (mode, oid) for mode, name, oid in parse_tree(odb.tree(first))} if first else {}
        new = {name: (mode, oid) for mode, name, oid in parse_tree(odb.tree(second))} if second else {}
    except (ObjectMissing, ObjectCorrupt):
        return
    for name in sorted({*old, *new}):
        left, right = old.get(name), new.get(name)
        if left == right:
            continue
        below = [side[1] if side is not None and side[0] == 0o40000 else None for side in (left, right)]
        if any(below):
            yield from tree_difference(odb, below[0], below[1], prefix + name + b"/")
        if any(side is not None and side[0] != 0o40000 for side in (left, right)):
            yield prefix + name


def piece_of(odb: ObjectStore, operation: str, before: ObjectId | None, after: ObjectId, owns: Callable[[bytes], bool]) -> Piece:
    """The piece of an operation with the changed paths that ``owns`` accepts, all areas."""
    return Piece(operation, before, after, tuple(path for path in changes(odb, before, after) if owns(path)))
