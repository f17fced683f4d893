"""What a word of shell text becomes: quotes off, braces multiplied, tilde, variables and substitutions replaced where that is certain."""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from safety.policy.tokens import Lexer
from safety.policy.words import Word

MAX_BRACES = 12
MAX_TEXT = 1_100_000
MAX_PIECES = 500  # that one unquoted value is cut into
MAX_WORDS = 40  # that one word's braces may become; more are left as a pattern


class Output(NamedTuple):
    """What commands write: ``text`` None when it is not certain; ``by`` the program it comes from, the fetching one if any did."""

    text: str | None = None
    by: str = ""


class Shell(Protocol):
    """What an expansion asks of the shell it runs in. ``steps``: how many the lexer may still take."""

    steps: list[int]

    def value(self, name: str) -> tuple[Word, ...] | None:
        """A variable's value, one word unless it is an array; None when it is not known."""

    def assign(self, name: str, value: tuple[Word, ...] | None) -> None: ...

    def substitute(self, text: str) -> Output:
        """Run ``$(text)``."""

    def connect(self, written: str, text: str) -> Output:
        """Run ``<(text)``."""

    def home(self, user: str) -> str:
        """What ``~user`` is; empty if not known."""


_PLAIN = re.compile(r"[\w./:@%+,=^!#-]*")
_LITERAL = re.compile(r"[^'\"\\`$*?\[<>({]+")
_QUOTED_LITERAL = re.compile(r'[^"\\`$]+')
_BODY_LITERAL = re.compile(r"[^\\`$]+")
_TILDE = re.compile(r"~([\w.+-]*)(?=/|:|$)")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_NAME = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?$!-])")
_PARAMETER = re.compile(r"\$\{([!#]?)([A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[([^\]]*)\])?(.*)\}", re.DOTALL)
_SLICE = re.compile(r":\s*(-?\d+)\s*(?::\s*(-?\d+)\s*)?")
_RANGE = re.compile(r"(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.(-?\d{1,4}))?")
_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.)|(.))", re.DOTALL)


def unescape(text: str, octal_zero: bool = False) -> str:
    r"""``$'...'``, ``echo -e`` and ``printf`` escapes decoded. ``octal_zero``: an octal number is written ``\0nnn``."""
    if octal_zero:
        text = re.sub(r"\\0([0-7]{1,3})", r"\\\1", text)

    def character(found: re.Match[str]) -> str:
        octal, short, four, eight, control, other = found.groups()
        if octal:
            return chr(int(octal, 8) & 0xFF)
        if number := short or four or eight:
            code = int(number, 16)
            return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else ""
        if control:
            return chr(ord(control) & 0x1F)
        return _ESCAPES.get(other, f"\\{other}")

    return _ESCAPE.sub(character, text)


class _Field:
    """The words that one written word is becoming."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.parts: list[str] = []
        self.certain, self.glob, self.some, self.by = True, False, False, ""
        self.size = 0

    def add(self, text: str) -> None:
        self.some = True
        self.size += len(text)
        if self.size > MAX_TEXT and not text.isspace():  # a variable that doubles itself
            self.certain = False
            return
        self.parts.append(text)

    def unknown(self, text: str, by: str = "") -> None:
        self.add(text)
        self.certain = False
        self.by = self.by or by

    def add_word(self, word: Word) -> None:
        self.add(word.text)
        self.certain &= word.certain
        self.glob |= word.glob
        self.by = self.by or word.made_by

    def add_split(self, word: Word) -> None:
        """An unquoted value: cut at blanks, its patterns live."""
        if not word.certain:
            self.add_word(word)
            return
        pieces = word.text.split(maxsplit=MAX_PIECES)
        if len(pieces) > MAX_PIECES:
            self.unknown(word.text)
            return
        if not pieces:
            if word.text:
                self.close()
            return
        if word.text[0].isspace():
            self.close()
        for index, piece in enumerate(pieces):
            if index:
                self.close()
            self.add_word(Word(piece, True, word.glob or _has_pattern(piece), word.made_by))
        if word.text[-1].isspace():
            self.close()

    def close(self) -> None:
        if self.some:
            self.words.append(Word("".join(self.parts), self.certain, self.glob, self.by))
        self.size = 0
        self.parts, self.certain, self.glob, self.some, self.by = [], True, False, False, ""


def _has_pattern(text: str) -> bool:
    return "*" in text or "?" in text or ("[" in text and "]" in text)


def words_of(raw: str, shell: Shell) -> list[Word]:
    """The words, perhaps none, that one word of a command becomes."""
    if _PLAIN.fullmatch(raw):
        return [Word(raw)]
    if "{" in raw and len(alternatives := braced(raw, shell)) > 1:
        return [word for each in alternatives for word in _expanded(each, shell, split=True)]
    return _expanded(raw, shell, split=True)


def braced(raw: str, shell: Shell) -> list[str]:
    """What braces make of a word as written."""
    if "{" not in raw or ("," not in raw and ".." not in raw) or raw.count("{") > MAX_BRACES:
        return [raw]
    found = list(itertools.islice(_braces(raw, shell.steps), MAX_WORDS + 1))
    return found if len(found) <= MAX_WORDS else [raw]


def word_of(raw: str, shell: Shell, *, patterns: bool = True) -> Word:
    """The one word that a redirection's target or the right side of an assignment (which knows no ``patterns``) becomes."""
    if _PLAIN.fullmatch(raw):
        return Word(raw)
    words = _expanded(raw, shell, split=False, patterns=patterns)
    return words[0] if words else Word("")


