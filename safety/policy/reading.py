"""What the text of a command tells: that it only reads, so that a change seen around it is somebody else's (design 5.4 rule 4, redteam
D3), or that it pushes.

Reading is judged narrowly: one simple command, or a pipe of them, of names that cannot write whatever their arguments are. Anything
else may have changed anything.
"""

from __future__ import annotations

import re
import shlex

_READERS = frozenset(
    """cat head tail wc ls pwd stat file du df grep egrep fgrep rg cut tr nl tac cmp diff md5sum sha1sum sha256sum basename dirname
    realpath readlink whoami id uname which type echo printf true false""".split()
)
_GIT_READERS = frozenset(
    """status log show diff blame rev-parse ls-files ls-tree cat-file describe shortlog grep rev-list for-each-ref""".split()
)
_ODD = re.compile(r"[;&<>`$(){}\n\\]")
_WRITING_OPTION = re.compile(r"--?(output|o|exec|delete|ext-diff|textconv|open-files-in-pager|O|config|c)\b.*|-[oO].*")


def reads_only(command: str) -> bool:
    """Whether the command surely changes nothing. False is no claim."""
    if _ODD.search(command):
        return False
    try:
        words = [shlex.split(part) for part in command.split("|")]
    except ValueError:
        return False
    return bool(command.strip()) and all(part and _is_reader(part) for part in words)


_PUSH = re.compile(r"""(?:^|[\s;&|(`'"])git(?:\s+-[cC]\s*\S+|\s+--?[\w-]+(?:=\S+)?)*\s+(?:push|send-pack)\b(?P<rest>[^;&|\n]*)""")
_NO_PUSH = re.compile(r"\s(?:--dry-run|-n|--help|-h)\b")


def pushes(command: str) -> bool:
    """Whether the command tells of a push: what it sent is out of reach, also where no remote-tracking ref says so (redteam C7)."""
    return any(not _NO_PUSH.search(found["rest"]) for found in _PUSH.finditer(command))


def _is_reader(words: list[str]) -> bool:
    if words[0] == "git":
        return len(words) > 1 and words[1] in _GIT_READERS and not any(_WRITING_OPTION.fullmatch(word) for word in words[2:])
    return words[0] in _READERS
