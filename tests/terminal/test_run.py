"""``git safety run``: the command's terminal, signals and exit code are its own, and what it did can be taken back."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from safety.terminal import run
from safety.terminal.arguments import UsageError
from safety.terminal.protect import Summary, Turn
from tests.support.process import PROJECT
from tests.support.repo import NINE_LINES, RepoBuilder

DEADLINE_S = 60.0
PRODUCT = [sys.executable, "-m", "safety.terminal"]
#: Makes the terminal on standard input the controlling one, then becomes the program.
OWN_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


def until(true: Callable[[], bool], what: str = "", pause_s: float = 0.01) -> None:
    """Waits for something that another process brings about."""
    end = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < end, what
        select.select([], [], [], pause_s)


class Terminal:
    """A program on a terminal of its own: keys go in, all it prints comes out in ``seen``."""

    def __init__(self, words: list[str], cwd: Path, env: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        attributes = termios.tcgetattr(theirs)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, *words],
            cwd=cwd,
            env={**env, "PYTHONPATH": str(PROJECT), "TERM": "dumb"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = ""

    def types(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def shows(self, text: str, times: int = 1) -> None:
        """Reads until ``text`` was printed."""
        end = time.monotonic() + DEADLINE_S
        while self.seen.count(text) < times:
            ready, _, _ = select.select([self._ours], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} was not shown:\n{self.seen}"
            part = self._read()
            assert part, f"{text!r} was not shown before the end:\n{self.seen}"

    def ends(self) -> int:
        """Reads to the end and gives the exit code."""
        while self._read():
            pass
        return self.process.wait(DEADLINE_S)

    def _read(self) -> str:
        try:
            part = os.read(self._ours, 1 << 16).decode("utf-8", "backslashreplace").replace("\r\n", "\n")
        except OSError:  # EIO: nobody holds the other end
            part = ""
        self.seen += part
        return part

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(repo: RepoBuilder) -> Iterator[Callable[..., Terminal]]:
    """Starts ``git safety run`` (or, with ``shell``, an interactive shell) in the repository, on a terminal."""
    opened: list[Terminal] = []

    def start(*words: str, shell: bool = False, parent: Sequence[str] = ()) -> Terminal:
        command = ["bash", "--norc", "--noprofile", "-i"] if shell else [*parent, *PRODUCT, "run", *words]
        opened.append(Terminal(command, repo.root, {**repo.env, "PS1": "$ "}))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


Piped = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def piped(repo: RepoBuilder) -> Iterator[Piped]:
    """Starts ``git safety run`` without a terminal, in a session of its own, which is ended whole after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, **options: object) -> subprocess.Popen[bytes]:
        running = subprocess.Popen(
            [*PRODUCT, "run", *words],
            cwd=repo.root,
            env={**repo.env, "PYTHONPATH": str(PROJECT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **options,  # type: ignore[call-overload]
        )
        started.append(running)
        return running

    yield start
    for running in started:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()


WAITS = "echo ready; while :; do sleep 0.02; done"


# -- the command's own exit code, words and descriptors ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["sh", "-c", "exit 0"], 0),
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", "kill -KILL $$"], 137),
        (["./no-interpreter-line"], 5),
        (["./missing-interpreter"], 126),
        (["no-such-command"], 127),
        (["./no/such/file"], 127),
        (["./src"], 126),
        (["./a.txt"], 126),
    ],
)
def test_exit_code_is_what_a_shell_would_give(repo: RepoBuilder, words: list[str], code: int) -> None:
    """The command's own code; 128+n for a signal; 127 not found, 126 found but not to be executed."""
    repo.write("no-interpreter-line", "exit 5\n", 0o755)
    repo.write("missing-interpreter", "#!/no/such/interpreter\n", 0o755)

    done = repo.run("run", "--", *words)

    assert done.code == code, done.text
    assert "Traceback" not in done.text
    assert bool(done.err) == (code in (126, 127))


def test_words_output_and_input_pass_through_untouched(repo: RepoBuilder) -> None:
    """Arguments that look like ours, odd bytes, standard input and the streams are the command's."""
    script = 'printf "%s|" "$@"; cat; echo err >&2'

    done = repo.run("run", "sh", "-c", script, "sh", "--json", "-q", "--", "ö\udcff", stdin=b"in\0put")

    assert done.out == "--json|-q|--|ö\udcff|in\0put"
    assert done.err == "err\n"


