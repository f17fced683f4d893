"""What the user did, before, after or beside the agent, stays: the table of the undo rule, path by path."""

from __future__ import annotations

import os

import pytest

from tests.support.repo import NINE_LINES, RepoBuilder
from tests.support.store import blob_id, reachable

AGENT = NINE_LINES.replace("line 2\n", "agent 2\n")


def test_edit_of_other_lines_is_merged(repo: RepoBuilder) -> None:
    """The user's later change to a distant line stays, the agent's goes. Rule: text, three present, clean merge."""
    repo.agent_writes("a.txt", AGENT)
    with repo.user():
        repo.replace("a.txt", "line 8", "user 8")

    done = repo.undo()

    assert repo.read("a.txt") == NINE_LINES.replace("line 8", "user 8")
    assert done.paths("merged") == ["a.txt"]


def test_edit_of_the_same_lines_is_kept(repo: RepoBuilder) -> None:
    """A conflict keeps the user's file, and the old content can be taken. Rule: else keep ours, theirs stays reachable."""
    repo.agent_writes("a.txt", AGENT)
    with repo.user():
        repo.replace("a.txt", "agent 2", "user 2")
    kept = repo.read("a.txt")

    done = repo.undo(code=3)

    assert repo.read("a.txt") == kept
    assert done.paths("kept") == ["a.txt"]
    repo.must("restore", "--before", "t1", "a.txt")
    assert repo.read("a.txt") == NINE_LINES


def test_one_kept_file_does_not_keep_the_rest(repo: RepoBuilder) -> None:
    """Each path is decided alone. Rule: per path, not all or nothing."""
    with repo.agent():
        repo.write("a.txt", AGENT)
        repo.write("b.txt", "agent\n")
        repo.write("new", "n\n")
    with repo.user():
        repo.write("b.txt", "user\n")

    done = repo.undo(code=3)

    assert (repo.read("a.txt"), repo.read("b.txt"), repo.exists("new")) == (NINE_LINES, "user\n", False)
    assert (done.paths("restored"), done.paths("kept"), done.paths("removed")) == (["a.txt"], ["b.txt"], ["new"])


def test_user_already_put_it_back(repo: RepoBuilder) -> None:
    """A path that is as before already is not touched, mtime included. Rule: equal to theirs, nothing."""
    repo.agent_writes("a.txt", AGENT)
    with repo.user():
        os.utime(repo.write("a.txt", NINE_LINES), (1_000_000, 1_000_000))
    repo.write("other", "u")

    done = repo.run("undo", "--json")

    assert done.code in (0, 4)
    assert os.stat(repo.path("a.txt")).st_mtime == 1_000_000


@pytest.mark.parametrize("where", ["mine.txt", "src/mine.py", "fresh/deep/mine.md", "x.log", "cache/data"])
def test_users_new_file_stays(repo: RepoBuilder, where: str) -> None:
    """A file that the user made after the turn stays, ignored or not. Rule: the delta, never "make equal"."""
    repo.agent_runs("echo agent >a.txt; echo n >n")
    with repo.user():
        repo.write(where, "mine\n")

    repo.undo()

    assert repo.read(where) == "mine\n"
    assert (repo.read("a.txt"), repo.exists("n")) == (NINE_LINES, False)


def test_users_new_file_in_the_agents_folder_stays(repo: RepoBuilder) -> None:
    """A folder of the agent's that now holds the user's file stays, the agent's file in it goes. Rule: rmdir only."""
    repo.agent_runs("mkdir -p made/in; echo agent >made/in/f")
    with repo.user():
        repo.write("made/in/mine", "mine\n")

    repo.undo()

    assert repo.read("made/in/mine") == "mine\n"
    assert not repo.exists("made/in/f")


def test_users_later_edits_elsewhere_stay(repo: RepoBuilder) -> None:
    """Edits, deletions, modes and renames of other paths after the turn stay. Rule: the delta, never "make equal"."""
    repo.agent_runs("echo agent >a.txt")
    with repo.user():
        repo.write("b.txt", "user\n")
        repo.remove("src/app.py")
        repo.path("tool.sh").chmod(0o700)
        repo.path("src/lib/util.py").rename(repo.path("src/lib/moved.py"))

    repo.undo()

    assert repo.read("a.txt") == NINE_LINES
    assert (repo.read("b.txt"), repo.exists("src/app.py"), repo.mode("tool.sh")) == ("user\n", False, 0o700)
    assert (repo.exists("src/lib/util.py"), repo.exists("src/lib/moved.py")) == (False, True)


