"""Batches of changed paths below a folder, from the kernel, by way of ``watchdog``.

On Linux each folder gets a watch of its own on one inotify descriptor, so that ``.git`` and skipped folders cost nothing, and a
queue that ran over is known. Elsewhere (and with a watchdog before 7) the recursive observer of watchdog is used and filtered; it
does not tell what it lost, so none of its batches is called complete.
"""

from __future__ import annotations

import errno
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import watchdog.events as wd_events
import watchdog.observers as wd_observers
from watchdog.utils import UnsupportedLibcError

from safety.faults import SafetyError

try:
    import watchdog.observers.inotify_c as inotify

    HAS_INOTIFY = hasattr(inotify, "InotifyFD")
except UnsupportedLibcError:
    HAS_INOTIFY = False

DOT_GIT = b".git"
SETTLE_S = 0.05
ROOT_POLL_S = 0.5
STOP_S = 5.0

#: What counts as a write. Opening, reading and closing unwritten do not; IN_CLOSE_WRITE stands for writes through a memory map.
_WRITES = ("IN_CREATE", "IN_MODIFY", "IN_CLOSE_WRITE", "IN_ATTRIB", "IN_DELETE", "IN_MOVED_FROM", "IN_MOVED_TO")
_SELF = ("IN_DELETE_SELF", "IN_MOVE_SELF", "IN_ONLYDIR", "IN_DONT_FOLLOW", "IN_EXCL_UNLINK")
_ROOT_GONE = ("IN_DELETE_SELF", "IN_MOVE_SELF", "IN_UNMOUNT")

Skip = Callable[[bytes], bool]


class WatchFailed(SafetyError):
    code = "watch-failed"


@dataclass(frozen=True, slots=True)
class Batch:
    """Paths written to since the batch before, relative to the root, each once, in first-seen order.

    A folder's path stands for the folder itself; what is in a new one is listed too, what was in one that went away need not be.
    ``complete`` is False when more may have changed than is listed: the kernel's queue ran over, a folder could not be watched,
    the root went away or came back, or the system does not tell. Whoever needs to know all then scans.
    """

    paths: tuple[bytes, ...]
    complete: bool


def nothing(path: bytes) -> bool:
    """The ``skip`` that skips nothing."""
    return False


class Observer:
    """Watches ``root`` (absolute, resolved) and hands each batch to ``deliver``, in a thread of its own.

    ``skip`` is asked for each relative path below the root and must be quick: what it takes is neither reported nor entered.
    ``.git`` is always skipped, wherever it is. Writes within ``settle_s`` of the first come as one batch. A root that is deleted
    is looked for again twice a second.
    """

    def __init__(
        self, root: bytes, deliver: Callable[[Batch], None], *, skip: Skip = nothing, settle_s: float = SETTLE_S
    ) -> None:
        self._deliver = deliver
        self._settle_s = settle_s
        self._changes = _Changes()
        self._tree: _Tree = _tree_class()(root, skip, self._changes)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._work, name="safety-observer", daemon=True)

    @property
    def problem(self) -> str:
        """Why nothing is heard any more, in a few words; empty while all is well."""
        return self._changes.problem

    def start(self) -> None:
        """Begins, without waiting until the folders are walked. Raises WatchFailed if the system has no watcher left to give."""
        try:
            self._tree.start()
        except OSError as error:
            raise WatchFailed(f"cannot watch for changes: {error.strerror or error}") from error
        self._thread.start()

    def wait_ready(self, timeout_s: float) -> bool:
        """True once every folder is watched; from then on batches may be complete."""
        return self._ready.wait(timeout_s)

    def stop(self) -> None:
        """Ends watching; what was heard until now is still delivered before this returns. May be called twice."""
        self._tree.stop()
        self._changes.end()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_S)

    def _work(self) -> None:
        self._tree.enter()
        self._changes.walked()
        self._ready.set()
        ended = False
        while not ended:
            batch, ended = self._changes.take(self._settle_s, None if self._tree.rooted else ROOT_POLL_S)
            if self._changes.pop_rescan() or not self._tree.rooted:
                self._tree.enter()
            if batch is not None:
                self._deliver(batch)


