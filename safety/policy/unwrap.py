"""What runs a command given as words, text or code: the wrapper comes off, what it runs is followed ([guard] 3, "unwrap table")."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from safety.policy.builtins import BUILTINS, DECLARING, declare
from safety.policy.calls import EMPTY, NETWORK, NO_FEED, Call, Feed
from safety.policy.containers import CONTAINERS
from safety.policy.expand import Output
from safety.policy.gitwords import VERBS, commands_in, join, quoted, read_git
from safety.policy.options import canonical, command_at, read_options
from safety.policy.words import Command, Word, program_name

if TYPE_CHECKING:
    from safety.policy.shell import Shell

__all__ = ["DECLARING", "declare", "handler"]

Handler = Callable[["Shell", str, Call], Output | None]


class Prefix(NamedTuple):
    """A wrapper of the form ``name [options] [operands] command``.

    ``values``: short options that take a value; ``longs``: long ones; ``folder``: those naming the folder that the command runs in.
    """

    values: str = ""
    longs: str = ""
    operands: int = 0
    assignments: bool = False
    folder: str = ""


_PREFIXES: Mapping[str, Prefix] = {
    "sudo": Prefix("ACDghpRrtTUu", "--user --group --host --prompt --chdir --chroot --role --type --close-from --command-timeout "
                   "--other-user --preserve-env-list", 0, True, "-D --chdir"),
    "doas": Prefix("Cu"),
    "nohup": Prefix(), "setsid": Prefix(), "time": Prefix("fo", "--format --output"), "nice": Prefix("n", "--adjustment"),
    "ionice": Prefix("cnpPu", "--class --classdata --pid"), "timeout": Prefix("ks", "--kill-after --signal", 1),
    "gtimeout": Prefix("ks", "--kill-after --signal", 1),
    "stdbuf": Prefix("ioe", "--input --output --error"), "strace": Prefix("abeEIoOpPsSuUX", "--output --trace"),
    "ltrace": Prefix("aeAFlnopsuxD"), "taskset": Prefix("", "", 1), "chrt": Prefix("TPD", "", 1), "numactl": Prefix("CNmpiP"),
    "prlimit": Prefix(), "unshare": Prefix("SGR"), "setpriv": Prefix(), "firejail": Prefix(), "fakeroot": Prefix("lfisub"),
    "faketime": Prefix("", "", 1), "caffeinate": Prefix("tw"), "unbuffer": Prefix(), "chronic": Prefix(), "ifne": Prefix(),
    "cpulimit": Prefix("lpe"), "systemd-run": Prefix("pGuMEt", "--unit --property --slice --setenv --uid --gid --description"),
    "systemd-inhibit": Prefix(), "dbus-run-session": Prefix(), "xvfb-run": Prefix("neswfp"), "pkexec": Prefix("", "--user"),
    "runuser": Prefix("ugG", "--user"), "gosu": Prefix("", "", 1), "su-exec": Prefix("", "", 1), "setuidgid": Prefix("", "", 1),
    "tini": Prefix("peg"), "dumb-init": Prefix("r"), "torsocks": Prefix(), "torify": Prefix(), "proxychains": Prefix("f"),
    "proxychains4": Prefix("f"), "rlwrap": Prefix("CHPSfpiabcw"), "valgrind": Prefix(), "setarch": Prefix("", "", 1),
    "linux32": Prefix(), "linux64": Prefix(), "exec": Prefix("a"), "command": Prefix(), "builtin": Prefix(), "noglob": Prefix(),
    "nocorrect": Prefix(), "coproc": Prefix(), "busybox": Prefix(), "toybox": Prefix(), "npx": Prefix("p", "--package --prefix"),
    "bunx": Prefix("", "--package"), "uvx": Prefix("p", "--from --with --python"), "dotenv": Prefix("fe"),
    "ssh-agent": Prefix("aEPt"), "aws-vault": Prefix("", "", 2), "doppler": Prefix("", "", 1), "watchexec": Prefix("wefiEsod"),
    "entr": Prefix(), "xdotool": Prefix(), "chroot": Prefix("", "--userspec --groups", 1), "nsenter": Prefix("tSGrw"),
    "proot": Prefix("rbwq"), "retry": Prefix("nd"), "env": Prefix("uCSP", "--unset --chdir --split-string", 0, True, "-C --chdir"),
}  # fmt: skip
_IN_PLACE = frozenset("command builtin exec noglob nocorrect time".split())
# Wrappers whose command stands behind a verb of theirs.
_SUBCOMMANDS: Mapping[str, Mapping[str, Prefix]] = {
    "uv": {"run": Prefix("pw", "--with --python --extra --group --env-file --directory --project --with-requirements --package",
                         folder="--directory"), "tool run": Prefix("p", "--from --with --python")},
    "poetry": {"run": Prefix()}, "pipenv": {"run": Prefix()}, "pdm": {"run": Prefix("p")}, "hatch": {"run": Prefix()},
    "rye": {"run": Prefix()}, "pipx": {"run": Prefix("", "--spec --python")}, "pixi": {"run": Prefix("e")},
    "conda": {"run": Prefix("np", "--name --prefix --cwd", folder="--cwd")}, "mamba": {"run": Prefix("np", "--name --prefix")},
    "micromamba": {"run": Prefix("np", "--name --prefix")}, "mise": {"exec": Prefix("C"), "x": Prefix("C")},
    "rtx": {"exec": Prefix()}, "asdf": {"exec": Prefix()}, "rbenv": {"exec": Prefix()}, "pyenv": {"exec": Prefix()},
    "nodenv": {"exec": Prefix()}, "bundle": {"exec": Prefix()}, "direnv": {"exec": Prefix("", "", 1)}, "op": {"run": Prefix()},
    "npm": {"exec": Prefix("p", "--package"), "x": Prefix("p", "--package")}, "pnpm": {"exec": Prefix(), "dlx": Prefix()},
    "yarn": {"exec": Prefix(), "dlx": Prefix("p")}, "bun": {"x": Prefix()}, "perf": {"stat": Prefix("eorp"), "record": Prefix("eocFp")},
    "nix": {"run": Prefix()}, "devbox": {"run": Prefix()}, "infisical": {"run": Prefix()}, "railway": {"run": Prefix()},
    "dbus": {"run": Prefix()}, "xcrun": {"run": Prefix()}, "rustup": {"run": Prefix("", "", 1)},
}  # fmt: skip

_SHELLS = frozenset("sh bash dash zsh ksh ksh93 mksh ash fish rbash yash".split())
_LANGUAGES = {
    "python": "python", "pypy": "python", "ipython": "python", "node": "node", "nodejs": "node", "deno": "node", "bun": "node",
    "perl": "perl", "ruby": "ruby", "irb": "ruby", "php": "php", "lua": "lua", "luajit": "lua", "Rscript": "r", "R": "r",
    "julia": "julia", "osascript": "applescript", "tclsh": "tcl", "expect": "tcl", "elixir": "elixir", "groovy": "groovy",
    "tsx": "node", "ts-node": "node",
    "psql": "sql", "mysql": "sql", "mariadb": "sql", "sqlite3": "sql", "sqlite": "sql", "duckdb": "sql", "sqlcmd": "sql",
    "cockroach": "sql", "clickhouse-client": "sql", "mongosh": "mongo", "mongo": "mongo", "cqlsh": "sql", "usql": "sql",
}  # fmt: skip
_CODE_OPTIONS = {
    "python": ("c", "WXm", ()), "node": ("ep", "rC", ("--eval=", "--print=", "--require=", "--import=")),
    "perl": ("eE", "IMmxF", ()), "ruby": ("e", "IrCEK", ()), "php": ("rBRE", "cdfgStz", ("--run=",)), "lua": ("e", "l", ()),
    "r": ("e", "", ()), "julia": ("eE", "LpJt", ("--eval=",)), "applescript": ("e", "ls", ()), "tcl": ("c", "fb", ()),
    "elixir": ("e", "rS", ("--eval=",)), "groovy": ("e", "", ()),
    "sql": ("cqeQ", "dhUpPDuSLnvFRTfo", ("--command=", "--execute=", "--query=", "--host=", "--user=", "--database=", "--dbname=",
                                        "--username=", "--port=", "--file=", "--cmd=")),
    "mongo": ("", "upf", ("--eval=", "--host=", "--port=", "--username=", "--password=")),
}  # fmt: skip
_CODE_LONGS = frozenset("--eval --print --run --command --execute --query --cmd".split())
_VERSIONED = re.compile(r"(python|pypy|perl|ruby|lua|node|php|tclsh|ksh|zsh|bash)[\d.]+t?")


def handler(name: str) -> Handler | None:
    """What follows a command of this name; None for one that runs nothing else that we know of."""
    found = _HANDLERS.get(name)
    if found is None and name[-1:].isdigit() and (plain := _VERSIONED.fullmatch(name)):
        return _HANDLERS.get(plain[1])
    return found


# -- a command as words ------------------------------------------------------------------------------------------------------------


def _prefix(shell: Shell, name: str, call: Call) -> Output | None:
    return _behind(shell, name, call, _PREFIXES[name], 1)


def _subcommand(shell: Shell, name: str, call: Call) -> Output | None:
    """``uv [options] run [options] command``"""
    words, table = call.words, _SUBCOMMANDS[name]
    at = next((i for i, word in enumerate(words[1:5], 1) if word.text in table), 0)
    if at:
        return _behind(shell, f"{name} {words[at].text}", call, table[words[at].text], at + 1)
    if name == "uv" and [word.text for word in words[1:3]] == ["tool", "run"]:
        return _behind(shell, "uv tool run", call, table["tool run"], 3)
    return None


def _behind(shell: Shell, via: str, call: Call, prefix: Prefix, begin: int) -> Output | None:
    """Follow the command behind a wrapper's options. None: there is none."""
    words = call.words
    if via == "command" and any(word.text in ("-v", "-V", "-pv", "-pV") for word in words[1:2]):
        return None
    at = command_at(words, prefix.values, prefix.longs.split(), begin)
    at = max(at + prefix.operands if words[at - 1].text != "--" or prefix.operands else at, begin)
    env = call.env
    if via == "env":
        return _env(shell, call)
    while prefix.assignments and at < len(words) and "=" in words[at].text and not words[at].text.startswith(("=", "-")):
        key, _, value = words[at].text.partition("=")
        env = {**env, key: value if words[at].certain else None}
        at += 1
    if at >= len(words):
        given = {word.text for word in words[1:]}
        if via == "sudo" and given & {"-s", "-i", "--shell", "--login", "su"} and call.feed.source:
            return _follow(shell.fork(via), call._replace(words=(Word("sh"),)))
        return None
    inner = shell if via in _IN_PLACE else shell.fork(via)
    if inner is not shell:
        inner.files = shell.files
    if prefix.folder:
        _move(inner, words[begin:at], prefix)
    if via == "chroot":
        inner.cwd, inner.remote = None, True
    if via == "npx" and any(word.text in ("-c", "--call") for word in words[1:at]):
        return inner.run_text(words[at].text)
    return _follow(inner, call._replace(words=words[at:], env=env, plain=via in ("command", "builtin")))


