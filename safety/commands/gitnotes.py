"""What happened to git's own state between two snapshots, in sentences: HEAD, branches, tags, index, stash, what is under way."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from safety.commands.changes import member_of
from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore
from safety.plumbing.refs import parse_packed_refs, ref_text
from safety.store.gitstate import GitValue, read_value
from safety.store.members import MemberPlace, is_repository, member_place
from safety.store.restore import Piece
from safety.store.snapshot import Snapshot
from safety.store.worktrees import worktree_changes
from safety.types import ObjectId

SHORT = 7
MOST_COMMITS = 500
_SHOWN_REFS = 20
_CLOCK_SLACK_S = 2


def git_notes(odb: ObjectStore, root: bytes, parts: Sequence[Piece]) -> tuple[str, ...]:
    """What the pieces (oldest first) did to git's state, each member repository by itself."""
    notes: list[str] = []
    if not parts:
        return ()
    before, after = Snapshot(odb, parts[0].before), Snapshot(odb, parts[-1].after)
    touched = {member_of(path) for piece in parts for path in piece.paths}
    names = sorted({b"", *before.members(), *after.members(), *touched})
    for name in names:
        places = [place for place in (member_place(after, root, name), member_place(before, root, name)) if place is not None]
        if not places:
            continue
        old, new = (_value(side, places[0] if side is after else places[-1]) for side in (before, after))
        prefix = f"{name.decode('utf-8', 'surrogateescape')}: " if name else ""
        notes += [prefix + note for note in _notes(odb, old, new)]
        changed = worktree_changes(before, after, places[0].common) if old.exists and new.exists else ()
        notes += [f"{prefix}the linked work tree {os.fsdecode(one.folder)} was {one.became}" for one in changed]
    return tuple(notes)


def git_word(odb: ObjectStore, root: bytes, parts: Sequence[Piece]) -> str:
    """What changed of git, in a word: ``.git removed``, ``.git made``, else ``git``; empty without pieces. Reads no index and no refs."""
    if not parts:
        return ""
    had, has = (_has_repository(Snapshot(odb, tree), root) for tree in (parts[0].before, parts[-1].after))
    return "git" if had == has else ".git made" if has else ".git removed"


def _has_repository(snapshot: Snapshot, root: bytes) -> bool:
    place = member_place(snapshot, root, b"")
    return place is not None and is_repository(snapshot, place)


def _value(snapshot: Snapshot, place: MemberPlace) -> GitValue:
    return read_value(snapshot, place) if is_repository(snapshot, place) else GitValue(False)


def _notes(odb: ObjectStore, old: GitValue, new: GitValue) -> Iterator[str]:
    if old.exists != new.exists:
        yield "the repository was made" if new.exists else "the repository was removed"
        return
    yield from _head(old, new)
    yield from _refs(odb, old, new)
    yield from _index(old, new)
    yield from _stash(old, new)
    yield from _progress(old, new)


def _head(old: GitValue, new: GitValue) -> Iterator[str]:
    if old.head == new.head:
        return
    if new.branch is None and old.branch is None:
        yield f"HEAD {_short(old.head)} -> {_short(new.head)}, detached"
    else:
        yield f"HEAD moved from {_place(old)} to {_place(new)}"


def _place(value: GitValue) -> str:
    return _ref(value.branch) if value.branch is not None else f"{_short(value.head)} (detached)"


def _refs(odb: ObjectStore, old: GitValue, new: GitValue) -> Iterator[str]:
    moved = [
        name for name in sorted({*old.refs, *new.refs}) if old.refs.get(name) != new.refs.get(name) and name != b"refs/stash"
    ]
    for name in moved[:_SHOWN_REFS]:
        before, after = old.refs.get(name), new.refs.get(name)
        if before is None and after is not None:
            yield f"{_ref(name)} made at {_short(after)}"
        elif after is None and before is not None:
            yield f"{_ref(name)} deleted, was {_short(before)}"
        elif before is not None and after is not None:
            yield f"{_ref(name)} {_short(before)} -> {_short(after)}{_commits(odb, before, after)}"
    if len(moved) > _SHOWN_REFS:
        yield f"{len(moved) - _SHOWN_REFS} more refs moved"


def _commits(odb: ObjectStore, before: bytes, after: bytes) -> str:
    """``, 2 commits`` where one leads to the other by first parents."""
    for start, end, words in ((after, before, ""), (before, after, " taken off")):
        number = _distance(odb, start, end)
        if number:
            return f", {number} {'commit' if number == 1 else 'commits'}{words}"
    return ""


