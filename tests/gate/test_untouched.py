"""What a gate run must leave alone, and names that must not slip through ([gate] A3, A4, A5)."""

from __future__ import annotations

import os

import pytest

from safety.gate.privateindex import cached_tree, private_index
from safety.plumbing.repo import open_repository
from safety.plumbing.run import Git
from tests.gate.conftest import GateKit, ids
from tests.support.repo import RepoBuilder

NAMES = '{"files": ""} for f in "$@"; do printf "<%s>" "$f" >> .git/names; done'


def test_index_and_head_stay_as_they_are(runner: GateKit) -> None:
    """With staged, unstaged and untracked work about, the index keeps its bytes and the git directory its files."""
    repo = runner.repo
    runner.checks(look="{} git diff --quiet; git status -s > /dev/null; exit 1")
    repo.write("b.txt", "staged\n")
    repo.git("add", "b.txt")
    repo.write("b.txt", "staged and edited\n")
    repo.write("a.txt", "agent\n")
    repo.write("new.txt", "agent\n")
    repo.git("add", "-N", "new.txt")
    before, work = runner.picture(), repo.picture()
    assert runner.run("a.txt", "new.txt").status == "failed"
    assert runner.picture() == before
    assert not [path for path in repo.root.rglob("*") if "safety-gate" in path.name]
    repo.assert_is(work)
    assert not runner.stashed()


def test_a_check_sees_the_agents_files_as_staged(runner: GateKit) -> None:
    """Staged, to a check, is what the agent did: not what the user has staged, and new files are in it."""
    repo = runner.repo
    runner.checks(
        staged='{"always_run": true} git diff --cached --name-status > .git/staged; git ls-files -s a.txt >> .git/staged'
    )
    repo.write("b.txt", "the user's\n")
    repo.git("add", "b.txt")
    repo.write("new.txt", "agent's\n")
    repo.remove("a.txt")
    assert runner.run("new.txt", deleted=[b"a.txt"]).status == "passed"
    assert repo.read(".git/staged") == "D\ta.txt\nA\tnew.txt\n"


def dirty(gate: GateKit) -> str:
    """What git, asked with a private index, has to read again."""
    git, repository = Git(gate.env), open_repository(os.fsencode(gate.repo.root))
    assert repository is not None
    with private_index(git, repository, [b"a.txt"], []) as index:
        env = {"GIT_INDEX_FILE": os.path.join(os.fsdecode(repository.root), os.fsdecode(index))}
        return git.user(repository.root, ["diff-files", "--name-only"], extra_env=env).stdout.decode()


@pytest.mark.parametrize("staged", [False, True])
def test_stat_data_is_kept(gate: GateKit, staged: bool) -> None:
    """git need not read again what it knew: without stat data each ``git diff`` of a runner's would read all files."""
    repo = gate.repo
    if staged:
        repo.write("b.txt", "staged\n")
        repo.git("add", "b.txt")
    repo.write("a.txt", "agent\n")
    assert dirty(gate) == ("b.txt\n" if staged else "")


def test_a_change_within_the_indexs_own_tick_is_seen(gate: GateKit) -> None:
    """A file that changed right after git looked, its size and time the same, is not taken for unchanged."""
    repo = gate.repo
    repo.git("config", "core.trustctime", "false")
    os.utime(repo.write("b.txt", "one\n"), (1e9, 1e9))
    repo.commit("one")
    os.utime(repo.path(".git/index"), (1e9, 1e9))
    os.utime(repo.write("b.txt", "two\n"), (1e9, 1e9))
    assert dirty(gate) == "b.txt\n"


def test_git_add_in_a_check_stays_out_of_the_index(runner: GateKit) -> None:
    """A check that stages what it finds stages it in our index only."""
    runner.checks(add="{} git add -A")
    runner.repo.write("user.txt", "unstaged\n")
    runner.repo.write("a.txt", "agent\n")
    before = runner.picture()
    assert runner.run("a.txt").status == "passed"
    assert runner.picture() == before


NESTED = """{} mkdir ../nested && cd ../nested && git init -q . && echo x > x && git add x &&
git -c user.name=n -c user.email=n@n commit -qm nested && test "$(git ls-files)" = x"""


def test_a_check_may_make_a_repository_of_its_own(runner: GateKit) -> None:
    """A test suite with git fixtures works, and writes neither into our index nor into the user's configuration."""
    runner.checks(nested=NESTED)
    before = runner.picture()
    assert runner.run("a.txt").status == "passed"
    assert runner.picture() == before
    assert not runner.repo.git("config", "--get", "core.worktree", check=False)


