"""A store for one repository without the session around it:

Seeded, filled with operations, and looked at from outside by plain git.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path

from safety.plumbing.odb import ObjectStore
from safety.plumbing.refs import object_ids
from safety.plumbing.run import Git
from safety.store.anchors import anchor, bring_over
from safety.store.indexes import IndexImage, IndexItem
from safety.store.oplog import Operation, OpLog, Record
from safety.store.seed import SeedReport, create_store, seed
from safety.store.snapshot import Editor
from safety.types import ABSENT, Present
from tests.support.repo import RepoBuilder
from tests.support.store import store_git

DAY_MS = 24 * 3600 * 1000
START_MS = 1_700_000_000_000
GIT_FILES = ("HEAD", "ORIG_HEAD", "MERGE_HEAD", "packed-refs", "refs", "logs")


class Shelf:
    """A store and the repository that it protects. Its clock moves a second an operation, and as far as a test says."""

    def __init__(self, folder: Path, repo: RepoBuilder, chain: str = "main-1") -> None:
        self.repo = repo
        self.git = Git(repo.env)
        self.git_dir = folder / "stores/one.git"
        create_store(self.git_dir)
        self.odb = ObjectStore(self.git_dir)
        self.now_ms = START_MS
        self.log = OpLog(self.odb, self.git_dir, chain, lambda: self.now_ms)
        self._ids = itertools.count(1)

    @property
    def root(self) -> bytes:
        return os.fsencode(self.repo.root)

    @property
    def objects_dir(self) -> bytes:
        return self.root + b"/.git/objects"

    def seed(self, copy_budget: int = 256 << 20) -> SeedReport:
        return seed(self.git, self.odb, self.objects_dir, copy_budget=copy_budget, root=self.root)

    def bring(self, *ids: str) -> set[str]:
        missing = bring_over(self.git, self.odb, self.root, self.objects_dir, [oid.encode() for oid in ids])
        return {oid.decode() for oid in missing}

    def operation(self, change: Callable[[Editor], object]) -> Operation:
        """An operation whose snapshot is the newest one with some puts."""
        self.now_ms += 1000
        head = self.log.head()
        editor = Editor(self.odb, head.tree if head else None)
        change(editor)
        return self.log.append(editor.finish(), Record(f"k{next(self._ids):011d}", "call", "agent"))

    def capture(self) -> Operation:
        """An operation that holds all files, the index and the git state; what it names is brought over and anchored first."""
        names: set[bytes] = set()

        def change(editor: Editor) -> None:
            editor.put(b"", ABSENT)
            self._files(editor)
            names.update(self._git_files(editor), self._index(editor))
            missing = bring_over(self.git, self.odb, self.root, self.objects_dir, names)
            anchor(self.odb, self.log.chain, names - missing)

        return self.operation(change)

    def _files(self, editor: Editor) -> None:
        for folder, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if name != b".git"]
            for name in files:
                full = os.path.join(folder, name)
                data, mode = Path(os.fsdecode(full)).read_bytes(), stat.S_IMODE(os.lstat(full).st_mode)
                editor.put(os.path.relpath(full, self.root), Present("file", mode, self.odb.write("blob", data)))

    def _git_files(self, editor: Editor) -> set[bytes]:
        found: set[bytes] = set()
        git_dir = self.repo.root / ".git"
        for top in GIT_FILES:
            paths = [git_dir / top] if (git_dir / top).is_file() else sorted((git_dir / top).rglob("*"))
            for path in paths:
                if path.is_file():
                    editor.put_git(os.fsencode(path.relative_to(self.repo.root)), path.read_bytes(), 0o644)
                    found |= object_ids(path.read_bytes())
        return found

    def _index(self, editor: Editor) -> set[bytes]:
        items = []
        for line in filter(None, self.repo.git("ls-files", "-s", "-z").split("\0")):
            meta, path = line.split("\t", 1)
            mode, oid, stage = meta.split(" ")
            items.append(IndexItem(os.fsencode(path), int(stage), int(mode, 8), bytes.fromhex(oid), 0))
        editor.put_index(b"", IndexImage(2, tuple(sorted(items))))
        return {item.oid.hex().encode() for item in items}

    # -- from outside

    def plain(self, *args: str, **options: object) -> str:
        """Plain git in the store."""
        return store_git(self.git_dir, *args, **options).decode("utf-8", "surrogateescape").strip()  # type: ignore[arg-type]

    def objects(self) -> set[str]:
        """Ids of every object the store holds, reachable or not."""
        return set(self.plain("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())

    def has_history(self, revision: str) -> bool:
        """Whether the store has a commit and everything below it, by its own means."""
        env_git = store_git(self.git_dir, "rev-list", "--objects", revision, ok=(0, 128))
        return b"fatal" not in env_git and b"error" not in env_git


def everything_in(repo: RepoBuilder) -> set[str]:
    """Ids of all objects of the user's repository."""
    return set(repo.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())


def write_loose_blobs(repo: RepoBuilder, count: int) -> None:
    """Writes blobs the way git does, but without its flushes."""
    for number in range(count):
        content = b"number %d\n" % number
        raw = b"blob %d\0" % len(content) + content
        name = hashlib.sha1(raw).hexdigest()
        folder = repo.root / ".git/objects" / name[:2]
        folder.mkdir(exist_ok=True)
        (folder / name[2:]).write_bytes(zlib.compress(raw, 1))


def picture_of_git_dir(repo: RepoBuilder) -> dict[str, tuple[int, int, bytes]]:
    """Every file below ``.git`` with its size, mtime and content."""
    found = {}
    for path in sorted((repo.root / ".git").rglob("*")):
        if path.is_file():
            info = path.stat()
            found[str(path)] = (info.st_size, info.st_mtime_ns, path.read_bytes())
    return found
