"""What commands print of files and variables that hold credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from safety.policy import places
from safety.policy.operands import Given
from safety.policy.path_effects import leak
from safety.policy.patterns import Pattern
from safety.policy.programs import program
from safety.policy.scene import Scene, names_secret
from safety.policy.shell import Command, Word
from safety.policy.values import Effect
from safety.policy.walks import found_by_find, listing


def shows(words: Iterable[Word], command: Command, scene: Scene) -> Iterator[Effect]:
    """What is printed of files with credentials; output that goes to /dev/null or into a file of the same sort shows nothing."""
    sink = any(
        redirect.op in (">", "&>", ">|") and redirect.target.text == "/dev/null" and redirect.fd in (None, 1)
        for redirect in command.redirects
    )
    for word in words:
        target = scene.target(word, command.cwd)
        if any(_loads(other, word) for other in scene.parsed.commands):
            continue
        if target.path is not None and not sink and places.has_pattern(target.path):
            target = replace(target, path=_secret_match(target.path))
        if not sink:
            yield from leak(target, scene)
    for redirect in command.redirects:
        if redirect.op == "<" and not sink:
            yield from leak(scene.target(redirect.target, command.cwd), scene)


def _loads(command: Command, word: Word) -> bool:
    """Whether a command takes the file's lines as variables: ``export $(grep -v '^#' .env | xargs)``."""
    return (
        command.name == "export"
        and bool(word.text)
        and any("$(" in other.text and word.text in other.text for other in command.words)
    )


def _secret_match(pattern: str) -> str:
    """A pattern with its stars taken out, when what remains still names a credential: ``.env*``, ``~/.ssh/id_*``."""
    head, _, name = pattern.rpartition("/")
    for guess in (name.replace("*", ""), name.replace("*", "rsa"), name.replace("*", "key")):
        if guess in (".env", "id_rsa", ".netrc"):
            return f"{head}/{guess}"
    return pattern


@program(
    "cat tac head tail less more most bat batcat nl rev od xxd hexdump hd strings base64 base32 cut tr paste fold fmt column"
    " uniq expand pr view"
    " gcat zcat bzcat xzcat nkf dos2unix iconv glow mdcat pygmentize highlight openssl-enc basenc uuencode",
    "n= c= lines= bytes= f= d= w= b= s= t= i= o=",
)
def _cat(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    # An option's value is rarely a file that is shown; a file that was taken for one still is.
    yield from shows([*given.operands, *(value for _, value in given.options if value is not None)], command, scene)
    if (command.appended and not given.operands) or any(found_by_find(word, command) for word in given.operands):
        yield from _shows_walked(command, scene)


@program("echo printf", "", abbreviates=False)
def _echo(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    """A secret variable that is shown; one that goes on through a pipe or into a file is judged there."""
    goes_on = command.redirects or any(other.fed_by is command for other in scene.parsed.commands)
    for word in command.words[1:]:
        if names_secret(word) and not goes_on:
            yield Effect("secret.leak", word.text, "ask")


@program("openssl", "in= out= k= pass= d e a base64 A n", abbreviates=False)
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
    source = listing(command)
    for word in source.words if source is not None and source.name == "find" else ():
        if places.is_secret(f"{scene.facts.root}/{word.text.strip('*')}", scene.facts):
            yield Effect("secret.leak", word.text, "ask")


@program(
    "grep egrep fgrep rg ag ack zgrep ugrep",
    "e|regexp= f|file= c|count q|quiet l|files-with-matches L"
    "|files-without-match r|recursive R|recursive"
    " A= B= C= m|max-count= include= exclude= exclude-dir= i v n w x h H s o E F P z Z a g|glob= t|type= T= color=?"
    " max-depth=",
)
def _grep(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if given.has("count", "quiet", "files-with-matches", "files-without-match"):
        return
    lists = {"env", "printenv", "set", "export", "declare"} & set(command.piped_from)
    if lists and any(_SECRET_WORD.search(word.text) for word in (*given.values("regexp"), *given.rest[:1])):
        yield Effect("secret.leak", "secret variables of the environment", "ask")
    yield from shows(given.operands if given.has("regexp", "file") else given.operands[1:], command, scene)


@program("jq yq dasel xq tomlq", "r c s n e a C M S j f= arg= argjson=", abbreviates=False)
def _jq(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    yield from shows(given.operands[1:], command, scene)


@program("diff colordiff sdiff comm vimdiff", "u U= r q|brief y w b i")
def _diff(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    if not given.has("brief"):
        yield from shows(given.operands, command, scene)


_SECRET_WORD = Pattern(r"secret|token|passw|api_?key|private_?key|access_?key|credential", re.I)
_SECRET_VARIABLE = Pattern(r"\w*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|CREDENTIALS?)(?:_\w*)?")


@program("printenv", "0")
def _printenv(command: Command, given: Given, scene: Scene) -> Iterator[Effect]:
    for word in given.operands:
        if _SECRET_VARIABLE.fullmatch(word.text):
            yield Effect("secret.leak", f"${word.text}", "ask")
