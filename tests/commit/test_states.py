"""In which states of a repository a commit is made, and how it is refused in the others ([gate] B5)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from safety.commit.message import default_message
from safety.commit.values import Side, Step
from tests.commit.conftest import AGENT, Work, assert_clean_up


def refused(work: Work, code: str, **options: object) -> str:
    """Holds a plan and the commit of it to be refused with that code, nothing changed; gives the sentence and the hint."""
    before = work.whole()
    plan = work.plan(**options)
    result = work.make(plan, "message")
    assert (plan.refusal, result.status) == (code, "refused"), (plan, result)
    assert work.whole() == before
    return f"{result.text} {result.hint}"


STATES = {
    "merge": "git merge -q --no-commit --no-ff side",
    "cherry-pick": "git cherry-pick -n side >/dev/null; git rev-parse side >.git/CHERRY_PICK_HEAD",
    "revert": "git revert -n HEAD; git rev-parse HEAD >.git/REVERT_HEAD",
    "rebase": "git rebase -q --exec false side >/dev/null 2>&1 || true",
    "am": "git format-patch -q -1 side --stdout >../p.mbox; echo broken >>c.txt; git am -q ../p.mbox >/dev/null 2>&1 || true",
    "bisect": "git bisect start >/dev/null",
}


@pytest.mark.parametrize("state", STATES)
def test_nothing_is_committed_in_the_middle_of_something(work: Work, state: str) -> None:
    """Merge, cherry-pick, revert, rebase, am and bisect: no commit, the state stays, and the sentence names it."""
    work.git("switch", "-qc", "side")
    work.commit("side", c_txt="side\n")
    work.git("switch", "-q", "main")
    work.commit("main", b_txt="main\n")
    work.sh(STATES[state])
    work.agent_makes("new.txt", "agent\n")

    assert state in refused(work, "in-progress")


def test_a_solved_conflict_is_not_committed_as_a_plain_commit(work: Work) -> None:
    """The agent solved a merge's conflict: no commit with one parent, and the merge is still in progress."""
    work.git("switch", "-qc", "side")
    work.commit("side", c_txt="side\n")
    work.git("switch", "-q", "main")
    work.commit("main", c_txt="main\n")
    work.git("merge", "side", check=False)
    with work.step("c.txt"):
        work.write("c.txt", "both\n")
        work.git("add", "c.txt")

    refused(work, "in-progress")

    assert (work.root / ".git/MERGE_HEAD").exists()


def test_unmerged_entries_refuse_without_any_operation(work: Work) -> None:
    """After a stash pop with conflicts there is no operation, but the index says it."""
    work.write("c.txt", "stashed\n")
    work.git("stash", "-q")
    work.commit("other", c_txt="other\n")
    work.git("stash", "pop", check=False)
    work.agent_makes("new.txt", "agent\n")

    assert "c.txt" in refused(work, "unmerged")


def test_detached_head_is_refused_unless_allowed(work: Work) -> None:
    """By default only said; allowed, HEAD moves and no branch does."""
    work.git("switch", "-q", "--detach")
    work.agent_makes("new.txt", "agent\n")
    refused(work, "detached")
    main = work.git("rev-parse", "main")

    assert work.commits(detached="allow") == "A new.txt"

    assert (work.git("rev-parse", "main"), work.branch()) == (main, "")


def test_a_protected_branch_is_warned_of_refused_or_left_for_another(work: Work) -> None:
    """``warn`` commits and says so once in the result, ``refuse`` does not commit, ``allow`` says nothing."""
    work.agent_makes("new.txt", "agent\n")
    assert "git switch" in refused(work, "protected-branch", protected_branches="refuse")
    why = "(main and master are by default; autocommit.protected_branches says what is done there)"
    assert work.plan(protected_branches="refuse").reason == f"main is a protected branch {why}"

    result = work.make()
    assert (result.status, result.notices) == ("committed", (f"committed on the protected branch main {why}",))

    work.agent_makes("new2.txt", "agent\n")
    assert work.make(protected_branches="allow").notices == ()


