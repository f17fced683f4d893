"""Which commands a shell text would run: plain, joined, wrapped, disguised, or only spoken of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from safety.policy.shell import Command, Parsed, parse

HERE = "/w/repo"


def read(text: str) -> Parsed:
    return parse(text, HERE, home="/home/u", variables={"TMPDIR": "/tmp"}, top=HERE)


def shown(command: Command) -> str:
    """A command's words, ``?`` behind what is not certain, ``*`` behind a pattern."""
    return " ".join(f"{word.text}{'?' * (not word.certain)}{'*' * word.glob}" for word in command.words)


def removals(text: str) -> list[str]:
    """Each ``rm`` or ``git`` in ``text``, with its folder where that is not the first one."""
    found = [command for command in read(text).commands if command.name in ("rm", "git", "")]
    return [shown(command) + ("" if command.cwd == HERE else f" @{command.cwd}") for command in found if command.words]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("rm a", ["rm a"]), ("rm a; rm b && rm c || rm d | rm e & rm f", ["rm a", "rm b", "rm c", "rm d", "rm e", "rm f"]),
        ("rm a\nrm b\n\n# rm c\nrm d # rm e", ["rm a", "rm b", "rm d"]),
        ("if rm a; then rm b; elif rm c; then rm d; else rm e; fi", ["rm a", "rm b", "rm c", "rm d", "rm e"]),
        ("while rm a; do rm b; done; until rm c; do rm d; done", ["rm a", "rm b", "rm c", "rm d"]),
        ("case x in (a|b) rm a;& *) rm b;; esac", ["rm a", "rm b"]), ("for f in a b; do rm $f; done", ["rm a", "rm b"]),
        ("for ((i=0; i<3; i++)) do rm x; done", ["rm x"]), ("for f in *.py; do rm \"$f\"; done", ["rm *.py*"]),
        ("while read -r f; do rm \"$f\"; done < list", ["rm $f?"]),
        ("(rm a); { rm b; }; ! rm c; time { rm d; }; coproc rm e", ["rm a", "rm b", "rm c", "rm d", "rm e"]),
        ("[[ -n $(rm a) ]] && (( $(rm b) )) || echo $(( $(rm c) ))", ["rm a", "rm b", "rm c"]),
        ("echo $(rm a) `rm b` \"${x:-$(rm c)}\" <(rm d)", ["rm a", "rm b", "rm c", "rm d"]),
        ("echo `echo \\`rm a\\``", ["rm a"]), ("x=$(rm a) y=(b $(rm c)); export z=$(rm d)", ["rm a", "rm c", "rm d"]),
        ("f() { rm \"$1\"; }; f a; f b", ["rm a", "rm b"]), ("f() { rm a; }", []),
        ("if a; then\n> f\nelse\n<g >f\nfi\nrm a", ["rm a"]),
        ("case x in *) a; b | c | d | e\nA=b rm a\nrm b c < f && ( rm d\n)\n;; esac", ["rm a", "rm b c", "rm d"]),
        ("rm >/dev/null a 2>&1 b", ["rm a b"]), ("cat <<A; rm a\nrm b $(rm c)\nA\nrm d", ["rm c", "rm a", "rm d"]),
        ("cat <<-'A' | cat\n\trm `rm b`\n\tA\nrm c", ["rm c"]),
        ("set -- a b; rm \"$@\" $# $2; shift; rm $1", ["rm a b 2 b", "rm b"]),
        ("trap 'rm \"$T\"; trap \"rm b\" EXIT' EXIT; T=a", ["rm a", "rm b"]), ("alias del='rm -f'\ndel a", ["rm -f a"]),
    ],
)  # fmt: skip
def test_what_runs(text: str, commands: list[str]) -> None:
    """Every command that a shell would come to, in order, and none of what is only text."""
    assert removals(text) == commands


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("'a b'", "a b"), ('"a\\"b"', 'a"b'), ("a\\ b", "a b"), ("$'\\x61\\n\\u00e9'", "a\né"), ("a'b'\"c\"\\d", "abcd"),
        ("a\\\nb", "ab"), ('"a\\\nb"', "ab"), ("~", "/home/u"), ("~/x", "/home/u/x"), ("'~'", "~"), ("~+/x", "/w/repo/x"),
        ("of=~/x", "of=/home/u/x"), ("{a,b}{1..2}", "a1 a2 b1 b2"), ("{a", "{a"), ("$(echo a)", "a"),
        ("`printf '\\162m'`", "rm"), ("$X", "$X?"), ('"$X/a"', "$X/a?"), ("$TMPDIR/a", "/tmp/a"), ("${X:-a}", "a?"),
        ("*.py", "*.py*"), ("'*'", "*"), ("@(a|b)", "@(a|b)*"), ("$PWD", "/w/repo"), ("$(mktemp -d)", "$(mktemp -d)?"),
        ("$(git rev-parse --show-toplevel)/a", "/w/repo/a"), ("$(dirname /a/b)", "/a"),
    ],
)  # fmt: skip
def test_words(written: str, word: str) -> None:
    """Quotes come off; tilde, braces, variables and substitutions are replaced where they are certain, and marked where not."""
    assert shown(read(f"rm {written}").commands[-1]) == f"rm {word}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=x.tar.gz; rm ${a%.*} ${a%%.*} ${a#*.} ${a##*.}", "x.tar x tar.gz gz"),
        ("a=x.tar.gz; rm ${a/tar/zip} ${a^^} ${#a} ${a:2:3}", "x.zip.gz X.TAR.GZ 8 tar"), ("a='b c'; rm $a \"$a\"", "b c b c"),
        ("a=(b c); a+=(d); rm \"${a[@]}\" ${a[1]} ${#a[@]}", "b c d c 3"), ("a=*; rm $a \"$a\"", "** *"),
        ("a=b; (a=c); rm $a", "b"), ("if x; then a=b; fi; rm $a", "$a?"), ("a=b rm $a", "$a?"), ("read a; rm $a", "$a?"),
        ("a=b; unset a; rm c$a", "c"), ("a=b; bash -c 'rm $a'", "$a?"), ("export a=b; bash -c 'rm $a'", "b"),
        ("a=(b) ; rm ${a[9]}c", "c"), ("a=$X; rm $a", "$X?"), ("a=b; a+=c; rm $a", "bc"), ("printf -v a '%s-' b; rm $a", "b-"),
    ],
)  # fmt: skip
def test_variables(text: str, words: str) -> None:
    """A variable has the value that was given to it, where that is certain for every way the text may take."""
    assert shown(read(text).commands[-1]) == f"rm {words}"


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        ("cd a && rm x; cd ..; rm x", ["/w/repo/a", "/w/repo"]), ("(cd a; rm x); rm x", ["/w/repo/a", "/w/repo"]),
        ("cd; rm x; cd -; rm x", ["/home/u", "/w/repo"]), ("pushd /a; rm x; popd; rm x", ["/a", "/w/repo"]),
        ("cd $X; rm x", ["None"]), ("[ -d a ] && cd a; rm x", ["None"]), ("cd a || exit; rm x", ["/w/repo/a"]),
        ("cd a || rm x", ["/w/repo"]), ("cd a || cd b; rm x", ["None"]), ("env -C /a rm x; sudo -D /b rm x", ["/a", "/b"]),
        ("if y; then cd a; fi; rm x", ["None"]), ("cd a & rm x", ["/w/repo"]), ("f() { cd a; }; f; rm x", ["/w/repo/a"]),
        ("bash -c 'cd a; rm x'; rm x", ["/w/repo/a", "/w/repo"]), ("cd -- -a; rm x", ["/w/repo/-a"]),
    ],
)  # fmt: skip
def test_folders(text: str, folders: list[str]) -> None:
    """Where a command runs follows cd, pushd and -C; after a change that may not have happened it is not known."""
    assert [str(command.cwd) for command in read(text).commands if command.name == "rm"] == folders


