"""What the caller hands in and gets back: steps and settings in, plan and result out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from safety.types import RelPath

REGULAR, EXECUTABLE, LINK, GITLINK = 0o100644, 0o100755, 0o120000, 0o160000

Status = Literal["committed", "nothing", "refused", "hook_failed", "sign_failed", "busy", "moved"]


@dataclass(frozen=True, slots=True)
class Side:
    """A path as it lay on the disk: git's mode (100644, 100755, 120000) and the raw bytes (a link's target).

    A submodule is 160000 with the 40 hexadecimal digits of its commit.
    """

    mode: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Step:
    """What one tool call did to one path; None stands for absent. Steps come oldest first, several may be of one path."""

    path: RelPath
    before: Side | None
    after: Side | None


@dataclass(frozen=True, slots=True)
class CommitSettings:
    """The ``autocommit.*`` settings that decide how a commit is made.

    ``trailer`` is ``assisted-by``, ``co-authored-by``, ``generated-by``, ``none``, or a line of one's own with ``{agent}`` and
    ``{model}``. ``branch`` is the one to make where ``protected_branches`` is ``branch``. ``protected`` are patterns; the remote's
    default branch always counts as one.
    """

    trailer: str = "assisted-by"
    protected_branches: str = "warn"
    detached: str = "notice"
    sign: str = "user"
    submodules: bool = False
    branch: str = ""
    protected: tuple[str, ...] = ("main", "master", "release/*")
    lock_wait_s: float = 5
    sign_deadline_s: float = 30
    hook_deadline_s: float = 120


class Finding(Protocol):
    """Something that looks like a secret; its value is not in it."""

    @property
    def rule(self) -> str: ...
    @property
    def path(self) -> RelPath: ...
    @property
    def line(self) -> int: ...
    @property
    def hint(self) -> str: ...


class Scanner(Protocol):
    """What looks for secrets in the lines that a commit would add."""

    def scan(self, path: RelPath, added_lines: Iterable[tuple[int, bytes]], /) -> Sequence[Finding]: ...
    def path_rule(self, path: RelPath, /) -> Finding | None: ...


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A path of the agent's that the commit does not hold: a stable code, and why in words."""

    path: RelPath
    code: str
    reason: str


class Entry(NamedTuple):
    """What a tree or an index says of a path: mode and object id in hexadecimal."""

    mode: int
    oid: str


@dataclass(frozen=True, slots=True)
class Change:
    """One path of the commit: its entry in HEAD, in the commit, in the index now, and in the index afterwards; None is absent."""

    path: RelPath
    old: Entry | None
    new: Entry | None
    staged: Entry | None
    staged_after: Entry | None


@dataclass(frozen=True, slots=True)
class Request:
    """What a plan was made from, so that it can be made again on a HEAD that has moved."""

    root: bytes
    steps: tuple[Step, ...]
    settings: CommitSettings
    include_mine: bool
    scanner: Scanner | None


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """What a commit would hold. It can be made if ``refusal`` is empty and ``paths`` is not.

    ``head`` is "" before the first commit, ``branch`` the full ref name or "" when detached. ``refusal`` is a code with its
    sentence in ``reason`` and what to do about it in ``hint``. ``diff`` is cut at 8 kB.
    """

    request: Request
    head: str = ""
    branch: str = ""
    tree: str = ""
    changes: tuple[Change, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    refusal: str = ""
    reason: str = ""
    hint: str = ""
    notices: tuple[str, ...] = ()
    secrets: tuple[Finding, ...] = ()
    diff_stat: str = ""
    diff: str = ""
    new_branch: str = ""
    config: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[RelPath, ...]:
        """The paths that the commit changes, sorted."""
        return tuple(change.path for change in self.changes)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """How it went. ``text`` is a sentence for the user or, when a hook failed, what the hook said, for the model."""

    status: Status
    oid: str = ""
    subject: str = ""
    paths: tuple[RelPath, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    notices: tuple[str, ...] = ()
    text: str = ""
    hint: str = ""
