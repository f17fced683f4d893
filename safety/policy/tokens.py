"""Shell text cut into words, redirections and operators, and written anew so that the grammar has nothing hard left in it.

Every word becomes ``w0``, ``w1`` ...; heredoc bodies and comments are taken out; only keywords in command position and operators stay.
What tree-sitter-bash is known to misread ([guard] 3: ``<<-`` with backticks, ``cat <<A; rm``, ``time -p``, ``coproc``, nested backticks,
a continued line inside a word, ``{a,b}`` as a command, ``2>&1`` before a herestring) never reaches it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_DEPTH = 10
MAX_STEPS = 20_000
MAX_OPERATORS = 1_000  # what parts commands; tree-sitter takes its time over thousands in a row


class TooMuch(Exception):
    """The text is nested too deeply or has too many parts."""


class Exhausted(TooMuch):
    """All that may be done for one text is done; what is left of it is not looked at."""


class Token(NamedTuple):
    """A word (no ``op``), a redirection (``raw`` is its target), or a test (``[[ ]]``, ``(( ))``: only its substitutions run).

    ``body``: a heredoc's text, None where it was not found; ``quoted``: nothing in it is expanded.
    """

    raw: str
    op: str = ""
    fd: int | None = None
    body: str | None = None
    quoted: bool = False
    test: bool = False


class Simplified(NamedTuple):
    text: str
    tokens: list[Token]
    unfinished: bool  # a quote or a substitution was never closed


def simplify(text: str, steps: list[int] | None = None) -> Simplified:
    """``text`` in placeholders, and what each stands for. Raises TooMuch."""
    lexer = Lexer(text, steps=steps)
    lexer.run()
    return Simplified("".join(lexer.out), lexer.tokens, lexer.unfinished)


_NEXT = re.compile(
    r"(?P<blank>(?:[ \t\r\f\v]|\\\n)+)|(?P<newline>\n)|(?P<comment>\#[^\n]*)"
    r"|(?P<redirect>(?P<fd>\d{1,9}|\{\w+\})?(?P<op><<<|<<-?|<>|<&|>&|>>|>\||<(?!\()|>(?!\())|&>>|&>)"
    r"|(?P<operator>&&|\|\||;;&|;;|;&|\|&|[;&|()])"
    r"|(?P<word>[\w./:@%+,=~^*?\[\]!{}-][\w./:@%+,=~^*?\[\]!{}#-]*(?=[\s;&|]|$))"
)  # the last: a word that no quote or expansion makes longer
_RUN = re.compile(r"[^\s;&|<>()'\"\\`$]+")
_BACKTICKS = re.compile(r"`[^`\\]*(?:\\.[^`\\]*)*(`|$)", re.DOTALL)
_ANSI_C = re.compile(r"\$'[^'\\]*(?:\\.[^'\\]*)*('|$)", re.DOTALL)
_QUOTED_RUN = re.compile(r'[^"\\`$]+')
_BRACE_RUN = re.compile(r"[^}'\"\\`$]+")
_PAREN_RUN = re.compile(r"[^()'\"\\`]+")
_ARRAY = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
_OPENERS = frozenset("if then elif else do while until ! {".split())
_CLOSERS = frozenset("fi done esac }".split())
_AFTER = frozenset("then elif else do fi done esac }".split())  # keywords also where a compound command just ended
_COMPOUND = r"(?=[{(!]|\[\[|(?:if|while|until|for|select|case)\b)"
_TIMED = re.compile(rf"(?:\s+-p)?(?:\s+--)?\s+{_COMPOUND}")
_COPROCESS = re.compile(rf"(?:\s+\w+)?\s+{_COMPOUND}")
_UNQUOTE = re.compile(r"\\(.)|['\"]", re.DOTALL)


class Lexer:
    """One pass over ``text`` from ``pos``. The methods that end in ``_end`` tell where the construct that starts there ends."""

    def __init__(self, text: str, pos: int = 0, depth: int = 0, steps: list[int] | None = None) -> None:
        self.text, self.pos, self.depth = text, pos, depth
        self.steps = steps if steps is not None else [MAX_STEPS]
        self.out: list[str] = []
        self.tokens: list[Token] = []
        self.pending: list[tuple[int, str, bool]] = []  # heredocs whose body starts at the next newline
        self.nest: list[str] = []  # "(" or what a case expects next: subject, in, pattern, body
        self.start = True  # a command may start here
        self.closed = False  # a compound command just ended
        self.loop = 0  # 1: a loop's variable comes, 2: its "in" may come
        self.unfinished = False
        self.operators = 0
        self.level = 0  # how deep in expansions within expansions

    def run(self, inside: bool = False) -> None:
        """Read to the end of the text, or, inside a substitution, up to its closing parenthesis."""
        text = self.text
        while self.pos < len(text):
            self.step()
            found = _NEXT.match(text, self.pos)
            kind = found.lastgroup if found else None
            if found is None or kind is None:
                end = self.word_end(self.pos)
                if end == self.pos:  # a character that starts nothing
                    self.pos += 1
                    continue
                raw = text[self.pos : end]
                self.pos = end
                self._word(raw)
                continue
            if kind == "operator":
                if found[0] == ")" and inside and self._closes_outer():
                    return
                self.pos = found.end()
                self._operator(found[0])
                continue
            if kind == "word":
                self.pos = found.end()
                self._word(found[0])
            elif kind == "newline":
                self.pos = found.end()
                self._newline()
            elif kind in ("blank", "comment"):
                self.pos = found.end()
            else:
                self._redirect(found)
        if self.out and self.out[-1] in (" |", " &&", " ||"):
            self.unfinished = True
            self.out.pop()
        self.unfinished |= inside

    def step(self) -> None:
        """Count one step of work."""
        self.steps[0] -= 1
        if self.steps[0] < 0:
            raise Exhausted("too many parts")

    def _closes_outer(self) -> bool:
        if self.nest and self.nest[-1] == "pattern":
            return False
        return "(" not in self.nest

    # -- words -------------------------------------------------------------------------------------------------------------------

    def _put(self, token: Token) -> None:
        self.out.append(f" >w{len(self.tokens)}" if token.op and self.closed else f" w{len(self.tokens)}")
        self.tokens.append(token)

    def _word(self, raw: str) -> None:
        plain = raw.replace("\\\n", "") if "\\" in raw else raw
        nest = self.nest
        if nest and nest[-1] in ("subject", "in", "pattern"):
            self._case_word(raw, plain)
            return
        if self.loop and self._loop_word(raw, plain):
            return
        if not self.start and not (self.closed and plain in _AFTER):
            self._put(Token(raw))
            return
        if self.closed and not self.start:  # "( a ) }" needs nothing between
            self.out.append(" ;")
        if plain in _OPENERS:
            self.out.append(f" {plain}")
            self.start, self.closed = True, False
        elif plain in _CLOSERS:
            if plain == "esac" and nest:
                nest.pop()
            self.out.append(f" {plain}")
            self.start, self.closed = False, True
        elif plain in ("for", "select"):
            self._loop(plain)
        elif plain == "case":
            self.out.append(" case")
            nest.append("subject")
            self.start = False
        elif plain == "function":
            self.out.append(" function")
            self.pos = self._blanks_end()
            end = self.word_end(self.pos)
            self._put(Token(self.text[self.pos : end]))
            self.pos = end
            if empty := re.compile(r"\s*\(\s*\)").match(self.text, end):
                self.pos = empty.end()
        elif plain == "[[":
            self._test(raw)
        elif plain == "time" and (timed := _TIMED.match(self.text, self.pos)):
            self.pos = timed.end()
        elif plain == "coproc" and (named := _COPROCESS.match(self.text, self.pos)):
            self.pos = named.end()
        else:
            self._put(Token(raw))
            # A keyword may still follow a redirection in practice, never an assignment: "a=b if" runs a program called if.
            self.start = self.closed = False

    def _case_word(self, raw: str, plain: str) -> None:
        nest = self.nest
        if nest[-1] == "subject":
            self._put(Token(raw))
            nest[-1] = "in"
        elif nest[-1] == "in":
            self.out.append(" in")
            nest[-1] = "pattern"
        elif plain == "esac" and self.out[-1] not in ("|", "("):
            self.out.append(" esac")
            nest.pop()
            self.start, self.closed = False, True
        else:
            self._put(Token(raw))

    def _loop(self, keyword: str) -> None:
        arithmetic = re.compile(r"\s*\(\(").match(self.text, self.pos)
        self.start = False
        if arithmetic and (end := self.parens_end(arithmetic.end() - 2)):
            index = len(self.tokens)
            self.tokens.append(Token(self.text[arithmetic.end() - 2 : end], test=True))
            self.out.append(f" for w{index} in w{index}")
            self.pos, self.loop = end, 3
            return
        self.out.append(f" {keyword}")
        self.loop = 1

    def _loop_word(self, raw: str, plain: str) -> bool:
        if self.loop == 1:
            self._put(Token(raw))
            self.loop = 2
            return True
        if plain == "in" and self.loop == 2:
            self.out.append(" in")
            self.loop = 0
            return True
        if plain == "do":
            self.out.append(" ; do")
            self.start, self.loop = True, 0
            return True
        self.loop = 0
        return False

    def _test(self, first: str) -> None:
        """``[[ ... ]]`` up to its end, as one token."""
        begin = self.pos - len(first)
        text = self.text
        while self.pos < len(text):
            self.step()
            end = self.word_end(self.pos)
            if end == self.pos:
                self.pos += 1
                continue
            raw = text[self.pos : end]
            self.pos = end
            if raw == "]]":
                break
        self._put(Token(text[begin : self.pos], test=True))
        self.start = False

    # -- operators ---------------------------------------------------------------------------------------------------------------

    def _count_operator(self) -> None:
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            raise TooMuch("too many commands")

    def _newline(self) -> None:
        """A line's end is written as a semicolon where it ends a command: over newlines the grammar joins lines now and then."""
        if self.loop != 2 and not self.start and not (self.nest and self.nest[-1] in ("subject", "in", "pattern")):
            self._count_operator()
            self.loop = 0
            self.out.append(" ;")
            self.start, self.closed = True, False
        if self.pending:
            self._bodies()

    def _operator(self, operator: str) -> None:
        nest = self.nest
        self._count_operator()
        expects = nest[-1] if nest else ""
        if operator == "(":
            self._open(expects)
            return
        if operator == ")":
            if expects == "pattern":
                nest[-1] = "body"
                self.out.append(")")
                self.start, self.closed = True, False
                return
            if "(" not in nest:  # nothing was opened
                self.unfinished = True
                return
            while nest.pop() != "(":
                pass
            self.out.append(")")
            self.start, self.closed = False, True
            return
        self.loop = 0
        if expects == "pattern" and operator == "|":
            self.out.append("|")
            return
        if operator in (";;", ";&", ";;&"):
            if expects == "body":
                nest[-1] = "pattern"
            operator = ";;"
        self.out.append(" |" if operator == "|&" else f" {operator}")
        self.start, self.closed = True, False

    def _open(self, expects: str) -> None:
        text, pos = self.text, self.pos
        if expects == "pattern":
            return
        if not self.start:
            if empty := re.compile(r"\s*\)").match(text, pos):  # name ( )
                self.pos = empty.end()
                self.out.append(" ()")
                self.start = True
                return
        elif text.startswith("(", pos) and (end := self.parens_end(pos - 1)) and text[end - 2 : end] == "))":
            self._put(Token(text[pos - 1 : end], test=True))
            self.pos, self.start = end, False
            return
        self.out.append(" (")
        self.nest.append("(")
        self.start, self.closed = True, False

    # -- redirections ------------------------------------------------------------------------------------------------------------

    def _redirect(self, found: re.Match[str]) -> None:
        op = found["op"] or found[0]
        fd = int(found["fd"]) if found["fd"] and found["fd"].isdigit() else None
        self.pos = found.end()
        self.pos = self._blanks_end()
        end = self.word_end(self.pos)
        raw = self.text[self.pos : end]
        self.pos = end
        self.start = False
        if op not in ("<<", "<<-"):
            self._put(Token(raw, op, fd))
            return
        quoted = any(char in raw for char in "'\"\\")
        delimiter = _UNQUOTE.sub(lambda match: match[1] or "", raw) if quoted else raw
        self.pending.append((len(self.tokens), delimiter, op == "<<-"))
        self._put(Token(delimiter, "<<", fd, None, quoted))

    def _bodies(self) -> None:
        """Take the pending heredocs' bodies out of the text; each ends at its delimiter, or with the text."""
        for index, delimiter, tabs in self.pending:
            line = re.compile(rf"^{chr(9) + '*' if tabs else ''}{re.escape(delimiter)}$", re.MULTILINE)
            found = line.search(self.text, self.pos)
            body = self.text[self.pos : found.start() if found else len(self.text)]
            self.pos = min(found.end() + 1, len(self.text)) if found else len(self.text)
            if tabs:
                body = re.sub(r"^\t+", "", body, flags=re.MULTILINE)
            if index >= 0:
                self.tokens[index] = self.tokens[index]._replace(body=body)
        self.pending = []

    # -- where things end --------------------------------------------------------------------------------------------------------

    def _blanks_end(self) -> int:
        found = _BLANKS.match(self.text, self.pos)
        return found.end() if found else self.pos

    def word_end(self, begin: int) -> int:
        """Where the word that starts at ``begin`` ends; ``begin`` itself if none does."""
        text, i, size = self.text, begin, len(self.text)
        while i < size:
            self.step()
            if found := _RUN.match(text, i):
                i = found.end()
                continue
            char = text[i]
            if char in "<>":
                if text[i + 1 : i + 2] != "(":
                    break
                i = self.commands_end(i + 2)
            elif char == "(":
                extended = i > begin and text[i - 1] in "?*+@!" and not (i == begin + 1 and self.start and text[begin] == "!")
                if not extended and not _ARRAY.fullmatch(text, begin, i):
                    break
                i = self.parens_end(i) or self._cut()
            elif char in "'\"\\`$":
                i = self.quote_end(i)
            else:
                break
        return min(i, size)

    def quote_end(self, i: int) -> int:
        """The end of what a quote, a backslash, a backtick or a dollar begins at ``i``."""
        text, char = self.text, self.text[i]
        if char == "\\":
            return i + 2
        if char == "'":
            end = text.find("'", i + 1)
            return end + 1 if end >= 0 else self._cut()
        if char == '"':
            return self.quoted_end(i + 1)
        if char == "`":
            return self._matched(_BACKTICKS, i)
        return self.dollar_end(i)

    def dollar_end(self, i: int) -> int:
        """The end of the expansion at ``i``; names are left to the reader."""
        text, after = self.text, self.text[i + 1 : i + 2]
        if self.level >= MAX_DEPTH:
            raise TooMuch("nested too deeply")
        self.level += 1
        try:
            return self._dollar_end(text, after, i)
        finally:
            self.level -= 1

    def _dollar_end(self, text: str, after: str, i: int) -> int:
        if after == "(":
            if text.startswith("((", i + 1) and (end := self.parens_end(i + 1)) and text[end - 2 : end] == "))":
                return end
            return self.commands_end(i + 2)
        if after == "{":
            return self._brace_end(i + 2)
        if after == "'":
            return self._matched(_ANSI_C, i)
        if after == '"':
            return self.quoted_end(i + 2)
        return i + 1

    def quoted_end(self, i: int) -> int:
        """The end of a double-quoted string whose first character is at ``i``."""
        text, size = self.text, len(self.text)
        while i < size:
            self.step()
            if found := _QUOTED_RUN.match(text, i):
                i = found.end()
                continue
            char = text[i]
            if char == '"':
                return i + 1
            if char == "\\":
                i += 2
            elif char == "`":
                i = self._matched(_BACKTICKS, i)
            elif text[i + 1 : i + 2] in ("(", "{"):
                i = self.dollar_end(i)
            else:
                i += 1
        return self._cut()

    def _brace_end(self, i: int) -> int:
        """The end of ``${``, whose name starts at ``i``. An apostrophe without its pair before the brace is a character."""
        text, size = self.text, len(self.text)
        while i < size:
            self.step()
            if found := _BRACE_RUN.match(text, i):
                i = found.end()
                continue
            char = text[i]
            if char == "}":
                return i + 1
            if char == "'":
                end, brace = text.find("'", i + 1), text.find("}", i + 1)
                i = end + 1 if 0 <= end < brace else i + 1
            elif char == "$" and text[i + 1 : i + 2] == "'":
                i += 1
            else:
                i = self.quote_end(i)
        return self._cut()

    def parens_end(self, i: int) -> int:
        """The end of the balanced parentheses that open at ``i``; 0 if they never close."""
        text, size, open_ = self.text, len(self.text), 0
        while i < size:
            self.step()
            if found := _PAREN_RUN.match(text, i):
                i = found.end()
                continue
            char = text[i]
            if char in "()":
                open_ += 1 if char == "(" else -1
                i += 1
                if not open_:
                    return i
            elif char == "'":
                end = text.find("'", i + 1)
                if end < 0:
                    return 0
                i = end + 1
            elif char == '"':
                i = self.quoted_end(i + 1)
            else:
                i = i + 2 if char == "\\" else self._matched(_BACKTICKS, i)
        return 0

    def commands_end(self, i: int) -> int:
        """The end, behind the parenthesis, of the commands that start at ``i``."""
        if self.depth >= MAX_DEPTH:
            raise TooMuch("nested too deeply")
        self.steps[0] -= 6
        inner = Lexer(self.text, i, self.depth + 1, self.steps)
        inner.run(inside=True)
        self.unfinished |= inner.unfinished
        self.pending += [(-1, delimiter, tabs) for _, delimiter, tabs in inner.pending]  # their bodies are still to come
        return min(inner.pos + 1, len(self.text))

    def _matched(self, pattern: re.Pattern[str], i: int) -> int:
        found = pattern.match(self.text, i)
        if found is None or not found[1]:
            return self._cut()
        return found.end()

    def _cut(self) -> int:
        self.unfinished = True
        return len(self.text)
