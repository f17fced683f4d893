from __future__ import annotations

from pathlib import Path

import pytest

from safety.plumbing.odb import ObjectStore
from tests.store.bare import Counted, make_store
from tests.store.storekit import Shelf
from tests.support.repo import RepoBuilder


@pytest.fixture(scope="module")
def odb(tmp_path_factory: pytest.TempPathFactory) -> ObjectStore:
    """The store all tests of a module write to; objects are named by content, so they cannot meet."""
    return make_store(tmp_path_factory.mktemp("shared") / "store")


@pytest.fixture
def own_odb(tmp_path: Path) -> Counted:
    """A store of the test's own, which counts."""
    make_store(tmp_path / "store")
    return Counted(tmp_path / "store")


@pytest.fixture
def user(tmp_path: Path, env: dict[str, str]) -> RepoBuilder:
    """A repository of one commit."""
    repo = RepoBuilder(tmp_path / "work", env)
    repo.commit("first", a_txt="one\n")
    return repo


@pytest.fixture
def shelf(tmp_path: Path, user: RepoBuilder) -> Shelf:
    """Its store, seeded, without an operation."""
    made = Shelf(tmp_path, user)
    made.seed()
    return made
