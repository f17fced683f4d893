"""The private index: git's stat cache over everything captured, so that ``diff-files`` finds changed content in C.

It only saves work. It names the snapshot it was brought up to (``synced``); paths that differ between that one and the newest are
looked at whatever git says. It is brought up to date after an operation is published, never before. Its mtime is set back to before the
scan began, and what changed within the last second gets no stat data: git compares whole seconds, and a file written or chmodded while the
scan ran would otherwise look clean for ever.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping

from safety.plumbing.index import ZERO_STAT, IndexEntry, IndexFile, serialize_index
from safety.plumbing.renames import put_in_place
from safety.plumbing.run import Completed, Running
from safety.store.directories import LONGEST_PLAIN_PATH
from safety.store.place import Place
from safety.store.snapshot import Snapshot
from safety.types import ObjectId, Present

OPTIONS = tuple(
    word
    for setting in (
        "core.filemode=true", "core.symlinks=true", "core.ignoreCase=false", "core.protectNTFS=false", "core.protectHFS=false",
        "core.trustctime=true", "core.checkStat=default", "core.untrackedCache=false", "core.fsmonitor=false", "core.preloadIndex=true",
        "core.splitIndex=false", "index.threads=true", "index.version=2",
    )
    for word in ("-c", setting)
)  # fmt: skip
CLOCK_TICK_NS = 20_000_000  # file systems stamp with the kernel's tick, which lies behind the clock
ENTRY_HEAD = 62  # 40 bytes of stat data, 20 of id, 2 of flags
DEADLINE_S = 600


class PrivateIndex:
    """The private index of one workspace."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.file = place.state / "index"
        self._synced = place.state / "index.synced"

    def synced_tree(self) -> ObjectId | None:
        """The snapshot that the index was last brought up to, None when it has to be made anew."""
        try:
            text = self._synced.read_text().strip()
        except OSError:
            return None
        oid = bytes.fromhex(text) if len(text) == 40 else b""
        if not oid or not self.file.exists() or not self.place.odb.exists(oid):
            return None
        if self.file.stat().st_mtime_ns > self.place.now_ns() + 1_000_000_000:
            return None  # with a clock that went back, racy entries would look clean
        return oid

    def forget(self) -> None:
        """Makes the next scan begin anew."""
        self._synced.unlink(missing_ok=True)
        self.file.unlink(missing_ok=True)

    # -- making ---------------------------------------------------------------------------------------------------------------

    def create(self, entries: list[IndexEntry], raw: bytes | None, mtime_ns: int) -> None:
        """Writes the index from entries (or ``raw``, the bytes of an index that holds just them) with the mtime they were valid at."""
        self.forget()
        recent_s = self.place.now_ns() // 10**9 - 1
        if any(int.from_bytes(entry.stat[:4], "big") >= recent_s for entry in entries):
            raw, entries = None, [_aged(entry, recent_s) for entry in entries]
        self._replace(raw if raw is not None else serialize_index(IndexFile(2, entries)), mtime_ns)

    def create_from(self, snapshot: Snapshot) -> None:
        """Writes the index from a snapshot, without stat data: the next scan reads every file once."""
        entries = [
            IndexEntry(path, 0, index_mode(state), state.oid)
            for path, state in snapshot.walk(areas=("work", "private"))
            if isinstance(state, Present) and state.kind != "dir" and is_indexed(path)
        ]
        self.create(entries, None, 0)

    def _replace(self, data: bytes, mtime_ns: int) -> None:
        temporary = self.file.with_suffix(".tmp")
        temporary.write_bytes(data)
        os.utime(temporary, ns=(mtime_ns, mtime_ns))
        put_in_place(temporary, self.file)

    # -- asking ---------------------------------------------------------------------------------------------------------------

    def start_listing(self) -> Running:
        """Starts git's search for changed content; give the result to ``listed``."""
        args = [*OPTIONS, "diff-files", "-z", "--name-only", "--ignore-submodules=all", "--no-ext-diff"]
        return self.place.git.start_store(
            self.place.store_dir,
            args,
            work_tree=self.place.root,
            index_file=self.file,
            cwd=self.place.root,
            deadline_s=DEADLINE_S,
        )

    @staticmethod
    def listed(done: Completed) -> set[bytes]:
        return {path for path in done.stdout.split(b"\0") if path}

    def vouches(self, path: bytes, state: Present, info: os.stat_result) -> bool:
        """Whether the index holds ``state`` for the path with this size, mtime and inode, whatever its ctime is now."""
        data = bytearray(self.file.read_bytes())
        tail = state.oid + min(len(path), 0xFFF).to_bytes(2, "big") + path + b"\0"
        found = data.find(tail, 12)
        if found < 40 or not _is_entry(data, found - 40):
            return False
        now, then = _stat_data(info, index_mode(state)), data[found - 40 : found]
        return now[8:16] == then[8:16] and now[20:24] == then[20:24] and now[36:40] == then[36:40]

    # -- bringing up to date ---------------------------------------------------------------------------------------------------

    def update(self, tree: ObjectId, looked_at: Iterable[bytes], stats: Mapping[bytes, os.stat_result], began_ns: int) -> bytes:
        """Brings the index to a published snapshot for every path that was looked at; ``stats`` are of the content as captured.

        Gives what git said on standard error.
        """
        snapshot = Snapshot(self.place.odb, tree)
        removals, additions = [], []
        wanted: dict[bytes, Present] = {}
        for path in sorted(looked_at):
            if not is_indexed(path):
                continue
            state = snapshot.state(path)
            if isinstance(state, Present) and state.kind != "dir":
                wanted[path] = state
                additions.append(b"%o %b\t%b\0" % (index_mode(state), state.oid.hex().encode(), path))
            else:
                removals.append(b"0 " + b"0" * 40 + b"\t" + path + b"\0")
        said = b""
        if removals or additions:
            self._synced.unlink(missing_ok=True)
            data = bytearray(self.file.read_bytes())
            recent_s = began_ns // 10**9 - 1
            # an unreadable file keeps its stat data, which is all that speaks for it
            stats = {
                path: info for path, info in stats.items() if info.st_ctime_ns // 10**9 < recent_s or not info.st_mode & 0o400
            }
            if removals or not self._patch(data, wanted, stats):
                said = self._feed(b"".join(removals + additions))
                data = bytearray(self.file.read_bytes())
                self._patch(data, wanted, stats)
            self._replace(_with_checksum(data), min(began_ns - CLOCK_TICK_NS, self.place.now_ns()))
        self._write_synced(tree)
        return said

    def _write_synced(self, tree: ObjectId) -> None:
        if self._synced.exists() and self._synced.read_text() == tree.hex():
            return
        temporary = self._synced.with_suffix(".new")
        temporary.write_text(tree.hex())
        put_in_place(temporary, self._synced)

    def _feed(self, lines: bytes) -> bytes:
        """Removals first: a path that became a directory must go before what is below it comes."""
        # only the holder of the workspace's lock writes here: what is left is of a git that was killed
        self.file.with_suffix(".lock").unlink(missing_ok=True)
        done = self.place.git.store(
            self.place.store_dir, [*OPTIONS, "update-index", "-z", "--index-info"], work_tree=self.place.root, index_file=self.file,
            input=lines, cwd=self.place.root, deadline_s=DEADLINE_S,
        )  # fmt: skip
        return done.stderr

    def _patch(self, data: bytearray, wanted: Mapping[bytes, Present], stats: Mapping[bytes, os.stat_result]) -> bool:
        """Sets id and stat data of entries that are there, in place (20 ms at 100,000 entries, two git calls are 70).

        False when an entry was not found or the file is of another version; then nothing may be relied on.
        """
        if data[:8] != b"DIRC\0\0\0\2":
            return False
        offset = 12
        for path, state in wanted.items():
            tail = min(len(path), 0xFFF).to_bytes(2, "big") + path + b"\0"
            found = data.find(tail, offset)
            while found >= 0 and not _is_entry(data, found - 60):
                found = data.find(tail, found + 1)
            if found < 0:
                return False
            start = found - 60
            info = stats.get(path)
            data[start : start + 40] = (
                _stat_data(info, index_mode(state))
                if info is not None
                else bytes(24) + index_mode(state).to_bytes(4, "big") + bytes(12)
            )
            data[start + 40 : start + 60] = state.oid
            offset = start + ENTRY_HEAD + len(path)
        return True


