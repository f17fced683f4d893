"""Text that is not for a POSIX shell: PowerShell and cmd, told from it by what stands in command position."""

from __future__ import annotations

import re

_VERBS = (
    "add clear close compare complete connect convert convertfrom convertto copy debug disable disconnect enable enter exit expand "
    "export find foreach format get group hide import initialize install invoke join limit measure mount move new open out pop publish "
    "push read receive register remove rename repair request reset resize resolve restart restore resume save search select send set "
    "show sort split start stop submit suspend sync test trace unblock uninstall unlock unpublish unregister update use wait watch where "
    "write"
)
_CMDLET = rf"(?:{_VERBS.replace(' ', '|')})-[a-z]{{3,}}"
_START = r"(?:^|[;|\n({]|&&|\|\|)[ \t]*"
# A cmdlet's second half starts with a capital, as people write them; in small letters it needs a parameter of PowerShell's beside it.
_POWERSHELL = re.compile(
    rf"{_START}(?-i:(?:[A-Z][a-z]+)-(?:[A-Z][A-Za-z]+))(?=[\s|;)]|$)|{_START}\$(?:env:)?\w+\s+=\s|{_START}\$env:\w+\s*="
    rf"|{_START}{_CMDLET}\s[^\n;|]{{0,200}}-(?:recurse|force|path|literalpath|erroraction|confirm|whatif)\b",
    re.IGNORECASE,
)
_CMD = re.compile(
    rf"{_START}(?:del|erase|rd|rmdir|copy|xcopy|robocopy|move|dir|format|attrib)(?:\s+/[a-z]\b|\s+(?:[a-z]:)?\\\S*\s*$|\s+[a-z]:(?:\\|\s|$))",
    re.IGNORECASE,
)
_KNOWN = re.compile(rf"{_CMDLET}", re.IGNORECASE)


def foreign_shell(text: str) -> str:
    """``powershell``, ``cmd``, or empty for text that a POSIX shell may read."""
    if "-" not in text and "=" not in text and "/" not in text and "\\" not in text:
        return ""
    head = text[:20_000]
    if (found := _POWERSHELL.search(head)) and ("$" in found[0] or _KNOWN.search(found[0])):
        return "powershell"
    return "cmd" if ("\\" in head or "/" in head) and _CMD.search(head) else ""
