"""Three-way merge of text, by ``git merge-file`` without any configuration; anything doubtful is no merge."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from safety.plumbing.run import Git

MAX_BYTES = 10_000_000


def merge_trivial(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The merge when at most one side changed, or both alike; None when it takes more than a look. Binary content is fine."""
    if ours in (base, theirs):
        return theirs
    return ours if theirs == base else None


def merge_text(git: Git, base: bytes, ours: bytes, theirs: bytes, *, folder: Path | None = None) -> bytes | None:
    """The clean merge of what changed from ``base`` to ``ours`` and to ``theirs``, byte for byte, or None.

    None also for content with a NUL byte, over 10 MB, or whose two sides end most of their lines differently. Temporary files are
    made in a private folder of their own, below ``folder`` if given.
    """
    if (easy := merge_trivial(base, ours, theirs)) is not None:
        return easy
    sides = (ours, base, theirs)
    if any(b"\0" in side or len(side) > MAX_BYTES for side in sides):
        return None
    if line_end(ours) != line_end(theirs) and None not in (line_end(ours), line_end(theirs)):
        return None
    with tempfile.TemporaryDirectory(prefix="git-safety-merge-", dir=folder) as place:
        for name, side in zip(("ours", "base", "theirs"), sides, strict=True):
            with open(os.path.join(place, name), "xb") as file:
                file.write(side)
        # The folder stands in for a git directory: merge-file then finds no repository, hence no configuration.
        done = git.store(Path(place), ["merge-file", "-p", "--", "ours", "base", "theirs"], check=False)
    return done.stdout if done.returncode == 0 else None


def line_end(data: bytes) -> bytes | None:
    """How most lines end: ``b"\\r\\n"`` or ``b"\\n"``; ``b""`` when both are as frequent, None when no line ends at all."""
    ends = data.count(b"\n")
    if not ends:
        return None
    twofold = data.count(b"\r\n")
    if twofold * 2 == ends:
        return b""
    return b"\r\n" if twofold * 2 > ends else b"\n"
