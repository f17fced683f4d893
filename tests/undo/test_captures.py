"""What a capture leaves alone, what it takes in, and what it says it could not."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import safety.store.seed as seeding
from tests.support import process
from tests.support.repo import NINE_LINES, RepoBuilder
from tests.support.state import dot_git_fingerprint
from tests.support.store import borrowed, reachable, store_git, stores

ROOT = os.geteuid() == 0


def test_git_directory_is_untouched_by_captures(repo: RepoBuilder) -> None:
    """Bytes, inodes and mtimes of each file under .git are what they were.

    Rule: captures write nothing into the user's repository.
    """
    repo.sh("git repack -adq; echo x >>a.txt; git commit -qam x; git tag v1; git stash list; echo s >s; git add s; echo u >u")
    for folder, _, names in os.walk(repo.path(".git")):
        for name in names:
            os.utime(os.path.join(folder, name), (1_500_000_000, 1_500_000_000))
    before = dot_git_fingerprint(repo.root)

    for number in range(5):
        repo.agent_writes("a.txt", f"{number}\n")
        with repo.agent():
            # content that the seeded packs hold already: writing it again would freshen them
            repo.write("b.txt", NINE_LINES if number % 2 else "b\n")
            repo.write(f"n{number}", "b\n")
        repo.must("status")
        repo.must("snapshot")
        repo.must("store", "prune")

    assert dot_git_fingerprint(repo.root) == before


def test_no_hook_and_no_signing_program_of_the_user_runs(repo: RepoBuilder) -> None:
    """Neither captures nor undo start hooks, fsmonitor, filters or signing.

    Rule: a fixed -c list neutralises what runs programs.
    """
    fired = repo.root.parent / "fired"
    hooks = repo.root.parent / "hooks"
    hooks.mkdir()
    for name in (
        "pre-commit",
        "post-commit",
        "commit-msg",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "post-rewrite",
    ):
        for folder in (hooks, repo.path(".git/hooks")):
            (folder / name).write_text(f"#!/bin/sh\necho {name} >>{fired}\n")
            (folder / name).chmod(0o755)
    canary = hooks / "canary"
    canary.write_text(f"#!/bin/sh\necho $0 $1 >>{fired}\nexit 1\n")
    canary.chmod(0o755)
    repo.write(".gitattributes", "*.txt diff=d filter=f\n")
    for key in (
        "gpg.program",
        "core.fsmonitor",
        "diff.d.command",
        "diff.d.textconv",
        "filter.f.clean",
        "core.sshCommand",
        "core.pager",
    ):
        repo.git("config", key, str(canary))
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "tag.gpgSign", "true")
    repo.git("config", "--global", "core.hooksPath", str(hooks))
    before = repo.picture()
    fired.unlink(missing_ok=True)

    with repo.agent():
        repo.write("a.txt", "agent\n")
        repo.write(".git/refs/heads/agents", repo.picture().repositories[b""]["refs"][0].split()[1].decode() + "\n")  # type: ignore[index]
        fired.unlink(missing_ok=True)
    repo.must("diff", "--stat")
    repo.undo()

    assert not fired.exists(), fired.read_text()
    repo.assert_is(before)


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_PARAMETERS"])
def test_leaked_git_environment(repo: RepoBuilder, name: str) -> None:
    """Run from inside another repository's git hook, nothing of that repository is read or written.

    Rule: every GIT_* is dropped.
    """
    other = RepoBuilder(repo.root.parent / "other", repo.env)
    other.commit("other", o_txt="o\n")
    values = {
        "GIT_DIR": other.path(".git"),
        "GIT_INDEX_FILE": other.path(".git/index"),
        "GIT_WORK_TREE": other.root,
        "GIT_OBJECT_DIRECTORY": other.path(".git/objects"),
        "GIT_CONFIG_PARAMETERS": "'core.worktree=/tmp'",
    }
    before, others = repo.picture(), dot_git_fingerprint(other.root)
    plain = dict(repo.env)
    payload = {"session_id": "s", "cwd": str(repo.root), "call_id": "c", "tool": "shell", "input": {"command": "./x"}}
    repo.env[name] = str(values[name])
    for event in ("turn.pre", "tool.execute.pre", "tool.execute.post", "turn.post"):
        if event == "tool.execute.post":
            repo.write("a.txt", "agent\n")
        assert repo.run("hook", "--agent", "generic", stdin=json.dumps({"event": event, **payload}).encode()).code == 0
    repo.undo()
    repo.env = plain

    repo.assert_is(before)
    assert dot_git_fingerprint(other.root) == others


def test_temporary_index_of_a_running_commit(repo: RepoBuilder) -> None:
    """Inside the pre-commit hook of the same repository the commit's index is untouched. Rule: every GIT_* is dropped."""
    repo.sh("echo s >s; git add s; echo other >>a.txt")
    lock = repo.path(".git/next-index-1.lock")
    lock.write_bytes(repo.read_bytes(".git/index"))
    before = (lock.read_bytes(), lock.stat().st_mtime_ns)
    repo.env["GIT_INDEX_FILE"] = str(lock)
    repo.agent_writes("b.txt", "agent\n")
    repo.undo()
    del repo.env["GIT_INDEX_FILE"]

    assert (lock.read_bytes(), lock.stat().st_mtime_ns) == before
    assert repo.read("b.txt") == "b\n"
    lock.unlink()


