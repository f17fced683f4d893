"""Which repositories may run their checks and instruct a model: ``trust.json`` in the state home (design 7).

Trust is in a folder and in what was there when it was given: the runner's configuration, the hooks, the instruction files at its root,
each by the hash of its bytes. What changed since is asked about again, but for instruction files in which nothing is suspicious: those
change with every second pull ([gate] C6). Only a person gives trust; no setting of a project and no agent does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safety.faults import SafetyError
from safety.plumbing.repo import ConfigBroken, Repository, open_repository, parse_config
from safety.policy.screening import INSTRUCTION_NAMES, LOCAL_INSTRUCTIONS, signs
from safety.store import lock

VERSION = 1
_FILE = "trust.json"
_LOCK_WAIT_S = 10
_CONFIG = b".git/config"  # stands for the settings in it that name hooks

_RUNNER_NAMES = re.compile(
    rb"\.pre-commit-config\.ya?ml|prek\.toml|\.?lefthook(?:-local)?\.(?:ya?ml|toml|jsonc?)|\.overcommit\.yml|\.simple-git-hooks\.[a-z]+"
    rb"|hk\.pkl|\.lintstagedrc(?:\.[a-z]+)?|lint-staged\.config\.[a-z]+"
)
_RUNNER_FOLDERS = (b".husky", b".config")


class TrustFileBroken(SafetyError):
    """``trust.json`` cannot be read, or others than the user could have written it. It is left as it is."""

    code = "trust-file-broken"


@dataclass(frozen=True, slots=True)
class Trust:
    """Whether a root is trusted: ``state`` is ``trusted``, ``ask`` or ``untrusted``; with nobody to ask, ``ask`` is ``untrusted``.

    ``reason``: ``given``, ``default``, ``linked`` (a work tree of a trusted repository, with the same files), ``instructions-changed``
    (nothing suspicious in them); or why not: ``never-asked``, ``refused``, ``replaced`` (another folder at this path), ``other-remote``,
    ``changed``, ``changed-by-agent``. ``changed`` are the files, relative to the root or absolute.
    """

    state: str
    reason: str
    changed: tuple[bytes, ...] = ()

    @property
    def ok(self) -> bool:
        return self.state == "trusted"


@dataclass(frozen=True, slots=True)
class Trusted:
    """One line of ``trust.json``: a root and the files whose content trust was given to."""

    root: bytes
    files: tuple[bytes, ...]
    time_ms: int


def is_trusted(
    home: Path, root: bytes, default: str = "ask", agent_changed: Callable[[], Collection[bytes]] = frozenset
) -> Trust:
    """Whether the checks of ``root`` may run and its instructions be sent.

    ``default`` is the user's ``trust.default``: what a root is that nobody decided on, and what doubt leads to. ``agent_changed`` gives the
    paths the agent changed since the user last spoke, absolute or relative to the root: a runner's file among them is not trusted
    whatever the default is. Raises TrustFileBroken.
    """
    root = os.path.realpath(root)
    entries = _load(home)["roots"]
    now = _Fingerprint(root)
    entry = next((entry for entry in entries if entry["root"] == _text(root)), None)
    if entry is not None and entry["state"] != "trusted":
        return Trust("untrusted", "refused")

    def by_agent() -> set[bytes]:
        return {_relative(path, root) for path in agent_changed()}

    doubt = {"trusted": "trusted", "untrusted": "untrusted"}.get(default, "ask")
    if entry is None and now.linked:
        entry = next((one for one in entries if one["state"] == "trusted" and one["common_dir"] == now.common_dir), None)
        if entry is not None:
            found = _compare(entry["files"], now, by_agent, doubt)
            return replace(found, reason="linked") if found.reason == "given" else found
    if entry is None:
        if now.runs_anything:
            touched = tuple(sorted(path for path in by_agent() if _is_runner_file(path)))
            if touched:
                return Trust("untrusted", "changed-by-agent", touched)
        return Trust(doubt, "never-asked" if default == "ask" else "default")
    if (entry["device"], entry["inode"]) != now.identity:
        return Trust(doubt, "replaced")
    if entry["remote"] and now.remote and entry["remote"] != now.remote:
        return Trust(doubt, "other-remote")
    return _compare(entry["files"], now, by_agent, doubt)


def _compare(then: Mapping[str, str], now: _Fingerprint, by_agent: Callable[[], set[bytes]], doubt: str) -> Trust:
    paths = {_bytes(path) for path in then} | set(now.files)
    changed = tuple(sorted(path for path in paths if then.get(_text(path)) != now.files.get(path)))
    runners = [path for path in changed if not _is_instructions(path)]
    if runners and not by_agent().isdisjoint(runners):
        return Trust("untrusted", "changed-by-agent", changed)
    if runners or any(now.signs(path) for path in changed):
        return Trust(doubt, "changed", changed)
    return Trust("trusted", "instructions-changed" if changed else "given", changed)


def trust(home: Path, root: bytes, time_ms: int = 0) -> Trusted:
    """Trusts ``root`` with the files that are there now, and gives which those are. Raises TrustFileBroken, WorkspaceBusy."""
    return _decide(home, root, "trusted", time_ms)


def untrust(home: Path, root: bytes, time_ms: int = 0) -> bool:
    """Refuses ``root``, also where the default is ``trusted``. Gives whether it was trusted before. Raises as ``trust`` does."""
    text = _text(os.path.realpath(root))
    before = any(entry["root"] == text and entry["state"] == "trusted" for entry in _load(home)["roots"])
    _decide(home, root, "untrusted", time_ms)
    return before


def renew(home: Path, root: bytes, agent_changed: Callable[[], Collection[bytes]]) -> tuple[bytes, ...]:
    """Takes over what the agent changed in the files of a trusted root, as the user has seen its turn and spoken again.

    Nothing else is taken over: what came another way is still asked about. Gives the paths. Raises as ``trust`` does.
    """
    root = os.path.realpath(root)
    entry = next((one for one in _load(home)["roots"] if one["root"] == _text(root) and one["state"] == "trusted"), None)
    now = _Fingerprint(root) if entry is not None else None
    if entry is None or now is None or entry["files"] == {_text(path): sha for path, sha in now.files.items()}:
        return ()
    by_agent = {_relative(path, root) for path in agent_changed()}
    if not by_agent:
        return ()
    with _changing(home) as content:
        for entry in content["roots"]:
            if entry["root"] == _text(root) and entry["state"] == "trusted" and (entry["device"], entry["inode"]) == now.identity:
                paths = {_bytes(path) for path in entry["files"]} | set(now.files)
                taken = tuple(sorted(path for path in paths & by_agent if entry["files"].get(_text(path)) != now.files.get(path)))
                for path in taken:
                    entry["files"].pop(_text(path), None)
                    if path in now.files:
                        entry["files"][_text(path)] = now.files[path]
                return taken
    return ()


def runs_anything(root: bytes) -> bool:
    """Whether the repository brings a check or a hook at all, which is what there is to trust before a commit."""
    return _Fingerprint(os.path.realpath(root)).runs_anything


def list_trusted(home: Path) -> list[Trusted]:
    """Every trusted root, by path. Raises TrustFileBroken."""
    found = [_trusted(entry) for entry in _load(home)["roots"] if entry["state"] == "trusted"]
    return sorted(found, key=lambda one: one.root)


def _trusted(entry: Mapping[str, Any]) -> Trusted:
    return Trusted(_bytes(entry["root"]), tuple(sorted(map(_bytes, entry["files"]))), entry["time_ms"])


def _decide(home: Path, root: bytes, state: str, time_ms: int) -> Trusted:
    root = os.path.realpath(root)
    now = _Fingerprint(root)
    entry = {
        "root": _text(root),
        "state": state,
        "device": now.identity[0],
        "inode": now.identity[1],
        "common_dir": now.common_dir,
        "remote": now.remote,
        "time_ms": time_ms,
        "files": {_text(path): sha for path, sha in sorted(now.files.items())},
    }
    with _changing(home) as content:
        content["roots"] = [one for one in content["roots"] if one["root"] != entry["root"]] + [entry]
    return _trusted(entry)


# -- what is there now -------------------------------------------------------------------------------------------------------------------


class _Fingerprint:
    """What of a root trust is given to: its identity, and the hash of each file that can make something run or instruct a model."""

    def __init__(self, root: bytes) -> None:
        self.root = root
        repository = open_repository(root)
        config = _config_of(repository)
        self.identity = _identity(root)
        self.linked = repository is not None and repository.linked
        self.common_dir = _text(os.path.realpath(repository.common_dir)) if repository else ""
        address = config.get("remote.origin.url", b"")  # hashed, as it may hold a password
        self.remote = hashlib.sha256(address).hexdigest() if address else ""
        self.files: dict[bytes, str] = {}
        for path in (*INSTRUCTION_NAMES, LOCAL_INSTRUCTIONS, *_runner_files(root)):
            self._add(path, os.path.join(root, path))
        settings = {key: value for key, value in sorted(config.items()) if key.startswith("hook.") or key == "core.hookspath"}
        if settings:
            self.files[_CONFIG] = hashlib.sha256(repr(settings).encode()).hexdigest()
        if repository is not None:
            for name, place in _hooks(repository, config.get("core.hookspath")):
                self._add(name, place)

    def _add(self, name: bytes, place: bytes) -> None:
        data = _content(place)
        if data is not None:
            self.files[name] = hashlib.sha256(data).hexdigest()

    @property
    def runs_anything(self) -> bool:
        return any(not _is_instructions(path) for path in self.files)

    def signs(self, path: bytes) -> tuple[str, ...]:
        """What is suspicious in an instruction file as it is now."""
        return signs((_content(os.path.join(self.root, path)) or b"").decode("utf-8", "replace"))


def _identity(root: bytes) -> tuple[int, int]:
    try:
        info = os.stat(root)
    except OSError:
        return (0, 0)
    return (info.st_dev, info.st_ino)


def _content(path: bytes) -> bytes | None:
    """The bytes of a regular file, None for anything else; nothing that could wait is opened to wait."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        try:
            return file.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
        except OSError:
            return None