def body_of(body: str, shell: Shell) -> Word:
    """An unquoted heredoc's text, its variables and substitutions replaced."""
    field = _Field()
    _quoted(body, 0, None, field, shell)
    field.some = True
    field.close()
    return field.words[0]


def run_substitutions(raw: str, shell: Shell) -> None:
    """Run what a test or an arithmetic expression holds; its value does not matter here."""
    if "$" in raw or "`" in raw or "<(" in raw or ">(" in raw:
        _expanded(raw, shell, split=False)


def _expanded(raw: str, shell: Shell, *, split: bool, patterns: bool = True) -> list[Word]:
    field = _Field()
    lexer: Lexer | None = None
    i, size = 0, len(raw)
    if raw.startswith("~"):
        i = _tilde(raw, 0, field, shell)
    elif (assigned := _ASSIGNED.match(raw)) and raw.startswith("~", assigned.end()):
        field.add(assigned[0])
        i = _tilde(raw, assigned.end(), field, shell)
    while i < size:
        if found := _LITERAL.match(raw, i):
            field.add(found[0])
            i = found.end()
            continue
        char = raw[i]
        if char == "\\":
            if raw[i + 1 : i + 2] != "\n":
                field.add(raw[i + 1 : i + 2])
            i += 2
        elif char == "'":
            end = raw.find("'", i + 1)
            end = end if end >= 0 else size
            field.add(raw[i + 1 : end])
            i = end + 1
        elif char == '"':
            i = _quoted(raw, i + 1, '"', field, shell)
        elif char in "*?[":
            field.add(char)
            field.glob |= patterns and (char != "[" or "]" in raw[i:])
            i += 1
        elif char in "<>" and raw[i + 1 : i + 2] == "(":
            lexer = lexer or Lexer(raw, steps=shell.steps)
            end = lexer.commands_end(i + 2)
            output = shell.connect(raw[i:end], raw[i + 2 : end - 1])
            field.unknown(raw[i:end], output.by)
            i = end
        elif char in "`$":
            lexer = lexer or Lexer(raw, steps=shell.steps)
            i = _dollar(raw, i, field, shell, lexer, quoted=False, split=split)
        else:
            field.glob |= patterns and char == "(" and i > 0 and raw[i - 1] in "?*+@!"
            field.add(char)
            i += 1
    field.close()
    return field.words


def _tilde(raw: str, i: int, field: _Field, shell: Shell) -> int:
    found = _TILDE.match(raw, i)
    if not found:
        return i
    home = shell.home(found[1])
    if home:
        field.add(home if home != "/" or found.end() == len(raw) else "")
    else:
        field.unknown(found[0])
    return found.end()


def _quoted(raw: str, i: int, closer: str | None, field: _Field, shell: Shell) -> int:
    """Read what stands in double quotes, or, with no ``closer``, in a heredoc; where it ended."""
    field.add("")
    lexer = Lexer(raw, steps=shell.steps)
    literal = _QUOTED_LITERAL if closer else _BODY_LITERAL
    while i < len(raw):
        if found := literal.match(raw, i):
            field.add(found[0])
            i = found.end()
            continue
        char = raw[i]
        if char == closer:
            return i + 1
        if char == "\\":
            after = raw[i + 1 : i + 2]
            field.add("" if after == "\n" else after if after in ("\\", "$", "`", closer) else f"\\{after}")
            i += 2
        elif char in "`$":
            i = _dollar(raw, i, field, shell, lexer, quoted=True, split=False)
        else:
            field.add(char)
            i += 1
    return i


