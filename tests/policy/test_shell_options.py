"""How options are read, and git's own among them."""

from __future__ import annotations

import pytest

from safety.policy.shell import Word, canonical, git_words, parse, read_options

RESET = ("--hard", "--help", "--soft", "--mixed", "--pathspec-from-file=")


@pytest.mark.parametrize(
    ("option", "full"),
    [
        ("--har", "--hard"), ("--h", "--h"), ("--hard", "--hard"), ("--so", "--soft"), ("--path=x", "--pathspec-from-file=x"),
        ("--x", "--x"), ("-h", "-h"), ("--", "--"),
    ],
)  # fmt: skip
def test_unique_prefixes(option: str, full: str) -> None:
    """A long option may be cut short as long as it is clear which is meant."""
    assert canonical(option, RESET) == full


def read(text: str, values: str = "", known: tuple[str, ...] = (), mixed: bool = True) -> tuple[list[str], list[str], int | None]:
    options = read_options([Word(part) for part in text.split()], values, known, mixed=mixed)
    given = [name if value is None else f"{name}={value.text}" for name, value in options.given]
    return given, [word.text for word in options.operands], options.paths_at


def test_options() -> None:
    """Bundles come apart, values find their options, and ``--`` ends them."""
    assert read("-fdx a -q -- -b") == (["-f", "-d", "-x", "-q"], ["a", "-b"], 1)
    assert read("-ne x -ey --exp=1 --expire 2 z", "e", ("--expire=",)) == (
        ["-n", "-e=x", "-e=y", "--expire=1", "--expire=2"],
        ["z"],
        None,
    )
    assert read("-a b -c", mixed=False) == (["-a"], ["b", "-c"], None)
    options = read_options([Word("-xa"), Word("-xb")], "x")
    assert options.has("-x") and options.value("-x") == Word("b") and options.value("-y") is None


@pytest.mark.parametrize(
    ("text", "verb", "cwd", "git_dir", "work_tree", "config"),
    [
        ("git reset --hard", "reset", "/w", None, None, {}), ("git -C a -C ../b status", "status", "/w/b", None, None, {}),
        ("git -P --no-pager -c A.b.C=d -c x log", "log", "/w", None, None, {"a.b.c": "d", "x.": "true"}),
        ("git --git-dir=x --work-tree ../t push", "push", "/w", "/w/x", "/t", {}), ("git -C $X gc", "gc", None, None, None, {}),
        ("GIT_DIR=/g GIT_WORK_TREE=$Y git gc", "gc", "/w", "/g", "", {}), ("git", "", "/w", None, None, {}),
        ("git $X", "", "/w", None, None, {}),
        ("GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=gc.Auto GIT_CONFIG_VALUE_0=0 git gc", "gc", "/w", None, None, {"gc.auto": "0"}),
        ("A=/x git --config-env=core.Pager=A log", "log", "/w", None, None, {"core.pager": "/x"}),
    ],
)  # fmt: skip
def test_git(text: str, verb: str, cwd: str | None, git_dir: str | None, work_tree: str | None, config: dict[str, str]) -> None:
    """Which repository a git command is for, and under which settings, whatever way that is said."""
    found = git_words(next(command for command in parse(text, "/w").commands if command.name == "git"))
    assert (found.verb, found.cwd, found.git_dir, found.work_tree, dict(found.config)) == (verb, cwd, git_dir, work_tree, config)
