"""What a session has been told already, as the caller keeps it in the session's state file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from safety.instructions.reading import Stamp


@dataclass(frozen=True, slots=True)
class Record:
    """One file whose text stands in the model's context.

    ``path``, ``realpath``, ``root`` and ``scope`` (the folder it governs; empty for the user's own file, which governs all) are
    absolute. ``text`` is what was sent, for the next difference; empty where not all of it was.
    """

    path: bytes
    realpath: bytes
    root: bytes
    scope: bytes
    sha: str
    bytes: int
    stamp: Stamp
    turn: str
    time_ms: int
    why: str
    trust: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Everything sent in this session. ``spent`` counts the bytes of text; ``said`` are the notices the user has had."""

    records: tuple[Record, ...] = ()
    spent: int = 0
    said: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"records": [_to_json(record) for record in self.records], "spent": self.spent, "said": list(self.said)}

    @classmethod
    def from_json(cls, raw: object) -> Loaded:
        """The same value again; an empty one for anything that is not what `to_json` gives: then all is sent once more."""
        try:
            assert isinstance(raw, Mapping)
            records = tuple(_from_json(record) for record in raw["records"])
            return cls(records, int(raw["spent"]), tuple(str(text) for text in raw["said"]))
        except (AssertionError, KeyError, TypeError, ValueError, AttributeError):
            return cls()

    def keeping(self, record: Record) -> Loaded:
        """With this record in the place of the one for the same path and scope."""
        return replace(self, records=(*self.without(record).records, record))

    def without(self, record: Record) -> Loaded:
        return replace(self, records=tuple(one for one in self.records if (one.path, one.scope) != (record.path, record.scope)))


_PATHS = ("path", "realpath", "root", "scope")


def _to_json(record: Record) -> dict[str, Any]:
    raw = asdict(record)
    return raw | {name: raw[name].decode("utf-8", "surrogateescape") for name in _PATHS} | {"stamp": list(record.stamp)}


def _from_json(raw: Mapping[str, Any]) -> Record:
    paths = {name: raw[name].encode("utf-8", "surrogateescape") for name in _PATHS}
    return Record(**{**raw, **paths, "stamp": tuple(int(part) for part in raw["stamp"])})


class Row(NamedTuple):
    """A line of ``/agents``: which file governs which folder, how much of what content, since when, and what brought it in."""

    path: bytes
    scope: bytes
    bytes: int
    sha: str
    turn: str
    time_ms: int
    why: str


def listing(loaded: Loaded) -> list[Row]:
    """What is loaded, most general first; ``sha`` is cut to 12 digits as in the message."""
    rows = [Row(one.path, one.scope, one.bytes, one.sha[:12], one.turn, one.time_ms, one.why) for one in loaded.records]
    return sorted(rows, key=lambda row: (row.scope, row.path))