def test_users_deletion_before_the_turn_returns(repo: RepoBuilder) -> None:
    """A file the user had deleted and the agent brought back is deleted again. Rule: absent before is a state."""
    with repo.user():
        repo.remove("b.txt")
        repo.git("rm", "-q", "src/app.py")
    before = repo.picture()
    repo.agent_runs("git checkout -q HEAD -- b.txt src/app.py; echo agent >>a.txt")

    repo.undo()

    repo.assert_is(before)


def test_user_deleted_what_the_agent_edited(repo: RepoBuilder) -> None:
    """The user's deletion of an edited file stays. Rule: delete against modify never merges."""
    repo.agent_writes("a.txt", AGENT)
    with repo.user():
        repo.remove("a.txt")

    done = repo.undo(code=3)

    assert not repo.exists("a.txt")
    assert done.paths("kept") == ["a.txt"]


def test_user_edited_what_the_agent_made(repo: RepoBuilder) -> None:
    """A new file of the agent's that the user went on with stays whole. Rule: add against modify never merges."""
    repo.agent_writes("new.py", "agent\n" * 5)
    with repo.user():
        repo.append("new.py", "user\n")

    done = repo.undo(code=3)

    assert repo.read("new.py") == "agent\n" * 5 + "user\n"
    assert done.paths("kept") == ["new.py"]


def test_user_made_anew_what_the_agent_deleted(repo: RepoBuilder) -> None:
    """A file of the user's at a path the agent had cleared stays. Rule: create with NOREPLACE, else keep."""
    repo.agent_runs("rm b.txt")
    with repo.user():
        repo.write("b.txt", "user's own\n")

    done = repo.undo(code=3)

    assert repo.read("b.txt") == "user's own\n"
    assert done.paths("kept") == ["b.txt"]


def test_users_chmod_survives_an_undone_edit(repo: RepoBuilder) -> None:
    """Content goes back, the user's mode stays. Rule: content and mode are decided apart."""
    repo.agent_writes("b.txt", "agent\n")
    with repo.user():
        repo.path("b.txt").chmod(0o755)

    repo.undo()

    assert (repo.read("b.txt"), repo.mode("b.txt")) == ("b\n", 0o755)


def test_agents_chmod_is_undone_under_a_users_edit(repo: RepoBuilder) -> None:
    """The mode goes back, the user's content stays, and a mode alone rewrites nothing.

    Rule: content and mode are decided apart.
    """
    repo.agent_runs("chmod 700 b.txt")
    with repo.user():
        repo.write("b.txt", "user\n")
    inode = os.stat(repo.path("b.txt")).st_ino

    repo.undo()

    assert (repo.read("b.txt"), repo.mode("b.txt")) == ("user\n", 0o644)
    assert os.stat(repo.path("b.txt")).st_ino == inode


def test_link_targets_never_merge(repo: RepoBuilder) -> None:
    """A link that both retargeted keeps the user's target. Rule: symlink targets never merge."""
    repo.link("link", "a.txt")
    repo.agent_runs("ln -sfn b.txt link")
    with repo.user():
        repo.remove("link")
        repo.link("link", "tool.sh")

    done = repo.undo(code=3)

    assert os.readlink(repo.path("link")) == "tool.sh"
    assert done.paths("kept") == ["link"]


def test_binary_content_never_merges(repo: RepoBuilder) -> None:
    """Content with NUL bytes that both changed is the user's. Rule: only text merges."""
    lines = [b"%d\0\n" % number for number in range(20)]
    repo.write("bin", b"".join(lines))
    repo.agent_writes("bin", b"".join([b"agent\n", *lines[1:]]))
    with repo.user():
        repo.write("bin", b"".join([b"agent\n", *lines[1:-1], b"user\n"]))
    mine = repo.read_bytes("bin")

    done = repo.undo(code=3)

    assert repo.read_bytes("bin") == mine
    assert done.paths("kept") == ["bin"]


@pytest.mark.parametrize("kept_lines", [0, 4])
def test_no_merge_across_line_ends(repo: RepoBuilder, kept_lines: int) -> None:
    """A file whose line ends the user converted, all or most, is the user's. Rule: a merge needs the same dominant line ends."""
    repo.agent_writes("a.txt", AGENT)
    lines = AGENT.splitlines(keepends=True)
    mine = "".join(lines[:kept_lines]) + "".join(lines[kept_lines:]).replace("\n", "\r\n")
    with repo.user():
        repo.write("a.txt", mine)

    done = repo.undo(code=3)

    assert repo.read_bytes("a.txt") == mine.encode()
    assert done.paths("kept") == ["a.txt"]


