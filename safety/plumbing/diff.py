"""Differences of two texts as hunks that can be shown, split and applied one by one; on bytes, without git.

Lines end at ``\\n`` only, as in git; the rest of a line, ``\\r`` included, is its content. Every line keeps its end, so a last
line without one differs from the same line with one, and applying all hunks gives the new text to the byte.
"""

from __future__ import annotations

import bisect
import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

# Up to this many line pairs the exact comparison is run; above it a stretch without common unique lines is one change.
_EXACT_PAIRS = 100_000

_Block = tuple[int, int, int, int]  # old start and end, new start and end, counted from 0


@dataclass(frozen=True, slots=True)
class Hunk:
    """A stretch of lines and what it becomes. ``old_start`` and ``new_start`` are indexes from 0.

    ``marks`` has a ``" "``, ``"-"`` or ``"+"`` for each line in the order of a unified diff.
    """

    old_start: int
    old_lines: tuple[bytes, ...]
    new_start: int
    new_lines: tuple[bytes, ...]
    marks: str

    def header(self) -> bytes:
        """The ``@@`` line of a unified diff, without its end."""
        return b"@@ -%s +%s @@" % (_range(self.old_start, self.old_lines), _range(self.new_start, self.new_lines))

    def body(self) -> Iterator[tuple[str, bytes]]:
        """Each line with its mark, as a unified diff shows them."""
        old, new = iter(self.old_lines), iter(self.new_lines)
        for mark in self.marks:
            line = next(new if mark == "+" else old)
            if mark == " ":
                next(new)
            yield mark, line


def is_binary(data: bytes) -> bool:
    """Whether git would call the content binary: a NUL byte among the first 8000."""
    return b"\0" in data[:8000]


