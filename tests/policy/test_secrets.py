"""Which added lines hold a credential, and which only look like it.

No value stands in this file: each is put together when the test runs, so that no scanner, ours included, trips over the repository.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import time
import uuid
from collections.abc import Callable

import pytest

from safety.policy import secrets
from safety.policy.secrets import BaselineBroken, Finding, parse_baseline, path_rule, scan

HEX = "0123456789abcdef"
LETTERS = string.ascii_letters
WORD = LETTERS + string.digits
BASE64 = WORD + "+/"
URL64 = WORD + "-_"
UPPER = string.ascii_uppercase + "234567"
BEGIN, END = "-----BEGIN ", "-----"

_chance = random.Random(7)


def made(alphabet: str, length: int) -> str:
    """A value of this many characters that ends in a letter or digit, as an issuer would make it."""
    return "".join(_chance.choice(alphabet) for _ in range(length - 1)) + _chance.choice(
        [char for char in alphabet if char.isalnum()]
    )


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


# The kind, and a line that holds one.
SECRETS: dict[str, Callable[[], str]] = {
    "aws-access-key-id": lambda: f"aws_access_key_id = {'AK' + 'IA'}{made(UPPER, 16)}",
    "aws-secret-access-key": lambda: f'AWS_SECRET_ACCESS_KEY="{made(BASE64, 40)}"',
    "github-token": lambda: f"GITHUB_TOKEN={'gh' + 'p_'}{made(WORD, 36)}",
    "github-fine-grained-token": lambda: f"token: {'github' + '_pat_'}{made(WORD, 22)}_{made(WORD, 59)}",
    "gitlab-token": lambda: f"private_token={'gl' + 'pat-'}{made(URL64, 20)}",
    "slack-token": lambda: f"slack({'xo' + 'xb-'}{made('123', 12)}-{made('123', 12)}-{made(WORD, 24)})",
    "slack-webhook": lambda: f"https://hooks.slack.com/services/T{made(UPPER, 8)}/B{made(UPPER, 8)}/{made(WORD, 24)}",
    "stripe-key": lambda: f"stripe.api_key = '{'sk' + '_live_'}{made(WORD, 24)}'",
    "anthropic-key": lambda: f"ANTHROPIC_API_KEY={'sk-' + 'ant-api03-'}{made(URL64, 93)}AA",
    "openai-key": lambda: f"OPENAI_API_KEY={'sk-' + 'proj-'}{made(URL64, 74)}T3BlbkFJ{made(URL64, 74)}",
    "google-api-key": lambda: f"const key = `{'AI' + 'za'}{made(URL64, 35)}`",
    "gcp-service-account": lambda: f'  "private_key_id": "{made(HEX, 40)}",',
    "azure-storage-key": lambda: f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={made(BASE64, 86)}==;EndpointSuffix=x",
    "twilio-key": lambda: f"Client('{'S' + 'K'}{made(HEX, 32)}')",
    "sendgrid-key": lambda: f"SENDGRID={'S' + 'G.'}{made(URL64, 22)}.{made(URL64, 43)}",
    "mailgun-key": lambda: f"auth=('api', '{'ke' + 'y-'}{made(HEX, 32)}')",
    "npm-token": lambda: f"//npm.example.test/:_authToken={'np' + 'm_'}{made(WORD, 36)}",
    "pypi-token": lambda: f"password = {'py' + 'pi-AgEIcHlwaS5vcmc'}{made(URL64, 120)}",
    "hugging-face-token": lambda: f"login('{'h' + 'f_'}{made(LETTERS, 34)}')",
    "jwt": lambda: (
        f"Authorization: Bearer {encoded(json.dumps({'alg': 'HS256'}))}.{encoded(json.dumps({'sub': 'u1'}))}.{made(URL64, 43)}"
    ),
    "telegram-bot-token": lambda: f"bot = '{made('123456789', 10)}:{'A' + 'A'}{made(URL64, 33)}'",
    "discord-bot-token": lambda: f"client.run('M{made(WORD, 23)}.{made(WORD, 6)}.{made(URL64, 27)}')",
    "shopify-token": lambda: f"X-Shopify-Access-Token: {'shp' + 'at_'}{made(HEX, 32)}",
    "digitalocean-token": lambda: f"DO={'do' + 'p_v1_'}{made(HEX, 64)}",
    "heroku-key": lambda: f"HEROKU_API_KEY={uuid.UUID(int=_chance.getrandbits(128), version=4)}",
    "databricks-token": lambda: f"token = {'da' + 'pi'}{made(HEX, 32)}",
    "docker-token": lambda: f"docker login -p {'dckr' + '_pat_'}{made(URL64, 27)}",
    "vault-token": lambda: f"VAULT_TOKEN={'hv' + 's.'}{made(URL64, 90)}",
    "password-in-url": lambda: f"DATABASE_URL=postgres://app:{made(WORD, 14)}@db.internal:5432/app",
    "private-key": lambda: f"{BEGIN}OPENSSH PRIVATE KEY{END}",
}

# Further issuers, and further forms of those above.
MORE: tuple[tuple[str, Callable[[], str]], ...] = (
    ("github-token", lambda: f'print("token\\n{"gh" + "s_"}{made(WORD, 36)}")'),
    ("slack-app-token", lambda: f"{'xa' + 'pp-1-'}{made(UPPER, 11)}-{made('123', 13)}-{made(HEX, 64)}"),
    ("stripe-webhook-secret", lambda: f"{'wh' + 'sec_'}{made(WORD, 32)}"),
    ("openai-key", lambda: f"{'s' + 'k-'}{made(WORD, 48)}"),
    ("openrouter-key", lambda: f"{'sk-' + 'or-v1-'}{made(HEX, 64)}"),
    ("google-oauth-secret", lambda: f"{'GOC' + 'SPX-'}{made(URL64, 28)}"),
    ("google-oauth-token", lambda: f"{'ya' + '29.'}{made(URL64, 120)}"),
    ("azure-storage-key", lambda: f'AZURE_STORAGE_KEY: "{made(BASE64, 86)}=="'),
    ("azure-client-secret", lambda: f"secret = abc8{'Q' + '~'}{made(URL64, 34)}"),
    ("twilio-auth-token", lambda: f"TWILIO_AUTH_TOKEN = '{made(HEX, 32)}'"),
    ("mailgun-key", lambda: f"MAILGUN_API_KEY={made(HEX, 32)}-{made(HEX, 8)}-{made(HEX, 8)}"),
    ("npm-token", lambda: f"//npm.example.test/:_authToken={uuid.UUID(int=_chance.getrandbits(128))}"),
    ("discord-webhook", lambda: f"https://discord.com/api/webhooks/{made('123456789', 18)}/{made(URL64, 68)}"),
    ("heroku-key", lambda: f"{'HR' + 'KU-'}AA{made(URL64, 58)}"),
    ("vault-token", lambda: f'vault_token: "s.{made(WORD, 24)}"'),
    ("terraform-token", lambda: f"{made(WORD, 14)}.{'atlas' + 'v1'}.{made(URL64, 67)}"),
    ("atlassian-token", lambda: f"{'ATA' + 'TT3'}{made(URL64, 186)}"),
    ("grafana-token", lambda: f"{'gl' + 'sa_'}{made(WORD, 32)}_{made(HEX, 8)}"),
    ("new-relic-key", lambda: f"{'NR' + 'AK-'}{made(UPPER, 27)}"),
    ("sentry-token", lambda: f"{'sn' + 'tryu_'}{made(HEX, 64)}"),
    ("square-token", lambda: f"{'sq' + '0csp-'}{made(URL64, 43)}"),
    ("rubygems-key", lambda: f"{'ruby' + 'gems_'}{made(HEX, 48)}"),
    ("crates-io-token", lambda: f"{'c' + 'io'}{made(WORD, 32)}"),
    ("linear-key", lambda: f"{'lin' + '_api_'}{made(WORD, 40)}"),
    ("notion-token", lambda: f"{'nt' + 'n_'}{made('123456789', 11)}{made(WORD, 35)}"),
    ("postman-key", lambda: f"{'PM' + 'AK-'}{made(HEX, 24)}-{made(HEX, 34)}"),
    ("pulumi-token", lambda: f"{'pu' + 'l-'}{made(HEX, 40)}"),
    ("planetscale-token", lambda: f"{'psc' + 'ale_tkn_'}{made(URL64, 43)}"),
    ("doppler-token", lambda: f"{'dp' + '.pt.'}{made(WORD, 43)}"),
    ("groq-key", lambda: f"{'gs' + 'k_'}{made(WORD, 52)}"),
    ("xai-key", lambda: f"{'xa' + 'i-'}{made(WORD, 80)}"),
    ("perplexity-key", lambda: f"{'pp' + 'lx-'}{made(WORD, 48)}"),
    ("replicate-token", lambda: f"{'r' + '8_'}{made(WORD, 37)}"),
    ("supabase-token", lambda: f"{'sb' + 'p_'}{made(HEX, 40)}"),
    ("airtable-token", lambda: f"{'pa' + 't'}{made(WORD, 14)}.{made(HEX, 64)}"),
    ("tailscale-key", lambda: f"{'ts' + 'key-auth-'}{made(WORD, 12)}-{made(WORD, 32)}"),
    ("age-key", lambda: f"{'AGE-SECRET' + '-KEY-1'}{made(UPPER, 58)}"),
    ("putty-key", lambda: f"{'PuTTY-User' + '-Key-File-3'}: ssh-ed25519"),
    ("password-in-url", lambda: f"redis://:{made(WORD, 20)}@cache.internal:6379/0"),
)

LOOK_ALIKES: dict[str, str] = {
    "the example AWS id of the documentation": f"aws_access_key_id = {'AK' + 'IA'}IOSFODNN7EXAMPLE",
    "its secret": f"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY{'EXAMPLE' + 'KEY'}",
    "a placeholder of one character": f"GITHUB_TOKEN={'gh' + 'p_'}{'x' * 36}",
    "a placeholder in words": f"OPENAI_API_KEY={'sk-' + 'proj-'}your-key-here-your-key-here-your-key-here-1234",
    "a sha256": f"sha256 = {hashlib.sha256(b'a').hexdigest()}",
    "an integrity hash": f'"integrity": "sha512-{base64.b64encode(hashlib.sha512(b"a").digest()).decode()}"',
    "a git commit": f"rev: {hashlib.sha1(b'a').hexdigest()}",
    "a uuid": f"id = {uuid.UUID(int=12345)}",
    "a variable in a url": "postgres://app:${DB_PASSWORD}@db.internal/app",
    "a common password in a url": "postgres://postgres:postgres@localhost:5432/test",
    "a password that is the name": "amqp://queue-dev:queue-dev@queue/",
    "a url of documentation": "https://user:s3cretvalue@example.com/path",
    "a port, not a password": "http://localhost:8080/@scope/package",
    "a reference to the environment": "AWS_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY",
    "a reference in a workflow": "token: ${{ secrets.GITHUB_TOKEN }}",
    "code that looks for a key": f"if b'{BEGIN}RSA PRIVATE KEY{END}' in data:",
    "a public key": f"{BEGIN}PUBLIC KEY{END}",
    "a certificate": f"{BEGIN}CERTIFICATE{END}",
    "an ssh public key": f"ssh-ed25519 {'AAAA' + 'C3NzaC1lZDI1NTE5'}{'IJ9k2' * 10} dana@host",
    "a css class": ".sk-button-primary-large-rounded-with-shadow-and-border-and-icon { }",
    "a cache key": f"key: linux-cache-key-{hashlib.md5(b'a').hexdigest()}",
    "a wheel's name": "numpy-1.26.4-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "an image as data": f"src='data:image/png;base64,{base64.b64encode(bytes(range(200))).decode()}'",
    "a number and a time": "1234567890:AM and nothing more",
    "a publishable stripe key": f"pk_live_{hashlib.md5(b'b').hexdigest()}",
    "a long name": "hf_model_configuration_with_a_rather_long_name_for_a_variable = 1",
    "a pinned image": f"image: python@sha256:{hashlib.sha256(b'c').hexdigest()}",
    "an ssh remote": "git clone ssh://git@github.com:22/owner/repository.git",
    "an account number": f"TWILIO_ACCOUNT_SID={'A' + 'C'}{hashlib.md5(b'd').hexdigest()}",
}


@pytest.mark.parametrize("kind", SECRETS)
def test_each_kind_is_found(kind: str) -> None:
    """Every kind of token is found, under its own name, with path and line, and nothing else is said of the line."""
    line = SECRETS[kind]().encode()
    found = scan(b"src/a.py", [(1, b"harmless"), (7, line), (8, b"harmless")])
    assert [(one.rule, one.path, one.line) for one in found] == [(kind, b"src/a.py", 7)]


@pytest.mark.parametrize(("kind", "line"), MORE, ids=lambda value: value if isinstance(value, str) else "")
def test_further_kinds(kind: str, line: Callable[[], str]) -> None:
    """So is every further form of them."""
    assert [one.rule for one in scan(b"a", [(1, line().encode())])] == [kind]


def test_every_rule_has_a_sample() -> None:
    """No rule stands here that was never seen to find anything; at least 26 kinds are the first table's."""
    assert {*SECRETS, *(kind for kind, _ in MORE)} == {*(rule.name for rule in secrets._RULES), "private-key"}
    assert len(SECRETS) >= 26


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_look_alikes_pass(name: str) -> None:
    """Nothing that only resembles a credential stops a commit."""
    assert scan(b"a", [(1, LOOK_ALIKES[name].encode())]) == []