def test_no_merge_driver_of_the_user_runs(repo: RepoBuilder) -> None:
    """A merge asks no driver and no conflict style of the configuration. Rule: merges run in the store's context."""
    repo.write(".gitattributes", "* merge=evil\n")
    repo.git("config", "merge.evil.driver", "touch ran; true")
    repo.git("config", "merge.conflictStyle", "diff3")
    repo.agent_writes("a.txt", AGENT)
    with repo.user():
        repo.replace("a.txt", "line 8", "user 8")

    repo.undo()

    assert repo.read("a.txt") == NINE_LINES.replace("line 8", "user 8")
    assert not repo.exists("ran")


def test_agent_renamed_and_user_went_on(repo: RepoBuilder) -> None:
    """The old name comes back, the edited new one stays, and it is said. Rule: rename: restore the old, keep the edited new."""
    repo.agent_runs("mv a.txt renamed.txt")
    with repo.user():
        repo.append("renamed.txt", "user\n")

    done = repo.undo(code=3)

    assert repo.read("a.txt") == NINE_LINES
    assert repo.read("renamed.txt") == NINE_LINES + "user\n"
    assert "renamed.txt" in done.paths("kept")


def test_file_under_a_swapped_folder_keeps_the_group(repo: RepoBuilder) -> None:
    """File made a folder by the agent, user's file put in it: both stay. Rule: a path and all under it are one group."""
    repo.agent_runs("rm b.txt; mkdir b.txt; echo agent >b.txt/in")
    with repo.user():
        repo.write("b.txt/mine", "mine\n")

    done = repo.undo(code=3)

    assert repo.read("b.txt/mine") == "mine\n"
    assert "b.txt" in " ".join(done.paths("kept"))


def test_parent_that_became_a_link_is_not_followed(repo: RepoBuilder) -> None:
    """Undo writes nothing through a link that stands where a folder stood. Rule: openat, O_NOFOLLOW, a linked parent keeps."""
    outside = repo.root.parent / "outside"
    outside.mkdir()
    (outside / "app.py").write_text("outside\n")
    repo.agent_runs("echo agent >src/app.py; rm src/lib/util.py")
    with repo.user():
        repo.path("src").rename(repo.path("src.real"))
        repo.link("src", str(outside))

    repo.undo(code=3)

    assert sorted(os.listdir(outside)) == ["app.py"]
    assert (outside / "app.py").read_text() == "outside\n"


def test_link_replaced_by_a_folder_never_deletes_through_it(repo: RepoBuilder) -> None:
    """The link to a folder outside is back and that folder untouched. Rule: removals before creations, links never followed."""
    outside = repo.root.parent / "outside"
    outside.mkdir()
    (outside / "logo").write_text("logo\n")
    repo.link("assets", str(outside))
    before = repo.picture()
    repo.agent_runs("rm assets; mkdir assets; echo agent >assets/logo; echo agent >assets/new")

    repo.undo()

    repo.assert_is(before)
    assert (sorted(os.listdir(outside)), (outside / "logo").read_text()) == (["logo"], "logo\n")


def test_hard_link_of_another_inode_is_not_written_through(repo: RepoBuilder) -> None:
    """The user's new inode under the old name is replaced, not written into.

    Rule: in place only for an inode shared throughout.
    """
    repo.write("h1", "both\n")
    os.link(repo.path("h1"), repo.path("h2"))
    repo.agent_runs("rm h1; echo agent >h1; ln h1 h3")
    with repo.user():
        os.link(repo.path("h1"), repo.path("mine"))

    repo.undo()

    assert (repo.read("h1"), repo.read("h2"), repo.exists("h3")) == ("both\n", "both\n", False)
    assert repo.read("mine") == "agent\n"


def test_hard_linked_pair_stays_one_file(repo: RepoBuilder) -> None:
    """What the agent wrote through one name goes back for both, also outside. Rule: one inode throughout is written in place."""
    outside = repo.root.parent / "outside"
    repo.write("h1", "both\n")
    os.link(repo.path("h1"), outside)
    repo.agent_runs("echo agent >h1")

    repo.undo()

    assert outside.read_text() == "both\n"
    assert os.path.samefile(repo.path("h1"), outside)


def test_users_clone_made_afterwards_stays(repo: RepoBuilder) -> None:
    """A repository that the user cloned inside stays with its git directory. Rule: the delta, never "make equal"."""
    repo.agent_runs("echo agent >a.txt")
    with repo.user():
        repo.sh("git clone -q . vendor; echo wip >vendor/wip")

    repo.undo()

    assert repo.read("a.txt") == NINE_LINES
    assert (repo.read("vendor/wip"), repo.exists("vendor/.git/HEAD")) == ("wip\n", True)


