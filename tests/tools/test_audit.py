"""The audit log: one line a moment, nothing of what was handed over, and never a reason for a call to fail."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from safety.runtime.open import open_session
from safety.session import AUDIT_LOG, Call, Session
from safety.tools import audit_log
from safety.types import Decision
from tests.support.repo import NINE_LINES, RepoBuilder

SECRET = "hunter2-hunter2"


def opened(repo: RepoBuilder) -> Session:
    return open_session(os.fsencode(repo.root), repo.session, repo.env)


def lines(repo: RepoBuilder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (opened(repo).place.state / AUDIT_LOG).read_text().splitlines()]


def test_one_line_a_moment_and_no_values(repo: RepoBuilder) -> None:
    """A turn with one call: five lines in order, with ids, digest, status, who was called and how long; not one word of the prompt,
    the input, the result or the error."""
    repo.hook("turn.pre", prompt=f"log in with {SECRET}")
    call = {"call_id": "c1", "tool": "shell", "input": {"command": f"login {SECRET}"}}
    repo.hook("tool.execute.pre", **call)
    repo.hook("tool.execute.post", **call, error=f"no {SECRET}", result=f"ok {SECRET}")
    repo.hook("turn.post")
    found = lines(repo)

    assert [line["event"] for line in found] == ["turn.pre", "tool.execute.pre", "tool.confirm", "tool.execute.post", "turn.post"]
    assert SECRET not in (opened(repo).place.state / AUDIT_LOG).read_text()
    pre, post = found[1], found[3]
    digest = Call("c1", "shell", call["input"], b"/").digest
    assert (pre["call"], pre["tool"], pre["digest"], pre["decision"]) == ("c1", "shell", digest, "allow")
    assert post["status"] == "error" and pre["session"] == repo.session and pre["time_ms"] > 1_600_000_000_000
    assert [name for name, _, _ in found[0]["called"]] == ["precommit.turn_pre", "auto_snapshots.turn", "agents_md_inject.turn"]
    assert [name for name, _, _ in found[4]["called"]] == ["auto_snapshots.settle", "precommit.turn_post", "autocommit.turn_post"]
    assert all(result == "ok" and ms >= 0 for line in found for _, result, ms in line["called"])


def test_who_decided_stopped_and_failed(repo: RepoBuilder) -> None:
    """A denial names its handler, a stop what was skipped, a failure who failed; ``doctor --trace`` shows it in order."""
    session = opened(repo)

    def refuses(data: Any) -> Decision:
        return Decision("deny", f"not {SECRET}")

    def fails(data: Any) -> None:
        raise ValueError(SECRET)

    session.hooks.register("mine.refuses", "tool.execute.pre", refuses, 60)
    session.hooks.register("mine.fails", "tool.execute.pre", fails, 50, role="record")
    decision = session.pre(Call("c1", "shell", {}, os.fsencode(repo.root)))
    (line,) = lines(repo)

    assert decision.action == line["decision"] == "deny" and line["decided_by"] == "mine.refuses"
    assert line["failed"] == ["mine.fails"]
    assert [(name, result) for name, result, _ in line["called"]] == [
        ("auto_snapshots.pre", "ok"), ("mine.refuses", "ok"), ("mine.fails", "failed"), ("agents_md_inject.pre", "ok"),
    ]  # fmt: skip
    shown = repo.must("doctor", "--trace").out
    assert "tool.execute.pre shell c1: deny; decided by mine.refuses; failed: mine.fails" in shown
    assert shown.index("  auto_snapshots.pre") < shown.index("  mine.refuses") < shown.index("  mine.fails")
    assert " ms" in shown
    assert SECRET not in shown + json.dumps(line)


def test_nothing_heard_yet(repo: RepoBuilder) -> None:
    """``doctor --trace`` says so, with the code for nothing."""
    assert "No event" in repo.must("doctor", "--trace", code=4).out


def test_a_full_log_makes_room(repo: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past its size it is set aside, once, so that at most two files of that size are kept; the newest lines are read across both."""
    monkeypatch.setattr(audit_log, "MAX_BYTES", 2000)
    session = opened(repo)
    session.turn_start("x")
    for number in range(40):
        call = Call(f"c{number}", "read", {}, os.fsencode(repo.root), paths=())
        session.pre(call)
        session.post(call, "")
    state = session.place.state
    sizes = {path.name: path.stat().st_size for path in state.glob("audit*")}
    assert set(sizes) <= {"audit.jsonl", "audit.1.jsonl"} and max(sizes.values()) < 3000
    traced = json.loads(repo.must("doctor", "--trace", "--json").out)["data"]["trace"]
    assert len(traced) > 4 and (traced[-1]["call"], traced[-1]["event"]) == ("c39", "tool.execute.post")


@pytest.mark.parametrize("fault", ["a folder", "no permission", "half a line"])
def test_a_log_that_cannot_be_written_fails_no_call(repo: RepoBuilder, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is allowed, recorded and undone; the user hears of the log, not of the call."""
    session = opened(repo)
    path = session.place.state / AUDIT_LOG
    if fault == "a folder":
        path.mkdir()
    elif fault == "half a line":
        path.write_text('{"event": "tool.ex')
    else:
        monkeypatch.setattr(os, "open", refusing(path))
    session.turn_start("x")
    call = Call("c1", "shell", {}, os.fsencode(repo.root))
    assert session.pre(call).action == "allow"
    repo.write("a.txt", "agent\n")
    session.post(call, "fine")
    assert session.turn_end() is None
    notices = session.take_notices()
    assert all("audit_log" in text for text in notices)
    assert len({text.partition(":")[2] for text in notices}) == len(notices) == (0 if fault == "half a line" else 5)
    session.turn_start("y")
    session.turn_end()
    assert not session.take_notices()  # once in a conversation
    monkeypatch.undo()

    code = 4 if fault in ("a folder", "no permission") else 0
    assert "Traceback" not in repo.must("doctor", "--trace", code=code).text
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES
    if path.is_dir():
        path.rmdir()


def refusing(wanted: Path) -> Any:
    real = os.open

    def opens(path: Any, *args: Any, **more: Any) -> int:
        if os.fspath(path) == os.fspath(wanted):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *args, **more)

    return opens
