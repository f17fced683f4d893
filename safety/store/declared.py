"""Capture of named paths: what they are now, against the newest snapshot, as a draft of the next one; the rest is carried over.

It costs the same in a workspace of any size. ``capture`` looks at everything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from safety.store.editor import Editor
from safety.store.files import Observed, Tree, observe
from safety.store.place import Budget, Limits, Place
from safety.store.snapshot import Snapshot
from safety.types import STIRRED, NotCovered, ObjectId, Present, Unknown


@dataclass
class Draft:
    """A snapshot that is written but not yet an operation. ``tree`` equals the one before when nothing changed."""

    tree: ObjectId
    before: ObjectId | None
    changed: list[bytes]
    git_changed: bool
    not_covered: list[NotCovered]
    settle: Callable[[], None] = lambda: None

    @property
    def has_stirred(self) -> bool:
        """Whether a name came or went in an ignored folder that no snapshot holds."""
        return any(item.reason == STIRRED for item in self.not_covered)

    @property
    def is_change(self) -> bool:
        return self.tree != self.before


def is_git_path(path: bytes) -> bool:
    return b".git" in path.split(b"/")


def declared(place: Place, before: ObjectId | None, paths: Iterable[bytes], limits: Limits | None = None) -> Draft:
    """A draft that knows the named paths anew and carries over everything else; milliseconds at any size.

    A directory among them stands for every file below it.
    """
    snapshot = Snapshot(place.odb, before)
    editor = Editor(place.odb, before, reader=snapshot.reader)
    limits = limits or place.limits
    budget = Budget(limits)
    changed, not_covered = [], []
    with Tree(place.root) as tree:
        for path in _with_content(tree, snapshot, paths):
            refusal = budget.refusal()
            seen = observe(tree, place.odb, path, limits.max_file) if refusal is None else Observed(Unknown(refusal))
            budget.spent += seen.read
            if isinstance(seen.state, Unknown):
                not_covered.append(NotCovered(path, seen.state.reason, seen.state.size))
            if seen.state != snapshot.state(path):
                editor.put(path, seen.state, _area(snapshot, path))
                changed.append(path)
                put_folders(tree, place, snapshot, editor, path)
    tree_id = editor.finish() if changed or before is None else before
    return Draft(tree_id, before, changed, False, not_covered)


def put_folders(tree: Tree, place: Place, snapshot: Snapshot, editor: Editor, path: bytes) -> None:
    """The directories above a path that changed: one that lost its last file is still there."""
    parent = path.rpartition(b"/")[0]
    while parent:
        state = observe(tree, place.odb, parent, 0).state
        if isinstance(state, Present) and state.kind == "dir":
            editor.put(parent, state, _area(snapshot, parent) if not parent.startswith(b"/") else "private")
        parent = parent.rpartition(b"/")[0]


def _area(snapshot: Snapshot, path: bytes) -> str:
    """Where a declared path's content goes. A new one is private until a scan has asked git whether it is ignored."""
    return "git" if is_git_path(path) else snapshot.area(path) or "private"


def _with_content(tree: Tree, snapshot: Snapshot, paths: Iterable[bytes]) -> Iterator[bytes]:
    for path in sorted(set(paths)):
        yield path
        known = snapshot.state(path)
        if isinstance(known, Present) and known.kind == "dir":
            yield from (below for below, _ in snapshot.walk(path) if below != path)
        info = None
        try:
            info = tree.lstat(path)
        except OSError:
            pass
        if info is not None and (info.st_mode & 0o170000) == 0o040000:
            yield from _names_below(tree, path, snapshot)


def _names_below(tree: Tree, path: bytes, snapshot: Snapshot) -> Iterator[bytes]:
    try:
        names = sorted(map(os.fsencode, os.listdir(tree.directory(path))))
    except OSError:
        return
    for name in names:
        below = path + b"/" + name if path else name
        if name == b".git":
            continue
        if not isinstance(snapshot.state(below), Present):
            yield below
        info = tree.lstat(below)
        if info is not None and (info.st_mode & 0o170000) == 0o040000:
            yield from _names_below(tree, below, snapshot)
