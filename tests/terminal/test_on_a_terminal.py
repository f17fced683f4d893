"""What only a terminal gets: colours, the pager, questions; and what a pipe gets instead."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from safety.store.turns import Sessions
from tests.support.process import PROJECT
from tests.support.repo import RepoBuilder


def on_terminal(
    args: Sequence[str], cwd: Path, env: Mapping[str, str], typed: str = "", signals: Sequence[tuple[bytes, int]] = ()
) -> tuple[int, str]:
    """Runs the command with a terminal of its own as all three streams; what was typed is there from the start.

    Each of the signals is sent when its text is shown, one after the other.
    """
    waiting = list(signals)
    ours, theirs = os.openpty()
    os.write(ours, typed.encode())
    child = subprocess.Popen(
        [sys.executable, "-m", "safety.terminal", *args],
        cwd=cwd,
        env={**env, "PYTHONPATH": str(PROJECT), "TERM": "xterm", "COLUMNS": "120"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 1 << 16):
            said += piece
            if waiting and waiting[0][0] in said:
                child.send_signal(waiting.pop(0)[1])
    except OSError:  # Linux says EIO when the last one at the other side has left
        pass
    os.close(ours)
    return child.wait(), said.decode("utf-8", "replace").replace("\r\n", "\n")


def coloured(env: Mapping[str, str], **more: str) -> dict[str, str]:
    return {**{name: value for name, value in env.items() if name != "NO_COLOR"}, **more}


def test_colours_on_a_terminal_only(repo: RepoBuilder) -> None:
    """A terminal gets colours unless NO_COLOR or git's color.ui says no; a pipe never does."""
    repo.agent_writes("a.txt", "agent\n")
    env = coloured(repo.env)
    assert "\x1b[" in on_terminal(["undo", "--dry-run"], repo.root, env)[1]
    assert "\x1b[" not in on_terminal(["undo", "--dry-run"], repo.root, {**env, "NO_COLOR": "1"})[1]
    assert "\x1b[" not in on_terminal(["--color=never", "undo", "--dry-run"], repo.root, env)[1]
    assert "\x1b[" not in repo.run("undo", "--dry-run", env=env).text
    assert "\x1b[" in repo.run("--color=always", "undo", "--dry-run", env=env).text
    repo.git("config", "--global", "color.ui", "false")
    assert "\x1b[" not in on_terminal(["undo", "--dry-run"], repo.root, env)[1]


def test_long_answers_go_through_the_pager(repo: RepoBuilder) -> None:
    """On a terminal ``log`` is given to the user's pager; ``--no-pager`` and a pipe go without."""
    repo.agent_writes("a.txt", "agent\n")
    env = {**repo.env, "PAGER": "sed 's/^/paged: /'"}
    assert "paged: " in on_terminal(["log"], repo.root, env)[1]
    assert "paged: " not in on_terminal(["--no-pager", "log"], repo.root, env)[1]
    assert "paged: " not in on_terminal(["status"], repo.root, env)[1]
    assert "paged: " not in repo.run("log", env=env).text


def test_a_question_is_asked_on_a_terminal(repo: RepoBuilder) -> None:
    """A running turn: on a terminal a question, where Enter means no; elsewhere exit code 4 and the exact command."""
    before = repo.picture()
    with repo.turn():
        with repo.call():
            repo.write("a.txt", "agent\n")
        alone = repo.run("undo")
        assert alone.code == 4 and "git safety undo t1 --now" in alone.out
        code, said = on_terminal(["undo"], repo.root, repo.env, "\n")
        assert (code, "[y/N]" in said, "Nothing was changed." in said) == (4, True, True)
        assert repo.read("a.txt") == "agent\n"
        code, said = on_terminal(["undo"], repo.root, repo.env, "y\n")
        assert code == 0 and "Undid t1" in said
    repo.assert_is(before)


def test_what_changed_in_a_long_call_is_asked_about(repo: RepoBuilder) -> None:
    """On a terminal a question that names the file; elsewhere, and with --yes, it is undone and marked."""
    with repo.agent():
        repo.write("a.txt", "agent or user\n")
        sessions = Sessions(next(repo.state.glob("workspaces/*/sessions")))
        (state,) = sessions.all()
        for pending in state.pending.values():
            pending.started_ms -= 11_000
        sessions.save(state)
    code, said = on_terminal(["undo"], repo.root, repo.env, "\n")
    assert (code, "a.txt" in said, "[y/N]" in said, "Nothing was changed." in said) == (4, True, True, True)
    assert repo.read("a.txt") == "agent or user\n"
    code, said = on_terminal(["undo"], repo.root, repo.env, "y\n")
    assert code == 0 and "Undid t1" in said and "changed during a long call" in said
    repo.redo()
    code, said = on_terminal(["undo", "--yes"], repo.root, repo.env)
    assert code == 0 and "[y/N]" not in said
    repo.redo()
    assert "changed during a long call" in repo.must("undo").out


def test_json_never_asks(repo: RepoBuilder) -> None:
    """With ``--json`` the question is an object, also on a terminal."""
    with repo.turn():
        with repo.call():
            repo.write("a.txt", "agent\n")
        code, said = on_terminal(["undo", "--json"], repo.root, repo.env, "y\n")
    assert code == 4 and '"report": "ask"' in said and repo.read("a.txt") == "agent\n"


def test_another_repository_in_the_environment_is_named(repo: RepoBuilder, tmp_path: Path) -> None:
    """GIT_DIR of another repository is ignored, and one line says so; of this one, nothing is said."""
    repo.agent_writes("a.txt", "agent\n")
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", other], env=repo.env, check=True)
    done = repo.run("undo", "--dry-run", env={**repo.env, "GIT_DIR": str(other / ".git")})
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert f"git -C {other} safety" in done.err
    assert repo.run("undo", "--dry-run", env={**repo.env, "GIT_DIR": str(repo.root / ".git")}).err == ""
    assert repo.run("undo", "--dry-run", env={**repo.env, "GIT_INDEX_FILE": ".git/index.lock"}).err == ""


def test_unknown_handles_are_usage_errors(repo: RepoBuilder) -> None:
    """A handle that names nothing: exit code 2 and the command that lists them."""
    repo.agent_writes("a.txt", "agent\n")
    for verb in ("undo", "redo", "show", "diff", "export"):
        done = repo.run(verb, "t99")
        assert (done.code, done.out) == (2, ""), verb
        assert done.err.startswith("Error: ") and "Hint: git safety log" in done.err, verb


def test_pieces_are_chosen_with_gits_letters(repo: RepoBuilder) -> None:
    """``undo -p`` takes back the piece that was answered with y and leaves the other; elsewhere it says what to type."""
    repo.write("long.txt", "".join(f"{number}\n" for number in range(40)))
    repo.commit("long")
    repo.agent_writes("long.txt", repo.read("long.txt").replace("3\n4\n", "3\nfour\n").replace("35\n", "thirty-five\n"))
    alone = repo.run("undo", "-p")
    assert alone.code == 4 and "git safety undo" in alone.out
    code, said = on_terminal(["undo", "-p"], repo.root, repo.env, "y\nn\n")
    assert said.count("Undo this piece [y,n,q,a,d,?]?") == 2
    assert (code in (0, 3), "four" in repo.read("long.txt"), "thirty-five" in repo.read("long.txt")) == (True, False, True)
