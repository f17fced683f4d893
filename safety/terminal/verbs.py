"""The verbs of the command line. One table, ``VERBS``, from which ``-h``, the man page and the completions are made.

To add a verb: a ``_x_options`` function, a ``_x_args`` function and a line. ``safety.commands.<verb>.run`` gets the arguments.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence

from safety.commands import args as a
from safety.faults import quoted
from safety.terminal.arguments import Typed, UsageError, Verb, whole_number
from safety.terminal.text import moment

# -- undo, redo, restore ---------------------------------------------------------------------------------------------------------


def _plan_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--dry-run", action="store_true", help="say what would happen, change nothing")
    p.add_argument(
        "--plan", default="", metavar="TOKEN", help="act only if the plan is still the one a dry run showed (its plan_token)"
    )
    p.add_argument("-y", "--yes", action="store_true", help="answer the question, if there is one, with yes")


def _undo_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "handle", nargs="?", default="", metavar="HANDLE", help="a turn (t14) or call (t14.2); without it the newest turn"
    )
    p.add_argument("-n", type=whole_number, default=1, dest="count", metavar="N", help="undo the newest N turns")
    p.add_argument("-p", "--patch", action="store_true", help="choose piece by piece; with --dry-run show the patch")
    which = p.add_mutually_exclusive_group()
    which.add_argument("--turn", default="", metavar="ID", help="the turn to undo")
    which.add_argument("--call", default="", metavar="ID", help="the one call to undo")
    which.add_argument(
        "--session", nargs="?", const="", metavar="ID", help="every turn of that session (default: the newest one's)"
    )
    p.add_argument("--now", action="store_true", help="undo what a turn that is still running has done so far")
    p.add_argument("--include-unattributed", action="store_true", help="also what changed during the turn but between its calls")
    _plan_options(p)


def _undo_args(ns: argparse.Namespace, typed: Typed) -> a.UndoArgs:
    named = [handle for handle in (ns.handle, ns.turn, ns.call) if handle]
    if len(named) > 1 or (named and ns.session is not None):
        raise UsageError("name one thing to undo", "git safety log")
    if named and ns.count != 1:
        raise UsageError("-n counts from the newest turn and goes with no handle", "git safety undo -h")
    return a.UndoArgs(
        handle=named[0] if named else "",
        count=ns.count,
        session=ns.session,
        paths=typed.paths(),
        dry_run=ns.dry_run,
        show_patch=ns.patch and ns.dry_run,
        patch=ns.patch and not ns.dry_run,
        now=ns.now,
        plan=ns.plan,
        include_unattributed=ns.include_unattributed,
        confirmed=ns.yes,
    )


def _redo_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "handle", nargs="?", default="", metavar="HANDLE", help="the turn whose undo is taken back; without it the newest undo"
    )
    _plan_options(p)


def _redo_args(ns: argparse.Namespace, typed: Typed) -> a.RedoArgs:
    return a.RedoArgs(handle=ns.handle, paths=typed.paths(), dry_run=ns.dry_run, plan=ns.plan, confirmed=ns.yes)


def _restore_options(p: argparse.ArgumentParser) -> None:
    when = p.add_mutually_exclusive_group()
    when.add_argument("--before", default="", metavar="HANDLE", help="as it was before that turn or call")
    when.add_argument("--after", default="", metavar="HANDLE", help="as it was after it")
    when.add_argument("--at", default="", metavar="TIME", help='as it was at a time (1h, 14:30, "2026-11-30 14:30") or handle')
    p.add_argument("paths", nargs="*", metavar="PATH", help="files or folders")
    _plan_options(p)


def _restore_args(ns: argparse.Namespace, typed: Typed) -> a.RestoreArgs:
    paths = typed.paths(ns.paths)
    if not paths:
        raise UsageError("name the files or folders to restore; . is the folder you are in", "git safety restore -h")
    when = "before" if ns.before else "after" if ns.after else "at" if ns.at else ""
    handle = ns.before or ns.after or ns.at
    at_ms = moment(handle, typed.now_ms) if when == "at" else None
    return a.RestoreArgs(
        when=when,
        handle="" if at_ms is not None else handle,
        at_ms=at_ms,
        paths=paths,
        dry_run=ns.dry_run,
        plan=ns.plan,
        confirmed=ns.yes,
    )


# -- log, show, diff, find, export -----------------------------------------------------------------------------------------------


def _log_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("handle", nargs="?", default="", metavar="HANDLE", help="only that turn, with its calls")
    p.add_argument("-n", type=whole_number, dest="limit", metavar="N", help="at most N lines")
    p.add_argument("-v", "--verbose", action="store_true", help="with the calls of each turn")
    p.add_argument("-p", "--patch", action="store_true", help="with the changes as patches")
    p.add_argument("--stat", action="store_true", help="with the names of the changed files")
    p.add_argument("--since", default="", metavar="TIME", help="not older than that: 1h, 14:30, yesterday, 2026-11-30")
    p.add_argument("--agent", default="", metavar="NAME", help="only turns of that agent")
    p.add_argument("--mine", action="store_true", help="only what was not an agent's doing")
    p.add_argument("--all", action="store_true", dest="all_workspaces", help="of all workspaces on this machine")
    p.add_argument("--not-covered", action="store_true", help="with what no snapshot holds, and why")


def _log_args(ns: argparse.Namespace, typed: Typed) -> a.LogArgs:
    since = moment(ns.since, typed.now_ms) if ns.since else None
    if ns.since and since is None:
        raise UsageError(f"{quoted(ns.since)} is not a time; say 1h, 14:30, yesterday or 2026-11-30", "git safety log --since 1h")
    return a.LogArgs(
        handle=ns.handle,
        limit=ns.limit,
        since_ms=since,
        agent=ns.agent,
        mine=ns.mine,
        all_workspaces=ns.all_workspaces,
        not_covered=ns.not_covered,
        verbose=ns.verbose,
        patch=ns.patch,
        stat=ns.stat,
        paths=typed.paths(),
    )


def _show_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "handle", nargs="?", default="", metavar="HANDLE", help="a turn, call or operation; without it the newest turn"
    )
    p.add_argument("-p", "--patch", action="store_true", help="with the changes as a patch")
    p.add_argument("--checks", action="store_true", help="what the checks at the turn's end wrote, in full")


def _show_args(ns: argparse.Namespace, typed: Typed) -> a.ShowArgs:
    return a.ShowArgs(handle=ns.handle, patch=ns.patch, checks=ns.checks, paths=typed.paths())


def _diff_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "words",
        nargs="*",
        metavar="HANDLE | PATH",
        help="none: the newest turn; one: that turn; two: from before the first to after the second",
    )
    p.add_argument("--now", action="store_true", dest="to_now", help="from before the turn to the files as they are now")
    p.add_argument("--stat", action="store_true", help="only the names and the number of lines")
    p.add_argument("--name-only", action="store_true", help="only the names")


def _diff_args(ns: argparse.Namespace, typed: Typed) -> a.DiffArgs:
    handles, paths = _handles_and_paths(ns.words)
    if len(handles) > 2 or (ns.to_now and len(handles) > 1):
        raise UsageError("a comparison takes two handles at most, one with --now", "git safety diff -h")
    return a.DiffArgs(
        handles=handles, to_now=ns.to_now, stat=ns.stat or ns.name_only, name_only=ns.name_only, paths=typed.paths(paths)
    )  # fmt: skip


def _handles_and_paths(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first words that look like handles, and the rest, which are paths."""
    cut = 0
    while cut < len(words) and _looks_like_handle(words[cut]):
        cut += 1
    return tuple(words[:cut]), tuple(words[cut:])


