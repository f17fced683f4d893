"""What each verb takes: one frozen dataclass a verb, parsed and checked at the door, trusted inside.

Paths are absolute ``bytes``, lexically normalised, never resolved through links; the verb makes them relative to its workspace.
Handles are text as typed (``t14``, ``t14.2``, ``@``, ``@-``, a pinned name, a prefix of an operation id); the verb resolves them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class UndoArgs:
    """``handle`` (positional or --turn / --call) else the newest turn that changed something; ``count`` turns of it (-n).

    ``session``: None no filter, "" the session of the newest turn, else that id. ``patch``: give a Choose; ``hunks``: its answer.
    ``confirmed``: a question was answered with yes. ``plan``: the token that the plan made now must still have. ``can_ask``: a person
    is there, so that what is marked in the report elsewhere is asked about first.
    """

    handle: str = ""
    count: int = 1
    session: str | None = None
    paths: tuple[bytes, ...] = ()
    dry_run: bool = False
    show_patch: bool = False
    patch: bool = False
    hunks: frozenset[str] | None = None
    now: bool = False
    plan: str = ""
    include_unattributed: bool = False
    confirmed: bool = False
    can_ask: bool = False


@dataclass(frozen=True, kw_only=True)
class RedoArgs:
    """``handle``: which undo to take back (the undo's operation, or the turn it undid); empty: the newest."""

    handle: str = ""
    paths: tuple[bytes, ...] = ()
    dry_run: bool = False
    plan: str = ""
    confirmed: bool = False


@dataclass(frozen=True, kw_only=True)
class RestoreArgs:
    """``when``: before, after or at, empty where nothing was said; ``handle``: a handle, or for ``at`` also a moment, then ``at_ms``
    is set and handle empty.
    """

    when: str = "before"
    handle: str = ""
    at_ms: int | None = None
    paths: tuple[bytes, ...] = ()
    dry_run: bool = False
    plan: str = ""
    confirmed: bool = False


@dataclass(frozen=True, kw_only=True)
class LogArgs:
    """``handle``: only that turn, with its calls. ``since_ms``: absolute. ``limit``: None means all."""

    handle: str = ""
    limit: int | None = None
    since_ms: int | None = None
    agent: str = ""
    mine: bool = False
    all_workspaces: bool = False
    not_covered: bool = False
    verbose: bool = False
    patch: bool = False
    stat: bool = False
    paths: tuple[bytes, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShowArgs:
    """``handle`` empty: the newest turn. ``checks``: what its checks wrote, in full, instead."""

    handle: str = ""
    patch: bool = False
    checks: bool = False
    stat: bool = False
    paths: tuple[bytes, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DiffArgs:
    """No handle: what the newest turn changed. One: what that turn changed. Two: from before the first to after the second.

    ``to_now``: from before the first handle to the files as they are now.
    """

    handles: tuple[str, ...] = ()
    to_now: bool = False
    stat: bool = False
    name_only: bool = False
    paths: tuple[bytes, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SnapshotArgs:
    """``paths`` empty: the whole workspace. Named paths are taken in whatever their size. ``name`` pins the snapshot."""

    name: str = ""
    paths: tuple[bytes, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PinArgs:
    """Give ``handle`` the name ``name``, so that it is never forgotten; ``delete`` takes the name away. Both empty: list the
    pins.
    """

    name: str = ""
    handle: str = "@"
    delete: bool = False


@dataclass(frozen=True, kw_only=True)
class StatusArgs:
    """Nothing to say."""


@dataclass(frozen=True, kw_only=True)
class DoctorArgs:
    """``fast`` leaves out the check of every object. ``trace``: which handlers were called lately, instead of the checks."""

    fast: bool = False
    trace: bool = False


@dataclass(frozen=True, kw_only=True)
class FindArgs:
    """``name``: a path, a part of a name, or a pattern with ``*``. ``limit`` rows at most."""

    name: str
    gone: bool = False
    limit: int = 50


@dataclass(frozen=True, kw_only=True)
class ExportArgs:
    """The turn ``handle`` as a patch that ``git apply`` takes."""

    handle: str = "@"
    paths: tuple[bytes, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RecoverArgs:
    """``dry_run``: say what an interrupted undo left to do."""

    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class PurgeArgs:
    """Remove the content of ``paths`` from all history. ``confirmed`` else the verb gives an Ask."""

    paths: tuple[bytes, ...] = ()
    dry_run: bool = False
    confirmed: bool = False


@dataclass(frozen=True, kw_only=True)
class StoreArgs:
    """``action``: status, forget, prune, fsck. ``keep_days`` / ``keep_operations`` / ``max_mib`` override the settings for this
    once.
    """

    action: str = "status"
    keep_days: int | None = None
    keep_operations: int | None = None
    max_mib: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class CommitArgs:
    """``handle``: only that turn's change; empty: what the newest conversation changed since its last commit of ours.

    ``message`` empty: made from the turn. ``judged``: do not run the checks; ``checked``: they have run and passed.
    ``include_mine``: also your own hunks in the files the agent changed. ``session``: whose change, None the newest conversation's.
    """

    handle: str = ""
    message: str = ""
    judged: bool = False
    checked: bool = False
    include_mine: bool = False
    dry_run: bool = False
    session: str | None = None


@dataclass(frozen=True, kw_only=True)
class TrustArgs:
    """``listing``: all that is trusted, instead of trusting this repository."""

    listing: bool = False


@dataclass(frozen=True, kw_only=True)
class UntrustArgs:
    """None."""


@dataclass(frozen=True, kw_only=True)
class AgentsArgs:
    """``session``: whose instruction files, None the newest conversation's."""

    session: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExplainArgs:
    """``text``: a command as a shell would get it."""

    text: str = ""


@dataclass(frozen=True, kw_only=True)
class AllowArgs:
    """``id``: of the one call that may pass, as the guard named it."""

    id: str = ""
