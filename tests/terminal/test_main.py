"""The door: exit codes, errors as sentences, and nothing that escapes as a traceback."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from safety.faults import SafetyError
from safety.release import VERSION
from safety.terminal import dispatch
from safety.terminal.main import main, refuse_windows
from safety.terminal.verbs import VERBS


class NoSuchTurn(SafetyError):
    code, exit_code = "unknown-handle", 2


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every verb fails; what it raises is in ``RAISED``."""

    def failing(words: list[str], environ: object) -> int:
        raise RAISED[words[0]]

    monkeypatch.setattr(dispatch, "run", failing)


def _with_cause() -> SafetyError:
    error = NoSuchTurn("no turn t99\x1b", "git safety log")
    error.__cause__ = OSError(28, "No space left on device")
    return error


RAISED: dict[str, BaseException] = {
    "expected": _with_cause(),
    "unexpected": KeyError("boom"),
    "interrupt": KeyboardInterrupt(),
    "memory": MemoryError(),
}


@pytest.mark.parametrize("words", [["--version"], ["version"], ["-V"]])
def test_version(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One line, the version of the package's metadata."""
    assert main(words, {}) == 0
    assert capsys.readouterr().out == f"git-safety {VERSION}\n"


def test_help_starts_with_what_a_beginner_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """The first screen holds at most ten verbs, fits a small terminal, and names the way to the rest."""
    assert main(["-h"], {}) == 0
    text = capsys.readouterr().out
    assert sum(verb.first for verb in VERBS) <= 10
    assert len(text.splitlines()) <= 24 and max(len(line) for line in text.splitlines()) <= 100
    assert "git safety help all" in text
    assert main([], {}) == 2


@pytest.mark.parametrize(
    "topic", [*(verb.name for verb in VERBS), "handles", "not-covered", "exit-codes", "settings", "environment", "privacy"]
)
def test_help_on_everything(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each verb and topic has a page."""
    assert main(["help", topic], {}) == 0
    assert len(capsys.readouterr().out) > 50


@pytest.mark.parametrize(
    "words", [["udno"], ["help", "xyzzy"], ["--nonsense", "log"], ["undo", "--nonsense"], ["log", "-n", "x"], ["version", "x"]]
)
def test_usage_errors(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence and a command to type on standard error, exit code 2, nothing on standard output."""
    assert main(words, {}) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("Error: ") and "\nHint: git safety" in said.err


@pytest.mark.usefixtures("fail")
def test_an_expected_failure_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """What failed, why, what to type; the exit code of the error; foreign text visible."""
    assert main(["expected"], {}) == 2
    assert capsys.readouterr().err == (
        "Error: no turn t99\\e\nCaused by: [Errno 28] No space left on device\nHint: git safety log\n"
    )  # fmt: skip


@pytest.mark.usefixtures("fail")
def test_an_expected_failure_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """With ``--json`` an object with the stable code, on standard output."""
    assert main(["expected", "--json"], {}) == 2
    said = json.loads(capsys.readouterr().out)
    assert (said["report"], said["code"], said["exit_code"]) == ("error", "unknown-handle", 2)


@pytest.mark.usefixtures("fail")
def test_an_unexpected_failure_leaves_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback on the terminal; it is in a private file that the message names."""
    state = tmp_path / "state"
    assert main(["unexpected"], {"GIT_SAFETY_HOME": str(state)}) == 1
    said = capsys.readouterr().err
    log = state / "errors.log"
    assert said.startswith("Error: git-safety failed inside (KeyError: 'boom')") and str(log) in said
    assert "Traceback" not in said and "Traceback" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("fail")
def test_an_unexpected_failure_without_a_place_for_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A state folder that cannot be made is part of the message and not another failure."""
    (tmp_path / "file").touch()
    assert main(["unexpected"], {"GIT_SAFETY_HOME": str(tmp_path / "file" / "state")}) == 1
    assert "could not be written" in capsys.readouterr().err


@pytest.mark.usefixtures("fail")
def test_interrupt_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C gives 130; no memory is said in a sentence."""
    assert main(["interrupt"], {}) == 130
    assert main(["memory"], {}) == 1
    assert "out of memory" in capsys.readouterr().err


def test_windows_is_refused_with_the_way_out() -> None:
    """On Windows one sentence names WSL."""
    out = io.StringIO()
    assert refuse_windows(out) == 1
    assert "WSL" in out.getvalue() and "Hint: " in out.getvalue()


def test_a_folder_removed_under_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is still known by the shell's PWD, so that its workspace can be found and restored."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert dispatch.working_folder({"PWD": str(gone)}) == os.fsencode(gone)
    with pytest.raises(SafetyError):
        dispatch.working_folder({})


def test_an_alias_of_git_says_where_it_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIT_PREFIX counts at the top of a work tree and nowhere else."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "src" / "src").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert dispatch.working_folder({"GIT_PREFIX": "src/"}) == os.fsencode(tmp_path / "src")
    assert dispatch.working_folder({"GIT_PREFIX": "none/"}) == os.fsencode(tmp_path)
    monkeypatch.chdir(tmp_path / "src")
    assert dispatch.working_folder({"GIT_PREFIX": "src/"}) == os.fsencode(tmp_path / "src")


def test_a_reader_that_leaves(tmp_path: Path) -> None:
    """`git-safety help all | head -1` ends quietly."""
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", "import sys; from safety.terminal.main import main; sys.exit(main(['help', 'all'], {}))"],
        cwd=Path(__file__).resolve().parents[2],
        env={"PYTHONUNBUFFERED": "1"},
        stdout=_closed_pipe(),
        stderr=subprocess.PIPE,
    )
    assert done.stderr == b""
    assert done.returncode in (0, 141)


def _closed_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def test_help_of_the_hook_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for its help, the hook reads no event."""
    assert main(["hook", "-h"], {}) == 0
    assert "--agent NAME" in capsys.readouterr().out
