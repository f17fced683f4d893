"""Keeps what an operation names alive: brings the user's objects over, anchors them, and sends them back when an undo needs them.

A snapshot holds refs, logs and stashes as text, and text keeps no commit reachable. So every id that an operation's git state names
is brought into the store with all it refers to, and hung on a ref of its chain: commits as parents of an *anchor*, a commit with an
empty tree whose first parent is the anchor before it; tags, trees and blobs as ``refs/safety/keep/<id>``. An anchor is moved before
the operation that names its ids is published, and hangs on no operation: forgetting old operations must not forget it.

Ids come in as 20 raw bytes or as 40 hexadecimal digits; sets that go out are hexadecimal.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore, SourceObjects
from safety.plumbing.run import Git, GitError
from safety.store import shallow
from safety.store.packs import sync_folder
from safety.store.seed import has_promisor, is_complete
from safety.store.trees import GITLINK, parse_tree
from safety.types import ObjectId

ANCHOR = "refs/safety/anchor/"
KEEP = "refs/safety/keep/"
# Above these git does the walk and the transfer; below, a process costs more than the work.
MOST_IN_PROCESS = 2000
BIGGEST_IN_PROCESS = 32 << 20
MOST_BYTES_IN_PROCESS = 64 << 20
_MOST_KEEP_FILES = 16
_MOST_HAVES = 2000
_MESSAGE = b"git-safety anchor\n"
_NO_GRAFTS = {"GIT_GRAFT_FILE": os.devnull}
_DEADLINE_S = 1800


def raw_id(oid: bytes) -> ObjectId:
    """The 20 bytes of an id that may be written in hexadecimal."""
    return oid if len(oid) == 20 else bytes.fromhex(oid.decode("ascii"))


def _hex(oid: ObjectId) -> bytes:
    return oid.hex().encode("ascii")


# ---- walking -------------------------------------------------------------------------------------------------------------------


@dataclass
class Closure:
    """Objects to carry over, each after all that it refers to, and those that no one has.

    ``bytes`` is the sum of their sizes, ``biggest`` the largest one's. Not ``complete``: the walk was given up at its limit.
    """

    order: list[tuple[ObjectId, str]] = field(default_factory=list)
    missing: set[ObjectId] = field(default_factory=set)
    bytes: int = 0
    biggest: int = 0
    complete: bool = True


def closure(
    read: Callable[[ObjectId], tuple[str, bytes]],
    header: Callable[[ObjectId], tuple[str, int]],
    has: Callable[[ObjectId], bool],
    ids: Iterable[ObjectId],
    *,
    cut: frozenset[ObjectId] = frozenset(),
    refused: frozenset[ObjectId] = frozenset(),
    limit: int | None = None,
    through: bool = False,
) -> Closure:
    """All that ``ids`` refer to, themselves included, which the receiver does not have; stops where it has an object.

    ``cut`` are commits whose parents do not count (a shallow clone's end), ``refused`` are never carried. With ``through`` the walk
    goes on below what the receiver has (without listing it), because presence there does not imply closure.
    """
    found = Closure()
    carried = 0
    seen: set[ObjectId] = set()
    stack: list[tuple[ObjectId, str | None]] = [(oid, None) for oid in reversed(list(ids))]
    while stack:
        oid, kind = stack.pop()
        if kind is not None:  # second visit: everything below is in the list
            found.order.append((oid, kind))
            continue
        if oid in seen:
            continue
        seen.add(oid)
        present = has(oid)
        if present and not through:
            continue
        if oid in refused:
            found.missing.add(oid)
            continue
        try:
            kind, size = header(oid)
            below = [] if kind == "blob" else _references(kind, read(oid)[1], oid in cut)
        except (ObjectMissing, ObjectCorrupt):
            if not present:
                found.missing.add(oid)
            continue
        carried += not present or through
        if limit is not None and carried > limit:
            found.complete = False
            return found
        if not present:
            found.bytes += size
            found.biggest = max(found.biggest, size)
            stack.append((oid, kind))
        stack += [(other, None) for other in below if other not in seen]
    return found


def _references(kind: str, data: bytes, cut: bool) -> list[ObjectId]:
    """Ids an object names, in the order they are to be visited last to first. Gitlinks name nothing of this repository."""
    if kind == "tree":
        return [oid for mode, _, oid in parse_tree(data) if mode != GITLINK]
    wanted = (b"object",) if kind == "tag" else (b"tree",) if cut else (b"tree", b"parent")
    found = []
    for line in data.split(b"\n\n", 1)[0].split(b"\n"):
        word, _, value = line.partition(b" ")
        if word in wanted and len(value) == 40:
            found.append(bytes.fromhex(value.decode("ascii")))
    return found


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
    return frozenset(map(_hex, missing))


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
            self._transfer([_hex(oid) for oid, _ in found.order])
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
        fed = [*map(_hex, there), *(b"^" + _hex(oid) for oid in haves)]
        args = ["rev-list", "--objects", "--missing=print", "--stdin"]
        listed = self.git.user(self.root, args, input=b"\n".join([*fed, b""]), extra_env=_NO_GRAFTS, deadline_s=_DEADLINE_S).stdout
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
        self.git.pipe_user_to_store(self.root, packer, self.odb.git_dir, ["index-pack", "--stdin"], input=fed, deadline_s=_DEADLINE_S)
        self.odb.refresh()


def _shallow_file(objects_dir: bytes) -> bytes:
    return os.path.dirname(objects_dir) + b"/shallow"


def _follow_shallow(odb: ObjectStore, objects_dir: bytes) -> tuple[bool, list[ObjectId]]:
    """Takes note of new ends of a shallow history: whether there are, and commits that a deepened one now has and the store may lack.

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
    commits, others = [], []
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
    """Gives each object a ``keep`` ref. A few are files, many (a repository with thousands of tags) go into ``packed-refs`` at once."""
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


# ---- refs as files -------------------------------------------------------------------------------------------------------------


def refs_below(git_dir: Path, prefix: str) -> dict[str, ObjectId]:
    """All refs of the store whose names begin with the prefix (which ends in ``/``), packed ones too. Broken ones are left out."""
    found = {name: oid for name, oid in _packed_refs(git_dir).items() if name.startswith(prefix)}
    for folder, _, names in os.walk(git_dir / prefix):
        for name in names:
            if not name.endswith(".lock"):
                path = os.path.join(folder, name)
                try:
                    text = Path(path).read_bytes().strip()
                    found[os.path.relpath(path, git_dir)] = _checked_id(text)
                except (FileNotFoundError, ValueError):
                    continue
    return found


def _checked_id(text: bytes) -> ObjectId:
    oid = bytes.fromhex(text.decode("ascii"))
    if len(oid) != 20:
        raise ValueError("not an object id")
    return oid


def _packed_refs(git_dir: Path) -> dict[str, ObjectId]:
    try:
        lines = (git_dir / "packed-refs").read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    return {os.fsdecode(line[41:]): _checked_id(line[:40]) for line in lines if len(line) > 41 and line[:1] not in (b"#", b"^")}


def rewrite_packed_refs(git_dir: Path, added: dict[str, ObjectId], removed: Iterable[str]) -> None:
    """Adds refs to ``packed-refs`` and takes others out of it, at once and durably. Raises FileExistsError while git holds its lock."""
    lock = git_dir / "packed-refs.lock"
    descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            refs = _packed_refs(git_dir)
            for name in removed:
                refs.pop(name, None)
            refs.update(added)
            file.write(b"# pack-refs with: sorted \n")
            for name in sorted(refs, key=os.fsencode):
                file.write(refs[name].hex().encode("ascii") + b" " + os.fsencode(name) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(lock, git_dir / "packed-refs")
    except BaseException:  # only to clean up; nothing is swallowed
        lock.unlink(missing_ok=True)
        raise
    sync_folder(git_dir)


def delete_refs(git_dir: Path, names: Iterable[str]) -> None:
    """Removes refs of ours that no one else moves (``keep``, ``pin``, whole chains), packed or not."""
    gone = list(names)
    if any(name in _packed_refs(git_dir) for name in gone):
        rewrite_packed_refs(git_dir, {}, gone)
    for name in gone:
        (git_dir / name).unlink(missing_ok=True)


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
    """Makes the user's repository have every id with its closure, from the store, as one pack; gives (hex) what the store lacks too.

    ``objects_dir`` is the repository's ``objects`` folder, by default ``root/.git/objects``. With ``laid_beside`` the receiver is that
    git directory instead, which is being restored and not yet in place. What the user's refs reach is taken to be there; with
    ``trust_refs`` False (files below ``objects`` were damaged) it is looked for as well. Writes nothing when nothing is missing.
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
    return frozenset(map(_hex, missing))


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
    fed = [*map(_hex, there), *(b"^" + _hex(oid) for oid in tips if odb.exists(oid))]
    args = ["rev-list", "--objects", "--missing=print", "--stdin"]
    try:
        listed = git.store(odb.git_dir, args, input=b"\n".join([*fed, b""]), deadline_s=_DEADLINE_S).stdout.splitlines()
    except GitError:
        objects = SourceObjects(odb.git_dir / "objects")
        found = closure(objects.read, objects.header, lambda oid: oid in tips, there, cut=shallow.read_ids(odb.git_dir / "shallow"))
        listed = [_hex(oid) for oid, _ in found.order] + [b"?" + _hex(oid) for oid in found.missing]
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
