"""Which files git converts: checked against what `git add` really stores."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from safety.plumbing.attributes import converted_paths
from safety.plumbing.run import Git

Environment = dict[str, str]


@pytest.fixture
def root(tmp_path: Path, env: Environment) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path / "work")], env=env, check=True)
    return tmp_path / "work"


def ask(env: Environment, root: Path, *paths: str) -> dict[str, str]:
    found = converted_paths(Git(env), os.fsencode(root), [os.fsencode(path) for path in paths])
    return {os.fsdecode(path): kind for path, kind in found.items()}


def config(env: Environment, root: Path, *args: str) -> None:
    subprocess.run(["git", "-C", str(root), "config", *args], env=env, check=True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("* text", "size-safe"),
        ("* text=auto", "size-safe"),
        ("* text=input", "size-safe"),
        ("* crlf", "size-safe"),
        ("* crlf=input", "size-safe"),
        ("* eol=lf", "size-safe"),
        ("* eol=crlf", "size-safe"),
        ("* ident", "size-safe"),
        ("* -text ident", "size-safe"),
        ("* filter=lfs -text", "always"),
        ("* working-tree-encoding=UTF-16", "always"),
        ("* -text", None),
        ("* -text eol=lf", None),
        ("* -crlf", None),
        ("* binary", None),
        ("* -filter", None),
        ("* diff=python linguist-vendored export-ignore", None),
        ("other text", None),
    ],
)
def test_each_attribute_has_its_effect(env: Environment, root: Path, line: str, expected: str | None) -> None:
    """One line of .gitattributes and what it means for a path."""
    (root / ".gitattributes").write_text(line + "\n")

    assert ask(env, root, "f") == ({"f": expected} if expected else {})


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("input", True), ("1", True), ("false", False), ("0", False), ("", False)]
)
def test_autocrlf_converts_without_any_attribute(env: Environment, root: Path, value: str, expected: bool) -> None:
    """The setting makes every path suspect, unless an attribute exempts it."""
    config(env, root, "core.autocrlf", value)

    assert ask(env, root, "a", "b") == ({"a": "size-safe", "b": "size-safe"} if expected else {})
    (root / ".gitattributes").write_text("a -text\nc filter=x\n")
    assert ask(env, root, "a", "b", "c") == ({"b": "size-safe", "c": "always"} if expected else {"c": "always"})


def test_eol_alone_converts_nothing(env: Environment, root: Path) -> None:
    """core.eol without text attribute: git stores the bytes, and so we say."""
    config(env, root, "core.eol", "crlf")
    (root / "f").write_bytes(b"a\r\nb\n")

    stored = subprocess.run(["git", "-C", str(root), "add", "f"], env=env, check=True, capture_output=True)
    blob = subprocess.run(["git", "-C", str(root), "cat-file", "blob", ":f"], env=env, check=True, capture_output=True).stdout

    assert (stored.returncode, blob, ask(env, root, "f")) == (0, b"a\r\nb\n", {})


@pytest.mark.parametrize("source", ["nested", "info", "named", "home", "xdg", "home-config"])
def test_attributes_are_found_wherever_git_finds_them(env: Environment, root: Path, source: str) -> None:
    """A file in a sub-folder, the repository's info/attributes, the user's named and default files."""
    home = Path(env["HOME"])
    if source == "home-config":
        del env["XDG_CONFIG_HOME"]
    place = {
        "nested": root / "sub/.gitattributes",
        "info": root / ".git/info/attributes",
        "named": home / "named",
        "home": home / "in-home",
        "xdg": home / ".config/git/attributes",
        "home-config": home / ".config/git/attributes",
    }[source]
    place.parent.mkdir(exist_ok=True)
    place.write_text("*.txt text\n")
    if source == "named":
        config(env, root, "core.attributesFile", str(place))
    if source == "home":
        config(env, root, "core.attributesFile", "~/in-home")

    assert ask(env, root, "sub/a.txt", "sub/a.bin", "sub/.gitattributes") == {"sub/a.txt": "size-safe"}


def test_a_linked_work_tree_shares_info_attributes(env: Environment, root: Path) -> None:
    """info/attributes of the common directory holds there too."""
    subprocess.run(["git", "-C", str(root), "commit", "-q", "--allow-empty", "-m", "x"], env=env, check=True)
    subprocess.run(["git", "-C", str(root), "worktree", "add", "-q", "../linked"], env=env, check=True)
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/attributes").write_text("* text\n")

    assert ask(env, root.parent / "linked", "f") == {"f": "size-safe"}


def test_without_sources_no_path_is_asked_about(env: Environment, root: Path) -> None:
    """The quick exit; a caller who knows of an attribute file elsewhere can say so."""
    git, path = Git(env), b"sub/f"
    (root / "sub").mkdir()
    (root / "sub/.gitattributes").write_text("* text\n")

    assert converted_paths(git, os.fsencode(root), [path]) == {}
    assert converted_paths(git, os.fsencode(root), [path], attribute_files=True) == {path: "size-safe"}


def test_names_of_any_bytes_are_answered(env: Environment, root: Path) -> None:
    """Newlines, colons, invalid UTF-8, leading dashes."""
    (root / ".gitattributes").write_text("* text\n")
    names = ["a\nb", ":(top)x", os.fsdecode(b"\xff"), "-z", '"q"', "e/é"]

    assert ask(env, root, *names) == dict.fromkeys(names, "size-safe")
    assert ask(env, root) == {}


@pytest.mark.parametrize("line", ["* text=auto", "* text", "* ident", "* eol=crlf", "* -text", "* text=auto eol=crlf"])
@pytest.mark.parametrize("content", [b"a\r\nb\r\n", b"a\nb\n", b"a\r\nb\n", b"$Id: 0123 $\n", b"$Id$\n", b"\0\r\n", b"a\rb"])
def test_equal_size_means_equal_bytes(env: Environment, root: Path, line: str, content: bytes) -> None:
    """What ``size-safe`` promises, and that an unlisted path is stored as it is: against `git add`."""
    (root / ".gitattributes").write_text(line + "\n")
    (root / "f").write_bytes(content)
    subprocess.run(["git", "-C", str(root), "add", "f"], env=env, check=True, capture_output=True)
    blob = subprocess.run(["git", "-C", str(root), "cat-file", "blob", ":f"], env=env, check=True, capture_output=True).stdout

    if ask(env, root, "f") == {} or len(blob) == len(content):
        assert blob == content
