"""Discovery by reading files, held to what git finds; and what only git can say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from safety.plumbing.repo import (
    ConfigBroken,
    Repository,
    find_root,
    open_repository,
    other_worktrees,
    parse_config,
    user_config,
    verify,
)
from safety.plumbing.run import Git
from tests.support.repo import RepoBuilder


@pytest.fixture
def repo(tmp_path: Path, env: dict[str, str]) -> RepoBuilder:
    """One commit on main, and a folder below."""
    repo = RepoBuilder(tmp_path / "work", env)
    repo.commit("one", **{"a": "1\n", "sub/dir/b": "2\n"})
    return repo


@pytest.fixture
def git(env: dict[str, str]) -> Git:
    return Git(env)


def raw(path: Path | str) -> bytes:
    return os.fsencode(path)


def opened(root: Path) -> Repository:
    """The repository at a root that has one."""
    found = open_repository(raw(root))
    assert found is not None
    return found


def assert_agrees_with_git(repo: RepoBuilder, at: Path) -> Repository:
    """Work tree, git directory and common directory are where git says."""
    root = find_root(raw(at))
    assert root is not None
    found = opened(Path(os.fsdecode(root)))
    words = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    top, own, common = (raw(repo.git("rev-parse", word, cwd=at)) for word in words)
    assert (found.root, found.git_dir, found.common_dir) == (top, own, os.path.realpath(os.path.join(raw(at), common)))
    assert root == top
    return found


# ---- where ------------------------------------------------------------------------------------------------------------------


def test_repository_is_found_from_anywhere_below(repo: RepoBuilder) -> None:
    """At its root, in a folder, inside .git, and from a folder that is gone."""
    for below in ("", "sub/dir", "sub/gone/too", ".git/refs"):
        assert find_root(raw(repo.root / below)) == raw(repo.root)

    found = assert_agrees_with_git(repo, repo.root / "sub/dir")
    assert found == Repository(raw(repo.root), raw(repo.root / ".git"), raw(repo.root / ".git"))
    assert not found.linked


def test_no_repository_is_none(tmp_path: Path) -> None:
    """A plain folder is in none; so is one that does not exist."""
    assert find_root(raw(tmp_path)) is None
    assert find_root(raw(tmp_path / "none/at/all")) is None
    assert open_repository(raw(tmp_path)) is None
    assert open_repository(raw(tmp_path / "none")) is None


def test_links_on_the_way_are_resolved(repo: RepoBuilder, tmp_path: Path) -> None:
    """A link into the middle of a work tree leads to that work tree, as git's own change of directory does."""
    (tmp_path / "shortcut").symlink_to(repo.root / "sub/dir")

    assert find_root(raw(tmp_path / "shortcut")) == raw(repo.root)
    (tmp_path / "alias").symlink_to(repo.root)
    assert opened(tmp_path / "alias").root == raw(repo.root)


def test_linked_work_tree(repo: RepoBuilder, tmp_path: Path) -> None:
    """Its own git directory and the shared one; core.worktree and core.bare of the shared configuration are not about it."""
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", str(linked))
    (linked / "below").mkdir()

    found = assert_agrees_with_git(repo, linked / "below")

    assert found.linked and not found.bare and found.problem is None
    repo.git("config", "core.worktree", str(tmp_path))
    assert opened(linked).problem is None
    assert opened(repo.root).problem == "work-tree-elsewhere"


def test_submodule(repo: RepoBuilder, tmp_path: Path, git: Git) -> None:
    """A relative gitdir and a core.worktree that points back."""
    other = RepoBuilder(tmp_path / "other", repo.env)
    other.commit("one", x="x\n")
    repo.git("submodule", "--quiet", "add", str(other.root), "module")

    found = assert_agrees_with_git(repo, repo.root / "module")

    assert found.git_dir == raw(repo.root / ".git/modules/module")
    assert found.problem is None
    assert verify(git, raw(repo.root / "module")) is None


