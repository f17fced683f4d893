"""What a few commands write, where their words alone tell: enough to follow text that is made up on the way to a shell."""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from typing import TYPE_CHECKING

from safety.policy.calls import EMPTY, NETWORK, Call
from safety.policy.expand import Output, unescape
from safety.policy.gitwords import join
from safety.policy.options import read_options
from safety.policy.words import Word

if TYPE_CHECKING:
    from safety.policy.process import Shell

_SILENT = frozenset(
    "true false : cd pushd popd export unset set shift alias trap mkdir touch chmod sleep rm test [ source .".split()
)
_SPECIFIER = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?([a-zA-Z]))")


def output_of(shell: Shell, name: str, call: Call) -> Output:
    """A command's output; the files that it writes as its arguments say are noted on the way."""
    words = call.words
    _note_files(shell, name, call)
    feed = call.feed
    if name in NETWORK:
        return Output(None, name)
    by = feed.by if feed.by in NETWORK else name
    if name in ("cat", "tee", "dd", "sponge"):
        return _passed(shell, name, call, by)
    if name in _SILENT:
        return EMPTY
    if not all(word.certain for word in words) or any(word.glob for word in words):
        return Output(None, next((word.made_by for word in words if word.made_by in NETWORK), by))
    texts = [word.text for word in words[1:]]
    text: str | None = None
    if name == "echo":
        text = _echo(texts)
    elif name == "printf":
        text = _printf(texts)
    elif name == "pwd" and not texts:
        text = f"{shell.cwd}\n" if shell.cwd is not None else None
    elif name in ("dirname", "basename") and len(texts) == 1 and not texts[0].startswith("-"):
        path = texts[0].rstrip("/") or "/"
        text = f"{(posixpath.dirname(path) or '.') if name == 'dirname' else posixpath.basename(path) or '/'}\n"
    elif feed.text is not None and len(feed.text) < 100_000:
        text = _filtered(name, texts, feed.text)
    return Output(text, by)


def _echo(texts: list[str]) -> str:
    newline, escapes = "\n", False
    while texts and re.fullmatch(r"-[neE]+", texts[0]):
        newline = "" if "n" in texts[0] else newline
        escapes = "e" in texts[0] or escapes
        texts = texts[1:]
    text = " ".join(texts)
    return (unescape(text, octal_zero=True) if escapes else text) + newline


def _printf(texts: list[str]) -> str | None:
    if texts[:1] == ["--"]:
        texts = texts[1:]
    if not texts or texts[0] == "-v":
        return ""
    form, rest = unescape(texts[0]), texts[1:]
    written: list[str] = []
    while True:
        left = len(rest)

        def one(found: re.Match[str]) -> str:
            if not found[1]:
                return "%"
            value = rest.pop(0) if rest else ""
            return unescape(value, octal_zero=True) if found[1] == "b" else value

        written.append(_SPECIFIER.sub(one, form))
        if not rest or len(rest) == left or len(written) > 200:
            return "".join(written) if not rest or len(rest) == left else None


def _filtered(name: str, texts: list[str], text: str) -> str | None:
    if name == "rev" and not texts:
        return "".join(f"{line[::-1]}\n" for line in text.splitlines())
    if name == "base64" and any(each in ("-d", "-D", "--decode", "-di", "-id") for each in texts):
        return _decoded(text)
    if name == "xxd" and "".join(texts) in ("-r-p", "-rp", "-p-r", "-pr", "-r-ps"):
        try:
            return bytes.fromhex("".join(text.split())).decode("utf-8", "replace")
        except ValueError:
            return None
    if name == "tr" and len(texts) == 2:
        if texts[0] == "-d":
            gone = set(_set(texts[1]))
            return "".join(char for char in text if char not in gone)
        if not texts[0].startswith("-"):
            old, new = _set(texts[0]), _set(texts[1])
            return text.translate({ord(a): new[min(i, len(new) - 1)] for i, a in enumerate(old)}) if new else None
    return None


def _decoded(text: str) -> str | None:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def _set(text: str) -> str:
    """The characters that an argument of ``tr`` stands for."""
    text = (
        text.replace("[:upper:]", "A-Z").replace("[:lower:]", "a-z").replace("[:digit:]", "0-9").replace("[:space:]", " \t\n\r")
    )

    def spread(found: re.Match[str]) -> str:
        return "".join(chr(code) for code in range(ord(found[1]), min(ord(found[2]), ord(found[1]) + 300) + 1))

    return re.sub(r"(.)-(.)", spread, unescape(text), flags=re.DOTALL)


