"""The index reader and writer, held to what git itself says of the same file."""

from __future__ import annotations

import hashlib
import os
import random
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safety.faults import SafetyError
from safety.plumbing.index import (
    ASSUME_VALID,
    INTENT_TO_ADD,
    SKIP_WORKTREE,
    ZERO_STAT,
    IndexCorrupt,
    IndexEntry,
    IndexFile,
    IndexUnsupported,
    changed,
    forget_racy_stat,
    parse_cache_tree,
    parse_index,
    read_signature,
    serialize_index,
)
from tests.support.repo import RepoBuilder

BLOB = bytes.fromhex("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")  # the empty one
LISTINGS = (
    ("ls-files", "-s", "--debug", "-z"),
    ("ls-files", "-v", "-t", "-z"),
    ("ls-files", "-u", "-z"),
    ("ls-files", "--resolve-undo", "-z"),
    ("diff-index", "--cached", "--raw", "-z", "HEAD"),
    ("diff-files", "--raw", "-z"),
    ("status", "--porcelain=v2", "-z"),
)


@pytest.fixture
def repo(tmp_path: Path, env: dict[str, str]) -> RepoBuilder:
    """A repository with files of every kind and every padding length. Git is not let refresh the index on its own."""
    repo = RepoBuilder(tmp_path / "work", {**env, "GIT_OPTIONAL_LOCKS": "0"})
    for length in range(1, 18):
        repo.write("n" * length, f"{length}\n")
    repo.write("folder/deep/er/file.txt", "deep\n")
    repo.write("folder/run.sh", "#!/bin/sh\n", 0o755)
    repo.write("folder.txt", "sorts before folder/\n")
    repo.write(b"odd\n\xff name", "odd\n")
    repo.link("pointer", "folder/run.sh")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "all kinds")
    return repo


def index_path(repo: RepoBuilder) -> Path:
    return repo.root / ".git/index"


def read(repo: RepoBuilder) -> IndexFile:
    def shared(name: str) -> bytes:
        return (repo.root / ".git" / f"sharedindex.{name}").read_bytes()

    def tree(oid: bytes) -> bytes:
        return repo.sh(f"git cat-file tree {oid.hex()}").encode("utf-8", "surrogateescape")

    return parse_index(index_path(repo).read_bytes(), shared_index=shared, read_tree=tree)


def git_says(repo: RepoBuilder) -> dict[tuple[str, ...], str]:
    def plain_flags(match: re.Match[str]) -> str:
        # The other bits live in memory only and tell how the file was split.
        return f"flags: {int(match[1], 16) & 0x6000B000:x}"

    # Git itself fails to look for a name longer than PATH_MAX; it then has to fail the same way.
    return {args: re.sub(r"flags: ([0-9a-f]+)", plain_flags, repo.git(*args, check=False)) for args in LISTINGS}


def listed(repo: RepoBuilder) -> list[tuple[bytes, int, int, bytes]]:
    """Path, stage, mode and id of each entry in git's own words."""
    found = []
    for line in os.fsencode(repo.git("ls-files", "-s", "-z")).split(b"\0")[:-1]:
        head, path = line.split(b"\t", 1)
        mode, oid, stage = head.split(b" ")
        found.append((path, int(stage), int(mode, 8), bytes.fromhex(oid.decode())))
    return found


def flagged(index: IndexFile, bit: int) -> list[bytes]:
    return [entry.path for entry in index.entries if entry.flags & bit]


def put(repo: RepoBuilder, index: IndexFile) -> None:
    """The index written as an apply does: a new file, renamed, with the old one's mtime (racy entries stay racy)."""
    status = index_path(repo).stat()
    new = index_path(repo).with_name("index.new")
    new.write_bytes(serialize_index(index))
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.rename(index_path(repo))


def no_tree(oid: bytes) -> bytes:
    raise KeyError(oid)


