"""How reports look."""

from __future__ import annotations

import json
import os
import unicodedata
from dataclasses import replace

import pytest

from safety.commands import report as r
from safety.terminal.drawing import MAX_LINES, View
from safety.terminal.render import error, notices, render
from safety.terminal.screen import coloured, plain

NOW = 1_796_040_000_000
HERE = View(cwd=b"/home/dana/shop", now_ms=NOW, home=b"/home/dana")
ROOT = b"/home/dana/shop"
TITLE = r.TurnTitle("t14", "Claude Code", NOW - 120_000, 3, "clean up the build scripts\nand more")
REDO = r.Hint("Take this undo back", "git safety redo")


def drawn(report: r.Report, view: View = HERE) -> str:
    return plain(render(report, view))


def undo(*lines: r.PathLine, **more: object) -> r.UndoReport:
    return replace(r.UndoReport(root=ROOT, titles=(TITLE,), lines=lines, hints=(REDO,)), **more)  # type: ignore[arg-type]


def test_the_clean_case_is_four_lines() -> None:
    """What was undone, the paths, and one line with the way back."""
    assert drawn(undo(r.PathLine("restored", b"config.py"), r.PathLine("restored", b"tests/test_config.py"))) == (
        'Undid t14  Claude Code, 2 min ago, 3 calls: "clean up the build scripts"\n'
        "  restored     config.py\n"
        "  restored     tests/test_config.py\n"
        "2 files restored. Take this undo back: git safety redo\n"
    )


def test_every_verb_in_its_fixed_order() -> None:
    """Lines come in the order of verbs whatever order they were made in; folders fold; git's part closes."""
    reason = "deleted by `rm -rf scripts`"
    lines = (
        r.PathLine("git", note="main a81e03b -> 4f2c9d1, 1 agent commit taken off"),
        r.PathLine("not covered", b"data/model.bin", "412 MiB, over the 32 MiB limit"),
        r.PathLine("kept", b"src/app.py", "you changed the same lines afterwards"),
        r.PathLine("merged", b"README.md", "your line 12 kept"),
        r.PathLine("removed", b"build.py", "created by the agent"),
        r.PathLine("restored", b"Makefile"),
        *(r.PathLine("restored", b"scripts/" + name, reason) for name in (b"a", b"b/c", b"b/d")),
        r.PathLine("unchanged", b"x.txt"),
    )
    hints = (
        r.Hint("both versions", "git safety diff --now t14", (b"src/app.py",), b"src/app.py"),
        r.Hint("take the old", "git safety restore --before t14", (b"src/app.py",), b"src/app.py"),
        REDO,
    )
    assert drawn(undo(*lines, hints=hints, exit_code=3)) == (
        'Undid t14  Claude Code, 2 min ago, 3 calls: "clean up the build scripts"\n'
        "\n"
        "  restored     Makefile\n"
        "  restored     scripts/        3 files, deleted by `rm -rf scripts`\n"
        "  removed      build.py        created by the agent\n"
        "  merged       README.md       your line 12 kept\n"
        "  unchanged    x.txt\n"
        "  kept         src/app.py      you changed the same lines afterwards\n"
        "  not covered  data/model.bin  412 MiB, over the 32 MiB limit\n"
        "  git          main a81e03b -> 4f2c9d1, 1 agent commit taken off\n"
        "\n"
        "4 files restored, 1 removed, 1 merged, 1 already as before, 1 kept, 1 not covered. Nothing else was touched.\n"
        "src/app.py, both versions:  git safety diff --now t14 src/app.py\n"
        "             take the old:  git safety restore --before t14 src/app.py\n"
        "Take this undo back:        git safety redo\n"
    )


def test_a_dry_run_says_would_and_changes_nothing() -> None:
    """The verbs stand in their plain form, with the lines that would come and go."""
    lines = (
        r.PathLine("restored", b"Makefile", added=38),
        r.PathLine("removed", b"build.py", deleted=64),
        r.PathLine("kept", b"a", "yours"),
    )
    hints = (r.Hint("Do it", "git safety undo t14"), r.Hint("Choose", "git safety undo -p"))
    assert drawn(undo(*lines, dry_run=True, hints=hints)).splitlines()[2:] == [
        "  restore      Makefile  +38",
        "  remove       build.py  -64",
        "  keep         a         yours",
        "",
        "Nothing was changed.  Do it: git safety undo t14    Choose: git safety undo -p",
    ]


def test_long_lists_keep_what_the_reader_must_act_on() -> None:
    """At most twenty lines; what was kept is among them however many files were restored, and the rest is counted."""
    many = [r.PathLine("restored", b"d%03d/f" % number) for number in range(300)]
    text = drawn(undo(*many, r.PathLine("kept", b"mine.txt", "you changed it")))
    rows = [row for row in text.splitlines() if row.startswith("  ")]
    assert len(rows) == MAX_LINES + 1
    assert any("mine.txt" in row for row in rows)
    assert rows[-1] == "  ... and 281 more: git safety show t14"


