"""The values every room shares: object ids, path states, notices.

Paths are ``bytes`` below the command line: relative to the workspace root with ``/`` between components, or absolute when the
path lies outside the workspace. Object ids are the raw 20 bytes git stores in a tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

ObjectId: TypeAlias = bytes
RelPath: TypeAlias = bytes

NodeKind: TypeAlias = Literal["file", "link", "dir"]


@dataclass(frozen=True, slots=True)
class Present:
    """A path that exists: its type, content and full mode bits (``0o7777``).

    ``oid`` is the blob with the raw bytes (the target, for a link; empty for a directory). ``inode`` is ``(device, inode)`` when
    the file has more than one name, else None; two states are equal without regard to it.
    """

    kind: NodeKind
    mode: int
    oid: ObjectId
    inode: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Absent:
    """A path that was looked at and did not exist."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A path whose content no snapshot holds; never read as "did not exist".

    ``reason`` is a code: ``too-large``, ``call-budget``, ``special-file``, ``mount-point``, ``unreadable``, ``ignored-directory``,
    ``ignored-large``, ``changed-while-reading``, ``git-error``. ``size`` and ``mtime_ns`` tell two versions of it apart.
    """

    reason: str
    size: int = 0
    mtime_ns: int = 0


PathState: TypeAlias = Present | Absent | Unknown
ABSENT = Absent()
STIRRED = "ignored-changed"  # the reason of a NotCovered: an ignored folder in which a name came or went, a remark and no change


@dataclass(frozen=True, slots=True)
class NotCovered:
    """One path (or one kind of state) that a capture could not take in, and why."""

    path: RelPath
    reason: str
    size: int = 0
    detail: str = ""


@dataclass(frozen=True)
class Decision:
    """Whether a call may run: ``allow``, ``deny``, ``ask``, ``edit``; ``reason`` is for the model and short.

    ``unrecoverable``: what the call would lose, nothing brings back. Only a person's answer to this one question allows it.
    """

    action: str = "allow"
    reason: str = ""
    input: Mapping[str, Any] | None = None
    unrecoverable: bool = False
