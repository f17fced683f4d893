"""The object database and the refs of a repository of ours, without starting git; and the user's objects, read only.

Loose objects are read and written here: a write hashes first and touches nothing when the object exists, because git's and
libgit2's writers freshen the mtime of the file an existing object lives in, and in a hard-linked seed that file is the user's
pack. Packs are read by libgit2. No ``pygit2.Repository`` is ever made: it parses the user's global configuration and fails when
that is broken. So refs are moved here too, under git's own lock.

Nothing that comes back is unverified: content is hashed again on its way out, so a damaged object never becomes a user's file.
Nothing is flushed to the disk either, until ``sync``.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import itertools
import os
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from safety.faults import SafetyError
from safety.plumbing.renames import put_in_place
from safety.types import ObjectId

if TYPE_CHECKING:
    import pygit2

KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
IDENTITY = b"git-safety <git-safety@localhost>"

# Above this a blob is read and written in pieces. Pieces are of CHUNK bytes.
STREAM_ABOVE = 8 << 20
CHUNK = 1 << 20

# Trees and commits up to this size, and so many of them, are kept in memory: each capture starts from what the last one wrote.
_RECENT_SIZE = 32 << 10
_RECENT_COUNT = 256

_LOCK_WAIT_S = 5.0
_SYNC_THREADS = 8
_numbers = itertools.count()


class ObjectMissing(SafetyError):
    """An object is neither loose nor in a pack."""

    code = "object-missing"


class ObjectCorrupt(SafetyError):
    """An object's bytes cannot be read, are not what its id says, or are not of the kind asked for."""

    code = "object-corrupt"


class RefMoved(SafetyError):
    """A ref did not have the value the caller expected; nothing was changed. ``found`` is the value it has."""

    code = "ref-moved"

    def __init__(self, name: str, expected: ObjectId | None, found: ObjectId | None) -> None:
        super().__init__(f"{name} is at {_shown(found)}, expected {_shown(expected)}")
        self.name, self.expected, self.found = name, expected, found


class RefLocked(SafetyError):
    """Another program holds a ref's lock file and did not release it within the bound."""

    code = "ref-locked"


