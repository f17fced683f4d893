from __future__ import annotations

import random
import stat
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safety.plumbing.odb import ObjectStore, hash_object
from safety.store.fanout import FAN
from safety.store.snapshot import AREAS, Editor, Snapshot, changes
from safety.store.trees import EXECUTABLE, FILE, LINK, parse_tree
from safety.types import ABSENT, ObjectId, PathState, Present, Unknown
from tests.store.bare import Counted, fsck
from tests.store.model import Model

# Few names, so that random puts meet: files where directories were, one name in several areas, names git would refuse.
NAMES = [b"a", b"b", b"a-b", b".git", b"%", b"HEAD", b"\xff"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(b"/".join)
ANY_PATH = st.one_of(PATHS, PATHS, PATHS, PATHS.map(lambda path: b"/" + path), st.just(b""))
CONTENTS = [b"one", b"two\n", b""]
IDS = [hash_object("blob", content) for content in CONTENTS]
MODES = st.sampled_from([0o755, 0o755, 0o775, 0o700, 0o1777])
FILE_MODES = st.sampled_from([0o644, 0o644, 0o664, 0o755, 0o775, 0o600, 0o700, 0o4755, 0o000])
INODES = st.sampled_from([None, None, (1, 2), (64769, 12345)])
FILES = st.builds(lambda mode, oid, inode: Present("file", mode, oid, inode), FILE_MODES, st.sampled_from(IDS), INODES)
LINKS = st.builds(lambda mode, oid: Present("link", mode, oid), st.sampled_from([0o777, 0o755]), st.sampled_from(IDS))
DIRECTORIES = st.builds(lambda mode: Present("dir", mode, b""), MODES)
REASONS = st.sampled_from(["ignored-directory", "ignored-directory", "too-large", "mount-point"])
UNKNOWN = st.builds(Unknown, REASONS, st.sampled_from([0, 7]), st.sampled_from([0, -5]))
STATES = st.one_of(FILES, FILES, FILES, LINKS, DIRECTORIES, UNKNOWN, st.just(ABSENT), st.just(ABSENT))
Put = tuple[bytes, PathState, str]
PUTS = st.lists(st.tuples(ANY_PATH, STATES, st.sampled_from(["work", "work", "private", "git"])), max_size=14)
SUBSETS = [("work",), ("private",), ("git",), ("work", "private"), ("work", "git"), AREAS]
MANY = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def file(content: bytes = b"one", mode: int = 0o644) -> Present:
    return Present("file", mode, hash_object("blob", content))


def directory(mode: int = 0o755) -> Present:
    return Present("dir", mode, b"")


def built(odb: ObjectStore, puts: Iterable[tuple[bytes, PathState] | Put], tree: ObjectId | None = None) -> Snapshot:
    editor = Editor(odb, tree)
    for put in puts:
        editor.put(*put)
    return Snapshot(odb, editor.finish())


def named(odb: ObjectStore, tree: ObjectId) -> dict[bytes, ObjectId]:
    return {name: oid for _, name, oid in parse_tree(odb.tree(tree))}


# -- against the model -----------------------------------------------------------------------------------------------------------


def apply(odb: ObjectStore, tree: ObjectId | None, model: Model, puts: list[Put]) -> ObjectId:
    for content in CONTENTS:
        odb.write("blob", content)
    editor = Editor(odb, tree)
    for path, state, area in puts:
        is_mistake = path == b"" and (isinstance(state, Unknown) or (isinstance(state, Present) and state.kind != "dir"))
        if not is_mistake:
            area = "private" if path.startswith(b"/") and area == "work" else area
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
        assert hash_object("blob", snapshot.read(path)) == state.oid
    records = model.records()
    for areas in SUBSETS:
        walked = list(snapshot.walk(areas=areas))
        assert walked == sorted((path, state) for path, state in records.items() if model.belongs(path, areas))
    for under in {*model.existing(), *model.files, *model.unknown}:
        expected = {path: state for path, state in records.items() if path == under or path.startswith(under.rstrip(b"/") + b"/")}
        assert dict(snapshot.walk(under)) == expected
    assert list(snapshot.not_covered()) == sorted(model.unknown.items())
    for path in {b"", b"/", *model.existing()}:
        assert snapshot.children(path) == model.children(path), path


@MANY
@given(first=PUTS, second=PUTS, seed=st.integers(0, 1 << 30))
def test_puts_mean_what_the_model_says_and_end_in_one_form(
    odb: ObjectStore, first: list[Put], second: list[Put], seed: int
) -> None:
    """After any puts in two editors: every state as the model has it, and the tree that the final states alone give.

    And ``changes`` is what comparing all states one by one gives, in both directions, for all choices of areas.
    """
    old, new = Model(), Model()
    before = apply(odb, None, old, first)
    assert apply(odb, None, new, first) == before
    check_equal(odb, before, new)
    after = apply(odb, before, new, second)
    check_equal(odb, after, new)
    assert new.rebuilt(odb, random.Random(seed)) == after
    earlier, later = Snapshot(odb, before), Snapshot(odb, after)
    for areas in SUBSETS:
        recorded = {path for model in (old, new) for path in model.records() if model.belongs(path, areas)}
        expected = sorted(path for path in recorded if earlier.state(path) != later.state(path))
        assert changes(odb, before, after, areas) == expected
        assert changes(odb, after, before, areas) == expected
    assert changes(odb, after, after) == []
    assert changes(odb, None, after) == sorted(new.records())


@settings(max_examples=100, deadline=None)
@given(
    puts=PUTS,
    where=st.one_of(PATHS, st.just(b"")),
    items=st.dictionaries(st.sampled_from(NAMES), st.tuples(FILE_MODES, st.sampled_from(IDS)), max_size=5),
    mode=MODES,
)
def test_put_tree_is_as_many_puts(
    odb: ObjectStore, puts: list[Put], where: bytes, items: dict[bytes, tuple[int, ObjectId]], mode: int
) -> None:
    """Setting a directory's files at once ends as removing what it had in the area and putting each."""
    model = Model()
    before = apply(odb, None, model, puts)
    bulk, single = Editor(odb, before), Editor(odb, before)
    bulk.put_tree(where, [(stat.S_IFREG | bits, name, oid) for name, (bits, oid) in items.items()])
    prefix = where + b"/" if where else b""
    single.put(prefix + b"x", file())  # removes the files on the way
    single.put(prefix + b"x", ABSENT)
    for path, (area, _) in model.files.items():
        if area == "work" and path.startswith(prefix) and b"/" not in path[len(prefix) :] and not path.startswith(b"/"):
            single.put(path, ABSENT)
    for name, (bits, oid) in items.items():
        single.put(prefix + name, Present("file", bits, oid))
    if where:
        for editor in (bulk, single):
            editor.put(where, directory(mode))
    plain = [path for path, _ in Snapshot(odb, single.finish()).walk()]
    assert [path for path, _ in Snapshot(odb, bulk.finish()).walk()] == plain
    assert changes(odb, bulk.finish(), single.finish()) == []


# -- one by one
# --------------------------------------------------------------------------------------------------------------------


def test_an_empty_snapshot(odb: ObjectStore) -> None:
    """Nothing is there, and what lies outside the workspace was never looked at."""
    for tree in (None, Editor(odb, None).finish()):
        snapshot = Snapshot(odb, tree)
        assert snapshot.state(b"a/b") == ABSENT and snapshot.state(b"") == directory()
        assert snapshot.state(b"/etc/passwd") == Unknown("outside") and snapshot.state(b"/") == directory()
        assert list(snapshot.walk()) == [] and snapshot.children(b"") == {} and snapshot.children(b"x") == {}
        assert snapshot.area(b"a") is None and snapshot.members() == [] and snapshot.index(b"") is None
        assert list(snapshot.not_covered()) == [] and list(snapshot.git_files(b".git")) == []
        with pytest.raises(KeyError):
            snapshot.read(b"a")
    assert changes(odb, None, Editor(odb, None).finish()) == []


def test_our_tree_of_plain_files_is_the_users_tree(odb: ObjectStore) -> None:
    """The area ``work`` has the id git gives the same files, so that the user's own trees serve us."""
    snapshot = built(odb, [(b"src/a.py", file()), (b"src/run", file(mode=0o755)), (b"link", Present("link", 0o777, IDS[0]))])
    assert snapshot.tree is not None
    assert [name for _, name, _ in parse_tree(odb.tree(snapshot.tree))] == [b"work"]
    work = named(odb, snapshot.tree)[b"work"]
    assert [(mode, name) for mode, name, _ in parse_tree(odb.tree(work))] == [(LINK, b"link"), (0o040000, b"src")]


def test_the_umask_leaves_no_trace_in_files(odb: ObjectStore) -> None:
    """Files with the bits that go with their directory's have no record, so a change of one touches nothing else."""
    puts: list[tuple[bytes, PathState]] = [(b"d", directory(0o775)), (b"d/run", file(mode=0o775))]
    puts += [(b"d/%d" % number, file(mode=0o664)) for number in range(20)]
    snapshot = built(odb, puts)
    records = dict(snapshot.walk())
    assert records[b"d/7"] == file(mode=0o664) and records[b"d/run"] == file(mode=0o775)
    meta = named(odb, snapshot.tree or b"")[b"meta"]
    below = named(odb, meta)[b"d"]
    assert odb.blob(named(odb, below)[b"%meta"]) == b"d 775\n"


def test_a_directorys_new_bits_leave_its_files_theirs(odb: ObjectStore) -> None:
    """chmod of a directory changes that directory only, whatever its files' bits are."""
    puts = [(b"d/a", file()), (b"d/b", file(mode=0o600)), (b"d/x", file(mode=0o755)), (b"d/l", Present("link", 0o777, IDS[0]))]
    before = built(odb, puts)
    after = built(odb, [(b"d", directory(0o770))], before.tree)
    assert changes(odb, before.tree, after.tree) == [b"d"]
    assert all(after.state(path) == state for path, state in puts)
    assert built(odb, [(b"d", directory())], after.tree).tree == before.tree
    loosened = built(odb, [(b"d/a", file(mode=0o660))], after.tree)
    assert changes(odb, after.tree, loosened.tree) == [b"d/a"]


def test_the_roots_own_bits(odb: ObjectStore) -> None:
    """The workspace directory has bits too, and no other record."""
    before = built(odb, [(b"a", file())])
    after = built(odb, [(b"", directory(0o700))], before.tree)
    assert after.state(b"") == directory(0o700) and after.state(b"a") == file()
    assert changes(odb, before.tree, after.tree) == [b""] and list(after.walk())[0] == (b"", directory(0o700))
    assert changes(odb, before.tree, after.tree, ("git",)) == []
    assert built(odb, [(b"", directory())]).tree == built(odb, []).tree


def test_an_empty_directory_is_known_until_something_is_in_it(odb: ObjectStore) -> None:
    """Said or implied, a directory that is there is there; the form does not tell which it was."""
    empty = built(odb, [(b"a/b", directory())])
    assert empty.state(b"a") == empty.state(b"a/b") == directory()
    assert list(empty.walk()) == [(b"a/b", directory())] and empty.children(b"a") == {b"b": "dir"}
    filled = built(odb, [(b"a/b/c", file())], empty.tree)
    assert filled.tree == built(odb, [(b"a/b/c", file()), (b"a/b", directory()), (b"a", directory())]).tree
    assert changes(odb, empty.tree, filled.tree) == [b"a/b/c"]
    assert built(odb, [(b"a/b/c", ABSENT)], filled.tree).state(b"a") == ABSENT
    assert built(odb, [(b"a/b", directory()), (b"a/b/c", ABSENT)], filled.tree).tree == empty.tree
    assert built(odb, [(b"a/b/c", ABSENT), (b"a/b", directory())], filled.tree).tree == empty.tree


def test_a_move_between_areas_is_no_change(odb: ObjectStore) -> None:
    """A file that becomes ignored is in another area, with the state it had."""
    before = built(odb, [(b"d/a", file(mode=0o600))])
    after = built(odb, [(b"d/a", file(mode=0o600), "private")], before.tree)
    assert (before.area(b"d/a"), after.area(b"d/a"), after.area(b"d")) == ("work", "private", "private")
    assert after.read(b"d/a") == before.read(b"d/a") and before.tree != after.tree
    for areas in (AREAS, ("work",), ("private",)):
        assert changes(odb, before.tree, after.tree, areas) == []


def test_below_a_directory_that_is_not_covered(odb: ObjectStore) -> None:
    """Nothing is known there but what was looked at by name, and that stays known when the directory is seen again."""
    base = built(odb, [(b"lib", Unknown("ignored-directory"))])
    assert base.state(b"lib/x/y") == Unknown("ignored-directory") and base.children(b"") == {b"lib": "unknown"}
    looked = built(odb, [(b"lib/x/new", ABSENT, "private"), (b"lib/old", file(), "private")], base.tree)
    assert looked.state(b"lib/x/new") == looked.state(b"lib/x/new/below") == ABSENT
    assert looked.state(b"lib/x") == looked.state(b"lib/x/other") == looked.state(b"lib/x/newer") == Unknown("ignored-directory")
    assert looked.state(b"lib/old") == file() and looked.state(b"lib/old/below") == ABSENT
    assert looked.state(b"lib") == Unknown("ignored-directory")
    created = built(odb, [(b"lib/x/new", file(b"two\n"), "private")], looked.tree)
    assert changes(odb, looked.tree, created.tree) == [b"lib/x/new"]
    again = built(odb, [(b"lib", Unknown("ignored-directory"))], created.tree)
    assert again.tree == created.tree
    assert built(odb, [(b"lib/x/new", ABSENT)], created.tree).tree == looked.tree
    gone = built(odb, [(b"lib", ABSENT)], created.tree)
    assert gone.tree == built(odb, []).tree and gone.state(b"lib/x") == ABSENT
    covered = built(odb, [(b"lib", directory())], looked.tree)
    assert covered.tree == built(odb, [(b"lib/old", file(), "private")]).tree


def test_absence_is_remembered_when_the_directory_nearest_to_it_changes(odb: ObjectStore) -> None:
    """Inside a directory that is not covered, another such one appears and goes: what was looked at stays known, in one form."""
    lib: tuple[bytes, PathState] = (b"lib", Unknown("ignored-directory"))
    plain = built(odb, [lib, (b"lib/x", directory()), (b"lib/x/y", ABSENT)])
    assert plain.state(b"lib/x/y") == ABSENT and plain.state(b"lib/x/z") == Unknown("ignored-directory")
    nested = built(odb, [(b"lib/x", Unknown("ignored-directory", 5))], plain.tree)
    assert nested.state(b"lib/x/y") == ABSENT and nested.state(b"lib/x/z") == Unknown("ignored-directory", 5)
    assert nested.tree == built(odb, [lib, (b"lib/x", Unknown("ignored-directory", 5)), (b"lib/x/y", ABSENT)]).tree
    assert built(odb, [(b"lib/x", directory())], nested.tree).tree == plain.tree


def test_outside_paths_are_known_only_when_looked_at(odb: ObjectStore) -> None:
    """Absolute paths live in their own place; one that did not exist is told from one never looked at."""
    before = built(odb, [(b"/home/u/.rc", file(), "private"), (b"/home/u/new", ABSENT)])
    assert before.state(b"/home/u/.rc") == file() and before.read(b"/home/u/.rc") == odb.blob(file().oid)
    assert before.state(b"/home/u/new") == ABSENT and before.state(b"/home/u/other") == Unknown("outside")
    assert before.state(b"home/u/.rc") == ABSENT and before.children(b"") == {} and before.children(b"/") == {b"home": "dir"}
    after = built(odb, [(b"/home/u/new", file(), "private")], before.tree)
    assert changes(odb, before.tree, after.tree) == [b"/home/u/new"]
    assert [path for path, _ in after.walk()] == [b"/home/u/.rc", b"/home/u/new"] == [path for path, _ in after.walk(b"/home")]
    emptied = built(odb, [(b"x", file()), (b"", ABSENT)], after.tree)
    assert emptied.tree == after.tree


@pytest.mark.parametrize(
    ("path", "state", "area"),
    [
        (b"", file(), "work"),
        (b"", Unknown("unreadable"), "work"),
        (b"/", directory(), "private"),
        (b"/etc/x", file(), "work"),
        (b"a//b", file(), "work"),
        (b"a/", ABSENT, "work"),
        (b"a", Present("file", 0o644, b"short"), "work"),
    ],
)
def test_mistakes_are_refused(odb: ObjectStore, path: bytes, state: PathState, area: str) -> None:
    """What no workspace can have is an error of the caller, not a strange tree."""
    with pytest.raises(ValueError):
        Editor(odb, None).put(path, state, area)


@pytest.mark.parametrize("mode", [0o040000, 0o160000, 0o010644])
def test_put_tree_takes_files_and_links_only(odb: ObjectStore, mode: int) -> None:
    """A directory, a gitlink, a FIFO are none."""
    with pytest.raises(ValueError):
        Editor(odb, None).put_tree(b"d", [(mode, b"x", IDS[0])])
    with pytest.raises(ValueError):
        Editor(odb, None).put_tree(b"d", [(FILE, b"x", b"short")])
    with pytest.raises(ValueError):
        Editor(odb, None).put_tree(b"/d", [(FILE, b"x", IDS[0])])


def test_put_tree_keeps_what_it_does_not_name(odb: ObjectStore) -> None:
    """Directories below and other areas stay; git's modes and those of lstat are both understood."""
    before = built(
        odb,
        [(b"d/sub/x", file()), (b"d/old", file(mode=0o600)), (b"d/ignored", file(), "private"), (b"d/.git", file(), "private")],
    )
    editor = Editor(odb, before.tree)
    items = [
        (EXECUTABLE, b"run", IDS[1]),
        (LINK, b"link", IDS[0]),
        (stat.S_IFREG | 0o640, b".git", IDS[0]),
        (stat.S_IFLNK | 0o777, b"sub2", IDS[0]),
    ]
    editor.put_tree(b"d", items)
    after = Snapshot(odb, editor.finish())
    assert dict(after.walk()) == {
        b"d/.git": file(mode=0o640),
        b"d/ignored": file(),
        b"d/link": Present("link", 0o777, IDS[0]),
        b"d/run": file(b"two\n", 0o755),
        b"d/sub/x": file(),
        b"d/sub2": Present("link", 0o777, IDS[0]),
    }
    assert changes(odb, before.tree, after.tree) == [b"d/.git", b"d/link", b"d/old", b"d/run", b"d/sub2"]


def test_git_files_small_and_big(odb: ObjectStore) -> None:
    """A file of the git area comes back whatever its size, with its bits; a state can be put again from another snapshot."""
    big = b"".join(b"%040d refs/heads/topic-%d\n" % (number, number) for number in range(3000))
    editor = Editor(odb, None)
    head = editor.put_git(b".git/HEAD", b"ref: refs/heads/main\n", 0o644)
    packed = editor.put_git(b".git/packed-refs", big, 0o444)
    hook = editor.put_git(b".git/hooks/big", big, 0o755)
    snapshot = Snapshot(odb, editor.finish())
    assert (
        snapshot.state(b".git/HEAD") == head
        and snapshot.state(b".git/packed-refs") == packed
        and snapshot.state(b".git/hooks/big") == hook
    )
    assert (packed.mode, hook.mode, packed.oid) == (0o444, 0o755, hook.oid)
    assert snapshot.read(b".git/packed-refs") == snapshot.read(b".git/hooks/big") == big
    assert snapshot.read(b".git/HEAD") == b"ref: refs/heads/main\n"
    assert snapshot.children(b".git") == {b"hooks": "dir"} and snapshot.state(b".git/packed-refs/x") == ABSENT
    assert list(snapshot.git_files(b".git")) == [b"HEAD", b"hooks/big", b"packed-refs"]

    copied = built(odb, [(b".git/packed-refs", packed, "git"), (b".git/HEAD", head, "git"), (b".git/hooks/big", hook, "git")])
    assert copied.tree == snapshot.tree
    from_scan = Present("file", 0o444, odb.write("blob", big))
    assert built(odb, [(b".git/packed-refs", from_scan, "git")], snapshot.tree).tree == snapshot.tree
    small = built(odb, [(b".git/packed-refs", file(), "git")], snapshot.tree)
    assert changes(odb, snapshot.tree, small.tree) == [b".git/packed-refs"]
    replaced = built(odb, [(b".git/packed-refs/x", file(), "git")], snapshot.tree)
    assert changes(odb, snapshot.tree, replaced.tree) == [b".git/packed-refs", b".git/packed-refs/x"]
    assert replaced.state(b".git/packed-refs") == directory()


def test_git_directories_are_not_among_the_children(odb: ObjectStore) -> None:
    """A scan of the work tree does not meet them: not ``.git``, nor a bare one beside; but a directory that only holds a
    repository is there."""
    puts = [
        (b".git/HEAD", file(), "git"),
        (b"bare/HEAD", file(), "git"),
        (b"sub/.git/HEAD", file(), "git"),
        (b"link/.git", file(), "git"),
    ]
    marks: list[tuple[bytes, PathState]] = [
        (b".git/refs/tags", directory()),
        (b"sub/.git/lfs", Unknown("lfs-objects")),
        (b"sub/.git/hooks", directory(0o700)),
    ]
    snapshot = built(odb, [*puts, (b"a", file()), *marks])
    assert snapshot.children(b"") == {b"a": "file", b"sub": "dir", b"link": "dir"}
    assert snapshot.children(b"sub") == {} and snapshot.children(b"link") == {}
    assert [path for path, _ in snapshot.walk(areas=("work", "private"))] == [b"a"]
    assert sorted(path for path, _ in snapshot.walk(areas=("git",))) == sorted(
        [path for path, _, _ in puts] + [path for path, _ in marks]
    )
    assert changes(odb, None, snapshot.tree, ("work",)) == [b"a"]
    bare = built(odb, [(b"a", ABSENT)], snapshot.tree)
    assert changes(odb, snapshot.tree, bare.tree, ("git",)) == [] and changes(odb, snapshot.tree, bare.tree) == [b"a"]


def test_a_file_takes_a_directorys_place_and_back(odb: ObjectStore) -> None:
    """In any area, with marks below, and in one editor."""
    before = built(
        odb,
        [
            (b"a/b/c", file(mode=0o600)),
            (b"a/p", file(), "private"),
            (b"a/u", Unknown("too-large", 9, 9)),
            (b"a/e", directory(0o700)),
        ],
    )
    after = built(odb, [(b"a", file())], before.tree)
    assert after.tree == built(odb, [(b"a", file())]).tree
    assert changes(odb, before.tree, after.tree) == [b"a", b"a/b/c", b"a/e", b"a/p", b"a/u"]
    back = built(odb, [(b"a/b/c", file(mode=0o600))], after.tree)
    assert back.tree == built(odb, [(b"a/x", file()), (b"a", file()), (b"a/b/c", file(mode=0o600))]).tree
    assert (
        built(odb, [(b"a/fifo", Unknown("special-file")), (b"a/fifo/x", file())]).tree == built(odb, [(b"a/fifo/x", file())]).tree
    )


def test_names_of_every_byte(own_odb: Counted) -> None:
    """Files, directories, modes and marks under names with every byte and under those git refuses; git finds nothing odd."""
    names = [bytes((number,)) for number in range(1, 256) if number != 47] + [
        b".git",
        b".GIT",
        b"git~1",
        b"..",
        b".",
        b".git\n",
        b"a\\.git",
        b"%25",
        b"%meta",
        b"%fan",
    ]
    names += [b".gitmodules", b"\xe2\x80\x8c.git", b"n" * 255, b"%outside", b"%chunks"]
    own_odb.write("blob", b"one")
    states: dict[bytes, tuple[PathState, str]] = {}
    for number, name in enumerate(names):
        states[b"f/" + name] = file(mode=0o600), AREAS[number % 3]
        states[b"d/" + name + b"/" + name] = Present("file", 0o755, IDS[0], (1, number)), AREAS[number % 3]
        states[b"e/" + name] = directory(0o700), "work"
        states[b"u/" + name] = Unknown("a reason\n%20", number, -number), "work"
        states[b"/o/" + name] = file(), "private"
    snapshot = built(own_odb, [(path, state, area) for path, (state, area) in states.items()])
    assert dict(snapshot.walk()) == {path: state for path, (state, _) in states.items()}
    assert [path for path, _ in snapshot.walk()] == sorted(states)
    assert all(snapshot.state(path) == state and snapshot.area(path) in (area, None) for path, (state, area) in states.items())
    assert changes(own_odb, None, snapshot.tree) == sorted(states)
    assert dict(snapshot.not_covered()) == {path: state for path, (state, _) in states.items() if path.startswith(b"u/")}
    assert snapshot.children(b"u") == dict.fromkeys(names, "unknown") and snapshot.children(b"/o") == dict.fromkeys(names, "file")
    own_odb.move_ref("refs/safety/x", None, own_odb.commit(snapshot.tree or b"", [], b"x", 0))
    assert fsck(own_odb) == b""


def test_paths_longer_than_any_system_call_takes(odb: ObjectStore) -> None:
    """1,500 components, 7,500 bytes: no recursion, no limit of ours."""
    deep = b"/".join([b"deep"] * 1500)
    snapshot = built(
        odb, [(deep + b"/a", file(mode=0o600)), (deep + b"/e", directory(0o700)), (deep + b"/u", Unknown("too-large"))]
    )
    assert snapshot.state(deep + b"/a") == file(mode=0o600) and snapshot.state(deep) == directory()
    assert [path for path, _ in snapshot.walk()] == [deep + b"/a", deep + b"/e", deep + b"/u"]
    changed = built(odb, [(deep + b"/a", ABSENT)], snapshot.tree)
    assert changes(odb, snapshot.tree, changed.tree) == [deep + b"/a"]
    assert built(odb, [(deep[:-5], ABSENT)], changed.tree).tree == built(odb, []).tree


@pytest.mark.parametrize("area", AREAS)
def test_a_directory_of_more_than_1000(odb: ObjectStore, area: str) -> None:
    """Files and directories in a fanned-out directory are found, listed in order, removed, and the form goes back below the
    threshold."""
    odb.write("blob", b"one")
    names = sorted(b"n%d" % number for number in range(1200))
    puts = [
        (b"big/" + name + (b"/x" if number % 3 == 0 else b""), file(mode=0o600 if number % 5 else 0o644), area)
        for number, name in enumerate(names)
    ]
    snapshot = built(odb, puts)
    assert list(snapshot.walk()) == sorted((path, state) for path, state, _ in puts)
    assert all(snapshot.state(path) == state and snapshot.area(path) == area for path, state, _ in puts)
    editor = Editor(odb, snapshot.tree)
    for path, _, _ in puts[600:]:
        editor.put(path, ABSENT)
    smaller = Snapshot(odb, editor.finish())
    assert smaller.tree == built(odb, puts[:600]).tree
    assert changes(odb, snapshot.tree, smaller.tree) == sorted(path for path, _, _ in puts[600:])
    assert built(odb, puts[600:], smaller.tree).tree == snapshot.tree


# -- cost
# ------------------------------------------------------------------------------------------------------------------------------


def wide_tree(odb: ObjectStore) -> ObjectId:
    editor = Editor(odb, None)
    for number in range(400):
        editor.put_tree(b"d%d/e%d" % (number // 20, number), [(FILE, b"f%d" % index, IDS[index % 3]) for index in range(50)])
    return editor.finish()


def test_a_put_reads_and_writes_its_own_path_only(own_odb: Counted) -> None:
    """One file in 20,000: the trees on the way are read once, written once, and nothing else."""
    tree = wide_tree(own_odb)
    own_odb.reset()
    editor = Editor(own_odb, tree)
    editor.put(b"d7/e150/f3", file(b"other"))
    after = editor.finish()
    assert own_odb.trees_read == 4 and own_odb.new_objects == 4
    own_odb.reset()
    assert changes(own_odb, tree, after) == [b"d7/e150/f3"]
    assert own_odb.trees_read == 8
    own_odb.reset()
    assert Snapshot(own_odb, after).state(b"d7/e150/f3") == file(b"other")
    assert own_odb.trees_read == 4


def test_a_put_of_what_is_there_writes_nothing(own_odb: Counted) -> None:
    """The same states give the same tree, and no object."""
    tree = wide_tree(own_odb)
    own_odb.reset()
    editor = Editor(own_odb, tree)
    editor.put(b"d7/e150/f3", Snapshot(own_odb, tree).state(b"d7/e150/f3"))
    editor.put(b"d7/e150", directory())
    editor.put(b"d7/nothing", ABSENT)
    assert editor.finish() == tree and own_odb.new_objects == 0


def test_a_finished_editor_can_be_used_further(odb: ObjectStore) -> None:
    """``finish`` changes nothing in the editor; later puts build on all earlier ones."""
    editor = Editor(odb, None)
    editor.put(b"a/b", file())
    first = editor.finish()
    assert editor.finish() == first
    editor.put(b"a/c", file())
    assert editor.finish() == built(odb, [(b"a/b", file()), (b"a/c", file())]).tree
    editor.put(b"a", ABSENT)
    assert editor.finish() == built(odb, []).tree


def test_a_change_in_a_flat_directory_of_50000_adds_little(own_odb: Counted) -> None:
    """With odd bits on every file too: under 25 kB of trees and marks, where the whole is 4 MB."""
    editor = Editor(own_odb, None)
    editor.put_tree(b"flat", [(stat.S_IFREG | 0o600, b"file%d" % number, IDS[number % 3]) for number in range(50_000)])
    tree = editor.finish()
    own_odb.reset()
    changed = built(own_odb, [(b"flat/file777", file(b"x", 0o640))], tree)
    assert own_odb.new_bytes < 25_000
    assert changes(own_odb, tree, changed.tree) == [b"flat/file777"]
    assert FAN not in changed.children(b"flat") and len(changed.children(b"flat")) == 50_000
