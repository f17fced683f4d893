"""Answers the guard's questions from the real repository: what is there, what git says of it, how large it is.

Everything here only looks. git is asked in user context, which runs nothing of the repository's. What cannot be told within its bounds is
answered with "not known", and the guard then asks.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from safety.plumbing.ignore import ignored_paths
from safety.plumbing.repo import common_dir_of, open_repository, read_head
from safety.plumbing.run import Git, GitError
from safety.policy.places import absolute, has_pattern, inside
from safety.policy.values import NOTHING, UNKNOWN, Answer, CallFacts, Question, Thing

MAX_THINGS = 2_000
MAX_WALKED = 20_000
_DEADLINE_S = 5.0
_WORD_PATHSPECS = {"GIT_LITERAL_PATHSPECS": "0"}


@dataclass
class World:
    """Where to look. ``max_file_bytes``: files above it are in no snapshot; None: the snapshot itself names what it left out."""

    git: Git
    facts: CallFacts
    max_file_bytes: int | None = None
    _tops: dict[str, str | None] = field(default_factory=dict)
    _status: dict[tuple[str, ...], list[tuple[str, str]]] = field(default_factory=dict)


def answer(world: World, questions: Iterable[Question]) -> dict[Question, Answer]:
    """Each question with its answer."""
    return {question: _answer(world, question) for question in questions}


def _answer(world: World, question: Question) -> Answer:
    handler = _HANDLERS.get(question.kind)
    if handler is None:
        return UNKNOWN
    try:
        return handler(world, question)
    except (GitError, OSError, ValueError):
        return UNKNOWN


# ---- paths -----------------------------------------------------------------------------------------------------------------------


def _lost(world: World, question: Question) -> Answer:
    """What a removal of the path, or of what its pattern matches, would take."""
    names = tuple(name for name in question.detail if name != "//")
    paths = _matches(question.subject)
    if not paths:
        return NOTHING
    things = _things_below(world, paths)
    if things is None:
        return UNKNOWN
    if names:
        things = [thing for thing in things if _bears(thing.path, names, question.subject)]
        for path in _named_folders(world, question.subject, names):
            things += [Thing(path, "ignored" if _is_ignored(world, path) else "tracked")]
    return Answer(nothing=not things, things=tuple(things[:MAX_THINGS]))


def _matches(path: str) -> list[str]:
    """The paths that a pattern matches, as a shell would list them; the path itself if it is there."""
    if os.path.lexists(path):
        return [path]
    return sorted(glob.glob(path, recursive=True))[:MAX_THINGS] if has_pattern(path) else []


def _bears(path: str, names: tuple[str, ...], start: str) -> bool:
    """Whether the path, or a folder above it, bears one of the names below ``start``."""
    parts = path[len(start) :].strip("/").split("/")
    return any(fnmatch.fnmatchcase(part, name) for part in parts for name in names)


def _named_folders(world: World, start: str, names: tuple[str, ...]) -> Iterator[str]:
    """Folders and files below ``start`` that bear a name, within a folder that was only listed as a whole."""
    for path in _ignored_folders(world, start):
        for count, (folder, folders, files) in enumerate(os.walk(path)):
            if count > 500:
                return
            for name in (*folders, *files):
                if any(fnmatch.fnmatchcase(name, pattern) for pattern in names):
                    yield f"{folder}/{name}"


def _ignored_folders(world: World, start: str) -> list[str]:
    things = _things_below(world, [start]) or []
    return [thing.path for thing in things if thing.sort == "ignored" and os.path.isdir(thing.path)]


def _is_ignored(world: World, path: str) -> bool:
    top = _top(world, os.path.dirname(path))
    if top is None:
        return False
    return bool(ignored_paths(world.git, os.fsencode(top), [os.fsencode(_below(path, top))], deadline_s=_DEADLINE_S))


def _things_below(world: World, paths: list[str]) -> list[Thing] | None:
    """What lies at and below the paths. Files that git tracks stand as one thing a path; None: too much to look at."""
    things: list[Thing] = []
    by_top: dict[str | None, list[str]] = {}
    for path in paths:
        if not inside(path, world.facts.root):
            things.append(Thing(path, "outside"))
            continue
        by_top.setdefault(_top(world, path if path == world.facts.root else os.path.dirname(path)), []).append(path)
    for top, below in by_top.items():
        if top is None:
            walked = _walked(world, below)
            if walked is None:
                return None
            things += walked
            continue
        sort = _sort_of(world, top)
        for state, path in _status(world, top, below, untracked=True):
            # A folder that is ignored as a whole may lie above what was asked about.
            asked = [each for each in below if path.endswith("/") and each.startswith(path)]
            for named in asked or [path]:
                things += _thing(world, state, named, sort)
        for path in below:
            if not any(thing.path.rstrip("/") == path for thing in things):
                things += _submodules_below(world, top, path)
                things.append(Thing(path, sort))
    return things


def _thing(world: World, state: str, path: str, sort: str) -> list[Thing]:
    if state == "ignored":
        return [Thing(path.rstrip("/"), "ignored" if sort == "tracked" else sort)]
    if state == "untracked":
        if path.endswith("/"):
            return [Thing(path.rstrip("/"), "nested-repository")]
        return [_sized(world, path, "untracked" if sort == "tracked" else sort)]
    return [Thing(path, sort)]


def _sized(world: World, path: str, sort: str) -> Thing:
    try:
        status = os.lstat(path)
    except OSError:
        return Thing(path, sort)
    if world.max_file_bytes is not None and status.st_size > world.max_file_bytes:
        return Thing(path, "too-large", status.st_size)
    return Thing(path, sort, status.st_size)


def _walked(world: World, paths: list[str]) -> list[Thing] | None:
    """Files where there is no repository."""
    things: list[Thing] = []
    for path in paths:
        if not os.path.isdir(path) or os.path.islink(path):
            things.append(_sized(world, path, "untracked"))
            continue
        for folder, _, files in os.walk(path):
            things += [_sized(world, f"{folder}/{name}", "untracked") for name in files]
            if len(things) > MAX_WALKED:
                return None
    return things


def _submodules_below(world: World, top: str, path: str) -> list[Thing]:
    return [thing for thing in _submodules_of(world, top) if inside(thing.path, path)]


def _submodules_of(world: World, top: str, names: tuple[str, ...] = ()) -> list[Thing]:
    """Submodules with work that is committed nowhere."""
    if not os.path.lexists(f"{top}/.gitmodules"):
        return []
    listed = world.git.user(os.fsencode(top), ["ls-files", "-s", "-z"], deadline_s=_DEADLINE_S).stdout
    things = []
    for entry in listed.split(b"\0"):
        if not entry.startswith(b"160000"):
            continue
        path = f"{top}/{os.fsdecode(entry.partition(bytes([9]))[2])}"
        named = not names or any(inside(path, f"{top}/{name.rstrip('/')}") or name in (".", "--all") for name in names)
        if named and os.path.lexists(f"{path}/.git") and _status(world, path, [path], untracked=True):
            things.append(Thing(path, "submodule"))
    return things


def _overwritten(world: World, question: Question) -> Answer:
    """What writing a path anew would take; a path that is not there yet takes nothing."""
    path, sources = question.subject, question.detail
    if "//" in sources:
        return _lost(world, question)
    if os.path.isdir(path) and sources:
        if "*" in sources:
            return Answer(things=(Thing(path, "tracked" if inside(path, world.facts.root) else "outside"),))
        folders = [f"{path}/{name}" for name in sources if os.path.isdir(f"{path}/{name}")]
        if folders:
            return Answer(
                things=tuple(Thing(each, "tracked" if inside(each, world.facts.root) else "outside") for each in folders)
            )
        paths = [f"{path}/{name}" for name in sources]
    else:
        paths = _matches(path)
    paths = [real for each in paths if (real := _real_file(each)) is not None]
    if not paths:
        return NOTHING
    things = [thing for path in paths for thing in (_things_below(world, [path]) or [Thing(path, "unreadable")])]
    return Answer(things=tuple(things))


def _real_file(path: str) -> str | None:
    """The file that a write through the path reaches; None: there is none yet."""
    if not os.path.lexists(path):
        return None
    real = os.path.realpath(path)
    if os.path.islink(path):
        return real if os.path.lexists(real) else None
    return path if os.path.isfile(path) else None


def _listed(world: World, question: Question) -> Answer:
    """What a list of paths below a folder may name."""
    (sort,) = question.detail or ("all",)
    things = _things_below(world, [question.subject])
    if things is None:
        return UNKNOWN
    if _top(world, question.subject) is not None and sort in ("tracked", "untracked", "ignored"):
        wanted = {"tracked": ("tracked",), "untracked": ("untracked", "too-large"), "ignored": ("ignored",)}[sort]
        things = [thing for thing in things if thing.sort in wanted]
    return Answer(nothing=not things, things=tuple(things[:MAX_THINGS]))


# ---- what git would throw away -----------------------------------------------------------------------------------------------------


def _discard(world: World, question: Question) -> Answer:
    """Edits of tracked files, staged or not."""
    top = _top(world, question.subject)
    if top is None:
        return NOTHING
    sort = _sort_of(world, top)
    specs = _pathspecs(question.detail, question.subject, top) or [top]
    found = _status(world, top, specs, untracked=False, literal=False)
    things = tuple(Thing(path, sort) for state, path in found if state == "changed")
    return Answer(nothing=not things, things=things[:MAX_THINGS])


def _checkout(world: World, question: Question) -> Answer:
    """``git checkout WORD``: a branch, which refuses to lose edits, or a path, whose edits go."""
    top = _top(world, question.subject)
    if top is None:
        return NOTHING
    (word,) = question.detail
    asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}"]
    if not re.match(r"[\w./@^~{}-]+$", word) or word.startswith("-"):
        return UNKNOWN
    if world.git.user(os.fsencode(top), asked, ok=(0, 1, 128), deadline_s=_DEADLINE_S).returncode == 0:
        return NOTHING
    return _discard(world, question)


def _clean(world: World, question: Question) -> Answer:
    """What ``git clean`` with these options would remove."""
    top = _top(world, question.subject)
    if top is None:
        return NOTHING
    at = question.detail.index("--")
    flags, specs = set(question.detail[:at]), question.detail[at + 1 :]
    excluded = [flag[1:] for flag in flags if flag.startswith("!")]
    sort = _sort_of(world, top)
    things: list[Thing] = []
    below = _pathspecs(specs, question.subject, top) or [question.subject if inside(question.subject, top) else top]
    for state, path in _status(world, top, below, untracked=True, literal=False):
        if state not in ("untracked", "ignored") or any(
            fnmatch.fnmatchcase(os.path.basename(path.rstrip("/")), each) for each in excluded
        ):
            continue
        if state == "ignored" and not {"x", "X"} & flags:
            continue
        if state == "ignored" and path.endswith("/") and not _spec_reaches(path, below):
            continue
        if state == "untracked" and ("X" in flags or (path.endswith("/") and "ff" not in flags)):
            continue
        if state == "untracked" and path.endswith("/") and not {"d"} & flags and not specs:
            continue
        things += _thing(world, state, path, sort)
    return Answer(nothing=not things, things=tuple(things[:MAX_THINGS]))


def _spec_reaches(folder: str, specs: list[str]) -> bool:
    """Whether a pathspec names a folder that is ignored as a whole, or something in it."""
    patterns = [spec for spec in specs if has_pattern(spec)]
    if len(patterns) < len(specs):
        return True
    if any(fnmatch.fnmatchcase(folder.rstrip("/"), pattern) for pattern in patterns):
        return True
    for count, (at, _, files) in enumerate(os.walk(folder)):
        if count > 500 or any(fnmatch.fnmatchcase(f"{at.rstrip('/')}/{name}", pattern) for name in files for pattern in patterns):
            return True
    return False


def _submodules(world: World, question: Question) -> Answer:
    top = _top(world, question.subject)
    if top is None:
        return NOTHING
    things = tuple(_submodules_of(world, top, question.detail))
    return Answer(nothing=not things, things=things)


def _worktree(world: World, question: Question) -> Answer:
    """A linked work tree: uncommitted and untracked work in it, and what git ignores there."""
    path = question.subject
    if not os.path.isfile(f"{path}/.git"):
        return UNKNOWN
    things = []
    for state, changed in _status(world, path, [path], untracked=True):
        things.append(Thing(changed.rstrip("/"), "ignored" if state == "ignored" else "other-worktree"))
    return Answer(nothing=not things, things=tuple(things[:MAX_THINGS]))


# ---- refs and settings -------------------------------------------------------------------------------------------------------------


def _refs(world: World, question: Question) -> Answer:
    where = question.subject or world.facts.cwd
    top = _top(world, where)
    return NOTHING if top is None else Answer(value=_whose(world, top))


def _whose(world: World, top: str) -> str:
    own = world.facts.git_dir
    found = open_repository(os.fsencode(top))
    return "ours" if own is not None and found is not None and found.common_dir == common_dir_of(os.fsencode(own)) else "other"


def _merged(world: World, question: Question) -> Answer:
    """Whether another ref has the branch's commits, too."""
    top = _top(world, question.detail[0] if question.detail and question.detail[0] else world.facts.cwd)
    if top is None:
        return NOTHING
    name = question.subject
    ref = "HEAD" if name in ("HEAD", "@") else f"refs/heads/{name}"
    if not re.fullmatch(r"[\w./@{}-]+", name):
        return UNKNOWN
    root = os.fsencode(top)
    tip = world.git.user(root, ["rev-parse", "--verify", "--quiet", ref], ok=(0, 1, 128), deadline_s=_DEADLINE_S)
    if tip.returncode:
        return NOTHING
    oid = tip.stdout.strip()
    listed = world.git.user(root, ["for-each-ref", "--contains", oid, "--format=%(refname)"], deadline_s=_DEADLINE_S).stdout
    current = _head(top) if ref == "HEAD" else ref
    others = {os.fsdecode(line) for line in listed.split()} - {ref, current}
    return Answer(nothing=bool(others), value=_whose(world, top))


