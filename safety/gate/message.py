"""What the model and the user are told. The first line holds the whole verdict: several clients show no more ([ux] 2.7).

No sentence asks for a commit. What cannot be the model's doing is one line that says so ([gate] A5 11).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from safety.gate.plain import plain, shown
from safety.gate.results import CheckFailure, GateResult, Line

MAX_CHECK_CHARS, MAX_CHECK_LINES = 2000, 40
_LONGEST_LINE = 300
_TAG_COLUMN = 84
_MOST_NAMES = 20
_TAGS = {"yours": "[yours]", "older": "[older, leave it]", "elsewhere": "[not in a file of this turn]", "": ""}
_RANK = {"yours": 0, "": 1, "older": 2, "elsewhere": 3}

_NOT_YOURS = "This is not your fault, do not try to fix it."
_WHY = {
    "tool_missing": "the checks could not run: their tool is not installed",
    "config_error": "the checks could not run: their configuration is not valid",
    "env_failed": "the checks could not be set up",
    "timeout": "the checks did not end in time",
    "cancelled": "the checks were cancelled",
    "internal_error": "the checks could not run",
}


def message_for_model(result: GateResult, attempt: int, max_attempts: int, handle: str, max_chars: int = 6000) -> str:
    """The text for the model, empty when it has nothing to know. Never longer than ``max_chars``."""
    if result.status == "passed_with_fixes":
        return _cut(f"git-safety: the checks passed after changing files.\n{_changed(result)}", max_chars)
    if result.goes_back:
        return _report(result, attempt, max_attempts, handle, max_chars)
    if result.status == "failed" and result.fixed:
        return _cut(f"git-safety: the checks changed files of this turn.\n{_changed(result)}", max_chars)
    if not result.blocks_commit or result.status == "failed":
        return ""
    if result.status == "config_error" and result.config_is_agents:
        first = f"git-safety: {_WHY['config_error']}, nothing was committed. You changed it in this turn:"
        return _cut("\n".join([first, "", *_indented(_folded(plain(result.text).split("\n")))]), max_chars)
    return _cut(f"git-safety: {_why(result)}, nothing was committed. {_NOT_YOURS}", max_chars)


def line_for_user(
    result: GateResult, attempt: int, max_attempts: int, agent_name: str, handle: str = "", sent_back: bool | None = None
) -> str:
    """One line for the user, empty when there is nothing to say. ``sent_back``: whether the model gets another try; by default as long
    as ``attempt`` is within ``max_attempts``."""
    log = f": git safety show {handle} --checks" if handle else ""
    count = _count(result)
    back = attempt <= max_attempts if sent_back is None else sent_back
    if result.goes_back and back:
        return f"git-safety: {count} failed, sent back to {agent_name} ({attempt} of {max_attempts})"
    if result.goes_back:
        tries = attempt - 1
        after = f" after {tries} {'try' if tries == 1 else 'tries'}" if tries else ""
        verb = f"still {_s('fail', result)}" if tries else "failed"
        return f"{_ids(result)} {verb}{after}; nothing committed, files as the agent left them{log}"
    if result.status == "failed":
        return f"git-safety: {count} failed on what was there before this turn{log}"
    if result.status == "passed_with_fixes":
        return f"git-safety: checks passed after changing {_names(result.fixed)}"
    if result.status in ("passed", "nothing_to_check"):
        return f"git-safety: checks passed ({_files(result)})" if result.status == "passed" else ""
    if result.status == "not_configured":
        return f"git-safety: no checks ran: {plain(result.text)}" if result.text else ""
    committed = "nothing committed" if result.blocks_commit else "the others passed"
    detail = _first_line(result.text)
    return f"git-safety: {_why(result)}; {committed}" + (f": {detail}" if detail else "") + log


# ---- the report of a failure -------------------------------------------------------------------------------------------------


def _report(result: GateResult, attempt: int, max_attempts: int, handle: str, max_chars: int) -> str:
    head = (
        f"git-safety: {_count(result)} failed, nothing was committed (try {attempt} of {max_attempts}, {_files(result)} checked)"
    )
    tail = [
        *([_changed(result)] if result.fixed else []),
        *([f"Not run: {_names_text(result.skipped)}"] if result.skipped else []),
        f"Full output: git safety show {handle} --checks",
        _closing(result),
    ]
    end = "\n".join(tail)
    left = max_chars - len(head) - len(end) - 4
    parts = []
    # The ones that count first, so that a long report loses the others.
    for failure in sorted(result.failures, key=lambda failure: failure.older):
        part = "\n".join(_failure(failure))
        if len(part) + 1 > left:
            part = _cut(part, max(left - 1, 0))
        if part:
            parts.append(part)
        left -= len(part) + 1
    return _cut("\n".join([head, "", *parts, "", end]), max_chars)


def _closing(result: GateResult) -> str:
    marked = any(line.tag == "yours" for failure in result.failures for line in failure.lines)
    what = "Fix what is marked [yours]" if marked else "Fix what this turn brought about"
    return f"{what} and end your turn. Leave commits, --no-verify and the check configuration alone."


def _failure(failure: CheckFailure) -> list[str]:
    took = f", {failure.duration_s:.0f} s" if failure.duration_s is not None and failure.duration_s >= 1 else ""
    older = ", as before this turn" if failure.older else ""
    changes = ", keeps changing files" if failure.modified and not failure.exit_code else ""
    code = f"exit {failure.exit_code}" if failure.exit_code else "failed"
    head = f"{plain(failure.id)}, {code}{took}{changes}{older}"
    return [head, *_shortened(_folded([_with_tag(line) for line in _in_order(failure.lines)]))]


def _in_order(lines: Sequence[Line]) -> list[Line]:
    """The agent's first, if each line stands for itself; text that runs over lines keeps its order."""
    if not all(line.tag for line in lines if line.text.strip()):
        return list(lines)
    return sorted(lines, key=lambda line: _RANK[line.tag])


