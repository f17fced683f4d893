"""Refs read out of files, and moved by git under its own locks."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from safety.plumbing.refs import (
    NULL_HEX,
    STASH_LOCKS,
    RefLocked,
    RefMoved,
    RefRefused,
    RefTransaction,
    RefUpdate,
    StashEntry,
    commit_on_disk,
    is_in_progress,
    is_per_worktree,
    object_ids,
    parse_packed_refs,
    ref_text,
    set_head,
    split_df,
    view,
    view_on_disk,
    write_stash,
)
from safety.plumbing.run import Git
from tests.support.repo import RepoBuilder

MESSAGE = "git-safety: undo k3v9x2m4q7wd"


@pytest.fixture
def repo(tmp_path: Path, env: dict[str, str]) -> RepoBuilder:
    """Three commits on main, a branch and an annotated tag at the first one."""
    repo = RepoBuilder(tmp_path / "work", env)
    repo.commit("one", a="1\n")
    repo.git("branch", "side")
    repo.git("tag", "-am", "note", "v1")
    repo.commit("two", a="2\n")
    repo.commit("three", a="3\n")
    return repo


@pytest.fixture
def git(env: dict[str, str]) -> Git:
    return Git(env)


def root(repo: RepoBuilder) -> bytes:
    return os.fsencode(repo.root)


def git_dir(repo: RepoBuilder) -> bytes:
    return root(repo) + b"/.git"


def oid(repo: RepoBuilder, name: str) -> bytes:
    return repo.git("rev-parse", name).encode()


def all_refs(repo: RepoBuilder) -> dict[bytes, bytes]:
    """What git lists, symbolic refs left out."""
    lines = repo.git("for-each-ref", "--format=%(objectname) %(refname) %(symref)").splitlines()
    return {name.encode(): value.encode() for value, name, *target in map(str.split, lines) if not target}


def locks(repo: RepoBuilder) -> list[str]:
    return sorted(str(path.relative_to(repo.root / ".git")) for path in (repo.root / ".git").rglob("*.lock"))


def log(repo: RepoBuilder, ref: str) -> list[str]:
    return repo.git("reflog", "show", "--format=%gn <%ge> %gs", ref).splitlines()


# ---- reading ----------------------------------------------------------------------------------------------------------------


def test_view_says_what_git_says(repo: RepoBuilder) -> None:
    """Loose refs hide packed ones, peeled values and symbolic refs are told apart, HEAD is on its branch."""
    repo.git("pack-refs", "--all")
    repo.git("update-ref", "refs/heads/side", "main")
    repo.git("branch", "deep/er/branch", "v1^{commit}")
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    repo.git("update-ref", "refs/remotes/origin/main", "main")

    seen = view_on_disk(git_dir(repo), git_dir(repo))

    assert seen.head == b"ref: refs/heads/main"
    assert seen.branch == b"refs/heads/main"
    assert seen.commit == oid(repo, "HEAD")
    assert seen.refs == all_refs(repo)
    assert seen.symrefs == {b"refs/remotes/origin/HEAD": b"refs/remotes/origin/main"}
    assert seen.resolve(b"refs/remotes/origin/HEAD") == oid(repo, "main")
    assert seen.peeled == {b"refs/tags/v1": oid(repo, "v1^{commit}")}
    assert seen.broken == frozenset()
    assert seen.stash == ()
    assert seen.in_progress == {}


def test_view_of_a_detached_and_of_an_unborn_head(repo: RepoBuilder) -> None:
    """Detached: an id and no branch; unborn: a branch and no id."""
    repo.git("checkout", "-q", "--detach", "side")
    seen = view_on_disk(git_dir(repo), git_dir(repo))
    assert (seen.branch, seen.commit) == (None, oid(repo, "side"))

    repo.git("checkout", "-q", "--orphan", "new")
    seen = view_on_disk(git_dir(repo), git_dir(repo))
    assert (seen.branch, seen.commit) == (b"refs/heads/new", None)


def test_view_reads_the_stash_in_gits_order(repo: RepoBuilder) -> None:
    """Newest first, with the whole line of the log."""
    for number in range(3):
        repo.write("a", f"stash {number}\n")
        repo.git("stash", "push", "-qm", f"number {number}")

    seen = view_on_disk(git_dir(repo), git_dir(repo))

    assert [entry.oid for entry in seen.stash] == repo.git("stash", "list", "--format=%H").encode().split()
    assert seen.stash[0].line.endswith(b"\tOn main: number 2")


def test_view_reads_the_in_progress_state_and_nothing_else(repo: RepoBuilder) -> None:
    """A conflicted rebase shows its files; index, config and locks do not."""
    repo.git("checkout", "-q", "side")
    repo.commit("other", a="other\n")
    repo.git("rebase", "main", check=False)
    repo.write(".git/BISECT_LOG.lock", "")

    seen = view_on_disk(git_dir(repo), git_dir(repo))

    assert seen.in_progress[b"rebase-merge/head-name"] == b"refs/heads/side\n"
    assert {name.split(b"/")[0] for name in seen.in_progress} <= {
        *(b"rebase-merge", b"REBASE_HEAD", b"ORIG_HEAD", b"AUTO_MERGE", b"MERGE_MSG", b"MERGE_RR", b"CHERRY_PICK_HEAD")
    }
    assert b"REBASE_HEAD" in seen.in_progress


def test_view_does_not_stumble_over_odd_files(repo: RepoBuilder, tmp_path: Path) -> None:
    """Empty refs are broken, links are symbolic refs, FIFOs and locks are nothing, and none of it waits."""
    before = all_refs(repo)  # git itself hangs on a FIFO
    refs = repo.root / ".git/refs/heads"
    (refs / "empty").write_bytes(b"")
    (refs / "garbage").write_bytes(b"\xff\n")
    (refs / "old").symlink_to("refs/heads/main")
    (refs / "x.lock").write_bytes(oid(repo, "HEAD"))
    os.mkfifo(refs / "fifo")
    (repo.root / ".git/MERGE_HEAD").mkdir()
    os.mkfifo(repo.root / ".git/MERGE_MSG")

    seen = view_on_disk(git_dir(repo), git_dir(repo))

    assert seen.broken == {b"refs/heads/empty", b"refs/heads/garbage"}
    assert seen.symrefs == {b"refs/heads/old": b"refs/heads/main"}
    assert seen.refs == before
    assert seen.in_progress == {}


def test_view_of_a_linked_work_tree_joins_both_directories(repo: RepoBuilder, tmp_path: Path) -> None:
    """HEAD and refs/worktree are its own, branches are shared; the main one does not see the other's own refs."""
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"), "side")
    repo.git("update-ref", "refs/worktree/mine", "HEAD", cwd=tmp_path / "linked")
    own = os.fsencode(repo.git("rev-parse", "--absolute-git-dir", cwd=tmp_path / "linked"))

    linked = view_on_disk(own, git_dir(repo))
    main = view_on_disk(git_dir(repo), git_dir(repo))

    assert linked.branch == b"refs/heads/side"
    assert main.branch == b"refs/heads/main"
    assert linked.refs == {**main.refs, b"refs/worktree/mine": oid(repo, "side")}