def sealed(body: bytes) -> bytes:
    return body + hashlib.sha1(body).digest()


# ---- shapes: each makes one more kind of index out of the repository -----------------------------------------------------------


def plain(repo: RepoBuilder) -> None:
    pass


def staged(repo: RepoBuilder) -> None:
    repo.write("n", "staged\n")
    repo.git("add", "n")
    repo.write("n", "and edited\n")
    repo.git("rm", "-q", "--cached", "nn")
    repo.git("update-index", "--chmod=+x", "nnn")


def flags(repo: RepoBuilder) -> None:
    repo.write("planned", "not yet\n")
    repo.git("add", "-N", "planned")
    repo.git("update-index", "--assume-unchanged", "n" * 10, "n" * 12)
    repo.git("update-index", "--skip-worktree", "n" * 11, "n" * 12)


def gitlink(repo: RepoBuilder) -> None:
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.head()},module")


def conflict(repo: RepoBuilder) -> None:
    repo.git("checkout", "-qb", "side")
    repo.commit("side", n="side\n", both="side\n", nn="kept\n")
    repo.git("checkout", "-q", "main")
    repo.commit("main", n="main\n", both="main\n")
    repo.git("rm", "-q", "nn")
    repo.git("commit", "-qm", "gone")
    repo.git("merge", "side", check=False)


def resolved(repo: RepoBuilder) -> None:
    conflict(repo)
    repo.write("n", "solved\n")
    repo.git("add", "n")
    assert repo.git("ls-files", "--resolve-undo")


def long_names(repo: RepoBuilder) -> None:
    repo.git("hash-object", "-w", "--no-filters", os.devnull)
    for length in (4094, 4095, 4096, 5000):
        name = ("d" * 250 + "/") * 16 + "x" * (length - 16 * 251)
        repo.git("update-index", "--index-info", input=f"100644 {BLOB.hex()}\t{name}\n")


def empty(repo: RepoBuilder) -> None:
    repo.git("read-tree", "--empty")


SHAPES = [plain, staged, flags, gitlink, conflict, resolved, long_names, empty]


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_kind_of_index_is_read_and_written_as_git_does(
    repo: RepoBuilder, shape: Callable[[RepoBuilder], None], version: int
) -> None:
    """What is read is what git lists; what is written is the same file byte for byte."""
    shape(repo)
    repo.git("update-index", "--index-version", str(version), "--force-write-index")
    data = index_path(repo).read_bytes()

    index = read(repo)

    assert [(entry.path, entry.stage, entry.mode, entry.oid) for entry in index.entries] == listed(repo)
    assert index.version == (version if version == 4 else 3 if shape is flags else 2)
    assert not index.was_split and not index.was_sparse
    assert serialize_index(index) == data


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_git_accepts_what_is_written(repo: RepoBuilder, shape: Callable[[RepoBuilder], None], version: int) -> None:
    """Written without its cache tree, the index says the same to every listing, to status and to fsck."""
    shape(repo)
    repo.git("update-index", "--index-version", str(version))
    before = git_says(repo)

    put(repo, changed(read(repo), read(repo).entries))

    assert git_says(repo) == before
    repo.git("fsck", "--strict", "--no-dangling")


def test_flags_and_stat_data_are_those_git_shows(repo: RepoBuilder) -> None:
    """Each flag lands on its bit, and size and mtime are the file's."""
    flags(repo)
    index = read(repo)

    assert flagged(index, INTENT_TO_ADD) == [b"planned"]
    assert flagged(index, ASSUME_VALID) == [b"n" * 10, b"n" * 12]
    assert flagged(index, SKIP_WORKTREE) == [b"n" * 11, b"n" * 12]
    entry = index.groups()[b"folder/run.sh"][0]
    status = (repo.root / "folder/run.sh").stat()
    assert entry.size == status.st_size
    assert entry.mtime == divmod(status.st_mtime_ns, 10**9)


