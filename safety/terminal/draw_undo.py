"""Draws undo, redo, restore and recover, and the questions that may come before them."""

from __future__ import annotations

from collections.abc import Iterator

from safety.commands import report as r
from safety.terminal import text as t
from safety.terminal.drawing import Place, View, fold, hint_lines, most_urgent, patch_line, patch_lines, path_rows, title_spans
from safety.terminal.screen import Line, line


def undo(report: r.UndoReport, place: Place) -> Iterator[Line]:
    if report.nothing:
        yield line(_sentence(report.nothing))
        yield from hint_lines(report.hints, place)
        return
    yield from _undo_heads(report, place)
    lines = r.telling(report.lines)
    rows = fold(sorted(lines, key=lambda each: r.VERBS.index(each.verb)))
    hints = _with_way_back(report)
    shown = most_urgent(rows)
    dry = report.dry_run
    calm = not dry and len(rows) <= 3 and all(row.line.verb in ("restored", "removed", "unchanged") for row in rows)
    if rows and not calm:
        yield ()
    yield from path_rows(shown, place, dry)
    if len(rows) > len(shown):
        hidden = sum(row.files for row in rows) - sum(row.files for row in shown)
        where = f": git safety show {report.titles[0].handle}" if report.titles else ""
        yield line(("  ... and ", "dim"), f"{hidden:,} more{where}")
    yield from patch_lines(report.patches)
    total = _total(lines)
    if dry:
        yield from _dry_foot(report, place)
    elif calm and len(hints) == 1 and not hints[0].about:
        hint = hints[0]
        yield line(*([total, ". "] if total else []), f"{t.clean(hint.label)}: ", (place.command(hint), "bold"))
    else:
        if not calm:
            yield ()
        yield line(f"{total}. " if total else "", f"Nothing{' else' if any(map(r.is_done, lines)) else ''} was touched.")
        yield from hint_lines(hints, place)


def _with_way_back(report: r.UndoReport) -> tuple[r.Hint, ...]:
    """The report's hints, and at the end the command that takes this back."""
    if report.dry_run or not report.titles or not any(map(r.is_done, report.lines)):
        return report.hints
    back = {
        "undo": r.Hint("Take this undo back", "git safety redo"),
        "redo": r.Hint("Undo it again", f"git safety undo {report.titles[0].handle}"),
    }.get(report.action)
    return report.hints if back is None or any(each.command == back.command for each in report.hints) else (*report.hints, back)


def _sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    text = t.clean(text)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _undo_heads(report: r.UndoReport, place: Place) -> Iterator[Line]:
    would = {"undo": "Would undo", "redo": "Would redo", "restore": "Would restore", "recover": "Would finish"}
    done = {"undo": "Undid", "redo": "Redid", "restore": "Restored", "recover": "Finished"}
    acts = any(map(r.is_done, report.lines))
    word = (would if report.dry_run else done if acts else r.NOTHING_DONE)[report.action]
    if report.action == "redo" and not report.titles:
        word = "Would take back" if report.dry_run else "Took back" if acts else "Nothing taken back:"
    if report.dry_run and not acts:
        word += " nothing of"
    if report.subject or not report.titles:
        yield line((word, "bold"), f" {t.one_line(report.subject)}")
    for title in report.titles:
        yield line((word, "bold"), " ", *title_spans(title, place.view))
        word = " " * len(word)


def _total(lines: tuple[r.PathLine, ...]) -> str:
    """``5 files restored, 1 removed, 1 kept``; empty when no path is named."""
    parts: list[str] = []
    for verb, number in r.summary(lines).items():
        words = "already as before" if verb == "unchanged" else verb
        folders = [each.folder for each in lines if each.verb == verb]
        noun = "folder" if all(folders) else "path" if any(folders) else "file"
        parts.append(f"{number:,} {words}" if parts else f"{t.count(number, noun)} {words}")
    return ", ".join(parts)


def _dry_foot(report: r.UndoReport, place: Place) -> Iterator[Line]:
    hints = [f"{t.clean(hint.label)}: {place.command(hint)}" for hint in report.hints if not hint.about]
    yield ()
    yield line("Nothing was changed.", *(("    " if at else "  ") + hint for at, hint in enumerate(hints)))
    yield from hint_lines([hint for hint in report.hints if hint.about], place)


def ask(report: r.Ask, place: Place) -> Iterator[Line]:
    if report.plan is not None:
        yield from undo(report.plan, Place(place.view, report.plan.root or place.root))
    yield line(t.clean(report.question))
    yield line("Do it: ", (t.clean(report.command), "bold"))


def choose(report: r.Choose, place: Place) -> Iterator[Line]:
    pieces = t.count(len(report.hunks), "piece")
    yield line(f"There is nobody to choose among {pieces} of ", *title_spans(report.title, place.view))
    if report.command:
        yield line("Do all of it: ", (t.clean(report.command), "bold"))


def hunk(piece: r.Hunk, place_root: bytes, view: View) -> list[Line]:
    """One piece of ``-p``: its header and its lines."""
    place = Place(view, place_root)
    heading = ", ".join(filter(None, [place.path(piece.path) if piece.path else "", t.clean(piece.note)]))
    lines = [line((heading, "bold"))]
    if piece.header:
        lines.append(line((t.one_line(piece.header), "hunk")))
    return lines + [patch_line(each) for each in piece.lines]