def test_separate_git_directory(repo: RepoBuilder, tmp_path: Path) -> None:
    """An absolute gitdir, and a .git that is a link to a folder or to such a file."""
    repo.git("init", "-q", f"--separate-git-dir={tmp_path / 'elsewhere'}")
    assert assert_agrees_with_git(repo, repo.root).git_dir == raw(tmp_path / "elsewhere")

    (repo.root / ".git").rename(tmp_path / "pointer")
    (repo.root / ".git").symlink_to(tmp_path / "pointer")
    assert assert_agrees_with_git(repo, repo.root).git_dir == raw(tmp_path / "elsewhere")
    (repo.root / ".git").unlink()
    (repo.root / ".git").symlink_to(tmp_path / "elsewhere")
    assert assert_agrees_with_git(repo, repo.root).git_dir == raw(tmp_path / "elsewhere")


def test_unborn_repository(tmp_path: Path, env: dict[str, str], git: Git) -> None:
    """Before the first commit it is a repository like any other."""
    repo = RepoBuilder(tmp_path / "new", env)

    assert assert_agrees_with_git(repo, repo.root).problem is None
    assert verify(git, raw(repo.root)) is None


def test_bare_repository(tmp_path: Path, env: dict[str, str], git: Git) -> None:
    """Opened when named, marked bare, never found from inside."""
    repo = RepoBuilder(tmp_path / "bare", env, init=False)
    repo.git("init", "-q", "--bare", ".")

    found = opened(repo.root)

    assert found.bare and found.root == found.git_dir == raw(repo.root)
    assert find_root(raw(repo.root / "refs")) is None
    assert verify(git, raw(repo.root)) is not None


def test_nested_repository_is_nearer(repo: RepoBuilder) -> None:
    """The inner one wins inside it; an empty .git folder is passed over as git does."""
    inner = RepoBuilder(repo.root / "sub/inner", repo.env)
    (repo.root / "sub/dir/.git").mkdir()

    assert find_root(raw(inner.root)) == raw(inner.root)
    assert (
        find_root(raw(repo.root / "sub/dir"))
        == raw(repo.root)
        == raw(repo.git("rev-parse", "--show-toplevel", cwd=repo.root / "sub/dir"))
    )
    assert open_repository(raw(repo.root / "sub/dir")) is None


def test_path_of_any_bytes(tmp_path: Path, env: dict[str, str], git: Git) -> None:
    """A root with a line end and a byte that is no UTF-8."""
    repo = RepoBuilder(Path(os.fsdecode(raw(tmp_path) + b"/odd\n\xff name")), env)

    assert find_root(raw(repo.root)) == raw(repo.root)
    assert verify(git, raw(repo.root)) is None


# ---- what kind --------------------------------------------------------------------------------------------------------------


def test_sha256_is_a_value(tmp_path: Path, env: dict[str, str]) -> None:
    """Reported, not a problem: git itself works there."""
    repo = RepoBuilder(tmp_path / "sha256", env, init=False)
    repo.git("init", "-q", "--object-format=sha256", ".")

    found = opened(repo.root)

    assert (found.object_format, found.extensions, found.problem) == ("sha256", frozenset({"objectformat"}), None)


def test_reftable_is_a_value(repo: RepoBuilder) -> None:
    """Another ref backend, as newer gits set it up."""
    repo.git("config", "core.repositoryformatversion", "1")
    repo.git("config", "extensions.refStorage", "reftable")
    repo.write(".git/HEAD", "ref: refs/heads/.invalid\n")

    found = opened(repo.root)

    assert (found.ref_storage, found.problem) == ("reftable", None)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (["core.repositoryformatversion=2"], "unknown-format"),
        (["core.repositoryformatversion=1", "extensions.fancy=true"], "unknown-extension"),
        (["extensions.fancy=true"], None),
        (["core.repositoryformatversion=1", "extensions.preciousObjects=true"], None),
        (["core.worktree=/"], "work-tree-elsewhere"),
        (["core.worktree=.."], None),
    ],
)
def test_problem_is_what_git_refuses(repo: RepoBuilder, git: Git, settings: list[str], problem: str | None) -> None:
    """Format, extension or work tree that git would not work with: a code and one line; git agrees."""
    for setting in settings:
        key, value = setting.split("=")
        repo.git("config", "--file", ".git/config", key, value)

    found = opened(repo.root)

    assert found.problem == problem
    assert bool(found.detail) == bool(problem) and "\n" not in found.detail
    assert (verify(git, raw(repo.root)) is None) == (problem is None)


