"""What would switch the guard off, or the checks before a commit: their programs, their variables, their packages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from safety.policy.patterns import Pattern
from safety.policy.shell import Command
from safety.policy.values import Effect

#: What only a person may say: it opens a door, or takes away what the store holds.
_PERSONS_VERBS = frozenset("allow trust untrust purge uninstall disable off remove redact".split())
_OWN_VARIABLE = Pattern(r"GIT_SAFETY_(?!SESSION$)\w+")
_GATE_VARIABLES: dict[str, str] = {
    "SKIP": r".+",
    "HUSKY": r"0",
    "HUSKY_SKIP_HOOKS": r".+",
    "LEFTHOOK": r"0|false",
    "LEFTHOOK_EXCLUDE": r".+",
    "PRE_COMMIT_ALLOW_NO_CONFIG": r"1",
    "OVERCOMMIT_DISABLE": r"1",
    "GIT_HOOKS_PATH": r".+",
}
_INSTALLERS = frozenset("pip pip3 pipx uv brew conda mamba apt apt-get poetry pdm rye npm".split())
_HOOK_TOOLS = frozenset("pre-commit prek husky lefthook overcommit".split())


def own_effects(command: Command, verb: str) -> Iterator[Effect]:
    """``verb`` is git's own verb, empty for another program."""
    name = command.name
    words = [word.text for word in command.words[1:]]
    for variable, value in command.env.items():
        if _OWN_VARIABLE.fullmatch(variable):
            yield Effect("self.defense", variable, "deny")
        elif variable == "GIT_CONFIG_GLOBAL" and verb in ("commit", "push") and value in ("/dev/null", ""):
            yield Effect("gate.bypass", variable, "ask")
        elif (
            variable in _GATE_VARIABLES
            and verb in ("commit", "push", "merge", "rebase", "am")
            and value
            and re.fullmatch(_GATE_VARIABLES[variable], value)
        ):
            yield Effect("gate.bypass", f"{variable}={value}", "ask", instead="the same command without it")
    if name in ("export", "unset", "declare", "typeset", "setx", "set", "readonly"):
        for text in words:
            if _OWN_VARIABLE.fullmatch(text.partition("=")[0]):
                yield Effect("self.defense", text.partition("=")[0], "deny")
    if name in ("rm", "mv", "chmod", "chown", "ln", "cp", "truncate", "unlink", "shred", "dd", "tee", "sed") and any(
        not word.certain and "git-safety" in word.text for word in command.words[1:]
    ):
        yield Effect("self.defense", "the program git-safety", "deny")
    if verb == "safety" or name in ("git-safety", "safety-net"):
        rest = words[words.index("safety") + 1 :] if verb == "safety" and "safety" in words else words
        spoken = [text for text in rest if not text.startswith("-")]
        asks_help = {"-h", "--help", "--dry-run"} & set(rest)
        if spoken and not asks_help and (spoken[0] in _PERSONS_VERBS or _PERSONS_VERBS & set(spoken[1:2])):
            yield Effect("self.defense", f"git safety {' '.join(spoken[:2])}", "deny", instead="leave it to the user")
    elif name in _HOOK_TOOLS and "uninstall" in words:
        yield Effect("self.defense", f"{name} uninstall", "ask", instead="leave the hooks installed")
    elif name in _INSTALLERS or (name in ("python", "python3") and "pip" in words):
        removes = {"uninstall", "remove", "purge", "rm", "autoremove", "un"} & set(words)
        ours = [
            text for text in words if re.fullmatch(r"git-?safety(?:\[.*\])?|git_safety|prek?|pre-commit|husky|lefthook", text)
        ]
        if removes and ours:
            yield Effect("self.defense", ours[0], "deny" if "safety" in ours[0] else "ask")
    elif name in ("systemctl", "launchctl", "service", "kill", "pkill", "killall") and any(
        "git-safety" in text for text in words
    ):
        stops = {"stop", "disable", "mask", "kill", "unload", "bootout", "remove"}
        if name in ("kill", "pkill", "killall") or stops & set(words):
            yield Effect("self.defense", "the daemon of git-safety", "deny")
    elif name == "claude" and ({"remove", "uninstall", "disable"} & set(words)) and any("safety" in text for text in words):
        yield Effect("self.defense", "the guard's plug-in", "ask")
    elif name in ("claude", "codex", "gemini") and any(
        re.fullmatch(r"--dangerously-\S+|--yolo|--bypass\S*", text) for text in words
    ):
        yield Effect("self.defense", f"{name} without permissions", "ask")