def _follow(shell: Shell, call: Call) -> Output:
    before, shell.feed = shell.feed, call.feed
    output = shell.execute(call)
    shell.feed = before
    return output


def _move(shell: Shell, options: tuple[Word, ...], prefix: Prefix) -> None:
    """Count in ``-C folder``."""
    given = read_options(options, prefix.values, tuple(f"{name}=" for name in prefix.longs.split()))
    for name in prefix.folder.split():
        if value := given.value(name):
            shell.cwd = join(shell.cwd, value.text) if value.certain else None


def _env(shell: Shell, call: Call) -> Output | None:
    """``env``: options and assignments in front of a command, or all of it in one string (``-S``)."""
    words, env = list(call.words), dict(call.env)
    inner = shell.fork("env")
    inner.files = shell.files
    i = 1
    while i < len(words):
        text = words[i].text
        name, equals, glued = text.partition("=") if text.startswith("--") else (text[:2], "", text[2:])
        if text == "--":
            i += 1
            break
        if text.startswith("-") and name.startswith("--"):
            name = canonical(name, ("--unset", "--chdir", "--split-string", "--ignore-environment", "--null"))
        if name in ("-u", "-C", "-S", "-P", "--unset", "--chdir", "--split-string"):
            if not (glued or equals):
                i += 1
            value = (
                Word(glued, words[i].certain)
                if (glued or equals) and i < len(words)
                else words[i]
                if i < len(words)
                else Word("")
            )
            if name in ("-C", "--chdir"):
                inner.cwd = join(inner.cwd, value.text) if value.certain else None
            elif name in ("-S", "--split-string"):
                return inner.run_text(" ".join((value.text, quoted(words[i + 1 :]))))
        elif text.startswith("-") and text != "-":
            if "S" in text and not text.startswith("--"):
                rest = text.partition("S")[2]
                return inner.run_text(" ".join((rest, quoted(words[i + 1 :]))))
        elif "=" in text and not text.startswith("="):
            key, _, setting = text.partition("=")
            env[key] = setting if words[i].certain else None
        elif text != "-":
            break
        i += 1
    if i >= len(words):
        return None
    return _follow(inner, call._replace(words=tuple(words[i:]), env=env))


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
    download = feed.by in NETWORK and program_name(command[0].text) in _SHELLS
    if items is None or len(items) > 60:
        return _follow(inner, call._replace(words=command, feed=fresh, appended=True, runs_download=download))
    if not mark:
        return _follow(
            inner, call._replace(words=(*command, *(Word(item) for item in items)), feed=fresh, runs_download=download)
        )
    output = EMPTY
    for item in items[:16]:
        filled = tuple(dataclasses.replace(word, text=word.text.replace(mark, item)) for word in command)
        output = _follow(inner, call._replace(words=filled, feed=fresh, appended=len(items) > 16, runs_download=download))
    return output


