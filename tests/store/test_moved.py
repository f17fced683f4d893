"""A workspace whose folder was moved goes on under its new root."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from safety.store import registry
from safety.store.moved import take_over
from safety.store.turns import Sessions, SessionState, own_process

NOBODY: frozenset[bytes] = frozenset()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    registry.prepare_home(tmp_path / "state")
    return tmp_path / "state"


def recorded(home: Path, folder: Path, history: str = "") -> registry.Entry:
    """The workspace of a folder with one line in HEAD's log, as it is after a visit."""
    root = os.fsencode(folder)
    logs = folder / ".git/logs"
    logs.mkdir(parents=True)
    (folder / ".git/objects").mkdir()
    (folder / ".git/refs").mkdir()
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (logs / "HEAD").write_text(f"{'0' * 40} {history or 'a' * 40} x <x> 0 +0000\tcommit\n")
    entry = registry.witnessed(registry.locate(home, root), registry.first_commit(root))
    registry.save(home, entry)
    return entry


def test_entry_goes_by_its_new_root_alone(home: Path, tmp_path: Path) -> None:
    """Its key stays, and the file of the old root is gone."""
    entry = recorded(home, tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    root = os.fsencode(tmp_path / "new")

    found = take_over(home, root, NOBODY, 0)

    assert found == replace(entry, root=root)
    assert registry.everything(home) == [found]
    assert registry.find(home, root) == found
    assert registry.locate(home, entry.root).key != entry.key


@pytest.mark.parametrize("back", [False, True])
def test_kill_in_the_middle_leaves_it_to_be_found(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    """Between the rename of its file and the writing of it, the next look takes it over, wherever the folder is by then."""
    entry = recorded(home, tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    with monkeypatch.context() as patch:
        patch.setattr(registry, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            take_over(home, os.fsencode(tmp_path / "new"), NOBODY, 0)
    if back:
        (tmp_path / "new").rename(tmp_path / "old")
    root = os.fsencode(tmp_path / ("old" if back else "new"))
    assert registry.find(home, root) is None

    assert take_over(home, root, NOBODY, 0) == replace(entry, root=root)
    assert registry.everything(home) == [registry.find(home, root)]


def test_running_turn_is_left_alone(home: Path, tmp_path: Path) -> None:
    """While an agent works there, what it makes of the folder is its own doing, to be undone at the old place."""
    entry = recorded(home, tmp_path / "old")
    state = SessionState("run-1", is_open=True, process=own_process())
    folder = home / "workspaces" / entry.key / "sessions"
    folder.mkdir(parents=True)
    Sessions(folder).save(state)
    (tmp_path / "old").rename(tmp_path / "new")
    root = os.fsencode(tmp_path / "new")

    assert take_over(home, root, NOBODY, 0) is None
    Sessions(folder).save(replace(state, is_open=False))
    assert take_over(home, root, NOBODY, 0) is not None


def test_only_what_was_moved_is_taken_over(home: Path, tmp_path: Path) -> None:
    """Not another history in a folder that got the inode, not a folder that is too wide."""
    recorded(home, tmp_path / "old")
    root = os.fsencode(tmp_path / "new")
    (tmp_path / "old").rename(tmp_path / "new")
    assert take_over(home, root, frozenset({root}), 0) is None
    (tmp_path / "new/.git/logs/HEAD").write_text(f"{'0' * 40} {'b' * 40} x <x> 0 +0000\tcommit\n")
    assert take_over(home, root, NOBODY, 0) is None
