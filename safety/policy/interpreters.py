"""Code handed to an interpreter: ``python -c``, ``node -e``, ``psql -c``, a heredoc, a script whose writing was seen."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from safety.policy.calls import NETWORK, Call
from safety.policy.expand import Output
from safety.policy.options import canonical, read_options
from safety.policy.words import Word

if TYPE_CHECKING:
    from safety.policy.process import Shell


_LANGUAGES = {
    "python": "python", "pypy": "python", "ipython": "python", "node": "node", "nodejs": "node", "deno": "node", "bun": "node",
    "perl": "perl", "ruby": "ruby", "irb": "ruby", "php": "php", "lua": "lua", "luajit": "lua", "Rscript": "r", "R": "r",
    "julia": "julia", "osascript": "applescript", "tclsh": "tcl", "expect": "tcl", "elixir": "elixir", "groovy": "groovy",
    "tsx": "node", "ts-node": "node",
    "psql": "sql", "mysql": "sql", "mariadb": "sql", "sqlite3": "sql", "sqlite": "sql", "duckdb": "sql", "sqlcmd": "sql",
    "cockroach": "sql", "clickhouse-client": "sql", "mongosh": "mongo", "mongo": "mongo", "cqlsh": "sql", "usql": "sql",
}  # fmt: skip


class _Options(NamedTuple):
    """An interpreter's options: short ones whose value is code, ones with another value, ones whose value is glued on if any."""

    code: str
    values: str = ""
    glued: str = ""
    longs: tuple[str, ...] = ()


_SQL = tuple("--command= --execute= --query= --host= --user= --database= --dbname= --username= --port= --file= --cmd=".split())
_OPTIONS: Mapping[str, _Options] = {
    "python": _Options("c", "WXm"), "node": _Options("ep", "rC", "", ("--eval=", "--print=", "--require=", "--import=")),
    "perl": _Options("eE", "IMm", "i0lFCx"), "ruby": _Options("e", "IrCE", "i0lFKTWx"), "lua": _Options("e", "l"),
    "php": _Options("rBRE", "cdfgStz", "", ("--run=",)), "julia": _Options("eE", "LpJt", "", ("--eval=",)), "r": _Options("e"),
    "applescript": _Options("e", "ls"), "tcl": _Options("c", "fb"), "elixir": _Options("e", "rS", "", ("--eval=",)),
    "groovy": _Options("e"), "sql": _Options("e", "dhU", "", _SQL), "psql": _Options("c", "dhUpPLvFRTfo", "", _SQL),
    "usql": _Options("c", "fo", "", _SQL), "duckdb": _Options("cs", "", "", _SQL), "mysql": _Options("e", "hPuDSr", "p", _SQL),
    "mariadb": _Options("e", "hPuDSr", "p", _SQL), "sqlcmd": _Options("qQ", "SUPdio", "", _SQL), "sqlite3": _Options("", "", "c", _SQL),
    "clickhouse-client": _Options("q", "hud", "", _SQL),
    "mongo": _Options("", "upf", "", ("--eval=", "--host=", "--port=", "--username=", "--password=")),
}  # fmt: skip
_CODE_LONGS = frozenset("--eval --print --run --command --execute --query --cmd".split())
_ASKING = ("sql", "mongo")  # their operands name a data base, their input is code in any case
VERSIONED = re.compile(r"(python|pypy|perl|ruby|lua|node|php|tclsh|ksh|zsh|bash)[\d.]+t?")


class _Given(NamedTuple):
    texts: list[Word]  # code
    operands: list[Word]
    module: bool  # python -m


