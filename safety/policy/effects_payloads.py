"""Commands that hide in the arguments of other programs, and programs that are only known as they run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from safety.policy.patterns import Pattern
from safety.policy.scene import Scene
from safety.policy.shell import Command
from safety.policy.values import Effect

_SHELLS = frozenset("sh bash zsh dash ksh source . eval".split())
_INTERPRETERS = frozenset(
    "python python2 python3 pypy3 node deno bun perl ruby php lua Rscript julia pwsh powershell osascript".split()
)
_TAKES_CODE = Pattern(r"-\w*[ceErp]|--eval|--print|eval|-Command")
_ONLY_UNKNOWN = Pattern(r"\$\{?\w+\}?|\$\(.*\)|`.*`", re.DOTALL)
_DECODERS = frozenset("base64 base32 xxd rev tr openssl gunzip zcat gzip bzcat xzcat uudecode gpg rot13".split())
_RUNNING_OPTIONS: dict[str, tuple[str, str]] = {
    # the options whose value holds commands, and what in it is one
    "expect": (r"-c", r"(?:spawn|exec|system)\s+([^;\n]+)"),
    "emacs": (
        r"--eval|--execute|-eval",
        r"\((?:shell-command|call-process-shell-command|shell-command-to-string)\s+\"((?:[^\"\\]|\\.)*)\"",
    ),
    "npm": (r"-c|--call", r"(.+)"),
    "pnpm": (r"-c|--call", r"(.+)"),
    "less": (r"\+", r"!(.+)"),
    "sed": (r"-e|--expression", r"(?:^|[;\d$/}])e\s+(.+)"),
    "ex": (r"-\w*c", r"!(.+)"),
}


def payload_effects(command: Command, scene: Scene) -> Iterator[Effect]:
    """What a program runs that stands in its arguments or its variables, or comes through its pipe."""
    name = command.name
    if name in _RUNNING_OPTIONS:
        yield from _in_options(command, name, scene)
    if name in _STARTS_PAGERS:
        for variable in ("PAGER", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN"):
            if command.env.get(variable):
                yield from scene.again(command.env[variable] or "", command.cwd)
    if name in _INTERPRETERS and not command.runs_download:
        for option, word in zip(command.words[1:], command.words[2:], strict=False):
            if _TAKES_CODE.fullmatch(option.text) and not word.certain and _ONLY_UNKNOWN.fullmatch(word.text):
                yield Effect("unknown.run", f"code that is not known before it runs: {word.text}", "ask")
    if name in _SHELLS:
        yield from _read_by_shell(command, scene)
    if command.stdin:
        for word in command.words[1:]:
            if _INTO_SHELL.fullmatch(word.text):
                yield from scene.again(command.stdin, command.cwd)


def _in_options(command: Command, name: str, scene: Scene) -> Iterator[Effect]:
    option, pattern = _RUNNING_OPTIONS[name]
    before = ""
    for number, word in enumerate(command.words[1:]):
        text = word.text
        if name == "less":
            value = text[1:] if text.startswith("+") else ""
        else:
            value = text if re.fullmatch(option, before) or (name == "sed" and not number) else ""
        for found in re.finditer(pattern, value):
            yield from scene.again(found[1], command.cwd)
        before = text


def _read_by_shell(command: Command, scene: Scene) -> Iterator[Effect]:
    """Commands that a shell reads from what another program prints."""
    if command.stdin is None and _DECODERS & set(command.piped_from[-2:]) and not command.runs_download:
        yield Effect("unknown.run", f"what {' | '.join(command.piped_from)} decodes", "ask")
    for word in command.words[1:]:
        if word.text.startswith("<(") and word.text.endswith(")"):
            yield from scene.again(f"{word.text[2:-1]} | bash", command.cwd)


_STARTS_PAGERS = frozenset("man less crontab visudo sudoedit systemctl journalctl gh psql".split())
_INTO_SHELL = Pattern(r">\(\s*(?:ba|z|da|k)?sh\b.*\)")


def unknown_program(command: Command) -> Iterator[Effect]:
    """A program whose name is only known as it runs: alone it may be anything, with arguments they tell something."""
    words = [word.text for word in command.words[1:] if word.certain]
    first, made_by = command.words[0].text, command.words[0].made_by
    if _WELL_KNOWN.fullmatch(first) or (made_by and (made_by in _SET_UP or _SETS_UP.search(first))):
        return
    if (
        not words
        or any(word.startswith("-") and set(word) & set("rRf") for word in words)
        or any(word in _GRAVE for word in words)
    ):
        yield Effect("unknown.run", f"a command that is not known before it runs: {first}", "ask")


# Variables that by custom name a program, and programs whose output is made to be evaluated by a shell.
_WELL_KNOWN = Pattern(
    r"\$\{?(?:EDITOR|VISUAL|PAGER|BROWSER|SHELL|PYTHON\d?|PY|NODE|RUBY|CC|CXX|MAKE|CARGO|GO|PIP|NPM|GRADLE|MVN|JAVA|\w+_BIN|\w+_EXE)\}?"
)
_SET_UP = frozenset(
    "ssh-agent dircolors keychain direnv brew pyenv rbenv nodenv fnm mise opam conda mamba starship zoxide resize thefuck".split()
)
_SETS_UP = Pattern(r"\b(?:init|env|hook|shellenv|activate|completions?)\b")
_GRAVE = frozenset("push reset clean delete destroy drop rm --force --hard ~ / /* .".split())