def test_work_tree_configuration_of_its_own(repo: RepoBuilder, tmp_path: Path) -> None:
    """With extensions.worktreeConfig the work tree's file has the last word."""
    repo.git("config", "core.bare", "true")
    assert opened(repo.root).bare
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.write(".git/config.worktree", "[core]\n\tbare = false\n")

    assert not opened(repo.root).bare


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"gitdir: nowhere\n", "git-dir-missing"),
        (b"gitdir: .\n", "git-dir-missing"),
        (b"gitdir: .git\n", "git-dir-missing"),
        (b"gitdir: \n", "bad-git-file"),
        (b"gitdir: a\0b", "bad-git-file"),
        (b"gitdir:../x", "bad-git-file"),
        (b"hello", "bad-git-file"),
        (b"", "bad-git-file"),
        (b"\xff\xfe\0", "bad-git-file"),
        (b"gitdir: " + b"x" * 5000, "git-dir-missing"),
        (b"gitdir: x" + b" " * (2 << 20), "unreadable"),
    ],
)
def test_odd_git_file_is_a_problem_not_a_crash(
    tmp_path: Path, env: dict[str, str], git: Git, content: bytes, problem: str
) -> None:
    """Git stops at such a file, so does discovery; the line that says why has no line end in it."""
    outer = RepoBuilder(tmp_path / "outer", env)
    outer.write("inner/.git", content)
    inner = outer.root / "inner"

    assert find_root(raw(inner)) == raw(inner)
    found = opened(inner)
    assert found.problem == problem
    assert found.detail and "\n" not in found.detail
    said = verify(git, raw(inner))
    assert said and "\n" not in said


def test_odd_git_entries_are_passed_over(repo: RepoBuilder) -> None:
    """A FIFO, a dangling link, a link to itself, a folder with a FIFO for HEAD: no repository, and nothing waits."""
    makers = ("mkfifo .git", "ln -s nowhere .git", "ln -s .git .git", "mkdir -p .git/objects .git/refs && mkfifo .git/HEAD")
    for number, make in enumerate(makers):
        folder = repo.mkdir(f"odd{number}")
        repo.sh(make, cwd=folder)
        assert open_repository(raw(folder)) is None
        assert find_root(raw(folder)) == raw(repo.root)


@pytest.mark.parametrize("damage", ["HEAD", "objects", "refs"])
def test_broken_repository_is_none_and_git_agrees(repo: RepoBuilder, git: Git, damage: str) -> None:
    """Without one of the three it is no repository; ``verify`` says so in one line."""
    (repo.root / ".git" / damage).rename(repo.root / "away")

    assert open_repository(raw(repo.root)) is None
    assert find_root(raw(repo.root)) is None
    said = verify(git, raw(repo.root))
    assert said is not None and "not a git repository" in said and "\n" not in said


def test_broken_configuration(repo: RepoBuilder, git: Git) -> None:
    """Found, with a problem; a missing configuration is an empty one."""
    repo.write(".git/config", "[core\n")
    assert opened(repo.root).problem == "bad-config"
    assert verify(git, raw(repo.root)) is not None
    assert "problem" in user_config(git, raw(repo.root))

    repo.remove(".git/config")
    assert opened(repo.root).problem is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_dubious_ownership(repo: RepoBuilder, git: Git) -> None:
    """Another user's repository: one line from ``verify``, until the user trusts it."""
    repo.sh("chown -R 12345 .")

    assert opened(repo.root).foreign_owner
    said = verify(git, raw(repo.root))
    assert said is not None and said.startswith("dubious ownership") and "\n" not in said
    repo.git("config", "--global", "safe.directory", str(repo.root))
    assert verify(git, raw(repo.root)) is None


def test_verify_wants_the_top(repo: RepoBuilder, git: Git) -> None:
    """A folder below the top, or one that is gone, is a problem in one line."""
    assert verify(git, raw(repo.root)) is None
    for below in (repo.root / "sub", repo.root / "gone"):
        said = verify(git, raw(below))
        assert said and "\n" not in said


