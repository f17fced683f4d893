"""Capture: what is on disk now, against the newest snapshot, as a draft of the next one.

``everything`` looks at the whole workspace (``declared`` at named paths only): git's ``diff-files`` on a private index finds changed
content, ``directories`` finds names that came or went, ``gitdir`` and the index reader find what git itself recorded. Nothing is
written into the user's repository and nothing of it is borrowed. The private index and the caches only save work; they are brought up
to date after the operation is published (``settle``), so a crash in between costs a second look and never hides a change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from safety.plumbing.ignore import IgnoreRules
from safety.plumbing.index import IndexCorrupt, IndexFile, IndexUnsupported, read_signature
from safety.plumbing.pause import collector_paused
from safety.plumbing.repo import Repository, open_repository, user_config, verify
from safety.plumbing.run import GitError
from safety.store.anchors import anchor, bring_over
from safety.store.declared import Draft, is_git_path, put_folders
from safety.store.directories import DirectoryCache, Member, Survey, Walk
from safety.store.files import Observed, Tree, observe
from safety.store.firstcontact import GITLINK, Adopted, Signature, adopt, held_directories, put_entries, read_index
from safety.store.gitdir import GitDirectories, GitFileCache, git_directories, git_trees
from safety.store.members import member_place
from safety.store.place import NO_LIMITS, Budget, Limits, Place
from safety.store.privateindex import PrivateIndex, is_indexed
from safety.store.seed import is_complete, seed
from safety.store.snapshot import Editor, IndexImage, IndexOdd, Snapshot, changed_indexes, changes
from safety.store.trees import parse_tree
from safety.types import ABSENT, STIRRED, NotCovered, ObjectId, PathState, Present, Unknown

PROGRESS_STEP = 256
RETRIED = ("call-budget", "changed-while-reading", "unreadable", "deadline", "too-large", "special-file", "ignored-large")


def everything(place: Place, before: ObjectId | None, limits: Limits | None = None) -> Draft:
    """A draft that knows the whole workspace anew."""
    try:
        return Scan(place, before, limits or place.limits).run()
    except GitError:
        index = PrivateIndex(place)
        if not index.file.exists():
            raise
        index.forget()  # it was damaged, or something else is wrong, which shows again now
        return Scan(place, before, limits or place.limits).run()


def after_apply(place: Place, before: ObjectId | None, touched: Iterable[bytes], members: Iterable[bytes]) -> Draft:
    """A draft after an undo: the touched paths looked at anew and, where git state was set, every git directory; no scan of the rest.

    ``members`` are repositories whose git state was set, which the last scan may not have seen.
    """
    scan = Scan(place, before, NO_LIMITS)
    touched = sorted(set(touched))
    with Tree(place.root) as tree:
        for path in touched:
            state = observe(tree, place.odb, path, None).state
            if is_git_path(path) and isinstance(state, Present) and state.kind == "file":
                continue  # git directories' files are captured below, in their own form
            if state != scan.snapshot.state(path):
                scan.editor.put(path, state, scan.snapshot.area(path) or "work")
                put_folders(tree, place, scan.snapshot, scan.editor, path)
    members = [
        *members,
        *(path[: path.index(b".git")].rstrip(b"/") for path in touched if is_git_path(path) and not path.startswith(b"/")),
    ]
    cache = (
        scan.put_git(_members(place, DirectoryCache.load(scan.directories_file), members), place.now_ns()) if members else None
    )
    draft = scan.draft(scan.editor.finish())
    if cache is not None:
        draft.settle = lambda: scan.keep_git(cache, draft.tree)
    return draft


def _members(place: Place, cache: DirectoryCache, more: Iterable[bytes]) -> list[Member]:
    """Members that exist now: those the last scan saw, and those that an undo may have brought back."""
    names = {name for name, seen in cache.directories.items() if seen.has_git} | {b"", *more}
    roots = ((name, place.absolute(name)) for name in sorted(names))
    return [Member(name, open_repository(root)) for name, root in roots if os.path.lexists(root + b"/.git")]


class Scan:
    """One look at everything."""

    def __init__(self, place: Place, before: ObjectId | None, limits: Limits) -> None:
        self.place, self.before, self.limits = place, before, limits
        self._start_from(before)
        self.budget = Budget(limits)
        self.not_covered: list[NotCovered] = []
        self.index = PrivateIndex(place)
        self.directories_file = place.state / "directories.json"
        self.git_files_file = place.state / "gitfiles.json"
        self.stats: dict[bytes, os.stat_result] = {}
        self.ids: set[bytes] = set()
        self.blobs: set[bytes] = set()
        self._seeded: set[bytes] = set()
        self._adopted: Adopted | None = None
        self._sealed: frozenset[bytes] | set[bytes] = frozenset()
        self._adopted_tree: ObjectId | None = None
        self._known: dict[bytes, dict[bytes, str]] | None = None
        self._settings: dict[bytes, dict[str, str]] = {}

    def _start_from(self, tree: ObjectId | None) -> None:
        self.snapshot = Snapshot(self.place.odb, tree)
        self.editor = Editor(self.place.odb, tree, reader=self.snapshot.reader)

    def run(self) -> Draft:
        began_ns = self.place.now_ns()
        with Tree(self.place.root) as tree:
            if tree.lstat(b"") is None:
                return self._vanished()
            synced = self.index.synced_tree()
            cache = DirectoryCache.load(self.directories_file) if synced is not None else DirectoryCache()
            with collector_paused():
                if synced is None:
                    self._make_index()
                listing = self.index.start_listing()
                with listing:
                    survey = self._survey(tree, cache, began_ns, stat_all=synced is None)
                    listed = listing.wait()
                self._note_git(listed.stderr)
                candidates = survey.candidates | cache.uncovered | self.index.listed(listed)
                candidates.update(path for path, _ in self.snapshot.walk(b"/", ("private",)) if path.startswith(b"/"))
                if synced is not None and synced != self.before:
                    candidates.update(changes(self.place.odb, synced, self.before, ("work", "private")))
                if self._rules_changed(tree, candidates, cache, survey):
                    again = self._survey(tree, cache, began_ns, reclassify=True)
                    again.candidates |= candidates
                    survey, candidates = again, again.candidates
                self._put_files(tree, survey, candidates)
                git_cache = self.put_git(survey.members, began_ns)
                draft = self.draft(self.editor.finish())

        def settle() -> None:
            self._note_git(self.index.update(draft.tree, candidates, self.stats, began_ns))
            survey.cache.uncovered = set(self._looked_at_again(draft.tree, candidates))
            if survey.cache != cache:
                survey.cache.save(self.directories_file)
            self.keep_git(git_cache, draft.tree)

        draft.settle = settle
        return draft

    def _looked_at_again(self, tree: ObjectId, candidates: Iterable[bytes]) -> Iterator[bytes]:
        """Paths that the private index cannot watch: what was not covered for a reason that may pass, and names too long for git."""
        snapshot = Snapshot(self.place.odb, tree)
        for path in candidates:
            state = snapshot.state(path)
            if isinstance(state, Unknown):
                if state.reason in RETRIED:
                    yield path
            elif (
                isinstance(state, Present)
                and state.kind != "dir"
                and not is_indexed(path)
                and not is_git_path(path)
                and not path.startswith(b"/")
            ):
                yield path

    def draft(self, tree: ObjectId) -> Draft:
        """The draft of a finished tree; at first contact nothing counts as changed."""
        odb, before = self.place.odb, self.before
        if tree == before or before is None:
            return Draft(tree, before, [], tree != before, self.not_covered)
        files = changes(odb, before, tree, ("work", "private"))
        git = changes(odb, before, tree, ("git",))
        return Draft(tree, before, sorted({*files, *git}), bool(git or changed_indexes(odb, before, tree)), self.not_covered)

    def _vanished(self) -> Draft:
        """The workspace folder itself is gone: everything in it is absent; git directories outside it are looked at."""
        self.index.forget()
        directories = GitDirectories(self.place.root, self.snapshot, self.editor, self._known_git(), self.place.now_ns())
        outside = [member_place(self.snapshot, self.place.root, member) for member in {b"", *self.snapshot.members()}]
        for place in outside:
            if place is not None and place.common.startswith(b"/"):
                directories.capture_place(place)
        directories.finish([place.common for place in outside if place is not None])
        self.git_files_file.unlink(missing_ok=True)
        folder = self.snapshot.state(b"")
        self.editor.put(b"", ABSENT)
        self.editor.put(b"", folder)  # in a snapshot it is always there, so it keeps its mode: what was in it tells what went
        for member in self.snapshot.members():
            self.editor.remove_index(member)
        return self.draft(self.editor.finish())

    def _note_git(self, said: bytes) -> None:
        """Any line git wrote on standard error is something it could not do."""
        for line in said.splitlines():
            self.not_covered.append(NotCovered(b"", "git-error", 0, line.decode("utf-8", "replace")[:200]))

    def _make_index(self) -> None:
        if self.before is not None:
            self.index.create_from(self.snapshot)
            return
        repository = open_repository(self.place.root)
        adopted = None
        if repository is not None and repository.problem is None and not self._judge(b"", repository).refused:
            self._seed(b"", repository.common_dir)
            adopted = adopt(self.place, repository)
        if adopted is None:
            self.index.create([], None, 0)
            return
        self._known = put_entries(self.editor, adopted.entries)
        tree = self.editor.finish()
        self._start_from(tree)
        self._adopted_tree = next((oid for _, name, oid in parse_tree(self.place.odb.tree(tree)) if name == b"work"), None)
        self._adopted = adopted
        self.index.create(adopted.entries, adopted.raw, adopted.mtime_ns)

    # -- names -------------------------------------------------------------------------------------------------------------------

    def _survey(
        self, tree: Tree, cache: DirectoryCache, now_ns: int, *, stat_all: bool = False, reclassify: bool = False
    ) -> Survey:
        walk = Walk(
            tree,
            self.snapshot,
            cache,
            self._classify,
            self._is_skipped,
            self._own_folders(),
            now_ns,
            judge=self._judge,
            stat_all=stat_all,
            reclassify=reclassify,
            known=self._known,
        )
        return walk.run()

    def _judge(self, path: bytes, repository: Repository | None) -> Member:
        """Git is asked itself where another user owns the repository: what it refuses is not touched by us either."""
        if repository is None or not repository.foreign_owner:
            return Member(path, repository)
        refused = verify(self.place.git, self.place.absolute(path))
        if refused is None:
            return Member(path, repository)
        self.not_covered.append(NotCovered(path + b"/.git" if path else b".git", "refused-by-git", 0, refused))
        return Member(path, None, refused)

    def _own_folders(self) -> frozenset[tuple[int, int]]:
        """The state folder, should it lie inside the workspace."""
        info = os.stat(self.place.home)
        return frozenset({(info.st_dev, info.st_ino)})

    def _is_skipped(self, path: bytes) -> bool:
        text = os.fsdecode(path)
        name = text.rpartition("/")[2]
        for pattern in self.limits.skip_dirs:
            if name.endswith(pattern[1:]) if pattern.startswith("*") else f"/{text}".endswith(f"/{pattern}"):
                return True
        return False

    def _classify(self, member: Member | None, paths: list[bytes]) -> set[bytes]:
        """Which of the names git ignores, by the rules of the repository they lie in (none in a plain folder)."""
        if member is None or member.repository is None:
            return set()
        root = self.place.absolute(member.path)
        if root not in self._settings:
            self._settings[root] = user_config(self.place.git, root)
        excludes = self._settings[root].get("excludes_file")
        rules = IgnoreRules(
            self.place.git,
            self.place.store_dir,
            root,
            member.repository.common_dir + b"/info/exclude",
            os.fsencode(excludes) if excludes else None,
        )
        start = len(member.path) + 1 if member.path else 0
        return {
            path[:start] + inner
            for path in [member.path + b"/" if member.path else b""]
            for inner in rules.ignored([p[start:] for p in paths])
        }

    def _rules_changed(self, tree: Tree, candidates: set[bytes], cache: DirectoryCache, survey: Survey) -> bool:
        """Whether an ignore rule changed since the last scan, so that known names must be judged again."""
        stamps = []
        for member in survey.members:
            if member.repository is not None:
                try:
                    info = os.stat(member.repository.common_dir + b"/info/exclude")
                    stamps.append((info.st_mtime_ns, info.st_size, info.st_ino))
                except OSError:
                    stamps.append((0, 0, 0))
        survey.cache.rules = json.dumps(stamps)
        if not cache.directories:
            return False
        if cache.rules not in ("", survey.cache.rules):
            return True
        changed = (path for path in candidates if path.rpartition(b"/")[2] == b".gitignore")
        return any(
            observe(tree, self.place.odb, path, self.limits.max_file).state != self.snapshot.state(path) for path in changed
        )

    # -- content -----------------------------------------------------------------------------------------------------------------

    def _put_files(self, tree: Tree, survey: Survey, candidates: set[bytes]) -> None:
        self._sealed = survey.sealed
        for path, unknown in survey.uncovered.items():
            if self.snapshot.state(path) != unknown:
                self.editor.put(path, unknown)
            if unknown.reason != "ignored-directory":
                self.not_covered.append(NotCovered(path, unknown.reason))
        self.not_covered += [NotCovered(path, STIRRED) for path in survey.stirred]
        pending = sorted(path for path in candidates if path and path not in survey.uncovered and not is_git_path(path))
        ignored = survey.ignored | self._ignored_among(survey, [path for path in pending if self._is_unjudged(path, survey)])
        for number, path in enumerate(pending):
            if number % PROGRESS_STEP == PROGRESS_STEP - 1:
                self.place.progress("taking a snapshot", number, len(pending))
            self._put_file(tree, path, is_ignored=path in ignored)
        for path, (mode, inode) in survey.modes.items():
            state = self.snapshot.state(path)
            if isinstance(state, Present) and state.kind == "file" and path not in candidates:
                self.editor.put(path, Present("file", mode, state.oid, inode), self.snapshot.area(path) or "work")
        for path, mode in sorted(survey.directories.items()):
            self.editor.put(path, Present("dir", mode, b""), "private" if path in survey.ignored else "work")

    def _is_unjudged(self, path: bytes, survey: Survey) -> bool:
        """A path kept as private: by an ignore rule, or because it was declared before a scan could ask."""
        return path not in survey.ignored and self.snapshot.area(path) == "private" and not path.startswith(b"/")

    def _ignored_among(self, survey: Survey, paths: list[bytes]) -> set[bytes]:
        members = sorted(
            (member for member in survey.members if member.repository is not None), key=lambda member: -len(member.path)
        )
        asked: dict[bytes, list[bytes]] = {}
        for path in paths:
            home = next((member.path for member in members if not member.path or path.startswith(member.path + b"/")), None)
            if home is not None:
                asked.setdefault(home, []).append(path)
        by_path = {member.path: member for member in members}
        return {path for home, names in asked.items() for path in self._classify(by_path[home], names)}

    def _put_file(self, tree: Tree, path: bytes, *, is_ignored: bool) -> None:
        old = self.snapshot.state(path)
        refusal = self.budget.refusal()
        if refusal is not None:
            seen = Observed(self._unread(tree, path, old, refusal))
        else:
            seen = observe(tree, self.place.odb, path, self._limit(old, is_ignored))
        self.budget.spent += seen.read
        state = seen.state
        if isinstance(state, Unknown) and state.reason == "unreadable":
            if any(path.startswith(folder + b"/") for folder in self._sealed):
                return  # its folder was closed, not changed
            state = self._unreadable(tree, path, old)
        if seen.info is not None:
            self.stats[path] = seen.info
        if isinstance(state, Unknown):
            if is_ignored and state.reason == "too-large":
                state = replace(state, reason="ignored-large")
            self.not_covered.append(NotCovered(path, state.reason, state.size))
        elif isinstance(state, Present) and state.kind == "dir":
            return  # its own state is put with the directories that were read
        area = "private" if is_ignored or path.startswith(b"/") else "work"
        if state != old or _inode(state) != _inode(old) or self.snapshot.area(path) not in (None, area):
            self.editor.put(path, state, area)

    def _unreadable(self, tree: Tree, path: bytes, old: PathState) -> PathState:
        """A file whose permission to read was taken away holds what it held, if its size, mtime and inode are as recorded."""
        try:
            info = tree.lstat(path)
        except OSError:
            return Unknown("unreadable")
        if info is None or not isinstance(old, Present) or old.kind != "file" or not self.index.vouches(path, old, info):
            return Unknown("unreadable")
        self.stats[path] = info
        return Present("file", info.st_mode & 0o7777, old.oid)

    def _limit(self, old: PathState, is_ignored: bool) -> int:
        """The size up to which a file is read; what was once taken in by hand stays covered while it does not grow."""
        limit = self.limits.ignored_max if is_ignored else self.limits.max_file
        if isinstance(old, Present) and old.kind == "file":
            limit = max(limit, self.place.odb.size(old.oid))
        return limit

    def _unread(self, tree: Tree, path: bytes, old: PathState, reason: str) -> PathState:
        try:
            info = tree.lstat(path)
        except OSError:
            return Unknown("unreadable")
        if info is None:
            return ABSENT
        if isinstance(old, Unknown) and (old.size, old.mtime_ns) == (info.st_size, info.st_mtime_ns):
            return old
        return Unknown(reason, info.st_size, info.st_mtime_ns)

    # -- git state ---------------------------------------------------------------------------------------------------------------

    def put_git(self, members: list[Member], now_ns: int) -> GitFileCache:
        """Captures the git directories and indexes of the members, with the objects they name; gives the cache to save."""
        self._git_cache = self._known_git()
        directories = GitDirectories(self.place.root, self.snapshot, self.editor, self._git_cache, now_ns)
        places: list[bytes] = []
        indexed: set[bytes] = set()
        for member in members:
            if member.refused:
                continue
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
        self._bring_objects(members)
        return directories.new

    def _known_git(self) -> GitFileCache:
        return GitFileCache.load(self.git_files_file, git_trees(self.place.odb, self.before))

    def keep_git(self, cache: GitFileCache, tree: ObjectId) -> None:
        """Saves what was seen of git directories, once the snapshot that holds it is an operation."""
        cache.trees = git_trees(self.place.odb, tree)
        if cache != self._git_cache:
            cache.save(self.git_files_file)

    def _put_index(self, member: Member, cache: GitFileCache) -> None:
        repository = member.repository
        assert repository is not None
        key = member.path.decode("latin-1")
        found = read_signature(repository.git_dir + b"/index")
        if found is None:
            self.editor.remove_index(member.path)
            cache.indexes.pop(key, None)
            return
        signature = [part.hex() if isinstance(part, bytes) else str(part) for part in found]
        if cache.indexes.get(key) == signature and self.snapshot.index_id(member.path) is not None:
            return
        cache.indexes[key] = signature
        try:
            index = self._put_entries(member.path, repository, found)
        except (IndexUnsupported, IndexOdd, IndexCorrupt):
            with open(repository.git_dir + b"/index", "rb") as file:
                self.editor.put_index(member.path, IndexImage(0, (), None, file.read()))
            self.not_covered.append(
                NotCovered(member.path, "index-as-bytes", 0, "the index is kept as a whole, not entry by entry")
            )
            return
        except OSError as fault:
            self.not_covered.append(NotCovered(member.path, "index-unreadable", 0, str(fault)))
            return
        self._seed(member.path, repository.common_dir)
        held = held_directories(self.place, index, repository)
        exists = self.place.odb.exists
        self.blobs.update(
            entry[3].hex().encode()
            for entry in index.entries
            if entry[0].rpartition(b"/")[0] not in held and entry[2] != GITLINK and not exists(entry[3])
        )

    def _put_entries(self, member: bytes, repository: Repository, signature: Signature) -> IndexFile:
        """The index as it is now, put entry by entry; at first contact it was read and its tree made already."""
        adopted = self._adopted
        if adopted is not None and not member and adopted.signature == signature:
            entries = () if adopted.is_whole else tuple(adopted.index.entries)
            tree = self._adopted_tree if adopted.is_whole else None
            self.editor.put_index(member, IndexImage(adopted.index.version, entries, adopted.index.resolve_undo, tree=tree))
            return adopted.index
        index, _ = read_index(repository.git_dir, self.place.odb)
        self.editor.put_index(member, IndexImage(index.version, tuple(index.entries), index.resolve_undo))
        return index

    def _seed(self, member: bytes, common_dir: bytes) -> None:
        """Takes a repository's objects over, once; a seed that was cut short is tried again at the next capture."""
        objects = common_dir + b"/objects"
        if common_dir in self._seeded or is_complete(self.place.store_dir, objects):
            return
        self._seeded.add(common_dir)
        seed(self.place.git, self.place.odb, objects, root=self.place.absolute(member))
        self.place.odb.refresh()

    def _bring_objects(self, members: list[Member]) -> None:
        """Brings over every object that the captured git state names and the store lacks, then anchors the commits and tags."""
        wanted = self.ids | self.blobs  # blobs are held by the index trees, the others need an anchor
        for member in members:
            repository = member.repository
            if repository is None:
                continue
            if repository.object_format != "sha1":
                self.not_covered.append(
                    NotCovered(member.path, "object-format", 0, f"history objects of a {repository.object_format} repository")
                )
                continue
            if not wanted:
                continue
            self._seed(member.path, repository.common_dir)
            wanted = set(
                bring_over(
                    self.place.git, self.place.odb, self.place.absolute(member.path), repository.common_dir + b"/objects", wanted
                )
            )
        present = self.ids - wanted
        if present:
            anchor(self.place.odb, self.place.chain, present)


def _inode(state: PathState) -> tuple[int, int] | None:
    return state.inode if isinstance(state, Present) else None
