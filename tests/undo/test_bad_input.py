"""Bad input and hostile surroundings: a clear error, the documented exit code, nothing lost, the protected command still runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import process
from tests.support.environment import isolated
from tests.support.process import Result
from tests.support.repo import NINE_LINES, RepoBuilder
from tests.support.store import store_git, stores

ROOT = os.geteuid() == 0
NOBODY = 65534
SCRIPT = ("/bin/sh", "-c", "echo ran >proof; exit 5")


def clear(done: Result, code: int | tuple[int, ...]) -> Result:
    """One error with a sentence, in the form and with the exit code that the contract gives."""
    assert done.code in ((code,) if isinstance(code, int) else code), f"{done.args}: exit {done.code}\n{done.text}"
    assert "Traceback" not in done.text, done.text
    assert "failed inside" not in done.text, done.text
    if done.code in (1, 2):
        assert done.err.startswith("Error: ") or '"code"' in done.out, done.text
    return done


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"],
        ["undo", "--nonsense"],
        ["undo", "-n", "none"],
        ["undo", "-n", "-1"],
        ["undo", "t1", "t2"],
        ["restore", "a.txt"],
        ["restore", "--before", "t1"],
        ["store", "explode"],
        ["log", "--since", "the day after"],
        ["run"],
        ["run", "--"],
        ["purge"],
        ["find"],
        [""],
        ["--nonsense"],
    ],
    ids=lambda words: " ".join(words) or "empty",
)
def test_usage(repo: RepoBuilder, words: list[str]) -> None:
    """What cannot be understood is usage: exit 2, one error."""
    clear(repo.run(*words), 2)


@pytest.mark.parametrize(
    "words",
    [
        ["undo", "t99"],
        ["undo", "--turn", "t99"],
        ["undo", "--call", "t1.7"],
        ["undo", "zzzzzz"],
        ["undo", "--session", "nobody"],
        ["restore", "--before", "t99", "a.txt"],
        ["restore", "--before", "t1", "no/such/path"],
        ["show", "t99"],
        ["diff", "t99"],
        ["export", "t99"],
        ["pin", "name", "t99"],
        ["undo", "--", "no/such/path"],
        ["undo", "--", "/etc/passwd"],
        ["undo", "--plan", "nonsense"],
    ],
    ids=" ".join,
)
def test_unknown_handle_or_path(repo: RepoBuilder, words: list[str]) -> None:
    """A handle or path that nothing is known of: exit 1, 2 or 4, and nothing is changed."""
    repo.agent_runs("echo agent >a.txt")
    before = repo.picture()

    clear(repo.run(*words), (1, 2, 4))

    repo.assert_is(before)


@pytest.mark.parametrize(
    "verb", ["undo", "redo", "log", "show", "diff", "status", "doctor", "snapshot", "find x", "store fsck", "recover"]
)
def test_where_nothing_was_ever_recorded(folder: RepoBuilder, verb: str) -> None:
    """Every verb in a folder that the product has never seen ends by itself with a sentence."""
    clear(folder.run(*verb.split()), (0, 1, 4))


@pytest.mark.parametrize(
    "words", [["undo", "t1\udcff"], ["show", "t1\udcff"], ["log", "--since", "t1\udcff"], ["t1\udcff"]], ids=ascii
)
def test_odd_bytes_of_a_word_are_shown_as_those_of_a_name(repo: RepoBuilder, words: list[str]) -> None:
    """An error that quotes what was typed has bytes that are no text as other names have them."""
    repo.agent_runs("echo agent >a.txt")
    assert "'t1\\xff'" in clear(repo.run(*words), (1, 2, 4)).err


@pytest.mark.parametrize("verb", ["undo", "redo", "log", "status", "store fsck", "run -- true", "snapshot"])
def test_json_is_always_json(repo: RepoBuilder, verb: str) -> None:
    """With --json standard output is one object, in success and in failure."""
    if verb.startswith("run"):
        return
    done = repo.run(*verb.split(), "--json")

    assert isinstance(json.loads(done.out), dict), done.text


def test_current_folder_is_gone(repo: RepoBuilder) -> None:
    """A command whose current folder was removed says so or finds the workspace; it does not crash."""
    python = shutil.which("python3", path=repo.env["PATH"])
    script = f"mkdir gone && cd gone && rmdir ../gone && exec {python} -m safety.terminal status"
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=repo.root, env={**repo.env, "PYTHONPATH": str(process.PROJECT)}, capture_output=True
    )

    assert done.returncode in (0, 1)
    assert b"Traceback" not in done.stderr


def test_hook_in_a_folder_that_does_not_exist(repo: RepoBuilder) -> None:
    """An event whose cwd is nowhere is an error with a sentence, or nothing to protect: never a traceback."""
    done = repo.hook_raw("turn.pre", prompt="x", cwd=str(repo.root / "nowhere"))

    clear(done, (0, 1))


def test_hook_whose_cwd_is_a_file(repo: RepoBuilder) -> None:
    """Not a folder: an error with a sentence, never a traceback."""
    clear(repo.hook_raw("turn.pre", prompt="x", cwd=str(repo.path("a.txt"))), (0, 1))


def unprivileged() -> list[str]:
    """What to put before a command so that permission bits hold for it; for root that is giving up all capabilities."""
    if not ROOT:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root needs setpriv to give up its rights")
    return ["setpriv", "--bounding-set=-all", "--"]


def test_unreadable_paths_of_the_workspace_are_said(tmp_path: Path) -> None:
    """As an ordinary user: what cannot be read is named, kept by undo, and the rest is undone."""
    repo = RepoBuilder(tmp_path / "work", isolated(tmp_path))
    repo.commit("first", a_txt=NINE_LINES, b_txt="b\n", secret="s\n")
    repo.write("closed/inside", "x\n")
    repo.path("secret").chmod(0)
    repo.path("closed").chmod(0)
    prefix = unprivileged()

    def hook(event: str) -> None:
        call = {"call_id": "c", "tool": "shell", "input": {"command": "./x"}}
        payload = json.dumps({"event": event, "session_id": "s", "cwd": str(repo.root), "prompt": "p", **call}).encode()
        done = process.run_spawned(["hook", "--agent", "generic"], repo.root, repo.env, payload, prefix)
        assert done.code == 0, done.text

    hook("turn.pre")
    hook("tool.execute.pre")
    repo.sh("echo agent >a.txt; rm b.txt; echo n >n")
    hook("tool.execute.post")
    hook("turn.post")
    done = process.run_spawned(["undo", "--json"], repo.root, repo.env, prefix=prefix)
    status = process.run_spawned(["status"], repo.root, repo.env, prefix=prefix)

    repo.path("secret").chmod(0o644)
    repo.path("closed").chmod(0o755)
    assert done.code in (0, 3), done.text
    assert (repo.read("a.txt"), repo.read("b.txt"), repo.exists("n")) == (NINE_LINES, "b\n", False)
    assert (repo.read("secret"), repo.read("closed/inside")) == ("s\n", "x\n")
    assert "secret" in status.text and "closed" in status.text


def test_read_only_state_folder(tmp_path: Path) -> None:
    """Where the state cannot be written the protected command still runs and it is said; with fail_closed it does not."""
    repo = RepoBuilder(tmp_path / "work", isolated(tmp_path))
    repo.commit("first", a_txt="a\n")
    repo.state.mkdir(mode=0o555)
    prefix = unprivileged()

    done = process.run_spawned(["run", "--", *SCRIPT], repo.root, repo.env, prefix=prefix)

    assert (done.code, repo.read("proof")) == (5, "ran\n"), done.text
    assert done.err.strip()
    assert "Traceback" not in done.text
    clear(process.run_spawned(["undo"], repo.root, repo.env, prefix=prefix), (1, 4))
    repo.remove("proof")
    write_settings(repo.env, fail_closed=True)
    closed = process.run_spawned(["run", "--", *SCRIPT], repo.root, repo.env, prefix=prefix)
    assert (closed.code, repo.exists("proof")) == (125, False), closed.text


def test_workspace_that_cannot_be_written(tmp_path: Path) -> None:
    """Where undo may not write it keeps everything, says so, and exits 1 or 3."""
    repo = RepoBuilder(tmp_path / "work", isolated(tmp_path))
    repo.commit("first", a_txt="a\n")
    repo.write("locked/f", "mine\n")
    repo.agent_runs("echo agent >locked/f; echo n >locked/n")
    repo.path("locked").chmod(0o555)

    done = process.run_spawned(["undo", "--json"], repo.root, repo.env, prefix=unprivileged())

    repo.path("locked").chmod(0o755)
    clear(done, (1, 3))
    assert (repo.read("locked/f"), repo.read("locked/n")) == ("agent\n", "n\n")


def write_settings(env: dict[str, str], **settings: object) -> None:
    file = Path(env["XDG_CONFIG_HOME"], "git-safety/settings.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB to run full."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if (
        not ROOT
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True).returncode
    ):
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_disk_full_at_a_capture(tmp_path: Path, tiny_disk: Path) -> None:
    """With a full state disk the command runs, it is said, nothing of the user's is touched, and it works again with room."""
    repo = RepoBuilder(tmp_path / "work", {**isolated(tmp_path), "GIT_SAFETY_HOME": str(tiny_disk / "state")})
    repo.commit("first", a_txt=NINE_LINES)
    repo.agent_runs("echo 1 >a.txt")
    filler = tiny_disk / "filler"
    fill(filler)
    repo.write("b", os.urandom(3 << 20))

    done = repo.run("run", "--", "/bin/sh", "-c", "echo 2 >a.txt; exit 6")

    assert (done.code, repo.read("a.txt")) == (6, "2\n"), done.text
    assert "Traceback" not in done.text
    assert done.err.strip()
    clear(repo.run("undo"), (1, 3, 4))
    filler.unlink()
    repo.remove("b")
    repo.agent_runs("echo 3 >a.txt")
    repo.undo()
    assert repo.read("a.txt") in ("2\n", "1\n")
    repo.must("store", "fsck")


