"""Makes a store and fills it with the objects of a user's repository, by files, without asking git and without borrowing.

Never ``git clone`` (redteam A4): it refuses, follows alternates into a borrowed store, copies ``.keep`` files and fails when a
collection runs beside it. Per file: a reflink, else a copy while the budget lasts, else a hard link, else a copy. A hard link
is one inode and not a second copy: what is linked is written down in ``linked.json`` with its size and checksum, and replaced
when idle.

What was seeded is known to be whole only when ``seed.json`` says so. Until then the presence of an object in the store does not
imply the presence of what it refers to, and ``anchors.bring_over`` walks everything.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from safety.plumbing.odb import ObjectStore
from safety.plumbing.reading import read_regular
from safety.plumbing.run import Git, GitError
from safety.store.linked import PACK_PARTS, LinkedFile, copy_bytes, linked_files, load_json, save_json, save_linked
from safety.store.packs import loose_files
from safety.store.shallow import read_ids, set_share, source_of

COPY_BUDGET = 256 << 20
LOOSE_LIMIT = 2_000  # taking more as files costs as much as a pack, and leaves that many files
_PASSES = 4
_ALTERNATES_DEPTH = 5
_FICLONE = 0x40049409  # <linux/fs.h>
# Errors that mean "not here", each seen from one file system or kernel or another; every other one is a failure.
_NO_REFLINK = (
    errno.EOPNOTSUPP,
    errno.ENOTTY,
    errno.EXDEV,
    errno.EINVAL,
    errno.EPERM,
    errno.ETXTBSY,
    errno.ENOSYS,
    errno.EBADF,
    errno.EIO,
)
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP)
_numbers = itertools.count()
_DRAFT = ".new-"

CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = true
\tlogAllRefUpdates = false
\tlooseCompression = 1
\tbigFileThreshold = 32m
[gc]
\tauto = 0
[maintenance]
\tauto = false
[receive]
\tautogc = false
\tfsckObjects = false
[transfer]
\tfsckObjects = false
[pack]
\twriteReverseIndex = true
\tthreads = 2
\twindowMemory = 128m
"""
ATTRIBUTES = "* -text -eol -filter -ident -working-tree-encoding\n"


def create_store(git_dir: Path) -> None:
    """Makes an empty bare repository at ``git_dir``, as a whole or not at all; does nothing if there is one already.

    A draft becomes what git takes for a repository only with its last step, and one that a killed process left is removed.
    """
    if (git_dir / "HEAD").exists():
        return
    git_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sweep_drafts(git_dir.parent)
    draft = git_dir.with_name(f"{git_dir.name}{_DRAFT}{os.getpid()}-{next(_numbers)}")
    for folder in ("", "info"):
        (draft / folder).mkdir(mode=0o700)
    (draft / "config").write_text(CONFIG)
    (draft / "info/attributes").write_text(ATTRIBUTES)
    (draft / "HEAD").write_text("ref: refs/heads/none\n")
    for folder in ("objects", "objects/info", "objects/pack", "refs", "refs/heads"):
        (draft / folder).mkdir(mode=0o700)
    try:
        os.rename(draft, git_dir)
    except OSError as fault:
        _remove_draft(draft)
        if fault.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise


def _sweep_drafts(folder: Path) -> None:
    """Removes drafts whose process is gone; another process with its number keeps one a while longer."""
    for draft in folder.glob(f"*{_DRAFT}*"):
        pid = draft.name.partition(_DRAFT)[2].partition("-")[0]
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}") and os.path.exists("/proc/self"):
            with contextlib.suppress(OSError):
                _remove_draft(draft)


def _remove_draft(draft: Path) -> None:
    for folder, folders, names in os.walk(draft, topdown=False):
        for name in names:
            os.unlink(f"{folder}/{name}")
        for name in folders:
            os.rmdir(f"{folder}/{name}")
    os.rmdir(draft)


# ---- what is known about a seed ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeedReport:
    """What a seeding came to. Not ``complete``: ``problem`` says why, and captures bring over what they name instead."""

    complete: bool
    packs: int = 0
    loose: int = 0
    cloned_bytes: int = 0
    copied_bytes: int = 0
    linked_bytes: int = 0
    piped: bool = False
    promisor: bool = False
    problem: str = ""


