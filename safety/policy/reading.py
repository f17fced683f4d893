"""Commands that only read: a change seen around one of them is somebody else's (design 5.4 rule 4, redteam D3).

Deliberately narrow: one simple command, or a pipe of them, of names that cannot write whatever their arguments are. Anything else may
have changed anything.
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


def _is_reader(words: list[str]) -> bool:
    if words[0] == "git":
        return len(words) > 1 and words[1] in _GIT_READERS and not any(_WRITING_OPTION.fullmatch(word) for word in words[2:])
    return words[0] in _READERS
