"""What became of a repository's linked work trees between two snapshots, told by what its git directory keeps of them.

Their files are not: one that lies outside the workspace is in no snapshot of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from safety.store.snapshot import Snapshot

Became = Literal["removed", "added", "locked", "unlocked"]


@dataclass(frozen=True)
class WorktreeChange:
    """The folder of a linked work tree, absolute, and what became of it. A pruned one counts as removed."""

    folder: bytes
    became: Became


def worktree_changes(
    before: Snapshot, after: Snapshot, common: bytes, names: Iterable[bytes] | None = None
) -> Iterator[WorktreeChange]:
    """By name, of those that git calls by ``names``, or of all; ``common`` is the captured path of the repository's git directory."""
    prefix = common + b"/worktrees"
    if names is None:
        names = {path.split(b"/")[0] for side in (before, after) for path in side.git_files(prefix)}
    for name in sorted(names):
        old, new = (_read(side, prefix + b"/" + name + b"/gitdir") for side in (before, after))
        folder = os.path.dirname((old or new or b"").strip())
        if not old or not new:
            if old or new:
                yield WorktreeChange(folder, "removed" if old else "added")
            continue
        was, is_now = (_read(side, prefix + b"/" + name + b"/locked") is not None for side in (before, after))
        if was != is_now:
            yield WorktreeChange(folder, "locked" if is_now else "unlocked")


def _read(snapshot: Snapshot, path: bytes) -> bytes | None:
    try:
        return snapshot.read(path)
    except KeyError:
        return None