class _Changes:
    """What was heard and not yet delivered."""

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._paths: dict[bytes, None] = {}
        self._walking = True
        self._missed = self._blind = self._rescan = self._ended = False
        self.problem = ""

    def add(self, path: bytes) -> None:
        with self._wake:
            self._paths[path] = None
            self._wake.notify_all()

    def miss(self, *, rescan: bool = False) -> None:
        """Something happened that no path stands for; with ``rescan`` the folders must be walked again too."""
        with self._wake:
            self._missed = True
            self._rescan = self._rescan or rescan
            self._wake.notify_all()

    def blind(self) -> None:
        """From now on there are places that nobody looks at."""
        with self._wake:
            self._blind = True

    def give_up(self, problem: str) -> None:
        with self._wake:
            self.problem = self.problem or problem
            self._blind = self._missed = True
            self._wake.notify_all()

    def walked(self) -> None:
        """The first walk is over."""
        with self._wake:
            self._walking = False

    def end(self) -> None:
        with self._wake:
            self._ended = True
            self._wake.notify_all()

    def pop_rescan(self) -> bool:
        with self._wake:
            rescan, self._rescan = self._rescan, False
            return rescan

    def take(self, settle_s: float, timeout_s: float | None) -> tuple[Batch | None, bool]:
        """Waits for a change, then ``settle_s`` more. Gives the batch (None: there is none) and whether it is the last."""
        with self._wake:
            self._wake.wait_for(lambda: bool(self._paths) or self._missed or self._ended, timeout_s)
            if not self._paths and not self._missed:
                return None, self._ended
            self._wake.wait_for(lambda: self._ended, settle_s)
            batch = Batch(tuple(self._paths), complete=not (self._missed or self._blind or self._walking))
            self._paths = {}
            self._missed = False
            return batch, self._ended


class _Tree(Protocol):
    """A source of changes: one for inotify, one for everything else."""

    def __init__(self, root: bytes, skip: Skip, changes: _Changes) -> None: ...

    @property
    def rooted(self) -> bool:
        """True while the root is there and watched, or nobody will look for it any more."""

    def start(self) -> None: ...

    def enter(self) -> None:
        """Watches the root and all below it that is not watched yet."""

    def stop(self) -> None: ...


def _tree_class() -> type[_Tree]:
    return _InotifyTree if HAS_INOTIFY else _PortableTree


