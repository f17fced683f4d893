"""Commands that run another once or more for what they find or are fed: xargs, parallel, find, fd."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from safety.policy.calls import EMPTY, NETWORK, NO_FEED, Call, Feed
from safety.policy.expand import Output
from safety.policy.gitwords import quoted
from safety.policy.options import command_at, read_options
from safety.policy.words import SHELLS, Command, Word, program_name

if TYPE_CHECKING:
    from safety.policy.process import Shell


def _xargs(shell: Shell, name: str, call: Call) -> Output | None:
    """The command, with what is fed to it behind it or in its holes."""
    longs = ("--max-args", "--max-procs", "--delimiter", "--arg-file", "--max-lines", "--max-chars", "--process-slot-var")
    words = call.words
    at = command_at(words, "adEILnPsJRS", longs)
    options = read_options(words[1:at], "adEILnPsJRS", tuple(f"{each}=" for each in longs) + ("--replace=?", "--null"))
    hole = options.value("-I", "-J")
    mark = hole.text if hole else "{}" if options.has("-i", "--replace") else ""
    inner = shell.fork(name)
    inner.files = shell.files
    command = words[at:] or (Word("echo"),)
    feed = call.feed
    fresh = Feed(None, "", feed.piped_from, feed.fed_by)
    items = _items(feed.text, options.has("-0", "--null"), bool(mark)) if not options.has("-a", "--arg-file") else None
    download = feed.by in NETWORK and program_name(command[0].text) in SHELLS
    if mark:
        command = tuple(
            dataclasses.replace(word, certain=False) if mark in word.text and items is None else word for word in command
        )
    if items is None or len(items) > 60:
        return inner.follow(call._replace(words=command, feed=fresh, appended=True, runs_download=download))
    if not mark:
        words = (*command, *(Word(item) for item in items))
        return inner.follow(call._replace(words=words, feed=fresh, runs_download=download))
    output = EMPTY
    for item in items[:16]:
        filled = tuple(dataclasses.replace(word, text=word.text.replace(mark, item)) for word in command)
        output = inner.follow(call._replace(words=filled, feed=fresh, appended=len(items) > 16, runs_download=download))
    return output


def _items(text: str | None, null: bool, lines: bool) -> list[str] | None:
    if text is None:
        return None
    if null:
        return [item for item in text.split("\0") if item]
    if "'" in text or '"' in text or "\\" in text:
        return None if not lines else [line.strip() for line in text.splitlines() if line.strip()]
    return [line.strip() for line in text.splitlines() if line.strip()] if lines else text.split()


_HOLE = re.compile(r"\{[#%./0-9]*\}")


def _parallel(shell: Shell, name: str, call: Call) -> Output | None:
    """GNU parallel: a command whose holes are filled from behind ``:::``, or from its input."""
    words = call.words
    marks = [i for i, word in enumerate(words) if word.text in (":::", ":::+", "::::")]
    head = words[: marks[0]] if marks else words
    at = command_at(
        head, "jNnLISCadDErsMX", ("--jobs", "--delay", "--timeout", "--colsep", "--joblog", "--results", "--tmpdir", "--sshlogin")
    )
    command = head[at:]
    inner = shell.fork(name)
    inner.files = shell.files
    text = command[0].text if len(command) == 1 else quoted(command)
    if not marks or words[marks[0]].text == "::::":
        if not command:
            return inner.run_text(call.feed.text) if call.feed.text is not None else None
        inner.feed = Feed(None, "", call.feed.piped_from, call.feed.fed_by)
        return inner.run_appended(text)
    items = words[marks[0] + 1 :]
    output = EMPTY
    for item in items[:16]:
        if item.text in (":::", ":::+"):
            break
        value = quoted((item,)) if command else item.text
        output = inner.run_text(value.join(_HOLE.split(text)) if _HOLE.search(text) else f"{text} {value}")
    return output


def _find(shell: Shell, name: str, call: Call) -> Output | None:
    """``find`` itself, then each command that it runs."""
    words = call.words
    found = shell.emit(call)
    i = 1
    while i < len(words):
        text = words[i].text
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = i + 1
            while end < len(words) and not (words[end].text == ";" or (words[end].text == "+" and words[end - 1].text == "{}")):
                end += 1
            _run_on_found(shell, f"{name} {text}", call, words[i + 1 : end], found)
            i = end
        i += 1
    return Output(None, name)


def _fd(shell: Shell, name: str, call: Call) -> Output | None:
    """``fd -x command``, ``fd -X command``"""
    words = call.words
    at = next((i for i, word in enumerate(words) if word.text in ("-x", "-X", "--exec", "--exec-batch")), 0)
    if not at:
        return None
    found = shell.emit(call)
    command = words[at + 1 :]
    if not any("{" in word.text for word in command):
        command = (*command, Word("{}", False))
    _run_on_found(shell, f"{name} {words[at].text}", call, command, found)
    return Output(None, name)


def _run_on_found(shell: Shell, via: str, call: Call, command: tuple[Word, ...], found: Command) -> None:
    if not command:
        return
    inner = shell.fork(via)
    if "dir" in via:
        inner.cwd = None
    inner.feed = NO_FEED
    holed = tuple(Word(word.text, False, word.glob, word.made_by) if "{}" in word.text else word for word in command)
    more = any("{}" in word.text for word in command)
    inner.execute(Call(holed, (), call.env, NO_FEED, appended=more, fed_by=found))


BATCHES: Mapping[str, Callable[[Shell, str, Call], Output | None]] = {
    **dict.fromkeys(("xargs", "gxargs"), _xargs),
    "parallel": _parallel,
    **dict.fromkeys(("find", "gfind"), _find),
    **dict.fromkeys(("fd", "fdfind"), _fd),
}
