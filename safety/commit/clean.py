"""What git would store for a file's raw bytes: line ends, ident, filters and encodings as the repository asks for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence

from safety.commit.objects import Objects
from safety.commit.values import LINK, Entry, Side
from safety.plumbing.attributes import Conversion, converted_paths
from safety.plumbing.run import Git, GitError

_ATTRIBUTES = b".gitattributes"

Content = tuple[bytes, Side]


def clean_contents(
    git: Git, root: bytes, objects: Objects, tree: str, indexed: Collection[bytes], contents: Iterable[Content]
) -> dict[Content, bytes | None]:
    """For each (path, side) the bytes that ``git add`` would store; None where a filter of the repository failed.

    ``tree`` is HEAD's: line ends of a file that has CRLF there are left alone. ``indexed`` are the paths of the index.
    """
    wanted = dict.fromkeys(contents)
    conversions = _conversions(git, root, {path for path, _ in wanted}, indexed)
    slow = [content for content in wanted if _is_converted(content[1], conversions.get(content[0]))]
    cleaned: dict[Content, bytes | None] = {content: content[1].data for content in wanted}
    if slow:
        cleaned.update(_by_git(git, root, objects, tree, slow))
    return cleaned


def _conversions(git: Git, root: bytes, paths: Collection[bytes], indexed: Collection[bytes]) -> dict[bytes, Conversion]:
    files = {folder + _ATTRIBUTES for path in paths for folder in folders_above(path)}
    asked = any(name in indexed or os.path.lexists(os.path.join(root, name)) for name in files)
    return converted_paths(git, root, paths, attribute_files=asked)


def _is_converted(side: Side, conversion: Conversion | None) -> bool:
    """Whether these bytes may be stored as others."""
    if conversion is None or side.mode == LINK:
        return False
    # All but a filter or an encoding only turn CRLF into LF and collapse $Id$ ([gate] B5: never raw bytes where git has others).
    return conversion == "always" or b"\r\n" in side.data or b"$Id" in side.data


def _by_git(git: Git, root: bytes, objects: Objects, tree: str, contents: Sequence[Content]) -> dict[Content, bytes | None]:
    """The same by ``update-index`` in a work tree and an index made for it: ``hash-object`` would not look at what HEAD has.

    That other work tree holds the contents one after the other, and the repository's attribute files.
    """
    cleaned: dict[Content, bytes | None] = {}
    paths = {path for path, _ in contents}
    attributes = {folder + _ATTRIBUTES for path in paths for folder in folders_above(path)}
    with tempfile.TemporaryDirectory(prefix="git-safety-") as place:
        there = os.path.join(os.fsencode(place), b"tree")
        os.mkdir(there)
        env = {"GIT_INDEX_FILE": os.path.join(place, "index"), "GIT_WORK_TREE": os.fsdecode(there)}
        heads = {path: objects.entry(tree, path) for path in paths | attributes}
        git.user(root, ["update-index", "-z", "--index-info"], input=index_info(heads), extra_env=env)
        for path in attributes:
            _copy(os.path.join(root, path), os.path.join(there, path))
        for batch in _rounds(contents):
            for path, side in batch:
                _write(os.path.join(there, path), side.data)
            try:
                oids = _add(git, root, [path for path, _ in batch], env)
            except GitError:
                oids = {path: oid for path, _ in batch for oid in (_add_one(git, root, path, env),) if oid}
            for path, side in batch:
                cleaned[path, side] = objects.blob(oids[path]) if path in oids else None
    return cleaned


def _rounds(contents: Sequence[Content]) -> list[list[Content]]:
    """The contents in lists that have each path once."""
    rounds: list[list[Content]] = []
    seen: dict[bytes, int] = {}
    for content in contents:
        number = seen[content[0]] = seen.get(content[0], -1) + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(content)
    return rounds


def _add(git: Git, root: bytes, paths: Sequence[bytes], env: Mapping[str, str]) -> dict[bytes, str]:
    fed = b"".join(path + b"\0" for path in paths)
    git.user(root, ["update-index", "--add", "-z", "--stdin"], input=fed, extra_env=env)
    listed = git.user(root, ["ls-files", "-s", "-z"], extra_env=env).stdout.split(b"\0")[:-1]
    return {path: head.split()[1].decode() for head, _, path in (line.partition(b"\t") for line in listed)}


def _add_one(git: Git, root: bytes, path: bytes, env: Mapping[str, str]) -> str:
    try:
        return _add(git, root, [path], env)[path]
    except GitError:
        return ""


def _copy(source: bytes, target: bytes) -> None:
    """A small regular file's bytes, if there is one."""
    if os.path.isfile(source) and not os.path.islink(source):
        with open(source, "rb") as file:
            _write(target, file.read())


def _write(path: bytes, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    # A new file each time: git would take one of the same size and second for unchanged.
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "xb") as file:
        file.write(data)


def folders_above(path: bytes) -> list[bytes]:
    """The folders a path is in, each with its slash, the top (``b""``) first."""
    return [b"", *(path[: at + 1] for at, byte in enumerate(path) if byte == 0x2F)]


def index_info(entries: Mapping[bytes, Entry | None]) -> bytes:
    """The input of ``update-index -z --index-info``, removals first so that a folder can follow a file."""
    gone = [b"0 %s\t%s\0" % (b"0" * 40, path) for path, entry in entries.items() if entry is None]
    set_to = [b"%o %s\t%s\0" % (entry.mode, entry.oid.encode(), path) for path, entry in entries.items() if entry is not None]
    return b"".join(gone + set_to)
