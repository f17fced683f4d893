"""Foreign text made fit for a terminal, and numbers made fit for people. Pure; knows no colours and no widths of windows."""

from __future__ import annotations

import os
import re
import shlex
import time
import unicodedata

# Drawn as nothing, or able to change how their neighbours are drawn, although Unicode counts them as letters or marks:
# Hangul and Khmer fillers, the blank Braille cell, Mongolian vowel separators, and the variation selectors that smuggle bytes.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_SIMPLE = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\e"}
# Everything that `_hidden` could be true of lies outside this set, so plain text costs one regular expression.
_SUSPECT = re.compile(r"[^ -~\u00a1-\u00ac\u00ae-\u02ff]")


def _hidden(char: str) -> bool:
    return (
        char in _INVISIBLE
        or unicodedata.category(char) in _HIDDEN_CATEGORIES
        or "\U000e0000" <= char <= "\U000e0fff"  # tag characters and what Unicode keeps free beside them
    )


def _escape(char: str) -> str:
    code = ord(char)
    if char in _SIMPLE:
        return _SIMPLE[char]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clean(text: str | bytes, keep: str = "") -> str:
    """``text`` with every character that a terminal would obey, hide or reorder by as a visible escape: C0, C1, bidirectional
    controls, zero-width and tag characters, bytes that are no UTF-8.

    ``keep`` names the control characters that may stay (``"\\n\\t"`` for blocks of text).
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return _SUSPECT.sub(lambda found: _escape(found[0]) if found[0] not in keep and _hidden(found[0]) else found[0], text)


def one_line(text: str | bytes, width: int = 0) -> str:
    """The first line that says something, cleaned, and cut to ``width`` columns (0: not cut)."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    lines = [line.strip() for line in text.splitlines()]
    first = next((line for line in lines if line), "")
    return shorten(clean(first), width) if width else clean(first)


def columns(text: str) -> int:
    """How many columns a terminal gives ``text`` (already cleaned)."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.category(char) in ("Mn", "Me") for char in text)


def pad(text: str, width: int, right: bool = False) -> str:
    """``text`` filled with spaces to ``width`` columns; longer text stays as it is."""
    gap = " " * max(0, width - columns(text))
    return gap + text if right else text + gap


def shorten(text: str, width: int) -> str:
    """``text`` cut at its end to at most ``width`` columns, with ``...`` for what is gone."""
    if columns(text) <= width:
        return text
    kept = ""
    for char in text:
        if columns(kept + char) > max(0, width - 3):
            break
        kept += char
    return kept.rstrip() + "..."


_PATH_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def quote_path(path: bytes) -> str:
    """``path`` as git prints it with ``core.quotePath=false``: as it is, or in double quotes with C escapes and octal bytes.

    More is escaped than git does: whatever `clean` would make visible.
    """
    text = path.decode("utf-8", "surrogateescape")
    if '"' not in text and "\\" not in text and clean(text) == text:
        return text
    return '"' + "".join(_quoted(char) for char in text) + '"'


def _quoted(char: str) -> str:
    code = ord(char)
    if code in _PATH_ESCAPES:
        return _PATH_ESCAPES[code]
    if _hidden(char):
        return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))
    return char


def shell_path(path: bytes) -> str:
    """``path`` as one word that can be pasted into a shell; odd bytes in the ``$'...'`` form of bash, zsh and ksh."""
    text = path.decode("utf-8", "surrogateescape")
    if clean(text) == text:
        return shlex.quote(text)
    return "$'" + "".join("\\'" if char == "'" else _quoted(char) for char in text).replace('\\"', '"') + "'"


def relative(path: bytes, root: bytes, cwd: bytes) -> bytes:
    """``path`` (relative to ``root``, or absolute) as seen from ``cwd``. Outside of ``root`` it stays absolute."""
    if os.path.isabs(path) or not root:
        return path
    if cwd == root:
        return path
    if not (cwd + b"/").startswith(root.rstrip(b"/") + b"/"):
        return os.path.join(root, path)
    return os.path.relpath(os.path.join(root, path), cwd)


def home_short(path: bytes, home: bytes) -> str:
    """``path`` with the home folder as ``~``, quoted."""
    if home and home != b"/" and (path == home or path.startswith(home.rstrip(b"/") + b"/")):
        return "~" + quote_path(path[len(home.rstrip(b"/")) :])
    return quote_path(path)


def count(number: int, noun: str) -> str:
    """``1 file``, ``2,000 files``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """Bytes for people: ``512 bytes``, ``1.4 KiB``, ``184 MiB``, ``2 GiB``."""
    if number < 1024:
        return count(number, "byte")
    value, units = number / 1024, ["TiB", "GiB", "MiB", "KiB"]
    while value >= 1023.5 and len(units) > 1:
        value /= 1024
        units.pop()
    unit = units[-1]
    return f"{value:.1f}".removesuffix(".0") + f" {unit}" if value < 9.95 else f"{value:.0f} {unit}"


