"""The fixture ``safety_net`` for tests of agents. pytest loads this file in every run of its environment, so it loads nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from safety.adapters.embed.net import Net


@pytest.fixture
def safety_net(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    """A strict net over ``tmp_path``, with settings and a store of its own that go with the test's folders."""
    from safety.adapters.embed.net import Net
    from safety.runtime.open import open_session

    home = tmp_path_factory.mktemp("git-safety")
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "GIT_SAFETY_HOME": str(home / "state"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    open_session(os.fsencode(tmp_path), environ=environ, alone=True)  # also where it lies in the repository that is tested
    with Net(tmp_path, strict=True, environ=environ) as net:
        yield net
