"""What is typed becomes arguments, or a sentence and exit code 2."""

from __future__ import annotations

import pytest

from safety.commands import args as a
from safety.terminal.arguments import Typed, UsageError, Verb, parser
from safety.terminal.dispatch import find_verb
from safety.terminal.verbs import BY_NAME, VERBS

NOW = 1_796_040_000_000


def parsed(line: str) -> object:
    verb, *words = line.split()
    cut = words.index("--") if "--" in words else len(words)
    build = BY_NAME[verb].build
    assert build is not None
    return build(parser(BY_NAME[verb]).parse_args(words[:cut]), Typed(b"/r/src", NOW, tuple(words[cut + 1 :])))


@pytest.mark.parametrize(
    ("line", "args"),
    [
        ("undo", a.UndoArgs()),
        ("undo t14 --dry-run", a.UndoArgs(handle="t14", dry_run=True)),
        ("undo --turn t14 -- a ../b", a.UndoArgs(handle="t14", paths=(b"/r/src/a", b"/r/b"))),
        ("undo --call t14.2 -p", a.UndoArgs(handle="t14.2", patch=True)),
        ("undo -p --dry-run", a.UndoArgs(show_patch=True, dry_run=True)),
        ("undo -n 3 --now --include-unattributed -y", a.UndoArgs(count=3, now=True, include_unattributed=True, confirmed=True)),
        ("undo --session", a.UndoArgs(session="")),
        ("undo --session abc --plan xyz", a.UndoArgs(session="abc", plan="xyz")),
        ("undo -- --json -n", a.UndoArgs(paths=(b"/r/src/--json", b"/r/src/-n"))),
        ("redo", a.RedoArgs()),
        ("redo t3 --dry-run", a.RedoArgs(handle="t3", dry_run=True)),
        ("restore --before t14 x /abs/y", a.RestoreArgs(when="before", handle="t14", paths=(b"/r/src/x", b"/abs/y"))),
        ("restore --at 10m .", a.RestoreArgs(when="at", at_ms=NOW - 600_000, paths=(b"/r/src",))),
        ("restore x", a.RestoreArgs(when="", paths=(b"/r/src/x",))),
        ("restore --at t3 x", a.RestoreArgs(when="at", handle="t3", paths=(b"/r/src/x",))),
        ("restore --after @- -- -x", a.RestoreArgs(when="after", handle="@-", paths=(b"/r/src/-x",))),
        ("log -n 5 -v --since 1h --agent codex", a.LogArgs(limit=5, verbose=True, since_ms=NOW - 3600_000, agent="codex")),
        ("log t3 -- x", a.LogArgs(handle="t3", paths=(b"/r/src/x",))),
        ("show", a.ShowArgs()),
        ("diff t12 t14 --stat", a.DiffArgs(handles=("t12", "t14"), stat=True)),
        ("diff t14 src/app.py", a.DiffArgs(handles=("t14",), paths=(b"/r/src/src/app.py",))),
        ("diff t14.2 --now", a.DiffArgs(handles=("t14.2",), to_now=True)),
        ("snapshot -m before x", a.SnapshotArgs(name="before", paths=(b"/r/src/x",))),
        ("pin good t3", a.PinArgs(name="good", handle="t3")),
        ("pin", a.PinArgs()),
        ("find *.env --gone", a.FindArgs(name="*.env", gone=True)),
        ("export t3", a.ExportArgs(handle="t3")),
        ("purge secret.txt --dry-run", a.PurgeArgs(paths=(b"/r/src/secret.txt",), dry_run=True)),
        ("store forget --keep-days 3", a.StoreArgs(action="forget", keep_days=3)),
        ("store", a.StoreArgs()),
        ("recover --dry-run", a.RecoverArgs(dry_run=True)),
        ("doctor", a.DoctorArgs()),
        ("status", a.StatusArgs()),
        ("explain ls", a.ExplainArgs(text="ls")),
        ("explain rm -rf x", a.ExplainArgs(text="rm -rf x")),
        ("explain -- rm -rf $x", a.ExplainArgs(text="rm -rf '$x'")),
        ("explain git checkout -- a", a.ExplainArgs(text="git checkout -- a")),
        ("explain -- git checkout -- a", a.ExplainArgs(text="git checkout -- a")),
        ("explain --json kubectl get --json", a.ExplainArgs(text="kubectl get --json")),
    ],
)
def test_words_become_arguments(line: str, args: object) -> None:
    """Every option of protocol.md arrives where the command looks for it."""
    assert parsed(line) == args


@pytest.mark.parametrize(
    "line",
    [
        "undo t1 --turn t2",
        "undo --turn t1 --call t1.1",
        "undo -n 0",
        "undo -n x",
        "undo t1 -n 2",
        "undo --nonsense",
        "undo --dry",
        "restore",
        "restore --before t1",
        "restore --before t1 --at 10m x",
        "log --since soon",
        "diff t1 t2 t3",
        "diff t1 t2 --now",
        "pin -d",
        "purge",
        "store eat",
        "status x",
        "status -- x",
        "find",
        "undo a b",
    ],
)
def test_what_cannot_be_understood_is_a_usage_error(line: str) -> None:
    """One sentence, a command to type, exit code 2; options cannot be shortened."""
    with pytest.raises(UsageError) as raised:
        parsed(line)
    assert raised.value.exit_code == 2
    assert raised.value.message and raised.value.hint.startswith("git safety")


def test_unknown_verbs_get_the_nearest_one() -> None:
    """A slip of the finger is answered with the verb that was meant."""
    with pytest.raises(UsageError) as raised:
        find_verb("udno")
    assert raised.value.hint == "git safety undo"
    with pytest.raises(UsageError) as raised:
        find_verb("xyzzy")
    assert raised.value.hint == "git safety -h"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_explains_itself(verb: Verb) -> None:
    """``-h`` and ``--json`` everywhere; no help text sends to ``git safety --help``, which git would take for a man page."""
    text = parser(verb).format_help()
    assert "-h, --help" in text
    assert "--json" in text or verb.name in ("hook", "help", "demo", "version")
    assert "git safety --help" not in text
