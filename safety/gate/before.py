"""The work tree as it would be without the turn, in a folder of its own, to see whether a check failed there already.

Everything git would list is copied as it is now, the user's unfinished work too, and the agent's files are put back to what they were. So
what a check says there is not the agent's doing. The user's own files are only read. Best effort: a tree that is too large is not made, and
then no failure counts as an older one.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from safety.gate.results import Checked
from safety.plumbing.run import Git

MAX_FILES = 5_000
MAX_BYTES = 256 << 20
# Installed tools that a check may need; linked, for they are large and no check writes to them.
TOOL_FOLDERS = (b".venv", b"venv", b"node_modules")


@contextmanager
def tree_before(git: Git, checked: Checked) -> Iterator[bytes | None]:
    """Gives the folder, or None if it would be too large. It is removed after the block."""
    names = _listed(git, checked.root)
    if len(names) > MAX_FILES:
        yield None
        return
    folder = os.fsencode(tempfile.mkdtemp(prefix="safety-gate-"))
    try:
        yield folder if _fill(git, checked, names, folder) else None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def files_before(checked: Checked) -> tuple[bytes, ...]:
    """The files to be checked there: those that there were."""
    return tuple(path for path in (*checked.files, *checked.deleted) if checked.before(path) is not None)


def _listed(git: Git, root: bytes) -> list[bytes]:
    listed = git.user(root, ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).stdout
    return sorted({name for name in listed.split(b"\0") if name})


def _fill(git: Git, checked: Checked, names: list[bytes], folder: bytes) -> bool:
    agents = {*checked.files, *checked.deleted}
    left = MAX_BYTES
    for name in names:
        if name not in agents:
            left -= _copy(os.path.join(checked.root, name), os.path.join(folder, name))
            if left < 0:
                return False
    for name in agents:
        content = checked.before(name)
        if content is not None:
            _write(os.path.join(folder, name), content, os.path.join(checked.root, name))
    for name in TOOL_FOLDERS:
        if os.path.isdir(os.path.join(checked.root, name)) and not os.path.lexists(os.path.join(folder, name)):
            os.symlink(os.path.join(checked.root, name), os.path.join(folder, name))
    git.user(folder, ["init", "-q", "--template="])
    return True


def _copy(source: bytes, target: bytes) -> int:
    """Copies a file or a link and gives its size; what is neither, or gone, is passed over."""
    try:
        info = os.lstat(source)
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
            return 0
        if info.st_size > MAX_BYTES:
            return info.st_size
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
        return info.st_size
    except OSError:
        return 0


def _write(target: bytes, content: bytes, like: bytes) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as file:
        file.write(content)
    if os.path.isfile(like):
        shutil.copymode(like, target)
