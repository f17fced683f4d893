"""``status`` and ``doctor``."""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path

import pytest

from safety.commands import doctor, snapshot, status, undo
from safety.commands.args import DoctorArgs, SnapshotArgs, StatusArgs, UndoArgs
from safety.commands.report import Check, DoctorReport, StatusReport
from safety.terminal.drawing import View
from safety.terminal.render import render
from safety.terminal.screen import plain
from tests.commands.conftest import Work


def seen(work: Work) -> StatusReport:
    report = status.run(work.session, StatusArgs())
    assert isinstance(report, StatusReport)
    return report


def drawn(report: StatusReport, name: str) -> str:
    lines = plain(render(report, View(report.root, report.heard[0][1], 0, b""))).splitlines()
    return next(line for line in lines if line.startswith(name))


def checks(work: Work, code: int = 0, *, fast: bool = True) -> dict[str, Check]:
    report = doctor.run(work.session, DoctorArgs(fast=fast))
    assert isinstance(report, DoctorReport)
    assert report.exit_code == code, report.checks
    return {check.code or check.name: check for check in report.checks}


def test_before_anything_was_heard(work: Work) -> None:
    """Not protected comes first, with what would protect."""
    report = seen(work)

    assert (report.protected, report.kind, report.branch, report.operations, report.undo) == (False, "git", "main", 0, None)
    assert "git safety run -- COMMAND" in report.notes[-1]


def test_with_a_running_turn(work: Work) -> None:
    """The open turn, who was heard, and what undo would take."""
    work.agent_does("echo 1 >b.txt", "first")
    talk = work.talk("s2", "Codex")
    talk.turn_start("second, with sk-abcdefghijklmnopqrstuv")
    with work.step(talk):
        work.write("src/app.py", "x\n")

    report = seen(work)
    talk.turn_end()

    assert report.protected
    assert [name for name, _ in report.heard] == ["Codex", "Claude Code"]
    assert report.running is not None and (report.running.handle, report.running.prompt) == ("t2", "second, with ***")
    assert report.running_files == 1
    assert report.undo is not None and report.undo.handle == "t2"
    assert report.operations == len(list(work.session.log.walk())) - 1


def test_who_is_protected(work: Work) -> None:
    """An agent whose turn is open is; a harness of which no end is heard is when it runs; a process that has ended is no more."""
    talk = work.talk("s1", "Codex")
    talk.turn_start("look")
    with work.step(talk):
        pass
    assert (seen(work).protected, seen(work).presence) == (True, ("is",))
    turn = drawn(seen(work), "Turn")
    assert "t1 running" in turn and "nothing to undo yet" in turn
    assert "Codex is, last heard" in drawn(seen(work), "Protected")
    assert seen(work).notes[-1] == "commands of this shell only under: git safety run -- COMMAND"
    talk.turn_end()
    assert (seen(work).protected, seen(work).presence) == (True, ("when it runs",))
    for file in (work.session.place.state / "sessions").glob("*.json"):
        state = json.loads(file.read_text())
        file.write_text(json.dumps({**state, "process": "an-earlier-boot 1 1"}))
    assert (seen(work).protected, seen(work).presence) == (False, ("was",))
    assert "Codex was, last heard" in drawn(seen(work), "Not protected")
    assert seen(work).notes[-1] == "Codex has ended; a single command is protected by: git safety run -- COMMAND"


def test_redo_pins_and_what_is_not_covered(work: Work) -> None:
    """After an undo: what redo takes, the pins, the uncovered paths of now."""
    work.agent_does("mkfifo pipe; echo 1 >b.txt", "first")
    undo.run(work.session, UndoArgs())
    snapshot.run(work.session, SnapshotArgs(name="good"))

    report = seen(work)

    assert report.redo is not None and report.redo.handle == "t1"
    assert report.undo is None
    assert [name for name, _ in report.pins] == ["good"]
    assert [(line.path, line.reason) for line in report.not_covered] == [(b"pipe", "special-file")]
    assert report.store_bytes > 0 and report.store_max_bytes == 2 << 30


def test_long_ago_is_not_protected(work: Work) -> None:
    """An agent that was not heard for a week may have lost its hook."""
    work.agent_does("echo 1 >b.txt")
    for file in (work.session.place.state / "sessions").glob("*.json"):
        state = json.loads(file.read_text())
        state["heard_ms"] -= 8 * 24 * 3600 * 1000
        file.write_text(json.dumps(state))

    report = seen(work)

    assert not report.protected
    assert "for a week" in report.notes[-1]


