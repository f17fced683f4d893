"""The agent's changes put on HEAD, path by path: what changed only there is taken, what the user changed too is merged or left out.

Each path is merged by itself and only where it must be, from the blobs. A merge of whole synthetic commits would give the same,
but would follow the repository's merge drivers and its ``merge=union``, which puts the user's unfinished lines into the result.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from safety.commit.clean import clean_contents, folders_above
from safety.commit.objects import Clash, Objects
from safety.commit.staging import Staging, merge_entries, staged_after
from safety.commit.state import State
from safety.commit.values import EXECUTABLE, GITLINK, LINK, REGULAR, Change, Entry, LeftOut, Request, Side, Step
from safety.plumbing.ignore import ignored_paths
from safety.plumbing.index import ASSUME_VALID, SKIP_WORKTREE
from safety.plumbing.odb import hash_object
from safety.plumbing.run import Git

Part = tuple[Side | None, Side | None]

_MODES = (REGULAR, EXECUTABLE, LINK, GITLINK)

# Why a path is left out. The words follow "not committed:".
REASONS: Mapping[str, str] = {
    "outside": "no path of this repository",
    "nested": "it belongs to a repository inside this one",
    "submodule": "it is a submodule",
    "below-link": "it lies below a symbolic link",
    "hidden": "git was told to overlook this file (skip-worktree or assume-unchanged)",
    "taken-back": "it is again as it was before the agent",
    "yours": "you changed it before, and the agent deleted it or made it something else",
    "renamed": "it is a file of yours under a new name, with what you have not committed yet",
    "new": "it is a new file of yours that you have not committed yet",
    "gone": "you deleted it",
    "overlap": "your changes are on the same or on neighbouring lines",
    "binary": "it is no text, and you changed it too",
    "staged": "what you staged of it is on the same or on neighbouring lines",
    "filter": "a filter of the repository failed on it",
    "unreadable": "its content in HEAD is not at hand",
    "clash": "it would be a file where a folder is, or a folder where a file is",
}


@dataclass
class Delta:
    """What of the agent's changes goes into the commit, and what does not."""

    tree: str
    changes: tuple[Change, ...] = ()
    left_out: dict[bytes, LeftOut] = field(default_factory=dict)

    def leave(self, path: bytes, code: str) -> None:
        self.left_out.setdefault(path, LeftOut(path, code, REASONS[code]))


class _Conflict(Exception):
    """Two sides that cannot be joined; the argument is a code of REASONS."""


def compute_delta(git: Git, objects: Objects, state: State, request: Request, tree: str, staging: Staging) -> Delta:
    """HEAD's ``tree`` with the agent's changes, written; and how the index follows."""
    delta = Delta(tree)
    steps = {
        path: parts
        for path, parts in by_path(request.steps).items()
        if _may_commit(delta, request, objects, staging, path, parts)
    }
    # What git ignores is nobody's to commit, and nothing is said of it.
    for path in ignored_paths(git, request.root, [path for path in steps if _is_new(objects, staging, tree, path)]):
        del steps[path]
    sides = [(path, side) for path, parts in steps.items() for part in parts for side in part if side is not None]
    plain = [content for content in sides if content[1].mode != GITLINK]
    cleaned = clean_contents(git, request.root, objects, tree, staging.paths, plain)
    maker = _Maker(git, objects, state, request, tree, cleaned)
    news: dict[bytes, Entry | None] = {}
    for path, parts in steps.items():
        try:
            news[path] = maker.result(path, parts)
        except _Conflict as conflict:
            delta.leave(path, str(conflict))
    for path in () if request.include_mine else _users_under_new_names(objects, tree, delta, steps):
        if news.pop(path, None) is not None:
            delta.leave(path, "renamed")
    maker.write()
    news = {path: new for path, new in news.items() if new != objects.entry(tree, path)}
    changes = _staged(git, objects, staging, request, news, maker.agents, delta)
    delta.tree, delta.changes = _built(objects, tree, changes, delta)
    return delta


def _users_under_new_names(objects: Objects, tree: str, delta: Delta, steps: Mapping[bytes, Sequence[Part]]) -> list[bytes]:
    """New paths with the very content of one that the agent removed and that the user had changed, or never committed."""
    left = {
        parts[-1][0].data
        for path, parts in steps.items()
        if parts[-1][0] and parts[-1][1] is None and (path in delta.left_out or objects.entry(tree, path) is None)
    }
    return [path for path, parts in steps.items() if parts[0][0] is None and parts[0][1] and parts[0][1].data in left]


def by_path(steps: Iterable[Step]) -> dict[bytes, list[Part]]:
    """Each path's changes, oldest first; a path that is in the end as it was before is not among them."""
    found: dict[bytes, list[Part]] = {}
    for step in steps:
        if step.before != step.after:
            found.setdefault(step.path, []).append((step.before, step.after))
    return {path: found[path] for path in sorted(found) if joined(found[path])}


def joined(parts: Iterable[Part]) -> list[Part]:
    """Changes that follow on one another as one; what someone else did in between separates two."""
    found: list[Part] = []
    for before, after in parts:
        if found and found[-1][1] == before:
            found[-1] = (found[-1][0], after)
        else:
            found.append((before, after))
    return [part for part in found if part[0] != part[1]]


def _may_commit(
    delta: Delta,
    request: Request,
    objects: Objects,
    staging: Staging,
    path: bytes,
    parts: Sequence[Part],
) -> bool:
    """Whether a path can be in a commit at all; if not, it is left out with its reason."""
    code = ""
    modes = {side.mode for part in parts for side in part if side is not None}
    if path.startswith(b"/") or any(_is_odd(name) for name in path.split(b"/")) or not modes <= set(_MODES):
        code = "outside"
    elif (place := _other_place(request.root, objects, delta.tree, path)) != "":
        code = place
    elif GITLINK in modes and not request.settings.submodules:
        code = "submodule"
    elif staging.flags(path) & (SKIP_WORKTREE | ASSUME_VALID):
        code = "hidden"
    elif parts[0][0] != parts[-1][1] and GITLINK not in modes and _on_disk(request.root, path) == parts[0][0]:
        code = "taken-back"
    if code:
        delta.leave(path, code)
    return not code


def _is_odd(name: bytes) -> bool:
    """Whether git would not have a file or folder of this name."""
    return name in (b"", b".", b"..") or b"\0" in name or name.lower() == b".git"


def _other_place(root: bytes, objects: Objects, tree: str, path: bytes) -> str:
    """``nested``, ``submodule`` or ``below-link`` if the path's folders are not this repository's, else ""."""
    for folder in folders_above(path)[1:]:
        folder = folder[:-1]
        found = objects.entry(tree, folder)
        if found is not None and found.mode == GITLINK:
            return "submodule"
        if os.path.islink(os.path.join(root, folder)):
            return "below-link"
        if os.path.lexists(os.path.join(root, folder, b".git")):
            return "nested"
    return ""


def _on_disk(root: bytes, path: bytes) -> Side | None:
    """The file as it is now; None also for what is neither a file nor a link."""
    full = os.path.join(root, path)
    try:
        if os.path.islink(full):
            return Side(LINK, os.readlink(full))
        if not os.path.isfile(full):
            return None
        with open(full, "rb") as file:
            mode = EXECUTABLE if os.fstat(file.fileno()).st_mode & 0o100 else REGULAR
            return Side(mode, file.read())
    except OSError:
        return None


def _is_new(objects: Objects, staging: Staging, tree: str, path: bytes) -> bool:
    return objects.entry(tree, path) is None and path not in staging.paths


