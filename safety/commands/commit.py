"""``commit``: HEAD and what the agent changed, hunk by hunk, and nothing of the user's ([gate] B4, B5)."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from safety.commands.args import CommitArgs
from safety.commands.check import judge
from safety.commands.pending import ONE_TURN, Pending, pending
from safety.commands.report import Hint, Report, TextReport
from safety.commit.make import make_commit
from safety.commit.message import default_message
from safety.commit.plan import plan_commit
from safety.commit.values import CommitPlan, CommitResult, CommitSettings, Side, Step
from safety.gate.process import NotStarted, run_program
from safety.plumbing.repo import find_root
from safety.policy import secrets
from safety.session import RUN_PREFIX, Session, is_one_conversation
from safety.store.history import Turn, parse_handle, turns
from safety.store.oplog import UnknownHandle
from safety.store.snapshot import Snapshot
from safety.trust import runs_anything
from safety.types import PathState, Present

MOST_NAMED = 10
MESSAGE_S = 60.0
MAX_BASELINE = 16 << 20


@dataclass(frozen=True)
class Done:
    """``told``: sentences for the user. ``code``: the command line's exit code. ``nothing``: there was nothing to commit at all.

    ``once``: those sentences that a conversation need not repeat.
    """

    told: tuple[str, ...] = ()
    code: int = 0
    hints: tuple[Hint, ...] = ()
    data: Mapping[str, object] | None = None
    nothing: bool = False
    once: tuple[str, ...] = ()


def run(session: Session, args: CommitArgs) -> Report:
    """Gives a TextReport; exit code 1 where the commit was refused, 3 where something was left out, 4 where there is nothing to commit.

    Raises SafetyError.
    """
    done = commit(session, args)
    return TextReport(root=session.root, lines=done.told, hints=done.hints, exit_code=done.code, data=done.data)


def commit(session: Session, args: CommitArgs) -> Done:
    """Commits in each repository that the agent changed. The repository's checks run first, unless ``args.judged``."""
    nothing = Done(("Nothing to commit: no agent has changed anything here.",), code=4, nothing=True)
    if session.log.head_id() is None:
        return nothing
    with session.locked():
        head = session.refresh() if not session.open_turns() else session.log.head()
    number = _number(session, args.handle)
    newest = next((turn for turn in turns(session.log) if _is_wanted(turn, args.session, number)), None)
    if head is None or newest is None:
        return nothing
    if not args.judged and not args.dry_run:
        verdict = judge(session, args.session, turn=number, asked=True)
        if verdict.blocks:
            said = any("nothing" in notice and "committed" in notice for notice in verdict.notices)
            return Done((*verdict.notices, *([] if said else ["Nothing was committed."])), 1)
        args = replace(args, checked=verdict.ran)
        head = session.log.head() or head
    told: list[str] = []
    once: list[str] = []
    codes, made = [], []
    for place in pending(session, args.session, Snapshot(session.log.odb, head.tree), number, again=args.include_mine):
        done = _commit_one(session, args, place, newest)
        told += done.told
        codes.append(done.code)
        made.append(done.data)
        once += done.once
    if not told:
        if find_root(session.root) is None and not Snapshot(session.log.odb, head.tree).members():
            return Done(
                ("Nothing was committed: this is no git repository.",),
                code=1,
                hints=(Hint("Make one", "git init"),),
                nothing=True,
            )
        what = f"t{number}" if number else "the newest conversation"
        text = f"Nothing to commit: what {what} changed is committed, undone, or was left out before."
        return Done(
            (text,), code=4, hints=() if number else (Hint("One turn's changes", "git safety commit HANDLE"),), nothing=True
        )
    code = next((code for code in (1, 3, 0) if code in codes), 4)
    hints = (Hint("Take it back", "git safety undo"),) if any(entry and entry.get("commit") for entry in made) else ()
    return Done(tuple(told), code, hints, {"commits": [entry for entry in made if entry]}, once=tuple(once))


def _is_wanted(turn: Turn, wanted: str | None, number: int) -> bool:
    return turn.number == number if number else wanted is None or is_one_conversation(turn.session, wanted)


def _number(session: Session, handle: str) -> int:
    """The turn that a handle names, 0 for none. Raises UnknownHandle."""
    if not handle:
        return 0
    if not handle.strip("@-") and handle[0] == "@":
        found = list(itertools.islice(turns(session.log), len(handle)))
        if len(found) == len(handle):
            return found[-1].number
    numbers = parse_handle(handle)
    if numbers is None or not any(turn.number == numbers[0] for turn in turns(session.log)):
        raise UnknownHandle(f"there is no turn {handle} in this workspace", "git safety log")
    return numbers[0]


def _commit_one(session: Session, args: CommitArgs, place: Pending, turn: Turn) -> Done:
    refusal = session.distrust(place.root) if runs_anything(place.root) else ""
    if refusal:
        return Done((f"Nothing was committed: {refusal}",), code=1)
    agent = dict(session.agent or session.sessions.load(turn.session).agent or {"name": turn.agent})
    settings = settings_of(session)
    if turn.session.startswith(RUN_PREFIX) and not agent.get("name"):
        settings = replace(settings, trailer="none")  # a command that was run by hand: there is no agent to name
    plan = plan_commit(
        session.place.git,
        place.root,
        [Step(step.path, _side(session, step.before), _side(session, step.after)) for step in place.steps],
        settings,
        include_mine=args.include_mine,
        scanner=_Scanner(place.root),
    )
    left = [(item.path, item.reason) for item in plan.left_out] + place.left_out
    if plan.refusal or not plan.paths or args.dry_run:
        return _not_made(plan, left, args.dry_run)
    message = args.message or _written(session, plan, turn) or default_message(plan, turn.prompt)
    result = make_commit(session.place.git, plan, message, agent, pre_commit_ran=args.checked)
    if result.status == "committed":
        session.record_own(
            "commit",
            turn.number,
            None,
            members=(place.member,),
            conversation=turn.session,
            summary=result.subject,
            status=ONE_TURN if args.handle else "ok",
            left_out=[place.member + b"/" + path if place.member else path for path, _ in left],
        )
    return replace(_made(result, left), once=plan.notices)


