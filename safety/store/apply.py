"""Carrying a plan out, so that a death at any point loses nothing and the next command finishes by itself.

Order (design 5.6): index.lock, objects, journal, refs prepared, files (removals, directories, creations, modes), in-progress files, index,
refs, HEAD. ``recovery`` finishes what was interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Sequence

from safety.faults import SafetyError
from safety.plumbing.refs import RefLocked, RefTransaction, packed_refs_on_disk
from safety.plumbing.repo import open_repository
from safety.store.exchange import Exchanger, Moved
from safety.store.files import Tree, state_of
from safety.store.gitapply import GitHands
from safety.store.gitstate import GitPlan
from safety.store.journal import Job, Outcome, UndoInterrupted, UndoRefused, remove_journal, write_journal
from safety.store.laying import Layer
from safety.store.members import MemberPlace, absolute_path
from safety.store.place import Place
from safety.store.restore import KEPT, REMOVED, Step
from safety.store.snapshot import Snapshot
from safety.types import Absent, Present


def carry_out(
    place: Place, job: Job, progress: Callable[[int, int], None] = lambda done, total: None, *, resumed: bool = False
) -> Outcome:
    """Acts on the plan. Raises UndoRefused (nothing changed, journal away) when a lock cannot be had or objects cannot be written.

    ``resumed``: the rest of an interrupted job, whose journal stays while another git is at work.
    """
    runner = _Runner(place, job, progress, resumed)
    return runner.run()


class _Runner:
    def __init__(self, place: Place, job: Job, progress: Callable[[int, int], None], resumed: bool = False) -> None:
        self.place, self.job, self.progress, self.resumed = place, job, progress, resumed
        self.outcome = Outcome()
        self._opened: dict[bytes, int] = {}
        self.git = GitHands(place, job, self.outcome, self._file)
        self.layer = Layer(place, job, self.outcome)

    def run(self) -> Outcome:
        place, job = self.place, self.job
        laid = tuple(absolute_path(place.root, member.top) for member, plan in job.git if plan.lay_back)
        whole = [member for member, plan in job.git if plan.lay_back or plan.take_away or plan.repair]
        by_steps = [
            (member, plan) for member, plan in job.git if member not in whole and not self._is_below(member, laid, itself=True)
        ]
        # where the agent removed a submodule's folder, or broke what git reads first, git cannot be asked before the files are back
        early = [item for item in by_steps if self._is_readable(item[0])]
        late = [item for item in by_steps if item not in early]
        with contextlib.ExitStack() as stack:
            stack.callback(self.git.release_locks)
            prepared = self._begin(early, stack)
            self._root_back()
            for member, plan in job.git:
                if plan.take_away:
                    self.layer.take_away(member)
                if plan.lay_back and not self._is_below(member, laid, itself=False):
                    self.layer.lay_back(member)
            self._files()
            for member, plan in job.git:
                if plan.repair:
                    self.layer.repair(member)
                elif plan.lay_back and member.top != member.common:
                    self.git.branch_back(member, plan)
            try:
                self.git.draft_locks(late)
                for member, plan in late:
                    self.git.send_objects(member, plan)
                prepared += self._prepare(late, stack)
            except (SafetyError, OSError) as fault:
                names = ", ".join(os.fsdecode(member.common) for member, _ in late)
                self.outcome.kept.append(f"git state in {names} was not set back: {fault}")
                by_steps = early
            for member, plan in by_steps:
                self.git.progress_files(member, plan)
                self.git.index(member, plan)
            for transaction in prepared:
                transaction.commit()
            for member, plan in by_steps:
                self.git.rest_of_refs(member, plan)
                self.git.logs(plan)
        for _, plan in job.git:
            self.outcome.notes.extend(plan.notes)
            self.outcome.kept.extend(plan.kept)
        return self.outcome

    def _begin(self, members: Sequence[tuple[MemberPlace, GitPlan]], stack: contextlib.ExitStack) -> list[RefTransaction]:
        """Everything up to the first file. A failure here leaves all as it was."""
        try:
            locks = self.git.draft_locks(members)
            for member, plan in members:
                if plan.acts:
                    self.git.send_objects(member, plan)
            self.place.odb.sync()
            write_journal(self.place, self.job, locks)
            return self._prepare(members, stack)
        except SafetyError as fault:
            if not (self.resumed and isinstance(fault, UndoRefused | RefLocked)):
                remove_journal(self.place)
            raise UndoRefused(f"{fault.message}; nothing was changed", fault.hint or "git safety undo") from fault
        except OSError as fault:
            with contextlib.suppress(OSError):
                remove_journal(self.place)
            raise UndoRefused(f"{fault.strerror}: nothing was changed", "free some space, then: git safety undo") from fault

    def _is_readable(self, member: MemberPlace) -> bool:
        repository = open_repository(self.place.absolute(member.path))
        return (
            repository is not None
            and repository.problem not in ("bad-config", "unreadable", "git-dir-missing")
            and packed_refs_on_disk(repository.common_dir)
        )

    def _prepare(self, members: Sequence[tuple[MemberPlace, GitPlan]], stack: contextlib.ExitStack) -> list[RefTransaction]:
        self.git.take_locks()
        return [stack.enter_context(self.git.prepare(member, plan)) for member, plan in members if plan.updates]

    def _is_below(self, member: MemberPlace, laid: tuple[bytes, ...], *, itself: bool) -> bool:
        """Whether the git directory comes back as part of one that is laid back whole."""
        place = absolute_path(self.place.root, member.top)
        return any((itself and place == other) or place.startswith(other + b"/") for other in laid)

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
            try:
                hands.put(step.path, step.ours, step.target)
            except PermissionError:
                if not self._open_folder(hands.tree, step.path):
                    raise
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
                raise UndoInterrupted(
                    "the disk is full; what was set back so far is set back", "free some space, then: git safety recover"
                ) from fault
            if fault.errno in (errno.ENOTEMPTY, errno.EEXIST) and isinstance(step.ours, Present) and step.ours.kind == "dir":
                return Step(step.path, KEPT, step.ours, step.ours, "holds files of yours")
            return Step(step.path, KEPT, step.ours, step.ours, f"could not be set back: {fault.strerror}")
        return step

    def _open_folder(self, tree: Tree, path: bytes) -> bool:
        """Makes a folder writable for a moment that was read-only before the agent too, or that it closed; not one the user closed."""
        folder = path.rpartition(b"/")[0]
        then = [Snapshot(self.place.odb, tree).state(folder) for tree in (self.job.theirs, self.job.base)]
        try:
            info = tree.lstat(folder)
            if info is None or info.st_uid != os.geteuid() or info.st_mode & 0o300 == 0o300:
                return False
            if not any(isinstance(state, Present) and state.mode == info.st_mode & 0o7777 for state in then):
                return False
            os.chmod(tree.directory(folder), (info.st_mode & 0o7777) | 0o300)
        except OSError:
            return False
        self._opened.setdefault(folder, info.st_mode & 0o7777)
        return True

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
        for folder, mode in self._opened.items():
            with contextlib.suppress(OSError):
                os.chmod(tree.directory(folder), mode)
        for step in steps:
            if step.verb != REMOVED and isinstance(step.target, Present) and step.target.kind == "dir":
                with contextlib.suppress(OSError):
                    os.chmod(tree.directory(step.path), step.target.mode)


def _is_removed_file(step: Step) -> bool:
    return isinstance(step.target, Absent) and not (isinstance(step.ours, Present) and step.ours.kind == "dir")


def _in_order(steps: Sequence[Step]) -> list[Step]:
    """Removals of files, then of directories deepest first, then what is to exist, parents first."""
    removed = [s for s in steps if _is_removed_file(s)]
    folders = [s for s in steps if isinstance(s.target, Absent) and isinstance(s.ours, Present) and s.ours.kind == "dir"]
    exist = [s for s in steps if isinstance(s.target, Present)]
    swaps = [
        s
        for s in exist
        if isinstance(s.target, Present) and isinstance(s.ours, Present) and s.ours.kind == "dir" and s.target.kind != "dir"
    ]
    others = [s for s in exist if s not in swaps] if swaps else exist
    return [
        *sorted(removed, key=lambda s: s.path),
        *sorted(folders, key=lambda s: s.path, reverse=True),
        *sorted(swaps, key=lambda s: s.path),
        *sorted(others, key=lambda s: s.path),
    ]