@pytest.mark.parametrize(("name", "counts"), [("release/1.2", True), ("trunk", True), ("feature", False), ("main", True)])
def test_which_branches_are_protected(work: Work, tmp_path: Path, name: str, counts: bool) -> None:
    """The patterns, and whatever the remote calls its default branch."""
    work.git("init", "-q", "--bare", "-b", "trunk", str(tmp_path / "remote.git"))
    work.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    work.git("push", "-q", "origin", "main:trunk")
    work.git("remote", "set-head", "origin", "trunk")
    work.git("switch", "-qC", name)
    work.agent_makes("new.txt", "agent\n")

    assert (work.plan(protected_branches="refuse").refusal == "protected-branch") is counts


def test_the_branch_action_puts_the_commit_on_a_branch_of_its_own(work: Work) -> None:
    """``branch`` makes the named branch, HEAD goes there, the protected one stays; the next commit simply follows."""
    work.replace("a.txt", "line 2\n", "USER\n")
    work.agent_makes("new.txt", "agent\n")
    main = work.head()

    assert work.commits(protected_branches="branch", branch="agent/s1") == "A new.txt"

    assert (work.branch(), work.git("rev-parse", "main"), work.status()) == ("agent/s1", main, " M a.txt")
    work.steps.clear()
    work.agent_makes("new2.txt", "agent\n")
    assert work.commits(protected_branches="branch", branch="agent/s1") == "A new2.txt"
    assert work.branch() == "agent/s1"


def test_a_branch_of_that_name_elsewhere_is_not_moved(work: Work) -> None:
    """If the branch exists at another commit, nothing is committed and nothing moves."""
    work.git("branch", "agent/s1")
    work.commit("more", c_txt="more\n")
    work.agent_makes("new.txt", "agent\n")
    before = work.whole()

    result = work.make(protected_branches="branch", branch="agent/s1")

    assert (result.status, result.hint) == ("refused", "git switch agent/s1")
    assert work.whole() == before


