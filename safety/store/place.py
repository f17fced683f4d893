"""A workspace as the engines see it: where it lies, where its state lies, and how much one capture may take in."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from safety.plumbing.odb import ObjectStore
from safety.plumbing.run import Git


@dataclass(frozen=True)
class Limits:
    """How much one capture may take in (the settings ``snapshots.*``), sizes in bytes; ``deadline_s`` None means no limit."""

    max_file: int = 32 << 20
    max_call: int = 256 << 20
    ignored_max: int = 256 << 10
    deadline_s: float | None = 10.0
    skip_dirs: tuple[str, ...] = ()


NO_LIMITS = Limits(1 << 62, 1 << 62, 1 << 62, None)


@dataclass(frozen=True)
class Place:
    """``root`` is the real path of the workspace, ``state`` the folder of its caches and journal, ``chain`` its log's name."""

    root: bytes
    state: Path
    store_dir: Path
    home: Path
    chain: str
    odb: ObjectStore
    git: Git
    limits: Limits
    now_ns: Callable[[], int] = time.time_ns
    declared_only: bool = False
    progress: Callable[[str, int, int], None] = lambda label, done, total: None

    def absolute(self, path: bytes) -> bytes:
        """The absolute path of a captured one."""
        if path.startswith(b"/"):
            return path
        return self.root + b"/" + path if path else self.root


@dataclass
class Budget:
    """What is left of one capture's bytes and time."""

    limits: Limits
    spent: int = 0
    started_s: float = field(default_factory=time.monotonic)

    def refusal(self) -> str | None:
        """The code of what has run out, None while there is some of both."""
        if self.limits.deadline_s is not None and time.monotonic() - self.started_s > self.limits.deadline_s:
            return "deadline"
        return "call-budget" if self.spent > self.limits.max_call else None
