"""Shell text handed to a shell: ``bash -c text``, a heredoc or a pipe into one, ``eval``, ``su -c``, ``watch``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from safety.policy.calls import EMPTY, NETWORK, NO_FEED, Call
from safety.policy.expand import Output
from safety.policy.options import command_at, read_options
from safety.policy.words import SHELLS, Word

if TYPE_CHECKING:
    from safety.policy.process import Shell


Handler = Callable[["Shell", str, Call], Output | None]

_GROUP = re.compile(r"[-+][a-zA-Z]+")


def _a_shell(shell: Shell, name: str, call: Call) -> Output | None:
    """``bash -c text``, ``bash script``, or a shell that reads commands from its input."""
    words = call.words
    i, command, reads = 1, False, False
    while i < len(words):
        text = words[i].text
        if text in ("--rcfile", "--init-file"):
            i += 2
            continue
        if text in ("-o", "+o", "-O", "+O"):
            i += 2
            continue
        if text == "--" or text == "-":
            i += 1
            break
        if text.startswith("--"):
            command |= text == "--command"
        elif _GROUP.fullmatch(text):
            command |= text[0] == "-" and "c" in text
            reads |= "s" in text
            if text[-1] in "oO":
                i += 1
        else:
            break
        i += 1
    rest = words[i:]
    if command and rest:
        if rest[0].made_by:
            shell.emit(call, runs_download=rest[0].made_by in NETWORK)
            return Output(None, rest[0].made_by)
        return shell.payload(f"{name} -c", rest[0], call, positional=rest[2:])
    if rest and not reads:
        return _script(shell, name, rest, call)
    feed = call.feed
    if feed.by in NETWORK:
        shell.emit(call._replace(runs_download=True))
        return Output(None, feed.by)
    if feed.text is not None:
        via = feed.source if feed.source in ("heredoc", "file") else "pipe"
        inner = shell.fork(name)
        return inner.payload(via, Word(feed.text), call._replace(feed=NO_FEED), positional=rest)
    if feed.draft:
        return shell.fork(name).payload("heredoc", Word(feed.draft), call._replace(feed=NO_FEED), positional=rest)
    return None


def _script(shell: Shell, name: str, rest: tuple[Word, ...], call: Call) -> Output | None:
    """A script whose writing was seen is followed; one from the network is said."""
    word = rest[0]
    if shell.is_download(word):
        shell.emit(call._replace(runs_download=True))
        return Output(None, "curl")
    held = shell.held(word)
    if word.text in ("/dev/stdin", "/proc/self/fd/0"):
        return _a_shell(shell, name, call._replace(words=call.words[:1]))
    if held is not None and held.text is not None:
        return shell.payload(f"{name} {word.text}", Word(held.text), call, positional=rest[1:])
    return None


def _eval(shell: Shell, name: str, call: Call) -> Output | None:
    words = call.words[1:]
    if any(word.made_by for word in words):
        shell.emit(call, runs_download=any(word.made_by in NETWORK for word in words))
        return Output()
    before, shell.via = shell.via, (*shell.via, "eval")
    output = shell.run_text(" ".join(word.text for word in words))
    shell.via = before
    return output


def _source(shell: Shell, name: str, call: Call) -> Output | None:
    if len(call.words) < 2:
        return None
    word = call.words[1]
    if shell.is_download(word):
        shell.emit(call._replace(runs_download=True))
        return Output()
    held = shell.held(word)
    text = held.text if held else call.feed.text if word.text in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0") else None
    if text is None:
        return None
    before, shell.via = shell.via, (*shell.via, f"source {word.text}")
    output = shell.run_text(text)
    shell.via = before
    return output


def _trap(shell: Shell, name: str, call: Call) -> Output | None:
    words = [word for word in call.words[1:] if word.text != "--"]
    if len(words) < 2 or words[0].text.startswith("-"):
        return None
    shell.run.traps.append((shell, words[0]))
    return EMPTY


def _option_text(
    values: str, options: tuple[str, ...], longs: tuple[str, ...], *, joined: bool = False, apart: bool = False
) -> Handler:
    """A wrapper that takes shell text as an option's value (``su -c text``).

    ``joined``: its operands together are text too (``watch a b``); ``apart``: each of them is.
    """

    def follow(shell: Shell, name: str, call: Call) -> Output | None:
        given = read_options(call.words[1:], values, longs, mixed=not joined)
        value = given.value(*options) if options else None
        if value is not None:
            return shell.payload(f"{name} {options[0]}", value, call)
        if joined and given.operands:
            return shell.payload(name, Word(" ".join(word.text for word in given.operands)), call)
        if apart and given.operands:
            for word in given.operands:
                shell.payload(name, word, call)
            return Output(None, name)
        if call.feed.text is not None and name in ("at", "batch", "su"):
            return shell.payload(name, Word(call.feed.text), call._replace(feed=NO_FEED))
        return None

    return follow


def _flock(shell: Shell, name: str, call: Call) -> Output | None:
    words = call.words
    at = command_at(words, "Ew", ("--timeout", "--wait", "--conflict-exit-code")) + 1
    rest = words[at:]
    if rest and rest[0].text in ("-c", "--command"):
        return shell.payload("flock -c", rest[1], call) if len(rest) > 1 else None
    if words[1:2] and words[1].text in ("-c",):
        return None
    inner = shell.fork(name)
    inner.files = shell.files
    return inner.follow(call._replace(words=rest)) if rest else None


PAYLOADS: Mapping[str, Handler] = {
    **dict.fromkeys(SHELLS, _a_shell),
    **dict.fromkeys((".", "source"), _source),
    "eval": _eval,
    "trap": _trap,
    "flock": _flock,
    "su": _option_text("cgGsw", ("-c", "--command", "--session-command"), ("--command=", "--session-command=", "--shell=", "--group=")),
    "sg": _option_text("c", ("-c",), ()),
    "script": _option_text("cEIOBTtm", ("-c", "--command"), ("--command=", "--log-out=", "--log-in=", "--log-io=", "--log-timing=")),
    "watch": _option_text("nq", (), ("--interval=", "--differences=?", "--equexit="), joined=True),
    "hyperfine": _option_text("wmMrspcCLDSniu", ("-p", "--prepare"), ("--prepare=", "--setup=", "--cleanup=", "--warmup=", "--runs="),
                              apart=True),
    "nix-shell": _option_text("pAIE", ("--run", "--command"), ("--run=", "--command=", "--packages=")),
    "at": _option_text("fqtv", (), ()),
    "batch": _option_text("", (), ()),
}  # fmt: skip
