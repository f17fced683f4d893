"""Settings: the user's file, the project's file (which may only tighten), and the defaults of the protocol page."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from safety.faults import SafetyError

PROJECT_FILE = ".git-safety.json"
SKIP_DIRS = (
    "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache",
    "target", "build", "dist", ".gradle", ".next", ".cache", "vendor/bundle", "*.egg-info",
)  # fmt: skip


class BadSettings(SafetyError):
    code, exit_code = "bad-settings", 2


@dataclass(frozen=True)
class Settings:
    """The settings in effect; a key of the file such as ``run.quiet_s`` is the attribute ``run_quiet_s``.

    ``agents_md_names`` empty stands for the usual names; ``plugins`` names those that are loaded. ``hooks`` and ``hook_options`` are
    the user's tables as written, ``project_hooks`` holds both of the project's; what they may hold is decided where they are used.
    ``warnings`` are sentences about keys that are unknown or not allowed where they stand. ``broken``: why the user's file does not
    count, where the defaults stand in for it.
    """

    fail_closed: bool = False
    snapshots_max_file_mib: int = 32
    snapshots_max_call_mib: int = 256
    snapshots_ignored_max_kib: int = 256
    snapshots_deadline_s: float = 10
    snapshots_skip_dirs: tuple[str, ...] = SKIP_DIRS
    store_max_mib: int = 2048
    store_min_free_percent: int = 5
    store_keep_days: int = 30
    store_keep_operations: int = 2000
    hooks: Mapping[str, Any] = field(default_factory=dict)
    hook_options: Mapping[str, Any] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    project_hooks: Mapping[str, Any] = field(default_factory=dict)
    guard_enabled: bool = True
    guard_rules: tuple[Mapping[str, Any], ...] = ()
    gate_enabled: str = "auto"
    gate_backend: str = "auto"
    gate_command: tuple[str, ...] = ()
    gate_timeout_s: float = 120
    gate_max_attempts: int = 3
    gate_preexisting: str = "warn"
    gate_skip: tuple[str, ...] = ()
    gate_allow_partial: bool = False
    gate_max_message_chars: int = 6000
    autocommit_enabled: bool = False
    autocommit_trailer: str = "assisted-by"
    autocommit_protected_branches: str = "warn"
    autocommit_detached: str = "notice"
    autocommit_sign: str = "user"
    autocommit_submodules: bool = False
    autocommit_message_command: tuple[str, ...] = ()
    trust_default: str = "ask"
    agents_md_enabled: str = "auto"
    agents_md_names: tuple[str, ...] = ()
    agents_md_event_max_kb: int = 12
    agents_md_session_max_kb: int = 32
    agents_md_walk_above_root: bool = False
    screening_invisible: bool = True
    screening_phrases: bool = False
    run_quiet_s: float = 10
    watch_enabled: str | bool = "auto"
    daemon_enabled: bool = True
    daemon_idle_exit_s: float = 1800
    ui_color: str = "auto"
    ui_pager: str = "auto"
    warnings: tuple[str, ...] = ()
    broken: BadSettings | None = None


#: Attributes that no key sets.
_NOT_KEYS = ("warnings", "project_hooks", "broken")
#: Objects of keys.
SECTIONS = ("snapshots", "store", "gate", "autocommit", "trust", "agents_md", "screening", "run", "watch", "daemon", "ui")
#: Tables that are read elsewhere, kept as written.
TABLES = ("hooks", "hook_options")
_LOWER_IS_STRICTER = (
    "snapshots.max_file_mib",
    "snapshots.max_call_mib",
    "snapshots.ignored_max_kib",
    "store.max_mib",
    "store.keep_days",
    "gate.timeout_s",
    "gate.max_attempts",
    "gate.max_message_chars",
    "agents_md.event_max_kb",
    "agents_md.session_max_kb",
)
#: Words a key may have, the strictest last; a project may only go on in that direction.
_WORDS = {
    "gate.enabled": ("off", "auto", "on"),
    "gate.backend": ("auto", "command", "prek", "pre-commit", "lefthook", "hook"),
    "gate.preexisting": ("warn", "block"),
    "autocommit.protected_branches": ("allow", "warn", "branch", "refuse"),
    "autocommit.detached": ("allow", "notice"),
    "autocommit.sign": ("never", "user", "require"),
    "trust.default": ("trusted", "ask", "untrusted"),
    "agents_md.enabled": ("on", "auto", "off"),
}
#: What a key may be, where it is one of a few.
_CHOICES: Mapping[str, tuple[str | bool, ...]] = {
    **_WORDS,
    "watch.enabled": ("auto", "on", "off", True, False),
    "ui.color": ("auto", "always", "never"),
    "ui.pager": ("auto", "never"),
}
_NEVER_A_PROJECTS = ("plugins", "gate.backend", "gate.command", "autocommit.message_command", "trust.default")
#: Switches that a project may throw in one direction only: towards this value.
_STRICT_SWITCHES = {
    "fail_closed": True,
    "guard.enabled": True,
    "gate.allow_partial": False,
    "autocommit.enabled": False,
    "autocommit.submodules": False,
    "agents_md.walk_above_root": False,
    "screening.invisible": True,
    "screening.phrases": True,
}


_DEFAULTS: Mapping[str, Any] = {
    item.name: item.default_factory() if item.default_factory is not MISSING else item.default for item in fields(Settings)
}


def settings_file(environ: Mapping[str, str]) -> Path:
    """The user's settings file: ``GIT_SAFETY_CONFIG``, else under ``XDG_CONFIG_HOME`` or ``~/.config``."""
    if environ.get("GIT_SAFETY_CONFIG"):
        return Path(environ["GIT_SAFETY_CONFIG"])
    base = environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path(environ.get("HOME") or "/") / ".config") / "git-safety" / "settings.json"