def test_nothing_shows_in_the_users_repository(repo: RepoBuilder) -> None:
    """No ref, stash, config, exclude entry or file of ours appears. Rule: the store is outside."""
    before = repo.picture()
    repo.agent_runs("cat a.txt >/dev/null")
    repo.must("snapshot")

    repo.assert_is(before)


def test_store_is_private(repo: RepoBuilder) -> None:
    """The state folder is the user's alone. Rule: 0700."""
    repo.agent_runs("echo agent >a.txt")

    assert stat.S_IMODE(repo.state.stat().st_mode) == 0o700


def test_store_survives_the_loss_of_the_repository(repo: RepoBuilder) -> None:
    """Packs emptied in place do not harm the store. Rule: what is small is copied, never linked."""
    repo.sh("for i in 1 2 3; do echo $i >>a.txt; git commit -qam $i; done; git repack -adq")
    before = repo.picture()
    repo.agent_runs("for f in .git/objects/pack/*; do chmod u+w $f; : >$f; done; rm -rf .git")

    repo.undo()

    repo.assert_is(before)
    repo.git("fsck", "--full", "--strict")


def test_large_packs_of_the_store_become_its_own(repo: RepoBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack too large to be copied at first contact is copied by the end of the turn. Rule: links become copies when idle."""
    monkeypatch.setattr(seeding, "COPY_BUDGET", 0)
    monkeypatch.setattr(seeding, "_reflink", lambda out, source: False)
    repo.sh("for i in 1 2 3; do echo $i >>a.txt; git commit -qam $i; done; git repack -adq")
    before = repo.picture()
    with repo.turn(), repo.call():
        pack = next(repo.path(".git/objects/pack").glob("*.pack"))
        assert process.spawning() or pack.stat().st_nlink == 2
    assert pack.stat().st_nlink == 1
    repo.agent_runs("for f in .git/objects/pack/*; do chmod u+w $f; : >$f; done; rm -rf .git")

    repo.undo()

    repo.assert_is(before)
    repo.git("fsck", "--full", "--strict")


def test_seed_takes_no_keep_files_and_borrows_nothing(repo: RepoBuilder) -> None:
    """A repository that borrows from a donor is covered when the donor is gone. Rule: alternates are followed and copied."""
    donor = repo.root.parent / "donor"
    repo.sh(f"git clone -q --bare . {donor}; git -C {donor} repack -adq")
    clone = RepoBuilder(repo.root.parent / "clone", repo.env, init=False)
    clone.sh(
        f"git clone -q --shared {donor} .; echo 2 >>a.txt; git commit -qam 2; git repack -dq; touch .git/objects/pack/pack-x.keep"
    )
    clone.agent_runs("rm -rf .git")
    for folder in stores(clone.state):
        assert borrowed(folder) == []
        assert not list(folder.glob("objects/pack/*.keep"))

    clone.undo()

    assert (clone.git("log", "--format=%s"), clone.status()) == ("2\nfirst", "")


def test_seed_from_a_linked_objects_folder(repo: RepoBuilder) -> None:
    """An objects folder that is a symbolic link is followed. Rule: seed by our own loop."""
    repo.sh("mv .git/objects ../objects; ln -s ../../objects .git/objects")
    before = repo.head()
    repo.agent_runs("echo agent >b.txt; git commit -qam agent")

    repo.undo()

    assert (repo.head(), repo.status()) == (before, "")


@pytest.mark.skipif(not os.path.isdir("/dev/shm") or not os.access("/dev/shm", os.W_OK), reason="no second file system at hand")
def test_store_on_another_file_system(repo: RepoBuilder, tmp_path: Path) -> None:
    """State and workspace on different file systems work. Rule: reflink, else copy; links only on the same device."""
    state = Path(f"/dev/shm/git-safety-test-{os.getpid()}")
    repo.env["GIT_SAFETY_HOME"] = str(state)
    before = repo.picture()
    try:
        repo.sh("git repack -adq")
        repo.agent_runs("rm -rf .git src; echo agent >b.txt")
        repo.undo()
        repo.assert_is(before)
    finally:
        subprocess.run(["rm", "-rf", str(state)], check=True)


def ours(repo: RepoBuilder) -> None:
    repo.must("store", "forget")
    repo.must("store", "prune")


def gits_own(repo: RepoBuilder) -> None:
    for store in stores(repo.state):
        store_git(store, "repack", "-adq")
        store_git(store, "prune", "--expire=now")


@pytest.mark.parametrize("collect", [ours, gits_own])
def test_prune_keeps_what_an_operation_names(repo: RepoBuilder, collect: Callable[[RepoBuilder], None]) -> None:
    """Commits, stash, index blobs and tags that only the store still has outlive any clean-up of it. Rule: anchors."""
    repo.sh("git checkout -q -b other; echo O >o; git add o; git commit -qm o; git tag -a v1 -m v1; git checkout -q main")
    repo.sh(
        "echo amended >>a.txt; git commit -qam one; git commit -q --amend -m two; echo st >>a.txt; git stash -q; "
        "echo s >b.txt; git add b.txt; echo t >b.txt"
    )
    before = repo.picture()
    repo.agent_runs("rm -rf .git")
    collect(repo)

    repo.undo()

    repo.assert_is(before)
    repo.git("fsck", "--full", "--strict")
    assert repo.git("cat-file", "-t", "HEAD@{1}") == "commit"


def test_what_came_after_first_contact_is_brought_over(repo: RepoBuilder) -> None:
    """A commit that only a reflog names, a stash, a tag and a staged version made since are there when the repository is lost.

    Rule: each capture brings over what is newly named.
    """
    repo.agent_runs("echo agent >a.txt")
    repo.sh(
        "echo amended >>a.txt; git commit -qam one; git commit -q --amend -m two; git tag -a v1 -m v1; echo st >>a.txt; "
        "git stash -q; echo staged >b.txt; git add b.txt; echo unstaged >b.txt"
    )
    before = repo.picture()
    repo.agent_runs("rm -rf .git")

    repo.undo()

    repo.assert_is(before)
    repo.git("fsck", "--full", "--strict")
    assert repo.git("log", "-1", "--format=%s", "HEAD@{2}") == "one"


def test_forget_leaves_what_can_be_undone(repo: RepoBuilder) -> None:
    """After forgetting all but the newest, the newest is undone, older ones are gone, and the store is sound.

    Rule: the old end is cut.
    """
    for number in range(6):
        repo.agent_runs(f"echo {number} >b.txt")
    repo.must("store", "forget", "--keep-operations", "4")
    repo.must("store", "prune")
    repo.ledger.forget()

    repo.undo()

    assert repo.read("b.txt") == "4\n"


def test_pinned_snapshot_is_never_forgotten(repo: RepoBuilder) -> None:
    """A pinned state stays restorable. Rule: pinned operations keep a ref."""
    repo.must("snapshot", "-m", "good")
    for number in range(6):
        repo.agent_runs(f"echo {number} >b.txt")
    repo.must("store", "forget", "--keep-operations", "2")
    repo.must("store", "prune")
    repo.ledger.forget()

    repo.must("restore", "--at", "good", "b.txt")

    assert repo.read("b.txt") == "b\n"


def test_purge_takes_a_secret_out_of_all_history(repo: RepoBuilder) -> None:
    """After purge no object with the content is left, and undo of the rest works. Rule: purge rewrites, keeping ids."""
    secret = "password = very secret indeed\n"
    repo.write(".env", secret)
    repo.agent_runs("echo agent >b.txt")
    repo.remove(".env")

    repo.must("purge", "--yes", ".env")

    assert all(secret.encode() not in content for folder in stores(repo.state) for content in every_blob(folder))
    repo.ledger.forgive(secret.encode())
    repo.undo()
    assert repo.read("b.txt") == "b\n"


def every_blob(store: Path) -> list[bytes]:
    """The contents of all blobs in a store, reachable or not."""
    listed = store_git(store, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").decode().split("\n")
    return [store_git(store, "cat-file", "blob", line.split()[0]) for line in listed if line.endswith(" blob")]


def test_odd_kinds_of_files_do_not_stop_a_capture(repo: RepoBuilder) -> None:
    """FIFOs, sockets and device files are named and never opened; all else is covered.

    Rule: one odd path never fails the batch.
    """
    repo.sh("rm src/app.py; mkfifo src/app.py a-fifo zz-fifo")
    before = repo.picture()
    repo.agent_runs("echo agent >a.txt; echo z >zzz; rm b.txt")

    repo.undo()

    repo.assert_is(before)
    assert "fifo" in repo.must("status").text


def test_fifo_in_place_of_a_tracked_file_is_undone_or_said(repo: RepoBuilder) -> None:
    """A pipe that the agent put over a file cannot be stored: it is said, and the rest is undone.

    Rule: unknown is kept and reported.
    """
    repo.agent_runs("rm b.txt; mkfifo b.txt; echo agent >a.txt")

    done = repo.run("undo", "--json")

    assert repo.read("a.txt") == NINE_LINES
    if stat.S_ISFIFO(os.lstat(repo.path("b.txt")).st_mode):
        assert done.code == 3
        assert "b.txt" in done.paths("kept") + done.paths("not covered")


def test_directory_replaced_by_a_link_does_not_stop_a_capture(repo: RepoBuilder) -> None:
    """Tracked files beyond a new link are absent, nothing fails. Rule: removals first, nothing looks at the file system."""
    repo.sh("mv src elsewhere; ln -s elsewhere src")
    before = repo.picture()
    repo.agent_runs("echo agent >a.txt; echo agent >elsewhere/app.py")

    repo.undo()

    repo.assert_is(before)


def test_large_file_is_named_and_never_deleted(repo: RepoBuilder) -> None:
    """A file over the limit is not covered, and undo neither deletes nor overwrites it. Rule: presence is three-valued."""
    repo.agent_runs("head -c 40000000 /dev/zero >big; echo agent >a.txt")

    done = repo.undo(code=3)

    assert repo.path("big").stat().st_size == 40_000_000
    assert "big" in done.paths("not covered") + done.paths("kept")
    assert repo.read("a.txt") == NINE_LINES
    assert "big" in repo.must("log", "--not-covered").text


def test_large_file_that_was_there_before_and_changed(repo: RepoBuilder) -> None:
    """A large file of the user's that the agent changed is kept as it is, and said. Rule: any of the three unknown keeps."""
    repo.write("big", b"\0" * 40_000_000)
    repo.agent_runs("echo agent >>big; echo agent >a.txt")

    done = repo.undo(code=3)

    assert (repo.path("big").stat().st_size, repo.read("a.txt")) == (40_000_006, NINE_LINES)
    assert "big" in done.paths("not covered") + done.paths("kept")


def test_snapshot_by_hand_takes_a_large_file_in(repo: RepoBuilder) -> None:
    """A file named to snapshot is covered whatever its size. Rule: git safety snapshot PATH."""
    repo.write("big", b"mine" * 10_000_000)
    repo.must("snapshot", "big")
    repo.agent_runs("rm big")

    repo.run("undo", "--json")
    if not repo.exists("big"):
        repo.must("restore", "--before", "t1", "big")

    assert repo.path("big").stat().st_size == 40_000_000


def test_ignored_dependency_folders_are_left_out_and_said(repo: RepoBuilder) -> None:
    """Ignored node_modules and the like are not taken in, and undo leaves them. Rule: skip_dirs, ignored ones only."""
    repo.write(".gitignore", "node_modules/\n")
    repo.commit("ignore")
    repo.write("node_modules/m/index.js", "x" * 1000)
    repo.agent_runs("echo y >node_modules/m/index.js; echo agent >a.txt")
    repo.ledger.forgive(b"x" * 1000)
    stored = reachable(repo.state)

    repo.run("undo", "--json")

    assert (repo.read("node_modules/m/index.js"), repo.read("a.txt")) == ("y\n", NINE_LINES)
    assert repo.git("hash-object", "node_modules/m/index.js") not in stored


def test_repository_configuration_cannot_blind_a_capture(repo: RepoBuilder) -> None:
    """filemode, symlinks, ignorecase, untracked cache and worktree settings of the repository decide nothing.

    Rule: probed, never read.
    """
    for key, value in {
        "core.fileMode": "false",
        "core.symlinks": "false",
        "core.ignoreCase": "true",
        "core.trustctime": "false",
    }.items():
        repo.git("config", key, value)
    repo.git("config", "core.untrackedCache", "true")
    repo.git("status")
    repo.write("Case", "upper\n")
    repo.write("case", "lower\n")
    repo.link("link", "a.txt")
    before = repo.picture()
    repo.agent_runs("chmod 755 b.txt; ln -sfn b.txt link; echo agent >case; rm Case; echo n >n")

    repo.undo()

    repo.assert_is(before)


def test_planted_configuration_during_the_call(repo: RepoBuilder) -> None:
    """What the agent plants in the configuration does not blind the capture after its call. Rule: probed, never read."""
    before = repo.picture()
    repo.agent_runs(
        "git config core.ignoreCase true; git config core.worktree /tmp; git config core.excludesFile /dev/null;"
        " echo '*' >.git/info/exclude; git config status.showUntrackedFiles no; echo n >n; echo agent >a.txt"
    )

    repo.undo()

    repo.assert_is(before)


def test_mode_change_within_a_second_is_seen(repo: RepoBuilder) -> None:
    """A mode changed in the second in which the file was made is seen. Rule: racy entries are looked at, not only their bytes."""
    repo.write("fresh", "mine\n")
    before = repo.picture()
    repo.agent_runs("chmod 600 a.txt b.txt fresh")

    repo.undo()

    repo.assert_is(before)


def test_racy_edit_is_seen(repo: RepoBuilder) -> None:
    """An edit of equal size within the clock tick of the index is seen. Rule: the index is copied with its mtime."""
    before = repo.picture()
    for number in range(5):
        with repo.agent():
            stamp = os.stat(repo.path("b.txt"))
            repo.write("b.txt", f"{number}\n")
            os.utime(repo.path("b.txt"), ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
            assert len(repo.read("b.txt")) == 2
        repo.undo()
        repo.assert_is(before)


def test_clock_that_runs_backwards(repo: RepoBuilder) -> None:
    """Order is the chain's, whatever the clock says. Rule: time = max(now, parent + 1 ms)."""
    faketime = subprocess.run(["sh", "-c", "command -v faketime"], capture_output=True).stdout.decode().strip()
    if not faketime:
        pytest.skip("faketime is not installed")
    repo.agent_runs("echo 1 >b.txt")
    repo.env.update(LD_PRELOAD="libfaketime.so.1", FAKETIME="-2d")
    repo.agent_runs("echo 2 >b.txt")
    repo.undo()
    assert repo.read("b.txt") == "1\n"


def test_paths_beyond_the_system_limit(repo: RepoBuilder) -> None:
    """A file whose absolute path no single call can name is covered. Rule: every access walks by directory descriptors."""
    script = (
        "import os, sys\n"
        "for _ in range(25):\n"
        "    os.makedirs('d' * 200, exist_ok=True); os.chdir('d' * 200)\n"
        "open('deepest', 'w').write(sys.argv[1])\n"
    )
    run = ["python3", "-c", script]
    subprocess.run([*run, "mine"], cwd=repo.root, check=True)
    repo.watched.clear()
    with repo.agent():
        subprocess.run([*run, "agent"], cwd=repo.root, check=True)

    done = repo.run("undo", "--json")

    reader = script.replace("open('deepest', 'w').write(sys.argv[1])", "print(open('deepest').read())")
    found = subprocess.run(["python3", "-c", reader], cwd=repo.root, check=True, capture_output=True).stdout.decode().strip()
    subprocess.run(["rm", "-rf", "d" * 200], cwd=repo.root, check=True)
    assert (done.code, found) == (0, "mine"), done.text


@pytest.mark.skipif(not ROOT, reason="only root can mount")
def test_mount_point_is_not_crossed(repo: RepoBuilder) -> None:
    """Another file system mounted inside is named and left alone. Rule: device boundaries are not crossed."""
    repo.mkdir("mnt")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(repo.path("mnt"))], capture_output=True).returncode:
        pytest.skip("mount is not allowed here")
    try:
        repo.write("mnt/other", "other\n")
        repo.ledger.forgive(b"other\n")
        repo.watched.clear()
        with repo.agent():
            repo.write("mnt/other", "agent\n")
            repo.write("a.txt", "agent\n")
        repo.run("undo", "--json")
        assert (repo.read("mnt/other"), repo.read("a.txt")) == ("agent\n", NINE_LINES)
    finally:
        subprocess.run(["umount", str(repo.path("mnt"))], check=True)


