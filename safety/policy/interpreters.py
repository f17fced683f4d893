"""Code handed to an interpreter: ``python -c``, ``node -e``, ``psql -c``, a heredoc, a script whose writing was seen."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from safety.policy.calls import NETWORK, Call
from safety.policy.expand import Output
from safety.policy.gitwords import join
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
_CODE_OPTIONS = {
    "python": ("c", "WXm", ()), "node": ("ep", "rC", ("--eval=", "--print=", "--require=", "--import=")),
    "perl": ("eE", "IMmxF", ()), "ruby": ("e", "IrCEK", ()), "php": ("rBRE", "cdfgStz", ("--run=",)), "lua": ("e", "l", ()),
    "r": ("e", "", ()), "julia": ("eE", "LpJt", ("--eval=",)), "applescript": ("e", "ls", ()), "tcl": ("c", "fb", ()),
    "elixir": ("e", "rS", ("--eval=",)), "groovy": ("e", "", ()),
    "sql": ("cqeQ", "dhUpPDuSLnvFRTfo", ("--command=", "--execute=", "--query=", "--host=", "--user=", "--database=", "--dbname=",
                                        "--username=", "--port=", "--file=", "--cmd=")),
    "mongo": ("", "upf", ("--eval=", "--host=", "--port=", "--username=", "--password=")),
}  # fmt: skip
_CODE_LONGS = frozenset("--eval --print --run --command --execute --query --cmd".split())
VERSIONED = re.compile(r"(python|pypy|perl|ruby|lua|node|php|tclsh|ksh|zsh|bash)[\d.]+t?")


def _interpreter(shell: Shell, name: str, call: Call) -> Output | None:
    """The code given to an interpreter, by option, on its input or in a file whose writing was seen."""
    plain = VERSIONED.fullmatch(name)
    language = _LANGUAGES.get(name) or _LANGUAGES[plain[1] if plain else name]
    options, others, longs = _CODE_OPTIONS.get(language, ("e", "", ()))
    words = list(call.words[1:])
    if name in ("deno", "bun") and words and words[0].text in ("eval", "run", "repl"):
        verb = words.pop(0).text
        if verb == "eval":
            words = [word for word in words if not word.text.startswith("-")][:1]
            words = [Word("-e"), *words]
    texts: list[Word] = []
    operands: list[Word] = []
    i, module = 0, False
    while i < len(words) and not (operands and language not in ("sql", "mongo")):
        word = words[i]
        i += 1
        if word.text.startswith("--"):
            option, equals, glued = canonical(word.text, longs).partition("=")
            if option in _CODE_LONGS or (f"{option}=" in longs and not equals):
                value = Word(glued, word.certain) if equals else words[i] if i < len(words) else None
                i += not equals
                if value is not None and option in _CODE_LONGS:
                    texts.append(value)
        elif word.text.startswith("-") and len(word.text) > 1:
            for at, letter in enumerate(word.text[1:], 2):
                rest = word.text[at:]
                if letter in options:
                    texts.append(
                        Word(rest, word.certain) if rest and language != "perl" else words[i] if i < len(words) else Word("")
                    )
                    i += not rest or language == "perl"
                    break
                if letter in others:
                    module |= letter == "m" and language == "python"
                    i += not rest
                    break
            if module or (texts and language == "python"):
                break
        else:
            operands.append(word)
    download = any(word.made_by in NETWORK for word in texts) or (bool(operands) and not texts and shell.is_download(operands[0]))
    via = name
    for word in texts:
        shell.code(language, word.text, f"{name} -{options[:1] or 'eval'}")
    if name in ("sqlite3", "sqlite", "duckdb"):
        for word in operands[1:]:
            shell.code(language, word.text, via)
    reads = not module and not texts and (not operands or operands[0].text in ("-", "/dev/stdin") or language in ("sql", "mongo"))
    feed = call.feed
    if reads and (feed.text is not None or feed.draft):
        shell.code(language, feed.text if feed.text is not None else feed.draft, "heredoc" if feed.source == "heredoc" else name)
    elif operands and not texts and not module and operands[0].certain:
        held = shell.files.get(join(shell.cwd, operands[0].text) or "")
        if held is not None and held.text is not None:
            shell.code(language, held.text, f"{name} {operands[0].text}")
    download |= reads and language not in ("sql", "mongo") and feed.by in NETWORK
    shell.emit(call, runs_download=download)
    if language == "applescript":
        for word in texts:
            for found in re.finditer(r'do shell script\s+"((?:[^"\\]|\\.)*)"', word.text):
                shell.payload("osascript -e", Word(re.sub(r"\\(.)", r"\1", found[1])), call)
    return Output(None, feed.by if feed.by in NETWORK else name)


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
