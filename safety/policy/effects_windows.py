"""What PowerShell and cmd text would do: a destructive name counts only where a command stands, everything else passes.

The texts are not parsed. Asking about each of them would be one false alarm after the other ([ux] 2.8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from safety.policy.path_effects import removal
from safety.policy.patterns import Pattern
from safety.policy.scene import Scene, Target
from safety.policy.shell import Code, Word
from safety.policy.values import Action, Effect

_POSITION = r"(?:^|[;|&{(\n]|\bthen\b|\bdo\b)\s*(?:&\s*)?"
_QUOTED = Pattern(r"@'.*?'@|@\".*?\"@", re.DOTALL)
_COMMENT = Pattern(r"<#.*?#>|(?:^|(?<=\s))#[^\n]*|^\s*(?:rem\b|::)[^\n]*", re.DOTALL | re.IGNORECASE | re.MULTILINE)

_POWERSHELL: tuple[tuple[str, str, Action], ...] = (
    (
        r"(?:Remove-Item(?:Property)?|Clear-Content|Clear-Item|Clear-RecycleBin|ri|rd|rmdir|del|erase|rm|clc)",
        "path.remove",
        "ask",
    ),
    (
        r"(?:Format-Volume|Clear-Disk|Initialize-Disk|Remove-Partition|Reset-PhysicalDisk|Remove-VirtualDisk"
        r"|Clear-Partition)",
        "disk.destroy",
        "deny",
    ),
    (
        r"(?:Stop-Computer|Restart-Computer|Remove-LocalUser|Remove-ADUser|Remove-LocalGroup\w*|Set-ExecutionPolicy|Disable-\w+"
        r"|Uninstall-\w+|Reset-ComputerMachinePassword)",
        "system.change",
        "ask",
    ),
    (r"(?:Stop-Service|Remove-Service|Suspend-Service)", "service.stop", "ask"),
    (
        r"(?:Remove-(?:Az|AWS|GC|S3|EC2|RDS|DynamoDB|K8s|VM|Snapshot|Website|WebAppPool|Database|SqlDatabase)\w*)",
        "service.destroy",
        "ask",
    ),
    (r"(?:vssadmin(?:\.exe)?\s+delete|wbadmin\s+delete|bcdedit|diskpart|cipher\s+/w)", "disk.destroy", "deny"),
    (
        r"(?:reg(?:\.exe)?\s+delete|schtasks(?:\.exe)?\s+/delete|net\s+user\s+\S+\s+/delete|sc(?:\.exe)?\s+(?:delete"
        r"|stop))",
        "system.change",
        "ask",
    ),
)
_CMD: tuple[tuple[str, str, Action], ...] = (
    (r"(?:del|erase|rd|rmdir)(?:\.exe)?", "path.remove", "ask"),
    (
        r"format(?:\.com)?\s+[a-z]:|diskpart|vssadmin\s+delete|wbadmin\s+delete|bcdedit\s+/(?:delete|set)|cipher\s+/w",
        "disk.destroy",
        "deny",
    ),
    (
        r"reg\s+delete|schtasks\s+/delete|net\s+user\s+\S+\s+/delete|sc\s+(?:delete|stop)|shutdown\b|net\s+stop"
        r"|wmic\s+\S+\s+delete",
        "system.change",
        "ask",
    ),
    (r"taskkill\s+.*?/im\s+\*", "process.kill", "ask"),
)
_RUNS_TEXT = Pattern(r"(?:^|[;|&{(\n\s])(?:iex|Invoke-Expression)\b", re.IGNORECASE)
_FETCHES = Pattern(r"\b(?:iwr|irm|Invoke-WebRequest|Invoke-RestMethod|DownloadString|DownloadData|curl|wget)\b", re.IGNORECASE)
_ROOTS = Pattern(
    r"(?i)[\"']?(?:[a-z]:[\\/]?(?:\*|windows\b.*|users[\\/]?\*?|program files.*)?|\\|\$env:(?:userprofile|systemroot"
    r"|homepath)\\?\*?|~\\?/?\*?|\$HOME\\?/?\*?|%userprofile%\\?\*?|%systemroot%.*)[\"']?"
)


def windows_effects(code: Code, scene: Scene) -> Iterator[Effect]:
    """The effects of what stands in command position."""
    text = _COMMENT.sub(" ", _QUOTED.sub("''", code.text))
    table = _POWERSHELL if code.language == "powershell" else _CMD
    for pattern, kind, weight in table:
        for found in re.finditer(_POSITION + rf"(?P<name>{pattern})(?P<rest>(?:\s|/|$)[^\n;|&]*)", text, re.IGNORECASE):
            rest = found["rest"]
            if re.search(r"(?i)(?:^|\s)-whatif\b(?!:\$false)|(?:^|\s)(?:/\?|-\?)", rest):
                continue
            if kind != "path.remove":
                yield Effect(kind, (found["name"] + rest).strip()[:100], weight)
            else:
                yield from _removed(rest, code, scene)
    if _RUNS_TEXT.search(text) and _FETCHES.search(text):
        yield Effect("network.run", "code fetched from the network", "ask", instead="fetch it into a file, read it, then run it")
    for inner in re.finditer(_POSITION + r"(git(?:\.exe)?\s[^\n;|]+)", text):
        if "$" not in inner[1]:
            yield from scene.again(inner[1], code.cwd)


def _removed(rest: str, code: Code, scene: Scene) -> Iterator[Effect]:
    """The paths that stand behind a removing command; without one, what comes through its pipe."""
    words = re.findall(r"\"[^\"]*\"|'[^']*'|[^\s,]+", rest)
    paths: list[str] = []
    skip = False
    for word in words:
        lower = word.lower()
        if lower.startswith("-") or re.fullmatch(r"/[a-z](?::\S*)?", lower):
            skip = (
                bool(re.match(r"-(?:erroraction|ea|filter|include|exclude|stream|credential|warningaction)", lower))
                and ":" not in lower
            )
        elif skip:
            skip = False
        elif word not in ("}", ")"):
            paths.append(word.strip("\"'"))
    for path in paths:
        if _ROOTS.fullmatch(path):
            yield Effect("path.remove", path, "deny")
        elif "$" in path or "%" in path or "(" in path:
            if not re.match(r"(?i)\$env:te?mp\b|%te?mp%", path):
                yield Effect("path.remove", path, "ask", detail="the path is not known before it runs")
        elif re.match(r"[A-Za-z]:|\\\\", path):
            yield Effect("path.remove", path, "ask", detail="outside")
        else:
            yield from removal(scene.target(Word(path.replace("\\", "/")), code.cwd), scene)
    if not paths:
        yield from removal(Target(None, "what comes through the pipe"), scene)
