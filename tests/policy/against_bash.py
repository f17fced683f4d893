"""Runs shell text in the real bash, in a folder where ``rm`` and ``git`` only write down how they were called.

What bash calls, the reader must have found: the words and the folder of each.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from safety.policy.shell import Command, parse

RECORDED = ("rm", "git")
REAL = "bash cat env xargs timeout nice nohup rev base64 tr tee find sleep mktemp seq sort head setsid stdbuf dirname basename xxd".split()
RECORDER = '#!/bin/sh\nprintf "%s\\0" "${0##*/}" "$PWD" "$#" "$@" >> "$RECORD"\n'


class Called(NamedTuple):
    words: tuple[str, ...]
    cwd: str


class Bash:
    """A folder with sub-folders ``d1/e`` and ``d2``, a file ``one.txt``, and a PATH of harmless programs."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.tools = folder / "bin"
        self.record = folder / "record"
        (self.root / "d1" / "e").mkdir(parents=True)
        (self.root / "d2").mkdir()
        self.tools.mkdir()
        for name in RECORDED:
            (self.tools / name).write_text(RECORDER)
            (self.tools / name).chmod(0o755)
        (self.tools / "sh").symlink_to("/bin/bash")
        (self.tools / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (self.tools / "sudo").chmod(0o755)
        for name in REAL:
            if found := shutil.which(name):
                (self.tools / name).symlink_to(found)

    def calls(self, text: str) -> list[Called]:
        """What the text called, in order."""
        for entry in os.scandir(self.root):
            if entry.name not in ("d1", "d2"):
                os.unlink(entry.path)
        (self.root / "one.txt").write_text("x\n")
        self.record.write_bytes(b"")
        environment = {
            "PATH": str(self.tools),
            "HOME": str(self.root / "d2"),
            "RECORD": str(self.record),
            "R": str(self.root),
            "LC_ALL": "C.UTF-8",
        }
        subprocess.run(
            ["/bin/bash", "-c", text], cwd=self.root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=10
        )
        parts = self.record.read_bytes().decode("utf-8", "surrogateescape").split("\0")
        found, at = [], 0
        while at + 2 < len(parts):
            count = int(parts[at + 2])
            found.append(Called((parts[at], *parts[at + 3 : at + 3 + count]), parts[at + 1]))
            at += 3 + count
        return found

    def parsed(self, text: str) -> list[Command]:
        found = parse(text, str(self.root), home=str(self.root / "d2"), variables={"R": str(self.root)})
        return [command for command in found.commands if command.name in (*RECORDED, "")]


def accounts_for(command: Command, called: Called) -> bool:
    """Whether a command as read may be what bash called; what is not certain may be anything."""
    if command.cwd is not None and command.cwd != called.cwd:
        return False
    words = [word.text for word in command.words]
    if all(word.certain and not word.glob for word in command.words):
        words[:1] = [command.name]
        return tuple(words) == called.words or (command.appended and tuple(words) == called.words[: len(words)])
    return bool(words) and (not command.words[0].certain or command.name == called.words[0])


class Writer:
    """Writes valid bash text at random."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.names = 0

    def text(self, depth: int = 0) -> str:
        return self.draw.choice(("; ", "\n", " && ", "; ")).join(self.command(depth) for _ in range(self.draw.randint(1, 3)))

    def plain(self) -> str:
        return "".join(self.draw.choice("abcxyz-./_=:,@%+") for _ in range(self.draw.randint(1, 5))).replace("~", "")

    def quoted(self, value: str) -> str:
        """``value`` as one shell word, written in one of many ways."""
        kind = self.draw.randrange(6)
        if kind == 0:
            return "'" + value.replace("'", "'\\''") + "'"
        if kind == 1:
            return '"' + "".join(f"\\{char}" if char in '"\\$`' else char for char in value) + '"'
        if kind == 2 and value and "\n" not in value:
            return "".join(f"\\{char}" for char in value)
        if kind == 3:
            return "$'" + "".join(f"\\x{ord(char):02x}" if ord(char) < 127 else char for char in value) + "'"
        if kind == 4 and len(value) > 1 and "\n" not in value:
            at = self.draw.randint(1, len(value) - 1)
            return self.quoted(value[:at]) + self.draw.choice(("", "\\\n", '""', "''")) + self.quoted(value[at:])
        return "'" + value.replace("'", "'\"'\"'") + "'"

    def word(self) -> str:
        kind = self.draw.randrange(14)
        value = self.plain()
        if kind < 4:
            return value
        if kind < 8:
            return self.quoted(
                self.draw.choice((value, f"{value} {value}", f"{value};rm {value}", "#x", "$x", "it's", "a`b", "é~", "*", ""))
            )
        return self.draw.choice((
            f"$(echo {value})", f'"$(printf %s {value})"', f"`echo {value}`", f"{{{value[0]},b}}", "~", "~/x", "${V:-d}", "$V", '"$V"', "${V%a}",
            "a\\\nb", f'"$(echo "{value[:1]}x")"', "{1..3}", "x{a,b}y", '"${V}"', "$((1 + 2))", '$"t"', "${#V}", "${V:0:1}", "${W+x}", "a'b'\"c\"",
        ))  # fmt: skip

    def simple(self) -> str:
        name = self.draw.choice(("rm", "rm", "git", "r\\m", "'rm'", '"g"it', "$(echo rm)", "command rm", "\\rm", "r\\\nm"))
        words = " ".join(self.word() for _ in range(self.draw.randint(0, 3)))
        redirect = self.draw.choice(("", "", "", " >/dev/null", " 2>&1", " >f1", " </dev/null", " # rm no", " <<< x"))
        if self.draw.random() < 0.1:
            return f">/dev/null {name} {words}"
        if redirect.startswith(" #"):
            return f"{name} {words}{redirect}\n:"
        return f"{name} {words}{redirect}"

    def command(self, depth: int) -> str:
        if depth > 3 or self.draw.random() < 0.4:
            return self.simple()
        self.names += 1
        name = f"n{self.names}"
        inner = self.text(depth + 1)
        lines = inner if "\n" not in inner else inner
        forms = (
            lambda: f"( {inner}\n)", lambda: f"{{ {inner}\n}}", lambda: f"if true; then {inner}\nelse rm no; fi",
            lambda: f"for {name} in {self.word()} b; do rm ${name}; {inner}\ndone", lambda: f"case {self.plain()} in *) {inner}\n;; esac",
            lambda: f"{name}() {{ {inner}\n}}; {name} {self.word()}", lambda: f"bash -c {self.quoted(inner)}", lambda: f"eval {self.quoted(inner)}",
            lambda: f"bash <<'E{name}'\n{inner}\nE{name}\n:", lambda: f"cat <<\\E{name} | sh\n{inner}\nE{name}\n:",
            lambda: f"printf '%s\\n' {self.quoted(inner)} | bash", lambda: f"V={self.word()}", lambda: f"V={self.word()}; {inner}",
            lambda: f"{{ cd $R/d1; {inner}\ncd $R; }}", lambda: f"(cd $R/d2 && {inner}\n)", lambda: f"{{ pushd $R/d1 >/dev/null; {inner}\npopd >/dev/null; }}",
            lambda: f"env A=b {self.simple()}", lambda: f"sudo {self.simple()}", lambda: f"timeout 5 {self.simple()}",
            lambda: f"time {{ {inner}\n}}", lambda: f"! {self.simple()}", lambda: f"true && {{ {inner}\n}} || true",
            lambda: f"X=$({inner}\n)", lambda: f"echo \"$({inner}\n)\" >/dev/null", lambda: f"cat <({inner}\n) >/dev/null",
            lambda: f"while true; do {inner}\nbreak; done", lambda: f"trap {self.quoted(self.simple())} EXIT", lambda: f"{inner} | cat",
            lambda: f"export V={self.word()}; bash -c 'rm $V'", lambda: f"echo {self.plain()} {self.plain()} | xargs rm",
            lambda: f"set -- {self.word()} b; rm \"$@\" $1 $#", lambda: f"true; a{name}=({self.word()} b); rm \"${{a{name}[@]}}\" ${{#a{name}[@]}}",
            lambda: f"cat > s{name}.sh <<'E{name}'\n{inner}\nE{name}\nbash ./s{name}.sh", lambda: f"echo {self.quoted(self.simple())} | rev | rev | sh",
            lambda: f"cat <<E{name} >/dev/null\n$({self.simple()}\n) `rm b` \\$(rm no)\nE{name}\n:", lambda: f"[[ a == \"$(rm t)\" ]]; {inner}",
            lambda: f"function {name} {{ {inner}\n}}\n{name}", lambda: f"until {inner}\ndo break; done", lambda: f"coproc {{ ( {inner}\n) }}; wait",
            lambda: f"if [ -z \"$({self.simple()}\n)\" ]; then {inner}\nfi", lambda: f"{inner} &\nwait", lambda: f"exec 3>f2; {inner}",
        )  # fmt: skip
        return self.draw.choice(forms)()