def test_view_takes_files_from_anywhere() -> None:
    """Snapshot or disk: only names and a function that reads them."""
    one, two = b"1" * 40, b"2" * 40
    files = {
        b"HEAD": b"ref:  refs/heads/x \n",
        b"packed-refs": b"# pack-refs with: peeled\n" + one + b" refs/heads/x\n" + one + b" refs/tags/t\n^" + two + b"\n",
        b"refs/heads/x": two + b"\n",
        b"MERGE_HEAD": one + b"\n",
        b"index": b"DIRC",
    }

    seen = view(lambda name: files.get(name), files)

    assert (seen.head, seen.commit) == (b"ref: refs/heads/x", two)
    assert seen.refs == {b"refs/heads/x": two, b"refs/tags/t": one}
    assert seen.in_progress == {b"MERGE_HEAD": one + b"\n"}
    assert view(lambda name: None, []).head == b""


def test_object_ids_are_found_in_every_kind_of_text() -> None:
    """Whole ids only: neither parts of longer ones nor the null id."""
    one, two = b"ab" * 20, b"0123456789" * 4
    text = NULL_HEX + b" " + one + b" A <a@b> 1 +0000\tcheckout: moving from " + two + b" to x\n" + b"c" * 64 + b"\n^" + b"d" * 39

    assert object_ids(text) == {one, two}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"ref: refs/heads/x\n", b"ref: refs/heads/x"),
        (b"ref:refs/heads/x", b"ref: refs/heads/x"),
        (b"refs/heads/x", b"ref: refs/heads/x"),
        (b"a" * 40 + b"\tnot-for-merge\n", b"a" * 40),
        (b"", b""),
    ],
)
def test_text_of_a_ref_file(content: bytes, text: bytes) -> None:
    """One spelling for what git takes for the same."""
    assert ref_text(content) == text