def split_lines(data: bytes) -> list[bytes]:
    """The lines with their ends; the last one has none if the text has none."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def hunks(old: bytes, new: bytes, *, context: int = 3) -> list[Hunk]:
    """The changes from ``old`` to ``new``, in order, with up to ``context`` equal lines around; close ones share a hunk."""
    before, after = split_lines(old), split_lines(new)
    groups: list[list[_Block]] = []
    for block in _blocks(before, after):
        if groups and block[0] - groups[-1][-1][1] <= 2 * context and context:
            groups[-1].append(block)
        else:
            groups.append([block])
    return [_hunk(before, after, group, context) for group in groups]


def split_hunk(hunk: Hunk) -> list[Hunk]:
    """The changes of a hunk, each alone and without the equal lines around it."""
    parts: list[Hunk] = []
    old_at = new_at = 0
    marks = hunk.marks + " "
    begin = 0
    while begin < len(hunk.marks):
        if marks[begin] == " ":
            old_at, new_at, begin = old_at + 1, new_at + 1, begin + 1
            continue
        end = marks.index(" ", begin)
        run = marks[begin:end]
        gone, come = run.count("-"), run.count("+")
        parts.append(
            Hunk(
                hunk.old_start + old_at,
                hunk.old_lines[old_at : old_at + gone],
                hunk.new_start + new_at,
                hunk.new_lines[new_at : new_at + come],
                run,
            )
        )
        old_at, new_at, begin = old_at + gone, new_at + come, end
    return parts


def apply(old: bytes, chosen: Iterable[Hunk]) -> bytes:
    """``old`` with the chosen ones of its own hunks carried out.

    Raises ValueError when a hunk does not fit ``old`` or two overlap.
    """
    lines = split_lines(old)
    result: list[bytes] = []
    at = 0
    for hunk in sorted(chosen, key=lambda hunk: hunk.old_start):
        end = hunk.old_start + len(hunk.old_lines)
        if hunk.old_start < at or tuple(lines[hunk.old_start : end]) != hunk.old_lines:
            raise ValueError(f"the hunk at line {hunk.old_start + 1} does not fit")
        result += lines[at : hunk.old_start]
        result += hunk.new_lines
        at = end
    result += lines[at:]
    return b"".join(_ended(result))


def unified(old: bytes, new: bytes, old_label: bytes, new_label: bytes, *, context: int = 3) -> list[bytes]:
    """The lines of a unified diff, without their ends; empty when nothing differs. A line may hold any byte but ``\\n``."""
    if old == new:
        return []
    if is_binary(old) or is_binary(new):
        return [b"Binary files %s and %s differ" % (old_label, new_label)]
    shown = [b"--- " + old_label, b"+++ " + new_label]
    for hunk in hunks(old, new, context=context):
        shown.append(hunk.header())
        for mark, line in hunk.body():
            shown.append(mark.encode() + line.removesuffix(b"\n"))
            if not line.endswith(b"\n"):
                shown.append(b"\\ No newline at end of file")
    return shown


def _hunk(before: Sequence[bytes], after: Sequence[bytes], group: Sequence[_Block], context: int) -> Hunk:
    old_start, new_start = group[0][0], group[0][2]
    lead = min(context, old_start)
    tail = min(context, len(before) - group[-1][1])
    marks = [" " * lead]
    at = old_start
    for old_from, old_to, new_from, new_to in group:
        marks += [" " * (old_from - at), "-" * (old_to - old_from), "+" * (new_to - new_from)]
        at = old_to
    marks.append(" " * tail)
    return Hunk(
        old_start - lead,
        tuple(before[old_start - lead : group[-1][1] + tail]),
        new_start - lead,
        tuple(after[new_start - lead : group[-1][3] + tail]),
        "".join(marks),
    )


def _range(start: int, lines: Sequence[bytes]) -> bytes:
    # As in git: an empty side names the line before it, and a count of one is not written.
    shown = start + 1 if lines else start
    return b"%d" % shown if len(lines) == 1 else b"%d,%d" % (shown, len(lines))


def _ended(lines: Sequence[bytes]) -> Iterator[bytes]:
    # When only some hunks are applied, a line that was the last and had no end can come to stand before others.
    for number, line in enumerate(lines, 1):
        yield line if number == len(lines) or line.endswith(b"\n") else line + b"\n"


def _blocks(before: Sequence[bytes], after: Sequence[bytes]) -> list[_Block]:
    """The changed stretches, in order, none empty on both sides, never two that touch."""
    found: list[_Block] = []
    for block in _compare(before, after):
        if found and found[-1][1] == block[0] and found[-1][3] == block[2]:
            found[-1] = (found[-1][0], block[1], found[-1][2], block[3])
        else:
            found.append(block)
    return found


def _compare(before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[_Block]:
    """The patience way: cut at lines that occur once on each side, and compare exactly what lies between."""
    left = [(0, len(before), 0, len(after))]
    while left:
        old_from, old_to, new_from, new_to = left.pop()
        while old_from < old_to and new_from < new_to and before[old_from] == after[new_from]:
            old_from, new_from = old_from + 1, new_from + 1
        while old_from < old_to and new_from < new_to and before[old_to - 1] == after[new_to - 1]:
            old_to, new_to = old_to - 1, new_to - 1
        if old_from == old_to or new_from == new_to:
            if old_from < old_to or new_from < new_to:
                yield old_from, old_to, new_from, new_to
            continue
        old, new = before[old_from:old_to], after[new_from:new_to]
        if anchors := _anchors(old, new):
            old_ends = [*(old_from + at for at, _ in anchors), old_to]
            new_ends = [*(new_from + at for _, at in anchors), new_to]
            parts = zip([old_from, *old_ends], old_ends, [new_from, *new_ends], new_ends, strict=False)
            left += reversed(list(parts))
        elif len(old) * len(new) > _EXACT_PAIRS:
            yield old_from, old_to, new_from, new_to
        else:
            for tag, *ends in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
                if tag != "equal":
                    yield old_from + ends[0], old_from + ends[1], new_from + ends[2], new_from + ends[3]


def _anchors(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """The longest ascending row of (old, new) positions of lines that occur once on each side."""
    counts = Counter(old)
    in_new = Counter(new)
    places = {line: at for at, line in enumerate(new) if in_new[line] == 1 and counts.get(line) == 1}
    pairs = [(at, places[line]) for at, line in enumerate(old) if line in places]
    tails: list[int] = []  # smallest last position in new of an ascending row of each length
    rows: list[int] = []  # index of the pair that each tail stands for
    before: list[int] = []  # for each pair, the pair before it in its row
    for number, (_, at) in enumerate(pairs):
        length = bisect.bisect_left(tails, at)
        before.append(rows[length - 1] if length else -1)
        tails[length : length + 1] = [at]
        rows[length : length + 1] = [number]
    row: list[tuple[int, int]] = []
    number = rows[-1] if rows else -1
    while number >= 0:
        row.append(pairs[number])
        number = before[number]
    return row[::-1]
