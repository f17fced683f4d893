"""Keeps what an operation names alive: brings the user's objects over, anchors them, and sends them back for an undo.

A snapshot holds refs, logs and stashes as text, and text keeps no commit reachable. So every id that an operation's git state
names is brought into the store with all it refers to, and hung on a ref of its chain: commits as parents of an *anchor*, a
commit with an empty tree whose first parent is the anchor before it; tags, trees and blobs as ``refs/safety/keep/<id>``. An
anchor is moved before the operation that names its ids is published, and hangs on no operation: forgetting old operations must
not forget it.

Ids come in as 20 raw bytes or as 40 hexadecimal digits; sets that go out are hexadecimal.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore, SourceObjects
from safety.plumbing.run import Git, GitError
from safety.store import shallow
from safety.store.closure import Closure, closure, hex_id, raw_id
from safety.store.packs import sync_folder
from safety.store.seed import has_promisor, is_complete
from safety.store.storerefs import ANCHOR, KEEP, delete_refs, refs_below, rewrite_packed_refs
from safety.types import ObjectId

# Above these git does the walk and the transfer; below, a process costs more than the work.
MOST_IN_PROCESS = 2000
BIGGEST_IN_PROCESS = 32 << 20
MOST_BYTES_IN_PROCESS = 64 << 20
_MOST_KEEP_FILES = 16
_MOST_HAVES = 2000
_MESSAGE = b"git-safety anchor\n"
_NO_GRAFTS = {"GIT_GRAFT_FILE": os.devnull}
_DEADLINE_S = 1800


# ---- user to store -------------------------------------------------------------------------------------------------------------


def bring_over(git: Git, odb: ObjectStore, root: bytes, objects_dir: bytes, ids: Iterable[bytes]) -> frozenset[bytes]:
    """Makes the store have every id with its closure; gives (in hexadecimal) what the user's repository lacks too.

    ``objects_dir`` is the ``objects`` folder of the repository whose work tree is ``root``. Stops at what the store has. Small
    closures are carried in process, each object after what it refers to, so that a kill leaves no object without its closure; big
    ones by the user's ``pack-objects`` into our ``index-pack``. Never fetches, never writes to the user's repository.
    """
    wanted = [raw_id(oid) for oid in ids]
    trusted = is_complete(odb.git_dir, objects_dir)
    ends_moved, uncovered = _follow_shallow(odb, objects_dir)
    wanted += uncovered
    if trusted:
        wanted = [oid for oid in wanted if not odb.exists(oid)]
    missing = _Carrier(git, odb, root, objects_dir).carry(wanted, through=not trusted) if wanted else set()
    if ends_moved:
        _settle_shallow(odb, objects_dir)
    return frozenset(map(hex_id, missing))


class _Carrier:
    def __init__(self, git: Git, odb: ObjectStore, root: bytes, objects_dir: bytes) -> None:
        self.git, self.odb, self.root = git, odb, root
        self.source = SourceObjects(objects_dir)
        self.cut = shallow.read_ids(_shallow_file(objects_dir))
        self.refused = purged_ids(odb.git_dir)

    def carry(self, wanted: list[ObjectId], *, through: bool) -> set[ObjectId]:
        found = self._closure(wanted, limit=MOST_IN_PROCESS, through=through)
        if not found.complete:
            try:
                return self._by_git(wanted)
            except GitError:  # a history with holes: git gives up at the first one, we do not
                found = self._closure(wanted, limit=None, through=through)
        if len(found.order) > MOST_IN_PROCESS or found.biggest > BIGGEST_IN_PROCESS or found.bytes > MOST_BYTES_IN_PROCESS:
            self._transfer([hex_id(oid) for oid, _ in found.order])
            return found.missing
        for oid, kind in found.order:
            self.odb.write(kind, self.source.read(oid)[1])
        return found.missing

    def _closure(self, wanted: list[ObjectId], *, limit: int | None, through: bool) -> Closure:
        source = self.source
        return closure(
            source.read, source.header, self.odb.exists, wanted, cut=self.cut, refused=self.refused, limit=limit, through=through
        )

    def _by_git(self, wanted: list[ObjectId]) -> set[ObjectId]:
        there = {oid for oid in wanted if self.source.exists(oid)}
        haves = [oid for oid in anchored_tips(self.odb) if oid not in there and self.source.exists(oid)]
        fed = [*map(hex_id, there), *(b"^" + hex_id(oid) for oid in haves)]
        args = ["rev-list", "--objects", "--missing=print", "--stdin"]
        listed = self.git.user(
            self.root, args, input=b"\n".join([*fed, b""]), extra_env=_NO_GRAFTS, deadline_s=_DEADLINE_S
        ).stdout
        missing = set(wanted) - there
        lines = []
        for line in listed.splitlines():
            if line.startswith(b"?"):
                missing.add(raw_id(line[1:41]))
                continue
            oid = raw_id(line[:40])
            if oid in self.refused:
                missing.add(oid)
            elif not self.odb.exists(oid):
                lines.append(line)
        self._transfer(lines)
        return {oid for oid in missing if not self.odb.exists(oid)}

    def _transfer(self, lines: list[bytes]) -> None:
        if not lines:
            return
        packer = ["pack-objects", "-q", "--stdout", "--delta-base-offset"]
        fed = b"\n".join([*lines, b""])
        self.git.pipe_user_to_store(
            self.root, packer, self.odb.git_dir, ["index-pack", "--stdin"], input=fed, deadline_s=_DEADLINE_S
        )
        self.odb.refresh()


def _shallow_file(objects_dir: bytes) -> bytes:
    return os.path.dirname(objects_dir) + b"/shallow"


def _follow_shallow(odb: ObjectStore, objects_dir: bytes) -> tuple[bool, list[ObjectId]]:
    """Takes note of new ends of a shallow history: whether there are, and commits that a deepened one now has and the store may
    lack.

    An end stays noted until its parents are in the store (``_settle_shallow``), so that nothing walks into a hole meanwhile.
    """
    author = shallow.source_of(objects_dir)
    now = shallow.read_ids(_shallow_file(objects_dir))
    noted = shallow.share(odb.git_dir, author)
    if not shallow.is_news(odb.git_dir, author, now):
        return False, []
    shallow.set_share(odb.git_dir, author, now | noted, durable=False)
    return True, [parent for oid in noted - now for parent in _parents(odb, oid)]


def _settle_shallow(odb: ObjectStore, objects_dir: bytes) -> None:
    """Drops ends from the note whose parents the store has: there history goes on, whatever the user's repository says."""
    author = shallow.source_of(objects_dir)
    noted = shallow.share(odb.git_dir, author)
    left = {oid for oid in noted if not odb.exists(oid) or not all(map(odb.exists, _parents(odb, oid)))}
    if left != noted:
        shallow.set_share(odb.git_dir, author, left, durable=False)
    shallow.remember(odb.git_dir, author, shallow.read_ids(_shallow_file(objects_dir)))


