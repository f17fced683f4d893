"""What state the repository is in, and in which states no commit is made ([gate] B5)."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from safety.commit.values import CommitSettings
from safety.plumbing.refs import ref_text
from safety.plumbing.repo import Repository, open_repository
from safety.plumbing.run import Git, GitError

MINIMUM = (2, 38)
_BRANCH = "refs/heads/"
_versions: dict[tuple[bytes, int, int], tuple[int, int]] = {}

# File of the git directory -> what is going on while it is there.
IN_PROGRESS: Mapping[bytes, str] = {
    b"MERGE_HEAD": "a merge",
    b"CHERRY_PICK_HEAD": "a cherry-pick",
    b"REVERT_HEAD": "a revert",
    b"rebase-merge": "a rebase",
    b"rebase-apply": "a rebase or am",
    b"sequencer": "a cherry-pick or revert",
    b"BISECT_LOG": "a bisect",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no commit is made: a stable code, a sentence, and what to do about it."""

    code: str
    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """HEAD's branch (full ref name, "" when detached), the settings of git, and the default branch of its remote ("" if unknown)."""

    repository: Repository
    branch: str
    config: Mapping[str, str]
    default_branch: str
    identity: bool

    def true(self, key: str, default: bool = False) -> bool:
        """A setting of git's that is true or false."""
        value = self.config.get(key)
        return default if value is None else value.lower() in ("true", "yes", "on", "1")


def read_state(git: Git, root: bytes) -> State | Refusal:
    """The state of the repository at ``root``, or why git would not commit there at all."""
    repository = open_repository(root)
    if repository is None or repository.bare:
        return Refusal("no-repository", "this is no git work tree")
    if repository.problem:
        return Refusal("unusable-repository", repository.detail)
    if repository.object_format != "sha1":
        return Refusal("object-format", f"commits in a {repository.object_format} repository are not made")
    version = _version(git)
    if version < MINIMUM:
        wanted = ".".join(map(str, MINIMUM))
        return Refusal("git-too-old", f"commits need git {wanted} or newer, this is {'.'.join(map(str, version))}")
    args = (["config", "--list", "-z"], ["var", "GIT_AUTHOR_IDENT"], ["var", "GIT_COMMITTER_IDENT"])
    # None of these hangs on another; side by side they take as long as one.
    started = [git.start_owner(root, each, deadline_s=10, check=False) for each in args]
    try:
        listed, author, committer = [running.wait() for running in started]
    finally:
        for running in started:
            running.kill()
    if listed.returncode:
        said = os.fsdecode(listed.stderr).strip().split("\n")[0]
        return Refusal("git-refuses", f"git refuses to work here: {said}")
    config = _settings(listed.stdout)
    branch = head_branch(git, repository)
    identity = author.returncode == 0 and committer.returncode == 0
    return State(repository, branch, config, _default_branch(git, repository, branch, config), identity)


def operation(repository: Repository) -> str:
    """What is going on in the work tree that the user has to finish first ("a merge"); "" for nothing."""
    return next((name for file, name in IN_PROGRESS.items() if os.path.lexists(os.path.join(repository.git_dir, file))), "")


def refusal(state: State, settings: CommitSettings, head: str) -> Refusal | None:
    """Why no commit is made in this state."""
    if going_on := operation(state.repository):
        return Refusal("in-progress", f"{going_on} is in progress; nothing is committed until it is finished", "git status")
    if not state.branch and settings.detached != "allow":
        hint = "git switch -c NAME, or set autocommit.detached to allow"
        return Refusal("detached", "HEAD is detached; a commit here would be on no branch", hint)
    if not state.identity:
        hint = 'git config user.name "Your Name" && git config user.email you@your.domain'
        return Refusal("no-identity", "git does not know whose commit this would be", hint)
    if settings.protected_branches == "refuse" and is_protected(state, settings):
        return Refusal("protected-branch", named_protected(state), "git switch -c NAME")
    if settings.protected_branches == "branch" and is_protected(state, settings):
        if not settings.branch:
            return Refusal("protected-branch", named_protected(state), "git switch -c NAME")
        if not head:
            return Refusal("unborn", f"{named_protected(state)}, without a first commit", "git switch -c NAME")
    return None


#: Which branches are, though nobody said so, and the setting that says what is done there.
BY_DEFAULT = "(main and master are by default; autocommit.protected_branches says what is done there)"


def named_protected(state: State) -> str:
    """``main is a protected branch``, and why."""
    return f"{short(state.branch)} is a protected branch {BY_DEFAULT}"


def is_protected(state: State, settings: CommitSettings) -> bool:
    """Whether HEAD's branch is the default one of its remote, or matches a pattern of the settings."""
    name = short(state.branch)
    return bool(name) and (name == state.default_branch or any(fnmatch.fnmatchcase(name, each) for each in settings.protected))


def short(ref: str) -> str:
    """A branch's name without ``refs/heads/``."""
    return ref.removeprefix(_BRANCH)


def head_branch(git: Git, repository: Repository) -> str:
    """The full name of the branch that HEAD points at, born or not; "" when detached."""
    if repository.ref_storage == "files" and not os.path.islink(head := os.path.join(repository.git_dir, b"HEAD")):
        with open(head, "rb") as file:
            text = ref_text(file.read())
        return os.fsdecode(text.removeprefix(b"ref: ")) if text.startswith(b"ref: ") else ""
    said = git.user(repository.root, ["symbolic-ref", "-q", "HEAD"], deadline_s=10, check=False).stdout
    return os.fsdecode(said.rstrip(b"\n"))


def _default_branch(git: Git, repository: Repository, branch: str, config: Mapping[str, str]) -> str:
    remote = config.get(f"branch.{short(branch)}.remote", "origin")
    ref = f"refs/remotes/{remote}/HEAD"
    # A symbolic ref is never packed; only another backend has it elsewhere.
    if repository.ref_storage == "files" and not os.path.lexists(os.path.join(repository.common_dir, os.fsencode(ref))):
        return ""
    try:
        target = os.fsdecode(git.user(repository.root, ["symbolic-ref", "-q", ref], deadline_s=10, check=False).stdout).strip()
    except GitError:
        return ""
    return target.removeprefix(f"refs/remotes/{remote}/")


def _settings(listed: bytes) -> dict[str, str]:
    """The last value of each key; a key without a value is true."""
    found = {}
    for item in listed.split(b"\0")[:-1]:
        key, has_value, value = item.partition(b"\n")
        found[os.fsdecode(key)] = os.fsdecode(value) if has_value else "true"
    return found


def _version(git: Git) -> tuple[int, int]:
    """The version of git, asked once for each program that is run."""
    program = git.program()
    info = os.stat(program)
    key = (program, info.st_ino, info.st_mtime_ns)
    if key not in _versions:
        match = re.search(rb"(\d+)\.(\d+)", git.user(b"/", ["version"], deadline_s=10).stdout)
        _versions[key] = (int(match[1]), int(match[2])) if match else (0, 0)
    return _versions[key]