def test_disk_full_at_undo(tmp_path: Path, tiny_disk: Path) -> None:
    """Without room for the safety snapshot undo refuses and changes nothing; with room it works. Rule: undo refuses, exit 1."""
    repo = RepoBuilder(tmp_path / "work", {**isolated(tmp_path), "GIT_SAFETY_HOME": str(tiny_disk / "state")})
    repo.commit("first", a_txt=NINE_LINES)
    repo.agent_runs("echo 1 >a.txt; echo n >n")
    repo.write("a.txt", os.urandom(3 << 20).hex()[: 3 << 20])
    filler = tiny_disk / "filler"
    fill(filler)
    before = repo.picture()

    clear(repo.run("undo"), (1,))

    repo.assert_is(before)
    filler.unlink()
    repo.write("a.txt", "1\n")
    repo.undo()
    assert (repo.read("a.txt"), repo.exists("n")) == (NINE_LINES, False)
    repo.must("store", "fsck")


def test_disk_full_in_the_workspace(tmp_path: Path, tiny_disk: Path) -> None:
    """With a full workspace disk undo loses neither version, and finishes with room."""
    repo = RepoBuilder(tiny_disk / "work", isolated(tmp_path))
    before = os.urandom(1 << 20)
    repo.write("big", before)
    repo.write("a.txt", "a\n")
    repo.agent_runs("rm big; echo agent >a.txt")
    filler = tiny_disk / "filler"
    fill(filler)

    done = repo.run("undo")

    assert done.code in (1, 3), done.text
    assert "Traceback" not in done.text
    filler.unlink()
    for _ in range(2):
        repo.run("undo")
        if repo.exists("big"):
            break
        repo.run("restore", "--before", "t1", "big")
    assert (repo.read_bytes("big"), repo.read("a.txt")) == (before, "a\n")


