"""Who may import whom, who may use what, and which names the package must not have."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.repo import RepoBuilder

PACKAGE = Path(__file__).resolve().parents[1] / "safety"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Imports go down only; rooms on one floor are strangers.
FLOORS = {
    **dict.fromkeys(("__init__", "net"), 11),
    "terminal": 10,
    **dict.fromkeys(("daemon", "agent"), 9),
    "adapters": 8,
    "runtime": 7,
    "tools": 6,
    "commands": 5,
    "session": 4,
    "recorder": 3,
    **dict.fromkeys(("gate", "commit", "instructions", "trust"), 3),
    **dict.fromkeys(("store", "watch", "policy"), 2),
    **dict.fromkeys(("hooks", "plumbing"), 1),
    **dict.fromkeys(("types", "faults", "release"), 0),
}

# What only some may use, and who. A folder stands for all in it.
LICENCES = {
    # The child of `run` and the pager need the terminal, a check is whatever its repository names, the agent has a
    # shell; everything else is git.
    "subprocess": ("plumbing/", "gate/process.py", "agent/tools.py", "terminal/run.py", "terminal/pager.py"),
    # The process's own entry, which hands it on; and a test's fixture, whose net has an environment of its own but for PATH.
    "os.environ": ("runtime/", "terminal/main.py", "adapters/embed/pytest_plugin.py"),
    "print": ("terminal/",),
    "rich": ("terminal/",),
    "watchdog": ("watch/observer.py",),
    "pygit2": ("plumbing/odb.py",),
    "git": ("plumbing/",),
    "openai": ("agent/model.py",),
    "tree_sitter": ("policy/shell.py",),
    "tree_sitter_bash": ("policy/shell.py",),
    "gptme": ("adapters/embed/gptme/",),
}

# The top level of the vulnerability scanner that shares our import name. Where no names meet, both work in one environment.
SCANNER = """
    __init__ __main__ alerts asyncio_patch auth cli cli_util cli_utils codebase codebase_utils config console constants
    decorators emoji encoding error_handlers errors events firewall formatter formatters init logs_helpers meta models
    output_utils platform safety safety_policy_file scan templates tool util utils
"""
SCANNERS_ROOT = '__author__ = """safetycli.com"""\n__email__ = "cli@safetycli.com"\n'


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, also inside functions, as a full name."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (["safety", *path.relative_to(PACKAGE).parts[:-1]][: -node.level + 1 or None]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def uses(path: Path) -> Iterator[str]:
    """The names of LICENCES that a file makes use of."""
    for name in imports(path):
        yield from (licence for licence in LICENCES if f"{name}.".startswith(f"{licence}."))
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield "print"
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os":
            if node.attr in ("environ", "environb", "getenv", "getenvb"):
                yield "os.environ"
            if node.attr in ("system", "popen", "fork", "forkpty") or node.attr.startswith(("spawn", "exec", "posix_spawn")):
                yield "subprocess"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    """No module imports from its own floor's other rooms, from above, or from the package root."""
    here = room(path)
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "safety":
            assert len(parts) > 1 and parts[1] in FLOORS, f"{name} is imported from the package root"
            assert parts[1] == here or FLOORS[parts[1]] < FLOORS[here], f"{here} may not import {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_each_thing_is_used_where_it_may_be(path: Path) -> None:
    """Processes, the environment, output and third-party packages each have their rooms."""
    for licence in uses(path):
        assert str(path.relative_to(PACKAGE)).startswith(LICENCES[licence]), f"{licence} is used in {path.relative_to(PACKAGE)}"


def test_no_name_is_shared_with_the_scanner() -> None:
    """Of our top-level names only ``__init__`` is one of the scanner's too, in whatever case."""
    ours = {entry.name.removesuffix(".py").lower() for entry in PACKAGE.iterdir() if entry.name != "__pycache__"}
    assert ours & set(SCANNER.split()) == {"__init__"}
    assert ours - {"py.typed"} <= set(FLOORS), "a new room needs a floor"


@pytest.mark.parametrize("root", ["ours", "the scanner's", "none"])
def test_the_package_root_is_not_needed(root: str, tmp_path: Path) -> None:
    """``import safety`` imports nothing else; and with the scanner's own file there, or none at all, the door still opens."""
    home = tmp_path / "safety"
    home.mkdir()
    for entry in PACKAGE.iterdir():
        if entry.name != "__init__.py":
            (home / entry.name).symlink_to(entry)
    if root != "none":
        own = (PACKAGE / "__init__.py").read_text()
        (home / "__init__.py").write_text(own if root == "ours" else SCANNERS_ROOT)
    loaded = "import sys; before = set(sys.modules); import safety; print(*sorted(set(sys.modules) - before))"
    assert python(loaded, tmp_path).split() == ["safety"]
    assert python("from safety.terminal.main import main; print(main(['undo', '-h'], {}))", tmp_path).splitlines()[-1] == "0"