def test_groups_hold_all_stages_of_a_path(repo: RepoBuilder) -> None:
    """A conflicted path is one group of its stages, in order."""
    conflict(repo)
    groups = read(repo).groups()

    assert [entry.stage for entry in groups[b"n"]] == [1, 2, 3]
    assert [entry.stage for entry in groups[b"both"]] == [2, 3]
    assert [entry.stage for entry in groups[b"nn"]] == [1, 3]
    assert [entry.stage for entry in groups[b"nnn"]] == [0]


def test_what_git_cannot_put_back_is_put_back(repo: RepoBuilder) -> None:
    """Intent-to-add, conflict stages and flags survive being thrown away and written again from what was read."""
    resolved(repo)
    flags(repo)
    before = git_says(repo)
    index = read(repo)
    repo.git("reset", "-q", "--hard")
    repo.git("update-index", "--no-assume-unchanged", "n" * 10, "n" * 12)
    assert git_says(repo) != before

    put(repo, index)

    after = git_says(repo)
    for listing in LISTINGS[:5]:
        assert after[listing] == before[listing]


def test_zeroed_stat_data_makes_git_look_at_the_file_again(repo: RepoBuilder) -> None:
    """Entries built from nothing but path, mode and id are clean after one refresh."""
    index = read(repo)
    put(repo, changed(index, [IndexEntry(entry.path, 0, entry.mode, entry.oid) for entry in index.entries]))

    assert repo.git("diff-files", "--name-only") != ""
    repo.git("update-index", "-q", "--refresh")
    assert repo.git("status", "--porcelain") == ""


def test_an_edit_in_the_second_of_the_index_stays_visible(repo: RepoBuilder) -> None:
    """A newer index file vouches for racy entries and hides the edit, unless they lose their stat data; others keep it."""
    second = 1_700_000_000
    repo.git("config", "core.trustctime", "false")
    os.utime(repo.path("n"), (second, second))
    os.utime(repo.path("nn"), (second - 100, second - 100))
    repo.git("update-index", "-q", "--refresh")
    index = read(repo)
    # An edit that only the content tells: same size, same time, same inode.
    repo.write("n", "X\n")
    os.utime(repo.path("n"), (second, second))

    safe = forget_racy_stat(index.entries, second)

    kept = {entry.path: entry.mtime[0] for entry in safe if entry.stat != ZERO_STAT}
    assert kept == {b"nn": second - 100}
    index_path(repo).write_bytes(serialize_index(changed(index, index.entries)))
    assert repo.git("diff-files", "--name-only") == ""
    index_path(repo).write_bytes(serialize_index(changed(index, safe)))
    repo.git("update-index", "-q", "--refresh", check=False)
    assert repo.git("diff-files", "--name-only") == "n"


# ---- split and sparse ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 4])
def test_split_index_is_joined(repo: RepoBuilder, version: int) -> None:
    """Replaced, deleted, added, conflicted and flagged entries over a shared base read as git lists them, and write unsplit."""
    repo.git("update-index", "--index-version", str(version))
    repo.git("config", "splitIndex.maxPercentChange", "100")
    repo.git("update-index", "--split-index")
    conflict(repo)
    staged(repo)
    flags(repo)
    repo.write("zz", "new\n")
    repo.git("add", "zz")
    assert list(repo.root.glob(".git/sharedindex.*"))
    assert b"link" in index_path(repo).read_bytes()
    before = git_says(repo)

    index = read(repo)

    assert index.was_split
    assert [(entry.path, entry.stage, entry.mode, entry.oid) for entry in index.entries] == listed(repo)
    put(repo, index)
    assert git_says(repo) == before
    assert b"link" not in index_path(repo).read_bytes()
    repo.git("fsck", "--no-dangling")


