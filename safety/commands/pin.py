"""``pin``: gives a recorded state a name, so that it is never forgotten; lists the names; takes one away."""

from __future__ import annotations

from safety.commands.args import PinArgs
from safety.commands.report import Hint, Report, TextReport
from safety.commands.selection import open_book, select
from safety.faults import SafetyError, quoted
from safety.session import Session
from safety.store.history import find_operation, parse_handle
from safety.store.oplog import ID_LETTERS, Operation, OpLog, UnknownHandle
from safety.store.pins import pins, remove_pin, set_pin

LONGEST_NAME = 60


class BadName(SafetyError):
    code, exit_code = "bad-name", 2


def run(session: Session, args: PinArgs) -> Report:
    """Gives a TextReport: what was pinned, or the list. Raises UnknownHandle, BadName."""
    if not args.name:
        return _list(session)
    with session.locked():
        if args.delete:
            if not remove_pin(session.log, args.name):
                raise UnknownHandle(f"nothing is pinned as {quoted(args.name)}", "git safety pin")
            return TextReport(root=session.root, lines=(f"{args.name} is no longer pinned.",), data={"unpinned": args.name})
        check_name(args.name)
        operation = _operation(session, args.handle)
        earlier = pins(session.log).get(args.name)
        set_pin(session.log, args.name, operation.oid)
    notices = (
        (f"{args.name} stood for {session.log.read(earlier).record.handle} until now",)
        if earlier not in (None, operation.oid) and earlier
        else ()
    )
    return TextReport(
        root=session.root,
        lines=(f"Pinned {operation.record.handle} as {args.name}.",),
        notices=notices,
        data=_data(args.name, operation),
        hints=(Hint("Bring a file back", f"git safety restore --at {args.name} PATH"),),
    )


def check_name(name: str) -> None:
    """Raises BadName for what could be taken for a handle or an option, or could not be typed."""
    if (
        not name.isprintable()
        or name != name.strip()
        or len(name) > LONGEST_NAME
        or len(name.encode("utf-8", "surrogateescape")) > 80
    ):
        raise BadName(f"{quoted(name)} is no name for a pin: one line of up to {LONGEST_NAME} characters", "git safety pin -h")
    if name[0] in "-@" or parse_handle(name) is not None or (len(name) == 12 and not name.strip(ID_LETTERS)):
        raise BadName(f"{quoted(name)} looks like a handle or an option", "git safety pin -h")


def _operation(session: Session, handle: str) -> Operation:
    """The operation to keep: what the handle names, of a turn its newest."""
    if parse_handle(handle) is None:
        return find_operation(session.log, handle)
    operations = select(open_book(session), handle).operations
    if not operations:
        raise UnknownHandle(f"{handle} left nothing in the log to pin", "git safety log")
    return operations[-1]


def _list(session: Session) -> Report:
    found = _known(session.log)
    if not found:
        return TextReport(
            root=session.root,
            lines=("Nothing is pinned.",),
            data={"pins": []},
            hints=(Hint("Pin what is there now", "git safety snapshot -m NAME"),),
        )
    width = max(len(name) for name, _ in found)
    lines = tuple(f"{name.ljust(width)}  {operation.record.handle}" for name, operation in found)
    return TextReport(root=session.root, lines=lines, data={"pins": [_data(name, operation) for name, operation in found]})


def _known(log: OpLog) -> list[tuple[str, Operation]]:
    return [(name, log.read(oid)) for name, oid in pins(log).items()]


def _data(name: str, operation: Operation) -> dict[str, object]:
    return {"name": name, "handle": operation.record.handle, "operation": operation.id, "when_ms": operation.record.time_ms}
