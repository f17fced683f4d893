"""The grammar's nodes, each followed in a shell: what runs in what order, in which copy of it, fed by what."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from safety.policy.calls import EMPTY, NO_FEED, Call, Feed, joined
from safety.policy.expand import Output, run_substitutions, words_of
from safety.policy.tokens import Exhausted, Token, TooMuch
from safety.policy.words import NO_ENV, WRITING, Word

if TYPE_CHECKING:
    from safety.policy.process import Shell

MAX_LEVELS = 70  # statements within one another, over all payloads
MAX_NODES = 1_500
MAX_ROUNDS = 16  # of a loop over known words

Node = Any  # a tree-sitter node
_QUESTIONS = frozenset("[ test grep egrep rg which command type diff cmp pgrep false hash".split())
_PLACE = re.compile(rb"w(\d+)")


# -- statements ------------------------------------------------------------------------------------------------------------


def sequence(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    """Follow a node's children one after the other."""
    output = EMPTY
    children = node.children
    for at, child in enumerate(children):
        if child.type not in STATEMENTS:
            continue
        aside = at + 1 < len(children) and children[at + 1].type == "&"
        output = joined(output, statement(_aside(shell) if aside else shell, child, tokens))
    return output


def _aside(shell: Shell) -> Shell:
    """A subshell whose written files are seen outside."""
    inner = shell.fork()
    inner.files = shell.files
    return inner