def test_split_index_without_or_with_the_wrong_base_is_refused(repo: RepoBuilder) -> None:
    """No shared part: unsupported; a shared part that is another file: corrupt."""
    repo.git("update-index", "--split-index")
    staged(repo)
    data = index_path(repo).read_bytes()

    def missing(name: str) -> bytes:
        raise FileNotFoundError(name)

    with pytest.raises(IndexUnsupported):
        parse_index(data)
    with pytest.raises(IndexUnsupported):
        parse_index(data, shared_index=missing)
    with pytest.raises(IndexCorrupt):
        parse_index(data, shared_index=lambda name: serialize_index(IndexFile(2, [])))


def test_large_split_index_uses_runs_of_bits(repo: RepoBuilder) -> None:
    """Hundreds of deleted and of replaced entries in a row are read out of compressed bitmaps."""
    lines = "".join(f"100644 {BLOB.hex()}\tmany/{number:04}\n" for number in range(1500))
    repo.git("update-index", "--index-info", input=lines)
    repo.git("config", "splitIndex.maxPercentChange", "100")
    repo.git("update-index", "--split-index")
    other = repo.git("hash-object", "-w", "n")
    gone = "".join(f"0 {BLOB.hex()}\tmany/{number:04}\n" for number in range(200, 700))
    moved = "".join(f"100755 {other}\tmany/{number:04}\n" for number in (*range(10), *range(800, 1300)))
    repo.git("update-index", "--index-info", input=gone + moved)

    assert [(entry.path, entry.stage, entry.mode, entry.oid) for entry in read(repo).entries] == listed(repo)


def test_sparse_index_is_expanded(repo: RepoBuilder) -> None:
    """Directory entries become the skip-worktree files they stand for; a staged change in the cone is kept."""
    for name in ("a/one", "a/sub/two", "b/three", "b/x.sh", "c/in"):
        repo.write(name, name)
    repo.write("b/run", "run\n", 0o755)
    repo.git("add", "-A")
    repo.git("commit", "-qm", "more")
    repo.git("sparse-checkout", "init", "--cone", "--sparse-index")
    repo.git("sparse-checkout", "set", "c")
    repo.write("c/in", "staged\n")
    repo.git("add", "c/in")
    assert b"sdir" in index_path(repo).read_bytes()
    data = index_path(repo).read_bytes()
    before = git_says(repo)

    index = read(repo)

    assert index.was_sparse
    assert flagged(index, SKIP_WORKTREE) == [
        *(b"a/one", b"a/sub/two", b"b/run", b"b/three", b"b/x.sh", b"folder/deep/er/file.txt", b"folder/run.sh")
    ]
    put(repo, index)
    after = git_says(repo)
    assert re.sub(r"skip.*", "", after[LISTINGS[1]]) == before[LISTINGS[1]]
    assert after[LISTINGS[4]] == before[LISTINGS[4]]
    assert repo.git("status", "--porcelain") == "M  c/in"
    with pytest.raises(IndexUnsupported):
        parse_index(data)
    with pytest.raises(IndexUnsupported):
        parse_index(data, read_tree=no_tree)
    with pytest.raises(IndexCorrupt):
        parse_index(data, read_tree=lambda oid: b"100644 cut\0short")


# ---- what is refused -----------------------------------------------------------------------------------------------------------


def test_unknown_extension_with_a_small_letter_is_refused(repo: RepoBuilder) -> None:
    """A lower-case extension changes what the index means; an upper-case one is only a cache and is dropped."""
    body = index_path(repo).read_bytes()[:-20]

    with pytest.raises(IndexUnsupported):
        parse_index(sealed(body + b"zzzz\0\0\0\1!"))
    index = parse_index(sealed(body + b"ZZZZ\0\0\0\1!" + b"UNTR\0\0\0\0"))
    assert b"ZZZZ" not in serialize_index(index)
    assert index.entries == read(repo).entries


