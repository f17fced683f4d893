"""A command on its way through the wrappers around it, and what is fed to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from safety.policy.expand import Output
from safety.policy.words import Command, Redirect, Word

EMPTY = Output("")
MAX_OUTPUT = 1_000_000
# Programs whose output, or whose file, is somebody else's.
NETWORK = frozenset("curl wget wget2 aria2c http https xh nc ncat netcat socat fetch lynx w3m ssh sftp scp ftp telnet".split())


class Feed(NamedTuple):
    """What stands on a command's standard input: ``text`` None when not certain; ``draft`` is then how it was written."""

    text: str | None = None
    by: str = ""
    piped_from: tuple[str, ...] = ()
    fed_by: Command | None = None
    source: str = ""  # pipe, heredoc, file; empty: nothing is known
    draft: str = ""


NO_FEED = Feed()


class Call(NamedTuple):
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    env: Mapping[str, str | None]
    feed: Feed
    appended: bool = False
    fed_by: Command | None = None
    runs_download: bool = False
    plain: bool = False  # functions do not count

    def fed(self) -> Feed:
        """Its input, for commands within it; what feeds or finds its words counts as feeding them."""
        return self.feed._replace(fed_by=self.fed_by) if self.fed_by is not None else self.feed


def joined(first: Output, second: Output) -> Output:
    """What both write, one after the other."""
    if first is EMPTY:
        return second
    if second is EMPTY:
        return first
    text = first.text + second.text if first.text is not None and second.text is not None else None
    return Output(text if text is None or len(text) <= MAX_OUTPUT else None, fetched(first.by, second.by))


def fetched(first: str, second: str) -> str:
    """The maker to remember of two: one that fetches stays."""
    return first if first in NETWORK or not second else second
