"""Starts git, in one of three environments, in its own process group, with a deadline.

*Store* calls act on a repository of ours by explicit ``GIT_DIR`` and read no configuration but the store's own. *User* calls
act on the user's repository by ``git -C root``, never by ``GIT_DIR``: that would skip git's ownership check. They keep the user's
system and global configuration (``safe.directory``, excludes, identity) and override what makes a read run a program. *Owner* calls
make a commit the user will see: as user calls, but their hooks, their signing and their ``GIT_AUTHOR_*`` and ``GIT_COMMITTER_*`` count.

Nothing here reads ``os.environ``; the base environment is handed in. Every ``GIT_*`` of it is dropped, because a git hook or an
editor leaves ``GIT_DIR`` and ``GIT_INDEX_FILE`` behind, and they would point us at another repository.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from safety.faults import SafetyError

Argument = str | bytes

# What every call gets, whatever the base environment said.
FIXED_ENVIRONMENT: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_ADVICE": "0",
    # Without it check-attr and check-ignore write each record by itself into a pipe.
    "GIT_FLUSH": "0",
    "LC_ALL": "C",
}

STORE_ENVIRONMENT: Mapping[str, str] = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
}

# Where the user keeps the configuration is the user's business; all else named GIT_* is another process's leftover.
USER_PASSED_ON = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")

# A hook that an owner call runs has the environment that the user's own git would give it, but nobody is asked anything.
OWNER_PASSED_ON = ("GIT_AUTHOR_", "GIT_COMMITTER_")
OWNER_ENVIRONMENT: Mapping[str, str] = {"GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0"}

FIXED_SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.untrackedCache=keep",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.editor=false",
    "core.alternateRefsCommand=false",
    "credential.helper=",
    "safe.bareRepository=explicit",
    "protocol.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
)

# git falls back to $XDG_CONFIG_HOME/git/ignore and attributes even when no configuration file is read.
STORE_SETTINGS = (f"core.excludesFile={os.devnull}", f"core.attributesFile={os.devnull}")


class GitMissing(SafetyError):
    """There is no git on the PATH of the base environment."""

    code = "git-missing"


class GitError(SafetyError):
    """git ended with a status the caller did not allow, or could not be started."""

    code = "git-failed"

    def __init__(self, message: str, argv: tuple[bytes, ...], returncode: int, stderr: bytes, hint: str = "") -> None:
        super().__init__(message, hint)
        self.argv = argv
        self.returncode = returncode
        self.stderr = stderr


class GitTimeout(GitError):
    """git did not end before its deadline and was killed, with all it had started."""

    code = "git-timeout"


@dataclass(frozen=True, slots=True)
class Completed:
    """How a call ended and what it wrote."""

    returncode: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class _Call:
    """One prepared start of git: what to run, where, and which exit codes are an answer rather than a failure."""

    argv: tuple[bytes, ...]
    verb: str
    env: Mapping[str, str | bytes]
    cwd: bytes
    deadline_s: float
    ok: tuple[int, ...] | None

    def judge(self, done: Completed) -> Completed:
        """The same result, if its exit code is one the caller allowed. Raises GitError otherwise."""
        if self.ok is None or done.returncode in self.ok:
            return done
        said = next((line for line in done.stderr.decode("utf-8", "surrogateescape").splitlines() if line.strip()), "no message")
        raise GitError(f"git {self.verb} failed ({done.returncode}): {said}", self.argv, done.returncode, done.stderr)


class _Process(subprocess.Popen[bytes]):
    """A child whose timed wait ends at once; the standard one sleeps in steps of half a millisecond and up."""

    def wait(self, timeout: float | None = None) -> int:
        if timeout is None or self.returncode is not None or not hasattr(os, "pidfd_open"):
            return super().wait(timeout)
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:  # a kernel or a sandbox without it
            return super().wait(timeout)
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            if not poll.poll(timeout * 1000):
                raise subprocess.TimeoutExpired(self.args, timeout)
        finally:
            os.close(handle)
        return super().wait()


class Running:
    """A git that was started and not yet waited for. As a context manager it is killed if the block leaves without ``wait``."""

    def __init__(self, call: _Call, process: subprocess.Popen[bytes]) -> None:
        self._call = call
        self.process = process
        self._ends_at = time.monotonic() + call.deadline_s

    def wait(self, input: bytes | None = None, *, grace_s: float = 0) -> Completed:
        """Feeds ``input``, closes standard input, and gives the result.

        Raises GitTimeout when the deadline (counted from the start) has passed, GitError for an exit code that was not allowed.
        A git that is not waited for to its end is killed; one that holds locks wants ``grace_s`` seconds to take them along.
        """
        left_s = max(self._ends_at - time.monotonic(), 0.001)
        try:
            out, err = self.process.communicate(input, timeout=left_s)
        except subprocess.TimeoutExpired:
            raise _timeout(self._call) from None
        finally:
            self._end(grace_s)
        return self._call.judge(Completed(self.process.returncode, out or b"", err or b""))

    def kill(self) -> None:
        """Ends git and everything in its process group now, if it has not ended; safe to call twice."""
        _kill_group(self.process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()

    def _end(self, grace_s: float) -> None:
        if grace_s and self.process.returncode is None:
            self.process.terminate()
            try:
                self.process.wait(grace_s)
            except subprocess.TimeoutExpired:
                pass
        self.kill()


class Git:
    """Runs git with one of three environments, all made once from ``base_env`` (the process environment, handed in by runtime)."""

    def __init__(self, base_env: Mapping[str, str]) -> None:
        self.base_env = base_env
        kept = {name: value for name, value in base_env.items() if not name.startswith("GIT_")}
        passed_on = {name: base_env[name] for name in USER_PASSED_ON if name in base_env}
        self._store_env: dict[str, str | bytes] = {**kept, **FIXED_ENVIRONMENT, **STORE_ENVIRONMENT}
        self._user_env: dict[str, str | bytes] = {**kept, **passed_on, **FIXED_ENVIRONMENT}
        own = {name: value for name, value in base_env.items() if name.startswith(OWNER_PASSED_ON)}
        self._owner_env: dict[str, str | bytes] = {**kept, **passed_on, **own, **OWNER_ENVIRONMENT}
        self._search = base_env.get("PATH", os.defpath)
        self._store_prefix: tuple[bytes, ...] = ()
        self._user_prefix: tuple[bytes, ...] = ()

    def program(self) -> bytes:
        """The absolute path of the git that is run. Raises GitMissing."""
        # Relative PATH entries are passed over: they would let a repository bring its own git.
        for folder in self._search.split(os.pathsep):
            candidate = os.path.join(folder, "git")
            if os.path.isabs(folder) and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return os.fsencode(candidate)
        raise GitMissing("git was not found on PATH", "git --version")

    def store(
        self,
        git_dir: Path,
        args: Sequence[Argument],
        *,
        work_tree: bytes | None = None,
        index_file: Path | None = None,
        input: bytes | None = None,
        cwd: bytes | None = None,
        deadline_s: float = 60,
        check: bool = True,
        ok: tuple[int, ...] = (0,),
        extra_env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Runs git on a repository of ours and waits for it. Runs in ``cwd``, else in the work tree, else in ``git_dir``.

        Raises GitError for an exit code not in ``ok`` (unless ``check`` is False), GitTimeout, GitMissing.
        """
        call = self._store_call(git_dir, args, work_tree, index_file, cwd, deadline_s, ok if check else None, extra_env)
        return _run(call, input)

    def user(
        self,
        root: bytes,
        args: Sequence[Argument],
        *,
        input: bytes | None = None,
        deadline_s: float = 60,
        check: bool = True,
        ok: tuple[int, ...] = (0,),
        extra_env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Runs git in the user's repository whose work tree root (not a folder below it) is ``root``, and waits for it.

        Discovery stops at ``root``: when its ``.git`` is gone, git fails instead of acting on a repository further up.
        Raises as ``store`` does.
        """
        return _run(self._user_call(root, args, deadline_s, ok if check else None, extra_env), input)

    def owner(
        self,
        root: bytes,
        args: Sequence[Argument],
        *,
        input: bytes | None = None,
        deadline_s: float = 60,
        check: bool = True,
        ok: tuple[int, ...] = (0,),
        extra_env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Like ``user``, but the user's hooks, signing, author and committer count, and a hook finds the user's environment.

        For the steps of a commit that the user will see. No editor opens and nothing is asked on a terminal.
        """
        return _run(self._owner_call(root, args, deadline_s, ok if check else None, extra_env), input)

    def start_owner(
        self,
        root: bytes,
        args: Sequence[Argument],
        *,
        deadline_s: float = 60,
        check: bool = True,
        ok: tuple[int, ...] = (0,),
        extra_env: Mapping[str, str] | None = None,
    ) -> Running:
        """Like ``owner``, but only started."""
        return _start(self._owner_call(root, args, deadline_s, ok if check else None, extra_env))

    def start_store(
        self,
        git_dir: Path,
        args: Sequence[Argument],
        *,
        work_tree: bytes | None = None,
        index_file: Path | None = None,
        cwd: bytes | None = None,
        deadline_s: float = 60,
        check: bool = True,
        ok: tuple[int, ...] = (0,),
        extra_env: Mapping[str, str] | None = None,
    ) -> Running:
        """Like ``store``, but only started; ``wait(input)`` on what comes back gives the result."""
        return _start(self._store_call(git_dir, args, work_tree, index_file, cwd, deadline_s, ok if check else None, extra_env))

    def start_user(
        self,
        root: bytes,
        args: Sequence[Argument],
        *,
        deadline_s: float = 60,
        check: bool = True,
        ok: tuple[int, ...] = (0,),
        extra_env: Mapping[str, str] | None = None,
    ) -> Running:
        """Like ``user``, but only started; ``process.stdin`` and ``process.stdout`` are pipes for a conversation."""
        return _start(self._user_call(root, args, deadline_s, ok if check else None, extra_env))

    def pipe_user_to_store(
        self,
        root: bytes,
        user_args: Sequence[Argument],
        git_dir: Path,
        store_args: Sequence[Argument],
        *,
        input: bytes | None = None,
        deadline_s: float = 600,
    ) -> Completed:
        """Runs a user call with its output as the input of a store call; gives the store call's result.

        ``input`` goes to the user call. Both must end with 0, the first one's failure is the one raised.
        """
        return _pipe(
            self._user_call(root, user_args, deadline_s, (0,), None),
            self._store_call(git_dir, store_args, None, None, None, deadline_s, (0,), None),
            input,
        )

    def pipe_store_to_user(
        self,
        git_dir: Path,
        store_args: Sequence[Argument],
        root: bytes,
        user_args: Sequence[Argument],
        *,
        input: bytes | None = None,
        deadline_s: float = 600,
    ) -> Completed:
        """The other way round: a store call's output becomes the input of a user call, whose result comes back."""
        return _pipe(
            self._store_call(git_dir, store_args, None, None, None, deadline_s, (0,), None),
            self._user_call(root, user_args, deadline_s, (0,), None),
            input,
        )

    def _store_call(
        self,
        git_dir: Path,
        args: Sequence[Argument],
        work_tree: bytes | None,
        index_file: Path | None,
        cwd: bytes | None,
        deadline_s: float,
        ok: tuple[int, ...] | None,
        extra: Mapping[str, str] | None,
    ) -> _Call:
        if not self._store_prefix:
            self._store_prefix = (self.program(), *_settings(FIXED_SETTINGS + STORE_SETTINGS))
        env = dict(self._store_env)
        env["GIT_DIR"] = os.fsencode(os.path.abspath(git_dir))
        if work_tree is not None:
            env["GIT_WORK_TREE"] = work_tree
        if index_file is not None:
            env["GIT_INDEX_FILE"] = os.fsencode(os.path.abspath(index_file))
        env.update(extra or {})
        where = cwd or work_tree or os.fsencode(git_dir)
        return _Call(self._store_prefix + _encoded(args), _verb(args), env, where, deadline_s, ok)

    def _user_call(
        self,
        root: bytes,
        args: Sequence[Argument],
        deadline_s: float,
        ok: tuple[int, ...] | None,
        extra: Mapping[str, str] | None,
    ) -> _Call:
        if not self._user_prefix:
            self._user_prefix = (self.program(), *_settings(FIXED_SETTINGS))
        argv = (self._user_prefix[0], b"-C", root, *self._user_prefix[1:], *_encoded(args))
        return _Call(argv, _verb(args), {**self._user_env, **_ceiling(root), **(extra or {})}, b"/", deadline_s, ok)

    def _owner_call(
        self,
        root: bytes,
        args: Sequence[Argument],
        deadline_s: float,
        ok: tuple[int, ...] | None,
        extra: Mapping[str, str] | None,
    ) -> _Call:
        # No -c: git hands those on to all that a hook starts.
        argv = (self.program(), b"-C", root, *_encoded(args))
        return _Call(argv, _verb(args), {**self._owner_env, **_ceiling(root), **(extra or {})}, b"/", deadline_s, ok)


def _ceiling(root: bytes) -> dict[str, str | bytes]:
    """What makes discovery stop at ``root``."""
    parent = os.path.dirname(os.path.realpath(root))
    # The list of ceilings has no way to write a colon.
    return {"GIT_CEILING_DIRECTORIES": parent} if parent and b":" not in parent else {}


def _settings(settings: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(os.fsencode(part) for setting in settings for part in ("-c", setting))


def _encoded(args: Sequence[Argument]) -> tuple[bytes, ...]:
    return tuple(os.fsencode(arg) for arg in args)


def _verb(args: Sequence[Argument]) -> str:
    """The git command among the arguments, for messages: the first one that is neither an option nor the value of a ``-c``."""
    words = iter(args)
    for word in words:
        text = os.fsdecode(word)
        if text in ("-c", "-C"):
            next(words, None)
        elif not text.startswith("-"):
            return text
    return ""


def _open(call: _Call, stdin: int | IO[bytes] | None, stderr: int | IO[bytes] = subprocess.PIPE) -> subprocess.Popen[bytes]:
    try:
        return _Process(
            call.argv,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=call.cwd,
            env=call.env,
            start_new_session=True,
        )
    except OSError as error:
        text = f"git {call.verb} could not be started: {error.strerror}"
        if not os.path.isdir(call.cwd):
            text = f"git {call.verb} could not be started: {os.fsdecode(call.cwd)} is not a folder"
        raise GitError(text, call.argv, -1, b"") from error


def _start(call: _Call) -> Running:
    return Running(call, _open(call, subprocess.PIPE))


def _run(call: _Call, input: bytes | None) -> Completed:
    return Running(call, _open(call, subprocess.DEVNULL if input is None else subprocess.PIPE)).wait(input)


def _pipe(first: _Call, second: _Call, input: bytes | None) -> Completed:
    import tempfile  # costs as much as half of this module, and no other call needs it

    # The first one's input and messages are files, so that no pipe of it can fill up while we read from the second.
    with tempfile.TemporaryFile() as fed, tempfile.TemporaryFile() as said:
        fed.write(input or b"")
        fed.seek(0)
        source = Running(first, _open(first, fed, said))
        with source:
            sink = Running(second, _open(second, source.process.stdout))
            with sink:
                assert source.process.stdout is not None
                source.process.stdout.close()  # ours; the second's copy must be the only reader, or a dead reader goes unnoticed
                try:
                    out, err = sink.process.communicate(timeout=max(second.deadline_s, 0.001))
                    source.process.wait(timeout=max(source._ends_at - time.monotonic(), 0.001))
                except subprocess.TimeoutExpired:
                    raise _timeout(first if source.process.poll() is None else second) from None
        said.seek(0)
        first.judge(Completed(source.process.returncode, b"", said.read()))
        return second.judge(Completed(sink.process.returncode, out, err))


def _timeout(call: _Call) -> GitTimeout:
    return GitTimeout(f"git {call.verb} did not end within {call.deadline_s:g} s", call.argv, -signal.SIGKILL, b"")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # Only while the leader is not reaped is its number certain to be ours.
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
            pass
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                pass
