"""Where a repository is and what kind it is, found by reading files; and the few things only git itself can tell.

Discovery starts no process, so a tool call that changes nothing costs none. It follows git's rules (setup.c), with two
differences: what git would refuse comes back as a value with a ``problem``, and a bare repository is never found from inside.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from safety.faults import SafetyError
from safety.plumbing.reading import read_regular
from safety.plumbing.refs import NULL_HEX, ref_text
from safety.plumbing.run import Git, GitError, GitTimeout

# Extensions of the repository format that change nothing for a reader of files, or that have a field of their own below.
KNOWN_EXTENSIONS = frozenset(
    {
        "noop",
        "noop-v1",
        "preciousobjects",
        "partialclone",
        "worktreeconfig",
        "objectformat",
        "compatobjectformat",
        "refstorage",
        "relativeworktrees",
        "submodulepathconfig",
    }
)

_MAX_SMALL_FILE = 1 << 20  # git's own bound for a .git file
_HEX = re.compile(rb"[0-9a-f]{40,64}")
_BRANCH = b"refs/heads/"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as its files describe it; all paths absolute, links in them resolved.

    ``root`` is the work tree (the git directory itself when ``bare``), ``git_dir`` this work tree's own directory, ``common_dir``
    the one it shares with others. ``ref_storage`` is ``files`` or another backend's name.

    ``problem`` is None, or why git would not work here, with one line of ``detail``: ``bad-git-file``, ``git-dir-missing``,
    ``unreadable``, ``bad-config``, ``unknown-format``, ``unknown-extension``, ``work-tree-elsewhere``. Whether git trusts the
    owner takes ``verify``; ``foreign_owner`` says that it may not.
    """

    root: bytes
    git_dir: bytes
    common_dir: bytes
    object_format: str = "sha1"
    extensions: frozenset[str] = frozenset()
    ref_storage: str = "files"
    bare: bool = False
    problem: str | None = None
    detail: str = ""
    foreign_owner: bool = False

    @property
    def linked(self) -> bool:
        """Whether this is a work tree made by ``git worktree add``."""
        return self.git_dir != self.common_dir


def find_root(cwd: bytes) -> bytes | None:
    """The nearest folder at or above ``cwd`` with a ``.git`` that git would stop at, links resolved; None outside.

    ``cwd`` may be gone. A ``.git`` file counts even if it leads nowhere, as git then stops too (``open_repository`` says why); an
    unusable ``.git`` folder does not.
    """
    folder = os.path.realpath(cwd)
    while True:
        found = os.path.join(folder, b".git")
        if _is_file(found) or _is_git_directory(found):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def open_repository(root: bytes) -> Repository | None:
    """The repository whose work tree is ``root``, or the bare one that ``root`` is; None if it is neither."""
    root = os.path.realpath(root)
    place = os.path.join(root, b".git")
    if _is_file(place):
        return _open_git_file(root, place)
    if _is_git_directory(place):
        return _describe(root, os.path.realpath(place))
    if os.path.isdir(place) and not os.access(place, os.R_OK | os.X_OK):
        return Repository(root, place, place, problem="unreadable", detail=f"{os.fsdecode(place)} cannot be read")
    if _is_git_directory(root) and os.path.basename(root) != b".git":
        return _describe(root, root)
    return None


def _open_git_file(root: bytes, place: bytes) -> Repository:
    content = _read_small(place)
    if content is None:
        return Repository(root, place, place, problem="unreadable", detail=f"{os.fsdecode(place)} cannot be read")
    target = content.removeprefix(b"gitdir: ").rstrip(b"\r\n")
    if target == content.rstrip(b"\r\n") or not target or b"\0" in target:
        return Repository(root, place, place, problem="bad-git-file", detail=f"{os.fsdecode(place)} does not begin with gitdir:")
    git_dir = os.path.realpath(os.path.join(root, target))
    if not _is_git_directory(git_dir):
        detail = f"{os.fsdecode(place)} points at {os.fsdecode(git_dir)}, which is no git directory"
        return Repository(root, git_dir, git_dir, problem="git-dir-missing", detail=detail)
    return _describe(root, git_dir)