# ---- configuration ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tbare = false\n[core] worktree=x\n",
        '[a "Sub.Section"]\nKey = v\n[a "q\\"\\\\b"]\nk=1\n[A.Old]\nk = 2\n',
        '[a]\nq = "  kept  " # comment\nr = a;b\ns = "a;b" ; c\nt = one \\\n  two\nu\nv = \nw = "x"y"z"\n',
        "\ufeff[a]\r\nk = v \r\nl\r\n",
        "k = v\n[a]k=1\n[b]\n# c\n; d\nk=a\\tb\\nc\\\\\n",
        "[a]\nk = 1\nk = 2\nk=  spaces   in  between   \n",
    ],
)
def test_configuration_is_read_as_git_reads_it(repo: RepoBuilder, text: str) -> None:
    """Quotes, escapes, comments, continued lines, old and new subsections, last value first served."""
    path = repo.write("config", text)
    listed = raw(repo.git("config", "--file", str(path), "--list", "-z")).split(b"\0")[:-1]
    expected = {
        os.fsdecode(key): value if equals else b"true" for key, equals, value in (item.partition(b"\n") for item in listed)
    }

    assert parse_config(path.read_bytes()) == expected


@pytest.mark.parametrize("text", ["[core\n", "[a]\n= v\n", '[a]\nk = "x\n', "[a]\nk = \\q\n", "[a]\nk v\n", "[a]\n1 = 2\n"])
def test_configuration_git_refuses_is_refused(repo: RepoBuilder, text: str) -> None:
    """Each of these git calls a bad config line too."""
    path = repo.write("config", text)
    assert repo.git("config", "--file", str(path), "--list", check=False) == ""
    with pytest.raises(ConfigBroken):
        parse_config(path.read_bytes())


def test_user_config_is_empty_where_nothing_is_set(repo: RepoBuilder, git: Git) -> None:
    """No setting, no file: no key. What our own calls set does not show."""
    assert user_config(git, raw(repo.root)) == {}


def test_user_config_finds_gits_default_files(repo: RepoBuilder, git: Git, env: dict[str, str]) -> None:
    """``$XDG_CONFIG_HOME/git``, else ``~/.config/git``, unless the setting says otherwise, be it with nothing."""
    folder = Path(env["XDG_CONFIG_HOME"]) / "git"
    folder.mkdir()
    (folder / "ignore").write_text("*.secret\n")
    (folder / "attributes").write_text("*.x text\n")
    both = {"excludes_file": str(folder / "ignore"), "attributes_file": str(folder / "attributes")}

    assert user_config(git, raw(repo.root)) == both
    assert user_config(Git({name: value for name, value in env.items() if name != "XDG_CONFIG_HOME"}), raw(repo.root)) == both
    repo.git("config", "core.excludesFile", "")
    assert user_config(git, raw(repo.root)) == {"attributes_file": both["attributes_file"]}


@pytest.mark.parametrize(
    ("value", "place"), [("~/mine", "{home}/mine"), ("/abs/file", "/abs/file"), ("rel/file", "{root}/rel/file")]
)
def test_user_config_resolves_paths(repo: RepoBuilder, git: Git, env: dict[str, str], value: str, place: str) -> None:
    """Home, absolute and relative to the work tree."""
    repo.git("config", "--global", "core.excludesFile", value)

    assert user_config(git, raw(repo.root)) == {"excludes_file": place.format(home=env["HOME"], root=repo.root)}


@pytest.mark.parametrize(
    ("value", "kind"), [("true", "true"), ("yes", "true"), ("1", "true"), ("Input", "input"), ("false", "false"), ("0", "false")]
)
def test_user_config_of_line_ends(repo: RepoBuilder, git: Git, value: str, kind: str) -> None:
    """The repository's value beats the global one; booleans have one spelling."""
    repo.git("config", "--global", "core.autocrlf", "input" if kind != "input" else "true")
    repo.git("config", "core.autocrlf", value)
    repo.git("config", "core.eol", "CRLF")

    assert user_config(git, raw(repo.root)) == {"autocrlf": kind, "eol": "crlf"}


# ---- the other work trees ---------------------------------------------------------------------------------------------------


