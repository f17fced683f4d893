"""What one-liners and heredocs of interpreters do to files, and which commands they start.

Python is read by its own grammar. The others are read by the names of the calls that remove and write files, with the quotes and comments
taken into account: text that is only printed calls nothing.
"""

from __future__ import annotations

import bisect
import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from safety.policy.effects_python import python_effects
from safety.policy.effects_windows import windows_effects
from safety.policy.path_effects import leak, removal, writing
from safety.policy.patterns import Pattern
from safety.policy.scene import Scene, home_path
from safety.policy.shell import Code, Word, danger_words
from safety.policy.sql import sql_effects
from safety.policy.values import Effect


def code_effects(code: Code, scene: Scene) -> Iterator[Effect]:
    """Every effect of a piece of code. One that is very long is only looked through for danger words."""
    language = code.language
    code = replace(code, text=_SPACES.sub("\n", _BLANKS.sub(" ", code.text)) if language != "python" else code.text)
    if len(code.text) > (_MAX_PYTHON if language == "python" else _MAX_CODE):
        if words := tuple(danger_words(code.text)):
            yield Effect("unknown.run", f"a long program with the words {', '.join(words[:5])}", "ask")
        return
    if language == "python":
        yield from python_effects(code, scene)
    elif language in ("powershell", "cmd"):
        yield from windows_effects(code, scene)
    elif language == "sql":
        yield from sql_effects(code.text)
    elif language in _LANGUAGES:
        yield from _by_names(code, scene, _LANGUAGES[language])
    elif language == "applescript":
        for found in re.finditer(r'do shell script\s+"((?:[^"\\]|\\.)*)"', code.text):
            yield from scene.again(found[1].replace('\\"', '"'), code.cwd)
        if re.search(r'(?i)tell application "Finder".*\b(?:delete|empty)', code.text, re.S):
            yield Effect("path.remove", "files, by the Finder", "ask")
    elif language in ("vim", "ed", "ex", "emacs"):
        for found in re.finditer(r"(?:^|[|:\s])!\s*(\S.*)|system\(\s*[\"'](.+?)[\"']|shell-command\s+\"(.+?)\"", code.text):
            yield from scene.again(found[1] or found[2] or found[3], code.cwd)
        for found in re.finditer(r"\bdelete\(\s*[\"']([^\"']+)[\"']|\(delete-(?:file|directory)\s+\"([^\"]+)\"", code.text):
            yield from removal(scene.target(Word(home_path(found[1] or found[2], scene)), code.cwd), scene)


_MAX_PYTHON = 30_000
_MAX_CODE = 10_000
_MAX_CALLS = 40
_BLANKS = Pattern(r"[ \t\f\v]{2,}")
_SPACES = Pattern(r"\s*\n\s*")


# ---- the others: by the names of calls -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Language:
    """``removes``, ``writes``, ``shells``, ``starts``: patterns of what stands right before the first argument."""

    removes: str
    writes: str
    shells: str
    starts: str
    comment: str
    homes: str = r"(?!)"
    fetch_and_run: str = r"(?!)"
    reads: str = r"(?!)"


_STRING = r"""(?:"(?P<d>(?:[^"\\]|\\.)*)"|'(?P<s>(?:[^'\\]|\\.)*)'|`(?P<b>(?:[^`\\]|\\.)*)`|%q?[({](?P<q>[^)}]*)[)}])"""