def test_sha256_index_is_refused(tmp_path: Path, env: dict[str, str]) -> None:
    """Object ids of 32 bytes are told apart from a damaged file."""
    repo = RepoBuilder(tmp_path / "sha256", env, init=False)
    repo.git("init", "-q", "--object-format=sha256", ".")
    repo.commit("one", a="a\n")

    with pytest.raises(IndexUnsupported, match="sha256"):
        parse_index(index_path(repo).read_bytes())


def test_other_versions_and_other_files_are_refused() -> None:
    """Version 5 is unsupported, what is no index is corrupt."""
    with pytest.raises(IndexUnsupported):
        parse_index(sealed(b"DIRC" + bytes((0, 0, 0, 5)) + bytes(4)))
    for data in (b"", b"DIRC", bytes(100), b"PACK" + bytes(60), sealed(b"DIRC" + bytes((0, 0, 0, 2, 255, 255, 255, 255)))):
        with pytest.raises(IndexCorrupt):
            parse_index(data)


def test_index_without_checksum_is_read(repo: RepoBuilder) -> None:
    """``index.skipHash`` writes zeros in its place."""
    data = index_path(repo).read_bytes()[:-20] + bytes(20)

    assert parse_index(data).entries == read(repo).entries
    assert parse_index(data).checksum == bytes(20)


@pytest.mark.parametrize("shape", [plain, resolved, flags])
@pytest.mark.parametrize("version", [2, 4])
def test_cut_off_index_is_never_a_traceback(repo: RepoBuilder, shape: Callable[[RepoBuilder], None], version: int) -> None:
    """Cut at any length, with a checksum that fits, it is refused or (cut before an extension) read in full."""
    shape(repo)
    repo.git("update-index", "--index-version", str(version), "--force-write-index")
    body = index_path(repo).read_bytes()[:-20]
    whole = read(repo).entries

    for length in range(len(body)):
        with pytest.raises(IndexCorrupt):
            parse_index(body[:length])
        try:
            assert parse_index(sealed(body[:length])).entries == whole
        except (IndexCorrupt, IndexUnsupported):
            pass


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("version", [2, 4])
def test_damaged_index_is_never_a_traceback(repo: RepoBuilder, chance: random.Random, version: int, split: bool) -> None:
    """Random bytes in random places: an index, or one of our two errors. What is read can be written."""
    repo.git("update-index", "--index-version", str(version))
    if split:
        repo.git("update-index", "--split-index")
    flags(repo)
    staged(repo)
    body = index_path(repo).read_bytes()[:-20]
    shared = {path.name: path.read_bytes() for path in repo.root.glob(".git/sharedindex.*")}

    for _ in range(2000):
        damaged = bytearray(body)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(body))] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
        try:
            index = parse_index(
                sealed(bytes(damaged)), shared_index=lambda name: shared["sharedindex." + name], read_tree=no_tree
            )
            index.entries = [entry for entry in index.entries if entry.mode in (0o100644, 0o100755, 0o120000, 0o160000)]
            serialize_index(index)
        except (IndexCorrupt, IndexUnsupported):
            pass


@pytest.mark.parametrize(
    "entry",
    [
        IndexEntry(b"", 0, 0o100644, BLOB),
        IndexEntry(b"a\0b", 0, 0o100644, BLOB),
        IndexEntry(b"a", 0, 0o040000, BLOB),
        IndexEntry(b"a", 0, 0, BLOB),
        IndexEntry(b"a", 0, 0o100644, BLOB[:19]),
        IndexEntry(b"a", 0, 0o100644, BLOB, 0, b"short"),
        IndexEntry(b"b", 0, 0o100644, BLOB),
    ],
)
def test_entries_no_index_can_hold_are_not_written(entry: IndexEntry) -> None:
    """Among them a path that is there twice."""
    with pytest.raises(IndexCorrupt):
        serialize_index(IndexFile(2, [entry, IndexEntry(b"b", 0, 0o100644, BLOB)]))


