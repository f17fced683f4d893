"""Capture: what is on disk now, against the newest snapshot, as a draft of the next one.

``declared`` looks at named paths only; ``everything`` looks at the whole workspace: git's ``diff-files`` on a private index finds changed
content, ``directories`` finds names that came or went, ``gitdir`` and the index reader find what git itself recorded. Nothing is
written into the user's repository and nothing of it is borrowed. The private index and the caches only save work; they are brought up
to date after the operation is published (``settle``), so a crash in between costs a second look and never hides a change.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from safety.plumbing.attributes import converted_paths
from safety.plumbing.ignore import IgnoreRules
from safety.plumbing.index import (
    ASSUME_VALID,
    INTENT_TO_ADD,
    SKIP_WORKTREE,
    IndexCorrupt,
    IndexEntry,
    IndexFile,
    IndexUnsupported,
    parse_index,
    read_signature,
    serialize_index,
)
from safety.plumbing.odb import ObjectStore, SourceObjects
from safety.plumbing.repo import open_repository, user_config
from safety.plumbing.run import Git, Running
from safety.store.anchors import anchor, bring_over
from safety.store.directories import DirectoryCache, Member, Survey, Walk
from safety.store.files import Tree, observe
from safety.store.gitdir import GitDirectories, GitFileCache, captured_path, git_directories
from safety.store.seed import seed
from safety.store.snapshot import Editor, IndexImage, Snapshot, changed_indexes, changes
from safety.types import ABSENT, NotCovered, ObjectId, PathState, Present, Unknown

REFRESH_BY_PATH = 64
SCAN_OPTIONS = ("-c", "core.filemode=true", "-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "-c", "core.trustctime=true",
                "-c", "core.checkStat=default", "-c", "core.untrackedCache=false", "-c", "core.fsmonitor=false", "-c", "core.preloadIndex=true",
                "-c", "core.symlinks=true", "-c", "core.ignoreCase=false", "-c", "core.splitIndex=false", "-c", "index.threads=true")
RETRIED = ("call-budget", "changed-while-reading", "unreadable", "deadline", "too-large", "special-file", "ignored-large")


@dataclass(frozen=True)
class Limits:
    """How much one capture may take in (the settings ``snapshots.*``)."""

    max_file: int = 32 << 20
    max_call: int = 256 << 20
    ignored_max: int = 256 << 10
    deadline_s: float | None = 10.0
    skip_dirs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """A workspace as the engines see it: where it is, where its state lies, and with what it is read."""

    root: bytes
    state: Path
    store_dir: Path
    home: Path
    chain: str
    odb: ObjectStore
    git: Git
    limits: Limits
    now_ns: Callable[[], int] = time.time_ns
    declared_only: bool = False


@dataclass
class Draft:
    """A snapshot that is written but not yet an operation. ``tree`` equals the one before when nothing changed."""

    tree: ObjectId
    before: ObjectId | None
    changed: list[bytes]
    git_changed: bool
    not_covered: list[NotCovered]
    settle: Callable[[ObjectId], None] = lambda _: None

    @property
    def is_change(self) -> bool:
        return self.tree != self.before


@dataclass
class Budget:
    """What is left of a capture's bytes and time."""

    limits: Limits
    spent: int = 0
    started_s: float = field(default_factory=time.monotonic)

    def refusal(self) -> str | None:
        if self.limits.deadline_s is not None and time.monotonic() - self.started_s > self.limits.deadline_s:
            return "deadline"
        return "call-budget" if self.spent > self.limits.max_call else None


def is_git_path(path: bytes) -> bool:
    return b".git" in path.split(b"/")