def _looks_like_handle(word: str) -> bool:
    if word == "@" or (word[:2] == "@-" and not word[2:].strip("-")):
        return True
    turn, dot, call = word.removeprefix("t").partition(".")
    numbered = word.startswith("t") and turn.isdigit() and (call.isdigit() or not dot)
    return numbered or (
        4 <= len(word) <= 12 and word.isascii() and word.isalpha() and word.islower() and not os.path.lexists(word)
    )


def _find_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("name", metavar="NAME", help="a path, a part of a name, or a pattern such as '*.env'")
    p.add_argument("--gone", action="store_true", help="only what is not on disk any more")
    p.add_argument("-n", type=whole_number, default=50, dest="limit", metavar="N", help="at most N lines (default 50)")


def _find_args(ns: argparse.Namespace, typed: Typed) -> a.FindArgs:
    typed.no_paths("find")
    return a.FindArgs(name=ns.name, gone=ns.gone, limit=ns.limit)


def _export_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("handle", nargs="?", default="@", metavar="HANDLE", help="the turn or call; without it the newest turn")


def _export_args(ns: argparse.Namespace, typed: Typed) -> a.ExportArgs:
    return a.ExportArgs(handle=ns.handle, paths=typed.paths())


# -- snapshot, pin, status, doctor, recover, purge, store ------------------------------------------------------------------------


