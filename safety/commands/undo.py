"""``undo``: takes back what a turn did, and only that."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from safety.commands.args import UndoArgs
from safety.commands.carry import carry_out, lines_of, recover, relative, seen_in_long_calls
from safety.commands.changes import Contents
from safety.commands.hunks import choices, narrowed
from safety.commands.meanwhile import meanwhile
from safety.commands.patches import plan_patches
from safety.commands.report import Ask, Hint, Report, UndoReport
from safety.commands.selection import open_book, select
from safety.commands.titles import agent_name, both_ran, title_of
from safety.session import RUN_PREFIX, Session, given_id, is_one_conversation
from safety.store.history import Turn, find_operation, owned_by, parse_handle, pieces, shared_paths, turns
from safety.store.oplog import UnknownHandle
from safety.store.restore import KEPT, Piece, Step
from safety.store.snapshot import Snapshot
from safety.store.takeback import Planner, Whole
from safety.store.turns import SessionState

OLD_MS = 3_600_000
MOST_NAMED = 3
MOST_PLANNED = 20
Shared = Mapping[bytes, frozenset[int]]


@dataclass(frozen=True)
class Chosen:
    """What is to be taken back: turns newest first, or one call of one, and how many newer turns changed nothing.

    ``unexplained`` is a newer turn in which something changed that no call's end explains (the agent died in the middle, say).
    """

    turns: tuple[Turn, ...]
    call: int | None = None
    passed: int = 0
    unexplained: Turn | None = None


def run(session: Session, args: UndoArgs) -> Report:
    """Gives an UndoReport; an Ask where a person has to say yes first; exit code 4 where there is nothing to undo.

    Raises UnknownHandle, UndoRefused (nothing changed), WorkspaceBusy.
    """
    if session.log.head_id() is None:
        choose(session, args)  # a handle is unknown here
        return UndoReport(root=session.root, nothing=_nothing(session), exit_code=4)
    with session.locked():
        finished = recover(session)
        session.refresh(unlimited=True)
        chosen = choose(session, args)
        if chosen.unexplained is not None and not args.confirmed:
            return _ask_unexplained(session, chosen.unexplained)
        if not chosen.turns:
            return UndoReport(root=session.root, nothing=_nothing(session), exit_code=4, notices=finished)
        question = _question(session, chosen, args)
        if question is not None and not args.dry_run:
            return question
        return _undo(session, chosen, args, finished)


def _undo(session: Session, chosen: Chosen, args: UndoArgs, finished: tuple[str, ...]) -> Report:
    head = session.log.head()
    parts = parts_of(session, chosen, args.include_unattributed)
    only = [relative(session, path) for path in args.paths] or None
    whole = Planner(session.place, head.tree if head else None).plan(parts, only=only)
    titles = tuple(title_of(turn, chosen.call) for turn in chosen.turns)
    if only is not None and not whole.files.steps:
        nothing = f"{titles[0].handle} changed nothing at or below the paths you named"
        return UndoReport(root=session.root, titles=titles, exit_code=4, nothing=nothing)
    shared = {turn.handle: _shared(session, turn) for turn in chosen.turns}
    whole = _with_shared(session, whole, shared, only)
    if not parts and not whole.files.steps:
        return _nothing_of(session, chosen, titles[0].handle, finished + _left_alone(session, chosen, shared))
    if args.plan and args.plan != whole.token:
        again = (Hint("Look again", "git safety undo --dry-run"),)
        return UndoReport(
            root=session.root, nothing="something changed since that plan was shown", exit_code=4, titles=titles, hints=again
        )
    if args.can_ask and not (args.dry_run or args.now or args.patch or args.plan or only):
        unsure = seen_in_long_calls(session, parts)
        paths = [step.path for step in whole.files.steps if step.acts and step.path in unsure]
        if paths:
            return _ask_long(session, titles[0].handle, paths, whole.token)
    if args.patch and args.hunks is None:
        return choices(session, whole, titles[0])
    if args.hunks is not None:
        if not args.hunks:
            return UndoReport(root=session.root, titles=titles, exit_code=4, nothing="no piece was chosen")
        whole = narrowed(session, whole, args.hunks)
    notices = finished + _other_parts(session, chosen)
    if only is None and args.hunks is None and not args.include_unattributed:
        notices += _left_alone(session, chosen, shared)
    if chosen.passed:
        notices += (f"{chosen.passed} newer {'turn' if chosen.passed == 1 else 'turns'} changed nothing",)
    hints: tuple[Hint, ...] = ()
    if only is None and args.hunks is None and chosen.call is None:
        hints = () if args.include_unattributed else _ways_to_shared(shared)
        hints += () if whole.acts else _next_older(session, chosen)
    report = UndoReport(
        root=session.root, titles=titles, notices=notices, plan_token=whole.token, dry_run=args.dry_run, hints=hints
    )
    if args.dry_run:
        shown = plan_patches(Contents(session.log.odb), whole.files.steps) if args.show_patch else ()
        return lines_of(session, replace(report, patches=shown), whole, parts)
    is_whole = only is None and args.hunks is None and (whole.acts or all(step.verb != KEPT for step in whole.files.steps))
    if not whole.acts and all(turn.undone for turn in chosen.turns):  # to have it in the log twice would give ``redo`` an empty undo
        return lines_of(session, report, whole, parts)
    undoes = [*(piece.operation for piece in parts), *(title.handle for title in titles)] if is_whole else []
    return carry_out(session, whole, report, kind="undo", undoes=undoes, parts=parts)


def _next_older(session: Session, chosen: Chosen) -> tuple[Hint, ...]:
    """The command for the next older turn of which something can be undone, where these give nothing to undo.

    No more than ``MOST_PLANNED`` turns are looked at.
    """
    head = session.log.head()
    planner = Planner(session.place, head.tree if head else None)
    passed_over = {state.turn for state in session.open_turns()}
    older = (
        turn
        for turn in turns(session.log)
        if turn.number < chosen.turns[-1].number and not turn.undone and turn.number not in passed_over
    )
    for turn in islice(older, MOST_PLANNED):
        parts = pieces(session.log, turn.operations, turn.number, None)
        if parts and planner.plan(parts).acts:
            return (Hint("Next older turn", f"git safety undo {turn.handle}"),)
    return ()


def _left_alone(session: Session, chosen: Chosen, shared: Mapping[str, Shared]) -> tuple[str, ...]:
    """Names what changed during the turns and stays, because no call's end explains it (design 5.4 rules 1 and 2)."""
    book = open_book(session)
    told = []
    for turn in chosen.turns if chosen.call is None else ():
        others, notes = meanwhile(book, turn.number)
        names = [os.fsdecode(change.path) for change in others if change.path not in shared[turn.handle]]  # those are lines
        shown = [
            *names[:MOST_NAMED],
            *([f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []),
            *notes[:MOST_NAMED],
        ]
        if shown:
            told.append(f"left alone, as no call's end explains it: {', '.join(shown)} (git safety show {turn.handle})")
    return tuple(told)


def _with_shared(session: Session, whole: Whole, shared: Mapping[str, Shared], only: Sequence[bytes] | None) -> Whole:
    """Names what another turn may have changed as well; that is left alone (design 5.4 rule 3)."""
    planned = {step.path for step in whole.files.steps}
    now = Snapshot(session.log.odb, whole.now)
    steps = list(whole.files.steps)
    for found in shared.values():
        for path, others in found.items():
            wanted = only is None or any(path == one or path.startswith(one + b"/") for one in only)
            if path not in planned and wanted and b".git" not in path.split(b"/"):
                state = now.state(path)
                steps.append(Step(path, KEPT, state, state, f"changed while {both_ran(others)}"))
    return replace(whole, files=replace(whole.files, steps=tuple(sorted(steps, key=lambda step: step.path))))


def _shared(session: Session, turn: Turn) -> Shared:
    """Paths that the turn may have changed, or another one that ran at the same time; with all of these."""
    return shared_paths(session.log, owned_by(session.log, turn.number), turn.number)


def _ways_to_shared(shared: Mapping[str, Shared]) -> tuple[Hint, ...]:
    return tuple(
        Hint("Take what is shared back too", f"git safety undo {handle} --include-unattributed")
        for handle, found in shared.items()
        if found
    )


def _nothing_of(session: Session, chosen: Chosen, handle: str, notices: tuple[str, ...]) -> UndoReport:
    """The answer where a turn or call that was named has nothing to take back; ``notices`` name what is left alone."""
    rest = chosen.call is None and has_changes(session, chosen.turns[0], unattributed=True)
    nothing = f"no call of {handle} explains what changed meanwhile" if rest else f"{handle} changed nothing"
    hints = (Hint("What changed", f"git safety show {handle}"),) if rest else ()
    return UndoReport(root=session.root, exit_code=4, nothing=nothing, hints=hints, notices=notices)


def _numbers(session: Session, args: UndoArgs) -> tuple[int, int | None]:
    """The turn, and the call if it is one, that a handle names. Raises UnknownHandle."""
    numbers = parse_handle(args.handle)
    if numbers is not None:
        return numbers
    if not args.handle.strip("@-"):
        turn = select(open_book(session), args.handle).turn
        assert turn is not None
        return turn.number, None
    try:
        record = find_operation(session.log, args.handle).record
    except UnknownHandle as fault:
        if os.path.lexists(args.handle):
            raise UnknownHandle(fault.message, f"git safety undo -- {shlex.quote(args.handle)}") from None
        raise
    if not record.turn:
        raise UnknownHandle(f"{args.handle} is no turn of an agent", "git safety log")
    return record.turn, record.call or None


def choose(session: Session, args: UndoArgs) -> Chosen:
    """The turns the arguments name. Raises UnknownHandle."""
    if args.handle:
        numbers = _numbers(session, args)
        for turn in turns(session.log, unattributed=True):
            if turn.number == numbers[0]:
                if numbers[1] is not None and numbers[1] > turn.calls:
                    raise UnknownHandle(f"{turn.handle} has no call {numbers[1]}", f"git safety show {turn.handle}")
                return Chosen((turn,), numbers[1])
        raise UnknownHandle(f"there is no turn t{numbers[0]} in this workspace", "git safety log")
    found: list[Turn] = []
    passed = 0
    wanted = args.session
    running = {state.turn for state in session.open_turns()}
    unexplained = None
    for turn in turns(session.log, unattributed=True):
        if wanted == "":
            wanted = turn.session
        if turn.undone or (wanted is not None and wanted not in (turn.session, given_id(turn.session))):
            continue
        if not has_changes(session, turn, args.include_unattributed):
            if not found and unexplained is None and has_changes(session, turn, unattributed=True):
                unexplained = turn
            passed += not found and turn.number not in running
            continue
        found.append(turn)
        if args.session is None and len(found) == args.count:
            break
    return Chosen(tuple(found), None, passed, unexplained)


def has_changes(session: Session, turn: Turn, unattributed: bool = False) -> bool:
    """Whether the turn has a change of its own on record that undo would ever set back."""
    found = pieces(session.log, turn.operations, turn.number, None, unattributed=unattributed)
    if any(b".git" not in path.split(b"/") for piece in found for path in piece.paths):
        return True
    return bool(found) and Planner(session.place, found[-1].after).changes_anything(found)


def newest_of(session: Session) -> str:
    """The newest turn of this conversation, never another's, that changed something and is not undone; empty if there is none."""
    own = (turn for turn in turns(session.log) if turn.session == session.id and not turn.undone)
    return next((turn.handle for turn in own if has_changes(session, turn)), "")


def _ask_unexplained(session: Session, turn: Turn) -> Ask:
    """What changed so far in a call that has not ended is nobody's yet. Of an agent whose process is not known, it may have died."""
    running = _running(session, turn)
    if running is not None and running.process:
        return _ask_running(session, running, f"git safety undo {turn.handle}", unattributed=True)
    owned = pieces(session.log, turn.operations, turn.number, None, unattributed=True)
    paths = {path for piece in owned for path in piece.paths}
    shared = _shared(session, turn)
    sharing = both_ran(frozenset().union(*shared.values())) if shared else ""
    if shared.keys() >= paths:
        said = f"{_paths(len(paths))} changed while {sharing}, so any of them may have done it"
    else:
        agent = "the agent may still be at it or have died" if running is not None else "the agent may have died"
        said = f"In {turn.handle} {_paths(len(paths))} changed and no call's end explains it: {agent}, or it was you"
        said += f" ({_paths(len(shared))} changed while {sharing})" if shared else ""
    return Ask(
        root=session.root,
        code="unexplained",
        question=f"{said}. Take that back?",
        command=f"git safety undo {turn.handle} --include-unattributed --now",
        answer={"confirmed": True, "now": True, "handle": turn.handle, "include_unattributed": True},
    )


def _ask_long(session: Session, handle: str, paths: Sequence[bytes], token: str) -> Ask:
    names = [os.fsdecode(path) for path in paths[:MOST_NAMED]]
    more = [f"{len(paths) - MOST_NAMED} more"] if len(paths) > MOST_NAMED else []
    return Ask(
        root=session.root,
        code="long-call",
        question=f"While a call or run of more than ten seconds went on, this may have been you: {', '.join(names + more)}. Undo it?",
        command=f"git safety undo {handle} --yes",
        answer={"confirmed": True, "plan": token},
    )


def _paths(count: int) -> str:
    return f"{count} {'path' if count == 1 else 'paths'}"


def parts_of(session: Session, chosen: Chosen, unattributed: bool) -> list[Piece]:
    """All pieces of the chosen turns, oldest first."""
    parts: list[Piece] = []
    for turn in reversed(chosen.turns):
        owned = owned_by(session.log, turn.number, chosen.call, unattributed=unattributed)
        parts.extend(pieces(session.log, owned, turn.number, chosen.call, unattributed=unattributed))
    return parts


def _other_parts(session: Session, chosen: Chosen) -> tuple[str, ...]:
    """Where a long ``run`` was cut into turns at its pauses: the ones that stand."""
    turn = chosen.turns[-1]
    if not turn.session.startswith(RUN_PREFIX):
        return ()
    numbers = {item.number for item in chosen.turns}
    others = [
        other.handle
        for other in turns(session.log)
        if other.session == turn.session and other.number not in numbers and not other.undone and has_changes(session, other)
    ]
    return (f"other parts of this run stand: {', '.join(others)}; each is taken back by its handle",) if others else ()


def _question(session: Session, chosen: Chosen, args: UndoArgs) -> Ask | None:
    """The cases in which nobody should be surprised (design 5.5): still running, another session's, older than an hour."""
    if args.confirmed:
        return None
    turn = chosen.turns[0]
    running = _running(session, turn)
    command = f"git safety undo {turn.handle}" + (f".{chosen.call}" if chosen.call else "")
    if args.paths:
        command += " -- " + " ".join(shlex.quote(relative(session, path).decode("utf-8", "replace")) for path in args.paths)
    if running is not None and not args.now:
        return _ask_running(session, running, command, unattributed=not has_changes(session, turn))
    if args.handle or args.now or args.session is not None:
        return None
    newest = next(iter(turns(session.log)), None)
    what = _words_for(turn)
    if newest is not None and newest.number != turn.number and not is_one_conversation(newest.session, turn.session):
        return Ask(
            root=session.root,
            question=f"The newest turn, {newest.handle}, has nothing to undo. Before it, of another session: {what}. Undo that?",
            command=command,
            answer={"confirmed": True, "handle": turn.handle},
            code="other-session",
        )
    if session.now_ms() - turn.ended_ms > OLD_MS:
        return Ask(
            root=session.root,
            question=f"The newest turn that changed something is older than an hour: {what}. Undo it?",
            command=command,
            answer={"confirmed": True, "handle": turn.handle},
            code="old-turn",
        )
    return None


def _running(session: Session, turn: Turn) -> SessionState | None:
    return next((state for state in session.open_turns() if state.turn == turn.number), None)


def _ask_running(session: Session, state: SessionState, command: str, *, unattributed: bool) -> Ask:
    """``unattributed``: all it has done so far was in calls that have not ended."""
    agent = "it" if state.session.startswith(RUN_PREFIX) else "the agent"
    words, _, paths = command.partition(" -- ")
    words += f"{' --include-unattributed' if unattributed else ''} --now"
    answer: dict[str, object] = {"confirmed": True, "now": True, "handle": f"t{state.turn}"}
    return Ask(
        root=session.root,
        question=f"t{state.turn} is still running. Stop {agent} first, or undo what it has done so far?",
        command=f"{words} -- {paths}" if paths else words,
        answer={**answer, "include_unattributed": True} if unattributed else answer,
        code="still-running",
    )


def _words_for(turn: Turn) -> str:
    """A turn inside a question: ``t3 (run, rm -rf build)``."""
    title = title_of(turn)
    lines = title.prompt.split("\n", 1)[0].strip()
    said = lines if len(lines) <= 60 else lines[:57].rstrip() + "..."
    return f"{title.handle} ({', '.join(filter(None, [agent_name(turn), said]))})"


def _nothing(session: Session) -> str:
    if next(iter(turns(session.log, unattributed=True)), None) is None:
        return "the turn that is running has changed nothing yet" if session.open_turns() else "no agent has worked here yet"
    return "no turn here changed anything that is not undone already"