def _items(text: str | None, null: bool, lines: bool) -> list[str] | None:
    if text is None:
        return None
    if null:
        return [item for item in text.split("\0") if item]
    if "'" in text or '"' in text or "\\" in text:
        return None if not lines else [line.strip() for line in text.splitlines() if line.strip()]
    return [line.strip() for line in text.splitlines() if line.strip()] if lines else text.split()


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
        return _appended(inner, text)
    items = words[marks[0] + 1 :]
    output = EMPTY
    for item in items[:16]:
        if item.text in (":::", ":::+"):
            break
        value = quoted((item,)) if command else item.text
        filled = re.sub(r"\{[#%./0-9]*\}", lambda _, value=value: value, text) if "{" in text else f"{text} {value}"
        output = inner.run_text(filled)
    return output


def _appended(shell: Shell, text: str) -> Output:
    """Run ``text`` with words to come that nobody knows."""
    first = len(shell.run.commands)
    output = shell.run_text(text)
    shell.run.commands[first:] = [_with_more(command) for command in shell.run.commands[first:]]
    return output


def _with_more(command: Command) -> Command:
    return dataclasses.replace(command, appended=True)


def _find(shell: Shell, name: str, call: Call) -> Output | None:
    """``find`` itself, then each command that it runs."""
    words = call.words
    found = shell.emit(call)
    i = 1
    while i < len(words):
        text = words[i].text
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((j for j in range(i + 1, len(words)) if words[j].text in (";", "+") and (words[j].text == ";" or words[j - 1].text == "{}")),
                       len(words))  # fmt: skip
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