def test_inherited_descriptors_reach_the_command(piped: Piped, repo: RepoBuilder) -> None:
    """``run -- cat <(producer)`` works: descriptors above 2 stay open, none of ours is added, no signal is blocked or ignored."""
    ours, theirs = os.pipe()
    os.write(theirs, b"through\n")
    os.close(theirs)
    script = f"cat /dev/fd/{ours}; ls /proc/self/fd | wc -l; grep SigBlk /proc/self/status"
    running = piped("--", "sh", "-c", script, pass_fds=[ours])
    os.close(ours)

    out, err = running.communicate(timeout=DEADLINE_S)

    # 0, 1, 2, the pipe, and the one that ls reads the folder by
    assert out.split() == [b"through", b"5", b"SigBlk:", b"0000000000000000"], err


def test_option_errors_run_nothing(repo: RepoBuilder) -> None:
    """A wrong option is a usage error, told before anything is run."""
    for words in (
        ["--nonsense", "--", "touch", "x"],
        [],
        ["--"],
        ["--json"],
        ["--json", "/no/such/folder/f", "--", "touch", "x"],
    ):
        done = repo.run("run", *words)
        assert (done.code, "Error:" in done.err) == (2, True), (words, done.text)
    assert not repo.exists("x")


def test_parse_ends_at_the_command() -> None:
    """Options stand before the command; ``--`` is optional."""
    assert run.parse(["-q", "--json", "f", "ls", "-q"]) == run.RunArgs(("ls", "-q"), quiet=True, summary="f")
    assert run.parse(["--name=aider", "--", "-odd"]) == run.RunArgs(("-odd",), name="aider")
    with pytest.raises(UsageError):
        run.parse(["-q"])


# -- signals -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"])
def test_signal_sent_to_us_reaches_the_command(piped: Piped, repo: RepoBuilder, name: str) -> None:
    """A signal from another process is passed on, once; what the command makes of it is its own business."""
    running = piped("--", "sh", "-c", f"trap 'echo got {name}; exit 9' {name}; {WAITS}")
    assert running.stdout is not None and running.stdout.readline() == b"ready\n"

    running.send_signal(getattr(signal, f"SIG{name}"))
    out, _ = running.communicate(timeout=DEADLINE_S)

    assert (running.returncode, out) == (9, f"got {name}\n".encode())


def test_signal_that_kills_the_command_is_its_exit_code(piped: Piped, repo: RepoBuilder) -> None:
    """Untrapped, it ends the command, and the code says which; the change is recorded."""
    running = piped("--", "sh", "-c", f"echo agent >a.txt; {WAITS}")
    assert running.stdout is not None and running.stdout.readline() == b"ready\n"

    running.terminate()
    running.communicate(timeout=DEADLINE_S)

    assert running.returncode == 128 + signal.SIGTERM
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


def test_ctrl_c_reaches_the_command_once(terminal: Callable[..., Terminal], repo: RepoBuilder) -> None:
    """A Ctrl-C typed at the terminal comes to the command from the terminal alone; we wait for it and record."""
    script = "import os, signal, sys\nsignal.signal(signal.SIGINT, lambda *a: os.write(1, b'caught\\n'))\n"
    script += "print('ready', flush=True)\nopen('a.txt', 'w').write('agent')\nsys.stdin.readline()\nprint('bye')\nsys.exit(4)\n"
    window = terminal("--", sys.executable, "-c", script)
    window.shows("ready")

    window.types("\x03")
    window.shows("caught")
    window.types("\n")

    assert window.ends() == 4
    assert window.seen.count("caught") == 1
    assert "t1 changed 1 file. Take it back: git safety undo" in window.seen
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


#: A parent that relays a signal to its child as git does, but late enough not to be taken for the terminal's own.
RELAY = """
import os, select, signal, subprocess, sys
def relay(number, frame):
    select.select([], [], [], 0.3)
    child.send_signal(number)
    os.write(1, b"relayed to %d.\\n" % child.pid)
child = subprocess.Popen(sys.argv[1:])
signal.signal(signal.SIGINT, relay)
sys.exit(child.wait())
"""


