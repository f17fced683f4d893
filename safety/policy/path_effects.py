"""What is lost when a path is removed or written anew, and what is given out when it is shown."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from safety.policy import places
from safety.policy.scene import Scene, Target
from safety.policy.values import Action, CallFacts, Effect, Question

# What is lost for good with each place, whatever a snapshot holds; the others are asked about.
_REMOVED: dict[str, tuple[str, Action]] = {
    "device": ("disk.destroy", "deny"),
    "own": ("self.defense", "ask"),
    "root": ("path.remove", "deny"),
    "home": ("path.remove", "deny"),
    "above": ("path.remove", "deny"),
    "workspace": ("path.remove", "deny"),
    "git": ("path.remove", "deny"),
    "secret": ("path.remove", "deny"),
    "startup": ("path.remove", "ask"),
    "system": ("path.remove", "deny"),
    "outside": ("path.remove", "ask"),
}
_WRITTEN: dict[str, tuple[str, Action]] = {
    **_REMOVED,
    "system": ("system.change", "ask"),
    "startup": ("system.change", "ask"),
    "secret": ("system.change", "deny"),
}

# Parts of a git directory that come back by themselves, or that the snapshot's index and refs bring back.
_PASSING = ("FETCH_HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "gc.log", "gc.pid", "AUTO_MERGE", "description", "fsmonitor--daemon")
_HELD_PARTS = (
    ("index", ("index",)),
    ("refs/heads", ("refs",)),
    ("refs/tags", ("refs",)),
    ("refs/remotes", ("refs",)),
    ("refs/stash", ("stash",)),
)
_MORE_PARTS = (("hooks", ("hooks",)), ("config", ("config",)), ("logs", ("reflog",)))
GIT_DIRECTORY = ("git-directory",)
_GRAVE_PARTS = ("objects", "modules", "worktrees", "HEAD", "packed-refs", "lfs")


def removal(target: Target, scene: Scene, *, names: tuple[str, ...] = (), deep: bool = True) -> Iterator[Effect]:
    """What removing a path does. ``names`` narrow it to what bears one of them, below the path; ``deep``: folders go with their content."""
    path, facts = target.path, scene.facts
    if path is None:
        yield from _unsure_removal(target, deep)
        return
    place = _reached(path, names, facts)
    if place in ("sink", "temp", "socket", "nothing"):
        return
    if place == "temp-all":
        yield Effect("path.remove", path, "ask", detail="other programs' temporary files")
    elif place == "git-part":
        yield from _git_part(path, "path.remove", facts)
    elif place == "inside":
        yield Effect("path.remove", path, "ask", question=Question("lost", path, names))
    elif place == "outside":
        whole = not names and not places.has_pattern(path)
        yield Effect("path.remove", path, "ask", question=Question("worktree", path) if whole else None, detail="outside")
    else:
        kind, weight = _REMOVED[place]
        # A snapshot that holds the git directory itself brings it back, and the workspace with it as far as it holds the files.
        whole = place == "workspace" and not names
        yield Effect(
            kind,
            path,
            "ask" if place == "system" and _one_of_many(path) else weight,
            pieces=GIT_DIRECTORY if whole or place == "git" else (),
            question=Question("lost", path) if whole else None,
            detail=place,
        )


def _reached(path: str, names: tuple[str, ...], facts: CallFacts) -> str:
    """The place that a removal reaches: a pattern or names spare what a whole folder would take along."""
    fixed = places.fixed_part(path)
    place = places.place_of(fixed, facts)
    pattern = path[len(fixed) :].strip("/")
    if place in ("inside", "outside") and not names and places.holds_own(path, facts):
        return "own"
    if place == "git" and (names or pattern) and all(name.endswith(".lock") for name in names or (pattern,)):
        return "nothing"  # left behind by a git that was killed
    if names:
        return {"temp-all": "temp", "workspace": "inside"}.get(
            place, "outside" if place in ("above", "home", "root") and fixed != "/" else place
        )
    if pattern and place in ("workspace", "inside"):
        root = fixed in (facts.root, facts.repository)
        return "git" if root and places.takes_dot_git(path, fixed) else "inside"
    if pattern and place == "above":
        return _below_above(path, fixed, facts)
    if place == "temp-all" and pattern and not places.matches_all(pattern):
        return "temp"
    return place


def _one_of_many(path: str) -> bool:
    """Whether a path of the system is a program's own rather than what the machine stands on."""
    return path.startswith(("/var/log", "/var/cache", "/opt", "/srv", "/mnt", "/media")) and path.count("/") > 2