def _head(top: str) -> str:
    found = open_repository(os.fsencode(top))
    return "" if found is None else os.fsdecode(read_head(found.git_dir).removeprefix(b"ref: "))


def _branch(world: World, question: Question) -> Answer:
    top = _top(world, question.subject or world.facts.cwd)
    if top is None:
        return NOTHING
    head = _head(top)
    return Answer(value=head.removeprefix("refs/heads/")) if head.startswith("refs/heads/") else UNKNOWN


_SCOPES = ("global", "system", "local", "worktree")


def _config(world: World, question: Question) -> Answer:
    """Whether a setting has a value that would be lost."""
    scope, where, how, value = question.detail
    top = _top(world, where or world.facts.cwd) or world.facts.root
    if scope not in _SCOPES:
        return UNKNOWN
    if how.endswith("-section"):
        pattern = ["--get-regexp", f"^{re.escape(question.subject)}\\."]
    else:
        pattern = ["--get", question.subject]
    done = world.git.user(os.fsencode(top), ["config", f"--{scope}", *pattern], ok=(0, 1, 128), deadline_s=_DEADLINE_S)
    now = os.fsdecode(done.stdout).rstrip("\n")
    if done.returncode or (how == "set" and now == value):
        return NOTHING
    return Answer(value="ours" if scope in ("local", "worktree") and _whose(world, top) == "ours" else "other")