# -- a command as text -------------------------------------------------------------------------------------------------------------


def _shell_text(
    shell: Shell, via: str, word: Word, call: Call, *, remote: bool = False, positional: tuple[Word, ...] | None = None
) -> Output:
    inner = shell.fork(via)
    inner.files = shell.files
    inner.feed = call.feed
    inner.functions, inner.aliases = {}, {}
    inner.positional = positional
    keep = {**shell.exported, **call.env}
    inner.exported = dict(keep)
    for name, value in keep.items():
        inner.variables[name] = (Word(value),) if value is not None else None
    if remote:
        inner.remote, inner.cwd, inner.files, inner.base = True, None, {}, {**shell.base, "HOME": "", "TOP": ""}
        inner.variables, inner.exported = {}, {}
    return inner.run_text(word.text)


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
        download = any(word.made_by in NETWORK for word in rest[:1])
        if call.appended:
            inner = shell.fork(f"{name} -c")
            inner.feed = call.feed
            return _appended(inner, rest[0].text)
        if not rest[0].certain and download:
            shell.emit(call._replace(runs_download=True))
        return _shell_text(shell, f"{name} -c", rest[0], call, positional=rest[2:])
    if rest and not reads:
        return _script(shell, name, rest, call)
    feed = call.feed
    if feed.by in NETWORK:
        shell.emit(call._replace(runs_download=True))
        return Output(None, feed.by)
    if feed.text is not None:
        via = feed.source if feed.source in ("heredoc", "file") else "pipe"
        inner = shell.fork(name)
        return _shell_text(inner, via, Word(feed.text), call._replace(feed=NO_FEED), positional=rest)
    if feed.draft:
        return _shell_text(shell.fork(name), "heredoc", Word(feed.draft), call._replace(feed=NO_FEED), positional=rest)
    return None


