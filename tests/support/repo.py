"""``RepoBuilder``: makes a workspace of any shape, lets an agent and a user act in it, and asks the product to undo."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import process, state, store
from tests.support.process import Result

NINE_LINES = "".join(f"line {number}\n" for number in range(1, 10))


class RepoBuilder:
    """A workspace at ``root`` and the environment its agent, user and product run in.

    ``write`` and friends are the bare acts. Under ``agent()`` they are the agent's, under ``user()`` the user's: both keep the
    ledger of user content that the checks at the end of each test hold the product to.
    """

    def __init__(self, root: Path, env: Mapping[str, str], *, init: bool = True) -> None:
        self.root = root
        self.env = dict(env)
        self.state = Path(env["GIT_SAFETY_HOME"])
        self.ledger = store.Ledger()
        self.watched = [root]
        self.session = "session-1"
        self._ids = itertools.count(1)
        root.mkdir(parents=True, exist_ok=True)
        if init:
            self.git("init", "-q", ".")

    # -- acts --------------------------------------------------------------------------------------------------------------------

    def path(self, path: str | bytes) -> Path:
        return self.root / os.fsdecode(path)

    def write(self, path: str | bytes, data: str | bytes, mode: int | None = None) -> Path:
        """Writes in place, as ``>`` of a shell does; folders on the way are made."""
        full = self.path(path)
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(data.encode() if isinstance(data, str) else data)
        if mode is not None:
            full.chmod(mode)
        return full

    def append(self, path: str, data: str) -> None:
        with open(self.path(path), "a") as file:
            file.write(data)

    def replace(self, path: str, old: str, new: str) -> None:
        text = self.read(path)
        assert old in text
        self.write(path, text.replace(old, new))

    def read(self, path: str | bytes) -> str:
        return self.read_bytes(path).decode()

    def read_bytes(self, path: str | bytes) -> bytes:
        return self.path(path).read_bytes()

    def exists(self, path: str | bytes) -> bool:
        return os.path.lexists(self.path(path))

    def remove(self, path: str | bytes) -> None:
        full = self.path(path)
        shutil.rmtree(full) if full.is_dir() and not full.is_symlink() else full.unlink()

    def mkdir(self, path: str, mode: int = 0o755) -> Path:
        full = self.path(path)
        full.mkdir(parents=True, exist_ok=True)
        full.chmod(mode)
        return full

    def link(self, path: str, target: str) -> None:
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, self.path(path))

    def mode(self, path: str) -> int:
        return os.lstat(self.path(path)).st_mode & 0o7777

    def git(self, *args: str, check: bool = True, cwd: Path | None = None, input: str | None = None) -> str:
        """A git command of whoever acts; gives standard output without the last line end."""
        done = subprocess.run(
            ["git", *args], cwd=cwd or self.root, env=self.env, capture_output=True, input=input and input.encode()
        )
        if check and done.returncode:
            raise AssertionError(f"git {' '.join(args)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def sh(self, script: str, cwd: Path | None = None, check: bool = True) -> str:
        """A shell script of whoever acts."""
        done = subprocess.run(["/bin/sh", "-e", "-c", script], cwd=cwd or self.root, env=self.env, capture_output=True)
        if check and done.returncode:
            raise AssertionError(f"{script}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def commit(self, message: str = "commit", **files: str) -> str:
        """Writes the files (``a_txt`` is ``a.txt``), commits all there is, and gives the commit's id."""
        for name, data in files.items():
            self.write(name.replace("_", "."), data)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def branch(self) -> str:
        return self.git("branch", "--show-current")

    def status(self) -> str:
        return self.git("status", "--porcelain")

    # -- actors ------------------------------------------------------------------------------------------------------------------

    def hook(self, event: str, **fields: Any) -> dict[str, Any]:
        """Sends one event of the generic protocol and gives the answer; anything but an allowing one is an error here."""
        done = self.hook_raw(event, **fields)
        assert done.code == 0, f"{event}: exit {done.code}\n{done.text}"
        answer = json.loads(done.out)
        assert isinstance(answer, dict)
        assert not [text for text in answer.get("notices", []) if "not protected" in text], answer
        return answer

    def hook_raw(self, event: str, **fields: Any) -> Result:
        payload = {"event": event, "session_id": self.session, "cwd": str(self.root), **fields}
        where = payload["cwd"] if os.path.isdir(payload["cwd"]) else "/"
        return process.run(["hook", "--agent", "generic"], where, self.env, json.dumps(payload).encode())

    @contextmanager
    def turn(self, prompt: str = "do it", session: str | None = None) -> Iterator[None]:
        """One exchange of the agent's; calls go inside."""
        with self._session(session):
            self.hook("turn.pre", prompt=prompt)
            yield
            self.hook("turn.post")

    @contextmanager
    def call(
        self, command: str = "./agent-step", *, tool: str = "shell", session: str | None = None, **fields: Any
    ) -> Iterator[str]:
        """One tool call; what happens inside is what the tool does."""
        fields = {"tool": tool, "call_id": f"call-{next(self._ids)}", "input": {"command": command}, **fields}
        self._note()
        with self._session(session):
            self.hook("tool.execute.pre", **fields)
        yield fields["call_id"]
        with self._session(session):
            self.hook("tool.execute.post", **fields, result="done")

    @contextmanager
    def agent(self, command: str = "./agent-step", **fields: Any) -> Iterator[None]:
        """One turn with one call in it."""
        with self.turn(session=fields.get("session")), self.call(command, **fields):
            yield

    def agent_runs(self, script: str, **fields: Any) -> None:
        """A turn in which the agent runs this script in the shell."""
        with self.agent(script, **fields):
            self.sh(script)

    def agent_writes(self, path: str, data: str | bytes, **fields: Any) -> None:
        """A turn in which the agent's write tool, whose path is declared, writes one file."""
        text = data if isinstance(data, str) else data.decode("utf-8", "surrogateescape")
        with self.agent(tool="write", input={"path": str(self.path(path)), "content": text}, **fields):
            self.write(path, data)

    @contextmanager
    def user(self) -> Iterator[None]:
        """What happens inside is the user's own doing, outside of any turn unless a turn is open around it."""
        yield
        self._note()

    @contextmanager
    def _session(self, session: str | None) -> Iterator[None]:
        before, self.session = self.session, session or self.session
        try:
            yield
        finally:
            self.session = before

    def _note(self) -> None:
        for root in self.watched:
            if root.exists():
                self.ledger.note_tree(root)

    # -- the product -------------------------------------------------------------------------------------------------------------

    def run(self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Result:
        """The command line, in the workspace."""
        where = cwd or (self.root if self.root.is_dir() else self.root.parent)
        return process.run(args, where, {**self.env, **(env or {})}, stdin)

    def undo(self, *args: str, code: int = 0, **options: Any) -> Result:
        """``undo --json``, held to an exit code."""
        return self._expect(self.run("undo", "--json", *args, **options), code)

    def redo(self, *args: str, code: int = 0, **options: Any) -> Result:
        return self._expect(self.run("redo", "--json", *args, **options), code)

    def must(self, *args: str, code: int = 0, **options: Any) -> Result:
        """Any command, held to an exit code."""
        return self._expect(self.run(*args, **options), code)

    def _expect(self, done: Result, code: int) -> Result:
        assert done.code == code, f"git-safety {' '.join(done.args)}: exit {done.code}, not {code}\n{done.text}"
        assert "Traceback" not in done.text, done.text
        return done

    # -- pictures and checks -----------------------------------------------------------------------------------------------------

    def picture(self) -> state.State:
        return state.state_of(self.root)

    def assert_is(self, before: state.State) -> None:
        state.assert_same(before, self.picture())

    def missing(self) -> list[str]:
        return self.ledger.missing(self.watched, self.state)


def standard(repo: RepoBuilder) -> RepoBuilder:
    """One commit of a few files of each common sort, and ignore rules."""
    repo.write("a.txt", NINE_LINES)
    repo.write("b.txt", "b\n")
    repo.write("src/app.py", "print('app')\n")
    repo.write("src/lib/util.py", "UTIL = 1\n")
    repo.write("tool.sh", "#!/bin/sh\n", 0o755)
    repo.write(".gitignore", "*.log\n/cache/\n.env\n")
    repo.commit("first")
    return repo


def assert_store_sound(repo: RepoBuilder) -> None:
    """git's check and our own find nothing, nothing is borrowed from elsewhere, and no ref points at a bare tree or blob."""
    for folder in store.stores(repo.state):
        store.fsck(folder)
        assert store.borrowed(folder) == []
    if store.stores(repo.state) and repo.root.is_dir():
        repo.must("store", "fsck")


def assert_nothing_lost(repo: RepoBuilder) -> None:
    """Each content the user ever had is on disk or in the history that the store keeps."""
    assert repo.missing() == []