def test_packed_refs_survive_odd_lines() -> None:
    """A file without header, with blank and broken lines, gives the refs git would."""
    one = b"1" * 40
    assert parse_packed_refs(b"\n^" + one + b"\nbroken\n" + one + b" refs/a b\n") == ({b"refs/a b": one}, {})


@pytest.mark.parametrize(
    ("name", "own", "unfinished"),
    [
        (b"HEAD", True, False),
        (b"logs/HEAD", True, False),
        (b"logs/refs/heads/x", False, False),
        (b"logs/refs/bisect/bad", True, False),
        (b"refs/heads/HEAD", False, False),
        (b"refs/worktree/x", True, False),
        (b"MERGE_HEAD", True, True),
        (b"MERGE_HEADS", True, False),
        (b"BISECT_LOG", True, True),
        (b"BISECT_LOG.lock", True, False),
        (b"rebase-apply/next", True, True),
        (b"sequencer/todo", True, True),
        (b"config", False, False),
        (b"config.worktree", True, False),
        (b"info/exclude", False, False),
        (b"info/sparse-checkout", True, False),
        (b"modules/x/HEAD", True, False),
    ],
)
def test_names_of_the_git_directory_are_sorted(name: bytes, own: bool, unfinished: bool) -> None:
    """Which belong to one work tree, and which are in-progress state."""
    assert (is_per_worktree(name), is_in_progress(name)) == (own, unfinished)


def test_per_worktree_names_are_where_git_looks_for_them(repo: RepoBuilder, tmp_path: Path) -> None:
    """Asked with ``rev-parse --git-path``, git puts each name into the same of the two directories."""
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"), "side")
    names = "HEAD index config packed-refs logs/HEAD logs/refs/stash refs/bisect/x MERGE_HEAD rebase-merge/x info/exclude"
    for name in (names + " modules/m hooks/x objects/pack shallow info/sparse-checkout").split():
        where = repo.git("rev-parse", "--git-path", name, cwd=tmp_path / "linked")
        assert ("/worktrees/" in where) == is_per_worktree(name.encode()), name


# ---- moving refs ------------------------------------------------------------------------------------------------------------


def test_transaction_moves_creates_deletes_and_logs(repo: RepoBuilder, git: Git) -> None:
    """All at once, the checked-out branch too; both logs say who did it, whatever identity the user has."""
    repo.git("config", "user.useConfigOnly", "true")
    first, last = oid(repo, "side"), oid(repo, "main")
    with RefTransaction(git, root(repo), MESSAGE) as transaction:
        transaction.update(b"refs/heads/main", first, last)
        transaction.update(b"refs/heads/new", last, NULL_HEX)
        transaction.delete(b"refs/heads/side", first)
        transaction.verify(b"refs/tags/v1", oid(repo, "v1"))
        transaction.verify(b"refs/heads/none", NULL_HEX)
        transaction.prepare()
        assert all_refs(repo)[b"refs/heads/main"] == last
        assert locks(repo)
        transaction.commit()

    assert all_refs(repo) == {b"refs/heads/main": first, b"refs/heads/new": last, b"refs/tags/v1": oid(repo, "v1")}
    assert locks(repo) == []
    assert log(repo, "main")[0] == log(repo, "HEAD")[0] == f"git-safety <git-safety@localhost> {MESSAGE}"