def commits_moved(odb: ObjectStore, now: GitValue, target: GitValue) -> str:
    """``1 commit taken off``, ``2 commits back``: how far the branch that HEAD shall be on moves; empty if it does not."""
    branch = target.branch
    before, after = (now.refs.get(branch), target.refs.get(branch)) if branch is not None else (None, None)
    if before is None or after is None or before == after:
        return ""
    for start, end, words in ((before, after, "taken off"), (after, before, "back")):
        if number := _distance(odb, start, end):
            return f"{number} {'commit' if number == 1 else 'commits'} {words}"
    return ""


def _distance(odb: ObjectStore, start: bytes, end: bytes) -> int:
    try:
        oid, wanted = _raw(start), _raw(end)
        for number in range(MOST_COMMITS):
            if oid == wanted:
                return number
            parents = odb.read_commit(oid).parents
            if not parents:
                break
            oid = parents[0]
    except (ObjectMissing, ObjectCorrupt, ValueError):
        pass
    return 0


def _index(old: GitValue, new: GitValue) -> Iterator[str]:
    changed = [path for path in {*old.index, *new.index} if old.index.get(path) != new.index.get(path)]
    if old.raw_index != new.raw_index:
        yield "the index changed"
    elif changed:
        yield f"index: {len(changed)} {'entry' if len(changed) == 1 else 'entries'} changed"


def _stash(old: GitValue, new: GitValue) -> Iterator[str]:
    before, after = {entry.oid for entry in old.stash}, {entry.oid for entry in new.stash}
    for number, words in ((len(after - before), "added"), (len(before - after), "dropped")):
        if number:
            yield f"stash: {number} {'entry' if number == 1 else 'entries'} {words}"


_UNDER_WAY = {
    b"MERGE_HEAD": "a merge",
    b"CHERRY_PICK_HEAD": "a cherry-pick",
    b"REVERT_HEAD": "a revert",
    b"rebase-merge": "a rebase",
    b"rebase-apply": "a rebase",
    b"BISECT_LOG": "a bisect",
}


def _progress(old: GitValue, new: GitValue) -> Iterator[str]:
    before, after = ({name.split(b"/")[0] for name in value.progress} for value in (old, new))
    for names, words in ((after - before, "was begun and is under way"), (before - after, "that was under way is no more")):
        yield from dict.fromkeys(f"{_UNDER_WAY[name]} {words}" for name in sorted(names) if name in _UNDER_WAY)


def _ref(name: bytes) -> str:
    for start, words in ((b"refs/heads/", ""), (b"refs/tags/", "tag "), (b"refs/remotes/", ""), (b"refs/", "")):
        if name.startswith(start):
            return words + name[len(start) :].decode("utf-8", "surrogateescape")
    return name.decode("utf-8", "surrogateescape")


def _short(oid: bytes) -> str:
    return oid[:SHORT].decode("ascii", "replace")


def _raw(oid: bytes) -> ObjectId:
    return bytes.fromhex(oid.decode("ascii", "replace"))


# -- the commit a turn made ------------------------------------------------------------------------------------------------------


def commit_made(odb: ObjectStore, root: bytes, parts: Sequence[Piece], started_ms: int) -> str:
    """Short id of the root repository's new commit if HEAD stands on one made since then; reads a handful of small files."""
    if not parts:
        return ""
    before, after = (head_commit(Snapshot(odb, tree), root) for tree in (parts[0].before, parts[-1].after))
    if not after or after == before:
        return ""
    try:
        head = odb.read(_raw(after))[1].partition(b"\n\n")[0]
    except (ObjectMissing, ObjectCorrupt, ValueError):
        return ""
    when = next((line.split(b" ")[-2] for line in head.split(b"\n") if line.startswith(b"committer ")), b"0")
    made = when.isdigit() and int(when) >= started_ms // 1000 - _CLOCK_SLACK_S
    return _short(after) if made else ""


def head_commit(snapshot: Snapshot, root: bytes) -> bytes:
    """What HEAD of the root repository stands for, in hexadecimal; empty for none."""
    head, branch, place = head_of(snapshot, root)
    if place is None or branch is None:
        return head
    try:
        return ref_text(snapshot.read(place.common + b"/" + branch))
    except KeyError:
        pass
    try:
        return parse_packed_refs(snapshot.read(place.common + b"/packed-refs"))[0].get(branch, b"")
    except KeyError:
        return b""


def head_of(snapshot: Snapshot, root: bytes) -> tuple[bytes, bytes | None, MemberPlace | None]:
    """The text of HEAD, the ref it names (None if detached), and where the root repository lies (None if there is none)."""
    place = member_place(snapshot, root, b"")
    if place is None:
        return b"", None, None
    try:
        head = ref_text(snapshot.read(place.own + b"/HEAD"))
    except KeyError:
        return b"", None, None
    return head, head[4:].strip() if head.startswith(b"ref:") else None, place