def test_the_version_costs_little() -> None:
    """``--version`` loads neither the parser, nor the drawing, nor any third-party package."""
    code = "import sys; old = set(sys.modules); from safety.terminal.main import main; main(['--version'], {})"
    loaded = set(python(f"{code}; print(*set(sys.modules) - old)", PACKAGE.parent).split())
    assert not loaded & {"argparse", "json", "re", "typing", "dataclasses", "subprocess", "rich", "pygit2", "watchdog"}


#: What a hook's process for a reading call has no use for; each is loaded by the events, calls and verbs that have.
NOT_FOR_READING = {
    *("argparse", "difflib", "secrets", "shlex", "tempfile", "asyncio", "pygit2", "git", "rich", "watchdog"),
    *(f"safety.{room}" for room in ("gate", "commit", "instructions", "trust", "watch", "commands.report")),
    *(f"safety.policy.{name}" for name in ("values", "places", "effects", "rules", "shell", "secrets", "screening", "reading")),
    *(
        f"safety.store.{name}"
        for name in ("capture", "declared", "snapshot", "history", "restore", "retention", "repack", "fsck", "seed", "journal")
    ),
    *("safety.hooks.settings", "safety.hooks.plugins", "safety.plumbing.index", "safety.plumbing.ignore"),
}


def test_a_reading_call_costs_little(repo: RepoBuilder) -> None:
    """The hook of a call that reads, in a turn that is open, loads nothing that captures, judges, commits, instructs or parses words."""
    event = {"event": "tool.execute.pre", "session_id": "s", "cwd": str(repo.root), "tool": "read", "input": {"path": "a.txt"}}
    repo.hook("turn.pre", session_id="s", prompt="x")
    assert not NOT_FOR_READING & after_event(repo, {**event, "call_id": "c"})


def after_event(repo: RepoBuilder, event: Mapping[str, Any]) -> set[str]:
    """The modules that a hook's process has loaded when it has answered; the answer was an allowing one."""
    code = (
        "import io, os, sys; old = set(sys.modules); from safety.terminal.main import main\n"
        f"sys.stdin = io.TextIOWrapper(io.BytesIO({json.dumps(event).encode()!r}))\n"
        "code = main(['hook', '--agent', 'generic'], os.environ); print(code, *set(sys.modules) - old)"
    )
    answer, words = python(code, PACKAGE.parent, repo.env).splitlines()
    assert json.loads(answer) in ({"decision": "allow"}, {}) and words.split()[0] == "0"
    assert "safety.session" in words.split()
    return set(words.split())


#: What a call that names its paths needs of these, once the folders of its paths are known in the turn.
FOR_DECLARED = {"safety.store.snapshot", "safety.store.declared"}


def test_a_declared_call_costs_little(repo: RepoBuilder) -> None:
    """The hook of a call that names its paths loads nothing of what scans, judges, commits or instructs."""
    given = {"session_id": "s", "cwd": str(repo.root), "tool": "write", "input": {"path": "a.txt"}}
    repo.hook("turn.pre", session_id="s", prompt="x")
    repo.hook("tool.execute.pre", **given, call_id="b")
    for moment in ("pre", "post"):
        words = after_event(repo, {"event": f"tool.execute.{moment}", **given, "call_id": "c"})
        assert words >= FOR_DECLARED
        assert not (NOT_FOR_READING - FOR_DECLARED) & words


def test_the_public_module_costs_little() -> None:
    """``import safety.net`` loads nothing but itself; naming what registers a hook loads no engine."""
    bare = "import sys; old = set(sys.modules); import safety.net; print(*set(sys.modules) - old)"
    assert set(python(bare, PACKAGE.parent).split()) <= {"safety", "safety.net", "__future__"}
    used = "import sys; from safety.net import HookType, register_hook; print(*sys.modules)"
    loaded = set(python(used, PACKAGE.parent).split())
    rooms = {name.split(".")[1] for name in loaded if name.startswith("safety.")}
    assert rooms == {"net", "hooks", "types", "faults"}
    assert not loaded & NOT_FOR_READING


def python(code: str, folder: Path, env: Mapping[str, str] | None = None) -> str:
    """What a fresh interpreter prints for ``code``, with ``folder`` first on its path."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**(env or {}), "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
