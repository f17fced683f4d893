"""What changed during a turn and is no call's doing, so that no undo of the turn takes it for the agent's (design 5.4 rules 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from safety.commands.changes import Change, net_changes
from safety.commands.gitnotes import git_notes
from safety.commands.selection import Book
from safety.plumbing.odb import ObjectStore
from safety.store.attribution import UNATTRIBUTED
from safety.store.restore import Piece
from safety.store.snapshot import Snapshot
from safety.types import Unknown


def meanwhile(book: Book, turn: int, only: Sequence[bytes] = ()) -> tuple[list[Change], tuple[str, ...]]:
    """The paths, at or below ``only`` if that names any, and without ``only`` what happened to git's state, in sentences."""
    parts, git = [], []
    for item, piece in book.timeline.owned_pieces(turn, unattributed=True):
        record = item.operation.record
        if record.actor != UNATTRIBUTED:
            rest = tuple(path for path in piece.paths if not item.owns(path, turn, None, unattributed=False))
            piece = Piece(piece.operation, piece.before, piece.after, rest)
        elif record.git_changed and not only:
            git.append(piece)
        parts.append(piece)
    odb = book.log.odb
    parts = [replace(piece, paths=tuple(_seen_before(odb, piece))) for piece in parts]
    notes = [note for piece in git for note in git_notes(odb, book.root, [piece])]
    return net_changes(odb, book.root, parts, only), tuple(dict.fromkeys(notes))


def _seen_before(odb: ObjectStore, piece: Piece) -> Iterator[bytes]:
    """The piece's paths but for those outside of the workspace that were looked at for the first time: they need not have changed."""
    before = Snapshot(odb, piece.before)
    return (path for path in piece.paths if not path.startswith(b"/") or before.state(path) != Unknown("outside"))
