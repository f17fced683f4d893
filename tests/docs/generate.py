"""Makes the man page and the completions from the table of verbs: ``python -m tests.docs.generate`` writes them to ``share/``.

A test compares what is there with what would be written.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from safety.terminal.arguments import Verb, parser
from safety.terminal.topics import TOPICS
from safety.terminal.verbs import VERBS

SHARE = Path(__file__).resolve().parents[2] / "share"


def files() -> dict[Path, str]:
    """Each generated file and its text."""
    return {
        SHARE / "man/man1/git-safety.1": man(),
        SHARE / "bash-completion/completions/git-safety": bash(),
        SHARE / "zsh/site-functions/_git-safety": zsh(),
    }


def options(verb: Verb) -> list[tuple[tuple[str, ...], str, str]]:
    """A verb's options: their names, what stands after them (empty for a switch), what they do."""
    return [(tuple(each.option_strings), _metavar(each), each.help or "") for each in _actions(verb) if each.option_strings]


def _actions(verb: Verb) -> list[argparse.Action]:
    return parser(verb)._actions


def _metavar(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    name = "|".join(action.choices) if action.choices else str(action.metavar)
    return f"[{name}]" if action.nargs == "?" else name


# -- man ------------------------------------------------------------------------------------------------------------------------


def man() -> str:
    """The page in the ``man`` macros."""
    lines = [
        '.\\" Made by tests/docs/generate.py from the table of verbs.',
        '.TH GIT-SAFETY 1 "" "git-safety" "Git Safety Manual"',
    ]
    lines += [".SH NAME", "git-safety \\- undo for coding agents", ".SH SYNOPSIS", ".nf"]
    lines += ["\\fBgit safety run\\fR [\\-q] \\-\\- COMMAND [ARGUMENT...]", "\\fBgit safety undo\\fR [HANDLE]"]
    lines += ["\\fBgit safety\\fR VERB [options]", ".fi", ".SH DESCRIPTION"]
    lines += [
        _roff("Records what a coding agent, or any command, does to a folder, and takes back exactly that: edits, deletions,"),
        _roff("commits, branch switches, staging, even a removed .git. What you did yourself before or after stays."),
        ".PP",
        _roff("Snapshots are kept outside of the repository, which they leave as it is to the byte."),
        ".SH VERBS",
    ]
    for verb in VERBS:
        lines += _man_verb(verb)
    for name, (title, text) in TOPICS.items():
        heading = "EXIT STATUS" if name == "exit-codes" else name.replace("-", " ").upper()
        lines += [f".SH {heading}", _roff(f"{title}."), ".PP", ".nf", _roff(text), ".fi"]
    lines += [".SH SEE ALSO", "\\fBgit\\fR(1)"]
    return "\n".join(lines) + "\n"


def _man_verb(verb: Verb) -> Iterator[str]:
    yield f".SS {_roff(f'git safety {verb.name} {verb.usage}'.rstrip())}"
    yield _roff(f"{verb.summary}.")
    if verb.text:
        yield from (".PP", _roff(verb.text))
    for names, value, does in options(verb):
        yield from (".TP", f"\\fB{_roff(', '.join(names))}\\fR{_roff(f' {value}') if value else ''}", _roff(does))
    for command, does in verb.examples:
        yield from (".PP", f"Example, {_roff(does)}:", ".br", f"\\fB{_roff(command)}\\fR")


def _roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


# -- bash -----------------------------------------------------------------------------------------------------------------------


def bash() -> str:
    """Completes ``git safety`` by git's own completion, which calls ``_git_safety``, and ``git-safety`` by itself."""
    cases = []
    for verb in VERBS:
        words = [name for names, _, _ in options(verb) for name in names]
        if verb.name == "help":
            words = [*(verb.name for verb in VERBS), *TOPICS]
        cases.append(f"        {verb.name}) words='{' '.join(words)}' ;;")
    return f"""\
# bash completion for git-safety and `git safety`. Made by tests/docs/generate.py.

__git_safety_complete()
{{
    local at=$1 current=${{COMP_WORDS[COMP_CWORD]}} words='' verb=''
    ((at < COMP_CWORD)) && verb=${{COMP_WORDS[at]}}
    case $verb in
        '') words='{" ".join(verb.name for verb in VERBS)}' ;;
{chr(10).join(cases)}
    esac
    if [[ -z $verb || $verb == help || $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    else
        compopt -o default 2>/dev/null
        COMPREPLY=()
    fi
}}

_git_safety()
{{
    local at
    for ((at = 1; at < COMP_CWORD; at++)); do
        [[ ${{COMP_WORDS[at]}} == safety ]] && break
    done
    __git_safety_complete $((at + 1))
}}

__git_safety_alone()
{{
    __git_safety_complete 1
}}

complete -F __git_safety_alone git-safety
"""


# -- zsh ------------------------------------------------------------------------------------------------------------------------


def zsh() -> str:
    """One function for both forms: zsh's git completion calls ``_git-safety`` for ``git safety``."""
    verbs = "\n".join(f"        {_zsh_quoted(f'{verb.name}:{verb.summary}')}" for verb in VERBS)
    cases = "\n".join(filter(None, map(_zsh_case, VERBS)))
    topics = " ".join([*(verb.name for verb in VERBS), *TOPICS])
    return f"""\
#compdef git-safety
# zsh completion for git-safety and `git safety`. Made by tests/docs/generate.py.

_git-safety() {{
    local -a verbs
    verbs=(
{verbs}
    )
    if (( CURRENT == 2 )); then
        _describe -t verbs 'verb' verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
{cases}
        help) _values 'topic' {topics} ;;
        *) _files ;;
    esac
}}

_git-safety "$@"
"""


def _zsh_case(verb: Verb) -> str:
    specs = [] if verb.name == "help" else [_zsh_option(*option) for option in options(verb)]
    if not specs:
        return ""
    joined = " \\\n                ".join([*specs, "'*:::command:_normal'" if verb.name == "run" else "'*:file:_files'"])
    return f"        {verb.name})\n            _arguments -S \\\n                {joined} ;;"


def _zsh_option(names: tuple[str, ...], value: str, does: str) -> str:
    does = re.sub(r"[\[\]:]", "", does)
    choices = f"({value.replace('|', ' ')})" if "|" in value else "_files" if value == "FILE" else " "
    argument = "" if not value else f"::{value.strip('[]')}: " if value.startswith("[") else f":{value}:{choices}"
    # Each name excludes the others, so that nothing is offered twice.
    return " \\\n                ".join(_zsh_quoted(f"({' '.join(names)}){name}[{does}]{argument}") for name in names)


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


if __name__ == "__main__":
    for file, text in files().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
