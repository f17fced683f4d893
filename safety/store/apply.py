"""Carrying a plan out, so that a death at any point loses nothing and the next command finishes by itself.

The journal holds the whole plan: for every path and ref what must be there (ours) and what is to be there (target). It is synced before
the first file is touched and goes away after the operation is recorded. Recovery reads it against *now*: equal to target is done, equal
to ours is still to do, anything else was changed since and is kept. It never rolls back.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from safety.faults import SafetyError
from safety.plumbing.index import (
    IndexCorrupt,
    IndexEntry,
    IndexFile,
    IndexUnsupported,
    changed,
    forget_racy_stat,
    parse_index,
    serialize_index,
)
from safety.plumbing.odb import hash_object
from safety.plumbing.refs import (
    NULL_HEX,
    RefTransaction,
    RefUpdate,
    StashEntry,
    object_ids,
    set_head,
    split_df,
    view_on_disk,
    write_stash,
)
from safety.store.anchors import send_back
from safety.store.exchange import Exchanger, Moved
from safety.store.files import TEMPORARY_PREFIX, Tree, state_of
from safety.store.gitstate import GitPlan, GitValue, Group
from safety.store.members import MemberPlace, absolute_path, member_place
from safety.store.place import Place
from safety.store.restore import KEPT, MERGED, REMOVED, RESTORED, Step
from safety.store.snapshot import Snapshot
from safety.types import ABSENT, Absent, ObjectId, PathState, Present, Unknown

JOURNAL_VERSION = 1


class UndoRefused(SafetyError):
    """Nothing was changed, because it could not be done safely (a lock, a full disk, a missing object)."""

    code = "undo-refused"


class UndoInterrupted(SafetyError):
    """It stopped half-way; the journal is kept, and ``recover`` or the next undo finishes."""

    code, exit_code = "undo-interrupted", 3


@dataclass(frozen=True)
class Job:
    """One plan on its way: its id, the file steps, the git plans with the places they act on, and what the record will say."""

    id: str
    steps: tuple[Step, ...]
    git: tuple[tuple[MemberPlace, GitPlan], ...]
    now: ObjectId | None
    theirs: ObjectId | None
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    """What was really done: the steps as they ended, sentences about git, and the paths to capture anew."""

    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    @property
    def touched(self) -> list[bytes]:
        return [step.path for step in self.steps if step.acts]


# -- the journal -----------------------------------------------------------------------------------------------------------------


def journal_file(place: Place) -> Path:
    return place.state / "journal.json"


def write_journal(place: Place, job: Job, locks: Mapping[str, Sequence[int]]) -> None:
    """Makes the journal durable before anything is touched."""
    raw = {"v": JOURNAL_VERSION, "locks": {key: list(value) for key, value in locks.items()}, **_encode_job(job)}
    path = journal_file(place)
    temporary = path.with_suffix(".tmp")
    with open(temporary, "w", encoding="ascii") as file:
        json.dump(raw, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(path.parent)


def read_journal(place: Place) -> tuple[Job, dict[str, list[int]]] | None:
    """The job that was interrupted, or None. Raises UndoRefused when the journal cannot be read."""
    try:
        raw = json.loads(journal_file(place).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as fault:
        raise UndoRefused(f"the journal of an interrupted undo cannot be read: {fault}", "git safety doctor") from fault
    if raw.get("v") != JOURNAL_VERSION:
        raise UndoRefused("an interrupted undo was written by another version of git-safety", "upgrade git-safety, then try again")
    return _decode_job(raw), raw["locks"]


def remove_journal(place: Place) -> None:
    journal_file(place).unlink(missing_ok=True)
    _sync_folder(place.state)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _b(data: bytes) -> str:
    return data.decode("latin-1")


def _u(text: str) -> bytes:
    return text.encode("latin-1")


def _unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _encode_state(state: PathState) -> list[Any]:
    if isinstance(state, Present):
        return ["p", state.kind, state.mode, state.oid.hex(), list(state.inode) if state.inode else None]
    return ["a"] if isinstance(state, Absent) else ["u", state.reason, state.size, state.mtime_ns]


def _decode_state(raw: list[Any]) -> PathState:
    if raw[0] == "p":
        return Present(raw[1], raw[2], bytes.fromhex(raw[3]), (raw[4][0], raw[4][1]) if raw[4] else None)
    return ABSENT if raw[0] == "a" else Unknown(raw[1], raw[2], raw[3])


def _encode_group(group: Group) -> list[Any]:
    return [[_b(e.path), e.stage, e.mode, e.oid.hex(), e.flags] for e in group]


def _decode_group(raw: list[Any]) -> Group:
    return tuple(IndexEntry(_u(path), stage, mode, bytes.fromhex(oid), flags) for path, stage, mode, oid, flags in raw)


def _encode_value(value: GitValue) -> dict[str, Any]:
    return {"exists": value.exists, "head": _b(value.head), "refs": {_b(k): _b(v) for k, v in value.refs.items()},
            "stash": [[_b(entry.oid), _b(entry.line)] for entry in value.stash]}


def _decode_value(raw: dict[str, Any]) -> GitValue:
    return GitValue(raw["exists"], _u(raw["head"]), {_u(k): _u(v) for k, v in raw["refs"].items()},
                    stash=tuple(StashEntry(_u(oid), _u(line)) for oid, line in raw["stash"]))


def _encode_job(job: Job) -> dict[str, Any]:
    git = []
    for place, plan in job.git:
        git.append({
            "place": [_b(place.path), _b(place.own), _b(place.common)], "now": _encode_value(plan.now), "target": _encode_value(plan.target),
            "updates": [[_b(u.ref), _b(u.new), _b(u.old)] for u in plan.updates], "head": None if plan.head is None else _b(plan.head),
            "progress": {_b(k): [None if x is None else _b(x) for x in v] for k, v in plan.progress.items()},
            "stash": None if plan.stash is None else [[_b(e.oid), _b(e.line)] for e in plan.stash],
            "index": {_b(k): [_encode_group(v[0]), _encode_group(v[1])] for k, v in plan.index.items()},
            "raw_index": None if plan.raw_index is None else [base64.b64encode(x or b"").decode() if x is not None else None for x in plan.raw_index],
            "reuc": None if plan.reuc is None else [None if x is None else x.hex() for x in plan.reuc],
            "logs": {_b(k): [_b(v[0]), _b(v[1])] for k, v in plan.logs.items()},
            "lay_back": plan.lay_back,
                "repair": plan.repair, "take_away": plan.take_away, "notes": list(plan.notes), "kept": list(plan.kept),
        })
    return {
        "id": job.id, "now": job.now.hex() if job.now else None, "theirs": job.theirs.hex() if job.theirs else None, "record": dict(job.record),
        "steps": [[_b(s.path), s.verb, _encode_state(s.ours), _encode_state(s.target), s.note] for s in job.steps if s.acts], "git": git,
    }


def _decode_job(raw: dict[str, Any]) -> Job:
    steps = tuple(Step(_u(path), verb, _decode_state(ours), _decode_state(target), note) for path, verb, ours, target, note in raw["steps"])
    git = []
    for item in raw["git"]:
        place = MemberPlace(*(_u(part) for part in item["place"]))
        raw_index = item["raw_index"]
        git.append((place, GitPlan(
            place.path, _decode_value(item["now"]), _decode_value(item["target"]),
            tuple(RefUpdate(_u(ref), _u(new), _u(old)) for ref, new, old in item["updates"]),
            None if item["head"] is None else _u(item["head"]),
            {_u(k): (None if v[0] is None else _u(v[0]), None if v[1] is None else _u(v[1])) for k, v in item["progress"].items()},
            None if item["stash"] is None else tuple(StashEntry(_u(oid), _u(line)) for oid, line in item["stash"]),
            {_u(k): (_decode_group(v[0]), _decode_group(v[1])) for k, v in item["index"].items()},
            None if raw_index is None else (base64.b64decode(raw_index[0]), None if raw_index[1] is None else base64.b64decode(raw_index[1])),
            None if item["reuc"] is None else (_unhex(item["reuc"][0]), _unhex(item["reuc"][1])),
            {_u(k): (_u(v[0]), _u(v[1])) for k, v in item["logs"].items()},
            item["lay_back"], item["take_away"], item["repair"], tuple(item["notes"]), tuple(item["kept"]))))
    return Job(raw["id"], steps, tuple(git), bytes.fromhex(raw["now"]) if raw["now"] else None,
               bytes.fromhex(raw["theirs"]) if raw["theirs"] else None, raw["record"])


# -- recovery --------------------------------------------------------------------------------------------------------------------


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
    for lock, (device, inode) in locks.items():
        with contextlib.suppress(OSError):
            info = os.lstat(_u(lock))
            if (info.st_dev, info.st_ino) == (device, inode):
                os.unlink(_u(lock))


def remaining(place: Place, job: Job) -> Job:
    """The part of an interrupted job that is still to do: steps and refs that are already at their target are left out."""
    steps = []
    with Tree(place.root) as tree:
        for step in job.steps:
            state = state_of(tree, place.odb, step.path)
            if state == step.target:
                continue
            if isinstance(step.ours, Present) and isinstance(state, Absent) and _displaced_exists(tree, place, step, job.id):
                state = step.ours
            steps.append(step if state == step.ours else replace(step, verb=KEPT, target=state, ours=state, note="changed since the undo was interrupted"))
    git = tuple((member, _remaining_git(place, member, plan)) for member, plan in job.git)
    return replace(job, steps=tuple(steps), git=git)


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


def _remaining_git(place: Place, member: MemberPlace, plan: GitPlan) -> GitPlan:
    own, common = absolute_path(place.root, member.own), absolute_path(place.root, member.common)
    if plan.repair:
        return plan
    if plan.lay_back or plan.take_away:
        exists = os.path.lexists(own)
        return replace(plan, lay_back=plan.lay_back and not exists, take_away=plan.take_away and exists)
    if not os.path.isdir(own):
        return replace(plan, updates=(), head=None, progress={}, stash=None, index={}, raw_index=None)
    now = view_on_disk(own, common)
    updates = tuple(u for u in plan.updates if now.refs.get(u.ref, NULL_HEX) != u.new)
    moved = [u for u in updates if now.refs.get(u.ref, NULL_HEX) != u.old]
    if moved:
        return replace(plan, updates=(), head=None, progress={}, stash=None, index={}, raw_index=None,
                       kept=(*plan.kept, "refs moved since the undo was interrupted; they stay"))
    head = plan.head if plan.head is not None and now.head == plan.now.head else None
    progress = {name: pair for name, pair in plan.progress.items() if now.in_progress.get(name) == pair[0]}
    stash = plan.stash if plan.stash is not None and [e.oid for e in now.stash] == [e.oid for e in plan.now.stash] else None
    return replace(plan, updates=updates, head=head, progress=progress, stash=stash)


# -- carrying out ----------------------------------------------------------------------------------------------------------------


def carry_out(place: Place, job: Job, progress: Callable[[int, int], None] = lambda done, total: None) -> Outcome:
    """Acts on the plan. Raises UndoRefused (nothing changed, journal away) when a lock cannot be had or objects cannot be written."""
    runner = _Runner(place, job, progress)
    return runner.run()


class _Runner:
    def __init__(self, place: Place, job: Job, progress: Callable[[int, int], None]) -> None:
        self.place, self.job, self.progress = place, job, progress
        self.outcome = Outcome()
        self.locks: dict[str, Sequence[int]] = {}
        self.lock_fds: dict[bytes, int] = {}

    def run(self) -> Outcome:
        place, job = self.place, self.job
        laid = tuple(absolute_path(place.root, member.top) for member, plan in job.git if plan.lay_back)
        whole = [member for member, plan in job.git if plan.lay_back or plan.take_away or plan.repair]
        by_steps = [(member, plan) for member, plan in job.git if member not in whole and not self._under(member, laid)]
        # where the agent removed a submodule's folder, git cannot be asked about it before the folder is back
        early = [item for item in by_steps if os.path.isdir(self._member_root(item[0]))]
        late = [item for item in by_steps if item not in early]
        with contextlib.ExitStack() as stack:
            stack.callback(self._release_locks)
            try:
                self._take_locks(early)
                place.odb.sync()
                write_journal(place, job, self.locks)
                prepared = self._prepare_all(early, stack)
            except SafetyError as fault:
                remove_journal(place)
                raise UndoRefused(f"{fault.message}; nothing was changed", fault.hint or "git safety undo") from fault
            except OSError as fault:
                with contextlib.suppress(OSError):
                    remove_journal(place)
                raise UndoRefused(f"{fault.strerror}: nothing was changed", "free some space, then: git safety undo") from fault
            self._root_back()
            for member, plan in job.git:
                if plan.take_away:
                    self._take_away(member)
                elif plan.lay_back and not self._is_inside(member, laid):
                    self._lay_back(member, plan)
            self._files()
            for member, plan in job.git:
                if plan.repair:
                    self._repair(member)
            try:
                self._take_locks(late)
                prepared += self._prepare_all(late, stack)
            except (SafetyError, OSError) as fault:
                self.outcome.kept.append(f"git state of a submodule was not set back: {fault}")
                by_steps = early
            for member, plan in by_steps:
                self._progress_files(member, plan)
                self._index(member, plan)
            for transaction in prepared:
                transaction.commit()
            for member, plan in by_steps:
                self._rest_of_refs(member, plan)
                self._logs(plan)
            for _, plan in job.git:
                self.outcome.notes.extend(plan.notes)
                self.outcome.kept.extend(plan.kept)
        return self.outcome

    def _take_locks(self, members: Sequence[tuple[MemberPlace, GitPlan]]) -> None:
        """index.lock first: it stops the user's add, commit and checkout; then the objects that refs and index will name."""
        for member, plan in members:
            if plan.index or plan.raw_index or plan.reuc or plan.updates or plan.head is not None:
                self._lock_index(member)
        for member, plan in members:
            if plan.acts:
                self._send_objects(member, plan)

    def _prepare_all(self, members: Sequence[tuple[MemberPlace, GitPlan]], stack: contextlib.ExitStack) -> list[RefTransaction]:
        return [stack.enter_context(self._prepare(member, plan)) for member, plan in members if plan.updates]

    def _is_inside(self, member: MemberPlace, laid: tuple[bytes, ...]) -> bool:
        """Whether the git directory comes back as part of an outer one."""
        place = absolute_path(self.place.root, member.top)
        return any(place.startswith(other + b"/") for other in laid)

    def _under(self, member: MemberPlace, laid: tuple[bytes, ...]) -> bool:
        place = absolute_path(self.place.root, member.top)
        return any(place == other or place.startswith(other + b"/") for other in laid)

    def _member_root(self, member: MemberPlace) -> bytes:
        return self.place.root + b"/" + member.path if member.path else self.place.root

    # -- locks and objects

    def _lock_index(self, member: MemberPlace) -> None:
        path = absolute_path(self.place.root, member.own) + b"/index.lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError as fault:
            raise UndoRefused(f"git is at work here: {os.fsdecode(path)} exists", "wait for it, or remove that file if no git runs") from fault
        info = os.fstat(descriptor)
        self.lock_fds[member.own] = descriptor
        self.locks[_b(path)] = (info.st_dev, info.st_ino)

    def _release_locks(self) -> None:
        for own, descriptor in self.lock_fds.items():
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(absolute_path(self.place.root, own) + b"/index.lock")
        self.lock_fds.clear()

    def _send_objects(self, member: MemberPlace, plan: GitPlan) -> None:
        """Whatever the target names and the user's repository lacks, as one pack, before any ref names it (redteam C2)."""
        ids = {update.new for update in plan.updates if update.new != NULL_HEX}
        if plan.head is not None and not plan.head.startswith(b"ref:"):
            ids.add(plan.head)
        ids |= {entry.oid for entry in plan.stash or ()}
        ids |= {entry.oid.hex().encode() for _, group in plan.index.values() for entry in group if entry.mode != 0o160000}
        for _, content in plan.progress.values():
            if content is not None and len(content) >= 40:
                ids |= {word for word in content.split() if len(word) == 40 and all(c in b"0123456789abcdef" for c in word)}
        ids |= {oid for lines, _ in plan.logs.values() for oid in object_ids(lines)}
        known = {oid for oid in ids if self.place.odb.exists(bytes.fromhex(oid.decode()))}
        if known:
            send_back(
                self.place.git, self.place.odb, self.place.store_dir, self._member_root(member), known,
                objects_dir=absolute_path(self.place.root, member.common) + b"/objects",
            )

    def _prepare(self, member: MemberPlace, plan: GitPlan) -> RefTransaction:
        transaction = RefTransaction(self.place.git, self._member_root(member), f"git-safety: {self.job.id}")
        try:
            transaction.extend(self._batches(plan)[0])
            transaction.prepare()
        except BaseException:
            transaction.abort()
            raise
        return transaction

    def _batches(self, plan: GitPlan) -> list[list[RefUpdate]]:
        """Batches in order; a branch that HEAD leaves is deleted last, after HEAD points elsewhere."""
        leaving = plan.now.branch if plan.head is not None else None
        last = [u for u in plan.updates if u.new == NULL_HEX and u.ref == leaving]
        rest = [u for u in plan.updates if u not in last]
        if last and len(split_df([*rest, *last])) > 1:
            return split_df(plan.updates)
        batches = split_df(rest) or [[]]
        return [*batches, last] if last else batches

    def _rest_of_refs(self, member: MemberPlace, plan: GitPlan) -> None:
        root = self._member_root(member)
        message = f"git-safety: {self.job.id}"
        batches = self._batches(plan) if plan.updates else [[]]
        leaving = plan.now.branch if plan.head is not None else None
        try:
            for batch in batches[1:]:
                if not any(u.ref == leaving and u.new == NULL_HEX for u in batch):
                    self._transact(root, message, batch)
            if plan.head is not None:
                set_head(self.place.git, root, plan.head[5:].strip() if plan.head.startswith(b"ref:") else plan.head, message)
            for batch in batches[1:]:
                if any(u.ref == leaving and u.new == NULL_HEX for u in batch):
                    self._transact(root, message, batch)
            if plan.stash is not None:
                common = absolute_path(self.place.root, member.common)
                write_stash(self.place.git, root, common, plan.stash, plan.now.stash, message)
        except SafetyError as fault:
            self.outcome.kept.append(f"git refused: {fault.message}")

    def _transact(self, root: bytes, message: str, batch: Sequence[RefUpdate]) -> None:
        with RefTransaction(self.place.git, root, message) as transaction:
            transaction.extend(batch)
            transaction.commit()

    # -- files

    def _root_back(self) -> None:
        if os.path.lexists(self.place.root):
            return
        snapshot = Snapshot(self.place.odb, self.job.theirs)
        state = snapshot.state(b"")
        os.makedirs(self.place.root, exist_ok=True)
        if isinstance(state, Present) and state.kind == "dir":
            os.chmod(self.place.root, state.mode)

    def _files(self) -> None:
        acting = [step for step in self.job.steps if step.acts]
        self.outcome.steps.extend(step for step in self.job.steps if not step.acts)
        with Tree(self.place.root) as tree:
            hands = Exchanger(tree, self.place.odb, self.job.id)
            ordered = _in_order(acting)
            flushed = False
            for number, step in enumerate(ordered):
                if not flushed and not _is_removed_file(step):
                    self._drop_displaced(hands)  # or a folder that is to go would still hold what was moved aside in it
                    flushed = True
                self.outcome.steps.append(self._file(hands, step))
                if number % 64 == 0:
                    self.progress(number, len(ordered))
            self._drop_displaced(hands)
            self._modes_of_directories(tree, ordered)

    def _drop_displaced(self, hands: Exchanger) -> None:
        for path in hands.finish():
            self.outcome.kept.append(f"{os.fsdecode(path)} was written to while it was set back; that version is in the store")

    def _file(self, hands: Exchanger, step: Step) -> Step:
        try:
            self._parents(hands.tree, step)
            hands.put(step.path, step.ours, step.target)
        except Moved:
            now = state_of(hands.tree, self.place.odb, step.path)
            if now == step.target:
                return step
            return Step(step.path, KEPT, now, now, "changed while it was set back")
        except FileNotFoundError:
            if isinstance(step.target, Absent):
                return step
            return Step(step.path, KEPT, step.ours, step.ours, "its folder went away")
        except OSError as fault:
            if fault.errno in (errno.ENOSPC, errno.EDQUOT):
                raise UndoInterrupted("the disk is full; what was set back so far is set back", "free some space, then: git safety recover") from fault
            if fault.errno in (errno.ENOTEMPTY, errno.EEXIST) and isinstance(step.ours, Present) and step.ours.kind == "dir":
                return Step(step.path, KEPT, step.ours, step.ours, "holds files of yours")
            return Step(step.path, KEPT, step.ours, step.ours, f"could not be set back: {fault.strerror}")
        return step

    def _parents(self, tree: Tree, step: Step) -> None:
        """Makes missing directories above a path that is to exist; their modes follow when all files are in place."""
        if not isinstance(step.target, Present) or not step.path:
            return
        parent = step.path.rpartition(b"/")[0]
        try:
            tree.directory(parent or (b"/" if step.path.startswith(b"/") else b""))
            return
        except FileNotFoundError:
            pass
        parts = parent.split(b"/")
        for depth in range(1, len(parts) + 1):
            path = b"/".join(parts[:depth])
            if not path:
                continue
            folder, name = tree.parent(path)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=folder)

    def _modes_of_directories(self, tree: Tree, steps: Iterable[Step]) -> None:
        """Directory modes last, so that a read-only directory can be filled."""
        for step in steps:
            if step.verb != REMOVED and isinstance(step.target, Present) and step.target.kind == "dir":
                with contextlib.suppress(OSError):
                    os.chmod(tree.directory(step.path), step.target.mode)

    # -- git files

    def _progress_files(self, member: MemberPlace, plan: GitPlan) -> None:
        if not plan.progress:
            return
        with Tree(self.place.root) as tree:
            hands = Exchanger(tree, self.place.odb, self.job.id)
            for name, (old, new) in plan.progress.items():
                path = member.file(name)
                ours = self._content_state(tree, path, old)
                target = ABSENT if new is None else Present("file", ours.mode if isinstance(ours, Present) else 0o644, self.place.odb.write("blob", new))
                step = self._file(hands, Step(path, REMOVED if new is None else RESTORED, ours, target))
                if step.verb == KEPT:
                    self.outcome.kept.append(f"{os.fsdecode(name)} changed meanwhile; it stays")
            hands.finish()
            folders = {name.rpartition(b"/")[0] for name, (_, new) in plan.progress.items() if new is None and b"/" in name}
            for folder in sorted(folders, reverse=True):
                while folder:
                    with contextlib.suppress(OSError):
                        parent, base = tree.parent(member.file(folder))
                        os.rmdir(base, dir_fd=parent)
                    folder = folder.rpartition(b"/")[0]

    def _content_state(self, tree: Tree, path: bytes, content: bytes | None) -> PathState:
        state = state_of(tree, self.place.odb, path)
        if content is None:
            return ABSENT
        mode = state.mode if isinstance(state, Present) else 0o644
        return Present("file", mode, hash_object("blob", content))

    def _index(self, member: MemberPlace, plan: GitPlan) -> None:
        """Per path, on a fresh reading under index.lock: a group that is as planned gets its target, others keep their stat data."""
        if not plan.index and plan.raw_index is None and plan.reuc is None:
            return
        git_dir = absolute_path(self.place.root, member.own)
        path = git_dir + b"/index"
        if plan.raw_index is not None:
            data = plan.raw_index[1]
            current = _read(path)
            if (current or b"") != plan.raw_index[0]:
                self.outcome.kept.append("the index changed meanwhile; it stays")
                return
            if data is None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                return
        else:
            index = self._current_index(git_dir)
            if index is None:
                return
            groups = index.groups()
            for name, (ours, target) in plan.index.items():
                if tuple(entry.identity for entry in groups.get(name, ())) == tuple(entry.identity for entry in ours):
                    groups[name] = target
                elif tuple(e.identity for e in groups.get(name, ())) != tuple(e.identity for e in target):
                    self.outcome.kept.append(f"what is staged of {os.fsdecode(name)} changed meanwhile; it stays")
            entries = [entry for group in groups.values() for entry in group]
            with contextlib.suppress(FileNotFoundError):  # what the old file's mtime made racy, the new one must not vouch for
                entries = forget_racy_stat(entries, int(os.stat(path).st_mtime))
            index = changed(index, entries)
            if plan.reuc is not None and index.resolve_undo == plan.reuc[0]:
                index = replace(index, resolve_undo=plan.reuc[1])
            data = serialize_index(index)
            if index.was_split:
                self.outcome.notes.append("the index is written unsplit")
            if index.was_sparse:
                self.outcome.notes.append("the index is written expanded")
        descriptor = self.lock_fds.get(member.own)
        if descriptor is None:
            self._lock_index(member)
            descriptor = self.lock_fds[member.own]
        os.ftruncate(descriptor, 0)
        _write_all(descriptor, data)
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(descriptor, os.stat(path).st_mode & 0o777)
        os.fsync(descriptor)
        os.rename(git_dir + b"/index.lock", path)
        os.close(self.lock_fds.pop(member.own))

    def _current_index(self, git_dir: bytes) -> IndexFile | None:
        data = _read(git_dir + b"/index")
        if data is None:
            return IndexFile(2, [])

        def shared(name: str) -> bytes:
            return _read(git_dir + b"/sharedindex." + name.encode()) or b""

        try:
            return parse_index(data, shared_index=shared, read_tree=self.place.odb.tree)
        except (IndexUnsupported, IndexCorrupt) as fault:
            self.outcome.kept.append(f"the index cannot be read ({fault.message}); it stays")
            return None

    def _logs(self, plan: GitPlan) -> None:
        """Lines that were cut off a reflog go in front of what it holds now."""
        for path, (lines, left) in plan.logs.items():
            place = absolute_path(self.place.root, path)
            now = _read(place) or b""
            if now.startswith(lines) or not now.startswith(left):
                continue
            folder = os.path.dirname(place)
            try:
                os.makedirs(folder, exist_ok=True)
                temporary = folder + b"/" + TEMPORARY_PREFIX + self.job.id.encode() + b"-log"
                with open(temporary, "wb") as file:
                    file.write(lines + now[len(left) :])
                os.replace(temporary, place)
            except OSError as fault:
                self.outcome.kept.append(f"{os.fsdecode(path)}: {fault.strerror}")

    # -- whole git directories

    def _lay_back(self, member: MemberPlace, plan: GitPlan) -> None:
        """`rm -rf .git`: everything beside the old place first, then one rename (redteam C8)."""
        top = absolute_path(self.place.root, member.top)
        beside = top + b".safety-" + self.job.id.encode()
        if os.path.lexists(top):
            self.outcome.kept.append("a new .git is there now; the old one stays in the snapshot")
            return
        snapshot = Snapshot(self.place.odb, self.job.theirs)
        shutil.rmtree(beside, ignore_errors=True)
        os.makedirs(beside)
        modes: list[tuple[bytes, int]] = []
        for path, state in snapshot.walk(member.top, ("git",)):
            if not isinstance(state, Present):
                continue
            goal = beside + path[len(member.top) :]
            if state.kind == "dir":
                os.makedirs(goal, exist_ok=True)
                modes.append((goal, state.mode))
                continue
            os.makedirs(os.path.dirname(goal), exist_ok=True)
            if state.kind == "link":
                os.symlink(snapshot.read(path), goal)
                continue
            with open(goal, "wb") as file:
                file.write(snapshot.read(path))
            os.chmod(goal, state.mode)
        for root in _git_directories(beside):
            self._objects_back(root)
        self._indexes_back(member, beside, snapshot)
        for goal, mode in reversed(modes):
            os.chmod(goal, mode)
        os.makedirs(os.path.dirname(top), exist_ok=True)
        os.rename(beside, top)
        self.outcome.notes.append(f"{os.fsdecode(member.top)} laid back")

    def _repair(self, member: MemberPlace) -> None:
        """A git directory that lost a part git cannot do without: its files are back by now, objects and indexes follow."""
        common = absolute_path(self.place.root, member.common)
        snapshot = Snapshot(self.place.odb, self.job.theirs)
        for root in _git_directories(common):
            self._objects_back(root)
        self._indexes_back(member, common, snapshot)
        self.outcome.notes.append(f"{os.fsdecode(member.common)} repaired")

    def _objects_back(self, git_dir: bytes) -> None:
        for name in (b"objects/info", b"objects/pack", b"refs"):
            os.makedirs(git_dir + b"/" + name, exist_ok=True)
        seen = view_on_disk(git_dir, git_dir)
        ids = {*seen.refs.values(), *(entry.oid for entry in seen.stash)}
        for name in _log_files(git_dir):
            ids |= {word for line in (_read(name) or b"").splitlines() for word in line[:81].split()}
        for content in seen.in_progress.values():
            ids |= {word for word in content.split() if len(word) == 40}
        if not seen.head.startswith(b"ref:"):
            ids.add(seen.head)
        known = {oid for oid in ids if len(oid) == 40 and oid != NULL_HEX and self._known(oid)}
        if known:
            send_back(self.place.git, self.place.odb, self.place.store_dir, git_dir, known, laid_beside=Path(os.fsdecode(git_dir)))

    def _known(self, oid: bytes) -> bool:
        try:
            return self.place.odb.exists(bytes.fromhex(oid.decode()))
        except (ValueError, UnicodeDecodeError):
            return False

    def _indexes_back(self, member: MemberPlace, beside: bytes, snapshot: Snapshot) -> None:
        """The index of the member itself and of every submodule whose git directory lies inside the one laid back."""
        for path in snapshot.members():
            image = snapshot.index(path)
            found = member_place(snapshot, self.place.root, path)
            own = None if found is None else found.own
            if image is None or own is None or not (own == member.top or own.startswith(member.top + b"/")):
                continue
            goal = beside + own[len(member.top) :]
            if not os.path.isdir(goal):
                continue
            if image.raw is not None:
                data = image.raw
            else:
                entries = [IndexEntry(e.path, e.stage, e.mode, e.oid, e.flags) for e in image.entries]
                data = serialize_index(IndexFile(image.version, entries, image.reuc))
                blobs = {e.oid.hex().encode() for e in entries if e.mode != 0o160000 and self._known(e.oid.hex().encode())}
                if blobs:
                    send_back(self.place.git, self.place.odb, self.place.store_dir, goal, blobs, laid_beside=Path(os.fsdecode(goal)))
            if not os.path.lexists(goal + b"/index"):
                with open(goal + b"/index", "xb") as file:
                    file.write(data)

    def _take_away(self, member: MemberPlace) -> None:
        """The agent made this repository and nobody used it since: gone by one rename, then removed."""
        common = absolute_path(self.place.root, member.top)
        aside = common + b".safety-" + self.job.id.encode()
        try:
            os.rename(common, aside)
        except FileNotFoundError:
            return
        shutil.rmtree(aside, ignore_errors=True)
        self.outcome.notes.append(f"{os.fsdecode(member.top)} removed")


