"""What goes into a gate run and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

Status: TypeAlias = Literal[
    "passed",
    "passed_with_fixes",
    "failed",
    "not_configured",
    "tool_missing",
    "config_error",
    "env_failed",
    "timeout",
    "cancelled",
    "internal_error",
    "nothing_to_check",
]
Tag: TypeAlias = Literal["yours", "older", "elsewhere", ""]

# These leave the commit free; every other status stops it ([gate] A7).
_FREE = frozenset({"passed", "passed_with_fixes", "not_configured", "nothing_to_check"})


@dataclass(frozen=True)
class GateSettings:
    """The settings ``gate.*``. Words of ``command`` that read ``{files}`` are replaced by the names to check."""

    enabled: str = "auto"
    backend: str = "auto"
    command: tuple[str, ...] = ()
    timeout_s: float = 120.0
    max_attempts: int = 3
    preexisting: str = "warn"
    skip: tuple[str, ...] = ()
    allow_partial: bool = False
    max_message_chars: int = 6000


@dataclass(frozen=True)
class Checked:
    """What is to be judged.

    ``root`` is the top of one git work tree; ``files`` are relative to it, exist now and are the agent's (no gitlinks, nothing ignored);
    ``deleted`` are those that the turn removed. ``lines`` says which lines of a file, as they are numbered now, are the agent's; None and a
    file not named in it: all. ``before`` gives a file's content before the turn, None where there was none.
    """

    root: bytes
    files: tuple[bytes, ...]
    deleted: tuple[bytes, ...]
    lines: Mapping[bytes, frozenset[int] | None]
    before: Callable[[bytes], bytes | None]


class Line(NamedTuple):
    """One line that a check wrote, and whose doing it speaks of: ``older`` was there before the turn, "" names no file."""

    text: str
    tag: Tag = ""


@dataclass(frozen=True)
class CheckFailure:
    """One check that failed. ``older``: the same complaint was there before the turn, shown by running the check on that state."""

    id: str
    exit_code: int
    duration_s: float | None
    lines: tuple[Line, ...]
    modified: bool = False
    older: bool = False


@dataclass(frozen=True)
class GateResult:
    """How a run ended. ``text`` is for the user and may be long; ``log`` is the file with the full output.

    ``fixed`` are the agent's files that the checks changed; ``touched_elsewhere`` is what changed in the work tree meanwhile outside
    of them (a check's doing or the user's): reported, never committed. ``skipped`` are checks and files that were not checked, each with a
    reason. ``config_is_agents`` tells that the runner's configuration is among the agent's files.
    """

    status: Status
    backend: str = ""
    failures: tuple[CheckFailure, ...] = ()
    fixed: tuple[bytes, ...] = ()
    touched_elsewhere: tuple[bytes, ...] = ()
    skipped: tuple[str, ...] = ()
    log: Path | None = None
    text: str = ""
    files: int = 0
    config_is_agents: bool = False
    warn_only: bool = False
    partial: bool = False

    @property
    def only_older(self) -> bool:
        """Whether every failure was there before the turn."""
        return self.status == "failed" and bool(self.failures) and all(failure.older for failure in self.failures)

    @property
    def blocks_commit(self) -> bool:
        """Whether nothing may be committed."""
        if self.status == "env_failed" and self.partial:
            return False
        return self.status not in _FREE and not (self.only_older and self.warn_only)

    @property
    def goes_back(self) -> bool:
        """Whether the model is to mend it: only a failure, and only one that the turn brought (or where older ones count as well)."""
        return self.status == "failed" and self.blocks_commit
