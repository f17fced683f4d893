"""``purge``: removes the content of paths from all of history. The one verb that takes something away for good, so it asks."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Sequence

from safety.commands.args import PurgeArgs
from safety.commands.carry import relative
from safety.commands.report import Ask, Hint, Report, TextReport
from safety.commands.restore import UnknownPath
from safety.recorder import LOCK_WAIT_S
from safety.session import Session, state_folder
from safety.store import registry
from safety.store.chains import chains, read_chain
from safety.store.lock import hold
from safety.store.purge import Purged, purge
from safety.store.snapshot import Snapshot
from safety.types import Present, RelPath


def run(session: Session, args: PurgeArgs) -> Report:
    """Gives an Ask first, then a TextReport; exit code 4 where no snapshot holds anything there, 3 where content stays (other
    paths or the user's commits hold it). Raises UnknownPath, StoreBusy, WorkspaceBusy.
    """
    paths = [relative(session, path) for path in args.paths]
    if b"" in paths:
        raise UnknownPath("the workspace as a whole cannot be purged", "git safety store forget")
    with _alone(session):
        counts = {path: _operations_with(session, path) for path in paths}
        held = [path for path in paths if counts[path]]
        if not held:
            return TextReport(root=session.root, lines=(f"No snapshot holds {_list(paths)}.",), data={"purged": []}, exit_code=4)
        if args.dry_run:
            lines = tuple(f"Would remove {_shown(path)} from {_count(counts[path], 'snapshot')}." for path in held)
            return TextReport(root=session.root, lines=lines, data={"would_purge": {_shown(path): counts[path] for path in held}})
        if not args.confirmed:
            words = " ".join(shlex.quote(path.decode("utf-8", "surrogateescape")) for path in args.paths)
            return Ask(
                root=session.root,
                question=f"Remove the content of {_list(held)} from all snapshots? No undo brings it back.",
                command=f"git safety purge --yes {words}",
                answer={"confirmed": True},
                code="purge",
            )
        done = {path: purge(session.place.git, session.place.odb, path) for path in held}
        session.sessions.drop_all_results()  # a tool may have read it aloud
    return _report(session, done)


def _report(session: Session, done: dict[RelPath, Purged]) -> Report:
    lines: list[str] = []
    hints: list[Hint] = []
    for path, result in done.items():
        lines.append(
            f"Removed {_shown(path)} from {_count(result.operations, 'snapshot')}, {_count(result.blobs, 'version')} in all."
        )
        if result.spared:
            lines.append(f"  {_count(len(result.spared), 'version')} stay: other paths hold the same.")
        if result.in_history:
            lines.append("  Your own commits or index hold it too; that is not for purge to change.")
        if result.unread_history:
            lines.append("  Not all of your history could be read; an older version of it may lie in the store.")
        if os.path.lexists(path if path.startswith(b"/") else os.path.join(session.root, path)):
            lines.append(f"  {_shown(path)} is still on disk, and the next snapshot takes it in again.")
            hints = [Hint("Leave it out of snapshots", "git safety help settings")]
    freed = sum(result.pruned.freed_bytes for result in done.values())
    stays = any(result.spared or result.in_history or result.unread_history for result in done.values())
    data = {
        _shown(path): {
            "operations": r.operations,
            "contents": r.blobs,
            "spared": list(r.spared),
            "in_history": r.in_history,
            "unread_history": r.unread_history,
        }
        for path, r in done.items()
    }
    return TextReport(
        root=session.root,
        lines=tuple(lines),
        hints=tuple(hints),
        data={"purged": data, "freed_bytes": freed},
        exit_code=3 if stays else 0,
    )


@contextlib.contextmanager
def _alone(session: Session) -> Iterator[None]:
    """Holds the locks of all workspaces that share the store, always in the same order. Raises WorkspaceBusy."""
    home = session.place.home
    folders = {
        session.place.state,
        *(state_folder(home, entry) for entry in registry.everything(home) if entry.store == session.entry.store),
    }
    with contextlib.ExitStack() as stack:
        for folder in sorted(folders):
            if folder.is_dir():
                stack.enter_context(hold(folder / "lock", LOCK_WAIT_S))
        yield


def _operations_with(session: Session, path: RelPath) -> int:
    """How many snapshots of the store hold content at or below a path."""
    odb = session.log.odb
    seen: dict[bytes, bool] = {}
    count = 0
    for chain in chains(odb.git_dir):
        for operation in read_chain(odb, chain):
            if operation.tree not in seen:
                seen[operation.tree] = _holds(Snapshot(odb, operation.tree), path)
            count += seen[operation.tree]
    return count


def _holds(snapshot: Snapshot, path: RelPath) -> bool:
    state = snapshot.state(path)
    if not isinstance(state, Present) or state.kind != "dir":
        return isinstance(state, Present)
    return any(isinstance(below, Present) and below.kind != "dir" for _, below in snapshot.walk(path))


def _list(paths: Sequence[bytes]) -> str:
    return ", ".join(map(_shown, paths[:5])) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