def _below_above(path: str, fixed: str, facts: CallFacts) -> str:
    """The place of a pattern below a folder that holds the workspace: it may match the folder on the way to it."""
    here = facts.root[len(fixed) :].lstrip("/").split("/")
    for part, real in zip(path[len(fixed) :].lstrip("/").split("/"), here, strict=False):
        if not fnmatch.fnmatchcase(real, part):
            return "outside"
    return "above"


def _unsure_removal(target: Target, deep: bool) -> Iterator[Effect]:
    text = target.word
    # Something unknown that is followed by a slash becomes the root of the disk when it is empty.
    grave = deep and (text.startswith(("$", "/", "`")) and text.rstrip("*.").endswith("/") or text in ("", "/", "/*"))
    yield Effect("path.remove", text, "deny" if grave else "ask", detail="the path is not known before it runs")


def _git_part(path: str, kind: str, facts: CallFacts) -> Iterator[Effect]:
    """What is lost with a part of a git directory."""
    git_dir = facts.git_dir if facts.git_dir and places.inside(path, facts.git_dir) else path.partition("/.git/")[0] + "/.git"
    part = path[len(git_dir) + 1 :]
    if part.endswith(".lock") or part in _PASSING:
        return
    for name, pieces in _HELD_PARTS:
        if places.inside(part, name):
            yield Effect("index.reset" if name == "index" else "ref.delete", path, "ask", pieces=pieces)
            return
    if places.inside(part, "hooks"):
        yield Effect("hook.write", path, "ask", pieces=("hooks",) if kind == "path.remove" else ())
        return
    for name, pieces in _MORE_PARTS:
        if places.inside(part, name):
            yield Effect("config.write" if name == "config" else "reflog.expire", path, "ask", pieces=pieces)
            return
    weight: Action = "deny" if any(places.inside(part, name) for name in _GRAVE_PARTS) or places.has_pattern(part) else "ask"
    yield Effect(kind, path, weight, pieces=GIT_DIRECTORY, detail="part of the git directory")


def writing(
    target: Target, scene: Scene, *, append: bool = False, sources: tuple[str, ...] = (), known: bool = True
) -> Iterator[Effect]:
    """What writing a file anew (or at its end) does. ``sources`` are names that go below the path if it is a folder."""
    path = target.path
    facts = scene.facts
    if path is None:
        # Where a program writes is rarely known and rarely matters; what matters is named.
        if not append and facts.repository is not None:
            yield Effect("path.overwrite", target.word, "ask", pieces=("tracked",), detail="the path is not known before it runs")
        return
    place = places.place_of(places.fixed_part(path), facts)
    if place in ("sink", "temp", "temp-all"):
        return
    if place == "socket":
        yield Effect("network.send", path, "ask")
    elif place == "git-part":
        yield from _git_part(path, "path.overwrite", facts) if not append or "/hooks/" in path or path.endswith("/config") else ()
    elif place in ("inside", "workspace"):
        if not append:
            yield Effect("path.overwrite", path, "ask", question=Question("overwritten", path, sources))
    elif place in ("outside", "above", "home", "root", "git"):
        if not append:
            yield Effect("path.overwrite", path, "ask", question=Question("overwritten", path, sources), detail="outside")
    else:
        kind, weight = _WRITTEN[place]
        if place == "secret" and not append:
            weight = "ask"
        yield Effect(
            kind, path, "deny" if path.endswith(("/authorized_keys", "/authorized_keys2", "/sudoers")) else weight, detail=place
        )


def leak(target: Target, scene: Scene, *, sent: bool = False) -> Iterator[Effect]:
    """What showing a file (or sending it away) gives out."""
    path = target.path
    if path is None:
        return
    facts = scene.facts
    if places.is_secret(path, facts):
        away = not places.inside(path, facts.root)
        yield Effect("secret.leak", path, "deny" if sent or (away and not path.startswith("/etc")) else "ask")


def secret_path(target: Target, scene: Scene) -> bool:
    return target.path is not None and places.is_secret(target.path, scene.facts)
