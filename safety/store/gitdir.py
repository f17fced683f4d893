"""The git directory's own small files, captured as files: HEAD, refs, logs, config, hooks, in-progress state.

Objects and indexes are not copied here (see ``anchors`` and ``capture``), nor are locks and sockets. What has the stamp it had at the
last capture is not read again; below ``refs/`` an unchanged directory is not even listed, because git changes a ref by a rename.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from safety.plumbing.odb import ObjectStore, SourceObjects
from safety.plumbing.reading import read_regular
from safety.plumbing.refs import commit_on_disk, object_ids
from safety.plumbing.renames import put_in_place
from safety.store.directories import RACY_NS, Member
from safety.store.files import TEMPORARY_PREFIX
from safety.store.members import MemberPlace, absolute_path, captured_path, is_repository, is_ruin
from safety.store.snapshot import Editor, Snapshot
from safety.store.trees import parse_tree
from safety.types import ABSENT, NotCovered, ObjectId, PathState, Present, Unknown

CACHE_VERSION = 2
LARGEST_FILE = 32 << 20
LARGEST_FOREIGN_INDEX = 8 << 20

FileStamp = list[int]


@dataclass
class GitFileCache:
    """Stamps of the files and directories read at the last capture, by captured path.

    ``trees`` says of which snapshot: what is not in the cache was not there, so one that a kill left behind must not be believed.
    """

    trees: str = ""
    files: dict[str, FileStamp] = field(default_factory=dict)
    directories: dict[str, tuple[FileStamp, list[str], list[str]]] = field(default_factory=dict)
    indexes: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, trees: str) -> GitFileCache:
        """The cache that was saved with the snapshot of these ``trees`` (see `git_trees`), else an empty one."""
        try:
            raw = json.loads(path.read_bytes())
            if raw["v"] != CACHE_VERSION or raw["trees"] != trees:
                return cls()
            directories = {key: (value[0], value[1], value[2]) for key, value in raw["directories"].items()}
            return cls(trees, dict(raw["files"]), directories, dict(raw["indexes"]))
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return cls()

    def save(self, path: Path) -> None:
        raw = {
            "v": CACHE_VERSION,
            "trees": self.trees,
            "files": self.files,
            "directories": self.directories,
            "indexes": self.indexes,
        }
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(raw, separators=(",", ":")), encoding="ascii")
        put_in_place(temporary, path)


def git_trees(odb: ObjectStore, tree: ObjectId | None) -> str:
    """What names the git state of a snapshot: equal where that is equal."""
    items = parse_tree(odb.tree(tree)) if tree is not None else []
    return "".join(oid.hex() for _, name, oid in items if name in (b"git", b"index"))


@dataclass
class GitCapture:
    """What a capture of one git directory came to: object ids (hex) its changed files name, and what was left out."""

    ids: set[bytes] = field(default_factory=set)
    changed: bool = False
    not_covered: list[NotCovered] = field(default_factory=list)


def git_directories(root: bytes, member: Member) -> list[bytes]:
    """The captured paths of a member's git directories: the common one, and its own where that lies elsewhere."""
    if member.repository is None:
        return [captured_path(root, root + b"/" + member.path + b"/.git" if member.path else root + b"/.git")]
    common, own = member.repository.common_dir, member.repository.git_dir
    places = [common] if own == common or own.startswith(common + b"/") else [common, own]
    return [captured_path(root, place) for place in places]