def _snapshot_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("-m", default="", dest="name", metavar="NAME", help="a name to find it by; it is then never forgotten")
    p.add_argument("paths", nargs="*", metavar="PATH", help="take these in whatever their size; without it the whole workspace")


def _snapshot_args(ns: argparse.Namespace, typed: Typed) -> a.SnapshotArgs:
    return a.SnapshotArgs(name=ns.name, paths=typed.paths(ns.paths))


def _pin_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("name", nargs="?", default="", metavar="NAME", help="the name; without it the pins are listed")
    p.add_argument("handle", nargs="?", default="@", metavar="HANDLE", help="what to pin (default: the newest)")
    p.add_argument("-d", "--delete", action="store_true", help="take the name away")


def _pin_args(ns: argparse.Namespace, typed: Typed) -> a.PinArgs:
    typed.no_paths("pin")
    if ns.delete and not ns.name:
        raise UsageError("name the pin to take away", "git safety pin")
    return a.PinArgs(name=ns.name, handle=ns.handle, delete=ns.delete)


def _no_options(p: argparse.ArgumentParser) -> None:
    pass


def _status_args(ns: argparse.Namespace, typed: Typed) -> a.StatusArgs:
    typed.no_paths("status")
    return a.StatusArgs()


def _doctor_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--fast", action="store_true", help="leave out the check of every stored object")
    p.add_argument("--trace", action="store_true", help="show which handlers were called lately, in what order, and who stopped")


def _doctor_args(ns: argparse.Namespace, typed: Typed) -> a.DoctorArgs:
    typed.no_paths("doctor")
    return a.DoctorArgs(fast=ns.fast, trace=ns.trace)


def _recover_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--dry-run", action="store_true", help="say what is left to do, change nothing")


def _recover_args(ns: argparse.Namespace, typed: Typed) -> a.RecoverArgs:
    typed.no_paths("recover")
    return a.RecoverArgs(dry_run=ns.dry_run)


def _purge_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("paths", nargs="*", metavar="PATH", help="whose content is to leave all of history")
    p.add_argument("--dry-run", action="store_true", help="say what would go, change nothing")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _purge_args(ns: argparse.Namespace, typed: Typed) -> a.PurgeArgs:
    paths = typed.paths(ns.paths)
    if not paths:
        raise UsageError("name the paths to purge", "git safety purge -h")
    return a.PurgeArgs(paths=paths, dry_run=ns.dry_run, confirmed=ns.yes)


def _store_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "action",
        nargs="?",
        default="status",
        choices=("status", "forget", "prune", "fsck"),
        help="sizes; drop old operations by the keep rules; reclaim what nothing names; check every object",
    )
    p.add_argument("--keep-days", type=whole_number, metavar="N", help="for this once, instead of store.keep_days")
    p.add_argument("--keep-operations", type=whole_number, metavar="N", help="for this once, instead of store.keep_operations")
    p.add_argument("--max-mib", type=whole_number, metavar="N", help="for this once, instead of store.max_mib")
    p.add_argument("--dry-run", action="store_true", help="say what would go, change nothing")


