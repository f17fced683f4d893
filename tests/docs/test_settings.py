"""The page of settings has every key that is read, its default, and what a project's file may do with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from safety.runtime.config import PROJECT_FILE, Settings, load_settings
from safety.terminal.topics import TOPICS

PAGE = Path(__file__).resolve().parents[2] / "docs/settings.md"
_ROW = re.compile(r"^\| `([a-z_.]+)` \| `([^`]*)`[^|]* \| ([^|]*) \|", re.MULTILINE)
#: Those that no file sets, and the tables, which have a section of their own.
_NOT_KEYS = {"warnings", "project_hooks", "broken"}
_TABLES = {"hooks", "hook_options"}


class Row(NamedTuple):
    """One line of the page's tables."""

    key: str
    default: Any
    project: str


ROWS = [Row(key, json.loads(default), project.strip()) for key, default, project in _ROW.findall(PAGE.read_text())]


def test_the_page_has_every_setting_once() -> None:
    """A new setting is described, and one that is gone is not."""
    keys = [row.key.replace(".", "_") for row in ROWS]
    assert len(keys) == len(set(keys))
    assert set(keys) | _TABLES == set(Settings.__dataclass_fields__) - _NOT_KEYS


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_the_default_is_the_one_shown(row: Row) -> None:
    """Of a list the page gives the list."""
    default = getattr(Settings(), row.key.replace(".", "_"))
    assert row.default == (list(default) if isinstance(default, tuple) else default)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_a_project_may_do_what_the_page_says_and_no_more(row: Row, tmp_path: Path) -> None:
    """Tried with the user's file and the project's side by side."""
    for mine, wanted, follows in _tries(row):
        assert _in_effect(tmp_path, row.key, mine, wanted) == (wanted if follows else mine), (mine, wanted)


def test_the_help_topic_has_them_too() -> None:
    """``git safety help settings`` names every key that does something."""
    text = TOPICS["settings"][1]
    idle = {"daemon.enabled", "daemon.idle_exit_s"}
    missing = [row.key for row in ROWS if row.key not in idle and not re.search(rf"\.?\b{row.key.rpartition('.')[2]}\b", text)]
    assert not missing


def _tries(row: Row) -> list[tuple[Any, Any, bool]]:
    """What the user has set, what the project asks for, and whether that then counts."""
    words = re.findall(r"`(\w+)`", row.project)
    if row.project == "lower":
        return [(10, 9, True), (10, 11, False)]
    if row.project == "add":
        return [(["a"], ["a", "b"], True), (["a", "b"], ["a"], False)]
    if row.project == "take away":
        return [(["a", "b"], ["a"], True), (["a"], ["a", "b"], False)]
    if row.project == "add stricter":
        return []  # what is added stands beside the user's: tests/tools/test_guard.py
    if row.project == "any":
        return [(["a"], ["b"], True)]
    if row.project.startswith("only"):
        strict = words == ["true"]
        return [(not strict, strict, True), (strict, not strict, False)]
    if row.project.startswith("towards"):
        steps = list(zip(words, words[1:], strict=False))
        return [(one, other, True) for one, other in steps] + [(other, one, False) for one, other in steps]
    assert row.project == "no", row.project
    return [(row.default, _another(row), False)]


def _another(row: Row) -> Any:
    """A value of the right type that is not the default."""
    words = {"gate.backend": "hook", "trust.default": "untrusted"}
    if row.key in words:
        return words[row.key]
    if isinstance(row.default, bool):
        return not row.default
    return {str: "other", list: ["x"]}.get(type(row.default), 1)


def _in_effect(folder: Path, key: str, mine: Any, projects: Any) -> Any:
    (folder / "settings.json").write_text(_nested(key, mine))
    (folder / PROJECT_FILE).write_text(_nested(key, projects))
    found = load_settings({"GIT_SAFETY_CONFIG": str(folder / "settings.json")}, bytes(folder))
    value = getattr(found, key.replace(".", "_"))
    return list(value) if isinstance(value, tuple) else value


def _nested(key: str, value: Any) -> str:
    first, _, rest = key.partition(".")
    return json.dumps({first: {rest: value} if rest else value})
