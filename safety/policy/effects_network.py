"""What commands send over a network, fetch and run, or delete behind an address."""

from __future__ import annotations

import re
from collections.abc import Iterator

from safety.policy import places
from safety.policy.operands import read, spec
from safety.policy.path_effects import leak, secret_path, writing
from safety.policy.patterns import Pattern
from safety.policy.scene import Scene, names_secret
from safety.policy.shell import Command, Word
from safety.policy.values import Action, Effect

LOCAL_HOST = Pattern(
    r"(?:[a-z+]+://)?(?:[^/@\s]*@)?(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1\]|[\w.-]+\.(?:local|localhost"
    r"|test))(?::\d+)?(?:[/?].*)?",
    re.I,
)
STORE_PORT = Pattern(r":(?:9200|9300|8086|5984|6333|8983|7474|8529|2379|8500|8200)\b")


_CURL = spec(
    "X|request= d|data= data-raw= data-binary= data-ascii= data-urlencode= json= F|form= form-string= T|upload-file= o"
    "|output= O|remote-name"
    " H|header= A|user-agent= u|user= b|cookie= c|cookie-jar= e|referer= x|proxy= L|location s|silent S|show-error f|fail k"
    "|insecure v|verbose"
    " i|include I|head G|get m|max-time= connect-timeout= retry= retry-delay= w|write-out= K|config= E|cert= key= cacert="
    " url= r|range= C|continue-at="
    " output-dir= resolve= interface= D|dump-header= Y= y= z= Q= P= t= n|netrc netrc-file= aws-sigv4= oauth2-bearer="
    " limit-rate= create-dirs"
    " compressed J|remote-header-name N|no-buffer R|remote-time Z|parallel a|append 4 6 0 1 2 3 # g j l p q",
    abbreviates=True,
)


def _curl(command: Command, scene: Scene) -> Iterator[Effect]:
    given = read(command.words[1:], _CURL)
    urls = [*given.operands, *given.values("url")]
    local = bool(urls) and all(LOCAL_HOST.fullmatch(word.text) for word in urls)
    host = urls[0].text if urls else "an address that is not known"
    yield Effect("network.contact", host, "allow")
    method = (given.value("request") or "").upper()
    if method == "DELETE" and not (local and not STORE_PORT.search(host)):
        yield Effect("remote.delete", host, "ask")
    if given.values("data", "data-raw", "data-binary", "json") and STORE_PORT.search(host) and "_delete_by_query" in host:
        yield Effect("remote.delete", host, "ask")
    for text in given.values("data", "data-raw", "data-binary", "json"):
        if "mutation" in text.text and re.search(r"(?i)\b(?:delete|remove|destroy|purge)", text.text):
            yield Effect("remote.delete", host, "ask")
    for name, value in given.options:
        if value is None:
            continue
        if name in ("data", "data-binary", "data-ascii", "json", "data-urlencode"):
            at = value.text.find("@")
            if at == 0 or (name == "data-urlencode" and at > 0):
                yield from _sent(Word(value.text[at + 1 :], value.certain), command, scene, host, local, whole=False)
            elif value.made_by:
                yield from _sent_output(value, command, scene, host, local)
        elif name == "form" and re.search(r"=[@<]", value.text):
            path = re.split(r"=[@<]", value.text, maxsplit=1)[1].partition(";")[0]
            yield from _sent(Word(path, value.certain), command, scene, host, local, whole=True)
        elif name == "upload-file":
            yield from _sent(value, command, scene, host, local, whole=True)
        elif name in ("output", "cookie-jar", "dump-header"):
            folder = places.absolute(given.value("output-dir") or ".", command.cwd)
            yield from writing(scene.target(value, folder), scene)
        elif name == "header" and value.text.startswith("@"):
            yield from leak(scene.target(Word(value.text[1:]), command.cwd), scene, sent=True)
    if given.has("remote-name"):
        folder = places.absolute(given.value("output-dir") or ".", command.cwd)
        for url in urls:
            name = url.text.partition("?")[0].rstrip("/").rpartition("/")[2]
            if name and url.certain:
                yield from writing(scene.target(Word(name), folder), scene)


def _sent(word: Word, command: Command, scene: Scene, host: str, local: bool, *, whole: bool) -> Iterator[Effect]:
    """A file, or what comes through the pipe (``-``), goes to a host. ``whole``: as a file rather than as the body of a request."""
    if word.text in ("-", "/dev/stdin", "."):
        yield from _piped_secret(command, scene, host, local)
        return
    target = scene.target(word, command.cwd)
    if secret_path(target, scene):
        yield Effect("secret.leak", target.path or word.text, "ask" if local else "deny", detail=f"sent to {host}")
    elif (
        not local
        and whole
        and not places.made_again(word.text)
        or not local
        and not re.search(r"\.(?:json|xml|ya?ml|graphql|gql|txt|csv|form|html|ndjson|proto|bin|body|payload)$", word.text)
    ):
        yield Effect("network.send", f"{word.text} to {host}", "ask")