@pytest.mark.parametrize(
    "text",
    [
        "sudo -u x -- CMD", "doas CMD", "env -i A=b CMD", "env -S 'CMD'", "nohup CMD &", "nice -n 5 CMD", "ionice -c3 CMD",
        "time -p CMD", "timeout -k 5 -s KILL 30 CMD", "stdbuf -oL CMD", "setsid CMD", "strace -f -o out CMD", "exec CMD",
        "command CMD", "builtin command CMD", "busybox CMD", "flock -n /l CMD", "flock /l -c 'CMD'", "watch -n 5 'CMD'",
        "script -qc 'CMD' /dev/null", "su -c 'CMD' u", "su - u -c 'CMD'", "bash -c 'CMD'", "bash --norc -euo pipefail -c 'CMD'",
        "zsh -ic 'CMD'", "/bin/sh -c \"sh -c 'CMD'\"", "eval 'CMD'", "eval 'r'm a", "bash <<'E'\nCMD\nE", "bash <<< 'CMD'",
        "cat <<'E' | sh\nCMD\nE", "echo CMD | bash", "printf '%s\\n' 'CMD' | sh -s", "echo 'a mr' | rev | bash",
        "echo cm0gYQo= | base64 -d | sh", "echo 'CMD' > /tmp/a.sh; sh /tmp/a.sh", "source <(echo CMD)",
        "echo 'CMD' > s && . ./s", "make -f - <<'E'\nall:\n\t@CMD\nE", "uv run -- CMD", "poetry run CMD", "npx CMD",
        "npm exec -- CMD", "conda run -n e CMD", "parallel rm ::: a", "parallel 'rm {}' ::: a", "echo a | xargs rm",
        "xargs -n1 CMD", "printf a | xargs -I% rm %", "tmux new-session -d 'CMD'", "tmux send-keys -t 0 'CMD' Enter",
        "screen -dmS x CMD", "vim -es -c '!CMD' -c q", "at now <<< 'CMD'", "tar cf x y --checkpoint-action=exec='CMD'",
        "nix-shell -p x --run 'CMD'", "hyperfine 'CMD'", "ssh -o ProxyCommand='CMD' h", "osascript -e 'do shell script \"CMD\"'",
        "git -c alias.x='!CMD' x", "git -c core.fsmonitor='CMD' status", "GIT_SSH_COMMAND='CMD' git fetch",
        "git rebase -i --exec 'CMD' main", "git rebase -x 'CMD' main", "git bisect run CMD",
        "git ls-remote --upload-pack='CMD' .", "git difftool -x 'CMD'", "find . -exec sh -c 'CMD' \\;", "G=rm; $G a", "{rm,a}",
        "$'\\x72m' a", "r\\m a", "\\rm a", "`echo rm` a", "CMD",
    ],
)  # fmt: skip
def test_wrappers(text: str) -> None:
    """The command inside is found, in the folder it runs in."""
    found = [command for command in read(text.replace("CMD", "rm a")).commands if command.name == "rm"]
    assert [(shown(command), command.cwd, command.remote) for command in found] == [("rm a", HERE, False)]


