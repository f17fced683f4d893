"""Looking for danger words in text that is not parsed: too long, unbalanced, or with no parser at hand."""

from __future__ import annotations

import re

# What each word needs around it to count. The first part is looked for literally, so that a megabyte costs milliseconds.
_WORDS: tuple[tuple[str, str], ...] = (
    ("rm", r"\brm\s+-|\brm\s+[~/.$*'\"]|[|;&`(]\s*rm\s|xargs\s.*\brm\b"),
    ("rmdir", r"\brmdir\s"),
    ("unlink", r"\bunlink\b"),
    ("shred", r"\bshred\s"),
    ("truncate", r"\btruncate\b"),
    ("git reset", r"\bgit\b[^\n;|&]{0,120}\breset\b[^\n;|&]{0,120}--[hkm]"),
    ("git clean", r"\bgit\b[^\n;|&]{0,120}\bclean\b[^\n;|&]{0,120}\s-"),
    ("git checkout", r"\bgit\b[^\n;|&]{0,120}\b(?:checkout|switch)\b[^\n;|&]{0,120}\s(?:-f|--f|--\s|\.)"),
    ("git restore", r"\bgit\b[^\n;|&]{0,120}\brestore\b"),
    ("git push", r"\bgit\b[^\n;|&]{0,120}\bpush\b[^\n;|&]{0,120}\s(?:-|\+|:)"),
    ("git branch", r"\bgit\b[^\n;|&]{0,120}\bbranch\b[^\n;|&]{0,120}\s(?:-[a-zA-Z]*[DMfd]|--delete|--force)"),
    ("git stash", r"\bgit\b[^\n;|&]{0,120}\bstash\b[^\n;|&]{0,120}\s(?:drop|clear|pop)"),
    ("git reflog", r"\bgit\b[^\n;|&]{0,120}\breflog\b[^\n;|&]{0,120}\s(?:expire|delete)"),
    ("git gc", r"\bgit\b[^\n;|&]{0,120}\b(?:gc|prune|repack)\b"),
    ("git filter", r"\bfilter-(?:branch|repo)\b"),
    ("git update-ref", r"\bupdate-ref\b"),
    ("git worktree", r"\bworktree\b[^\n;|&]{0,120}\bremove\b"),
    ("git submodule", r"\bsubmodule\b[^\n;|&]{0,120}\b(?:deinit|foreach|update)\b"),
    ("dd", r"\bdd\s+[a-z]+="),
    ("mkfs", r"\b(?:mkfs|wipefs|fdisk|parted|sgdisk)\b"),
    ("-delete", r"\s-delete\b"),
    ("rsync --delete", r"\brsync\b[^\n;|&]{0,120}--del"),
    ("rmtree", r"\brmtree\b|\bremove_tree\b|\brm_rf\b|\brmsync\b|\brmdirsync\b|\bunlinksync\b"),
    ("remove-item", r"\b(?:remove-item|clear-content|format-volume|clear-disk)\b"),
    ("del /s", r"\b(?:del|erase|rd|rmdir)\s+/[sqf]\b"),
    ("drop", r"\bdrop\s+(?:table|database|schema|index|view|user|role)\b|\bdropdb\b|\bdropdatabase\b"),
    ("delete from", r"\bdelete\s+from\b"),
    ("truncate table", r"\btruncate\s+\w"),
    ("flushall", r"\bflush(?:all|db)\b"),
    ("kubectl delete", r"\bkubectl\b[^\n;|&]{0,120}\b(?:delete|drain)\b"),
    ("destroy", r"\b(?:terraform|pulumi|cdk|tofu|vagrant)\b[^\n;|&]{0,120}\b(?:destroy|apply)\b"),
    ("helm uninstall", r"\bhelm\b[^\n;|&]{0,120}\b(?:uninstall|delete)\b"),
    ("docker prune", r"\b(?:docker|podman)\b[^\n;|&]{0,120}\b(?:prune|rm|rmi|reset|down)\b"),
    ("cloud delete", r"\b(?:aws|gcloud|az|gsutil|heroku|doctl)\b[^\n;|&]{0,120}(?:delete|destroy|terminate|\brm\b|\brb\b)"),
    ("pipe to a shell", r"\b(?:curl|wget)\b[^\n]{0,400}\|\s*(?:sudo\s+)?(?:\w{0,5}sh|python\d?|perl|ruby|node)\b"
                        r"|\b(?:\w{0,5}sh|eval|source)\b[^\n]{0,80}\$\((?:curl|wget)\b"),
    ("/dev/tcp", r"/dev/(?:tcp|udp|sd[a-z]|nvme)"),
    ("base64 -d", r"\bbase64\b[^\n;]{0,200}\s-(?:d|-d|D)[^\n;]{0,200}\|\s*\w*sh\b"),
    ("chmod -r", r"\b(?:chmod|chown)\s+-[a-z]*r"),
    ("kill", r"\b(?:pkill|killall|kill)\s+-|\bshutdown\b|\breboot\b"),
    ("git-safety", r"\bgit-safety\b|\bgit\s+safety\b|refs/safety\b|\bgit_safety"),
    ("hooks", r"\bcore\.hookspath\b|\.git/hooks\b|\.git/objects\b|\.claude/settings|--no-verify\b"),
)  # fmt: skip
_STEMS: dict[str, str] = {
    "git reset": "reset", "git clean": "clean", "git checkout": "git", "git restore": "restore", "git push": "push",
    "git branch": "branch", "git stash": "stash", "git reflog": "reflog", "git gc": "git", "git filter": "filter-",
    "git update-ref": "update-ref", "git worktree": "worktree", "git submodule": "submodule", "mkfs": "", "rsync --delete": "--del",
    "rmtree": "", "remove-item": "-", "del /s": "/", "delete from": "delete", "truncate table": "truncate", "flushall": "flush",
    "kubectl delete": "kubectl", "destroy": "", "helm uninstall": "helm", "docker prune": "", "cloud delete": "",
    "pipe to a shell": "", "/dev/tcp": "/dev/", "base64 -d": "base64", "chmod -r": "ch", "kill": "", "git-safety": "safety",
    "hooks": "",
}  # fmt: skip
_COMPILED: dict[str, re.Pattern[str]] = {}


def danger_words(text: str) -> tuple[str, ...]:
    """The danger words in ``text``, each once, however they are quoted."""
    low = text.lower()
    return tuple(word for word, pattern in _WORDS if _STEMS.get(word, word) in low and _pattern(word, pattern).search(low))


def _pattern(word: str, pattern: str) -> re.Pattern[str]:
    found = _COMPILED.get(word)
    if found is None:
        found = _COMPILED[word] = re.compile(pattern)
    return found
