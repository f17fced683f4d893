from __future__ import annotations

from pathlib import Path

import pytest

from safety.plumbing.odb import ObjectStore
from tests.store.bare import Counted, make_store


@pytest.fixture(scope="module")
def odb(tmp_path_factory: pytest.TempPathFactory) -> ObjectStore:
    """The store all tests of a module write to; objects are named by content, so they cannot meet."""
    return make_store(tmp_path_factory.mktemp("shared") / "store")


@pytest.fixture
def own_odb(tmp_path: Path) -> Counted:
    """A store of the test's own, which counts."""
    make_store(tmp_path / "store")
    return Counted(tmp_path / "store")