def _script(shell: Shell, name: str, rest: tuple[Word, ...], call: Call) -> Output | None:
    """A script whose writing was seen is followed; one from the network is said."""
    word = rest[0]
    if shell.is_download(word):
        shell.emit(call._replace(runs_download=True))
        return Output(None, "curl")
    held = shell.files.get(join(shell.cwd, word.text) or "") if word.certain else None
    if word.text in ("/dev/stdin", "/proc/self/fd/0"):
        return _a_shell(shell, name, call._replace(words=call.words[:1]))
    if held is not None and held.text is not None:
        return _shell_text(shell, f"{name} {word.text}", Word(held.text), call, positional=rest[1:])
    return None


def _eval(shell: Shell, name: str, call: Call) -> Output | None:
    words = call.words[1:]
    if any(word.made_by in NETWORK for word in words):
        shell.emit(call._replace(runs_download=True))
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
    held = shell.files.get(join(shell.cwd, word.text) or "") if word.certain else None
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
    return _shell_text(shell, "trap", words[0], call)


def _option_text(values: str, options: tuple[str, ...], longs: tuple[str, ...], *, joined: bool = False) -> Handler:
    """A wrapper that takes shell text as an option's value (``su -c text``); ``joined``: its operands are text too (``watch a b``)."""

    def follow(shell: Shell, name: str, call: Call) -> Output | None:
        given = read_options(call.words[1:], values, longs, mixed=not joined)
        value = given.value(*options) if options else None
        if value is not None:
            return _shell_text(shell, f"{name} {options[0]}", value, call)
        if joined and given.operands:
            return _shell_text(shell, name, Word(" ".join(word.text for word in given.operands)), call)
        if call.feed.text is not None and name in ("at", "batch", "su"):
            return _shell_text(shell, name, Word(call.feed.text), call._replace(feed=NO_FEED))
        return None

    return follow


def _flock(shell: Shell, name: str, call: Call) -> Output | None:
    words = call.words
    at = command_at(words, "Ew", ("--timeout", "--wait", "--conflict-exit-code")) + 1
    rest = words[at:]
    if rest and rest[0].text in ("-c", "--command"):
        return _shell_text(shell, "flock -c", rest[1], call) if len(rest) > 1 else None
    if words[1:2] and words[1].text in ("-c",):
        return None
    inner = shell.fork(name)
    inner.files = shell.files
    return _follow(inner, call._replace(words=rest)) if rest else None


def _ssh(shell: Shell, name: str, call: Call) -> Output | None:
    """The command on the other machine, and those that ssh runs here for its settings."""
    words = call.words
    shell.emit(call)
    at = command_at(words, "BbcDEeFIiJLlmOoPpQRSWw")
    for option, value in read_options(words[1:at], "BbcDEeFIiJLlmOoPpQRSWw").given:
        if option == "-o" and value:
            key, _, text = value.text.replace(" ", "=", 1).partition("=")
            if key.lower() in ("proxycommand", "localcommand", "knownhostscommand"):
                _shell_text(shell, f"ssh -o {key}", Word(text.strip()), call)
    host, rest = words[at : at + 1], words[at + 1 :]
    if host and rest[:1] and rest[0].text.startswith("-"):
        rest = rest[command_at(rest, "BbcDEeFIiJLlmOoPpQRSWw", (), 0) :]
    if not host:
        return Output(None, name)
    via = f"{name} {host[0].text}"
    if rest:
        _shell_text(shell, via, Word(" ".join(word.text for word in rest)), call, remote=True)
    elif call.feed.text is not None:
        _shell_text(shell, via, Word(call.feed.text), call._replace(feed=NO_FEED), remote=True)
    return Output(None, name)


def _container(shell: Shell, name: str, call: Call) -> Output | None:
    """``docker exec``, ``docker run``, ``kubectl exec``: the command inside."""
    texts = [word.text for word in call.words]
    for verbs, prefix in CONTAINERS.get(name, ()):
        at = next((i for i in range(1, len(texts)) if texts[i : i + len(verbs)] == list(verbs)), 0)
        if not at or any(not text.startswith("-") for text in texts[1:at]) and at > 4:
            continue
        begin = at + len(verbs)
        shell.emit(call)
        start = command_at(call.words, prefix.values, prefix.longs.split(), begin) + prefix.operands
        if prefix.dashes:
            start = next((i + 1 for i in range(begin, len(texts)) if texts[i] == "--"), start)
        rest = call.words[start:]
        if rest:
            inner = shell.fork(f"{name} {' '.join(verbs)}")
            inner.remote, inner.cwd, inner.files, inner.base = True, None, {}, {**shell.base, "HOME": "", "TOP": ""}
            if prefix.text:
                inner.run_text(" ".join(word.text for word in rest))
            else:
                inner.feed = call.feed
                inner.execute(call._replace(words=rest, redirects=(), env={}))
        return Output(None, name)
    return None


