"""The user's hooks, signing and configuration during a commit: theirs count, none is gone round, and none can open an editor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.commit.conftest import Work, assert_clean_up, quoted

NAMES = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")


@pytest.mark.parametrize("folder", [".git/hooks", ".githooks"])
def test_every_hook_runs_once_in_gits_order(work: Work, tmp_path: Path, folder: str) -> None:
    """In .git/hooks or where core.hooksPath says, with git's arguments; the configuration stays."""
    log = tmp_path / "log"
    if folder != ".git/hooks":
        work.git("config", "core.hooksPath", folder)
    for name in NAMES:
        work.hook(name, f'echo {name} $# "$2" >>{quoted(log)}\n', folder)
    work.git("add", "-A")
    work.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "hooks")
    log.unlink(missing_ok=True)
    config = work.whole().config
    work.agent_makes("new.txt", "agent\n")

    assert work.commits() == "A new.txt"

    assert log.read_text() == "pre-commit 0 \nprepare-commit-msg 2 message\ncommit-msg 1 \npost-commit 0 \n"
    assert work.whole().config == config


def test_the_pre_commit_hook_is_not_run_twice(work: Work, tmp_path: Path) -> None:
    """If the gate has run it, only that one is passed over."""
    for name in NAMES:
        work.hook(name, f"echo {name} >>{quoted(tmp_path / 'log')}\n")
    work.agent_makes("new.txt", "agent\n")

    assert work.make(ran=True).status == "committed"

    assert (tmp_path / "log").read_text() == "prepare-commit-msg\ncommit-msg\npost-commit\n"


def test_hooks_see_exactly_the_commit(work: Work, tmp_path: Path) -> None:
    """Their index holds what the commit holds and nothing the user staged."""
    work.write("c.txt", "staged\n")
    work.git("add", "c.txt")
    work.replace("a.txt", "line 2\n", "USER\n")
    work.agent_edits("a.txt", "line 15", "AGENT")
    script = f"git diff --cached -U0 >{quoted(tmp_path)}/$(basename $0)\n"
    for name in NAMES[:3]:
        work.hook(name, script)

    assert work.commits() == "M a.txt"

    for name in NAMES[:3]:
        shown = [line for line in (tmp_path / name).read_text().splitlines() if line[:1] in "+-"]
        assert shown == ["--- a/a.txt", "+++ b/a.txt", "-line 15", "+AGENT"]
    assert work.changed_lines("--cached") == ["-c", "+staged"]


def test_a_repository_made_in_a_hook_works(work: Work, tmp_path: Path) -> None:
    """The index has a relative name, so a hook that works in another repository finds that one's ([gate] 0.4)."""
    there = quoted(tmp_path / "elsewhere")
    work.hook("pre-commit", f"git init -q {there} && cd {there} && echo x >x && git add x && git commit -qm inner\n")
    work.agent_makes("new.txt", "agent\n")

    assert work.commits() == "A new.txt"

    assert work.git("ls-tree", "--name-only", "HEAD", cwd=tmp_path / "elsewhere") == "x"


def test_a_hook_has_the_users_environment(work: Work, tmp_path: Path) -> None:
    """No setting of ours, no literal pathspecs; the editor is one that ends at once."""
    work.env["GIT_EDITOR"] = "ed-never"
    work.hook("commit-msg", f"env >{quoted(tmp_path / 'seen')}\n")
    work.agent_makes("new.txt", "agent\n")

    assert work.make().status == "committed"

    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines() if "=" in line)
    assert seen["GIT_INDEX_FILE"] == ".git/git-safety-commit-index"
    assert seen["GIT_EDITOR"] == "true"
    assert not {"GIT_CONFIG_PARAMETERS", "GIT_LITERAL_PATHSPECS", "GIT_ALLOW_PROTOCOL", "GIT_DIR"} & set(seen)
    assert seen["LC_ALL"] == work.env["LC_ALL"]


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_refusing_hook_leaves_everything_as_it_was(work: Work, name: str) -> None:
    """Its words come back for the model, in the status that says so."""
    work.append("b.txt", "user\n")
    work.agent_makes("new.txt", "agent\n")
    work.hook(name, "echo the message needs TICKET-n\nexit 1\n")
    before = work.whole()

    result = work.make()

    assert (result.status, result.text) == ("hook_failed", f"the {name} hook refused the commit:\nthe message needs TICKET-n")
    assert work.whole() == before
    assert_clean_up(work)


def test_hooks_may_rewrite_the_message(work: Work) -> None:
    """prepare-commit-msg before commit-msg; what they leave is the message, tidied as git does."""
    work.hook("prepare-commit-msg", 'sed -i "1s/^/[T-1] /" "$1"\n')
    work.hook("commit-msg", 'grep -q T-1 "$1" && printf "\\n\\n\\nchecked   \\n\\n\\n" >>"$1"\n')
    work.agent_makes("new.txt", "agent\n")

    assert work.make(message="subject\n").subject == "[T-1] subject"

    assert work.git("log", "-1", "--format=%B") == "[T-1] subject\n\nAssisted-by: claude-code:opus-5\n\nchecked"


@pytest.mark.parametrize(("cleanup", "left"), [("strip", "s\n"), ("verbatim", "s\n# c"), ("whitespace", "s\n# c")])
def test_the_message_is_tidied_as_the_user_has_it(work: Work, cleanup: str, left: str) -> None:
    """commit.cleanup counts."""
    work.git("config", "commit.cleanup", cleanup)
    work.agent_makes("new.txt", "agent\n")

    assert work.make(message="s\n# c", trailer="none").status == "committed"

    assert work.git("cat-file", "commit", "HEAD").split("\n\n", 1)[1].strip("\n") == left.strip("\n")


