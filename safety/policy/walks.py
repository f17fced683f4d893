"""Paths that another command lists: what find reaches, what git and other searchers print into a pipe."""

from __future__ import annotations

import re
from collections.abc import Iterator

from safety.policy import places
from safety.policy.operands import read, spec
from safety.policy.path_effects import removal, writing
from safety.policy.scene import Scene, Target
from safety.policy.shell import Command, Word
from safety.policy.values import Effect, Question


def found_by_find(word: Word, command: Command) -> bool:
    return "{}" in word.text and any(step.startswith(("find", "fd", "xargs", "parallel")) for step in command.via)


def walked(scene: Scene, command: Command, kind: str) -> Iterator[Effect]:
    """What is done to paths that another command lists: find's start folders and names, git's lists, else anything below the folder."""
    source = listing(command)
    if source is not None and source.name in ("find", "gfind"):
        yield from find_walk(source, scene, kind)
    elif source is not None and source.name == "git" and _git_list(source) is not None:
        sort = _git_list(source) or ""
        if sort != "tracked" and command.cwd is not None:
            yield listed(kind, command.cwd, sort)
        elif command.cwd is not None:
            yield Effect(
                "path.remove" if kind == "lost" else "path.overwrite",
                command.cwd,
                "ask",
                question=Question("discard", command.cwd),
            )
    elif source is not None and source.name in ("rg", "ag", "fd", "fdfind") and command.cwd is not None:
        unlimited = any(re.match(r"--no-ignore|--unrestricted|-[a-zA-Z]*[Iu]", word.text) for word in source.words[1:])
        yield listed(kind, command.cwd, "all" if unlimited else "untracked")
    elif source is not None and source.name in ("grep", "egrep", "fgrep") and command.cwd is not None:
        folders = [word for word in read(source.words[1:], _GREP).rest[1:] if word.certain] or [Word(".")]
        for folder in folders:
            path = scene.target(folder, source.cwd).path
            if path is not None and places.place_of(path, scene.facts) in ("inside", "workspace"):
                yield listed(kind, path, "all")
            else:
                yield from removal(Target(path, folder.text), scene)
    elif command.cwd is not None and places.place_of(command.cwd, scene.facts) in ("workspace", "inside") and source is not None:
        yield listed(kind, command.cwd, "all")
    else:
        yield (
            Effect("path.remove", "paths that are named as it runs", "ask")
            if kind == "lost"
            else Effect("path.overwrite", "paths that are named as it runs", "ask", pieces=("tracked",))
        )


def listed(kind: str, folder: str, sort: str) -> Effect:
    return Effect(
        "path.remove" if kind == "lost" else "path.overwrite",
        folder,
        "ask",
        question=Question("listed", folder, (sort,)),
        detail="a list of paths",
    )


_GREP = spec("e|regexp= f|file= A= B= C= m= include= exclude= exclude-dir= r R l L i v n w c h H s q o E F P z Z")


_LISTS = frozenset("find gfind git rg ag fd fdfind grep egrep fgrep ls".split())


def listing(command: Command) -> Command | None:
    """The command whose list of paths ``command`` is given: the find around it, or the lister at the head of the pipe."""
    source = command.fed_by
    found = None
    while source is not None:
        if source.name in _LISTS and (found is None or source.name in ("find", "gfind", "git", "rg", "ag")):
            found = source
        source = source.fed_by
    return found


def _git_list(source: Command) -> str | None:
    """Which sort of paths ``git ls-files`` and its like list: ``tracked``, ``untracked``, ``ignored``; None: no list."""
    words = {word.text for word in source.words}
    bundled = {letter for word in words if re.fullmatch(r"-[a-z]+", word) for letter in word[1:]}
    if "ls-files" in words:
        if "--ignored" in words or "i" in bundled:
            return "ignored"
        if "--others" in words or "o" in bundled:
            return "untracked" if "--exclude-standard" in words else "all"
        return "tracked"
    if words & {"diff", "diff-index", "diff-files", "ls-tree", "grep", "show", "diff-tree", "log"}:
        return "tracked"
    if words & {"status", "clean"}:
        return "all" if words & {"--ignored", "-x", "-X"} else "untracked"
    return None


def find_walk(find: Command, scene: Scene, kind: str) -> Iterator[Effect]:
    """What find's expression may reach: its start folders, narrowed by -name and -path."""
    starts: list[Word] = []
    names: list[str] = []
    spared: list[str] = []
    empty_folders = False
    kinds: set[str] = set()
    negated = False
    words = find.words[1:]
    at = 0
    while at < len(words) and re.match(r"-[HLPDO]", words[at].text) and not words[at].text.startswith("--"):
        at += 1
    while at < len(words) and not words[at].text.startswith(("-", "(", "!", ")", "\\")):
        starts.append(words[at])
        at += 1
    while at < len(words):
        text = words[at].text
        value = words[at + 1].text if at + 1 < len(words) else ""
        if text in ("!", "-not"):
            negated = True
            at += 1
            continue
        if text in ("-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"):
            after = [word.text for word in words[at + 2 : at + 6] if word.text not in (")", "\\)")]
            if negated or (after[:1] == ["-prune"] and after[1:2] in (["-o"], ["-or"])):
                spared.append(value)
            elif "regex" in text:
                names.append("*")
                names = [name for name in names if name != "*"] or ["?*"]
            elif words[at + 1].certain if at + 1 < len(words) else False:
                names.append(value if "name" in text and "whole" not in text else _path_name(value))
            at += 1
        elif text == "-type":
            kinds.update(value.split(","))
            at += 1
        elif text == "-empty":
            empty_folders = not negated
        elif text in ("-exec", "-execdir", "-ok", "-okdir"):
            at = next((end for end in range(at, len(words)) if words[end].text in (";", "+", "\\;")), len(words))
        negated = False
        at += 1
    if (empty_folders and kinds == {"d"}) or kinds == {"l"}:
        return
    dot_git_spared = any(".git" in pattern for pattern in spared)
    for start in starts or [Word(".")]:
        target = scene.target(start, find.cwd)
        if target.path is None:
            yield from removal(target, scene) if kind == "lost" else ()
            continue
        place = places.place_of(places.fixed_part(target.path), scene.facts)
        narrow = tuple(name for name in names if name.strip("*?"))
        if kind != "lost":
            if place in ("workspace", "inside"):
                yield Effect("path.overwrite", target.path, "ask", question=Question("overwritten", target.path, ("//", *narrow)))
            else:
                yield from writing(target, scene)
        elif place == "workspace" and not narrow and dot_git_spared:
            yield listed("lost", target.path, "all")
        else:
            yield from removal(target, scene, names=narrow)


def _path_name(pattern: str) -> str:
    """The narrowest name that a -path pattern holds: its last component that is not all pattern."""
    parts = [part for part in pattern.split("/") if part.strip("*?")]
    return parts[-1] if parts else "*"
