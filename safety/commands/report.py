"""What commands give back: frozen data that the terminal draws and ``--json`` writes, field by field.

Rules for the maker of a report:

- Paths are ``bytes`` relative to ``Report.root`` (absolute when outside it); a folder's path has no slash at its end.
- Texts are raw: nobody escapes, quotes, colours or shortens here. The terminal does all of that, in one place.
- Times are milliseconds since 1970; ages are made by whoever draws.
- A finding has a field or a code; no reader ever takes a sentence apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Literal, TypeAlias

Verb: TypeAlias = Literal["restored", "removed", "merged", "unchanged", "kept", "not covered", "git"]
#: The order in which lines are shown, whatever order they were made in.
VERBS: tuple[Verb, ...] = ("restored", "removed", "merged", "unchanged", "kept", "not covered", "git")

#: The first words, by action, where every line of a report tells of something that stays (see ``is_done``).
NOTHING_DONE = {
    "undo": "Nothing undone of",
    "redo": "Nothing redone of",
    "restore": "Nothing restored:",
    "recover": "Nothing finished:",
}

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"


# -- small values ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hint:
    """A command one can type next: ``label`` (``Take this undo back``), ``command`` (``git safety redo``).

    ``paths`` are added to the command by the drawing, relative to where the user stands and quoted for a shell. ``about`` is
    the path that the hint is about; it is drawn before the label, once for neighbours with the same path.
    """

    label: str
    command: str
    paths: tuple[bytes, ...] = ()
    about: bytes = b""


@dataclass(frozen=True, slots=True)
class PathLine:
    """One path and what happened (or, in a dry run, would happen) to it.

    ``note`` is the few words after the path: ``created by the agent``, ``ignored by git``, ``your line 12 kept``,
    ``you changed the same lines afterwards``, ``412 MB, over the 32 MiB limit``. Lines of one folder that share verb and note are
    drawn as one. For verb ``git`` the path is empty and the note is the whole line: ``main a81e03b -> 4f2c9d1, 1 agent commit
    taken off``.
    ``reason`` is the stable code behind a kept or uncovered path (``edited-since``, ``too-large``, ``pushed`` ...).
    ``added`` / ``deleted`` are the lines a dry run would bring back or take away, when they are known and it is text.
    ``folder``: the path is a directory and stands for itself alone (an empty one, or one that was taken away).
    """

    verb: Verb
    path: bytes = b""
    note: str = ""
    reason: str = ""
    added: int | None = None
    deleted: int | None = None
    size: int | None = None
    folder: bool = False


@dataclass(frozen=True, slots=True)
class TurnTitle:
    """The line that names a turn: ``t14  Claude Code, 2 min ago, 3 calls: "clean up the build scripts"``.

    ``agent`` is the name shown to people (``Claude Code``, ``run``); ``prompt`` the user's text, or the command of a ``run``
    (then ``command`` is true and no quotes are drawn). ``session`` is the id of the conversation. A handle is ``t14``, ``t14.2``
    or the id of an operation.
    """

    handle: str
    agent: str = ""
    when_ms: int = 0
    calls: int = 0
    prompt: str = ""
    command: bool = False
    session: str = ""


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One path that a turn, call or comparison changed.

    ``change``: added, modified, deleted, renamed (``old_path`` set), mode, type. ``certainty``: declared, scanned, unexplained,
    or empty. ``added`` / ``deleted`` count lines; None for binary content. ``size`` is that of the new content in bytes.
    """

    path: bytes
    change: Literal["added", "modified", "deleted", "renamed", "mode", "type"]
    added: int | None = None
    deleted: int | None = None
    old_path: bytes = b""
    certainty: str = ""
    note: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class FilePatch:
    """One file's unified diff as git writes it, header included, raw bytes. Binary content gives git's one-line remark."""

    path: bytes
    patch: bytes
    binary: bool = False


@dataclass(frozen=True, slots=True)
class CallRow:
    """One tool call of a turn. ``status``: done, failed, open (no end was heard). ``output`` is the head of the tool's result.

    ``text`` is the command, or the path that the tool was given.
    """

    handle: str
    tool: str
    text: str = ""
    when_ms: int = 0
    duration_ms: int | None = None
    status: str = "done"
    output: str = ""
    changes: tuple[ChangeLine, ...] = ()