def test_an_emptied_message_makes_no_commit(work: Work) -> None:
    """A hook that leaves nothing of the message stops the commit as it does in git."""
    work.hook("commit-msg", ': >"$1"\n')
    work.agent_makes("new.txt", "agent\n")
    head = work.head()

    assert work.make().status == "hook_failed"
    assert work.head() == head


def test_a_pre_commit_hook_that_changes_the_commit_stops_it(work: Work) -> None:
    """It may add to its index, but not to the commit unseen."""
    work.append("b.txt", "user\n")
    work.hook("pre-commit", "git add b.txt\n")
    work.agent_makes("new.txt", "agent\n")
    before = work.whole()

    assert work.make().status == "hook_failed"
    assert work.whole() == before


def test_a_hook_that_would_stash_is_not_run(work: Work, tmp_path: Path) -> None:
    """The shim of a runner that hides unstaged work is the gate's to replace; without the gate there is no commit."""
    work.hook("pre-commit", f"# File generated by pre-commit: https://pre-commit.com\ntouch {quoted(tmp_path / 'ran')}\n")
    work.agent_makes("new.txt", "agent\n")

    assert work.make().status == "refused"
    assert not (tmp_path / "ran").exists()
    assert work.make(ran=True).status == "committed"


def test_a_failing_post_commit_hook_is_said(work: Work) -> None:
    """The commit stands."""
    work.hook("post-commit", "echo no >&2; exit 3\n")
    work.agent_makes("new.txt", "agent\n")

    result = work.make(protected_branches="allow")

    assert (result.status, result.notices) == ("committed", ("the post-commit hook failed: no",))


def test_a_hook_that_does_not_end_is_stopped(work: Work, tmp_path: Path) -> None:
    """With all it started; nothing is committed."""
    work.hook("commit-msg", f"sleep 300 & echo $! >{quoted(tmp_path / 'pid')}; wait\n")
    work.agent_makes("new.txt", "agent\n")
    before = work.whole()

    result = work.make(hook_deadline_s=0.5)

    assert (result.status, result.text.split(":\n")[1]) == ("hook_failed", "the commit-msg hook did not end within 0.5 s")
    assert work.whole() == before
    assert is_gone(int((tmp_path / "pid").read_text()))


def is_gone(pid: int) -> bool:
    """Whether a process has ended; an orphan that nobody reaps counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_hooks_of_reference_transactions_run_too(work: Work, tmp_path: Path) -> None:
    """One that refuses keeps the branch where it is, and the index with it."""
    work.hook("reference-transaction", "exit 1\n")
    work.agent_makes("new.txt", "agent\n")
    before = work.whole()

    assert work.make().status == "refused"
    assert work.whole() == before


def test_no_editor_opens(work: Work, tmp_path: Path) -> None:
    """Whatever core.editor, GIT_EDITOR, EDITOR and commit.verbose say."""
    editor = work.write("../editor", f"#!/bin/sh\ntouch {quoted(tmp_path / 'opened')}\nsleep 60\nexit 1\n", 0o755)
    work.git("config", "core.editor", str(editor))
    work.git("config", "commit.verbose", "true")
    work.env.update(dict.fromkeys(("GIT_EDITOR", "EDITOR", "VISUAL"), str(editor)))
    work.hook("commit-msg", "$(git var GIT_EDITOR) x\n")
    work.agent_makes("new.txt", "agent\n")

    assert work.commits() == "A new.txt"

    assert not (tmp_path / "opened").exists()


# ---- signing


def signer(work: Work, script: str) -> None:
    """Turns signing on, with a program of that text in place of gpg."""
    program = work.write("../gpg", "#!/bin/sh\n" + script, 0o755)
    work.git("config", "gpg.program", str(program))
    work.git("config", "commit.gpgSign", "true")
    work.git("config", "user.signingKey", "KEY")


GOOD = """cat >/dev/null
echo "[GNUPG:] SIG_CREATED " >&2
printf -- "-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n"
"""
SIGNING = [("user", True, True), ("user", False, False), ("require", False, True), ("never", True, False)]


@pytest.mark.parametrize(("sign", "asked", "signed"), SIGNING)
def test_signing_follows_the_user_and_the_setting(work: Work, sign: str, asked: bool, signed: bool) -> None:
    """A commit is signed where git would sign it, or where it is required."""
    signer(work, GOOD)
    work.git("config", "commit.gpgSign", str(asked).lower())
    work.agent_makes("new.txt", "agent\n")

    assert work.make(sign=sign).status == "committed"

    assert ("gpgsig" in work.git("cat-file", "commit", "HEAD")) is signed


def test_a_commit_that_cannot_be_signed_is_not_made(work: Work) -> None:
    """A failing and a hanging signing program: no commit, no process left, everything as it was."""
    signer(work, "echo no secret key >&2; exit 2\n")
    work.agent_makes("new.txt", "agent\n")
    before = work.whole()
    result = work.make()
    assert result.status == "sign_failed" and "could not be signed" in result.text
    assert work.whole() == before

    pid = work.root.parent / "pid"
    signer(work, f"echo $$ >{quoted(pid)}; exec sleep 300\n")
    before = work.whole()
    result = work.make(sign_deadline_s=0.5)
    assert result.status == "sign_failed" and "0.5 s" in result.text
    assert work.whole() == before
    assert is_gone(int(pid.read_text()))
    assert_clean_up(work)
    assert os.path.exists(work.root)
