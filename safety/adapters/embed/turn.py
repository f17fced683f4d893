"""``Turn``: one exchange with the agent, to be looked at and taken back as one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from safety.faults import SafetyError
from safety.store.oplog import UnknownHandle

if TYPE_CHECKING:
    from safety.adapters.embed.net import Net
    from safety.adapters.embed.results import Change, Undone
    from safety.adapters.embed.wrapping import SomePaths


class NotRecorded(SafetyError):
    """Nothing of the turn could be recorded; the newest turn in the log is another one."""

    code = "not-recorded"


class StoreLost(SafetyError):
    """The store was there when the net was opened, and cannot be used any more."""

    code = "store-lost"


@contextmanager
def reading() -> Iterator[None]:
    """What the system says of a store that is gone, as StoreLost."""
    try:
        yield
    except OSError as fault:
        raise StoreLost(f"the store cannot be used: {fault.strerror or fault}", "git safety doctor") from fault


class Turn:
    """One turn of a net. ``messages`` is what the model should be told at its start.

    ``feedback``: what its end had to say to the agent, None if nothing; known once the turn was left or `end` was called.
    """

    def __init__(self, net: Net, prompt: str) -> None:
        self.prompt = prompt
        self.messages: tuple[str, ...] = ()
        self.feedback: str | None = None
        self.begun = threading.Event()  # from then on others may join
        self.is_ending = False
        self.noticed: tuple[str, ...] | None = None  # kept when it is over
        self.first = 0  # of the net's notices
        self.before = 0  # the conversation's turn until now
        self._net = net
        self._handle = ""

    @property
    def handle(self) -> str:
        """Its name in the log (``t14``); empty while nothing could be recorded, which a call of the turn may still change."""
        if not self._handle and self.noticed is None:
            number = self._net.turn_number()
            self._handle = f"t{number}" if number > self.before else ""
        return self._handle

    def __repr__(self) -> str:
        return f"<Turn {self.handle or '(not recorded)'} {self.prompt!r}>"

    @property
    @reading()
    def changes(self) -> tuple[Change, ...]:
        """What the turn has changed so far, a `Change` a path, sorted. Raises SafetyError where nothing could be recorded."""
        from safety.adapters.embed.results import changes_of
        from safety.commands.changes import Contents, net_changes
        from safety.commands.selection import open_book, select

        session = self._net.session
        with session.locked():
            chosen = select(open_book(session), self._recorded())
            found = net_changes(session.log.odb, session.root, chosen.parts)
        return changes_of(found, Contents(session.log.odb), self._net.told_path)

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know of this turn; what could not be protected is among it."""
        return self._net.notices[self.first :] if self.noticed is None else self.noticed

    def end(self) -> str | None:
        """Ends the turn, or gives the text that goes back to the agent instead; the turn then goes on. None: it is over."""
        return self._net.end_of(self)

    def undo(self, *, dry_run: bool = False, paths: SomePaths | None = None) -> Undone:
        """Takes back what the turn changed, or a part of it; with ``dry_run`` only says what that would be. As `Net.undo`."""
        from safety.adapters.embed.results import Undone

        handle = self._recorded()
        try:
            return self._net.undo(handle, dry_run=dry_run, paths=paths)
        except UnknownHandle:
            if self.noticed is not None:
                raise
            return Undone(dry_run=dry_run, nothing=f"{handle} has changed nothing yet")  # so the log does not know it yet

    def _recorded(self) -> str:
        if not self.handle and self._net.session:  # the session's own fault says more
            raise NotRecorded("nothing of this turn could be recorded; its notices tell why")
        return self.handle
