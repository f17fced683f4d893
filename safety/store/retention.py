"""What a store keeps: forgets old operations by rule, reclaims their objects, and packs what captures left loose.

``forget`` only writes the store's ``shallow`` file: the oldest kept operation of each chain has no parent any more, nothing is
rewritten. ``prune`` then removes what no kept operation, anchor, pin or keep names. Its slow parts (finding what is reachable,
writing the new pack) run beside captures; only the short end, which looks at what came meanwhile and unlinks, runs ``packs.alone``.
At every step a kill leaves all that is named in the store: the new pack is complete and synced before old files go.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from safety.plumbing.index import IndexCorrupt, IndexUnsupported, parse_index
from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore, SourceObjects
from safety.plumbing.refs import object_ids
from safety.plumbing.run import Git, GitError
from safety.store import shallow
from safety.store.anchors import ANCHOR, KEEP, closure, delete_refs, keep, purged_ids, raw_id, rebuild_anchor, refs_below, sorted_by_kind
from safety.store.chunks import read_text
from safety.store.oplog import REMEMBERED_HEADS, Operation, OpLog
from safety.store.packs import (
    Pack,
    StoreBusy,
    StoreSize,
    alone,
    leftovers,
    loose_files,
    pack_ids,
    packs,
    raise_generation,
    remove_files,
    remove_pack,
    remove_pack_caches,
    store_size,
    sync_folder,
    write_pack,
    write_whole,
)
from safety.store.seed import linked_files, save_linked
from safety.store.trees import GITLINK, TREE, parse_tree
from safety.types import ObjectId

LOG, PIN = "refs/safety/log/", "refs/safety/pin/"
DAY_MS = 24 * 3600 * 1000
PURGING = "purging"  # blobs of a purge that has not ended; see ``purge``
LOOSE_THRESHOLD = 2000
MOST_PACKS = 10
# A pack this big is rewritten only when enough of it is dead; see ``_is_worth_rewriting``.
BIG_PACK = 64 << 20
SMALL_PACK = 32 << 20
_DEAD_SHARE = 0.1
_LEFTOVER_AGE_S = 600
_ROUNDS = 3
_DEADLINE_S = 3600
_WINDOW = 30
_GROWTH = 2


@dataclass(frozen=True, slots=True)
class KeepRules:
    """What may be forgotten. ``newest`` operations of each chain are kept whatever the other rules say, pinned ones too."""

    max_age_ms: int = 30 * DAY_MS
    max_bytes: int = 2 << 30
    min_free_percent: float = 5.0
    newest: int = 20


@dataclass(frozen=True, slots=True)
class Forgotten:
    """``operations`` were forgotten. ``over_by`` bytes are above the rules and cannot be freed by forgetting more."""

    operations: int
    over_by: int = 0


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune removed. ``problem``: ``disk-low`` (packs were not rewritten, for want of room to write them anew), or empty."""

    objects: int = 0
    packs: int = 0
    leftovers: int = 0
    freed_bytes: int = 0
    problem: str = ""


def chains(git_dir: Path) -> dict[str, ObjectId]:
    """Every chain of the store and its head."""
    return {name.removeprefix(LOG): oid for name, oid in refs_below(git_dir, LOG).items()}


def read_chain(odb: ObjectStore, chain: str) -> Iterator[Operation]:
    """The chain's operations, newest first. Raises ObjectMissing, ObjectCorrupt at one that cannot be read (see ``fsck``)."""
    return OpLog(odb, odb.git_dir, chain, lambda: 0).walk()


def operation_at(odb: ObjectStore, oid: ObjectId) -> Operation:
    """One operation by its commit. Raises ObjectMissing, ObjectCorrupt."""
    return OpLog(odb, odb.git_dir, "", lambda: 0).read(oid)


# ---- forget --------------------------------------------------------------------------------------------------------------------


