"""Which paths git would leave out by .gitignore files, the repository's info/exclude and the user's excludes file; asked of git.

``IgnoreRules`` asks in store context, so neither the user's configuration nor a hook has a say; the two files that git would find
through the user's git directory and configuration are handed over as one. ``ignored_paths`` asks the user's repository itself, whose
index counts: what is tracked is not ignored.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

from safety.plumbing.run import Git, GitError

_BOM = b"\xef\xbb\xbf"
_FIELDS = 4  # of one answer: source, line number, pattern, path
_WORD_PATHSPECS = {"GIT_LITERAL_PATHSPECS": "0"}  # check-ignore refuses the other value


def ignored_paths(git: Git, root: bytes, paths: Collection[bytes], *, deadline_s: float = 60) -> set[bytes]:
    """Those of ``paths`` (relative to the work tree ``root``) that git ignores in the user's repository. Raises GitError."""
    if not paths:
        return set()
    done = git.user(
        root,
        ["check-ignore", "-z", "--stdin"],
        input=b"".join(_plain(path) + b"\0" for path in paths),
        ok=(0, 1),
        deadline_s=deadline_s,
        extra_env=_WORD_PATHSPECS,
    )
    return {path.removeprefix(b"./") for path in done.stdout.split(b"\0")[:-1]}


class IgnoreRules:
    """The ignore rules in effect in one work tree.

    ``scan_dir`` is a bare git directory of ours, ``root`` the absolute work tree; ``info_exclude`` and ``excludes_file`` are
    absolute paths of files that may be missing. The two are read once, here; .gitignore files by each call, from the disk.
    """

    def __init__(
        self, git: Git, scan_dir: Path, root: bytes, info_exclude: bytes | None = None, excludes_file: bytes | None = None
    ) -> None:
        self._git = git
        self._scan_dir = scan_dir
        self._root = root
        # Both have the same rank in git and later lines win, so one after the other they mean what they mean apart.
        patterns = b"".join(_patterns(path) for path in (excludes_file, info_exclude))
        self.arguments: tuple[bytes, ...] = ()
        """What a scan of this work tree in store context puts before its git command, so that it follows the same rules."""
        if patterns:
            self.arguments = (b"-c", b"core.excludesFile=" + _kept_file(scan_dir, patterns))

    def ignored(self, paths: Iterable[bytes]) -> set[bytes]:
        """Those of ``paths`` (relative to the root, a directory with a trailing ``/``) that are ignored, tracked or not.

        A path below a symbolic link, or one that leads out of the root, is not in the answer. Raises GitError.
        """
        links = _Links(self._root)
        asked = [path for path in paths if _inside(path) and not links.above(path)]
        found: set[bytes] = set()
        while asked:
            # git stops for good at a path below a link, and a folder may just have become one: go on after it.
            asked = asked[self._ask(asked, found) + 1 :]
        return found

    def _ask(self, paths: list[bytes], found: set[bytes]) -> int:
        """Adds the ignored ones to ``found``; gives how many paths git answered before one that is below a link."""
        if not os.path.isdir(self._root):
            return len(paths)  # it went away while it was looked at: nothing is left to be ignored
        done = self._git.store(
            self._scan_dir,
            [*self.arguments, "check-ignore", "-z", "--stdin", "--no-index", "--verbose", "--non-matching"],
            work_tree=self._root,
            input=b"".join(self._question(path) + b"\0" for path in paths),
            ok=(0, 1, 128),
            extra_env=_WORD_PATHSPECS,
        )
        fields = done.stdout.split(b"\0")
        answered = len(fields) // _FIELDS
        if answered < len(paths) and not _Links(self._root).above(paths[answered]):
            text = f"git check-ignore failed ({done.returncode}) at {os.fsdecode(paths[answered])}"
            raise GitError(text, (b"check-ignore",), done.returncode, done.stderr)
        for path, pattern in zip(paths, fields[2::_FIELDS], strict=False):
            if pattern and not pattern.startswith(b"!"):
                found.add(path)
        return answered

    def _question(self, path: bytes) -> bytes:
        # With a trailing slash git takes `build/*` to match `build/` itself; yet only so does it know a gone folder for one.
        bare = path.rstrip(b"/")
        if bare != path and os.path.lexists(os.path.join(self._root, bare)):
            path = bare
        return _plain(path)


class _Links:
    """Knows which folders of a work tree are symbolic links (or not folders at all); each is looked at once."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._known: dict[bytes, bool] = {b"": False}

    def above(self, path: bytes) -> bool:
        """Whether some folder above ``path`` is a link."""
        folder, _, _ = path.rstrip(b"/").rpartition(b"/")
        known = self._known.get(folder)
        if known is None:
            known = self.above(folder) or _is_link(os.path.join(self._root, folder))
            self._known[folder] = known
        return known


def _plain(path: bytes) -> bytes:
    return b"./" + path if path.startswith(b":") else path  # a colon in front means magic


def _patterns(path: bytes | None) -> bytes:
    if path is None:
        return b""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:  # git, too, passes over an excludes file it cannot read
        return b""
    return data.removeprefix(_BOM).rstrip(b"\n") + b"\n"


def _kept_file(scan_dir: Path, patterns: bytes) -> bytes:
    """The path of a file in ``scan_dir`` with these patterns, named by its content; written only if it is not there."""
    name = f"exclude-{hashlib.sha1(patterns, usedforsecurity=False).hexdigest()}"
    path = os.path.abspath(scan_dir / name)
    if not os.path.exists(path):
        fd, temp = tempfile.mkstemp(prefix="tmp_", dir=scan_dir)
        with open(fd, "wb") as file:
            file.write(patterns)
        os.rename(temp, path)
    return os.fsencode(path)


def _inside(path: bytes) -> bool:
    return bool(path.strip(b"/")) and not path.startswith(b"/") and (b".." not in path or b".." not in path.split(b"/"))


def _is_link(path: bytes) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False
