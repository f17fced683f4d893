"""What a store keeps: forgets old operations by rule, and ties the idle work together.

``forget`` only writes the store's ``shallow`` file: the oldest kept operation of each chain has no parent any more, nothing is
rewritten. Space comes back with ``prune``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safety.plumbing.odb import ObjectStore
from safety.plumbing.run import Git
from safety.store import shallow
from safety.store.chains import Attribution, chains, read_chain
from safety.store.linked import Unshared, linked_files, unshare_links
from safety.store.oplog import REMEMBERED_HEADS, Operation
from safety.store.packs import StoreSize, store_size, taking_part, write_whole
from safety.store.prune import Pruned, prune
from safety.store.repack import repack_loose, repack_packs
from safety.store.storerefs import ANCHOR, LOG, PIN, delete_refs, refs_below
from safety.types import ObjectId

__all__ = [
    "Forgotten",
    "KeepRules",
    "Pruned",
    "Tidied",
    "forget",
    "prune",
    "repack_loose",
    "repack_packs",
    "store_size",
    "tidy",
    "unshare",
]

DAY_MS = 24 * 3600 * 1000
_ROUNDS = 3
_DEADLINE_S = 3600


@dataclass(frozen=True, slots=True)
class KeepRules:
    """What may be forgotten. ``newest`` operations of each chain are kept whatever the other rules say, pinned ones too.

    The ``spared`` newest ones are never forgotten for their age, only for room.
    """

    max_age_ms: int = 30 * DAY_MS
    max_bytes: int = 2 << 30
    min_free_percent: float = 5.0
    newest: int = 20
    spared: int = 0


@dataclass(frozen=True, slots=True)
class Forgotten:
    """``operations`` were forgotten. ``over_by`` bytes are above the rules and cannot be freed by forgetting more."""

    operations: int
    over_by: int = 0


# ---- forget --------------------------------------------------------------------------------------------------------------------


def forget(
    git: Git, odb: ObjectStore, rules: KeepRules, now_ms: int, *, retired: frozenset[str] = frozenset(), free: int | None = None
) -> Forgotten:
    """Cuts the old end of every chain where the rules say so. The caller holds the locks of all workspaces of this store, or
    its own.

    ``retired`` chains (an earlier generation, a workspace that is gone) have no newest operations to keep. ``free`` overrides
    what the file system says is free, in bytes. Space is only reclaimed by ``prune``.
    """
    logs = {chain: list(read_chain(odb, chain)) for chain in sorted(chains(odb.git_dir))}
    pinned = set(refs_below(odb.git_dir, PIN).values())
    keep_first = {chain: 0 if chain in retired else rules.newest for chain in logs}
    kept = {
        chain: _young(log, 0 if chain in retired else max(keep_first[chain], rules.spared), rules, now_ms)
        for chain, log in logs.items()
    }
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
    return next(
        (place for place, operation in enumerate(log) if place >= keep_first and operation.record.time_ms < limit), len(log)
    )


def _excess(git: Git, odb: ObjectStore, rules: KeepRules, free: int | None) -> int:
    """By how many bytes the operations are too big, for the store's own limit or for the disk.

    The user's history counts against the limit, but never for more than three quarters of it: forgetting operations cannot make
    it smaller, and a long history must not leave no room for undo.
    """
    disk = os.statvfs(odb.git_dir)
    short_of = _floor(disk, rules) - (disk.f_bavail * disk.f_frsize if free is None else free)
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
    first_seen = Attribution(odb)
    shares = [[operation.oid, *first_seen.take(operation.tree)] for operation, _ in order]
    already = [operation for chain, log in logs.items() for operation in log[kept[chain] :]]
    excess -= sum(_disk_sizes(git, odb, [oid for operation in already for oid in first_seen.take(operation.tree)]))
    for (operation, chain), share in zip(reversed(order), reversed(shares), strict=True):
        if excess <= 0 or operation.oid in fixed:
            break
        excess -= sum(_disk_sizes(git, odb, share))
        kept[chain] -= 1
    return excess


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
        write_whole(path, b"".join(lines[-REMEMBERED_HEADS:]), durable=False)


# ---- all of it -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tidied:
    """What an idle clean-up did."""

    packed: int
    forgotten: int
    pruned: Pruned
    size: StoreSize
    over_by: int


def unshare(odb: ObjectStore, rules: KeepRules) -> Unshared | None:
    """Copies what the store shares with the user's repository by hard link, as far as the rules leave room; None without such files."""
    if not linked_files(odb.git_dir):
        return None
    disk = os.statvfs(odb.git_dir)
    spare = disk.f_bavail * disk.f_frsize - _floor(disk, rules)
    room = rules.max_bytes * 3 // 4 - store_size(odb.git_dir).own_bytes  # the rest is for operations, as in _excess
    with taking_part(odb.git_dir):
        done = unshare_links(odb.git_dir, copy_budget=max(0, min(spare, room)))
    odb.refresh()
    return done


def _floor(disk: os.statvfs_result, rules: KeepRules) -> int:
    """How many bytes of the disk are to stay free."""
    return int(disk.f_blocks * disk.f_frsize * rules.min_free_percent / 100)


def tidy(git: Git, odb: ObjectStore, rules: KeepRules, now_ms: int, *, retired: frozenset[str] = frozenset()) -> Tidied:
    """Everything an idle moment is for:

    Packs, forgets, and prunes if something was forgotten, until the rules are met or cannot be; makes what is one with files of
    the user's repository the store's own.
    """
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
    unshare(odb, rules)
    return Tidied(packed, forgotten, pruned, store_size(odb.git_dir), result.over_by)