@pytest.mark.parametrize(
    ("text", "via"),
    [
        ("sudo env A=b bash -c 'rm a'", ("sudo", "env", "bash -c")), ("bash <<E\nrm a\nE", ("bash", "heredoc")),
        ("find . -exec rm a \\;", ("find -exec",)), ("git rebase -x 'rm a'", ("git rebase --exec",)),
        ("ssh -p 2 h rm a", ("ssh h",)), ("docker compose exec -u r web rm a", ("docker compose exec",)),
        ("docker run --rm -v /:/h img sh -c 'rm a'", ("docker run", "sh -c")),
        ("kubectl -n x exec p -it -- rm a", ("kubectl exec",)), ("ssh h <<'E'\nrm a\nE", ("ssh h",)),
        ("docker run --entrypoint rm img a", ("docker run",)),
    ],
)  # fmt: skip
def test_the_way_is_kept(text: str, via: tuple[str, ...]) -> None:
    """A command names what it came through; what runs elsewhere says so and has no folder here."""
    command = next(command for command in read(text).commands if command.name == "rm")
    elsewhere = via[0].partition(" ")[0] in ("ssh", "docker", "kubectl")
    assert (shown(command), command.via) == ("rm a", via)
    assert (command.remote, command.cwd) == ((True, None) if elsewhere else (False, HERE))


