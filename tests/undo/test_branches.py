"""Undo of git state where the user has gone on: groups, pushes, stashes, other work trees, other branches."""

from __future__ import annotations

import pytest

from tests.support.repo import NINE_LINES, RepoBuilder
from tests.support.state import reflogs_of


def test_user_committed_on_top(repo: RepoBuilder) -> None:
    """Refs and index stay, the files are reversed in the work tree, the commits are named.

    Rule (c): the user committed on top.
    """
    repo.agent_runs("echo agent >b.txt; git commit -qam agent")
    with repo.user():
        repo.commit("user", mine_txt="mine\n")
    head = repo.head()

    done = repo.undo(code=3)

    assert (repo.head(), repo.branch()) == (head, "main")
    assert (repo.read("b.txt"), repo.read("mine.txt")) == ("b\n", "mine\n")
    assert "revert" in done.out


def test_users_later_commit_of_other_work(repo: RepoBuilder) -> None:
    """An uncommitted change of the agent goes, the user's commit stays on its branch.

    Rule: refs equal to before are not touched.
    """
    repo.agent_runs("echo agent >b.txt")
    with repo.user():
        repo.write("z.txt", "z\n")
        repo.git("add", "z.txt")
        repo.git("commit", "-qm", "user", "z.txt")
    head = repo.head()

    repo.undo()

    assert (repo.head(), repo.read("b.txt"), repo.read("z.txt")) == (head, "b\n", "z\n")


def test_branch_only_moved_back_though_files_are_kept(repo: RepoBuilder) -> None:
    """The agent's commit is taken off even if one of its files must stay. Rule (a): a branch moved back applies anyway."""
    head = repo.head()
    repo.agent_runs("echo agent >b.txt; echo agent >a.txt; git commit -qam agent")
    with repo.user():
        repo.write("b.txt", "user\n")

    done = repo.undo(code=3)

    assert (repo.head(), repo.read("b.txt"), repo.read("a.txt")) == (head, "user\n", NINE_LINES)
    assert done.paths("kept") == ["b.txt"]


def test_branch_switch_that_cannot_be_undone_whole_stays(repo: RepoBuilder) -> None:
    """If one differing path is the user's, HEAD and all differing paths stay. Rule (b): a branch switch only whole."""
    repo.sh("git checkout -q -b other; echo O >b.txt; echo O >src/app.py; git commit -qam o; git checkout -q main")
    repo.agent_runs("git checkout -q other")
    with repo.user():
        repo.write("b.txt", "user\n")

    repo.undo(code=3)

    assert (repo.branch(), repo.read("b.txt"), repo.read("src/app.py")) == ("other", "user\n", "O\n")


def test_user_has_switched_branches_since(repo: RepoBuilder) -> None:
    """A path equal to the new HEAD's entry belongs to that branch.

    Rule: HEAD moved by the user, path equal to HEAD or absent in both.
    """
    repo.sh("git checkout -q -b bare; git rm -q b.txt; echo B >src/app.py; git commit -qam bare; git checkout -q main")
    repo.agent_runs("rm b.txt; echo agent >src/app.py; echo agent >>a.txt")
    with repo.user():
        repo.sh("git stash -q; git checkout -q bare")

    repo.run("undo", "--json")

    assert (repo.branch(), repo.exists("b.txt"), repo.read("src/app.py"), repo.status()) == ("bare", False, "B\n", "")


def test_users_rebase_moved_on(repo: RepoBuilder) -> None:
    """A rebase that the agent started and the user advanced stays. Rule (d): in-progress state only if equal to base as a set."""
    repo.sh("git checkout -q -b o; echo O >b.txt; git commit -qam o1; echo O2 >a.txt; git commit -qam o2; git checkout -q main")
    repo.sh("echo M >b.txt; echo M >a.txt; git commit -qam m; git checkout -q o")
    repo.agent_runs("git rebase -q main >/dev/null 2>&1 || true")
    with repo.user():
        repo.sh("echo solved >b.txt; git add b.txt; GIT_EDITOR=true git rebase --continue >/dev/null 2>&1 || true")
    before = repo.picture()
    assert repo.exists(".git/rebase-merge")

    repo.undo(code=3)

    assert repo.exists(".git/rebase-merge")
    assert before.repositories[b""]["in progress"] == repo.picture().repositories[b""]["in progress"]
    assert before.repositories[b""]["HEAD"] == repo.picture().repositories[b""]["HEAD"]


