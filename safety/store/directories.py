"""Which names appeared or went: a walk over directories that trusts an unchanged directory's time stamps.

A name can only appear in or leave a directory whose mtime or ctime changes, so one lstat a directory (4 ms for 100,000 files in 2,000
directories) stands in for ``ls-files -o`` (60 ms) and also sees what git never lists: empty directories, special files, mount points,
nested ``.git`` folders. Content changes of known files are not looked for here; git's ``diff-files`` finds those. A directory changed
within ``RACY_NS`` before the walk is read again next time, as git does with racy index entries.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from safety.plumbing.renames import put_in_place
from safety.plumbing.repo import Repository, open_repository
from safety.store.files import Tree, is_temporary
from safety.store.snapshot import Snapshot
from safety.types import Unknown

RACY_NS = 2_000_000_000
LONGEST_PLAIN_PATH = 3500
IGNORED_DIRECTORY_FILES = 2000  # an ignored directory with more is a cache or a dependency tree, whatever its name
IGNORED_WATCHED = 200
CACHE_VERSION = 2

IGNORED = Unknown("ignored-directory")

Stamp = tuple[int, int, int, int]


@dataclass(slots=True)
class Seen:
    """A directory as last read: its time stamps and mode, the directories below it, and whether a ``.git`` lies in it."""

    stamp: Stamp
    below: tuple[bytes, ...]
    has_git: bool


@dataclass
class DirectoryCache:
    """What the last walk saw. Losing it costs one full walk.

    ``ignored``: the modification times of ignored directories that are not covered.
    """

    directories: dict[bytes, Seen] = field(default_factory=dict)
    ignored: dict[bytes, int] = field(default_factory=dict)
    uncovered: set[bytes] = field(default_factory=set)
    rules: str = ""

    @classmethod
    def load(cls, path: Path) -> DirectoryCache:
        """The saved cache, or an empty one if there is none that can be read."""
        try:
            raw = json.loads(path.read_bytes())
            if raw["v"] != CACHE_VERSION:
                return cls()
            seen = {
                key.encode("latin-1"): Seen(tuple(stamp), tuple(name.encode("latin-1") for name in below), has_git)
                for key, (stamp, below, has_git) in raw["directories"].items()
            }
            ignored = {key.encode("latin-1"): mtime_ns for key, mtime_ns in raw["ignored"].items()}
            return cls(seen, ignored, {name.encode("latin-1") for name in raw["uncovered"]}, raw["rules"])
        except (OSError, ValueError, KeyError, TypeError, UnicodeError):
            return cls()

    def save(self, path: Path) -> None:
        raw = {
            "v": CACHE_VERSION,
            "rules": self.rules,
            "ignored": {key.decode("latin-1"): mtime_ns for key, mtime_ns in self.ignored.items()},
            "uncovered": [name.decode("latin-1") for name in self.uncovered],
            "directories": {
                key.decode("latin-1"): (seen.stamp, [name.decode("latin-1") for name in seen.below], seen.has_git)
                for key, seen in self.directories.items()
            },
        }
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(raw, separators=(",", ":")), encoding="ascii")
        put_in_place(temporary, path)


@dataclass(frozen=True)
class Member:
    """A directory with a ``.git`` in it. ``repository`` is None when git would not take it for one (a fixture, a broken link).

    ``refused`` is git's own reason for not working there (another owner): its files are covered, its git state is not.
    """

    path: bytes
    repository: Repository | None
    refused: str = ""


@dataclass
class Survey:
    """What a walk found, to be looked at by the capture.

    ``candidates`` may have changed; ``directories`` were read anew (their own state is to be put); ``ignored`` are new names that git
    ignores; ``uncovered`` are new names that are not captured, with the reason; ``stirred`` are ignored directories that are not captured
    and in which a name has come or gone; ``modes`` are known files whose permission bits or link
    count are unusual (only with ``stat_all``): path -> (mode, inode or None).
    """

    candidates: set[bytes] = field(default_factory=set)
    directories: dict[bytes, int] = field(default_factory=dict)
    ignored: set[bytes] = field(default_factory=set)
    uncovered: dict[bytes, Unknown] = field(default_factory=dict)
    stirred: list[bytes] = field(default_factory=list)
    modes: dict[bytes, tuple[int, tuple[int, int] | None]] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    sealed: set[bytes] = field(default_factory=set)
    cache: DirectoryCache = field(default_factory=DirectoryCache)


Judge = Callable[[bytes, Repository | None], Member]
Classify = Callable[[Member | None, list[bytes]], set[bytes]]


@dataclass(frozen=True)
class _Visit:
    path: bytes
    ignored: bool
    member: Member | None


class Walk:
    """One walk over the workspace."""

    def __init__(
        self,
        tree: Tree,
        snapshot: Snapshot,
        old: DirectoryCache,
        classify: Classify,
        skip_names: Callable[[bytes], bool],
        exclude: frozenset[tuple[int, int]],
        now_ns: int,
        *,
        judge: Judge,
        stat_all: bool = False,
        reclassify: bool = False,
        known: Mapping[bytes, Mapping[bytes, str]] | None = None,
    ) -> None:
        self.judge, self.known = judge, known
        self.tree, self.snapshot, self.old = tree, snapshot, old
        self.classify, self.skip_names, self.exclude = classify, skip_names, exclude
        self.trust_before_ns = now_ns - RACY_NS
        self.stat_all, self.reclassify = stat_all, reclassify
        self.found = Survey()
        self._device = -1
        self._unread: set[bytes] = set()  # ignored directories that the snapshot knows of

    def run(self) -> Survey:
        level = [_Visit(b"", False, None)]
        while level:
            below: list[_Visit] = []
            fresh: dict[bytes, tuple[Member | None, list[tuple[bytes, str]]]] = {}
            for visit in level:
                self._visit(visit, below, fresh)
            for member, names in fresh.values():
                below.extend(self._sort_out(member, names))
            level = below
        self._forget_uncovered()
        self._look_at_ignored()
        return self.found

    def _look_at_ignored(self) -> None:
        """One lstat for each ignored directory that is not captured; what lies deeper in it is not looked at.

        Not for ``__pycache__``, of which there is one a package and nobody asks, and for the first few only: it is to cost nothing.
        """
        uncovered = {path for path, state in self.found.uncovered.items() if state == IGNORED}
        paths = {*self.old.ignored, *uncovered, *self._unread} - self.found.cache.directories.keys()
        watched = sorted(path for path in paths if not path.endswith(b"__pycache__"))
        for path in watched[:IGNORED_WATCHED]:
            info = self._lstat(path)
            if info is None or not stat.S_ISDIR(info.st_mode):
                continue
            self.found.cache.ignored[path] = info.st_mtime_ns
            if self.old.ignored.get(path, info.st_mtime_ns) != info.st_mtime_ns and path not in uncovered:
                self.found.stirred.append(path)

    def _forget_uncovered(self) -> None:
        """A directory that is not captured is not walked again while its parent stays as it is."""
        for path in self.found.uncovered:
            parent, _, name = path.rpartition(b"/")
            seen = self.found.cache.directories.get(parent)
            if seen is not None:
                seen.below = tuple(other for other in seen.below if other != name)

    def _visit(
        self, visit: _Visit, below: list[_Visit], fresh: dict[bytes, tuple[Member | None, list[tuple[bytes, str]]]]
    ) -> None:
        try:
            info = self._lstat(visit.path)
        except OSError:
            self.found.uncovered[visit.path] = Unknown("unreadable")
            return
        if info is None or not stat.S_ISDIR(info.st_mode):
            self.found.candidates.add(visit.path)
            return
        if not visit.path:
            self._device = info.st_dev
        elif info.st_dev != self._device:
            self.found.uncovered[visit.path] = Unknown("mount-point")
            return
        if (info.st_dev, info.st_ino) in self.exclude:
            self.found.uncovered[visit.path] = Unknown("state-folder")
            return
        stamp: Stamp = (info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_mode)
        seen = self.old.directories.get(visit.path)
        if seen is not None and seen.stamp == stamp and not self.reclassify and not self.stat_all:
            self._keep(visit, seen, below)
        else:
            self._read(visit, stamp, below, fresh)

    def _keep(self, visit: _Visit, seen: Seen, below: list[_Visit]) -> None:
        self.found.cache.directories[visit.path] = seen
        member = self._member(visit) if seen.has_git else visit.member
        prefix = visit.path + b"/" if visit.path else b""
        below.extend(_Visit(prefix + name, False, member) for name in seen.below)

    def _member(self, visit: _Visit) -> Member | None:
        root = self.tree.root + b"/" + visit.path if visit.path else self.tree.root
        member = self.judge(visit.path, open_repository(root))
        self.found.members.append(member)
        return member if member.repository is not None else visit.member

    def _read(
        self, visit: _Visit, stamp: Stamp, below: list[_Visit], fresh: dict[bytes, tuple[Member | None, list[tuple[bytes, str]]]]
    ) -> None:
        prefix = visit.path + b"/" if visit.path else b""
        try:
            kinds = self._list(visit.path, prefix)
        except OSError:
            seen = self.old.directories.get(visit.path)
            if seen is not None and (seen.stamp[0], seen.stamp[2]) == (stamp[0], stamp[2]):
                self._seal(visit, stamp, seen)
                return
            self.found.uncovered[visit.path] = Unknown("unreadable")
            return
        has_git = kinds.pop(b".git", None) is not None
        member, ignored = visit.member, visit.ignored
        if has_git:
            member = self._member(visit)
            if member is not visit.member:
                ignored = False  # a repository judges its own files
        self.found.directories[visit.path] = stat.S_IMODE(stamp[3])
        known = self.known.get(visit.path, {}) if self.known is not None else self.snapshot.children(visit.path)
        descend = []
        new: list[tuple[bytes, str]] = []
        for name, kind in kinds.items():
            before = known.get(name)
            if before == kind:
                if kind == "dir":
                    descend.append(name)
            elif before == "unknown" and not self.reclassify:
                self.found.candidates.add(prefix + name)
                if kind == "dir" and self.snapshot.state(prefix + name) == IGNORED:
                    self._unread.add(prefix + name)
            else:
                new.append((prefix + name, kind))
                if kind == "dir":
                    descend.append(name)
        self.found.candidates.update(prefix + name for name in known if name not in kinds and name != b".git")
        new_directories = {path for path, kind in new if kind == "dir"}
        below.extend(_Visit(prefix + name, False, member) for name in descend if prefix + name not in new_directories)
        if ignored:
            below.extend(self._take_ignored(member, new))
        elif new:
            fresh.setdefault(member.path if member else b"", (member, []))[1].extend(new)
        trusted = max(stamp[0], stamp[1]) < self.trust_before_ns
        entry = Seen(stamp if trusted else (0, 0, 0, 0), tuple(descend), has_git)
        self.found.cache.directories[visit.path] = entry

    def _seal(self, visit: _Visit, stamp: Stamp, seen: Seen) -> None:
        """A directory whose permissions were taken away holds what it held: nothing came or went since it was read."""
        self.found.sealed.add(visit.path)
        self.found.directories[visit.path] = stat.S_IMODE(stamp[3])
        below = [visit.path]
        while below:
            path = below.pop()
            known = self.old.directories.get(path)
            if known is not None:
                self.found.cache.directories[path] = known
                below.extend((path + b"/" if path else b"") + name for name in known.below)
        self.found.cache.directories[visit.path] = Seen((stamp[0], 0, stamp[2], 0), seen.below, seen.has_git)

    def _list(self, path: bytes, prefix: bytes) -> dict[bytes, str]:
        """Names in a directory and their kinds: file, link, dir or other."""
        kinds: dict[bytes, str] = {}
        place: bytes | int = self.tree.root + b"/" + path if path else self.tree.root
        if len(place) > LONGEST_PLAIN_PATH:  # type: ignore[arg-type]
            place = self.tree.directory(path)
        with os.scandir(place) as entries:
            for entry in entries:
                name = entry.name if type(entry.name) is bytes else os.fsencode(entry.name)
                if entry.is_file(follow_symlinks=False):
                    kinds[name] = "file"
                    if self.stat_all:
                        self._note_mode(prefix + name, entry.stat(follow_symlinks=False))
                elif entry.is_symlink():
                    kinds[name] = "link"
                elif entry.is_dir(follow_symlinks=False):
                    kinds[name] = "dir"
                else:
                    kinds[name] = "other"
        for name in [name for name in kinds if is_temporary(name)]:
            del kinds[name]  # left by an undo that was interrupted; its recovery removes it
        return kinds

    def _note_mode(self, path: bytes, info: os.stat_result) -> None:
        mode = info.st_mode & 0o7777
        if info.st_nlink > 1 or (mode != 0o644 and mode != 0o755):
            self.found.modes[path] = (mode, (info.st_dev, info.st_ino) if info.st_nlink > 1 else None)

    def _lstat(self, path: bytes) -> os.stat_result | None:
        place = self.tree.root + b"/" + path if path else self.tree.root
        if len(place) > LONGEST_PLAIN_PATH:
            return self.tree.lstat(path)
        try:
            return os.lstat(place)
        except OSError as fault:
            if fault.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise

    def _sort_out(self, member: Member | None, names: list[tuple[bytes, str]]) -> Iterable[_Visit]:
        """Splits new names into captured, ignored and not covered; what has to be walked further is returned."""
        asked = [path + b"/" if kind == "dir" else path for path, kind in names if kind != "other"]
        ignored = {path.rstrip(b"/") for path in self.classify(member, asked)} if asked else set()
        plain = [(path, kind) for path, kind in names if path not in ignored]
        self.found.candidates.update(path for path, kind in plain if kind != "dir")
        for path, kind in plain:
            if kind == "dir":
                yield _Visit(path, False, member)
        yield from self._take_ignored(member, [(path, kind) for path, kind in names if path in ignored])

    def _take_ignored(self, member: Member | None, names: list[tuple[bytes, str]]) -> Iterable[_Visit]:
        for path, kind in names:
            if kind != "dir":
                self.found.ignored.add(path)
                self.found.candidates.add(path)
            elif self.skip_names(path) or self._is_large(path):
                self.found.uncovered[path] = IGNORED
            else:
                self.found.ignored.add(path)
                yield _Visit(path, True, member)

    def _is_large(self, path: bytes) -> bool:
        count = 0
        pending = [path]
        while pending:
            place = pending.pop()
            try:
                with os.scandir(self.tree.directory(place)) as entries:
                    for entry in entries:
                        count += 1
                        if count > IGNORED_DIRECTORY_FILES:
                            return True
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(place + b"/" + os.fsencode(entry.name))
            except OSError:
                continue
        return False
