"""Member repositories as snapshots know them: where their git directories lie, and whether git would use them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from safety.plumbing.refs import is_per_worktree
from safety.store.snapshot import Snapshot
from safety.types import Present, Unknown


@dataclass(frozen=True)
class MemberPlace:
    """Where a member's git state lies, as captured paths: its own git directory and the common one."""

    path: bytes
    own: bytes
    common: bytes

    @property
    def top(self) -> bytes:
        """The directory that comes and goes with the member: a linked work tree has only its own."""
        return self.own if self.own.startswith(self.common + b"/worktrees/") else self.common

    def file(self, name: bytes) -> bytes:
        """The captured path of a git directory's file."""
        return (self.own if is_per_worktree(name) else self.common) + b"/" + name


def captured_path(root: bytes, absolute: bytes) -> bytes:
    """The path a file of a git directory has in snapshots: relative when inside the workspace."""
    return absolute[len(root) + 1 :] if absolute.startswith(root + b"/") else absolute


def absolute_path(root: bytes, captured: bytes) -> bytes:
    return captured if captured.startswith(b"/") else root + b"/" + captured


def member_place(snapshot: Snapshot, root: bytes, member: bytes) -> MemberPlace | None:
    """Where a member's git directories lie, read from the snapshot alone; None where it has none there."""
    dot_git = (member + b"/" if member else b"") + b".git"
    state = snapshot.state(dot_git)
    if not isinstance(state, Present):
        return None
    if state.kind == "dir":
        return MemberPlace(member, dot_git, dot_git)
    base = root + b"/" + member if member else root
    if state.kind == "link":
        own = os.path.normpath(os.path.join(base, snapshot.read(dot_git)))
    else:
        text = snapshot.read(dot_git).strip()
        if not text.startswith(b"gitdir:"):
            return None
        own = os.path.normpath(os.path.join(base, text[7:].strip()))
    own_path = captured_path(root, own)
    common = own_path
    try:
        pointer = snapshot.read(own_path + b"/commondir").strip()
        common = captured_path(root, os.path.normpath(os.path.join(own, pointer)))
    except KeyError:
        pass
    return MemberPlace(member, own_path, common)


def is_repository(snapshot: Snapshot, place: MemberPlace) -> bool:
    """Whether the snapshot holds a git directory git would use (fixtures that only look like one are plain files)."""
    return (
        _is_head(snapshot, place.own + b"/HEAD")
        and _kind(snapshot, place.common + b"/objects") == "dir"  # also where a link leads to one
        and _kind(snapshot, place.common + b"/refs") == "dir"
    )


def is_ruin(snapshot: Snapshot, place: MemberPlace) -> bool:
    """Whether the snapshot holds what is left of a repository that lost a part: its objects are marked there, not copied."""
    path = place.common + b"/objects"
    state = snapshot.state(path)
    if _kind(snapshot, path) == "dir":
        return next(snapshot.git_files(path), None) is None and not is_repository(snapshot, place)
    return state == Unknown("objects-missing")


def _is_head(snapshot: Snapshot, path: bytes) -> bool:
    try:
        text = snapshot.read(path).strip()
    except KeyError:
        return False
    return text.startswith((b"ref:", b"refs/")) or (len(text) in (40, 64) and not text.strip(b"0123456789abcdef"))


def _kind(snapshot: Snapshot, path: bytes) -> str:
    state = snapshot.state(path)
    return state.kind if isinstance(state, Present) else ""