def test_detached_unborn_and_no_git(work: Work, bare: Work, plain: Work, tmp_path: Path) -> None:
    """The branch is git's own word for it."""
    work.git("checkout", "-q", "--detach")
    assert seen(work).branch == work.head()[:8]
    other = Work(tmp_path / "unborn", work.env)
    assert seen(other).branch == "main"
    assert (seen(plain).branch, seen(plain).kind) == ("", "folder")


def test_status_only_reads(work: Work) -> None:
    """It takes no snapshot and writes nothing."""
    work.agent_does("echo 1 >b.txt")
    work.write("mine", "unseen\n")
    session, before = work.session, work.snapshot_of_state()

    status.run(session, StatusArgs())

    assert work.snapshot_of_state() == before


def test_settings_that_are_not_known(work: Work) -> None:
    """A warning about the settings is in status and in doctor."""
    settings = Path(work.env["XDG_CONFIG_HOME"]) / "git-safety/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"nonsense": 1}')

    assert any("nonsense" in note for note in seen(work).notes)
    assert checks(work)["settings"].level == "warn"


def test_all_is_well(work: Work, tmp_path: Path) -> None:
    """On a sound installation nothing is warned of, and each thing has its line."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git-safety").write_text("#!/bin/sh\n")
    (programs / "git-safety").chmod(0o755)
    work.env["PATH"] = f"{programs}:/usr/bin:/bin"
    work.agent_does("echo 1 >b.txt")

    found = checks(work, fast=False)

    assert {name: check.level for name, check in found.items()} | {"git-old": "ok"} == {
        "git": "ok", "command": "ok", "store": "ok", "watcher": "ok", "Claude Code": "ok", "git-old": "ok"
    }  # fmt: skip


def test_programs_on_the_path(work: Work, tmp_path: Path) -> None:
    """None, and more than one, are warned of; two names of one file are one."""
    work.env["PATH"] = "/usr/bin:/bin" if not os.path.exists("/usr/bin/git-safety") else work.env["PATH"]
    folders = [tmp_path / name for name in ("p1", "p2", "p3")]
    for folder in folders:
        folder.mkdir()
    assert checks(work)["not-on-path"].level == "warn"
    (folders[0] / "git-safety").write_text("#!/bin/sh\n")
    (folders[0] / "git-safety").chmod(0o755)
    (folders[1] / "git-safety").symlink_to(folders[0] / "git-safety")
    work.env["PATH"] = ":".join([*map(str, folders), work.env["PATH"]])
    assert checks(work)["command"].level == "ok"
    (folders[2] / "git-safety").write_text("#!/bin/sh\n# another\n")
    (folders[2] / "git-safety").chmod(0o755)
    assert checks(work)["several-commands"].level == "warn"


def test_damaged_store_is_a_failure(work: Work) -> None:
    """A missing object is exit code 1 and names the command for more."""
    work.agent_does("echo 1 >b.txt")
    session = work.session
    head = session.log.head()
    assert head is not None
    name = head.tree.hex()
    path = session.place.store_dir / "objects" / name[:2] / name[2:]
    saved = path.read_bytes()
    path.unlink()

    found = checks(work, 1)

    assert (found["store-damaged"].level, found["store-damaged"].fix) == ("fail", "git safety store fsck")
    path.write_bytes(saved)


def test_state_that_others_can_read(work: Work) -> None:
    """A state folder that is open to others is warned of with the command that closes it."""
    work.agent_does("echo 1 >b.txt")
    work.state.chmod(0o755)

    assert checks(work)["not-private"].fix == f"chmod 700 {work.state}"
    work.state.chmod(0o700)


def test_interrupted_undo(work: Work) -> None:
    """A journal that is left is told by both."""
    work.agent_does("echo 1 >b.txt")
    journal = work.session.place.state / "journal.json"
    journal.write_text("{}")

    assert seen(work).recover
    assert checks(work)["interrupted"].fix == "git safety recover"
    journal.unlink()


def test_the_scanner_beside_us(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other distribution of our import name is named, with how to write the import."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "3.8.1")

    assert "from safety.net import" in checks(work)["scanner"].text


def test_network_file_systems(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """State on a network file system is warned of."""
    monkeypatch.setattr(doctor, "_file_system", lambda path: "nfs4")

    assert checks(work)["network"].level == "warn"


def test_a_folder_that_is_too_wide(work: Work) -> None:
    """In a home folder doctor warns, and status does not offer a command that would not protect."""
    work.env["HOME"] = os.fspath(work.root)
    assert checks(work)["too-wide"].level == "warn"
    assert not any("git safety run" in note for note in seen(work).notes)
