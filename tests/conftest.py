"""What all tests share: warnings are errors, a printed random seed, an environment of one's own, and the checks after each undo
test.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import process
from tests.support.environment import isolated
from tests.support.repo import RepoBuilder, assert_nothing_lost, assert_store_sound, standard


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="store_true", default=os.environ.get("SAFETY_TESTS_LONG") == "1", help="every kill point, every step"
    )
    parser.addoption("--point", default="", help="one kill point of tests/crash, as its failure message gives it")
    parser.addoption("--seed", type=int, default=None, help="the number all random choices of a run follow from")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "error")
    if config.getoption("--seed") is None:
        config.option.seed = random.SystemRandom().randrange(1 << 32)
    # A shell starts what it puts in the background with these ignored, and a program that ignores them passes that on to its children.
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    process.preload()


def pytest_report_header(config: pytest.Config) -> str:
    return f"random choices: --seed={config.getoption('--seed')}"


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """The only source of random choices; follows from ``--seed`` and the test's name."""
    return random.Random(f"{request.config.getoption('--seed')} {request.node.nodeid}")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return isolated(tmp_path)


@pytest.fixture
def empty_repo(tmp_path: Path, env: dict[str, str]) -> Iterator[RepoBuilder]:
    """A git repository before its first commit. After the test: the store is sound and nothing of the user's was lost."""
    repo = RepoBuilder(tmp_path / "work", env)
    yield repo
    assert_nothing_lost(repo)
    assert_store_sound(repo)


@pytest.fixture
def repo(empty_repo: RepoBuilder) -> RepoBuilder:
    """A repository with one commit of common files; checked after the test as ``empty_repo`` is."""
    return standard(empty_repo)


@pytest.fixture
def folder(tmp_path: Path, env: dict[str, str]) -> Iterator[RepoBuilder]:
    """A plain folder, no repository; checked after the test as ``empty_repo`` is."""
    repo = RepoBuilder(tmp_path / "work", env, init=False)
    yield repo
    assert_nothing_lost(repo)
    assert_store_sound(repo)
