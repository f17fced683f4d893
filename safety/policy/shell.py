"""Shell text read into the commands that it would run ([guard] 1.2, 3).

Three layers: ``tokens`` takes apart words, heredocs and comments; tree-sitter-bash reads the grammar of what is left; here each statement
is followed in order, with its folder, variables, functions, pipes and written files, down through wrappers and payload strings.
Nothing is executed and nothing outside the text is looked at. ``parse`` never raises.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from safety.policy.findings import Findings
from safety.policy.gitwords import GitCommand, git_words
from safety.policy.options import Options, canonical, read_options
from safety.policy.process import Shell
from safety.policy.scan import danger_words
from safety.policy.tokens import Exhausted
from safety.policy.words import Code, Command, Parsed, Redirect, Word, program_name

__all__ = [
    "Code", "Command", "GitCommand", "Options", "Parsed", "Redirect", "Word",
    "canonical", "danger_words", "git_words", "parse", "program_name", "read_options",
]  # fmt: skip

MAX_TRAPS = 20
_NO_VARIABLES: Mapping[str, str] = {}


def parse(
    text: str,
    cwd: str,
    *,
    home: str = "",
    variables: Mapping[str, str] = _NO_VARIABLES,
    aliases: Mapping[str, str] = _NO_VARIABLES,
    top: str = "",
) -> Parsed:
    """The simple commands of ``text``, in order, and the code it hands to interpreters.

    ``variables`` are those whose values are certain; ``aliases`` git's; ``top`` the root of the work tree that ``cwd`` is in, if known.
    """
    run = Findings(_grammar, aliases)
    try:
        text.encode()
    except UnicodeEncodeError:
        run.scan(text, "characters that no terminal sends")
        return run.parsed()
    if "\0" in text:
        run.scan(text, "a NUL character")
        return run.parsed()
    shell = Shell(run, cwd)
    shell.variables = {name: (Word(value),) for name, value in variables.items()}
    shell.given = frozenset(variables)
    shell.base = {"HOME": home or variables.get("HOME", ""), "TOP": top}
    try:
        shell.run_text(text)
        for trapped, word in itertools.islice(run.traps, MAX_TRAPS):  # one may set another
            trapped.via = (*trapped.via, "trap")
            trapped.run_text(word.text)
    except Exhausted:
        pass  # said already
    except RecursionError:
        run.scan(text, "nested too deeply")
    if run.foreign:
        _take_as_foreign(run, text, cwd)
    return run.parsed()


def _take_as_foreign(run: Findings, text: str, cwd: str) -> None:
    """Say the text as code of the other shell. What a POSIX shell would run of it stays, but not its riddles: ``$x = 1``."""
    run.codes.append(Code(run.foreign, text, cwd, ()))
    run.commands = [command for command in run.commands if command.name]
    if not run.scanned:
        run.danger.clear()


_PARSER: list[Any] = []


def _grammar() -> Callable[[bytes], Any]:
    """What gives the root node for bash text; loaded at first use. Raises ImportError without its wheels."""
    if not _PARSER:
        import tree_sitter
        import tree_sitter_bash

        _PARSER.append(tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())))
    parse_bytes = _PARSER[0].parse
    return lambda text: parse_bytes(text).root_node