def _sent_output(word: Word, command: Command, scene: Scene, host: str, local: bool) -> Iterator[Effect]:
    """What another command prints goes to a host inside a word: ``-d "$(cat .env)"``."""
    if not local and word.made_by in ("env", "printenv", "set"):
        yield Effect("secret.leak", f"the environment to {host}", "deny")
    elif not local and word.made_by in ("tar", "zip", "base64", "gzip", "cat", "git", "find"):
        weight: Action = "deny" if any(_gives_secret(other, scene) for other in scene.parsed.commands) else "ask"
        yield Effect("network.send", f"what {word.made_by} prints to {host}", weight)


def _gives_secret(command: Command, scene: Scene) -> bool:
    return any(secret_path(scene.target(word, command.cwd), scene) for word in command.words[1:])


def _piped_secret(command: Command, scene: Scene, host: str, local: bool) -> Iterator[Effect]:
    """What stands before the pipe to a host: credentials, the environment, or files."""
    source = command.fed_by
    if local:
        return
    if any(
        redirect.op == "<" and secret_path(scene.target(redirect.target, command.cwd), scene) for redirect in command.redirects
    ):
        yield Effect("secret.leak", f"credentials to {host}", "deny")
    if source is None and {"env", "printenv", "set", "export", "declare", "history"} & set(command.piped_from):
        yield Effect("secret.leak", f"the environment to {host}", "deny")
    while source is not None:
        if source.name in ("echo", "printf") and any(names_secret(word) for word in source.words[1:]):
            yield Effect("secret.leak", f"a secret variable to {host}", "deny")
            return
        if source.name == "history":
            yield Effect("network.send", f"the shell's history to {host}", "ask")
            return
        if source.name in ("env", "printenv", "set", "export", "declare") and len(source.words) == 1:
            yield Effect("secret.leak", f"the environment to {host}", "deny")
            return
        if _gives_secret(source, scene) or any(
            redirect.op == "<" and secret_path(scene.target(redirect.target, source.cwd), scene) for redirect in source.redirects
        ):
            yield Effect("secret.leak", f"credentials to {host}", "deny")
            return
        if source.name in ("tar", "zip", "git", "find", "cpio", "pg_dump", "mysqldump", "mongodump", "sqlite3") or (
            source.name in ("cat", "gzip", "base64", "head", "tail")
            and len(source.words) > 1
            and source.fed_by is None
            and source.stdin is None
            and not any(word.text.endswith((".json", ".txt", ".csv")) for word in source.words)
        ):
            yield Effect("network.send", f"what {source.name} prints to {host}", "ask")
            return
        source = source.fed_by


def _wget(command: Command, scene: Scene) -> Iterator[Effect]:
    given = read(
        command.words[1:],
        spec(
            "O|output-document= q|quiet post-file= post-data= body-file= body-data= method="
            " header= P|directory-prefix= c|continue"
            " nc|no-clobber N o|output-file= a= i|input-file= e|execute= U|user-agent= t= T= w="
            " l= A= R= D= X= np r m"
        ),
    )
    host = given.operands[0].text if given.operands else "an address"
    local = bool(LOCAL_HOST.fullmatch(host))
    yield Effect("network.contact", host, "allow")
    for value in given.values("post-file", "body-file"):
        yield from _sent(value, command, scene, host, local, whole=True)
    for value in given.values("post-data", "body-data"):
        yield from _sent_output(value, command, scene, host, local)
    if (given.value("method") or "").upper() == "DELETE" and not (local and not STORE_PORT.search(host)):
        yield Effect("remote.delete", host, "ask")
    output = given.values("output-document")
    if output and output[-1].text != "-":
        yield from writing(scene.target(output[-1], command.cwd), scene)


def _httpie(command: Command, scene: Scene) -> Iterator[Effect]:
    words = [word for word in command.words[1:] if not word.text.startswith("-")]
    yield Effect("network.contact", words[0].text if words else "an address", "allow")
    method = words[0].text.upper() if words else ""
    host = words[1].text if len(words) > 1 and method.isalpha() else (words[0].text if words else "")
    local = bool(LOCAL_HOST.fullmatch(host) or host.startswith(":"))
    if method == "DELETE" and not (local and not STORE_PORT.search(host)):
        yield Effect("remote.delete", host, "ask")
    for word in words[1:]:
        if "@" in word.text and not word.text.startswith("http"):
            yield from _sent(Word(word.text.rpartition("@")[2]), command, scene, host, local, whole=True)
    yield from _piped_secret(command, scene, host, local)