def declared(place: Place, before: ObjectId | None, paths: Iterable[bytes]) -> Draft:
    """A draft that knows the named paths anew and carries over everything else; milliseconds at any size."""
    snapshot = Snapshot(place.odb, before)
    editor = Editor(place.odb, before)
    budget = Budget(place.limits)
    changed, not_covered = [], []
    with Tree(place.root) as tree:
        for path in sorted(set(paths)):
            old = snapshot.state(path)
            state, read = observe(tree, place.odb, path, place.limits.max_file)
            budget.spent += read
            if isinstance(state, Unknown):
                not_covered.append(NotCovered(path, state.reason, state.size))
            if isinstance(state, Present) and state.kind == "dir":
                not_covered.append(NotCovered(path, "directory", 0, "a directory was declared; its files are looked at by the next scan"))
                continue
            if state != old:
                area = "git" if is_git_path(path) else snapshot.area(path) or "private"
                editor.put(path, state, area)
                changed.append(path)
    tree_id = editor.finish() if changed else before
    if tree_id is None:
        tree_id = editor.finish()
    return Draft(tree_id, before, changed, False, not_covered)


class Scan:
    """One look at everything."""

    def __init__(self, place: Place, before: ObjectId | None, *, limits: Limits | None = None) -> None:
        self.place = place
        self.before = before
        self.limits = limits or place.limits
        self.snapshot = Snapshot(place.odb, before)
        self.editor = Editor(place.odb, before)
        self.budget = Budget(self.limits)
        self.not_covered: list[NotCovered] = []
        self.index_file = place.state / "index"
        self.directories_file = place.state / "directories.json"
        self.git_files_file = place.state / "gitfiles.json"
        self.synced_file = place.state / "index.synced"
        self.settings: dict[bytes, dict[str, str]] = {}
        self.ids: set[bytes] = set()

    # -- the whole ---------------------------------------------------------------------------------------------------------------

    def run(self) -> Draft:
        place = self.place
        now_ns = place.now_ns()
        with Tree(place.root) as tree:
            if tree.lstat(b"") is None:
                return self._vanished()
            synced = self._synced_tree()
            cache = DirectoryCache.load(self.directories_file)
            if synced is None:
                cache = DirectoryCache()
                self._first_index(tree)
            listing = self._start_diff_files()
            survey = self._survey(tree, cache, now_ns, stat_all=synced is None)
            candidates = survey.candidates | cache.uncovered | self._listed(listing)
            if synced is not None and synced != self.before:
                candidates.update(changes(place.odb, synced, self.before, ("work", "private")))
            if self._rules_changed(tree, candidates, cache):
                survey = self._survey(tree, cache, now_ns, stat_all=False, reclassify=True)
                candidates |= survey.candidates
            self._put_files(tree, survey, candidates)
            git_cache = self._put_git(survey, now_ns)
            tree_id = self.editor.finish()
        return self._draft(tree_id, survey, candidates, git_cache)

    def _draft(self, tree_id: ObjectId, survey: Survey, candidates: set[bytes], git_cache: GitFileCache) -> Draft:
        odb = self.place.odb
        changed = changes(odb, self.before, tree_id, ("work", "private")) if tree_id != self.before else []
        git_paths = changes(odb, self.before, tree_id, ("git",)) if tree_id != self.before else []
        indexes = changed_indexes(odb, self.before, tree_id) if tree_id != self.before else []
        plain = [path for path in git_paths if path not in set(changed)]
        draft = Draft(tree_id, self.before, sorted({*changed, *plain}), bool(git_paths or indexes), self.not_covered)

        def settle(operation_tree: ObjectId) -> None:
            self._update_index(operation_tree, candidates)
            survey.cache.uncovered = self._still_uncovered(operation_tree)
            survey.cache.save(self.directories_file)
            if git_cache != self.git_cache_before:
                git_cache.save(self.git_files_file)

        draft.settle = settle
        return draft

    def _vanished(self) -> Draft:
        """The workspace folder itself is gone: everything in it is absent, except what lies outside it."""
        for area in os.listdir(self.place.state):
            if area in ("directories.json", "gitfiles.json", "index.synced"):
                (self.place.state / area).unlink()
        old = self.snapshot
        for path, _ in list(old.walk()):
            if not path.startswith(b"/"):
                self.editor.put(path, ABSENT)
        for member in old.members():
            self.editor.remove_index(member)
        tree_id = self.editor.finish()
        changed = changes(self.place.odb, self.before, tree_id)
        return Draft(tree_id, self.before, changed, bool(old.members()), [])

    # -- names -------------------------------------------------------------------------------------------------------------------

    def _survey(self, tree: Tree, cache: DirectoryCache, now_ns: int, *, stat_all: bool, reclassify: bool = False) -> Survey:
        walk = Walk(tree, self.snapshot, cache, self._classify, self._is_skipped, self._excluded(), now_ns, stat_all=stat_all, reclassify=reclassify)
        return walk.run()

    def _excluded(self) -> frozenset[tuple[int, int]]:
        try:
            info = os.stat(self.place.home)
        except OSError:
            return frozenset()
        return frozenset({(info.st_dev, info.st_ino)})

    def _is_skipped(self, path: bytes) -> bool:
        name = os.fsdecode(path.rpartition(b"/")[2])
        for pattern in self.limits.skip_dirs:
            if pattern.startswith("*"):
                if name.endswith(pattern[1:]):
                    return True
            elif "/" in pattern:
                if os.fsdecode(path) == pattern or os.fsdecode(path).endswith("/" + pattern):
                    return True
            elif name == pattern:
                return True
        return False

    def _classify(self, member: Member | None, paths: list[bytes]) -> set[bytes]:
        """Which of the new names git ignores, by the rules of the repository they lie in (none in a plain folder)."""
        if member is None or member.repository is None:
            return set()
        prefix = member.path + b"/" if member.path else b""
        root = self.place.root + b"/" + member.path if member.path else self.place.root
        exclude = member.repository.common_dir + b"/info/exclude"
        excludes_file = self._settings(root).get("excludes_file")
        scan_dir = self.place.store_dir
        rules = IgnoreRules(self.place.git, scan_dir, root, exclude if os.path.exists(exclude) else None,
                            os.fsencode(excludes_file) if excludes_file else None)
        return {prefix + path for path in rules.ignored([path[len(prefix):] for path in paths])}

    def _settings(self, root: bytes) -> dict[str, str]:
        if root not in self.settings:
            self.settings[root] = user_config(self.place.git, root)
        return self.settings[root]

    def _rules_changed(self, tree: Tree, candidates: set[bytes], cache: DirectoryCache) -> bool:
        """Whether an ignore rule changed since the last scan, so that known names must be judged again."""
        stamp = []
        members = [name for name, seen in cache.directories.items() if seen.has_git] or [b""]
        for member in members:
            place = (self.place.root + b"/" + member if member else self.place.root) + b"/.git/info/exclude"
            try:
                info = os.stat(place)
                stamp.append((info.st_mtime_ns, info.st_size, info.st_ino))
            except OSError:
                stamp.append((0, 0, 0))
        rules = json.dumps(stamp)
        before, cache.rules = cache.rules, rules
        if not cache.directories:
            return False
        touched = any(path.rpartition(b"/")[2] == b".gitignore" and
                      observe(tree, self.place.odb, path, self.limits.max_file)[0] != self.snapshot.state(path) for path in candidates)
        return touched or (before != "" and before != rules)

    # -- content -----------------------------------------------------------------------------------------------------------------

    def _put_files(self, tree: Tree, survey: Survey, candidates: set[bytes]) -> None:
        for path, unknown in survey.uncovered.items():
            if self.snapshot.state(path) != unknown:
                self.editor.put(path, unknown)
            if unknown.reason != "ignored-directory":
                self.not_covered.append(NotCovered(path, unknown.reason))
        pending = sorted(path for path in candidates if path and path not in survey.uncovered and not is_git_path(path))
        unsorted = [path for path in pending if path not in survey.ignored and self.snapshot.area(path) == "private" and not path.startswith(b"/")]
        really_ignored = self._really_ignored(survey, unsorted)
        for path in pending:
            is_ignored = path in survey.ignored or path in really_ignored
            self._put_file(tree, path, is_ignored)
        for path, (mode, inode) in survey.modes.items():
            state = self.editor_state(path)
            if isinstance(state, Present) and path not in candidates and state.kind == "file":
                self.editor.put(path, Present("file", mode, state.oid, inode), self.snapshot.area(path) or "work")
        for path, mode in sorted(survey.directories.items()):
            area = "private" if path in survey.ignored else "work"
            self.editor.put(path, Present("dir", mode, b""), area)

    def editor_state(self, path: bytes) -> PathState:
        return self.snapshot.state(path)

    def _really_ignored(self, survey: Survey, paths: list[bytes]) -> set[bytes]:
        """Which of the paths kept as private are so by an ignore rule; a declared path is private until a scan has judged it."""
        if not paths:
            return set()
        by_member: dict[bytes, list[bytes]] = {}
        members = {member.path: member for member in survey.members if member.repository is not None}
        for path in paths:
            home = b""
            for name in members:
                if (path.startswith(name + b"/") or not name) and len(name) >= len(home):
                    home = name
            by_member.setdefault(home, []).append(path)
        ignored: set[bytes] = set()
        for name, asked in by_member.items():
            ignored |= self._classify(members.get(name), asked)
        return ignored

    def _put_file(self, tree: Tree, path: bytes, is_ignored: bool) -> None:
        old = self.snapshot.state(path)
        refusal = self.budget.refusal()
        limit = self.limits.ignored_max if is_ignored else self.limits.max_file
        if refusal is not None:
            state, read = self._unread(tree, path, refusal)
        else:
            state, read = observe(tree, self.place.odb, path, limit)
        self.budget.spent += read
        if isinstance(state, Unknown):
            if is_ignored and state.reason == "too-large":
                state = Unknown("ignored-large", state.size, state.mtime_ns)
            self.not_covered.append(NotCovered(path, state.reason, state.size))
        if isinstance(state, Present) and state.kind == "dir":
            if isinstance(old, Present) and old.kind == "dir":
                return  # its own state is put by the survey
            return
        area = "private" if is_ignored or path.startswith(b"/") else "work"
        if state != old or getattr(state, "inode", None) != getattr(old, "inode", None) or self.snapshot.area(path) not in (None, area):
            self.editor.put(path, state, area)

    def _unread(self, tree: Tree, path: bytes, reason: str) -> tuple[PathState, int]:
        try:
            info = tree.lstat(path)
        except OSError:
            return Unknown("unreadable"), 0
        if info is None:
            return ABSENT, 0
        old = self.snapshot.state(path)
        if isinstance(old, Unknown) and (old.size, old.mtime_ns) == (info.st_size, info.st_mtime_ns):
            return old, 0
        return Unknown(reason, info.st_size, info.st_mtime_ns), 0

    # -- the private index -------------------------------------------------------------------------------------------------------

    def _synced_tree(self) -> ObjectId | None:
        """The snapshot that the private index was last brought up to, or None when it has to be made."""
        try:
            text = self.synced_file.read_text().strip()
        except FileNotFoundError:
            return None
        oid = bytes.fromhex(text) if len(text) == 40 else b""
        if not oid or not self.index_file.exists() or not self.place.odb.exists(oid):
            return None
        if self.index_file.stat().st_mtime_ns > self.place.now_ns() + 1_000_000_000:
            return None  # a clock that went back would make racy entries look clean
        return oid

    def _git(self, *args: str | bytes, input: bytes | None = None, ok: tuple[int, ...] = (0,)) -> bytes:
        done = self.place.git.store(self.place.store_dir, [*SCAN_OPTIONS, *args], work_tree=self.place.root, index_file=self.index_file,
                                    input=input, cwd=self.place.root, deadline_s=600, ok=ok)
        if done.stderr:
            self._note_git_error(done.stderr)
        return done.stdout

    def _start_diff_files(self) -> Running:
        args = [*SCAN_OPTIONS, "diff-files", "-z", "--name-only", "--ignore-submodules=all", "--no-ext-diff"]
        return self.place.git.start_store(self.place.store_dir, args, work_tree=self.place.root, index_file=self.index_file,
                                          cwd=self.place.root, deadline_s=600)

    def _listed(self, listing: Running) -> set[bytes]:
        done = listing.wait()
        if done.stderr:
            self._note_git_error(done.stderr)
        return {path for path in done.stdout.split(b"\0") if path}

    def _note_git_error(self, text: bytes) -> None:
        for line in text.splitlines():
            self.not_covered.append(NotCovered(b"", "git-error", 0, line.decode("utf-8", "replace")[:200]))

    def _first_index(self, tree: Tree) -> None:
        """Makes the private index from what is already known: the newest snapshot, or the user's own index with its stat data."""
        self.index_file.unlink(missing_ok=True)
        if self.before is not None:
            entries = [entry for entry in _entries_of(self.snapshot)]
            self.index_file.write_bytes(serialize_index(IndexFile(2, entries, None, None, b"")))
            return
        entries, oldest_ns = self._adopt_user_indexes()
        self.index_file.write_bytes(serialize_index(IndexFile(2, entries, None, None, b"")))
        if oldest_ns:
            os.utime(self.index_file, ns=(oldest_ns, oldest_ns))  # racy entries stay racy: git then compares content

    def _adopt_user_indexes(self) -> tuple[list[IndexEntry], int]:
        """Entries of the root repository's index that are clean by stat data, which become the first content of ``work/``."""
        from safety.plumbing.repo import open_repository

        repository = open_repository(self.place.root)
        if repository is None or repository.object_format != "sha1":
            return [], 0
        self._seed(repository.common_dir)
        path = os.fsdecode(repository.git_dir + b"/index")
        try:
            mtime_ns = os.stat(path).st_mtime_ns
            index = self._read_index(repository.git_dir)
        except (OSError, IndexUnsupported, IndexCorrupt):
            return [], 0
        usable = [entry for entry in index.entries
                  if entry.stage == 0 and not entry.flags & (INTENT_TO_ADD | SKIP_WORKTREE | ASSUME_VALID) and entry.mode != 0o160000]
        usable = self._without_converted(usable)
        usable = self._base_tree(usable)
        return usable, mtime_ns

    def _without_converted(self, entries: list[IndexEntry]) -> list[IndexEntry]:
        """Leaves out entries whose bytes on disk may differ from their blob (redteam B1); those files are then read."""
        converted = converted_paths(self.place.git, self.place.root, [entry.path for entry in entries])
        if not converted:
            return entries
        kept = []
        for entry in entries:
            how = converted.get(entry.path)
            if how is None or (how == "size-safe" and self._same_size(entry)):
                kept.append(entry)
        return kept

    def _same_size(self, entry: IndexEntry) -> bool:
        if not self.place.odb.exists(entry.oid):
            return False
        return self.place.odb.size(entry.oid) == int.from_bytes(entry.stat[-4:], "big")

    def _base_tree(self, entries: list[IndexEntry]) -> list[IndexEntry]:
        """Puts the entries as ``work/`` and returns those whose blob the store has."""
        odb = self.place.odb
        known: list[IndexEntry] = []
        by_directory: dict[bytes, list[IndexEntry]] = {}
        for entry in entries:
            by_directory.setdefault(entry.path.rpartition(b"/")[0], []).append(entry)
        for directory, group in by_directory.items():
            start = len(directory) + 1 if directory else 0
            present = [entry for entry in group if odb.exists(entry.oid)]
            known.extend(present)
            self.editor.put_tree(directory, [(entry.mode, entry.path[start:], entry.oid) for entry in present], "work")
        self.before_tree = self.editor.finish()
        self.snapshot = Snapshot(odb, self.before_tree)
        self.editor = Editor(odb, self.before_tree)
        known.sort(key=lambda entry: entry.path)
        return known

    def _update_index(self, operation_tree: ObjectId, candidates: set[bytes]) -> None:
        """Brings the private index to the published snapshot for every path that was looked at, then refreshes its stat data."""
        snapshot = Snapshot(self.place.odb, operation_tree)
        removals, additions, regular = [], [], []
        for path in sorted(candidates):
            if path.startswith(b"/") or is_git_path(path) or not path:
                continue
            state = snapshot.state(path)
            if isinstance(state, Present) and state.kind != "dir":
                mode = b"120000" if state.kind == "link" else (b"100755" if state.mode & 0o100 else b"100644")
                additions.append(mode + b" " + state.oid.hex().encode() + b"\t" + path + b"\0")
                regular.append(path)
            else:
                removals.append(b"0 " + b"0" * 40 + b"\t" + path + b"\0")
        if removals or additions:
            self.synced_file.unlink(missing_ok=True)
            self._git("update-index", "-z", "--index-info", input=b"".join(removals + additions))
            if regular:
                self._refresh(regular)
        temporary = self.synced_file.with_suffix(".new")
        temporary.write_text(operation_tree.hex())
        os.replace(temporary, self.synced_file)

    def _refresh(self, paths: list[bytes]) -> None:
        if len(paths) <= REFRESH_BY_PATH and sum(map(len, paths)) < 60_000:
            self._git("add", "--refresh", "--", *paths, ok=(0, 1, 128))
        else:
            self._git("update-index", "-q", "--refresh", ok=(0, 1))

    def _still_uncovered(self, operation_tree: ObjectId) -> set[bytes]:
        snapshot = Snapshot(self.place.odb, operation_tree)
        return {path for path, unknown in snapshot.not_covered() if unknown.reason in RETRIED}

    # -- git state ---------------------------------------------------------------------------------------------------------------

    def _put_git(self, survey: Survey, now_ns: int) -> GitFileCache:
        self.git_cache_before = GitFileCache.load(self.git_files_file)
        directories = GitDirectories(self.place.root, self.snapshot, self.editor, self.git_cache_before, now_ns)
        places: list[bytes] = []
        indexed: set[bytes] = set()
        for member in survey.members:
            directories.capture(member)
            places.extend(git_directories(self.place.root, member))
            if member.repository is not None:
                self._put_index(member, directories.new)
                indexed.add(member.path)
        for gone in set(self.snapshot.members()) - indexed:
            self.editor.remove_index(gone)
            directories.new.indexes.pop(gone.decode("latin-1"), None)
        result = directories.finish(places)
        self.not_covered.extend(result.not_covered)
        self.ids |= result.ids
        self._bring_objects(survey)
        return directories.new

    def _put_index(self, member: Member, cache: GitFileCache) -> None:
        repository = member.repository
        assert repository is not None
        path = os.fsdecode(repository.git_dir + b"/index")
        key = member.path.decode("latin-1")
        found = read_signature(path)
        if found is None:
            self.editor.remove_index(member.path)
            cache.indexes.pop(key, None)
            return
        signature = [part.hex() if isinstance(part, bytes) else str(part) for part in found]
        if cache.indexes.get(key) == signature and self.snapshot.index_id(member.path) is not None:
            return
        cache.indexes[key] = signature
        try:
            index = self._read_index(repository.git_dir)
        except IndexUnsupported:
            with open(path, "rb") as file:
                self.editor.put_index(member.path, IndexImage(0, (), None, file.read()))
            self.not_covered.append(NotCovered(member.path, "index-as-bytes", 0, "the index is kept as a whole, not entry by entry"))
            return
        except (OSError, IndexCorrupt) as fault:
            self.not_covered.append(NotCovered(member.path, "index-unreadable", 0, str(fault)))
            return
        self.editor.put_index(member.path, IndexImage(index.version, tuple(index.entries), index.resolve_undo, None))
        odb = self.place.odb
        self.ids |= {entry.oid.hex().encode() for entry in index.entries if entry.mode != 0o160000 and not odb.exists(entry.oid)}

    def _read_index(self, git_dir: bytes) -> IndexFile:
        folder = os.fsdecode(git_dir)

        def shared(name: str) -> bytes:
            with open(f"{folder}/sharedindex.{name}", "rb") as file:
                return file.read()

        with open(f"{folder}/index", "rb") as file:
            data = file.read()
        return parse_index(data, shared_index=shared, read_tree=self.place.odb.tree)

    def _seed(self, common_dir: bytes) -> None:
        seeded = self.place.store_dir / "seeded"
        names = seeded.read_bytes().split(b"\0") if seeded.exists() else []
        if common_dir in names:
            return
        seed(self.place.git, self.place.odb, common_dir + b"/objects", copy_budget=256 << 20)
        self.place.odb.refresh()
        with open(seeded, "ab") as file:
            file.write(common_dir + b"\0")

    def _bring_objects(self, survey: Survey) -> None:
        """Brings over every object that the captured git state names and the store lacks, then anchors the commits and tags."""
        if not self.ids:
            return
        wanted = set(self.ids)
        for member in survey.members:
            repository = member.repository
            if repository is None or not wanted:
                continue
            if repository.object_format != "sha1":
                self.not_covered.append(NotCovered(member.path, "object-format", 0, f"history objects of a {repository.object_format} repository"))
                continue
            self._seed(repository.common_dir)
            root = self.place.root + b"/" + member.path if member.path else self.place.root
            wanted = set(bring_over(self.place.git, self.place.odb, root, repository.common_dir + b"/objects", wanted))
        present = {bytes.fromhex(oid.decode()) for oid in self.ids - wanted}
        if present:
            anchor(self.place.odb, self.place.chain, present)