_NODE = _Language(
    removes=r"(?:\b(?:fs|fsp|promises|fse|Deno|Bun|\w+)\s*(?:\.\s*promises)?|require\(\s*['\"](?:node:)?(?:fs|fs/promises"
    r"|fs-extra|rimraf|del)['\"]\s*\)(?:\.promises)?)"
    r"\s*\.\s*(?:rmSync|rmdirSync|unlinkSync|rm|rmdir|unlink|removeSync|remove|emptyDirSync|emptyDir|truncateSync|truncate"
    r"|sync)\s*\(\s*"
    r"|\b(?:rimraf|rmSync|unlinkSync|rmdirSync|rimrafSync)(?:\.sync)?\s*\(\s*|\brm\s+(?:-\w+\s+)?(?=['\"])",
    writes=r"\b(?:writeFileSync|writeFile|createWriteStream|writeTextFileSync|writeTextFile|copyFileSync|Bun\.write"
    r"|outputFileSync)\s*\(\s*",
    shells=r"\b(?:execSync|exec|\$)\s*\(?\s*",
    starts=r"\b(?:spawnSync|spawn|execFileSync|execFile|Deno\.run|new\s+Deno\.Command)\s*\(\s*",
    comment=r"//[^\n]*|/\*.*?\*/",
    homes=r"\bos\.homedir\(\)|process\.env\.HOME|require\(['\"](?:node:)?os['\"]\)\.homedir\(\)|Deno\.env\.get\(['\"]HOME['\"]\)",
    fetch_and_run=r"eval\(.*(?:fetch|https?\.get)|fetch\(.*\)\s*\.then\(.*eval|import\(\s*['\"]https?:",
    reads=r"\b(?:readFileSync|readFile|readTextFileSync|readTextFile|createReadStream)\s*\(\s*",
)
_PERL = _Language(
    removes=r"\b(?:unlink|rmtree|remove_tree|rmdir|truncate|pathrmdir|fremove)\b\s*\(?\s*",
    writes=r"\bopen\s*\(?\s*(?:my\s+)?\$?\w+\s*,\s*['\"]\+?>['\"]\s*,\s*",
    shells=r"\b(?:system|exec|qx|readpipe)\b\s*\(?\s*|(?=`)",
    starts=r"\b(?:system|exec)\b\s*\(?\s*",
    comment=r"(?<=[\s;])#[^\n]*",
    homes=r"\$ENV\{['\"]?HOME['\"]?\}|\bhome\(\)|glob\(?\s*['\"]~['\"]\)?",
    fetch_and_run=r"eval\b.*(?:LWP|get\s*\(?['\"]https?:)",
)
_RUBY = _Language(
    removes=r"\b(?:FileUtils\s*\.\s*(?:rm_rf|rm_r|rm_f|rm|remove\w*|rmtree|safe_unlink|remove_dir|remove_entry\w*)|(?:File"
    r"|Dir|IO)\s*\.\s*(?:delete|unlink|rmdir|truncate)"
    r"|Pathname\.new|rm_rf|rm_r|rm_f)\b\s*\(?\s*\[?\s*",
    writes=r"\b(?:File|IO)\s*\.\s*(?:write|binwrite|open)\b\s*\(?\s*",
    shells=r"\b(?:system|exec|spawn|%x|popen|IO\.popen|Open3\.\w+)\s*\(?\s*|(?=`)|%x(?=[({])",
    starts=r"\b(?:system|exec|spawn|Open3\.\w+)\b\s*\(?\s*",
    comment=r"(?:^|(?<=\s))#(?!\{)[^\n]*",
    homes=r"\bDir\.home\b|ENV\[['\"]HOME['\"]\]|File\.expand_path\(['\"]~['\"]\)|ENV\.fetch\(['\"]HOME['\"]\)",
    fetch_and_run=r"eval\b.*(?:URI\.open|open-uri|Net::HTTP|open\(['\"]https?:)",
    reads=r"\b(?:File|IO)\s*\.\s*(?:read|binread|readlines|foreach)\b\s*\(?\s*",
)
_PHP = _Language(
    removes=r"\b(?:unlink|rmdir|ftruncate)\s*\(\s*|\barray_map\s*\(\s*['\"]unlink['\"]\s*,\s*",
    writes=r"\bfile_put_contents\s*\(\s*",
    shells=r"\b(?:system|exec|shell_exec|passthru|popen|proc_open)\s*\(\s*|(?=`)",
    starts=r"(?!)",
    comment=r"//[^\n]*|/\*.*?\*/|(?<=\s)#[^\n]*",
    homes=r"getenv\(['\"]HOME['\"]\)|\$_SERVER\[['\"]HOME['\"]\]",
    fetch_and_run=r"eval\s*\(.*file_get_contents\s*\(\s*['\"]https?:",
    reads=r"\b(?:file_get_contents|readfile|file)\s*\(\s*",
)
_LUA = _Language(
    removes=r"\bos\.remove\s*\(\s*",
    writes=r"(?!)",
    shells=r"\b(?:os\.execute|io\.popen)\s*\(?\s*",
    starts=r"(?!)",
    comment=r"--[^\n]*",
    homes=r"os\.getenv\(['\"]HOME['\"]\)",
)
_AWK = _Language(
    removes=r"(?!)",
    writes=r">\s*(?=\")",
    shells=r"\bsystem\s*\(\s*|(?:\bprint\b[^|;}\n]*)?\|\s*(?=\")"
    r"|(?<=\{)\s*(?=\"[^\"]*\"\s*\|\s*getline)"
    r"|(?<=[;\s])(?=\"[^\"]*\"\s*\|\s*getline)",
    starts=r"(?!)",
    comment=r"#[^\n]*",
)
_R = _Language(
    removes=r"\b(?:unlink|file\.remove|fs::\w*delete)\s*\(\s*(?:c\(\s*)?",
    writes=r"(?!)",
    shells=r"\b(?:system2?"
    r"|shell)\s*\(\s*",
    starts=r"(?!)",
    comment=r"#[^\n]*",
    homes=r"Sys\.getenv\(['\"]HOME['\"]\)|path\.expand\(['\"]~['\"]\)",
)
_JULIA = _Language(
    removes=r"\brm\s*\(\s*", writes=r"(?!)", shells=r"\brun\s*\(\s*", starts=r"(?!)", comment=r"#[^\n]*", homes=r"homedir\(\)"
)
_GROOVY = _Language(
    removes=r"\bnew\s+File\s*\(\s*(?=[^)]*\)\s*\.\s*(?:delete|deleteDir))",
    writes=r"(?!)",
    shells=r"(?=(?:\"[^\"]*\""
    r"|'[^']*')\s*\.\s*execute\s*\()",
    starts=r"(?!)",
    comment=r"//[^\n]*",
)
_LANGUAGES = {
    **dict.fromkeys(("node", "javascript", "deno", "bun", "typescript", "js"), _NODE),
    "perl": _PERL,
    "ruby": _RUBY,
    "php": _PHP,
    "lua": _LUA,
    "awk": _AWK,
    "r": _R,
    "R": _R,
    "julia": _JULIA,
    "groovy": _GROOVY,
    "tcl": _Language(
        removes=r"\bfile\s+delete\s+(?:-force\s+)?(?:--\s+)?",
        writes=r"(?!)",
        shells=r"\bexec\s+",
        starts=r"(?!)",
        comment=r"#[^\n]*",
    ),
}
_SOCKET = Pattern(r"\b(?:socket|TCPSocket|fsockopen|net\.connect|net\.Socket|IO::Socket|inet_aton|TCPClient)\b")
_OWN_SHELL = Pattern(r"(?:/bin/)?(?:ba|z|da|k)?sh -i|/bin/(?:ba|z|da|k)?sh\b|cmd\.exe")
_PATTERN_LITERAL = Pattern(
    r"(?:\b(?:if|unless|and|or|split|grep|when|return)\b|=~|!~|^|[(,;{&|!])\s*/(?:[^/\\\n]|\\.)+/|\b[ms]\{[^}]*\}"
    r"|\bs/[^/\n]*/[^/\n]*/",
    re.MULTILINE,
)
_IN_STRINGS = Pattern(_STRING, re.DOTALL)