def is_complete(git_dir: Path, objects_dir: bytes) -> bool:
    """Whether all objects of this user's repository were taken over once, so that presence implies closure."""
    return bool(load_json(git_dir / "seed.json").get(os.fsdecode(objects_dir), {}).get("complete"))


def has_promisor(git_dir: Path) -> bool:
    """Whether a repository that seeded the store is a partial clone."""
    return any(source.get("promisor") for source in load_json(git_dir / "seed.json").values())


# ---- seeding -------------------------------------------------------------------------------------------------------------------


def seed(
    git: Git, odb: ObjectStore, objects_dir: bytes, *, copy_budget: int | None = None, root: bytes | None = None
) -> SeedReport:
    """Takes over all objects below a user's ``objects`` directory and its alternates; may be repeated, also after a crash.

    ``root`` is the work tree they belong to. With it, more than 2,000 loose objects come as one pack made by git, and a
    repository that is repacked under our hands is read by git in the end. Writes nothing into the user's repository; a hard
    link changes the link count and ctime of a file there. Failures of the file system are a ``problem``, not an exception.
    """
    seeder = _Seeder(odb.git_dir, COPY_BUDGET if copy_budget is None else copy_budget)
    problem = ""
    complete = False
    set_share(odb.git_dir, source_of(objects_dir), read_ids(os.path.dirname(objects_dir) + b"/shallow"), durable=False)
    try:
        complete = seeder.take_all(git, os.fsdecode(objects_dir), root)
        if not complete and not seeder.problem and root is not None:
            seeder.pipe(git, root, ["--revs", "--all", "--reflog", "--indexed-objects", "--missing=allow-any"], [])
            complete = True
    except OSError as fault:
        problem = "disk-full" if fault.errno in (errno.ENOSPC, errno.EDQUOT) else f"unreadable: {fault}"
    except GitError as fault:
        problem = fault.message
    problem = problem or seeder.problem or ("" if complete else "the repository was repacked all the while")
    seeder.save(objects_dir, complete and not problem)
    odb.refresh()
    counts = seeder.counts
    return SeedReport(
        complete=complete and not problem,
        packs=counts["packs"],
        loose=counts["loose"],
        cloned_bytes=counts["cloned"],
        copied_bytes=counts["copied"],
        linked_bytes=counts["linked"],
        piped=seeder.piped,
        promisor=seeder.promisor,
        problem=problem,
    )


@dataclass
class _Listing:
    """The packs (stem below ``objects/`` -> folder, size) and loose objects (name -> path) of some ``objects`` folders."""

    packs: dict[str, tuple[str, int]] = field(default_factory=dict)
    loose: dict[str, str] = field(default_factory=dict)


