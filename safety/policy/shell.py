"""Shell text read into the commands that it would run ([guard] 1.2, 3).

Three layers: ``tokens`` takes apart words, heredocs and comments; tree-sitter-bash reads the grammar of what is left; here each statement
is followed in order, with its folder, variables, functions, pipes and written files, down through wrappers and payload strings.
Nothing is executed and nothing outside the text is looked at. ``parse`` never raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from safety.policy import outputs, unwrap
from safety.policy.calls import EMPTY, NETWORK, NO_FEED, Call, Feed
from safety.policy.expand import Output, body_of, run_substitutions, word_of, words_of
from safety.policy.foreign import foreign_shell
from safety.policy.gitwords import GitCommand, git_words, join
from safety.policy.options import Options, canonical, read_options
from safety.policy.scan import danger_words
from safety.policy.tokens import Token, TooMuch, simplify
from safety.policy.words import NO_ENV, Code, Command, Parsed, Redirect, Word, program_name

__all__ = [
    "Code", "Command", "GitCommand", "Options", "Parsed", "Redirect", "Word",
    "canonical", "danger_words", "git_words", "parse", "program_name", "read_options",
]  # fmt: skip

MAX_CHARACTERS = 10_000  # without the bodies of quoted heredocs; longer text is scanned
MAX_PAYLOADS = 8  # strings run as shell text within one another
MAX_LEVELS = 70  # statements within one another, over all payloads
MAX_NODES = 2_500
MAX_ROUNDS = 16  # of a loop over known words

Node = Any  # a tree-sitter node
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
    run = _Run(aliases)
    try:
        text.encode()
    except UnicodeEncodeError:
        run.scan(text, "characters that no terminal sends")
        return run.parsed()
    if "\0" in text:
        run.scan(text, "a NUL character")
        return run.parsed()
    if language := foreign_shell(text):
        run.codes.append(Code(language, text, cwd, ()))
        return run.parsed()
    shell = Shell(run, cwd)
    shell.variables = {name: (Word(value),) for name, value in variables.items()}
    shell.base = {"HOME": home or variables.get("HOME", ""), "TOP": top}
    try:
        shell.run_text(text)
    except RecursionError:
        run.scan(text, "nested too deeply")
    return run.parsed()


_PARSER: list[Any] = []


def _parser() -> Any:
    """tree-sitter's parser for bash, loaded at first use. Raises ImportError without its wheels."""
    if not _PARSER:
        import tree_sitter
        import tree_sitter_bash

        _PARSER.append(tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())))
    return _PARSER[0]


class _Run:
    """What all shells of one parse share: what was found, and how much more may be done."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self.git_aliases = aliases
        self.commands: list[Command] = []
        self.codes: list[Code] = []
        self.trouble: list[str] = []
        self.danger: list[str] = []
        self.scanned = False
        self.nodes = 0
        self.level = 0
        self.characters = 0

    def scan(self, text: str, why: str) -> None:
        self.scanned = True
        self.trouble.append(why)
        self.danger += danger_words(text)

    def parsed(self) -> Parsed:
        trouble, danger = dict.fromkeys(self.trouble), dict.fromkeys(self.danger)
        return Parsed(tuple(self.commands), tuple(self.codes), tuple(trouble), self.scanned, tuple(danger))


_PLACE = re.compile(rb"w(\d+)")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+?)=(.*)", re.DOTALL)
_SPECIAL = frozenset("? $ ! - _ # 0 RANDOM SECONDS LINENO UID PPID BASHPID".split())
_OUT = frozenset((">", ">>", ">|", "&>", "&>>", "<>"))


class Shell:
    """One shell process: its state, and how it follows statements. A subshell is a fork of it."""

    def __init__(self, run: _Run, cwd: str | None) -> None:
        self.run = run
        self.cwd = cwd
        self.old_cwd: str | None = None
        self.folders: list[str | None] = []
        self.base: dict[str, str] = {}
        self.variables: dict[str, tuple[Word, ...] | None] = {}
        self.exported: dict[str, str | None] = {}
        self.functions: dict[str, tuple[Node, list[Token]]] = {}
        self.aliases: dict[str, str] = {}
        self.positional: tuple[Word, ...] | None = None
        self.files: dict[str, Output] = {}  # what files were seen to be written with
        self.feed: Feed = NO_FEED
        self.via: tuple[str, ...] = ()
        self.remote = False
        self.payloads = 0
        self.wrappers = 0

    def fork(self, via: str = "") -> Shell:
        """A subshell, ``via`` one more wrapper if named."""
        new = object.__new__(Shell)
        new.__dict__.update(self.__dict__)
        new.folders = self.folders.copy()
        new.variables, new.exported, new.functions = self.variables.copy(), self.exported.copy(), self.functions.copy()
        new.aliases, new.files = self.aliases.copy(), self.files.copy()
        if via:
            new.via = (*self.via, via)
        return new

    # -- what expansions ask ---------------------------------------------------------------------------------------------------

    def value(self, name: str) -> tuple[Word, ...] | None:
        if name in self.variables:
            return self.variables[name]
        if name == "PWD":
            return (Word(self.cwd),) if self.cwd is not None else None
        if name == "HOME":
            return (Word(self.base["HOME"]),) if self.base["HOME"] else None
        if name == "OLDPWD":
            return (Word(self.old_cwd),) if self.old_cwd is not None else None
        if name in ("@", "*"):
            return self.positional
        if name == "#":
            return (Word(str(len(self.positional))),) if self.positional is not None else None
        if name.isdigit() and name != "0" and self.positional is not None:
            return self.positional[int(name) - 1 : int(name)] if len(name) < 5 else ()
        return None

    def assign(self, name: str, value: tuple[Word, ...] | None) -> None:
        self.variables[name] = value
        if name in self.exported:
            self.exported[name] = _certain(value)

    def export(self, name: str) -> None:
        self.exported[name] = _certain(self.value(name))

    def home(self, user: str) -> str:
        if user == "":
            return self.base["HOME"]
        if user in ("+", "-"):
            return (self.cwd if user == "+" else self.old_cwd) or ""
        return "/root" if user == "root" else ""

    def substitute(self, text: str) -> Output:
        if text.lstrip().startswith("<") and not text.lstrip().startswith("<("):
            name = word_of(text.strip()[1:].strip(), self)
            return self.files.get(join(self.cwd, name.text) or "", Output(None, "cat")) if name.certain else Output(None, "cat")
        if text.strip() == "git rev-parse --show-toplevel" and self.base["TOP"] and self.cwd is not None:
            top = self.base["TOP"]
            if self.cwd == top or self.cwd.startswith(f"{top}/"):
                return Output(top, "git")
        inner = self.fork()
        return inner.run_text(text)

    # -- texts -----------------------------------------------------------------------------------------------------------------

    def run_text(self, text: str) -> Output:
        """Follow ``text`` in this shell; what it writes to its output."""
        run = self.run
        if self.payloads >= MAX_PAYLOADS:
            run.scan(text, "nested too deeply")
            return Output()
        if len(text) > MAX_CHARACTERS and _shortened(text) > MAX_CHARACTERS:
            run.scan(text, f"longer than {MAX_CHARACTERS} characters")
            return Output()
        try:
            simple = simplify(text)
            if len(simple.text) > 4 * MAX_CHARACTERS:
                raise TooMuch("too many parts")
            tree = _parser().parse(simple.text.encode())
            self.payloads += 1
            root = tree.root_node
            output = self.sequence(root, simple.tokens)
            if root.has_error or simple.unfinished:
                self._errors(root, simple.tokens, text, simple.unfinished)
        except TooMuch as error:
            run.scan(text, str(error))
            return Output()
        except ImportError as error:
            run.scan(text, f"no shell parser: {error.name or 'tree_sitter'} is not installed")
            return Output()
        finally:
            pass
        self.payloads -= 1
        return output

    def _errors(self, root: Node, tokens: list[Token], text: str, unfinished: bool) -> None:
        """Parts that are not shell: looked through for danger words."""
        self.run.trouble.append("a part is not shell text")
        if unfinished:
            self.run.danger += danger_words(text)
            return
        stack = [root]
        while stack:
            node = stack.pop()
            if node.type == "ERROR":
                raws = [tokens[int(index)].raw for index in _PLACE.findall(node.text)]
                self.run.danger += danger_words(" ".join(raws))
            elif node.has_error:
                stack += node.children

    # -- statements ------------------------------------------------------------------------------------------------------------

    def sequence(self, node: Node, tokens: list[Token]) -> Output:
        """Follow a node's children one after the other."""
        output = EMPTY
        for child in node.children:
            output = _joined(output, self.statement(child, tokens))
        return output

    def statement(self, node: Node, tokens: list[Token]) -> Output:
        handler = _STATEMENTS.get(node.type)
        if handler is None:
            return EMPTY
        run = self.run
        run.nodes += 1
        if run.nodes > MAX_NODES:
            raise TooMuch("too many commands")
        if run.level > MAX_LEVELS:
            raise TooMuch("nested too deeply")
        run.level += 1
        try:
            return handler(self, node, tokens)
        finally:
            run.level -= 1

    def _list(self, node: Node, tokens: list[Token]) -> Output:
        """``a && b || c``: what follows && runs where the left succeeded; what follows || where it failed."""
        parts: list[tuple[str, Node]] = []
        while node.type == "list":
            left, operator, right = node.children[0], node.children[1].type, node.children[-1]
            parts.append((operator, right))
            node = left
        output = self.statement(node, tokens)
        for operator, part in reversed(parts):
            if operator != "||":
                output = _joined(output, self.statement(part, tokens))
                continue
            other = self.fork()
            output = _joined(output, other.statement(part, tokens))
            if not _leaves(part, tokens):
                self._merge([self, other])
        return output

    def _pipeline(self, node: Node, tokens: list[Token]) -> Output:
        stages = [child for child in node.children if child.type not in ("|", "|&")]
        feed, output = self.feed, EMPTY
        files = self.files
        for stage in stages:
            part = self.fork()
            part.feed, part.files = feed, files
            first = len(self.run.commands)
            output = part.statement(stage, tokens)
            new = self.run.commands[first:]
            last = new[-1] if new else None
            name = (last.name if last else "") or output.by
            feed = Feed(output.text, output.by, (*feed.piped_from, name), last, "pipe")
        return output

    def _subshell(self, node: Node, tokens: list[Token]) -> Output:
        inner = self.fork()
        inner.files = self.files
        return inner.sequence(node, tokens)

    def _if(self, node: Node, tokens: list[Token]) -> Output:
        branches: list[Shell] = []
        current, output = self, EMPTY
        otherwise = False
        for child in node.children:
            if child.type == "then":
                branches.append(self.fork())
                current = branches[-1]
            elif child.type == "elif_clause":
                branches.append(self.fork())
                output = _joined(output, branches[-1].sequence(child, tokens))
            elif child.type == "else_clause":
                otherwise = True
                branches.append(self.fork())
                output = _joined(output, branches[-1].sequence(child, tokens))
            else:
                output = _joined(output, current.statement(child, tokens))
        self._merge(branches if otherwise else [self, *branches])
        return Output(None, output.by) if output.text else output

    def _while(self, node: Node, tokens: list[Token]) -> Output:
        body = self
        output = EMPTY
        for child in node.children:
            if child.type == "do_group":
                body = self.fork()
                output = _joined(output, body.sequence(child, tokens))
            else:
                output = _joined(output, self.statement(child, tokens))
        self._merge([self, body])
        return Output(None, output.by) if output.text else output

    def _for(self, node: Node, tokens: list[Token]) -> Output:
        places = [
            int(index)
            for child in node.children
            if child.type in ("word", "variable_name")
            for index in _PLACE.findall(child.text)
        ]
        group = next((child for child in node.children if child.type == "do_group"), None)
        if not places or group is None:
            return EMPTY
        name = tokens[places[0]].raw
        values: list[Word] = []
        if tokens[places[0]].test:
            run_substitutions(tokens[places[0]].raw, self)
            values = [Word("$i", False)]
        elif any(child.type == "in" for child in node.children):
            for place in places[1:]:
                values += words_of(tokens[place].raw, self)
        else:
            values = list(self.positional) if self.positional is not None else [Word(f"${name}", False)]
        output = EMPTY
        for word in values[:MAX_ROUNDS]:
            self.assign(name, (word,))
            output = _joined(output, self.sequence(group, tokens))
        if len(values) > MAX_ROUNDS:
            self.assign(name, (Word(f"${name}", False),))
            output = Output(None, self.sequence(group, tokens).by)
        return output

    def _case(self, node: Node, tokens: list[Token]) -> Output:
        branches = [self]
        output = EMPTY
        for child in node.children:
            if child.type == "case_item":
                branch = self.fork()
                for part in child.children:
                    if part.type in _STATEMENTS:
                        output = _joined(output, branch.statement(part, tokens))
                    else:
                        _patterns(part, tokens, branch)
                branches.append(branch)
            else:
                _patterns(child, tokens, self)
        self._merge(branches)
        return Output(None, output.by) if output.text else output

    def _function(self, node: Node, tokens: list[Token]) -> Output:
        name = next(
            (tokens[int(index)].raw for index in _PLACE.findall(node.children[0].text + b" " + node.children[1].text)), ""
        )
        body = next((child for child in node.children if child.type in _STATEMENTS), None)
        if name and body is not None:
            self.functions[name] = (body, tokens)
        return EMPTY

    def _redirected(self, node: Node, tokens: list[Token]) -> Output:
        body = next((child for child in node.children if child.type in _STATEMENTS), None)
        places = [int(index) for child in node.children if child.type == "file_redirect" for index in _PLACE.findall(child.text)]
        given = [tokens[place] for place in places if tokens[place].op]
        redirects, feed = self.redirects(given)
        before, self.feed = self.feed, feed or self.feed
        first = len(self.run.commands)
        output = self.statement(body, tokens) if body is not None else EMPTY
        self.feed = before
        if any(redirect.op in _OUT for redirect in redirects):
            last = self.run.commands[-1] if len(self.run.commands) > first else None
            self.emit(Call((), redirects, NO_ENV, NO_FEED), fed_by=last)
        return self.written(redirects, output)

    def _command(self, node: Node, tokens: list[Token]) -> Output:
        return self.simple([tokens[int(index)] for index in _PLACE.findall(node.text)])

    def simple(self, tokens: list[Token]) -> Output:
        """One simple command as written."""
        if len(tokens) == 1 and tokens[0].test:
            run_substitutions(tokens[0].raw, self)
            return EMPTY
        assigned: list[str] = []
        raws: list[str] = []
        given: list[Token] = []
        for token in tokens:
            if token.op:
                given.append(token)
            elif not raws and "=" in token.raw and _ASSIGNMENT.match(token.raw):
                assigned.append(token.raw)
            elif token.test:
                run_substitutions(token.raw, self)
            else:
                raws.append(token.raw)
        if raws and raws[0] in self.aliases:
            return self._alias(raws[0], tokens)
        if raws and raws[0] in unwrap.DECLARING:
            return unwrap.declare(self, raws)
        words: list[Word] = []
        for raw in raws:
            words += words_of(raw, self)
        redirects, feed = self.redirects(given) if given else ((), None)
        if not raws:
            output = self._assignments(assigned)
            if redirects:
                self.emit(Call((), redirects, NO_ENV, feed or NO_FEED))
            return self.written(redirects, output)
        env: Mapping[str, str | None] = self.exported if self.exported else NO_ENV
        if assigned:
            env = {**env, **{name: _certain(value) for name, value in self.values_of(assigned)}}
        if not words:
            return EMPTY
        output = self.execute(Call(tuple(words), redirects, env, feed or self.feed))
        return self.written(redirects, output) if redirects else output

    def _alias(self, name: str, tokens: list[Token]) -> Output:
        value = self.aliases.pop(name)
        try:
            simple = simplify(value)
            first = next(index for index, token in enumerate(tokens) if token.raw == name and not token.op)
            if (
                len(simple.tokens)
                and ";" not in simple.text
                and "|" not in simple.text
                and "\n" not in simple.text
                and "&" not in simple.text
            ):
                return self.simple([*tokens[:first], *simple.tokens, *tokens[first + 1 :]])
            return self.run_text(value)
        finally:
            self.aliases[name] = value

    def _assignments(self, assigned: list[str]) -> Output:
        by = ""
        for name, value in self.values_of(assigned):
            self.assign(name, value)
        return Output("", by)

    def values_of(self, assigned: Iterable[str]) -> Iterable[tuple[str, tuple[Word, ...] | None]]:
        for raw in assigned:
            found = _ASSIGNMENT.match(raw)
            if found is None:
                continue
            name, index, plus, right = found.groups()
            value: tuple[Word, ...] | None
            if right.startswith("(") and right.endswith(")"):
                value = tuple(self._array(right[1:-1]))
            else:
                value = (word_of(right, self),)
            if index:
                run_substitutions(index, self)
                value = None
            elif plus:
                held = self.value(name)
                is_array = right.startswith("(")
                if held is None:
                    value = None
                elif is_array:
                    value = (*held, *value)
                else:
                    before = held[0] if held else Word("")
                    value = (
                        Word(before.text + value[0].text, before.certain and value[0].certain, before.glob or value[0].glob),
                    )
            yield name, value

    def _array(self, text: str) -> Iterable[Word]:
        for token in simplify(text).tokens:
            yield from words_of(token.raw, self)

    # -- redirections ----------------------------------------------------------------------------------------------------------

    def redirects(self, given: list[Token]) -> tuple[tuple[Redirect, ...], Feed | None]:
        """The redirections, and what they feed to standard input."""
        found: list[Redirect] = []
        feed: Feed | None = None
        for token in given:
            if token.op == "<<":
                found.append(Redirect("<<", token.fd, Word(token.raw)))
                if token.fd in (None, 0):
                    word = (
                        Word("", False) if token.body is None else Word(token.body) if token.quoted else body_of(token.body, self)
                    )
                    feed = Feed(word.text if word.certain else None, word.made_by, source="heredoc", draft=word.text)
                elif token.body and not token.quoted:
                    body_of(token.body, self)
                continue
            target = word_of(token.raw, self)
            found.append(Redirect(token.op, token.fd, target))
            if token.op == "<<<" and token.fd in (None, 0):
                text = f"{target.text}\n" if target.certain else None
                feed = Feed(text, target.made_by, source="heredoc", draft=target.text)
            elif token.op in ("<", "<>") and token.fd in (None, 0):
                path = join(self.cwd, target.text) if target.certain else None
                output = self.files.get(path or "", Output(None, target.made_by))
                feed = Feed(output.text, output.by, source="file")
        return tuple(found), feed

    def written(self, redirects: tuple[Redirect, ...], output: Output) -> Output:
        """Note what goes into files; what is left for the pipe."""
        rest = output
        for redirect in redirects:
            if redirect.op not in _OUT or redirect.fd not in (None, 1):
                continue
            rest = EMPTY
            path = join(self.cwd, redirect.target.text) if redirect.target.certain else None
            if path is not None:
                self.note(path, _joined(self.files.get(path, Output()), output) if redirect.op in (">>", "&>>") else output)
        return rest

    def note(self, path: str, output: Output) -> None:
        """Remember what a file holds now."""
        if not path.startswith("/dev/"):
            self.files[path] = output

    # -- commands --------------------------------------------------------------------------------------------------------------

    def execute(self, call: Call) -> Output:
        """Follow one command whose words are known, through whatever it wraps."""
        first = call.words[0] if call.words else Word("")
        name = program_name(first.text) if first.certain and not first.glob else ""
        if name:
            if first.text in self.functions and not call.plain:
                return self._call_function(first.text, call)
            handler = unwrap.handler(name)
            if handler is not None:
                if self.wrappers > 24:
                    raise TooMuch("nested too deeply")
                self.wrappers += 1
                try:
                    output = handler(self, name, call)
                finally:
                    self.wrappers -= 1
                if output is not None:
                    return output
        self.emit(call)
        return outputs.output_of(self, name, call)

    def _call_function(self, name: str, call: Call) -> Output:
        via = f"function {name}"
        if via in self.via:  # it calls itself
            self.emit(call)
            return Output()
        body, tokens = self.functions[name]
        before = self.via, self.positional, self.feed
        self.via, self.positional, self.feed = (*self.via, via), call.words[1:], call.feed
        try:
            return self.statement(body, tokens)
        finally:
            self.via, self.positional, self.feed = before

    def emit(self, call: Call, *, runs_download: bool = False, fed_by: Command | None = None) -> Command:
        """Add a command to what was found."""
        feed = call.feed
        first = call.words[0] if call.words else None
        if first is not None:
            runs_download |= first.made_by in NETWORK or self.is_download(first)
        command = Command(
            call.words, call.redirects, self.cwd, call.env, self.via, self.remote, feed.text, feed.piped_from,
            call.appended, runs_download or call.runs_download, fed_by or call.fed_by or feed.fed_by,
        )  # fmt: skip
        self.run.commands.append(command)
        return command

    def is_download(self, word: Word) -> bool:
        """Whether a word names a file that was seen to come from the network."""
        if not self.files or not word.certain:
            return word.made_by in NETWORK
        output = self.files.get(join(self.cwd, word.text) or "")
        return output is not None and output.by in NETWORK

    def code(self, language: str, text: str, via: str) -> None:
        self.run.codes.append(Code(language, text, self.cwd, (*self.via, via)))

    def _merge(self, shells: list[Shell]) -> None:
        """Be what all of ``shells`` agree on."""
        first = shells[0]
        rest = shells[1:]
        if not rest and first is self:
            return
        cwd = first.cwd if all(shell.cwd == first.cwd for shell in rest) else None
        names = {name for shell in shells for name in shell.variables}
        variables = {}
        for name in names:
            values = [shell.variables.get(name) for shell in shells]
            variables[name] = values[0] if all(value == values[0] for value in values) else None
        files: dict[str, Output] = {}
        for shell in shells:
            for path, output in shell.files.items():
                files[path] = output if files.get(path, output) == output else Output(None, _fetched(output.by, files[path].by))
            self.functions.update(shell.functions)
            self.exported.update(shell.exported)
        self.cwd, self.variables, self.files = cwd, variables, files
        for name in self.exported:
            if name in variables:
                self.exported[name] = _certain(variables[name])


_STATEMENTS: dict[str, Callable[[Shell, Node, list[Token]], Output]] = {
    "command": Shell._command,
    "list": Shell._list,
    "pipeline": Shell._pipeline,
    "redirected_statement": Shell._redirected,
    "subshell": Shell._subshell,
    "compound_statement": Shell.sequence,
    "do_group": Shell.sequence,
    "negated_command": Shell.sequence,
    "if_statement": Shell._if,
    "while_statement": Shell._while,
    "for_statement": Shell._for,
    "case_statement": Shell._case,
    "function_definition": Shell._function,
    "ERROR": Shell.sequence,
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


def _joined(first: Output, second: Output) -> Output:
    if first is EMPTY:
        return second
    if second is EMPTY:
        return first
    text = first.text + second.text if first.text is not None and second.text is not None else None
    if text is not None and len(text) > 1_000_000:
        text = None
    return Output(text, _fetched(first.by, second.by))


def _fetched(first: str, second: str) -> str:
    return first if first in NETWORK or not second else second


def _certain(value: tuple[Word, ...] | None) -> str | None:
    return value[0].text if value and len(value) == 1 and value[0].certain else None


_QUOTED_HEREDOC = re.compile(r"<<-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n$`]+)\"|\\(\w+))")


def _shortened(text: str) -> int:
    """The length of ``text`` without the bodies of its quoted heredocs."""
    length, at = len(text), 0
    for _ in range(100):
        found = _QUOTED_HEREDOC.search(text, at)
        begin = text.find("\n", found.end()) if found else -1
        if found is None or begin < 0:
            break
        delimiter = found[1] or found[2] or found[3]
        end = re.compile(rf"^\t*{re.escape(delimiter)}$", re.MULTILINE).search(text, begin)
        length -= (end.start() if end else len(text)) - begin
        at = end.end() if end else len(text)
    return length