def everything(place: Place, before: ObjectId | None, limits: Limits | None = None) -> Draft:
    """A draft that knows the whole workspace anew."""
    return Scan(place, before, limits=limits).run()


def _entries_of(snapshot: Snapshot) -> Iterable[IndexEntry]:
    """Index entries without stat data for every captured file inside the workspace."""
    for path, state in snapshot.walk(areas=("work", "private")):
        if isinstance(state, Present) and state.kind != "dir" and not path.startswith(b"/") and not is_git_path(path):
            mode = 0o120000 if state.kind == "link" else (0o100755 if state.mode & 0o100 else 0o100644)
            yield IndexEntry(path, 0, mode, state.oid, 0, bytes(40))


__all__ = ["Draft", "Limits", "Place", "Scan", "SourceObjects", "captured_path", "declared", "everything"]


def after_apply(place: Place, before: ObjectId | None, touched: Iterable[bytes], with_git: bool) -> Draft:
    """A draft after an undo: the touched paths looked at anew and, where git state was set, every git directory; no scan of the rest."""
    scan = Scan(place, before, limits=replace(place.limits, max_file=1 << 62, max_call=1 << 62, deadline_s=None))
    with Tree(place.root) as tree:
        for path in sorted(set(touched)):
            old = scan.snapshot.state(path)
            state, _ = observe(tree, place.odb, path, None)
            if is_git_path(path) and isinstance(state, Present) and state.kind == "file":
                continue  # git directories' files are captured below, in their own form
            if state != old:
                scan.editor.put(path, state, scan.snapshot.area(path) or "work")
        cache = DirectoryCache.load(scan.directories_file)
        if with_git or any(is_git_path(path) for path in touched):
            members = _members(place, tree, cache, touched)
            git_cache = scan._put_git(Survey(members=members), place.now_ns())
            git_cache.save(scan.git_files_file)
    tree_id = scan.editor.finish()
    git_paths = changes(place.odb, before, tree_id, ("git",))
    return Draft(tree_id, before, changes(place.odb, before, tree_id, ("work", "private")), bool(git_paths), scan.not_covered)


def _members(place: Place, tree: Tree, cache: DirectoryCache, touched: Iterable[bytes]) -> list[Member]:
    """Members that exist now: those the last scan saw, and those that an undo may have brought back."""
    names = {name for name, seen in cache.directories.items() if seen.has_git} | {b""}
    names |= {path[: path.index(b".git")].rstrip(b"/") for path in touched if b".git" in path.split(b"/") and not path.startswith(b"/")}
    found = []
    for name in sorted(names):
        root = place.root + b"/" + name if name else place.root
        if os.path.lexists(root + b"/.git"):
            found.append(Member(name, open_repository(root)))
    return found
