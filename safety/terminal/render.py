"""Draws a report as lines of styled text. Pure: the same report and view give the same lines; every foreign text is cleaned here.

``render`` finds the drawing by the report's type. To add one: a function in a ``draw_*`` module and a line in ``_DRAWINGS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from safety.commands import report as r
from safety.terminal import draw_history, draw_state, draw_undo
from safety.terminal import text as t
from safety.terminal.drawing import Place, View
from safety.terminal.screen import Line, line

# Each drawing takes its own kind of report, which the key says and a type cannot.
_DRAWINGS: dict[type[r.Report], Callable[[Any, Place], Iterable[Line]]] = {
    r.UndoReport: draw_undo.undo,
    r.Ask: draw_undo.ask,
    r.Choose: draw_undo.choose,
    r.LogReport: draw_history.log,
    r.ShowReport: draw_history.show,
    r.DiffReport: draw_history.diff,
    r.StatusReport: draw_state.status,
    r.DoctorReport: draw_state.doctor,
    r.FindReport: draw_state.find,
    r.SnapshotReport: draw_state.snapshot,
    r.TextReport: draw_state.text,
}


def render(report: r.Report, view: View) -> list[Line]:
    """The report for standard output. Notices and errors are drawn by `notices` and `error`."""
    drawing = _DRAWINGS.get(type(report))
    if drawing is None:
        raise TypeError(f"no drawing for {type(report).__name__}")
    return list(drawing(report, Place(view, report.root)))


def notices(report: r.Report) -> list[Line]:
    """What goes to standard error before the report."""
    return [line(f"git-safety: {t.one_line(notice)}") for notice in report.notices]


def error(report: r.ErrorReport) -> list[Line]:
    """``Error: / Caused by: / Hint:`` lines."""
    lines = [line(("Error:", "bad"), " " + t.clean(report.message))]
    lines += [line(("Caused by:", "bad"), " " + t.one_line(cause)) for cause in report.causes]
    if report.hint:
        lines.append(line(("Hint:", "name"), " " + t.clean(report.hint)))
    return lines
