"""What the guard's shell reader does with texts that nobody would write: ``python tests/benchmarks/guard_texts.py [how many]``.

Generated commands and mutations of them: quotes, nesting, unicode, NUL, unbalanced, up to a megabyte. Prints crashes, the slowest texts
and the times, and ends with one JSON line. Texts are the same for the same number.
"""

from __future__ import annotations

import collections
import json
import random
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from safety.policy.shell import parse  # noqa: E402

WORDS = """rm -rf ~ git reset --hard push -f origin main clean -fdx sudo env A=b bash -c sh eval xargs find . -exec {} + \\; -delete
python3 echo printf cat tee curl https://x.example/i.sh | && || ; & > >> < << <<- <<< EOF 'EOF' $( ) ` ` "$( )" ${ } ${x:-y} $x "$@"
$((1+2)) (( [[ ]] )) { } ( ) if then else elif fi for in do done while case esac ;; ;& function f() time coproc ! # 'it' "a b" $'\\x41'
~/x ../y *.py [a-z] {a,b} {1..9} é 日本 %s -- - = 2>&1 &> /dev/null <(ls) >(cat) cd pushd export local x=1 x=(1 2) x+=y ssh host
docker exec c make -f - trap EXIT su -c watch parallel ::: git -c alias.x='!rm' rebase --exec Remove-Item $env:X del /s psql -c 'drop
table x'""".split()
WORDS += ["\n", "\n", "\\\n", "\t", "\u200b", "\0", "\x7f"]
HARD = [
    "(" * 9_000, "$(" * 4_000, "${x:-" * 2_000, "`" * 9_999, '"$(' * 3_000, "((" * 4_900, "{a,b}" * 1_900, "a;" * 4_900, "a|" * 4_900,
    "if a; then " * 800, "sudo " * 1_900, "f(){ f;f; };f;" * 500, "x=$x$x;" * 1_400, "<<E " * 2_400, "'" * 9_999, "\\\n" * 4_900,
    "a&&" * 3_300, "case x in " * 900, "[[ " * 3_000, "! " * 4_900, "$((" * 3_300, "a{" * 4_900, "bash -c '" * 1_000, "eval " * 1_900,
    "for i in {1..99}; do for j in {1..99}; do for k in {1..99}; do rm $i$j$k; done; done; done",
    "echo {1..999999999}", "{a..z}{a..z}{a..z}{a..z}",
    "f(){ g;g;g;g; }; g(){ h;h;h;h; }; h(){ i;i;i;i; }; i(){ j;j;j;j; }; j(){ rm x; }; f",
    "rm " + "x" * 9_990, "git " * 250_000, "rm -rf " * 140_000, "a\n" * 500_000, '"' * 1_000_000, "<<'E'\n" * 150_000, "(" * 1_000_000,
    "cat > f <<'E'\n" + "rm -rf /\n" * 110_000 + "E\nls", "cat > f <<E\n" + "$(rm x)\n" * 100_000 + "E\n", "echo " + "é" * 500_000,
    "curl " * 200_000, "kubectl docker aws terraform git " * 30_000, "reset --hard " * 70_000, "bash <<'E'\n" + "git reset;" * 900 + "\nE",
    "bash -c \"bash -c 'bash -c \\\"bash -c x\\\"'\"", ":(){ :|:& };:", "a=(" + "$(x) " * 1_900 + ")", "echo " + "$(a " * 30 + ")" * 30,
    "x='" + "a b " * 2_000 + "'; echo $x $x $x $x $x", "x='" + "*" * 5_000 + "'; echo ${x%%" + "*a" * 100 + "}", "- " * 4_900,
    "eval 'eval \"eval x\"'", "function " * 1_000, "for " * 2_000, "time " * 1_900, "coproc " * 1_400, "$'\\" * 3_000, "a=b " * 2_400,
    "printf '%s' " + "x " * 4_900, "echo x | rev | rev | bash", "}" * 9_000, ")" * 9_000, ";;" * 4_900, "\ud800", "\0", "", "\n", "#",
]  # fmt: skip


def texts(number: int) -> Iterator[str]:
    """``number`` texts, the hard ones first."""
    draw = random.Random(20)
    yield from HARD[:number]
    pool = ["git reset --hard", "rm -rf ~", "bash -c 'rm -rf x'", "cat <<'EOF' | sh\nrm x\nEOF", "for f in a b; do rm $f; done"]
    for _ in range(number - len(HARD)):
        text = generated(draw) if draw.random() < 0.5 else mutated(draw, draw.choice(pool))
        if len(pool) < 4_000:
            pool.append(text)
        else:
            pool[draw.randrange(5, 4_000)] = text
        yield text


def generated(draw: random.Random) -> str:
    many = draw.choice((3, 8, 20, 60, 60, 300)) if draw.random() < 0.98 else 2_000
    joiner = draw.choice((" ", " ", " ", "", "\n"))
    return joiner.join(draw.choice(WORDS) for _ in range(draw.randint(1, many)))


def mutated(draw: random.Random, text: str) -> str:
    for _ in range(draw.randint(1, 6)):
        at = draw.randint(0, len(text))
        end = draw.randint(at, min(len(text), at + 40))
        kind = draw.randrange(7)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + draw.choice(WORDS) + text[at:]
        elif kind == 2:
            text = text[:at] + text[at:end] * draw.randint(2, 12) + text[end:]
        elif kind == 3:
            text = text[:at] + draw.choice("'\"`$(){}<>|&;\\\n#=~*?[]!\0é\u2028") + text[at:]
        elif kind == 4:
            text = draw.choice(("$({})", "`{}`", "bash -c '{}'", '"{}"', "({})", "{{ {}; }}", "eval {}")).format(text)
        elif kind == 5:
            text = f"{text}{draw.choice((' | ', ' && ', '; ', chr(10)))}{draw.choice(WORDS)}"
        else:
            text = (
                text[:at] + chr(draw.choice((draw.randrange(128), draw.randrange(0x3000), draw.randrange(0x110000)))) + text[at:]
            )
        text = text[:30_000]
    return text


def main(number: int) -> int:
    parse("true", "/w")
    times: list[tuple[float, str]] = []
    crashes: list[tuple[str, str]] = []
    seen: collections.Counter[str] = collections.Counter()
    for text in texts(number):
        begin = time.perf_counter()
        try:
            found = parse(text, "/w/repo", home="/home/u", variables={"TMPDIR": "/tmp"})
        except Exception:  # noqa: BLE001 the very thing that is looked for
            crashes.append((text, traceback.format_exc()))
            continue
        times.append((time.perf_counter() - begin, text))
        seen.update(("scanned",) if found.scanned else ("trouble",) if found.trouble else ("read",))
    for text, trace in crashes[:5]:
        print(repr(text[:200]), trace, sep="\n")
    times.sort(key=lambda pair: pair[0])
    for seconds, text in times[-10:]:
        print(f"{seconds * 1000:9.2f} ms  {len(text):8}  {text[:100]!r}")
    ms = [seconds * 1000 for seconds, _ in times]
    ordinary = sorted(seconds * 1000 for seconds, text in times if len(text) <= 1_000)
    totals = {
        "texts": number,
        "crashes": len(crashes),
        **seen,
        "median_ms": round(ms[len(ms) // 2], 4),
        "p99_ms": round(ms[int(len(ms) * 0.99)], 3),
        "p99_below_1000_characters_ms": round(ordinary[int(len(ordinary) * 0.99)], 3),
        "worst_ms": round(ms[-1], 1),
    }
    print(json.dumps(totals))
    return 1 if crashes else 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
