"""fsck names what is wrong and nothing else; repair steps back to what is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import safety.store.seed as seeding
from safety.store.fsck import Problem, drop_torn_objects, fsck, repair_head
from safety.store.purge import purge
from safety.store.repack import repack_loose
from tests.store.storekit import Shelf
from tests.support.repo import RepoBuilder


@pytest.fixture
def shelf(shelf: Shelf, user: RepoBuilder) -> Shelf:
    """A store with three operations."""
    for number in range(3):
        user.write("b.txt", f"b {number}\n")
        shelf.capture()
    return shelf


def codes(problems: list[Problem], severity: str = "error") -> set[str]:
    return {problem.code for problem in problems if problem.severity == severity}


def loose(shelf: Shelf, oid: bytes | str) -> Path:
    name = oid if isinstance(oid, str) else oid.hex()
    return shelf.git_dir / "objects" / name[:2] / name[2:]


def tear(path: Path, data: bytes = b"") -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def test_a_sound_store_has_no_problems(shelf: Shelf) -> None:
    """Nothing to say about a store that is as it should be, whether loose or packed."""
    assert fsck(shelf.git, shelf.odb) == []
    repack_loose(shelf.git, shelf.odb, threshold=1)
    assert fsck(shelf.git, shelf.odb) == []


def test_a_missing_object_of_a_snapshot_is_an_error(shelf: Shelf, user: RepoBuilder) -> None:
    """The blob of a file that a snapshot holds is gone."""
    blob = shelf.odb.write("blob", b"b 1\n")
    loose(shelf, blob).unlink()

    problems = fsck(shelf.git, shelf.odb)

    assert [(problem.code, problem.where) for problem in problems] == [("missing-object", blob.hex())]
    assert problems[0].detail.startswith("work/b.txt of operation")


@pytest.mark.parametrize("full", [True, False])
def test_a_damaged_tree_is_an_error(shelf: Shelf, full: bool) -> None:
    """A tree with other bytes than its id says."""
    head = shelf.log.head()
    assert head is not None
    tear(loose(shelf, head.tree), b"garbage")

    assert "damaged-object" in codes(fsck(shelf.git, shelf.odb, full=full))


def test_a_damaged_blob_is_found_by_the_full_check(shelf: Shelf) -> None:
    """Content is hashed only when asked for."""
    tear(loose(shelf, shelf.odb.write("blob", b"b 1\n")), b"garbage")

    assert codes(fsck(shelf.git, shelf.odb)) == {"damaged-object"}
    assert codes(fsck(shelf.git, shelf.odb, full=False)) == set()


def test_a_record_that_cannot_be_read_is_an_error(shelf: Shelf) -> None:
    """An operation whose message is no record; the check goes on below it."""
    head = shelf.log.head()
    assert head is not None
    bad = shelf.odb.commit(head.tree, [head.oid], b"no json\n", shelf.now_ms)
    shelf.odb.move_ref(shelf.log.ref, head.oid, bad)
    loose(shelf, shelf.odb.write("blob", b"b 0\n")).unlink()

    assert codes(fsck(shelf.git, shelf.odb, full=False)) == {"bad-record", "missing-object"}


def test_refs_that_lead_nowhere_are_errors(shelf: Shelf) -> None:
    """A torn ref file and a ref to nothing."""
    (shelf.git_dir / "refs/safety/log/torn").write_bytes(b"")
    (shelf.git_dir / "refs/safety/log/lost").write_text("ab" * 20)

    problems = fsck(shelf.git, shelf.odb)

    assert {(problem.code, problem.where) for problem in problems if problem.severity == "error"} >= {
        ("bad-ref", "refs/safety/log/torn"),
        ("bad-ref", "refs/safety/log/lost"),
    }


def test_holes_in_the_users_history_are_a_note(tmp_path: Path, user: RepoBuilder, env: dict[str, str]) -> None:
    """A partial clone's store is sound; that history is incomplete is said once."""
    user.git("config", "uploadpack.allowFilter", "true")
    user.write("b.txt", "b\n")
    user.commit("second")
    user.git("clone", "-q", "--filter=blob:none", f"file://{user.root}", str(tmp_path / "clone"))
    user.git("rm", "-q", "--cached", "b.txt")
    clone = RepoBuilder(tmp_path / "clone", env, init=False)
    user.commit("third", a_txt="three\n")
    clone.git("fetch", "-q")
    shelf = Shelf(tmp_path / "s", clone)
    shelf.seed()
    shelf.capture()

    problems = fsck(shelf.git, shelf.odb)

    assert codes(problems) == set()
    assert codes(problems, "note") == {"history-incomplete"}