class GitDirectories:
    """Captures git directories into an editor, with one cache."""

    def __init__(self, root: bytes, snapshot: Snapshot, editor: Editor, old: GitFileCache, now_ns: int) -> None:
        self.root, self.snapshot, self.editor, self.old = root, snapshot, editor, old
        self.trust_before_ns = now_ns - RACY_NS
        self.new = GitFileCache(indexes=dict(old.indexes))
        self.result = GitCapture()
        self._marked: set[bytes] = set()
        self._lost: dict[str, bool] = {}
        self._is_ruin = False

    def capture(self, member: Member) -> None:
        self._pointer(member)
        if member.repository is None:
            # a fixture is kept file by file; what was a repository before and lost a part is still captured as one
            place = git_directories(self.root, member)[0]
            known = MemberPlace(member.path, place, place)
            was_repository = is_repository(self.snapshot, known) or is_ruin(self.snapshot, known)
            self._is_ruin = was_repository
            self._directory(place, place, keep_all=not was_repository, own=place if was_repository else None)
            self._is_ruin = False
            return
        own = captured_path(self.root, member.repository.git_dir)
        for place in git_directories(self.root, member):
            self._directory(place, place, keep_all=False, own=own)

    def capture_place(self, place: MemberPlace) -> None:
        """Captures the git directories of a member whose work tree is gone."""
        for path in (place.common, *(() if place.own.startswith(place.common) else (place.own,))):
            self._directory(path, path, keep_all=False, own=place.own)

    def _pointer(self, member: Member) -> None:
        """The `.git` file of a linked work tree or submodule, or a `.git` that is a symbolic link."""
        path = (member.path + b"/" if member.path else b"") + b".git"
        place = absolute_path(self.root, path)
        try:
            info = os.lstat(place)
        except OSError:
            return
        if stat.S_ISLNK(info.st_mode):
            self._link(path, place)
        elif stat.S_ISREG(info.st_mode):
            self._file(path, place, info, ids=False)

    def _directory(self, top: bytes, path: bytes, *, keep_all: bool, own: bytes | None) -> None:
        place = absolute_path(self.root, path)
        try:
            info = os.lstat(place)
        except OSError:
            return
        if not stat.S_ISDIR(info.st_mode) or path.decode("latin-1") in self.new.directories:
            return
        key = path.decode("latin-1")
        stamp: FileStamp = [info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_mode]
        relative = path[len(top) + 1 :]
        cached = self.old.directories.get(key)
        unchanged = cached is not None and cached[0] == stamp
        if unchanged and cached is not None and relative.split(b"/")[0] == b"refs" and not keep_all:
            self.new.directories[key] = cached
            for name in cached[1]:
                self.new.files[key + "/" + name] = self.old.files[key + "/" + name]
            for name in cached[2]:
                self._directory(top, path + b"/" + name.encode("latin-1"), keep_all=keep_all, own=own)
            return
        self._read(top, path, place, stamp, unchanged, keep_all=keep_all, own=own)

    def _read(
        self, top: bytes, path: bytes, place: bytes, stamp: FileStamp, unchanged: bool, *, keep_all: bool, own: bytes | None
    ) -> None:
        key = path.decode("latin-1")
        files: list[str] = []
        below: list[str] = []
        trusted = max(stamp[0], stamp[1]) < self.trust_before_ns
        try:
            with os.scandir(place) as entries:
                found = sorted((entry.name, entry) for entry in entries)
        except OSError:
            self.result.not_covered.append(NotCovered(path, "unreadable"))
            return
        names = {name for name, _ in found}
        self.new.directories[key] = (stamp if trusted else [0, 0, 0, 0], files, below)
        is_git_directory = path == top or (b"HEAD" in names and (b"objects" in names or b"commondir" in names))
        for name, entry in found:
            child = path + b"/" + name
            if entry.is_dir(follow_symlinks=False):
                if not keep_all and self._is_left_out(path, name, is_git_directory, own):
                    continue
                below.append(name.decode("latin-1"))
                self._directory(top, child, keep_all=keep_all, own=own)
                continue
            if not keep_all and _is_passing(name):
                continue
            if entry.is_symlink():
                if is_git_directory and not keep_all and name == b"objects" and entry.is_dir():
                    continue  # marked as the folder it leads to
                files.append(name.decode("latin-1"))
                self._link(child, entry.path)
                continue
            info = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(info.st_mode):
                files.append(name.decode("latin-1"))
                self.new.files[child.decode("latin-1")] = [0, 0, 0, 0, 0]
                self._mark(child, Unknown("special-file"))
                continue
            is_foreign = path != own and b"/worktrees/" in child and info.st_size <= LARGEST_FOREIGN_INDEX
            if not keep_all and is_git_directory and name == b"index" and not is_foreign and not self._is_ruin:
                continue  # this work tree's index is captured entry by entry, as long as git would read it
            files.append(name.decode("latin-1"))
            self._file(child, entry.path, info, ids=not keep_all and _names_objects(child[len(top) + 1 :]))
        if is_git_directory and not keep_all and b"commondir" not in names:
            self._mark_objects(path, place, b"objects" in names)
        if not unchanged:
            self.editor.put(path, Present("dir", stat.S_IMODE(stamp[3]), b""), "git")

    def _mark_objects(self, path: bytes, place: bytes, there: bool) -> None:
        """Objects are not copied as files; that they are there, and HEAD's among them, is what tells a repository from a ruin."""
        if there and not os.path.isdir(place + b"/objects"):
            return  # captured as what stands there in its place
        state: PathState = Present("dir", 0o755, b"") if there else ABSENT
        if there:
            head = commit_on_disk(place, place)
            if head is not None and not SourceObjects(place + b"/objects").exists(bytes.fromhex(head.decode())):
                state = Unknown("objects-missing")
        self._mark(path + b"/objects", state)

    def _mark(self, path: bytes, state: PathState) -> None:
        """Puts what is known of a path without reading it."""
        self._marked.add(path)
        if self.snapshot.state(path) != state:
            self.editor.put(path, state, "git")

    def _is_left_out(self, path: bytes, name: bytes, is_git_directory: bool, own: bytes | None) -> bool:
        if is_git_directory and name in (b"objects", b"fsmonitor--daemon"):
            return True
        if is_git_directory and name == b"lfs":
            self._mark(path + b"/lfs", Unknown("lfs-objects"))
            return True
        # a linked work tree's capture leaves the other work trees' own state to them
        return (
            name != (own or b"").rpartition(b"/")[2]
            and path.endswith(b"/worktrees")
            and bool(own)
            and own != path.rpartition(b"/")[0]
        )

    def _link(self, path: bytes, place: bytes) -> None:
        try:
            target = os.readlink(place)
        except OSError:
            return
        self.new.files[path.decode("latin-1")] = [0, 0, 0, 0, 0]
        self.editor.put(path, Present("link", 0o777, self.editor.odb.write("blob", target)), "git")

    def _file(self, path: bytes, place: bytes, info: os.stat_result, *, ids: bool) -> None:
        key = path.decode("latin-1")
        stamp = [info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino, info.st_mode]
        old = self.old.files.get(key)
        if old == stamp:
            self.new.files[key] = stamp
            return
        trusted = max(info.st_mtime_ns, info.st_ctime_ns) < self.trust_before_ns
        self.new.files[key] = stamp if trusted else [0, 0, 0, 0, 0]
        if info.st_size > LARGEST_FILE:
            self.editor.put(path, Unknown("too-large", info.st_size, info.st_mtime_ns), "git")
            return
        try:
            data = read_regular(place)
        except FileNotFoundError:
            data = None
        except OSError:
            self.result.not_covered.append(NotCovered(path, "unreadable"))
            return
        if data is None:  # gone, or replaced, since it was seen
            del self.new.files[key]
            return
        self.editor.put_git(path, data, stat.S_IMODE(info.st_mode))
        if ids:
            appended = old is not None and old[3] == info.st_ino and b"/logs/" in b"/" + path and 0 < old[2] <= len(data)
            self.result.ids |= object_ids(data[old[2] :] if appended and old else data)

    def finish(self, places: list[bytes]) -> GitCapture:
        """Puts what is gone as absent. ``places`` are all git directories the snapshot before this one may hold."""
        for key in (*self._known(places), *self.old.directories):
            path = key.encode("latin-1")
            if key in self.new.files or key in self.new.directories or path in self._marked:
                continue
            if not self._is_out_of_reach(key):
                self.editor.put(path, ABSENT, "git")
            elif key in self.old.directories:
                self.new.directories[key] = self.old.directories[key]
            else:
                self.new.files[key] = self.old.files[key]
        return self.result

    def _is_out_of_reach(self, key: str) -> bool:
        """Whether a path is in a git directory elsewhere that is still there, but to which no `.git` leads now: it stays as seen."""
        if ".git" in key.split("/") and not key.startswith("/"):
            return False
        while key and key not in self._lost:
            if key in self.old.directories and "HEAD" in self.old.directories[key][1]:
                self._lost[key] = key not in self.new.directories and os.path.isdir(absolute_path(self.root, key.encode("latin-1")))
                break
            key = key.rpartition("/")[0]
        return self._lost.get(key, False)

    def _known(self, places: list[bytes]) -> Iterator[str]:
        if self.old.files:
            yield from list(self.old.files)
            return
        for place in places:
            for name in self.snapshot.git_files(place):
                yield (place + b"/" + name).decode("latin-1")


def _is_passing(name: bytes) -> bool:
    """Locks, temporary files and sockets: never part of a state."""
    return (
        name.endswith(b".lock")
        or name == b"gc.pid"
        or name.startswith((TEMPORARY_PREFIX, b"safety-gate.", b"git-safety-", b"sharedindex.", b"fsmonitor--daemon", b"tmp_"))
    )


def _names_objects(relative: bytes) -> bool:
    """Whether a git directory's file names objects that have to be kept: refs, logs, HEADs, in-progress state."""
    parts = relative.split(b"/")
    while len(parts) > 2 and parts[0] in (b"worktrees", b"modules"):
        parts = parts[2:]
    head = parts[0]
    return (
        head in (b"refs", b"logs", b"packed-refs", b"rebase-merge", b"rebase-apply", b"sequencer", b"AUTO_MERGE")
        or head.endswith(b"HEAD")
        or head.startswith(b"BISECT")
        or b"refs" in parts
        or b"logs" in parts
    )