def _by_names(code: Code, scene: Scene, language: _Language) -> Iterator[Effect]:
    text, cwd = _uncommented(code.text, language), code.cwd
    outside = _Outside(text)
    for at in outside.ends(language.removes):
        for word in _arguments(text, at, scene, language):
            yield from removal(scene.target(word, cwd), scene)
    for at in outside.ends(language.writes):
        for word in _arguments(text, at, scene, language)[:1]:
            if word.certain and not re.match(r"\s*,\s*['\"][ar]", text[at + len(word.text) + 2 : at + len(word.text) + 12]):
                yield from writing(scene.target(word, cwd), scene)
    for at in outside.ends(language.reads):
        for word in _arguments(text, at, scene, language)[:1]:
            yield from leak(scene.target(word, cwd), scene)
    for at in outside.ends(language.shells):
        yield from _shell_text(text, at, scene, cwd)
    for at in outside.ends(language.starts):
        words = _all_strings(text[at : at + 2000].partition(")")[0])
        if words:
            yield from scene.again(shlex.join(words), cwd)
    if outside.more:
        yield Effect("unknown.run", "a program with more calls than are looked at", "ask")
    if _SOCKET.search(text) and _OWN_SHELL.search(text):
        yield Effect("network.shell", "whoever listens there", "deny")
    if re.search(language.fetch_and_run, text):
        yield from _fetched()
    for found in itertools.islice(re.finditer(r"\b(?:execute|query|exec|run|raw)\s*\(\s*" + _STRING, text), _MAX_CALLS):
        yield from sql_effects(_string(found))