def test_damage_through_a_link_is_an_error_and_sharing_a_note(
    tmp_path: Path, user: RepoBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What shares an inode with the user's repository is said, and checked."""
    monkeypatch.setattr(seeding, "_reflink", lambda out, source: False)
    user.git("repack", "-adq")
    pack = next((user.root / ".git/objects/pack").glob("*.pack"))
    shelf = Shelf(tmp_path, user)
    shelf.seed(copy_budget=0)
    shelf.capture()
    assert codes(fsck(shelf.git, shelf.odb, full=False), "note") == {"shared"}

    tear(pack)
    shelf.odb.refresh()

    assert "linked-damaged" in codes(fsck(shelf.git, shelf.odb))


def test_leftovers_and_purged_content_are_notes(shelf: Shelf, user: RepoBuilder) -> None:
    """Temporary files and index entries of purged files are said, and are no damage."""
    user.write("key", "secret")
    user.git("add", "key")
    shelf.capture()
    purge(shelf.git, shelf.odb, b"key")
    (shelf.git_dir / "objects/pack/tmp_pack_x").write_bytes(b"half")

    problems = fsck(shelf.git, shelf.odb)

    assert codes(problems) == set()
    assert codes(problems, "note") == {"leftover", "purged"}


# ---- repair


def test_a_sound_head_is_left_alone(shelf: Shelf) -> None:
    """Nothing to repair, nothing changed; a chain that never was stays so."""
    head = shelf.log.head_id()
    assert repair_head(shelf.odb, shelf.log.chain) is None
    assert repair_head(shelf.odb, "never") is None
    assert shelf.log.head_id() == head


def test_a_head_with_torn_objects_is_stepped_back_and_they_can_be_written_again(shelf: Shelf, user: RepoBuilder) -> None:
    """After a power cut the newest operation's blob is empty: the one before becomes the head, and capturing again works."""
    head = shelf.log.head()
    assert head is not None
    tear(loose(shelf, shelf.odb.write("blob", b"b 2\n")))

    done = repair_head(shelf.odb, shelf.log.chain)

    assert done is not None
    assert (done.was, done.head) == (head.oid.hex(), head.parent)
    shelf.capture()
    assert fsck(shelf.git, shelf.odb) == []


@pytest.mark.parametrize("torn", [b"", b"\0" * 41, b"not an id"])
def test_a_torn_ref_is_set_to_the_newest_remembered_head(shelf: Shelf, torn: bytes) -> None:
    """The ref's file is empty or garbage; the list of heads beside it knows better."""
    head = shelf.log.head_id()
    (shelf.git_dir / shelf.log.ref).write_bytes(torn)

    done = repair_head(shelf.odb, shelf.log.chain)

    assert done is not None
    assert done.head == head == shelf.log.head_id()
    assert fsck(shelf.git, shelf.odb) == []


def test_a_missing_head_commit_steps_back(shelf: Shelf) -> None:
    """The newest commit was never written out."""
    head = shelf.log.head()
    assert head is not None
    loose(shelf, head.oid).unlink()

    done = repair_head(shelf.odb, shelf.log.chain)

    assert done is not None
    assert done.head == head.parent
    assert len(list(shelf.log.walk())) == 2


def test_without_a_list_of_heads_it_walks_down(shelf: Shelf) -> None:
    """Only the ref is left, and its operation and the one before are damaged: the oldest is found by their parents."""
    operations = list(shelf.log.walk())
    for operation in operations[:2]:
        loose(shelf, operation.tree).unlink()
    (shelf.git_dir / "heads" / shelf.log.chain).unlink()

    done = repair_head(shelf.odb, shelf.log.chain)

    assert done is not None
    assert done.head == operations[2].oid


def test_a_chain_with_nothing_sound_begins_again(shelf: Shelf) -> None:
    """Nothing can be read: the ref goes, and the next capture starts the chain anew."""
    for operation in list(shelf.log.walk()):
        loose(shelf, operation.oid).unlink()

    done = repair_head(shelf.odb, shelf.log.chain)

    assert done is not None
    assert done.head is None
    assert shelf.log.head_id() is None
    shelf.capture()


def test_torn_objects_are_dropped_and_whole_ones_kept(shelf: Shelf) -> None:
    """Empty, cut and altered loose files go; the rest is not touched."""
    before = shelf.objects()
    oids = [shelf.odb.write("blob", b"torn %d" % number).hex() for number in range(3)]
    tear(loose(shelf, oids[0]))
    tear(loose(shelf, oids[1]), loose(shelf, oids[1]).read_bytes()[:-5])
    tear(loose(shelf, oids[2]), loose(shelf, oids[0].replace(oids[0], shelf.odb.write("blob", b"other").hex())).read_bytes())

    assert drop_torn_objects(shelf.odb) == 3
    assert before <= shelf.objects()
