"""``Work``: a workspace whose agent acts through the session's own methods, in this process."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from safety.commands import store
from safety.commands.args import StoreArgs
from safety.runtime.open import open_session
from safety.session import Call, Session
from tests.support.environment import isolated
from tests.support.repo import RepoBuilder, standard


class Work(RepoBuilder):
    """A workspace; ``session`` is the user at the command line, ``agent`` a conversation."""

    _calls = itertools.count(1)

    @property
    def session(self) -> Session:  # type: ignore[override]
        return self.talk("")

    @session.setter
    def session(self, value: str) -> None:
        """The builder's own name for its current conversation; not used here."""

    def talk(self, session_id: str, name: str = "") -> Session:
        return open_session(os.fsencode(self.root), session_id, self.env, {"name": name} if name else None)

    def at(self, path: str) -> bytes:
        """An absolute path, as arguments have it."""
        return os.fsencode(self.root / path)

    @contextmanager
    def turn(self, prompt: str = "do it", session: str | None = "s1", name: str = "Claude Code") -> Iterator[Session]:
        talk = self.talk(session or "s1", name)
        talk.turn_start(prompt)
        yield talk
        talk.turn_end()
        assert not talk.notices, talk.notices

    @contextmanager
    def step(self, talk: Session, command: str = "./step", paths: Sequence[str] | None = None, **fields: Any) -> Iterator[None]:
        """One tool call; what happens inside is what the tool does."""
        declared = None if paths is None else tuple(map(os.fsencode, paths))
        tool = "shell" if paths is None else "write"
        given = {"command": command} if paths is None else {"path": paths[0]}
        call = Call(f"call-{next(self._calls)}", tool, given, os.fsencode(self.root), declared)
        talk.pre(call)
        yield
        talk.post(call, **fields)

    def agent_does(self, script: str, prompt: str = "do it", session: str = "s1", name: str = "Claude Code") -> None:
        """A turn of one call that runs a script."""
        with self.turn(prompt, session, name) as talk, self.step(talk, script):
            self.sh(script)

    def snapshot_of_state(self) -> dict[str, bytes]:
        """Every file below the state folder, but for locks."""
        files = (path for path in self.state.rglob("*") if path.is_file() and not path.name.endswith("lock"))
        return {str(path.relative_to(self.state)): path.read_bytes() for path in files}


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Work]:
    """A git repository before its first commit; at the end its store is sound."""
    made = Work(tmp_path / "work", isolated(tmp_path))
    yield made
    report = store.run(made.session, StoreArgs(action="fsck"))
    assert report.exit_code == 0, report


@pytest.fixture
def work(bare: Work) -> Work:
    """A repository with one commit of common files."""
    standard(bare)
    return bare


@pytest.fixture
def plain(tmp_path: Path) -> Work:
    """A folder without git."""
    return Work(tmp_path / "folder", isolated(tmp_path), init=False)