def test_rebase_whose_plan_the_user_edited_stays(repo: RepoBuilder) -> None:
    """Edited to-do lines of a rebase that the agent started are the user's, though HEAD has not moved. Rule (d): as a set."""
    repo.sh("git checkout -q -b o; echo O >b.txt; git commit -qam o1; echo O2 >a.txt; git commit -qam o2; git checkout -q main")
    repo.sh("echo M >b.txt; git commit -qam m; git checkout -q o")
    repo.agent_runs("git rebase -q main >/dev/null 2>&1 || true")
    with repo.user():
        repo.append(".git/rebase-merge/git-rebase-todo", "exec true\n")

    repo.undo(code=3)

    assert repo.read(".git/rebase-merge/git-rebase-todo").endswith("exec true\n")
    assert repo.branch() == ""


def test_pushed_commit_stays(repo: RepoBuilder) -> None:
    """A commit that a remote has is not taken off; revert is offered. Rule: contained in a remote-tracking ref."""
    repo.sh("git init -q --bare ../remote; git remote add origin ../remote; git push -q -u origin main")
    repo.agent_runs("echo agent >b.txt; git commit -qam agent; git push -q")
    head = repo.head()

    done = repo.undo(code=3)

    assert repo.head() == head
    assert repo.git("rev-parse", "origin/main") == head
    assert "revert" in done.out


@pytest.mark.parametrize("script", ["git push -q ../remote HEAD:main", "cd . && git -c a.b=c push --atomic ../remote main"])
def test_commit_pushed_by_url_stays(repo: RepoBuilder, script: str) -> None:
    """No remote-tracking ref tells of a push by URL; the command that pushed does. Rule: a push seen."""
    repo.sh("git init -q --bare ../remote")
    with repo.turn():
        for command in ("echo agent >b.txt; git commit -qam agent", script):
            with repo.call(command):
                repo.sh(command)
    head = repo.head()

    done = repo.undo(code=3)

    assert repo.head() == head and "revert" in done.out


@pytest.mark.parametrize("script", ["git push --dry-run ../remote main", "echo git pushes", "git stash push"])
def test_what_is_no_push_keeps_nothing(repo: RepoBuilder, script: str) -> None:
    """A dry run, or a text that only sounds like it, is no push."""
    repo.sh("git init -q --bare ../remote")
    base = repo.head()
    with repo.turn():
        for command in ("echo agent >b.txt; git commit -qam agent", script):
            with repo.call(command):
                repo.sh(command)

    repo.undo()
    assert repo.head() == base


def test_users_fetch_during_the_call_stays(repo: RepoBuilder) -> None:
    """Remote-tracking refs are never the agent's. Rule: never undone: refs/remotes, FETCH_HEAD, shallow."""
    repo.sh(
        "git clone -q . ../remote; git remote add origin ../remote; git fetch -q; "
        "cd ../remote; git commit -q --allow-empty -m theirs"
    )
    with repo.agent():
        repo.write("b.txt", "agent\n")
        repo.git("fetch", "-q")
    fetched, last = repo.git("rev-parse", "origin/main"), repo.read(".git/FETCH_HEAD")

    repo.undo()

    assert repo.git("rev-parse", "origin/main") == fetched
    assert repo.read(".git/FETCH_HEAD") == last
    assert repo.read("b.txt") == "b\n"


@pytest.mark.parametrize("then", ["true", "git checkout -q main"])
def test_branch_that_the_user_took_over_stays(repo: RepoBuilder, then: str) -> None:
    """A branch of the agent's with a commit of the user's on it is kept. Rule: ours differs from base: never moved or deleted."""
    repo.agent_runs("git branch helper")
    with repo.user():
        repo.sh("git checkout -q helper; echo mine >mine; git add mine; git commit -qm mine")
    head = repo.head()
    repo.sh(then)

    repo.undo(code=3)

    assert repo.git("rev-parse", "helper") == head


def test_branch_checked_out_since_is_not_deleted(repo: RepoBuilder) -> None:
    """HEAD is never left on a branch that undo deleted. Rule: a ref checked out anywhere stays."""
    repo.agent_runs("git branch helper; echo agent >b.txt")
    with repo.user():
        repo.git("checkout", "-q", "helper")

    repo.run("undo", "--json")

    assert repo.git("rev-parse", "--verify", "helper") == repo.head()
    assert (repo.branch(), repo.read("b.txt")) == ("helper", "b\n")