def _dollar(raw: str, i: int, field: _Field, shell: Shell, lexer: Lexer, *, quoted: bool, split: bool) -> int:
    """Replace the expansion at ``i``; where it ended."""
    after = raw[i + 1 : i + 2]
    if raw[i] == "`":
        end = lexer.quote_end(i)
        inner = re.sub(r"\\([\\`$])" if not quoted else r"\\([\\`$\"])", r"\1", raw[i + 1 : end - 1])
        _substitution(raw[i:end], inner, field, shell, split=split)
        return end
    if after == "(":
        end = lexer.dollar_end(i)
        if raw.startswith("((", i + 1) and raw.endswith("))", i, end):
            _arithmetic(raw[i:end], field, shell)
        else:
            _substitution(raw[i:end], raw[i + 2 : end - 1], field, shell, split=split)
        return end
    if after == "{":
        end = lexer.dollar_end(i)
        _parameter(raw[i:end], field, shell, quoted=quoted, split=split)
        return end
    if after == "'" and not quoted:
        end = lexer.dollar_end(i)
        field.add(unescape(raw[i + 2 : end - 1]))
        return end
    if after == '"' and not quoted:
        return _quoted(raw, i + 2, '"', field, shell)
    if found := _NAME.match(raw, i):
        _value(found[1], found[0], field, shell, quoted=quoted, split=split)
        return found.end()
    field.add("$")
    return i + 1


def _substitution(written: str, inner: str, field: _Field, shell: Shell, *, split: bool) -> None:
    output = shell.substitute(inner)
    if output.text is None:
        field.unknown(written, output.by)
        return
    word = Word(output.text.rstrip("\n"))
    if split:
        field.add_split(word)
    else:
        field.add_word(word)


def _arithmetic(written: str, field: _Field, shell: Shell) -> None:
    inner = written[3:-2].strip()
    if inner.isdigit() and len(inner) < 10:
        field.add(str(int(inner)))
        return
    if "$(" in inner or "`" in inner:
        _expanded(inner, shell, split=False)
    field.unknown(written)


def _value(name: str, written: str, field: _Field, shell: Shell, *, quoted: bool, split: bool) -> None:
    value = shell.value(name)
    if value is None:
        field.unknown(written)
        return
    if not value and quoted and name not in ("@", "*"):
        field.add("")
    for index, word in enumerate(value):
        if index and (split or (quoted and name != "*")):
            field.close()
        elif index:
            field.add(" ")
        if quoted or not split:
            field.add_word(word)
        else:
            field.add_split(word)


def _parameter(written: str, field: _Field, shell: Shell, *, quoted: bool, split: bool) -> None:
    """``${...}``"""
    found = _PARAMETER.fullmatch(written)
    if found is None:
        _run_operand(written[2:-1], shell)
        field.unknown(written)
        return
    mark, name, index, rest = found.groups()
    value = shell.value(name)
    if index is not None and value is not None:
        if index.isdigit():
            value = value[int(index) : int(index) + 1] if len(index) < 6 else ()
        elif index not in ("@", "*"):
            value = None
    if mark and not rest:
        known = mark == "#" and value is not None and all(word.certain for word in value)
        if not known or value is None:
            field.unknown(written)
        else:
            field.add(str(len(value) if index in ("@", "*") or name in ("@", "*") else sum(len(word.text) for word in value)))
        return
    if mark:
        _run_operand(rest, shell)
        field.unknown(written)
        return
    if rest:
        result = _operated(name, value, rest, written, shell)
        if result is None:
            return
        value = (result,)
    if value is None:
        field.unknown(written)
        return
    _spread(value, index, field, quoted=quoted, split=split)


def _spread(value: tuple[Word, ...], index: str | None, field: _Field, *, quoted: bool, split: bool) -> None:
    if not value and quoted and index != "@":
        field.add("")
    for number, word in enumerate(value):
        if number and (split or index == "@"):
            field.close()
        elif number:
            field.add(" ")
        if quoted or not split:
            field.add_word(word)
        else:
            field.add_split(word)


def _operated(name: str, value: tuple[Word, ...] | None, rest: str, written: str, shell: Shell) -> Word | None:
    """``${name rest}``: a default, a part, a replacement. None: nothing at all."""
    operator = rest[:2] if rest[:1] == ":" and rest[1:2] in ("-", "=", "+", "?") else rest[:1]
    kind = operator[-1]
    if kind in "-=+?" and (len(operator) == 2 or rest[0] != ":"):
        operand = _operand(rest[len(operator) :], shell)
        held = _joined(value)
        if kind == "+":
            return None if held == Word("") else operand if held and held.certain else Word(operand.text, False)
        if held is None:
            if kind == "=":
                shell.assign(name, None)
            return Word(written, False) if kind == "?" else Word(operand.text, False, operand.glob, operand.made_by)
        empty = held.certain and not held.text and (len(operator) == 2 or not value)
        if empty and kind == "=":
            shell.assign(name, (operand,))
        return operand if empty else held
    held = _joined(value)
    if held is None or not held.certain or len(held.text) > 400:
        _run_operand(rest, shell)
        return Word(written, False, False, held.made_by if held else "")
    changed = _changed(held.text, rest, shell)
    return Word(written, False) if changed is None else Word(changed)


