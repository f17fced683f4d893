"""``git safety help``: the first screen, the list of all verbs, and short pages on what is not a verb."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from safety.faults import quoted
from safety.terminal.arguments import UsageError, parser
from safety.terminal.verbs import BY_NAME, VERBS

TOPICS: dict[str, tuple[str, str]] = {
    "handles": (
        "How turns, calls and snapshots are named",
        """\
t14        a turn: one exchange with an agent, or one command under `git safety run`
t14.2      its second tool call
@          the newest turn; @- the one before, @-- the one before that
NAME       a name given with `git safety pin` or `git safety snapshot -m`
klmnopqr   the start of an operation's id, as `git safety log -v` shows it

Numbers count per folder and are never used twice.""",
    ),
    "not-covered": (
        "What no snapshot holds",
        """\
Not held, and listed by name with the reason:
  files over 32 MiB, and what goes over 256 MiB in one call     snapshots.max_file_mib, snapshots.max_call_mib
  ignored files over 256 KiB                                    snapshots.ignored_max_kib
  ignored dependency, build and cache folders                   snapshots.skip_dirs
  ignored folders with more than 2,000 entries
  other file systems mounted inside, sockets, pipes, devices, what cannot be read

In your home folder itself and in /: all but the files that a tool names.

See them:         git safety status, git safety log --not-covered
Take one in now:  git safety snapshot PATH

Never undone: what left this machine (pushes, requests, databases elsewhere), and changes outside of the folder whose paths the
agent did not name. The store is on the same disk under the same user: it is no backup, and no sandbox.""",
    ),
    "exit-codes": (
        "What the exit codes say",
        """\
0   done
1   failed; nothing was changed
2   the command line could not be understood
3   done, but something was kept or left out; the output names it
4   nothing to do, or a question that nobody could answer; the exact command is printed

`run` gives the command's own code (128 + n for a signal). 125: git-safety itself failed before the start, which happens only with
`fail_closed`; 126 and 127 as in a shell. A dry run gives 0, 3 or 4 by the same rule.""",
    ),
    "checks": (
        "The repository's checks, and commits of the agent's work",
        """\
git safety trust              once, where a repository brings checks or hooks
git safety commit --dry-run   what would be committed, and what not, each with its reason
git safety commit             after its checks passed on the agent's files
git safety show t14 --checks  what the checks of a turn wrote

The first that is there runs: gate.command, prek, pre-commit, lefthook, the plain pre-commit hook. Named files only, nothing is
stashed. At the end of each turn of an agent with a hook, in your settings:

  {"autocommit": {"enabled": true}}    a commit for each turn that passed
  {"gate": {"enabled": "on"}}          the checks alone

A failure goes back to the agent, gate.max_attempts times at most. Undo of a turn takes its commit back as well.
Not judged: what an agent commits itself; a command under `run`, until you commit.""",
    ),
    "trust": (
        "What git safety trust allows, and when it ends",
        """\
Until you say `git safety trust`, a repository's checks and hooks do not run and its AGENTS.md reaches no model. Undo needs no
trust. Given to the folder and to its checks, hooks and instruction files as they are:

  a check or hook changed           ask again
  instructions changed              trusted, unless something in them is suspicious
  the agent changed a check         not trusted until your next message
  another folder or another origin  ask again

git safety trust --list, git safety untrust. What a check itself starts (./test.sh) is not looked at.
trust.default in your own settings decides for all others: ask, trusted, untrusted.""",
    ),
    "settings": (
        "Where settings are, and all of them",
        """\
Yours:          ~/.config/git-safety/settings.json ($XDG_CONFIG_HOME, $GIT_SAFETY_CONFIG)
The project's:  .git-safety.json, which may only make things stricter, and names no commands

  {"snapshots": {"max_file_mib": 64}, "store": {"keep_days": 14}, "ui": {"pager": "never"}}

snapshots.max_file_mib 32, .max_call_mib 256, .ignored_max_kib 256, .deadline_s 10, .skip_dirs
store.max_mib 2048, .min_free_percent 5, .keep_days 30
store.keep_operations 2000   the newest so many do not go for their age, only for room
fail_closed false            true: nothing runs that could not be recorded first
run.quiet_s 10, watch.enabled auto
guard.enabled true           .rules: {"action": "allow|ask|deny", "command": ..., "path": ..., "effect": ...}
gate.enabled auto            on, off; .backend auto, .command, .timeout_s 120, .max_attempts 3, .preexisting warn,
                             .skip, .allow_partial false, .max_message_chars 6000
autocommit.enabled false     .trailer assisted-by, .protected_branches warn, .detached notice, .sign user,
                             .submodules false, .message_command
trust.default ask            trusted, untrusted
agents_md.enabled auto       on, off; .names, .event_max_kb 12, .session_max_kb 32, .walk_above_root false
screening.invisible true, screening.phrases false
hooks, hook_options, plugins
ui.color auto, ui.pager auto""",
    ),
    "environment": (
        "Variables that are read",
        """\
GIT_SAFETY_HOME     where the store is (default: $XDG_STATE_HOME/git-safety, ~/.local/state/git-safety)
GIT_SAFETY_CONFIG   your settings file
NO_COLOR            no colours
GIT_PAGER, PAGER    the pager, as for git; `git --no-pager safety log` goes without
GIT_DIR and its kin are ignored: they leak from git's hooks. For another folder: git -C DIR safety ...""",
    ),
    "privacy": (
        "What is stored, where, and how to get rid of it",
        """\
Copies of your files, including small ignored ones such as .env, in ~/.local/state/git-safety, readable by you alone, not
encrypted. Nothing goes over the network: no telemetry, no update check.

How much:                      git safety status
Remove one path from history:  git safety purge PATH
Drop what is old, at once:     git safety store forget && git safety store prune
The rules (help settings) are applied by themselves, once a day at the end of a turn and whenever the store is over its limit.""",
    ),
}


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """``help``: the first screen without a word, else the page of that verb or topic. Raises UsageError for an unknown one."""
    if not argv:
        sys.stdout.write(first_screen())
        return 0
    word = argv[0]
    if word in ("-h", "--help", "all", "verbs", "topics"):
        sys.stdout.write(all_verbs())
    elif word in TOPICS:
        sys.stdout.write(TOPICS[word][1] + "\n")
    elif word in BY_NAME:
        parser(BY_NAME[word]).print_help()
    else:
        raise UsageError(f"no help on {quoted(word)}", "git safety help all")
    return 0


def first_screen() -> str:
    """The verbs that a beginner needs, and where the rest is."""
    lines = ["git safety: undo for coding agents", "", "usage: git safety VERB [options]", ""]
    lines += _table((verb.name, verb.summary) for verb in VERBS if verb.first)
    lines += ["", "See it work:   git safety demo", "On one verb:   git safety undo -h", "All the rest:  git safety help all", ""]
    return "\n".join(lines)


def all_verbs() -> str:
    """Every verb and topic."""
    lines = ["Verbs (git safety VERB -h):", *_table((verb.name, verb.summary) for verb in VERBS)]
    lines += ["", "Topics (git safety help TOPIC):", *_table((name, page[0]) for name, page in TOPICS.items()), ""]
    return "\n".join(lines)


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {name:<12} {text}" for name, text in rows]
