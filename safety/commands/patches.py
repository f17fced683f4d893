"""Changes as patches in git's form: ``git apply`` takes what is made here, and what it cannot take is told by name."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Sequence

from safety.commands.changes import Change, Contents, change_note, with_renames
from safety.commands.report import FilePatch
from safety.plumbing.diff import hunks, is_binary
from safety.plumbing.odb import hash_object
from safety.store.restore import Step
from safety.types import Absent, PathState, Present, Unknown

NULL = b"0" * 40
SHORT = 7
# Text beyond this is not compared line by line; it is shown, and exported, as binary content is.
MOST_COMPARED = 8 << 20
_ESCAPES = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}


def patches(contents: Contents, changes: Sequence[Change]) -> tuple[FilePatch, ...]:
    """One patch a path, to be read: binary content is one remark, and so is what no snapshot holds. Folders have none."""
    return tuple(file_patch(contents, change) for change in changes if not change.is_folder)


def is_portable(change: Change) -> bool:
    """Whether ``git apply`` could carry the change out: both sides are known, and git allows the path and keeps what differs."""
    if change.is_folder or isinstance(change.old, Unknown) or isinstance(change.new, Unknown) or _is_beyond_git(change):
        return False
    return not change.path.startswith(b"/") and b".git" not in [part.lower() for part in change.path.split(b"/")]


def _is_beyond_git(change: Change) -> bool:
    """Whether only permission bits differ that git does not keep."""
    old, new = change.old, change.new
    return (
        isinstance(old, Present)
        and isinstance(new, Present)
        and (old.kind, old.oid, _mode(old)) == (new.kind, new.oid, _mode(new))
        and not change.old_path
    )


def file_patch(contents: Contents, change: Change, *, binary: bool = False) -> FilePatch:
    """The patch of one path; with ``binary`` such content goes in as git's binary patch, which can be applied."""
    old, new = change.old, change.new
    if isinstance(old, Unknown) or isinstance(new, Unknown):
        return _remark(change, b"The content is not covered, so there is nothing to compare")
    if _is_beyond_git(change):
        return _remark(change, change_note(change).encode())
    if isinstance(old, Present) and isinstance(new, Present) and old.kind != new.kind:
        halves = [Change(change.path, old, Absent()), Change(change.path, Absent(), new)]
        made = [file_patch(contents, half, binary=binary) for half in halves if not half.is_folder]
        return FilePatch(change.path, b"".join(half.patch for half in made), any(half.binary for half in made))
    before, after = contents.read(old), contents.read(new)
    is_odd = is_binary(before) or is_binary(after) or max(len(before), len(after)) > MOST_COMPARED
    lines = [*_head(change, before, after, full=binary and is_odd)]
    if before != after or isinstance(old, Absent) or isinstance(new, Absent):
        old_name, new_name = _names(change)
        sides = (b"/dev/null" if isinstance(old, Absent) else old_name, b"/dev/null" if isinstance(new, Absent) else new_name)
        if not is_odd:
            lines += _text(before, after, *sides)
        elif binary:
            lines += [b"GIT binary patch", *_literal(after), *_literal(before)]
        else:
            lines.append(b"Binary files %s and %s differ" % sides)
    return FilePatch(change.path, b"\n".join(lines) + b"\n", is_odd)


def _remark(change: Change, text: bytes) -> FilePatch:
    return FilePatch(change.path, b"diff --git %s %s\n%s\n" % (*_names(change), text), True)


def _names(change: Change) -> tuple[bytes, bytes]:
    return quoted(b"a/" + (change.old_path or change.path).lstrip(b"/")), quoted(b"b/" + change.path.lstrip(b"/"))


def quoted(path: bytes) -> bytes:
    """A path as git writes it into a patch: in double quotes with C escapes where it holds anything but plain ASCII."""
    if all(32 <= byte < 127 and byte not in _ESCAPES for byte in path):
        return path
    return b'"' + b"".join(_ESCAPES.get(byte) or (b"%c" % byte if 32 <= byte < 127 else b"\\%03o" % byte) for byte in path) + b'"'


def _head(change: Change, before: bytes, after: bytes, *, full: bool) -> Iterator[bytes]:
    old, new = change.old, change.new
    yield b"diff --git %s %s" % _names(change)
    if isinstance(old, Absent):
        yield b"new file mode " + _mode(new)
    elif isinstance(new, Absent):
        yield b"deleted file mode " + _mode(old)
    elif _mode(old) != _mode(new):
        yield b"old mode " + _mode(old)
        yield b"new mode " + _mode(new)
    if change.old_path:
        yield b"similarity index 100%"
        yield b"rename from " + quoted(change.old_path)
        yield b"rename to " + quoted(change.path)
    if before != after or isinstance(old, Absent) or isinstance(new, Absent):
        ids = [
            NULL if isinstance(state, Absent) else hash_object("blob", data).hex().encode()
            for state, data in ((old, before), (new, after))
        ]
        same = isinstance(old, Present) and isinstance(new, Present) and _mode(old) == _mode(new)
        yield b"index %s..%s" % tuple(oid if full else oid[:SHORT] for oid in ids) + (b" " + _mode(new) if same else b"")


def _mode(state: PathState) -> bytes:
    if not isinstance(state, Present):
        return b"100644"
    return b"120000" if state.kind == "link" else b"100755" if state.mode & 0o100 else b"100644"


def _text(before: bytes, after: bytes, old_name: bytes, new_name: bytes) -> Iterator[bytes]:
    found = hunks(before, after)
    if not found:
        return
    # A name with a space ends in a tab there, so that no tool takes the rest for a date.
    yield b"--- " + old_name + (b"\t" if b" " in old_name and not old_name.startswith(b'"') else b"")
    yield b"+++ " + new_name + (b"\t" if b" " in new_name and not new_name.startswith(b'"') else b"")
    for hunk in found:
        yield hunk.header()
        for mark, line in hunk.body():
            yield mark.encode() + line.removesuffix(b"\n")
            if not line.endswith(b"\n"):
                yield b"\\ No newline at end of file"


def _literal(data: bytes) -> Iterator[bytes]:
    """One side of git's binary patch: the size, then the deflated bytes in base 85, each line led by their number."""
    yield b"literal %d" % len(data)
    packed = zlib.compress(data, 9)
    for start in range(0, len(packed), 52):
        piece = packed[start : start + 52]
        letter = chr(ord("A") + len(piece) - 1) if len(piece) <= 26 else chr(ord("a") + len(piece) - 27)
        yield letter.encode() + base64.b85encode(piece, pad=True)
    yield b""


def plan_patches(contents: Contents, steps: Iterable[Step]) -> tuple[FilePatch, ...]:
    """What a plan would do to files, as patches (``undo --dry-run --patch``)."""
    return patches(contents, with_renames([Change(step.path, step.ours, step.target) for step in steps if step.acts]))
