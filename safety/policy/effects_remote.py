"""What commands do to what is not on this machine, or not in files: networks, clouds, containers, databases, published packages.

No snapshot holds any of it. A tool's own dry run does nothing, its help neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from safety.policy.operands import read, spec
from safety.policy.path_effects import writing
from safety.policy.patterns import Pattern
from safety.policy.remote_tools import FRAMEWORK, INSTEAD, TOOLS
from safety.policy.scene import Scene
from safety.policy.shell import Command, Word
from safety.policy.sql import sql_effects
from safety.policy.values import Effect

_DRY = Pattern(r"--?(?:dry-?run|what-?if|no-?act|noop|check|plan-only|preview)(?:=(?!none|false).*)?|--?help|--version")


def remote_effects(command: Command, scene: Scene) -> Iterator[Effect]:
    """What the program does over a network or to a service."""
    name = command.name
    words = [word.text for word in command.words[1:]]
    if name in _SQL_CLIENTS:
        yield from _sql_client(command, scene)
        return
    if name not in TOOLS and name not in _NAMED:
        return
    if name in ("python", "python3") and words[:1] == ["-m"] and words[1:2] and words[1] in TOOLS:
        name, words = words[1], words[2:]
    if any(_DRY.fullmatch(text) for text in words) or words[-1:] in (["-h"], ["help"]) or words[:1] == ["help"]:
        return
    if name in _NAMED:
        yield from _NAMED[name](command, words, scene)
    text = " ".join(_verbs(words))[:2000]
    for pattern, weight, kind in TOOLS.get(name, ()):
        if re.search(pattern, text):
            if weight != "allow":  # a row that lets pass ends the search
                yield Effect(kind, f"{name} {' '.join(_verbs(words)[:6])}", weight, instead=INSTEAD.get(name, ""))
            return


def _verbs(words: list[str]) -> list[str]:
    """The words without quoted sentences: what a person wrote as text is no verb. Of very many words the first ones tell."""
    return [word for word in words[:100] if " " not in word or word.startswith("-")]


_SQL_CLIENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    # options with a value, and which of them hold SQL
    "psql": ("c|command= f|file= h|host= p|port= U|username= d|dbname= v|variable= o|output= P= F= R= T= L= set=", ("command",)),
    "pgcli": ("c|command= h|host= p|port= U|username= d|dbname=", ("command",)),
    "mysql": ("e|execute= h|host= P|port= u|user= D|database= S|socket= p|password=?", ("execute",)),
    "mariadb": ("e|execute= h|host= P|port= u|user= D|database= S|socket= p|password=?", ("execute",)),
    "mycli": ("e|execute= h|host= P|port= u|user= D|database=", ("execute",)),
    "cockroach": ("e|execute= host= url= d|database=", ("execute",)),
    "sqlcmd": ("Q= q= S= U= P= d= i= o=", ("Q", "q")),
    "clickhouse-client": ("q|query= h|host= u|user= d|database= password= port=", ("query",)),
    "clickhouse": ("q|query= h|host= u|user= d|database= password= port=", ("query",)),
    "cqlsh": ("e|execute= u= p= k= f|file=", ("execute",)),
    "snowsql": ("q|query= a= u= d= s= w= f=", ("query",)),
    "trino": ("execute= server= catalog= schema= f|file=", ("execute",)),
    "presto": ("execute= server= catalog= schema= f|file=", ("execute",)),
    "hive": ("e= f=", ("e",)),
    "beeline": ("e= f= u= n= p=", ("e",)),
    "duckdb": ("c= s= cmd= init=", ("c", "s", "cmd")),
    "sqlite3": ("cmd= init= separator= newline= nullvalue=", ("cmd",)),
    "sqlite": ("cmd= init=", ("cmd",)),
    "litecli": ("e|execute= d|database=", ("execute",)),
    "usql": ("c|command= f|file=", ("command",)),
    "db2": ("", ()),
    "isql": ("", ()),
    "fbcli": ("", ()),
}


def _sql_client(command: Command, scene: Scene) -> Iterator[Effect]:
    """SQL in an option, in an operand (sqlite3, db2), on standard input."""
    name = command.name
    options, holders = _SQL_CLIENTS[name]
    given = read(command.words[1:], spec(options, abbreviates=False))
    if given.has("help", "version"):
        return
    in_file = name in ("sqlite3", "sqlite", "duckdb", "litecli")
    texts = given.values(*holders)
    if in_file:
        texts += given.operands[1:]
    elif name in ("db2", "isql", "fbcli"):
        texts += given.operands
    if command.stdin is not None and name not in ("cockroach",):
        texts.append(Word(command.stdin))
    database = given.operands[0] if in_file and given.operands else None
    for text in texts:
        for effect in sql_effects(text.text, name):
            if database is not None and database.text in (":memory:", ""):
                continue
            if database is None or not database.certain:
                yield effect
                continue
            for written in writing(scene.target(database, command.cwd), scene):
                yield Effect(
                    effect.kind,
                    f"{effect.target} in {database.text}",
                    effect.weight,
                    question=written.question,
                    instead=effect.instead,
                )
        for shell in re.findall(r"^[ \t]*(?:\\!|\.shell|\.system)[ \t]+(.+)$", text.text, re.M):
            yield from scene.again(shell, command.cwd)


_REDIS = Pattern(
    r"(?i)\b(?:flushall|flushdb|swapdb|shutdown|debug segfault|config set|script flush|function flush|cluster reset"
    r"|replicaof|slaveof)\b"
)
_MONGO = Pattern(
    r"\.(?:dropDatabase|dropIndexes|drop|deleteMany|deleteOne|remove|findOneAndDelete|renameCollection|dropUser|dropAllUsers"
    r"|bulkWrite)\s*\("
)


def _redis(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    given = read(command.words[1:], spec("h= p= a= n= u= s= r= i= d= x X eval= pass= user= raw", abbreviates=False, stops=True))
    text = " ".join(word.text for word in given.operands)
    for line in [text, *(command.stdin or "").splitlines()]:
        if _REDIS.match(line.strip()):
            grave = re.match(r"(?i)flush", line.strip())
            yield Effect("data.destroy", f"redis: {line.strip()}", "deny" if grave else "ask")
        elif re.match(r"(?i)(?:del|unlink|expire|rename|restore|getdel)\b", line.strip()) or (
            given.has("eval") and "del" in text.lower()
        ):
            yield Effect("data.destroy", f"redis: {line.strip()}", "ask")


def _mongo(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    texts = [word.text for word in command.words[1:]] + [command.stdin or ""]
    for text in texts:
        found = _MONGO.search(_without_quoted(text))
        if found:
            grave = "drop" in found[0].lower() or re.search(r"(?:deleteMany|remove)\(\s*(?:\{\s*\})?\s*\)", text)
            yield Effect("data.destroy", f"mongo: {found[0].strip('.(')}", "deny" if grave else "ask")


def _without_quoted(text: str) -> str:
    return re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", '""', text)


def _docker(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """Containers that are removed with what they hold; one that is started with the host's folders is followed by the parse."""
    given = read(command.words[1:], spec("H= l= log-level= context= c= config= host=", abbreviates=False, stops=True))
    verbs = [word for word in given.rest if word.text != "container"]
    if not verbs or verbs[0].text not in ("rm", "remove", "kill", "stop"):
        return
    inner = read(verbs[1:], spec("f|force v|volumes l|link s= t= a|all", abbreviates=False))
    unsure = any(not word.certain for word in inner.operands) or command.appended
    if verbs[0].text in ("rm", "remove") and (inner.has("force", "volumes", "all") or unsure):
        yield Effect("service.destroy", f"{command.name} containers: {' '.join(word.text for word in inner.operands)}", "ask")
    elif unsure or inner.has("all"):
        yield Effect("service.stop", f"every container of {command.name}", "ask")