def _describe(root: bytes, git_dir: bytes) -> Repository:
    common_dir = common_dir_of(git_dir)
    found = Repository(root, git_dir, common_dir, foreign_owner=_foreign_owner(root, git_dir))
    text = _read_small(os.path.join(common_dir, b"config"))
    if text is None:
        # Git takes a missing configuration for an empty one.
        if os.path.lexists(os.path.join(common_dir, b"config")):
            return replace(found, problem="unreadable", detail=f"{os.fsdecode(common_dir)}/config cannot be read")
        text = b""
    try:
        config = parse_config(text)
        if _true(config.get("extensions.worktreeconfig", b"false")):
            own = parse_config(_read_small(os.path.join(git_dir, b"config.worktree")) or b"")
        else:
            own = {}
    except ConfigBroken as error:
        return replace(found, problem="bad-config", detail=error.message)
    # A linked work tree shares the file, and has its own answer to these two.
    place = {**({} if found.linked else config), **own}
    found = replace(
        found,
        bare=found.git_dir == found.root or _true(place.get("core.bare", b"false")),
        extensions=frozenset(name.removeprefix("extensions.") for name in config if name.startswith("extensions.")),
        object_format=os.fsdecode(config.get("extensions.objectformat", b"sha1")).lower(),
        ref_storage=os.fsdecode(config.get("extensions.refstorage", b"files")).lower(),
    )
    problem, detail = _format_problem(found, config) or _work_tree_problem(found, place.get("core.worktree")) or (None, "")
    return replace(found, problem=problem, detail=detail)


def _format_problem(found: Repository, config: dict[str, bytes]) -> tuple[str, str] | None:
    version = config.get("core.repositoryformatversion", b"0").strip()
    if version not in (b"0", b"1"):
        return "unknown-format", f"repository format {os.fsdecode(version)} is not known"
    unknown = sorted(found.extensions - KNOWN_EXTENSIONS) if version == b"1" else []
    if unknown:
        return "unknown-extension", f"the repository uses the unknown extension {', '.join(unknown)}"
    return None


def _work_tree_problem(found: Repository, configured: bytes | None) -> tuple[str, str] | None:
    if configured is None or found.bare:
        return None
    actual = os.path.realpath(os.path.join(found.git_dir, configured))
    if actual == found.root:
        return None
    return "work-tree-elsewhere", f"core.worktree says that the files are in {os.fsdecode(actual)}"


def common_dir_of(git_dir: bytes) -> bytes:
    """The directory that a work tree's own one shares with others; itself if it shares none."""
    pointer = _read_small(os.path.join(git_dir, b"commondir"))
    if not pointer or b"\0" in pointer:
        return git_dir
    return os.path.realpath(os.path.join(git_dir, pointer.rstrip(b"\r\n")))


def _is_git_directory(path: bytes) -> bool:
    """Git's test: a HEAD that looks like one, and objects and refs here or in the common directory."""
    head = read_head(path)
    if not head.startswith(b"ref: refs/") and not _HEX.match(head):
        return False
    common_dir = common_dir_of(path)
    return os.path.isdir(os.path.join(common_dir, b"objects")) and os.path.isdir(os.path.join(common_dir, b"refs"))


def read_head(git_dir: bytes) -> bytes:
    """What HEAD says: ``ref: refs/...`` with one space, or an id in hex; empty if it cannot be read."""
    head = os.path.join(git_dir, b"HEAD")
    try:
        target = os.readlink(head)
    except (OSError, ValueError):
        target = b""
    # A link to a ref is a symbolic ref of old; a link elsewhere is just a link.
    return ref_text(target if target.startswith(b"refs/") else _read_small(head) or b"")


def _foreign_owner(root: bytes, git_dir: bytes) -> bool:
    """Whether something that git wants to be the caller's own is another user's."""
    for path in (root, os.path.join(root, b".git"), git_dir):
        try:
            if os.lstat(path).st_uid != os.geteuid():
                return True
        except OSError:
            continue
    return False


def _is_file(path: bytes) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _read_small(path: bytes) -> bytes | None:
    """A small regular file's content, links followed; None for anything else."""
    try:
        return read_regular(path, follow=True, most=_MAX_SMALL_FILE)
    except (OSError, ValueError):
        return None


# ---- the repository's own configuration --------------------------------------------------------------------------------------


class ConfigBroken(SafetyError):
    """A configuration file git would not read."""

    code = "bad-config"


_SECTION = re.compile(rb'\[\s*([-.A-Za-z0-9]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(rb"[A-Za-z][-A-Za-z0-9]*")
_TRUE = re.compile(rb"true|yes|on|[-+]?0*[1-9][0-9]*[kmg]?")
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"b": b"\b", b'"': b'"', b"\\": b"\\"}


