"""Settings: the user's file, the project's file, and what is said of mistakes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from safety.runtime.config import BadSettings, Settings, fails_closed, load_settings


def environ(tmp_path: Path, settings: Any = None) -> dict[str, str]:
    file = tmp_path / "settings.json"
    if settings is not None:
        file.write_text(settings if isinstance(settings, str) else json.dumps(settings))
    return {"HOME": str(tmp_path), "GIT_SAFETY_CONFIG": str(file)}


def test_defaults(tmp_path: Path) -> None:
    """Without a file the documented defaults hold."""
    assert load_settings(environ(tmp_path)) == Settings()


def test_nested_keys(tmp_path: Path) -> None:
    """A key may be nested or dotted; parts that are not built yet are known."""
    settings = load_settings(environ(tmp_path, {"snapshots": {"max_file_mib": 1}, "run.quiet_s": 3, "gate": {"enabled": "off"}}))

    assert (settings.snapshots_max_file_mib, settings.run_quiet_s, settings.warnings) == (1, 3, ())


def test_unknown_key_warns(tmp_path: Path) -> None:
    """An unknown key is named, the rest is used."""
    settings = load_settings(environ(tmp_path, {"snapshot": {"max": 1}, "fail_closed": True}))

    assert settings.fail_closed and "snapshot.max" in settings.warnings[0]


@pytest.mark.parametrize(
    "settings",
    [
        {"fail_closed": "yes"},
        {"run": {"quiet_s": "10"}},
        {"snapshots": {"skip_dirs": "x"}},
        {"store": {"max_mib": -1}},
        {"store.max_mib": 1.5},
        "[]",
        "{",
    ],
)
def test_wrong_type_is_an_error_naming_the_key(tmp_path: Path, settings: Any) -> None:
    """A value of the wrong type is not guessed at."""
    with pytest.raises(BadSettings) as caught:
        load_settings(environ(tmp_path, settings))

    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"gate": {"enabled": "maybe"}}, 'gate.enabled must be off, auto or on, not "maybe"'),
        ({"gate": {"enabled": True}}, "gate.enabled must be off, auto or on, not true"),
        ({"fail_closed": "yes"}, 'fail_closed must be true or false, not "yes"'),
        ({"run": {"quiet_s": "10"}}, 'run.quiet_s must be a number, 0 or more, not "10"'),
        ({"store.max_mib": 1.5}, "store.max_mib must be a whole number, 0 or more, not 1.5"),
        ({"store.max_mib": {"x": 1}}, 'store.max_mib must be a whole number, 0 or more, not {"x": 1}'),
        ({"snapshots": {"skip_dirs": "x"}}, 'snapshots.skip_dirs must be a list of strings, not "x"'),
        ({"watch": {"enabled": 1}}, "watch.enabled must be auto, on, off, true or false, not 1"),
        ({"ui": {"color": "blue"}}, 'ui.color must be auto, always or never, not "blue"'),
        ({"ui": {"pager": "less"}}, 'ui.pager must be auto or never, not "less"'),
        ({"autocommit": {"trailer": 5}}, "autocommit.trailer must be a string, not 5"),
        ({"gate": 1}, "gate must be an object of keys, not 1"),
        ({"hooks": []}, "hooks must be an object, not []"),
        (
            {"guard": {"rules": [{"action": "no"}]}},
            'guard.rules must be a list of objects with "action" (allow, ask or deny) and',
        ),
    ],
)
def test_a_wrong_value_is_told_what_would_be_right(tmp_path: Path, settings: Any, said: str) -> None:
    """The file, the key, what it may be, and what it is."""
    with pytest.raises(BadSettings) as caught:
        load_settings(environ(tmp_path, settings))

    assert f"settings.json: {said}" in caught.value.message


def test_project_may_only_tighten(tmp_path: Path) -> None:
    """A repository cannot loosen what its user set, and says so when it tries."""
    (tmp_path / ".git-safety.json").write_text(
        json.dumps({"fail_closed": True, "snapshots": {"max_file_mib": 64, "max_call_mib": 8}})
    )

    settings = load_settings(environ(tmp_path), os.fsencode(tmp_path))

    assert (settings.fail_closed, settings.snapshots_max_file_mib, settings.snapshots_max_call_mib) == (True, 32, 8)
    assert len(settings.warnings) == 1 and "max_file_mib" in settings.warnings[0]


def test_fail_closed_of_a_broken_file(tmp_path: Path) -> None:
    """Where the settings cannot be read, nothing is denied because of it."""
    assert fails_closed(environ(tmp_path, {"fail_closed": True}))
    assert not fails_closed(environ(tmp_path, "{"))


@pytest.mark.parametrize(("settings", "closed"), [("{", False), ('{"fail_closed": true, "run": {"quiet_s": "x"}}', True)])
def test_lenient_takes_the_defaults_and_says_why(tmp_path: Path, settings: str, closed: bool) -> None:
    """For those who look or take back: nothing of a broken file counts but ``fail_closed``; the project's still tightens."""
    (tmp_path / ".git-safety.json").write_text(json.dumps({"snapshots": {"max_file_mib": 8}}))

    found = load_settings(environ(tmp_path, settings), os.fsencode(tmp_path), lenient=True)

    assert (found.fail_closed, found.snapshots_max_file_mib, found.run_quiet_s) == (closed, 8, 10)
    assert found.broken is not None and "settings.json" in found.broken.message
