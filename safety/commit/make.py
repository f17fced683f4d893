"""Makes a planned commit: the user's hooks, the commit object, then index and branch together, or nothing at all.

Order: hooks (no lock is held while they run), the commit object, index lock, the next index made ready and checked beside the real
one, the branch by compare-and-swap, the index by a rename. A kill before the branch moves leaves all as it was, a kill after it is
finished by the next run (see ``room``). No file of the work tree is written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace

from safety.commit.clean import index_info
from safety.commit.hooks import Hooks
from safety.commit.interrupts import Interrupts
from safety.commit.message import tidied, trailer, with_trailer
from safety.commit.objects import Objects
from safety.commit.plan import plan_request
from safety.commit.room import CommitBusy, Room, enter, hold_index
from safety.commit.staging import meaning, read_index
from safety.commit.state import head_branch, operation, short
from safety.commit.values import CommitPlan, CommitResult, Entry
from safety.faults import SafetyError
from safety.plumbing.index import INTENT_TO_ADD, IndexEntry
from safety.plumbing.repo import Repository, open_repository
from safety.plumbing.run import Git, GitError, GitTimeout

_NULL = "0" * 40
_REFRESHED_BY_NAME = 200


class _Moved(Exception):
    """HEAD or the index is no longer what the plan was made from."""


class _Failed(Exception):
    """The commit cannot be made; the argument is the result."""

    def __init__(self, result: CommitResult) -> None:
        super().__init__(result.text)
        self.result = result


def make_commit(
    git: Git,
    plan: CommitPlan,
    message: str,
    agent: Mapping[str, str],
    *,
    pre_commit_ran: bool = False,
) -> CommitResult:
    """Makes the commit that ``plan`` describes, with ``message`` and the agent's trailer; ``agent`` has ``name`` and ``model``.

    ``pre_commit_ran`` says that the repository's checks have passed on the same content; else its pre-commit hook is run here.
    If HEAD or the index has moved since, the plan is made again, once. Never raises for what a repository can be like: the result
    says what happened, and unless it is ``committed`` files, index and HEAD are as they were.
    """
    repository = open_repository(plan.request.root)
    try:
        for _ in range(2):
            if plan.refusal or not plan.changes or repository is None:
                return _not_made(plan)
            try:
                with Interrupts() as interrupts, enter(git, repository, plan.request.settings.lock_wait_s, interrupts) as room:
                    return _Commit(git, repository, room, plan, pre_commit_ran, interrupts).make(message, agent)
            except _Moved:
                plan = plan_request(git, plan.request)
    except _Failed as failed:
        return replace(failed.result, left_out=plan.left_out)
    except CommitBusy as busy:
        return CommitResult("busy", left_out=plan.left_out, text=busy.message, hint=busy.hint)
    except SafetyError as fault:
        return CommitResult("refused", left_out=plan.left_out, text=fault.message, hint=fault.hint)
    except OSError as fault:
        return CommitResult("refused", left_out=plan.left_out, text=f"the commit could not be made: {fault.strerror}")
    return CommitResult("moved", left_out=plan.left_out, text="the repository kept changing while the commit was made")


def _not_made(plan: CommitPlan) -> CommitResult:
    if plan.refusal:
        return CommitResult("refused", left_out=plan.left_out, text=plan.reason, hint=plan.hint)
    return CommitResult("nothing", left_out=plan.left_out, text="nothing to commit")


class _Commit:
    """One attempt."""

    def __init__(
        self, git: Git, repository: Repository, room: Room, plan: CommitPlan, pre_commit_ran: bool, interrupts: Interrupts
    ) -> None:
        self.git, self.repository, self.room, self.plan, self.interrupts = git, repository, room, plan, interrupts
        self.root, self.settings = plan.request.root, plan.request.settings
        self.hooks = Hooks(git, self.root, plan.config, repository.common_dir)
        self.pre_commit_ran = pre_commit_ran
        self.notices = list(plan.notices)
        self._tip_before = _NULL

    def make(self, message: str, agent: Mapping[str, str]) -> CommitResult:
        with self.interrupts.allowed():
            message = self._through_hooks(message, agent)
            oid = self._commit_object(message)
        subject = message.split("\n", 1)[0]
        with hold_index(self.room, oid, self.plan.new_branch, self.settings.lock_wait_s, self.interrupts):
            self._publish(oid, subject)
        with self.interrupts.allowed():
            self._after()
        return CommitResult("committed", oid, subject, self.plan.paths, self.plan.left_out, tuple(self.notices))

    # -- hooks and message

    def _through_hooks(self, message: str, agent: Mapping[str, str]) -> str:
        """The message as the user's hooks leave it. Raises _Failed if one refuses."""
        index = b""
        wanted = [name for name in ("pre-commit", "prepare-commit-msg", "commit-msg") if self.hooks.exists(name)]
        if self.pre_commit_ran and "pre-commit" in wanted:
            wanted.remove("pre-commit")
        if wanted:
            index = self._index_for_hooks()
        if "pre-commit" in wanted:
            self._pre_commit(index)
        message = with_trailer(self.git, message, trailer(self.settings.trailer, agent))
        file = os.path.join(self.room.folder, b"COMMIT_EDITMSG")
        with open(file, "wb") as out:
            out.write(os.fsencode(message))
        for name, args in (("prepare-commit-msg", (file, b"message")), ("commit-msg", (file,))):
            if name in wanted:
                self._run_hook(name, *args, index=index)
        with open(file, "rb") as written:
            message = os.fsdecode(written.read())
        message = tidied(self.git, self.root, message, self.plan.config.get("commit.cleanup", "whitespace"))
        if not message:
            raise _Failed(CommitResult("hook_failed", text="the commit message is empty"))
        return message

    def _pre_commit(self, index: bytes) -> None:
        if self.hooks.stashes("pre-commit"):
            text = "the pre-commit hook would set unstaged work aside while it runs; its checks have to be run by the gate"
            raise _Failed(CommitResult("refused", text=text))
        self._run_hook("pre-commit", index=index)
        env = {"GIT_INDEX_FILE": os.fsdecode(index)}
        if self.git.user(self.root, ["write-tree"], extra_env=env).stdout.decode().strip() != self.plan.tree:
            text = "the pre-commit hook changed what was to be committed; look at the files and commit again"
            raise _Failed(CommitResult("hook_failed", text=text))

    def _run_hook(self, name: str, *args: bytes, index: bytes) -> None:
        answer = self.hooks.run(name, *args, index=index, deadline_s=self.settings.hook_deadline_s)
        if not answer.passed:
            text = f"the {name} hook refused the commit" + (f":\n{answer.text}" if answer.text else "")
            raise _Failed(CommitResult("hook_failed", text=text))

    def _index_for_hooks(self) -> bytes:
        """A private index that holds exactly the commit's tree, with what the real one knows of the files' stat data.

        Relative to the work tree where it can be, as git's own: a hook that makes a repository elsewhere then works ([gate] 0.4).
        """
        _copy_index(self.room.index, self.room.hook_index)
        path = self._shown_to_hooks(self.room.hook_index)
        env = {"GIT_INDEX_FILE": os.fsdecode(path)}
        self.git.user(self.root, ["read-tree", "-i", "-m", self.plan.tree], extra_env=env)
        self.git.user(self.root, ["update-index", "-q", "--refresh"], extra_env=env, check=False)
        return path

    def _shown_to_hooks(self, index: bytes) -> bytes:
        if self.repository.git_dir == os.path.join(self.repository.root, b".git"):
            return os.path.relpath(index, self.repository.root)
        return index

    def _after(self) -> None:
        """The post-commit hook; the commit stands whatever it says."""
        if self.hooks.exists("post-commit"):
            answer = self.hooks.run(
                "post-commit", index=self._shown_to_hooks(self.room.index), deadline_s=self.settings.hook_deadline_s
            )
            if not answer.passed:
                self.notices.append(
                    f"the post-commit hook failed: {answer.text}" if answer.text else "the post-commit hook failed"
                )

    # -- the commit object

    def _signs(self) -> bool:
        if self.settings.sign == "never":
            return False
        asked = self.plan.config.get("commit.gpgsign", "false").lower() in ("true", "yes", "on", "1")
        return asked or self.settings.sign == "require"

    def _commit_object(self, message: str) -> str:
        """The commit, signed where the user wants that. Raises _Failed rather than leave a signature out."""
        parents = ["-p", self.plan.head] if self.plan.head else []
        signed = ["-S"] if self._signs() else []
        args = ["-c", "i18n.commitEncoding=utf-8", "commit-tree", *signed, *parents, "-F", "-", self.plan.tree]
        deadline_s = self.settings.sign_deadline_s if signed else 60
        try:
            made = self.git.owner(self.root, args, input=os.fsencode(message), deadline_s=deadline_s).stdout
        except GitError as fault:
            if not signed:
                raise
            said = fault.stderr.decode("utf-8", "replace").strip() or fault.message
            if isinstance(fault, GitTimeout):
                said = f"the signing program did not end within {deadline_s:g} s"
            hint = "git commit, or set autocommit.sign to never"
            raise _Failed(CommitResult("sign_failed", text=f"the commit could not be signed: {said}", hint=hint)) from None
        return made.decode().strip()

    # -- index and branch, under the index lock

    def _publish(self, oid: str, subject: str) -> None:
        self._draft_index()
        if operation(self.repository):
            raise _Moved
        try:
            self._move_head(oid, subject)
            self._verify(oid)
            os.rename(self.room.draft, self.room.index)
        except BaseException:
            if os.path.lexists(self.room.draft):
                self._take_back(oid)
            raise

    def _draft_index(self) -> None:
        """The next index beside the real one, checked to differ from it in the commit's paths only. Raises _Moved."""
        draft = self.room.draft
        with Objects(self.git, self.root) as objects:
            before = read_index(self.repository, objects)
            now = {entry.path: entry for entry in before.entries}
            if any(entry.stage for entry in before.entries):
                raise _Moved
            if any(_staged(now.get(change.path)) != change.staged for change in self.plan.changes):
                raise _Moved
            _copy_index(self.room.index, draft)
            wanted = {change.path: change.staged_after for change in self.plan.changes}
            env = {"GIT_INDEX_FILE": os.fsdecode(draft)}
            self.git.user(self.root, ["update-index", "-z", "--index-info"], input=index_info(wanted), extra_env=env)
            self._refresh(env)
            expected = meaning(before)
            for path, entry in wanted.items():
                expected.pop((path, 0), None)
                if entry is not None:
                    expected[path, 0] = (entry.mode, bytes.fromhex(entry.oid), 0)
            if meaning(read_index(self.repository, objects, draft)) != expected:
                raise SafetyError("the index would not keep what is staged; nothing was committed")

    def _refresh(self, env: Mapping[str, str]) -> None:
        """Gives the new entries the stat data of their files, so that status has nothing to read."""
        paths = [change.path for change in self.plan.changes if change.staged_after is not None]
        if len(paths) > _REFRESHED_BY_NAME:
            self.git.user(self.root, ["update-index", "-q", "--refresh"], extra_env=env, check=False)
        elif paths:
            self.git.user(self.root, ["add", "--refresh", "--", *paths], extra_env=env, check=False)

    def _move_head(self, oid: str, subject: str) -> None:
        """HEAD's branch from the plan's commit to the new one, by compare-and-swap. Raises _Moved."""
        plan = self.plan
        what = "commit" if plan.head else "commit (initial)"
        if plan.new_branch:
            ref, old = plan.new_branch, self._tip(plan.new_branch)
            self._tip_before = old
            if old not in (_NULL, plan.head):
                text = f"{short(ref)} exists and is at another commit"
                raise _Failed(CommitResult("refused", text=text, hint=f"git switch {short(ref)}"))
        else:
            ref, old = "HEAD", plan.head or _NULL
        self._still_on_branch()
        self._update_ref(ref, oid, old, f"{what}: {subject}")
        if plan.new_branch:
            self.git.owner(self.root, ["symbolic-ref", "-m", f"checkout: moving to {short(ref)}", "HEAD", ref])

    def _still_on_branch(self) -> None:
        if head_branch(self.git, self.repository) != self.plan.branch:
            raise _Moved

    def _tip(self, ref: str) -> str:
        return self.git.user(self.root, ["rev-parse", "-q", "--verify", ref], check=False).stdout.decode().strip() or _NULL

    def _update_ref(self, ref: str, new: str, old: str, message: str) -> None:
        running = self.git.start_owner(self.root, ["update-ref", "-m", message, ref, new, old], deadline_s=30)
        try:
            running.wait(grace_s=2)
        except GitError as fault:
            if self._tip("HEAD") != (self.plan.head or _NULL):
                raise _Moved from None
            text = fault.stderr.decode("utf-8", "replace").strip() or fault.message
            if any(os.path.lexists(lock) for lock in self._ref_locks(ref)):
                raise CommitBusy(text, "wait for it, or remove that file if no git runs") from None
            raise _Failed(CommitResult("refused", text=text)) from None

    def _ref_locks(self, ref: str) -> Iterator[bytes]:
        """Where another git's locks would be that keep a ref from moving."""
        yield os.path.join(self.repository.git_dir, b"HEAD.lock")
        for name in (ref, self.plan.branch):
            yield os.path.join(self.repository.common_dir, os.fsencode(name) + b".lock")

    def _verify(self, oid: str) -> None:
        """HEAD is the new commit, and its parent is what HEAD was."""
        parents = [self.plan.head] if self.plan.head else []
        said = self.git.user(self.root, ["rev-list", "--parents", "-n", "1", "HEAD"]).stdout.decode().split()
        if said != [oid, *parents]:
            raise SafetyError("HEAD is not the commit that was made; it was taken back")

    def _take_back(self, oid: str) -> None:
        """The branch where it was, if it got as far as the new commit."""
        plan = self.plan
        if plan.new_branch and self._tip("HEAD") == oid:
            self.git.user(self.root, ["symbolic-ref", "HEAD", plan.branch])
        ref = plan.new_branch or "HEAD"
        if self._tip(ref) != oid:
            return
        old = self._tip_before if plan.new_branch else plan.head or _NULL
        if old != _NULL:
            self.git.user(self.root, ["update-ref", "-m", "git-safety: commit taken back", ref, old, oid])
        else:
            self.git.user(self.root, ["update-ref", "-d", ref, oid])


def _staged(entry: IndexEntry | None) -> Entry | None:
    return None if entry is None or entry.flags & INTENT_TO_ADD else Entry(entry.mode, entry.oid.hex())


def _copy_index(source: bytes, target: bytes) -> None:
    """A copy with the same permissions and times: git tells from an index's time which of its entries may be stale."""
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        pass  # git makes one
