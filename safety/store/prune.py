"""Removes what no kept operation, anchor, pin or keep names.

The slow parts (finding what is reachable, writing the new pack) run beside captures; only the short end, which looks at what
came meanwhile and unlinks, runs ``packs.alone``. At every step a kill leaves all that is named in the store: the new pack is
complete and synced before old files go.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from safety.plumbing.index import IndexCorrupt, IndexUnsupported, parse_index
from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore, SourceObjects
from safety.plumbing.refs import object_ids
from safety.plumbing.run import Git, GitError
from safety.store import shallow
from safety.store.anchors import keep, purged_ids, rebuild_anchor, sorted_by_kind
from safety.store.chains import Attribution, chains, read_chain, tree_items
from safety.store.chunks import read_text
from safety.store.closure import closure, raw_id
from safety.store.linked import linked_files, save_linked
from safety.store.packs import (
    Pack,
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
)
from safety.store.storerefs import ANCHOR, KEEP, PIN, delete_refs, refs_below
from safety.store.trees import GITLINK, TREE
from safety.types import ObjectId

PURGING = "purging"  # blobs of a purge that has not ended; see ``purge``
# A pack this big is rewritten only when enough of it is dead; see ``_is_worth_rewriting``.
BIG_PACK = 64 << 20
_DEAD_SHARE = 0.1
_LEFTOVER_AGE_S = 600
_DEADLINE_S = 3600


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune removed.

    ``problem``: ``disk-low`` (packs were not rewritten, for want of room to write them anew), or empty.
    """

    objects: int = 0
    packs: int = 0
    leftovers: int = 0
    freed_bytes: int = 0
    problem: str = ""


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
        """Takes in every operation that was not taken in before.

        Raises ObjectMissing, ObjectCorrupt: nothing may be removed then.
        """
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
        for _, name, below in tree_items(self.odb, tree):
            if name == b"git":
                self._take_git_files(chain, below, found)
            elif name == b"index":
                for _, _, member in tree_items(self.odb, below):
                    self._take_index(chain, member, found)

    def _take_git_files(self, chain: str, top: ObjectId, found: set[ObjectId]) -> None:
        """Takes the ids in every file below. A text in chunks is cut at line ends, so each chunk is read as a text."""
        stack = [(TREE, top)]
        while stack:
            mode, oid = stack.pop()
            if (chain, oid) in self._seen:
                continue
            self._seen.add((chain, oid))
            if mode == TREE:
                stack += [(below_mode, below) for below_mode, _, below in tree_items(self.odb, oid)]
            else:
                found.update(map(raw_id, object_ids(self._text(oid))))

    def _take_index(self, chain: str, member: ObjectId, found: set[ObjectId]) -> None:
        """Takes the ids of resolve-undo records, and of the entries of an index that was kept as bytes."""
        if (chain, member) in self._seen:
            return
        self._seen.add((chain, member))
        for _, name, oid in tree_items(self.odb, member):
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


def prune(git: Git, odb: ObjectStore, *, doomed: frozenset[ObjectId] = frozenset(), wait_s: float = 2.0) -> Pruned:
    """Removes all objects that no kept operation, anchor, pin or keep names, and what dead writers left.

    Packs whose files the user's repository shares are let be: unlinking them frees nothing. ``doomed`` objects go in any case,
    from shared packs too. Objects that partial or damaged histories lack are no hindrance. Raises StoreBusy, GitError; either
    way nothing named is lost, and the next prune goes on.
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
    # What stays with its pack though nothing names it must stay whole: a capture that finds it takes its closure for granted.
    reachable.add(_Reachable(git, odb, plan.in_kept_packs - reachable.oids - doomed))
    plan.choose(reachable.lines)
    plan.new_pack = write_pack(git, git_dir, plan.lines) if plan.lines else None
    plan.check()
    with alone(git_dir, wait_s):
        late = _Reachable(git, odb, set(refs_below(git_dir, "refs/").values()) - refs_before, refs_before)
        result = _remove(git, git_dir, plan, reachable.oids | late.oids)
    odb.refresh()
    listed = linked_files(git_dir)
    left = [file for file in listed if (git_dir / "objects" / file.name).exists()]
    if left != listed:
        save_linked(git_dir, left)
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
    attribution = Attribution(odb)
    for chain in chains(odb.git_dir):
        for operation in read_chain(odb, chain):
            attribution.take(operation.tree, without=b"index")
    for oid in refs_below(odb.git_dir, PIN).values():
        attribution.take(odb.read_commit(oid).tree, without=b"index")
    return frozenset(ids - attribution.seen)


class _Reachable:
    """Objects that some roots reach and others do not: ``lines`` for pack-objects, newest first; ``oids`` as a set."""

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

    def add(self, other: _Reachable) -> None:
        """Takes in what the other one has besides."""
        self.lines += [line for line in other.lines if bytes.fromhex(line[:40].decode("ascii")) not in self.oids]
        self.oids |= other.oids


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

    def choose(self, reachable: Iterable[bytes]) -> None:
        """Picks the lines of what is to move into a new pack: what is reachable and loose or in a pack that goes."""
        if self.old_packs:
            moving = (self.in_old_packs | self.loose.keys()) - self.in_kept_packs - self.doomed
            self.lines = [line for line in reachable if bytes.fromhex(line[:40].decode("ascii")) in moving]

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
