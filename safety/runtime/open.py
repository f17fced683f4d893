"""Opens a session: finds the workspace and its store, makes both at first contact, and joins them with clock, ids and settings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from safety.plumbing.odb import ObjectStore
from safety.plumbing.run import Git
from safety.runtime.config import Settings, load_settings, settings_file
from safety.runtime.handlers import handlers_for
from safety.session import Session, state_folder
from safety.store import registry
from safety.store.oplog import ID_LETTERS, OpLog
from safety.store.place import Limits, Place

_LETTERS = str.maketrans("0123456789abcdef", ID_LETTERS)
Progress = Callable[[str, int, int], None]


def state_home(environ: Mapping[str, str]) -> Path:
    """The state folder: ``GIT_SAFETY_HOME``, else ``git-safety`` under ``XDG_STATE_HOME`` or ``~/.local/state``."""
    if environ.get("GIT_SAFETY_HOME"):
        return Path(environ["GIT_SAFETY_HOME"])
    base = environ.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path(environ.get("HOME") or "/") / ".local" / "state") / "git-safety"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def new_id() -> str:
    return os.urandom(6).hex().translate(_LETTERS)  # `secrets` would cost a hook more than its event


def open_session(
    cwd: bytes,
    session_id: str = "",
    environ: Mapping[str, str] | None = None,
    agent: Mapping[str, str] | None = None,
    on_progress: Progress | None = None,
    clock: Callable[[], int] = now_ms,
    ids: Callable[[], str] = new_id,
    lenient: bool = False,
    alone: bool = False,
) -> Session:
    """The session of one conversation in the workspace that holds ``cwd``; an empty id stands for the user at the command line.

    Raises SafetyError when the state folder, the settings or the store cannot be used. ``lenient``: settings that cannot be used are
    ``settings.broken``, and the defaults count. ``alone``: ``cwd`` is a workspace itself, whatever holds it.
    """
    environ = os.environ if environ is None else environ
    home = state_home(environ)
    registry.prepare_home(home)
    too_wide = wide_folders(environ)
    entry = registry.locate(home, cwd, too_wide)
    if alone and entry.root != (path := registry.real_path(cwd)):
        entry = registry.new_entry(home, path)
    known = registry.recorded(home, entry.root)
    if known is None:
        from safety.store.moved import take_over  # a first contact, or a folder that was moved

        moved = take_over(home, cwd, too_wide, clock())
        if moved is not None and (moved.root == entry.root or not alone):
            entry = known = moved
    settings = load_settings(environ, entry.root, lenient=lenient)
    is_new = known is None
    git = Git(environ)
    entry = _with_witness(home, entry)
    state = state_folder(home, entry)
    store = home / "stores" / f"{entry.store}.git"
    try:
        state.mkdir(mode=0o700, exist_ok=True)
        if not (store / "HEAD").exists():
            from safety.store.seed import create_store  # a store is made once

            create_store(store)
        if known != entry:
            registry.save(home, entry)
    except OSError as fault:
        raise registry.StateUnusable(
            f"the state folder {home} cannot be used: {fault.strerror}", "set GIT_SAFETY_HOME to a folder you can write"
        ) from fault
    odb = ObjectStore(store)
    place = Place(
        entry.root,
        state,
        store,
        home,
        entry.chain,
        odb,
        git,
        limits_of(settings),
        declared_only=entry.root in too_wide,
        progress=on_progress or (lambda label, done, total: None),
    )
    handlers = handlers_for(settings, environ, settings_file(environ).parent, entry.root)
    log = OpLog(odb, store, entry.chain, clock)
    return Session(
        session_id or "you",
        place,
        entry,
        log,
        settings,
        clock,
        ids,
        agent=dict(agent or {}),
        run_parent=environ.get("GIT_SAFETY_RUN", ""),
        on_progress=on_progress,
        is_new=is_new,
        environ=environ,
        cwd=cwd,
        config_folder=os.fsencode(settings_file(environ).parent),
        hooks=handlers.registry,
        commands=handlers.commands,
        notices=[f"git-safety: {text}" for text in handlers.left_out],
    )


def passes_over(session: Session, folder: bytes) -> bool:
    """Whether captures of the workspace may pass over a folder in it: its repository ignores it, or it is another file system."""
    from safety.plumbing.ignore import ignored_paths
    from safety.plumbing.repo import find_root
    from safety.plumbing.run import GitError

    path = folder = registry.real_path(folder)
    while path != session.root:
        top = find_root(os.path.dirname(path))
        if top is None or not (top == session.root or top.startswith(session.root + b"/")):
            break
        try:
            if ignored_paths(session.place.git, top, [path[len(top) + 1 :]]):
                return True
        except GitError:  # where git does not work nothing is ignored
            pass
        path = top
    return os.stat(folder).st_dev != os.stat(session.root).st_dev


def limits_of(settings: Settings) -> Limits:
    return Limits(
        settings.snapshots_max_file_mib << 20,
        settings.snapshots_max_call_mib << 20,
        settings.snapshots_ignored_max_kib << 10,
        settings.snapshots_deadline_s,
        settings.snapshots_skip_dirs,
    )


def wide_folders(environ: Mapping[str, str]) -> frozenset[bytes]:
    """``/`` and the home folder: declared paths only, and never the workspace of a project below them."""
    home = environ.get("HOME")
    return frozenset({b"/", registry.real_path(os.fsencode(home))} if home else {b"/"})


def _with_witness(home: Path, entry: registry.Entry) -> registry.Entry:
    """A replaced folder gets a new generation, unless a turn is running there (the agent replaced it itself)."""
    from safety.store.turns import Sessions

    if any(state.is_open for state in Sessions(state_folder(home, entry) / "sessions").all()):
        return entry
    return registry.witnessed(entry, registry.first_commit(entry.root))
