"""What a shell text comes to: its simple commands and the code that it hands to interpreters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

SHELLS = frozenset("sh bash dash zsh ksh ksh93 mksh ash fish rbash yash".split())
WRITING = frozenset((">", ">>", ">|", "&>", "&>>", "<>"))
NO_ENV: Mapping[str, str | None] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Word:
    """One word after quote removal and every expansion that is certain.

    ``certain`` False: it holds something only known at run time, and ``text`` has that part as written, or its default
    (``${X:---force}`` gives ``--force``). ``glob``: an unquoted pattern is in it, or it stands for the paths that one matches.
    ``made_by``: the program whose output an uncertain part is (``mktemp``); the one that fetched it, where it is from the network.
    """

    text: str
    certain: bool = True
    glob: bool = False
    made_by: str = ""


@dataclass(frozen=True, slots=True)
class Redirect:
    """``fd op target``. The target of ``<<`` is its delimiter; of ``<<<`` the word itself."""

    op: str
    fd: int | None
    target: Word


@dataclass(frozen=True)
class Command:
    """One simple command, with the wrappers around it taken off.

    Without words it is a redirection alone, or that of a group (``{ a; b; } > f``). ``cwd`` None: not certain. ``env``: the assignments
    in effect for it, None where the value is not certain. ``via``: the wrappers passed through, outermost first. ``remote``: on another
    machine or in a container. ``stdin``: the literal text fed to it. ``piped_from``: the programs before it in the pipe, and ``fed_by``
    the command directly before it (for ``find -exec``, the find). ``appended``: more words come at run time. ``runs_download``: what
    it executes came from the network.
    """

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    cwd: str | None = None
    env: Mapping[str, str | None] = field(default_factory=lambda: NO_ENV)
    via: tuple[str, ...] = ()
    remote: bool = False
    stdin: str | None = None
    piped_from: tuple[str, ...] = ()
    appended: bool = False
    runs_download: bool = False
    fed_by: Command | None = None

    @property
    def name(self) -> str:
        """The program's base name without ``.exe``; empty when it is not certain, or there is none."""
        return program_name(self.words[0].text) if self.words and self.words[0].certain else ""


@dataclass(frozen=True)
class Code:
    """Text handed to an interpreter: a one-liner, a heredoc, a script whose writing was seen."""

    language: str
    text: str
    cwd: str | None
    via: tuple[str, ...]


@dataclass(frozen=True)
class Parsed:
    """``trouble``: what could not be parsed, in words. ``scanned``: some part was only looked through for danger words; those found
    are in ``danger``."""

    commands: tuple[Command, ...] = ()
    codes: tuple[Code, ...] = ()
    trouble: tuple[str, ...] = ()
    scanned: bool = False
    danger: tuple[str, ...] = ()


def program_name(path: str) -> str:
    """``/usr/bin/Git.EXE`` is ``Git``; a backslash separates only in what is plainly a Windows path."""
    name = path.rpartition("/")[2]
    if "\\" in name and (name[1:2] == ":" or name.startswith("\\")):
        name = name.rpartition("\\")[2]
    return name[:-4] if name[-4:].lower() == ".exe" else name