def age(when_ms: int, now_ms: int, seconds: bool = False) -> str:
    """``just now``, ``2 min``, ``3 h``, ``2 d``, then the date: ``30 Oct``, ``30 Oct 2025``.

    ``seconds`` gives ``3 s`` under a minute. A time in the future (a clock was set back) counts as now.
    """
    gone = max(0, (now_ms - when_ms) // 1000)
    if gone < 60:
        return f"{gone} s" if seconds else "just now"
    if gone < 3600:
        return f"{gone // 60} min"
    if gone < 86400:
        return f"{gone // 3600} h"
    if gone < 7 * 86400:
        return f"{gone // 86400} d"
    return date(when_ms, now_ms)


def ago(when_ms: int, now_ms: int, seconds: bool = False) -> str:
    """`age` inside a sentence: ``just now``, ``2 min ago``, ``on 30 Oct``."""
    text = age(when_ms, now_ms, seconds)
    if text == "just now":
        return text
    return f"{text} ago" if now_ms - when_ms < 7 * 86400_000 else f"on {text}"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def date(when_ms: int, now_ms: int) -> str:
    """``30 Oct``; with the year when it is not this one. In the local time zone."""
    then, now = time.localtime(when_ms / 1000), time.localtime(now_ms / 1000)
    day = f"{then.tm_mday} {_MONTHS[then.tm_mon - 1]}"
    return day if then.tm_year == now.tm_year else f"{day} {then.tm_year}"


def duration(ms: int) -> str:
    """``4 ms``, ``1.2 s``, ``3 min 5 s``."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000} min {ms // 1000 % 60} s"


_AGO = re.compile(r"(\d+)\s*(s|m|h|d|w|(?:sec|min|second|minute|hour|day|week)s?)(?:\s+ago)?")
_SPAN_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}  # by the first letter
_CLOCKS = ("%H:%M", "%H:%M:%S")
_DATES = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")


def moment(text: str, now_ms: int) -> int | None:
    """A point in time as typed: ``10m``, ``1 minute ago``, ``14:30`` (the last one), ``yesterday``, ``2026-11-30 14:30``; else None.

    In the local time zone, unless an ISO form names another. A day alone means its first second.
    """
    text = text.strip()
    if found := _AGO.fullmatch(text):
        return now_ms - int(found[1]) * _SPAN_S[found[2][0]] * 1000
    today = time.localtime(now_ms / 1000)
    if text in ("today", "yesterday"):
        return _local_ms((today.tm_year, today.tm_mon, today.tm_mday - (text == "yesterday"), 0, 0, 0))
    for form in _CLOCKS:
        if clock := _parsed(text, form):
            at = (today.tm_year, today.tm_mon, today.tm_mday, clock.tm_hour, clock.tm_min, clock.tm_sec)
            return _local_ms(at) if _local_ms(at) <= now_ms else _local_ms((*at[:2], at[2] - 1, *at[3:]))
    for form in _DATES:
        if day := _parsed(text, form):
            return _local_ms(day[:6])
    return _iso_ms(text)


def _parsed(text: str, form: str) -> time.struct_time | None:
    try:
        return time.strptime(text, form)
    except ValueError:
        return None


def _local_ms(fields: tuple[int, ...]) -> int:
    return int(time.mktime((*fields[:6], 0, 0, -1))) * 1000  # type: ignore[arg-type]


def _iso_ms(text: str) -> int | None:
    from datetime import datetime

    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(parsed.timestamp() * 1000) if parsed.tzinfo else None