def test_commit_on_a_branch_that_another_work_tree_shares_stays(repo: RepoBuilder) -> None:
    """The checked-out branch does not move under a second work tree. Rule: a ref checked out elsewhere is never touched."""
    repo.agent_runs("echo agent >b.txt; git commit -qam agent")
    with repo.user():
        repo.git("worktree", "add", "-q", "-f", "../wt", "main")
    head = repo.head()

    repo.undo(code=3)

    assert (repo.head(), repo.read("b.txt")) == (head, "b\n")
    assert repo.git("status", "--porcelain", cwd=repo.root.parent / "wt") == ""


def test_branch_checked_out_in_another_work_tree_stays(repo: RepoBuilder) -> None:
    """A branch of the agent's that another work tree uses now is kept. Rule: a ref checked out elsewhere is never touched."""
    repo.agent_runs("git branch helper; echo agent >b.txt")
    with repo.user():
        repo.git("worktree", "add", "-q", "../wt", "helper")

    repo.undo(code=3)

    assert repo.git("rev-parse", "--abbrev-ref", "HEAD", cwd=repo.root.parent / "wt") == "helper"
    assert repo.git("rev-parse", "--verify", "helper") == repo.head()
    assert repo.read("b.txt") == "b\n"


def test_commit_made_in_another_work_tree_meanwhile_stays(repo: RepoBuilder) -> None:
    """What the user commits in another work tree during the call is not undone.

    Rule: refs checked out elsewhere are never the agent's.
    """
    repo.git("worktree", "add", "-q", "../wt", "-b", "side")
    wt = repo.root.parent / "wt"
    with repo.agent():
        repo.write("b.txt", "agent\n")
        repo.sh("echo user >u; git add u; git commit -qm user", cwd=wt)
    side = repo.git("rev-parse", "side")

    repo.undo()

    assert (repo.git("rev-parse", "side"), repo.git("status", "--porcelain", cwd=wt)) == (side, "")
    assert repo.read("b.txt") == "b\n"


def test_turn_in_a_linked_work_tree(repo: RepoBuilder) -> None:
    """A turn in a linked work tree is undone there; the main one, dirty in its own way, is untouched.

    Rule: a workspace is a work tree.
    """
    repo.git("worktree", "add", "-q", "../wt", "-b", "side")
    repo.write("b.txt", "dirty main\n")
    wt = RepoBuilder(repo.root.parent / "wt", repo.env, init=False)
    wt.write("a.txt", "staged\n")
    wt.git("add", "a.txt")
    wt.write("notes", "n\n")
    before, main = wt.picture(), repo.picture()
    wt.agent_runs("echo agent >>a.txt; rm notes b.txt; git commit -qam agent; echo n >n")

    wt.undo()

    wt.assert_is(before)
    repo.assert_is(main)


def test_stash_entry_of_the_main_work_tree_popped_in_a_linked_one(repo: RepoBuilder) -> None:
    """The shared stash gets its entry back, the main work tree is untouched. Rule: dropped entries are re-inserted."""
    repo.sh("echo main >>a.txt; git stash push -q -m mine; git worktree add -q ../wt -b side; echo dirty >b.txt")
    wt = RepoBuilder(repo.root.parent / "wt", repo.env, init=False)
    before, main = wt.picture(), repo.picture()
    wt.agent_runs("git stash pop -q; git checkout -q -- a.txt")

    wt.undo()

    wt.assert_is(before)
    repo.assert_is(main)


def test_users_stash_of_another_work_tree_meanwhile_stays(repo: RepoBuilder) -> None:
    """A stash made elsewhere during the call is the user's.

    Rule: a stash entry is the agent's only if its parent was this HEAD.
    """
    repo.git("worktree", "add", "-q", "../wt", "-b", "side")
    wt = repo.root.parent / "wt"
    repo.sh("echo s >s; git add s; git commit -qm side", cwd=wt)
    with repo.agent():
        repo.write("b.txt", "agent\n")
        repo.sh("echo wip >s; git stash push -q -m users", cwd=wt)

    repo.undo()

    assert "users" in repo.git("stash", "list")
    assert repo.read("b.txt") == "b\n"