def test_other_work_trees_and_the_branches_they_hold(repo: RepoBuilder, tmp_path: Path) -> None:
    """The main one first; a rebase, its update-refs and a bisect hold their branches though HEAD is detached."""
    for name in ("plain", "stack", "bisect"):
        repo.git("branch", name)
    repo.git("worktree", "add", "-q", str(tmp_path / "plain"), "plain")
    repo.git("worktree", "add", "-q", "--detach", str(tmp_path / "loose"))
    stack = tmp_path / "stack"
    repo.git("worktree", "add", "-q", str(stack), "stack")
    for number in range(2):
        repo.sh(f"echo {number} > file && git add file && git commit -qm {number} && git branch part{number}", cwd=stack)
    repo.sh("GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i --update-refs main || true", cwd=stack)
    bisect = tmp_path / "bisect"
    repo.git("worktree", "add", "-q", str(bisect), "bisect")
    repo.git("commit", "-q", "--allow-empty", "-m", "x", cwd=bisect)
    repo.git("commit", "-q", "--allow-empty", "-m", "y", cwd=bisect)
    repo.git("bisect", "start", "HEAD", "HEAD~2", cwd=bisect)

    common = raw(repo.root / ".git")
    found = other_worktrees(common)

    assert found[0].git_dir == common
    held = {os.path.basename(tree.root or b""): {name.removeprefix(b"refs/heads/") for name in tree.branches} for tree in found}
    assert held == {
        b"work": {b"main"},
        b"plain": {b"plain"},
        b"loose": set(),
        b"stack": {b"stack", b"part0", b"part1"},
        b"bisect": {b"bisect"},
    }
    heads = {os.path.basename(tree.root or b""): tree.head for tree in found}
    assert heads[b"plain"] == b"ref: refs/heads/plain"
    assert heads[b"loose"] == raw(repo.head())
    listed = [
        line.split(" ", 1)[1] for line in repo.git("worktree", "list", "--porcelain").splitlines() if line.startswith("worktree ")
    ]
    assert {os.fsdecode(tree.root or b"") for tree in found} == set(listed)
    own = opened(tmp_path / "plain").git_dir
    assert [tree for tree in found if tree.git_dir != own] == other_worktrees(common, own)


def test_rebase_by_apply_holds_its_branch(repo: RepoBuilder) -> None:
    """The older rebase keeps its state elsewhere."""
    repo.git("checkout", "-qb", "side")
    repo.commit("side", a="side\n")
    repo.git("checkout", "-q", "main")
    repo.commit("main", a="main\n")
    repo.git("checkout", "-q", "side")
    repo.git("rebase", "-q", "--apply", "main", check=False)
    assert repo.exists(".git/rebase-apply/head-name")

    (main,) = other_worktrees(raw(repo.root / ".git"))

    assert main.branches == {b"refs/heads/side"}


def test_bare_repository_has_no_main_work_tree(repo: RepoBuilder, tmp_path: Path) -> None:
    """Its HEAD holds no branch; its linked work trees do, also one whose folder is gone; odd files do not stop it."""
    bare = tmp_path / "bare.git"
    repo.git("clone", "-q", "--bare", str(repo.root), str(bare))
    repo.git("branch", "kept", cwd=bare)
    repo.git("worktree", "add", "-q", str(tmp_path / "gone"), "kept", cwd=bare)
    repo.sh(f"rm -r {tmp_path / 'gone'}")
    (bare / "worktrees/broken").mkdir()
    os.mkfifo(bare / "worktrees/broken/HEAD")
    (bare / "worktrees/file").write_text("x")

    broken, gone = other_worktrees(raw(bare))

    assert (broken.head, broken.branches, broken.root) == (b"", frozenset(), None)
    assert (gone.root, gone.branches) == (raw(tmp_path / "gone"), frozenset({b"refs/heads/kept"}))


def test_submodule_has_one_work_tree_at_its_place(repo: RepoBuilder, tmp_path: Path) -> None:
    """core.worktree, not the folder above the git directory, says where it is."""
    other = RepoBuilder(tmp_path / "other", repo.env)
    other.commit("one", x="x\n")
    repo.git("submodule", "--quiet", "add", str(other.root), "module")

    (tree,) = other_worktrees(opened(repo.root / "module").common_dir)

    assert (tree.root, tree.branches) == (raw(repo.root / "module"), frozenset({b"refs/heads/main"}))
