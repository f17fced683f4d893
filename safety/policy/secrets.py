"""Credentials in lines about to be committed, told by their exact formats ([guard] 4.3).

A rule knows the prefix and the length that an issuer gives its tokens, or the name that stands before a value without a prefix.
Entropy is never measured: a refused commit must be one that was right to refuse. The value itself leaves this module in no way.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from safety.faults import SafetyError

_TOKEN_HINT = (
    "keep the value outside the repository and replace it if it was ever used; a line that may stay ends with gitleaks:allow"
)
_PATH_HINT = "name it in .gitignore, or commit it yourself once if it holds nothing secret"


class BaselineBroken(SafetyError):
    """``.secrets.baseline`` is not what detect-secrets writes."""

    code = "secrets-baseline-broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that holds a credential. ``line`` counts from 1; 0 means the file as a whole, by its name."""

    rule: str
    path: bytes
    line: int
    hint: str


class _Rule(NamedTuple):
    """``pattern`` is tried only on text that holds one of the ``words`` (lower case); its group ``v`` is the value, else all of it."""

    name: str
    words: tuple[bytes, ...]
    pattern: re.Pattern[bytes]


def _rule(name: str, words: str, pattern: str) -> _Rule:
    # A token ends where no further letter, digit or underscore stands; before it the same, so that a longer word is not cut,
    # but for the letter of an escape: `"\ntoken"`.
    around = rf"(?:(?<![0-9A-Za-z_])|(?<=\\[nrt])){pattern}(?![0-9A-Za-z_])"
    return _Rule(name, tuple(words.encode().split()), re.compile(around.encode()))


def _named(name: str, words: str, before: str, value: str) -> _Rule:
    """A value without a prefix of its own, told by the name it is given to: ``name = "value"``, ``"name": value``, ``NAME=value``."""
    between = r"""["']?[ \t]{0,8}(?::=|=>|=|:|,)[ \t]{0,8}["'`]?"""
    pattern = rf"(?i:{before}){between}(?P<v>{value})(?![0-9A-Za-z_/+=-])"
    return _Rule(name, tuple(words.encode().split()), re.compile(pattern.encode()))


_HEX32 = "[0-9a-f]{32}"
_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

