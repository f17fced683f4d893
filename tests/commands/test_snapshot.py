"""``snapshot`` and ``pin``: states taken and named by hand."""

from __future__ import annotations

import pytest

from safety.commands import pin, restore, snapshot
from safety.commands.args import PinArgs, RestoreArgs, SnapshotArgs
from safety.commands.pin import BadName
from safety.commands.report import SnapshotReport, TextReport
from safety.commands.restore import UnknownPath
from safety.store.history import find_operation
from safety.store.oplog import UnknownHandle
from safety.store.pins import pins
from tests.commands.conftest import Work


def taken(work: Work, *paths: str, name: str = "") -> SnapshotReport:
    report = snapshot.run(work.session, SnapshotArgs(name=name, paths=tuple(map(work.at, paths))))
    assert isinstance(report, SnapshotReport)
    return report


def pinned(work: Work, **args: object) -> TextReport:
    report = pin.run(work.session, PinArgs(**args))  # type: ignore[arg-type]
    assert isinstance(report, TextReport)
    return report


def test_everything(work: Work) -> None:
    """The whole workspace is an operation of the user's; the handle restores it."""
    work.write(".env", "KEY=1\n")
    report = taken(work)
    work.remove(".env")

    restore.run(work.session, RestoreArgs(when="at", handle=report.handle, paths=(work.at("."),)))

    assert (work.read(".env"), report.files, report.lines, report.exit_code) == ("KEY=1\n", 7, (), 0)
    assert find_operation(work.session.log, report.handle).record.actor == "user"


def test_named_paths_whatever_their_size(work: Work) -> None:
    """A file over the limit is taken in when it is named, a folder with all in it."""
    work.write("data/big", b"mine" * 10_000_000)
    work.write("data/small", "s\n")
    report = taken(work, "data")
    work.sh("rm -r data")

    restore.run(work.session, RestoreArgs(when="at", handle=report.handle, paths=(work.at("data"),)))

    assert (report.files, report.exit_code) == (2, 0)
    assert (work.path("data/big").stat().st_size, work.read("data/small")) == (40_000_000, "s\n")


def test_what_is_not_covered_is_named(work: Work) -> None:
    """A pipe cannot be taken in: exit code 3, the path and the reason; a path that is not there is an error."""
    work.sh("mkfifo pipe")

    for report in (taken(work), taken(work, "pipe")):
        assert ([(line.path, line.reason) for line in report.lines], report.exit_code) == ([(b"pipe", "special-file")], 3)
    with pytest.raises(UnknownPath):
        taken(work, "no/such")


def test_a_name_pins_it(work: Work) -> None:
    """A name is a handle, and a ref that keeps the operation."""
    report = taken(work, name="before upgrade")

    assert (report.name, list(pins(work.session.log))) == ("before upgrade", ["before upgrade"])
    assert find_operation(work.session.log, "before upgrade").id == report.handle


def test_pin_list_and_delete(work: Work) -> None:
    """Names are given, listed, moved with a word about it, and taken away."""
    assert pinned(work).lines == ("Nothing is pinned.",)
    work.agent_does("echo 1 >b.txt")
    work.agent_does("echo 2 >b.txt")

    pinned(work, name="Übung/eins .lock", handle="t1")
    assert pinned(work).lines == ("Übung/eins .lock  t1",)
    moved = pinned(work, name="Übung/eins .lock", handle="@")
    assert moved.notices == ("Übung/eins .lock stood for t1 until now",)
    assert find_operation(work.session.log, "Übung/eins .lock").record.handle == "t2"
    pinned(work, name="Übung/eins .lock", delete=True)
    assert pinned(work).data == {"pins": []}
    with pytest.raises(UnknownHandle):
        find_operation(work.session.log, "Übung/eins .lock")
    with pytest.raises(UnknownHandle):
        pinned(work, name="never", delete=True)
    with pytest.raises(UnknownHandle):
        pinned(work, name="x", handle="t9")


@pytest.mark.parametrize("name", ["t3", "t3.1", "@", "@-", "-d", "a\nb", " a", "x" * 61, "klmnopqrstuv"])
def test_names_that_could_be_something_else(work: Work, name: str) -> None:
    """A name is never mistaken for a handle or an option."""
    with pytest.raises(BadName):
        pinned(work, name=name)
    with pytest.raises(BadName):
        taken(work, name=name)


def test_work_trees_have_names_of_their_own(work: Work) -> None:
    """The store is shared between work trees, a name is not."""
    work.git("worktree", "add", "-q", "../other")
    other = Work(work.root.parent / "other", work.env, init=False)
    taken(work, name="good")
    other.write("b.txt", "other\n")
    taken(other, name="good")

    first, second = (find_operation(each.session.log, "good") for each in (work, other))

    assert first.id != second.id
    assert list(work.session.log.walk())[0].id == first.id
