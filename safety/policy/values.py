"""The values of the guard: what a command would do, what is asked about the world, what is answered, what a snapshot holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Action: TypeAlias = Literal["allow", "ask", "deny"]

#: From the mildest to the strictest.
ACTIONS: tuple[Action, ...] = ("allow", "ask", "deny")


def stricter(one: Action, other: Action) -> Action:
    return max(one, other, key=ACTIONS.index)


@dataclass(frozen=True, slots=True)
class Question:
    """Something that only a look at the world can tell. ``subject`` is an absolute path or a name, ``detail`` narrows it.

    | kind | subject | detail | what is asked |
    | --- | --- | --- | --- |
    | lost | path, may end in a pattern | names to look for below it | what would be gone if it was removed |
    | overwritten | path | names of what is copied into it, if it is a folder | what would be gone if it was written anew |
    | discard | folder | paths | which edits a forced checkout there would throw away |
    | clean | folder | options d, x, X, ff, then paths after ``--`` | what git clean would take |
    | submodules | folder | | which edits submodules hold that are not committed |
    | worktree | folder | | what a linked work tree holds that is not committed |
    | listed | folder | | what a list of paths that is not known could name: all below the folder |
    | merged | branch | folder | whether its commits are elsewhere, too |
    | branch | folder | | the branch checked out there, as the answer's value |
    | config | key | scope, folder | the value it has now |
    | remote | name | folder | the address of a remote, as the answer's value |
    | ignored | path | | whether git ignores it, so that it reaches no commit |
    """

    kind: str
    subject: str = ""
    detail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Thing:
    """One path that would be touched. ``sort`` is what a snapshot goes by: ``tracked``, ``untracked``, ``ignored``, ``too-large``,
    ``nested-repository``, ``submodule``, ``other-worktree``, ``git-directory``, ``special``, ``outside``, ``unreadable``.
    """

    path: str
    sort: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the world said. ``nothing``: surely nothing would be lost. ``known`` False: nobody could tell.

    ``things`` are what would be touched; when there are very many of one sort that snapshots hold, some stand for all.
    """

    nothing: bool = False
    things: tuple[Thing, ...] = ()
    value: str = ""
    known: bool = True


UNKNOWN = Answer(known=False)
NOTHING = Answer(nothing=True)


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a command would do. ``kind`` is one of ``rules.KINDS``, ``target`` what it falls upon, as one would say it.

    ``weight`` is the action where nothing can bring back what is lost. ``pieces``: what a snapshot must hold to undo it; none and
    no ``question``: nothing undoes it. ``question``: its answer may acquit, or name what is lost. ``ours``: falls surely upon the
    workspace's own repository, which is the one that was captured.
    """

    kind: str
    target: str = ""
    weight: Action = "ask"
    pieces: tuple[str, ...] = ()
    question: Question | None = None
    detail: str = ""
    instead: str = ""
    command: str = ""
    ours: bool = True

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.target,) if self.target.startswith("/") else ()


@dataclass(frozen=True)
class CallFacts:
    """What is known of a call before anybody looks at its text. Paths are absolute, resolved, without a slash at the end.

    ``root`` is the workspace, ``repository`` the work tree it lies in (None: no git), ``git_dir`` its git directory. ``own`` are paths
    that belong to the guard: its store, its settings, the hooks that call it; a name without a slash in front is looked for below every
    folder. ``variables`` are environment variables that count in the call.
    """

    cwd: str
    home: str
    root: str
    repository: str | None = None
    git_dir: str | None = None
    temp: tuple[str, ...] = ("/tmp", "/var/tmp", "/private/tmp", "/dev/shm")
    own: tuple[str, ...] = ()
    variables: Mapping[str, str] | None = None
    remotes: tuple[str, ...] = ("origin", "upstream")


@dataclass(frozen=True)
class Coverage:
    """What the snapshot just taken holds. ``snapshot`` is its name, empty when it failed or is off.

    ``holds`` has sorts of things and the pieces ``index``, ``refs``, ``stash``, ``head``, ``config``, ``hooks``, ``reflog`` and
    ``git-directory`` (all of it, with every object that something names).
    ``left_out``: absolute paths that it could not take in; what lies below them is left out, too.
    """

    snapshot: str = ""
    holds: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()
    why_not: str = ""

    def covers(self, thing: Thing) -> bool:
        return bool(self.snapshot) and thing.sort in self.holds and not self._left_out(thing.path)

    def has(self, pieces: tuple[str, ...]) -> bool:
        return bool(self.snapshot) and self.holds.issuperset(pieces)

    def _left_out(self, path: str) -> bool:
        return any(path == out or path.startswith(out + "/") for out in self.left_out)


#: What a snapshot of a work tree, its index and its refs holds, and nothing more.
TREE_AND_REFS = frozenset({"tracked", "untracked", "index", "refs", "stash", "head"})