@pytest.mark.parametrize(
    ("text", "appended", "fed_by"),
    [
        ("find . -name '*.o' -exec rm {} +", True, "find"), ("find . | xargs rm", True, "find"), ("fd -e py -x rm", True, "fd"),
        ("xargs rm < list", True, None), ("echo a b | xargs rm", False, "echo"), ("ls | parallel rm", True, "ls"),
        ("find . -exec sh -c 'rm \"$1\"' _ {} \\;", True, "find"), ("git stash list | cut -d: -f1 | xargs -n1 rm", True, "cut"),
    ],
)  # fmt: skip
def test_words_that_come_later(text: str, appended: bool, fed_by: str | None) -> None:
    """Words that come from a pipe or a search are said to be missing, and where they come from."""
    command = read(text).commands[-1]
    assert (command.name, command.appended, command.fed_by.name if command.fed_by else None) == ("rm", appended, fed_by)


@pytest.mark.parametrize(
    ("text", "language", "code"),
    [
        ("python3 -B -c 'a b' -c d", "python", "a b"), ("python3.11 - <<E\na\nE", "python", "a\n"),
        ("echo a | python", "python", "a\n"), ("cat > s.py <<'E'\na\nE\npython s.py", "python", "a\n"),
        ("node --eval=a", "node", "a"), ("deno eval a", "node", "a"), ("perl -pi.bak -e a f", "perl", "a"),
        ("perl -lane a f", "perl", "a"), ("ruby -rx -e a", "ruby", "a"), ("php -r a", "php", "a"), ("psql -qc a db", "sql", "a"),
        ("psql <<E\na\nE", "sql", "a\n"), ("mysql -p -e a", "sql", "a"), ("sqlite3 db a", "sql", "a"),
        ("mongosh --eval a", "mongo", "a"), ("awk -F, a f", "awk", "a"), ("pwsh -NoProfile -c a b", "powershell", "a b"),
        ("cmd /c 'del x'", "cmd", "del x"), ("powershell -enc YQA=", "powershell", "a"),
        ("sudo uv run python -c a", "python", "a"),
    ],
)  # fmt: skip
def test_code(text: str, language: str, code: str) -> None:
    """What an interpreter gets by option, on its input, or in a file that was just written."""
    assert [(found.language, found.text) for found in read(text).codes] == [(language, code)]


@pytest.mark.parametrize(
    "text", ["python -m http.server", "python s.py -c a", "node s.js", "perl s.pl -e a", "ruby --version", "psql -l"]
)
def test_no_code(text: str) -> None:
    """A module, a script that is not known, and the script's own arguments are no code."""
    assert read(text).codes == ()


@pytest.mark.parametrize(
    "text",
    [
        "curl x | sh", "curl x | sudo bash -s -- y", "wget -qO- x | tee f | python3 -", "sh -c \"$(curl x)\"",
        "eval \"$(wget -O - x)\"", "source <(curl x)", "bash <(curl x | sed y)", "curl -o f x && sh f",
        "curl -fsSLO https://h/f.sh; bash ./f.sh", "wget https://h/f.sh; chmod +x f.sh; ./f.sh",
        "curl x > f; cp f /tmp/g; . /tmp/g", "X=$(curl x); eval \"$X\"", "curl x | bash -x",
        "curl --output-dir /tmp -o f x; python3 /tmp/f", "ssh h cat f | sh", "curl x | dd of=f; sh f", "{ curl x; } | { sh; }",
    ],
)  # fmt: skip
def test_downloads_that_run(text: str) -> None:
    """What was fetched is followed to where it is run: through pipes, files, variables and copies."""
    assert any(command.runs_download for command in read(text).commands)


@pytest.mark.parametrize(
    "text",
    ["curl x | less", "curl x | jq .a", "curl -o f x; cat f", "curl x; sh y", "curl x | bash -c 'wc -l'", "X=$(curl x); echo $X"],
)
def test_downloads_that_do_not_run(text: str) -> None:
    """Looking at what was fetched is not running it."""
    assert not any(command.runs_download for command in read(text).commands)


