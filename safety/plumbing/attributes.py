"""Which files git stores otherwise than they lie on the disk: line ends, ident, filters, encodings.

For such a path a clean index does not mean that the file's bytes are the blob's. Asked of git in the user's repository, with the
user's configuration, since only so are the answers those that `git add` acted on.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Literal

from safety.plumbing.run import Git

Conversion = Literal["size-safe", "always"]
"""``size-safe``: the bytes are the blob's exactly if the sizes agree, because turning CRLF into LF and collapsing ``$Id$`` only
ever shorten. ``always``: nothing but reading the file tells (a filter, an encoding)."""


def converted_paths(
    git: Git, root: bytes, paths: Collection[bytes], *, attribute_files: bool | None = None
) -> dict[bytes, Conversion]:
    """Those of ``paths`` (relative to ``root``, the top of a repository) whose blob may differ from the file.

    ``attribute_files`` says whether the work tree or index holds any ``.gitattributes``; None: as ``paths`` and a look at the
    root tell. Without any source of attributes and with no ``core.autocrlf`` no path is looked at. Raises GitError.
    """
    settings = git.start_user(root, ["config", "-z", "--get-regexp", r"^core\.(autocrlf|attributesfile)$"], ok=(0, 1))
    with settings, git.start_user(root, ["rev-parse", "--git-path", "info/attributes"]) as place:
        info = os.path.join(root, place.wait().stdout.removesuffix(b"\n"))
        config = _settings(settings.wait().stdout)
    # core.eol converts nothing by itself: it only tells how files that are text by attribute or core.autocrlf are written.
    automatic = config.get(b"core.autocrlf", b"false").lower() not in (b"false", b"no", b"off", b"0", b"")
    if attribute_files is None:
        attribute_files = any(path.endswith(b".gitattributes") for path in paths)
    sources = [os.path.join(root, b".gitattributes"), info, *_user_sources(git, config)]
    if not attribute_files and not any(os.path.exists(source) for source in sources):
        return dict.fromkeys(paths, "size-safe") if automatic else {}
    return _ask(git, root, paths, automatic)


def _ask(git: Git, root: bytes, paths: Collection[bytes], automatic: bool) -> dict[bytes, Conversion]:
    given = b"".join(path + b"\0" for path in paths)
    # --all names only attributes that are given, which for most paths are none.
    fields = git.user(root, ["check-attr", "-z", "--stdin", "--all"], input=given).stdout.split(b"\0")
    found: dict[bytes, Conversion] = dict.fromkeys(paths, "size-safe") if automatic else {}
    at = 0
    while at + 2 < len(fields):
        path = fields[at]
        given_here: dict[bytes, bytes] = {}
        while at + 2 < len(fields) and fields[at] == path:
            given_here[fields[at + 1]] = fields[at + 2]
            at += 3
        conversion = _conversion(given_here, automatic)
        if conversion is None:
            found.pop(path, None)
        else:
            found[path] = conversion
    return found


def _conversion(given: dict[bytes, bytes], automatic: bool) -> Conversion | None:
    """What the attributes of one path do to its content. Source: git's convert.c, ``convert_attrs``."""
    if any(given.get(name, b"unset") != b"unset" for name in (b"filter", b"working-tree-encoding")):
        return "always"
    if given.get(b"ident") == b"set":
        return "size-safe"
    text = given.get(b"text")
    if text not in (b"set", b"unset", b"auto", b"input"):
        text = given.get(b"crlf")  # the attribute's name of old
    if text == b"unset":
        return None
    if text in (b"set", b"auto", b"input") or given.get(b"eol") in (b"lf", b"crlf") or automatic:
        return "size-safe"
    return None


def _settings(listed: bytes) -> dict[bytes, bytes]:
    """The last value of each name; a name without a value means true, and comes without a newline."""
    found = {}
    for item in listed.split(b"\0")[:-1]:
        name, has_value, value = item.partition(b"\n")
        found[name.lower()] = value if has_value else b"true"
    return found


def _user_sources(git: Git, config: dict[bytes, bytes]) -> list[bytes]:
    """Where attributes of the user and of the system may stand. A place too many costs time only."""
    env = git.base_env
    home = os.fsencode(env.get("HOME", ""))
    named = config.get(b"core.attributesfile")
    if named is None:
        folder = os.fsencode(env.get("XDG_CONFIG_HOME", "")) or os.path.join(home, b".config")
        named = os.path.join(folder, b"git/attributes")
    elif named.startswith(b"~/"):
        named = os.path.join(home, named[2:])
    elif named.startswith((b"~", b"%(prefix)/")):
        return [b"/"]  # another user's home or git's own folder: let git look
    prefix = os.path.dirname(os.path.dirname(os.path.realpath(git.program())))
    return [named, b"/etc/gitattributes", os.path.join(prefix, b"etc/gitattributes")]
