"""How words typed become arguments: the parser of a verb, the shape of a verb, and what parsing may know of the world."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from safety.faults import SafetyError, quoted


class UsageError(SafetyError):
    """What was typed cannot be understood."""

    code, exit_code = "usage", 2


@dataclass(frozen=True, slots=True)
class Typed:
    """What parsing needs to know of the world: where the user stands, the time, and the words after ``--``."""

    cwd: bytes
    now_ms: int
    after: tuple[str, ...] = ()

    def paths(self, words: Sequence[str] = ()) -> tuple[bytes, ...]:
        """The words, then those after ``--``, as absolute paths."""
        return tuple(os.path.normpath(os.path.join(self.cwd, os.fsencode(word))) for word in (*words, *self.after))

    def no_paths(self, verb: str) -> None:
        """Refuses words after ``--``."""
        if self.after:
            raise UsageError(f"git safety {verb} takes nothing after --", f"git safety {verb} -h")


Options = Callable[[argparse.ArgumentParser], None]
Build = Callable[[argparse.Namespace, Typed], object]


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb. ``build`` None: the verb reads its own words; ``owner`` is the module with its ``main(argv, environ) -> int``.

    ``first``: on the first help screen. ``pages``: long answers go through the pager. ``usage`` is what stands after the verb.
    ``lenient``: only looks, or takes back, so it works with the defaults where the settings cannot be read.
    ``text`` is a second paragraph of help; ``examples``: (command, what it does), shown by ``-h`` and in the man page.
    """

    name: str
    summary: str
    options: Options
    build: Build | None = None
    owner: str = ""
    first: bool = False
    pages: bool = False
    lenient: bool = False
    usage: str = ""
    text: str = ""
    examples: tuple[tuple[str, str], ...] = ()


class Parser(argparse.ArgumentParser):
    """argparse that raises `UsageError` where it would print and leave."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"{self.prog} -h")


def parser(verb: Verb) -> Parser:
    """The parser of one verb, for what stands before ``--``. Verbs that read their own words get it for their ``-h``."""
    description = "\n\n".join(filter(None, [verb.summary + ".", verb.text]))
    made = Parser(
        prog=f"git safety {verb.name}",
        description=description,
        usage=f"git safety {verb.name} {verb.usage}".rstrip(),
        epilog="\n".join(["examples:", *(f"  {command}\n      {does}" for command, does in verb.examples)])
        if verb.examples
        else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    verb.options(made)
    if verb.build is not None:
        made.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    made.add_argument("-h", "--help", action="help", help="show this and leave")
    return made


def whole_number(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a whole number above 0")
    return int(text)
