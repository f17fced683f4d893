"""Runs shell text in the real bash, in a folder where ``rm`` and ``git`` only write down how they were called.

What bash calls, the reader must have found: the words and the folder of each.
"""

from __future__ import annotations

import os
import random
import re
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
        environment = {"PATH": str(self.tools), "HOME": str(self.root / "d2"), "R": str(self.root), "LC_ALL": "C.UTF-8"}
        subprocess.run(
            ["/bin/bash", "-c", text],
            cwd=self.root,
            env={**environment, "RECORD": str(self.record)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
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
        kind, value = self.draw.randrange(14), self.plain()
        if kind < 4:
            return value
        if kind < 8:
            return self.quoted(self.draw.choice((value, f"{value} {value}", f"{value};rm {value}", *ODD)))
        return self.draw.choice(WORDS).replace("<v>", value)

    def simple(self) -> str:
        words = " ".join(self.word() for _ in range(self.draw.randint(0, 3)))
        return self.draw.choice(REDIRECTED).replace("<c>", f"{self.draw.choice(NAMES)} {words}")

    def command(self, depth: int) -> str:
        if depth > 3 or self.draw.random() < 0.4:
            return self.simple()
        self.names += 1
        name, inner = f"n{self.names}", self.text(depth + 1)

        def filled(found: re.Match[str]) -> str:
            kind = found[0]
            if kind == "<w>":
                return self.word()
            if kind == "<c>":
                return self.simple()
            return {"<n>": name, "<i>": inner, "<q>": self.quoted(inner)}[kind]

        return re.sub("<[wcniq]>", filled, self.draw.choice(FORMS))


ODD = ("#x", "$x", "it's", "a`b", "é~", "*", "")
NAMES = ("rm", "rm", "git", "r\\m", "'rm'", '"g"it', "$(echo rm)", "command rm", "\\rm", "r\\\nm")
REDIRECTED = (
    "<c>", "<c>", "<c>", "<c> >/dev/null", "<c> 2>&1", "<c> >f1", "<c> </dev/null", "<c> # rm no\n:", "<c> <<< x", ">/dev/null <c>",
)  # fmt: skip
WORDS = (
    "$(echo <v>)", '"$(printf %s <v>)"', "`echo <v>`", "{a<v>,b}", "~", "~/x", "${V:-d}", "$V", '"$V"', "${V%a}", "a\\\nb", "{1..3}",
    '"$(echo "x<v>")"', "x{a,b}y", '"${V}"', "$((1 + 2))", '$"t"', "${#V}", "${V:0:1}", "${W+x}", "a'b'\"c\"",
)  # fmt: skip
# <i>: commands; <q>: the same as one quoted word; <c>: one command; <w>: a word; <n>: a new name
_FORMS = r"""
( <i>¶)
{ <i>¶}
if true; then <i>¶else rm no; fi
if [ -z "$(<c>¶)" ]; then <i>¶fi
for <n> in <w> b; do rm $<n>; <i>¶done
case <w>x in *) <i>¶;; esac
while true; do <i>¶break; done
until <i>¶do break; done
<n>() { <i>¶}; <n> <w>
function <n> { <i>¶}¶<n>
bash -c <q>
eval <q>
bash <<'E<n>'¶<i>¶E<n>¶:
cat <<\E<n> | sh¶<i>¶E<n>¶:
cat <<E<n> >/dev/null¶$(<c>¶) `rm b` \$(rm no)¶E<n>¶:
cat > s<n>.sh <<'E<n>'¶<i>¶E<n>¶bash ./s<n>.sh
printf '%s\n' <q> | bash
echo <q> | rev | rev | sh
echo a b<n> | xargs rm
V=<w>
V=<w>; <i>
export V=<w>; bash -c 'rm $V'
set -- <w> b; rm "$@" $1 $#
true; a<n>=(<w> b); rm "${a<n>[@]}" ${#a<n>[@]}
{ cd $R/d1; <i>¶cd $R; }
{ pushd $R/d1 >/dev/null; <i>¶popd >/dev/null; }
(cd $R/d2 && <i>¶)
env A=b <c>
sudo <c>
timeout 5 <c>
time { <i>¶}
! <c>
true && { <i>¶} || true
X=$(<i>¶)
echo "$(<i>¶)" >/dev/null
cat <(<i>¶) >/dev/null
[[ a == "$(rm t)" ]]; <i>
trap <q> EXIT
<i> | cat
<i> &¶wait
coproc { ( <i>¶) }; wait
exec 3>f2; <i>
""".strip("\n").split("\n")
FORMS = [form.replace("¶", "\n") for form in _FORMS]
