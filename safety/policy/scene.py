"""What the families of commands share while a call is read: its facts, the whole parse, and how a word becomes a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from safety.policy import places
from safety.policy.patterns import Pattern
from safety.policy.shell import Code, Command, Parsed, Word
from safety.policy.values import Action, CallFacts, Effect, Question

#: Reads a further text, as a shell in a folder would run it.
Again = Callable[[str, str | None], Iterable[Effect]]


@dataclass(frozen=True)
class Target:
    """A path that a word names. ``path`` is absolute and may hold a pattern; None: it cannot be told."""

    path: str | None
    word: str


@dataclass(frozen=True)
class Scene:
    """One call being read."""

    facts: CallFacts
    parsed: Parsed
    again: Again
    code: Callable[[Code], Iterable[Effect]]

    def target(self, word: Word, cwd: str | None) -> Target:
        """The path that a word names when a program is given it in ``cwd``."""
        if not word.certain:
            fresh = word.made_by == "mktemp" and word.text.startswith(("$", "`"))
            return Target(f"{self.facts.temp[0]}/of-its-own" if fresh else None, word.text)
        return Target(places.absolute(word.text, cwd), word.text)


def shown(command: Command) -> str:
    """The command as one would type it, short enough for a sentence."""
    text = " ".join(word.text or "''" for word in command.words)
    return text if len(text) <= 200 else text[:199] + "…"


def labelled(effects: Iterable[Effect], command: str) -> Iterator[Effect]:
    """The same effects, each with the command it comes from."""
    for effect in effects:
        yield effect if effect.command else replace(effect, command=command)


GIT_DIRECTORY = ("git-directory",)

# ---- effects upon paths --------------------------------------------------------------------------------------------------------

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
_GRAVE_PARTS = ("objects", "modules", "worktrees", "HEAD", "packed-refs", "lfs")


def removal(
    target: Target, scene: Scene, *, names: tuple[str, ...] = (), deep: bool = True, made: bool = False
) -> Iterator[Effect]:
    """What removing a path does. ``names`` narrow it to what bears one of them, below the path; ``deep``: folders go with their content."""
    path = target.path
    facts = scene.facts
    if path is None:
        yield from _unsure_removal(target, deep)
        return
    fixed = places.fixed_part(path)
    place = places.place_of(fixed, facts)
    if place in ("inside", "outside") and not names and places.holds_own(path, facts):
        yield Effect("self.defense", path, "ask")
        return
    if place == "git" and (names or fixed != path) and all(name.endswith(".lock") for name in names or (path,)):
        return
    if fixed != path:
        if place == "own" or (place == "git-part" and fixed == path):
            pass
        elif (
            place in ("workspace", "inside")
            and not names
            and places.takes_dot_git(path, fixed)
            and _is_repository_root(fixed, facts)
        ):
            yield Effect(
                "path.remove",
                path,
                "deny",
                pieces=GIT_DIRECTORY,
                question=Question("lost", fixed),
                detail="takes .git along",
                instead="git rm -r .",
            )
            return
        elif place in ("workspace", "above"):
            place = "inside" if place == "workspace" else _below_above(path, fixed, facts)
    if place == "temp-all" and (names or (fixed != path and not places.matches_all(path[len(fixed) :].strip("/")))):
        place = "temp"
    if place == "workspace" and names:
        place = "inside"
    if place in ("above", "home", "root") and names and fixed != "/":
        place = "outside"
    if place in ("sink", "temp", "socket"):
        return
    if place == "temp-all":
        yield Effect("path.remove", path, "ask", detail="other programs' temporary files")
    elif place == "git-part":
        yield from _git_part(path, "path.remove", facts)
    elif place == "inside":
        yield Effect("path.remove", path, "ask", question=Question("lost", path, names))
    elif place == "outside":
        yield Effect(
            "path.remove",
            path,
            "ask",
            question=Question("worktree", path) if not names and fixed == path else None,
            detail="outside",
        )
    else:
        kind, weight = _REMOVED[place]
        if place == "system" and (
            path.startswith(("/var/log", "/var/cache", "/opt", "/srv", "/mnt", "/media")) and path.count("/") > 2
        ):
            weight = "ask"
        # A snapshot that holds the git directory itself brings it back, and the workspace with it as far as it holds the files.
        held = place == "git" or (place == "workspace" and not names)
        yield Effect(
            kind,
            path,
            weight,
            pieces=GIT_DIRECTORY if held else (),
            question=Question("lost", path) if held and place == "workspace" else None,
            detail=place,
        )


def _is_repository_root(folder: str, facts: CallFacts) -> bool:
    return folder == facts.root or folder == facts.repository


def _below_above(path: str, fixed: str, facts: CallFacts) -> str:
    """The place of a pattern below a folder that holds the workspace: it may match the folder on the way to it."""
    import fnmatch

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


_SECRET_VARIABLE = Pattern(
    r"(?<!\\)\$\{?(?!#)(?:\w*_)?(?:SECRET|TOKEN|PASSWORD|PASSWD|PASS|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|CREDENTIALS?"
    r"|SECRETS)(?:_(?!FILE|PATH|URL|NAME|ID\b)\w*)?"
    r"(?:\}|(?![\w:]))"
)


def names_secret(word: Word) -> bool:
    """Whether a word that is not known holds a variable whose name says that it is a secret."""
    return not word.certain and bool(_SECRET_VARIABLE.search(word.text))


def secret_path(target: Target, scene: Scene) -> bool:
    return target.path is not None and places.is_secret(target.path, scene.facts)


def home_path(path: str, scene: Scene) -> str:
    """``~`` at the front, which most of these calls do not know but whose writer meant it."""
    return scene.facts.home + path[1:] if path == "~" or path.startswith("~/") else path