def test_the_environment_of_a_check(runner: GateKit) -> None:
    """Nothing of git's is inherited but where the user keeps the configuration; the index is named relative to the root."""
    runner.checks(env="{} env | grep ^GIT_ | sort > .git/env; pwd -P >> .git/env; read x || echo no input >> .git/env")
    runner.env.update(GIT_DIR="/nowhere", GIT_WORK_TREE="/nowhere", GIT_AUTHOR_NAME="x", GIT_PREFIX="src/")
    assert runner.run("a.txt").status == "passed"
    lines = runner.repo.read(".git/env").splitlines()
    assert "GIT_INDEX_FILE=.git/safety-gate.index" in lines and "GIT_TERMINAL_PROMPT=0" in lines and "GIT_EDITOR=true" in lines
    assert not [line for line in lines if line.startswith(("GIT_DIR", "GIT_WORK_TREE", "GIT_AUTHOR", "GIT_PREFIX"))]
    assert lines[-2:] == [os.path.realpath(runner.repo.root), "no input"]


def test_linked_work_tree(runner: GateKit) -> None:
    """In a linked work tree the check sees that tree's files, and both indexes stay."""
    repo = runner.repo
    runner.checks(staged="{} git diff --cached --name-only > ../staged")
    repo.git("worktree", "add", "-q", "../linked")
    linked = repo.root.parent / "linked"
    (linked / "new.txt").write_text("x\n")
    before = runner.picture()
    assert runner.run("new.txt", root=linked).status == "passed"
    assert (repo.root.parent / "staged").read_text() == "new.txt\n"
    assert runner.picture() == before
    assert repo.git("status", "--porcelain", cwd=linked) == "?? new.txt"


def test_before_the_first_commit(empty_repo: RepoBuilder, runner: GateKit) -> None:
    """Without any commit the agent's files are all there is."""
    repo = runner.repo
    runner.checks(staged="{} git diff --cached --name-only > .git/staged")
    repo.git("update-ref", "-d", "HEAD")
    repo.write("new.txt", "x\n")
    assert runner.run("new.txt").status == "passed"
    assert repo.read(".git/staged") == "new.txt\n"


def test_unmerged_index(runner: GateKit) -> None:
    """During a merge with conflicts the checks run on the files as they are, and the conflict stays."""
    repo = runner.repo
    runner.checks(markers='{} ! grep -l "^<<<<<<<" "$@"')
    repo.git("checkout", "-q", "-b", "other")
    repo.commit("other", b_txt="other\n")
    repo.git("checkout", "-q", "main")
    repo.commit("main", b_txt="main\n")
    repo.git("merge", "other", check=False)
    before = runner.picture()
    assert runner.run("b.txt").status == "failed"
    assert runner.picture() == before
    assert repo.status() == "UU b.txt"


def test_odd_names_are_checked(runner: GateKit) -> None:
    """Names with blanks, line ends, quotes and letters of the world reach the check as they are."""
    names = ["sp ace.txt", "new\nline.txt", "ü☃.txt", "q'u\"o`t$e.txt", "src/back\\slash.txt", ":colon.txt", "[b]*.txt"]
    runner.checks(names=NAMES)
    for name in names:
        runner.repo.write(name, "x\n")
    assert runner.run(*names).status == "passed"
    found = runner.repo.read(".git/names")
    assert sorted(found.removeprefix("<").removesuffix(">").split("><")) == sorted(names)


@pytest.mark.parametrize("name", [b"-dash.txt", b"--help", b"--config=x.txt"])
def test_a_new_name_that_reads_as_an_option_fails(runner: GateKit, name: bytes) -> None:
    """A new file whose name reads as an option never passes unchecked: its name is the failure."""
    runner.checks(names=NAMES)
    runner.repo.write(name, "x\n")
    result = runner.run(name, "a.txt")
    assert (result.status, ids(result), result.goes_back) == ("failed", ["file-name"], True)
    assert runner.repo.read(".git/names") == "<a.txt>"


def test_an_old_name_that_reads_as_an_option_is_checked(runner: GateKit) -> None:
    """One that the user has is checked as a commit would, with a notice."""
    runner.checks(names=NAMES)
    runner.repo.write(b"-dash.txt", "x\n")
    result = runner.run("-dash.txt", before={"-dash.txt": "y\n"})
    assert result.status == "passed"
    assert runner.repo.read(".git/names") == "<-dash.txt>"
    assert [text for text in result.skipped if text.startswith("-dash.txt")]


def test_a_name_that_is_not_utf8(runner: GateKit) -> None:
    """Neither runner takes it: a new one fails, an old one is told, and the other files are checked."""
    runner.checks(names=NAMES)
    runner.repo.write(b"b\xe9.txt", "x\n")
    assert ids(runner.run(b"b\xe9.txt", "a.txt")) == ["file-name"]
    result = runner.run(b"b\xe9.txt", "a.txt", before={os.fsdecode(b"b\xe9.txt"): "y\n"})
    assert result.status == "passed" and "not checked" in result.skipped[0]
    assert runner.repo.read(".git/names") == "<a.txt><a.txt>"