def test_the_value_never_leaves() -> None:
    """No part of the value is in a finding."""
    value = "gh" + "p_" + made(WORD, 36)
    (finding,) = scan(b"a", [(1, f"token={value}".encode())])
    assert not any(value[at : at + 4] in repr(finding) for at in range(4, len(value) - 3))


@pytest.mark.parametrize("comment", ["gitleaks:allow", "pragma: allowlist secret", "pragma: whitelist secret"])
def test_a_comment_allows_its_line(comment: str) -> None:
    """A line that carries one of the usual comments is passed over, its neighbours are not."""
    line = SECRETS["github-token"]().encode()
    assert [one.line for one in scan(b"a", [(1, line + b"  # " + comment.encode()), (2, line)])] == [2]


def test_a_comment_allows_the_next_line() -> None:
    """detect-secrets' comment for the line below works, and for that line only."""
    line = SECRETS["github-token"]().encode()
    assert [one.line for one in scan(b"a", [(1, b"# pragma: allowlist nextline secret"), (2, line), (3, line)])] == [3]


def test_the_baseline_accepts_what_it_names() -> None:
    """A value whose hash ``.secrets.baseline`` holds for this path is accepted there and nowhere else."""
    value = "gh" + "p_" + made(WORD, 36)
    digest = hashlib.sha1(value.encode()).hexdigest()
    baseline = parse_baseline(json.dumps({"results": {"a/b.py": [{"type": "GitHub Token", "hashed_secret": digest}]}}).encode())
    line = f"token={value}".encode()
    assert scan(b"a/b.py", [(1, line)], baseline[b"a/b.py"]) == []
    assert len(scan(b"a/c.py", [(1, line)], baseline.get(b"a/c.py", frozenset()))) == 1


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"results": 1}', b'{"results": {"a": [{}]}}', b"\xff"])
def test_a_broken_baseline_is_an_error(text: bytes) -> None:
    """A baseline that is none is said, not taken for an empty one."""
    with pytest.raises(BaselineBroken):
        parse_baseline(text)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([f"{BEGIN}RSA PRIVATE KEY{END}", "MIIEpAIBAAKCAQEA" + "b3Blbn" * 4], [1]),
        ([f"{BEGIN}RSA PRIVATE KEY{END}", "Proc-Type: 4,ENCRYPTED"], [1]),
        ([f"    key = '''{BEGIN}EC PRIVATE KEY{END}", "    MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04f"], [1]),
        ([f"{BEGIN}PGP PRIVATE KEY BLOCK{END}", "", "lQVYBF"], [1]),
        ([f'"private_key": "{BEGIN}PRIVATE KEY{END}\\nMIIEvQIBADANBgkqhkiG9w0\\n"'], [1]),
        ([f"{BEGIN}RSA PRIVATE KEY{END}", "..."], []),
        ([f"  {BEGIN}RSA PRIVATE KEY{END}", "  <your key>"], []),
        ([f"{BEGIN}RSA PRIVATE KEY{END}"], [1]),
        ([f"grep -q '{BEGIN}RSA PRIVATE KEY{END}' file"], []),
    ],
)
def test_private_keys(lines: list[str], found: list[int]) -> None:
    """A key's header counts wherever the key may follow; code that looks for one, and a page that leaves the key out, do not."""
    added = [(number, line.encode()) for number, line in enumerate(lines, 1)]
    assert [one.line for one in scan(b"a", added) if one.rule == "private-key"] == found