NAMES = st.binary(min_size=1, max_size=40).map(lambda name: name.replace(b"\0", b"0"))
ENTRIES = st.builds(
    IndexEntry,
    path=NAMES,
    stage=st.just(0),
    mode=st.sampled_from([0o100644, 0o100755, 0o120000, 0o160000]),
    oid=st.binary(min_size=20, max_size=20),
    flags=st.sampled_from([0, ASSUME_VALID, SKIP_WORKTREE, INTENT_TO_ADD, ASSUME_VALID | SKIP_WORKTREE | INTENT_TO_ADD]),
    stat=st.binary(min_size=40, max_size=40),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(ENTRIES, unique_by=lambda entry: entry.path), st.sampled_from([2, 3, 4]), st.none() | st.binary(max_size=30))
def test_what_is_written_is_read_back(entries: list[IndexEntry], version: int, resolve_undo: bytes | None) -> None:
    """Any set of entries, in any order, comes back sorted, with the mode put into its stat data."""
    again = parse_index(serialize_index(IndexFile(version, entries, resolve_undo)))

    expected = [
        entry._replace(stat=entry.stat[:24] + entry.mode.to_bytes(4, "big") + entry.stat[28:])
        for entry in sorted(entries, key=lambda entry: entry.path)
    ]
    assert again.entries == expected
    assert again.resolve_undo == resolve_undo
    assert again.version == (4 if version == 4 else 3 if any(entry.flags & 0x6000 for entry in entries) else 2)


# ---- the cache tree and the signature ------------------------------------------------------------------------------------------


def test_cache_tree_names_the_trees_git_wrote(repo: RepoBuilder) -> None:
    """Directory, number of entries and tree id; a directory with a staged change is unknown up to the root."""
    repo.git("read-tree", "HEAD")
    raw = read(repo).cache_tree
    assert raw is not None

    tree = parse_cache_tree(raw)

    wanted = {b"": 22, b"folder": 2, b"folder/deep": 1, b"folder/deep/er": 1}
    assert {path: count for path, (count, _, _) in tree.items()} == wanted
    assert {path: oid and oid.hex() for path, (_, _, oid) in tree.items()} == {
        path: repo.git("rev-parse", f"HEAD:{path.decode()}") for path in wanted
    }
    repo.write("folder/deep/er/file.txt", "staged\n")
    repo.git("add", "-A")
    raw = read(repo).cache_tree
    assert raw is not None
    assert {path: count for path, (count, _, _) in parse_cache_tree(raw).items()} == dict.fromkeys(wanted, -1)
    for length in range(1, len(raw)):
        with pytest.raises(IndexCorrupt):
            parse_cache_tree(raw[:length])


def test_signature_changes_with_every_write_of_git(repo: RepoBuilder) -> None:
    """Equal while nothing writes the index, different after each write; None where there is no index."""
    path = index_path(repo)
    seen = [read_signature(path)]
    assert read_signature(os.fsencode(path)) == seen[0]
    for act in (staged, flags, gitlink):
        act(repo)
        seen.append(read_signature(path))

    assert len(set(seen)) == 4
    assert read_signature(path.with_name("none")) is None


def test_memory_of_a_large_index_is_bounded() -> None:
    """Below 600 bytes an entry, so that 100,000 entries stay below 60 MB."""
    count = 20_000
    entries = [IndexEntry(b"folder/%06d/file.txt" % number, 0, 0o100644, number.to_bytes(20, "big")) for number in range(count)]
    data = serialize_index(IndexFile(2, entries))
    tracemalloc.start()
    try:
        index = parse_index(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(index.entries) == count
    assert peak < 600 * count


def test_errors_are_shown_as_ours() -> None:
    """Both derive from SafetyError and carry a stable code."""
    assert issubclass(IndexCorrupt, SafetyError) and IndexCorrupt.code == "index-corrupt"
    assert issubclass(IndexUnsupported, SafetyError) and IndexUnsupported.code == "index-unsupported"
