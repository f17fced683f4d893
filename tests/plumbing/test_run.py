"""Starting git: what its environment holds, what it may run, how it ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from safety.plumbing.run import Git, GitError, GitMissing, GitTimeout

Environment = dict[str, str]


def run_git(env: Environment, folder: Path, *args: str) -> bytes:
    """The test's own git, with the user's environment and nothing of the product's."""
    return subprocess.run(["git", "-C", str(folder), *args], env=env, check=True, capture_output=True).stdout


@pytest.fixture
def root(tmp_path: Path, env: Environment) -> Path:
    """A repository with one commit."""
    root = tmp_path / "work"
    run_git(env, tmp_path, "init", "-q", str(root))
    (root / "a.txt").write_text("one\n")
    run_git(env, root, "add", "a.txt")
    run_git(env, root, "commit", "-qm", "first")
    return root


@pytest.fixture
def store(tmp_path: Path, env: Environment) -> Path:
    """An empty bare repository."""
    run_git(env, tmp_path, "init", "-q", "--bare", "store.git")
    return tmp_path / "store.git"


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def fake_git(tmp_path: Path, text: str) -> Git:
    """A Git whose program is a shell script; for what real git cannot be made to do."""
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin/git", text)
    return Git({"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})


def is_alive(pid: int) -> bool:
    """Whether a process exists and has not ended; an orphan that nobody reaps counts as ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def wait_until_dead(pid: int) -> bool:
    """Whether a killed process is gone soon; the kernel needs a moment after the signal."""
    ends_at = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < ends_at:
        os.sched_yield()
    return not is_alive(pid)


def test_leftovers_of_a_git_hook_do_not_redirect_a_call(env: Environment, root: Path, store: Path) -> None:
    """GIT_DIR, GIT_INDEX_FILE and the like of the base environment are dropped for both kinds of call."""
    leak = {
        "GIT_DIR": str(store),
        "GIT_INDEX_FILE": "/nowhere/index",
        "GIT_CONFIG_COUNT": "1",
        "GIT_OBJECT_DIRECTORY": "/nowhere",
    }
    git = Git({**env, **leak, "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true"})

    listed = git.user(os.fsencode(root), ["ls-files", "-z"]).stdout
    objects = git.store(store, ["rev-parse", "--git-path", "objects"]).stdout

    assert listed == b"a.txt\0"
    assert objects.strip() == os.fsencode(store / "objects")


def test_user_calls_keep_the_users_configuration_files_and_store_calls_do_not(env: Environment, root: Path, store: Path) -> None:
    """GIT_CONFIG_GLOBAL is passed on in the user's repository; a store call reads no global configuration at all."""
    other = root.parent / "other.config"
    other.write_text("[user]\n\tname = Other\n")
    git = Git({**env, "GIT_CONFIG_GLOBAL": str(other)})

    assert git.user(os.fsencode(root), ["config", "user.name"]).stdout == b"Other\n"
    assert git.store(store, ["config", "user.name"], ok=(1,)).returncode == 1


def test_a_broken_global_configuration_does_not_reach_the_store(env: Environment, store: Path) -> None:
    """A syntax error in ~/.gitconfig makes no store call fail."""
    Path(env["HOME"], ".gitconfig").write_text("[broken\n")

    assert Git(env).store(store, ["rev-parse", "--is-bare-repository"]).stdout == b"true\n"


@pytest.mark.parametrize(
    ("setting", "args"),
    [
        ("core.fsmonitor", ["status", "--porcelain"]),
        ("core.hooksPath", ["update-ref", "refs/heads/x", "HEAD"]),
        ("core.sshCommand", ["ls-remote", "ssh://localhost/x"]),
        ("gpg.program", ["log"]),
    ],
)
def test_no_setting_of_a_repository_runs_a_program(env: Environment, root: Path, setting: str, args: list[str]) -> None:
    """A planted setting that makes plain git run a program has no effect on a call of ours."""
    canary = root.parent / "canary"
    hooks = root.parent / "hooks"
    hooks.mkdir()
    for hook in ("reference-transaction", "program"):
        script(hooks / hook, f"echo ran >> '{canary}'\n")
    signed = run_git(env, root, "cat-file", "commit", "HEAD").replace(
        b"\n\n", b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n -----END PGP SIGNATURE-----\n\n", 1
    )
    made = subprocess.run(
        ["git", "-C", str(root), "hash-object", "-t", "commit", "-w", "--stdin"],
        env=env,
        input=signed,
        capture_output=True,
        check=True,
    )
    run_git(env, root, "update-ref", "HEAD", made.stdout.decode().strip())
    run_git(env, root, "config", "log.showSignature", "true")
    run_git(env, root, "config", setting, str(hooks if setting == "core.hooksPath" else hooks / "program"))
    subprocess.run(["git", "-C", str(root), *args], env=env, check=False, capture_output=True)
    assert canary.exists()
    canary.unlink()
    (root / ".git/refs/heads/x").unlink(missing_ok=True)

    Git(env).user(os.fsencode(root), args, check=False)

    assert not canary.exists()


def test_a_bare_repository_inside_the_tree_is_not_entered(env: Environment, root: Path) -> None:
    """A folder that is itself laid out like a git directory is refused, whatever its configuration says."""
    inner = root / "data"
    run_git(env, root, "init", "-q", "--bare", str(inner))

    with pytest.raises(GitError) as caught:
        Git(env).user(os.fsencode(inner), ["rev-parse", "--git-dir"])

    assert caught.value.returncode == 128


def test_a_missing_object_is_not_fetched(env: Environment, root: Path) -> None:
    """What a partial clone left with its remote stays there: a call of ours fails where plain git goes and gets it."""
    run_git(env, root, "config", "uploadpack.allowFilter", "true")
    run_git(env, root, "config", "uploadpack.allowAnySHA1InWant", "true")
    blob = run_git(env, root, "rev-parse", "HEAD:a.txt").decode().strip()
    clone = root.parent / "clone"
    run_git(env, root, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{root}", str(clone))

    assert Git(env).user(os.fsencode(clone), ["cat-file", "-e", blob], check=False).returncode != 0

    run_git(env, clone, "cat-file", "-e", blob)


def test_a_vanished_git_directory_does_not_let_the_repository_above_answer(env: Environment, root: Path) -> None:
    """Discovery stops at the root that was named."""
    inner = root / "inner"
    inner.mkdir()

    with pytest.raises(GitError):
        Git(env).user(os.fsencode(inner), ["rev-parse", "HEAD"])


def test_a_failure_carries_what_git_said(env: Environment, root: Path) -> None:
    """GitError names the command, the exit code and git's first line; allowed codes raise nothing."""
    git = Git(env)

    with pytest.raises(GitError) as caught:
        git.user(os.fsencode(root), ["-c", "a.b=c", "rev-parse", "--verify", "nothing"])
    allowed = git.user(os.fsencode(root), ["rev-parse", "--verify", "nothing"], ok=(0, 128))
    unchecked = git.user(os.fsencode(root), ["rev-parse", "--verify", "nothing"], check=False)

    assert caught.value.code == "git-failed"
    assert caught.value.message == "git rev-parse failed (128): fatal: Needed a single revision"
    assert (caught.value.returncode, caught.value.argv[-1]) == (128, b"nothing")
    assert allowed.returncode == unchecked.returncode == 128


def test_a_folder_that_is_gone_is_an_error_of_ours(env: Environment, tmp_path: Path) -> None:
    """No traceback of the standard library for a store whose folder vanished."""
    with pytest.raises(GitError) as caught:
        Git(env).store(tmp_path / "gone.git", ["rev-parse", "HEAD"])

    assert "is not a folder" in caught.value.message


def test_without_git_there_is_one_clear_error(tmp_path: Path) -> None:
    """A PATH without git, or with git only through a relative entry, gives GitMissing with a hint."""
    script(tmp_path / "git", "exit 0\n")

    for path in (str(tmp_path / "empty"), ".", ""):
        with pytest.raises(GitMissing) as caught:
            Git({"PATH": path}).user(os.fsencode(tmp_path), ["version"])
        assert (caught.value.code, bool(caught.value.hint)) == ("git-missing", True)


def test_names_of_any_bytes_reach_git_unchanged(env: Environment, root: Path) -> None:
    """Arguments and input are bytes: no encoding, no pathspec magic, no globbing."""
    names = [b":(top)x", b"*.txt", b"line\nbreak", b"\xff\xfe", b"-n"]
    for name in names:
        (Path(os.fsdecode(os.path.join(os.fsencode(root), name)))).write_bytes(b"x")
    git = Git(env)

    git.user(os.fsencode(root), ["add", "--", *names])

    assert sorted(git.user(os.fsencode(root), ["ls-files", "-z"]).stdout.split(b"\0")[:-1]) == sorted([*names, b"a.txt"])


def test_two_calls_run_side_by_side(env: Environment, root: Path) -> None:
    """Both are started before either is waited for, and input is given at the wait."""
    git = Git(env)

    with (
        git.start_user(os.fsencode(root), ["hash-object", "--stdin"]) as one,
        git.start_user(os.fsencode(root), ["ls-files"]) as two,
    ):
        listed = two.wait().stdout
        hashed = one.wait(b"one\n").stdout

    assert (listed, hashed) == (b"a.txt\n", run_git(env, root, "rev-parse", ":a.txt"))


def test_leaving_the_block_early_ends_git(env: Environment, root: Path) -> None:
    """A started call that is not waited for does not outlive its block."""
    with Git(env).start_user(os.fsencode(root), ["cat-file", "--batch"]) as running:
        pid = running.process.pid

    assert running.process.returncode == -signal.SIGKILL
    assert not is_alive(pid)


def test_the_deadline_ends_git_and_all_it_started(tmp_path: Path) -> None:
    """GitTimeout comes at the deadline, and a grandchild that holds the pipes open is dead too."""
    pid_file = tmp_path / "pid"
    git = fake_git(tmp_path, f"sleep 600 & echo $! > '{pid_file}'; wait\n")
    began = time.monotonic()

    with pytest.raises(GitTimeout) as caught:
        git.user(os.fsencode(tmp_path), ["status"], deadline_s=0.5)

    assert 0.5 <= time.monotonic() - began < 5
    assert caught.value.message == "git status did not end within 0.5 s"
    assert wait_until_dead(int(pid_file.read_text()))


def test_a_child_that_keeps_the_pipes_does_not_hang_the_caller(tmp_path: Path) -> None:
    """A program that ends but leaves a child with its output open is ended at the deadline as well."""
    pid_file = tmp_path / "pid"
    git = fake_git(tmp_path, f"sleep 600 & echo $! > '{pid_file}'\n")

    with pytest.raises(GitTimeout):
        git.user(os.fsencode(tmp_path), ["status"], deadline_s=0.5)

    assert wait_until_dead(int(pid_file.read_text()))


def test_git_leads_its_own_process_group(tmp_path: Path) -> None:
    """An interrupt at the terminal reaches our process, not git in the middle of a write."""
    git = fake_git(tmp_path, "ps -o pgid= -p $$\n")

    assert int(git.user(os.fsencode(tmp_path), ["status"]).stdout) != os.getpgrp()


def test_a_pipe_brings_objects_from_the_user_to_the_store(env: Environment, root: Path, store: Path) -> None:
    """pack-objects in the user's repository feeds index-pack in the store, and the reverse; nothing else is written."""
    git = Git(env)
    head = run_git(env, root, "rev-parse", "HEAD")
    before = {path: stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")}

    git.pipe_user_to_store(
        os.fsencode(root), ["pack-objects", "--revs", "--stdout", "-q"], store, ["index-pack", "--stdin"], input=head
    )

    assert git.store(store, ["cat-file", "-t", head.strip()]).stdout == b"commit\n"
    assert {path: stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*")} == before
    copy = root.parent / "copy"
    run_git(env, root.parent, "init", "-q", str(copy))
    git.pipe_store_to_user(
        store, ["pack-objects", "--revs", "--stdout", "-q"], os.fsencode(copy), ["index-pack", "--stdin"], input=head
    )
    assert run_git(env, copy, "cat-file", "-t", head.decode().strip()) == b"commit\n"


def test_a_pipe_reports_the_end_that_failed_first(env: Environment, root: Path, store: Path) -> None:
    """When the source fails the error is the source's, not the confused reader's; a failing reader is an error too."""
    git = Git(env)
    pack = ["pack-objects", "--revs", "--stdout", "-q"]

    with pytest.raises(GitError) as source:
        git.pipe_user_to_store(os.fsencode(root), pack, store, ["index-pack", "--stdin"], input=b"1" * 40 + b"\n")
    with pytest.raises(GitError) as sink:
        git.pipe_user_to_store(os.fsencode(root), ["version"], store, ["index-pack", "--stdin"])

    assert b"pack-objects" in source.value.argv
    assert b"index-pack" in sink.value.argv


def test_much_output_on_all_pipes_does_not_block(tmp_path: Path) -> None:
    """A program that fills standard error and output while it is being fed is read to the end."""
    git = fake_git(tmp_path, "head -c 300000 /dev/zero >&2; cat; head -c 300000 /dev/zero\n")

    done = git.user(os.fsencode(tmp_path), ["status"], input=b"x" * 300_000)

    assert (len(done.stdout), len(done.stderr)) == (600_000, 300_000)


def test_a_call_costs_no_more_than_a_plain_start(env: Environment, root: Path) -> None:
    """Waiting with a deadline adds no sleep: the best of twenty calls is near the best of twenty plain ones."""
    git = Git(env)

    def timed(call: Callable[[], object]) -> float:
        best = 10.0
        for _ in range(20):
            began = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - began)
        return best

    ours = timed(lambda: git.user(os.fsencode(root), ["rev-parse", "HEAD"]))
    plain = timed(lambda: run_git(env, root, "rev-parse", "HEAD"))

    assert ours < plain * 1.5 + 0.001


def test_an_owner_call_keeps_author_and_committer_and_runs_hooks(env: Environment, root: Path) -> None:
    """What a user call drops or turns off: GIT_AUTHOR_*, GIT_COMMITTER_*, hooks; every other GIT_* is dropped there too."""
    seen = root.parent / "seen"
    script(root / ".git/hooks/commit-msg", f"env >{seen}")
    leak = {"GIT_AUTHOR_NAME": "A", "GIT_COMMITTER_EMAIL": "c@example.test", "GIT_INDEX_FILE": "/nowhere", "GIT_EDITOR": "never"}
    git = Git({**env, **leak})

    git.owner(os.fsencode(root), ["hook", "run", "commit-msg"])
    git.user(os.fsencode(root), ["hook", "run", "--ignore-missing", "commit-msg"])

    found = dict(line.split("=", 1) for line in seen.read_text().splitlines() if "=" in line)
    assert (found["GIT_AUTHOR_NAME"], found["GIT_COMMITTER_EMAIL"]) == ("A", "c@example.test")
    assert (found["GIT_EDITOR"], found["GIT_TERMINAL_PROMPT"]) == ("true", "0")
    assert not {"GIT_INDEX_FILE", "GIT_CONFIG_PARAMETERS", "GIT_LITERAL_PATHSPECS", "GIT_NO_REPLACE_OBJECTS"} & set(found)


def test_an_owner_call_stops_at_the_root_too(env: Environment, root: Path) -> None:
    """As a user call: a folder below, whose own repository is gone, is no place for a commit in the one above."""
    (root / "below").mkdir()

    with pytest.raises(GitError):
        Git(env).owner(os.fsencode(root / "below"), ["rev-parse", "HEAD"])


def test_a_git_that_is_given_grace_takes_its_locks_along(tmp_path: Path) -> None:
    """Past its deadline it is asked to end first; without grace it is killed at once."""
    mark = tmp_path / "mark"
    git = fake_git(tmp_path, f"trap 'touch {mark}; exit 1' TERM\nwhile :; do :; done")
    for grace_s, asked in ((0.0, False), (5.0, True)):
        running = git.start_owner(b"/", ["update-ref"], deadline_s=0.2)
        with pytest.raises(GitTimeout):
            running.wait(grace_s=grace_s)
        assert mark.exists() is asked