def test_users_stash_above_the_agents_stays(repo: RepoBuilder) -> None:
    """The agent's entry goes from below the user's newer one. Rule: the stash is a list keyed by commit id."""
    repo.write("a.txt", "wip\n")
    repo.agent_runs("git stash push -q -m agents")
    with repo.user():
        repo.sh("echo user >b.txt; git stash push -q -m users")
    users = repo.git("rev-parse", "stash@{0}")

    repo.undo()

    assert repo.git("stash", "list", "--format=%H") == users
    assert repo.read("a.txt") == "wip\n"


def test_stash_on_top_of_an_expired_list(repo: RepoBuilder) -> None:
    """A list whose log has expired left refs/stash alone; it is there again when the agent's entry is gone, and redo brings that back."""
    repo.sh("echo old >>a.txt; git stash -q; git reflog expire --expire=now refs/stash; echo wip >>a.txt")
    before = repo.picture()
    assert repo.git("stash", "list") == "" and repo.git("rev-parse", "refs/stash")
    repo.agent_runs("git stash -q")
    after = repo.picture()

    repo.undo()
    repo.assert_is(before)
    repo.redo()
    repo.assert_is(after)


def test_agent_stashed_and_user_popped(repo: RepoBuilder) -> None:
    """Nothing is left to do when the user popped the agent's stash. Rule: equal to theirs, nothing."""
    repo.write("a.txt", "wip\n")
    repo.agent_runs("git stash push -q")
    with repo.user():
        repo.git("stash", "pop", "-q")
    before = repo.picture()

    repo.run("undo", "--json")

    repo.assert_is(before)


def test_index_entries_of_the_user_stay(repo: RepoBuilder) -> None:
    """The agent's staging goes, the user's later staging of other paths stays. Rule: index per path, on a fresh reading."""
    repo.agent_runs("echo agent >a.txt; echo n >n.txt; git add -A")
    with repo.user():
        repo.sh("echo user >b.txt; git add b.txt; echo more >>b.txt")

    repo.undo()

    assert sorted(repo.status().splitlines()) == ["MM b.txt"]
    assert repo.git("show", ":b.txt") == "user"


def test_a_path_that_the_user_staged_anew_stays_staged(repo: RepoBuilder) -> None:
    """The user's version of what the agent had staged stays in the index. Rule: an entry group equal to base gets theirs, else stays."""
    repo.agent_runs("echo agent >a.txt; echo agent >b.txt; git add -A")
    with repo.user():
        repo.sh("echo user >b.txt; git add b.txt")

    repo.undo(code=3)

    assert (repo.git("show", ":b.txt"), repo.git("show", ":a.txt") + "\n") == ("user", NINE_LINES)


def test_undo_hides_no_edit_from_git(repo: RepoBuilder) -> None:
    """An edit in the second in which git wrote its index still shows. Rule: what the old index held racy gets no stat data."""
    repo.git("config", "core.trustctime", "false")
    repo.sh("echo n >n.txt; touch -d @1500000000 b.txt; git add b.txt n.txt")
    repo.agent_runs("git rm -q --cached n.txt")
    with repo.user():
        repo.sh("echo B >b.txt; touch -d @1500000000 b.txt .git/index")
    assert " M b.txt" in repo.git("--no-optional-locks", "status", "--porcelain").splitlines()

    repo.undo()

    assert repo.git("ls-files", "n.txt") == "n.txt"
    assert " M b.txt" in repo.status().splitlines()


def test_users_half_finished_staging_survives_the_agents_edit(repo: RepoBuilder) -> None:
    """Staged and unstaged versions of a file differ as before. Rule: index entry groups equal to base get theirs, others stay."""
    repo.sh("echo staged >b.txt; git add b.txt; echo unstaged >b.txt")
    before = repo.picture()
    repo.agent_writes("a.txt", "agent\n")

    repo.undo()

    repo.assert_is(before)


def test_undo_in_the_middle_of_the_users_merge(repo: RepoBuilder) -> None:
    """Files go back, the merge in progress stays as it is with its stages. Rule: groups equal to before are not touched."""
    repo.sh("git checkout -q -b o; echo O >b.txt; git commit -qam o; git checkout -q main; echo M >b.txt; git commit -qam m")
    repo.sh("git merge -q o >/dev/null || true; echo half >b.txt; echo wip >wip")
    before = repo.picture()
    repo.agent_runs("echo agent >b.txt; echo agent >a.txt")

    repo.undo()

    repo.assert_is(before)