def _store_args(ns: argparse.Namespace, typed: Typed) -> a.StoreArgs:
    typed.no_paths("store")
    return a.StoreArgs(
        action=ns.action,
        keep_days=ns.keep_days,
        keep_operations=ns.keep_operations,
        max_mib=ns.max_mib,
        dry_run=ns.dry_run,
    )


# -- verbs that read their own words ---------------------------------------------------------------------------------------------


def _commit_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "handle", nargs="?", default="", metavar="HANDLE", help="only that turn; without it all that is not committed yet"
    )
    p.add_argument("-m", "--message", metavar="TEXT", help="the message; without it one is made from the turn")
    p.add_argument("--include-mine", action="store_true", help="also your own changes in the files that the agent changed")
    p.add_argument("--dry-run", action="store_true", help="say what would be committed, commit nothing")


def _commit_args(ns: argparse.Namespace, typed: Typed) -> a.CommitArgs:
    if ns.message is not None and not ns.message.strip():
        raise UsageError("an empty message says nothing; without -m one is made from the turn", "git safety commit -h")
    return a.CommitArgs(handle=ns.handle, message=ns.message or "", include_mine=ns.include_mine, dry_run=ns.dry_run)


def _explain_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("words", nargs=argparse.REMAINDER, action=_Command, metavar="COMMAND", help="as one word, or as it is typed")


