"""Commits beside other programs: locks that others hold, a HEAD and an index that move, and interrupts at every point."""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from safety.commit.room import room_of, sweep
from safety.commit.values import CommitResult
from safety.plumbing.repo import open_repository
from safety.plumbing.run import Git
from tests.commit.conftest import Work, assert_clean_up, quoted


def test_a_lock_that_goes_in_time_is_waited_for(work: Work) -> None:
    """Another git's index.lock only delays the commit."""
    work.agent_makes("new.txt", "agent\n")
    lock = work.write(".git/index.lock", "")
    release = threading.Timer(0.15, lock.unlink)
    release.start()

    assert work.commits() == "A new.txt"

    release.join()


def test_a_lock_that_stays_is_never_removed(work: Work) -> None:
    """Said as busy, with the lock's name; the lock and all else stays."""
    work.agent_makes("new.txt", "agent\n")
    lock = work.write(".git/index.lock", "")
    before = work.whole()

    result = work.make(lock_wait_s=0.02)

    assert result.status == "busy" and str(lock) in result.text
    assert work.whole() == before


def test_a_ref_lock_is_busy_too(work: Work) -> None:
    """As the index's."""
    work.agent_makes("new.txt", "agent\n")
    work.write(".git/refs/heads/main.lock", "")
    before = work.whole()

    assert work.make().status == "busy"
    assert work.whole() == before


def test_the_plan_is_made_again_when_head_has_moved(work: Work) -> None:
    """The user's own commit after the plan is the parent, and is not reverted."""
    work.agent_edits("a.txt", "line 15", "AGENT")
    plan = work.plan()
    work.write("c.txt", "user\n")
    work.git("commit", "-qm", "user", "c.txt")

    result = work.make(plan)

    assert (result.status, work.git("log", "-1", "--format=%s", "HEAD^")) == ("committed", "user")
    assert work.git("show", "HEAD:c.txt") == "user"
    assert work.status() == ""


def test_a_head_that_moves_in_a_hook_is_followed_once(work: Work) -> None:
    """One more time by the same rule; if it moves each time, nothing is committed and the result says so."""
    move = "git update-ref HEAD $(git commit-tree -p HEAD -m moved HEAD^{tree})\n"
    work.hook("prepare-commit-msg", f"test -e .git/once || {{ touch .git/once; {move} }}\n")
    work.agent_makes("new.txt", "agent\n")
    assert work.make().status == "committed"
    assert work.git("log", "-1", "--format=%s", "HEAD^") == "moved"

    work.hook("prepare-commit-msg", move)
    work.agent_makes("new2.txt", "agent\n")
    assert work.make().status == "moved"
    assert work.git("log", "-1", "--format=%s") == "moved"
    assert_clean_up(work)


def test_what_is_staged_after_the_plan_stays_staged(work: Work) -> None:
    """A path that the user stages meanwhile, in the commit or beside it."""
    work.agent_edits("a.txt", "line 15", "AGENT")
    plan = work.plan()
    work.replace("a.txt", "line 2\n", "USER\n")
    work.git("add", "a.txt")
    work.write("c.txt", "user\n")
    work.git("add", "c.txt")

    assert work.make(plan).status == "committed"

    assert work.changed_lines("--cached") == ["-line 2", "+USER", "-c", "+user"]
    assert work.changed_lines("HEAD^", "HEAD") == ["-line 15", "+AGENT"]
    assert work.status() == "M  a.txt\nM  c.txt"


def test_a_branch_switched_to_after_the_plan_is_committed_on(work: Work) -> None:
    """The commit belongs to the branch that HEAD is on, at the same commit or not."""
    work.agent_makes("new.txt", "agent\n")
    plan = work.plan()
    work.git("switch", "-qc", "other")

    assert work.make(plan).status == "committed"
    assert work.git("log", "-1", "--format=%s", "other^") == work.git("log", "-1", "--format=%s", "main")


def test_a_protected_branch_switched_to_after_the_plan_is_refused(work: Work) -> None:
    """Though it is at the same commit, it is another branch."""
    work.git("switch", "-qc", "feature")
    work.agent_makes("new.txt", "agent\n")
    plan = work.plan(protected_branches="refuse")
    work.git("switch", "-q", "main")
    head = work.head()

    assert (work.make(plan).status, work.head()) == ("refused", head)


