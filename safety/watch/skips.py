"""What an observer may leave out: a folder of ours inside the watched one, and folders known by their names."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from safety.watch.observer import Skip


def inside(root: bytes, folder: bytes) -> Skip:
    """Takes ``folder`` and all below it, should it lie below ``root``; both absolute and resolved."""
    top = root.rstrip(b"/") + b"/"
    if not folder.startswith(top):
        return lambda path: False
    own = folder[len(top) :]
    return lambda path: path == own or path.startswith(own + b"/")


def named(patterns: Sequence[str]) -> Skip:
    """Takes paths whose end is one of the patterns: ``node_modules``, ``*.egg-info``, ``vendor/bundle``."""
    each = "|".join(fnmatch.translate(f"*/{pattern}") for pattern in patterns) or r"(?!)"
    wanted = re.compile(each.encode("utf-8", "surrogateescape"))
    return lambda path: wanted.match(b"/" + path) is not None
