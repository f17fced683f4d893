"""Text that is not for a POSIX shell: PowerShell and cmd, told from it by what stands in command position."""

from __future__ import annotations

import re
from collections.abc import Sequence

_VERBS = (
    "add clear close compare complete connect convert convertfrom convertto copy debug disable disconnect enable enter exit expand "
    "export find foreach format get group hide import initialize install invoke join limit measure mount move new open out pop publish "
    "push read receive register remove rename repair request reset resize resolve restart restore resume save search select send set "
    "show sort split start stop submit suspend sync test trace unblock uninstall unlock unpublish unregister update use wait watch where "
    "write"
)
_CMDLET = re.compile(rf"(?:{_VERBS.replace(' ', '|')})-[a-z][a-z0-9]{{2,}}", re.IGNORECASE)
_PARAMETER = re.compile(r"-(?:recurse|force|path|literalpath|erroraction|confirm|whatif)", re.IGNORECASE)
_PROGRAMS = frozenset("del erase rd rmdir copy xcopy robocopy move dir format attrib".split())
_SWITCH = re.compile(r"/[a-zA-Z](?::\S*)?")


def foreign_shell(words: Sequence[str]) -> str:
    """``powershell`` or ``cmd`` for one command, its words as written, that only such a shell has; empty otherwise."""
    first = words[0]
    if "-" not in first and "$" not in first and first.lower() not in _PROGRAMS:
        return ""
    if first.startswith("$") and (first.lower().startswith("$env:") or words[1:2] == ["="]):
        return "powershell"
    # A cmdlet's second half starts with a capital, as people write it; in small letters it needs a parameter of PowerShell's beside it.
    if _CMDLET.fullmatch(first) and (first.partition("-")[2][0].isupper() or any(_PARAMETER.fullmatch(word) for word in words)):
        return "powershell"
    drive = any(word[1:2] == ":" and word[0].isalpha() for word in words[1:])
    return "cmd" if first.lower() in _PROGRAMS and (drive or any(_SWITCH.fullmatch(word) for word in words[1:])) else ""
