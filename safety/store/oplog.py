"""The op log: a chain of commits in the store, one a recorded change, newest first.

The chain is the only truth about what happened when. An operation is a commit whose tree is the snapshot after it (see
``snapshot``), whose single parent is the operation before it and whose message is one JSON record. ``forget`` cuts the old end with
the store's ``shallow`` file, so a walk ends at a commit named there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from safety.faults import SafetyError
from safety.plumbing.odb import ObjectCorrupt, ObjectMissing, ObjectStore
from safety.types import NotCovered, ObjectId

RECORD_VERSION = 1
ID_LETTERS = "klmnopqrstuvwxyz"  # jj's alphabet: an id is never mistaken for a hex object id
REMEMBERED_HEADS = 64


class NewerState(SafetyError):
    code = "newer-state"


class UnknownHandle(SafetyError):
    code, exit_code = "unknown-handle", 2


@dataclass(frozen=True)
class Record:
    """What one operation is, without its snapshot.

    ``kind``: ``first`` (first contact), ``checkpoint`` (found between calls), ``call`` (a tool call's own change), ``turn`` (end of a
    turn), ``undo``, ``redo``, ``restore``, ``snapshot`` (taken by hand). ``actor`` as in the design's table of words. ``scope`` and
    ``declared`` are paths, None meaning everything / not declared. ``owners`` settles mixed checkpoints: operation id -> path ->
    ``session/turn/call`` or ``shared``. ``undoes`` names the operations an undo or redo took back.
    ``pushed``: the command was seen to push. ``running_ms``: how long the ``run`` that a call was cut out of had been running at the
    call's end, or the oldest one at a mixed checkpoint; 0 for any other.
    """

    id: str
    kind: str
    actor: str
    time_ms: int = 0
    session: str = ""
    agent: Mapping[str, str] = field(default_factory=dict)
    turn: int = 0
    call: int = 0
    call_id: str = ""
    tool: str = ""
    digest: str = ""
    summary: str = ""
    prompt: str = ""
    declared: tuple[bytes, ...] | None = None
    scope: tuple[bytes, ...] | None = None
    status: str = "ok"
    duration_ms: int = 0
    running_ms: int = 0
    calls: int = 0
    git_changed: bool = False
    pushed: bool = False
    open_calls: tuple[str, ...] = ()
    owners: Mapping[str, Mapping[bytes, str]] = field(default_factory=dict)
    undoes: tuple[str, ...] = ()
    kept: tuple[bytes, ...] = ()
    not_covered: tuple[NotCovered, ...] = ()
    pins: tuple[str, ...] = ()
    last_turn: int = 0

    @property
    def handle(self) -> str:
        """``t14`` or ``t14.2``; the operation id where it belongs to no turn."""
        if not self.turn:
            return self.id
        return f"t{self.turn}.{self.call}" if self.call else f"t{self.turn}"


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


_PATHS = ("declared", "scope", "kept")


def encode_record(record: Record) -> bytes:
    """The record as one line of JSON; fields at their defaults are left out."""
    out: dict[str, Any] = {"v": RECORD_VERSION}
    for spec in fields(Record):
        value = getattr(record, spec.name)
        if spec.name in _PATHS and value is not None:
            if not value and spec.name == "kept":
                continue
            value = [_text(path) for path in value]
        elif not value and spec.name not in ("id", "kind", "actor"):
            continue
        elif spec.name == "not_covered":
            value = [[_text(n.path), n.reason, n.size, n.detail] for n in value]
        elif spec.name == "owners":
            value = {op: {_text(path): owner for path, owner in paths.items()} for op, paths in value.items()}
        out[spec.name] = value
    return json.dumps(out, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def decode_record(message: bytes) -> Record:
    """The record in a commit message. Unknown fields are ignored, a newer version is refused."""
    try:
        raw = json.loads(message)
        version = raw.pop("v")
    except (ValueError, KeyError, AttributeError) as fault:
        raise ObjectCorrupt(f"an operation's record cannot be read: {fault}", "git safety store fsck") from fault
    if not isinstance(version, int) or version > RECORD_VERSION:
        raise NewerState("this store was written by a newer git-safety", "upgrade git-safety, then try again")
    known = {spec.name for spec in fields(Record)}
    values = {key: value for key, value in raw.items() if key in known}
    for name in _PATHS:
        if values.get(name) is not None:
            values[name] = tuple(_bytes(path) for path in values[name])
    for name in ("open_calls", "undoes", "pins"):
        if name in values:
            values[name] = tuple(values[name])
    if "not_covered" in values:
        values["not_covered"] = tuple(
            NotCovered(_bytes(p), reason, size, detail) for p, reason, size, detail in values["not_covered"]
        )
    if "owners" in values:
        values["owners"] = {op: {_bytes(p): owner for p, owner in paths.items()} for op, paths in values["owners"].items()}
    try:
        return Record(**values)
    except TypeError as fault:
        raise ObjectCorrupt(f"an operation's record lacks a field: {fault}", "git safety store fsck") from fault


@dataclass(frozen=True)
class Operation:
    """One recorded change: its commit, its snapshot's tree, the tree before it, its record."""

    oid: ObjectId
    tree: ObjectId
    parent: ObjectId | None
    record: Record

    @property
    def id(self) -> str:
        return self.record.id


