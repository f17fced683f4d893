"""The journal of an undo: the whole plan, synced before the first file is touched, gone after the operation is recorded.

For every path and ref it holds what must be there (ours) and what is to be there (target), which is all that recovery needs.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safety.faults import SafetyError
from safety.plumbing.index import IndexEntry
from safety.plumbing.refs import RefUpdate, StashEntry
from safety.store.gitstate import GitPlan, GitValue, Group
from safety.store.members import MemberPlace
from safety.store.packs import sync_folder, write_whole
from safety.store.place import Place
from safety.store.restore import Step
from safety.types import ABSENT, Absent, ObjectId, PathState, Present, Unknown

JOURNAL_VERSION = 1


class UndoRefused(SafetyError):
    """Nothing was changed, because it could not be done safely (a lock, a full disk, a missing object)."""

    code = "undo-refused"


class UndoInterrupted(SafetyError):
    """It stopped half-way; the journal is kept, and ``recover`` or the next undo finishes."""

    code, exit_code = "undo-interrupted", 3


@dataclass(frozen=True)
class Job:
    """One plan on its way: its id, the file steps, the git plans with the places they act on, and what the record will say."""

    id: str
    steps: tuple[Step, ...]
    git: tuple[tuple[MemberPlace, GitPlan], ...]
    now: ObjectId | None
    theirs: ObjectId | None
    base: ObjectId | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    """What was really done: the steps as they ended, sentences about git, and the paths to capture anew."""

    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    @property
    def touched(self) -> list[bytes]:
        return [step.path for step in self.steps if step.acts]


def journal_file(place: Place) -> Path:
    return place.state / "journal.json"


def write_journal(place: Place, job: Job, locks: Mapping[str, Sequence[int]]) -> None:
    """Makes the journal durable before anything is touched."""
    raw = {"v": JOURNAL_VERSION, "locks": {key: list(value) for key, value in locks.items()}, **_encode_job(job)}
    write_whole(journal_file(place), json.dumps(raw).encode("ascii"))


def read_journal(place: Place) -> tuple[Job, dict[str, list[int]]] | None:
    """The job that was interrupted, or None. Raises UndoRefused when the journal cannot be read."""
    try:
        raw = json.loads(journal_file(place).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as fault:
        raise UndoRefused(f"the journal of an interrupted undo cannot be read: {fault}", "git safety doctor") from fault
    if raw.get("v") != JOURNAL_VERSION:
        raise UndoRefused(
            "an interrupted undo was written by another version of git-safety", "upgrade git-safety, then try again"
        )
    return _decode_job(raw), raw["locks"]


def remove_journal(place: Place) -> None:
    journal_file(place).unlink(missing_ok=True)
    sync_folder(place.state)


def _b(data: bytes) -> str:
    return data.decode("latin-1")


def _u(text: str) -> bytes:
    return text.encode("latin-1")


def _unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _unbase(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _encode_state(state: PathState) -> list[Any]:
    if isinstance(state, Present):
        return ["p", state.kind, state.mode, state.oid.hex(), list(state.inode) if state.inode else None]
    return ["a"] if isinstance(state, Absent) else ["u", state.reason, state.size, state.mtime_ns]


def _decode_state(raw: list[Any]) -> PathState:
    if raw[0] == "p":
        return Present(raw[1], raw[2], bytes.fromhex(raw[3]), (raw[4][0], raw[4][1]) if raw[4] else None)
    return ABSENT if raw[0] == "a" else Unknown(raw[1], raw[2], raw[3])


def _encode_group(group: Group) -> list[Any]:
    return [[_b(e.path), e.stage, e.mode, e.oid.hex(), e.flags] for e in group]


def _decode_group(raw: list[Any]) -> Group:
    return tuple(IndexEntry(_u(path), stage, mode, bytes.fromhex(oid), flags) for path, stage, mode, oid, flags in raw)


def _encode_value(value: GitValue) -> dict[str, Any]:
    return {
        "exists": value.exists,
        "head": _b(value.head),
        "refs": {_b(k): _b(v) for k, v in value.refs.items()},
        "stash": [[_b(entry.oid), _b(entry.line)] for entry in value.stash],
    }


def _decode_value(raw: dict[str, Any]) -> GitValue:
    return GitValue(
        raw["exists"],
        _u(raw["head"]),
        {_u(k): _u(v) for k, v in raw["refs"].items()},
        stash=tuple(StashEntry(_u(oid), _u(line)) for oid, line in raw["stash"]),
    )


def _encode_job(job: Job) -> dict[str, Any]:
    git = []
    for place, plan in job.git:
        git.append(
            {
                "place": [_b(place.path), _b(place.own), _b(place.common)],
                "now": _encode_value(plan.now),
                "target": _encode_value(plan.target),
                "updates": [[_b(u.ref), _b(u.new), _b(u.old)] for u in plan.updates],
                "head": None if plan.head is None else _b(plan.head),
                "progress": {_b(k): [None if x is None else _b(x) for x in v] for k, v in plan.progress.items()},
                "stash": None if plan.stash is None else [[_b(e.oid), _b(e.line)] for e in plan.stash],
                "index": {_b(k): [_encode_group(v[0]), _encode_group(v[1])] for k, v in plan.index.items()},
                "raw_index": None
                if plan.raw_index is None
                else [None if x is None else base64.b64encode(x).decode() for x in plan.raw_index],
                "reuc": None if plan.reuc is None else [None if x is None else x.hex() for x in plan.reuc],
                "logs": {_b(k): [_b(v[0]), _b(v[1])] for k, v in plan.logs.items()},
                "lay_back": plan.lay_back,
                "repair": plan.repair,
                "take_away": plan.take_away,
                "notes": list(plan.notes),
                "kept": list(plan.kept),
            }
        )
    return {
        "id": job.id,
        "now": job.now.hex() if job.now else None,
        "theirs": job.theirs.hex() if job.theirs else None,
        "base": job.base.hex() if job.base else None,
        "record": dict(job.record),
        "steps": [[_b(s.path), s.verb, _encode_state(s.ours), _encode_state(s.target), s.note] for s in job.steps if s.acts],
        "git": git,
    }


def _decode_job(raw: dict[str, Any]) -> Job:
    steps = tuple(
        Step(_u(path), verb, _decode_state(ours), _decode_state(target), note) for path, verb, ours, target, note in raw["steps"]
    )
    git = []
    for item in raw["git"]:
        place = MemberPlace(*(_u(part) for part in item["place"]))
        raw_index = item["raw_index"]
        git.append(
            (
                place,
                GitPlan(
                    place.path,
                    _decode_value(item["now"]),
                    _decode_value(item["target"]),
                    tuple(RefUpdate(_u(ref), _u(new), _u(old)) for ref, new, old in item["updates"]),
                    None if item["head"] is None else _u(item["head"]),
                    {
                        _u(k): (None if v[0] is None else _u(v[0]), None if v[1] is None else _u(v[1]))
                        for k, v in item["progress"].items()
                    },
                    None if item["stash"] is None else tuple(StashEntry(_u(oid), _u(line)) for oid, line in item["stash"]),
                    {_u(k): (_decode_group(v[0]), _decode_group(v[1])) for k, v in item["index"].items()},
                    None if raw_index is None else (_unbase(raw_index[0]), _unbase(raw_index[1])),
                    None if item["reuc"] is None else (_unhex(item["reuc"][0]), _unhex(item["reuc"][1])),
                    {_u(k): (_u(v[0]), _u(v[1])) for k, v in item["logs"].items()},
                    lay_back=item["lay_back"],
                    take_away=item["take_away"],
                    repair=item["repair"],
                    notes=tuple(item["notes"]),
                    kept=tuple(item["kept"]),
                ),
            )
        )
    return Job(
        raw["id"],
        steps,
        tuple(git),
        bytes.fromhex(raw["now"]) if raw["now"] else None,
        bytes.fromhex(raw["theirs"]) if raw["theirs"] else None,
        bytes.fromhex(raw["base"]) if raw["base"] else None,
        raw["record"],
    )