def _parents(odb: ObjectStore, oid: ObjectId) -> tuple[ObjectId, ...]:
    try:
        return odb.read_commit(oid).parents
    except (ObjectMissing, ObjectCorrupt):
        return ()


# ---- anchoring -----------------------------------------------------------------------------------------------------------------


def anchor(odb: ObjectStore, chain: str, ids: Iterable[bytes]) -> ObjectId | None:
    """Keeps the ids, those the store has, reachable for this chain; gives the chain's anchor, None if it has none.

    To be called, under the workspace lock, before the operation that names them is published. Ids anchored before cost a lookup.
    Raises RefMoved if another writer moved the anchor.
    """
    ref = ANCHOR + chain
    head = odb.ref(ref)
    known = _anchored(odb, chain, head)
    commits, others = sorted_by_kind(odb, {raw_id(oid) for oid in ids} - known)
    keep(odb, others)
    if not commits:
        return head
    new = _write_anchor(odb, [*([] if head is None else [head]), *commits])
    odb.move_ref(ref, head, new)
    _note(odb, chain, new, commits)
    return new


def rebuild_anchor(odb: ObjectStore, chain: str, commits: Iterable[ObjectId]) -> None:
    """Replaces the chain's anchors by a single one that keeps exactly these commits; removes it if there are none."""
    ref = ANCHOR + chain
    head, wanted = odb.ref(ref), sorted(commits)
    _cache_file(odb, chain).unlink(missing_ok=True)
    if not wanted:
        delete_refs(odb.git_dir, [ref])
    elif set(wanted) != _anchored(odb, chain, head) or odb.read_commit(head or b"").parents != tuple(wanted):
        odb.move_ref(ref, head, _write_anchor(odb, wanted))