def _remote(world: World, question: Question) -> Answer:
    """Whether an address is that of a remote already."""
    top = _top(world, question.detail[0] if question.detail and question.detail[0] else world.facts.cwd)
    if top is None:
        return NOTHING
    asked = ["config", "--get-regexp", r"^remote\..*\.(url|pushurl)$"]
    listed = world.git.user(os.fsencode(top), asked, ok=(0, 1), deadline_s=_DEADLINE_S).stdout
    known = {_plain_url(os.fsdecode(line).partition(" ")[2]) for line in listed.splitlines()}
    return NOTHING if _plain_url(question.subject) in known else UNKNOWN


def _plain_url(url: str) -> str:
    url = re.sub(r"^[a-z+]+://(?:[^/@]*@)?|^[^/@]*@", "", url.strip().lower())
    return re.sub(r":(?!\d+/)/*", "/", url, count=1).removesuffix("/").removesuffix(".git")


def _ignored(world: World, question: Question) -> Answer:
    path = question.subject
    return NOTHING if not os.path.isdir(path) and _is_ignored(world, path) else UNKNOWN


# ---- git -------------------------------------------------------------------------------------------------------------------------


def _top(world: World, folder: str) -> str | None:
    """The root of the work tree that a folder lies in, which may be a nested one; None outside of all."""
    if folder not in world._tops:
        at = folder
        while not os.path.isdir(at) and at != "/":
            at = os.path.dirname(at)
        while at != "/" and not os.path.lexists(f"{at}/.git"):
            at = os.path.dirname(at)
        world._tops[folder] = at if at != "/" else None
    return world._tops[folder]


