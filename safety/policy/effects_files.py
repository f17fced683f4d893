"""What commands do to files: removing, writing anew, moving, copying, showing what is secret; disks and permissions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from safety.policy import places
from safety.policy.operands import Given, Spec, read, spec
from safety.policy.patterns import Pattern
from safety.policy.scene import Scene, Target, leak, names_secret, removal, secret_path, writing
from safety.policy.shell import Command, Word
from safety.policy.values import Effect, Question

Handler = Callable[[Command, Given, Scene], Iterable[Effect]]
_PROGRAMS: dict[str, tuple[Spec, Handler]] = {}


def _program(names: str, options: str = "", **flags: bool) -> Callable[[Handler], Handler]:
    def put(handler: Handler) -> Handler:
        for name in names.split():
            _PROGRAMS[name] = (spec(options, **flags), handler)
        return handler

    return put


def file_effects(command: Command, scene: Scene) -> Iterator[Effect]:
    """What the program itself does to files; redirections are ``redirect_effects``'s."""
    found = _PROGRAMS.get(command.name)
    if found is None:
        return
    known, handler = found
    given = read(command.words[1:], known)
    if given.has("help", "version"):
        return
    yield from handler(command, given, scene)


def redirect_effects(command: Command, scene: Scene) -> Iterator[Effect]:
    """What the shell does to files for the command: ``>`` writes anew, ``>>`` appends."""
    for redirect in command.redirects:
        if redirect.op in (">", ">|", "&>", ">&", "<>") and not re.fullmatch(r"\d+-?|-", redirect.target.text):
            yield from writing(scene.target(redirect.target, command.cwd), scene, append=redirect.op == "<>")
        elif redirect.op in (">>", "&>>"):
            yield from writing(scene.target(redirect.target, command.cwd), scene, append=True)


# ---- removing ------------------------------------------------------------------------------------------------------------------


def _targets(words: Iterable[Word], command: Command, scene: Scene) -> Iterator[Target]:
    for word in words:
        yield scene.target(word, command.cwd)


def _removed(words: list[Word], command: Command, scene: Scene, *, deep: bool) -> Iterator[Effect]:
    """Removal of what words name, of what comes through a pipe (xargs, parallel) and of what find hands over."""
    fresh = "trap" in command.via and any(other.name == "mktemp" for other in scene.parsed.commands)
    for word in dict.fromkeys(words):
        if _found_by_find(word, command):
            yield from _walked(scene, command, "lost")
        elif word.certain or not fresh:  # a trap is set before the temporary folder is made that it removes
            yield from removal(scene.target(word, command.cwd), scene, deep=deep)
    if command.appended and not any(_found_by_find(word, command) for word in words):
        yield from _walked(scene, command, "lost")


def _found_by_find(word: Word, command: Command) -> bool:
    return "{}" in word.text and any(step.startswith(("find", "fd", "xargs", "parallel")) for step in command.via)


def _walked(scene: Scene, command: Command, kind: str) -> Iterator[Effect]:
    """What is done to paths that another command lists: find's start folders and names, git's lists, else anything below the folder."""
    source = _listing(command)
    if source is not None and source.name in ("find", "gfind"):
        yield from _find_walk(source, scene, kind)
    elif source is not None and source.name == "git" and _git_list(source) is not None:
        sort = _git_list(source) or ""
        if sort != "tracked" and command.cwd is not None:
            yield _listed(kind, command.cwd, sort)
        elif command.cwd is not None:
            yield Effect(
                "path.remove" if kind == "lost" else "path.overwrite",
                command.cwd,
                "ask",
                question=Question("discard", command.cwd),
            )
    elif source is not None and source.name in ("rg", "ag", "fd", "fdfind") and command.cwd is not None:
        unlimited = any(re.match(r"--no-ignore|--unrestricted|-[a-zA-Z]*[Iu]", word.text) for word in source.words[1:])
        yield _listed(kind, command.cwd, "all" if unlimited else "untracked")
    elif source is not None and source.name in ("grep", "egrep", "fgrep") and command.cwd is not None:
        folders = [word for word in read(source.words[1:], _GREP).rest[1:] if word.certain] or [Word(".")]
        for folder in folders:
            path = scene.target(folder, source.cwd).path
            if path is not None and places.place_of(path, scene.facts) in ("inside", "workspace"):
                yield _listed(kind, path, "all")
            else:
                yield from removal(Target(path, folder.text), scene)
    elif command.cwd is not None and places.place_of(command.cwd, scene.facts) in ("workspace", "inside") and source is not None:
        yield _listed(kind, command.cwd, "all")
    else:
        yield (
            Effect("path.remove", "paths that are named as it runs", "ask")
            if kind == "lost"
            else Effect("path.overwrite", "paths that are named as it runs", "ask", pieces=("tracked",))
        )