class OpLog:
    """One workspace's chain of operations."""

    def __init__(self, odb: ObjectStore, store_dir: Path, chain: str, now_ms: Callable[[], int]) -> None:
        self.odb = odb
        self.store_dir = store_dir
        self.chain = chain
        self.ref = f"refs/safety/log/{chain}"
        self._now_ms = now_ms
        self.on_damage: Callable[[], bool] | None = None

    def head_id(self) -> ObjectId | None:
        return self.odb.ref(self.ref)

    def head(self) -> Operation | None:
        """The newest operation. One that was lost with the power is stepped over, to the newest that is whole."""
        oid = self.head_id()
        if oid is None:
            return None
        try:
            operation = self.read(oid)
            self.odb.tree(operation.tree)
        except (ObjectMissing, ObjectCorrupt):
            if self.on_damage is None or not self.on_damage():
                raise
            oid = self.head_id()
            return None if oid is None else self.read(oid)
        return operation

    def read(self, oid: ObjectId) -> Operation:
        commit = self.odb.read_commit(oid)
        parent = commit.parents[0] if commit.parents else None
        return Operation(oid, commit.tree, parent, decode_record(commit.message))

    def tree_before(self, operation: Operation) -> ObjectId | None:
        """The snapshot before the operation; None where the chain begins."""
        if operation.parent is None or operation.oid in self.cut():
            return None
        return self.odb.read_commit(operation.parent).tree

    def find(self, identity: str) -> Record | None:
        """The record of an operation by its whole id."""
        return next((operation.record for operation in self.walk() if operation.id == identity), None)

    def cut(self) -> frozenset[ObjectId]:
        """Commits whose parents were forgotten (the store's ``shallow`` file)."""
        try:
            lines = (self.store_dir / "shallow").read_text().split()
        except FileNotFoundError:
            return frozenset()
        return frozenset(bytes.fromhex(line) for line in lines if len(line) == 40)

    def walk(self, start: ObjectId | None = None) -> Iterator[Operation]:
        """Operations newest first, from ``start`` or the head."""
        cut = self.cut()
        oid = start or self.head_id()
        while oid is not None:
            operation = self.read(oid)
            yield operation
            oid = None if oid in cut else operation.parent

    def append(self, tree: ObjectId, record: Record) -> Operation:
        """Publishes a snapshot as the new head by compare-and-swap; the record's time is made later than its parent's.

        Raises RefMoved when another writer moved the head (the caller holds the workspace lock, so only a broken lock can do it).
        """
        parent = self.head()
        now = self._now_ms()
        if parent is not None:
            now = max(now, parent.record.time_ms + 1)
            record = replace(record, last_turn=max(record.turn, record.last_turn, parent.record.last_turn))
        else:
            record = replace(record, last_turn=max(record.turn, record.last_turn))
        record = replace(record, time_ms=now)
        parents = [] if parent is None else [parent.oid]
        oid = self.odb.commit(tree, parents, encode_record(record), now)
        self.odb.move_ref(self.ref, parents[0] if parents else None, oid)
        self._remember(oid)
        return Operation(oid, tree, parents[0] if parents else None, record)

    def _remember(self, oid: ObjectId) -> None:
        """Notes the head beside the ref, so that a head lost with the power can be stepped back (see ``fsck.repair_head``)."""
        folder = self.store_dir / "heads"
        folder.mkdir(mode=0o700, exist_ok=True)
        with open(folder / self.chain, "ab") as file:
            file.write(oid.hex().encode() + b"\n")

    def remembered(self) -> list[ObjectId]:
        """Recent heads, newest first."""
        try:
            lines = (self.store_dir / "heads" / self.chain).read_bytes().split()
        except FileNotFoundError:
            return []
        return [bytes.fromhex(line.decode()) for line in reversed(lines[-REMEMBERED_HEADS:]) if len(line) == 40]

    def is_sound(self, oid: ObjectId) -> bool:
        try:
            self.odb.tree(self.read(oid).tree)
        except (ObjectMissing, ObjectCorrupt):
            return False
        return True
