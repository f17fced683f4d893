"""Foreign text made plain: no escape sequences, no control characters, nothing that cannot be seen."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]")
# C0 but tab and line feed, C1, DEL; zero-width, bidirectional controls, line separators, tag characters, halves of surrogates ([gate] C5).
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e01ef]"
)


def plain(data: bytes | str) -> str:
    """The text, each line as a terminal would show it at last: what a carriage return overwrites is left out."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    text = _SEQUENCE.sub("", text)
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _UNSEEN.sub("", "\n".join(lines))


def shown(path: bytes) -> str:
    """A path for people and models, on one line."""
    return plain(path.decode("utf-8", "backslashreplace").replace("\n", "\\n"))
