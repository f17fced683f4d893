"""The shell's own commands that change what later ones mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from safety.policy.calls import EMPTY, NO_FEED, Call
from safety.policy.expand import Output, braced, words_of
from safety.policy.gitwords import join
from safety.policy.options import read_options
from safety.policy.words import NO_ENV, Word

if TYPE_CHECKING:
    from safety.policy.process import Shell

DECLARING = frozenset("export declare typeset local readonly".split())
_NAME = re.compile(r"[A-Za-z_]\w*")


def declare(shell: Shell, raws: list[str]) -> Output:
    """``export A=b``: read from the words as written, as an assignment's right side is not split."""
    exports = raws[0] == "export"
    shell.emit(Call(tuple(Word(raw) for raw in raws), (), NO_ENV, NO_FEED))
    for raw in raws[1:]:
        if raw.startswith("-"):
            exports |= "x" in raw and raw[0] == "-"
            continue
        for name, value in shell.values_of(braced(raw, shell)):
            shell.assign(name, value)
            if exports:
                shell.export(name)
        if "=" not in raw:
            for word in words_of(raw, shell):
                name, equals, right = word.text.partition("=")
                if equals:
                    shell.assign(name, (Word(right, word.certain),))
                if exports and word.certain and _NAME.fullmatch(name):
                    shell.export(name)
    return EMPTY


def _cd(shell: Shell, name: str, call: Call) -> Output:
    words = [word for word in call.words[1:] if not re.fullmatch(r"--|-[LPe@]+", word.text)]
    before = shell.cwd
    if name == "popd":
        shell.cwd = shell.folders.pop() if shell.folders else None
    elif name == "pushd":
        if words and words[0].text.startswith(("+", "-")) and words[0].text[1:].isdigit():
            shell.cwd = None
        elif words:
            shell.folders.append(before)
            shell.cwd = _folder(shell, words[0])
        else:
            swapped = shell.folders.pop() if shell.folders else None
            shell.folders.append(before)
            shell.cwd = swapped
    elif not words:
        shell.cwd = shell.home("") or None
    elif words[0].text == "-":
        shell.cwd = shell.old_cwd
    else:
        shell.cwd = _folder(shell, words[0])
    shell.old_cwd = before
    return EMPTY


def _folder(shell: Shell, word: Word) -> str | None:
    return join(shell.cwd, word.text) if word.certain and not word.glob and word.text else None if word.text else shell.cwd


def _unset(shell: Shell, name: str, call: Call) -> Output:
    shell.emit(call)
    for word in call.words[1:]:
        if word.certain and not word.text.startswith("-"):
            shell.variables[word.text] = ()
            shell.exported.pop(word.text, None)
            shell.functions.pop(word.text, None)
    return EMPTY


def _read(shell: Shell, name: str, call: Call) -> Output:
    given = read_options(call.words[1:], "adinNptu", mixed=False)
    by = call.feed.piped_from[-1] if call.feed.piped_from else ""
    names = list(given.operands) or [Word("MAPFILE" if name != "read" else "REPLY")]
    if array := given.value("-a"):
        names.append(array)
    for word in names:
        if word.certain and _NAME.fullmatch(word.text):
            shell.assign(word.text, (Word(f"${word.text}", False, False, by),))
    return EMPTY


def _set(shell: Shell, name: str, call: Call) -> Output:
    words = call.words[1:]
    if not words:
        shell.emit(call)
    if words and words[0].text == "--":
        shell.positional = words[1:]
    elif words and not words[0].text.startswith(("-", "+")):
        shell.positional = words
    return EMPTY


def _shift(shell: Shell, name: str, call: Call) -> Output:
    count = call.words[1].text if len(call.words) > 1 else "1"
    if shell.positional is not None:
        shell.positional = shell.positional[int(count) :] if count.isdigit() and len(count) < 6 else None
    return EMPTY


def _alias(shell: Shell, name: str, call: Call) -> Output:
    for word in call.words[1:]:
        key, equals, value = word.text.partition("=")
        if name == "unalias":
            shell.aliases.pop(word.text, None)
        elif equals and word.certain:
            shell.aliases[key] = value
    return EMPTY


def _printf(shell: Shell, name: str, call: Call) -> Output | None:
    words = call.words
    if len(words) > 3 and words[1].text == "-v" and words[2].certain:
        from safety.policy.outputs import output_of

        output = output_of(shell, "printf", call._replace(words=(words[0], *words[3:])))
        shell.assign(words[2].text, (Word(output.text),) if output.text is not None else None)
        return EMPTY
    return None


BUILTINS: Mapping[str, Callable[[Shell, str, Call], Output | None]] = {
    **dict.fromkeys(("cd", "pushd", "popd", "chdir"), _cd),
    "unset": _unset,
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts"), _read),
    "set": _set,
    "shift": _shift,
    **dict.fromkeys(("alias", "unalias"), _alias),
    "printf": _printf,
}