def _passed(shell: Shell, name: str, call: Call, by: str) -> Output:
    """cat, tee, dd: what goes in comes out."""
    files = [word for word in call.words[1:] if word.text == "-" or not word.text.startswith("-")]
    if name != "cat" or not files:
        silent = name == "sponge" and bool(files) or (name == "dd" and any(word.text.startswith("of=") for word in files))
        return EMPTY if silent else Output(call.feed.text, by)
    text: str | None = ""
    for word in files:
        path = join(shell.cwd, word.text) if word.certain and not word.glob else None
        found = (
            Output(call.feed.text, by) if word.text == "-" else shell.files.get(path or "", Output(None, word.made_by or name))
        )
        text = text + found.text if text is not None and found.text is not None else None
        by = found.by if found.by in NETWORK else by
    return Output(text, by)


def _note_files(shell: Shell, name: str, call: Call) -> None:
    """What ``curl -o``, ``tee``, ``cp``, ``mv`` and their like put where."""
    words = call.words[1:]
    if name in ("curl", "wget", "wget2", "aria2c"):
        for target in _downloads(name, words):
            if path := join(shell.cwd, target):
                shell.note(path, Output(None, name))
    elif name in ("tee", "sponge"):
        for word in words:
            if word.certain and not word.text.startswith("-") and (path := join(shell.cwd, word.text)):
                shell.note(path, Output(call.feed.text, call.feed.by))
    elif name in ("cp", "mv", "install", "ln") and shell.files:
        _copied(shell, name, words)
    elif name == "dd":
        ends = dict(word.text.split("=", 1) for word in words if word.certain and "=" in word.text)
        if "of" in ends and (path := join(shell.cwd, ends["of"])):
            source = (
                shell.files.get(join(shell.cwd, ends["if"]) or "", Output())
                if "if" in ends
                else Output(call.feed.text, call.feed.by)
            )
            shell.note(path, source)
    elif name in ("rm", "unlink", "sed", "perl", "patch", "truncate", "shred", "git") and shell.files:
        for word in words:
            path = join(shell.cwd, word.text) if word.certain else None
            if path in shell.files:
                shell.note(path, Output(None, shell.files[path].by))


def _copied(shell: Shell, name: str, words: tuple[Word, ...]) -> None:
    options = read_options(words, "mogtS", ("--mode=", "--owner=", "--group=", "--target-directory="))
    into = options.value("-t", "--target-directory")
    sources = list(options.operands)
    if into is None and len(sources) > 1:
        into = sources.pop()
    if into is None or not into.certain:
        return
    for source in sources:
        path = join(shell.cwd, source.text) if source.certain else None
        held = shell.files.get(path or "")
        target = join(shell.cwd, into.text)
        if held is None or path is None or target is None:
            continue
        shell.note(target, held)
        shell.note(posixpath.join(target, posixpath.basename(path)), held)


def _downloads(name: str, words: tuple[Word, ...]) -> list[str]:
    """The paths, as given, that a fetching command writes to."""
    if name == "curl":
        values = "AbcCdDeEFHhKmoPQrTtuUwxXyYz"
        longs = tuple(
            "--output= --output-dir= --remote-name --remote-name-all --header= --data= --user= --url= --request= --proxy= --max-time= "
            "--retry= --write-out= --user-agent= --cookie= --connect-timeout=".split()
        )
        options = read_options(words, values, longs)
        folder = options.value("--output-dir")
        targets = [value.text for key, value in options.given if key in ("-o", "--output") and value and value.certain]
        if options.has("-O", "--remote-name", "--remote-name-all"):
            targets += [_last(word.text) for word in options.operands]
        return [f"{folder.text}/{target}" if folder else target for target in targets if target]
    values = "aBDehiIlOoPQRtTUwXA" if name != "aria2c" else "diloxs"
    options = read_options(words, values, ("--output-document=", "--directory-prefix=", "--header=", "--dir=", "--out="))
    folder = options.value("-P", "--directory-prefix", "-d", "--dir")
    named = options.value("-O", "--output-document") if name != "aria2c" else options.value("-o", "--out")
    targets = [named.text] if named and named.certain else [_last(word.text) for word in options.operands if word.certain]
    return [f"{folder.text}/{target}" if folder and folder.certain else target for target in targets if target and target != "-"]


def _last(url: str) -> str:
    return url.partition("?")[0].rstrip("/").rpartition("/")[2]
