"""Whose doing a line of a check's output speaks of.

==============================================  ===========================================
the line names                                  tag
==============================================  ===========================================
a file of the agent's, and it said so before    older
a file of the agent's, and did not say so then  yours
the same, not run before: a line of the agent's yours
the same: a line that was there                 older
another file of the work tree                   elsewhere
no file                                         none
==============================================  ===========================================

Numbers do not count when two lines are compared: what stands above may have moved them.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence

from safety.gate.results import Checked, Line, Tag

# path:12, path:12:5, path(12,5), "path", line 12, and a bare path
_PLACES = (
    re.compile(r'"(?P<path>[^"]+)", line (?P<line>\d+)'),
    re.compile(r"(?P<path>[^\s:()\[\]'\"`<>,]+)(?::|\()(?P<line>\d+)"),
    re.compile(r"[\[<'\"`](?P<path>[^\[\]<>'\"`]+)[\]>'\"`](?::(?P<line>\d+))?"),
    re.compile(r"(?P<path>[^\s:()\[\]'\"`<>,]+)()"),
)
_UNDER_A_NAME = re.compile(r"\s+(?P<line>\d+)(?::\d+)?\s")  # as eslint does: the file on a line of its own, then its places
_NUMBER = re.compile(r"\d+")


def without_root(text: str, root: bytes) -> str:
    """The text with the work tree's absolute path taken off the names in it."""
    for form in {os.fsdecode(root), os.path.realpath(os.fsdecode(root))}:
        text = text.replace(form.rstrip("/") + "/", "")
    return text


def key(line: str) -> str:
    """What two lines are compared by."""
    return _NUMBER.sub("0", line).strip()


def tagged(said: Sequence[str], checked: Checked, before: Sequence[str] | None) -> tuple[Line, ...]:
    """Each line with its tag. ``before`` is what the check said of the state before the turn, None if it was not run on that."""
    then = None if before is None else Counter(key(line) for line in before)
    files = frozenset(checked.files)
    lines = []
    heading: bytes | None = None
    for text in said:
        place = _place(text, files, checked.root)
        under = _UNDER_A_NAME.match(text)
        if place is None and heading is not None and under:
            place = (heading, int(under["line"]))
        elif place is not None:
            heading = place[0] if place[1] is None else None
        lines.append(Line(text, _tag(text, place, files, checked, then)))
    return tuple(lines)


def same_as_before(said: Sequence[Line], before: Sequence[str]) -> bool:
    """Whether a check complains of nothing that it did not complain of before the turn.

    Where no line names a file only the very same words will do: a count could stand for anything.
    """
    if not any(line.tag for line in said):
        return [line.text for line in said] == list(before)
    return not Counter(key(line.text) for line in said) - Counter(key(line) for line in before)


def _place(text: str, files: frozenset[bytes], root: bytes) -> tuple[bytes, int | None] | None:
    """The file that a line names, one of the agent's before any other, and the line number with it."""
    elsewhere = None
    for pattern in _PLACES:
        for found in pattern.finditer(text):
            path = os.fsencode(found["path"]).removeprefix(b"./")
            number = found.groupdict().get("line")
            if path in files:
                return path, int(number) if number else None
            if elsewhere is None and b"\0" not in path and (number or b"/" in path) and _is_file(root, path):
                elsewhere = path, None
    return elsewhere


def _is_file(root: bytes, path: bytes) -> bool:
    try:
        return not path.startswith((b"/", b"..")) and os.path.isfile(os.path.join(root, path))
    except ValueError:
        return False


def _tag(
    text: str, place: tuple[bytes, int | None] | None, files: frozenset[bytes], checked: Checked, then: Counter[str] | None
) -> Tag:
    if place is None:
        return ""
    path, number = place
    if path not in files:
        return "elsewhere"
    if then is not None:
        if then[key(text)] > 0:
            then[key(text)] -= 1
            return "older"
        return "yours"
    own = checked.lines.get(path)
    return "yours" if own is None or number is None or number in own else "older"
