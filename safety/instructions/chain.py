"""Which files govern a folder: one shared file and one local one for each folder from the root down ([gate] C6).

A lookup costs a few `stat` calls a folder, so nothing is kept between two of them but the stamps of what was sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from safety.instructions.loaded import Record
from safety.instructions.reading import Refused, Source, inside, read_source, stamp_of
from safety.policy.screening import LOCAL_INSTRUCTIONS

# Other people's code inside a repository: its rules are for those who work on that code.
VENDORED = frozenset(
    (
        b"node_modules",
        b"bower_components",
        b"site-packages",
        b"dist-packages",
        b"vendor",
        b"third_party",
        b".venv",
        b"venv",
        b".git",
    )
)
_ONLY_A_POINTER = re.compile(r"\s*@?(?:\./)?([\w.-]{1,60}\.md)\s*")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of the chain. Files in it may link to places ``within``; ``owned`` is that of `read_source`."""

    folder: bytes
    within: bytes
    owned: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """A file that governs ``scope``. ``source`` is None where ``known`` was sent and has not changed since, or its file is gone."""

    path: bytes
    scope: bytes
    source: Source | None
    known: Record | None = None


def places(cwd: bytes, root: bytes | None, walk_above_root: bool = False, home: bytes | None = None) -> list[Place]:
    """The folders whose files govern ``cwd``, most general first; all of them real paths.

    Without a root, or outside of it, that is ``cwd`` alone. ``walk_above_root`` goes on up to ``home`` (to ``/`` outside of it).
    """
    if root is None or not inside(cwd, root):
        return [Place(cwd, cwd, owned=home is None or not inside(cwd, home))]
    below = [Place(root, root, owned=False)]
    folder = root
    for name in cwd[len(root) :].split(b"/"):
        if name:
            folder = os.path.join(folder, name)
            below.append(Place(folder, root, owned=False))
    return [*(_above(root, home) if walk_above_root else ()), *below]


def _above(root: bytes, home: bytes | None) -> list[Place]:
    top = home if home and inside(root, home) else b"/"
    found = []
    while root not in (top, b"/"):
        root = os.path.dirname(root)
        found.append(Place(root, root, owned=True))
    return found[::-1]


def is_vendored(place: Place) -> bool:
    return not VENDORED.isdisjoint(place.folder[len(place.within) :].split(b"/"))


def select(
    place: Place,
    names: Sequence[bytes],
    known: Iterable[Record],
    by_agent: Callable[[bytes], bool],
) -> tuple[list[Choice], list[Refused]]:
    """The files of one folder that are in effect, and those that would be but for a reason.

    The first of ``names`` that can be used, and ``AGENTS.local.md``. ``known`` are the records of this folder. A file that the agent
    wrote is as if it were not there; one that it removed stays in effect as it was sent.
    """
    by_path = {record.path: record for record in known}
    chosen: list[Choice] = []
    refused: list[Refused] = []
    for group in (names, (LOCAL_INSTRUCTIONS,)):
        for name in group:
            path = os.path.join(place.folder, name)
            choice = _look(place, path, by_path, by_agent)
            if isinstance(choice, Refused):
                refused.append(choice)
            elif choice is not None:
                chosen.append(choice)
                break
    return chosen, refused


def _look(
    place: Place, path: bytes, known: dict[bytes, Record], by_agent: Callable[[bytes], bool], named_by: bytes = b""
) -> Choice | Refused | None:
    record = known.get(path)
    try:
        info = os.stat(path)
    except OSError:
        if record is not None and by_agent(path):
            return Choice(path, place.folder, None, record)
        return None
    if record is not None and record.stamp == stamp_of(info):
        return Choice(path, place.folder, None, record)
    source = read_source(path, place.within, place.owned)
    if isinstance(source, Refused):
        return source
    if (other := _pointed_at(source)) is not None:
        # `@AGENTS.md`, or what git makes of a link to it where links cannot be made; not followed twice.
        return None if named_by else _look(place, other, known, by_agent, path)
    if record is None and by_agent(path):
        return Refused(path, "the agent wrote it; it counts from your next message on")
    return Choice(path, place.folder, source, record)


def _pointed_at(source: Source) -> bytes | None:
    match = _ONLY_A_POINTER.fullmatch(source.text)
    if match is None:
        return None
    return os.path.join(os.path.dirname(source.path), match[1].encode())