def _fetched() -> Iterator[Effect]:
    yield Effect("network.run", "code fetched from the network", "ask")


class _Outside:
    """Where calls stand outside of strings and pattern literals. ``more``: there were too many of one sort."""

    def __init__(self, text: str) -> None:
        self._text = text
        spans = sorted(
            (found.start(), found.end()) for pattern in (_IN_STRINGS, _PATTERN_LITERAL) for found in pattern.finditer(text)
        )
        self._begins = [begin for begin, _ in spans]
        self._ends = list(itertools.accumulate((end for _, end in spans), max))
        self.more = False

    def ends(self, pattern: str) -> Iterator[int]:
        """Where the arguments of the calls that a pattern names begin."""
        count = 0
        for found in re.finditer(pattern, self._text):
            if self._within(found.start()) and self._text[found.end() : found.end() + 1] != "`":
                continue
            count += 1
            if count > _MAX_CALLS:
                self.more = True
                return
            yield found.end()

    def _within(self, at: int) -> bool:
        last = bisect.bisect_left(self._begins, at) - 1
        return last >= 0 and at < self._ends[last] - 1


def _uncommented(text: str, language: _Language) -> str:
    pattern = re.compile(f"{_STRING}|(?P<comment>{language.comment})", re.DOTALL | re.MULTILINE)
    return pattern.sub(lambda found: " " if found["comment"] is not None else found[0], text)


def _string(found: re.Match[str]) -> str:
    return next((value for value in (found["d"], found["s"], found["b"], found["q"]) if value is not None), "")


def _all_strings(text: str) -> list[str]:
    return [_string(found) for found in re.finditer(_STRING, text, re.DOTALL)]


def _arguments(text: str, at: int, scene: Scene, language: _Language) -> list[Word]:
    """The path arguments from ``at`` on: strings, the home, or something worked out."""
    rest = text[at : at + 2000]
    found = re.match(_STRING, rest, re.DOTALL)
    if found:
        first = _string(found)
        computed = re.match(r"\s*[+.]\s*\S", rest[found.end() :]) or "${" in first or "#{" in first
        if re.search(language.homes, first):
            return [Word(scene.facts.home)]
        words = [Word(home_path(first, scene), not computed)]
        tail = rest[found.end() :]
        while (more := re.match(r"\s*,\s*" + _STRING, tail, re.DOTALL)) is not None:
            words.append(Word(home_path(_string(more), scene)))
            tail = tail[more.end() :]
        return words
    home = re.match(language.homes, rest)
    if home:
        joined = re.match(r"\s*(?:\+|\.)\s*" + _STRING, rest[home.end() :])
        return [Word(scene.facts.home + ("/" + _string(joined).lstrip("/") if joined else ""))]
    pattern = re.match(r"(?:glob\s*\(?|Dir(?:\.glob\s*\(|\[)|<)\s*(?:" + _STRING + r"|([^>\s'\"]+)>)", rest)
    if pattern:
        matched = re.sub(language.homes, lambda _: scene.facts.home, pattern[5] or _string(pattern))
        return [Word(home_path(matched, scene), True, True)]
    if re.match(r"(?:path\.)?(?:join|resolve)\s*\(", rest) and re.search(language.homes, rest.partition(")")[0] + ")"):
        return [Word(scene.facts.home + "/" + "/".join(_all_strings(rest.partition("\n")[0])))]
    if re.match(r"\s*(?:\)|$|;)", rest):
        return []
    return [Word("a path that the program works out", False)]


def _shell_text(text: str, at: int, scene: Scene, cwd: str | None) -> Iterator[Effect]:
    rest = text[at : at + 4000]
    found = re.match(_STRING, rest, re.DOTALL)
    if found is None:
        return
    first = _string(found)
    more = [first]
    tail = rest[found.end() :]
    while (next_ := re.match(r"\s*,\s*" + _STRING, tail, re.DOTALL)) is not None:
        more.append(_string(next_))
        tail = tail[next_.end() :]
    unescaped = re.sub(r"\\(.)", r"\1", first)
    yield from scene.again(unescaped if len(more) == 1 else shlex.join(more), cwd)