def test_odd_bytes_and_long_lines() -> None:
    """Bytes that are no text do not stop the search, and a megabyte in one line is read in well under the time of a commit."""
    line = SECRETS["github-token"]().encode()
    assert len(scan(b"\xff", [(1, b"\xff\x00 " + line)])) == 1
    began = time.process_time()
    for alphabet in (WORD, BASE64 + ".", "aM.-_:/", "eyJ.sk-", "aws secret key"):
        scan(b"a", [(1, "".join(_chance.choices(alphabet, k=1 << 20)).encode())])
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        (b".env", "env-file"), (b"web/.env.production", "env-file"), (b"home/.ssh/id_rsa", "ssh-key-file"), (b"id_ed25519", "ssh-key-file"),
        (b"certs/server.pem", "key-file"), (b"A.P12", "key-file"), (b".netrc", "netrc-file"), (b".aws/credentials", "credentials-file"),
        (b".git-credentials", "credentials-file"), (b"\xff/.env", "env-file"),
    ],
)  # fmt: skip
def test_files_that_are_secret_by_name(path: bytes, rule: str) -> None:
    """Files made to hold credentials are found by name alone; the finding has no line."""
    assert path_rule(path) == Finding(rule, path, 0, path_rule(path).hint)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "path",
    [
        b".env.example", b".env.sample", b".env.template", b"id_rsa.pub", b"id_generator.py", b"src/credentials.py", b"credentials/a.txt",
        b"environment.py", b"env", b"pem.py", b"a.envelope", b"src/env.ts", b"netrc.c",
    ],
)  # fmt: skip
def test_files_that_only_sound_secret(path: bytes) -> None:
    """Templates, public keys and source code are no secrets by name."""
    assert path_rule(path) is None