def test_what_goes_in() -> None:
    """Redirections, the environment, literal input and the pipe so far are told with each command."""
    first, second = read("A=b rm < in 2>&1 >| out; cat <<'E' | X=$Y grep z\nhi\nE").commands[::2]
    assert [(each.op, each.fd, each.target.text) for each in first.redirects] == [
        ("<", None, "in"),
        (">&", 2, "1"),
        (">|", None, "out"),
    ]
    assert dict(first.env) == {"A": "b"}
    assert (dict(second.env), second.stdin, second.piped_from) == ({"X": None}, "hi\n", ("cat",))
    assert [shown(command) for command in read("{ a; b; } > f; > g").commands] == ["a", "b", "", ""]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("git x 1", ["git reset --hard 1"]), ("git y", ["rm -rf z"]), ("git status", ["git status"]),
        ("git -C /a x", ["git -C /a reset --hard"]), ("git loop", ["git loop"]),
    ],
)  # fmt: skip
def test_git_aliases(text: str, commands: list[str]) -> None:
    """An alias stands for what git's settings say, but never in place of git's own commands."""
    aliases = {"x": "reset --hard", "y": "!rm -rf z", "status": "!rm", "loop": "loop"}
    assert [shown(command) for command in parse(text, HERE, aliases=aliases).commands] == commands


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Remove-Item -Recurse -Force C:\\x", "powershell"), ("$x = Get-Item a; Remove-Item $x", "powershell"),
        ("$env:A='b'; npm test", "powershell"), ("Get-ChildItem | Where-Object { $_.Name } | Remove-Item", "powershell"),
        ("rd /s /q build", "cmd"), ("del C:\\x", "cmd"),
    ],
)  # fmt: skip
def test_other_shells(text: str, language: str) -> None:
    """PowerShell and cmd text is said to be that, and makes no riddle for a POSIX shell."""
    found = read(text)
    assert [(code.language, code.text) for code in found.codes] == [(language, text)]
    assert all(command.name for command in found.commands)


@pytest.mark.parametrize(
    "text", ["apt-get update", "x-y -Force", "cat > a.ps1 <<'E'\nRemove-Item x\nE", "dir /etc", "echo Remove-Item"]
)
def test_not_other_shells(text: str) -> None:
    """Hyphens, a heredoc and an argument are no PowerShell."""
    assert read(text).codes == ()


@pytest.mark.parametrize(
    ("text", "danger"),
    [
        ("rm -rf 'x", ("rm",)), ("echo 'x", ()), ("rm -rf x\0", ("rm",)), ("ls \ud800", ()),
        (f"echo {'a ' * 6000}; git push --force", ("git push",)), (f"echo {'a ' * 6000}", ()),
        ("eval " * 12 + "rm -rf x", ("rm",)), ("$(" * 60 + "git reset --hard", ("git reset",)), ("a\n" * 3000, ()),
    ],
)  # fmt: skip
def test_what_is_only_scanned(text: str, danger: tuple[str, ...]) -> None:
    """Too long, too deep or never closed: said in words, and looked through for danger words."""
    found = read(text)
    assert found.trouble and found.danger == danger
    assert found.scanned or "'" in text


def test_a_long_quoted_heredoc_is_data() -> None:
    """A file of any length written by a quoted heredoc is read past, the commands around it as ever; handed to a shell it is scanned."""
    body = "rm -rf /\n" * 3000
    found = read(f"cat > f <<'E'\n{body}E\nrm a")
    assert [shown(command) for command in found.commands] == ["cat", "rm a"] and not found.trouble
    assert read(f"bash <<'E'\n{body}E\n").danger == ("rm",)


def test_no_parser() -> None:
    """Without tree-sitter's wheels nothing is parsed, danger words are looked for, and nothing is raised."""
    code = "import sys; sys.modules['tree_sitter'] = None; from safety.policy.shell import parse; print(parse('rm -rf x', '/w'))"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert "scanned=True, danger=('rm',)" in done.stdout and "commands=()" in done.stdout


def test_the_parser_is_loaded_late() -> None:
    """Importing the room does not load tree-sitter."""
    code = "import sys; import safety.policy.shell; print('tree_sitter' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
