"""One path put in its place while somebody else writes to it: what they wrote is never lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from safety.plumbing.odb import ObjectStore
from safety.store.exchange import Exchanger, Moved
from safety.store.files import Tree, state_of
from safety.types import ABSENT, PathState, Present


@pytest.fixture
def hands(tmp_path: Path, odb: ObjectStore) -> Iterator[Exchanger]:
    root = tmp_path / "work"
    root.mkdir()
    with Tree(os.fsencode(root)) as tree:
        yield Exchanger(tree, odb, "tag")


def root_of(hands: Exchanger) -> Path:
    return Path(os.fsdecode(hands.tree.root))


def text(hands: Exchanger, data: bytes) -> Present:
    return Present("file", 0o644, hands.odb.write("blob", data))


def before_rename(hands: Exchanger, act: Callable[[], object]) -> None:
    """Somebody acts between the last look and the first rename."""
    rename = hands._rename

    def acted(*args: object) -> None:
        hands._rename = rename
        act()
        rename(*args)  # type: ignore[arg-type]

    hands._rename = acted  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("ours", "target"), [(b"agent\n", b"before\n"), (b"agent\n", None), (None, b"before\n")], ids=["replace", "remove", "create"]
)
def test_a_save_at_the_last_moment_stays(hands: Exchanger, ours: bytes | None, target: bytes | None) -> None:
    """Replaced, removed or created under us, the path is as they left it and nothing lies beside it. Rule: verify what came out."""
    file = root_of(hands) / "f"
    if ours is not None:
        file.write_bytes(ours)
    states: list[PathState] = [ABSENT if data is None else text(hands, data) for data in (ours, target)]
    before_rename(hands, lambda: file.write_bytes(b"user's save\n"))

    with pytest.raises(Moved):
        hands.put(b"f", *states)

    hands.finish()
    assert file.read_bytes() == b"user's save\n"
    assert os.listdir(file.parent) == ["f"]


@pytest.mark.parametrize("target", [b"before\n", None], ids=["replace", "remove"])
def test_a_writer_that_still_has_the_file_open_is_noticed(hands: Exchanger, target: bytes | None) -> None:
    """What it wrote to the displaced file is in the store and the path is named. Rule: displaced files are compared once more."""
    file = root_of(hands) / "f"
    file.write_bytes(b"agent\n")
    with open(file, "ab", buffering=0) as writer:
        hands.put(b"f", text(hands, b"agent\n"), ABSENT if target is None else text(hands, target))
        writer.write(b"late\n")

    assert hands.finish() == [b"f"]
    assert hands.odb.exists(text(hands, b"agent\nlate\n").oid)
    assert state_of(hands.tree, hands.odb, b"f") == (ABSENT if target is None else text(hands, target))