def _sort_of(world: World, top: str) -> str:
    """What tracked files of a work tree are to a snapshot of the workspace."""
    if top == world.facts.repository:
        return "tracked"
    if not inside(top, world.facts.root):
        return "other-worktree"
    return "submodule" if os.path.isfile(f"{top}/.git") else "nested-repository"


def _below(path: str, top: str) -> str:
    return path[len(top) + 1 :] if path != top else "."


def _pathspecs(words: Iterable[str], where: str, top: str) -> list[str]:
    """Words of a command, given in ``where``, as git would take them at the root. One with magic is taken as everything."""
    specs = []
    for word in words:
        path = absolute(word, where)
        if word.startswith(":") or path is None or not inside(path, top):
            return [top]
        specs.append(path)
    return specs


def _status(world: World, top: str, paths: list[str], *, untracked: bool, literal: bool = True) -> list[tuple[str, str]]:
    """``(changed | untracked | ignored, absolute path)`` for what is not as the last commit has it, at and below the paths.

    A folder that is ignored as a whole, and a nested repository, stand for all in them, with a slash at the end.
    """
    key = (top, str(untracked), *paths)
    if key not in world._status:
        options = ["--untracked-files=all", "--ignored=matching"] if untracked else ["--untracked-files=no"]
        specs = [_below(path, top) for path in paths]
        done = world.git.user(
            os.fsencode(top),
            ["status", "--porcelain=v2", "-z", "--no-renames", "--ignore-submodules=dirty", *options, "--", *specs],
            deadline_s=_DEADLINE_S,
            extra_env=None if literal else _WORD_PATHSPECS,
        )
        world._status[key] = [
            found for entry in done.stdout.split(b"\0") if (found := _entry(os.fsdecode(entry), top)) is not None
        ]
    return world._status[key]


def _entry(entry: str, top: str) -> tuple[str, str] | None:
    if entry.startswith("? "):
        return "untracked", f"{top}/{entry[2:]}"
    if entry.startswith("! "):
        return "ignored", f"{top}/{entry[2:]}"
    if entry.startswith("1 "):
        return "changed", f"{top}/{entry.split(' ', 8)[8]}"
    if entry.startswith("u "):
        return "changed", f"{top}/{entry.split(' ', 10)[10]}"
    return None


_HANDLERS: dict[str, Callable[[World, Question], Answer]] = {
    "lost": _lost,
    "overwritten": _overwritten,
    "listed": _listed,
    "discard": _discard,
    "checkout": _checkout,
    "clean": _clean,
    "submodules": _submodules,
    "worktree": _worktree,
    "refs": _refs,
    "merged": _merged,
    "branch": _branch,
    "config": _config,
    "remote": _remote,
    "ignored": _ignored,
}