def _tmux(shell: Shell, name: str, call: Call) -> Output | None:
    """``tmux send-keys text Enter``, ``tmux new-session command``, ``screen -dm command``."""
    texts = [word.text for word in call.words]
    if name == "screen":
        at = command_at(call.words, "cehpStTX")
        if "-X" in texts and "stuff" in texts:
            return _shell_text(shell, "screen", call.words[-1], call)
        return _follow(shell.fork(name), call._replace(words=call.words[at:])) if at < len(texts) else None
    verb = next((i for i, text in enumerate(texts[1:4], 1) if not text.startswith("-")), 0)
    if texts[verb : verb + 1] in (["send-keys"], ["send"]):
        keys = [
            word
            for word in read_options(call.words[verb + 1 :], "tN").operands
            if word.text not in ("Enter", "C-m", "C-c", "C-l")
        ]
        return _shell_text(shell, "tmux send-keys", Word(" ".join(word.text for word in keys)), call) if keys else None
    if verb and texts[verb] in ("new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-pane", "run-shell", "run",
                                "if-shell", "display-popup", "popup"):  # fmt: skip
        at = command_at(call.words, "ceFnstxylbhwpS", (), verb + 1)
        if at < len(texts):
            return _shell_text(shell, f"tmux {texts[verb]}", Word(" ".join(texts[at:])), call)
    return None


def _make(shell: Shell, name: str, call: Call) -> Output | None:
    """The recipes of a makefile that stands in the text itself."""
    options = read_options(call.words[1:], "fCIjloWE", ("--file=", "--makefile=", "--directory=", "--eval=", "--jobs=?"))
    shell.emit(call)
    file = options.value("-f", "--file", "--makefile")
    inner = shell.fork(name)
    if (folder := options.value("-C", "--directory")) is not None:
        inner.cwd = join(inner.cwd, folder.text) if folder.certain else None
    texts = [value.text for key, value in options.given if key in ("-E", "--eval") and value]
    if file is not None and file.text in ("-", "/dev/stdin"):
        texts += [call.feed.text] if call.feed.text is not None else []
    else:
        held = inner.files.get(join(inner.cwd, file.text if file else "Makefile") or "")
        texts += [held.text] if held and held.text is not None else []
    for text in texts:
        lines = re.sub(r"\\\n\t?", " ", text).split("\n")
        recipes = [line.lstrip("\t @-+") for line in lines if line.startswith("\t")]
        recipes += [line.partition(";")[2].lstrip(" @-+") for line in lines if re.match(r"[\w.% -]+:[^=;]*;", line)]
        for recipe in recipes:
            inner.run_text(re.sub(r"\$\((\w+)\)", r"$\1", recipe.replace("$$", "$")))
    return Output(None, name)


def _tar(shell: Shell, name: str, call: Call) -> Output | None:
    """The commands that tar and rsync run for their options."""
    shell.emit(call)
    known = {
        "tar": ("--checkpoint-action=", "--to-command=", "--use-compress-program=", "--info-script=", "--new-volume-script=", "--rsh-command="),
        "rsync": ("--rsh=", "--rsync-path="),
        "scp": (), "sftp": (),
    }  # fmt: skip
    given = read_options(call.words[1:], {"tar": "IFf", "rsync": "e"}.get(name, "So"), known.get(name, ()))
    for option, value in given.given:
        if value is None or option == "-f":
            continue
        text = value.text
        if option == "--checkpoint-action":
            if not text.startswith("exec="):
                continue
            text = text[5:]
        elif option == "-o":
            key, _, text = text.partition("=")
            if key.lower() != "proxycommand":
                continue
        _shell_text(shell, f"{name} {option}", Word(text, value.certain), call)
    return Output(None, name)


def _editor(shell: Shell, name: str, call: Call) -> Output | None:
    """``vim -c '!text'``"""
    shell.emit(call)
    for i, word in enumerate(call.words[1:], 1):
        text = (
            call.words[i + 1].text
            if word.text in ("-c", "--cmd") and i + 1 < len(call.words)
            else word.text[1:]
            if word.text.startswith("+")
            else ""
        )
        for part in text.split("|"):
            if found := re.match(r"\s*(?:silent!?\s+|sil!?\s+|exe\w*\s+['\"])?(?:\d+|%|\d+,\d+)?!\s*(.+)", part):
                _shell_text(shell, f"{name} -c", Word(found[1]), call)
    return Output(None, name)


