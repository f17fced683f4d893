"""Draws status, doctor, find, snapshot and plain text."""

from __future__ import annotations

from collections.abc import Iterator

from safety.commands import report as r
from safety.terminal import text as t
from safety.terminal.drawing import Place, fold, hint_lines, most_urgent, path_rows
from safety.terminal.screen import Line, Span, line


def status(report: r.StatusReport, place: Place) -> Iterator[Line]:
    view = place.view
    where = t.home_short(report.root, view.home) + (f" ({t.one_line(report.branch)})" if report.branch else "")
    heard = [
        f"{t.one_line(agent)} {there}, last heard {t.ago(when, view.now_ms, seconds=True)}"
        for (agent, when), there in zip(report.heard, report.presence, strict=True)
    ]
    if report.protected:
        yield _field("Protected", where + (f"  {'; '.join(heard)}" if heard else ""), "good")
    else:
        yield _field("Not protected", where + (f"  {'; '.join(heard)}" if heard else ""), "warn")
    if report.paused_until_ms:
        yield _field("Paused", f"for another {t.duration(max(0, report.paused_until_ms - view.now_ms))}", "warn")
    if report.recover:
        yield _field("Interrupted", t.clean(report.recover), "bad")
    if report.running:
        facts = [f"{t.clean(report.running.handle)} running", t.count(report.running.calls, "call")]
        nothing = [] if report.undo else ["nothing to undo yet"]
        yield _field("Turn", ", ".join([*facts, f"{t.count(report.running_files, 'file')} so far", *nothing]))
    for name, title in (("Undo", report.undo), ("Redo", report.redo)):
        if title:
            yield _field(name, "".join(text for text, _ in _shorttitle_spans(title)))
    for at, each in enumerate(report.not_covered[:5]):
        yield _field("" if at else "Not covered", f"{place.path(each.path, each.folder)}  {t.clean(each.note)}", "warn")
    if len(report.not_covered) > 5:
        yield _field("", f"... and {len(report.not_covered) - 5:,} more: git safety log --not-covered")
    for at, (name, handle) in enumerate(report.pins):
        yield _field("" if at else "Pinned", f"{t.clean(name)}  {t.clean(handle)}")
    limit = f" of {t.size(report.store_max_bytes)}" if report.store_max_bytes else ""
    since = f" since {t.date(report.since_ms, view.now_ms)}" if report.since_ms else ""
    yield _field("Store", f"{t.size(report.store_bytes)}{limit}, {t.count(report.operations, 'operation')}{since}")
    for note in report.notes:
        yield _field("", t.clean(note))


def _shorttitle_spans(title: r.TurnTitle) -> Iterator[Span]:
    prompt = t.one_line(title.prompt, 60)
    yield t.clean(title.handle), "name"
    yield (f" {prompt}" if title.command else f' "{prompt}"') if prompt else "", ""


def _field(name: str, value: str, style: str = "bold") -> Line:
    return line((t.pad(name, max(13, len(name) + 2)), style if name else ""), value)


def doctor(report: r.DoctorReport, place: Place) -> Iterator[Line]:
    yield line(", ".join(f"{t.clean(name)} {t.clean(version)}" for name, version in report.versions))
    width = max((t.columns(t.clean(check.name)) for check in report.checks), default=0)
    for check in report.checks:
        style = {"ok": "good", "warn": "warn", "fail": "bad", "none": "dim"}[check.level]
        level = t.pad("-" if check.level == "none" else check.level, 6)
        first, *rest = t.clean(check.text, keep="\n").split("\n")
        yield line(" ", (level, style), t.pad(t.clean(check.name), width), "  ", first)
        for more in rest:
            yield line(" " * (width + 9), more)
        if check.fix:
            yield line(" " * (width + 9), "fix: ", (t.clean(check.fix), "bold"))
    found = {level: sum(check.level == level for check in report.checks) for level in ("fail", "warn")}
    words = [t.count(found["fail"], "failure")] if found["fail"] else []
    words += [t.count(found["warn"], "warning")] if found["warn"] else []
    yield line(f"{', '.join(words)}. Report for a bug: git safety doctor --json" if words else "All is well.")


def find(report: r.FindReport, place: Place) -> Iterator[Line]:
    if not report.rows:
        yield line(f"No file named like {t.quote_path(report.query.encode('utf-8', 'surrogateescape'))} is in the store.")
        return
    names = [place.path(row.path) for row in report.rows]
    width = min(max(t.columns(name) for name in names), 60)
    for row, name in zip(report.rows, names, strict=True):
        facts = [t.pad(t.clean(row.handle), 6), t.pad(t.age(row.when_ms, place.view.now_ms), 8), t.pad(row.state, 7)]
        facts.append(t.size(row.size) if row.size is not None else "")
        yield line(t.pad(name, width), "  ", "  ".join(facts))
        if row.restore and row.state != "present":
            yield line("    ", (t.clean(row.restore), "bold"))
    if report.more:
        yield line((f"... and {report.more:,} more", "dim"))


def snapshot(report: r.SnapshotReport, place: Place) -> Iterator[Line]:
    name = f" {t.one_line(report.name)}" if report.name else ""
    yield line("Snapshot ", (t.clean(report.handle), "name"), f"{name}: {t.count(report.files, 'file')}")
    yield from path_rows(most_urgent(fold(report.lines)), place, dry=False)
    yield from hint_lines(report.hints, place)


def text(report: r.TextReport, place: Place) -> Iterator[Line]:
    for each in report.lines:
        yield line(t.clean(each))
    yield from hint_lines(report.hints, place)
