"""Names that a user gave to operations. A named operation is never forgotten: its ref keeps it (see ``retention``).

The refs are ``refs/safety/pin/<chain>/<name>``. Several work trees share a store and each has names of its own, so a name never
brings one work tree's files into another.
"""

from __future__ import annotations

import re

from safety.store.oplog import OpLog
from safety.store.storerefs import PIN, delete_refs, refs_below
from safety.types import ObjectId

_ESCAPED = re.compile(r"%([0-9a-f]{2})")


def pins(log: OpLog) -> dict[str, ObjectId]:
    """The names of this workspace and the operations they stand for, sorted."""
    found = {_decoded(ref.rpartition("/")[2]): oid for ref, oid in refs_below(log.store_dir, f"{PIN}{log.chain}/").items()}
    return dict(sorted(found.items()))


def set_pin(log: OpLog, name: str, operation: ObjectId) -> None:
    """Gives an operation the name, which may have stood for another one until now."""
    ref = _ref(log, name)
    log.odb.move_ref(ref, log.odb.ref(ref), operation, durable=True)


def remove_pin(log: OpLog, name: str) -> bool:
    """Takes a name away; False if there was none."""
    if name not in pins(log):
        return False
    delete_refs(log.store_dir, [_ref(log, name)])
    return True


def _ref(log: OpLog, name: str) -> str:
    return f"{PIN}{log.chain}/{_encoded(name)}"


def _encoded(name: str) -> str:
    """The name as one component of a ref: git takes no dot, space or colon everywhere, and a file system may fold case."""
    plain = "abcdefghijklmnopqrstuvwxyz0123456789-_"
    return "".join(chr(byte) if chr(byte) in plain else f"%{byte:02x}" for byte in name.encode("utf-8", "surrogateescape"))


def _decoded(text: str) -> str:
    raw = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    return raw.encode("latin-1").decode("utf-8", "surrogateescape")