@pytest.mark.parametrize("leave", [lambda transaction: transaction.abort(), lambda transaction: None])
def test_transaction_left_without_commit_changes_nothing(
    repo: RepoBuilder, git: Git, leave: Callable[[RefTransaction], None]
) -> None:
    """Aborted, or just left: refs as before, no lock, and nothing more can be sent."""
    before = all_refs(repo)
    with RefTransaction(git, root(repo), MESSAGE) as transaction:
        transaction.extend([RefUpdate(b"refs/heads/main", oid(repo, "side"), oid(repo, "main"))])
        transaction.prepare()
        leave(transaction)

    assert all_refs(repo) == before
    assert locks(repo) == []
    transaction.abort()
    with pytest.raises(RefRefused):
        transaction.verify(b"refs/heads/main", NULL_HEX)


@pytest.mark.parametrize(
    ("ref", "old"),
    [(b"refs/heads/main", b"1" * 40), (b"refs/heads/main", NULL_HEX), (b"refs/heads/none", b"1" * 40)],
)
@pytest.mark.parametrize("packed", [False, True])
def test_ref_that_moved_is_named_and_nothing_changes(repo: RepoBuilder, git: Git, ref: bytes, old: bytes, packed: bool) -> None:
    """Elsewhere, there though it should not be, gone: RefMoved with its name; the other updates are not made."""
    if packed:
        repo.git("pack-refs", "--all")
    before = all_refs(repo)
    with RefTransaction(git, root(repo), MESSAGE) as transaction:
        transaction.update(b"refs/heads/side", oid(repo, "main"), oid(repo, "side"))
        transaction.update(ref, oid(repo, "side"), old)
        with pytest.raises(RefMoved) as caught:
            transaction.prepare()

    assert caught.value.ref == ref
    assert "\n" not in caught.value.message
    assert all_refs(repo) == before
    assert locks(repo) == []


@pytest.mark.parametrize(
    ("lock", "ref"), [("refs/heads/main", b"refs/heads/main"), ("HEAD", b"HEAD"), ("packed-refs", b"packed-refs")]
)
def test_held_lock_is_named(repo: RepoBuilder, git: Git, lock: str, ref: bytes) -> None:
    """Another git's lock of the ref, of HEAD (on the branch that moves) or of packed-refs: RefLocked, nothing changed."""
    repo.git("pack-refs", "--all")
    repo.git("config", "core.packedRefsTimeout", "0")
    before = all_refs(repo)
    held = repo.write(f".git/{lock}.lock", "")
    with RefTransaction(git, root(repo), MESSAGE) as transaction:
        transaction.update(b"refs/heads/main", oid(repo, "side"), oid(repo, "main"))
        transaction.delete(b"refs/heads/side", oid(repo, "side"))
        with pytest.raises(RefLocked) as caught:
            transaction.prepare()

    assert caught.value.ref == ref
    assert held.exists()
    held.unlink()
    assert all_refs(repo) == before
    assert locks(repo) == []


def test_missing_object_and_bad_name_are_refused(repo: RepoBuilder, git: Git) -> None:
    """Neither moved nor locked: refused, with the reason in one line."""
    said = []
    for ref, new in ((b"refs/heads/new", b"1" * 40), (b"refs/heads/a..b", oid(repo, "main"))):
        with RefTransaction(git, root(repo), MESSAGE) as transaction, pytest.raises(RefRefused) as refused:
            transaction.update(ref, new, NULL_HEX)
            transaction.prepare()
        assert type(refused.value) is RefRefused
        said.append(refused.value.message)

    assert "nonexistent object" in said[0] and "a..b" in said[1]
    for bad in (b"", b"refs/\0x"):
        with RefTransaction(git, root(repo), MESSAGE) as transaction, pytest.raises(ValueError):
            transaction.delete(bad, NULL_HEX)
    with pytest.raises(ValueError):
        RefTransaction(git, root(repo), "two\nlines")


def test_commit_without_prepare_compares_too(repo: RepoBuilder, git: Git) -> None:
    """A stale old value is found at the latest by commit."""
    with RefTransaction(git, root(repo), MESSAGE) as transaction:
        transaction.update(b"refs/heads/main", oid(repo, "side"), b"1" * 40)
        with pytest.raises(RefMoved):
            transaction.commit()


