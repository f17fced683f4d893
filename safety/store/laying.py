"""Whole git directories: laid back after ``rm -rf .git``, repaired after a part was lost, taken away when the agent made them."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from safety.plumbing.index import IndexEntry, IndexFile, serialize_index
from safety.plumbing.reading import read_if_there
from safety.plumbing.refs import NULL_HEX, view_on_disk
from safety.store.anchors import send_back
from safety.store.journal import Job, Outcome
from safety.store.members import MemberPlace, absolute_path, member_place
from safety.store.place import Place
from safety.store.snapshot import Snapshot
from safety.types import Present


class Layer:
    """Lays git directories back for one job."""

    def __init__(self, place: Place, job: Job, outcome: Outcome) -> None:
        self.place, self.job, self.outcome = place, job, outcome

    def lay_back(self, member: MemberPlace) -> None:
        """`rm -rf .git`: everything beside the old place first, then one rename (redteam C8)."""
        top = absolute_path(self.place.root, member.top)
        beside = top + b".safety-" + self.job.id.encode()
        if os.path.lexists(top):
            self.outcome.kept.append("a new .git is there now; the old one stays in the snapshot")
            return
        snapshot = Snapshot(self.place.odb, self.job.theirs)
        shutil.rmtree(beside, ignore_errors=True)
        os.makedirs(beside)
        modes: list[tuple[bytes, int]] = []
        for path, state in snapshot.walk(member.top, ("git",)):
            if not isinstance(state, Present):
                continue
            goal = beside + path[len(member.top) :]
            if state.kind == "dir":
                os.makedirs(goal, exist_ok=True)
                modes.append((goal, state.mode))
                continue
            os.makedirs(os.path.dirname(goal), exist_ok=True)
            if state.kind == "link":
                os.symlink(snapshot.read(path), goal)
                continue
            with open(goal, "wb") as file:
                file.write(snapshot.read(path))
            os.chmod(goal, state.mode)
        for root in _git_directories(beside):
            self._objects_back(root, root)
        if member.top != member.common:
            self._objects_back(beside, absolute_path(self.place.root, member.common))
        self._indexes_back(member, beside, snapshot)
        for goal, mode in reversed(modes):
            os.chmod(goal, mode)
        os.makedirs(os.path.dirname(top), exist_ok=True)
        os.rename(beside, top)
        self.outcome.notes.append(f"{os.fsdecode(member.top)} laid back")

    def repair(self, member: MemberPlace) -> None:
        """A git directory that lost a part git cannot do without: its files are back by now, objects and indexes follow."""
        common = absolute_path(self.place.root, member.common)
        snapshot = Snapshot(self.place.odb, self.job.theirs)
        for root in _git_directories(common):
            self._objects_back(root, root)
        self._indexes_back(member, common, snapshot)
        self.outcome.notes.append(f"{os.fsdecode(member.common)} repaired")

    def _objects_back(self, git_dir: bytes, common: bytes) -> None:
        """What the files of a git directory name, into the common directory's objects."""
        for name in (b"objects/info", b"objects/pack", b"refs"):
            os.makedirs(common + b"/" + name, exist_ok=True)
        seen = view_on_disk(git_dir, git_dir)
        ids = {*seen.refs.values(), *(entry.oid for entry in seen.stash)}
        for name in _log_files(git_dir):
            ids |= {word for line in (read_if_there(name) or b"").splitlines() for word in line[:81].split()}
        for content in seen.in_progress.values():
            ids |= {word for word in content.split() if len(word) == 40}
        if not seen.head.startswith(b"ref:"):
            ids.add(seen.head)
        known = {oid for oid in ids if len(oid) == 40 and oid != NULL_HEX and self._known(oid)}
        if known:
            self._send(common, known)

    def _send(self, git_dir: bytes, ids: set[bytes]) -> None:
        send_back(self.place.git, self.place.odb, self.place.store_dir, git_dir, ids, laid_beside=Path(os.fsdecode(git_dir)))

    def _known(self, oid: bytes) -> bool:
        try:
            return self.place.odb.exists(bytes.fromhex(oid.decode()))
        except (ValueError, UnicodeDecodeError):
            return False

    def _indexes_back(self, member: MemberPlace, beside: bytes, snapshot: Snapshot) -> None:
        """The index of the member itself and of every submodule whose git directory lies inside the one laid back."""
        for path in snapshot.members():
            image = snapshot.index(path)
            found = member_place(snapshot, self.place.root, path)
            if image is None or found is None or not (found.own + b"/").startswith(member.top + b"/"):
                continue
            own = found.own
            goal = beside + own[len(member.top) :]
            if not os.path.isdir(goal):
                continue
            if image.raw is not None:
                data = image.raw
            else:
                entries = [IndexEntry(e.path, e.stage, e.mode, e.oid, e.flags) for e in image.entries]
                data = serialize_index(IndexFile(image.version, entries, image.reuc))
                blobs = {e.oid.hex().encode() for e in entries if e.mode != 0o160000 and self._known(e.oid.hex().encode())}
                if blobs:
                    is_inside = found.common == member.top or found.common.startswith(member.top + b"/")
                    common = beside + found.common[len(member.top) :]
                    self._send(common if is_inside else absolute_path(self.place.root, found.common), blobs)
            if not os.path.lexists(goal + b"/index"):
                with open(goal + b"/index", "xb") as file:
                    file.write(data)

    def take_away(self, member: MemberPlace) -> None:
        """The agent made this repository and nobody used it since: gone by one rename, then removed."""
        common = absolute_path(self.place.root, member.top)
        aside = common + b".safety-" + self.job.id.encode()
        try:
            os.rename(common, aside)
        except FileNotFoundError:
            return
        shutil.rmtree(aside, ignore_errors=True)
        self.outcome.notes.append(f"{os.fsdecode(member.top)} removed")


def _git_directories(top: bytes) -> list[bytes]:
    """Git directories that have objects of their own, at or below ``top`` (submodules')."""
    found = []
    for folder, folders, files in os.walk(top):
        if b"HEAD" in files and (b"objects" in folders or b"refs" in folders) and b"commondir" not in files:
            found.append(folder)
        folders[:] = [name for name in folders if name not in (b"logs", b"objects", b"refs", b"hooks")]
    return found


def _log_files(git_dir: bytes) -> list[bytes]:
    """The logs of a git directory and of its linked work trees, not those of submodules below it."""
    tops = [git_dir + b"/logs"]
    with contextlib.suppress(OSError):
        tops += [git_dir + b"/worktrees/" + name + b"/logs" for name in os.listdir(git_dir + b"/worktrees")]
    return [folder + b"/" + name for top in tops for folder, _, files in os.walk(top) for name in files]
