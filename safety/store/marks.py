"""What a git tree cannot say about the entries of one directory: the ``%meta`` blob, exceptions only, one record a line, sorted::

    m 640 name          permission bits of a file (octal), when not the usual ones of its directory; of a link, when not 777
    d 700               this directory's own permission bits, when not 755
    e                   this directory exists, and nothing else in the snapshot says so
    i 64769 1234 name   device and inode of a file with several names
    u reason 12 34 name a path that is not covered, its size and mtime in nanoseconds
    a name/below        below this directory, which is itself not covered: a path that was looked at and did not exist

The usual bits of a file are its directory's, without the executable ones for a file that is not executable: 0644 and 0755 in a
directory with 0755, 0664 and 0775 where the umask is 002. So a workspace made under any one umask has no ``m`` record, and a
change of one file's bits never touches more than one line. Names are encoded ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from safety.store.names import decode, encode
from safety.store.trees import EXECUTABLE, LINK
from safety.types import Unknown

META = b"%meta"
PLAIN_DIRECTORY = 0o755


@dataclass(slots=True)
class Mark:
    """One directory's exceptions. ``absent`` holds encoded paths relative to the directory."""

    mode: int = PLAIN_DIRECTORY
    empty: bool = False
    modes: dict[bytes, int] = field(default_factory=dict)
    inodes: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    unknown: dict[bytes, Unknown] = field(default_factory=dict)
    absent: set[bytes] = field(default_factory=set)

    def copy(self) -> Mark:
        """One that can be changed without changing this."""
        return replace(
            self, modes=dict(self.modes), inodes=dict(self.inodes), unknown=dict(self.unknown), absent=set(self.absent)
        )

    def file_mode(self, name: bytes, git_mode: int) -> int:
        """The permission bits of an entry of this directory."""
        mode = self.modes.get(name)
        return usual_mode(self.mode, git_mode) if mode is None else mode


NO_MARK = Mark()


def usual_mode(directory: int, git_mode: int) -> int:
    """The permission bits a file has unless a record says otherwise. Text kept in chunks (a tree) counts as not executable."""
    if git_mode == LINK:
        return 0o777
    if git_mode == EXECUTABLE:
        return 0o700 | directory & 0o077
    return 0o600 | directory & 0o066


def serialize_mark(mark: Mark) -> bytes:
    """The ``%meta`` blob; empty when there is nothing to say."""
    lines = [b"m %o %b" % (mode, name) for name, mode in mark.modes.items()]
    lines += [b"i %d %d %b" % (*inode, name) for name, inode in mark.inodes.items()]
    lines += [
        b"u %b %d %d %b" % (_word(unknown.reason), unknown.size, unknown.mtime_ns, name) for name, unknown in mark.unknown.items()
    ]
    lines += [b"a " + path for path in mark.absent]
    if mark.mode != PLAIN_DIRECTORY:
        lines.append(b"d %o" % mark.mode)
    if mark.empty:
        lines.append(b"e")
    return b"".join([line + b"\n" for line in sorted(lines)])


def parse_mark(data: bytes) -> Mark:
    """The mark that ``serialize_mark`` made the blob from."""
    mark = Mark()
    for line in data.split(b"\n")[:-1]:
        kind, _, rest = line.partition(b" ")
        if kind == b"m":
            mode, name = rest.split(b" ", 1)
            mark.modes[name] = int(mode, 8)
        elif kind == b"i":
            device, inode, name = rest.split(b" ", 2)
            mark.inodes[name] = int(device), int(inode)
        elif kind == b"u":
            reason, size, mtime_ns, name = rest.split(b" ", 3)
            mark.unknown[name] = Unknown(decode(reason).decode(), int(size), int(mtime_ns))
        elif kind == b"a":
            mark.absent.add(rest)
        elif kind == b"d":
            mark.mode = int(rest, 8)
        elif kind == b"e":
            mark.empty = True
    return mark


def _word(reason: str) -> bytes:
    return encode(reason.encode()).replace(b" ", b"%20")