def _write_anchor(odb: ObjectStore, parents: list[ObjectId]) -> ObjectId:
    return odb.commit(odb.write("tree", b""), parents, _MESSAGE, 0)


def sorted_by_kind(odb: ObjectStore, ids: Iterable[ObjectId]) -> tuple[list[ObjectId], list[ObjectId]]:
    """The commits among the ids, and the other objects, both sorted; what the store lacks is left out."""
    commits: list[ObjectId] = []
    others: list[ObjectId] = []
    objects = SourceObjects(odb.git_dir / "objects")
    for oid in sorted(ids):
        try:
            is_commit = objects.header(oid)[0] == "commit"
        except (ObjectMissing, ObjectCorrupt):
            continue
        (commits if is_commit else others).append(oid)
    return commits, others


def anchors_of(odb: ObjectStore, head: ObjectId | None) -> set[ObjectId]:
    """All ids that the anchor and those before it keep."""
    found: set[ObjectId] = set()
    while head is not None:
        commit = odb.read_commit(head)
        previous = None
        for place, parent in enumerate(commit.parents):
            if place == 0 and odb.read_commit(parent).message == _MESSAGE:
                previous = parent
            else:
                found.add(parent)
        head = previous
    return found


def _cache_file(odb: ObjectStore, chain: str) -> Path:
    return odb.git_dir / "anchors" / chain


def _anchored(odb: ObjectStore, chain: str, head: ObjectId | None) -> frozenset[ObjectId]:
    """What the chain's anchors keep, from the cache beside them when that ends with this head, else walked and cached anew.

    The cache is a list of records, appended to: the anchor's id, how many ids it added (4 bytes), the ids.
    """
    if head is None:
        return frozenset()
    file = _cache_file(odb, chain)
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        data = b""
    known: set[ObjectId] = set()
    at, last = 0, b""
    while at + 24 <= len(data):
        last, count = data[at : at + 20], int.from_bytes(data[at + 20 : at + 24], "big")
        at += 24 + 20 * count
        if at > len(data):
            break
        known.update(data[place : place + 20] for place in range(at - 20 * count, at, 20))
    if last == head and at == len(data):
        return frozenset(known)
    known = anchors_of(odb, head)
    file.unlink(missing_ok=True)
    _note(odb, chain, head, sorted(known))
    return frozenset(known)


def _note(odb: ObjectStore, chain: str, head: ObjectId, added: list[ObjectId]) -> None:
    file = _cache_file(odb, chain)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    with open(file, "ab") as out:
        out.write(head + len(added).to_bytes(4, "big") + b"".join(added))


def keep(odb: ObjectStore, ids: Iterable[ObjectId]) -> None:
    """Gives each object a ``keep`` ref.

    A few are files, many (a repository with thousands of tags) go into ``packed-refs`` at once.
    """
    kept = refs_below(odb.git_dir, KEEP)
    new = sorted({oid for oid in ids if KEEP + oid.hex() not in kept})
    if len(new) <= _MOST_KEEP_FILES:
        for oid in new:
            odb.move_ref(KEEP + oid.hex(), None, oid)
        return
    rewrite_packed_refs(odb.git_dir, {KEEP + oid.hex(): oid for oid in new}, frozenset())


def anchored_tips(odb: ObjectStore) -> list[ObjectId]:
    """Commits the anchors of all chains keep, newest anchors first, up to a bound: what a sender need not send again."""
    found: list[ObjectId] = []
    for head in refs_below(odb.git_dir, ANCHOR).values():
        walked: ObjectId | None = head
        while walked is not None and len(found) < _MOST_HAVES:
            parents = _parents(odb, walked)
            found += parents[1:]
            walked = parents[0] if parents else None
            if walked is not None and walked not in found and odb.read_commit(walked).message != _MESSAGE:
                found.append(walked)
                walked = None
    return found[:_MOST_HAVES]


# ---- store to user -------------------------------------------------------------------------------------------------------------