class _Maker:
    """Gives each path its entry in the commit; blobs are written by ``write``, all at once."""

    def __init__(
        self,
        git: Git,
        objects: Objects,
        state: State,
        request: Request,
        tree: str,
        cleaned: Mapping[tuple[bytes, Side], bytes | None],
    ) -> None:
        self._git, self._objects, self._request, self._tree, self._cleaned = git, objects, request, tree, cleaned
        self._modes_count = state.true("core.filemode", True)
        self._unwritten: dict[str, bytes] = {}
        self.agents: dict[bytes, set[str]] = {}

    def result(self, path: bytes, parts: Sequence[Part]) -> Entry | None:
        """A path's entry in the commit. Raises _Conflict."""
        head = self._objects.entry(self._tree, path)
        news = self._after_head(path, parts, head)
        try:
            try:
                return self._onto(path, joined(news), head)
            except _Conflict:
                # Some of them may have been committed since, beside lines of the user's that were not.
                if len(news) == 1:
                    raise
                return self._onto(path, news, head)
        except _Conflict:
            if not self._request.include_mine:
                raise
            return self._entry(path, parts[-1][1])

    def _after_head(self, path: bytes, parts: Sequence[Part], head: Entry | None) -> Sequence[Part]:
        """The changes since the path was as HEAD has it: what came before somebody has committed in the meantime."""
        for at in range(len(parts), 0, -1):
            if head is not None and self._entry(path, parts[at - 1][1], wanted=False) == head:
                return parts[at:]
            if head is not None and self._entry(path, parts[at - 1][0], wanted=False) == head:
                return parts[at - 1 :]
        return parts

    def _onto(self, path: bytes, parts: Sequence[Part], ours: Entry | None) -> Entry | None:
        for before, after in parts:
            base, theirs = self._entry(path, before), self._entry(path, after)
            if not self._modes_count:
                theirs = _with_mode(theirs, base)
            if theirs is not None:
                self.agents.setdefault(path, set()).add(theirs.oid)
            ours = self._merge(base, ours, theirs)
        return ours

    def write(self) -> None:
        """Puts the blobs into the repository that are not known to be there."""
        self._objects.write_blobs(list(self._unwritten.values()))
        self._unwritten.clear()

    def _entry(self, path: bytes, side: Side | None, *, wanted: bool = True) -> Entry | None:
        """What git has for a side; ``wanted`` False: only to compare, so it need not be written."""
        if side is None:
            return None
        if side.mode == GITLINK:
            return Entry(GITLINK, side.data.decode("ascii", "replace"))
        data = self._cleaned[path, side]
        if data is None:
            raise _Conflict("filter")
        oid = hash_object("blob", data).hex()
        there = self._objects.entry(self._tree, path)
        if wanted and (there is None or there.oid != oid):
            self._unwritten[oid] = data
        return Entry(side.mode, oid)

    def _merge(self, base: Entry | None, ours: Entry | None, theirs: Entry | None) -> Entry | None:
        if theirs in (base, ours):
            return ours
        if ours == base:
            return theirs
        if ours is None:
            raise _Conflict("new" if base is not None else "clash")
        if base is None or theirs is None:
            raise _Conflict("yours" if theirs is None else "gone")
        self.write()
        merged = merge_entries(self._git, self._objects, base, ours, theirs)
        if merged is None:
            raise _Conflict(self._why(base, ours, theirs))
        return merged

    def _why(self, *entries: Entry) -> str:
        if any(entry.mode in (LINK, GITLINK) for entry in entries):
            return "yours"
        texts = [self._objects.blob(entry.oid) for entry in entries]
        if any(text is None for text in texts):
            return "unreadable"
        return "binary" if any(b"\0" in (text or b"") for text in texts) else "overlap"


def _with_mode(entry: Entry | None, base: Entry | None) -> Entry | None:
    """A file's entry where permissions mean nothing: as it was, and not executable if it is new."""
    if entry is None or entry.mode not in (REGULAR, EXECUTABLE):
        return entry
    known = base is not None and base.mode in (REGULAR, EXECUTABLE)
    return Entry(base.mode if known and base is not None else REGULAR, entry.oid)


def _staged(
    git: Git,
    objects: Objects,
    staging: Staging,
    request: Request,
    news: Mapping[bytes, Entry | None],
    agents: Mapping[bytes, Collection[str]],
    delta: Delta,
) -> list[Change]:
    """The changes whose staging can follow them; the others are left out."""
    changes = []
    tree = delta.tree
    going = {path for path, new in news.items() if new is None}
    for path, new in news.items():
        old, staged = objects.entry(tree, path), staging.staged(path)
        known: Collection[str] = ()
        if staged not in (old, new):
            known = {*agents.get(path, ()), *_left_by_agent(request.steps, path)}
        fits, after = staged_after(git, objects, staged, old, new, known)
        if not fits and request.include_mine:
            fits, after = True, new
        if not fits:
            delta.leave(path, "staged" if staged is not None and old is not None else "gone" if old is not None else "new")
        elif after is not None and staging.in_the_way(path, going):
            delta.leave(path, "clash")
        else:
            changes.append(Change(path, old, new, staged, after))
    return changes


def _left_by_agent(steps: Iterable[Step], path: bytes) -> Iterator[str]:
    """The ids of what the steps left at a path, raw; the agent may have staged one of them."""
    for step in steps:
        if step.path == path and step.after is not None:
            yield hash_object("blob", step.after.data).hex()


def _built(objects: Objects, tree: str, changes: Iterable[Change], delta: Delta) -> tuple[str, tuple[Change, ...]]:
    """The tree of the commit and the changes in it, once no path is in another's way."""
    left = {change.path: change for change in changes}
    while True:
        try:
            built = objects.build(tree, {path: change.new for path, change in left.items()})
        except Clash as clash:
            for path in [path for path in left if path == clash.path or path.startswith(clash.path + b"/")]:
                delta.leave(path, "clash")
                del left[path]
        else:
            return built, tuple(left[path] for path in sorted(left))
