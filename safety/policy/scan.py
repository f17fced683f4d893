"""Looking for danger words in text that is not parsed: too long, unbalanced, or with no parser at hand."""

from __future__ import annotations

import re

_SAME = r"[^\n;|&]{0,120}"  # as far as one command may reach
# The danger word; the words, in small letters, one of which must be there; what the text must match from that word on.
_RULES: tuple[tuple[str, str, str], ...] = (
    ("rm", "rm", r"rm(?:\.exe)?['\"]?[ \t]+(?:-|[~/.$*'\"\\])"),
    ("xargs rm", "xargs", rf"xargs\b{_SAME}\b(?:rm|shred|unlink)\b"),
    ("rmdir", "rmdir rmdirsync", r"rmdir"),
    ("unlink", "unlink unlinksync", r"unlink"),
    ("shred", "shred", r"shred\s"),
    ("truncate", "truncate truncatesync", r"truncate"),
    ("git reset", "reset", rf"reset\b{_SAME}--[hkm]"),
    ("git clean", "clean", rf"clean\b{_SAME}\s-"),
    ("git checkout", "checkout", rf"checkout\b{_SAME}\s(?:-f|--f|--\s|\.)"),
    ("git switch", "switch", rf"switch\b{_SAME}\s(?:-f|--f|--d|-c)"),
    ("git restore", "restore", r"(?<=git )restore\b"),
    ("git push", "push", rf"push\b{_SAME}\s(?:-|\+|:)"),
    ("git branch", "branch", rf"branch\b{_SAME}\s(?:-[a-z]*[dmf]|--delete|--force)"),
    ("git stash", "stash", rf"stash\b{_SAME}(?:drop|clear|pop)"),
    ("git reflog", "reflog", rf"reflog\b{_SAME}(?:expire|delete)"),
    ("git gc", "gc", r"(?<=git )gc\b"),
    ("prune", "prune", r"prune\b"),
    ("git filter", "filter", r"filter-(?:branch|repo)\b"),
    ("git update-ref", "update", r"update-ref\b"),
    ("git worktree", "worktree", rf"worktree\b{_SAME}\bremove\b"),
    ("git submodule", "submodule", rf"submodule\b{_SAME}\b(?:deinit|foreach|update)\b"),
    ("dd", "dd", r"dd\s+[a-z]+="),
    ("mkfs", "mkfs", r"mkfs"),
    ("wipefs", "wipefs", r"wipefs"),
    ("-delete", "delete", r"(?<=\s-)delete\b"),
    ("rsync --delete", "rsync", rf"rsync\b{_SAME}--del"),
    ("rmtree", "rmtree remove_tree rm_rf rm_r rmsync", ""),
    ("remove-item", "remove", r"remove-item\b"),
    ("clear-content", "clear", r"clear-content\b"),
    ("del /s", "del rd erase", r"(?:del|rd|erase)\s+/[sqf]\b"),
    ("drop", "drop dropdb dropdatabase", r"drop\s+(?:table|database|schema|index|view|user|role|owned)\b|dropdb\b|dropdatabase\b"),
    ("delete from", "delete", r"delete\s+from\b"),
    ("flush", "flushall flushdb", ""),
    ("kubectl delete", "kubectl", rf"kubectl\b{_SAME}\b(?:delete|drain)\b"),
    ("terraform", "terraform", rf"terraform\b{_SAME}\b(?:destroy|apply)\b"),
    ("destroy", "destroy", ""),
    ("helm", "helm", rf"helm\b{_SAME}\b(?:uninstall|delete)\b"),
    ("docker", "docker podman", rf"(?:docker|podman)\b{_SAME}\b(?:prune|rm|rmi|reset|down)\b"),
    ("aws", "aws", rf"aws\b{_SAME}(?:delete|terminate|\brm\b|\brb\b)"),
    ("gcloud", "gcloud", rf"gcloud\b{_SAME}delete"),
    ("download to a shell", "curl wget",
     r"(?:curl|wget)\b[^\n]{0,400}\|\s*(?:sudo\s+)?(?:\w{0,5}sh|python\d?|perl|ruby|node)\b|(?<=[(`])(?:curl|wget)\b"),
    ("device", "dev", r"(?<=/)dev/(?:tcp|udp|sd[a-z]|nvme|disk)"),
    ("base64 -d", "base64", r"base64\b[^\n;]{0,200}\s-(?:d|-d)[^\n;]{0,200}\|\s*\w{0,5}sh\b"),
    ("chmod -r", "chmod chown", r"ch(?:mod|own)\s+-[a-z]*r"),
    ("kill", "kill killall pkill", r"p?kill(?:all)?\s+-?\w"),
    ("shutdown", "shutdown reboot", ""),
    ("git-safety", "git", r"git[- ]safety\b"),
    ("git_safety", "git_safety_disable", ""),
    ("refs/safety", "safety", r"(?<=refs/)safety\b"),
    ("core.hookspath", "hookspath", ""),
    (".git", "git", r"(?<=\.)git/(?:hooks|objects|refs|config|index|head)\b"),
    ("settings", "claude", r"(?<=\.)claude/settings"),
    ("--no-verify", "no", r"(?<=--)no-verify\b"),
)  # fmt: skip
_BY_WORD: dict[str, list[tuple[str, str]]] = {}
for _label, _words, _pattern in _RULES:
    for _word in _words.split():
        _BY_WORD.setdefault(_word, []).append((_label, _pattern))
# Every byte that is not part of a word becomes a blank, capitals become small.
_BLANKED = bytes(byte if chr(byte).islower() or chr(byte).isdigit() or byte in b"_" else 32 for byte in range(128)) + b" " * 128
_TABLE = bytes(_BLANKED[ord(chr(byte).lower())] if byte < 128 else 32 for byte in range(256))
_COMPILED: dict[str, re.Pattern[str]] = {}
MAX_TRIES = 400  # of one rule; a text with more of what only looks like the word counts as having it


def danger_words(text: str) -> tuple[str, ...]:
    """The danger words in ``text``, each once, quoted or not."""
    there = _BY_WORD.keys() & {word.decode() for word in set(text.encode("utf-8", "replace").translate(_TABLE).split())}
    if not there:
        return ()
    low = text.lower()
    found = {label for word in there for label, pattern in _BY_WORD[word] if _matches(low, word, pattern)}
    return tuple(label for label, _, _ in _RULES if label in found)


def _matches(low: str, word: str, pattern: str) -> bool:
    if not pattern:
        return True
    compiled = _COMPILED.get(pattern)
    if compiled is None:
        compiled = _COMPILED[pattern] = re.compile(pattern)
    at, tries = low.find(word), 0
    while at >= 0:
        if not at or not (low[at - 1].isalnum() or low[at - 1] == "_"):
            tries += 1
            if tries > MAX_TRIES or compiled.match(low, at):
                return True
        at = low.find(word, at + 1)
    return False