# -- reports ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Report:
    """What every command gives back. ``root`` is the workspace that was acted on (empty: none). Exit codes are in protocol.md:
    0 done, 1 failed and nothing changed, 2 usage, 3 done with something kept or left out, 4 nothing to do or nobody to ask.

    ``notices`` are sentences for the user that do not belong to the answer (``3 newer turns changed nothing``); they are drawn
    first, on standard error.
    """

    exit_code: int = 0
    root: bytes = b""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UndoReport(Report):
    """What undo, redo, restore and recover did, or with ``dry_run`` would do.

    ``action`` chooses the first word: ``Undid``, ``Redid``, ``Restored``, ``Finished``. ``titles`` are the turns (or calls)
    acted on, newest first; a restore may have none and then says ``subject`` (``src/app.py as before t14``).
    ``lines`` in any order; the drawing sorts by verb, then as given. Git's part is lines of verb ``git``.
    ``plan_token`` names this exact plan for ``--plan``. ``nothing`` is the reason when there was nothing to do: one sentence,
    exit code 4, no lines. ``handle`` is the operation that the action itself left in the log.
    """

    action: Literal["undo", "redo", "restore", "recover"] = "undo"
    titles: tuple[TurnTitle, ...] = ()
    subject: str = ""
    lines: tuple[PathLine, ...] = ()
    hints: tuple[Hint, ...] = ()
    dry_run: bool = False
    plan_token: str = ""
    nothing: str = ""
    handle: str = ""
    patches: tuple[FilePatch, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ask(Report):
    """A question that must be answered before anything is done; nothing was changed. Exit code 4 where nobody can answer.

    ``question`` is one sentence with its reason (``t15 is still running. Undo what it has done so far?``). ``command`` is the
    exact command line that answers yes. On a terminal a yes runs the same verb again with ``dataclasses.replace(args,
    **answer)``. ``plan`` (optional) is shown above the question.
    """

    question: str
    command: str
    answer: Mapping[str, object]
    code: str = "needs-answer"
    plan: UndoReport | None = None
    exit_code: int = 4


@dataclass(frozen=True, slots=True)
class Hunk:
    """One piece that ``-p`` offers. ``id`` is what goes into ``UndoArgs.hunks``; ``lines`` are diff lines (first byte ``+ -
    space``) that undoing would apply. ``parts`` are the pieces it can be split into (``s``), each with its own id; empty:
    cannot be split. A whole-file choice (binary, deletion, mode, git state) has no ``lines`` and says what it is in ``note``.
    """

    id: str
    path: bytes
    header: str = ""
    lines: tuple[bytes, ...] = ()
    parts: tuple[Hunk, ...] = ()
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Choose(Report):
    """The pieces of a plan, to be picked one by one (``undo -p``); nothing was changed. The terminal then runs the same verb
    again with ``replace(args, hunks=frozenset(ids), plan=plan_token)``. Where nobody can answer: exit code 4 and ``command``.
    """

    title: TurnTitle
    hunks: tuple[Hunk, ...]
    plan_token: str = ""
    command: str = ""
    exit_code: int = 4


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line of the log, newest first: a turn, or what the user (or a check, a commit, an undo) did between turns.

    ``handle`` is ``t14``, or the operation id for what is no turn. ``actor``: agent, user, gate, commit, undo, restore,
    unattributed, mixed. ``agent`` is the name shown (``Claude Code``, ``you``, ``run``). ``text`` is the prompt's first line
    or, with ``command``, the command. ``state``: "", running, undone. ``pause_s``: the turn ended by a quiet period of that
    length (``run``). ``commit`` is the short id of a commit that the turn made. ``git``: "", git, .git made, .git removed.
    ``files`` counts changed paths; 0 is drawn as ``no change`` where nothing of git changed either, unless ``shared`` paths may be
    this turn's or one of ``shared_with``, which ran at the same time. ``workspace`` is set with ``--all``. ``calls_detail`` is
    filled with ``-v`` or ``log t14``, ``changes`` with ``--stat``, ``patches`` with ``-p``.
    """

    handle: str
    actor: str
    agent: str
    when_ms: int
    text: str = ""
    command: bool = False
    current: bool = False
    state: str = ""
    calls: int = 0
    files: int = 0
    added: int = 0
    deleted: int = 0
    shared: int = 0
    shared_with: tuple[str, ...] = ()
    not_covered: int = 0
    commit: str = ""
    git: str = ""
    pause_s: int = 0
    pin: str = ""
    workspace: bytes = b""
    calls_detail: tuple[CallRow, ...] = ()
    changes: tuple[ChangeLine, ...] = ()
    patches: tuple[FilePatch, ...] = ()
    uncovered: tuple[PathLine, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LogReport(Report):
    """The log. ``more`` is the number of older rows that were left out by a limit of ours (not by the user's ``-n``)."""

    rows: tuple[LogRow, ...] = ()
    more: int = 0
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ShowReport(Report):
    """One turn, call or operation in full. ``state`` as in LogRow; ``git_notes`` say what happened to refs, HEAD, index, stash.

    ``unattributed`` are paths that changed meanwhile and are not taken for the agent's, ``git_unattributed`` says the same of refs
    and the like.
    """

    title: TurnTitle
    state: str = ""
    calls: tuple[CallRow, ...] = ()
    changes: tuple[ChangeLine, ...] = ()
    unattributed: tuple[ChangeLine, ...] = ()
    git_unattributed: tuple[str, ...] = ()
    not_covered: tuple[PathLine, ...] = ()
    git_notes: tuple[str, ...] = ()
    patches: tuple[FilePatch, ...] = ()
    hints: tuple[Hint, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DiffReport(Report):
    """A comparison. ``stat`` asks for the summary lines only. ``old_label`` / ``new_label`` say in words what was compared."""

    old_label: str = ""
    new_label: str = ""
    changes: tuple[ChangeLine, ...] = ()
    patches: tuple[FilePatch, ...] = ()
    stat: bool = False


#: ``is`` protected now; ``was``, and has ended; a harness whose end is not heard is, ``when it runs``.
Presence = Literal["is", "was", "when it runs"]


@dataclass(frozen=True, kw_only=True)
class StatusReport(Report):
    """Where things stand. ``protected`` False puts ``Not protected`` first. ``heard`` = (agent, when_ms) of hooks or runs heard
    here, ``presence`` whether each of them is at work now.

    ``running`` is the open turn and ``running_files`` its changed paths so far. ``undo`` / ``redo``: what the bare command
    would take. ``recover`` names an interrupted undo waiting to be finished. ``pins``: (name, handle).
    """

    branch: str = ""
    kind: Literal["git", "folder"] = "git"
    protected: bool = True
    heard: tuple[tuple[str, int], ...] = ()
    presence: tuple[Presence, ...] = ()
    running: TurnTitle | None = None
    running_files: int = 0
    undo: TurnTitle | None = None
    redo: TurnTitle | None = None
    recover: str = ""
    not_covered: tuple[PathLine, ...] = ()
    store_bytes: int = 0
    store_max_bytes: int = 0
    operations: int = 0
    since_ms: int = 0
    paused_until_ms: int = 0
    pins: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One line of ``doctor``. ``level``: ok, warn, fail, none (not set up). ``fix`` is a command one can type."""

    level: Literal["ok", "warn", "fail", "none"]
    name: str
    text: str
    fix: str = ""
    code: str = ""


@dataclass(frozen=True, kw_only=True)
class DoctorReport(Report):
    """The checks, in the order to show. Exit code 0 with warnings, 1 with a failure (the maker sets it). ``versions``: (name,
    version).
    """

    versions: tuple[tuple[str, str], ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class FindRow:
    """One version of a path that the store holds. ``state``: present (it is on disk as well), gone (only the store has it),
    changed.
    """

    path: bytes
    handle: str
    when_ms: int
    state: Literal["present", "gone", "changed"]
    size: int | None = None
    restore: str = ""


@dataclass(frozen=True, kw_only=True)
class FindReport(Report):
    """Where a file went. Exit code 4 when there are no rows. ``more`` rows were left out."""

    query: str = ""
    rows: tuple[FindRow, ...] = ()
    more: int = 0


@dataclass(frozen=True, kw_only=True)
class SnapshotReport(Report):
    """A snapshot taken by hand. ``handle`` restores it; ``lines`` hold what is not covered (and, verb ``unchanged``, nothing
    else).
    """

    handle: str
    name: str = ""
    files: int = 0
    lines: tuple[PathLine, ...] = ()
    hints: tuple[Hint, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TextReport(Report):
    """Anything that is a few lines of text. ``data`` is what ``--json`` gives for it; ``hints`` follow the lines."""

    lines: tuple[str, ...] = ()
    hints: tuple[Hint, ...] = ()
    data: Mapping[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class RawReport(Report):
    """Bytes for standard output exactly as they are (``export``): no colours, no pager, no escaping."""

    data: bytes = b""


@dataclass(frozen=True, kw_only=True)
class ErrorReport(Report):
    """A failure as a value. Drawn on standard error as ``Error: ... / Caused by: ... / Hint: ...``; ``code`` is stable."""

    code: str
    message: str
    causes: tuple[str, ...] = ()
    hint: str = ""
    exit_code: int = 1


def telling(lines: tuple[PathLine, ...]) -> tuple[PathLine, ...]:
    """The lines without the folders that other lines of the same verb lie below: those are told by what is in them."""
    above = {(each.verb, each.path[:at]) for each in lines for at in range(len(each.path)) if each.path[at : at + 1] == b"/"}
    return tuple(each for each in lines if not (each.folder and (each.verb, each.path) in above))


def is_done(line: PathLine) -> bool:
    """Whether the line tells of something that was (or in a dry run would be) set back, not of something that stays."""
    return line.verb in ("restored", "removed", "merged") or (line.verb == "git" and not line.reason)


def summary(lines: tuple[PathLine, ...]) -> dict[Verb, int]:
    """How many paths each verb took, in the fixed order, without ``git`` and without verbs that took none."""
    counts = {verb: sum(line.verb == verb for line in lines) for verb in VERBS if verb != "git"}
    return {verb: count for verb, count in counts.items() if count}


def to_json(value: object) -> Json:
    """The report as plain JSON values; paths are text with surrogate escapes (``os.fsencode`` gives the bytes back).

    A report gets a ``report`` field with its kind in lower case: ``undo``, ``log``, ``error`` ... Patches too are text. Raises
    TypeError for a value that no report holds.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [to_json(item) for item in (sorted(value) if isinstance(value, frozenset | set) else value)]
    if is_dataclass(value) and not isinstance(value, type):
        kind = {"report": type(value).__name__.removesuffix("Report").lower()} if isinstance(value, Report) else {}
        return {**kind, **{field.name: to_json(getattr(value, field.name)) for field in fields(value)}}
    raise TypeError(f"a report cannot hold {type(value).__name__}")