def parse_config(text: bytes) -> dict[str, bytes]:
    """The last value of each key of one configuration file as ``section.key`` or ``section.Sub.key``; a bare key is ``true``.

    Includes are not followed: git does not follow them either where it decides what kind of repository this is.
    Raises ConfigBroken.
    """
    values: dict[str, bytes] = {}
    section = ""
    text = text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    at = 0
    while at < len(text):
        if text[at] in b" \t\n\r\f\v":
            at += 1
        elif text[at] in b"#;":
            at = _line_end(text, at)
        elif match := _SECTION.match(text, at):
            section = match[1].decode("ascii").lower()
            if match[2] is not None:
                section += "." + os.fsdecode(re.sub(rb"\\(.)", rb"\1", match[2]))
            at = match.end()
        elif match := _KEY.match(text, at):
            key = match[0].decode("ascii").lower()
            # Git takes a key before the first section, too.
            values[f"{section}.{key}" if section else key], at = _parse_value(text, match.end())
        else:
            line = text.count(b"\n", 0, at) + 1
            raise ConfigBroken(f"line {line} of the repository's configuration cannot be read")
    return values


def _line_end(text: bytes, at: int) -> int:
    end = text.find(b"\n", at)
    return len(text) if end < 0 else end


def _parse_value(text: bytes, at: int) -> tuple[bytes, int]:
    while text[at : at + 1] in (b" ", b"\t"):
        at += 1
    if text[at : at + 1] != b"=":
        if text[at : at + 1] not in (b"\n", b"#", b";", b""):
            raise ConfigBroken(f"line {text.count(bytes([10]), 0, at) + 1} of the repository's configuration cannot be read")
        return b"true", _line_end(text, at)
    at += 1
    value = bytearray()
    kept = 0  # length without the blanks at the end, which count only within quotes
    quoted = False
    while at < len(text):
        byte = text[at : at + 1]
        at += 1
        if byte == b"\n":
            if quoted:
                raise ConfigBroken("a quoted value of the repository's configuration does not end")
            break
        if byte == b"\\":
            escaped = text[at : at + 1]
            at += 1
            if escaped == b"\n":
                continue
            if escaped not in _ESCAPES:
                raise ConfigBroken("a value of the repository's configuration holds an unknown escape")
            value += _ESCAPES[escaped]
            kept = len(value)
        elif byte == b'"':
            quoted = not quoted
            kept = len(value)
        elif not quoted and byte in b"#;":
            at = _line_end(text, at)
        elif not quoted and byte in b" \t\r\f\v":
            if value:
                value += byte
        else:
            value += byte
            kept = len(value)
    return bytes(value[:kept]), at


def _true(value: bytes) -> bool:
    return _TRUE.fullmatch(value.strip().lower()) is not None


# ---- what git itself says ----------------------------------------------------------------------------------------------------


def verify(git: Git, root: bytes) -> str | None:
    """None if git works in ``root`` and takes it for the top of its work tree, else one line that says why not.

    One start of git. Dubious ownership, a broken configuration, an unsupported format show here.
    """
    try:
        done = git.user(root, ["rev-parse", "--show-toplevel"], deadline_s=10, check=False)
    except GitTimeout:
        return "git rev-parse did not end within 10 s"
    except GitError as error:
        return error.message
    if done.returncode == 0:
        top = done.stdout.removesuffix(b"\n")
        if os.path.realpath(top) == os.path.realpath(root):
            return None
        return f"git takes {os.fsdecode(top)} for the top of the work tree, not {os.fsdecode(root)}"
    said = done.stderr.strip().split(b"\n", 1)[0].removeprefix(b"fatal: ") or b"no message"
    if b"dubious ownership" in done.stderr:
        return (
            f"dubious ownership: {os.fsdecode(root)} belongs to another user (git config --global --add safe.directory trusts it)"
        )
    return f"git refuses to work here: {os.fsdecode(said)}"


_FILE_SETTINGS = (
    ("excludes_file", b"core.excludesfile", "ignore"),
    ("attributes_file", b"core.attributesfile", "attributes"),
)


def user_config(git: Git, root: bytes) -> dict[str, str]:
    """The settings that decide what git ignores and how it converts, as git reads them in ``root``; unset ones are left out.

    ``excludes_file`` and ``attributes_file`` are absolute (git's defaults included if they exist), ``autocrlf`` is ``true``,
    ``false`` or ``input``, ``eol`` is ``lf``, ``crlf`` or ``native``. ``problem`` is only there when git could not read its
    configuration.
    """
    settings: dict[str, str] = {}
    values: dict[bytes, bytes] = {}
    try:
        listed = git.user(root, ["config", "--list", "--show-scope", "-z"], deadline_s=10).stdout
    except GitError as error:
        settings["problem"] = error.message
    else:
        fields = listed.split(b"\0")
        for scope, item in zip(fields[::2], fields[1::2], strict=False):
            key, equals, value = item.partition(b"\n")
            if scope != b"command":  # those are our own
                values[key] = value if equals else b"true"
    for name, key, default in _FILE_SETTINGS:
        path = _configured_path(git, root, key, values[key]) if key in values else _default_file(git, default)
        if path:
            settings[name] = os.fsdecode(path)
    if b"core.autocrlf" in values:
        value = values[b"core.autocrlf"].lower()
        settings["autocrlf"] = "input" if value == b"input" else "true" if _true(value) else "false"
    if b"core.eol" in values:
        settings["eol"] = os.fsdecode(values[b"core.eol"]).lower()
    return settings


