"""Draws log, show and diff."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from safety.commands import report as r
from safety.terminal import text as t
from safety.terminal.drawing import NAME_WIDTH, Place, Row, View, hint_lines, patch_lines, path_rows, signs, title_spans
from safety.terminal.screen import Line, Span, line


def log(report: r.LogReport, place: Place) -> Iterator[Line]:
    if not report.rows:
        yield line(t.clean(report.note) or "Nothing is recorded here yet.")
        return
    for workspace, group in groupby(report.rows, key=lambda row: row.workspace):
        if workspace:
            yield line((t.home_short(workspace, place.view.home), "bold"))
        yield from _log_rows(list(group), place)
    if report.more:
        yield line((f"... and {report.more:,} older", "dim"))
    if report.note:
        yield line(t.clean(report.note))


def _log_rows(rows: Sequence[r.LogRow], place: Place) -> Iterator[Line]:
    detailed = any(row.calls_detail for row in rows)
    cells = [_log_cells(row, place.view, detailed) for row in rows]
    # The last column is free; the second from the left, the text, gives way when the window is narrow.
    widths = [max(t.columns(cell[at]) for cell in cells) for at in range(8)]
    used = sum(width + 2 for at, width in enumerate(widths) if at != 4 and width) + max(t.columns(cell[8]) for cell in cells)
    room = max(16, place.view.width - used - 2) if place.view.width else 60
    widths[4] = min(widths[4], room)
    for row, cell in zip(rows, cells, strict=True):
        spans: list[str | Span] = []
        for at, width in enumerate(widths):
            if width:
                text = t.shorten(cell[at], width) if at == 4 else cell[at]
                spans.append((t.pad(text, width) + "  ", _log_style(at, row)))
        yield line(*spans, (cell[8], "warn" if row.not_covered or row.state == "running" else "dim"))
        yield from _log_detail(row, place)


def _log_style(column: int, row: r.LogRow) -> str:
    if column == 1:
        return "name"
    return "dim" if column == 2 or row.state == "undone" else ""


def _log_cells(row: r.LogRow, view: View, ids: bool) -> tuple[str, ...]:
    turn = row.handle.startswith("t") and row.handle[1:2].isdigit()
    state = [row.state, f"commit {row.commit}" if row.commit else "", f"pause {row.pause_s} s" if row.pause_s else ""]
    with_whom = f"shared with {', '.join(row.shared_with)}" if row.shared_with else ""
    state += [f"{row.shared:,} {with_whom}" if row.files and row.shared else with_whom]
    state += [f"{row.not_covered:,} not covered" if row.not_covered else "", f"pinned {row.pin}" if row.pin else ""]
    changed = signs(row.added, row.deleted) if row.files else ""
    return (
        "@" if row.current else "o" if turn else "|",
        t.clean(row.handle) if turn or ids or row.pin else "",
        t.age(row.when_ms, view.now_ms),
        t.one_line(row.agent, NAME_WIDTH),
        t.one_line(row.text),
        t.count(row.calls, "call") if row.calls and not row.command else "",
        _changed(row),
        changed,
        ", ".join(t.clean(each) for each in state if each),
    )


def _changed(row: r.LogRow) -> str:
    """``2 files, .git removed``; a commit that stands at the row's end is word enough for what it did to git."""
    git = "" if row.git == "git" and row.commit and row.files else row.git
    files = row.files or row.shared
    return ", ".join(filter(None, (t.count(files, "file") if files else "", git))) or ("git" if row.shared_with else "no change")


def _log_detail(row: r.LogRow, place: Place) -> Iterator[Line]:
    for call in row.calls_detail:
        yield from _call(call, place, "     ")
    yield from _change_lines(row.changes, place, "       ")
    yield from path_rows([Row(each) for each in row.uncovered], place, dry=False)
    yield from patch_lines(row.patches)


def _call(call: r.CallRow, place: Place, indent: str, output: bool = False) -> Iterator[Line]:
    facts = [t.one_line(call.status) if call.status != "done" else ""]
    facts.append(t.duration(call.duration_ms) if call.duration_ms is not None else "")
    if call.changes:
        facts.append(t.count(len(call.changes), "file"))
    said = ", ".join(fact for fact in facts if fact)
    name = t.pad(f"{t.clean(call.handle)}  {t.one_line(call.tool, NAME_WIDTH)}", 14)
    yield line(indent, (name, "name"), "  ", t.one_line(call.text, 100), (f"  ({said})" if said else "", "dim"))
    if output:
        for each in t.clean(call.output, keep="\n\t").splitlines()[:5]:
            yield line(indent, ("    " + each, "dim"))


_CHANGE = {"added": "A", "modified": "M", "deleted": "D", "renamed": "R", "mode": "m", "type": "T"}


def _change_lines(changes: Sequence[r.ChangeLine], place: Place, indent: str) -> Iterator[Line]:
    names = [_changed_name(each, place) for each in changes]
    width = min(max((t.columns(name) for name in names), default=0), 60)
    for each, name in zip(changes, names, strict=True):
        counts = signs(each.added, each.deleted)
        if each.added is None and each.deleted is None and each.change not in ("mode", "type"):
            counts = "binary"
        note = ", ".join(filter(None, [counts, t.clean(each.note)]))
        style = {"added": "add", "deleted": "del"}.get(each.change, "")
        yield line(indent, (_CHANGE[each.change], style), " ", f"{t.pad(name, width)}  {note}" if note else name)


def _changed_name(change: r.ChangeLine, place: Place) -> str:
    return f"{place.path(change.old_path)} -> {place.path(change.path)}" if change.old_path else place.path(change.path)


def show(report: r.ShowReport, place: Place) -> Iterator[Line]:
    state = f"  ({t.one_line(report.state)})" if report.state else ""
    yield line(*title_spans(report.title, place.view), (state, "warn"))
    if report.title.session:
        yield line(("session  ", "dim"), t.one_line(report.title.session))
    if report.calls:
        yield ()
        for call in report.calls:
            yield from _call(call, place, "  ", output=True)
    yield from _block("Changed", _change_lines(report.changes, place, "  "))
    yield from _block("Git", (line("  ", t.clean(note)) for note in report.git_notes))
    meanwhile = [
        *_change_lines(report.unattributed, place, "  "),
        *(line("  ", t.clean(note)) for note in report.git_unattributed),
    ]
    yield from _block("Changed meanwhile, not taken for the agent's", meanwhile)
    yield from _block("Not covered", (_uncovered(each, place) for each in report.not_covered))
    if not (report.changes or report.git_notes or meanwhile):
        yield ()
        yield line("Nothing changed.")
    yield from _block("", patch_lines(report.patches))
    yield from _block("", hint_lines(report.hints, place))


def _uncovered(each: r.PathLine, place: Place) -> Line:
    return line("  ", place.path(each.path, each.folder), f"  {t.clean(each.note)}" if each.note else "")


def _block(heading: str, lines: Iterable[Line]) -> Iterator[Line]:
    body = list(lines)
    if body:
        yield ()
        if heading:
            yield line((heading, "bold"))
        yield from body


def diff(report: r.DiffReport, place: Place) -> Iterator[Line]:
    if report.stat or not report.patches:
        yield from _change_lines(report.changes, place, " ")
        if report.changes:
            total = signs(sum(each.added or 0 for each in report.changes), sum(each.deleted or 0 for each in report.changes))
            yield line(f" {t.count(len(report.changes), 'file')} changed", f", {total}" if total else "")
        return
    yield from patch_lines(report.patches)