class _Seeder:
    def __init__(self, git_dir: Path, budget: int) -> None:
        self.git_dir = git_dir
        self.objects = f"{git_dir}/objects"
        self.left = budget
        self.done: set[str] = set()
        self.fanouts: set[str] = set()
        self.no_reflink: set[int] = set()
        self.linked = {file.name: file for file in linked_files(git_dir)}
        self.counts = dict.fromkeys(("packs", "loose", "cloned", "copied", "linked"), 0)
        self.piped = self.promisor = False
        self.problem = ""

    def take_all(self, git: Git, objects_dir: str, root: bytes | None) -> bool:
        """Lists and takes until a listing shows nothing new; False if that did not happen within a few passes.

        Whatever a listed object refers to existed before it. So when all of a listing had been taken before that listing began,
        nothing is missing, whatever a commit or a collection did meanwhile.
        """
        for _ in range(_PASSES):
            listing = self._fresh(object_folders(objects_dir))
            if not listing.packs and not listing.loose:
                return True
            for stem, (folder, size) in sorted(listing.packs.items(), key=lambda item: item[1][1]):
                self._take_pack(folder, stem, size)
            if root is not None and len(listing.loose) > LOOSE_LIMIT and self._pipe_loose(git, root, list(listing.loose)):
                continue
            for name, path in listing.loose.items():
                self._take_loose(path, name)
        return False

    def _fresh(self, folders: list[str]) -> _Listing:
        listing = _Listing()
        for folder in folders:
            for oid, path in loose_files(folder):
                name = f"{oid.hex()[:2]}/{oid.hex()[2:]}"
                if name not in self.done:
                    listing.loose.setdefault(name, path)
            for stem, size in _pack_stems(folder + "/pack"):
                if f"pack/{stem}" not in self.done:
                    listing.packs.setdefault(f"pack/{stem}", (folder, size))
        return listing

    def _take_pack(self, folder: str, stem: str, size: int) -> None:
        copied = size <= self.left
        if os.path.exists(f"{self.objects}/{stem}.idx") and os.path.exists(f"{self.objects}/{stem}.pack"):
            self.done.add(stem)
            return
        try:
            if not _ends_match(f"{folder}/{stem}"):
                # it would answer for objects that it cannot give
                self.problem = f"damaged: {folder}/{stem}.pack"
                self.done.add(stem)
                return
            for part in PACK_PARTS:
                try:
                    self._take(f"{folder}/{stem}{part}", stem + part, copied)
                except FileNotFoundError:
                    if part in (".pack", ".idx"):
                        raise
                else:
                    self.promisor |= part == ".promisor"
        except FileNotFoundError:
            return  # collected meanwhile: the next listing shows what took its place
        except PermissionError as fault:
            self.problem = f"unreadable: {fault}"
        else:
            self.counts["packs"] += 1
        self.done.add(stem)

    def _take_loose(self, path: str, name: str) -> None:
        try:
            if not os.path.exists(f"{self.objects}/{name}"):
                self._make_fanout(name[:2])
                self._take(path, name, self.left > 0)
                self.counts["loose"] += 1
        except FileNotFoundError:
            return
        except PermissionError as fault:
            self.problem = f"unreadable: {fault}"
        self.done.add(name)

    def _make_fanout(self, prefix: str) -> None:
        if prefix not in self.fanouts:
            os.makedirs(f"{self.objects}/{prefix}", mode=0o700, exist_ok=True)
            self.fanouts.add(prefix)

    def _pipe_loose(self, git: Git, root: bytes, names: list[str]) -> bool:
        try:
            self.pipe(git, root, [], [name.replace("/", "") for name in names])
        except GitError:
            return False  # one damaged object stops git; as files they can be taken one by one
        self.done.update(names)
        self.counts["loose"] += len(names)
        return True

    def pipe(self, git: Git, root: bytes, args: list[str], ids: list[str]) -> None:
        """Has the user's git pack what is asked for, straight into the store. Raises GitError."""
        packer = ["-c", "pack.compression=1", "pack-objects", "-q", "--stdout", "--delta-base-offset", "--window=0", *args]
        git.pipe_user_to_store(
            root, packer, self.git_dir, ["index-pack", "--stdin"], input="".join(f"{oid}\n" for oid in ids).encode()
        )
        self.piped = True

    def _take(self, source: str, name: str, copied: bool) -> None:
        """One file into the store, whole or not at all.

        Raises FileNotFoundError when it is gone, PermissionError, other OSErrors.
        """
        target = f"{self.objects}/{name}"
        descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise PermissionError(errno.EPERM, "not a regular file", source)
            if not copied and info.st_dev in self.no_reflink and self._link(source, name, info.st_size, descriptor):
                return
            temporary = f"{self.objects}/tmp_obj_seed_{os.getpid()}_{next(_numbers)}"
            out = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
            try:
                how = self._fill(out, descriptor, info, copied, source, name)
                if how:
                    # git and our own sync go by the mtime: what is old in the user's repository need not be looked at as new
                    os.utime(out, ns=(info.st_atime_ns, info.st_mtime_ns))
                    os.rename(temporary, target)
                    self.counts[how] += info.st_size
                else:
                    os.unlink(temporary)
            except BaseException:  # only to clean up; nothing is swallowed
                os.unlink(temporary)
                raise
            finally:
                os.close(out)
        finally:
            os.close(descriptor)

    def _fill(self, out: int, descriptor: int, info: os.stat_result, copied: bool, source: str, name: str) -> str:
        """How the open temporary file got its content; empty if a link was made instead."""
        if info.st_dev not in self.no_reflink:
            if _reflink(out, descriptor):
                return "cloned"
            self.no_reflink.add(info.st_dev)
            if not copied and self._link(source, name, info.st_size, descriptor):
                return ""
        copy_bytes(out, descriptor, info.st_size)
        self.left -= info.st_size
        return "copied"

    def _link(self, source: str, name: str, size: int, descriptor: int) -> bool:
        if stat.S_ISLNK(os.lstat(source).st_mode):
            return False
        target = f"{self.objects}/{name}"
        if os.path.exists(target):
            os.unlink(target)  # a part of an earlier seeding that never became a whole pack
        try:
            os.link(source, target)
        except OSError as fault:
            if fault.errno in _NO_LINK:
                return False
            raise
        checksum = name.replace("/", "") if name[2] == "/" else os.pread(descriptor, 20, max(size - 20, 0)).hex()
        self.linked[name] = LinkedFile(name, size, checksum)
        self.counts["linked"] += size
        return True

    def save(self, objects_dir: bytes, complete: bool) -> None:
        if self.linked or (self.git_dir / "linked.json").exists():
            save_linked(self.git_dir, self.linked.values())
        sources = load_json(self.git_dir / "seed.json")
        sources[os.fsdecode(objects_dir)] = {"complete": complete, "promisor": self.promisor, "synced": False}
        save_json(self.git_dir / "seed.json", sources)