def test_relayed_ctrl_c_reaches_the_command_once(terminal: Callable[..., Terminal]) -> None:
    """``git safety run``: git relays to us the signal that the terminal sent to all, which must not become a second Ctrl-C."""
    script = "import os, signal, sys\nsignal.signal(signal.SIGINT, lambda *a: os.write(1, b'caught\\n'))\n"
    script += "signal.signal(signal.SIGUSR1, lambda *a: os.write(1, b'after\\n'))\n"
    script += "print('ready', flush=True)\nsys.stdin.readline()\nprint('bye')\nsys.exit(4)\n"
    window = terminal("--", sys.executable, "-c", script, parent=[sys.executable, "-c", RELAY])
    window.shows("ready")

    window.types("\x03")
    window.shows("relayed to ")
    window.shows(".\n")
    # Signals are taken in the order of their numbers: with this one passed on, the other was passed on too, or never will be.
    os.kill(int(window.seen.partition("relayed to ")[2].partition(".")[0]), signal.SIGUSR1)
    window.shows("after")
    window.types("\n")

    assert window.ends() == 4
    assert window.seen.count("caught") == 1


def test_ctrl_c_that_kills_the_command(terminal: Callable[..., Terminal]) -> None:
    """The command dies of the signal, we give its code, nobody prints a traceback."""
    window = terminal("--", "sh", "-c", WAITS)
    window.shows("ready")

    window.types("\x03")

    assert window.ends() == 130
    assert "Traceback" not in window.seen
    assert "git-safety" not in window.seen


def test_ctrl_z_and_fg(terminal: Callable[..., Terminal], repo: RepoBuilder) -> None:
    """Under a shell with job control Ctrl-Z stops the command and us, fg continues both, and the exit code comes through."""
    shell = terminal(shell=True)
    shell.shows("$ ")
    line = shlex.join([*PRODUCT, "run", "--", "sh", "-c", "echo rea''dy; read line; echo got-$line; exit 6"])
    shell.types(line + "\n")
    shell.shows("ready")

    shell.types("\x1a")
    shell.shows("Stopped")
    shell.types("echo in-shell-$((1+1))\n")
    shell.shows("in-shell-2")
    shell.types("fg\n")
    shell.shows("run -- sh", times=2)
    shell.types("back\n")
    shell.shows("got-back")
    shell.types("echo code-$?\n")
    shell.shows("code-6")
    shell.types("exit\n")
    shell.ends()


def test_stop_and_continue_sent_to_us(piped: Piped, repo: RepoBuilder) -> None:
    """TSTP and CONT from another process are passed on, and without a shell to continue us we don't stop."""
    running = piped("--", "sh", "-c", f"trap 'echo stop' TSTP; trap 'echo go; exit 3' CONT; {WAITS}")
    assert running.stdout is not None and running.stdout.readline() == b"ready\n"

    running.send_signal(signal.SIGTSTP)
    assert running.stdout.readline() == b"stop\n"
    running.send_signal(signal.SIGCONT)
    out, _ = running.communicate(timeout=DEADLINE_S)

    assert (running.returncode, out) == (3, b"go\n")


def test_command_that_stops_itself_without_a_shell(piped: Piped, repo: RepoBuilder) -> None:
    """A command stopped where nobody has job control can be continued by whoever stopped it; we were not stopped."""
    running = piped("--", "sh", "-c", "echo $$; kill -STOP $$; exit 3")
    assert running.stdout is not None
    pid = int(running.stdout.readline())
    until(lambda: state_of(pid) == "T", "the command did not stop")
    until(lambda: state_of(running.pid) == "S", "we did not go on waiting")

    os.kill(pid, signal.SIGCONT)

    running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 3


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_nohup_stays_nohup(piped: Piped, repo: RepoBuilder) -> None:
    """A signal that was ignored before us is still ignored by the command."""
    running = piped("--", "grep", "SigIgn", "/proc/self/status", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))

    out, _ = running.communicate(timeout=DEADLINE_S)

    assert int(out.split()[1], 16) & 1
    assert not int(out.split()[1], 16) & 1 << (signal.SIGPIPE - 1)


