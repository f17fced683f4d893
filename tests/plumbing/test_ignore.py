"""Ignore rules: git's own answer, from all three places the rules may stand in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from safety.plumbing.ignore import IgnoreRules, ignored_paths
from safety.plumbing.run import Completed, Git, GitError

Environment = dict[str, str]


class Tree:
    """A work tree and a bare git directory of ours beside it."""

    def __init__(self, folder: Path, env: Environment) -> None:
        self.root = folder / "work"
        self.scan_dir = folder / "scan.git"
        self.git = Git(env)
        for args in (["init", "-q", str(self.root)], ["init", "-q", "--bare", str(self.scan_dir)]):
            subprocess.run(["git", *args], env=env, check=True)

    def write(self, path: str, text: str = "") -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def rules(self, info_exclude: Path | None = None, excludes_file: Path | None = None) -> IgnoreRules:
        return IgnoreRules(
            self.git,
            self.scan_dir,
            os.fsencode(self.root),
            os.fsencode(info_exclude) if info_exclude else None,
            os.fsencode(excludes_file) if excludes_file else None,
        )


@pytest.fixture
def tree(tmp_path: Path, env: Environment) -> Tree:
    return Tree(tmp_path, env)


def test_gitignore_files_are_followed(tree: Tree) -> None:
    """Patterns, negations and files in sub-folders, for paths that exist and paths that do not."""
    tree.write(".gitignore", "*.log\n!keep.log\nbuild/\n")
    tree.write("sub/.gitignore", "secret\n")
    tree.write("build/x")
    asked = [b"a.log", b"keep.log", b"a.txt", b"build/x", b"sub/secret", b"secret", b"sub/gone.log"]

    assert tree.rules().ignored(asked) == {b"a.log", b"build/x", b"sub/secret", b"sub/gone.log"}


def test_tracked_files_are_answered_by_the_rules_alone(tree: Tree) -> None:
    """The index has no say."""
    tree.write(".gitignore", "*.log\n")
    tree.write("a.log")
    tree.git.user(os.fsencode(tree.root), ["add", "-f", "a.log"])

    assert tree.rules().ignored([b"a.log"]) == {b"a.log"}


def test_a_folder_is_known_by_its_slash(tree: Tree) -> None:
    """`build/` matches a folder on the disk and one that is gone; `some/*` does not match `some/` itself."""
    tree.write(".gitignore", "build/\nsome/*\n!some/kept\n")
    tree.write("some/kept")
    (tree.root / "build").mkdir()

    assert tree.rules().ignored([b"build/", b"some/", b"other/build/", b"some/kept", b"some/x", b"build"]) == {
        b"build/",
        b"other/build/",
        b"some/x",
        b"build",
    }
    assert tree.rules().ignored([b"gone/build", b"gone/build/"]) == {b"gone/build/"}


def test_info_exclude_and_the_excludes_file_are_handed_over(tree: Tree, tmp_path: Path) -> None:
    """Both are in force, info/exclude over the excludes file, .gitignore over both; missing ones are none."""
    (tmp_path / "exclude").write_text("secret\n!open\n")
    (tmp_path / "user").write_bytes(b"\xef\xbb\xbf*.bak\nopen\nshown")
    tree.write(".gitignore", "!shown\n")
    asked = [b"secret", b"a.bak", b"open", b"shown", b"a.txt"]

    assert tree.rules(tmp_path / "exclude", tmp_path / "user").ignored(asked) == {b"secret", b"a.bak"}
    assert tree.rules(None, tmp_path / "user").ignored(asked) == {b"a.bak", b"open"}
    assert tree.rules(tmp_path / "gone", tmp_path / "gone").ignored(asked) == set()


def test_a_scan_follows_the_same_rules(tree: Tree, tmp_path: Path) -> None:
    """``arguments`` before a store call's command give `ls-files --exclude-standard` the two files."""
    (tmp_path / "exclude").write_text("secret\n")
    tree.write("secret")
    tree.write("a.txt")
    rules = tree.rules(tmp_path / "exclude")

    listed = tree.git.store(
        tree.scan_dir, [*rules.arguments, "ls-files", "-o", "-z", "--exclude-standard"], work_tree=os.fsencode(tree.root)
    )

    assert listed.stdout == b"a.txt\0"


