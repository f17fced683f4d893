"""Programs that run commands in their arguments, here or elsewhere: ssh, containers, tmux, make, tar, vim, git."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from safety.policy.calls import NO_FEED, Call
from safety.policy.containers import CONTAINERS
from safety.policy.expand import Output
from safety.policy.gitwords import VERBS, commands_in, join, quoted, read_git
from safety.policy.options import command_at, read_options
from safety.policy.words import Word

if TYPE_CHECKING:
    from safety.policy.process import Shell


def _ssh(shell: Shell, name: str, call: Call) -> Output | None:
    """The command on the other machine, and those that ssh runs here for its settings."""
    words = call.words
    shell.emit(call)
    at = command_at(words, "BbcDEeFIiJLlmOoPpQRSWw")
    for option, value in read_options(words[1:at], "BbcDEeFIiJLlmOoPpQRSWw").given:
        if option == "-o" and value:
            key, _, text = re.sub(r"^(\w+)\s+", r"\1=", value.text).partition("=")
            if key.lower() in ("proxycommand", "localcommand", "knownhostscommand"):
                shell.payload(f"ssh -o {key}", Word(text.strip()), call)
    host, rest = words[at : at + 1], words[at + 1 :]
    if host and rest[:1] and rest[0].text.startswith("-"):
        rest = rest[command_at(rest, "BbcDEeFIiJLlmOoPpQRSWw", (), 0) :]
    if not host:
        return Output(None, name)
    via = f"{name} {host[0].text}"
    if rest:
        shell.payload(via, Word(" ".join(word.text for word in rest)), call, remote=True)
    elif call.feed.text is not None:
        shell.payload(via, Word(call.feed.text), call._replace(feed=NO_FEED), remote=True)
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
        known = tuple(f"{long}=" for long in prefix.longs.split())
        entry = read_options(call.words[begin:start], prefix.values, known).value("--entrypoint")
        if entry is not None and entry.text:
            rest = (entry, *rest)
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
            return shell.payload("screen", call.words[-1], call)
        return shell.fork(name).follow(call._replace(words=call.words[at:])) if at < len(texts) else None
    verb = next((i for i, text in enumerate(texts[1:4], 1) if not text.startswith("-")), 0)
    if texts[verb : verb + 1] in (["send-keys"], ["send"]):
        keys = [
            word
            for word in read_options(call.words[verb + 1 :], "tN").operands
            if word.text not in ("Enter", "C-m", "C-c", "C-l")
        ]
        return shell.payload("tmux send-keys", Word(" ".join(word.text for word in keys)), call) if keys else None
    if verb and texts[verb] in ("new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-pane", "run-shell", "run",
                                "if-shell", "display-popup", "popup"):  # fmt: skip
        at = command_at(call.words, "ceFnstxylbhwpS", (), verb + 1)
        if at < len(texts):
            return shell.payload(f"tmux {texts[verb]}", Word(" ".join(texts[at:])), call)
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
        "tar": ("--checkpoint-action=", "--to-command=", "--use-compress-program=", "--info-script=", "--new-volume-script=",
                "--rsh-command="),
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
        shell.payload(f"{name} {option}", Word(text, value.certain), call)
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
            if found := re.match(r"[\s:]*(?:silent!?\s+|sil!?\s+|exe\w*\s+['\"])?(?:\d+|%|\d+,\d+)?!\s*(.+)", part):
                shell.payload(f"{name} -c", Word(found[1]), call)
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


HOSTS: Mapping[str, Callable[[Shell, str, Call], Output | None]] = {
    **dict.fromkeys(CONTAINERS, _container),
    **dict.fromkeys(("ssh", "autossh", "mosh"), _ssh),
    **dict.fromkeys(("tmux", "screen"), _tmux),
    **dict.fromkeys(("make", "gmake"), _make),
    **dict.fromkeys(("tar", "rsync", "scp", "sftp"), _tar),
    **dict.fromkeys(("vim", "vi", "nvim", "ex", "view"), _editor),
    "git": _git,
}