def test_waiting_costs_nothing(piped: Piped, repo: RepoBuilder) -> None:
    """While the command runs and nothing is written, we use no processor time."""
    running = piped("--", "sh", "-c", "echo ready; read line", stdin=subprocess.PIPE)
    assert running.stdout is not None and running.stdin is not None
    assert running.stdout.readline() == b"ready\n"

    def ticks() -> int:
        fields = Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before, end = -1, time.monotonic() + 1.5
    until(lambda: time.monotonic() > end - 1.0)
    before = ticks()
    until(lambda: time.monotonic() > end)
    used = ticks() - before
    running.communicate(b"\n", timeout=DEADLINE_S)

    assert used <= 2


# -- what is recorded and said -----------------------------------------------------------------------------------------------


def test_summary_lines() -> None:
    """One burst says what changed and how to take it back; several name the first and the last."""
    line = run.summary_line
    one, last = Turn("t1", 14, 2, 0), Turn("t7", 1, 0, 0)
    assert line(Summary((one,))) == "t1 changed 14 files, removed 2. Take it back: git safety undo"
    assert line(Summary((last,))) == "t7 changed 1 file. Take it back: git safety undo"
    assert line(Summary((Turn("t2", 0, 1, 0),))) == "t2 removed 1 file. Take it back: git safety undo"
    lost = ("big.db", "c", "d", "e\n")
    assert line(Summary((Turn("t2", 1, 2, 4, lost),))) == (
        "t2 changed 1 file, removed 2. 4 paths cannot be taken back: big.db, c, d, 1 more. Take the rest back: git safety undo"
    )
    assert line(Summary((Turn("t6", 0, 1, 1, lost[:1], False),))) == "t6 removed 1 path. 1 path cannot be taken back: big.db"
    assert line(Summary((Turn("t6", 0, 0, 1, lost[3:], False),))) == (
        't6 changed what no snapshot holds. 1 path cannot be taken back: "e\\n"'
    )
    assert line(Summary((one, last))) == "t1 … t7, git safety log"
    assert line(Summary((one, Turn("t2", 1, 0, 1, lost[:1])))) == "t1 … t2, git safety log. 1 path cannot be taken back: big.db"


def test_what_cannot_be_taken_back_is_said(terminal: Callable[..., Terminal], repo: RepoBuilder) -> None:
    """A file over the snapshot limit and an ignored dependency folder are gone for good: named, and no undo is offered for them."""
    repo.write("big.db", "x")
    os.truncate(repo.path("big.db"), 40 << 20)
    repo.write(".gitignore", "node_modules/\n")
    repo.write("node_modules/m.js", "m\n")
    window = terminal("--", "rm", "-rf", "big.db", "node_modules")
    assert window.ends() == 0
    assert "t1 removed 2 paths. 2 paths cannot be taken back: big.db, node_modules" in window.seen
    assert "undo" not in window.seen
    said = repo.must("undo", code=3).out
    assert said.startswith("Nothing undone of t1") and said.count("gone, cannot be restored") == 2


def test_nothing_is_said_when_nothing_changed_or_nobody_looks(terminal: Callable[..., Terminal], repo: RepoBuilder) -> None:
    """No line without a change, without a terminal, or with -q."""
    window = terminal("--", "sh", "-c", "echo out")
    assert (window.ends(), window.seen) == (0, "out\n")
    window = terminal("-q", "--", "sh", "-c", "echo x >a.txt")
    assert (window.ends(), window.seen) == (0, "")
    done = repo.run("run", "--", "sh", "-c", "echo y >a.txt")
    assert (done.code, done.text) == (0, "")


def test_json_summary(repo: RepoBuilder) -> None:
    """The summary for CI: the command, its code, the turns."""
    file = Path(repo.env["HOME"], "summary.json")

    repo.must("run", "--json", str(file), "--", "sh", "-c", "echo x >a.txt; rm b.txt; exit 2", code=2)

    told = json.loads(file.read_text())
    assert (told["exit_code"], told["protected"], told["problem"]) == (2, True, "")
    assert told["command"] == ["sh", "-c", "echo x >a.txt; rm b.txt; exit 2"]
    assert told["turns"] == [{"handle": "t1", "changed": 1, "removed": 1, "not_covered": 0, "uncovered": [], "undoable": True}]