def test_folders_fold_only_when_all_agree() -> None:
    """A folder with two verbs is shown file by file; kept files fold only with the same note."""
    mixed = drawn(undo(*(r.PathLine("restored", b"a/%d" % n) for n in range(3)), r.PathLine("removed", b"a/x")))
    assert "  restored     a/0\n" in mixed and "a/  3 files" not in mixed
    kept = drawn(undo(*(r.PathLine("kept", b"a/%d" % n, f"note {n}") for n in range(3))))
    assert "a/2" in kept and "note 2" in kept
    same = drawn(undo(*(r.PathLine("kept", b"a/%d" % n, "you changed it") for n in range(3))))
    assert "  kept         a/  3 files, you changed it\n" in same


def test_several_turns_are_all_named() -> None:
    """Two turns undone at once stand in two lines under each other."""
    text = drawn(undo(r.PathLine("restored", b"a"), titles=(TITLE, replace(TITLE, handle="t13", prompt="./x.sh", command=True))))
    assert text.splitlines()[1] == "      t13  Claude Code, 2 min ago: ./x.sh"


def test_nothing_to_do_is_one_sentence() -> None:
    """An undo without a turn says so."""
    assert drawn(r.UndoReport(nothing="Nothing to undo: no turn here changed anything.", exit_code=4)) == (
        "Nothing to undo: no turn here changed anything.\n"
    )


def test_paths_are_relative_to_the_current_folder() -> None:
    """From inside ``src`` a path of ``src`` is short and others climb; so do the commands."""
    view = replace(HERE, cwd=ROOT + b"/src")
    hint = r.Hint("take the old", "git safety restore --before t14", (b"src/-x",), b"src/-x")
    text = drawn(undo(r.PathLine("kept", b"src/-x"), r.PathLine("restored", b"README"), hints=(hint,)), view)
    assert "  restored     ../README\n" in text
    assert "-x, take the old:     git safety restore --before t14 -- -x\n" in text


EVIL = "\x1b[2J[bold red]x[/]\u202e\u200b\U000e0041\r\n"


def _evil_reports() -> list[r.Report]:
    path = EVIL.encode()
    title = r.TurnTitle(EVIL, EVIL, NOW, 1, EVIL, session=EVIL)
    lines = tuple(r.PathLine(verb, path if verb != "git" else b"", EVIL) for verb in r.VERBS)
    change = r.ChangeLine(path, "renamed", 1, 1, path, EVIL, EVIL)
    call = r.CallRow(EVIL, EVIL, EVIL, NOW, 3, EVIL, EVIL, (change,))
    patch = r.FilePatch(path, b"+++ b/x\n+" + path + b"\n")
    hint = r.Hint(EVIL, EVIL, (path,), path)
    row = r.LogRow(
        EVIL,
        "agent",
        EVIL,
        NOW,
        EVIL,
        files=1,
        commit=EVIL,
        pin=EVIL,
        workspace=path,
        calls_detail=(call,),
        changes=(change,),
        patches=(patch,),
        uncovered=lines,
    )
    return [
        r.UndoReport(root=path, titles=(title,), lines=lines, hints=(hint, hint), patches=(patch,)),
        r.UndoReport(subject=EVIL, nothing=EVIL),
        r.Ask(question=EVIL, command=EVIL, answer={}),
        r.Choose(title=title, hunks=(), command=EVIL),
        r.LogReport(rows=(row, replace(row, handle="t1")), note=EVIL),
        r.ShowReport(
            title=title,
            state="running",
            calls=(call,),
            changes=(change,),
            unattributed=(change,),
            not_covered=lines,
            git_notes=(EVIL,),
            patches=(patch,),
            hints=(hint,),
        ),
        r.DiffReport(changes=(change,), patches=(patch,)),
        r.DiffReport(changes=(change,), stat=True),
        r.StatusReport(
            root=path,
            branch=EVIL,
            heard=((EVIL, NOW),),
            presence=("is",),
            running=title,
            undo=title,
            redo=title,
            recover=EVIL,
            not_covered=lines,
            pins=((EVIL, EVIL),),
            notes=(EVIL,),
        ),
        r.DoctorReport(versions=((EVIL, EVIL),), checks=(r.Check("warn", EVIL, EVIL, EVIL),)),
        r.FindReport(query=EVIL, rows=(r.FindRow(path, EVIL, NOW, "gone", 1, EVIL),)),
        r.FindReport(query=EVIL),
        r.SnapshotReport(handle=EVIL, name=EVIL, lines=lines, hints=(hint,)),
        r.TextReport(lines=(EVIL,), hints=(hint,)),
    ]