def _interpreter(shell: Shell, name: str, call: Call) -> Output | None:
    """The code given to an interpreter, by option, on its input or in a file whose writing was seen."""
    plain = VERSIONED.fullmatch(name)
    base = plain[1] if plain and name not in _LANGUAGES else name
    language = _LANGUAGES[base]
    words = list(call.words[1:])
    if base in ("deno", "bun") and words and words[0].text in ("eval", "run", "repl"):
        words = [Word("-e"), *(word for word in words[1:] if word.text[:1] != "-")] if words[0].text == "eval" else words[1:]
    options = _OPTIONS.get(base) or _OPTIONS.get(language) or _Options("e")
    texts, operands, module = _read(words, options, language)
    for word in texts:
        shell.code(language, word.text, f"{name} -{options.code[:1] or '-eval'}")
    if base in ("sqlite3", "sqlite", "duckdb"):
        for word in operands[1:]:
            shell.code(language, word.text, name)
    feed = call.feed
    reads = not module and not texts and (not operands or operands[0].text in ("-", "/dev/stdin") or language in _ASKING)
    held = shell.held(operands[0]) if operands and not texts and not module else None
    if reads and (feed.text is not None or feed.draft):
        shell.code(language, feed.text if feed.text is not None else feed.draft, "heredoc" if feed.source == "heredoc" else name)
    elif held is not None and held.text is not None:
        shell.code(language, held.text, f"{name} {operands[0].text}")
    fetched = any(word.made_by in NETWORK for word in texts) or (held is not None and held.by in NETWORK)
    fetched |= bool(operands and not texts and operands[0].made_by in NETWORK)
    shell.emit(call, runs_download=fetched or (reads and language not in _ASKING and feed.by in NETWORK))
    if language == "applescript":
        for found in re.finditer(r'do shell script\s+"((?:[^"\\]|\\.)*)"', "\n".join(word.text for word in texts)):
            shell.payload("osascript -e", Word(re.sub(r"\\(.)", r"\1", found[1])), call)
    return Output(None, feed.by if feed.by in NETWORK else name)


def _read(words: list[Word], options: _Options, language: str) -> _Given:
    """Code, operands, and whether a module is run; what follows a script's name or python's -c is the script's."""
    given = _Given([], [], False)
    i = 0
    while i < len(words) and (not given.operands or language in _ASKING):
        word, i = words[i], i + 1
        if word.text.startswith("--"):
            option, equals, glued = canonical(word.text, options.longs).partition("=")
            if equals and option in _CODE_LONGS:
                given.texts.append(Word(glued, word.certain))
            elif not equals and f"{option}=" in options.longs:
                given.texts.extend(words[i : i + 1] if option in _CODE_LONGS else ())
                i += 1
        elif word.text.startswith("-") and len(word.text) > 1:
            letter, rest = _valued(word.text, options)
            if letter and letter in options.code:
                given.texts.extend([Word(rest, word.certain)] if rest else words[i : i + 1])
            if letter and not rest:
                i += 1
            if language == "python" and letter in ("c", "m"):
                return given._replace(module=letter == "m")
        else:
            given.operands.append(word)
    return given


def _valued(bundle: str, options: _Options) -> tuple[str, str]:
    """The first letter of a bundle that takes a value, and what of it is glued on; empty: none does, or only glued."""
    for at, letter in enumerate(bundle[1:], 2):
        if letter in options.code or letter in options.values:
            return letter, bundle[at:]
        if letter in options.glued and bundle[at:]:
            digits = letter in "0l" and not bundle[at].isdigit()
            if not digits:
                return "", ""
    return "", ""


def _awk(shell: Shell, name: str, call: Call) -> Output | None:
    given = read_options(call.words[1:], "Ffvie", ("--file=", "--assign=", "--field-separator=", "--source="), mixed=False)
    text = given.value("-e", "--source") or (given.operands[0] if given.operands and not given.has("-f", "--file") else None)
    if text is not None:
        shell.code("awk", text.text, name)
    return None


def _foreign(shell: Shell, name: str, call: Call) -> Output | None:
    """PowerShell and cmd started from a POSIX shell."""
    words = call.words[1:]
    for i, word in enumerate(words):
        low = word.text.lower()
        if name.lower() == "cmd" and low[:2] in ("/c", "/k"):
            rest = [word.text[2:], *(each.text for each in words[i + 1 :])]
            shell.code("cmd", " ".join(rest).strip(), "cmd /c")
            break
        if name.lower() != "cmd" and low.startswith("-") and len(low) > 1:
            if "-encodedcommand".startswith(low) and low.startswith("-e") and i + 1 < len(words):
                try:
                    text = base64.b64decode(words[i + 1].text, validate=True).decode("utf-16-le", "replace")
                except (binascii.Error, ValueError):
                    text = words[i + 1].text
                shell.code("powershell", text, f"{name} -EncodedCommand")
                break
            if "-command".startswith(low) and low.startswith("-c"):
                shell.code("powershell", " ".join(each.text for each in words[i + 1 :]), f"{name} -Command")
                break
    else:
        if call.feed.text is not None:
            shell.code("cmd" if name.lower() == "cmd" else "powershell", call.feed.text, name)
    return None


INTERPRETERS: Mapping[str, Callable[[Shell, str, Call], Output | None]] = {
    **dict.fromkeys(_LANGUAGES, _interpreter),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("powershell", "pwsh", "cmd", "PowerShell", "CMD"), _foreign),
}
