"""Git state set back in a repository that is there: objects, refs, HEAD, stash, in-progress files, the index.

The order is that of ``apply``: ``index.lock`` first (it stops the user's add, commit and checkout), objects before what names them, refs
prepared before the first file is touched and committed after the last.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from safety.faults import SafetyError
from safety.plumbing.index import (
    IndexCorrupt,
    IndexFile,
    IndexUnsupported,
    changed,
    forget_racy_stat,
    parse_index,
    serialize_index,
)
from safety.plumbing.odb import hash_object
from safety.plumbing.reading import read_if_there
from safety.plumbing.refs import (
    NULL_HEX,
    STASH,
    RefTransaction,
    RefUpdate,
    object_ids,
    set_head,
    split_df,
    view_on_disk,
    write_stash,
)
from safety.plumbing.run import GitError
from safety.store.anchors import send_back
from safety.store.exchange import Exchanger
from safety.store.files import TEMPORARY_PREFIX, Tree, state_of
from safety.store.gitstate import GitPlan
from safety.store.journal import Job, Outcome, UndoInterrupted, UndoRefused
from safety.store.members import MemberPlace, absolute_path
from safety.store.place import Place
from safety.store.restore import KEPT, REMOVED, RESTORED, Step
from safety.types import ABSENT, PathState, Present


@dataclass
class _Lock:
    descriptor: int
    draft: bytes
    path: bytes
    is_held: bool = False


class GitHands:
    """Sets git state back for one job. ``file_step`` carries out one file step (see ``apply``)."""

    def __init__(self, place: Place, job: Job, outcome: Outcome, file_step: Callable[[Exchanger, Step], Step]) -> None:
        self.place, self.job, self.outcome, self._file = place, job, outcome, file_step
        self._locks: dict[bytes, _Lock] = {}

    # -- locks

    def draft_locks(self, members: Sequence[tuple[MemberPlace, GitPlan]]) -> dict[str, tuple[int, int]]:
        """Makes the future ``index.lock`` of each member under a temporary name; gives path -> (device, inode) for the journal.

        So a kill at any moment leaves either no lock or one that recovery knows for ours.
        """
        identities: dict[str, tuple[int, int]] = {}
        for member, plan in members:
            if not (plan.index or plan.raw_index or plan.reuc or plan.updates or plan.head is not None):
                continue
            folder = absolute_path(self.place.root, member.own)
            draft = folder + b"/" + TEMPORARY_PREFIX + self.job.id.encode() + b"-index"
            descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            info = os.fstat(descriptor)
            self._locks[member.own] = _Lock(descriptor, draft, folder + b"/index.lock")
            identities[(folder + b"/index.lock").decode("latin-1")] = (info.st_dev, info.st_ino)
        return identities

    def take_locks(self) -> None:
        """Raises UndoRefused where git is at work."""
        for lock in self._locks.values():
            if lock.is_held:
                continue
            try:
                os.link(lock.draft, lock.path)
            except FileExistsError as fault:
                hint = "wait for it, or remove that file if no git runs"
                raise UndoRefused(f"git is at work here: {os.fsdecode(lock.path)} exists", hint) from fault
            lock.is_held = True
            os.unlink(lock.draft)

    def release_locks(self) -> None:
        for lock in self._locks.values():
            os.close(lock.descriptor)
            with contextlib.suppress(OSError):
                os.unlink(lock.path if lock.is_held else lock.draft)
        self._locks.clear()

    # -- objects and refs

    def send_objects(self, member: MemberPlace, plan: GitPlan) -> None:
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
                self.place.git,
                self.place.odb,
                self.place.store_dir,
                self.place.absolute(member.path),
                known,
                objects_dir=absolute_path(self.place.root, member.common) + b"/objects",
            )

    def prepare(self, member: MemberPlace, plan: GitPlan) -> RefTransaction:
        transaction = RefTransaction(self.place.git, self.place.absolute(member.path), f"git-safety: {self.job.id}")
        try:
            transaction.extend(self._batches(plan)[0])
            transaction.prepare()
        except BaseException:
            transaction.abort()
            raise
        return transaction

    def branch_back(self, member: MemberPlace, plan: GitPlan) -> None:
        """The branch of a linked work tree that was laid back, should it be gone from the repository it shares."""
        branch, root = plan.target.branch, self.place.absolute(member.path)
        commit = plan.target.refs.get(branch) if branch is not None else None
        common = absolute_path(self.place.root, member.common)
        if any(update.ref == branch for other, plan in self.job.git if other.common == member.common for update in plan.updates):
            return  # comes with the others
        if branch is None or commit is None or view_on_disk(common, common).resolve(branch) is not None:
            return
        try:
            send_back(self.place.git, self.place.odb, self.place.store_dir, root, {commit}, objects_dir=common + b"/objects")
            self._transact(root, f"git-safety: {self.job.id}", [RefUpdate(branch, commit, NULL_HEX)])
            self.outcome.notes.append(f"branch {os.fsdecode(branch.removeprefix(b'refs/heads/'))} back")
        except SafetyError as fault:
            self.outcome.kept.append(f"git refused: {fault.message}")

    def _batches(self, plan: GitPlan) -> list[list[RefUpdate]]:
        """Batches in order; a branch that HEAD leaves is deleted last, after HEAD points elsewhere."""
        leaving = plan.now.branch if plan.head is not None else None
        last = [u for u in plan.updates if u.new == NULL_HEX and u.ref == leaving]
        rest = [u for u in plan.updates if u not in last]
        if last and len(split_df([*rest, *last])) > 1:
            return split_df(plan.updates)
        batches = split_df(rest) or [[]]
        return [*batches, last] if last else batches

    def rest_of_refs(self, member: MemberPlace, plan: GitPlan) -> None:
        root = self.place.absolute(member.path)
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
                write_stash(self.place.git, root, common, plan.stash, plan.now.stash, message, plan.target.refs.get(STASH))
        except SafetyError as fault:
            if isinstance(fault, GitError) and fault.returncode < 0:
                raise UndoInterrupted("git was killed before its state was set back", "git safety recover") from fault
            self.outcome.kept.append(f"git refused: {fault.message}")

    def _transact(self, root: bytes, message: str, batch: Sequence[RefUpdate]) -> None:
        with RefTransaction(self.place.git, root, message) as transaction:
            transaction.extend(batch)
            transaction.commit()

    def progress_files(self, member: MemberPlace, plan: GitPlan) -> None:
        if not plan.progress:
            return
        with Tree(self.place.root) as tree:
            hands = Exchanger(tree, self.place.odb, self.job.id)
            for name, (old, new) in plan.progress.items():
                path = member.file(name)
                ours = self._content_state(tree, path, old)
                target = (
                    ABSENT
                    if new is None
                    else Present("file", ours.mode if isinstance(ours, Present) else 0o644, self.place.odb.write("blob", new))
                )
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

    def index(self, member: MemberPlace, plan: GitPlan) -> None:
        """Per path, on a fresh reading under index.lock: a group that is as planned gets its target, others keep their stat data."""
        if not plan.index and plan.raw_index is None and plan.reuc is None:
            return
        git_dir = absolute_path(self.place.root, member.own)
        path = git_dir + b"/index"
        raw = plan.raw_index
        if raw is not None and raw[0] is not None and (read_if_there(path) or b"") != raw[0]:
            self.outcome.kept.append("the index changed meanwhile; it stays")
            return
        if raw is not None and raw[1] is not None:
            data = raw[1]
        elif raw is not None:  # what is there now cannot be read; it is written anew
            entries = [entry for _, target in plan.index.values() for entry in target]
            data = serialize_index(IndexFile(2, entries, plan.target.reuc))
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
        lock = self._locks.pop(member.own)
        os.ftruncate(lock.descriptor, 0)
        _write_all(lock.descriptor, data)
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(lock.descriptor, os.stat(path).st_mode & 0o777)
        os.fsync(lock.descriptor)
        os.rename(lock.path, path)
        os.close(lock.descriptor)

    def _current_index(self, git_dir: bytes) -> IndexFile | None:
        data = read_if_there(git_dir + b"/index")
        if data is None:
            return IndexFile(2, [])

        def shared(name: str) -> bytes:
            return read_if_there(git_dir + b"/sharedindex." + name.encode()) or b""

        try:
            return parse_index(data, shared_index=shared, read_tree=self.place.odb.tree)
        except (IndexUnsupported, IndexCorrupt) as fault:
            self.outcome.kept.append(f"the index cannot be read ({fault.message}); it stays")
            return None

    def logs(self, plan: GitPlan) -> None:
        """Lines that were cut off a reflog go in front of what it holds now."""
        for path, (lines, left) in plan.logs.items():
            place = absolute_path(self.place.root, path)
            now = read_if_there(place) or b""
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


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