def test_data_under_an_ignore_rule_of_the_agent_stays(repo: RepoBuilder) -> None:
    """Undoing an ignore rule does not take what the user put under it. Rule: the delta, never "make equal"."""
    repo.agent_runs("echo data/ >>.gitignore; echo agent >a.txt")
    with repo.user():
        repo.write("data/big", "user's data\n")

    repo.undo()

    assert repo.read("data/big") == "user's data\n"
    assert "data/" not in repo.read(".gitignore")


@pytest.mark.parametrize("how", ["info/exclude", "core.excludesFile", "the XDG file"])
def test_privately_excluded_file_stays(repo: RepoBuilder, how: str) -> None:
    """What the user's private rules ignore counts as ignored: dependencies are not taken in. Rule: exclude files are handed over."""
    rules = "private.md\nnode_modules/\n"
    if how == "info/exclude":
        repo.write(".git/info/exclude", rules)
    elif how == "core.excludesFile":
        repo.write("../gi", rules)
        repo.git("config", "--global", "core.excludesFile", str(repo.root.parent / "gi"))
    else:
        repo.write("../home/.config/git/ignore", rules)
    repo.write("node_modules/m.js", "dependency\n")
    repo.agent_runs("echo agent >a.txt; echo agent >node_modules/m.js")
    repo.ledger.forgive(b"dependency\n")
    stored = reachable(repo.state)
    with repo.user():
        repo.write("private.md", "mine\n")

    repo.undo()

    assert (repo.read("private.md"), repo.read("a.txt")) == ("mine\n", NINE_LINES)
    assert repo.read("node_modules/m.js") == "agent\n"
    assert {blob_id(b"dependency\n"), blob_id(b"agent\n")} & stored == {blob_id(b"agent\n")}  # a.txt holds it too


def test_mtimes(repo: RepoBuilder) -> None:
    """What is put back gets a new mtime, what is left alone keeps its own. Rule: restored files now, others untouched."""
    long_ago = 1_000_000_000
    for path in ("a.txt", "b.txt", "src/app.py", "tool.sh"):
        os.utime(repo.path(path), (long_ago, long_ago))
    repo.agent_runs("echo agent >a.txt; touch -d @1000000000 a.txt")

    repo.undo()

    assert {path: os.stat(repo.path(path)).st_mtime == long_ago for path in ("a.txt", "b.txt", "src/app.py", "tool.sh")} == {
        "a.txt": False,
        "b.txt": True,
        "src/app.py": True,
        "tool.sh": True,
    }


def test_name_that_is_an_option(repo: RepoBuilder) -> None:
    """Paths that look like options are paths after ``--``. Rule: ``--`` and literal names everywhere."""
    for name in ("--help", "-n", "-rf"):
        repo.write(name, "mine\n")
    with repo.agent():
        for name in ("--help", "-n", "-rf"):
            repo.write(name, "agent\n")

    repo.undo("--", "--help", "-n")

    assert [repo.read(name) for name in ("--help", "-n", "-rf")] == ["mine\n", "mine\n", "agent\n"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_owner_of_a_replaced_file_stays(repo: RepoBuilder) -> None:
    """The displaced file's owner and extended attributes go to the one put back. Rule: owner, ACL and xattrs are copied."""
    os.chown(repo.path("b.txt"), 1234, 1235)
    try:
        os.setxattr(repo.path("b.txt"), "user.note", b"mine")
        marked = True
    except OSError:
        marked = False
    with repo.agent():
        repo.write("b.txt", "agent\n")

    repo.undo()

    seen = os.stat(repo.path("b.txt"))
    assert (repo.read("b.txt"), seen.st_uid, seen.st_gid) == ("b\n", 1234, 1235)
    assert not marked or os.getxattr(repo.path("b.txt"), "user.note") == b"mine"


def test_immutable_file_keeps_the_rest_going(repo: RepoBuilder) -> None:
    """A file that cannot be replaced is kept and named, the rest is undone. Rule: EPERM and the like: kept, exit 3."""
    repo.mkdir("locked")
    repo.write("locked/f", "mine\n")
    with repo.agent():
        repo.write("locked/f", "agent\n")
        repo.write("a.txt", "agent\n")
    if os.geteuid() == 0:
        try:
            repo.sh("chattr +i locked/f")
        except AssertionError:
            pytest.skip("no immutable flag on this file system")
    else:
        repo.path("locked").chmod(0o555)
    try:
        done = repo.undo(code=3)
    finally:
        repo.sh("chattr -i locked/f" if os.geteuid() == 0 else "chmod 755 locked")

    assert (repo.read("a.txt"), repo.read("locked/f")) == (NINE_LINES, "agent\n")
    assert done.paths("kept") == ["locked/f"]
