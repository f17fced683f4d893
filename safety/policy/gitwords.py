"""Git's own command line: the options before the verb, and the commands that git runs for its arguments."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from safety.policy.options import read_options
from safety.policy.words import Command, Word

# git refuses to let an alias shadow one of its own commands ([guard] 4.1).
VERBS = frozenset(
    """add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore check-mailmap
    check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config
    count-objects credential daemon describe diagnose diff diff-files diff-index diff-tree difftool fast-export fast-import fetch
    fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck fsmonitor--daemon gc get-tar-commit-id grep
    hash-object help hook http-backend http-fetch http-push imap-send index-pack init init-db instaweb interpret-trailers log ls-files
    ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-one-file merge-tree mergetool mktag
    mktree multi-pack-index mv name-rev notes p4 pack-objects pack-redundant pack-refs patch-id prune prune-packed pull push
    quiltimport range-diff read-tree rebase receive-pack reflog refs remote repack replace replay request-pull rerere reset restore
    rev-list rev-parse revert rm send-email send-pack shell shortlog show show-branch show-index show-ref sparse-checkout stage stash
    status stripspace submodule svn switch symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info
    upload-archive upload-pack var verify-commit verify-pack verify-tag version whatchanged worktree write-tree""".split()
)
_GLOBAL_VALUES = frozenset(
    "-C -c --git-dir --work-tree --namespace --config-env --super-prefix --attr-source --list-cmds".split()
)
# Settings whose value git hands to a shell on next to every command, or on the one named.
_RUN_SETTINGS = frozenset(
    """core.fsmonitor core.sshcommand core.pager core.editor core.askpass core.alternaterefscommand sequence.editor diff.external
    gpg.program gpg.ssh.program credential.helper uploadpack.packobjectshook""".split()
)
_RUN_VARIABLES = frozenset(
    "GIT_SSH_COMMAND GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_EXTERNAL_DIFF GIT_ASKPASS EDITOR VISUAL PAGER GIT_SSH".split()
)
_NO_CONFIG: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class GitCommand:
    """``verb`` is empty when there is none or it is not certain. ``cwd`` counts -C in, None when that is not certain.

    ``git_dir`` and ``work_tree`` as given by option or variable, absolute as far as ``cwd`` is known; None: not given, empty: not
    certain. ``config``: what -c and --config-env set, keys in git's own form.
    """

    verb: str
    args: tuple[Word, ...]
    cwd: str | None
    git_dir: str | None = None
    work_tree: str | None = None
    config: Mapping[str, str] = field(default_factory=lambda: _NO_CONFIG)


def git_words(command: Command) -> GitCommand:
    """A git command with its global options taken off. Say it of a command whose name is ``git`` only."""
    return read_git(command.words, command.cwd, command.env)


def read_git(words: tuple[Word, ...], cwd: str | None, env: Mapping[str, str | None]) -> GitCommand:
    places: dict[str, str | None] = {}
    for name, option in (("GIT_DIR", "--git-dir"), ("GIT_WORK_TREE", "--work-tree")):
        if name in env:
            places[option] = "" if (given := env[name]) is None else join(cwd, given)
    config = dict(_config_of(env))
    i = 1
    while i < len(words):
        text, certain = words[i].text, words[i].certain
        if not text.startswith("-"):
            break
        name, equals, glued = text.partition("=") if text.startswith("--") else (text, "", "")
        i += 1
        if name in _GLOBAL_VALUES and not equals:
            value = words[i] if i < len(words) else Word("", False)
            i += 1
        else:
            value = Word(glued, certain)
        if name == "-C":
            cwd = join(cwd, value.text) if value.certain else None
        elif name in ("--git-dir", "--work-tree"):
            places[name] = (join(cwd, value.text) or value.text) if value.certain else ""
        elif name in ("-c", "--config-env"):
            key, _, setting = value.text.partition("=")
            if name == "--config-env":
                setting = env.get(setting) or ""
            config[setting_key(key)] = setting if "=" in value.text else "true"
    verb = words[i] if i < len(words) else Word("")
    git_dir, work_tree = places.get("--git-dir"), places.get("--work-tree")
    return GitCommand(verb.text if verb.certain else "", tuple(words[i + 1 :]), cwd, git_dir, work_tree, config or _NO_CONFIG)


def setting_key(key: str) -> str:
    """``Alias.X`` as git compares it: section and name without case, the middle with it."""
    section, _, rest = key.partition(".")
    middle, dot, name = rest.rpartition(".")
    return f"{section.lower()}.{middle}{dot}{name.lower()}"


def _config_of(env: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    count = env.get("GIT_CONFIG_COUNT")
    if count and count.isdigit():
        for number in range(min(int(count), 100)):
            if key := env.get(f"GIT_CONFIG_KEY_{number}"):
                yield setting_key(key), env.get(f"GIT_CONFIG_VALUE_{number}") or ""


def join(cwd: str | None, path: str) -> str | None:
    """``path`` made absolute and plain; None when it is relative and ``cwd`` is not known."""
    if path.startswith("/"):
        return posixpath.normpath(path).replace("//", "/")
    return posixpath.normpath(f"{cwd}/{path}") if cwd is not None else None


def commands_in(git: GitCommand, env: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """The shell texts that git runs for this command, each with the option or setting it stands in."""
    for key, value in git.config.items():
        is_command = key in _RUN_SETTINGS or (key.endswith((".cmd", ".command", ".textconv", ".clean", ".smudge", ".process")))
        if value and is_command and value not in ("true", "false"):
            yield f"git -c {key}", value.lstrip("!")
    for name in _RUN_VARIABLES & env.keys():
        if value := env[name] or "":
            yield name, value
    for option, value in _commands_in_arguments(git):
        if value:
            yield f"git {git.verb} {option}".rstrip(), value


def _commands_in_arguments(git: GitCommand) -> Iterator[tuple[str, str]]:
    args = git.args
    if git.verb == "rebase":
        for name, value in read_options(args, "xsXC", ("--exec=", "--onto=", "--strategy=")).given:
            if name in ("-x", "--exec") and value:
                yield "--exec", value.text
    elif git.verb == "bisect" and args and args[0].text == "run":
        yield "run", quoted(args[1:])
    elif git.verb == "submodule":
        operands = [word for word in args if word.text not in ("--quiet", "-q", "--recursive")]
        if operands and operands[0].text == "foreach":
            rest = operands[1:]
            yield "foreach", rest[0].text if len(rest) == 1 else quoted(rest)
    elif git.verb == "filter-branch":
        known = ("--env-filter=", "--tree-filter=", "--index-filter=", "--parent-filter=", "--msg-filter=", "--commit-filter=",
                 "--tag-name-filter=", "--setup=", "--subdirectory-filter=", "--original=", "--force", "--prune-empty")  # fmt: skip
        for name, value in read_options(args, "d", known).given:
            if value and (name == "--setup" or (name.endswith("-filter") and name != "--subdirectory-filter")):
                yield name, value.text
    elif git.verb in ("fetch", "ls-remote", "clone", "pull", "fetch-pack", "push", "send-pack", "archive"):
        values = "u" if git.verb == "clone" else ""
        for name, value in read_options(args, values, ("--upload-pack=", "--receive-pack=", "--exec=", "--execute")).given:
            if name in ("--upload-pack", "--receive-pack", "--exec", "-u") and value:
                yield name, value.text
    elif git.verb in ("difftool", "for-each-repo"):
        for name, value in read_options(args, "x", ("--extcmd=",)).given:
            if name in ("-x", "--extcmd") and value:
                yield name, value.text
    elif git.verb == "grep":
        for word in args:
            if word.text.startswith("-O") and len(word.text) > 2:
                yield "-O", word.text[2:]
            elif word.text.startswith("--open-files-in-pager="):
                yield "-O", word.text.partition("=")[2]


def quoted(words: tuple[Word, ...] | list[Word]) -> str:
    """Words as shell text that reads as the same words again; what is not certain stays as it was written."""
    return " ".join(quote(word) for word in words)


def quote(word: Word) -> str:
    if not word.certain:
        return f'"{word.text}"' if " " not in word.text or word.text.startswith("$(") else word.text
    if word.text and all(char.isalnum() or char in "_-./:@%+,=" or (word.glob and char in "*?[]") for char in word.text):
        return word.text
    return "'" + word.text.replace("'", "'\\''") + "'"