def test_configuration_of_the_user_is_not_read(tree: Tree, env: Environment) -> None:
    """Neither core.excludesFile nor the default file below ~/.config counts unless it is handed over."""
    (Path(env["XDG_CONFIG_HOME"]) / "git").mkdir()
    (Path(env["XDG_CONFIG_HOME"]) / "git/ignore").write_text("a.txt\n")

    assert tree.rules().ignored([b"a.txt"]) == set()


def test_odd_names_are_answered_and_spoil_nothing(tree: Tree) -> None:
    """Any bytes, magic-looking names, the root itself, and paths outside."""
    tree.write(".gitignore", "*\n!plain\n")
    odd = [b":(top)x", b":/x", b"a\nb", b"\xff\xfe", b"-v", b"*", b'"q"', b"a\\b", b"..x", b"x" * 200]

    assert tree.rules().ignored([b"", b"/", b"../up", b"/etc/passwd", b"a/../../x", *odd, b"plain"]) == set(odd)
    assert tree.rules().ignored([]) == set()


def test_paths_below_a_link_are_left_out(tree: Tree) -> None:
    """A link is not walked through, in the middle or at the end of the list; the link itself is answered."""
    tree.write(".gitignore", "*.log\nlink\n")
    tree.write("real/a.log")
    (tree.root / "link").symlink_to("real")

    assert tree.rules().ignored([b"a.log", b"link/a.log", b"real/a.log", b"link", b"link/"]) == {
        b"a.log",
        b"real/a.log",
        b"link",
        b"link/",
    }


class SwappingGit(Git):
    """Turns a folder of the work tree into a link just before git looks at it."""

    folder: Path

    def store(self, *args: Any, **named: Any) -> Completed:
        if not self.folder.is_symlink():
            self.folder.rmdir()
            self.folder.symlink_to("/")
        return super().store(*args, **named)


def test_a_folder_that_becomes_a_link_meanwhile_spoils_nothing(tree: Tree, env: Environment) -> None:
    """Where git stops at a path that was sound when we looked, the paths after it are still answered."""
    tree.write(".gitignore", "*.log\n")
    (tree.root / "link").mkdir()
    tree.git = SwappingGit(env)
    tree.git.folder = tree.root / "link"

    assert tree.rules().ignored([b"a.log", b"link/a.log", b"link/b.log", b"b.log", b"link/c"]) == {b"a.log", b"b.log"}


def test_a_missing_scan_directory_is_an_error(tree: Tree) -> None:
    """No silent "nothing is ignored"."""
    rules = IgnoreRules(tree.git, tree.root, os.fsencode(tree.root))

    with pytest.raises(GitError):
        rules.ignored([b"a"])


def test_the_users_repository_is_asked_as_it_is(tree: Tree) -> None:
    """What its index holds is not ignored; a colon in front of a name is part of the name; its info/exclude counts."""
    tree.write(".gitignore", "*.log\n:folder/\n")
    tree.write(".git/info/exclude", "mine\n")
    tree.write("a.log")
    tree.git.user(os.fsencode(tree.root), ["add", "-f", "a.log"])
    asked = [b"a.log", b"b.log", b":c.log", b":folder/", b"mine", b"a.txt"]

    assert ignored_paths(tree.git, os.fsencode(tree.root), asked) == {b"b.log", b":c.log", b":folder/", b"mine"}
    assert ignored_paths(tree.git, os.fsencode(tree.root), []) == set()
    with pytest.raises(GitError):
        ignored_paths(tree.git, os.fsencode(tree.root.parent), [b"a"])
