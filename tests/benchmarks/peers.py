"""What other tools run at each step, replayed command by command; one function a tool, each a snapshot of the workspace.

Only the commands' costs are compared, so error handling is left out. ``state`` is a folder of the tool's own that lasts over
steps.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

Step = Callable[[Path, Path, Mapping[str, str]], None]

WHO = {f"GIT_{who}_{what}": "p@example.test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def _run(root: Path, env: Mapping[str, str], *args: str, input: bytes = b"") -> bytes:
    done = subprocess.run(["git", *args], cwd=root, env=env, input=input, capture_output=True)
    if done.returncode > 1:  # 1 is check-ignore's way to say no
        raise RuntimeError(f"git {args}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def shadow_add_and_commit(root: Path, state: Path, env: Mapping[str, str]) -> None:
    """gptme: a shadow repository, ``add -A`` and a commit; its first half only, the second follows the tool call."""
    shadow = state / "shadow"
    if not shadow.exists():
        _run(root, env, "init", "-q", "--bare", str(shadow))
    env = {**env, "GIT_DIR": str(shadow), "GIT_WORK_TREE": str(root), **WHO}
    if not (shadow / "index").exists():
        _run(root, env, "config", "core.bare", "false")
    _run(root, env, "add", "-A")
    _run(root, env, "write-tree")
    _run(root, env, "commit", "-q", "--allow-empty", "--no-verify", "--no-gpg-sign", "-m", "step")
    _run(root, env, "rev-parse", "--short", "HEAD")


def ghost_commit(root: Path, state: Path, env: Mapping[str, str]) -> None:
    """codex: status, a temporary index read from HEAD, the changed paths added to it, a dangling commit in the user's
    repository.
    """
    _run(root, env, "rev-parse", "--show-toplevel")
    _run(root, env, "rev-parse", "--git-dir")
    head = _run(root, env, "rev-parse", "--verify", "HEAD").decode().strip()
    status = _run(root, env, "status", "--porcelain=2", "-z", "--untracked-files=all")
    paths = [
        entry.split(b" ", 8)[8] if entry[:1] == b"1" else entry[2:] for entry in status.split(b"\0") if entry[:1] in (b"1", b"?")
    ]
    index = state / "ghost-index"
    index.unlink(missing_ok=True)
    env = {**env, "GIT_INDEX_FILE": str(index), **WHO}
    _run(root, env, "read-tree", head)
    for start in range(0, len(paths), 64):
        _run(root, env, "add", "--all", "--", *(os.fsdecode(path) for path in paths[start : start + 64]))
    tree = _run(root, env, "write-tree").decode().strip()
    _run(root, env, "commit-tree", tree, "-p", head, "-m", "step")


def seeded_tree(root: Path, state: Path, env: Mapping[str, str]) -> None:
    """opencode: a repository that borrows the user's objects, changed names by two lists, added by pathspec, a tree and no
    commit.
    """
    shadow = state / "seeded"
    user = env
    if not shadow.exists():
        _run(root, {**env, "GIT_DIR": str(shadow), "GIT_WORK_TREE": str(root)}, "init", "-q")
        for key, value in {
            "core.autocrlf": "false",
            "feature.manyFiles": "true",
            "index.version": "4",
            "core.fsmonitor": "false",
        }.items():
            _run(root, env, "--git-dir", str(shadow), "config", key, value)
        (shadow / "objects/info/alternates").write_text(f"{root}/.git/objects\n")
        (shadow / "index").write_bytes((root / ".git/index").read_bytes())
    at = ["--git-dir", str(shadow), "--work-tree", str(root)]
    _run(root, user, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
    others = subprocess.Popen(
        ["git", *at, "ls-files", "--full-name", "--others", "--exclude-standard", "-z", "--", "."],
        cwd=root, env=dict(env), stdout=subprocess.PIPE,
    )  # fmt: skip
    changed = _run(root, env, *at, "diff-files", "--name-only", "-z", "--", ".")
    new, _ = others.communicate()
    paths = [path for path in (changed + new).split(b"\0") if path]
    if paths:
        _run(root, user, "check-ignore", "--no-index", "--stdin", "-z", input=b"\0".join(paths) + b"\0")
        spec = b"".join(b":(top,literal)%s\0" % path for path in paths)
        _run(root, env, *at, "add", "--all", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul", input=spec)
    _run(root, env, *at, "write-tree")


def stash_with_untracked(root: Path, state: Path, env: Mapping[str, str]) -> None:
    """cline: ``stash create`` in the user's repository, untracked files in a third parent from a temporary index, a ref."""
    env = {**env, **WHO}
    stash = _run(root, env, "stash", "create", "step").decode().strip() or _run(root, env, "rev-parse", "HEAD").decode().strip()
    untracked = _run(root, env, "ls-files", "--others", "--exclude-standard", "-z")
    if untracked:
        listed = state / "untracked"
        listed.write_bytes(untracked)
        index = state / "stash-index"
        index.unlink(missing_ok=True)
        own = {**env, "GIT_INDEX_FILE": str(index)}
        _run(root, own, "add", "--force", "--pathspec-from-file", str(listed), "--pathspec-file-nul")
        third = _run(root, env, "commit-tree", _run(root, own, "write-tree").decode().strip(), "-m", "u").decode().strip()
        tree = _run(root, env, "rev-parse", f"{stash}^{{tree}}").decode().strip()
        stash = _run(root, env, "commit-tree", tree, "-p", stash, "-p", third, "-m", "step").decode().strip()
    _run(root, env, "update-ref", "refs/checkpoints/step", stash)


PEERS: Mapping[str, Step] = {
    "gptme (PRE half)": shadow_add_and_commit,
    "codex ghost": ghost_commit,
    "opencode": seeded_tree,
    "cline": stash_with_untracked,
}