def forget(
    git: Git, odb: ObjectStore, rules: KeepRules, now_ms: int, *, retired: frozenset[str] = frozenset(), free: int | None = None
) -> Forgotten:
    """Cuts the old end of every chain where the rules say so. The caller holds the locks of all workspaces of this store, or its own.

    ``retired`` chains (an earlier generation, a workspace that is gone) have no newest operations to keep. ``free`` overrides what the
    file system says is free, in bytes. Space is only reclaimed by ``prune``.
    """
    logs = {chain: list(read_chain(odb, chain)) for chain in sorted(chains(odb.git_dir))}
    pinned = set(refs_below(odb.git_dir, PIN).values())
    keep_first = {chain: 0 if chain in retired else rules.newest for chain in logs}
    kept = {chain: _young(log, keep_first[chain], rules, now_ms) for chain, log in logs.items()}
    excess = _excess(git, odb, rules, free)
    if excess > 0:
        excess = _cut_to_size(git, odb, logs, kept, keep_first, excess)
    cut: set[ObjectId] = set()
    for chain, log in logs.items():
        if kept[chain]:
            oldest = log[kept[chain] - 1]
            cut |= {oldest.oid} if oldest.parent else set()
        elif log:
            _drop_chain(odb.git_dir, chain)
        _trim_heads(odb.git_dir, chain)
    alive = {operation.oid for chain, log in logs.items() for operation in log[: kept[chain]]}
    cut |= {oid for oid in pinned - alive if odb.read_commit(oid).parents}
    count = sum(len(log) - kept[chain] for chain, log in logs.items())
    if count or cut != shallow.share(odb.git_dir, shallow.CUTS):
        shallow.set_share(odb.git_dir, shallow.CUTS, cut)
    return Forgotten(count, max(excess, 0))


def _young(log: list[Operation], keep_first: int, rules: KeepRules, now_ms: int) -> int:
    """How many of a chain's operations are kept by number and age. A clock that is behind the chain drops nothing."""
    if not log or now_ms < log[0].record.time_ms:
        return len(log)
    limit = now_ms - rules.max_age_ms
    return next((place for place, operation in enumerate(log) if place >= keep_first and operation.record.time_ms < limit), len(log))