def is_indexed(path: bytes) -> bool:
    """Whether a captured path has an entry: inside the workspace, no part of it ``.git``, short enough for git to look at.

    What has none is looked at by every scan.
    """
    return bool(path) and not path.startswith(b"/") and len(path) < LONGEST_PLAIN_PATH and b".git" not in path.split(b"/")


def index_mode(state: Present) -> int:
    """The mode git's index has for a captured file or link."""
    if state.kind == "link":
        return 0o120000
    return 0o100755 if state.mode & 0o100 else 0o100644


def _aged(entry: IndexEntry, recent_s: int) -> IndexEntry:
    """The entry without stat data if it changed within the last second: git compares whole seconds, a chmod in the same one is unseen."""
    return entry if int.from_bytes(entry.stat[:4], "big") < recent_s else entry._replace(stat=ZERO_STAT)


def _is_entry(data: bytearray, start: int) -> bool:
    """Whether an entry begins at an offset: entries are padded to eight bytes from the header's end, and have one of three modes."""
    return (
        start >= 12
        and (start - 12) % 8 == 0
        and int.from_bytes(data[start + 24 : start + 28], "big") in (0o100644, 0o100755, 0o120000)
    )


def _stat_data(info: os.stat_result, mode: int) -> bytes:
    """The 40 bytes git caches of a file: ctime, mtime, device, inode, mode, owner, group, size."""
    fields = (
        info.st_ctime_ns // 10**9, info.st_ctime_ns % 10**9, info.st_mtime_ns // 10**9, info.st_mtime_ns % 10**9,
        info.st_dev, info.st_ino, mode, info.st_uid, info.st_gid, info.st_size,
    )  # fmt: skip
    return b"".join((field & 0xFFFFFFFF).to_bytes(4, "big") for field in fields)


def _with_checksum(data: bytearray) -> bytes:
    body = bytes(memoryview(data)[:-20])
    return body + hashlib.sha1(body).digest()