def _with_tag(line: Line) -> str:
    text = "  " + plain(line.text).rstrip()
    if len(text) > _LONGEST_LINE:
        text = text[: _LONGEST_LINE - 3] + "..."
    return f"{text:<{_TAG_COLUMN}} {_TAGS[line.tag]}" if line.tag else text


def _folded(lines: Iterable[str]) -> list[str]:
    """Lines that repeat the one before become a count, and empty ones go."""
    folded = []
    for text, same in groupby(line for line in lines if line.strip()):
        times = len(list(same))
        folded.append(text if times == 1 else f"{text} (x{times})")
    return folded


def _shortened(lines: list[str]) -> list[str]:
    """The first and the last lines, as many as the limits of one check allow."""
    if len(lines) <= MAX_CHECK_LINES and sum(len(line) + 1 for line in lines) <= MAX_CHECK_CHARS:
        return lines
    room, most = MAX_CHECK_CHARS - 30, MAX_CHECK_LINES - 1
    first: list[str] = []
    last: list[str] = []
    rest = list(lines)
    while rest and len(first) + len(last) < most:
        line = rest[0] if len(first) <= 2 * len(last) else rest[-1]
        if len(line) + 1 > room:
            break
        room -= len(line) + 1
        if len(first) <= 2 * len(last):
            first.append(rest.pop(0))
        else:
            last.insert(0, rest.pop())
    return [*first, f"  [{len(rest)} lines left out]", *last]


# ---- parts -------------------------------------------------------------------------------------------------------------------


def _count(result: GateResult) -> str:
    number = len({failure.id for failure in result.failures})
    return f"{number} check" + ("" if number == 1 else "s")


def _files(result: GateResult) -> str:
    return f"{result.files} file{'' if result.files == 1 else 's'} of this turn"


def _ids(result: GateResult) -> str:
    return _names_text(tuple(dict.fromkeys(plain(failure.id) for failure in result.failures if not failure.older)))


def _s(verb: str, result: GateResult) -> str:
    return verb + ("s" if len({failure.id for failure in result.failures if not failure.older}) == 1 else "")


def _changed(result: GateResult) -> str:
    by = {failure.id for failure in result.failures if failure.modified}
    name = f" ({plain(next(iter(by)))})" if len(by) == 1 else ""
    return f"Changed by the checks, read again before editing: {_names(result.fixed)}{name}"


def _names(paths: Sequence[bytes]) -> str:
    return _names_text([shown(path) for path in paths])


def _names_text(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _why(result: GateResult) -> str:
    names = [plain(name).partition(":")[0] for name in result.skipped if name.endswith("could not be set up or started")]
    if result.status == "env_failed" and names:
        return f"these checks could not be set up: {_names_text(names)}"
    return _WHY[result.status]


def _first_line(text: str) -> str:
    return next((line.strip()[:200] for line in plain(text).split("\n") if line.strip()), "")


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}"[:_LONGEST_LINE] for line in lines]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: max(longest - 4, 0)] + "\n..."[:longest]