def _configured_path(git: Git, root: bytes, key: bytes, value: bytes) -> bytes | None:
    if not value:
        return None  # set to nothing: no such file, not the default one
    if value[:1] in (b"~", b"%", b":"):
        done = git.user(root, ["config", "--type=path", "-z", "--get", key], deadline_s=10, check=False)
        value = done.stdout.removesuffix(b"\0") if done.returncode == 0 else value
    return os.path.join(root, value)


def _default_file(git: Git, name: str) -> bytes | None:
    """``$XDG_CONFIG_HOME/git/<name>`` as the started git would find it, if it exists."""
    environment = git._user_env
    home = os.fsencode(environment.get("HOME") or b"")
    folder = os.fsencode(environment.get("XDG_CONFIG_HOME") or b"") or (os.path.join(home, b".config") if home else b"")
    path = os.path.join(folder, b"git", os.fsencode(name))
    return path if folder and os.path.exists(path) else None


# ---- the other work trees ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorktreeHead:
    """One work tree of a repository: its git directory, its HEAD's text, and every branch it must not lose.

    ``branches`` (full names) are the one checked out, one being rebased or bisected, and those a running rebase will move.
    ``root`` is the work tree, which may be gone; None if unknown.
    """

    git_dir: bytes
    head: bytes
    branches: frozenset[bytes] = field(default_factory=frozenset)
    root: bytes | None = None


def other_worktrees(common_dir: bytes, own: bytes | None = None) -> list[WorktreeHead]:
    """All work trees of a repository, the main one first, without the one whose git directory is ``own``.

    A bare repository has no main work tree. Source: git's worktree.c and branch.c (prepare_checked_out_branches).
    """
    found: list[WorktreeHead] = []
    main = _main_place(common_dir)
    if not _true(main.get("core.bare", b"false")):
        root = os.path.join(common_dir, main.get("core.worktree", b".."))
        found.append(_worktree(common_dir, os.path.normpath(root)))
    for git_dir in _subfolders(os.path.join(common_dir, b"worktrees")):
        pointer = (_read_small(os.path.join(git_dir, b"gitdir")) or b"").rstrip(b"\r\n")
        found.append(_worktree(git_dir, os.path.dirname(os.path.normpath(os.path.join(git_dir, pointer))) if pointer else None))
    skipped = os.path.realpath(own) if own is not None else None
    return [tree for tree in found if os.path.realpath(tree.git_dir) != skipped]


def _worktree(git_dir: bytes, root: bytes | None) -> WorktreeHead:
    head = read_head(git_dir)
    return WorktreeHead(git_dir, head, frozenset(_branches_in_use(git_dir, head)), root)


def _main_place(common_dir: bytes) -> dict[str, bytes]:
    """The configuration of a main work tree; empty if it cannot be read (rather one work tree too many: it is left alone)."""
    try:
        config = parse_config(_read_small(os.path.join(common_dir, b"config")) or b"")
        if _true(config.get("extensions.worktreeconfig", b"false")):
            config |= parse_config(_read_small(os.path.join(common_dir, b"config.worktree")) or b"")
    except ConfigBroken:
        return {}
    return config


def _branches_in_use(git_dir: bytes, head: bytes) -> Iterator[bytes]:
    def line(name: bytes) -> bytes:
        return (_read_small(os.path.join(git_dir, name)) or b"").strip()

    if head.startswith(b"ref: "):
        yield head[5:]
    for state in (b"rebase-merge/head-name", b"rebase-apply/head-name"):
        if line(state).startswith(_BRANCH):
            yield line(state)
    bisected = line(b"BISECT_START")
    if bisected and not _HEX.fullmatch(bisected):
        yield bisected if bisected.startswith(b"refs/") else _BRANCH + bisected
    # Three lines each: the ref, where it was, where it will be (null: not yet known).
    yield from (
        ref for ref in line(b"rebase-merge/update-refs").split(b"\n")[::3] if ref.startswith(b"refs/") and ref != NULL_HEX
    )


def _subfolders(path: bytes) -> list[bytes]:
    try:
        with os.scandir(path) as found:
            return sorted(item.path for item in found if item.is_dir())
    except OSError:
        return []