def test_many_refs_do_not_block(repo: RepoBuilder, git: Git) -> None:
    """More than a pipe holds, in both directions of a change."""
    head = oid(repo, "main")
    updates = [RefUpdate(b"refs/bulk/%04d" % number, head, NULL_HEX) for number in range(1500)]
    with RefTransaction(git, root(repo), MESSAGE) as transaction:
        transaction.extend(updates)
        transaction.prepare()
        transaction.commit()
    assert len(all_refs(repo)) == 1503

    with RefTransaction(git, root(repo), MESSAGE) as transaction:
        transaction.extend(RefUpdate(ref, old, new) for ref, new, old in updates)
        transaction.commit()
    assert len(all_refs(repo)) == 3


def test_symbolic_refs_are_replaced_not_followed(repo: RepoBuilder, git: Git) -> None:
    """Setting HEAD to an id detaches it and leaves the branch; a remote's HEAD does not move what it points at."""
    first, last = oid(repo, "side"), oid(repo, "main")
    repo.git("symbolic-ref", "refs/remotes/o/HEAD", "refs/heads/main")
    with RefTransaction(git, root(repo), MESSAGE) as transaction:
        transaction.update(b"HEAD", first, last)
        transaction.delete(b"refs/remotes/o/HEAD", last)
        transaction.prepare()
        transaction.commit()

    assert view_on_disk(git_dir(repo), git_dir(repo)).head == first
    assert oid(repo, "main") == last
    assert repo.git("for-each-ref", "refs/remotes") == ""


def test_no_hook_runs(repo: RepoBuilder, git: Git) -> None:
    """The user's reference-transaction hook is not for our calls."""
    hook = repo.write(".git/hooks/reference-transaction", "#!/bin/sh\ntouch ran\nexit 1\n", 0o755)
    with RefTransaction(git, root(repo), MESSAGE) as transaction:
        transaction.update(b"refs/heads/side", oid(repo, "main"), oid(repo, "side"))
        transaction.commit()
    set_head(git, root(repo), b"refs/heads/side", MESSAGE)

    assert hook.exists() and not repo.exists("ran") and not repo.exists(".git/ran")