def test_an_empty_list_never_means_what_is_staged(runner: GateKit) -> None:
    """When no file can be named, the runner does not turn to what the user has staged."""
    runner.checks(names=NAMES)
    runner.repo.write("b.txt", "staged\n")
    runner.repo.git("add", "b.txt")
    runner.repo.write("b.txt", "and edited\n")
    runner.repo.write("-dash.txt", "x\n")
    assert runner.run("-dash.txt").status == "failed"
    assert not runner.repo.exists(".git/names") and not runner.stashed()


def test_a_fix_in_a_submodule_is_seen(runner: GateKit) -> None:
    """Both runners pass a check that changed a file of a submodule; our own hashes see it."""
    repo = runner.repo
    repo.git("init", "-q", "sub")
    repo.write("sub/inside.txt", "x   \n")
    repo.git("add", "-A", cwd=repo.root / "sub")
    repo.git("commit", "-qm", "inside", cwd=repo.root / "sub")
    repo.git("submodule", "add", "-q", "./sub", "sub", check=False)
    runner.checks(strip='{} sed -i "s/ *$//" "$@"')
    result = runner.run("sub/inside.txt")
    assert (result.status, result.fixed) == ("passed_with_fixes", (b"sub/inside.txt",))


def test_a_parents_configuration_is_not_ours(runner: GateKit) -> None:
    """A repository inside of one with checks has none of its own."""
    runner.checks(mark="{} touch ran; exit 1")
    runner.repo.git("init", "-q", "inner")
    runner.repo.write("inner/x.txt", "x\n")
    result = runner.run("x.txt", root=runner.repo.root / "inner")
    assert (result.status, result.blocks_commit) == ("not_configured", False)


def test_files_of_a_subfolder(runner: GateKit) -> None:
    """A file below the root is checked by its name from the root, wherever this process stands."""
    runner.checks(names=NAMES)
    kept = os.getcwd()
    os.chdir(runner.repo.root / "src")
    try:
        assert runner.run("src/app.py").status == "passed"
    finally:
        os.chdir(kept)
    assert runner.repo.read(".git/names") == "<src/app.py>"


def test_more_names_than_the_system_takes(gate: GateKit) -> None:
    """40,000 names go in parts; each is checked."""
    gate.backend, runner = "pre-commit", gate
    runner.checks(count='{"files": "", "require_serial": false} echo "$#" >> .git/count')
    names = [f"{'deep/' * 9}{number:06d}.txt" for number in range(40_000)]
    runner.repo.write(f"{'deep/' * 9}x", "")
    folder = runner.repo.root / ("deep/" * 9)
    for number in range(40_000):
        (folder / f"{number:06d}.txt").touch()
    assert runner.run(*names, timeout_s=300).status == "passed"
    assert sum(int(line) for line in runner.repo.read(".git/count").split()) == 40_000


@pytest.mark.parametrize("split", [False, True])
def test_a_split_index(runner: GateKit, split: bool) -> None:
    """A split index is read, and neither changed nor joined by another, though the configuration asks for one."""
    runner.checks(staged="{} git diff --cached --name-only > .git/staged")
    if split:
        runner.repo.git("update-index", "--split-index")
    runner.repo.git("config", "core.splitIndex", "true")
    runner.repo.write("a.txt", "agent\n")
    shared = sorted(path.name for path in (runner.repo.root / ".git").glob("sharedindex.*"))
    assert runner.run("a.txt").status == "passed"
    assert runner.repo.read(".git/staged") == "a.txt\n"
    assert sorted(path.name for path in (runner.repo.root / ".git").glob("sharedindex.*")) == shared


def test_the_tree_that_an_index_tells(gate: GateKit) -> None:
    """The tree of an index is read from its end, whatever names stand in it; with anything staged there is none."""
    repo = gate.repo
    for version in ("2", "4"):
        repo.git("config", "index.version", version)
        for name in ("TREE", "zTREE\1\1\1\1TREE", "x/TREE/TREE"):
            repo.write(name, "x\n")
        repo.commit("names")
        tree = bytes.fromhex(repo.git("rev-parse", "HEAD^{tree}"))
        read = (repo.root / ".git/index").read_bytes
        assert cached_tree(read(), 20) == tree
        repo.write("a.txt", f"staged {version}\n")
        repo.git("add", "a.txt")
        assert cached_tree(read(), 20) is None
        repo.git("reset", "-q")
    assert cached_tree(b"", 20) is None and cached_tree(b"TREE" * 9, 20) is None