def _netcat(command: Command, scene: Scene) -> Iterator[Effect]:
    given = read(command.words[1:], spec("e|exec= c|sh-exec= l|listen z w= p= s= i= q= k u n v", abbreviates=False))
    words = [word.text for word in command.words[1:]]
    host = " ".join(word.text for word in given.operands)
    if (
        any("EXEC:" in text.upper() or "SYSTEM:" in text.upper() for text in words)
        and command.name == "socat"
        or given.has("exec", "sh-exec")
    ):
        yield Effect("network.shell", host or "whoever connects", "deny")
    elif any(name in ("sh", "bash", "zsh", "dash", "ksh") for name in command.piped_from):
        yield Effect("network.shell", host, "deny")
    elif not given.has("z", "listen") and not LOCAL_HOST.fullmatch((given.operands or [Word("")])[0].text):
        yield Effect("network.contact", host, "allow")
        yield from _piped_secret(command, scene, host, local=False)
        reads_file = any(redirect.op == "<" and redirect.target.text not in ("/dev/null",) for redirect in command.redirects)
        if reads_file and not any(
            secret_path(scene.target(redirect.target, command.cwd), scene) for redirect in command.redirects if redirect.op == "<"
        ):
            yield Effect("network.send", f"a file to {host}", "ask")


def _ssh(command: Command, scene: Scene) -> Iterator[Effect]:
    yield Effect(
        "network.contact", next((word.text for word in command.words[1:] if not word.text.startswith("-")), "a host"), "allow"
    )
    if command.fed_by is not None:
        yield from (
            effect for effect in _piped_secret(command, scene, "another machine", local=False) if effect.kind == "secret.leak"
        )


def _mail(command: Command, scene: Scene) -> Iterator[Effect]:
    yield Effect("network.contact", "mail", "allow")
    for word in command.words[1:]:
        yield from leak(scene.target(word, command.cwd), scene, sent=True)
    yield from _piped_secret(command, scene, "mail", local=False)


def _sends_files(command: Command, scene: Scene) -> Iterator[Effect]:
    """Tools of clouds and hosts that copy files away: only what is secret counts."""
    words = {word.text for word in command.words[1:]}
    if words & {"cp", "mv", "sync", "copy", "put", "upload", "create", "push", "object", "new"}:
        for word in command.words[2:]:
            yield from leak(scene.target(word, command.cwd), scene, sent=True)
        if command.name == "gh" and "gist" in words:
            yield from _piped_secret(command, scene, "a gist", local=False)


def _dns(command: Command, scene: Scene) -> Iterator[Effect]:
    if any(not word.certain for word in command.words[1:]) and any(
        _gives_secret(other, scene) for other in scene.parsed.commands
    ):
        yield Effect("secret.leak", "credentials within a name that is looked up", "deny")


NETWORK = {
    "curl": _curl,
    "wget": _wget,
    **dict.fromkeys(("http", "https", "xh", "xhs"), _httpie),
    **dict.fromkeys(("nc", "ncat", "netcat", "socat", "telnet"), _netcat),
    **dict.fromkeys(("ssh", "mosh", "ftp", "lftp", "tftp", "smbclient"), _ssh),
    **dict.fromkeys(("mail", "mailx", "mutt", "sendmail", "msmtp", "swaks"), _mail),
    **dict.fromkeys(
        (
            "aws",
            "gsutil",
            "gcloud",
            "az",
            "s3cmd",
            "rclone",
            "mc",
            "gh",
            "glab",
            "kubectl",
            "docker",
            "croc",
            "wormhole",
            "transfer",
            "b2",
        ),
        _sends_files,
    ),
    **dict.fromkeys(("dig", "nslookup", "host", "ping", "drill"), _dns),
}


_SHELLS = frozenset("sh bash zsh dash ksh fish source . eval iex Invoke-Expression".split())
_LISTENS = frozenset("openssl telnet nc ncat socat".split())
_FETCHES = frozenset("curl wget irm iwr Invoke-WebRequest Invoke-RestMethod http aria2c".split())


def fed_by_network(command: Command) -> Iterator[Effect]:
    """A shell that reads its commands from a connection, or from what was fetched."""
    name = command.name
    if name in _SHELLS:
        if _LISTENS & set(command.piped_from):
            yield Effect("network.shell", "whoever is on the other side", "deny")
        elif not command.runs_download and (
            _FETCHES & set(command.piped_from) or any(redirect.target.made_by in _FETCHES for redirect in command.redirects)
        ):
            yield from _ran_unread()
    elif name in ("deno", "bun", "npx", "bunx", "pnpx", "uvx", "pipx") and any(
        re.match(r"(?:git\+)?https?://(?!(?:[\w.-]+\.)?(?:deno\.land|jsr\.io|esm\.sh))", word.text) for word in command.words[1:3]
    ):
        yield from _ran_unread()


def _ran_unread() -> Iterator[Effect]:
    yield Effect("network.run", "code fetched from the network", "ask", instead="fetch it into a file, read it, then run it")


def runs_download(command: Command) -> Iterator[Effect]:
    """Code from the network that is run without anybody having read it."""
    if command.runs_download:
        yield Effect("network.run", "code fetched from the network", "ask", instead="fetch it into a file, read it, then run it")


def network_effects(command: Command, scene: Scene) -> Iterator[Effect]:
    """What the program does over a network, by its name."""
    handler = NETWORK.get(command.name)
    if handler is not None:
        yield from handler(command, scene)
