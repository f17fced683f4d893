"""The effects of a command text, and the questions that the verdict hangs on. Pure: the world is asked elsewhere.

The families (``effects_git`` and its neighbours) tell what single commands do; here they are called, and what a wrapper changes is taken
into account: another machine, a container that is thrown away, a submodule, the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from safety.policy import effects_shows, effects_system, places  # noqa: F401 - they put their programs into the table
from safety.policy.effects_files import redirect_effects
from safety.policy.effects_git import git_effects
from safety.policy.effects_network import fed_by_network, network_effects, runs_download
from safety.policy.effects_own import own_effects
from safety.policy.effects_payloads import payload_effects, unknown_program
from safety.policy.effects_remote import remote_effects, sql_client
from safety.policy.effects_system import mkfs
from safety.policy.path_effects import leak, removal, writing
from safety.policy.programs import program_effects
from safety.policy.scene import Scene, Target, labelled, shown
from safety.policy.shell import Code, Command, Parsed, Word, git_words, parse
from safety.policy.values import CallFacts, Coverage, Effect, Question

_MAX_DEPTH = 6
#: What falls upon files and repositories of the machine it runs on.
_LOCAL = (
    "path.",
    "worktree.",
    "ref.",
    "stash.",
    "index.",
    "reflog.",
    "objects.",
    "history.",
    "submodule.",
    "hook.",
    "config.",
    "git.",
)


def effects_of(parsed: Parsed, call: CallFacts) -> tuple[Effect, ...]:
    """Everything that the text would do, each once, in the order of the text. Reading what commands only look at gives nothing."""
    return tuple(dict.fromkeys(_effects(parsed, call, 0)))


def effects_of_tool(tool: str, paths: Iterable[tuple[str, str]], call: CallFacts) -> tuple[Effect, ...]:
    """What a file tool would do: ``write`` (``edit``, too), ``append``, ``delete``, ``move-from``, ``move-to``, ``read``.

    Each path comes as declared, absolute, and as it is after its links were followed: both must be harmless, so that a link does not
    lead out of the workspace unseen.
    """
    scene = Scene(call, Parsed(), lambda text, cwd: (), lambda code: ())
    found: list[Effect] = []
    for declared, real in paths:
        for path in dict.fromkeys((declared, real)):
            target = Target(path, path)
            if tool == "delete":
                found += removal(target, scene)
            elif tool == "move-from":
                found += (effect for effect in removal(target, scene) if effect.kind == "self.defense" or effect.weight == "deny")
            elif tool == "read":
                found += leak(target, scene)
            else:
                found += writing(target, scene, append=tool == "append")
    return tuple(dict.fromkeys(labelled(found, tool)))


def questions_of(effects: Iterable[Effect], coverage: Coverage | None = None) -> tuple[Question, ...]:
    """What must be asked to judge the effects; nothing where the snapshot is known to hold what they touch."""
    asked: dict[Question, None] = {}
    for effect in effects:
        if effect.question is None or effect.weight == "allow":
            continue
        if coverage is not None and effect.ours and _told_by_pieces(effect) and coverage.has(effect.pieces):
            continue
        asked[effect.question] = None
    return tuple(asked)


def _told_by_pieces(effect: Effect) -> bool:
    """Whether what a snapshot holds decides alone: refs and the like, not files."""
    return bool(effect.pieces) and effect.question is not None and effect.question.kind in ("refs", "merged", "config")


def _effects(parsed: Parsed, facts: CallFacts, depth: int) -> Iterator[Effect]:
    scene: Scene

    def again(text: str, cwd: str | None) -> Iterator[Effect]:
        if depth < _MAX_DEPTH and text.strip():
            inner = parse(text, cwd or "/nowhere", home=facts.home, variables=facts.variables or {})
            yield from _effects(inner, replace(facts, cwd=cwd or facts.cwd), depth + 1)

    def code(inner: Code) -> Iterator[Effect]:
        if depth < _MAX_DEPTH:
            from safety.policy.effects_code import code_effects  # few commands hold code

            yield from code_effects(inner, scene)

    scene = Scene(facts, parsed, again, code)
    for command in parsed.commands:
        yield from _of_command(command, scene)
    for piece in parsed.codes:
        if piece.language == "sql" and piece.via and sql_client(piece.via[-1].split()[0]):
            continue  # read with its client, which tells the database
        first = piece.text.strip().splitlines()[:1]
        label = f"{piece.language}: {first[0][:100] if first else ''}"
        yield from labelled(_wrapped(code(piece), piece.via, _is_remote(piece.via), piece.cwd, scene), label)
    if parsed.danger:
        yield Effect("unknown.run", f"a text that cannot be read, with the words {', '.join(parsed.danger[:5])}", "ask")


def _of_command(command: Command, scene: Scene) -> Iterator[Effect]:
    name = command.name
    if name.startswith("git-") and name not in ("git-safety", "git-lfs"):
        command = replace(command, words=(Word("git"), Word(name[4:]), *command.words[1:]))
        name = "git"
    verb = git_words(command).verb if name == "git" else ""
    found = _all_of(command, name, verb, scene)
    yield from labelled(_wrapped(found, command.via, command.remote, command.cwd, scene), shown(command))


def _all_of(command: Command, name: str, verb: str, scene: Scene) -> Iterator[Effect]:
    if command.env or name:
        yield from own_effects(command, verb)
    if name == "git":
        yield from git_effects(command, scene)
    elif name.startswith(("mkfs", "newfs")):
        yield from mkfs(command)
    elif " " in name.strip():
        yield from scene.again(command.words[0].text, command.cwd)
    elif name and command.words[0].glob:
        yield from unknown_program(command)
    elif name:
        yield from payload_effects(command, scene)
        yield from program_effects(command, scene)
        yield from network_effects(command, scene)
        yield from remote_effects(command, scene)
    elif command.words and not command.runs_download:
        yield from unknown_program(command)
    yield from redirect_effects(command, scene)
    yield from runs_download(command)
    yield from fed_by_network(command)
    if any(redirect.target.text.startswith(("/dev/tcp/", "/dev/udp/")) for redirect in command.redirects):
        yield from _socket(command, name, scene)


def _socket(command: Command, name: str, scene: Scene) -> Iterator[Effect]:
    """Bash's own sockets: a shell behind one is somebody else's, a file that is sent is theirs."""
    if name in ("sh", "bash", "zsh", "dash", "ksh", "exec"):
        yield Effect("network.shell", "a socket", "deny")
        return
    for word in command.words[1:]:
        target = scene.target(word, command.cwd)
        if target.path is not None and places.is_secret(target.path, scene.facts):
            yield Effect("secret.leak", target.path, "deny")


def _through_mounts(effect: Effect, scene: Scene) -> Iterator[Effect]:
    """What a container that is thrown away does to the folders of this machine it was given."""
    for command in scene.parsed.commands:
        if command.name in ("docker", "podman", "nerdctl") and any(word.text == "run" for word in command.words):
            for source, inner in _mounts(command):
                if effect.target.startswith("/") and places.inside(effect.target, inner):
                    path = places.absolute(source + "/" + effect.target[len(inner.rstrip("/")) :], command.cwd)
                    yield from removal(Target(path, effect.target), scene)


def _mounts(command: Command) -> Iterator[tuple[str, str]]:
    """``-v source:inner`` and ``--mount type=bind,source=,target=`` as pairs; named volumes and read-only ones are left out."""
    words = [word.text for word in command.words]
    for number, text in enumerate(words):
        value = text.partition("=")[2] if text.startswith(("--volume=", "--mount=")) else ""
        if text in ("-v", "--volume", "--mount") and number + 1 < len(words):
            value = words[number + 1]
        if value.startswith("type="):
            parts = dict(part.partition("=")[::2] for part in value.split(","))
            source, inner, options = parts.get("source", parts.get("src", "")), parts.get("target", parts.get("dst", "")), value
        else:
            source, _, rest = value.partition(":")
            inner, _, options = rest.partition(":")
        if inner and source.startswith(("/", ".", "~")) and "ro" not in options.split(","):
            yield source, inner


def _is_remote(via: tuple[str, ...]) -> bool:
    return any(step.split()[0] in ("ssh", "docker", "podman", "kubectl", "oc", "nerdctl") for step in via if step)


def _wrapped(effects: Iterable[Effect], via: tuple[str, ...], remote: bool, cwd: str | None, scene: Scene) -> Iterator[Effect]:
    """The effects as they are behind the wrappers passed through."""
    throw_away = any(step.startswith(("docker run", "podman run", "nerdctl run")) for step in via)
    submodules = any("submodule foreach" in step for step in via)
    laid_out = any("-filter" in step and "filter-branch" in step for step in via)
    for effect in effects:
        local = effect.kind.startswith(_LOCAL)
        if laid_out and local and effect.weight != "deny":
            continue
        if remote and local:
            if throw_away:
                yield from _through_mounts(effect, scene)
                continue
            if effect.kind == "path.overwrite" and effect.weight != "deny":
                continue
            if effect.target.startswith(scene.facts.temp) and effect.kind.startswith("path."):
                continue
            yield replace(
                effect,
                kind="service.destroy",
                weight=effect.weight if effect.weight == "allow" else "ask",
                pieces=(),
                question=None,
            )
        elif submodules and local and effect.weight == "ask":
            root = scene.facts.repository or scene.facts.root
            yield replace(
                effect, kind="submodule.discard", pieces=(), question=Question("submodules", root), target="every submodule"
            )
        else:
            yield effect