def _git(shell: Shell, name: str, call: Call) -> Output | None:
    """Aliases, and the commands that git runs for its arguments and settings."""
    git = read_git(call.words, shell.cwd, call.env)
    value = (
        git.config.get(f"alias.{git.verb}") or shell.run.git_aliases.get(git.verb) if git.verb and git.verb not in VERBS else None
    )
    if value is not None and f"git {git.verb}" not in shell.via:
        inner = shell.fork(f"git {git.verb}")
        inner.files, inner.feed = shell.files, call.feed
        inner.cwd = git.cwd
        if value.startswith("!"):
            inner.exported = {**inner.exported, **call.env}
            return inner.run_text(f"{value[1:]} {quoted(git.args)}")
        at = next(i for i, word in enumerate(call.words) if word.text == git.verb and len(call.words) - i == len(git.args) + 1)
        inner.cwd = shell.cwd
        middle = simple_words(inner, value)
        return inner.execute(call._replace(words=(*call.words[:at], *middle, *git.args)))
    shell.emit(call)
    if git.verb and not (git.config or git.args or call.env):
        return Output(None, name)
    for via, text in commands_in(git, call.env):
        inner = shell.fork(via)
        inner.feed = NO_FEED
        inner.cwd = git.cwd
        if via == "git submodule foreach":
            inner.cwd = None
        elif via.startswith("git filter-branch"):
            inner.cwd = join(git.cwd, ".git-rewrite/t")
        inner.run_text(text)
    return Output(None, name)


def simple_words(shell: Shell, text: str) -> list[Word]:
    """An alias's words; git splits them much as a shell does, without expansion."""
    try:
        return [Word(part) for part in shlex.split(text)]
    except ValueError:
        return [Word(text, False)]


# -- code --------------------------------------------------------------------------------------------------------------------------


def _interpreter(shell: Shell, name: str, call: Call) -> Output | None:
    """The code given to an interpreter, by option, on its input or in a file whose writing was seen."""
    plain = _VERSIONED.fullmatch(name)
    language = _LANGUAGES.get(name) or _LANGUAGES[plain[1] if plain else name]
    options, others, longs = _CODE_OPTIONS.get(language, ("e", "", ()))
    words = list(call.words[1:])
    if name in ("deno", "bun") and words and words[0].text in ("eval", "run", "repl"):
        verb = words.pop(0).text
        if verb == "eval":
            words = [word for word in words if not word.text.startswith("-")][:1]
            words = [Word("-e"), *words]
    texts: list[Word] = []
    operands: list[Word] = []
    i, module = 0, False
    while i < len(words) and not (operands and language not in ("sql", "mongo")):
        word = words[i]
        i += 1
        if word.text.startswith("--"):
            option, equals, glued = canonical(word.text, longs).partition("=")
            if option in _CODE_LONGS or (f"{option}=" in longs and not equals):
                value = Word(glued, word.certain) if equals else words[i] if i < len(words) else None
                i += not equals
                if value is not None and option in _CODE_LONGS:
                    texts.append(value)
        elif word.text.startswith("-") and len(word.text) > 1:
            for at, letter in enumerate(word.text[1:], 2):
                rest = word.text[at:]
                if letter in options:
                    texts.append(
                        Word(rest, word.certain) if rest and language != "perl" else words[i] if i < len(words) else Word("")
                    )
                    i += not rest or language == "perl"
                    break
                if letter in others:
                    module |= letter == "m" and language == "python"
                    i += not rest
                    break
            if module or (texts and language == "python"):
                break
        else:
            operands.append(word)
    download = any(word.made_by in NETWORK for word in texts) or (bool(operands) and not texts and shell.is_download(operands[0]))
    via = name
    for word in texts:
        shell.code(language, word.text, f"{name} -{options[:1] or 'eval'}")
    if name in ("sqlite3", "sqlite", "duckdb"):
        for word in operands[1:]:
            shell.code(language, word.text, via)
    reads = not module and not texts and (not operands or operands[0].text in ("-", "/dev/stdin") or language in ("sql", "mongo"))
    feed = call.feed
    if reads and (feed.text is not None or feed.draft):
        shell.code(language, feed.text if feed.text is not None else feed.draft, "heredoc" if feed.source == "heredoc" else name)
    elif operands and not texts and not module and operands[0].certain:
        held = shell.files.get(join(shell.cwd, operands[0].text) or "")
        if held is not None and held.text is not None:
            shell.code(language, held.text, f"{name} {operands[0].text}")
    download |= reads and language not in ("sql", "mongo") and feed.by in NETWORK
    shell.emit(call, runs_download=download)
    if language == "applescript":
        for word in texts:
            for found in re.finditer(r'do shell script\s+"((?:[^"\\]|\\.)*)"', word.text):
                _shell_text(shell, "osascript -e", Word(re.sub(r"\\(.)", r"\1", found[1])), call)
    return Output(None, feed.by if feed.by in NETWORK else name)