def test_state_folder_inside_the_workspace(repo: RepoBuilder) -> None:
    """The store never takes itself in. Rule: the state folder is excluded."""
    repo.watched.clear()
    repo.state = repo.path("state")
    repo.env["GIT_SAFETY_HOME"] = str(repo.state)
    repo.agent_runs("echo agent >a.txt")
    size = sum(file.stat().st_size for file in repo.state.rglob("*") if file.is_file())
    repo.agent_runs("echo agent2 >a.txt")

    repo.undo()
    repo.undo()

    assert repo.read("a.txt") == NINE_LINES
    assert sum(file.stat().st_size for file in repo.state.rglob("*") if file.is_file()) < 2 * size + 200_000


def test_growth_is_bounded_by_what_changed(repo: RepoBuilder) -> None:
    """Twenty calls beside large untracked data do not store it twenty times. Rule: an operation adds what changed."""
    repo.write("data", os.urandom(20 << 20))
    for number in range(10):
        repo.agent_runs(f"echo {number} >>a.txt")

    size = sum(file.stat().st_size for file in repo.state.rglob("*") if file.is_file())

    assert size < 25 << 20


def test_home_folder_is_not_swallowed(repo: RepoBuilder) -> None:
    """In $HOME itself only declared paths are covered, and that is said. Rule: $HOME and /: declared paths only."""
    home = Path(repo.env["HOME"])
    (home / "movie").write_bytes(os.urandom(5 << 20))
    (home / "notes").write_text("mine\n")
    inside = RepoBuilder(home, repo.env, init=False)
    with inside.agent(tool="write", input={"path": str(home / "notes"), "content": "agent\n"}):
        inside.write("notes", "agent\n")
    with inside.agent():
        inside.write("other", "x\n")

    inside.undo("--turn", "t1")

    assert inside.read("notes") == "mine\n"
    assert sum(file.stat().st_size for file in repo.state.rglob("*") if file.is_file()) < 2 << 20


@pytest.mark.parametrize("name", [".git-safety-tmp-notes", ".git-safety-tmp-", ".git-safety-tmp-klmnopqrstuv-notes"])
def test_a_users_name_that_begins_as_ours_do(repo: RepoBuilder, name: str) -> None:
    """It is covered like any other."""
    repo.write(name, "P\n")
    before = repo.picture()
    repo.agent_runs(f"rm {name}")

    repo.undo()

    repo.assert_is(before)


def test_project_inside_a_home_that_is_a_repository(repo: RepoBuilder) -> None:
    """A project folder of a dotfiles repository is undone without the home being stored. Rule: $HOME: declared paths only."""
    home = Path(repo.env["HOME"])
    inside = RepoBuilder(home, repo.env)
    inside.sh("git add .gitconfig; git commit -qm dotfiles")
    inside.write("movie", os.urandom(5 << 20))
    project = RepoBuilder(home / "project", repo.env, init=False)
    project.write("main.py", "print(1)\n")
    project.write("notes", "mine\n")
    before = project.picture()
    project.agent_runs("echo agent >>main.py; rm notes")

    project.undo()

    project.assert_is(before)
    assert sum(file.stat().st_size for file in repo.state.rglob("*") if file.is_file()) < 2 << 20