@pytest.mark.parametrize("report", _evil_reports(), ids=lambda report: type(report).__name__)
def test_no_foreign_text_reaches_the_terminal_raw(report: r.Report) -> None:
    """Escape sequences, bidirectional and invisible characters in any field come out as visible text; markup is no markup."""
    text = drawn(report)
    assert "[bold red]" in text
    assert not {unicodedata.category(char) for char in text.replace("\n", "").replace("\t", "")} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    in_colour = coloured(render(report, HERE))
    assert "\x1b[2J" not in in_colour and "[bold red]" in in_colour


def test_the_log() -> None:
    """One line a turn, newest first, in columns; what the user did stands without a handle."""
    rows = (
        r.LogRow(
            "t15",
            "agent",
            "Claude Code",
            NOW,
            "fix the test",
            current=True,
            state="running",
            calls=2,
            files=3,
            added=41,
            deleted=9,
        ),
        r.LogRow("qwertyuiopas", "user", "you", NOW - 180_000, files=1, added=1, deleted=1),
        r.LogRow(
            "t13", "agent", "run", NOW - 720_000, "./migrate.sh", command=True, calls=1, files=14, not_covered=1, pause_s=40
        ),
        r.LogRow("t12", "agent", "Codex", NOW - 3_600_000, "why is login slow?", calls=9),
    )
    assert drawn(r.LogReport(rows=rows, more=2)) == (
        "@  t15  just now  Claude Code  fix the test        2 calls  3 files    +41 -9  running\n"
        "|       3 min     you                                       1 file     +1 -1\n"
        "o  t13  12 min    run          ./migrate.sh                 14 files           pause 40 s, 1 not covered\n"
        "o  t12  1 h       Codex        why is login slow?  9 calls  no change\n"
        "... and 2 older\n"
    )
    assert drawn(r.LogReport()) == "Nothing is recorded here yet.\n"


def test_the_log_fits_the_window() -> None:
    """In a narrow window the text gives way, nothing else does."""
    row = r.LogRow(
        "t15",
        "agent",
        "Claude Code",
        NOW,
        "a prompt that goes on and on and on and on",
        state="undone",
        calls=2,
        files=3,
        added=41,
    )
    text = drawn(r.LogReport(rows=(row,)), replace(HERE, width=80))
    assert max(len(each) for each in text.splitlines()) <= 80
    assert "..." in text and text.endswith("undone\n")


def test_show_names_everything_of_a_turn() -> None:
    """Calls with duration and output, changed files, git, what was not covered."""
    call = r.CallRow("t14.1", "shell", "make clean", NOW, 1200, output="removed\n")
    report = r.ShowReport(
        root=ROOT,
        title=TITLE,
        calls=(call,),
        changes=(r.ChangeLine(b"a", "modified", 1, 2), r.ChangeLine(b"b.png", "added")),
        git_notes=("main moved",),
        not_covered=(r.PathLine("not covered", b"big", "too large"),),
    )
    assert drawn(report) == (
        't14  Claude Code, 2 min ago, 3 calls: "clean up the build scripts"\n'
        "\n  t14.1  shell    make clean  (1.2 s)\n      removed\n"
        "\nChanged\n  M a      +1 -2\n  A b.png  binary\n"
        "\nGit\n  main moved\n"
        "\nNot covered\n  big  too large\n"
    )


def test_status_and_doctor() -> None:
    """Not protected is the first word when it is so; each check has its fix."""
    status = r.StatusReport(
        root=ROOT, branch="main", protected=False, store_bytes=184 << 20, store_max_bytes=2 << 30, operations=412
    )
    assert drawn(status) == "Not protected  ~/shop (main)\nStore        184 MiB of 2 GiB, 412 operations\n"
    doctor = r.DoctorReport(
        versions=(("git-safety", "0.1.0"),), checks=(r.Check("ok", "store", "sound"), r.Check("fail", "git", "too old", "get it"))
    )
    assert drawn(doctor) == (
        "git-safety 0.1.0\n ok    store  sound\n fail  git    too old\n              fix: get it\n"
        "1 failure. Report for a bug: git safety doctor --json\n"
    )  # fmt: skip


def test_errors_and_notices() -> None:
    """What failed, why, and a command one can type."""
    report = r.ErrorReport(
        code="x", message="no such turn: t99", causes=("disk\nfull",), hint="git safety log", notices=("3 newer turns",)
    )
    assert plain(error(report)) == "Error: no such turn: t99\nCaused by: disk\nHint: git safety log\n"
    assert plain(notices(report)) == "git-safety: 3 newer turns\n"


@pytest.mark.parametrize("report", _evil_reports(), ids=lambda report: type(report).__name__)
def test_every_report_is_json(report: r.Report) -> None:
    """The whole report, paths such that the bytes come back, the kind in ``report``."""
    value = json.loads(json.dumps(r.to_json(report)))
    assert value["report"] == type(report).__name__.removesuffix("Report").lower()
    assert value["exit_code"] == report.exit_code
    odd = json.loads(json.dumps(r.to_json(r.UndoReport(root=b"/\xff"))))
    assert os.fsencode(odd["root"]) == b"/\xff"