def load_settings(environ: Mapping[str, str], root: bytes | None = None, *, lenient: bool = False) -> Settings:
    """The settings for a workspace. Raises BadSettings for a user's file that is no JSON object or has a value of the wrong type;
    ``lenient``: instead the defaults stand for it, ``broken`` says why, and ``fail_closed`` holds as far as it can be read.

    The same in a project's file is a warning: a folder that somebody sent, or an agent, must not be able to stop anything.
    """
    warnings: list[str] = []
    try:
        values = _users(settings_file(environ), warnings)
    except BadSettings as fault:
        if not lenient:
            raise
        warnings.clear()
        values = {"fail_closed": fails_closed(environ), "broken": fault}
    if root is not None:
        values.update(_projects(Path(os.fsdecode(root)) / PROJECT_FILE, values, warnings))
    return Settings(**values, warnings=tuple(warnings))


def _users(path: Path, warnings: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    raw = _read(path)
    for key, value in _flat(raw).items():
        name = _known(key, value, warnings, path)
        if name:
            values[name] = _checked(key, value, path)
    for table in TABLES:
        values[table] = _table(raw, table, path)
    return values


def _projects(path: Path, users: Mapping[str, Any], warnings: list[str]) -> dict[str, Any]:
    """What of a project's file counts beside the ``users`` values."""
    values: dict[str, Any] = {}
    try:
        raw = _read(path)
        values["project_hooks"] = {table: _table(raw, table, path) for table in TABLES}
    except BadSettings as fault:
        warnings.append(f"{fault.message}; ignored")
        return values
    for key, value in _flat(raw).items():
        try:
            name = _known(key, value, warnings, path)
            checked = _checked(key, value, path) if name else None
        except BadSettings as fault:
            warnings.append(f"{fault.message}; ignored")
            continue
        if not name or checked is None:
            continue
        current = users.get(name, _DEFAULTS[name])
        if key == "guard.rules":
            values[name] = (*current, *({**rule, "project": True} for rule in checked if rule["action"] != "allow"))
            warnings += [f"{path}: a project's rule may not allow; ignored" for rule in checked if rule["action"] == "allow"]
            continue
        if _is_tighter(key, current, checked):
            values[name] = checked
        elif checked != current:
            warnings.append(f"{path}: {key} may only be tightened by a project; ignored")
    return values


def _is_tighter(key: str, current: Any, new: Any) -> bool:
    """Whether a project may set the key so: what it sets is nowhere laxer than what is in effect."""
    if key in _NEVER_A_PROJECTS:
        return False
    if key in _LOWER_IS_STRICTER:
        return bool(new <= current)
    if key in _STRICT_SWITCHES:
        return bool(new == _STRICT_SWITCHES[key])
    if key in _WORDS:
        return _WORDS[key].index(new) >= _WORDS[key].index(current)
    if key == "snapshots.skip_dirs":
        return set(current) <= set(new)
    if key == "gate.skip":
        return set(new) <= set(current)
    return key == "agents_md.names"


_RULE_KEYS = ("command", "path", "effect")


def _rules(value: Any, path: Path) -> tuple[Mapping[str, Any], ...]:
    """The guard's rules, each an object with ``action`` and at least one of ``command``, ``path``, ``effect``."""
    fine = isinstance(value, list) and all(
        isinstance(rule, dict)
        and rule.get("action") in ("allow", "ask", "deny")
        and set(rule) <= {"action", *_RULE_KEYS}
        and any(rule.get(key) for key in _RULE_KEYS)
        and all(isinstance(rule.get(key, ""), str) for key in _RULE_KEYS)
        for rule in value
    )
    if not fine:
        wanted = 'a list of objects with "action" (allow, ask or deny) and some of "command", "path" and "effect", each a string'
        raise _wrong(path, "guard.rules", value, wanted)
    return tuple(value)


def _table(raw: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    value = raw.get(name, {})
    if not isinstance(value, dict):
        raise _wrong(path, name, value, "an object")
    return value


def _wrong(path: Path, key: str, value: Any, wanted: str) -> BadSettings:
    shown = json.dumps(value, ensure_ascii=False)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return BadSettings(f"{path}: {key} must be {wanted}, not {shown}", f"$EDITOR {path}")


def fails_closed(environ: Mapping[str, str]) -> bool:
    """``fail_closed`` of the user's file, for a moment when no session could be opened; whatever else is wrong with the file."""
    try:
        return load_settings(environ).fail_closed
    except SafetyError:
        pass
    try:
        text = settings_file(environ).read_text("utf-8", "replace")
    except OSError:
        return False
    return re.search(r'"fail_closed"\s*:\s*true\b', text) is not None


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as fault:
        raise BadSettings(f"{path} cannot be read: {fault.strerror}", f"ls -l {path}") from fault
    except ValueError as fault:
        raise BadSettings(f"{path} is not JSON: {fault}", f"$EDITOR {path}") from fault
    if not isinstance(raw, dict):
        raise BadSettings(f"{path} does not hold a JSON object", f"$EDITOR {path}")
    return raw


def _flat(raw: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in raw.items():
        if not prefix and key in TABLES:
            continue
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def _known(key: str, value: Any, warnings: list[str], path: Path) -> str | None:
    name = key.replace(".", "_")
    if key in SECTIONS or (name not in _DEFAULTS and key.rpartition(".")[0].replace(".", "_") in _DEFAULTS):
        if key in SECTIONS:
            raise _wrong(path, key, value, "an object of keys")
        outer = key.rpartition(".")[0]
        raise _wrong(path, outer, {key.rpartition(".")[2]: value}, _wanted(outer))
    if name in _NOT_KEYS or name not in _DEFAULTS:
        warnings.append(f"{path}: unknown key {key!r}")
        return None
    return name


def _checked(key: str, value: Any, path: Path) -> Any:
    default = _DEFAULTS[key.replace(".", "_")]
    if key == "guard.rules":
        return _rules(value, path)
    if key in _CHOICES:
        fine = isinstance(value, str | bool) and value in _CHOICES[key]
    elif isinstance(default, tuple):
        fine = isinstance(value, list) and all(isinstance(item, str) for item in value)
        value = tuple(value) if fine else value
    elif isinstance(default, bool):
        fine = isinstance(value, bool)
    elif isinstance(default, float | int):
        fine = (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and value >= 0
            and (_takes_fractions(key, default) or value == int(value))
        )
    else:
        fine = isinstance(value, str)
    if not fine:
        raise _wrong(path, key, value, _wanted(key))
    return value


def _takes_fractions(key: str, default: float) -> bool:
    return isinstance(default, float) or key.endswith("_s")


def _wanted(key: str) -> str:
    """What a key may be, in words."""
    default = _DEFAULTS[key.replace(".", "_")]
    if key in _CHOICES:
        *most, last = (word if isinstance(word, str) else json.dumps(word) for word in _CHOICES[key])
        return f"{', '.join(most)} or {last}"
    if isinstance(default, tuple):
        return "a list of strings"
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, float | int):
        return "a number, 0 or more" if _takes_fractions(key, default) else "a whole number, 0 or more"
    return "a string"
