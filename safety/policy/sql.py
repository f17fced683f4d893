"""What SQL statements throw away. Text in quotes and comments is no statement."""

from __future__ import annotations

import re
from collections.abc import Iterator

from safety.policy.patterns import Pattern
from safety.policy.values import Effect

_QUIET = Pattern(
    r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|^[ \t]*#[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_GRAVE = Pattern(r"drop\s+(?:database|schema|table|keyspace|tablespace|owned|user|role|collection|catalog)\b|truncate\b", re.I)
_DROP = Pattern(
    r"drop\s+\w+|alter\s+table\s+.*\bdrop\s+(?:column\s+|partition\s+|constraint\s+)?\S+|alter\s+(?:database|schema)\s+.*\brename\b"
    r"|merge\s+.*\bdelete\b|replace\s+into\b.*\bselect\b|revoke\s|shutdown\b|kill\s|detach\s+(?:table|database)|purge\s|reset\s+master"
    r"|vacuum\s+full\b.*(?!)",
    re.I | re.DOTALL,
)
_DELETE = Pattern(r"(?:with\b.*\)\s*)?delete\s+(?:from\b|\w+\s+from\b|low_priority|quick)", re.I | re.DOTALL)
_UPDATE = Pattern(r"(?:with\b.*\)\s*)?update\s+(?:only\s+)?[\w.\"`\[\]]+.*?\bset\b", re.I | re.DOTALL)
_WHERE = Pattern(r"\bwhere\b(?!\s*(?:1\s*=\s*1|true)\b)|\blimit\s+\d|\bcurrent\s+of\b", re.I)
_TEMPORARY = Pattern(r"drop\s+(?:temporary|temp)\b|#\w+", re.I)


def sql_effects(text: str, client: str = "") -> Iterator[Effect]:
    """What each statement of the text would destroy. A transaction that ends in a rollback destroys nothing."""
    if not re.search(r"(?i)drop|truncate|delete|update|alter|revoke|merge|purge|shutdown|reset", text):
        return
    plain = _QUIET.sub(lambda found: "''" if found[0][:1] in "'" else (found[0] if found[0][:1] in '"`' else " "), text)
    statements = [statement.strip() for statement in plain.split(";")]
    if statements and re.fullmatch(r"(?i)rollback(?:\s+\w+)*", next((item for item in reversed(statements) if item), "")):
        return
    for statement in statements:
        statement = re.sub(
            r"(?is)^(?:explain(?!\s+analyz)\b.*|\\\w+[^\n]*\n?|use\s+\S+\s+|go\s+|begin\s+|begin\b)", "", statement
        ).strip()
        if not statement or _TEMPORARY.match(statement):
            continue
        shown = " ".join(statement.split())[:80]
        if _GRAVE.match(statement):
            yield Effect("data.destroy", shown, "deny", instead="make a dump of it first")
        elif _DROP.match(statement):
            yield Effect("data.destroy", shown, "ask", instead="make a dump of it first")
        elif _DELETE.match(statement):
            yield Effect("data.destroy", shown, "ask", instead="the same as SELECT count(*) first, then in a transaction")
        elif _UPDATE.match(statement) and not _WHERE.search(statement):
            yield Effect("data.destroy", shown, "ask", instead="an UPDATE with a WHERE, in a transaction")