def _excess(git: Git, odb: ObjectStore, rules: KeepRules, free: int | None) -> int:
    """By how many bytes the operations are too big, for the store's own limit or for the disk.

    The user's history counts against the limit, but never for more than three quarters of it: forgetting operations cannot make it
    smaller, and a long history must not leave no room for undo.
    """
    disk = os.statvfs(odb.git_dir)
    floor = int(disk.f_blocks * disk.f_frsize * rules.min_free_percent / 100)
    short_of = floor - (disk.f_bavail * disk.f_frsize if free is None else free)
    size = store_size(odb.git_dir)
    if size.own_bytes <= rules.max_bytes:
        return short_of
    history = min(_history_bytes(git, odb), size.own_bytes)
    return max(size.own_bytes - history - max(rules.max_bytes - history, rules.max_bytes // 4), short_of)


def _history_bytes(git: Git, odb: ObjectStore) -> int:
    """Disk size of the user's objects that anchors keep, about."""
    fed = b"".join(oid.hex().encode() + b"\n" for oid in refs_below(odb.git_dir, ANCHOR).values())
    args = ["rev-list", "--objects", "--disk-usage", "--missing=allow-any", "--stdin"]
    text = git.store(odb.git_dir, args, input=fed, check=False, deadline_s=_DEADLINE_S).stdout.strip() if fed else b""
    return int(text) if text.isdigit() else 0


def _cut_to_size(
    git: Git,
    odb: ObjectStore,
    logs: Mapping[str, list[Operation]],
    kept: dict[str, int],
    keep_first: Mapping[str, int],
    excess: int,
) -> int:
    """Lowers ``kept`` until what only the dropped operations hold is ``excess`` bytes; gives what could not be had."""
    order = [(operation, chain) for chain, log in logs.items() for operation in log[: kept[chain]]]
    fixed = {operation.oid for chain, log in logs.items() for operation in log[: keep_first[chain]]}
    order.sort(key=lambda item: (item[0].oid not in fixed, -item[0].record.time_ms))
    first_seen = _Attribution(odb)
    shares = [[operation.oid, *first_seen.take(operation.tree)] for operation, _ in order]
    already = [operation for chain, log in logs.items() for operation in log[kept[chain] :]]
    excess -= sum(_disk_sizes(git, odb, [oid for operation in already for oid in first_seen.take(operation.tree)]))
    for (operation, chain), share in zip(reversed(order), reversed(shares), strict=True):
        if excess <= 0 or operation.oid in fixed:
            break
        excess -= sum(_disk_sizes(git, odb, share))
        kept[chain] -= 1
    return excess


class _Attribution:
    """Gives each object of the snapshots to the first one that is asked about and holds it."""

    def __init__(self, odb: ObjectStore) -> None:
        self.odb = odb
        self.seen: set[ObjectId] = set()

    def take(self, snapshot: ObjectId, without: bytes = b"") -> list[ObjectId]:
        """The objects of a snapshot, itself included, that none before it had; one area can be left out."""
        found = [snapshot]
        stack = [(mode, oid) for mode, name, oid in _items(self.odb, snapshot) if name != without]
        while stack:
            mode, oid = stack.pop()
            if oid in self.seen or mode == GITLINK:
                continue
            self.seen.add(oid)
            found.append(oid)
            if mode == TREE:
                stack += [(below_mode, below) for below_mode, _, below in _items(self.odb, oid)]
        return found


def _items(odb: ObjectStore, tree: ObjectId) -> list[tuple[int, bytes, ObjectId]]:
    try:
        return parse_tree(odb.tree(tree))
    except (ObjectMissing, ObjectCorrupt):
        return []


def _disk_sizes(git: Git, odb: ObjectStore, oids: list[ObjectId]) -> list[int]:
    if not oids:
        return []
    fed = b"".join(oid.hex().encode() + b"\n" for oid in oids)
    listed = git.store(odb.git_dir, ["cat-file", "--batch-check=%(objectsize:disk)", "--buffer"], input=fed).stdout.split(b"\n")
    return [int(line) for line in listed if line.isdigit()]


def _drop_chain(git_dir: Path, chain: str) -> None:
    delete_refs(git_dir, [LOG + chain])
    for folder in ("heads", "anchors"):
        (git_dir / folder / chain).unlink(missing_ok=True)


def _trim_heads(git_dir: Path, chain: str) -> None:
    path = git_dir / "heads" / chain
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return
    if len(lines) > 4 * REMEMBERED_HEADS:
        temporary = path.with_name(f"{chain}.new-{os.getpid()}")
        temporary.write_bytes(b"".join(lines[-REMEMBERED_HEADS:]))
        os.replace(temporary, path)


# ---- what operations name ------------------------------------------------------------------------------------------------------


class NamedIds:
    """The ids that operations' git state names, by chain, collected over many operations at the cost of their differences.

    Operations that are pinned and no longer in a chain count as the chain ``pins``.
    """

    def __init__(self, odb: ObjectStore) -> None:
        self.odb = odb
        self.by_chain: dict[str, set[ObjectId]] = {}
        self._operations: set[ObjectId] = set()
        self._seen: set[tuple[str, ObjectId]] = set()

    def take(self) -> None:
        """Takes in every operation that was not taken in before. Raises ObjectMissing, ObjectCorrupt: nothing may be removed then."""
        for chain in chains(self.odb.git_dir):
            self.by_chain.setdefault(chain, set())
            for operation in read_chain(self.odb, chain):
                if operation.oid in self._operations:
                    break
                self._take_operation(chain, operation.oid, operation.tree)
        for oid in refs_below(self.odb.git_dir, PIN).values():
            if oid not in self._operations:
                self._take_operation("pins", oid, self.odb.read_commit(oid).tree)

    def _take_operation(self, chain: str, oid: ObjectId, tree: ObjectId) -> None:
        self._operations.add(oid)
        found = self.by_chain.setdefault(chain, set())
        for _, name, below in _items(self.odb, tree):
            if name == b"git":
                self._take_git_files(chain, below, found)
            elif name == b"index":
                for _, _, member in _items(self.odb, below):
                    self._take_index(chain, member, found)

    def _take_git_files(self, chain: str, top: ObjectId, found: set[ObjectId]) -> None:
        """Takes the ids in the text of every file below. A text in chunks is cut at line ends, so each chunk is read as a text."""
        stack = [(TREE, top)]
        while stack:
            mode, oid = stack.pop()
            if (chain, oid) in self._seen:
                continue
            self._seen.add((chain, oid))
            if mode == TREE:
                stack += [(below_mode, below) for below_mode, _, below in _items(self.odb, oid)]
            else:
                found.update(map(raw_id, object_ids(self._text(oid))))

    def _take_index(self, chain: str, member: ObjectId, found: set[ObjectId]) -> None:
        """Takes the ids of resolve-undo records, and of the entries of an index that was kept as bytes."""
        if (chain, member) in self._seen:
            return
        self._seen.add((chain, member))
        for _, name, oid in _items(self.odb, member):
            try:
                if name == b"extra":
                    found |= _resolve_undo_ids(read_text(self.odb, oid))
                elif name == b"raw":
                    found |= {entry.oid for entry in parse_index(read_text(self.odb, oid)).entries if entry.mode != GITLINK}
            except (IndexCorrupt, IndexUnsupported, ObjectMissing):
                continue

    def _text(self, oid: ObjectId) -> bytes:
        try:
            return self.odb.blob(oid)
        except (ObjectMissing, ObjectCorrupt):
            return b""


_REUC = re.compile(rb"[^\0]+\0([0-7]+)\0([0-7]+)\0([0-7]+)\0")


def _resolve_undo_ids(extra: bytes) -> set[ObjectId]:
    """Ids in a REUC extension: path, three modes in octal, then an id for each mode that is not 0."""
    try:
        data = bytes.fromhex(json.loads(extra).get("reuc") or "")
    except (ValueError, AttributeError, TypeError):
        return set()
    found, at = set(), 0
    while match := _REUC.match(data, at):
        at = match.end()
        for mode in match.groups():
            if int(mode, 8):
                found.add(data[at : at + 20])
                at += 20
    return {oid for oid in found if len(oid) == 20}


# ---- prune ---------------------------------------------------------------------------------------------------------------------


def prune(git: Git, odb: ObjectStore, *, doomed: frozenset[ObjectId] = frozenset(), wait_s: float = 2.0) -> Pruned:
    """Removes all objects that no kept operation, anchor, pin or keep names, and what dead writers left.

    Packs whose files the user's repository shares are let be: unlinking them frees nothing. ``doomed`` objects go in any case, from
    shared packs too. Objects that partial or damaged histories lack are no hindrance. Raises StoreBusy, GitError; either way nothing
    named is lost, and the next prune goes on.
    """
    git_dir = odb.git_dir
    size_before = store_size(git_dir).own_bytes
    named = NamedIds(odb)
    named.take()
    with alone(git_dir, wait_s):
        named.take()
        _reanchor(odb, named)
    doomed |= _to_be_purged(odb)
    refs_before = set(refs_below(git_dir, "refs/").values())
    reachable = _Reachable(git, odb, refs_before)
    plan = _plan(git_dir, reachable, doomed)
    plan.new_pack = write_pack(git, git_dir, plan.lines) if plan.lines else None
    plan.check()
    with alone(git_dir, wait_s):
        late = _Reachable(git, odb, set(refs_below(git_dir, "refs/").values()) - refs_before, refs_before)
        result = _remove(git, git_dir, plan, reachable.oids | late.oids)
    odb.refresh()
    save_linked(git_dir, [file for file in linked_files(git_dir) if (git_dir / "objects" / file.name).exists()])
    freed = size_before - store_size(git_dir).own_bytes
    return Pruned(result.objects, result.packs, result.leftovers, freed, plan.problem)


def _reanchor(odb: ObjectStore, named: NamedIds) -> None:
    """One anchor a chain, of what its remaining operations name; ``keep`` refs of the rest; no others."""
    wanted: set[str] = set()
    for chain, ids in named.by_chain.items():
        commits, others = sorted_by_kind(odb, ids)
        keep(odb, others)
        wanted |= {KEEP + oid.hex() for oid in others}
        rebuild_anchor(odb, chain, commits)
    stale = [name for name in refs_below(odb.git_dir, KEEP) if name not in wanted]
    stale += [name for name in refs_below(odb.git_dir, ANCHOR) if name.removeprefix(ANCHOR) not in named.by_chain]
    delete_refs(odb.git_dir, stale)


def _to_be_purged(odb: ObjectStore) -> frozenset[ObjectId]:
    """Blobs that a purge which was killed had still to remove, without those that snapshots hold (again)."""
    ids = set(purged_ids(odb.git_dir, PURGING))
    if not ids:
        return frozenset()
    attribution = _Attribution(odb)
    for chain in chains(odb.git_dir):
        for operation in read_chain(odb, chain):
            attribution.take(operation.tree, without=b"index")
    for oid in refs_below(odb.git_dir, PIN).values():
        attribution.take(odb.read_commit(oid).tree, without=b"index")
    return frozenset(ids - attribution.seen)


class _Reachable:
    """Objects that some roots reach and others do not: ``lines`` for pack-objects, with paths, newest first; ``oids`` as a set."""

    def __init__(self, git: Git, odb: ObjectStore, roots: set[ObjectId], excluded: Iterable[ObjectId] = ()) -> None:
        self.lines: list[bytes] = []
        if roots:
            fed = [*(oid.hex().encode() for oid in roots), *(b"^" + oid.hex().encode() for oid in excluded), b""]
            args = ["rev-list", "--objects", "--missing=allow-any", "--stdin"]
            try:
                done = git.store(odb.git_dir, args, input=b"\n".join(fed), deadline_s=_DEADLINE_S)
                self.lines = done.stdout.splitlines()
            except GitError:  # a commit is missing, which git does not allow
                self.lines = [oid.hex().encode() for oid in _reached_in_process(odb, roots)]
        self.oids = {bytes.fromhex(line[:40].decode("ascii")) for line in self.lines}


def _reached_in_process(odb: ObjectStore, roots: set[ObjectId]) -> list[ObjectId]:
    objects = SourceObjects(odb.git_dir / "objects")
    cut = shallow.read_ids(odb.git_dir / "shallow")
    found = closure(objects.read, objects.header, lambda _: False, roots, cut=cut)
    return [oid for oid, _ in reversed(found.order)]


@dataclass
class _Plan:
    """What goes and what takes its place, decided while captures may still run."""

    lines: list[bytes] = field(default_factory=list)
    old_packs: list[Pack] = field(default_factory=list)
    in_old_packs: set[ObjectId] = field(default_factory=set)
    in_kept_packs: set[ObjectId] = field(default_factory=set)
    loose: dict[ObjectId, str] = field(default_factory=dict)
    doomed: frozenset[ObjectId] = frozenset()
    new_pack: Pack | None = None
    written: set[ObjectId] = field(default_factory=set)
    problem: str = ""

    def check(self) -> None:
        """Raises ObjectMissing unless the new pack holds all that it was written for."""
        self.written = set(pack_ids(self.new_pack)) if self.new_pack else set()
        for line in self.lines:
            if bytes.fromhex(line[:40].decode("ascii")) not in self.written:
                raise ObjectMissing(f"object {line[:40].decode()} did not get into the new pack", "git safety store fsck")


def _plan(git_dir: Path, reachable: _Reachable, doomed: frozenset[ObjectId]) -> _Plan:
    plan = _Plan(loose=dict(loose_files(f"{git_dir}/objects")), doomed=doomed)
    for pack in packs(git_dir):
        ids = set(pack_ids(pack))
        dead = len(ids) - len(ids & reachable.oids)
        if ids & doomed or _is_worth_rewriting(pack, dead, len(ids)):
            plan.old_packs.append(pack)
            plan.in_old_packs |= ids
        else:
            plan.in_kept_packs |= ids
    room = shutil.disk_usage(git_dir).free
    if plan.old_packs and room < sum(pack.size for pack in plan.old_packs) + (16 << 20) and not doomed:
        plan.in_kept_packs |= plan.in_old_packs
        plan.old_packs, plan.in_old_packs, plan.problem = [], set(), "disk-low"
    moving = (plan.in_old_packs | plan.loose.keys()) - plan.in_kept_packs - doomed
    if plan.old_packs:
        plan.lines = [line for line in reachable.lines if bytes.fromhex(line[:40].decode("ascii")) in moving]
    return plan


def _is_worth_rewriting(pack: Pack, dead: int, count: int) -> bool:
    if pack.is_shared or not dead:
        return False
    return pack.size < BIG_PACK or dead > count * _DEAD_SHARE


def _remove(git: Git, git_dir: Path, plan: _Plan, alive: set[ObjectId]) -> Pruned:
    """The short end of a prune: nobody takes part, and what became reachable meanwhile is in ``alive``."""
    resurrected = (alive & plan.in_old_packs) - plan.written - plan.in_kept_packs - plan.loose.keys() - plan.doomed
    if resurrected:
        write_pack(git, git_dir, [oid.hex().encode() for oid in resurrected])
    raise_generation(git_dir)
    elsewhere = plan.written | plan.in_kept_packs
    gone = [path for oid, path in plan.loose.items() if oid in elsewhere or oid not in alive or oid in plan.doomed]
    dead = (plan.in_old_packs | plan.loose.keys()) - alive | (plan.doomed & (plan.in_old_packs | plan.loose.keys()))
    remove_pack_caches(git_dir)
    for pack in plan.old_packs:
        if plan.new_pack is None or pack.stem != plan.new_pack.stem:
            remove_pack(pack)
    remove_files(gone)
    sync_folder(f"{git_dir}/objects/pack")
    return Pruned(len(dead - plan.in_kept_packs), len(plan.old_packs), sweep(git_dir))


def sweep(git_dir: Path, older_than_s: float = _LEFTOVER_AGE_S) -> int:
    """Removes what writers that died left behind; to be called ``alone``."""
    count = 0
    for path in leftovers(git_dir):
        try:
            if time.time() - os.lstat(path).st_mtime < older_than_s:
                continue
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        except FileNotFoundError:
            continue
        count += 1
    return count


# ---- repack --------------------------------------------------------------------------------------------------------------------


def repack_loose(git: Git, odb: ObjectStore, *, threshold: int = LOOSE_THRESHOLD, wait_s: float = 2.0) -> int:
    """Packs the loose objects if there are at least ``threshold``, then removes their files; gives how many.

    Walks nothing but them: what they are called is read off the operations since the last repack, so that versions of one path become
    deltas of each other. Trees and commits get a pack of their own, which takes in the last such packs while they are not much bigger:
    a tree's versions differ by one entry, and each pack has to hold one of them in full. Safe beside captures and readers, which find
    an object in its pack when its file is gone.
    """
    loose = dict(loose_files(f"{odb.git_dir}/objects"))
    if len(loose) < max(threshold, 1):
        return 0
    named = _Names(odb, loose)
    written = write_pack(git, odb.git_dir, named.lines("blob"), window=_WINDOW)
    packed = set(pack_ids(written)) if written else set()
    packed |= _repack_trees(git, odb, named, sum(map(os.path.getsize, map(loose.__getitem__, named.of("tree")))), wait_s)
    odb.refresh()
    return remove_files(path for oid, path in loose.items() if oid in packed)


def _repack_trees(git: Git, odb: ObjectStore, named: _Names, weight: int, wait_s: float) -> set[ObjectId]:
    """Packs the trees and commits, with those of older tree packs; gives the ids in the new pack."""
    taken, rest = [], []
    for pack in _tree_packs(odb.git_dir):
        if pack.size <= _GROWTH * weight:
            taken.append(pack)
            weight += pack.size
        else:
            rest.append(pack)
    if taken:
        named = _Names(odb, [*named.of("tree"), *(oid for pack in taken for oid in pack_ids(pack))])
    new = write_pack(git, odb.git_dir, named.lines("tree"), window=_WINDOW)
    if new is None:
        return set()
    _note_tree_packs(odb.git_dir, [*rest, new])
    _replace(odb.git_dir, taken, new, wait_s)
    return set(pack_ids(new))


def _tree_packs(git_dir: Path) -> list[Pack]:
    """Packs that ``repack_loose`` made of trees and commits, smallest first."""
    try:
        names = set((git_dir / "tree-packs").read_text().split())
    except FileNotFoundError:
        return []
    return [pack for pack in packs(git_dir) if os.path.basename(pack.stem) in names]


def _note_tree_packs(git_dir: Path, listed: Iterable[Pack]) -> None:
    write_whole(git_dir / "tree-packs", "".join(os.path.basename(pack.stem) + "\n" for pack in listed).encode(), durable=False)


def _replace(git_dir: Path, old: Iterable[Pack], new: Pack, wait_s: float) -> None:
    """Removes packs whose objects are all in the new one, if captures let us; else they stay as doubles until the next repack."""
    held = set(pack_ids(new))
    gone = [pack for pack in old if pack.stem != new.stem and held.issuperset(pack_ids(pack))]
    if not gone:
        return
    try:
        with alone(git_dir, wait_s):
            raise_generation(git_dir)
            remove_pack_caches(git_dir)
            for pack in gone:
                remove_pack(pack)
            sync_folder(f"{git_dir}/objects/pack")
    except StoreBusy:
        return


def repack_packs(git: Git, odb: ObjectStore, *, most: int = MOST_PACKS, wait_s: float = 2.0) -> int:
    """Unites the small packs that repacks and transfers have left, if they are more than ``most``; gives how many went into one."""
    apart = {pack.stem for pack in _tree_packs(odb.git_dir)}
    small = [pack for pack in packs(odb.git_dir) if not pack.is_shared and pack.size < SMALL_PACK and pack.stem not in apart]
    if len(small) <= most:
        return 0
    named = _Names(odb, [oid for pack in small for oid in pack_ids(pack)])
    new = write_pack(git, odb.git_dir, [*named.lines("tree"), *named.lines("blob")], window=_WINDOW)
    if new is None:
        return 0
    _replace(odb.git_dir, small, new, wait_s)
    odb.refresh()
    return len(small)


class _Names:
    """A line for pack-objects for each of some objects, with the path it has in the newest operation that holds it, newest first.

    They come as two kinds: ``tree`` (commits and tags too) and ``blob``.
    """

    def __init__(self, odb: ObjectStore, members: Iterable[ObjectId]) -> None:
        self.odb = odb
        self._left = dict.fromkeys(members)
        self._found: dict[str, dict[ObjectId, bytes]] = {"tree": {}, "blob": {}}
        for chain in chains(odb.git_dir):
            self._take_chain(chain)
        for head in refs_below(odb.git_dir, ANCHOR).values():
            self._take_history(head)
        objects = SourceObjects(odb.git_dir / "objects")
        for oid in sorted(self._left):
            try:
                self._found["blob" if objects.header(oid)[0] == "blob" else "tree"][oid] = b""
            except (ObjectMissing, ObjectCorrupt):
                continue  # a torn file: git would stop at it

    def of(self, kind: str) -> Iterable[ObjectId]:
        """The ids of one kind."""
        return self._found[kind].keys()

    def lines(self, kind: str) -> list[bytes]:
        """The lines of one kind."""
        return [oid.hex().encode("ascii") + b" " + path for oid, path in self._found[kind].items()]

    def _take(self, oid: ObjectId, path: bytes, kind: str) -> bool:
        if oid not in self._left:
            return False
        del self._left[oid]
        self._found[kind][oid] = path.replace(b"\n", b"?")
        return True

    def _take_tree(self, top: ObjectId, path: bytes) -> None:
        stack = [(TREE, top, path)]
        while stack:
            mode, oid, path = stack.pop()
            if mode != GITLINK and self._take(oid, path, "tree" if mode == TREE else "blob") and mode == TREE:
                stack += [(mode, below, path + b"/" + name) for mode, name, below in reversed(_items(self.odb, oid))]

    def _take_chain(self, chain: str) -> None:
        try:
            for operation in read_chain(self.odb, chain):
                if not self._take(operation.oid, b"operation", "tree"):
                    return  # what is older was packed before
                self._take_tree(operation.tree, b"")
        except (ObjectMissing, ObjectCorrupt):
            return  # its objects are packed all the same, only less well

    def _take_history(self, head: ObjectId) -> None:
        """Anchors and the user's commits below them, as far as they are members. Their trees are named as those of ``work/`` are."""
        stack = [head]
        while stack:
            oid = stack.pop()
            if not self._take(oid, b"commit", "tree"):
                continue
            try:
                commit = self.odb.read_commit(oid)
            except (ObjectMissing, ObjectCorrupt):
                continue
            self._take_tree(commit.tree, b"/work")
            stack += commit.parents


# ---- all of it -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tidied:
    """What an idle clean-up did."""

    packed: int
    forgotten: int
    pruned: Pruned
    size: StoreSize
    over_by: int


def tidy(git: Git, odb: ObjectStore, rules: KeepRules, now_ms: int, *, retired: frozenset[str] = frozenset()) -> Tidied:
    """Everything an idle moment is for: packs, forgets, and prunes if something was forgotten, until the rules are met or cannot be."""
    packed = repack_loose(git, odb)
    repack_packs(git, odb)
    pruned = Pruned()
    forgotten = 0
    result = Forgotten(0)
    for _ in range(_ROUNDS):
        result = forget(git, odb, rules, now_ms, retired=retired)
        if not result.operations:
            break
        forgotten += result.operations
        pruned = prune(git, odb)
    return Tidied(packed, forgotten, pruned, store_size(odb.git_dir), result.over_by)