class _Command(argparse.Action):
    """Everything from its first word on; only an ``--json`` at the end of a command in quotes is ours."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option_string: str | None = None
    ) -> None:
        words = list(values) if isinstance(values, list) else []
        if len(words) == 2 and words[1] == "--json":
            namespace.json = bool(words.pop())
        setattr(namespace, self.dest, words)


def _explain_args(ns: argparse.Namespace, typed: Typed) -> a.ExplainArgs:
    words = [*ns.words, "--", *typed.after] if ns.words and typed.after else [*ns.words, *typed.after]
    if not words:
        raise UsageError("no command to explain", "git safety explain 'rm -rf data'")
    return a.ExplainArgs(text=words[0] if len(words) == 1 else shlex.join(words))


def _allow_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--once", dest="id", required=True, metavar="ID", help="the call's id, as the guard named it")


def _allow_args(ns: argparse.Namespace, typed: Typed) -> a.AllowArgs:
    return a.AllowArgs(id=ns.id)


def _trust_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--list", action="store_true", dest="listing", help="list what is trusted")


def _trust_args(ns: argparse.Namespace, typed: Typed) -> a.TrustArgs:
    return a.TrustArgs(listing=ns.listing)


def _untrust_args(ns: argparse.Namespace, typed: Typed) -> a.UntrustArgs:
    return a.UntrustArgs()


def _agents_args(ns: argparse.Namespace, typed: Typed) -> a.AgentsArgs:
    return a.AgentsArgs()


def _run_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("-q", "--quiet", action="store_true", help="say nothing at the end")
    p.add_argument("--name", default="", metavar="NAME", help="the name shown in the log (default: run)")
    p.add_argument("--json", dest="summary", default="", metavar="FILE", help="write a summary there")
    p.add_argument("command", nargs="+", metavar="COMMAND", help="the command and its arguments")


def _watch_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--format", choices=("paths", "json"), default="paths", help="one path a line, or one JSON object a line")
    p.add_argument("--json", action="store_true", help="the same as --format json")


def _hook_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--agent", default="", metavar="NAME", help="whose form the event has; generic is the documented one")


def _demo_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--keep", action="store_true", help="leave the folder for a look")


def _agent_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--base-url", required=True, metavar="URL", help="an endpoint that speaks Chat Completions")
    p.add_argument("--model", required=True, metavar="NAME", help="the model's name there")
    p.add_argument("--continue", action="store_true", dest="again", help="go on with the last conversation here")
    p.add_argument("--bundle", action="append", default=[], dest="bundles", metavar="NAME", help="switch a sample bundle on")
    p.add_argument("--no-stream", action="store_true", dest="whole", help="take replies whole, not as they come")
    p.add_argument("--json", action="store_true", help="print each event as a line of JSON")
    p.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to do; without it each line typed is one")


def _help_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("topic", nargs="?", metavar="TOPIC", help="a verb, or one of the topics that `git safety help` lists")


VERBS: tuple[Verb, ...] = (
    Verb(
        "run",
        "Run any command under protection",
        _run_options,
        owner="safety.terminal.run",
        first=True,
        usage="[-q] [--name NAME] [--json FILE] -- COMMAND [ARGUMENT...]",
        text="The command keeps its terminal, its signals and its exit code. What it changed in the folder can be taken back.",
        examples=(("git safety run -- ./migrate.sh", "a script"), ("git safety run -- aider", "a whole interactive session")),
    ),
    Verb(
        "undo",
        "Take back what an agent's turn did, and only that",
        _undo_options,
        _undo_args,
        lenient=True,
        first=True,
        usage="[HANDLE] [-n N] [-p] [--dry-run] [--turn ID | --call ID | --session [ID]] [--now] [-- PATH...]",
        text="Without a handle: the newest turn in this workspace that changed something and is not undone. What you did stays.",
        examples=(
            ("git safety undo --dry-run", "what would happen"),
            ("git safety undo t14 -- src", "of turn t14, only what is below src"),
            ("git safety undo -p", "choose piece by piece"),
        ),
    ),
    Verb(
        "redo",
        "Take an undo back",
        _redo_options,
        _redo_args,
        lenient=True,
        first=True,
        usage="[HANDLE] [--dry-run] [-- PATH...]",
    ),
    Verb(
        "log",
        "List what agents and you did, newest first",
        _log_options,
        _log_args,
        lenient=True,
        first=True,
        pages=True,
        usage="[HANDLE] [-n N] [-v] [-p] [--stat] [--since TIME] [--agent NAME] [--mine] [--all] [--not-covered] [-- PATH...]",
        examples=(("git safety log -- src/app.py", "who changed this file"), ("git safety log t14", "the calls of one turn")),
    ),
    Verb(
        "show",
        "Show one turn or call: its calls, files and what is not covered",
        _show_options,
        _show_args,
        lenient=True,
        first=True,
        pages=True,
        usage="[HANDLE] [-p | --checks] [-- PATH...]",
    ),
    Verb(
        "diff",
        "Show the changes of a turn as a patch",
        _diff_options,
        _diff_args,
        lenient=True,
        first=True,
        pages=True,
        usage="[HANDLE [HANDLE]] [--now] [--stat | --name-only] [[--] PATH...]",
        examples=(
            ("git safety diff t12 t14", "from before t12 to after t14"),
            ("git safety diff t14 --now", "against the files now"),
        ),
    ),
    Verb(
        "restore",
        "Bring files back as they were at some point",
        _restore_options,
        _restore_args,
        lenient=True,
        first=True,
        usage="(--before HANDLE | --after HANDLE | --at TIME) [--dry-run] PATH...",
        text="Takes the old state whatever was changed since; a snapshot is taken first, so that nothing is lost.",
        examples=(
            ("git safety restore --before t14 src/app.py", "as it was before turn t14"),
            ("git safety restore --at 14:30 .", "this folder as of half past two"),
        ),
    ),
    Verb(
        "snapshot",
        "Take a snapshot now, by hand",
        _snapshot_options,
        _snapshot_args,
        first=True,
        usage="[-m NAME] [PATH...]",
        examples=(
            ("git safety snapshot -m before-upgrade", "everything, with a name"),
            ("git safety snapshot data/raw.bin", "a file too large for the automatic ones"),
        ),
    ),
    Verb(
        "status",
        "Say what is protected, what undo would take, and how large the store is",
        _no_options,
        _status_args,
        lenient=True,
        first=True,
    ),
    Verb(
        "commit",
        "Commit what the agent changed, and nothing of yours",
        _commit_options,
        _commit_args,
        usage="[HANDLE] [-m TEXT] [--include-mine] [--dry-run]",
        text="The repository's checks run first, on the agent's files only. What you have staged or changed yourself stays as it is.",
        examples=(
            ("git safety commit --dry-run", "what it would hold"),
            ('git safety commit -m "fix the retry"', "with your words"),
        ),
    ),
    Verb(
        "trust",
        "Let this repository's checks run and its instructions reach the agent",
        _trust_options,
        _trust_args,
        usage="[--list]",
    ),
    Verb(
        "explain",
        "Say what the guard would do about a command, and why",
        _explain_options,
        _explain_args,
        usage="[--json] [--] COMMAND [ARGUMENT...]",
        text="A command in quotes is read as a shell reads it; several words are one command with its arguments.",
        examples=(
            ("git safety explain rm -rf data", "runs nothing"),
            ("git safety explain 'cd data && rm -rf *'", "a line for the shell"),
        ),
    ),
    Verb("allow", "Let one call pass that the guard stopped", _allow_options, _allow_args, usage="--once ID"),
    Verb("untrust", "Take that back", _no_options, _untrust_args),
    Verb("agents", "List the instruction files the agent was given", _no_options, _agents_args),
    Verb(
        "find",
        "Find where a file went: present, changed or gone",
        _find_options,
        _find_args,
        lenient=True,
        pages=True,
        usage="[--gone] [-n N] NAME",
    ),
    Verb(
        "export", "Write a turn's changes as a patch for git apply", _export_options, _export_args, usage="[HANDLE] [-- PATH...]"
    ),
    Verb("pin", "Give a snapshot a name and keep it for ever", _pin_options, _pin_args, usage="[NAME [HANDLE]] | -d NAME"),
    Verb(
        "doctor",
        "Check that everything works, and say how to mend it",
        _doctor_options,
        _doctor_args,
        lenient=True,
        usage="[--fast | --trace]",
    ),
    Verb("recover", "Finish an undo that was interrupted", _recover_options, _recover_args, lenient=True, usage="[--dry-run]"),
    Verb(
        "purge",
        "Remove a path's content from all of the store's history",
        _purge_options,
        _purge_args,
        usage="[--dry-run] [-y] PATH...",
    ),
    Verb("store", "Look after the store", _store_options, _store_args, usage="[status | forget | prune | fsck] [--dry-run]"),
    Verb(
        "watch",
        "Print the paths that change, until it is ended",
        _watch_options,
        owner="safety.terminal.watch",
        usage="[--format paths|json]",
    ),
    Verb(
        "agent",
        "Talk to the reference agent, a small one to copy",
        _agent_options,
        owner="safety.terminal.agent",
        usage="--base-url URL --model NAME [--continue] [--bundle NAME] [--no-stream] [--json] [PROMPT...]",
        text="It works in this folder, under protection; /undo typed as a prompt takes its last turn back. The key of the endpoint"
        " is read from OPENAI_API_KEY and is not in the environment of its commands. Needs the package openai.",
        examples=(
            ("git safety agent --base-url http://127.0.0.1:8080/v1 --model qwen3 'fix the test'", "with a model of your own"),
        ),
    ),
    Verb(
        "demo",
        "See it work in a folder of its own, in a few seconds",
        _demo_options,
        owner="safety.terminal.demo",
        usage="[--keep]",
    ),
    Verb(
        "hook",
        "Answer one event of an agent (for hooks, not for people)",
        _hook_options,
        owner="safety.terminal.hook",
        usage="--agent NAME",
    ),
    Verb("help", "Explain a verb or a topic", _help_options, owner="safety.terminal.topics", usage="[TOPIC]"),
    Verb("version", "Print the version", _no_options, owner="safety.terminal.version"),
)

BY_NAME = {verb.name: verb for verb in VERBS}