def test_json_file_in_a_folder_that_the_command_deletes(repo: RepoBuilder) -> None:
    """The summary's file is written again if the command removed it, and a line says so if that is not possible."""
    repo.must("run", "--json", "out.json", "--", "sh", "-c", "rm -f out.json")
    assert json.loads(repo.read("out.json"))["exit_code"] == 0
    repo.mkdir("gone")
    done = repo.must("run", "--json", "gone/out.json", "--", "rm", "-rf", "gone")
    assert "could not write" in done.err


def test_command_that_deletes_the_workspace(repo: RepoBuilder) -> None:
    """The folder we stand in may go: the exit code comes through, and undo, typed in the same shell, brings all of it back."""
    before = repo.picture()
    product = shlex.join(PRODUCT)
    script = f"{product} run -- sh -c 'rm -rf {repo.root}; exit 3'; echo $?; test ! -e {repo.root} && {product} undo"

    done = subprocess.run(["sh", "-c", script], cwd=repo.root, env={**repo.env, "PYTHONPATH": str(PROJECT)}, capture_output=True)

    assert (done.returncode, done.stdout[:2]) == (0, b"3\n"), done.stderr
    assert b"Traceback" not in done.stderr
    repo.assert_is(before)


def test_command_that_moves_the_workspace_away(repo: RepoBuilder) -> None:
    """A workspace renamed under us breaks nothing, and comes back where it was or stays where it is; no byte is lost."""
    away = repo.root.parent / "away"

    done = repo.run("run", "--", "sh", "-c", f"mv {repo.root} {away}; exit 3")

    assert done.code == 3
    assert "Traceback" not in done.text
    away.rename(repo.root)


def test_folder_that_is_already_gone(repo: RepoBuilder) -> None:
    """Started in a deleted folder the command runs, unprotected, and a line says so."""
    gone = repo.mkdir("gone")
    script = f"cd {gone} && rmdir {gone} && exec {shlex.join(PRODUCT)} run -- sh -c 'echo ran'"

    done = subprocess.run(["sh", "-c", script], env={**repo.env, "PYTHONPATH": str(PROJECT)}, capture_output=True, cwd=gone)

    assert (done.returncode, done.stdout) == (0, b"ran\n")
    assert done.stderr.startswith(b"git-safety: not protected: ")


@pytest.fixture
def broken_state(repo: RepoBuilder) -> Path:
    """A state folder that cannot be: its place is taken by a file."""
    state = Path(repo.env["HOME"], "no-state")
    state.write_text("")
    return state


def test_command_runs_unprotected_if_it_must(repo: RepoBuilder, broken_state: Path) -> None:
    """Without a store the command runs all the same, and one line says that it is not protected, -q or not."""
    done = repo.run("run", "-q", "--", "sh", "-c", "echo x >b.txt; exit 3", env={"GIT_SAFETY_HOME": str(broken_state)})

    assert done.code == 3
    assert done.err.startswith("git-safety: not protected: ")
    assert done.err.count("\n") == 1
    repo.write("b.txt", "b\n")


def test_fail_closed_runs_nothing_unprotected(repo: RepoBuilder, broken_state: Path) -> None:
    """With ``fail_closed`` the command is not started, and 125 says that it was us."""
    settings = Path(repo.env["XDG_CONFIG_HOME"], "git-safety/settings.json")
    settings.parent.mkdir(parents=True)
    settings.write_text('{"fail_closed": true}')

    done = repo.run("run", "--", "sh", "-c", "echo x >b.txt", env={"GIT_SAFETY_HOME": str(broken_state)})

    assert done.code == 125
    assert "not protected" in done.err
    assert repo.read("b.txt") == "b\n"


def test_home_itself_is_not_protected(repo: RepoBuilder) -> None:
    """In the home folder nothing would be recorded, and a line says so before the command runs."""
    done = repo.run("run", "--", "echo", "ran", cwd=Path(repo.env["HOME"]))

    assert (done.code, done.out) == (0, "ran\n")
    assert done.err.startswith("git-safety: not protected: ")


