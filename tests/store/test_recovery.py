"""What recovery makes of the states in which a killed undo leaves a path."""

from __future__ import annotations

import pytest

from safety.store.recovery import is_on_the_way
from safety.types import Absent, PathState, Present

FILE = Present("file", 0o755, b"1" * 20)
OTHER = Present("file", 0o644, b"2" * 20)
READ_ONLY = Present("file", 0o444, b"1" * 20)
CLOSED = Present("dir", 0o555, b"")
FOLDER = Present("dir", 0o755, b"")


@pytest.mark.parametrize(
    ("ours", "state", "target", "expected"),
    [
        (FOLDER, Absent(), FILE, True),  # rmdir done, the file is still to come
        (FILE, Absent(), FOLDER, True),
        (FILE, Absent(), OTHER, False),  # an exchange is one call: somebody removed it
        (FOLDER, OTHER, FILE, False),  # somebody's file
        (Absent(), Present("dir", 0o700, b""), FOLDER, True),  # mkdir done, the mode comes last
        (Absent(), Present("dir", 0o755, b""), CLOSED, True),
        (FOLDER, Present("dir", 0o755, b""), CLOSED, True),
        (FOLDER, Present("dir", 0o711, b""), CLOSED, False),  # somebody's mode
        (READ_ONLY, Present("file", 0o644, b"1" * 20), OTHER, True),  # opened to be written in place
        (READ_ONLY, Present("file", 0o644, b"3" * 20), OTHER, False),
        (FILE, Present("dir", 0o700, b""), Absent(), False),
    ],
)
def test_states_between(ours: PathState, state: PathState, target: PathState, expected: bool) -> None:
    """A state that only our own hands pass through is still to do; any other is somebody's. Rule: recovery judges against now."""
    assert is_on_the_way(ours, state, target) is expected