def _config_of(repository: Repository | None) -> dict[str, bytes]:
    if repository is None:
        return {}
    found: dict[str, bytes] = {}
    for place in (repository.common_dir + b"/config", repository.git_dir + b"/config.worktree"):
        text = _content(place)
        try:
            found.update(parse_config(text or b""))
        except ConfigBroken:
            found["hook.broken"] = text or b""  # no two states of it count as one
    return found


def _runner_files(root: bytes) -> list[bytes]:
    """The runner's files at the root, relative to it."""
    found = [name for name in _names(root) if _RUNNER_NAMES.fullmatch(name)]
    for folder in _RUNNER_FOLDERS:
        below = [folder + b"/" + name for name in _names(os.path.join(root, folder))]
        found += [path for path in below if _is_runner_file(path)]
    return found


def _is_runner_file(path: bytes) -> bool:
    """Whether a path relative to the root is by its name a file that says what a runner runs, or a hook."""
    folder, _, name = path.rpartition(b"/")
    if path.startswith((b".husky/", b".git/hooks/")):
        return True
    return folder in (b"", b".config") and bool(_RUNNER_NAMES.fullmatch(name))


def _is_instructions(path: bytes) -> bool:
    return path in INSTRUCTION_NAMES or path == LOCAL_INSTRUCTIONS


