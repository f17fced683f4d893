"""What the Python API gives back: plain frozen data, paths as texts from the net's folder, as it takes them (`Net.told_path`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from safety.adapters.embed.turn import reading
from safety.commands import changes
from safety.commands.changes import Contents, Kind
from safety.commands.report import Report, UndoReport, Verb
from safety.types import PathState, Present

#: How a path of the workspace is given out.
Told: TypeAlias = Callable[[bytes], str]


@dataclass(frozen=True)
class Change:
    """One path that a turn changed. ``how``: added, modified, deleted, mode, type; ``note`` the few words that say more.

    ``before`` and ``after`` are read from the store when they are first asked for: the content of a file, the target of a link,
    None where there was no file or where its content is not covered (``note`` then says why). Raises SafetyError once the store is gone.
    """

    path: str
    how: Kind
    note: str = ""
    _old: PathState = field(kw_only=True, repr=False)
    _new: PathState = field(kw_only=True, repr=False)
    _contents: Contents = field(kw_only=True, repr=False, compare=False)

    @cached_property
    def before(self) -> bytes | None:
        return self._read(self._old)

    @cached_property
    def after(self) -> bytes | None:
        return self._read(self._new)

    @reading()
    def _read(self, state: PathState) -> bytes | None:
        return self._contents.read(state) if isinstance(state, Present) and state.kind != "dir" else None


def changes_of(found: Iterable[changes.Change], contents: Contents, told: Told) -> tuple[Change, ...]:
    """The changes of a turn as they are given out, in the order of their paths."""
    return tuple(
        Change(
            told(one.path),
            changes.kind_of(one),
            changes.change_note(one),
            _old=one.old,
            _new=one.new,
            _contents=contents,
        )
        for one in found
    )


@dataclass(frozen=True)
class Undone:
    """What an undo or redo did, or with ``dry_run`` would do: each path in the field of what became of it.

    ``kept``: somebody changed it afterwards, it is as it was. ``git``: what became of branches and the index, a sentence each.
    ``nothing`` says why there was nothing to do; then all else is empty but for ``notices``, which are for whoever asked.
    """

    handle: str = ""
    dry_run: bool = False
    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    git: tuple[str, ...] = ()
    nothing: str = ""
    notices: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """What was changed on disk, or would be."""
        return tuple(sorted({*self.restored, *self.removed, *self.merged}))


def undone(report: Report, told: Told) -> Undone:
    """The report of ``undo`` or ``redo`` as plain data."""
    assert isinstance(report, UndoReport)

    def of(verb: Verb) -> tuple[str, ...]:
        return tuple(told(line.path) for line in report.lines if line.verb == verb)

    return Undone(
        ", ".join(title.handle for title in report.titles),
        report.dry_run,
        **{verb.replace(" ", "_"): of(verb) for verb in _PATH_VERBS},
        git=tuple(line.note for line in report.lines if line.verb == "git"),
        nothing=report.nothing,
        notices=report.notices,
    )


_PATH_VERBS: tuple[Verb, ...] = ("restored", "removed", "merged", "unchanged", "kept", "not covered")