def fill(file: Path) -> None:
    """Takes all room there is."""
    with open(file, "wb") as out:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    os.write(out.fileno(), b"\0" * size)
            except OSError:
                continue


def objects_by_kind(store: Path) -> dict[str, list[Path]]:
    """The loose object files of a store by what they are."""
    found: dict[str, list[Path]] = {}
    for file in sorted(store.glob("objects/[0-9a-f][0-9a-f]/*")):
        kind = store_git(store, "cat-file", "-t", file.parent.name + file.name).decode().strip()
        found.setdefault(kind, []).append(file)
    return found


def truncated(file: Path) -> None:
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flipped(file: Path) -> None:
    file.chmod(0o644)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))


def emptied(file: Path) -> None:
    file.chmod(0o644)
    file.write_bytes(b"")


def removed(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("damage", [truncated, flipped, emptied, removed], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", ["blob", "tree", "commit"])
def test_damaged_object(tmp_path: Path, kind: str, damage: Callable[[Path], None]) -> None:
    """With objects of one kind damaged, fsck says so, undo fails clean or undoes, and nothing on disk is lost."""
    repo = RepoBuilder(tmp_path / "work", isolated(tmp_path))
    repo.commit("first", a_txt=NINE_LINES, b_txt="b\n")
    repo.write("u", "untracked\n")
    repo.agent_runs("echo agent >a.txt; rm u")
    [store] = [folder for folder in stores(repo.state) if objects_by_kind(folder).get("commit")]
    for file in objects_by_kind(store)[kind]:
        damage(file)
    before = repo.picture()

    assert repo.run("store", "fsck").code == 1
    for words in (["undo"], ["log"], ["status"], ["show"], ["diff"], ["doctor"]):
        done = repo.run(*words)
        assert "Traceback" not in done.text and "failed inside" not in done.text, f"{words}: {done.text}"
    assert set(before.files) <= set(repo.picture().files)
    done = repo.run("run", "--", *SCRIPT)
    assert (done.code, repo.read("proof")) == (5, "ran\n"), done.text


@pytest.mark.parametrize("name", ["HEAD", "config", "shallow", "packed-refs"])
def test_damaged_file_of_the_store(tmp_path: Path, name: str) -> None:
    """Junk in a small file of the store is said or mended; the protected command runs."""
    repo = RepoBuilder(tmp_path / "work", isolated(tmp_path))
    repo.commit("first", a_txt=NINE_LINES)
    repo.agent_runs("echo agent >a.txt")
    for store in stores(repo.state):
        (store / name).write_bytes(b"\0junk\n")

    done = repo.run("run", "--", *SCRIPT)

    assert (done.code, repo.read("proof")) == (5, "ran\n"), done.text
    assert "Traceback" not in done.text
    done = repo.run("undo", "t1")
    assert "Traceback" not in done.text and "failed inside" not in done.text, done.text


def test_damaged_helper_files_are_rebuilt(repo: RepoBuilder) -> None:
    """Junk in everything beside the chain costs nothing. Rule: the chain is the only truth; all beside it can be rebuilt."""
    before = repo.picture()
    repo.agent_runs("echo agent >a.txt; rm b.txt")
    inside = stores(repo.state)
    for folder, folders, names in os.walk(repo.state):
        if Path(folder) in inside:
            folders[:] = [name for name in folders if name not in ("objects", "refs", "info")]
            names = [name for name in names if name not in ("HEAD", "config", "packed-refs", "shallow")]
        if Path(folder).name == "workspaces" or Path(folder) == repo.state:
            continue  # which workspace this is, and the mark of the format
        for name in names:
            Path(folder, name).write_bytes(b"junk")

    repo.undo()

    repo.assert_is(before)


def test_head_of_the_chain_that_does_not_resolve(repo: RepoBuilder) -> None:
    """After power loss a head whose newest object is empty is stepped back.

    Rule: a head that does not resolve is stepped back.
    """
    repo.agent_runs("echo 1 >a.txt")
    [store] = [folder for folder in stores(repo.state) if objects_by_kind(folder).get("commit")]
    for ref in store.rglob("refs/**/*"):
        if ref.is_file():
            oid = ref.read_text().strip()
            file = store / "objects" / oid[:2] / oid[2:]
            if file.exists() and store_git(store, "cat-file", "-t", oid).strip() == b"commit":
                emptied(file)

    repo.agent_runs("echo 2 >b.txt")
    repo.undo()

    assert repo.read("b.txt") == "b\n"


def test_state_of_a_newer_version(repo: RepoBuilder) -> None:
    """A store that a newer version has written to is left alone, with a sentence; the protected command runs."""
    repo.agent_runs("echo 1 >a.txt")
    marks = [file for file in repo.state.rglob("*") if file.is_file() and "version" in file.name.lower()]
    marks += [store / "config" for store in stores(repo.state)] if not marks else []
    saved = {file: file.read_bytes() for file in marks}
    for file in marks:
        if file.name == "config":
            subprocess.run(["git", "config", "-f", str(file), "safety.version", "999"], check=True)
            subprocess.run(["git", "config", "-f", str(file), "safety.format", "999"], check=True)
        else:
            file.write_text("999\n")

    done = repo.run("undo")

    for file, data in saved.items():
        file.write_bytes(data)
    assert "Traceback" not in done.text
    assert done.code == 1, "the state of a newer version was not noticed"
    assert repo.read("a.txt") == "1\n"
    repo.undo()


def test_dubious_ownership_is_one_line(tmp_path: Path) -> None:
    """A repository that git itself refuses is said in one line of ours; its files are covered or it is not protected at all."""
    if not ROOT:
        pytest.skip("only root can make another user's repository")
    repo = RepoBuilder(tmp_path / "work", isolated(tmp_path))
    repo.commit("first", a_txt=NINE_LINES)
    for folder, folders, names in os.walk(repo.root):
        for name in [".", *folders, *names]:
            os.chown(os.path.join(folder, name), NOBODY, NOBODY)

    done = repo.run("run", "--", "/bin/sh", "-c", "echo agent >a.txt")

    assert (done.code, repo.read("a.txt")) == (0, "agent\n")
    assert [len(line) < 300 for line in done.err.splitlines() if "ownership" in line] == [True], done.err
    clear(repo.run("undo"), (0, 1, 3, 4))


def test_terminal_sequences_of_names_are_harmless(repo: RepoBuilder) -> None:
    """Names with escape sequences and markup reach the terminal as visible characters. Rule: one sanitizer for foreign text."""
    for name in ("\x1b]0;owned\x07", "[red]r", "[link=x]y", "\x9b31m", "‮txt.exe"):
        repo.write(name, "mine\n")
    with repo.turn(prompt="\x1b[2J"), repo.call():
        repo.sh('for f in *; do [ ! -f "$f" ] || echo agent >"$f"; done')

    shown = repo.run("log", "-v").text + repo.run("show").text + repo.run("diff", "--stat").text + repo.must("undo").text

    assert not [char for char in ("\x1b", "\x07", "\x9b", "‮") if char in shown]
    assert "[red]r" in shown


def test_wrong_setting_names_the_key(repo: RepoBuilder) -> None:
    """A setting of the wrong type is an error that names it; an unknown key is a warning; hooks go on."""
    write_settings(repo.env, snapshots={"max_file_mib": "many"})
    done = repo.run("undo")
    assert "max_file_mib" in done.text
    assert "Traceback" not in done.text
    write_settings(repo.env, nonsense=1)
    repo.agent_runs("echo agent >a.txt")
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


def test_lock_held_by_a_living_process(repo: RepoBuilder) -> None:
    """While another process of ours works here, undo waits with a bound and then says so; a hook does not block the tool."""
    repo.agent_runs("echo agent >a.txt")
    locks = [file for file in repo.state.rglob("*lock*") if file.is_file()]
    if not locks:
        pytest.skip("no lock file is left between commands")
    import fcntl

    held = [open(file) for file in locks]  # noqa: SIM115 - closed below
    try:
        for file in held:
            # at once: no command leaves a process behind that holds a lock
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        done = repo.run("undo")
        assert done.code in (1, 4), done.text
        assert repo.read("a.txt") == "agent\n"
    finally:
        for file in held:
            file.close()
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES
