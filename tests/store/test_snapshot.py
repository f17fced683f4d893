from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safety.plumbing.odb import ObjectStore
from safety.store.snapshot import AREAS, Editor, Snapshot, changes
from safety.types import ABSENT, ObjectId, PathState, Present, Unknown
from tests.store.model import Model

# Few names, so that random puts meet: files where directories were, one name in several areas, names git would refuse.
NAMES = [b"a", b"b", b"a-b", b".git", b"%", b"\xff"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(b"/".join)
ANY_PATH = st.one_of(PATHS, PATHS, PATHS, PATHS.map(lambda path: b"/" + path), st.just(b""))
MODES = st.sampled_from([0o755, 0o755, 0o775, 0o700, 0o1777])
FILE_MODES = st.sampled_from([0o644, 0o644, 0o664, 0o755, 0o775, 0o600, 0o700, 0o4755, 0o000])
BLOBS = st.sampled_from([bytes([number]) * 20 for number in range(1, 4)])
FILES = st.builds(lambda mode, oid, inode: Present("file", mode, oid, inode), FILE_MODES, BLOBS, st.sampled_from([None, None, (1, 2), (64769, 12345)]))
LINKS = st.builds(lambda mode, oid: Present("link", mode, oid), st.sampled_from([0o777, 0o755]), BLOBS)
DIRECTORIES = st.builds(lambda mode: Present("dir", mode, b""), MODES)
UNKNOWN = st.builds(Unknown, st.sampled_from(["ignored-directory", "ignored-directory", "too-large", "mount-point"]), st.sampled_from([0, 7]), st.sampled_from([0, -5]))  # fmt: skip
STATES = st.one_of(FILES, FILES, FILES, LINKS, DIRECTORIES, UNKNOWN, st.just(ABSENT), st.just(ABSENT))
PUTS = st.lists(st.tuples(ANY_PATH, STATES, st.sampled_from(["work", "work", "private"])), max_size=14)
MANY = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def is_sensible(path: bytes, state: PathState) -> bool:
    """Whether the editor is to take this put, and not to refuse it as a mistake."""
    return path != b"" or not (isinstance(state, Unknown) or (isinstance(state, Present) and state.kind != "dir"))


def apply(odb: ObjectStore, tree: ObjectId | None, model: Model, puts: list[tuple[bytes, PathState, str]]) -> ObjectId:
    editor = Editor(odb, tree)
    for path, state, area in puts:
        if is_sensible(path, state):
            area = "private" if path.startswith(b"/") else area
            editor.put(path, state, area)
            model.put(path, state, area)
    model.finish()
    return editor.finish()


def probes(model: Model) -> set[bytes]:
    """Paths at, above, below and beside what is recorded."""
    known = {*model.files, *model.unknown, *model.directories, *model.absent, b"", b"/", b"a/b/a", b"/b/a"}
    return known | {path + b"/a" for path in known if path and path != b"/"} | {path.rpartition(b"/")[0] for path in known}


def check_equal(odb: ObjectStore, tree: ObjectId, model: Model) -> None:
    snapshot = Snapshot(odb, tree)
    for path in probes(model):
        assert snapshot.state(path) == model.state(path), path
    for path, (area, state) in model.files.items():
        assert snapshot.area(path) == area
        found = snapshot.state(path)
        assert isinstance(found, Present) and found.inode == state.inode
    walked = list(snapshot.walk())
    assert dict(walked) == model.records() and [path for path, _ in walked] == sorted(model.records())
    assert dict(snapshot.not_covered()) == model.unknown
    for directory in {b"", b"/", *model.existing()}:
        if b".git" not in directory:
            expected = {name: kind for name, kind in model.children(directory).items() if name != b".git"}
            assert {name: kind for name, kind in snapshot.children(directory).items() if name != b".git"} == expected


@MANY
@given(first=PUTS, second=PUTS, seed=st.integers(0, 1 << 30))
def test_puts_mean_what_the_model_says_and_end_in_one_form(odb: ObjectStore, first: list, second: list, seed: int) -> None:  # type: ignore[type-arg]
    """After any puts in two editors: every state as the model has it, and the tree that the final states alone give."""
    model = Model()
    before = apply(odb, None, model, first)
    check_equal(odb, before, model)
    old = model.records(), {path: model.state(path) for path in probes(model)}
    after = apply(odb, before, model, second)
    check_equal(odb, after, model)
    assert model.rebuilt(odb, random.Random(seed)) == after
    earlier, later = Snapshot(odb, before), Snapshot(odb, after)
    paths = sorted(path for path in old[0].keys() | model.records().keys() if earlier.state(path) != later.state(path))
    assert changes(odb, before, after) == paths
    assert changes(odb, after, before) == paths
    assert changes(odb, before, before) == []