class _InotifyTree:
    """One inotify watch a folder. Called by watchdog's reading thread and by the observer's.

    A watch is added before its folder is listed, and folders found are entered the same way, so what appears meanwhile is seen
    either in the listing or as an event. Looking up and adding happen under one lock: no event comes for a watch not yet noted.
    """

    def __init__(self, root: bytes, skip: Skip, changes: _Changes) -> None:
        self._root = root
        self._skip = skip
        self._changes = changes
        self._lock = threading.Lock()
        self._folders: dict[int, tuple[bytes, int]] = {}  # watch -> relative path, watchdog's callback id
        self._ids = itertools.count(1)
        self._stopped = False
        self._root_watch = 0
        self._fd: inotify.InotifyFD | None = None
        self._mask = _mask(*_WRITES, *_SELF)
        self._gone = _mask(*_ROOT_GONE)

    @property
    def rooted(self) -> bool:
        return self._stopped or self._root_watch in self._folders

    def start(self) -> None:
        self._fd = inotify.InotifyFD()
        self._fd.start()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._folders.clear()
        if self._fd is not None and self._fd.is_alive():
            self._fd.stop()
            if self._fd is not threading.current_thread():
                self._fd.join(STOP_S)

    def enter(self) -> None:
        back = self._root_watch != 0 and not self.rooted
        self._enter(b"", report=back)
        if back and self.rooted:
            self._changes.miss()

    def on_event(self, event: inotify.InotifyEvent) -> None:
        with self._lock:
            folder, _ = self._folders.get(event.wd, (None, 0))
        if folder is None:
            return
        if not event.name:
            if folder == b"" and event.mask & self._gone:
                self._leave(b"")
                self._changes.miss()
            return
        path = _join(folder, event.name)
        if event.name == DOT_GIT or self._skip(path):
            return
        self._changes.add(path)
        if event.is_directory and event.is_moved_from:
            self._leave(path)
        if event.is_directory and (event.is_create or event.is_moved_to):
            self._enter(path, report=True)

    def on_watch_deleted(self, wd: inotify.WatchDescriptor) -> None:
        with self._lock:
            folder, _ = self._folders.pop(wd, (None, 0))
        if folder == b"":
            self._leave(b"")
            self._changes.miss()

    def on_queue_overflow(self) -> None:
        self._changes.miss(rescan=True)

    def _enter(self, top: bytes, *, report: bool) -> None:
        """Watches ``top`` and all below; with ``report`` what is found counts as changed."""
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            if not self._watch(folder):
                continue
            for path, is_folder in self._listing(folder):
                if report:
                    self._changes.add(path)
                if is_folder:
                    waiting.append(path)

    def _watch(self, folder: bytes) -> bool:
        number = inotify.CallbackId(next(self._ids))
        with self._lock:
            if self._stopped or self._fd is None:
                return False
            try:
                wd = self._fd.add_callback(_join(self._root, folder), self._mask, self, number)
            except OSError as error:
                return self._not_watched(folder, error)
            if wd == -1:  # watchdog swallows EACCES
                self._changes.blind()
                return False
            known = self._folders.get(wd)
            self._folders[wd] = (folder, known[1] if known else number)
            if not folder:
                self._root_watch = wd
        if known:
            self._fd.remove_callbacks([(wd, number)])
        return True

    def _not_watched(self, folder: bytes, error: OSError) -> bool:
        """False, always. A folder that is gone needs no watch; without one to spare, all go back to the user's editor."""
        if error.errno == errno.ENOSPC:
            self._changes.give_up("the system's limit of watched folders (fs.inotify.max_user_watches) is reached")
            self._stopped = True
            threading.Thread(target=self.stop, daemon=True).start()
        elif error.errno not in (errno.ENOENT, errno.ENOTDIR):
            self._changes.blind()
        return False

    def _leave(self, top: bytes) -> None:
        """Forgets the watches of ``top`` and all below."""
        inside = top + b"/" if top else b""
        with self._lock:
            left = [(wd, number) for wd, (path, number) in self._folders.items() if path == top or path.startswith(inside)]
            for wd, _ in left:
                del self._folders[wd]
            fd = None if self._stopped else self._fd
        if fd is not None:
            with suppress(OSError):
                fd.remove_callbacks([(inotify.WatchDescriptor(wd), inotify.CallbackId(number)) for wd, number in left])

    def _listing(self, folder: bytes) -> Iterator[tuple[bytes, bool]]:
        try:
            with os.scandir(_join(self._root, folder)) as entries:
                inside = [entry for entry in entries if entry.name != DOT_GIT]
                found = [(_join(folder, entry.name), entry.is_dir(follow_symlinks=False)) for entry in inside]
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self._changes.blind()
            return
        yield from ((path, is_folder) for path, is_folder in found if not self._skip(path))


class _PortableTree:
    """watchdog's recursive observer. It cannot leave folders out and does not tell what it lost, so nothing is ever complete."""

    rooted = True

    def __init__(self, root: bytes, skip: Skip, changes: _Changes) -> None:
        self._root = root
        self._skip = skip
        self._changes = changes
        self._observer = wd_observers.Observer()
        changes.blind()

    def start(self) -> None:
        self._observer.schedule(_Handler(self._heard), os.fsdecode(self._root), recursive=True)
        self._observer.start()

    def enter(self) -> None:
        """Nothing to do: watchdog walks by itself."""

    def stop(self) -> None:
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join(STOP_S)

    def _heard(self, event: wd_events.FileSystemEvent) -> None:
        if event.event_type in ("opened", "closed_no_write") or (event.is_directory and event.event_type == "modified"):
            return
        for name in (event.src_path, event.dest_path):
            path = self._relative(os.fsencode(name)) if name else b""
            if path and not self._skipped(path):
                self._changes.add(path)

    def _relative(self, path: bytes) -> bytes:
        top = self._root.rstrip(b"/") + b"/"
        return path[len(top) :] if path.startswith(top) else b""

    def _skipped(self, path: bytes) -> bool:
        """True if the path or a folder on the way to it is skipped."""
        names = path.split(b"/")
        return DOT_GIT in names or any(self._skip(b"/".join(names[:end])) for end in range(1, len(names) + 1))


class _Handler(wd_events.FileSystemEventHandler):
    def __init__(self, heard: Callable[[wd_events.FileSystemEvent], None]) -> None:
        self._heard = heard

    def on_any_event(self, event: wd_events.FileSystemEvent) -> None:
        self._heard(event)


def _join(folder: bytes, name: bytes) -> bytes:
    return os.path.join(folder, name) if name else folder


def _mask(*names: str) -> inotify.Mask:
    value = 0
    for name in names:
        value |= getattr(inotify.InotifyConstants, name)
    return inotify.Mask(value)
