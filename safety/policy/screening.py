"""Foreign text on its way to a model: what hides in it is made visible, and where it comes from is written around it ([guard] 5).

Nothing here stops an attacker who words a request like any other sentence. Invisible characters have next to no honest use in such
text, so showing them is nearly free of false alarms; the phrase list marks copied attacks and no others, and is off unless asked for.
What limits an agent that was talked into something is on the side of its actions: the guard, the snapshot, the gate, undo.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# The files that an agent reads as instructions, in the order of rank within one folder ([gate] C6); what a trust decision covers too.
INSTRUCTION_NAMES = (
    b"AGENTS.override.md",
    b"AGENTS.md",
    b"CLAUDE.md",
    b"GEMINI.md",
    b"COPILOT.md",
    b".github/copilot-instructions.md",
    b".cursorrules",
    b".windsurfrules",
)
LOCAL_INSTRUCTIONS = b"AGENTS.local.md"

# [gate] C5. What a character belongs to, and how many of them in one text are more than an accident.
_KINDS: tuple[tuple[str, str, int], ...] = (
    ("tag character", "\U000e0000-\U000e007f", 1),
    ("bidirectional control", "\u202a-\u202e\u2066-\u2069", 1),
    ("variation selector", "\U000e0100-\U000e01ef\ufe00-\ufe0f", 1),
    ("zero-width character", "\u200b-\u200d\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\u180e\u034f\u115f\u1160\u3164\uffa0", 8),
    ("soft hyphen", "\u00ad", 0),
    ("direction mark", "\u061c\u200e\u200f", 0),
    ("private-use character", "\ue000-\uf8ff\U000f0000-\U0010ffff", 0),
)
_TAINT_FROM = {name: least for name, _, least in _KINDS if least}
_RUNS = re.compile("|".join(f"([{characters}]+)" for _, characters, _ in _KINDS))
_FLAGS = tuple(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(char)) for char in code) + "\U000e007f" for code in ("gbeng", "gbsct", "gbwls")
)
_JOINERS = "\u200c\u200d"
_EMOJI_BASE = re.compile("[^\\x00-\\x7f]|[#*0-9]")  # the ASCII ones make keycaps
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def reveal_invisible(text: str) -> tuple[str, dict[str, int]]:
    """``text`` with each run of invisible characters as ``<U+200B>`` or ``<12 tag characters>``, and how many there were of each kind.

    Left as they are: the flags of England, Scotland and Wales, a joiner between two characters that are not ASCII (emoji, Persian,
    Hindi), one variation selector behind a character that has variants, and a byte order mark at the very start.
    """
    counts: dict[str, int] = {}
    if text.isascii():
        return text, counts

    def shown(match: re.Match[str]) -> str:
        name = _KINDS[(match.lastindex or 1) - 1][0]
        run = match[0]
        if _is_honest(text, match.start(), match.end(), run):
            return run
        counts[name] = counts.get(name, 0) + len(run)
        return f"<U+{ord(run):04X}>" if len(run) == 1 else f"<{len(run)} {name}s>"

    return _RUNS.sub(shown, text), counts


def _is_honest(text: str, start: int, end: int, run: str) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    if len(run) > 1:  # a flag is one black flag and the tags of its region
        return any(text.startswith(flag, start - 1) and len(flag) == 1 + len(run) for flag in _FLAGS) if start else False
    if run in _JOINERS:
        base = text[max(start - 2, 0) : start - 1] if before == "\ufe0f" else before
        return all(char and not char.isascii() and not _RUNS.match(char) for char in (base, after))
    if "\ufe00" <= run <= "\ufe0f":
        return bool(_EMOJI_BASE.match(before)) and not _RUNS.match(before)
    if "\U000e0100" <= run <= "\U000e01ef":
        return bool(_HAN.match(before))
    return run == "\ufeff" and start == 0


def taints(counts: Mapping[str, int], phrases: Sequence[Phrase] = ()) -> bool:
    """Whether an output is odd enough that network, exfiltration and self-defence verdicts rise one step for the rest of the turn.

    Soft hyphens, direction marks and private-use characters never are: pages and icon fonts are full of them.
    """
    return bool(phrases) or any(counts.get(name, 0) >= least for name, least in _TAINT_FROM.items())


def hides(counts: Mapping[str, int]) -> bool:
    """Whether there is a character among them that pages and icon fonts are not full of."""
    return any(counts.get(name) for name in _TAINT_FROM)


def summary(counts: Mapping[str, int]) -> str:
    """``3 tag characters, 1 soft hyphen``; empty for nothing."""
    return ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for name, number in counts.items())


def label(text: str, source: str, boundary: str) -> str:
    """``text`` between two lines that say it is material from ``source``. ``boundary`` is random and new for each message.

    The text cannot write the closing line, not knowing the boundary; should it hold the same digits by chance, they are broken up.
    """
    inner = unclosable(text, boundary)
    return f'<output-{boundary} source="{attribute(source)}">\n{inner.rstrip(chr(10))}\n</output-{boundary}>'


def unclosable(text: str, boundary: str) -> str:
    """``text`` without the boundary in it."""
    return text.replace(boundary, boundary[:1] + "_" + boundary[1:]) if boundary else text


def attribute(value: str) -> str:
    """``value`` fit to stand between double quotes on one line."""
    plain = reveal_invisible(value)[0].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return "".join(char if char.isprintable() else f"\\x{ord(char) & 0xFF:02x}" for char in plain)


class Phrase(NamedTuple):
    """A well-known wording of an attack and the line it is on, counted from 1."""

    rule: str
    line: int


_PHRASES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "ignore-instructions",
            r"\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+|the\s+|your\s+|of\s+|my\s+){0,4}(?:\w+\s+)?(?:instructions?|prompts?|rules|directives)\b",
        ),
        ("new-role", r"\byou\s+are\s+now\s+(?:a|an|in|the)\b.{0,60}\b(?:mode|assistant|ai|jailbroken|unrestricted)\b"),
        (
            "role-marker",
            r"<\|(?:im_start|im_end|system|user|assistant|eot_id|start_header_id)\|>|\[/?INST\]|<</?SYS>>|</?system>",
        ),
        (
            "before-the-task",
            r"\bbefore\s+(?:you\s+can\s+)?(?:solv|finish|answer|complet)\w*\s+(?:the|my|this)\s+task\b.{0,120}\b(?:do|first)\b",
        ),
        ("strictly-adhere", r"\bstrictly\s+(?:adhere\s+to|follow)\s+the\s+following\s+instructions?\b"),
        ("hide-from-user", r"\bdo\s+not\s+(?:tell|mention|inform|show|reveal)\b.{0,30}\b(?:the\s+)?user\b"),
        ("reveal-prompt", r"\b(?:reveal|print|repeat|output)\s+(?:your\s+|the\s+)(?:system\s+prompt|hidden\s+instructions?)\b"),
    )
)


def phrases(text: str) -> list[Phrase]:
    """Well-known phrases of copied attacks in ``text``, in order of lines. A tripwire: any other wording gets by."""
    found: list[Phrase] = []
    for number, line in enumerate(text.splitlines(), 1):
        found.extend(Phrase(name, number) for name, pattern in _PHRASES if pattern.search(line))
    return found


_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FETCH_AND_RUN = re.compile(
    r"\b(?:curl|wget)\b[^\n|]{0,300}\|\s*(?:sudo\s+)?(?:ba|z|da|fi)?sh\b|\bbase64\s+(?:-d|-D|--decode)\b", re.IGNORECASE
)
_SENDS_SECRETS = re.compile(
    r"\b(?:curl|wget|nc)\b[^\n]{0,200}(?:\$\{?[A-Z_]*(?:TOKEN|KEY|SECRET|PASSWORD)|\.env\b|\.ssh/|\.aws/)|\bexport\s+\w+=[^\n]{0,80}\$\(",
    re.IGNORECASE,
)


def signs(text: str) -> tuple[str, ...]:
    """What a person should look at before a model is given ``text`` as instructions: hidden characters, HTML comments (which a rendered
    page does not show), commands that fetch and run or send credentials. A report, no verdict ([gate] C5, C6)."""
    _, counts = reveal_invisible(text)
    found = [summary(counts)] if counts else []
    if comments := len(_HTML_COMMENT.findall(text)):
        found.append(f"{comments} HTML comment{'' if comments == 1 else 's'}")
    if _FETCH_AND_RUN.search(text):
        found.append("a command that fetches and runs")
    if _SENDS_SECRETS.search(text):
        found.append("a command that may send credentials")
    return tuple(found)
