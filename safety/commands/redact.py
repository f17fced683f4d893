"""Credentials in commands and prompts are not shown: the log is read over shoulders and pasted into bug reports."""

from __future__ import annotations

import re

HIDDEN = "***"

_NAMES = r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|(?:api|access|auth|private|client)[-_]?(?:key|secret))"
_VALUE = r"""(?:"[^"\n]*"?|'[^'\n]*'?|[^\s"'&;|]+)"""

# What a secret looks like by itself. Lengths are those of the issuers, a bit lower, since texts are cut.
_TOKENS = re.compile(
    r"""
    \b(?:AKIA|ASIA)[0-9A-Z]{12,}
    | \bgh[pousr]_[A-Za-z0-9]{16,} | \bgithub_pat_\w{16,} | \bglpat-[\w-]{16,}
    | \bsk-[A-Za-z0-9_-]{16,} | \b[rs]k_(?:live|test)_\w{12,}
    | \bxox[a-z]-[\w-]{10,} | \bAIza[\w-]{30,} | \bhf_[A-Za-z0-9]{20,} | \bnpm_[A-Za-z0-9]{20,} | \bpypi-[\w-]{20,}
    | \beyJ[\w-]{10,}\.[\w-]{6,}(?:\.[\w-]*)?
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
# What stands before a secret. The first group stays, the rest is hidden.
_LED = (
    re.compile(rf"((?<![\w-])--?[\w-]*{_NAMES}(?:=|\s+)){_VALUE}", re.IGNORECASE),
    re.compile(rf"(\b\w*{_NAMES}\w*=){_VALUE}", re.IGNORECASE),
    re.compile(rf"""(["']?\b[\w-]*{_NAMES}["']?\s*:\s*){_VALUE}""", re.IGNORECASE),
    re.compile(r"((?:proxy-)?authorization\s*[:=]\s*(?:(?:bearer|basic|token|digest|apikey)\s+)?)[^\s\"']+", re.IGNORECASE),
    re.compile(r"(\b(?:bearer)\s+)[A-Za-z0-9._~+/=-]{12,}", re.IGNORECASE),
    re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s/:@'\"]*:)[^\s/@'\"]+(?=@)", re.IGNORECASE),
    re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/:@'\"]{16,}(?=@)", re.IGNORECASE),
    re.compile(r"((?:^|\s)(?:-u|--user|--proxy-user)(?:=|\s*)[\"']?[^\s:\"']+:)[^\s\"']+"),
    re.compile(rf"(\bsshpass\s+-p\s*){_VALUE}"),
)


def redacted(text: str) -> str:
    """The text with ``***`` for whatever looks like a password, a key or a token."""
    text = _TOKENS.sub(HIDDEN, text)
    for led in _LED:
        text = led.sub(lambda found: found[1] + HIDDEN, text)
    return text
