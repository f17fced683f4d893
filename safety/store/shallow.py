"""The store's ``shallow`` file: commits whose parents git is to take for absent. It has two authors.

``forget`` names the oldest operation it keeps of each chain. The seed and the anchors take over what the users' repositories
say in their own ``shallow`` files, because a shallow clone's history ends there. Each author's share is noted beside the file
(``shallow.d/``), so that neither forgets the other's; git, pygit2 and ``OpLog`` read the one file that holds both.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from safety.store.packs import write_whole
from safety.types import ObjectId

CUTS = "cuts"


def parse_ids(data: bytes) -> frozenset[ObjectId]:
    """The ids in a ``shallow`` file or any list of one id a line; lines that are no id are left out."""
    lines = (line.strip() for line in data.splitlines())
    return frozenset(bytes.fromhex(line.decode()) for line in lines if len(line) == 40 and not line.strip(b"0123456789abcdef"))


def read_ids(path: str | bytes | Path) -> frozenset[ObjectId]:
    """The ids in such a file, none if there is no file."""
    try:
        with open(path, "rb") as file:
            return parse_ids(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


def source_of(objects_dir: bytes) -> str:
    """The name under which a user's repository notes its share."""
    return "user-" + hashlib.sha1(objects_dir).hexdigest()


def share(git_dir: Path, author: str) -> frozenset[ObjectId]:
    """What one author last said."""
    return read_ids(git_dir / "shallow.d" / author)


def set_share(git_dir: Path, author: str, ids: Iterable[ObjectId], *, durable: bool = True) -> None:
    """Replaces one author's share, then the file that holds all of them."""
    folder = git_dir / "shallow.d"
    folder.mkdir(mode=0o700, exist_ok=True)
    wanted = frozenset(ids)
    if wanted != share(git_dir, author):
        write_whole(folder / author, format_ids(wanted), durable=durable)
    united: frozenset[ObjectId] = frozenset().union(*(read_ids(folder / name) for name in os.listdir(folder) if "." not in name))
    if united != read_ids(git_dir / "shallow"):
        write_whole(git_dir / "shallow", format_ids(united), durable=durable)


def is_news(git_dir: Path, author: str, said: frozenset[ObjectId]) -> bool:
    """Whether a user's repository says something else than when ``remember`` was called."""
    return said != read_ids(git_dir / "shallow.d" / f"{author}.seen")


def remember(git_dir: Path, author: str, said: frozenset[ObjectId]) -> None:
    """Notes what a user's repository says, which may differ from its share: the store may have the history beyond an end."""
    write_whole(git_dir / "shallow.d" / f"{author}.seen", format_ids(said), durable=False)


def format_ids(ids: Iterable[ObjectId]) -> bytes:
    """What ``parse_ids`` reads."""
    return b"".join(oid.hex().encode() + b"\n" for oid in sorted(ids))