def test_no_identity_is_refused_with_the_commands_and_writes_no_configuration(work: Work) -> None:
    """Without a name or an address git would fail; no address is made up and no configuration written."""
    Path(work.env["HOME"], ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    work.agent_makes("new.txt", "agent\n")

    said = refused(work, "no-identity")

    assert "git config user.name" in said and "git config user.email" in said


def test_author_and_committer_are_the_users(work: Work) -> None:
    """From git's configuration, or from the environment where it says so; never the agent."""
    work.git("config", "user.name", "Real User")
    work.git("config", "user.email", "real@example.test")
    work.env["GIT_AUTHOR_NAME"] = "Env Author"
    work.env["GIT_COMMITTER_DATE"] = "2020-01-01T00:00:00Z"
    config = work.whole().config
    work.agent_makes("new.txt", "agent\n")

    assert work.make().status == "committed"

    assert work.git("log", "-1", "--format=%an <%ae> %cn %ct") == "Env Author <real@example.test> Real User 1577836800"
    assert work.whole().config == config


def test_a_linked_work_tree_commits_with_its_own_index(work: Work, tmp_path: Path) -> None:
    """The commit is on the linked work tree's branch; the main one's index and branch stay."""
    work.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    linked = tmp_path / "linked"
    before = work.whole()
    work.hook("commit-msg", 'git diff --cached --name-only >"%s"\n' % (tmp_path / "seen"))
    (linked / "c.txt").write_text("agent\n")
    steps = [Step(b"c.txt", work.side("c.txt"), Side(0o100644, b"agent\n"))]

    result = work.make(work.plan(root=linked, steps=steps))

    assert result.status == "committed", result
    assert work.git("rev-parse", "other") == result.oid
    assert work.git("status", "--porcelain", cwd=linked) == ""
    assert (tmp_path / "seen").read_text() == "c.txt\n"
    after = work.whole()
    assert (after.index, work.git("rev-parse", "main")) == (before.index, work.git("rev-parse", "other^"))


def test_submodules_and_nested_repositories_are_left_out(work: Work, tmp_path: Path) -> None:
    """A changed gitlink, a file inside a submodule, a file inside a nested repository: all named, none committed."""
    work.git("clone", "-q", str(work.root), str(tmp_path / "lib"))
    work.git("submodule", "--quiet", "add", str(tmp_path / "lib"), "sub")
    work.git("commit", "-qm", "submodule")
    work.git("init", "-q", "nested")
    old = work.git("rev-parse", "HEAD:sub").encode()
    work.steps.append(Step(b"sub", Side(0o160000, old), Side(0o160000, b"1" * 40)))
    work.agent_makes("sub/c.txt", "agent\n")
    work.agent_makes("nested/x", "agent\n")
    work.agent_makes("c.txt", "agent\n")
    plan = work.plan()

    assert {left.path: left.code for left in plan.left_out} == {
        b"sub": "submodule",
        b"sub/c.txt": "submodule",
        b"nested/x": "nested",
    }
    assert work.plan(submodules=True).paths == (b"c.txt", b"sub")
    assert work.commits() == "M c.txt"


def test_split_and_sparse_indexes_stay_what_they_are(work: Work) -> None:
    """git itself writes the index, so a split one is split and a sparse checkout sparse afterwards."""
    work.git("update-index", "--split-index")
    work.agent_edits("a.txt", "line 15", "AGENT")
    assert work.commits() == "M a.txt"
    assert list((work.root / ".git").glob("sharedindex.*"))
    work.git("update-index", "--no-split-index")

    work.git("sparse-checkout", "set", "--sparse-index", "lib")
    work.steps.clear()
    work.agent_edits("b.txt", "line 5", "AGENT")
    work.agent_makes("lib/new", "new\n")
    assert work.commits() == "M b.txt\nA lib/new"
    assert work.status() == ""
    assert work.git("ls-files", "-t", "src/app.py") == "S src/app.py"


def test_files_that_a_sparse_checkout_took_away_are_not_deleted(work: Work) -> None:
    """The agent narrowed the checkout: files went from the disk, not from the project."""
    with work.step("src/app.py"):
        work.git("sparse-checkout", "set", "lib")
    plan = work.plan()

    assert (plan.paths, [left.code for left in plan.left_out]) == ((), ["hidden"])


def test_line_ends_idents_filters_and_encodings_are_gits(work: Work) -> None:
    """What is stored is what ``git add`` would store, and a change of the agent's in such a file is one line."""
    attributes = "*.crlf text eol=crlf\n*.id ident\n*.up filter=up\n*.u16 working-tree-encoding=UTF-16LE text\n"
    work.write(".gitattributes", attributes + "*.auto text=auto\n")
    work.git("config", "filter.up.clean", "tr a-z A-Z")
    work.git("config", "filter.up.smudge", "tr A-Z a-z")
    work.write("x.crlf", "one\r\ntwo\r\n")
    work.write("x.id", "$Id$\nbody\n")
    work.write("x.up", "one\ntwo\n")
    work.write("x.u16", "one\ntwo\n".encode("utf-16-le"))
    work.commit("attributes")
    # A file with CRLF in the repository stays so, whatever text=auto says.
    blob = work.git("hash-object", "-w", "--stdin", "--no-filters", input="one\r\ntwo\r\n")
    work.git("update-index", "--add", "--cacheinfo", f"100644,{blob},x.auto")
    work.git("commit", "-qm", "crlf inside")
    work.git("checkout", "-q", "--", ".")
    work.sh("rm x.id; git checkout -q -- x.id")
    names = ("x.crlf", "x.id", "x.up", "x.u16", "x.auto")
    with work.step(*names):
        for name in names:
            old = work.read_bytes(name)
            end = "\r\n" if name in ("x.crlf", "x.auto") else "\n"
            new = ("agent" + end).encode("utf-16-le" if name == "x.u16" else "utf-8")
            work.write(name, old + new)

    assert work.commits() == "\n".join(f"M {name}" for name in sorted(names))

    assert work.status() == ""
    stat = work.git("diff", "--numstat", "HEAD^", "HEAD").splitlines()
    assert [line.split("\t")[:2] for line in stat] == [["1", "0"]] * len(names)
    assert work.git("cat-file", "blob", "HEAD:x.up") == "ONE\nTWO\nAGENT"
    assert work.git("cat-file", "blob", "HEAD:x.id") == "$Id$\nbody\nagent"


def test_a_filter_that_fails_leaves_its_path_out(work: Work) -> None:
    """A required filter that fails: that path is named, the others are committed."""
    work.write(".gitattributes", "*.bad filter=bad\n*.good filter=good\n")
    work.commit("attributes")
    for name, command in (("bad", "false"), ("good", "cat")):
        work.git("config", f"filter.{name}.clean", command)
        work.git("config", f"filter.{name}.required", "true")
    work.agent_makes("x.bad", "bad\n")
    work.agent_makes("x.good", "good\n")
    plan = work.plan()

    assert {left.path: left.code for left in plan.left_out} == {b"x.bad": "filter"}
    assert work.commits() == "A x.good"


def test_an_old_git_is_refused_with_one_line(work: Work, tmp_path: Path) -> None:
    """Below 2.38 no commit is made."""
    real = work.sh("command -v git")
    folder = tmp_path / "old"
    script = f'#!/bin/sh\ncase "$*" in *version*) echo git version 2.37.9;; *) exec {real} "$@";; esac\n'
    work.agent_makes("new.txt", "agent\n")
    folder.mkdir()
    (folder / "git").write_text(script)
    (folder / "git").chmod(0o755)
    work.env["PATH"] = f"{folder}{os.pathsep}{work.env['PATH']}"

    assert "2.38" in refused(work, "git-too-old")


def test_a_sha256_repository_and_a_plain_folder_are_refused(work: Work, tmp_path: Path) -> None:
    """With a sentence, not an exception."""
    work.git("init", "-q", "--object-format=sha256", str(tmp_path / "sha256"))
    work.agent_makes("new.txt", "agent\n")

    assert work.plan(root=tmp_path / "sha256").refusal == "object-format"
    assert work.plan(root=tmp_path).refusal == "no-repository"


@dataclass(frozen=True)
class Found:
    rule: str
    path: bytes
    line: int
    hint: str = "take it out"


class Scanner:
    """Finds the word SECRET in added lines, and files called ``.env``."""

    def __init__(self) -> None:
        self.seen: dict[bytes, list[tuple[int, bytes]]] = {}

    def scan(self, path: bytes, added_lines: Iterable[tuple[int, bytes]], /) -> list[Found]:
        self.seen[path] = list(added_lines)
        return [Found("word", path, number) for number, line in self.seen[path] if b"SECRET" in line]

    def path_rule(self, path: bytes, /) -> Found | None:
        return Found("name", path, 0) if path.endswith(b".env") else None


def test_a_secret_in_an_added_line_refuses_the_whole_commit(work: Work) -> None:
    """Named by file and line; only lines that the commit itself adds are looked at."""
    work.write("a.txt", "SECRET of old\n" + work.read("a.txt"))
    work.commit("old")
    work.replace("a.txt", "line 2\n", "SECRET of the user's\n")
    scanner = Scanner()
    work.agent_edits("a.txt", "line 15", "AGENT")
    assert work.plan(scanner=scanner).refusal == ""
    assert scanner.seen == {b"a.txt": [(16, b"AGENT")]}

    work.agent_makes("key.txt", "x\nSECRET\n")
    work.agent_makes("x.env", "x\n")
    assert "key.txt:2" in refused(work, "secrets", scanner=scanner)
    assert [(found.path, found.line) for found in work.plan(scanner=scanner).secrets] == [(b"key.txt", 2), (b"x.env", 0)]


def test_the_default_message_names_the_paths(work: Work) -> None:
    """A subject of at most 72 characters whatever the names, the request's first line, and every path."""
    work.agent_makes("a\nb.txt", "x\n")
    assert default_message(work.plan(), "Fix it\nplease") == "chore(agent): add a\\nb.txt\n\nAsked: Fix it\n\n- add a\\nb.txt\n"

    work.agent_makes("x" * 90, "x\n")
    work.agent_edits("a.txt", "line 15", "AGENT")
    message = default_message(work.plan())
    assert message.startswith("chore(agent): update 3 files\n\n- add a\\nb.txt\n- update a.txt\n- add xxx")


def test_the_plan_shows_its_diff_cut_at_8_kb(work: Work) -> None:
    """What a writer of messages is given: what the commit changes, nothing of the user's, never more than 8 kB."""
    work.replace("a.txt", "line 2\n", "USER\n")
    work.agent_edits("a.txt", "line 15", "AGENT")
    plan = work.plan()
    assert plan.diff_stat == "a.txt | +1 -1"
    assert "-line 15\n+AGENT\n" in plan.diff and "USER" not in plan.diff

    work.agent_makes("big.txt", "x" * 60_000 + "\n" + "y\n" * 20_000)
    plan = work.plan()
    assert plan.diff_stat == "a.txt | +1 -1\nbig.txt | +20001 -0"
    assert len(plan.diff) <= 8 << 10


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("assisted-by", "Assisted-by: claude-code:opus-5"),
        ("generated-by", "Generated-by: claude-code:opus-5"),
        ("co-authored-by", "Co-authored-by: claude-code:opus-5 <claude-code@agent.invalid>"),
        ("none", ""),
        ("Made-with: {agent} ({model})", "Made-with: claude-code (opus-5)"),
        ("Signed-off-by: {agent} <a@b.example>", ""),
    ],
)
def test_the_trailer(work: Work, setting: str, line: str) -> None:
    """Each form of it, once, also if the message has it already; never a Signed-off-by, the user's trailer settings or not."""
    work.git("config", "trailer.sign.key", "Signed-off-by: ")
    work.git("config", "trailer.sign.command", "echo x")
    work.agent_makes("new.txt", "agent\n")
    message = f"subject\n\nbody\n\n{line}\n" if setting == "assisted-by" else "subject\n\nbody\n"

    assert work.make(message=message, trailer=setting).status == "committed"

    assert work.git("log", "-1", "--format=%(trailers)").strip() == line
    assert work.git("log", "-1", "--format=%s") == "subject"
    assert AGENT["name"] == "claude-code"


def test_a_plan_in_a_merge_made_after_it_is_not_carried_out(work: Work) -> None:
    """The state counts when the commit is made, not when it was planned."""
    work.git("switch", "-qc", "side")
    work.commit("side", b_txt="side\n")
    work.git("switch", "-q", "main")
    work.agent_makes("new.txt", "agent\n")
    plan = work.plan()
    work.git("merge", "-q", "--no-commit", "--no-ff", "side")

    assert work.make(plan).status == "refused"
    assert (work.root / ".git/MERGE_HEAD").exists()
    assert_clean_up(work)


def test_a_git_directory_that_cannot_be_written_is_said(work: Work) -> None:
    """A value, not an exception: something is where the commit's folder would be."""
    work.agent_makes("new.txt", "agent\n")
    plan = work.plan()
    work.write(".git/git-safety-commit", "in the way\n")

    assert work.make(plan).status == "refused"
    assert work.plan().refusal == "unreadable"
