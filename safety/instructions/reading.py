"""One instruction file read with care: regular files only, a bounded number of bytes, text whatever the bytes are ([gate] C3, C6)."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import stat
from dataclasses import dataclass

from safety.policy import screening

MAX_BYTES = 256 * 1024
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Stamp = tuple[int, ...]  # device, inode, size, time of content, time of inode


@dataclass(frozen=True, slots=True)
class Source:
    """A file's content. ``sha`` is the SHA-256 of its raw bytes (of the first 256 kB, where there are more), ``size`` all its bytes.

    ``text`` is fit for a model; ``remarks`` say what was odd or made visible, for the user.
    """

    path: bytes
    realpath: bytes
    stamp: Stamp
    sha: str
    size: int
    text: str
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that is not read, and why, as the end of a sentence."""

    path: bytes
    reason: str


def stamp_of(info: os.stat_result) -> Stamp:
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def read_source(path: bytes, within: bytes, owned: bool) -> Source | Refused:
    """Reads ``path``, which may be a link to something inside ``within`` (a real path).

    ``owned`` asks for a file that only this user or root could have put there, as outside of a repository anybody may be the author.
    """
    realpath = os.path.realpath(path)
    if not inside(realpath, within):
        return Refused(path, "it is a link to a place outside")
    try:
        # Without O_NONBLOCK opening a FIFO waits for its writer, for ever.
        descriptor = os.open(realpath, _FLAGS | os.O_NOFOLLOW)
    except OSError as fault:
        return Refused(path, f"it cannot be read ({os.strerror(fault.errno or 0)})")
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            return Refused(path, "it is no regular file")
        if owned and _anybodys(info, os.path.dirname(realpath)):
            return Refused(path, "others than you may write it")
        data = _read(descriptor)
    except OSError as fault:
        return Refused(path, f"it cannot be read ({os.strerror(fault.errno or 0)})")
    finally:
        os.close(descriptor)
    text, remarks = readable(data, whole=len(data) == info.st_size)
    return Source(path, realpath, stamp_of(info), hashlib.sha256(data).hexdigest(), max(info.st_size, len(data)), text, remarks)


def inside(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")


def _anybodys(info: os.stat_result, folder: bytes) -> bool:
    around = os.stat(folder)
    mine = (os.geteuid(), 0)
    return any(place.st_mode & stat.S_IWOTH or place.st_uid not in mine for place in (info, around))


def _read(descriptor: int) -> bytes:
    data = bytearray()
    while len(data) < MAX_BYTES and (chunk := os.read(descriptor, MAX_BYTES - len(data))):
        data += chunk
    return bytes(data)


def readable(data: bytes, whole: bool = True) -> tuple[str, tuple[str, ...]]:
    """``data`` as text for a model, and remarks on it: no byte order mark, plain line ends, nothing invisible, no role markers.

    ``whole`` False: the data was cut somewhere, perhaps inside a character, of which then nothing is left.
    """
    remarks = []
    data = data.removeprefix(codecs.BOM_UTF8)
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data, whole)
    bad = text.count("\ufffd") - data.count("\ufffd".encode())
    if bad > 0:
        remarks.append(f"{bad} bytes that are no UTF-8 were replaced")
    text = text.replace("\r\n", "\n")
    if found := screening.signs(text):
        remarks.append("holds " + ", ".join(found))
    text, _ = screening.reveal_invisible(text)
    text = _CONTROLS.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)
    text, markers = neutral(text)
    if markers:
        remarks.append(f"{markers} role marker{'' if markers == 1 else 's'} disarmed")
    return text, tuple(remarks)


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
# What hosts and models take for the seam between speakers, and the elements of our own message.
_MARKERS = re.compile(
    r"<(?=/?(?:system|assistant|agent-instructions|instructions|tool_result|function_results)(?:[-_][\w-]+)?[\s>:/])"
    r"|<(?=/?file-[0-9a-f]{8})|<(?=\|[\w ]{1,40}\|>)|<(?=/?<?/?SYS>>)|<(?=/?(?:start|end)_of_turn>)|\[(?=/?INST\])"
    r"|(?<=\n\n)(?=(?:Human|Assistant):)|\A(?=(?:Human|Assistant):)",
    re.IGNORECASE,
)
_DISARMED = {"<": "&lt;", "[": "&#91;", "": "\\"}


def neutral(text: str) -> tuple[str, int]:
    """``text`` with no way to pass for the end of a message or the start of another speaker's, and how often it tried."""
    return _MARKERS.subn(lambda match: _DISARMED[match[0]], text)
