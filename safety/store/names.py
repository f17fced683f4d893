"""The codec between names on disk and names in our trees, so that any name can be stored and git finds nothing odd in the store.

Percent escapes (two upper-case hex digits), always for ``%``, ``\\`` and the line feed, and for the first byte of a name that
git, HFS+ or NTFS could take for ``.``, ``..``, ``.git`` or one of the files git interprets (``.gitmodules``,
``.gitattributes``, ``.gitignore``, ``.mailmap``): ``git fsck --strict`` and a receiving server reject trees or blobs with odd
ones. All other names are stored as they are, so our trees mostly are the user's own trees and cost nothing.

An encoded name never starts with ``%`` and a lower-case letter; names of that form are ours. Source: git's path.c and utf8.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

OUTSIDE = b"%outside"  # the directory that stands for "/"

# Nothing of this in a path: every component is stored as it is. Must match whenever _encode_odd changes something.
_PERHAPS_ODD = re.compile(rb"[%\\\n\0~]|(?:\A|/)[./]|/\Z|\xe2[\x80\x81]|\xef\xbb\xbf")

_ALWAYS = re.compile(rb"[%\\\n]")
_ESCAPE = re.compile(rb"%([0-9A-F]{2})")

# HFS+ ignores these code points in a name: U+200C-F, U+202A-E, U+206A-F, U+FEFF.
_IGNORABLE = re.compile(rb"\xe2\x80[\x8c-\x8f\xaa-\xae]|\xe2\x81[\xaa-\xaf]|\xef\xbb\xbf")

# Wider than git's rules where that makes the pattern simpler: it costs an escape, no more. git takes a malformed byte for the
# end of the name, NTFS drops trailing dots and spaces and reads ":" as a stream; short names are "git~1", "gitmod~1",
# "gi7eba~1", "~1000000".
_SPECIAL = re.compile(
    rb"""
      \.{1,2} \Z
    | \.(?: git | gitmodules | gitattributes | gitignore | mailmap ) (?: [ .]* (?: : | \Z ) | [\x80-\xff] )
    | (?: [gm] [a-z0-9]{0,5} )? ~ [0-9]
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def encode(name: bytes) -> bytes:
    """The name a file called ``name`` has in our trees. Raises ValueError for what no file can be called."""
    return name if name and b"/" not in name and not _PERHAPS_ODD.search(name) else _encode_odd(name)


def encode_all(names: Iterable[bytes]) -> list[bytes]:
    """Each name encoded, in the order given; much faster than one by one."""
    names = list(names)
    joined = b"/".join(names)
    if joined and joined.count(b"/") == len(names) - 1 and not _PERHAPS_ODD.search(joined):
        return names
    return [encode(name) for name in names]


def decode(name: bytes) -> bytes:
    """The file name that ``encode`` made ``name`` from."""
    return _ESCAPE.sub(_unescaped, name) if b"%" in name else name


def components(path: bytes) -> list[bytes]:
    """The encoded components of a path, none for the workspace root; an absolute path's stand below ``OUTSIDE``.

    Raises ValueError for an empty component (``a//b``, ``a/``) and for a NUL.
    """
    if not path:
        return []
    if not _PERHAPS_ODD.search(path):
        return path.split(b"/")
    if path[:1] == b"/":
        return [OUTSIDE, *(_encode_odd(name) for name in path[1:].split(b"/"))] if path != b"/" else [OUTSIDE]
    return [_encode_odd(name) for name in path.split(b"/")]


def join(directory: bytes, name: bytes) -> bytes:
    """The path of what is called ``name`` in our tree of ``directory`` (a path; the name is encoded)."""
    if name == OUTSIDE and not directory:
        return b"/"
    plain = decode(name)
    return directory + plain if not directory or directory == b"/" else directory + b"/" + plain


def encode_path(path: bytes) -> bytes:
    """A path with its components encoded."""
    return b"/".join(components(path))


def decode_path(path: bytes) -> bytes:
    """The path that ``encode_path`` made ``path`` from."""
    head, slash, rest = path.partition(b"/")
    if head == OUTSIDE:
        return b"/" + decode_path(rest)
    return decode(head) + slash + b"/".join(map(decode, rest.split(b"/")))


def _encode_odd(name: bytes) -> bytes:
    if not name or b"/" in name or b"\0" in name:
        raise ValueError(f"no file can be called {name!r}")
    name = _ALWAYS.sub(_escaped, name)
    if _SPECIAL.match(_IGNORABLE.sub(b"", name)):
        return b"%%%02X" % name[0] + name[1:]
    return name


def _escaped(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]


def _unescaped(match: re.Match[bytes]) -> bytes:
    return bytes((int(match[1], 16),))