def object_folders(objects_dir: str) -> list[str]:
    """The ``objects`` folder and all it borrows from, each once, those that do not exist left out."""
    found: list[str] = []
    queue = [(objects_dir, 0)]
    while queue:
        folder, depth = queue.pop(0)
        folder = os.path.realpath(folder)
        if folder in found or not os.path.isdir(folder):
            continue
        found.append(folder)
        if depth < _ALTERNATES_DEPTH:
            queue += [(other, depth + 1) for other in _alternates(folder)]
    return found


def _alternates(folder: str) -> Iterator[str]:
    try:
        lines = (read_regular(f"{folder}/info/alternates", follow=True) or b"").split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return
    for line in lines:
        if line and not line.startswith(b"#"):
            path = _unquoted(line) if line.startswith(b'"') else line
            yield os.path.join(folder, os.fsdecode(path))


def _unquoted(line: bytes) -> bytes:
    """A path git wrote in C style quotes."""
    text = line[1:].rpartition(b'"')[0]
    return text.decode("unicode_escape").encode("latin-1", "ignore") if text.isascii() else text


def _pack_stems(folder: str) -> list[tuple[str, int]]:
    try:
        names = set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = []
    for name in names:
        stem = name[:-4]
        if not name.endswith(".idx") or stem + ".pack" not in names or name.startswith(("tmp_", ".tmp-")):
            continue
        try:
            parts = [os.stat(f"{folder}/{stem}.pack"), os.stat(f"{folder}/{name}")]
        except FileNotFoundError:
            continue
        if all(stat.S_ISREG(part.st_mode) for part in parts):  # a FIFO would hold up whoever opens it
            found.append((stem, sum(part.st_size for part in parts)))
    return found


def _ends_match(stem: str) -> bool:
    """Whether a pack ends with the checksum that its index has for it: tells a pack that was cut short, at no cost."""
    with open(stem + ".idx", "rb") as index, open(stem + ".pack", "rb") as pack:
        if min(os.fstat(file.fileno()).st_size for file in (index, pack)) < 40:
            return False
        index.seek(-40, os.SEEK_END)
        pack.seek(-20, os.SEEK_END)
        return index.read(20) == pack.read(20)


def _reflink(out: int, source: int) -> bool:
    """Makes ``out`` share the blocks of ``source``, copied on write by either; False where the file system cannot."""
    if sys.platform != "linux":
        return False
    try:
        fcntl.ioctl(out, _FICLONE, source)
    except OSError as fault:
        if fault.errno in _NO_REFLINK:
            return False
        raise
    return True
