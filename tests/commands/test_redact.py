"""Credentials are hidden, and nothing else is."""

from __future__ import annotations

import pytest

from safety.commands.redact import redacted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("aws s3 ls AKIAIOSFODNN7EXAMPLE", "aws s3 ls ***"),
        ("git push https://ghp_abcdefghijklmnopqrst0123@github.test/x", "git push https://***@github.test/x"),
        ("export OPENAI_API_KEY=sk-proj-abcdefghijklmnopqrstuv", "export OPENAI_API_KEY=***"),
        ("mysql --password hunter2 -h db", "mysql --password *** -h db"),
        ("tool --api-key='a b c' --verbose", "tool --api-key=*** --verbose"),
        ("tool --token=abc", "tool --token=***"),
        ('curl -H "Authorization: Bearer abc.def" x', 'curl -H "Authorization: Bearer ***" x'),
        ("curl -H 'authorization: Basic dXNlcg=='", "curl -H 'authorization: Basic ***'"),
        ("curl -H 'X-Api-Key: 12345'", "curl -H 'X-Api-Key: ***'"),
        ("curl -u dana:hunter2 https://x", "curl -u dana:*** https://x"),
        ("psql postgres://dana:hunter2@db/x", "psql postgres://dana:***@db/x"),
        ("DB_PASSWORD=hunter2 ./run", "DB_PASSWORD=*** ./run"),
        ('{"password": "hunter2", "user": "dana"}', '{"password": ***, "user": "dana"}'),
        ("sshpass -p hunter2 ssh x", "sshpass -p *** ssh x"),
        ("xoxb-1234567890-abcdef", "***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "***"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b", "a *** b"),
        ("a -----BEGIN PRIVATE KEY-----\nMIIE", "a ***"),
    ],
)
def test_hidden(text: str, shown: str) -> None:
    """Known shapes and what follows a telling name."""
    assert redacted(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "fix the flaky login test",
        "rename token to ticket in parser.py",
        "mkdir -p build/sk && ls -u",
        "git log --author=dana",
        "git clone https://example.test/x.git",
        "ssh dana@host -p 22",
        "python -m pytest tests/test_secret_store.py",
        "why does the password form fail?",
        "git show abcdefabcdefabcdefabcdefabcdefabcdefabcd",
        "cp a.txt b.txt; echo 12:30",
    ],
)
def test_left_alone(text: str) -> None:
    """Ordinary commands and questions stay as they are."""
    assert redacted(text) == text


def test_quick_on_long_text() -> None:
    """No pattern runs away on odd text."""
    for text in ("a" * 20_000, "-" * 20_000, "password" * 3000, "://" * 6000, "x:" * 9000, "'" * 9000):
        redacted(text)
