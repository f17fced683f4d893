"""Wrappers that stand in front of a command's words: ``sudo -u x command``, ``timeout 5 command``, ``uv run command``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from safety.policy.calls import Call
from safety.policy.expand import Output
from safety.policy.gitwords import join, quoted
from safety.policy.options import canonical, command_at, read_options
from safety.policy.words import Word

if TYPE_CHECKING:
    from safety.policy.process import Shell


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
    at = command_at(words, prefix.values, prefix.longs.split(), begin) + prefix.operands
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
            return shell.fork(via).follow(call._replace(words=(Word("sh"),)))
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
    return inner.follow(call._replace(words=words[at:], env=env, plain=via in ("command", "builtin")))


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
    return inner.follow(call._replace(words=tuple(words[i:]), env=env))


PREFIXES: Mapping[str, Callable[[Shell, str, Call], Output | None]] = {
    **dict.fromkeys(_PREFIXES, _prefix),
    **dict.fromkeys(_SUBCOMMANDS, _subcommand),
}