def _joined(value: tuple[Word, ...] | None) -> Word | None:
    if value is None or len(value) == 1:
        return value[0] if value else None
    if not value:
        return Word("")
    return Word(" ".join(word.text for word in value), all(word.certain for word in value), any(word.glob for word in value))


def _changed(text: str, rest: str, shell: Shell) -> str | None:
    """``text`` after ``${x rest}``; None where we do not know."""
    if found := _SLICE.fullmatch(rest):
        start = int(found[1])
        start = max(len(text) + start, 0) if start < 0 else start
        length = int(found[2]) if found[2] else len(text)
        return text[start : start + length] if length >= 0 else text[start:length]
    if rest in ("^^", ",,"):
        return text.upper() if rest == "^^" else text.lower()
    if rest in ("^", ","):
        return (text[:1].upper() if rest == "^" else text[:1].lower()) + text[1:]
    double = rest[:2] in ("##", "%%", "//")
    operand = _operand(rest[2 if double else 1 :], shell)
    if not operand.certain:
        return None
    if rest[0] == "/":
        old, _, new = operand.text.partition("/")
        return None if not old or _has_pattern(old) else text.replace(old, new, -1 if double else 1)
    if rest[0] == "#":
        ends = range(len(text), -1, -1) if double else range(len(text) + 1)
        return next((text[i:] for i in ends if fnmatch.fnmatchcase(text[:i], operand.text)), text)
    if rest[0] == "%":
        starts = range(len(text) + 1) if double else range(len(text), -1, -1)
        return next((text[:i] for i in starts if fnmatch.fnmatchcase(text[i:], operand.text)), text)
    return None


def _operand(raw: str, shell: Shell) -> Word:
    words = _expanded(raw, shell, split=False)
    return words[0] if words else Word("")


def _run_operand(raw: str, shell: Shell) -> None:
    if "$(" in raw or "`" in raw or "$" in raw:
        _expanded(raw, shell, split=False)


def _braces(raw: str, steps: list[int]) -> Iterator[str]:
    """``raw`` once for each alternative of its first ``{a,b}`` or ``{1..3}``, and so on with the rest; ``raw`` alone if it has none."""
    found = _first_brace(raw, steps)
    if found is None:
        yield raw
        return
    begin, end, alternatives = found
    count = 0
    for middle in alternatives:
        for rest in _braces(f"{middle}{raw[end:]}", steps):
            yield raw[:begin] + rest
            count += 1
            if count > MAX_WORDS:
                return


def _first_brace(raw: str, steps: list[int]) -> tuple[int, int, list[str]] | None:
    lexer = Lexer(raw, steps=steps)
    i = 0
    while i < len(raw):
        char = raw[i]
        if (end := _skipped(raw, i, lexer)) > i:
            i = end
        elif char == "{" and (closed := _alternatives(raw, i, lexer)):
            return i, closed[0], closed[1]
        else:
            i += 1
    return None


def _skipped(raw: str, i: int, lexer: Lexer) -> int:
    """The end of a quote or an expansion at ``i``, in which no brace counts; ``i`` itself if none starts there."""
    char, after = raw[i], raw[i + 1 : i + 2]
    if char in "'\"\\`" or (char == "$" and after and after in "{('\""):
        return lexer.quote_end(i)
    return lexer.commands_end(i + 2) if char in "<>" and after == "(" else i


def _alternatives(raw: str, begin: int, lexer: Lexer) -> tuple[int, list[str]] | None:
    """Where the brace at ``begin`` closes and what it holds, if that makes it an expansion."""
    depth, i, last, parts = 0, begin, begin + 1, []
    while i < len(raw):
        char = raw[i]
        if (end := _skipped(raw, i, lexer)) > i:
            i = end
            continue
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if not depth:
                parts.append(raw[last:i])
                break
        elif char == "," and depth == 1:
            parts.append(raw[last:i])
            last = i + 1
        i += 1
        lexer.step()
    else:
        return None
    if len(parts) > 1:
        return i + 1, parts
    found = _RANGE.fullmatch(parts[0])
    values = _range(found[1], found[2], int(found[3] or 1)) if found else None
    return (i + 1, values) if values else None


def _range(first: str, last: str, step: int) -> list[str] | None:
    letters = not (first.lstrip("-").isdigit() or last.lstrip("-").isdigit())
    if not letters and not (first.lstrip("-").isdigit() and last.lstrip("-").isdigit()):
        return None
    low, high = (ord(first), ord(last)) if letters else (int(first), int(last))
    step = abs(step) or 1
    numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    width = (
        max(len(first), len(last))
        if not letters and (first.startswith("0") or last.startswith("0")) and len(first + last) > 2
        else 0
    )
    return [chr(number) if letters else str(number).zfill(width) for number in numbers[: MAX_WORDS + 1]]
