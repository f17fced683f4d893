"""What commands do to files: removing, writing anew, moving, copying, unpacking."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from safety.policy import places
from safety.policy.effects_shows import shows
from safety.policy.operands import Given, read
from safety.policy.path_effects import leak, removal, secret_path, writing
from safety.policy.programs import options_of, program, program_effects
from safety.policy.scene import Scene, Target
from safety.policy.shell import Command, Word
from safety.policy.values import Effect, Question
from safety.policy.walks import find_walk, found_by_find, listed, walked


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
        if found_by_find(word, command):
            yield from walked(scene, command, "lost")
        elif word.certain or not fresh:  # a trap is set before the temporary folder is made that it removes
            yield from removal(scene.target(word, command.cwd), scene, deep=deep)
    if command.appended and not any(found_by_find(word, command) for word in words):
        yield from walked(scene, command, "lost")


@program(
    "rm grm", "f|force r|recursive R|recursive i I d|dir v|verbose interactive=? one-file-system no-preserve-root preserve-root=?"
)
def _rm(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from _removed(given.operands, command, scene, deep=given.has("recursive"))


@program("unlink srm shred wipe trash-rm", "u z v f|force n|iterations= s|size= x exact remove=? zero verbose random-source=")
def _unlink(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from _removed(given.operands, command, scene, deep=False)


@program("rimraf del-cli del safe-rm", "g|glob v|verbose f|force i", abbreviates=False)
def _rimraf(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from _removed(given.operands, command, scene, deep=True)


@program("shx", stops=True)
def _shx(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from program_effects(replace(command, words=command.words[1:]), scene)


@program("fdupes jdupes rdfind", "d|delete N|noprompt r|recurse deleteduplicates", abbreviates=False)
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


@program("hg svn jj sl fossil", "", abbreviates=False)
def _other_systems(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    """Version control beside git: what it throws away in the workspace are files, and the snapshot has files."""
    text = " ".join(word.text for word in command.words[1:])
    if command.name == "svn" and re.match(r"(?:rm|del|delete|remove) .*://", text):
        yield Effect("remote.delete", text, "ask")
    elif re.match(r"(?:-\S+ )*(?:" + _OTHER_SYSTEMS[command.name] + ")", text):
        yield Effect("worktree.discard", command.cwd or "", "ask", pieces=("tracked", "untracked"))


@program("truncate", "s|size= r|reference= c|no-create o|io-blocks")
def _truncate(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if (given.value("size") or "").startswith(("+", ">")):
        return
    yield from _overwritten(given.operands, command, scene)


def _overwritten(words: list[Word], command: Command, scene: Scene) -> Iterator[Effect]:
    for word in words:
        if found_by_find(word, command):
            yield from walked(scene, command, "overwritten")
        else:
            for effect in writing(scene.target(word, command.cwd), scene):
                # What is edited in place is there already, or will be.
                there = effect.question is not None and effect.question.kind == "overwritten"
                yield replace(effect, question=Question("lost", effect.target)) if there else effect
    if command.appended and not any(found_by_find(word, command) for word in words):
        yield from walked(scene, command, "overwritten")


# ---- find ----------------------------------------------------------------------------------------------------------------------

_FIND_ACTIONS = ("-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprintf", "-fls", "-fprint0")


@program("find gfind", "", abbreviates=False)
def _find(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = [word.text for word in command.words[1:]]
    at = 0
    while at < len(words):
        if words[at] in ("-exec", "-execdir", "-ok", "-okdir"):
            at = next((end for end in range(at, len(words)) if words[end] in (";", "+", "\\;")), len(words))
        elif words[at] == "-delete":
            yield from find_walk(command, scene, "lost")
        elif words[at] in ("-fprint", "-fprintf", "-fls", "-fprint0") and at + 1 < len(words):
            yield from writing(scene.target(command.words[at + 2], command.cwd), scene)
        at += 1


@program(
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


@program(
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
        if places.is_secret(target.path, scene.facts):
            return  # it keeps a name that says what it is
        yield Effect(
            "secret.leak",
            source.path or source.word,
            "ask",
            question=Question("ignored", target.path),
            detail=f"copied to {target.path}",
        )
    elif places.place_of(target.path, scene.facts) in ("temp", "outside", "system"):
        yield Effect("secret.leak", source.path or source.word, "ask", detail=f"copied to {target.path}")


@program(
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
        yield from () if stays else walked(scene, command, "lost")


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


@program("install ginstall", "m|mode= o|owner= g|group= d|directory D t|target-directory= T b|backup=? S= s p v c C|compare")
def _install(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if given.has("directory"):
        return
    words = given.operands
    into = given.values("target-directory")
    if into or len(words) > 1:
        yield from writing(
            scene.target(into[-1] if into else words[-1], command.cwd), scene, sources=_names(words[:-1]) or ("*",)
        )


@program(
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


@program("tee gtee", "a|append i p")
def _tee(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.operands:
        yield from writing(scene.target(word, command.cwd), scene, append=given.has("append"))


@program("sponge", "a")
def _sponge(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.operands:
        yield from writing(scene.target(word, command.cwd), scene, append=given.has("a"))


@program("dd gdd")
def _dd(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.operands:
        key, _, value = word.text.partition("=")
        if key == "of":
            yield from writing(scene.target(Word(value, word.certain), command.cwd), scene)
        elif key == "if":
            yield from leak(scene.target(Word(value, word.certain), command.cwd), scene)


@program("sed gsed", "i|in-place=? e|expression= f|file= n|quiet E r s z u l= posix")
def _sed(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    files = given.operands if given.has("expression", "file") else given.operands[1:]
    if given.has("in-place"):
        yield from _overwritten(files, command, scene)
    scripts = given.values("expression") or given.operands[:1]
    for script in scripts:
        for found in re.finditer(r"(?:^|[;}/\d\s])w\s+(/?[\w./~-]+)\s*(?:;|$)", script.text):
            yield from writing(scene.target(Word(found[1]), command.cwd), scene)
    yield from shows(files, command, scene)


@program("awk gawk mawk nawk", "i|include= F|field-separator= v|assign= f|file= e|source=", stops=False)
def _awk(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    files = given.operands if given.has("file", "source") else given.operands[1:]
    if "inplace" in [word.text for word in given.values("include")]:
        yield from _overwritten(files, command, scene)
    yield from shows(files, command, scene)


@program("perl ruby", "e= E= i=? p n l a w W c s 0=? M= m= I= F= r= x=? C=? d t T u U v X S", abbreviates=False, stops=False)
def _in_place(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    # `-pi -e`, `-i.bak`, `-pie`: letters in one bundle, where i swallows the rest of its own.
    if any(
        re.match(r"-[a-zA-Z0-9]*i", word.text) and not re.match(r"-[eEMmIxC]", word.text) for word in command.words[1:]
    ) and given.has("e", "E"):
        yield from _overwritten(given.operands, command, scene)
    elif given.has("p", "n") and given.has("e", "E"):
        yield from shows(given.operands, command, scene)


@program("ed ex vi vim nvim", "s c= e= E u= S= n R b d N V=?", abbreviates=False)
def _ed(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    batch = command.name in ("ed", "ex") or given.has("es", "e", "E", "s", "c")
    if batch and command.stdin is not None or (command.name in ("ex", "vim", "nvim") and given.has("c")):
        yield from _overwritten([word for word in given.operands if not word.text.startswith("+")], command, scene)


@program(
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
        yield listed("overwritten", folder, "tracked")


@program(
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
        given = read([Word("-" + letters.text.replace("f", "") + ("f" if "f" in letters.text else "")), *rest], options_of("tar"))
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


@program("unzip 7z 7za 7zz unrar", "o d= l t p q n j x=", abbreviates=False)
def _unzip(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if command.name == "unzip" and given.has("o"):
        yield from _unpacked(places.absolute(given.value("d") or ".", command.cwd), scene, forced=True)


@program("zip", "m|move r q j d|delete x= i= u f P= e", abbreviates=False)
def _zip(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.operands[1:]:
        if secret_path(scene.target(word, command.cwd), scene):
            yield from _copied_secret(scene.target(word, command.cwd), scene.target(given.operands[0], command.cwd), scene)
    if given.has("move"):
        for word in given.operands[1:]:
            yield from (effect for effect in removal(scene.target(word, command.cwd), scene) if effect.weight == "deny")


@program("sort", "o|output= u r n k= t= S= T=")
def _sort(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.values("output"):
        yield from writing(scene.target(word, command.cwd), scene)
    yield from shows(given.operands, command, scene)


@program("chmod chown chgrp", "R|recursive f|silent v|verbose c|changes reference= h from=", abbreviates=True)
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


@program("chattr setfacl chflags", "R i")
def _chattr(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from ()


@program(
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


@program("scp sftp", "r p q C v B 3 4 6 P= i= o= F= l= J= c= S= D=")
def _scp(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    words = given.operands
    if command.name == "scp" and len(words) > 1:
        yield Effect("network.contact", words[-1].text, "allow")
        if _remote_path(words[-1].text):
            for word in words[:-1]:
                yield from leak(scene.target(word, command.cwd), scene, sent=True)
        else:
            yield from writing(scene.target(words[-1], command.cwd), scene, sources=_names(words[:-1]))