def _is_removed_file(step: Step) -> bool:
    return isinstance(step.target, Absent) and not (isinstance(step.ours, Present) and step.ours.kind == "dir")


def _in_order(steps: Sequence[Step]) -> list[Step]:
    """Removals of files, then of directories deepest first, then what is to exist, parents first."""
    removed = [s for s in steps if _is_removed_file(s)]
    folders = [s for s in steps if isinstance(s.target, Absent) and isinstance(s.ours, Present) and s.ours.kind == "dir"]
    exist = [s for s in steps if isinstance(s.target, Present)]
    swaps = [s for s in exist if isinstance(s.target, Present) and isinstance(s.ours, Present) and s.ours.kind == "dir" and s.target.kind != "dir"]
    others = [s for s in exist if s not in swaps] if swaps else exist
    return [*sorted(removed, key=lambda s: s.path), *sorted(folders, key=lambda s: s.path, reverse=True),
            *sorted(swaps, key=lambda s: s.path), *sorted(others, key=lambda s: s.path)]


def _git_directories(top: bytes) -> list[bytes]:
    """Git directories that have objects of their own, at or below ``top`` (submodules')."""
    found = []
    for folder, folders, files in os.walk(top):
        if b"HEAD" in files and (b"objects" in folders or b"refs" in folders) and b"commondir" not in files:
            found.append(folder)
        folders[:] = [name for name in folders if name not in (b"logs", b"objects", b"refs", b"hooks")]
    return found


def _log_files(git_dir: bytes) -> list[bytes]:
    """The logs of a git directory and of its linked work trees, not those of submodules below it."""
    tops = [git_dir + b"/logs"]
    with contextlib.suppress(OSError):
        tops += [git_dir + b"/worktrees/" + name + b"/logs" for name in os.listdir(git_dir + b"/worktrees")]
    return [folder + b"/" + name for top in tops for folder, _, files in os.walk(top) for name in files]


def _read(path: bytes) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


__all__ = ["MERGED", "Job", "Outcome", "UndoRefused", "carry_out", "journal_file", "read_journal", "remaining", "remove_journal", "sweep_temporaries"]