KILLED = """
import os, sys
from safety.plumbing.refs import NULL_HEX, RefTransaction
from safety.plumbing.run import Git
transaction = RefTransaction(Git(dict(os.environ)), os.fsencode(sys.argv[1]), "killed")
transaction.update(b"refs/heads/main", sys.argv[2].encode(), sys.argv[3].encode())
transaction.update(b"refs/heads/new", sys.argv[2].encode(), NULL_HEX)
transaction.prepare()
print(transaction.process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd to wait for another's child")
def test_sigkill_of_ours_leaves_no_lock(repo: RepoBuilder) -> None:
    """Killed while the refs are locked: git sees the end of its input, gives the locks back and changes nothing."""
    before = all_refs(repo)
    project = Path(__file__).resolve().parents[2]
    argv = [sys.executable, "-c", KILLED, str(repo.root), oid(repo, "side").decode(), oid(repo, "main").decode()]
    env = {**repo.env, "PYTHONPATH": str(project)}
    with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ours:
        assert ours.stdout is not None
        child = os.pidfd_open(int(ours.stdout.readline()))
        try:
            assert "refs/heads/main.lock" in locks(repo)
            ours.send_signal(signal.SIGKILL)
            ended, _, _ = select.select([child], [], [], 30)
        finally:
            os.close(child)

    assert ended
    assert locks(repo) == []
    assert all_refs(repo) == before


# ---- names in each other's way ----------------------------------------------------------------------------------------------


def test_split_df_puts_first_what_is_in_the_way() -> None:
    """Only the deletions that must go first do; nothing to split is one batch; nothing at all is none."""
    one = b"1" * 40
    gone = RefUpdate(b"refs/heads/a", NULL_HEX, one)
    child = RefUpdate(b"refs/heads/a/b", one, NULL_HEX)
    other = RefUpdate(b"refs/heads/c", NULL_HEX, one)

    assert split_df([gone, other, child]) == [[gone], [other, child]]
    swapped = [RefUpdate(ref, old, new) for ref, new, old in (gone, other, child)]
    assert split_df(swapped) == [[swapped[2]], [swapped[0], swapped[1]]]
    assert split_df([gone, other]) == [[gone, other]]
    assert split_df([RefUpdate(b"refs/heads/ab", NULL_HEX, one), gone, RefUpdate(b"refs/heads/abc/d", one, NULL_HEX)])[1:] == []
    assert split_df([]) == []


@pytest.mark.parametrize("packed", [False, True])
def test_split_batches_are_accepted_by_git(repo: RepoBuilder, git: Git, packed: bool) -> None:
    """``side`` to ``side/x`` and back, which one transaction refuses."""
    if packed:
        repo.git("pack-refs", "--all")
    head = oid(repo, "side")
    there = [RefUpdate(b"refs/heads/side", NULL_HEX, head), RefUpdate(b"refs/heads/side/x", head, NULL_HEX)]
    with RefTransaction(git, root(repo), MESSAGE) as transaction, pytest.raises(RefRefused):
        transaction.extend(there)
        transaction.prepare()

    for updates in (there, [RefUpdate(ref, old, new) for ref, new, old in there]):
        for batch in split_df(updates):
            with RefTransaction(git, root(repo), MESSAGE) as transaction:
                transaction.extend(batch)
                transaction.prepare()
                transaction.commit()
        expected = {ref for ref, new, _ in updates if new != NULL_HEX}
        assert {name for name in all_refs(repo) if b"/side" in name} == expected


# ---- HEAD -------------------------------------------------------------------------------------------------------------------


def test_head_is_set_to_a_branch_an_unborn_one_and_an_id(repo: RepoBuilder, git: Git) -> None:
    """Its log gets the reason each time it moves to a commit; no branch moves."""
    before = all_refs(repo)
    for target in (b"refs/heads/side", oid(repo, "main"), b"refs/heads/unborn"):
        set_head(git, root(repo), target, MESSAGE)
        head = view_on_disk(git_dir(repo), git_dir(repo)).head
        assert head in (target, b"ref: " + target)

    assert all_refs(repo) == before
    set_head(git, root(repo), b"refs/heads/main", MESSAGE)
    assert [line.endswith(MESSAGE) for line in log(repo, "HEAD")][:3] == [True, True, True]


def test_head_that_is_locked_or_badly_aimed_is_refused(repo: RepoBuilder, git: Git) -> None:
    """A held HEAD.lock is RefLocked, a missing commit refused; HEAD stays."""
    repo.write(".git/HEAD.lock", "")
    with pytest.raises(RefLocked) as caught:
        set_head(git, root(repo), b"refs/heads/side", MESSAGE)
    repo.remove(".git/HEAD.lock")
    with pytest.raises(RefRefused):
        set_head(git, root(repo), b"1" * 40, MESSAGE)
    with pytest.raises(ValueError):
        set_head(git, root(repo), b"side", MESSAGE)

    assert caught.value.ref == b"HEAD"
    assert repo.branch() == "main"


# ---- the stash list ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def stashed(repo: RepoBuilder) -> RepoBuilder:
    """Four stashes of Dana's."""
    for number in range(4):
        repo.write("a", f"stash {number}\n")
        repo.git("stash", "push", "-qm", f"number {number}")
    return repo


def stash(repo: RepoBuilder) -> tuple[StashEntry, ...]:
    return view_on_disk(git_dir(repo), git_dir(repo)).stash


def shown(repo: RepoBuilder) -> list[str]:
    return repo.git("stash", "list", "--format=%H %gn %gs").splitlines()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("picked", [(0, 1, 3), (1, 2, 3), (3, 2, 1, 0), (2,), ()])
def test_stash_list_becomes_what_was_wanted(stashed: RepoBuilder, git: Git, picked: tuple[int, ...], packed: bool) -> None:
    """Entries dropped from the middle, from the top, reordered, all gone; the kept ones with identity and message."""
    if packed:
        stashed.git("pack-refs", "--all")
    before, lines = stash(stashed), shown(stashed)

    write_stash(git, root(stashed), git_dir(stashed), [before[at] for at in picked], before, MESSAGE)

    assert shown(stashed) == [lines[at] for at in picked]
    assert stashed.git("rev-parse", "-q", "--verify", "refs/stash", check=False) == "".join(lines[at][:40] for at in picked[:1])
    assert locks(stashed) == []
    assert stashed.git("fsck", "--no-dangling") == ""
    if picked:
        # Git goes on with the list: pops the top, pushes a new one.
        stashed.git("stash", "drop", "-q")
        stashed.write("a", "new\n")
        stashed.git("stash", "push", "-qm", "new")
        assert shown(stashed)[1:] == [lines[at] for at in picked[1:]]