def statement(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    handler = STATEMENTS.get(node.type)
    if handler is None:
        return EMPTY
    run = shell.run
    run.nodes += 1
    if run.nodes > MAX_NODES:
        raise Exhausted("too many commands")
    if run.level > MAX_LEVELS:
        raise TooMuch("nested too deeply")
    run.level += 1
    try:
        return handler(shell, node, tokens)
    finally:
        run.level -= 1


def _list(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    """``a && b || c``: what follows && runs where the left succeeded; what follows || where it failed.

    Afterwards the left is taken to have succeeded, as most commands do, but for those whose point is to fail now and then.
    """
    parts: list[tuple[str, Node]] = []
    while node.type == "list":
        left, operator, right = node.children[0], node.children[1].type, node.children[-1]
        parts.append((operator, right))
        node = left
    parts.reverse()
    before = shell.fork() if parts[0][0] == "||" else None  # the state, should the last command have failed
    output = statement(shell, node, tokens)
    without = shell.fork() if _asks(node, tokens) else None  # the state, should the rest of an && chain not run
    for at, (operator, part) in enumerate(parts):
        if operator != "||":
            before = shell.fork() if parts[at + 1 : at + 2] and parts[at + 1][0] == "||" else None
            output = joined(output, statement(shell, part, tokens))
            if without is None and _asks(part, tokens):
                without = shell.fork()
            continue
        other = without or before or shell.fork()
        without = None
        output = joined(output, statement(other, part, tokens))
        if not _leaves(part, tokens):
            shell.merge([shell, other])
    if without is not None:
        shell.merge([shell, without])
    return output


def _asks(node: Node, tokens: list[Token]) -> bool:
    """Whether a statement is a question: ``[ -d x ]``, ``! a``, ``grep -q x``."""
    if node.type != "command":
        return bool(node.type == "negated_command")
    place = _PLACE.search(node.text)
    return place is not None and (tokens[int(place[1])].test or tokens[int(place[1])].raw in _QUESTIONS)


def _pipeline(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    stages = [child for child in node.children if child.type not in ("|", "|&")]
    feed, output = shell.feed, EMPTY
    files = shell.files
    for stage in stages:
        part = shell.fork()
        part.feed, part.files = feed, files
        first = len(shell.run.commands)
        output = statement(part, stage, tokens)
        new = shell.run.commands[first:]
        last = new[-1] if new else None
        name = (last.name if last else "") or output.by
        feed = Feed(output.text, output.by, (*feed.piped_from, name), last, "pipe")
    return output


def _subshell(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    return sequence(_aside(shell), node, tokens)


def _if(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    branches: list[Shell] = []
    current, output = shell, EMPTY
    otherwise = False
    for child in node.children:
        if child.type == "then":
            branches.append(shell.fork())
            current = branches[-1]
        elif child.type == "elif_clause":
            branches.append(shell.fork())
            output = joined(output, sequence(branches[-1], child, tokens))
        elif child.type == "else_clause":
            otherwise = True
            branches.append(shell.fork())
            output = joined(output, sequence(branches[-1], child, tokens))
        else:
            output = joined(output, statement(current, child, tokens))
    shell.merge(branches if otherwise else [shell, *branches])
    return Output(None, output.by) if output.text else output


def _while(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    body = shell
    output = EMPTY
    for child in node.children:
        if child.type == "do_group":
            body = shell.fork()
            output = joined(output, sequence(body, child, tokens))
        else:
            output = joined(output, statement(shell, child, tokens))
    shell.merge([shell, body])
    return Output(None, output.by) if output.text else output


def _for(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    places = [
        int(index) for child in node.children if child.type in ("word", "variable_name") for index in _PLACE.findall(child.text)
    ]
    group = next((child for child in node.children if child.type == "do_group"), None)
    if not places or group is None:
        return EMPTY
    name = tokens[places[0]].raw
    values: list[Word] = []
    if tokens[places[0]].test:
        run_substitutions(tokens[places[0]].raw, shell)
        values = [Word("$i", False)]
    elif any(child.type == "in" for child in node.children):
        for place in places[1:]:
            values += words_of(tokens[place].raw, shell)
    else:
        values = list(shell.positional) if shell.positional is not None else [Word(f"${name}", False)]
    output = EMPTY
    for word in values[:MAX_ROUNDS]:
        shell.assign(name, (word,))
        output = joined(output, sequence(shell, group, tokens))
    if len(values) > MAX_ROUNDS:
        shell.assign(name, (Word(f"${name}", False),))
        output = Output(None, sequence(shell, group, tokens).by)
    return output


def _case(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    branches = [shell]
    output = EMPTY
    for child in node.children:
        if child.type == "case_item":
            branch = shell.fork()
            for part in child.children:
                if part.type in STATEMENTS:
                    output = joined(output, statement(branch, part, tokens))
                else:
                    _patterns(part, tokens, branch)
            branches.append(branch)
        else:
            _patterns(child, tokens, shell)
    shell.merge(branches)
    return Output(None, output.by) if output.text else output


def _function(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    name = next((tokens[int(index)].raw for index in _PLACE.findall(node.children[0].text + b" " + node.children[1].text)), "")
    body = next((child for child in node.children if child.type in STATEMENTS), None)
    if name and body is not None:
        shell.functions[name] = (body, tokens)
    return EMPTY


def _redirected(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    body = next((child for child in node.children if child.type in STATEMENTS), None)
    places = [int(index) for child in node.children if child.type == "file_redirect" for index in _PLACE.findall(child.text)]
    given = [tokens[place] for place in places if tokens[place].op]
    redirects, feed = shell.redirects(given)
    before, shell.feed = shell.feed, feed or shell.feed
    first = len(shell.run.commands)
    output = statement(shell, body, tokens) if body is not None else EMPTY
    shell.feed = before
    if any(redirect.op in WRITING for redirect in redirects):
        last = shell.run.commands[-1] if len(shell.run.commands) > first else None
        shell.emit(Call((), redirects, NO_ENV, NO_FEED), fed_by=last)
    return shell.written(redirects, output)


def _command(shell: Shell, node: Node, tokens: list[Token]) -> Output:
    return shell.simple([tokens[int(index)] for index in _PLACE.findall(node.text)])


STATEMENTS: dict[str, Callable[[Shell, Node, list[Token]], Output]] = {
    "command": _command,
    "list": _list,
    "pipeline": _pipeline,
    "redirected_statement": _redirected,
    "subshell": _subshell,
    "compound_statement": sequence,
    "do_group": sequence,
    "negated_command": sequence,
    "if_statement": _if,
    "while_statement": _while,
    "for_statement": _for,
    "case_statement": _case,
    "function_definition": _function,
    "ERROR": sequence,
}


def _patterns(node: Node, tokens: list[Token], shell: Shell) -> None:
    for index in _PLACE.findall(node.text):
        run_substitutions(tokens[int(index)].raw, shell)


def _leaves(node: Node, tokens: list[Token]) -> bool:
    """Whether a statement ends the shell, so that what comes after it only runs where it did not."""
    while node.type in ("compound_statement", "list") and node.named_children:
        node = node.named_children[-1]
    places = _PLACE.findall(node.text) if node.type == "command" else []
    return bool(places) and tokens[int(places[0])].raw in ("exit", "return", "continue", "break", "exec")