def _php(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """A framework's own script behind an interpreter."""
    operands = [word.text for word in command.words[1:] if not word.text.startswith("-")]
    script = operands[0].rpartition("/")[2] if operands else ""
    if script in ("manage.py", "artisan", "rails"):
        yield from _framework_code(command, words, scene)
    if script in ("artisan", "console", "manage.py", "wp", "odoo-bin", "rails", "drush"):
        rest = words[words.index(operands[0]) + 1 :]
        for pattern, weight, kind in FRAMEWORK.get(script, ()):
            if re.search(pattern, " ".join(rest)):
                yield Effect(kind, f"{script} {' '.join(rest[:4])}", weight)
                return


def _ansible(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """An ad-hoc command on other machines: what it would do here, it does there."""
    given = read(
        command.words[1:], spec("m|module-name= a|args= i|inventory= u|user= b|become l|limit= e|extra-vars= f= C|check")
    )
    module = (given.value("module-name") or "command").rpartition(".")[2]
    text = given.value("args") or ""
    if given.has("check"):
        return
    if module in ("shell", "command", "raw") and any(effect.weight != "allow" for effect in scene.again(text, None)):
        yield Effect("service.destroy", f"on other machines: {text}", "ask")
    elif re.search(r"state=(?:absent|stopped)|force=yes", text):
        yield Effect("service.destroy", f"on other machines: {module} {text}", "ask")


_DELETES_ALL = Pattern(
    r"\.(?:delete_all|destroy_all|delete\(\)|drop_table|truncate|flush)|drop_all\(|->(?:delete|truncate|forceDelete)\("
    r"|::truncate\("
)


def _framework_code(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """Code for a framework's console: ``manage.py shell -c``, ``rails runner``, ``artisan tinker --execute``."""
    if {"shell", "shell_plus", "runner", "r", "tinker", "console"} & set(words):
        for text in words:
            if _DELETES_ALL.search(text):
                yield Effect("data.destroy", text[:100], "ask")


def _sql_in(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """Tools of clouds that carry SQL to a database: ``bq query``, ``heroku pg:psql -c``."""
    if {"query", "pg:psql", "psql", "sql", "execute"} & set(words):
        for text in [*words[:50], command.stdin or ""]:
            yield from sql_effects(text)


def _mirrors(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    if any(
        re.search(r"mirror\b.*--delete|(?:^|;)\s*(?:rm|mrm|glob rm)\b|-R\b.*--delete", text)
        for text in [*words, command.stdin or ""]
    ):
        yield Effect("remote.delete", "files on another machine", "ask")


def _hands_on(command: Command, words: list[str], scene: Scene) -> Iterator[Effect]:
    """``yarn prisma ...``: a tool of the project behind the package manager's name."""
    at = next(
        (number for number, text in enumerate(words) if not text.startswith("-") and text not in ("exec", "run", "dlx")),
        len(words),
    )
    tool = words[at] if at < len(words) else ""
    for pattern, weight, kind in FRAMEWORK.get(tool, ()):
        if re.search(pattern, " ".join(_verbs(words[at + 1 :]))):
            yield Effect(kind, f"{tool} {' '.join(words[at + 1 : at + 5])}", weight)
            return


_NAMED = {
    "ansible": _ansible,
    **dict.fromkeys(
        ("bq", "heroku", "flyctl", "fly", "aws", "gcloud", "supabase", "snow", "wrangler", "turso", "doctl"), _sql_in
    ),
    **dict.fromkeys(("lftp", "ncftp", "sftp", "ftp"), _mirrors),
    **dict.fromkeys(("rails", "manage.py", "django-admin"), _framework_code),
    **dict.fromkeys(("yarn", "pnpm", "bun", "npm"), _hands_on),
    "redis-cli": _redis,
    "valkey-cli": _redis,
    "keydb-cli": _redis,
    "mongosh": _mongo,
    "mongo": _mongo,
    "docker": _docker,
    "podman": _docker,
    "nerdctl": _docker,
    **dict.fromkeys(("php", "python", "python3", "python2", "py", "pypy3", "ruby", "node"), _php),
}


def sql_client(name: str) -> bool:
    return name in _SQL_CLIENTS