class ChangedWhileReading(SafetyError):
    """A file became shorter, or its bytes differed between two readings."""

    code = "changed-while-reading"


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit object says; ids are raw, the message is as stored."""

    tree: ObjectId
    parents: tuple[ObjectId, ...]
    message: bytes


def hash_object(kind: str, data: bytes) -> ObjectId:
    """The id git gives to ``data`` as an object of ``kind``."""
    digest = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.digest()


class ObjectStore:
    """The bare sha1 repository at ``git_dir``, which is ours. Safe in threads and beside other processes.

    Errors of the file system (disk full, no permission) come through as OSError; a write that raises leaves nothing behind.
    """

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = Path(os.path.abspath(git_dir))
        self._root = os.fsencode(self.git_dir)
        self._objects = self._root + b"/objects"
        self._packs: pygit2.Odb | None = None
        self._recent: dict[tuple[str, ObjectId], bytes] = {}

    # -- reading

    def exists(self, oid: ObjectId) -> bool:
        """Whether an object is there, as far as a look at names tells. Sees what other processes wrote, packs included."""
        try:
            # A power cut can leave an empty file under a right name; it must not keep the object from being written again.
            if os.stat(self._loose(oid)).st_size > 0:
                return True
        except FileNotFoundError:
            pass
        return self._pack_reader().exists(_pygit2().Oid(raw=oid))

    def read(self, oid: ObjectId) -> tuple[str, bytes]:
        """An object's kind (``blob``, ``tree``, ``commit``, ``tag``) and content, verified.

        Raises ObjectMissing, ObjectCorrupt.
        """
        try:
            with open(self._loose(oid), "rb", 0) as file:
                packed = file.read()
        except FileNotFoundError:
            return self._read_packed(oid)
        try:
            raw = zlib.decompress(packed)
            kind, size, start = _parse_header(raw)
        except (zlib.error, ValueError) as error:
            return self._other_copy(oid, str(error))
        data = raw[start:]
        if size != len(data) or hashlib.sha1(raw, usedforsecurity=False).digest() != oid:
            return self._other_copy(oid, "its content has another hash")
        return kind, data

    def blob(self, oid: ObjectId) -> bytes:
        """A blob's content. Raises ObjectMissing, ObjectCorrupt (also when it is no blob)."""
        return self._read_kind(oid, "blob")

    def tree(self, oid: ObjectId) -> bytes:
        """A tree's raw bytes, perhaps as seen before. Raises ObjectMissing, ObjectCorrupt (also when it is no tree)."""
        return self._read_recent(oid, "tree")

    def header(self, oid: ObjectId) -> tuple[str, int]:
        """An object's kind and size, without its content and unverified. Raises ObjectMissing, ObjectCorrupt."""
        try:
            with open(self._loose(oid), "rb", 0) as file:
                packed = file.read(512)
        except FileNotFoundError:
            return _header_by_libgit2(self._pack_reader(), oid)
        try:
            return _parse_header(zlib.decompressobj().decompress(packed, 64))[:2]
        except (zlib.error, ValueError) as error:
            kind, data = self._other_copy(oid, str(error))
            return kind, len(data)

    def size(self, oid: ObjectId) -> int:
        """An object's size in bytes, as ``header`` has it. Raises ObjectMissing, ObjectCorrupt."""
        return self.header(oid)[1]

    def read_commit(self, oid: ObjectId) -> Commit:
        """A commit's tree, parents and message, perhaps as seen before. Raises ObjectMissing, ObjectCorrupt."""
        head, _, message = self._read_recent(oid, "commit").partition(b"\n\n")
        lines = [line.split(b" ", 1) for line in head.split(b"\n")]
        trees = [bytes.fromhex(rest[0].decode()) for word, *rest in lines if word == b"tree"]
        if len(trees) != 1:
            raise _corrupt(oid, "it names no tree")
        return Commit(trees[0], tuple(bytes.fromhex(rest[0].decode()) for word, *rest in lines if word == b"parent"), message)

    def copy_to_fd(self, oid: ObjectId, fd: int) -> None:
        """Writes a blob's content to an open file at its position; a big loose one in pieces.

        Raises ObjectMissing and ObjectCorrupt. A big damaged blob is noticed only at its end: publish the file afterwards.
        """
        if self.size(oid) <= STREAM_ABOVE or not os.path.exists(self._loose(oid)):
            _write_all(fd, self.blob(oid))
            return
        digest = hashlib.sha1(usedforsecurity=False)
        header = b""
        with open(self._loose(oid), "rb", 0) as file:
            for piece in _inflated(file.fileno(), oid):
                digest.update(piece)
                if not header:
                    header = piece[: piece.index(b"\0") + 1]
                    piece = piece[len(header) :]
                _write_all(fd, piece)
        if digest.digest() != oid or not header.startswith(b"blob "):
            raise _corrupt(oid, "its content has another hash")

    # -- writing

    def write(self, kind: str, data: bytes) -> ObjectId:
        """The id of ``data``, stored as an object of ``kind``. An object that exists is left untouched, its file's mtime too."""
        header = b"%s %d\0" % (kind.encode(), len(data))
        digest = hashlib.sha1(header, usedforsecurity=False)
        digest.update(data)
        oid = digest.digest()
        if not self.exists(oid):
            packer = zlib.compressobj(_level(data))
            with self._new_file(self._loose(oid), 0o444) as fd:
                _write_all(fd, packer.compress(header) + packer.compress(data) + packer.flush())
        if kind != "blob":
            self._remember(oid, kind, data)
        return oid

    def write_fd(self, fd: int, size: int) -> ObjectId:
        """The id of the first ``size`` bytes of an open regular file, stored as a blob. The file's position is not used or moved.

        ``size`` is what ``fstat`` said: a file that has grown since (a log) gives the part it had then. Above 8 MiB the file is
        read twice, and memory stays bounded. Raises ChangedWhileReading when it has become shorter or the readings differ.
        """
        if size <= STREAM_ABOVE:
            return self.write("blob", b"".join(_pieces(fd, size)))
        header = b"blob %d\0" % size
        digest = hashlib.sha1(header, usedforsecurity=False)
        for piece in _pieces(fd, size):
            digest.update(piece)
        oid = digest.digest()
        if self.exists(oid):
            return oid
        again = hashlib.sha1(header, usedforsecurity=False)
        with self._new_file(self._loose(oid), 0o444) as out:
            packer = zlib.compressobj(_level(os.pread(fd, CHUNK, 0)))
            _write_all(out, packer.compress(header))
            for piece in _pieces(fd, size):
                again.update(piece)
                _write_all(out, packer.compress(piece))
            _write_all(out, packer.flush())
            if again.digest() != oid:
                raise ChangedWhileReading("the file changed while it was being read")
        return oid

    def commit(self, tree: ObjectId, parents: Sequence[ObjectId], message: bytes, time_ms: int) -> ObjectId:
        """The id of a new commit under our fixed identity, at ``time_ms`` (kept to the second), in UTC."""
        who = b"%s %d +0000" % (IDENTITY, time_ms // 1000)
        lines = [b"tree " + tree.hex().encode(), *(b"parent " + parent.hex().encode() for parent in parents)]
        lines += [b"author " + who, b"committer " + who, b"", message]
        return self.write("commit", b"\n".join(lines))

    # -- refs

    def ref(self, name: str) -> ObjectId | None:
        """What a ref points at, or None when there is no such ref. Raises ObjectCorrupt when its file holds no id."""
        path = self._ref_path(name)
        try:
            text = _read_file(path).strip()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return self._packed_ref(name)
        return _parse_id(text, name)

    def move_ref(self, name: str, old: ObjectId | None, new: ObjectId, *, durable: bool = False) -> None:
        """Sets a ref to ``new`` if it is at ``old`` (None: if it does not exist), atomically, also beside git itself.

        With ``durable`` the new value is on the disk when this returns; call ``sync`` before. A process killed in here never
        blocks the next one. Raises RefMoved, RefLocked.
        """
        path = self._ref_path(name)
        with self._ref_lock(path) as fd:
            found = self.ref(name)
            if found != old:
                raise RefMoved(name, old, found)
            _write_all(fd, new.hex().encode() + b"\n")
            if durable:
                os.fsync(fd)
        if durable:
            _fsync_path(os.path.dirname(path))

    # -- upkeep

    def refresh(self) -> None:
        """Lets go of all packs and looks afresh: for after a repack, so that removed packs are unmapped."""
        self._packs = None
        self._recent = {}

    def loose_count(self) -> int:
        """About how many loose objects there are, estimated from 16 of the 256 folders."""
        seen = 0
        for folder in range(8, 256, 16):
            try:
                seen += len(os.listdir(b"%s/%02x" % (self._objects, folder)))
            except FileNotFoundError:
                pass
        return seen * 16

    def sync(self) -> int:
        """Flushes to the disk every loose object written since the last ``sync`` by any process; gives how many files that were.

        Packs are not looked at: git flushes those it writes itself.
        """
        marker = self._root + b"/safety-synced"
        try:
            since_ns = os.stat(marker).st_mtime_ns - 2_000_000_000  # file systems keep times as coarse as two seconds
        except FileNotFoundError:
            since_ns = 0
        with self._new_file(marker, 0o644):  # made first: what is written from here on is the next one's
            fresh, folders = self._fresh_objects(since_ns)
            _fsync_all(fresh)
            _fsync_all(folders)
        return len(fresh)

    # -- inside

    def _loose(self, oid: ObjectId) -> bytes:
        name = oid.hex().encode()
        return b"%s/%s/%s" % (self._objects, name[:2], name[2:])

    def _pack_reader(self) -> pygit2.Odb:
        if self._packs is None:
            self._packs = _pygit2().Odb()
            self._packs.add_backend(_pygit2().OdbBackendPack(os.fsdecode(self._objects)), 1)
        return self._packs

    def _read_packed(self, oid: ObjectId) -> tuple[str, bytes]:
        return _read_by_libgit2(self._pack_reader(), oid)

    def _other_copy(self, oid: ObjectId, why: str) -> tuple[str, bytes]:
        # A damaged loose object may have a sound twin in a pack.
        try:
            return self._read_packed(oid)
        except ObjectMissing:
            raise _corrupt(oid, why) from None

    def _read_kind(self, oid: ObjectId, wanted: str) -> bytes:
        kind, data = self.read(oid)
        if kind != wanted:
            raise _corrupt(oid, f"it is a {kind}, not a {wanted}")
        return data

    def _read_recent(self, oid: ObjectId, wanted: str) -> bytes:
        data = self._recent.get((wanted, oid))
        if data is None:
            data = self._read_kind(oid, wanted)
            self._remember(oid, wanted, data)
        return data

    def _remember(self, oid: ObjectId, kind: str, data: bytes) -> None:
        if len(data) <= _RECENT_SIZE:
            if len(self._recent) >= _RECENT_COUNT:
                self._recent = {}
            self._recent[kind, oid] = data

    @contextmanager
    def _new_file(self, path: bytes, mode: int) -> Iterator[int]:
        """An open temporary file that is renamed to ``path`` when the block ends well and vanishes otherwise."""
        # `git prune` sweeps what is named tmp_obj_* here. The time makes the name new even where a process id comes again.
        temp = b"%s/tmp_obj_%d_%d_%d" % (self._objects, os.getpid(), time.time_ns(), next(_numbers))
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        kept = False
        try:
            try:
                yield fd
            finally:
                os.close(fd)
            try:
                os.rename(temp, path)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.rename(temp, path)
            kept = True
        finally:
            if not kept:
                _remove(temp)

    def _ref_path(self, name: str) -> bytes:
        return self._root + b"/" + os.fsencode(name)

    def _packed_ref(self, name: str) -> ObjectId | None:
        try:
            text = _read_file(self._root + b"/packed-refs")
        except FileNotFoundError:
            return None
        wanted = b" " + os.fsencode(name)
        for line in text.split(b"\n"):
            if line.endswith(wanted) and line[40:] == wanted:
                return _parse_id(line[:40], name)
        return None

    @contextmanager
    def _ref_lock(self, path: bytes) -> Iterator[int]:
        """The open, empty ``<ref>.lock`` of git's own protocol. It becomes the ref if the block ends well, else it vanishes.

        Ours is executable, which git's never is, and an flock that dies with its process is held around it: an executable lock
        that is found under the flock was left by a killed one of us.
        """
        lock = path + b".lock"
        ends_at = time.monotonic() + _LOCK_WAIT_S
        guard = os.open(self._root + b"/safety-refs.flock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _try_flock(guard):
                _pause(ends_at, lock)
            while (fd := _try_create(lock, 0o700)) is None:
                if _executable(lock):
                    _remove(lock)
                else:
                    _pause(ends_at, lock)
            kept = False
            try:
                try:
                    yield fd
                finally:
                    os.close(fd)
                # What an exchange leaves for a moment at the lock's name must be known for ours if we are killed in between.
                (put_in_place if _executable(path) else os.rename)(lock, path)
                kept = True
            finally:
                if not kept:
                    _remove(lock)
        finally:
            os.close(guard)

    def _fresh_objects(self, since_ns: int) -> tuple[list[bytes], list[bytes]]:
        """The loose objects, and the folders that hold them, that changed since a file system time."""
        fresh: list[bytes] = []
        folders: list[bytes] = []
        for number in range(256):
            folder = b"%s/%02x" % (self._objects, number)
            try:
                if os.stat(folder).st_mtime_ns < since_ns:
                    continue
                with os.scandir(folder) as entries:
                    found = [entry.path for entry in entries if entry.stat().st_mtime_ns >= since_ns]
            except FileNotFoundError:
                continue
            if found:
                fresh += found
                folders.append(folder)
        if folders:
            folders.append(self._objects)
        return fresh, folders


def loose_times_ns(objects: bytes) -> Iterator[int]:
    """When the loose objects of a repository's ``objects`` folder were written, in nanoseconds, in no order."""
    for folder in os.listdir(objects):
        if len(folder) == 2:
            with os.scandir(os.path.join(objects, folder)) as found:
                yield from (entry.stat(follow_symlinks=False).st_mtime_ns for entry in found)


class SourceObjects:
    """The objects of a user's repository, read only, alternates included; ``objects`` is its objects directory.

    A directory that is gone or unreadable has no objects. Never fetches what a partial clone left out.
    """

    def __init__(self, objects: Path | bytes) -> None:
        self._objects = os.path.abspath(os.fsencode(objects))
        self._odb: pygit2.Odb | None = None

    def exists(self, oid: ObjectId) -> bool:
        """Whether an object is there; sees objects and packs written since."""
        odb = self._reader()
        return odb is not None and odb.exists(_pygit2().Oid(raw=oid))

    def read(self, oid: ObjectId) -> tuple[str, bytes]:
        """An object's kind and content, verified. Raises ObjectMissing, ObjectCorrupt."""
        odb = self._reader()
        if odb is None:
            raise _missing(oid)
        return _read_by_libgit2(odb, oid)

    def header(self, oid: ObjectId) -> tuple[str, int]:
        """An object's kind and size without its content. Raises ObjectMissing, ObjectCorrupt."""
        odb = self._reader()
        if odb is None:
            raise _missing(oid)
        return _header_by_libgit2(odb, oid)

    def refresh(self) -> None:
        """Lets go of all packs and looks afresh, alternates included."""
        self._odb = None

    def _reader(self) -> pygit2.Odb | None:
        if self._odb is None and os.path.isdir(self._objects):
            try:
                self._odb = _pygit2().Odb(os.fsdecode(self._objects))
            except _pygit2().GitError:
                return None
        return self._odb


def _pygit2() -> ModuleType:
    # Costs 40 to 70 ms the first time, which a call that meets only loose objects never pays.
    import pygit2

    return pygit2


def _read_by_libgit2(odb: pygit2.Odb, oid: ObjectId) -> tuple[str, bytes]:
    try:
        number, data = odb.read(_pygit2().Oid(raw=oid))
    except KeyError:
        raise _missing(oid) from None
    except _pygit2().GitError as error:
        raise _corrupt(oid, str(error)) from None
    kind = KINDS[int(number)]
    if hash_object(kind, data) != oid:
        raise _corrupt(oid, "its content has another hash")
    return kind, data


def _header_by_libgit2(odb: pygit2.Odb, oid: ObjectId) -> tuple[str, int]:
    if not hasattr(odb, "read_header"):  # came after pygit2 1.15
        kind, data = _read_by_libgit2(odb, oid)
        return kind, len(data)
    try:
        number, size = odb.read_header(_pygit2().Oid(raw=oid))
    except KeyError:
        raise _missing(oid) from None
    except _pygit2().GitError as error:
        raise _corrupt(oid, str(error)) from None
    return KINDS[int(number)], size


def _missing(oid: ObjectId) -> ObjectMissing:
    return ObjectMissing(f"object {oid.hex()} is missing", "git safety doctor")


def _corrupt(oid: ObjectId, why: str) -> ObjectCorrupt:
    return ObjectCorrupt(f"object {oid.hex()} is damaged: {why}", "git safety doctor")


def _shown(oid: ObjectId | None) -> str:
    return "nothing" if oid is None else oid.hex()[:12]


def _parse_header(raw: bytes) -> tuple[str, int, int]:
    """Kind, size and where the content starts. Raises ValueError when ``raw`` has no loose object's header."""
    start = raw.index(b"\0", 0, 40) + 1
    kind, _, size = raw[: start - 1].partition(b" ")
    if kind.decode("ascii", "replace") not in KINDS.values() or not size.isdigit():
        raise ValueError("its header is not one of an object")
    return kind.decode(), int(size), start


def _parse_id(text: bytes, name: str) -> ObjectId:
    try:
        oid = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        oid = b""
    if len(oid) != 20:
        raise ObjectCorrupt(f"{name} holds no object id", "git safety doctor")
    return oid


def _level(data: bytes) -> int:
    """The zlib level for content of which ``data`` is a part: 0 for what is compressed already, else 1; a repack does better."""
    if len(data) < 128 << 10:
        return 1
    sample = data[len(data) // 2 :][: 16 << 10]
    return 1 if len(zlib.compress(sample, 1)) < len(sample) * 0.95 else 0


def _pieces(fd: int, size: int) -> Iterator[bytes]:
    at = 0
    while at < size:
        piece = os.pread(fd, min(CHUNK, size - at), at)
        if not piece:
            raise ChangedWhileReading("the file became shorter while it was being read")
        at += len(piece)
        yield piece


def _inflated(fd: int, oid: ObjectId) -> Iterator[bytes]:
    """A loose file's content, header included, in pieces of at most CHUNK bytes however well it was compressed."""
    unpacker = zlib.decompressobj()
    try:
        while not unpacker.eof:
            packed = unpacker.unconsumed_tail or os.read(fd, CHUNK)
            piece = unpacker.decompress(packed, CHUNK)
            if piece:
                yield piece
            elif not packed:
                raise _corrupt(oid, "its file ends early")
    except zlib.error as error:
        raise _corrupt(oid, str(error)) from None


def _write_all(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])


def _read_file(path: bytes) -> bytes:
    with open(path, "rb", 0) as file:
        return file.read()


def _remove(path: bytes) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _try_create(path: bytes, mode: int) -> int | None:
    """A new file, open for writing, its folder made if need be; None if the name is taken."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        return None
    except FileNotFoundError:  # a new folder of refs, or `git pack-refs` removed one it had emptied
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return _try_create(path, mode)


def _executable(path: bytes) -> bool:
    try:
        return bool(os.lstat(path).st_mode & 0o100)
    except FileNotFoundError:
        return False


def _try_flock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP):  # some network file systems; the caller's own lock must do there
            raise
    return True


def _pause(ends_at: float, lock: bytes) -> None:
    if time.monotonic() > ends_at:
        path = os.fsdecode(lock)
        raise RefLocked(f"another program holds {path}", f"rm {path}")
    time.sleep(0.001)


def _fsync_path(path: bytes) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # packed and pruned meanwhile
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _fsync_all(paths: list[bytes]) -> None:
    """Flushes many files side by side: one journal commit of the file system then serves several of them."""
    if len(paths) < 2:
        for path in paths:
            _fsync_path(path)
        return
    left = iter(paths)
    guard = threading.Lock()
    failures: list[OSError] = []

    def work() -> None:
        while True:
            with guard:
                path = next(left, None)
            if path is None:
                return
            try:
                _fsync_path(path)
            except OSError as error:
                failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(min(_SYNC_THREADS, len(paths)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
