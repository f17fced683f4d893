"""``find``: names the store knows, current and past."""

from __future__ import annotations

import shlex

from safety.commands import find, restore
from safety.commands.args import FindArgs, RestoreArgs
from safety.commands.report import FindReport, FindRow
from tests.commands.conftest import Work


def found(work: Work, name: str, **args: object) -> FindReport:
    report = find.run(work.session, FindArgs(name=name, **args))  # type: ignore[arg-type]
    assert isinstance(report, FindReport)
    return report


def rows(work: Work, name: str, **args: object) -> dict[bytes, tuple[str, str]]:
    return {row.path: (row.handle, row.state) for row in found(work, name, **args).rows}


def carry_out(work: Work, row: FindRow) -> None:
    """Runs the command that a row names."""
    words = shlex.split(row.restore)
    assert words[:3] == ["git", "safety", "restore"]
    restore.run(
        work.session, RestoreArgs(when=words[3][2:], handle=words[4], paths=(words[5].encode("utf-8", "surrogateescape"),))
    )


def test_what_was_removed_comes_back_by_the_command_given(work: Work) -> None:
    """A file that is gone is found by a part of its name, and the command restores its newest content."""
    work.write("notes/to do.txt", "first\n")
    work.agent_does("echo more >>'notes/to do.txt'; echo 1 >b.txt")
    work.agent_does("rm -r notes")

    [row] = found(work, "TO DO").rows
    assert (row.path, row.handle, row.state, row.size) == (b"notes/to do.txt", "t2.1", "gone", 11)
    carry_out(work, row)

    assert work.read("notes/to do.txt") == "first\nmore\n"


def test_present_changed_and_gone(work: Work) -> None:
    """Each path once, with how the disk differs from its newest content; removed by the user counts as gone as well."""
    work.agent_does("echo 1 >one.md; echo 2 >two.md; echo 3 >three.md; ln -s x four.md")
    work.write("two.md", "II\n")
    work.remove("three.md")

    assert rows(work, ".md") == {
        b"one.md": ("t1.1", "present"),
        b"two.md": ("t1.1", "changed"),
        b"three.md": ("t1.1", "gone"),
        b"four.md": ("t1.1", "present"),
    }
    assert list(rows(work, ".md", gone=True)) == [b"three.md"]
    by_path = {row.path: row for row in found(work, ".md").rows}
    assert by_path[b"one.md"].restore == ""
    for path in (b"two.md", b"three.md"):
        carry_out(work, by_path[path])
    assert (work.read("two.md"), work.read("three.md")) == ("2\n", "3\n")


def test_patterns_and_limits(work: Work) -> None:
    """``*`` fits the whole path or the last name; -n cuts and says how many more there are."""
    work.agent_does("mkdir d; echo 1 >d/x.env; echo 1 >x.env; echo 1 >x.environment")

    assert set(rows(work, "*.env")) == {b"d/x.env", b"x.env"}
    assert set(rows(work, "d/*")) == {b"d/x.env"}
    assert set(rows(work, str(work.root / "d"))) == {b"d/x.env"}
    report = found(work, "env", limit=1)
    assert (len(report.rows), report.more) == (1, 2)


def test_files_nobody_ever_changed(work: Work) -> None:
    """What was there at first contact is found too; its newest version is that first one."""
    work.agent_does("true")

    assert [row.path for row in found(work, "util").rows] == [b"src/lib/util.py"]
    work.write("src/lib/util.py", "broken\n")
    [row] = found(work, "util").rows
    assert row.state == "changed"
    carry_out(work, row)
    assert work.read("src/lib/util.py") == "UTIL = 1\n"


def test_nothing_found(work: Work) -> None:
    """Exit code 4, also where nothing is recorded."""
    assert found(work, "x").exit_code == 4
    work.agent_does("echo 1 >b.txt")
    assert (found(work, "nothing like it").exit_code, found(work, "b.txt").exit_code) == (4, 0)


def test_find_only_reads(work: Work) -> None:
    """A search takes no snapshot and writes nothing, and does not list git's own files."""
    work.agent_does("echo 1 >b.txt; git config x.y z")
    work.write("mine", "unseen\n")
    session, before = work.session, work.snapshot_of_state()

    report = find.run(session, FindArgs(name=""))

    assert isinstance(report, FindReport)
    assert not [row for row in report.rows if b".git/" in row.path]
    assert work.snapshot_of_state() == before
