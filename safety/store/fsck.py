"""Says whether a store is sound, and steps a chain back to its newest sound operation when its head is not.

A store is sound when every operation's record can be read and every object of its snapshot is there. What a user's own history
lacks (a shallow or partial clone, a damaged repository) is no fault of the store and comes back as a note, like blobs that were
purged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from safety.faults import SafetyError
from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore
from safety.plumbing.run import Git
from safety.store.anchors import purged_ids
from safety.store.chains import chains
from safety.store.linked import linked_files
from safety.store.oplog import OpLog, decode_record
from safety.store.packs import is_torn, leftovers, loose_files
from safety.store.shallow import CUTS, share
from safety.store.storerefs import LOG, PIN, refs_below
from safety.store.trees import GITLINK, TREE, parse_tree
from safety.types import ObjectId

Severity = Literal["error", "note"]
_DEADLINE_S = 3600
_HEX = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it should be.

    Codes of errors: ``bad-ref``, ``bad-record``, ``missing-object`` (of a snapshot), ``damaged-object``, ``linked-damaged``
    (the user's side changed a file that the store shares). Codes of notes: ``history-incomplete``, ``purged``, ``leftover``,
    ``shared``. ``where`` is a ref, an object id in hexadecimal or a path.
    """

    severity: Severity
    code: str
    where: str
    detail: str = ""


def fsck(git: Git, odb: ObjectStore, *, full: bool = True) -> list[Problem]:
    """Everything that is wrong with a store, errors first; empty for a sound one without remarks.

    With ``full`` git hashes every object, which takes about a minute a gigabyte; without, damage is found only in what is read:
    records and the trees of snapshots. Changes nothing.
    """
    odb.refresh()  # what is on the disk counts, not what was read before
    problems = [*_refs(odb), *_linked(odb.git_dir), *_leftovers(odb.git_dir)]
    snapshots = _Snapshots(odb)
    for chain in chains(odb.git_dir):
        problems += snapshots.check_chain(chain)
    for name, oid in refs_below(odb.git_dir, PIN).items():
        problems += snapshots.check_operation(name, oid)[1]
    problems += _by_git(git, odb, snapshots.looked_at) if full else []
    unique = dict.fromkeys(problems)
    return sorted(unique, key=lambda problem: problem.severity != "error")


def _refs(odb: ObjectStore) -> Iterator[Problem]:
    for folder, _, names in os.walk(odb.git_dir / "refs"):
        for name in names:
            ref = os.path.relpath(os.path.join(folder, name), odb.git_dir)
            if name.endswith(".lock"):
                continue
            try:
                odb.ref(ref)
            except ObjectCorrupt as fault:
                yield Problem("error", "bad-ref", ref, fault.message)
    for ref, oid in refs_below(odb.git_dir, "refs/").items():
        if not odb.exists(oid):
            yield Problem("error", "bad-ref", ref, f"object {oid.hex()} is missing")
    for oid in share(odb.git_dir, CUTS):
        if not odb.exists(oid):
            yield Problem("note", "leftover", "shallow", f"the cut {oid.hex()} is not in the store")


def _linked(git_dir: Path) -> Iterator[Problem]:
    for file in linked_files(git_dir):
        path = git_dir / "objects" / file.name
        try:
            links = path.stat().st_nlink
        except FileNotFoundError:
            continue  # pruned or purged
        if not file.is_sound(str(path)):
            yield Problem("error", "linked-damaged", file.name, "the user's repository changed a file it shares with the store")
        elif links > 1:
            yield Problem("note", "shared", file.name, "one inode with the user's repository")


def _leftovers(git_dir: Path) -> Iterator[Problem]:
    for path in leftovers(git_dir):
        yield Problem("note", "leftover", os.path.relpath(path, git_dir))


class _Snapshots:
    """Checks operations, reading each tree once however many snapshots hold it."""

    def __init__(self, odb: ObjectStore) -> None:
        self.odb = odb
        self.purged = purged_ids(odb.git_dir)
        self.looked_at: set[ObjectId] = set()

    def check_chain(self, chain: str) -> Iterator[Problem]:
        cut = OpLog(self.odb, self.odb.git_dir, chain, lambda: 0).cut()
        try:
            oid = self.odb.ref(LOG + chain)
        except ObjectCorrupt:
            return  # said by _refs
        while oid is not None:
            parent, problems = self.check_operation(LOG + chain, oid)
            yield from problems
            oid = None if oid in cut else parent

    def check_operation(self, ref: str, oid: ObjectId) -> tuple[ObjectId | None, list[Problem]]:
        """The operation before, and what is wrong with this one."""
        if oid in self.looked_at:
            return None, []
        self.looked_at.add(oid)
        try:
            commit = self.odb.read_commit(oid)
        except ObjectMissing:
            return None, [Problem("error", "missing-object", oid.hex(), f"an operation of {ref}")]
        except ObjectCorrupt as fault:
            return None, [Problem("error", "damaged-object", oid.hex(), fault.message)]
        problems = []
        try:
            decode_record(commit.message)
        except SafetyError as fault:
            problems.append(Problem("error", "bad-record", oid.hex(), fault.message))
        problems += self._check_tree(commit.tree, oid)
        return commit.parents[0] if commit.parents else None, problems

    def _check_tree(self, snapshot: ObjectId, operation: ObjectId) -> Iterator[Problem]:
        stack = [(TREE, snapshot, b"")]
        while stack:
            mode, oid, path = stack.pop()
            if oid in self.looked_at or mode == GITLINK:
                continue
            self.looked_at.add(oid)
            where = f"{os.fsdecode(path)} of operation {operation.hex()[:12]}"
            if mode != TREE:
                if not self.odb.exists(oid):
                    yield self._missing(oid, path, where)
                continue
            try:
                items = parse_tree(self.odb.tree(oid))
            except ObjectMissing:
                yield self._missing(oid, path, where)
            except ObjectCorrupt as fault:
                yield Problem("error", "damaged-object", oid.hex(), fault.message)
            else:
                stack += [(below_mode, below, path + b"/" + name if path else name) for below_mode, name, below in items]

    def _missing(self, oid: ObjectId, path: bytes, where: str) -> Problem:
        if oid in self.purged:
            return Problem("note", "purged", oid.hex(), where)
        if path.startswith(b"index/"):  # staged ids that the user's repository lacks too
            return Problem("note", "history-incomplete", oid.hex(), where)
        return Problem("error", "missing-object", oid.hex(), where)