def test_dropped_stash_comes_back_at_its_place(stashed: RepoBuilder, git: Git) -> None:
    """Dropped from the middle, put back between its neighbours; likewise into an empty list."""
    before, lines = stash(stashed), shown(stashed)
    stashed.git("stash", "drop", "-q", "stash@{2}")
    write_stash(git, root(stashed), git_dir(stashed), before, stash(stashed), MESSAGE)
    assert shown(stashed) == lines

    stashed.git("stash", "clear")
    write_stash(git, root(stashed), git_dir(stashed), before, (), MESSAGE)
    assert shown(stashed) == lines
    assert [entry.line for entry in stash(stashed)] == [entry.line for entry in before]


def test_stash_list_that_changed_is_left_alone(stashed: RepoBuilder, git: Git) -> None:
    """A stash the user made meanwhile: RefMoved, nothing written."""
    before = stash(stashed)
    stashed.write("a", "meanwhile\n")
    stashed.git("stash", "push", "-q")
    now = shown(stashed)

    for wanted in (before[1:], ()):
        with pytest.raises(RefMoved):
            write_stash(git, root(stashed), git_dir(stashed), wanted, before, MESSAGE)

    assert shown(stashed) == now
    assert locks(stashed) == []


@pytest.mark.parametrize("lock", STASH_LOCKS)
def test_locked_stash_list_is_left_alone(stashed: RepoBuilder, git: Git, lock: bytes) -> None:
    """Git at work on it: RefLocked, its lock untouched and none of ours left."""
    before, lines = stash(stashed), shown(stashed)
    held = stashed.write(b".git/" + lock, "held")

    with pytest.raises(RefLocked):
        write_stash(git, root(stashed), git_dir(stashed), before[1:], before, MESSAGE)

    assert held.read_text() == "held"
    assert locks(stashed) == [lock.decode()]
    assert shown(stashed) == lines


def test_stash_ref_that_disagrees_with_its_log_is_left_alone(stashed: RepoBuilder, git: Git) -> None:
    """refs/stash at a commit the log does not end with is not ours to repair."""
    before = stash(stashed)
    stashed.write(".git/refs/stash", before[1].oid + b"\n")

    with pytest.raises(RefMoved):
        write_stash(git, root(stashed), git_dir(stashed), before[1:], before, MESSAGE)
    with pytest.raises(ValueError):
        stashed.write(".git/refs/stash", before[0].oid + b"\n")
        write_stash(git, root(stashed), git_dir(stashed), [StashEntry(before[0].oid, before[1].line)], before, MESSAGE)
    assert locks(stashed) == []


@pytest.mark.parametrize(
    "change",
    [
        "true",
        "git pack-refs --all",
        "git pack-refs --all && git commit -qam more --allow-empty",
        "git checkout -q --detach side",
        "git checkout -q --orphan unborn",
        "git symbolic-ref refs/heads/a refs/heads/b && git symbolic-ref refs/heads/b refs/heads/side && git symbolic-ref HEAD refs/heads/a",
        "git pack-refs --all && echo broken > .git/refs/heads/main",
        "git symbolic-ref refs/heads/a refs/heads/a && git symbolic-ref HEAD refs/heads/a",
        "git symbolic-ref HEAD refs/heads/nowhere",
        "echo ref: refs/../config > .git/HEAD",
        "echo nonsense > .git/HEAD",
        "rm .git/HEAD",
        "rm .git/HEAD && mkdir .git/HEAD",
        "rm .git/HEAD && ln -s refs/heads/side .git/HEAD",
        "rm .git/refs/heads/main && mkdir .git/refs/heads/main",
        "mv .git/refs/heads/main .git/refs/heads/main.lock && echo ref: refs/heads/main.lock > .git/HEAD",
    ],
)
def test_the_commit_of_head_is_the_one_that_all_refs_tell(repo: RepoBuilder, change: str) -> None:
    """Reading only what HEAD names gives what reading everything gives."""
    repo.sh(change)
    place = root(repo) + b"/.git"
    assert commit_on_disk(place, place) == view_on_disk(place, place).commit
