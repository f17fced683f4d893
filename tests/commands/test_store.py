"""``store``, ``purge`` and ``recover``."""

from __future__ import annotations

import pytest

from safety.commands import find, log, purge, recover, store, undo
from safety.commands.args import FindArgs, LogArgs, PurgeArgs, RecoverArgs, StoreArgs, UndoArgs
from safety.commands.report import Ask, LogReport, TextReport, UndoReport
from safety.commands.restore import UnknownPath
from safety.session import Session
from safety.store import apply
from safety.store.journal import UndoRefused
from tests.commands.conftest import Work
from tests.support.repo import NINE_LINES
from tests.support.store import store_git, stores


def kept(work: Work, action: str, **args: object) -> TextReport:
    report = store.run(work.session, StoreArgs(action=action, **args))  # type: ignore[arg-type]
    assert isinstance(report, TextReport)
    return report


def purged(work: Work, *paths: str, **args: object) -> TextReport:
    report = purge.run(work.session, PurgeArgs(paths=tuple(map(work.at, paths)), **args))  # type: ignore[arg-type]
    assert isinstance(report, TextReport)
    return report


def handles(work: Work) -> list[str]:
    report = log.run(work.session, LogArgs())
    assert isinstance(report, LogReport)
    return [row.handle for row in report.rows if row.actor == "agent"]


def test_status_has_numbers(work: Work) -> None:
    """Sizes and counts for people and for programs."""
    work.agent_does("echo 1 >b.txt")

    report = kept(work, "status")

    assert report.data is not None
    assert report.data["operations"] == len(list(work.session.log.walk()))
    assert isinstance(report.data["own_bytes"], int) and report.data["own_bytes"] > 0


def test_forget_and_prune(work: Work) -> None:
    """A number of operations to keep forgets the older ones; prune then frees their objects; undo of the newest works on."""
    for number in range(6):
        work.agent_does(f"echo {number} >b.txt")
    assert kept(work, "forget").data == {"forgotten": 0, "over_by_bytes": 0}
    dry = kept(work, "forget", keep_operations=4, dry_run=True)

    done = kept(work, "forget", keep_operations=4)

    assert done.data is not None and dry.data == {"would_forget": done.data["forgotten"]}
    assert handles(work) == ["t6", "t5"]
    pruned = kept(work, "prune")
    assert pruned.data is not None and pruned.data["objects"]
    undo.run(work.session, UndoArgs())
    assert work.read("b.txt") == "4\n"


def test_fsck_finds_damage(work: Work) -> None:
    """A sound store is exit code 0, one that lacks an object 1."""
    work.agent_does("echo 1 >b.txt")
    assert kept(work, "fsck").exit_code == 0
    head = work.session.log.head()
    assert head is not None
    path = work.session.place.store_dir / "objects" / head.tree.hex()[:2] / head.tree.hex()[2:]
    saved = path.read_bytes()
    path.unlink()

    report = kept(work, "fsck")

    assert report.exit_code == 1
    assert report.data is not None and not report.data["sound"]
    path.write_bytes(saved)


def test_purge_asks_first(work: Work) -> None:
    """Without a yes nothing is removed; a dry run says how many snapshots hold the path."""
    work.write(".env", "SECRET\n")
    work.agent_does("echo 1 >b.txt")

    asked = purge.run(work.session, PurgeArgs(paths=(work.at(".env"),)))

    assert isinstance(asked, Ask) and asked.answer == {"confirmed": True} and asked.exit_code == 4
    assert asked.command == f"git safety purge --yes {work.root}/.env"
    dry = purged(work, ".env", dry_run=True)
    assert dry.data == {"would_purge": {".env": 3}}


