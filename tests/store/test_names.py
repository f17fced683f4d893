from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safety.plumbing.odb import ObjectStore
from safety.store import names
from safety.store.trees import FILE, serialize_tree
from tests.store.bare import fsck

POSSIBLE = [bytes((number,)) for number in range(1, 256) if number != 47]
ANY_NAME = st.lists(st.sampled_from(POSSIBLE), min_size=1, max_size=12).map(b"".join)

IGNORED_BY_HFS = [
    chr(point).encode() for point in [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
]
PIECES = [
    b".",
    b"..",
    b".git",
    b"git",
    b"GiT",
    b"~",
    b"~1",
    b"1",
    b"9",
    b" ",
    b":",
    b"\\",
    b"%",
    b"\n",
    b"modules",
    b"ignore",
    b"attributes",
]
PIECES += [
    b"gitmod",
    b"gi7eba",
    b"gi250a",
    b"gi7d29",
    b".mailmap",
    b"mailma",
    b"maba30",
    b"\xff",
    b"\xe2",
    b"\x80",
    b"\xef\xbb",
    b"x",
]
ODD_NAME = st.lists(st.sampled_from(PIECES + IGNORED_BY_HFS), min_size=1, max_size=5).map(b"".join)

FORBIDDEN = [
    b".",
    b"..",
    b".git",
    b".GIT",
    b".Git",
    b"git~1",
    b"GIT~1",
    b".git.",
    b".git ",
    b".git. . ",
    b".git::$INDEX_ALLOCATION",
    b".git\\x",
    b"a\\.git",
    b"a\\git~1",
    b"a\\..",
    b".g\xe2\x80\x8cit",
    b"\xe2\x80\x8d.git",
    b".git\xef\xbb\xbf",
    b".git\xff",
    b".git\xc3",
    b".gitmodules",
    b".GITMODULES",
    b"gitmod~1",
    b"GITMOD~4",
    b"gi7eba~1",
    b"gi7eb~12",
    b"~1000000",
    b".gitmodules ",
    b".gitmodules:x",
    b"x\\.gitmodules",
    b".gitattributes",
    b".gitignore",
    b".mailmap",
]

PLAIN = [
    b"a",
    b"README.md",
    b".github",
    b".gitkeep",
    b"git",
    b"gitmodules",
    b"a~1",
    b"...",
    b"a.",
    b" ",
    b"-",
    b"\xc3\xa4",
    b"\x01",
    b"\xff",
    b"CON",
    b"x:y",
]


def test_every_byte_comes_back() -> None:
    """A name with any byte but NUL and slash is decoded to itself."""
    for byte in POSSIBLE:
        for name in (byte, b"a" + byte, byte + b"a", byte * 3, b"." + byte, b".git" + byte, byte + b".git"):
            assert names.decode(names.encode(name)) == name


@given(st.one_of(ANY_NAME, ODD_NAME))
def test_round_trip(name: bytes) -> None:
    """Decoding undoes encoding, and an encoded name is a name that is not one of ours."""
    encoded = names.encode(name)
    assert names.decode(encoded) == name
    assert b"/" not in encoded and b"\n" not in encoded and encoded
    assert not (encoded[:1] == b"%" and encoded[1:2].islower())
    assert names.encode_all([name, b"plain"]) == [encoded, b"plain"] and names.encode_all([name]) == [encoded]


@given(st.one_of(ANY_NAME, ODD_NAME), st.one_of(ANY_NAME, ODD_NAME))
def test_two_names_never_meet(one: bytes, other: bytes) -> None:
    """Different names have different encodings."""
    assert (names.encode(one) == names.encode(other)) == (one == other)


@given(st.lists(st.one_of(ANY_NAME, ODD_NAME), min_size=1, max_size=4), st.booleans())
def test_paths_round_trip(parts: list[bytes], absolute: bool) -> None:
    """A path is encoded component by component; an absolute one stands below a name of ours."""
    path = (b"/" if absolute else b"") + b"/".join(parts)
    found = names.components(path)
    assert found == ([names.OUTSIDE] if absolute else []) + [names.encode(part) for part in parts]
    assert names.decode_path(names.encode_path(path)) == path
    joined = b""
    for name in found:
        joined = names.join(joined, name)
    assert joined == path


def test_roots() -> None:
    """The workspace root has no component, the file system's root has the one that stands for it."""
    assert names.components(b"") == [] and names.components(b"/") == [names.OUTSIDE]
    assert names.decode_path(names.encode_path(b"/")) == b"/" and names.decode_path(names.encode_path(b"")) == b""


@pytest.mark.parametrize("path", [b"a//b", b"a/", b"//a", b"a\0b", b"a/b/"])
def test_what_no_file_can_be_called_is_refused(path: bytes) -> None:
    """An empty component or a NUL is a mistake of the caller."""
    with pytest.raises(ValueError, match="no file can be called"):
        names.components(path)


@pytest.mark.parametrize("name", [b"", b"a/b", b"a\0", b"\0"])
def test_a_bad_name_is_refused(name: bytes) -> None:
    """So is a name with a slash, alone or among others."""
    for call in (lambda: names.encode(name), lambda: names.encode_all([name]), lambda: names.encode_all([b"a", name])):
        with pytest.raises(ValueError, match="no file can be called"):
            call()


@pytest.mark.parametrize("name", PLAIN)
def test_common_names_are_stored_as_they_are(name: bytes) -> None:
    """Only what must be escaped is, so that our trees are the user's trees."""
    assert names.encode(name) == name


@pytest.mark.parametrize("name", FORBIDDEN)
def test_special_names_are_escaped(name: bytes) -> None:
    """What some file system or git itself would take for a name of git's is escaped."""
    assert names.encode(name) != name


def test_git_finds_nothing_odd(own_odb: ObjectStore) -> None:
    """``fsck --strict`` is silent about trees with all of these names, as files and as directories; unencoded it is not."""
    blob = own_odb.write("blob", b'[submodule "../x"]\n\tpath = -x\n\turl = -y\n')
    every = sorted(
        {*FORBIDDEN, *PLAIN, *(byte + b".git" for byte in POSSIBLE), *(b".git" + byte for byte in POSSIBLE), *POSSIBLE}
    )
    files = own_odb.write("tree", serialize_tree((FILE, names.encode(name), blob) for name in every))
    links = own_odb.write("tree", serialize_tree((0o120000, names.encode(name), blob) for name in every))
    top = own_odb.write("tree", serialize_tree((0o040000, names.encode(name), files) for name in every))
    commit = own_odb.commit(top, [own_odb.commit(links, [], b"links", 0)], b"files", 0)
    own_odb.move_ref("refs/safety/x", None, commit)
    assert fsck(own_odb) == b""

    own_odb.write("tree", serialize_tree([(FILE, b".GIT", blob), (FILE, b"git~1", blob)]))
    assert b"hasDotgit" in fsck(own_odb)


@given(st.lists(ODD_NAME, min_size=1, max_size=40, unique=True))
def test_git_accepts_odd_combinations(parts: list[bytes]) -> None:
    """No name made of the pieces that file systems fold is left as git would refuse it (git's rules, restated narrowly)."""
    for name in parts:
        encoded = names.encode(name)
        visible = encoded
        for point in IGNORED_BY_HFS:
            visible = visible.replace(point, b"")
        low = visible.lower()
        assert encoded not in (b".", b"..")
        assert not low.startswith(b"git~1")
        assert low.rstrip(b" .") not in (b".git", b".gitmodules", b".gitattributes", b".gitignore", b".mailmap")
        assert b"\\" not in encoded
