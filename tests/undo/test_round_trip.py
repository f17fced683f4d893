"""Whatever the agent's shell does, undo gives the picture from before it and redo the one from after it, when nobody else acted.

One case a way of changing a workspace: ``setup`` makes the state, ``act`` is what the agent runs. ``rule`` names what breaks
first when the case fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.support.repo import RepoBuilder


@dataclass(frozen=True)
class Case:
    name: str
    rule: str
    act: str
    setup: str = ""
    redo: bool = True


ODD_NAMES = r"""
mkdir -p odd 'od d' && cd odd
for n in ' lead' 'trail ' '-rf' '--help' ':(glob)*' ':!x' '[a]' 'a' '*' '?' 'q"uote' "q'uote" 'back\slash' '$(x)' '~' '%41' \
    '%meta' '%fan' '%chunks' '%root' '%outside' 'é' '日本' '#' '.GIT' 'git~1' '.git ' '...' '0' '@' 'HEAD' 'index.lock'
do printf 'user %s\n' "$n" >"./$n"; done
printf 'nl' >"$(printf 'new\nline')"; printf 'tab' >"$(printf 'ta\tb')"
printf 'raw' >"$(printf 'raw\377\200')"; printf 'esc' >"$(printf '\033[31m')"
printf 'long' >"$(printf 'n%.0s' $(seq 1 255))"
"""

FILES = [
    Case("tracked_edit", "equal to base: theirs exactly", "echo agent >a.txt"),
    Case("untracked_edit", "untracked files are covered", "echo agent >notes", "echo mine >notes"),
    Case("untracked_delete", "untracked files are covered", "rm notes", "echo mine >notes"),
    Case("dirty_file_overwritten", "before is the disk, not HEAD", "git checkout -q -- a.txt", "echo dirty >>a.txt"),
    Case("new_file", "absent before: removed", "echo x >new.py"),
    Case(
        "new_file_in_new_folders",
        "folders that the agent made go with rmdir",
        "mkdir -p p/q/r src/x; echo x >p/q/r/f; echo y >src/x/f",
    ),
    Case("delete_tracked", "present before: created", "rm a.txt src/app.py"),
    Case("delete_tree", "needed parents are made with their modes", "rm -rf src", "chmod 750 src/lib"),
    Case("rename_tracked", "a rename is two paths", "mv a.txt renamed.txt"),
    Case("rename_directory", "a rename is two paths", "mv src moved"),
    Case("rename_swaps_two_files", "contents decide, not names", "mv a.txt t; mv b.txt a.txt; mv t b.txt"),
    Case("many_moved_onto_one", "each source comes back", "for f in a.txt b.txt tool.sh; do mv -f $f archive; done"),
    Case("executable_bit", "mode is decided apart from content", "chmod +x b.txt; chmod -x tool.sh"),
    Case(
        "private_modes",
        "full mode bits",
        "rm -f key gen; echo k >key; echo g >gen",
        "echo K >key; chmod 600 key; echo G >gen; chmod 444 gen",
    ),
    Case("special_mode_bits", "full mode bits", "chmod 755 tool.sh src", "chmod 4711 tool.sh; chmod 2770 src; sleep 1.1"),
    Case("closed_folder", "modes of directories come last", "chmod 755 src/lib; rm -rf src", "chmod 555 src/lib"),
    Case("folder_mode", "directories keep their modes", "chmod 700 src; chmod 711 src/lib"),
    Case("link_retargeted", "a link's target is its content", "ln -sfn b.txt link", "ln -s a.txt link"),
    Case("link_becomes_file", "a type change is whole", "rm link; echo x >link", "ln -s a.txt link"),
    Case("file_becomes_link", "a type change is whole", "rm a.txt; ln -s b.txt a.txt"),
    Case("dangling_link_removed", "links are never followed", "rm dangling", "ln -s /nonexistent/x dangling"),
    Case("file_becomes_folder", "removals before creations", "rm b.txt; mkdir b.txt; echo x >b.txt/in"),
    Case("folder_becomes_file", "removals before creations", "rm -rf src; echo x >src"),
    Case("folder_becomes_link", "removals before creations", "mv src real; ln -s real src"),
    Case("empty_folder_removed", "empty directories are state", "rm -rf logs", "mkdir -p logs/today"),
    Case("empty_folder_made", "directories that the agent made go", "mkdir -p made/by/agent"),
    Case("folder_emptied", "a folder that stays keeps its children", "rm src/lib/*"),
    Case("empty_file", "size nought is content", "echo x >empty; : >b.txt", ": >empty"),
    Case(
        "not_text",
        "bytes, never text",
        "for f in n1 n2 n3; do echo x >$f; done",
        "printf 'a\\0b' >n1; printf '\\377\\376x\\0' >n2; printf 'no end' >n3",
    ),
    Case("odd_names_edited", "names are bytes, -z everywhere", 'for f in odd/*; do echo agent >"$f"; done', ODD_NAMES),
    Case("odd_names_deleted", "names are bytes, -z everywhere", "rm -rf odd", ODD_NAMES),
    Case(
        "names_that_glob",
        "literal pathspecs",
        "echo agent >'app/[id].tsx'; rm 'app/*'",
        "mkdir app; echo 1 >'app/[id].tsx'; echo 1 >app/i.tsx; echo 1 >'app/*'",
    ),
    Case(
        "deep_path",
        "paths may exceed PATH_MAX together with the root",
        "cd deep && find . -name f -exec sh -c 'echo agent >$1' _ {} \\;",
        (
            'd=$(printf "d%.0s" $(seq 1 200)); mkdir deep; cd deep; for i in 1 2 3 4 5 6 7 8 9 10; do mkdir $d; cd $d; '
            "done; echo user >f"
        ),
    ),
    Case(
        "twenty_megabytes_deleted",
        "files below the limit are covered whatever git thinks",
        "rm big",
        "head -c 20971520 /dev/urandom >big",
    ),
    Case(
        "tracked_though_ignored",
        "a tracked path is tracked",
        "echo agent >t.log",
        "echo v1 >t.log; git add -f t.log; git commit -qm t",
    ),
    Case(
        "tracked_in_skipped_folder",
        "skip_dirs are for ignored paths only",
        "rm -rf node_modules",
        "mkdir node_modules; echo v >node_modules/m.js; git add -f node_modules; git commit -qm m",
    ),
    Case(
        "ignored_env_edited",
        "small ignored files are covered",
        "echo AGENT=1 >.env; rm x.log",
        "echo KEY=1 >.env; echo l >x.log",
    ),
    Case(
        "clean_fdx",
        "small ignored files are covered",
        "git clean -fdxq",
        "echo K >.env; mkdir cache; echo c >cache/c; echo u >u; mkdir -p un/tracked; echo 1 >un/tracked/f",
    ),
    Case(
        "ignore_rule_dropped_then_clean",
        "ignored-before is judged by the rules from before",
        ": >.gitignore; git clean -fdq",
        "echo K >.env; echo l >l.log",
    ),
    Case(
        "flat_folder_over_the_fan_out",
        "the fan-out of large directories is canonical",
        "for i in $(seq 1 20); do rm flat/$i; done; for i in $(seq 2000 2030); do echo n >flat/$i; done",
        "mkdir flat; for i in $(seq 1 1010); do echo $i >flat/$i; done",
    ),
    Case(
        "crlf_under_autocrlf",
        "raw bytes, no conversion: core.autocrlf is no attribute",
        "echo agent >w.txt",
        ("git config core.autocrlf input; printf 'l1\\r\\nl2\\r\\n' >w.txt; git add w.txt 2>/dev/null; git commit -qm w"),
    ),
    Case(
        "crlf_under_text_auto",
        "raw bytes, no conversion",
        "echo agent >w.txt; rm v.txt",
        (
            "echo '* text=auto' >.gitattributes; git add -A; git commit -qm g; printf 'l1\\r\\nl2\\r\\n' >w.txt; "
            "printf 'x\\r\\n' >v.txt; git add v.txt 2>/dev/null"
        ),
    ),
    Case(
        "ident_expanded",
        "raw bytes, no conversion",
        "echo agent >i.c",
        ("echo '*.c ident' >.gitattributes; echo '$Id$' >i.c; git add -A; git commit -qm i; rm i.c; git checkout -q i.c"),
    ),
    Case(
        "working_tree_encoding",
        "raw bytes, no conversion",
        "echo agent >u.txt",
        (
            "echo 'u.txt working-tree-encoding=UTF-16' >.gitattributes; printf '\\376\\377\\0h\\0i' >u.txt; git add -A; "
            "git commit -qm u"
        ),
    ),
    Case(
        "clean_smudge_filter",
        "no filter of the repository runs",
        "echo agent >m.flt",
        (
            "git config filter.f.clean 'sed s/^/C:/'; git config filter.f.smudge 'sed s/^C://'; "
            "git config filter.f.required true; echo '*.flt filter=f' >.gitattributes; echo data >m.flt; git add -A; "
            "git commit -qm f"
        ),
    ),
    Case(
        "lfs_program_missing",
        "no filter of the repository runs",
        "echo agent >>a.txt; rm p.bin; echo n >n.txt",
        (
            "printf 'oid sha256:1\\n' >p.bin; echo '*.bin filter=lfs' >.gitattributes; git add -A; git commit -qm l; "
            "git config filter.lfs.clean 'no-such-lfs clean'; git config filter.lfs.required true"
        ),
    ),
    Case("hard_linked_pair", "one inode throughout: written in place", "echo agent >h1", "echo two names >h1; ln h1 h2"),
    Case(
        "wildly_everything",
        "all together",
        (
            "rm -rf src a.txt; mkdir a.txt; echo x >a.txt/x; ln -s ../b.txt src; chmod 600 b.txt; echo e >>.gitignore; "
            "mv tool.sh .env"
        ),
        "echo K >.env; mkdir e; echo u >'u u'; sleep 1.1",
    ),
]

CONFLICT = (
    "git checkout -q -b other; echo O >b.txt; git commit -qam o; git checkout -q main; echo M >b.txt; "
    "git commit -qam m; git checkout -q -b third HEAD~1; echo T >t.txt; git add t.txt; git commit -qm t; "
    "git checkout -q main;"
)

GIT = [
    Case("commit", "HEAD, branch, index and files go back together", "echo agent >a.txt; git commit -qam agent"),
    Case(
        "commit_sweeps_users_work",
        "staged stays staged, untracked untracked",
        "echo agent >>a.txt; git add -A; git commit -qm all",
        "echo staged >b.txt; git add b.txt; echo unstaged >b.txt; echo u >untracked",
    ),
    Case(
        "two_commits_and_a_tag",
        "all refs in one group",
        "echo 1 >x; git add x; git commit -qm 1; echo 2 >x; git commit -qam 2; git tag -a v1 -m v1; git tag light",
    ),
    Case("amend", "a commit known only to a reflog is brought over", "echo x >>a.txt; git commit -qa --amend -m amended"),
    Case(
        "reset_hard_with_dirty_work",
        "before is the disk, not HEAD",
        "git reset -q --hard HEAD~1; git clean -fdq",
        "echo 2 >>a.txt; git commit -qam 2; echo wip >>a.txt; echo s >s; git add s; echo u >u",
    ),
    Case("reset_soft", "the branch moves, files do not", "git reset -q --soft HEAD~1", "echo 2 >>a.txt; git commit -qam 2"),
    Case(
        "history_rewritten",
        "rewritten refs and refs/original go back",
        (
            "FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --index-filter 'git rm -rq --cached "
            "--ignore-unmatch src' HEAD >/dev/null 2>&1; "
            "rm -rf src"
        ),
    ),
    Case(
        "new_branch_and_edit",
        "HEAD is never left on a deleted branch",
        "git checkout -q -b feature; echo q >a.txt; git commit -qam q",
    ),
    Case("switch_to_a_branch", "a branch switch is undone whole", "git checkout -q other", CONFLICT),
    Case(
        "detached_head_lost",
        "HEAD may be a commit",
        "git checkout -qf main; echo agent >>b.txt",
        "echo 2 >>a.txt; git commit -qam 2; git checkout -q --detach HEAD~1; echo wip >>a.txt",
    ),
    Case(
        "orphan_and_clean",
        "HEAD may name an unborn branch",
        "git checkout -q --orphan docs; git rm -rfq .; git clean -fdxq",
        "echo K >.env; echo n >n.log",
    ),
    Case(
        "branch_deleted_and_collected",
        "objects come back before the refs that need them",
        "git branch -qD other; git reflog expire --expire=now --all; git gc -q --prune=now",
        CONFLICT,
    ),
    Case("branch_renamed", "HEAD follows the name", "git branch -m main trunk"),
    Case("current_branch_repointed", "HEAD is a group with its branch", "git symbolic-ref HEAD refs/heads/other", CONFLICT),
    Case(
        "directory_file_ref_pair",
        "deletions then creations where one ref name is a prefix of another",
        "git branch -qD feat; git branch feat/x",
        "git branch feat",
    ),
    Case(
        "directory_file_ref_pair_reversed",
        "deletions then creations where one ref name is a prefix of another",
        "git branch -qD feat/x; git branch feat",
        "git branch feat/x",
    ),
    Case(
        "tag_moved_and_deleted",
        "annotated tags keep their objects",
        "git tag -d old; git tag -f -a kept -m new HEAD >/dev/null; git gc -q --prune=now",
        "git tag -a old -m old; git tag -a kept -m first",
    ),
    Case("refs_packed", "packed refs are refs", "git pack-refs --all; git branch -qD other", CONFLICT),
    Case("add_all", "the index goes back entry by entry", "echo agent >a.txt; echo n >n.txt; git add -A"),
    Case("index_entries_removed", "the index goes back entry by entry", "git rm -rq --cached src"),
    Case(
        "staged_and_unstaged_restored",
        "a blob known only to the index is brought over",
        "git restore --source=HEAD --staged --worktree -- a.txt; git gc -q --prune=now",
        "echo staged >>a.txt; git add a.txt; echo unstaged >>a.txt",
    ),
    Case("index_file_removed", "the index goes back entry by entry", "rm .git/index", "echo s >b.txt; git add b.txt"),
    Case(
        "flags_cleared",
        "flags are index state",
        "git update-index --no-assume-unchanged a.txt; git update-index --no-skip-worktree b.txt; echo x >b.txt",
        "git update-index --assume-unchanged a.txt; git update-index --skip-worktree b.txt",
    ),
    Case(
        "intent_to_add",
        "intent-to-add is index state",
        "echo agent >>planned.py; git add -A",
        "echo plan >planned.py; git add -N planned.py",
    ),
    Case(
        "index_version_four",
        "index v2 to v4 are read",
        "git rm -q --cached b.txt",
        "git update-index --index-version 4; echo s >s; git add s",
    ),
    Case(
        "split_index",
        "a split index is read whole",
        "git rm -q --cached b.txt",
        "git update-index --split-index; echo s >s; git add s",
    ),
    Case("stash_push", "the stash list is state", "git stash -q -u", "echo wip >>a.txt; echo u >u"),
    Case(
        "stash_pop_forgets_the_index",
        "index and files from before",
        "git stash -q; git stash pop -q",
        "echo s >b.txt; git add b.txt; echo w >b.txt",
    ),
    Case(
        "stash_dropped",
        "a stash entry is brought over when it is made",
        "git stash drop -q stash@{1}; git gc -q --prune=now",
        "for i in 1 2 3; do echo $i >a.txt; git stash push -q -m s$i; done",
    ),
    Case(
        "stash_cleared",
        "dropped entries return to their places",
        "git stash clear; git gc -q --prune=now",
        "for i in 1 2 3; do echo $i >a.txt; git stash push -q -m s$i; done",
    ),
    Case(
        "stash_without_its_log",
        "the stash is a ref too",
        "git stash clear",
        "echo wip >a.txt; git stash push -q; git reflog expire --expire=now --all",
    ),
    Case(
        "pop_refused_then_dropped",
        "files and stash list together",
        ("git stash -q; echo other >>a.txt; git stash pop -q 2>/dev/null || true; git checkout -q -- .; git stash drop -q"),
        "echo wip >>a.txt",
    ),
    Case("merge_commit", "a merge is one group", "git merge -q --no-edit third", CONFLICT),
    Case("merge_stops", "in-progress state goes with its files", "git merge -q other >/dev/null || true", CONFLICT),
    Case(
        "users_merge_aborted",
        "in-progress state, stages and half a resolution",
        "git merge --abort",
        CONFLICT + "git merge -q other >/dev/null || true; echo half >b.txt; echo wip >w.txt",
    ),
    Case(
        "users_merge_committed",
        "in-progress state, stages and half a resolution",
        "git add b.txt; git commit -qm merged",
        CONFLICT + "git merge -q other >/dev/null || true; echo half >b.txt",
    ),
    Case("rebase_done", "a rebase is one group", "git checkout -q third; git rebase -q main", CONFLICT),
    Case(
        "rebase_stops",
        "in-progress state goes with its files",
        "git checkout -q other; git rebase -q main >/dev/null 2>&1 || true",
        CONFLICT,
    ),
    Case(
        "users_rebase_aborted",
        "in-progress state, stages and half a resolution",
        "git rebase --abort",
        CONFLICT + "git checkout -q other; git rebase -q main >/dev/null 2>&1 || true; echo half >b.txt",
    ),
    Case(
        "users_rebase_finished",
        "in-progress state, stages and half a resolution",
        "git add b.txt; GIT_EDITOR=true git rebase --continue >/dev/null 2>&1",
        CONFLICT + "git checkout -q other; git rebase -q main >/dev/null 2>&1 || true; echo half >b.txt",
    ),
    Case(
        "cherry_pick_aborted",
        "in-progress state, stages and half a resolution",
        "git cherry-pick --abort",
        CONFLICT + "git cherry-pick other >/dev/null 2>&1 || true",
    ),
    Case(
        "revert_stops",
        "in-progress state goes with its files",
        "git revert --no-edit HEAD >/dev/null 2>&1 || true",
        CONFLICT + "echo again >b.txt; git commit -qam again; git revert --no-commit HEAD; git reset -q --hard",
    ),
    Case(
        "bisect_reset",
        "in-progress state and its refs",
        "git bisect reset >/dev/null",
        "for i in 1 2 3 4; do echo $i >a.txt; git commit -qam $i; done; git bisect start -q HEAD HEAD~4 >/dev/null",
    ),
    Case(
        "bisect_started",
        "in-progress state and its refs",
        "git bisect start -q HEAD HEAD~4 >/dev/null",
        "for i in 1 2 3 4; do echo $i >a.txt; git commit -qam $i; done",
    ),
    Case(
        "config_and_hooks",
        "the small files of the git directory",
        (
            "git config user.name Agent; git config alias.x '!true'; rm .git/hooks/pre-push; "
            "echo bad >.git/hooks/pre-commit; echo '*.x' >>.git/info/exclude; git remote add origin /x"
        ),
        "printf '#!/bin/sh\\n' >.git/hooks/pre-push; chmod 700 .git/hooks/pre-push",
    ),
    Case(
        "sparse_edit",
        "absent on disk is absent, whatever the index says",
        "echo agent >a.txt; rm b.txt; echo n >n.txt",
        "git sparse-checkout set --no-cone /a.txt /b.txt /.gitignore 2>/dev/null",
    ),
    Case(
        "sparse_disabled",
        "absent on disk is absent, whatever the index says",
        "git sparse-checkout disable 2>/dev/null",
        "git sparse-checkout set --no-cone /a.txt /b.txt /.gitignore 2>/dev/null",
    ),
    Case(
        "git_directory_removed",
        "the whole of .git is laid back",
        "rm -rf .git",
        CONFLICT
        + (
            "git tag -a v1 -m v1; echo s >s; git add s; echo st >>a.txt; git stash push -q a.txt; git bisect start -q; "
            "printf '#!/bin/sh\\n' >.git/hooks/pre-push"
        ),
    ),
    Case(
        "git_directory_made_anew",
        "the whole of .git is laid back",
        "rm -rf .git; git init -q; git add -A; git commit -qm fresh",
        CONFLICT,
    ),
    Case(
        "refs_and_objects_wrecked",
        "the whole of .git is laid back",
        "rm -rf .git/objects .git/refs .git/packed-refs; echo junk >.git/HEAD",
        CONFLICT,
        redo=False,
    ),
    Case(
        "fixture_with_a_git_folder",
        "names that git refuses are escaped in our trees",
        "rm -rf fixtures; echo agent >>b.txt",
        (
            "mkdir -p fixtures/case/.git/refs; echo 'ref: x' >fixtures/case/.git/HEAD; "
            "echo c >fixtures/case/.git/config; echo f >fixtures/case/f"
        ),
    ),
]

NESTED = "mkdir sub; cd sub; git init -q .; echo s >s.txt; git add .; git commit -qm s; cd ..;"
SUBMODULE = (
    "git init -q ../lib; cd ../lib; echo l >l.txt; git add .; git commit -qm l; cd -; "
    "git submodule -q add ../lib lib; git commit -qm sub;"
)

LAYOUTS = [
    Case(
        "nested_repository_file",
        "a nested repository is a member",
        "echo agent >sub/s.txt; rm sub/u",
        NESTED + "echo u >sub/u",
    ),
    Case(
        "nested_repository_commit",
        "a member's git state goes back",
        "cd sub; echo agent >s.txt; git commit -qam agent",
        NESTED,
    ),
    Case(
        "nested_repository_removed",
        "a member's git directory is laid back",
        "rm -rf sub",
        NESTED + "echo dirty >>sub/s.txt; cd sub; git stash -q; cd ..",
    ),
    Case(
        "nested_repository_without_commit",
        "one odd member never spoils the rest",
        "echo agent >a.txt; echo x >sub/u",
        "mkdir sub; cd sub; git init -q .; echo u >u",
    ),
    Case(
        "submodule_changed",
        "a submodule is a member",
        ("echo agent >lib/l.txt; cd lib; git checkout -q -b x; git commit -qam x; cd ..; git add lib; git commit -qm bump"),
        SUBMODULE,
    ),
    Case(
        "submodule_removed",
        "a submodule is a member",
        "git rm -qf lib; rm -rf .git/modules/lib; git commit -qm gone",
        SUBMODULE,
    ),
    Case(
        "everything_below_the_root",
        "the folder comes back with its git directory",
        "rm -rf ./* .git .gitignore",
        CONFLICT + "echo u >u",
    ),
]

UNBORN = [
    Case(
        "unborn_files",
        "no HEAD is a state",
        "echo agent >a.txt; rm b.txt; echo n >n",
        "echo a >a.txt; echo b >b.txt; git add a.txt",
    ),
    Case(
        "unborn_index",
        "no HEAD is a state",
        "git rm -rfq --cached .; echo agent >a.txt; rm -rf d",
        "mkdir d; echo a >a.txt; echo d >d/d; git add -A",
    ),
    Case(
        "unborn_first_commit",
        "the branch is unborn again",
        "git add -A; git commit -qm first",
        "echo a >a.txt; echo b >b.txt; git add a.txt",
    ),
]

PLAIN = [
    Case(
        "folder_files",
        "a folder needs no repository",
        "echo agent >a.txt; rm -rf d; echo n >n",
        "echo a >a.txt; mkdir d; echo d >d/d; mkdir empty",
    ),
    Case(
        "folder_becomes_repository",
        "git init by the agent is undone",
        "git init -q .; git add -A; git commit -qm x",
        "echo a >a.txt",
    ),
    Case(
        "folder_of_repositories",
        "many repositories are one workspace",
        "for r in r1 r2 r3; do cd $r; echo agent >f; git commit -qam x; cd ..; done; rm -rf r3/.git",
        ("for r in r1 r2 r3; do git init -q $r; cd $r; echo f >f; git add f; git commit -qm f; cd ..; done; echo loose >loose"),
    ),
]


def round_trip(repo: RepoBuilder, case: Case) -> None:
    repo.sh(case.setup)
    before = repo.picture()
    repo.agent_runs(case.act)
    after = repo.picture()
    assert before.differences(after), "the case changes nothing"

    repo.undo()
    repo.assert_is(before)

    if case.redo:
        repo.redo()
        repo.assert_is(after)


def named(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


@named(FILES)
def test_files_come_back(repo: RepoBuilder, case: Case) -> None:
    """Files, modes, links and folders are as before, then as after."""
    round_trip(repo, case)


@named(GIT)
def test_git_state_comes_back(repo: RepoBuilder, case: Case) -> None:
    """HEAD, refs, index, stash, in-progress state, settings and files are as before, then as after."""
    round_trip(repo, case)


@named(LAYOUTS)
def test_members_come_back(repo: RepoBuilder, case: Case) -> None:
    """Repositories inside the workspace are as before, then as after."""
    round_trip(repo, case)


@named(UNBORN)
def test_a_repository_without_a_commit_comes_back(empty_repo: RepoBuilder, case: Case) -> None:
    """A repository without a commit is one again."""
    round_trip(empty_repo, case)


@named(PLAIN)
def test_a_plain_folder_comes_back(folder: RepoBuilder, case: Case) -> None:
    """A folder without a repository is as before, then as after."""
    round_trip(folder, case)
