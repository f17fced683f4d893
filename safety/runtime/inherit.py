"""What a host's process hands down by its environment to the hosts that its tools start: whose turn they work in."""

from __future__ import annotations

import os

from safety.runtime import config

VARIABLE = "GIT_SAFETY_PART_OF"


def hand_down(session_id: str) -> None:
    """From now on a host started below this process can know that it works for that session."""
    os.environ[VARIABLE] = session_id


def handed_down() -> str:
    """The session whose turn this process was started in, as far as that was said; empty if none."""
    return os.environ.get(VARIABLE, "")


def fails_closed() -> bool:
    """``fail_closed`` of the user's settings, for a moment when no session could be opened."""
    return config.fails_closed(os.environ)
