"""``doctor``: one line for each thing that has to work, with a command that mends it. No network."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safety.commands.args import DoctorArgs
from safety.commands.report import Check, DoctorReport, Report, TextReport
from safety.commands.selection import open_book
from safety.commands.status import TOO_WIDE, heard_agents
from safety.commands.store import problem_text
from safety.commands.uncovered import size_text
from safety.faults import SafetyError
from safety.plumbing.repo import open_repository, verify
from safety.plumbing.run import GitError, GitMissing
from safety.release import VERSION
from safety.session import AUDIT_LOG, Session
from safety.store.fsck import fsck
from safety.store.linked import linked_files
from safety.store.packs import store_size

OLDEST_GIT, GIT_FOR_COMMITS = (2, 30), (2, 38)
COMMAND = "git-safety"
TRACED = 20
NETWORK_FILE_SYSTEMS = (
    "nfs",
    "cifs",
    "smb",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "9p",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "ncpfs",
    "davfs",
)


def run(session: Session, args: DoctorArgs) -> Report:
    """Gives a DoctorReport; exit code 1 with a failure, 0 with warnings. With ``trace`` a TextReport, 4 where nothing was heard."""
    if args.trace:
        return _trace(session)
    version = _git_version(session)
    checks = [
        *_git(version),
        *_command(session),
        *_store(session, args.fast),
        *_places(session),
        *_repository(session),
        *_width(session),
        *_watcher(session),
        *_agents(session),
        *_settings(session),
        *_neighbours(),
    ]
    versions = (
        ("git-safety", VERSION),
        ("Python", platform.python_version()),
        ("git", version or "missing"),
        (platform.system(), platform.release()),
    )
    return DoctorReport(
        root=session.root,
        versions=versions,
        checks=tuple(checks),
        exit_code=1 if any(check.level == "fail" for check in checks) else 0,
    )


def _trace(session: Session) -> Report:
    """The last lines that the audit log keeps."""
    rows = _audited(session)[-TRACED:]
    lines: list[str] = []
    for row in rows:
        ends = [f"{name.replace('_', ' ')} {row[name]}" for name in ("decided_by", "stopped_by") if row.get(name)]
        failed = [f"failed: {', '.join(row['failed'])}"] if row.get("failed") else []
        about = " ".join(filter(None, (row["event"], row.get("tool", ""), row.get("call", ""))))
        lines.append(f"{about}: {'; '.join([row['decision'], *ends, *failed])}")
        lines += [f"  {name}  {result}, {milliseconds} ms" for name, result, milliseconds in row["called"]]
    told = tuple(lines) or ("No event of an agent was heard here.",)
    return TextReport(root=session.root, lines=told, data={"trace": rows}, exit_code=0 if rows else 4)


def _audited(session: Session) -> list[dict[str, Any]]:
    """The lines of the audit log and of the one that was set aside, oldest first; what was torn by a crash is left out."""
    rows: list[dict[str, Any]] = []
    path = session.place.state / AUDIT_LOG
    for file in (path.with_suffix(".1.jsonl"), path):
        try:
            kept = file.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            continue
        for line in kept[-TRACED:]:
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return rows


# -- programs --------------------------------------------------------------------------------------------------------------------


def _git_version(session: Session) -> str:
    try:
        text = session.place.git.store(session.place.store_dir, ["version"]).stdout.decode("utf-8", "replace")
    except (GitMissing, GitError):
        return ""
    return text.removeprefix("git version ").strip()


def _git(version: str) -> Iterator[Check]:
    if not version:
        yield Check("fail", "git", "git cannot be run", "git --version", "git-missing")
        return
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_GIT:
        yield Check("fail", "git", f"{version} is too old; 2.30 is needed", "upgrade git", "git-too-old")
    elif numbers < GIT_FOR_COMMITS:
        yield Check("warn", "git", f"{version} can undo, but commits need 2.38", "upgrade git", "git-old")
    else:
        yield Check("ok", "git", version)


def _command(session: Session) -> Iterator[Check]:
    """Every program of our name on PATH; ``git safety`` takes the first."""
    found: dict[str, str] = {}
    for folder in session.place.git.base_env.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder or ".", COMMAND)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            found.setdefault(os.path.realpath(path), path)
    names = list(found.values())
    if not names:
        yield Check(
            "warn", "command", f"no {COMMAND} on PATH, so `git safety` is not found", "uv tool install git-safety", "not-on-path"
        )
    elif len(names) == 1:
        yield Check("ok", "command", f"{names[0]}, the only one on PATH")
    else:
        yield Check(
            "warn",
            "command",
            f"{names[0]} is run; PATH also has {', '.join(names[1:])}",
            f"which -a {COMMAND}",
            "several-commands",
        )


# -- the store -------------------------------------------------------------------------------------------------------------------


def _store(session: Session, fast: bool) -> Iterator[Check]:
    store = session.place.store_dir
    try:
        problems = fsck(session.place.git, session.place.odb, full=not fast)
    except SafetyError as fault:
        yield Check("fail", "store", f"cannot be read: {fault.message}", fault.hint or "git safety store fsck", fault.code)
        return
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        text = "\n".join(
            ["not sound", *map(problem_text, errors[:3]), *([f"and {len(errors) - 3} more"] if len(errors) > 3 else [])]
        )
        yield Check("fail", "store", text, "git safety store fsck", "store-damaged")
    size = store_size(store)
    free = shutil.disk_usage(store).free
    limit = session.settings.store_max_mib << 20
    facts = f"{size_text(size.own_bytes)} of {size_text(limit)}, {size_text(free)} free"
    if not errors:
        yield Check("ok", "store", f"{'looked through' if fast else 'sound'}, {facts}")
    if size.own_bytes > limit:
        yield Check("warn", "size", f"the store is above its limit: {facts}", "git safety store forget", "store-too-large")
    total = shutil.disk_usage(store).total
    if free * 100 < total * session.settings.store_min_free_percent:
        yield Check("warn", "disk", f"only {size_text(free)} free", "git safety store forget", "disk-low")
    shared = sum((store / "objects" / file.name).exists() for file in linked_files(store))
    if shared:
        yield Check(
            "ok",
            "shared",
            f"{shared:,} files of the store are one with your repository's (hard links), {size_text(size.shared_bytes)}",
            code="shared",
        )
    if session.interrupted:
        yield Check("warn", "undo", "an undo was interrupted", "git safety recover", "interrupted")


def _places(session: Session) -> Iterator[Check]:
    home = session.place.home
    for path in (home, session.place.store_dir, session.place.state):
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            yield Check("fail", "state", f"{path} cannot be written", f"chmod u+rwx {path}", "not-writable")
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & 0o077:
            yield Check(
                "warn",
                "state",
                f"{path} has mode {mode:o}: others can read what is in your files",
                f"chmod 700 {path}",
                "not-private",
            )
    kind = _file_system(home)
    if kind.startswith(NETWORK_FILE_SYSTEMS):
        yield Check(
            "warn",
            "state",
            f"{home} is on a network file system ({kind}); locks may not hold there",
            "set GIT_SAFETY_HOME to a local folder",
            "network",
        )


def _file_system(path: Path) -> str:
    """The kind of file system a path is on, as Linux calls it; empty where the system does not say."""
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    real = os.path.realpath(path) + "/"
    for line in lines:
        words = line.split(" ")
        if len(words) > 2:
            place = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), words[1]).rstrip("/") + "/"
            if real.startswith(place) and len(place) >= len(best):
                best, kind = place, words[2]
    return kind


# -- the rest --------------------------------------------------------------------------------------------------------------------


def _repository(session: Session) -> Iterator[Check]:
    repository = open_repository(session.root)
    if repository is None:
        yield Check("none", "repository", "a plain folder, without git")
        return
    problem = f"{repository.problem}: {repository.detail}" if repository.problem else verify(session.place.git, session.root)
    if problem:
        yield Check("warn", "repository", f"git does not work here: {problem}", "git status", "repository")


def _width(session: Session) -> Iterator[Check]:
    if session.place.declared_only:
        yield Check("warn", "folder", TOO_WIDE, "cd to a project's folder", "too-wide")


def _watcher(session: Session) -> Iterator[Check]:
    if session.settings.watch_enabled in (False, "off"):
        yield Check("none", "watcher", "switched off by watch.enabled")
        return
    try:
        import safety.watch.observer  # noqa: F401 - whether it can be loaded is the question
    except ImportError as fault:
        yield Check("warn", "watcher", f"cannot be loaded: {fault}; snapshots scan instead", "pip install watchdog", "no-watcher")
    else:
        yield Check("ok", "watcher", "can be started")


def _agents(session: Session) -> Iterator[Check]:
    heard = heard_agents(open_book(session))
    for name, when_ms in heard:
        yield Check("ok", name, f"last heard {time.strftime('%Y-%m-%d %H:%M', time.localtime(when_ms / 1000))}")
    if not heard and not session.place.declared_only:
        yield Check("none", "agents", "no hook was heard in this workspace yet", "git safety run -- COMMAND")


def _settings(session: Session) -> Iterator[Check]:
    if broken := session.settings.broken:
        text = f"{broken.message};\nuntil it is mended no agent is protected, and only what looks or takes back works"
        yield Check("fail", "settings", text, broken.hint, broken.code)
    for text in session.settings.warnings:
        yield Check("warn", "settings", text, "git safety help settings", "settings")


def _neighbours() -> Iterator[Check]:
    """The vulnerability scanner of the same import name may live beside us."""
    try:
        version = importlib.metadata.version("safety")
    except importlib.metadata.PackageNotFoundError:
        return
    yield Check(
        "warn",
        "safety",
        f"this environment also has `safety` {version}, the vulnerability scanner: both work;\n"
        "in your code write `from safety.net import ...`",
        code="scanner",
    )
