"""What no snapshot holds, and why, in words."""

from __future__ import annotations

from collections.abc import Iterable

from safety.commands.report import PathLine
from safety.types import STIRRED, NotCovered, Unknown

#: Reasons as codes and as people say them.
REASONS = {
    "too-large": "over the size limit of snapshots",
    "call-budget": "over the budget of one snapshot",
    "special-file": "a pipe, socket or device",
    "mount-point": "another file system",
    "unreadable": "could not be read",
    "ignored-directory": "an ignored dependency, build or cache folder",
    STIRRED: "an ignored dependency, build or cache folder in which something came or went",
    "ignored-large": "ignored by git, and large",
    "changed-while-reading": "changed while it was read",
    "deadline": "the snapshot ran out of time",
    "outside": "outside the workspace, never looked at",
    "purged": "purged",
    "lfs-objects": "large file objects of git-lfs",
    "git-error": "git could not tell",
    "index-as-bytes": "the index is kept as a whole",
    "index-unreadable": "the index could not be read",
    "object-format": "history of a repository in another object format",
    "linked-worktree": "a linked work tree outside of the workspace, removed",
    "directory": "a folder; its files are looked at by the next full snapshot",
}


def reason_text(reason: str, size: int = 0, detail: str = "") -> str:
    """``412 MiB, over the size limit of snapshots``."""
    return ", ".join(
        filter(
            None,
            [
                size_text(size) if size else "",
                REASONS.get(reason, reason),
                detail if reason not in REASONS or reason == "git-error" else "",
            ],
        )
    )


def size_text(size: int) -> str:
    """A size in few letters: ``812 bytes``, ``1.4 KiB``, ``412 MiB``."""
    number, unit = float(size), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.1f}".removesuffix(".0") + f" {unit}" if number < 10 and unit != "bytes" else f"{number:.0f} {unit}"


def uncovered_line(path: bytes, reason: str, size: int = 0, detail: str = "") -> PathLine:
    return PathLine(
        "not covered",
        path,
        reason_text(reason, size, detail),
        reason,
        size=size or None,
        folder=reason in ("ignored-directory", STIRRED, "mount-point"),
    )


def lines_of_notices(notices: Iterable[NotCovered]) -> tuple[PathLine, ...]:
    """A line for each path (or kind of state) that captures could not take in, each once."""
    found = {(item.path, item.reason): uncovered_line(item.path, item.reason, item.size, item.detail) for item in notices}
    return tuple(found[key] for key in sorted(found))


def lines_of_states(states: Iterable[tuple[bytes, Unknown]], *, ignored_folders: bool = False) -> tuple[PathLine, ...]:
    """A line for each path that a snapshot calls unknown; ignored dependency folders only if asked for."""
    return tuple(
        uncovered_line(path, state.reason, state.size)
        for path, state in states
        if ignored_folders or state.reason != "ignored-directory"
    )
