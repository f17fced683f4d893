"""Commands that a user types into an agent's prompt: ``/undo``, ``/commit`` and friends. Carried out here, not by the model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from safety.commands.report import NOTHING_DONE, Ask, LogReport, PathLine, Report, TextReport, UndoReport, is_done, summary
from safety.commit.words import on_one_line
from safety.faults import SafetyError
from safety.session import Session
from safety.tools.spec import in_session

SHOWN_LINES = 20
_WORDS = {"undo": "Undid", "redo": "Redid", "restore": "Restored", "recover": "Finished"}


@dataclass(frozen=True)
class Done:
    """What a command came to: ``notices`` for the user, in ``messages`` the one line that the model should know.

    ``report`` is what they were made of, for a host that tells it in its own words; None where the command failed.
    """

    notices: tuple[str, ...]
    messages: tuple[str, ...] = ()
    report: Report | None = None


def carry_out(session: Session, prompt: str) -> Done | None:
    """Does what the prompt says, if it is a command of ours; else None. A command that failed tells why."""
    words = prompt.split()
    name = words[0][1:] if words and words[0].startswith("/") else ""
    known = session.commands
    if name in _LATER:
        return Done((f"git-safety: /{name} does not exist yet; there are {', '.join('/' + one for one in sorted(known))}",))
    if name not in known:
        return None
    try:
        with in_session(session):
            report = known[name](session, words[1:])
    except SafetyError as error:
        return Done((f"git-safety: {error.sentence}",))
    lines = list(_text(report)) or ["Done."]
    told = isinstance(report, UndoReport) and not report.nothing
    return Done((*report.notices, "\n".join(lines)), (f"git-safety: the user typed /{name}. {lines[0]}",) if told else (), report)


_LATER = frozenset({"restore", "snapshot", "trust", "untrust"})


# -- reports as plain text ---------------------------------------------------------------------------------------------------


def _text(report: Report) -> Iterator[str]:
    """A report in few lines, for a conversation: no colours, no columns. The terminal's drawing is for terminals."""
    if isinstance(report, UndoReport):
        yield from _undo_text(report)
    elif isinstance(report, LogReport):
        yield from _log_text(report)
    elif isinstance(report, TextReport):
        yield from report.lines
    elif isinstance(report, Ask):
        yield f"{report.question} To do it: {report.command}"


def _undo_text(report: UndoReport) -> Iterator[str]:
    if report.nothing:
        yield report.nothing
        return
    done = ", ".join(title.handle for title in report.titles) or report.subject
    counts = ", ".join(f"{number} {verb}" for verb, number in summary(report.lines).items())
    word = (_WORDS if any(map(is_done, report.lines)) else NOTHING_DONE)[report.action]
    yield f"{word} {done}: {counts or 'no file was changed'}."
    yield from path_lines(report)
    yield from (f"{hint.label}: {hint.command}" for hint in report.hints if not hint.paths)


def path_lines(report: UndoReport) -> Iterator[str]:
    """What was done to each path, the first of them."""
    shown = report.lines[:SHOWN_LINES]
    yield from (f"  {line.verb}  {_subject(line)}" for line in shown)
    if len(report.lines) > len(shown):
        yield f"  and {len(report.lines) - len(shown)} more"


def _subject(line: PathLine) -> str:
    return on_one_line(f"{os.fsencode(line.path).decode('utf-8', 'backslashreplace')}  {line.note}".strip())


def _log_text(report: LogReport) -> Iterator[str]:
    if not report.rows:
        yield "Nothing is recorded here yet."
    for row in report.rows:
        title = ": ".join(filter(None, [row.agent, *row.text.splitlines()[:1]]))
        number = row.files or row.shared
        files = f"{number} {'file' if number == 1 else 'files'}" if number else "no change"
        shared = f"shared with {', '.join(row.shared_with)}" if row.shared_with else ""
        yield on_one_line(f"{row.handle}  {', '.join(filter(None, [title, files, shared, row.state]))}")