def test_purge_removes_the_content(work: Work) -> None:
    """Afterwards no object has the content, the log is as long as before and undo works; a second purge has nothing to do."""
    secret = "password = very secret indeed\n"
    work.write("keys/a", secret)
    work.agent_does("echo 1 >b.txt")
    work.sh("rm -r keys")
    before = handles(work)

    report = purged(work, "keys", confirmed=True)

    assert report.exit_code == 0, report
    for folder in stores(work.state):
        listed = store_git(folder, "cat-file", "--batch-all-objects", "--batch").decode("utf-8", "replace")
        assert secret not in listed
    assert handles(work) == before
    assert find.run(work.session, FindArgs(name="keys")).exit_code == 4
    undo.run(work.session, UndoArgs())
    assert work.read("b.txt") == "b\n"
    assert purged(work, "keys", confirmed=True).exit_code == 4


def test_purge_says_what_stays(work: Work) -> None:
    """What the user's own commits hold, and what is still on disk, is said: exit code 3."""
    work.agent_does("echo 1 >b.txt")

    report = purged(work, "a.txt", confirmed=True)

    assert report.exit_code == 3
    text = "\n".join(report.lines)
    assert "Your own commits or index" in text and "still on disk" in text


def test_the_whole_workspace_is_not_purged(work: Work) -> None:
    """That would be no workspace any more."""
    with pytest.raises(UnknownPath):
        purged(work, ".", confirmed=True)


def interrupted(work: Work, monkeypatch: pytest.MonkeyPatch, act: str = "echo 1 >b.txt; rm src/app.py; echo n >new") -> Session:
    """An undo that dies before its first file."""
    work.agent_does(act)

    class Died(Exception):
        pass

    def die(*_: object, **__: object) -> None:
        raise Died

    session = work.session
    with monkeypatch.context() as patched:
        patched.setattr(apply._Runner, "_files", die)
        with pytest.raises(Died):
            undo.run(session, UndoArgs())
    return work.session


def test_recover_finishes(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was left to do is said without doing it, then done; then there is nothing more."""
    session = interrupted(work, monkeypatch)
    work.write("new", "the user's\n")

    left = recover.run(session, RecoverArgs(dry_run=True))
    assert isinstance(left, UndoReport)
    assert sorted((line.verb, line.path) for line in left.lines if line.verb != "git") == [
        ("kept", b"new"),
        ("restored", b"b.txt"),
        ("restored", b"src/app.py"),
    ]
    assert (work.read("b.txt"), left.exit_code) == ("1\n", 3)

    done = recover.run(session, RecoverArgs())

    assert isinstance(done, TextReport) and done.exit_code == 0
    assert (work.read("b.txt"), work.read("src/app.py"), work.read("new"), work.read("a.txt")) == (
        "b\n",
        "print('app')\n",
        "the user's\n",
        NINE_LINES,
    )
    for args in (RecoverArgs(), RecoverArgs(dry_run=True)):
        assert recover.run(work.session, args).exit_code == 4


def test_recover_leaves_refs_that_moved(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user committed after the interruption stays, and is said. Rule: recovery judges against now."""
    session = interrupted(work, monkeypatch, "echo 1 >b.txt; git commit -qam agent")
    head = work.commit("user", mine_txt="mine\n")

    done = recover.run(session, RecoverArgs())

    assert isinstance(done, TextReport)
    assert (work.head(), work.branch(), work.read("b.txt"), work.read("mine.txt")) == (head, "main", "b\n", "mine\n")


def test_recover_waits_for_another_git(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index.lock that is not ours is left, and once it is gone recover finishes. Rule: only what the journal names is removed."""
    head = work.head()
    session = interrupted(work, monkeypatch, "echo 1 >b.txt; git commit -qam agent")
    for number in range(20):
        work.write(f".git/taken-{number}", "")  # or the lock below would get the inode of the one that is gone
    lock = work.write(".git/index.lock", "")

    with pytest.raises(UndoRefused):
        recover.run(session, RecoverArgs())

    assert lock.exists()
    lock.unlink()
    assert recover.run(work.session, RecoverArgs()).exit_code == 0
    assert (work.head(), work.read("b.txt"), work.status()) == (head, "b\n", "")