def send_back(
    git: Git,
    odb: ObjectStore,
    git_dir_of_store: Path,
    root: bytes,
    ids: Iterable[bytes],
    *,
    objects_dir: bytes | None = None,
    laid_beside: Path | None = None,
    trust_refs: bool = True,
) -> frozenset[bytes]:
    """Makes the user's repository have every id with its closure, from the store, as one pack; gives (hex) what the store lacks
    too.

    ``objects_dir`` is the repository's ``objects`` folder, by default ``root/.git/objects``. With ``laid_beside`` the receiver
    is that git directory instead, which is being restored and not yet in place. What the user's refs reach is taken to be
    there; with ``trust_refs`` False (files below ``objects`` were damaged) it is looked for as well. Writes nothing when
    nothing is missing.
    """
    wanted = {raw_id(oid) for oid in ids}
    if laid_beside is not None:
        target = SourceObjects(os.fsencode(laid_beside / "objects"))
        tips: set[ObjectId] = set()
    else:
        target = SourceObjects(objects_dir or root + b"/.git/objects")
        tips = {oid for oid in _tips(git, root) if target.exists(oid)} if trust_refs else set()
    wanted -= tips
    if not wanted:
        return frozenset()
    lines, missing = _lacking(git, odb, wanted, tips, target)
    if lines:
        if laid_beside is not None:
            _lay_pack(git, git_dir_of_store, laid_beside, lines)
        else:
            fed = b"\n".join([*lines, b""])
            packer = ["pack-objects", "-q", "--stdout", "--delta-base-offset"]
            git.pipe_store_to_user(git_dir_of_store, packer, root, ["index-pack", "--stdin"], input=fed, deadline_s=_DEADLINE_S)
    return frozenset(map(hex_id, missing))


def _tips(git: Git, root: bytes) -> set[ObjectId]:
    listed = git.user(root, ["for-each-ref", "--format=%(objectname)"]).stdout.split()
    head = git.user(root, ["rev-parse", "--verify", "-q", "HEAD"], check=False).stdout.split()
    return {raw_id(oid) for oid in [*listed, *head] if len(oid) == 40}


def _lacking(
    git: Git, odb: ObjectStore, wanted: set[ObjectId], tips: set[ObjectId], target: SourceObjects
) -> tuple[list[bytes], set[ObjectId]]:
    """Lines for pack-objects with all that the receiver lacks, and the ids that the store lacks as well."""
    there = {oid for oid in wanted if odb.exists(oid)}
    missing = {oid for oid in wanted - there if not target.exists(oid)}
    fed = [*map(hex_id, there), *(b"^" + hex_id(oid) for oid in tips if odb.exists(oid))]
    args = ["rev-list", "--objects", "--missing=print", "--stdin"]
    try:
        listed = git.store(odb.git_dir, args, input=b"\n".join([*fed, b""]), deadline_s=_DEADLINE_S).stdout.splitlines()
    except GitError:
        objects = SourceObjects(odb.git_dir / "objects")
        found = closure(
            objects.read, objects.header, lambda oid: oid in tips, there, cut=shallow.read_ids(odb.git_dir / "shallow")
        )
        listed = [hex_id(oid) for oid, _ in found.order] + [b"?" + hex_id(oid) for oid in found.missing]
    lines = []
    for line in listed:
        oid = raw_id(line[1:41] if line.startswith(b"?") else line[:40])
        if target.exists(oid):
            continue
        if line.startswith(b"?"):
            missing.add(oid)
        else:
            lines.append(line)
    return lines, missing


def _lay_pack(git: Git, store: Path, laid_beside: Path, lines: list[bytes]) -> None:
    """Packs objects of the store straight into a git directory that is being laid back, the index last."""
    draft = store / f"tmp_out_{os.getpid()}_{time.monotonic_ns()}"
    draft.mkdir(mode=0o700)
    folder = laid_beside / "objects/pack"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        args = ["pack-objects", "-q", "--delta-base-offset", str(draft / "pack")]
        name = "pack-" + git.store(store, args, input=b"\n".join([*lines, b""]), deadline_s=_DEADLINE_S).stdout.decode().strip()
        if has_promisor(store):  # else git would take what the partial clone left out for damage
            (folder / f"{name}.promisor").touch()
        for suffix in (".pack", ".rev", ".idx"):
            if (draft / f"{name}{suffix}").exists():
                shutil.move(draft / f"{name}{suffix}", folder / f"{name}{suffix}")
        sync_folder(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def purged_ids(git_dir: Path, name: str = "purged") -> frozenset[ObjectId]:
    """Blobs whose content was purged and is not to come back out of the user's repository."""
    return shallow.read_ids(git_dir / name)