def test_reflogs_only_grow(repo: RepoBuilder) -> None:
    """Undo appends to reflogs and rewrites nothing there. Rule: reflogs are append-only."""
    repo.agent_runs("echo agent >b.txt; git commit -qam agent; git checkout -q -b x")
    before = reflogs_of(repo.root)

    repo.undo()

    after = reflogs_of(repo.root)
    for name in (b"HEAD", b"refs/heads/main"):
        assert after[name].startswith(before[name])
        assert len(after[name]) > len(before[name])


@pytest.mark.parametrize("cut", ["git branch -qD other", "git reflog expire --expire=now --all", "rm -rf .git/logs/refs"])
def test_reflogs_that_were_cut_come_back(repo: RepoBuilder, cut: str) -> None:
    """What a log held before the agent cut or deleted it is in it again. Rule: a log that was cut is laid back."""
    repo.sh("git branch other; git branch -f other HEAD; echo 2 >b.txt; git commit -qam 2; git branch -qf other HEAD")
    before = reflogs_of(repo.root)
    repo.agent_runs(f"{cut}; echo agent >a.txt")

    repo.undo()

    after = reflogs_of(repo.root)
    for name in (b"HEAD", b"refs/heads/main", b"refs/heads/other"):
        assert after[name].startswith(before[name]), name


def test_git_identity_is_not_needed(repo: RepoBuilder) -> None:
    """Undo moves refs where git knows no name for the user, in a name of its own. Rule: our ref calls set a fixed committer."""
    repo.sh("git config user.useConfigOnly true; rm ../home/.gitconfig")
    head = repo.head()
    repo.env.update(GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@x", GIT_COMMITTER_NAME="A", GIT_COMMITTER_EMAIL="a@x")
    repo.agent_runs("echo agent >b.txt; git commit -qam agent")
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        del repo.env[name]

    repo.undo()

    assert repo.head() == head
    logs = reflogs_of(repo.root)
    assert all(b" git-safety <" in logs[name].splitlines()[-1] for name in (b"HEAD", b"refs/heads/main"))


def test_git_directory_made_meanwhile_is_not_replaced(repo: RepoBuilder) -> None:
    """The agent removed .git, the user began a new repository: theirs stays. Rule: a new .git that someone made: keep, say so."""
    repo.agent_runs("rm -rf .git")
    with repo.user():
        repo.sh("git init -q .; git add -A; git commit -qm anew")
    head = repo.head()

    done = repo.undo(code=3)

    assert repo.head() == head
    assert "git" in done.out


def test_history_restored_after_the_users_collection(repo: RepoBuilder) -> None:
    """Objects that the user's gc dropped come back before the refs and index that need them.

    Rule: missing objects first, as one pack.
    """
    repo.sh(
        "git checkout -q -b other; echo O >o; git add o; git commit -qm o; git checkout -q main; "
        "echo staged >b.txt; git add b.txt"
    )
    before = repo.picture()
    repo.agent_runs("git branch -qD other; git reset -q --hard")
    with repo.user():
        repo.sh("git reflog expire --expire=now --expire-unreachable=now --all; git gc -q --prune=now")

    repo.undo()

    repo.assert_is(before)
    repo.git("fsck", "--full", "--strict")


def test_users_newer_content_after_history_rewrite_stays(repo: RepoBuilder) -> None:
    """The user reset the file after the turn and collected: their newer content stays. Rule: neither base nor theirs: keep."""
    repo.sh("echo staged >b.txt; git add b.txt")
    repo.agent_runs("echo agent >b.txt")
    with repo.user():
        repo.sh("git commit -qm tmp; git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now")

    repo.undo(code=3)

    assert repo.read("b.txt") == "b\n"


@pytest.mark.parametrize("lock", ["index", "refs/heads/main", "HEAD"])
def test_what_another_git_holds_changes_nothing(repo: RepoBuilder, lock: str) -> None:
    """While another git holds the index or a ref, undo changes nothing and says so, then works. Rule: locks first, exit 1."""
    repo.agent_runs("echo agent >b.txt; git commit -qam agent")
    before = repo.picture()
    repo.write(f".git/{lock}.lock", "")

    done = repo.run("undo")

    repo.path(f".git/{lock}.lock").unlink()
    assert (done.code, "Error:" in done.err) == (1, True), done.text
    repo.assert_is(before)
    repo.undo()
    assert repo.read("b.txt") == "b\n"
