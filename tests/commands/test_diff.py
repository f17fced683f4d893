"""``diff`` and ``export``: patches that git itself takes, and what is said where none can be made."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from safety.commands import diff, export
from safety.commands.args import DiffArgs, ExportArgs
from safety.commands.report import DiffReport, RawReport, TextReport
from safety.store.oplog import UnknownHandle
from tests.commands.conftest import Work
from tests.support.state import state_of


def made(work: Work, *handles: str, **args: object) -> DiffReport:
    report = diff.run(work.session, DiffArgs(handles=handles, **args))  # type: ignore[arg-type]
    assert isinstance(report, DiffReport)
    return report


def exported(work: Work, handle: str = "@", **args: object) -> RawReport:
    report = export.run(work.session, ExportArgs(handle=handle, **args))  # type: ignore[arg-type]
    assert isinstance(report, RawReport)
    return report


def files_of(folder: Path) -> dict[bytes, tuple[object, ...]]:
    """All but folders, which patches do not carry."""
    return {path: tuple(entry) for path, entry in state_of(folder).files.items() if entry[0] != "dir"}


def git_apply(folder: Path, patch: bytes, *args: str) -> None:
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", *args, "-"],
        cwd=folder,
        input=patch,
        capture_output=True,
        env={
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "GIT_CEILING_DIRECTORIES": str(folder.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
        },
    )
    assert done.returncode == 0, done.stderr.decode() + patch.decode("utf-8", "replace")


def test_nothing_yet(work: Work) -> None:
    """Where no agent has worked, that is the answer, with exit code 4."""
    for report in (diff.run(work.session, DiffArgs()), export.run(work.session, ExportArgs())):
        assert isinstance(report, TextReport) and report.exit_code == 4
    with pytest.raises(UnknownHandle):
        made(work, "t1")


def test_a_patch_as_git_writes_it(work: Work) -> None:
    """The patch of a text is what ``git diff`` gives, byte for byte."""
    work.agent_does("sed -i 's/line 3/LINE 3/' a.txt; printf 'no end' >>b.txt; chmod 755 src/app.py")

    report = made(work)

    assert b"".join(patch.patch for patch in report.patches).decode() == work.git("diff", "--no-color") + "\n"
    assert (report.old_label, report.new_label) == ("before t1", "after t1")


def test_rename_and_binary_as_git_writes_them(work: Work) -> None:
    """A moved file is told as moved, binary content as one remark."""
    work.write("bin", b"\0one")
    work.commit("bin")
    work.agent_does("git mv -k src/lib/util.py moved.py; printf '\\0two' >bin; git reset -q")

    patches = {patch.path: patch for patch in made(work).patches}

    work.git("add", "-A")
    by_git = work.git("diff", "--no-color", "-M", "--cached", "HEAD", "--", "moved.py", "src/lib/util.py")
    assert patches[b"moved.py"].patch.decode() == by_git + "\n"
    assert patches[b"bin"].binary and b"Binary files a/bin and b/bin differ\n" in patches[b"bin"].patch


def test_turns_in_a_row_and_now(work: Work) -> None:
    """Two handles compare across everything between; --now compares with the disk, which is not recorded by that."""
    work.agent_does("echo 1 >b.txt")
    work.write("mine", "user\n")
    work.agent_does("echo 2 >src/app.py")
    work.write("b.txt", "later\n")
    operations = len(list(work.session.log.walk()))

    assert [line.path for line in made(work, "t1", "t2").changes] == [b"b.txt", b"mine", b"src/app.py"]
    now = made(work, "t1", to_now=True)
    assert [line.path for line in now.changes] == [b"b.txt", b"mine", b"src/app.py"]
    assert b"+later\n" in now.patches[0].patch
    assert now.new_label == "now"
    work.remove("src/app.py")
    assert [(line.path, line.change) for line in made(work, "t2", to_now=True, paths=(work.at("src"),)).changes] == [
        (b"src/app.py", "deleted")
    ]
    assert len(list(work.session.log.walk())) == operations


def test_now_sees_a_file_that_is_asked_for(work: Work) -> None:
    """Below a path that is named, also what came since the newest snapshot is compared."""
    work.agent_does("echo 1 >b.txt")
    work.write("src/late.py", "late\n")

    report = made(work, to_now=True, paths=(work.at("src"),))

    assert [(line.path, line.change) for line in report.changes] == [(b"src/late.py", "added")]


def test_stat_and_names(work: Work) -> None:
    """--stat has no patches; --name-only no counts either."""
    work.agent_does("echo 1 >b.txt; printf '\\0' >bin")

    assert [(line.path, line.added) for line in made(work, stat=True).changes] == [(b"b.txt", 1), (b"bin", None)]
    named = made(work, name_only=True)
    assert ([line.path for line in named.changes], named.patches, named.stat) == ([b"b.txt", b"bin"], (), True)


def test_a_turn_that_changed_nothing(work: Work) -> None:
    """It is said; an export of it has nothing to give: exit code 4."""
    work.agent_does("true")

    assert made(work).notices == ("t1 changed nothing",)
    report = exported(work)
    assert (report.data, report.exit_code) == (b"", 4)


def test_export_makes_the_same_change_elsewhere(work: Work, tmp_path: Path) -> None:
    """Applied to a copy of the folder before the turn, the patch gives the folder after it, and backwards the other way round."""
    work.write("bin", bytes(range(256)) * 40)
    work.write("gone.bin", b"\0" * 999)
    work.write("blank", "")
    work.write("sp ace", "x\n")
    work.link("link", "a.txt")
    work.link("to-file", "b.txt")
    work.write("crlf", "one\r\ntwo\r\n")
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", work.root, copy], check=True)
    work.agent_does(
        "sed -i 's/line 3/LINE 3/; $d' a.txt; printf 'no end' >b.txt; chmod +x b.txt; rm src/app.py gone.bin blank; "
        "head -c 5000 /dev/urandom >bin; printf '\\0new' >new.bin; : >empty; ln -sfn b.txt link; rm to-file; echo f >to-file; "
        "mv src/lib/util.py moved.py; printf 'one\\r\\n2\\r\\n' >crlf; echo y >'sp ace'; echo z >'quo\"te\ttab'; mkdir -p d/e; "
        "echo d >d/e/f; rm tool.sh; mkdir tool.sh; echo in >tool.sh/in"
    )

    report = exported(work)

    assert (report.exit_code, report.notices) == (0, ())
    before = files_of(copy)
    git_apply(copy, report.data)
    assert files_of(copy) == files_of(work.root)
    git_apply(copy, report.data, "-R")
    assert files_of(copy) == before


@pytest.mark.parametrize("number", range(6))
def test_export_of_random_texts(work: Work, chance: random.Random, number: int) -> None:
    """Whatever lines came and went, git applies the patch to the byte."""
    alphabet = [b"a\n", b"b\n", b"\n", b"c\r\n", b"\xff\n", b"-- \n", b"@@ -1 +1 @@\n", b"\\ No newline\n", b"end"]
    old = b"".join(chance.choices(alphabet, k=chance.randrange(60)))
    lines = old.splitlines(keepends=True)
    for _ in range(chance.randrange(1, 12)):
        at = chance.randrange(len(lines) + 1)
        lines[at : at + chance.randrange(3)] = chance.choices(alphabet, k=chance.randrange(3))
    work.write("text", old)
    with work.turn() as talk, work.step(talk):
        work.write("text", b"".join(lines))
    work.write("text", old)

    git_apply(work.root, exported(work).data or b"diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n")

    assert work.read_bytes("text") == b"".join(lines)


def test_export_names_what_is_left_out(work: Work) -> None:
    """A pipe, permission bits that git does not keep, git's own files and commits are not in a patch: exit code 3, each said."""
    time.sleep(1.1)  # git compares change times by the second only
    work.agent_does("mkfifo pipe; chmod 600 b.txt; git config x.y z; echo 1 >a.txt; git commit -qam a; mkdir empty")

    report = exported(work)

    assert report.exit_code == 3
    said = "\n".join(report.notices)
    for name in ("pipe", "b.txt: mode 644 -> 600", ".git/config", "empty", "commits"):
        assert name in said
    assert b"a/a.txt" in report.data and b"pipe" not in report.data


def test_export_of_a_call_and_of_paths(work: Work) -> None:
    """One call alone, one path alone."""
    with work.turn() as talk:
        with work.step(talk):
            work.write("b.txt", "1\n")
        with work.step(talk):
            work.write("src/app.py", "2\n")

    assert b"src/app.py" not in exported(work, "t1.1").data
    assert b"b.txt" not in exported(work, "t1", paths=(work.at("src"),)).data


def test_nothing_of_the_repository_is_run(work: Work, tmp_path: Path) -> None:
    """Attributes, text conversions and external diffs of the repository decide nothing."""
    fired = tmp_path / "fired"
    work.write("canary", f"#!/bin/sh\ntouch {fired}\ncat\n", 0o755)
    work.write(".gitattributes", "*.txt diff=d filter=f -diff\n")
    for key in ("diff.d.command", "diff.d.textconv", "filter.f.clean", "diff.external"):
        work.git("config", key, str(work.path("canary")))
    work.agent_does("echo 1 >b.txt")
    fired.unlink(missing_ok=True)

    assert b"+1\n" in made(work).patches[0].patch
    exported(work)

    assert not fired.exists()
