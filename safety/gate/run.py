"""One gate run, from the choice of the runner to the result."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from safety.faults import SafetyError
from safety.gate import backends, before, fixes, lines, process, verdict
from safety.gate.backends import Backend, NoBackend
from safety.gate.lock import GateBusy, one_gate
from safety.gate.plain import plain, shown
from safety.gate.privateindex import left_over, private_index, sweep
from safety.gate.process import Ended, NotStarted, Stop, run_check, stoppable
from safety.gate.results import Checked, CheckFailure, GateResult, GateSettings, Line, Status
from safety.plumbing.repo import Repository, open_repository
from safety.plumbing.run import USER_PASSED_ON, Git

MAX_RERUNS = 2
MAX_RUN_BEFORE = 5  # checks that are run on the state before the turn

CHECK_ENVIRONMENT: Mapping[str, str] = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "NO_COLOR": "1",
    "PRE_COMMIT_COLOR": "never",
}

SKIPPING = ("SKIP", "PREK_SKIP", "LEFTHOOK_EXCLUDE")  # the user's own lists, joined with the setting's
# Set, they would hide what a check says, or switch all checks off.
QUIETING = (*SKIPPING, "PREK_QUIET", "LEFTHOOK_QUIET", "LEFTHOOK_OUTPUT", "LEFTHOOK")

# The worst of several runs counts.
_ORDER: tuple[Status, ...] = (
    "cancelled",
    "timeout",
    "internal_error",
    "tool_missing",
    "config_error",
    "failed",
    "env_failed",
    "passed",
)


def run_gate(git: Git, environ: Mapping[str, str], checked: Checked, settings: GateSettings, log_dir: Path) -> GateResult:
    """Runs the repository's checks on ``checked.files``, in place, and says how that ended; expected faults are statuses, not exceptions.

    ``environ`` is this process's environment, from which that of the checks is made. The real index, HEAD and every file but those that
    the checks themselves change are as before when it returns. SIGINT ends the checks (``cancelled``); SIGTERM and SIGHUP as well, and are
    then sent on to this process.
    """
    if settings.enabled == "off":
        return GateResult("not_configured", text="the checks are switched off (gate.enabled = off)")
    if not checked.files and not checked.deleted:
        return GateResult("nothing_to_check")
    try:
        repository = open_repository(checked.root)
        if repository is None or repository.bare or repository.problem:
            return GateResult("internal_error", text=(repository and repository.detail) or "this is no git work tree")
        chosen = backends.choose(git, repository, environ, settings)
        if isinstance(chosen, NoBackend):
            removed = [path for path in checked.deleted if os.fsdecode(path) in backends.CONFIGS]
            if chosen.status == "not_configured" and removed:
                text = f"this turn has removed {shown(removed[0])}"
                return GateResult("config_error", text=text, files=len(checked.files), config_is_agents=True)
            return GateResult(chosen.status, text=chosen.text, files=len(checked.files))
        with stoppable() as stop:
            return _Run(git, environ, repository, checked, settings, chosen, log_dir, stop).result()
    except (SafetyError, OSError) as fault:
        return GateResult("internal_error", text=f"the checks could not be run: {fault}", files=len(checked.files))


@dataclass(frozen=True)
class _Attempt:
    """All the starts that one run over the files takes: the worst status, what was written, the checks that could not be started."""

    status: Status
    endings: tuple[Ended, ...]
    output: str
    missing: tuple[str, ...] = ()

    @property
    def cut(self) -> bool:
        return any(ended.cut for ended in self.endings)


class _Run:
    """The parts of one run that need the same things."""

    def __init__(
        self,
        git: Git,
        environ: Mapping[str, str],
        repository: Repository,
        checked: Checked,
        settings: GateSettings,
        backend: Backend,
        log_dir: Path,
        stop: Stop,
    ) -> None:
        self.git = git
        self.environ = environ
        self.repository = repository
        self.checked = replace(checked, root=repository.root)
        self.settings = settings
        self.backend = backend
        self.log_dir = log_dir
        self.stop = stop
        self.ends_at = time.monotonic() + settings.timeout_s
        self.files, self.refused, self.unnamed = _nameable(checked, backend)
        self.starts = 0
        self.skip = tuple(dict.fromkeys([*settings.skip, *_skipped_by_user(environ)]))

    def result(self) -> GateResult:
        try:
            with one_gate(self.repository.common_dir, self.ends_at):
                if left_over(self.repository):
                    process.kill_marked(_mark(self.repository))
                    sweep(self.repository)
                return self._locked()
        except GateBusy as busy:
            return self._base("timeout", text=busy.message)

    def _locked(self) -> GateResult:
        self.log_dir.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(prefix="checks-", suffix=".log", dir=self.log_dir)
        with os.fdopen(number, "wb") as log:
            result = self._judged(log)
        return replace(result, log=Path(name))

    def _judged(self, log: IO[bytes]) -> GateResult:
        were = fixes.states(self.checked.root, self.checked.files)
        with private_index(self.git, self.repository, self.checked.files, self.checked.deleted) as index:
            began_ns = os.stat(os.path.join(self.checked.root, index)).st_ctime_ns if _exists(self.checked.root, index) else 0
            if self.stop:
                return self._base("cancelled")
            attempt, fixed = self._with_reruns(log, index, were)
        result = replace(self._base(attempt.status), fixed=fixed)
        if attempt.status not in ("passed", "failed", "env_failed"):
            text = attempt.output.strip() if attempt.status in ("config_error", "internal_error", "tool_missing") else ""
            return replace(result, text=_tail(text), touched_elsewhere=self._touched(began_ns, attempt))
        touched = self._touched(began_ns, attempt)
        missing = tuple(f"{name}: could not be set up or started" for name in attempt.missing)
        result = replace(result, skipped=(*result.skipped, *missing), touched_elsewhere=touched)
        if attempt.status == "env_failed":
            partial = bool(missing) and self.settings.allow_partial and not self.refused
            return replace(result, text=_tail(attempt.output), partial=partial)
        failures = self._failures(attempt, log) if attempt.status == "failed" else ()
        failures = (*self.refused, *failures)
        status: Status = "failed" if failures else "passed_with_fixes" if fixed else "passed"
        return replace(result, status=status, failures=failures)

    # -- running ------------------------------------------------------------------------------------------------------------------

    def _with_reruns(self, log: IO[bytes], index: bytes, were: Mapping[bytes, bytes]) -> tuple[_Attempt, tuple[bytes, ...]]:
        """Runs until it passes, or fails for another reason than a changed file, or was run often enough."""
        env = self._environment(index)
        seen = were
        for _ in range(1 + MAX_RERUNS):
            attempt = self._attempt(self.backend.starts(self.files), self.checked.root, env, log)
            attempt = self._without_the_unrunnable(attempt, env, log)
            now = fixes.states(self.checked.root, self.checked.files)
            if attempt.status != "failed" or (now == seen and not verdict.only_modified(self.backend, attempt.output)):
                break
            seen = now
        return attempt, tuple(path for path in were if now[path] != were[path])

    def _without_the_unrunnable(self, attempt: _Attempt, env: dict[bytes, bytes], log: IO[bytes]) -> _Attempt:
        """prek stops at the first check that it cannot start: the others are run without it. A failure of theirs counts."""
        if attempt.status != "env_failed" or self.backend.kind != "prek" or not attempt.missing:
            return attempt
        skip = ",".join([*self.skip, *attempt.missing])
        rest = self._attempt(self.backend.starts(self.files), self.checked.root, {**env, b"SKIP": os.fsencode(skip)}, log)
        if rest.status == "env_failed" and rest.missing:
            return self._without_the_unrunnable(replace(rest, missing=(*attempt.missing, *rest.missing)), env, log)
        return attempt if rest.status == "passed" else replace(rest, missing=attempt.missing)

    def _attempt(self, starts: Sequence[Sequence[bytes]], cwd: bytes, env: Mapping[bytes, bytes], log: IO[bytes]) -> _Attempt:
        endings: list[Ended] = []
        worst: Status = "passed"
        texts = []
        for argv in starts:
            try:
                ended = self._start(argv, cwd, env, log)
            except NotStarted as fault:
                return _Attempt("tool_missing", tuple(endings), f"{fault.filename} could not be started: {fault.strerror}")
            text = lines.without_root(plain(ended.output), cwd)
            status = verdict.status_of(self.backend, ended, text)
            endings.append(ended)
            texts.append(text)
            worst = min(worst, status, key=_ORDER.index)
            if ended.cancelled or ended.timed_out:
                break
        output = "\n".join(texts)
        return _Attempt(worst, tuple(endings), output, verdict.not_runnable(self.backend, output))

    def _start(self, argv: Sequence[bytes], cwd: bytes, env: Mapping[bytes, bytes], log: IO[bytes]) -> Ended:
        listing = self.backend.listing(self.files)
        self.starts += 1
        if listing is None:
            return run_check(argv, cwd, env, log, self.ends_at, self.stop)
        with tempfile.TemporaryFile() as fed:
            fed.write(listing)
            fed.seek(0)
            return run_check(argv, cwd, env, log, self.ends_at, self.stop, fed)

    def _environment(self, index: bytes | None) -> dict[bytes, bytes]:
        """The parent's without anything of git's but where the user keeps the configuration, and what a check has to know."""
        kept = {name: value for name, value in self.environ.items() if not name.startswith("GIT_") or name in USER_PASSED_ON}
        for name in QUIETING:
            kept.pop(name, None)
        kept.update(CHECK_ENVIRONMENT)
        if self.skip:
            kept["SKIP"] = kept["LEFTHOOK_EXCLUDE"] = ",".join(self.skip)
        env = {os.fsencode(name): os.fsencode(value) for name, value in kept.items()}
        env[process.MARK.encode()] = _mark(self.repository) + b"%d" % os.getpid()
        if index is not None:
            env[b"GIT_INDEX_FILE"] = index
        return env

    # -- judging ------------------------------------------------------------------------------------------------------------------

    def _failures(self, attempt: _Attempt, log: IO[bytes]) -> tuple[CheckFailure, ...]:
        """At least one: a runner that was told to be quiet, or whose output was cut, may show no block of the check that failed."""
        failed = [block for block in verdict.blocks(attempt.output) if block.failed and not block.program_missing]
        if not self.backend.many_checks or not failed:
            said = tuple(attempt.output.strip("\n").split("\n"))
            code = next((ended.returncode for ended in attempt.endings if ended.returncode), 1)
            failed = [verdict.Block(self.backend.name, True, code, None, False, said)]
            return tuple(self._failure(block, None) for block in failed)
        earlier = {} if attempt.cut else self._before([block.id for block in failed], log)
        return tuple(self._failure(block, earlier.get(block.id)) for block in failed)

    def _failure(self, block: verdict.Block, then: verdict.Block | None) -> CheckFailure:
        said = lines.tagged(block.lines, self.checked, then.lines if then else None)
        older = (
            then is not None
            and not block.modified
            and then.exit_code == block.exit_code
            and lines.same_as_before(said, then.lines)
        )
        return CheckFailure(block.id, block.exit_code, block.duration_s, said, block.modified, older)

    def _before(self, ids: Sequence[str], log: IO[bytes]) -> dict[str, verdict.Block]:
        """What each of these checks says of the state before the turn, as one block; nothing for those that cannot be run there."""
        found: dict[str, verdict.Block] = {}
        files = [path for path in before.files_before(self.checked) if _utf8(path)]
        if len(ids) > MAX_RUN_BEFORE or self.stop:
            return found
        with before.tree_before(self.git, self.checked) as folder:
            if folder is None:
                return found
            env = self._environment(None)
            log.write(b"\n[the same checks on the state before the turn]\n")
            log.flush()
            for name in dict.fromkeys(ids):
                attempt = self._attempt(self.backend.starts(files, name), folder, env, log)
                shown_then = verdict.blocks(attempt.output)
                if attempt.status in ("passed", "failed") and not attempt.cut and len(shown_then) == 1 and ids.count(name) == 1:
                    found[name] = shown_then[0]
        return found

    # -- saying -------------------------------------------------------------------------------------------------------------------

    def _base(self, status: Status, text: str = "") -> GateResult:
        return GateResult(
            status,
            self.backend.name,
            skipped=(*(f"{name}: left out by setting" for name in self.skip), *self.unnamed),
            text=text,
            files=len(self.checked.files),
            config_is_agents=self.backend.config.encode() in self.checked.files,
            warn_only=self.settings.preexisting == "warn",
        )

    def _touched(self, began_ns: int, attempt: _Attempt) -> tuple[bytes, ...]:
        if not began_ns:
            return ()
        compared = self.backend.many_checks and self.starts == 1 and attempt.status == "passed"
        return fixes.touched_since(self.git, self.checked.root, began_ns, self.checked.files, tracked_too=not compared)


def _nameable(checked: Checked, backend: Backend) -> tuple[tuple[bytes, ...], tuple[CheckFailure, ...], tuple[str, ...]]:
    """The files that can be named to the checks, a failure for each new one that cannot, a notice for each old one.

    A name that begins with ``-`` reaches a check as an option ([gate] A4), one that is not UTF-8 makes both runners give up.
    """
    named, refused, notices = [], [], []
    for path in checked.files:
        option, unreadable = path.startswith(b"-"), backend.many_checks and not _utf8(path)
        if not option and not unreadable:
            named.append(path)
            continue
        reason = "reads as an option to a check" if option else "is not UTF-8, which the runner cannot take"
        if checked.before(path) is None:
            line = Line(f"{shown(path)}: the name {reason}; not checked. Rename the file.", "yours")
            refused.append(CheckFailure("file-name", 1, None, (line,)))
            continue
        if option:
            named.append(path)
        notices.append(f"{shown(path)}: the name {reason}" + ("" if option else "; not checked"))
    return tuple(named), tuple(refused), tuple(notices)


def _skipped_by_user(environ: Mapping[str, str]) -> list[str]:
    return [name for variable in SKIPPING for name in environ.get(variable, "").split(",") if name]


def _utf8(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def _mark(repository: Repository) -> bytes:
    return repository.git_dir + b"\n"


def _exists(root: bytes, path: bytes) -> bool:
    return os.path.lexists(os.path.join(root, path))


def _tail(text: str, longest: int = 4000) -> str:
    text = text.strip()
    return text if len(text) <= longest else "...\n" + text[-longest:]