def _listed(kind: str, folder: str, sort: str) -> Effect:
    return Effect(
        "path.remove" if kind == "lost" else "path.overwrite",
        folder,
        "ask",
        question=Question("listed", folder, (sort,)),
        detail="a list of paths",
    )


_GREP = spec("e|regexp= f|file= A= B= C= m= include= exclude= exclude-dir= r R l L i v n w c h H s q o E F P z Z")


_LISTS = frozenset("find gfind git rg ag fd fdfind grep egrep fgrep ls".split())


def _listing(command: Command) -> Command | None:
    """The command whose list of paths ``command`` is given: the find around it, or the lister at the head of the pipe."""
    source = command.fed_by
    found = None
    while source is not None:
        if source.name in _LISTS and (found is None or source.name in ("find", "gfind", "git", "rg", "ag")):
            found = source
        source = source.fed_by
    return found or command.fed_by


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


@_program(
    "rm grm", "f|force r|recursive R|recursive i I d|dir v|verbose interactive=? one-file-system no-preserve-root preserve-root=?"
)
def _rm(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from _removed(given.operands, command, scene, deep=given.has("recursive"))


@_program("unlink srm shred wipe trash-rm", "u z v f|force n|iterations= s|size= x exact remove=? zero verbose random-source=")
def _unlink(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from _removed(given.operands, command, scene, deep=False)


@_program("rimraf del-cli del safe-rm", "g|glob v|verbose f|force i", abbreviates=False)
def _rimraf(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from _removed(given.operands, command, scene, deep=True)


@_program("shx", stops=True)
def _shx(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from file_effects(replace(command, words=command.words[1:]), scene)


@_program("fdupes jdupes rdfind", "d|delete N|noprompt r|recurse deleteduplicates", abbreviates=False)
def _duplicates(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if given.has("delete", "deleteduplicates") or "-deleteduplicates" in [word.text for word in command.words]:
        for word in given.operands:
            yield from removal(scene.target(word, command.cwd), scene)


_OTHER_SYSTEMS = {
    "hg": r"(?:update|up|checkout|co) .*(?:-C|--clean)|revert .*(?:-a|--all)|purge|strip|histedit|rollback|shelve -d|debugstrip",
    "svn": r"revert |cleanup .*--remove|update .*--accept",
    "jj": r"abandon|restore|undo|op(?:eration)? (?:abandon|restore)|workspace forget",
    "sl": r"goto .*(?:-C|--clean)|revert .*--all|purge|hide|strip",
    "fossil": r"revert|clean|purge",
}


@_program("hg svn jj sl fossil", "", abbreviates=False)
def _other_systems(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    """Version control beside git: what it throws away in the workspace are files, and the snapshot has files."""
    text = " ".join(word.text for word in command.words[1:])
    if command.name == "svn" and re.match(r"(?:rm|del|delete|remove) .*://", text):
        yield Effect("remote.delete", text, "ask")
    elif re.match(r"(?:-\S+ )*(?:" + _OTHER_SYSTEMS[command.name] + ")", text):
        yield Effect("worktree.discard", command.cwd or "", "ask", pieces=("tracked", "untracked"))


@_program("truncate", "s|size= r|reference= c|no-create o|io-blocks")
def _truncate(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if (given.value("size") or "").startswith(("+", ">")):
        return
    yield from _overwritten(given.operands, command, scene)


def _overwritten(words: list[Word], command: Command, scene: Scene) -> Iterator[Effect]:
    for word in words:
        if _found_by_find(word, command):
            yield from _walked(scene, command, "overwritten")
        else:
            yield from writing(scene.target(word, command.cwd), scene)
    if command.appended and not any(_found_by_find(word, command) for word in words):
        yield from _walked(scene, command, "overwritten")


# ---- find ----------------------------------------------------------------------------------------------------------------------

_FIND_ACTIONS = ("-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprintf", "-fls", "-fprint0")


@_program("find gfind", "", abbreviates=False)
def _find(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = [word.text for word in command.words[1:]]
    at = 0
    while at < len(words):
        if words[at] in ("-exec", "-execdir", "-ok", "-okdir"):
            at = next((end for end in range(at, len(words)) if words[end] in (";", "+", "\\;")), len(words))
        elif words[at] == "-delete":
            yield from _find_walk(command, scene, "lost")
        elif words[at] in ("-fprint", "-fprintf", "-fls", "-fprint0") and at + 1 < len(words):
            yield from writing(scene.target(command.words[at + 2], command.cwd), scene)
        at += 1


def _find_walk(find: Command, scene: Scene, kind: str) -> Iterator[Effect]:
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
            yield _listed("lost", target.path, "all")
        else:
            yield from removal(target, scene, names=narrow)


def _path_name(pattern: str) -> str:
    """The narrowest name that a -path pattern holds: its last component that is not all pattern."""
    parts = [part for part in pattern.split("/") if part.strip("*?")]
    return parts[-1] if parts else "*"


@_program(
    "fd fdfind",
    "x|exec= X|exec-batch= e|extension= t|type= H|hidden I|no-ignore u|unrestricted E|exclude= d|max-depth=",
    abbreviates=False,
)
def _fd(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from ()


# ---- writing -------------------------------------------------------------------------------------------------------------------


def _names(words: Iterable[Word]) -> tuple[str, ...]:
    names = (word.text.rstrip("/").rpartition("/")[2] for word in words if word.certain)
    return tuple("*" if name in (".", "..", "") else name for name in names)


@_program(
    "cp gcp",
    "f|force r|recursive R|recursive a|archive t|target-directory= T|no-target-directory u|update=? n"
    "|no-clobber i|interactive v"
    " p d l|link s|symbolic-link L P H x b|backup=? S|suffix= preserve=? reflink=? sparse= parents attributes-only"
    " remove-destination",
)
def _cp(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = given.operands
    into = given.values("target-directory")
    target, sources = (into[-1], words) if into else (words[-1], words[:-1]) if len(words) > 1 else (None, [])
    if command.appended and target is None:
        target, sources = (words[-1] if words else None), []
    if target is None:
        return
    where = scene.target(target, command.cwd)
    if not given.has("no-clobber", "backup", "b"):
        yield from writing(where, scene, sources=_names(sources) or ("*",))
    for source in sources:
        if secret_path(scene.target(source, command.cwd), scene):
            yield from _copied_secret(scene.target(source, command.cwd), where, scene)


def _copied_secret(source: Target, target: Target, scene: Scene) -> Iterator[Effect]:
    """A copy of a credential in a place where git, or another user, takes it up."""
    if target.path is None:
        yield Effect("secret.leak", source.word, "ask", detail="copied")
    elif places.inside(target.path, scene.facts.root):
        yield Effect(
            "secret.leak",
            source.path or source.word,
            "ask",
            question=Question("ignored", target.path),
            detail=f"copied to {target.path}",
        )
    elif places.place_of(target.path, scene.facts) in ("temp", "outside", "system"):
        yield Effect("secret.leak", source.path or source.word, "ask", detail=f"copied to {target.path}")


@_program(
    "mv gmv",
    "f|force t|target-directory= T|no-target-directory u|update n|no-clobber i|interactive v b|backup=? S|suffix= exchange",
)
def _mv(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = given.operands
    into = given.values("target-directory")
    target, sources = (into[-1], words) if into else (words[-1], words[:-1]) if len(words) > 1 else (None, [])
    if command.appended and target is None:
        target = words[-1] if words else None
    if target is None:
        return
    where = scene.target(target, command.cwd)
    if not given.has("no-clobber", "backup", "b"):
        yield from writing(where, scene, sources=_names(sources) or ("*",))
    stays = where.path is not None and places.place_of(places.fixed_part(where.path), scene.facts) in ("inside", "workspace")
    for source in sources:
        yield from _moved(scene.target(source, command.cwd), where, stays, scene)
    if command.appended:
        yield from () if stays else _walked(scene, command, "lost")


def _moved(source: Target, target: Target, stays: bool, scene: Scene) -> Iterator[Effect]:
    for effect in removal(source, scene):
        # What only changes its name within the workspace is not lost; neither is a file outside that changes its name.
        if effect.question is not None and (stays or source.path is None):
            continue
        if effect.detail in ("outside", "the path is not known before it runs") and effect.weight == "ask":
            continue
        yield effect
    if stays or target.path is None:
        return
    if secret_path(source, scene):
        yield from _copied_secret(source, target, scene)


@_program("install ginstall", "m|mode= o|owner= g|group= d|directory D t|target-directory= T b|backup=? S= s p v c C|compare")
def _install(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if given.has("directory"):
        return
    words = given.operands
    into = given.values("target-directory")
    if into or len(words) > 1:
        yield from writing(
            scene.target(into[-1] if into else words[-1], command.cwd), scene, sources=_names(words[:-1]) or ("*",)
        )


@_program(
    "ln gln", "s|symbolic f|force n|no-dereference i|interactive v|verbose b|backup=? t|target-directory= T r|relative L P S="
)
def _ln(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = given.operands
    if given.has("force") and (len(words) > 1 or given.has("target-directory")):
        yield from writing(
            scene.target((given.values("target-directory") or words[-1:])[-1], command.cwd), scene, sources=_names(words[:-1])
        )
    elif len(words) > 1:
        yield from (
            e for e in writing(scene.target(words[-1], command.cwd), scene, sources=_names(words[:-1])) if e.question is None
        )


@_program("tee gtee", "a|append i p")
def _tee(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.operands:
        yield from writing(scene.target(word, command.cwd), scene, append=given.has("append"))


@_program("sponge", "a")
def _sponge(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.operands:
        yield from writing(scene.target(word, command.cwd), scene, append=given.has("a"))


@_program("dd gdd")
def _dd(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.operands:
        key, _, value = word.text.partition("=")
        if key == "of":
            yield from writing(scene.target(Word(value, word.certain), command.cwd), scene)
        elif key == "if":
            yield from leak(scene.target(Word(value, word.certain), command.cwd), scene)


@_program("sed gsed", "i|in-place=? e|expression= f|file= n|quiet E r s z u l= posix")
def _sed(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    files = given.operands if given.has("expression", "file") else given.operands[1:]
    if given.has("in-place"):
        yield from _overwritten(files, command, scene)
    scripts = given.values("expression") or given.operands[:1]
    for script in scripts:
        for found in re.finditer(r"(?:^|[;}/\d\s])w\s+(/?[\w./~-]+)\s*(?:;|$)", script.text):
            yield from writing(scene.target(Word(found[1]), command.cwd), scene)
    yield from _shows(files, command, scene)


@_program("awk gawk mawk nawk", "i|include= F|field-separator= v|assign= f|file= e|source=", stops=False)
def _awk(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    files = given.operands if given.has("file", "source") else given.operands[1:]
    if "inplace" in [word.text for word in given.values("include")]:
        yield from _overwritten(files, command, scene)
    yield from _shows(files, command, scene)


@_program("perl ruby", "e= E= i=? p n l a w W c s 0=? M= m= I= F= r= x=? C=? d t T u U v X S", abbreviates=False, stops=False)
def _in_place(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    # `-pi -e`, `-i.bak`, `-pie`: letters in one bundle, where i swallows the rest of its own.
    if any(
        re.match(r"-[a-zA-Z0-9]*i", word.text) and not re.match(r"-[eEMmIxC]", word.text) for word in command.words[1:]
    ) and given.has("e", "E"):
        yield from _overwritten(given.operands, command, scene)
    elif given.has("p", "n") and given.has("e", "E"):
        yield from _shows(given.operands, command, scene)


@_program("ed ex vi vim nvim", "s c= e= E u= S= n R b d N V=?", abbreviates=False)
def _ed(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    batch = command.name in ("ed", "ex") or given.has("es", "e", "E", "s", "c")
    if batch and command.stdin is not None or (command.name in ("ex", "vim", "nvim") and given.has("c")):
        yield from _overwritten([word for word in given.operands if not word.text.startswith("+")], command, scene)


@_program(
    "patch", "p|strip= i|input= R|reverse d|directory= o|output= dry-run E f|force N|forward b|backup s t u r= z= B= V= F|fuzz= l"
)
def _patch(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if given.has("dry-run"):
        return
    folder = places.absolute(given.value("directory") or ".", command.cwd)
    output = given.value("output")
    if output:
        yield from writing(scene.target(Word(output), command.cwd), scene)
    elif given.operands:
        yield from writing(scene.target(given.operands[0], folder), scene)
    elif folder is not None:
        yield _listed("overwritten", folder, "tracked")


@_program(
    "tar gtar bsdtar",
    "x|extract c|create t|list r|append u|update f|file= C|directory= z j J v k|keep-old-files"
    " overwrite remove-files"
    " strip-components= exclude= T|files-from= p a|auto-compress I|use-compress-program= checkpoint=?"
    " checkpoint-action= to-command= h"
    " skip-old-files keep-newer-files one-top-level=? delete A m O|to-stdout transform= xform=",
    abbreviates=True,
)
def _tar(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if command.words[1:] and not command.words[1].text.startswith("-"):
        letters, *rest = command.words[1:]
        given = read(
            [Word("-" + letters.text.replace("f", "") + ("f" if "f" in letters.text else "")), *rest], _PROGRAMS["tar"][0]
        )
    folder = command.cwd
    for value in given.values("directory"):
        folder = places.absolute(value.text, folder)
    archive = given.value("file")
    if given.has("create") and archive and archive != "-":
        yield from writing(scene.target(Word(archive), command.cwd), scene)
    if given.has("create", "append", "update"):
        for word in given.operands:
            source = scene.target(word, folder)
            if given.has("remove-files"):
                yield from (effect for effect in removal(source, scene) if effect.weight == "deny" or effect.question is None)
            if archive in (None, "-") and not command.redirects:
                continue
            if secret_path(source, scene) and archive:
                yield from _copied_secret(source, scene.target(Word(archive), command.cwd), scene)
    elif given.has("extract") and not given.has("to-stdout", "keep-old-files", "skip-old-files", "keep-newer-files"):
        yield from _unpacked(folder, scene, forced=given.has("overwrite"))


def _unpacked(folder: str | None, scene: Scene, *, forced: bool) -> Iterator[Effect]:
    """An archive is unpacked: it may write any file below the folder anew."""
    if folder is None:
        return
    place = places.place_of(folder, scene.facts)
    if place in ("inside", "workspace"):
        yield Effect(
            "path.overwrite",
            folder,
            "ask" if forced else "allow",
            question=Question("listed", folder, ("tracked",)),
            detail="files of the archive's names",
        )
    elif place in ("root", "system"):
        yield Effect("system.change", folder, "ask")
    elif place in ("home", "secret", "startup", "git"):
        yield Effect("path.overwrite", folder, "ask", detail="files of the archive's names")


@_program("unzip 7z 7za 7zz unrar", "o d= l t p q n j x=", abbreviates=False)
def _unzip(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if command.name == "unzip" and given.has("o"):
        yield from _unpacked(places.absolute(given.value("d") or ".", command.cwd), scene, forced=True)


@_program("zip", "m|move r q j d|delete x= i= u f P= e", abbreviates=False)
def _zip(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.operands[1:]:
        if secret_path(scene.target(word, command.cwd), scene):
            yield from _copied_secret(scene.target(word, command.cwd), scene.target(given.operands[0], command.cwd), scene)
    if given.has("move"):
        for word in given.operands[1:]:
            yield from (effect for effect in removal(scene.target(word, command.cwd), scene) if effect.weight == "deny")


@_program("sort", "o|output= u r n k= t= S= T=")
def _sort(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.values("output"):
        yield from writing(scene.target(word, command.cwd), scene)
    yield from _shows(given.operands, command, scene)


@_program("chmod chown chgrp", "R|recursive f|silent v|verbose c|changes reference= h from=", abbreviates=True)
def _chmod(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    dashed = next((word.text for word in command.words[1:] if re.fullmatch(r"-[rwxXst]+", word.text)), "")
    mode = dashed or (given.rest[0].text if given.rest else "")
    for word in given.operands[0 if given.has("reference") or dashed else 1 :]:
        target = scene.target(word, command.cwd)
        if target.path is None:
            continue
        place = places.place_of(places.fixed_part(target.path), scene.facts)
        if place in ("root", "home", "system", "above", "device") and (given.has("recursive") or place in ("system", "device")):
            yield Effect("system.change", target.path, "deny" if given.has("recursive") and place != "above" else "ask")
        elif place in ("inside", "workspace"):
            if scene.facts.repository is not None:
                yield Effect("path.mode", target.path, "ask", pieces=("tracked",))
        elif place == "secret" and not re.fullmatch(r"0?[0-7]00|go[-=].*|u.*|og-.*", mode):
            yield Effect("secret.leak", target.path, "ask", detail="others may read it")
        elif place == "own":
            yield Effect("self.defense", target.path, "ask")
        elif place == "git-part" and "/hooks" in target.path and ("-" in mode or re.fullmatch(r"0?[0-6][0-6][0-6]", mode)):
            yield Effect("hook.write", target.path, "ask", instead="leave the hooks as they are")
        elif place == "git" and re.fullmatch(r"0?[0-3]00|a?-[rwx]+", mode):
            yield Effect("system.change", target.path, "ask")


@_program("chattr setfacl chflags", "R i")
def _chattr(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from ()


@_program(
    "rsync",
    "a|archive v r|recursive delete delete-before delete-after delete-during delete-delay delete-excluded n"
    "|dry-run e|rsh= z P"
    " exclude= include= filter= f= remove-source-files rsync-path= del u|update ignore-existing existing partial"
    " progress h t l p o g D c|checksum"
    " x R|relative b|backup backup-dir= suffix= files-from= bwlimit= info= log-file= port= password-file="
    " compare-dest= link-dest= force inplace"
    " append size-only ignore-times I chmod= chown= max-delete= max-size= min-size= q|quiet stats H A X S W T=",
)
def _rsync(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = given.operands
    if given.has("dry-run", "n") or len(words) < 2:
        return
    target, sources = words[-1], words[:-1]
    deletes = any(name.startswith("del") for name, _ in given.options)
    remote = _remote_path(target.text)
    if remote:
        yield Effect("network.contact", target.text, "allow")
        if deletes:
            yield Effect("remote.delete", f"files on {target.text} that are not here", "ask", instead="the same with --dry-run")
        for source in sources:
            yield from leak(scene.target(source, command.cwd), scene, sent=True)
        return
    where = scene.target(target, command.cwd)
    if deletes:
        yield from removal(where, scene)
    else:
        yield from writing(where, scene, sources=("*",)) if where.path is None or not where.path.endswith("/") else ()
    for source in sources:
        if _remote_path(source.text):
            yield Effect("network.contact", source.text, "allow")
        elif given.has("remove-source-files"):
            yield from (
                effect
                for effect in removal(scene.target(source, command.cwd), scene)
                if effect.weight == "deny" or effect.detail == "outside"
            )
        if secret_path(scene.target(source, command.cwd), scene):
            yield from _copied_secret(scene.target(source, command.cwd), where, scene)


def _remote_path(text: str) -> bool:
    return bool(re.match(r"(?:[\w.-]+@)?[\w.-]+:(?!\\)|rsync://", text)) and not re.match(r"[A-Za-z]:[\\/]", text)


@_program("scp sftp", "r p q C v B 3 4 6 P= i= o= F= l= J= c= S= D=")
def _scp(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = given.operands
    if command.name == "scp" and len(words) > 1:
        yield Effect("network.contact", words[-1].text, "allow")
        if _remote_path(words[-1].text):
            for word in words[:-1]:
                yield from leak(scene.target(word, command.cwd), scene, sent=True)
        else:
            yield from writing(scene.target(words[-1], command.cwd), scene, sources=_names(words[:-1]))


# ---- showing -------------------------------------------------------------------------------------------------------------------


def _shows(words: Iterable[Word], command: Command, scene: Scene) -> Iterator[Effect]:
    """What is printed of files with credentials; output that goes to /dev/null or into a file of the same sort shows nothing."""
    sink = any(
        redirect.op in (">", "&>", ">|") and redirect.target.text == "/dev/null" and redirect.fd in (None, 1)
        for redirect in command.redirects
    )
    for word in words:
        target = scene.target(word, command.cwd)
        if target.path is not None and not sink and places.has_pattern(target.path):
            target = replace(target, path=_secret_match(target.path))
        if not sink:
            yield from leak(target, scene)
    for redirect in command.redirects:
        if redirect.op == "<" and not sink:
            yield from leak(scene.target(redirect.target, command.cwd), scene)


def _secret_match(pattern: str) -> str:
    """A pattern with its stars taken out, when what remains still names a credential: ``.env*``, ``~/.ssh/id_*``."""
    head, _, name = pattern.rpartition("/")
    for guess in (name.replace("*", ""), name.replace("*", "rsa"), name.replace("*", "key")):
        if guess in (".env", "id_rsa", ".netrc"):
            return f"{head}/{guess}"
    return pattern


@_program(
    "cat tac head tail less more most bat batcat nl rev od xxd hexdump hd strings base64 base32 cut tr paste fold fmt column"
    " uniq expand pr view"
    " gcat zcat bzcat xzcat nkf dos2unix iconv glow mdcat pygmentize highlight openssl-enc basenc uuencode",
    "n= c= lines= bytes= f= d= w= b= s= t= i= o=",
)
def _cat(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    # An option's value is rarely a file that is shown; a file that was taken for one still is.
    yield from _shows([*given.operands, *(value for _, value in given.options if value is not None)], command, scene)
    if (command.appended and not given.operands) or any(_found_by_find(word, command) for word in given.operands):
        yield from _shows_walked(command, scene)


@_program("echo printf", "", abbreviates=False)
def _echo(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    """A secret variable that is shown; one that goes on through a pipe or into a file is judged there."""
    goes_on = command.redirects or any(other.fed_by is command for other in scene.parsed.commands)
    for word in command.words[1:]:
        if names_secret(word) and not goes_on:
            yield Effect("secret.leak", word.text, "ask")


@_program("openssl", "in= out= k= pass= d e a base64 A n", abbreviates=False)
def _openssl(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from (
        _shows_long(command, ("-in",), scene)
        if {"base64", "enc", "rsa", "pkey", "pkcs12"} & {word.text for word in command.words}
        else ()
    )


def _shows_long(command: Command, options: tuple[str, ...], scene: Scene) -> Iterator[Effect]:
    """Files that follow long options with one dash."""
    writes = any(word.text == "-out" for word in command.words)
    for option, value in zip(command.words, command.words[1:], strict=False):
        if option.text in options and not writes and not any(word.text == "-pubout" for word in command.words):
            yield from leak(scene.target(value, command.cwd), scene)


def _shows_walked(command: Command, scene: Scene) -> Iterator[Effect]:
    source = _listing(command)
    for word in source.words if source is not None and source.name == "find" else ():
        if places.is_secret(f"{scene.facts.root}/{word.text.strip('*')}", scene.facts):
            yield Effect("secret.leak", word.text, "ask")


@_program(
    "grep egrep fgrep rg ag ack zgrep ugrep",
    "e|regexp= f|file= c|count q|quiet l|files-with-matches L"
    "|files-without-match r|recursive R|recursive"
    " A= B= C= m|max-count= include= exclude= exclude-dir= i v n w x h H s o E F P z Z a g|glob= t|type= T= color=?"
    " max-depth=",
)
def _grep(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if given.has("count", "quiet", "files-with-matches", "files-without-match"):
        return
    yield from _shows(given.operands if given.has("regexp", "file") else given.operands[1:], command, scene)


@_program("jq yq dasel xq tomlq", "r c s n e a C M S j f= arg= argjson=", abbreviates=False)
def _jq(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from _shows(given.operands[1:], command, scene)


@_program("diff colordiff sdiff comm vimdiff", "u U= r q|brief y w b i")
def _diff(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if not given.has("brief"):
        yield from _shows(given.operands, command, scene)


_SECRET_VARIABLE = Pattern(r"\w*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|CREDENTIALS?)(?:_\w*)?")


@_program("printenv", "0")
def _printenv(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.operands:
        if _SECRET_VARIABLE.fullmatch(word.text):
            yield Effect("secret.leak", f"${word.text}", "ask")


# ---- disks and the system ------------------------------------------------------------------------------------------------------


@_program(
    "mke2fs mkswap wipefs blkdiscard sgdisk sfdisk cfdisk fdisk gdisk parted hdparm badblocks nwipe scrub",
    "a|all n|no-act l|list p|print h L V o= t|types= f|force B|backup I i",
    abbreviates=False,
)
def _disk(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    reads = (
        given.has("list", "print", "no-act")
        or (command.name == "wipefs" and not given.has("all", "o"))
        or (command.name == "parted" and any(word.text == "print" for word in given.operands))
        or (command.name == "hdparm" and given.has("I", "i"))
    )
    for word in given.operands:
        if word.text.startswith("/dev/") and not reads:
            yield Effect("disk.destroy", word.text, "deny")
            return


@_program(
    "cryptsetup lvremove vgremove pvremove zpool zfs btrfs mdadm dmsetup diskutil losetup lvreduce lvresize",
    "",
    abbreviates=False,
)
def _volumes(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = {word.text.lower() for word in command.words[1:]}
    grave = {
        "luksformat",
        "lukserase",
        "erase",
        "destroy",
        "delete",
        "labelclear",
        "--zero-superblock",
        "remove",
        "remove_all",
        "erasedisk",
        "erasevolume",
        "partitiondisk",
        "reformat",
        "secureerase",
        "zerodisk",
        "rollback",
    }
    if command.name in ("lvremove", "vgremove", "pvremove", "lvreduce") or words & grave:
        yield Effect("disk.destroy", " ".join(word.text for word in command.words), "deny")


def mkfs(command: Command) -> Iterator[Effect]:
    """Every ``mkfs.*``."""
    if command.name == "mkfs" or command.name.startswith(("mkfs.", "newfs")):
        yield Effect("disk.destroy", command.words[-1].text, "deny")


@_program("crontab", "l e r i u= T=", abbreviates=False)
def _crontab(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if given.has("r"):
        yield Effect("system.change", "the user's crontab", "ask", instead="crontab -l > crontab.bak first")
    elif given.operands or (not given.has("l", "e", "T") and (command.stdin is not None or command.piped_from)):
        yield Effect("system.change", "the user's crontab is written anew", "ask", instead="crontab -l > crontab.bak first")


@_program("atrm userdel groupdel deluser delgroup usermod passwd chpasswd visudo chsh", "")
def _users(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield Effect("system.change", " ".join(word.text for word in command.words[:3]), "ask")


@_program("shutdown reboot poweroff halt", "c k")
def _off(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if not given.has("c", "k"):
        yield Effect("system.change", "the machine stops", "ask")


@_program("iptables ip6tables nft ufw firewall-cmd pfctl", "", abbreviates=False)
def _firewall(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = {word.text for word in command.words[1:]}
    if words & {"-F", "--flush", "flush", "disable", "reset", "-X", "-D", "delete", "-d"}:
        yield Effect("system.change", "the firewall", "ask")


@_program(
    "apt apt-get aptitude dpkg dnf yum zypper pacman apk brew snap flatpak rpm port emerge",
    "s|dry-run simulate just-print y q h",
    abbreviates=False,
)
def _packages(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = [word.text for word in given.operands]
    removes = {"remove", "purge", "autoremove", "uninstall", "erase", "del", "rm", "autopurge", "zap"}
    letters = [word.text for word in command.words[1:] if re.match(r"-(?:R|e$|P$|r$|-remove|-purge|-erase)", word.text)]
    if given.has("dry-run", "simulate", "just-print"):
        return
    if command.name == "brew" and words[:1] == ["services"] and words[1:2] in (["stop"], ["kill"]):
        yield Effect("service.stop", " ".join(words[2:]) or "every service", "ask")
    elif (words and words[0] in removes) or (command.name in ("pacman", "dpkg", "rpm") and letters):
        yield Effect("system.change", f"installed packages: {' '.join(words[1:]) or 'those no longer needed'}", "ask")


@_program("kill", "s|signal= l|list L n= 9 15 1 2", abbreviates=False)
def _kill(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = [word.text for word in command.words[1:]]
    lists = [other.name for other in scene.parsed.commands if other.name in ("pgrep", "pidof")]
    unsure = any(not word.certain for word in command.words[1:]) or command.appended
    if words[-1:] in (["-1"], ["0"]) and len(words) > 1:
        yield Effect("process.kill", "every process of the user", "deny")
    elif unsure and (lists or "ps" in command.piped_from):
        yield Effect("process.kill", "every process of that name", "ask", instead="kill the one process by its id")


@_program("pkill killall skill", "f|full u|euid= t= P|parent= x|exact g= signal= s= v|verbose q i o n w e l", abbreviates=False)
def _pkill(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if command.name == "killall" and given.has("l"):
        return
    name = " ".join(word.text for word in given.operands)
    own = "safety" in name
    signal_0 = any(word.text in ("-0", "--signal=0") for word in command.words)
    if not signal_0:
        yield Effect(
            "self.defense" if own else "process.kill",
            f"every process that matches {name}",
            "ask",
            instead="kill the one process by its id",
        )


@_program("fuser", "k|kill m|mount M s= n= v u i", abbreviates=True)
def _fuser(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if given.has("kill") and given.has("mount", "m", "M", "c"):
        yield Effect("process.kill", "every process that uses the file system", "ask")


@_program("systemctl service supervisorctl pm2 launchctl rc-service sv initctl", "", abbreviates=False)
def _services(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = [word.text for word in given.operands]
    stops = {
        "stop",
        "disable",
        "mask",
        "kill",
        "isolate",
        "delete",
        "unload",
        "bootout",
        "remove",
        "shutdown",
        "poweroff",
        "reboot",
        "halt",
        "rescue",
        "emergency",
        "down",
        "hibernate",
        "suspend",
    }
    verb = words[1] if command.name in ("service", "rc-service") and len(words) > 1 else (words[0] if words else "")
    if verb in stops:
        yield Effect("service.stop", " ".join(word for word in words if word != verb) or verb, "ask")


@_program("trash-empty")
def _trash(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield Effect("path.remove", "the trash", "ask")