def _by_git(git: Git, odb: ObjectStore, ours: set[ObjectId]) -> Iterator[Problem]:
    """What git's own check says about objects, put into our words; what ``_Snapshots`` has said already is left out."""
    args = ["fsck", "--full", "--strict", "--no-dangling", "--no-progress"]
    done = git.store(odb.git_dir, args, check=False, deadline_s=_DEADLINE_S)
    lacking = 0
    for line in (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace").splitlines():
        words = line.split()
        known = [bytes.fromhex(word) for word in (word.strip(":,") for word in words) if _HEX.fullmatch(word)]
        if words[:1] == ["missing"] and known:
            lacking += known[0] not in ours
        elif words[:2] == ["error", "in"] or words[:2] == ["warning", "in"]:
            severity: Severity = "error" if known and known[0] in ours else "note"
            yield Problem(severity, "odd-object", known[0].hex() if known else "", line)
        elif words[:1] in (["error:"], ["fatal:"]):
            if "invalid sha1 pointer" in line or any(not odb.exists(oid) for oid in known):
                continue  # said by _refs, or counted as missing
            yield Problem("error", "damaged-object", known[0].hex() if known else "", line)
    if lacking:
        yield Problem("note", "history-incomplete", "", f"{lacking} objects of the user's history are not in the store")


# ---- repair --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Repaired:
    """A chain whose head was set anew, to ``head`` (None:

    Nothing sound was left, the chain begins again). ``was`` is what it said.
    """

    chain: str
    was: str
    head: ObjectId | None


def repair_head(odb: ObjectStore, chain: str) -> Repaired | None:
    """Steps a chain back to its newest operation that is whole; None if its head is.

    For after a power cut, when the newest objects or the ref itself may be empty or torn. Torn objects are removed first, so that
    the next capture writes them again. The caller holds the workspace lock.
    """
    odb.refresh()
    ref = LOG + chain
    try:
        head = odb.ref(ref)
        was = "" if head is None else head.hex()
    except ObjectCorrupt:
        head, was = None, "unreadable"
    log = OpLog(odb, odb.git_dir, chain, lambda: 0)
    remembered = log.remembered()
    if (head is None and was == "" and not remembered) or (head is not None and _is_whole(odb, head)):
        return None
    drop_torn_objects(odb)
    candidates = [oid for oid in [head, *remembered] if oid is not None]
    sound = next((oid for oid in candidates if _is_whole(odb, oid)), None) or _whole_ancestor(odb, candidates, log.cut())
    if sound is None or was == "unreadable":
        (odb.git_dir / ref).unlink(missing_ok=True)
    if sound is not None:
        odb.sync()
        odb.move_ref(ref, odb.ref(ref), sound, durable=True)
    return Repaired(chain, was, sound)


def _is_whole(odb: ObjectStore, oid: ObjectId) -> bool:
    """Whether an operation can be read with all of its snapshot; only loose files are hashed, packs were synced when made."""
    snapshots = _Snapshots(odb)
    _, problems = snapshots.check_operation("", oid)
    if any(problem.severity == "error" for problem in problems):
        return False
    return not any(is_torn(path, below) for below, path in _loose_among(odb, snapshots.looked_at))


def _loose_among(odb: ObjectStore, oids: Iterable[ObjectId]) -> Iterator[tuple[ObjectId, str]]:
    for oid in oids:
        name = oid.hex()
        path = f"{odb.git_dir}/objects/{name[:2]}/{name[2:]}"
        if os.path.exists(path):
            yield oid, path


def _whole_ancestor(odb: ObjectStore, candidates: list[ObjectId], cut: frozenset[ObjectId]) -> ObjectId | None:
    """The newest whole operation below the oldest candidate that can be read."""
    for oid in reversed(candidates):
        walked: ObjectId | None = oid
        while walked is not None:
            try:
                parents = odb.read_commit(walked).parents
            except (ObjectMissing, ObjectCorrupt):
                break
            if _is_whole(odb, walked):
                return walked
            walked = parents[0] if parents and walked not in cut else None
    return None


def drop_torn_objects(odb: ObjectStore) -> int:
    """Removes loose objects whose file is empty, cut short or has another content than its name says; gives how many."""
    torn = [path for oid, path in loose_files(f"{odb.git_dir}/objects") if is_torn(path, oid)]
    for path in torn:
        os.unlink(path)
    return len(torn)