class _Scanner:
    """The rules on secrets, and what the repository's ``.secrets.baseline`` has accepted."""

    def __init__(self, root: bytes) -> None:
        try:
            with open(os.path.join(root, b".secrets.baseline"), "rb") as file:
                self._accepted = secrets.parse_baseline(file.read(MAX_BASELINE))
        except OSError:
            self._accepted = {}

    def scan(self, path: bytes, added_lines: Iterable[tuple[int, bytes]], /) -> Sequence[secrets.Finding]:
        return secrets.scan(path, added_lines, self._accepted.get(path, frozenset()))

    def path_rule(self, path: bytes, /) -> secrets.Finding | None:
        return secrets.path_rule(path)


def _written(session: Session, plan: CommitPlan, turn: Turn) -> str:
    """The message that ``autocommit.message_command`` writes: what was asked and the patch go in, the message comes out."""
    command = session.settings.autocommit_message_command
    if not command:
        return ""
    given = json.dumps({"prompt": turn.prompt, "paths": [_text(path) for path in plan.paths], "diff": plan.diff})
    try:
        code, out, _, late = run_program(command, given.encode("ascii"), MESSAGE_S, session.environ, plan.request.root)
    except NotStarted as fault:
        code, out, late = 127, b"", False
        session.notices.append(f"git-safety: autocommit.message_command: {fault.strerror}")
    message = out.decode("utf-8", "replace").strip()
    if code or late or not message:
        session.notices.append("git-safety: autocommit.message_command wrote no message; one was made from the turn")
        return ""
    return message + "\n"


def _side(session: Session, state: PathState) -> Side | None:
    """What git would see of a path."""
    if not isinstance(state, Present) or state.kind == "dir":
        return None
    mode = 0o120000 if state.kind == "link" else 0o100755 if state.mode & 0o100 else 0o100644
    return Side(mode, session.log.odb.blob(state.oid))


def _not_made(plan: CommitPlan, left: list[tuple[bytes, str]], dry_run: bool) -> Done:
    told = [] if dry_run else list(plan.notices)
    if plan.refusal:
        told.append(f"Nothing was committed: {plan.reason}" + (f" ({plan.hint})" if plan.hint else ""))
    elif plan.paths and dry_run:
        told.append(f"Would commit {len(plan.paths)} {'file' if len(plan.paths) == 1 else 'files'}: {_names(plan.paths)}")
    told += _left_lines(left)
    code = 1 if plan.refusal else 3 if left and plan.paths else 0 if plan.paths else 4
    return Done(tuple(told), code=code, data={"paths": [_text(path) for path in plan.paths], "left_out": _left_data(left)})


def _made(result: CommitResult, left: list[tuple[bytes, str]]) -> Done:
    told = list(result.notices)
    code = 1
    if result.status == "committed":
        count = len(result.paths)
        told.append(
            f"Committed {result.oid[:7]} {result.subject!r}, {count} {'file' if count == 1 else 'files'}: {_names(result.paths)}"
        )
        code = 3 if left else 0
    elif result.status == "nothing":
        code = 4
    else:
        first, *more = result.text.splitlines() or [""]
        told += [f"Nothing was committed: {first.rstrip()}", *(f"  {line}" for line in more if line.strip())]
        told += [f"({result.hint})"] if result.hint else []
        if result.status == "hook_failed":
            told.append('To commit with another message: git safety commit -m "MESSAGE"')
    told += _left_lines(left)
    data = {
        "commit": result.oid if result.status == "committed" else "",
        "status": result.status,
        "paths": [_text(path) for path in result.paths],
        "left_out": _left_data(left),
    }
    return Done(tuple(told), code, data=data)


def _left_lines(left: list[tuple[bytes, str]]) -> list[str]:
    return [f"not committed: {_text(path)}, {reason}" for path, reason in left[:MOST_NAMED]] + (
        [f"not committed: {len(left) - MOST_NAMED} more"] if len(left) > MOST_NAMED else []
    )


def _left_data(left: list[tuple[bytes, str]]) -> list[list[str]]:
    return [[_text(path), reason] for path, reason in left]


def _names(paths: tuple[bytes, ...]) -> str:
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return ", ".join(_text(path) for path in paths[:MOST_NAMED]) + more


def _text(path: bytes) -> str:
    return os.fsdecode(path)


def settings_of(session: Session) -> CommitSettings:
    """The settings ``autocommit.*`` in effect."""
    given = session.settings
    return CommitSettings(
        trailer=given.autocommit_trailer,
        protected_branches=given.autocommit_protected_branches,
        detached=given.autocommit_detached,
        sign=given.autocommit_sign,
        submodules=given.autocommit_submodules,
        branch=f"agent/{session.id}"[:60],
    )
