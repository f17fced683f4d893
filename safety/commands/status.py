"""``status``: where things stand. Reads the log only; takes no snapshot."""

from __future__ import annotations

import os
from dataclasses import replace

from safety.commands.args import StatusArgs, UndoArgs
from safety.commands.changes import net_changes
from safety.commands.redact import redacted
from safety.commands.redo import newest_undo
from safety.commands.report import Presence, Report, StatusReport, TurnTitle
from safety.commands.selection import Book, completed, open_book, running_turn
from safety.commands.titles import title_of
from safety.commands.uncovered import lines_of_states
from safety.commands.undo import choose
from safety.plumbing.refs import ref_text
from safety.plumbing.repo import open_repository
from safety.session import RUN_PREFIX, Session
from safety.store.history import Turn
from safety.store.packs import store_size
from safety.store.pins import pins
from safety.store.snapshot import Snapshot
from safety.store.turns import SessionState

# An agent that has not been heard for so long may have lost its hook.
FORGOTTEN_MS = 7 * 24 * 3600 * 1000
_MOST_UNCOVERED = 200
TOO_WIDE = "this folder is too wide for snapshots of everything; only files that a tool names are covered"


def run(session: Session, args: StatusArgs) -> Report:
    """Gives a StatusReport."""
    book = open_book(session)
    head = session.log.head()
    operations, since = 0, 0
    for operation in book.timeline.walk():
        operations, since = operations + 1, operation.record.time_ms
    running = _running(book)
    heard = heard_agents(book)
    presence = tuple(_presence(book, name) for name, _ in heard)
    protected = running is not None or any(
        session.now_ms() - when < FORGOTTEN_MS and there != "was"
        for (name, when), there in zip(heard, presence, strict=True)
        if name != RUN
    )
    return StatusReport(
        root=session.root,
        kind="git" if open_repository(session.root) is not None else "folder",
        branch=_branch(session.root),
        protected=protected,
        heard=heard,
        presence=presence,
        running=None if running is None else _title(running),
        running_files=0 if running is None else _files(book, running),
        undo=_undo(session),
        redo=_redo(session, book),
        recover="an undo was interrupted; finish it: git safety recover" if session.interrupted else "",
        not_covered=() if head is None else lines_of_states(Snapshot(session.log.odb, head.tree).not_covered())[:_MOST_UNCOVERED],
        store_bytes=store_size(session.place.store_dir).own_bytes,
        store_max_bytes=session.settings.store_max_mib << 20,
        operations=operations,
        since_ms=since,
        pins=tuple((name, session.log.read(oid).record.handle) for name, oid in pins(session.log).items()),
        notes=_notes(session, protected, heard, presence),
    )


RUN = "run"


def heard_agents(book: Book) -> tuple[tuple[str, int], ...]:
    """Each agent whose hook was heard in this workspace, and when last; newest first."""
    found: dict[str, int] = {}
    for state in book.states:
        name = _agent_of(state)
        if state.heard_ms:
            found[name] = max(found.get(name, 0), state.heard_ms)
    return tuple(sorted(found.items(), key=lambda item: -item[1]))


def _presence(book: Book, name: str) -> Presence:
    """Whether an agent is at work: of one that is a process of its own that is known; of a harness with a hook only its open turns."""
    states = [state for state in book.states if state.heard_ms and _agent_of(state) == name]
    if any(state.is_alive(book.now_ms) and (state.process or state.is_open) for state in states):
        return "is"
    return "was" if all(state.process for state in states) else "when it runs"


def _agent_of(state: SessionState) -> str:
    return RUN if state.session.startswith(RUN_PREFIX) else state.agent.get("name") or "an agent"


def _running(book: Book) -> Turn | None:
    """The newest turn that is open."""
    if not book.running:
        return None
    number = max(book.running)
    for turn in book.timeline.turns():
        if turn.number <= number:
            return completed(book, turn) if turn.number == number else running_turn(book.running[number])
    return running_turn(book.running[number])


def _files(book: Book, turn: Turn) -> int:
    return sum(
        not change.is_folder
        for change in net_changes(book.log.odb, book.root, book.timeline.pieces(turn.number, areas=("work", "private")))
    )


def _title(turn: Turn) -> TurnTitle:
    title = title_of(turn)
    return replace(title, prompt=redacted(title.prompt))


def _undo(session: Session) -> TurnTitle | None:
    chosen = choose(session, UndoArgs()).turns
    return _title(chosen[0]) if chosen else None


def _redo(session: Session, book: Book) -> TurnTitle | None:
    undo = newest_undo(session)
    if undo is None:
        return None
    numbers = {int(name[1:]) for name in undo.record.undoes if name[:1] == "t" and name[1:].isdigit()}
    turn = next((turn for turn in book.timeline.turns() if turn.number in numbers), None) if numbers else None
    return _title(turn) if turn else TurnTitle(undo.id, prompt=undo.record.kind, command=True)


def _branch(root: bytes) -> str:
    """The branch as git has it now; the commit's short id where HEAD is detached."""
    repository = open_repository(root)
    if repository is None:
        return ""
    try:
        with open(os.path.join(repository.git_dir, b"HEAD"), "rb") as file:
            head = ref_text(file.read())
    except OSError:
        return ""
    branch = head.removeprefix(b"ref:").strip().removeprefix(b"refs/heads/") if head.startswith(b"ref:") else head[:8]
    return branch.decode("utf-8", "surrogateescape")


def _notes(
    session: Session, protected: bool, heard: tuple[tuple[str, int], ...], presence: tuple[Presence, ...]
) -> tuple[str, ...]:
    notes = list(session.settings.warnings)
    if session.place.declared_only:
        notes.append(TOO_WIDE)
    elif protected:
        notes.append("commands of this shell only under: git safety run -- COMMAND")
    else:
        agents = {name: there for (name, _), there in zip(heard, presence, strict=True) if name != RUN}
        ended = [name for name, there in agents.items() if there == "was"]
        why = "no agent's hook was heard here for a week" if agents else "no agent's hook was heard here yet"
        why = f"{' and '.join(ended)} {'has' if len(ended) == 1 else 'have'} ended" if ended else why
        notes.append(f"{why}; a single command is protected by: git safety run -- COMMAND")
    return tuple(notes)