def test_ctrl_c_before_the_command_is_started(terminal: Callable[..., Terminal], repo: RepoBuilder) -> None:
    """While the first snapshot is still to come, Ctrl-C ends it all: the command is not run."""
    repo.must("run", "--", "true")
    (lock,) = repo.state.glob("workspaces/*/lock")
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        window = terminal("--", "sh", "-c", "echo agent >a.txt")
        open_files = Path(f"/proc/{window.process.pid}/fd")
        until(lambda: str(lock) in [os.path.realpath(one) for one in open_files.iterdir()], "it does not wait for the lock")

        def interrupted() -> bool:
            window.types("\x03")
            return window.process.poll() is not None

        until(interrupted, "it does not end", pause_s=0.2)
    assert window.ends() == 130
    assert "Traceback" not in window.seen
    assert repo.read("a.txt") == NINE_LINES


def test_child_knows_the_run(repo: RepoBuilder) -> None:
    """GIT_SAFETY_RUN is set for the command, and only for it."""
    done = repo.must("run", "--", "sh", "-c", "echo $GIT_SAFETY_RUN")

    assert done.out.strip()


# -- bursts ------------------------------------------------------------------------------------------------------------------


def quiet(repo: RepoBuilder, seconds: float) -> None:
    settings = Path(repo.env["XDG_CONFIG_HOME"], "git-safety/settings.json")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"run": {"quiet_s": seconds}}))


def turns(repo: RepoBuilder) -> list[str]:
    return [row["handle"] for row in json.loads(repo.run("log", "--json").out)["rows"] if row["handle"][1:].isdigit()]


def test_undo_takes_back_the_last_burst(piped: Piped, repo: RepoBuilder) -> None:
    """In a long run a quiet time after a change ends the turn, so that undo takes back only what came after it."""
    quiet(repo, 0.3)
    file = Path(repo.env["HOME"], "summary.json")
    script = "read x; echo one >a.txt; read x; echo two >b.txt; read x; echo three >new; read x"
    running = piped("--json", str(file), "--", "sh", "-c", script, stdin=subprocess.PIPE)
    assert running.stdin is not None

    def step() -> None:
        assert running.stdin is not None
        running.stdin.write(b"\n")
        running.stdin.flush()

    step()
    until(lambda: "t2" in turns(repo) or len(turns(repo)) == 2, "the first burst was not closed")
    step()
    until(lambda: len(turns(repo)) == 3, "the second burst was not closed")
    step()
    until(lambda: repo.exists("new"))
    step()
    running.communicate(timeout=DEADLINE_S)

    assert [turn["handle"] for turn in json.loads(file.read_text())["turns"]] == ["t1", "t2", "t3"]
    repo.undo()
    assert (repo.read("a.txt"), repo.read("b.txt"), repo.exists("new")) == ("one\n", "two\n", False)
    repo.undo()
    assert (repo.read("a.txt"), repo.read("b.txt")) == ("one\n", "b\n")
    repo.undo()
    assert (repo.read("a.txt"), repo.read("b.txt")) == (NINE_LINES, "b\n")


@pytest.mark.parametrize("handle", [(), ("t1",)], ids=["newest", "by its handle"])
def test_undo_while_the_command_still_runs(piped: Piped, repo: RepoBuilder, handle: tuple[str, ...]) -> None:
    """What it has done so far is asked about as what it is, a turn that still runs, and the command that is named takes it back."""
    running = piped("--", "sh", "-c", "rm b.txt; echo ready; read x", stdin=subprocess.PIPE)
    assert running.stdout is not None and running.stdout.readline() == b"ready\n"

    asked = repo.run("undo", *handle)
    assert asked.code == 4 and "t1 is still running. Stop it first, or undo what it has done so far?" in asked.text, asked.text
    assert "git safety undo t1 --include-unattributed --now" in asked.text and not repo.exists("b.txt")
    repo.must("undo", "t1", "--include-unattributed", "--now")
    assert repo.read("b.txt") == "b\n"


def test_quiet_without_a_change_is_no_burst(piped: Piped, repo: RepoBuilder) -> None:
    """Writing and removing a file again leaves nothing recorded: the run stays one turn."""
    quiet(repo, 0.2)
    running = piped("--", "sh", "-c", "echo x >tmp; rm tmp; read x; echo y >a.txt", stdin=subprocess.PIPE)
    assert running.stdin is not None
    end = time.monotonic() + 1.5
    until(lambda: time.monotonic() > end)
    running.communicate(b"\n", timeout=DEADLINE_S)

    assert turns(repo) == ["t1"]
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES
