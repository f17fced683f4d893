"""One shell process that is followed, not run: its folder, variables, functions, files written so far, and what it executes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from safety.policy.builtins import DECLARING, declare
from safety.policy.calls import EMPTY, NETWORK, NO_FEED, Call, Feed, fetched, joined
from safety.policy.expand import Output, body_of, run_substitutions, word_of, words_of
from safety.policy.findings import Findings
from safety.policy.foreign import foreign_shell
from safety.policy.gitwords import join
from safety.policy.outputs import output_of
from safety.policy.scan import danger_words
from safety.policy.statements import sequence, statement
from safety.policy.tokens import Exhausted, Token, TooMuch, simplify
from safety.policy.unwrap import handler
from safety.policy.words import NO_ENV, WRITING, Code, Command, Redirect, Word, program_name

MAX_CHARACTERS = 10_000  # without the bodies of quoted heredocs; longer text is scanned
MAX_TOTAL = 40_000  # over all texts within one another, but for quoted heredocs that stay data
MAX_PAYLOADS = 8  # strings run as shell text within one another

_PLACE = re.compile(rb"w(\d+)")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+?)=(.*)", re.DOTALL)


class Shell:
    """One shell process: its state, and how it follows statements. A subshell is a fork of it."""

    def __init__(self, run: Findings, cwd: str | None) -> None:
        self.run = run
        self.steps = run.steps
        self.cwd = cwd
        self.old_cwd: str | None = None
        self.folders: list[str | None] = []
        self.base: dict[str, str] = {}
        self.given: frozenset[str] = frozenset()  # the variables that came from outside, which children get too
        self.variables: dict[str, tuple[Word, ...] | None] = {}
        self.exported: dict[str, str | None] = {}
        self.functions: dict[str, tuple[Any, list[Token]]] = {}
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

    def connect(self, written: str, text: str) -> Output:
        """Run ``<(text)`` or ``>(text)``, which stands for a file with its output."""
        output = self.substitute(text)
        self.files[written] = output
        return output

    # -- texts -----------------------------------------------------------------------------------------------------------------

    def run_text(self, text: str) -> Output:
        """Follow ``text`` in this shell; what it writes to its output."""
        run = self.run
        if not text or text.isspace():
            return EMPTY
        if self.payloads >= MAX_PAYLOADS:
            run.scan(text, "nested too deeply")
            return Output()
        if len(text) > MAX_CHARACTERS and _shortened(text) > MAX_CHARACTERS:
            run.scan(text, f"longer than {MAX_CHARACTERS} characters")
            return Output()
        self.payloads += 1
        run.nodes += 2
        run.characters += len(text)
        try:
            if run.characters > MAX_TOTAL:
                raise Exhausted("too much text within text")
            simple = simplify(text, self.steps)
            if len(simple.text) > 4 * MAX_CHARACTERS:
                raise TooMuch("too many parts")
            root = run.grammar()(simple.text.encode())
            output = sequence(self, root, simple.tokens)
            if root.has_error or simple.unfinished:
                self._errors(root, simple.tokens, text, simple.unfinished)
        except Exhausted as error:
            run.scan(text, str(error))
            raise
        except TooMuch as error:
            run.scan(text, str(error))
            return Output()
        except ImportError as error:
            run.scan(text, f"no shell parser: {error.name or 'tree_sitter'} is not installed")
            return Output()
        finally:
            self.payloads -= 1
        return output

    def run_appended(self, text: str) -> Output:
        """Follow ``text`` whose commands get more words at run time."""
        first = len(self.run.commands)
        output = self.run_text(text)
        new = self.run.commands[first:]
        self.run.commands[first:] = [dataclasses.replace(command, appended=True) for command in new]
        return output

    def payload(
        self, via: str, word: Word, call: Call, *, remote: bool = False, positional: tuple[Word, ...] | None = None
    ) -> Output:
        """Follow text that another shell gets: it knows what is exported, no functions and no aliases."""
        inner = self.elsewhere(via) if remote else self.fork(via)
        inner.functions, inner.aliases, inner.positional, inner.feed = {}, {}, positional, call.fed()
        if not remote:
            inner.files = self.files
            inner.inherit({**self.exported, **call.env})
        return inner.run_appended(word.text) if call.appended else inner.run_text(word.text)

    def inherit(self, env: Mapping[str, str | None]) -> None:
        """Know only what a new process does."""
        self.exported = dict(env)
        self.variables = {name: self.variables[name] for name in self.given if name in self.variables}
        for name, value in env.items():
            self.variables[name] = (Word(value),) if value is not None else None

    def elsewhere(self, via: str) -> Shell:
        """A shell on another machine or in a container."""
        new = self.fork(via)
        new.remote, new.cwd, new.files, new.base = True, None, {}, {"HOME": "", "TOP": ""}
        new.variables, new.exported, new.functions, new.aliases = {}, {}, {}, {}
        return new

    def follow(self, call: Call) -> Output:
        """Execute a command that a wrapper hands on with its own input."""
        before, self.feed = self.feed, call.feed
        try:
            return self.execute(call)
        finally:
            self.feed = before

    def _errors(self, root: Any, tokens: list[Token], text: str, unfinished: bool) -> None:
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

    def _command(self, node: Any, tokens: list[Token]) -> Output:
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
        if raws and raws[0] in DECLARING:
            return declare(self, raws)
        if raws and self.payloads == 1 and not self.run.foreign:
            self.run.foreign = foreign_shell(raws)
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
            simple = simplify(value, self.steps)
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
                value = (word_of(right, self, patterns=False),)
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
        for token in simplify(text, self.steps).tokens:
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
            into_file = token.op == ">&" and target.text.rstrip("-") and not target.text.rstrip("-").isdigit()
            found.append(Redirect("&>" if into_file else token.op, token.fd, target))
            if token.op == "<<<" and token.fd in (None, 0):
                text = f"{target.text}\n" if target.certain else None
                feed = Feed(text, target.made_by, source="heredoc", draft=target.text)
            elif token.op in ("<", "<>") and token.fd in (None, 0):
                output = self.held(target) or Output(None, target.made_by)
                feed = Feed(output.text, output.by, source="file")
        return tuple(found), feed

    def written(self, redirects: tuple[Redirect, ...], output: Output) -> Output:
        """Note what goes into files; what is left for the pipe."""
        rest = output
        for redirect in redirects:
            if redirect.op not in WRITING or redirect.fd not in (None, 1):
                continue
            rest = EMPTY
            path = join(self.cwd, redirect.target.text) if redirect.target.certain else None
            if path is not None:
                self.note(path, joined(self.files.get(path, Output()), output) if redirect.op in (">>", "&>>") else output)
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
            unwrapped = handler(name)
            if unwrapped is not None:
                if self.wrappers > 24:
                    raise TooMuch("nested too deeply")
                self.wrappers += 1
                try:
                    output = unwrapped(self, name, call)
                finally:
                    self.wrappers -= 1
                if output is not None:
                    return output
        self.emit(call)
        return output_of(self, name, call)

    def _call_function(self, name: str, call: Call) -> Output:
        via = f"function {name}"
        if via in self.via:  # it calls itself
            self.emit(call)
            return Output()
        body, tokens = self.functions[name]
        before = self.via, self.positional, self.feed
        self.via, self.positional, self.feed = (*self.via, via), call.words[1:], call.feed
        try:
            return statement(self, body, tokens)
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

    def held(self, word: Word) -> Output | None:
        """What is in the file, or the ``<(...)``, that a word names; None: its writing was not seen."""
        if not self.files or (not word.certain and not word.text.startswith("<(")):
            return None
        return self.files.get(word.text if word.text.startswith("<(") else join(self.cwd, word.text) or "")

    def is_download(self, word: Word) -> bool:
        """Whether a word is, or names a file that is, from the network."""
        held = self.held(word)
        return word.made_by in NETWORK or (held is not None and held.by in NETWORK)

    def code(self, language: str, text: str, via: str) -> None:
        self.run.codes.append(Code(language, text, self.cwd, (*self.via, via)))

    def merge(self, shells: list[Shell]) -> None:
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
                files[path] = output if files.get(path, output) == output else Output(None, fetched(output.by, files[path].by))
            self.functions.update(shell.functions)
            self.exported.update(shell.exported)
        self.cwd, self.variables, self.files = cwd, variables, files
        self.run.traps = [(self if any(shell is each for each in shells) else shell, word) for shell, word in self.run.traps]
        for name in self.exported:
            if name in variables:
                self.exported[name] = _certain(variables[name])


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