_RULES: tuple[_Rule, ...] = (
    _rule("aws-access-key-id", "akia asia abia acca a3t", "(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    _named("aws-secret-access-key", "secret", r"(?:aws.{0,20}secret|secret_?access_?key)[\w.-]{0,20}", "[0-9A-Za-z/+]{40}"),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", "gh[pousr]_[0-9A-Za-z]{36,251}"),
    _rule("github-fine-grained-token", "github_pat_", "github_pat_[0-9A-Za-z_]{82}"),
    _rule("gitlab-token", "gl", "gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-[0-9A-Za-z_=-]{20,300}"),
    _rule("slack-token", "xox", "xox[abeoprs](?:\\.xox[bp])?-[0-9]{1,14}-[0-9A-Za-z-]{16,200}"),
    _rule("slack-app-token", "xapp-", "xapp-[0-9]-[0-9A-Z]{6,20}-[0-9]{6,20}-[0-9a-z]{32,128}"),
    _rule(
        "slack-webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[0-9A-Z]{6,20}/[0-9A-Z]{6,20}/[0-9A-Za-z]{16,64}",
    ),
    _rule("stripe-key", "sk_ rk_", "[sr]k_(?:live|test|prod)_[0-9A-Za-z]{24,247}"),
    _rule("stripe-webhook-secret", "whsec_", "whsec_[0-9A-Za-z+/]{32,64}={0,2}"),
    _rule("anthropic-key", "sk-ant-", "sk-ant-[a-z]{3,8}[0-9]{2}-[0-9A-Za-z_-]{32,200}"),
    _rule("openai-key", "sk-", "sk-(?:(?:proj|svcacct|admin)-[0-9A-Za-z_-]{40,250}|[0-9A-Za-z]{48})"),
    _rule("openrouter-key", "sk-or-v1-", "sk-or-v1-[0-9a-f]{64}"),
    _rule("google-api-key", "aiza", "AIza[0-9A-Za-z_-]{35}"),
    _rule("google-oauth-secret", "gocspx-", "GOCSPX-[0-9A-Za-z_-]{28}"),
    _rule("google-oauth-token", "ya29.", r"ya29\.[0-9A-Za-z_-]{40,400}"),
    _named("gcp-service-account", "private_key_id", "private_key_id", "[0-9a-f]{40}"),
    _named("azure-storage-key", "accountkey storage", "(?:account|storage)_?(?:account_?)?key", "[0-9A-Za-z+/]{86}=="),
    _rule("azure-client-secret", "q~", r"[0-9A-Za-z_~.]{3}[0-9]Q~[0-9A-Za-z_~.-]{31,34}"),
    _rule("twilio-key", "sk", f"SK{_HEX32}"),
    _named("twilio-auth-token", "twilio", r"twilio.{0,20}(?:token|secret|key)", _HEX32),
    _rule("sendgrid-key", "sg.", r"SG\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43}"),
    _rule("mailgun-key", "key-", f"(?<!-)key-{_HEX32}"),
    _named("mailgun-key", "mailgun", r"mailgun[\w.-]{0,20}", "(?:key-)?[0-9a-z]{32}(?:-[0-9a-f]{8}-[0-9a-f]{8})?"),
    _rule("npm-token", "npm_", "npm_[0-9A-Za-z]{36}"),
    _named("npm-token", "_authtoken", "//[^ ]{1,200}/:_authtoken", f"{_UUID}"),
    _rule("pypi-token", "pypi-age", "pypi-AgE[0-9A-Za-z_-]{40,1000}"),
    _rule("hugging-face-token", "hf_ api_org_", "(?:hf|api_org)_[0-9A-Za-z]{34,40}"),
    _rule("jwt", "eyj", r"eyJ[0-9A-Za-z_-]{10,4000}\.eyJ[0-9A-Za-z_-]{10,8000}\.[0-9A-Za-z_-]{20,1000}"),
    _rule("telegram-bot-token", ":a", "(?<![:.-])[0-9]{8,10}:A[0-9A-Za-z_-]{34}(?!-)"),
    _rule("discord-bot-token", ".", r"[MNO][0-9A-Za-z_-]{23,27}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,38}"),
    _rule("discord-webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/[0-9A-Za-z_-]{60,80}"),
    _rule("shopify-token", "shp", "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _rule("digitalocean-token", "_v1_", "do[opr]_v1_[0-9a-f]{64}"),
    _rule("heroku-key", "hrku-", "HRKU-[0-9A-Za-z_-]{36,70}"),
    _named("heroku-key", "heroku", r"heroku[\w.-]{0,20}", _UUID),
    _rule("databricks-token", "dapi", "dapi[0-9a-f]{32}(?:-[0-9]{1,2})?"),
    _rule("docker-token", "dckr_", "dckr_(?:pat|oat)_[0-9A-Za-z_-]{27,40}"),
    _rule("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[0-9A-Za-z_-]{24,300}"),
    _named("vault-token", "vault", r"vault_?token", r"s\.[0-9A-Za-z]{24}"),
    _rule("terraform-token", ".atlasv1.", r"[0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z_=-]{60,70}"),
    _rule("atlassian-token", "atatt3", "ATATT3[0-9A-Za-z_=-]{100,250}"),
    _rule("grafana-token", "glsa_", "glsa_[0-9A-Za-z]{32}_[0-9a-fA-F]{8}"),
    _rule("new-relic-key", "nrak-", "NRAK-[0-9A-Z]{27}"),
    _rule("sentry-token", "sntr", "(?:sntryu_[0-9a-f]{64}|sntrys_eyJ[0-9A-Za-z_=+/]{40,400})"),
    _rule("square-token", "sq0", "sq0(?:csp-[0-9A-Za-z_-]{43}|atp-[0-9A-Za-z_-]{22})"),
    _rule("rubygems-key", "rubygems_", "rubygems_[0-9a-f]{48}"),
    _rule("crates-io-token", "cio", "cio[0-9A-Za-z]{32}"),
    _rule("linear-key", "lin_api_", "lin_api_[0-9A-Za-z]{40}"),
    _rule("notion-token", "ntn_", "ntn_[0-9]{11}[0-9A-Za-z]{35}"),
    _rule("postman-key", "pmak-", "PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _rule("pulumi-token", "pul-", "pul-[0-9a-f]{40}"),
    _rule("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[0-9A-Za-z_.=-]{32,64}"),
    _rule("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa)\.(?:[0-9A-Za-z_-]{2,35}\.)?[0-9A-Za-z]{40,44}"),
    _rule("groq-key", "gsk_", "gsk_[0-9A-Za-z]{52}"),
    _rule("xai-key", "xai-", "xai-[0-9A-Za-z]{80}"),
    _rule("perplexity-key", "pplx-", "pplx-[0-9A-Za-z]{48}"),
    _rule("replicate-token", "r8_", "r8_[0-9A-Za-z]{37}"),
    _rule("supabase-token", "sbp_", "sbp_[0-9a-f]{40}"),
    _rule("airtable-token", "pat", r"pat[0-9A-Za-z]{14}\.[0-9a-f]{64}"),
    _rule("tailscale-key", "tskey-", "tskey-[a-z]{3,12}-[0-9A-Za-z]{6,32}-[0-9A-Za-z]{20,64}"),
    _rule("age-key", "age-secret-key-1", "AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _rule("putty-key", "putty-user-key-file-", "PuTTY-User-Key-File-[23]: [a-z0-9-]{3,40}"),
    # A name and a password before the host. The name may be empty (redis), the password not; `$`, `{`, `<` and `*` mean a blank to fill.
    _Rule(
        "password-in-url",
        (b"://",),
        re.compile(rb"""://(?P<user>[^\s:/@"'<>{}$]{0,64}):(?P<v>[^\s/@"'`<>{}$*\\]{4,128})@(?P<host>[0-9A-Za-z_.\[-]{1,253})"""),
    ),
)

# The header of a key at the end of a line, or with the key's own text behind it. Code that only looks for the header goes on in
# another way, with a quote and a bracket or a comparison; a page that shows what a key looks like leaves its text out.
_KEY_HEADER = re.compile(rb"-----(?P<v>BEGIN (?:[0-9A-Z]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?)-----(?P<rest>.*)")
_KEY_LEFT_OUT = re.compile(rb"""[\s"'+>|#/*]*(?:\.\.|\xe2\x80\xa6|[<\[{$]|-----END)""")
_KEY_BODY_INLINE = re.compile(rb"(?:\\+[nr]|\s)+[0-9A-Za-z+/]{16,}")

_ALLOWED = re.compile(rb"gitleaks:allow|pragma: ?(?:allow|white)list[ -]secret", re.IGNORECASE)
_ALLOWED_NEXT = re.compile(rb"pragma: ?(?:allow|white)list[ -]nextline[ -]secret", re.IGNORECASE)

# What stands where a value should: the words of templates, one character over and over.
_BLANK = re.compile(
    rb"example|placeholder|redacted|change[-_]?me|replace[-_]?(?:me|this|with)|insert[-_]|your[-_]|[-_]here|dummy|not[-_]?(?:a[-_]?)?real"
    rb"|(.)\1{7}",
    re.IGNORECASE | re.DOTALL,
)
_FEWEST_CHARACTERS = 6  # different ones in a value longer than 15; `xxxx-xxxx` and `1212...` have fewer
_COMMON_PASSWORDS = frozenset(
    b"pass passwd password passw0rd secret user username admin root test testing token guest postgres mysql redis rabbitmq mongo tiger "
    b"foobar qwerty 1234 12345 123456 12345678 xxxx none null hunter2 pwd".split()
)
_EXAMPLE_HOST = re.compile(rb"(?:.*\.)?(?:example(?:\.(?:com|org|net))?|test|invalid|host(?:name)?)\.?", re.IGNORECASE)


def scan(path: bytes, added_lines: Iterable[tuple[int, bytes]], accepted: frozenset[str] = frozenset()) -> list[Finding]:
    """The credentials in lines that a commit would add to ``path``, by line; each rule at most once a line.

    ``added_lines`` are numbered as in the new file. ``accepted`` are the SHA-1 hashes that the repository's ``.secrets.baseline`` gives
    for this path (see `parse_baseline`). A line that carries ``gitleaks:allow`` or ``pragma: allowlist secret`` is passed over.
    """
    found: dict[tuple[int, str], Finding] = {}
    lines = _without_allowed(added_lines)
    text = b"\n".join(line for _, line in lines).lower()
    rules = [rule for rule in _RULES if any(word in text for word in rule.words)]
    if rules:
        for number, line in lines:
            for name, value in _matches(rules, line):
                if not _accepted(value, accepted):
                    found.setdefault((number, name), Finding(name, path, number, _TOKEN_HINT))
    if b"private key" in text:
        for number, value in _key_blocks(lines):
            if not _accepted(value, accepted):
                found.setdefault((number, "private-key"), Finding("private-key", path, number, _TOKEN_HINT))
    return [found[key] for key in sorted(found)]


def _without_allowed(added_lines: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    kept = []
    passed_over = -1
    for number, line in added_lines:
        if _ALLOWED_NEXT.search(line):
            passed_over = number + 1
        elif number != passed_over and not _ALLOWED.search(line):
            kept.append((number, line))
    return kept


def _matches(rules: Iterable[_Rule], line: bytes) -> Iterator[tuple[str, bytes]]:
    lower = line.lower()
    for rule in rules:
        if not any(word in lower for word in rule.words):
            continue
        for match in rule.pattern.finditer(line):
            value = match["v"] if "v" in rule.pattern.groupindex else match[0]
            if not (_is_common(match) if "host" in rule.pattern.groupindex else _is_blank(value)):
                yield rule.name, value


def _is_blank(value: bytes) -> bool:
    return bool(_BLANK.search(value)) or (len(value) > 15 and len(set(value)) < _FEWEST_CHARACTERS)


def _is_common(match: re.Match[bytes]) -> bool:
    password = match["v"].lower()
    return (
        password in _COMMON_PASSWORDS
        or password == match["user"].lower()
        or bool(_BLANK.search(password))
        or len(set(password)) < 3
        or bool(_EXAMPLE_HOST.fullmatch(match["host"]))
    )


def _key_blocks(lines: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    for at, (number, line) in enumerate(lines):
        match = _KEY_HEADER.search(line)
        if match is None:
            continue
        if match["rest"].strip():
            if _KEY_BODY_INLINE.match(match["rest"]):
                yield number, match["v"]
            continue
        follows = lines[at + 1][1] if at + 1 < len(lines) and lines[at + 1][0] == number + 1 else b""
        if not _KEY_LEFT_OUT.match(follows) and not _BLANK.search(follows):
            yield number, match["v"]


def _accepted(value: bytes, accepted: frozenset[str]) -> bool:
    return bool(accepted) and hashlib.sha1(value, usedforsecurity=False).hexdigest() in accepted


def parse_baseline(text: bytes) -> Mapping[bytes, frozenset[str]]:
    """The hashes that a ``.secrets.baseline`` of detect-secrets accepts, by path. Raises BaselineBroken."""
    try:
        results = json.loads(text)["results"]
        return {
            path.encode("utf-8", "surrogateescape"): frozenset(str(entry["hashed_secret"]) for entry in entries)
            for path, entries in results.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise BaselineBroken(".secrets.baseline cannot be read", "detect-secrets scan >.secrets.baseline") from fault


_SECRET_NAMES = {
    "env-file": re.compile(rb"\.env(?:\..+)?"),
    "ssh-key-file": re.compile(rb"id_(?:rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk|xmss)(?:[._-].*)?"),
    "key-file": re.compile(rb".+\.(?:pem|p12|pfx|ppk|jks|keystore|kdbx)"),
    "netrc-file": re.compile(rb"[._]netrc"),
    "credentials-file": re.compile(
        rb"credentials|\.git-credentials|\.pgpass|\.pypirc|\.htpasswd|\.dockercfg|application_default_credentials\.json"
    ),
}
_HARMLESS_NAMES = re.compile(
    rb".*(?:\.pub|[._-](?:example|sample|template|tmpl|dist|defaults?|schema)(?:\.[a-z]{1,5})?)|\.env\.[cm]?[jt]s"
)


def path_rule(path: bytes) -> Finding | None:
    """The finding for a file that holds credentials by its name (``.env``, ``id_rsa``, ``*.pem``, ...), else None.

    Only for paths that are not tracked yet: what the user once committed is the user's decision.
    """
    name = path.rpartition(b"/")[2].lower()
    if _HARMLESS_NAMES.fullmatch(name):
        return None
    for rule, pattern in _SECRET_NAMES.items():
        if pattern.fullmatch(name):
            return Finding(rule, path, 0, _PATH_HINT)
    return None