def _awk(shell: Shell, name: str, call: Call) -> Output | None:
    given = read_options(call.words[1:], "Ffvie", ("--file=", "--assign=", "--field-separator=", "--source="), mixed=False)
    text = given.value("-e", "--source") or (given.operands[0] if given.operands and not given.has("-f", "--file") else None)
    if text is not None:
        shell.code("awk", text.text, name)
    return None


def _foreign(shell: Shell, name: str, call: Call) -> Output | None:
    """PowerShell and cmd started from a POSIX shell."""
    words = call.words[1:]
    for i, word in enumerate(words):
        low = word.text.lower()
        if name.lower() == "cmd" and low[:2] in ("/c", "/k"):
            rest = [word.text[2:], *(each.text for each in words[i + 1 :])]
            shell.code("cmd", " ".join(rest).strip(), "cmd /c")
            break
        if name.lower() != "cmd" and low.startswith("-") and len(low) > 1:
            if "-encodedcommand".startswith(low) and low.startswith("-e") and i + 1 < len(words):
                try:
                    text = base64.b64decode(words[i + 1].text, validate=True).decode("utf-16-le", "replace")
                except (binascii.Error, ValueError):
                    text = words[i + 1].text
                shell.code("powershell", text, f"{name} -EncodedCommand")
                break
            if "-command".startswith(low) and low.startswith("-c"):
                shell.code("powershell", " ".join(each.text for each in words[i + 1 :]), f"{name} -Command")
                break
    else:
        if call.feed.text is not None:
            shell.code("cmd" if name.lower() == "cmd" else "powershell", call.feed.text, name)
    return None


_HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_PREFIXES, _prefix),
    **dict.fromkeys(_SUBCOMMANDS, _subcommand),
    **dict.fromkeys(_SHELLS, _a_shell),
    **dict.fromkeys(_LANGUAGES, _interpreter),
    **dict.fromkeys(CONTAINERS, _container),
    **dict.fromkeys(("xargs", "gxargs"), _xargs),
    **dict.fromkeys(("find", "gfind"), _find),
    **dict.fromkeys(("fd", "fdfind"), _fd),
    **dict.fromkeys(("ssh", "autossh", "mosh"), _ssh),
    **dict.fromkeys(("tmux", "screen"), _tmux),
    **dict.fromkeys(("make", "gmake"), _make),
    **dict.fromkeys(("tar", "rsync", "scp", "sftp"), _tar),
    **dict.fromkeys(("vim", "vi", "nvim", "ex", "view"), _editor),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("powershell", "pwsh", "cmd", "PowerShell", "CMD"), _foreign),
    **dict.fromkeys((".", "source"), _source),
    "eval": _eval,
    "trap": _trap,
    "parallel": _parallel,
    "flock": _flock,
    "git": _git,
    "su": _option_text("cgGsw", ("-c", "--command", "--session-command"), ("--command=", "--session-command=", "--shell=", "--group=")),
    "sg": _option_text("c", ("-c",), ()),
    "script": _option_text("cEIOBTtm", ("-c", "--command"), ("--command=", "--log-out=", "--log-in=", "--log-io=", "--log-timing=")),
    "watch": _option_text("nq", (), ("--interval=", "--differences=?", "--equexit="), joined=True),
    "hyperfine": _option_text("wmMrspcCLDSniu", ("-p", "--prepare"), ("--prepare=", "--setup=", "--cleanup=", "--warmup=", "--runs="), joined=True),
    "nix-shell": _option_text("pAIE", ("--run", "--command"), ("--run=", "--command=", "--packages=")),
    "at": _option_text("fqtv", (), ()),
    "batch": _option_text("", (), ()),
    **BUILTINS,
}  # fmt: skip