def test_a_branch_is_taken_back_when_the_index_cannot_follow(work: Work) -> None:
    """The two go together: if the index's place is taken after the branch has moved, the branch goes back."""
    work.hook("reference-transaction", "test $1 != committed || { rm .git/index; mkdir .git/index; }\n")
    work.agent_makes("new.txt", "agent\n")
    head = work.head()

    assert work.make().status == "refused"

    assert work.head() == head
    (work.root / ".git/index").rmdir()
    assert_clean_up(work)


@pytest.mark.parametrize(
    ("when", "then"),
    [
        ("*--index-info*", 'cat | {git} "$@"; exec {git} -C {root} update-index --force-remove c.txt'),
        ("*update-ref?-m*", "exit 0"),
    ],
)
def test_what_git_did_is_looked_at(work: Work, tmp_path: Path, when: str, then: str) -> None:
    """An index that lost what is staged is not put in place, and a HEAD that is not the commit is no success."""
    work.write("c.txt", "staged\n")
    work.git("add", "c.txt")
    work.agent_makes("new.txt", "agent\n")
    before = work.whole()
    act = then.format(git=work.sh("command -v git"), root=quoted(work.root))
    work.write("../bin/git", f'#!/bin/sh\ncase "$*" in {when}) {act};; esac\nexec {work.sh("command -v git")} "$@"\n', 0o755)
    path = work.env["PATH"]
    work.env["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{path}"

    result = work.make()

    work.env["PATH"] = path
    assert result.status == "refused"
    assert work.whole() == before


def test_an_edit_that_git_cannot_see_by_its_time_is_still_seen(work: Work) -> None:
    """A file of the user's changed in the second the index was written, to the same size, shows as changed afterwards, too."""
    work.git("config", "core.trustCtime", "false")
    work.git("config", "core.checkStat", "minimal")
    work.agent_makes("new.txt", "agent\n")
    index, file = work.root / ".git/index", work.path("c.txt")
    at = (file.stat().st_mtime_ns // 10**9 - 60) * 10**9
    os.utime(file, ns=(at, at))
    work.git("update-index", "--refresh")
    file.write_text("d\n")
    os.utime(file, ns=(at, at))
    os.utime(index, ns=(at, at))
    assert work.git("--no-optional-locks", "status", "--porcelain") == " M c.txt\n?? new.txt"

    assert work.commits() == "A new.txt"

    assert work.status() == " M c.txt"


def test_two_commits_at_a_time_come_one_after_the_other(work: Work) -> None:
    """Two threads, each with its own file: two commits."""
    work.agent_makes("one.txt", "1\n")
    first = work.plan()
    work.steps.clear()
    work.agent_makes("two.txt", "2\n")
    second = work.plan()
    results: list[CommitResult] = []
    threads = [threading.Thread(target=lambda plan=plan: results.append(work.make(plan))) for plan in (first, second)]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [result.status for result in results] == ["committed", "committed"]
    assert work.git("rev-list", "--count", "HEAD") == "3"
    assert work.status() == ""
    assert_clean_up(work)


def test_a_lock_of_another_tool_is_not_taken_for_ours(work: Work) -> None:
    """Whatever it holds, if it is not what we write."""
    for content in (b"", b"DIRC", b'{"what": "other"}', b"[]", b"\xff{"):
        work.mkdir(".git/git-safety-commit")
        (work.root / ".git/index.lock").write_bytes(content)
        assert sweep(Git(work.env), os.fsencode(work.root))
        assert (work.root / ".git/index.lock").read_bytes() == content


def test_a_lock_of_ours_is_swept_when_its_process_is_gone(work: Work) -> None:
    """By its content and by the folder's flock, which no living process holds."""
    repository = open_repository(os.fsencode(work.root))
    assert repository is not None
    room = room_of(repository)
    os.mkdir(room.folder)
    work.write(".git/index.lock", json.dumps({"what": "git-safety commit", "new": work.head()[::-1], "branch": "", "process": 1}))

    assert sweep(Git(work.env), os.fsencode(work.root))

    assert_clean_up(work)
    assert not sweep(Git(work.env), os.fsencode(work.root))


# ---- interrupts

STOPS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "interrupt": signal.SIGINT}
CALLS = frozenset("open link rename unlink mkdir rmdir fork_exec poll close scandir".split())
_SUBREAPER = 36


def in_child(work: Work, at: int, stop: int) -> tuple[int, int]:
    """Makes the commit in a fork that sends itself a signal at its ``at``-th system call of CALLS (0: never).

    Gives how it ended and how many such calls there were, once it and all it started are gone.
    """
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    plan = work.plan()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        count = 0

        def watch(frame: FrameType, event: str, what: object) -> None:
            nonlocal count
            if event == "c_call" and getattr(what, "__name__", "") in CALLS:
                count += 1
                if count == at:
                    sys.setprofile(None)
                    os.kill(os.getpid(), stop)

        with suppress(BaseException):
            sys.setprofile(watch)
            work.make(plan)
        sys.setprofile(None)
        os.write(writing, str(count).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        counted = int(pipe.read() or b"0")
    status = os.waitpid(child, 0)[1]
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass
    ctypes.CDLL(None).prctl(_SUBREAPER, 0, 0, 0, 0)
    return status, counted


@pytest.fixture
def both(work: Work) -> Work:
    """A repository where the commit merges into staged and unstaged work of the user's."""
    work.replace("a.txt", "line 2\n", "STAGED\n")
    work.git("add", "a.txt")
    work.replace("a.txt", "line 8\n", "UNSTAGED\n")
    work.agent_edits("a.txt", "line 15", "AGENT")
    work.agent_makes("new.txt", "agent\n")
    with work.step("b.txt"):
        work.remove("b.txt")
    return work


@pytest.mark.parametrize("name", STOPS)
def test_a_stopped_commit_is_made_or_is_not(both: Work, name: str, chance: random.Random, pytestconfig: pytest.Config) -> None:
    """Wherever the process ends: files untouched, and HEAD and index both old or both new, at once or after the next run's sweep.

    Interrupt and SIGTERM leave no lock and no child; SIGKILL leaves a lock that the next run knows for ours.
    """
    head, before = both.head(), both.whole()
    all_points = in_child(both, 0, 0)[1]
    assert all_points > 30 and both.head() != head
    rest = both.status()
    both.git("update-ref", "HEAD", head)
    (both.root / ".git/index").write_bytes(before.index or b"")
    points = range(1, all_points + 1)
    for at in points if pytestconfig.getoption("--long") else sorted(chance.sample(points, 8)):
        status, _ = in_child(both, at, STOPS[name])
        where = f"stopped by {name} at {at} of {all_points}, status {status}"
        if name != "kill":
            assert not list((both.root / ".git").rglob("*.lock")), where
            assert not (both.root / ".git/git-safety-commit").exists(), where
        sweep(Git(both.env), os.fsencode(both.root))
        assert_clean_up(both)
        after = both.whole()
        assert after.files == before.files, where
        if both.head() == head:
            assert after == before, where
        else:
            assert both.git("rev-parse", "HEAD^") == head, where
            assert both.status() == rest, where
            both.git("update-ref", "HEAD", head)
            (both.root / ".git/index").write_bytes(before.index or b"")


def test_a_commit_after_a_killed_one_sweeps_first(both: Work) -> None:
    """Nobody has to clean up by hand: the next commit does it, whether the killed one had got to the end or not."""
    points = in_child(both, 0, 0)[1]
    head = both.git("rev-parse", "HEAD^")
    for at in range(points // 2, points, 9):
        both.git("update-ref", "HEAD", head)
        both.git("read-tree", head)
        in_child(both, at, signal.SIGKILL)
        assert both.make().status in ("committed", "nothing")
        assert both.git("rev-parse", "HEAD^") == head
        assert both.status() == " M a.txt"
        assert_clean_up(both)


def test_no_child_is_left_by_an_interrupt_in_a_hook(work: Work, tmp_path: Path) -> None:
    """An interrupt while a hook runs ends the hook, too."""
    pids = tmp_path / "pids"
    os.mkfifo(tmp_path / "fifo")
    work.hook("commit-msg", f"echo $$ $PPID >{quoted(pids)}; echo >{quoted(tmp_path / 'fifo')}; exec sleep 300\n")
    work.agent_makes("new.txt", "agent\n")
    before = work.whole()
    interrupt: Callable[[], None] = lambda: ((tmp_path / "fifo").read_bytes(), os.kill(os.getpid(), signal.SIGINT))  # type: ignore  # noqa: E731
    thread = threading.Thread(target=interrupt)
    thread.start()

    with pytest.raises(KeyboardInterrupt):
        work.make()

    thread.join()
    for pid in pids.read_text().split():
        assert not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text()
    assert work.whole() == before
    assert_clean_up(work)
