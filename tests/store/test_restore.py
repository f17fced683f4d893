"""The undo table, row by row."""

from __future__ import annotations

import pytest

from safety.store.restore import KEPT, MERGED, NOT_COVERED, REMOVED, RESTORED, UNCHANGED, decide
from safety.types import ABSENT, PathState, Present, Unknown

A, B, C, M = (bytes([letter]) * 20 for letter in b"abcm")


def file(oid: bytes, mode: int = 0o644) -> Present:
    return Present("file", mode, oid)


def merges(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    return M


def conflicts(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    return None


LINK = Present("link", 0o777, A)
UNKNOWN = Unknown("too-large", 5, 5)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "verb", "target"),
    [
        (file(B), file(B), file(A), RESTORED, file(A)),
        (file(B), file(B), ABSENT, REMOVED, ABSENT),
        (ABSENT, ABSENT, file(A), RESTORED, file(A)),
        (file(B), file(A), file(A), UNCHANGED, file(A)),
        (ABSENT, file(A), file(A), UNCHANGED, file(A)),
        (file(B), file(C), file(A), MERGED, file(M)),
        (file(B), file(C, 0o600), file(A), MERGED, file(M, 0o600)),
        (file(B, 0o755), file(C, 0o755), file(A), MERGED, file(M)),
        (file(B), ABSENT, file(A), KEPT, ABSENT),
        (file(B), file(C), ABSENT, KEPT, file(C)),
        (ABSENT, file(C), file(A), KEPT, file(C)),
        (LINK, Present("link", 0o777, C), Present("link", 0o777, B), KEPT, Present("link", 0o777, C)),
        (file(B), LINK, file(A), KEPT, LINK),
        (LINK, LINK, file(A), RESTORED, file(A)),
        (file(B), file(B, 0o600), file(A), RESTORED, file(A, 0o600)),
        (file(A, 0o755), file(C, 0o755), file(A), RESTORED, file(C)),
        (file(A, 0o755), file(C, 0o600), file(A), UNCHANGED, file(C, 0o600)),
        (UNKNOWN, file(C), file(A), NOT_COVERED, file(C)),
        (file(B), UNKNOWN, file(A), NOT_COVERED, UNKNOWN),
        (file(B), file(B), UNKNOWN, NOT_COVERED, file(B)),
        (ABSENT, UNKNOWN, ABSENT, NOT_COVERED, UNKNOWN),
    ],
)
def test_table(base: PathState, ours: PathState, theirs: PathState, verb: str, target: PathState) -> None:
    """Base is what the agent left, ours what is there now, theirs what was there before the agent."""
    assert decide(base, ours, theirs, merges) == (verb, target)


def test_conflict_keeps_ours() -> None:
    """Where the merge is not clean, the user's version stays."""
    assert decide(file(B), file(C), file(A), conflicts) == (KEPT, file(C))
