"""What objects refer to: ids in their two spellings, and the walk over everything below some ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from safety.plumbing.odb import ObjectCorrupt, ObjectMissing
from safety.store.trees import GITLINK, parse_tree
from safety.types import ObjectId


def raw_id(oid: bytes) -> ObjectId:
    """The 20 bytes of an id that may be written in hexadecimal."""
    return oid if len(oid) == 20 else bytes.fromhex(oid.decode("ascii"))


def hex_id(oid: ObjectId) -> bytes:
    return oid.hex().encode("ascii")


@dataclass
class Closure:
    """Objects to carry over, each after all that it refers to, and those that no one has.

    ``bytes`` is the sum of their sizes, ``biggest`` the largest one's. Not ``complete``: the walk was given up at its limit.
    """

    order: list[tuple[ObjectId, str]] = field(default_factory=list)
    missing: set[ObjectId] = field(default_factory=set)
    bytes: int = 0
    biggest: int = 0
    complete: bool = True


def closure(
    read: Callable[[ObjectId], tuple[str, bytes]],
    header: Callable[[ObjectId], tuple[str, int]],
    has: Callable[[ObjectId], bool],
    ids: Iterable[ObjectId],
    *,
    cut: frozenset[ObjectId] = frozenset(),
    refused: frozenset[ObjectId] = frozenset(),
    limit: int | None = None,
    through: bool = False,
) -> Closure:
    """All that ``ids`` refer to, themselves included, which the receiver does not have; stops where it has an object.

    ``cut`` are commits whose parents do not count (a shallow clone's end), ``refused`` are never carried. With ``through`` the
    walk goes on below what the receiver has (without listing it), because presence there does not imply closure.
    """
    found = Closure()
    carried = 0
    seen: set[ObjectId] = set()
    stack: list[tuple[ObjectId, str | None]] = [(oid, None) for oid in reversed(list(ids))]
    while stack:
        oid, kind = stack.pop()
        if kind is not None:  # second visit: everything below is in the list
            found.order.append((oid, kind))
            continue
        if oid in seen:
            continue
        seen.add(oid)
        present = has(oid)
        if present and not through:
            continue
        if oid in refused:
            found.missing.add(oid)
            continue
        try:
            kind, size = header(oid)
            below = [] if kind == "blob" else _references(kind, read(oid)[1], oid in cut)
        except (ObjectMissing, ObjectCorrupt):
            if not present:
                found.missing.add(oid)
            continue
        carried += not present or through
        if limit is not None and carried > limit:
            found.complete = False
            return found
        if not present:
            found.bytes += size
            found.biggest = max(found.biggest, size)
            stack.append((oid, kind))
        stack += [(other, None) for other in below if other not in seen]
    return found


def _references(kind: str, data: bytes, cut: bool) -> list[ObjectId]:
    """Ids an object names, in the order they are to be visited last to first. Gitlinks name nothing of this repository."""
    if kind == "tree":
        return [oid for mode, _, oid in parse_tree(data) if mode != GITLINK]
    wanted = (b"object",) if kind == "tag" else (b"tree",) if cut else (b"tree", b"parent")
    found = []
    for line in data.split(b"\n\n", 1)[0].split(b"\n"):
        word, _, value = line.partition(b" ")
        if word in wanted and len(value) == 40:
            found.append(bytes.fromhex(value.decode("ascii")))
    return found