def _names(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _hooks(repository: Repository, configured: bytes | None) -> Iterator[tuple[bytes, bytes]]:
    """Each hook git would run: how it is named here (the same in every work tree) and its absolute path."""
    if configured and configured.startswith(b"~"):  # in the user's own home; that it is set is part of the settings
        return
    folder = os.path.join(repository.root, configured) if configured else os.path.join(repository.common_dir, b"hooks")
    named = os.path.normpath(configured) if configured else b".git/hooks"
    for name in sorted(_names(folder)):
        place = os.path.join(folder, name)
        if not name.endswith(b".sample") and os.access(place, os.X_OK) and os.path.isfile(place):
            yield os.path.join(named, name), place


def _relative(path: bytes, root: bytes) -> bytes:
    for base in (root, os.path.realpath(root)):
        if path.startswith(base + b"/"):
            return path[len(base) + 1 :]
    return path


# -- the file ----------------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _changing(home: Path) -> Iterator[dict[str, Any]]:
    """The content of ``trust.json`` under its lock; written back when the block ends without an error, unless nothing changed."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock.hold(home / "trust.lock", _LOCK_WAIT_S):
        content = _load(home)
        before = json.dumps(content)
        yield content
        if json.dumps(content) != before:
            _write(home / _FILE, content)


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "root": lambda value: isinstance(value, str) and value.startswith("/"),
    "state": lambda value: value in ("trusted", "untrusted"),
    "device": lambda value: isinstance(value, int),
    "inode": lambda value: isinstance(value, int),
    "common_dir": lambda value: isinstance(value, str),
    "remote": lambda value: isinstance(value, str),
    "time_ms": lambda value: isinstance(value, int),
    "files": lambda value: isinstance(value, dict) and all(isinstance(sha, str) for sha in value.values()),
}


def _load(home: Path) -> dict[str, Any]:
    path = home / _FILE
    try:
        with open(path, "rb") as file:
            info = os.fstat(file.fileno())
            data = file.read()
    except FileNotFoundError:
        return {"v": VERSION, "roots": []}
    except OSError as fault:
        raise TrustFileBroken(f"{path} cannot be read: {os.strerror(fault.errno or 0)}", f"ls -l {path}") from fault
    if info.st_mode & 0o022 or info.st_uid not in (os.geteuid(), 0):
        raise TrustFileBroken(f"others than you may write {path}", f"chmod 600 {path}")
    try:
        content = json.loads(data)
        sound = content["v"] == VERSION and all(valid(entry[key]) for entry in content["roots"] for key, valid in _FIELDS.items())
    except (ValueError, KeyError, TypeError) as fault:
        raise TrustFileBroken(f"{path} is damaged, so nothing is trusted", f"mv {path} {path}.damaged") from fault
    if not sound:
        raise TrustFileBroken(f"{path} is damaged or from another version, so nothing is trusted", f"mv {path} {path}.damaged")
    assert isinstance(content, dict)
    return content


def _write(path: Path, content: Mapping[str, Any]) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix="trust-", suffix=".tmp", dir=path.parent)  # made with mode 0600
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
