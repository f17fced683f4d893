"""``Net``: the safety net of one agent in one folder, for a program that runs the agent itself."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from safety.adapters.calls import absolute_paths, declared_paths, read_paths
from safety.adapters.embed.asking import OnAsk, asker, loop_of_the_call
from safety.adapters.embed.turn import Turn, reading
from safety.adapters.embed.wrapping import OnDenied, Paths, Runs, RunsLater, SomePaths, Tool, protected, texts_of
from safety.faults import SafetyError
from safety.hooks import priorities
from safety.hooks.events import DECISION_EVENTS, HookType
from safety.hooks.registry import HookRegistry
from safety.runtime.open import new_id, open_session, passes_over
from safety.session import RUN_PREFIX, Call, Denied, Feedback, Session, TurnStart, beside, having, spoken
from safety.store.turns import own_process
from safety.types import Decision

if TYPE_CHECKING:
    from safety.adapters.embed.results import Undone
    from safety.commands.report import LogRow

F = TypeVar("F", bound=Tool)
Gave = TypeVar("Gave")

#: The turn whose beginning the handler that runs here is hearing of: it may work in it before others may.
_beginning: ContextVar[Turn | None] = ContextVar("beginning", default=None)


class NoFolder(SafetyError):
    """What a net was to be opened over is no folder."""

    code = "no-folder"


class BadPath(SafetyError):
    """A text that no file can have as its name."""

    code = "bad-path"


class Net:
    """Records what an agent's tools change in the workspace that holds ``path``, asks the guard before each call, and takes back.

    Opening scans nothing and starts nothing. ``on_ask(call, reason)`` answers where the guard will not decide alone; without it the
    answer is no. ``strict``: what cannot be protected is denied, and a store that cannot be opened is an error; else the tools run and
    ``notices`` tells. ``session_id`` names the conversation, so that a later process can go on with it; ``agent`` is the name in the
    log. ``environ`` stands in for the whole environment of the process. All methods may be called from any thread.

    One net is one conversation: turns that overlap are one. Raises NoFolder, and with ``strict`` SafetyError.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = ".",
        *,
        on_ask: OnAsk | None = None,
        strict: bool = False,
        session_id: str | None = None,
        agent: str | Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.path = os.path.abspath(path)
        if not os.path.isdir(self.path):
            raise NoFolder(f"{self.path} is no folder", "make it first, or give the folder that the agent works in")
        if session_id and session_id.startswith(RUN_PREFIX):
            raise ValueError(f"a session_id must not begin with {RUN_PREFIX}")
        self.strict = strict
        self._lock = threading.RLock()  # of the fields below; nothing that takes time is done under it
        self._closing = threading.Lock()  # a turn is closed under it, which no handler hears of
        self._notices: list[str] = []
        self._open_calls: list[_OpenCall] = []
        self._turn: Turn | None = None
        self._depth = 0
        self._session: Session | None = None
        self._fault: SafetyError | None = None
        self._warned: set[str] = set()
        named = {"name": agent or "Python"} if isinstance(agent, str | None) else dict(agent)
        try:
            self._session = self._opened(session_id or f"python-{new_id()}", named, environ, on_ask)
        except SafetyError as fault:
            if strict:
                raise
            self._fault = fault
            self._notices.append(f"git-safety: not protected: {fault.sentence}")
            self._warn(self._notices[-1])
        self._no_hooks = HookRegistry()

    def _opened(
        self, session_id: str, agent: Mapping[str, str], environ: Mapping[str, str] | None, on_ask: OnAsk | None
    ) -> Session:
        folder = os.fsencode(self.path)
        session = open_session(folder, session_id, environ, agent=agent)
        if passes_over(session, folder):
            session.close()
            session = open_session(folder, session_id, environ, agent=agent, alone=True)
        session = replace(session, process=own_process())
        if self.strict:
            session = replace(session, settings=replace(session.settings, fail_closed=True))
            session.hooks.options = replace(session.hooks.options, fail_closed_events=DECISION_EVENTS)
        session.hooks.register("net.on_ask", HookType.TOOL_CONFIRM, asker(on_ask), priorities.AUTO_CONFIRM)
        session.hooks.register("net.joins", HookType.TURN_PRE, self._joinable, priorities.NET_JOINS)
        return session

    # -- what an agent is given ------------------------------------------------------------------------------------------------

    @overload
    def protect(self, tool: F, /, *, reads: bool = ..., paths: Paths | None = ..., denied: OnDenied | None = ...) -> F: ...
    @overload
    def protect(
        self, tools: Iterable[Tool], /, *, reads: bool = ..., paths: Paths | None = ..., denied: OnDenied | None = ...
    ) -> list[Tool]: ...
    @overload
    def protect(self, /, *, reads: bool = ..., paths: Paths | None = ..., denied: OnDenied | None = ...) -> Callable[[F], F]: ...
    def protect(
        self,
        tool: Any = None,
        /,
        *,
        reads: bool = False,
        paths: Paths | None = None,
        denied: OnDenied | None = None,
    ) -> Any:
        """The tool, or a list of the tools, with each call recorded and the guard asked first; looks and types as it was.

        A tool called ``write_file``, ``edit`` or the like changes the paths in its arguments (``path``, ``file_path`` ...), one called
        ``read_file``, ``grep`` or the like changes nothing, any other may change anything. ``paths`` names the parameters that hold the
        paths, or gives them from the arguments (None: anything); ``reads`` says that it changes nothing.

        A refused call gives its reason as the result where the tool may return a ``str``, and raises Denied where it may not; with
        ``denied`` always the one or the other. Without a tool it is a decorator. Raises TypeError for a class or a generator.
        """
        options: dict[str, Any] = {"reads": reads, "paths": paths, "denied": denied}
        if tool is None:
            return lambda function: protected(self, function, **options)
        if not callable(tool) and isinstance(tool, Iterable):
            return [protected(self, one, **options) for one in tool]
        return protected(self, tool, **options)

    def tools(self, *, undo: bool = False) -> list[Callable[..., str]]:
        """Tools of ours for the model, as plain typed functions that give text: snapshot, check, explain; ``undo`` only if asked for."""
        from safety.adapters.embed.offered import offered

        return offered(self, undo)

    # -- turns -----------------------------------------------------------------------------------------------------------------

    @contextmanager
    def turn(self, prompt: str = "") -> Iterator[Turn]:
        """One exchange with the agent, to be looked at and taken back as one. Inside another one it is that one.

        Its end runs what stands at a turn's end (checks, autocommit); after an exception it only ends.
        """
        turn = self._join(prompt)
        try:
            yield turn
        except BaseException:
            self._leave(turn, failed=True)
            raise
        self._leave(turn)

    @asynccontextmanager
    async def aturn(self, prompt: str = "") -> AsyncIterator[Turn]:
        """`turn` for ``async with``: what takes time is done in a worker thread."""
        joined: list[Turn] = []
        await beside(lambda: joined.append(self._join(prompt)), lambda: self._leave(joined[0], failed=True))
        turn = joined[0]
        try:
            yield turn
        except BaseException:
            await beside(lambda: self._leave(turn, failed=True))
            raise
        await beside(lambda: self._leave(turn))

    @reading()
    def undo(self, handle: str = "", *, dry_run: bool = False, paths: SomePaths | None = None) -> Undone:
        """Takes back a turn (``t14``) or a call (``t14.2``); without a handle the newest turn of this conversation that changed
        something. With ``paths`` only those and what lies below them. Raises SafetyError; then nothing was changed.
        """
        from safety.adapters.embed.results import Undone, undone
        from safety.commands import undo
        from safety.commands.args import UndoArgs
        from safety.commands.report import UndoReport

        session = self.session
        handle = handle or undo.newest_of(session)
        if not handle:
            return Undone(dry_run=dry_run, nothing="no turn of this conversation changed anything that is not undone already")
        only = () if paths is None else self.absolute(paths)
        if paths is not None and not only:
            return Undone(dry_run=dry_run, nothing="no paths were named")
        args = UndoArgs(handle=handle, paths=only, dry_run=dry_run, now=True, confirmed=True)
        report = undo.run(session, args)
        assert isinstance(report, UndoReport)
        return undone(report, self.told_path)

    @reading()
    def redo(self, handle: str = "", *, dry_run: bool = False) -> Undone:
        """Takes back an undo: of the turn that ``handle`` names, else the newest. Raises SafetyError; then nothing was changed."""
        from safety.adapters.embed.results import undone
        from safety.commands import redo
        from safety.commands.args import RedoArgs

        return undone(redo.run(self.session, RedoArgs(handle=handle, dry_run=dry_run)), self.told_path)

    @reading()
    def log(self, limit: int | None = 50) -> tuple[LogRow, ...]:
        """What agents and the user did in this workspace, newest first, as ``git safety log`` has it. Raises SafetyError."""
        from safety.commands import log
        from safety.commands.args import LogArgs
        from safety.commands.report import LogReport

        report = log.run(self.session, LogArgs(limit=limit))
        assert isinstance(report, LogReport)
        return report.rows

    # -- what is told ----------------------------------------------------------------------------------------------------------

    def told_path(self, path: bytes) -> str:
        """A path of the workspace from the net's folder, as `absolute` takes it in; one outside of the workspace is absolute."""
        if not path.startswith(b"/"):
            path = os.path.relpath(os.path.join(self.session.root, path), os.path.realpath(os.fsencode(self.path)))
        return os.fsdecode(path)

    def absolute(self, paths: SomePaths, home: str = "") -> tuple[bytes, ...]:
        """The paths, meant from the net's folder, each once; with ``home`` also ``~/``. Raises BadPath."""
        texts = texts_of(paths)
        found = absolute_paths(texts, os.fsencode(self.path), home)
        if found is None:
            raise BadPath(f"there can be no file of that name: {', '.join(map(repr, texts))}")
        return found

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know, in order; what could not be protected is among it."""
        with self._lock:
            if self._session is not None:
                self._notices += self._session.take_notices()
            return tuple(self._notices)

    def take_messages(self) -> tuple[str, ...]:
        """Texts for the model that have gathered since they were last taken."""
        with self._lock:
            return () if self._session is None else self._session.take_messages()

    @property
    def session(self) -> Session:
        """The session behind the net. Raises SafetyError where it could not be opened."""
        if self._session is None:
            assert self._fault is not None
            raise self._fault
        return self._session

    @property
    def hooks(self) -> HookRegistry:
        """The table of handlers: ``net.hooks.register(name, HookType.TOOL_EXECUTE_PRE, function)``."""
        return self._no_hooks if self._session is None else self._session.hooks

    # -- what adapters call ----------------------------------------------------------------------------------------------------

    def turn_start(self, prompt: str = "") -> TurnStart:
        """Opens a turn; inside ``with net.turn()`` it is that one. A prompt such as ``/undo`` is carried out. Never raises."""

        def work(session: Session) -> TurnStart:
            if self._turn is not None:
                return TurnStart(messages=session.take_messages())
            if prompt.lstrip().startswith("/"):
                from safety.adapters.prompts import carry_out

                done = carry_out(session, prompt)
                if done is not None:
                    return TurnStart(True, done.messages, done.notices)
            self._forget_calls()
            return session.turn_start(prompt)

        return self._mouth(work, TurnStart())

    def pre(self, tool: str, args: Mapping[str, Any], call_id: str = "", paths: Iterable[str] | None = None) -> Decision:
        """Before a tool call: allow, deny (with the text for the model) or edit (with the input to run with). Never raises.

        ``paths`` are those that the call may change; without them they are told from the tool's name and arguments.
        """

        def work(session: Session) -> Decision:
            call = self._call(session, tool, args, True if paths is None else list(paths), call_id)
            decision = session.pre(call)
            if decision.action != "deny":
                given = [args] if decision.input is None else [args, decision.input]
                digests = {replace(call, input=one).digest for one in given}
                with self._lock:
                    self._open_calls.append(_OpenCall(call, bool(call_id), frozenset(digests), threading.get_ident()))
            return decision

        failed = Decision("deny", "git-safety failed, and the net is strict") if self.strict else Decision()
        return self._mouth(work, failed)

    def post(self, tool: str, args: Mapping[str, Any], result: object = None, error: object = None, call_id: str = "") -> None:
        """After a tool call, whether it worked or not. Never raises.

        Without an id it belongs to the newest open call of that tool with these arguments (or what `pre` made of them), of this thread
        if it has one. What belongs to no open call of this turn, such as one that was denied, is no news.
        """

        def work(session: Session) -> None:
            call = self._take(tool, args, call_id)
            if call is not None:
                failure = None if error is None or error is False else "failed" if error is True else spoken(error)
                session.post(call, None if result is None else spoken(result), failure)

        self._mouth(work, None)

    def turn_end(self) -> str | None:
        """Ends the turn, or gives what goes back to the agent instead. Inside ``with net.turn()`` that one ends it. Never raises."""

        def work(session: Session) -> str | None:
            return None if self._turn is not None else _said(session.turn_end())

        return self._mouth(work, None)

    def call(self, tool: str, given: Mapping[str, Any], run: Runs, paths: list[str] | bool | None = True) -> Any:
        """Runs a tool between `pre` and `post`; ``run`` gets the input that was allowed. Raises Denied, else what the tool raises.

        ``paths``: those it changes; True: told from its name and input; None: it may change anything.
        """
        if self._session is None:
            return run(given)
        return self._session.around(self._call(self._session, tool, given, paths), run)

    async def acall(self, tool: str, given: Mapping[str, Any], run: RunsLater, paths: list[str] | bool | None = True) -> Any:
        """`call` for a tool that is awaited; git works in a worker thread meanwhile."""
        if self._session is None:
            return await run(given)
        from asyncio import get_running_loop

        call = self._call(self._session, tool, given, paths)
        with having(loop_of_the_call, get_running_loop()):
            return await self._session.aaround(call, run)

    def unsure(self, why: str) -> None:
        """What a call changes cannot be told, so it counts as one that may change anything. Raises Denied where the net is strict."""
        if self.strict:
            raise Denied(f"not run: {why}")
        with self._lock:
            self._notices.append(f"git-safety: {why}; the call is covered as one that may change anything")

    def close(self) -> None:
        """Ends a turn that is open; the last to be done with a net. Never raises."""

        def work(session: Session) -> None:
            session.end()
            session.close()

        self._mouth(work, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: object, trace: object) -> None:
        if kind is not None:
            self._mouth(lambda session: session.close_turn(), None)
        self.close()

    # -- inside ----------------------------------------------------------------------------------------------------------------

    def _join(self, prompt: str) -> Turn:
        """The turn that is open, once others may join it, else a new one. No lock is held while handlers run: they may open turns, too."""
        while True:
            with self._lock:
                turn = self._turn
                if turn is None:
                    turn, self._depth = Turn(self, prompt), 1
                    self._turn = turn
                    break
                if turn.begun.is_set() or _beginning.get() is turn:
                    self._depth += 1
                    return turn
            turn.begun.wait()
        try:
            self._begin(turn)
        except BaseException:
            self._leave(turn, failed=True)
            raise
        finally:
            turn.begun.set()
        return turn

    def _begin(self, turn: Turn) -> None:
        with self._closing:
            turn.before = self.turn_number(until_now=True)
            turn.first = 0 if self._session is None else len(self.notices)  # without a store no turn is protected
        if self._session is not None:
            self._forget_calls()
            with having(_beginning, turn):
                turn.messages = self._session.turn_start(turn.prompt).messages
        turn.handle  # noqa: B018 - looked up while it is certain to be this turn's

    def _joinable(self) -> None:
        """A handler of TURN_PRE."""
        if self._turn is not None:
            self._turn.begun.set()

    def _leave(self, turn: Turn, failed: bool = False) -> None:
        self.end_of(turn, leaving=True, failed=failed)
        if self._session is not None and not self._session.uncaptured <= self._warned:
            self._warned |= self._session.uncaptured
            self._warn(f"git-safety: calls of {turn.handle or 'a turn'} could not be protected; see the notices of the turn")

    def end_of(self, turn: Turn, *, leaving: bool = False, failed: bool = False) -> str | None:
        """`Turn.end`. Whoever has joined while others had their say is in the turn: the last to leave ends it."""
        with self._lock:
            if self._turn is not turn:
                return None
            self._depth -= leaving
            if turn.is_ending or (leaving and self._depth):
                return None
            turn.is_ending, inside = True, self._depth
        is_done = False
        try:
            turn.feedback = None if failed or self._session is None else _said(self._session.judge_turn())
            is_done = not failed and turn.feedback is None
        finally:  # an interrupt, too, leaves no turn that the next one would join
            with self._closing:
                with self._lock:
                    turn.is_ending = False
                    is_over = not self._depth or (is_done and self._depth <= inside)
                    self._turn = None if is_over else turn
                if is_over:
                    if self._session is not None:
                        self._session.close_turn(scan=not is_done)
                    turn.handle  # noqa: B018 - from now on the newest turn may be another one
                    turn.noticed = self.notices[turn.first :]
        return turn.feedback

    def turn_number(self, *, until_now: bool = False) -> int:
        """The newest turn of the conversation that could be opened, 0 if there is none. ``until_now``: that the next start will leave
        behind, so not one that was sent back to the agent.
        """
        if self._session is None:
            return 0
        state = self._session.sessions.load(self._session.id)
        return state.turn - 1 if until_now and state.is_open and state.continued else state.turn

    def _call(
        self, session: Session, tool: str, given: Mapping[str, Any], paths: list[str] | bool | None, call_id: str = ""
    ) -> Call:
        """The call as the engine knows it. Where the process works in another folder of the workspace than the net's, a path in it may be
        meant from either: both are covered.
        """
        folder, home = os.fsencode(self.path), session.environ.get("HOME", "")
        try:
            here = os.getcwdb()
        except OSError:
            here = folder
        if here != session.root and not here.startswith(session.root + b"/"):
            here = folder
        found: dict[bytes, None] | None = None if paths is None else {}
        for cwd in dict.fromkeys((folder, here)):
            named = declared_paths(tool, given, cwd, home) if isinstance(paths, bool) else absolute_paths(paths or (), cwd, home)
            found = None if named is None or found is None else found | dict.fromkeys(named)
        reads = read_paths(tool, given, here, home)
        return Call(call_id or session.new_id(), tool, given, here, None if found is None else tuple(found), reads=reads)

    def _take(self, tool: str, args: Mapping[str, Any], call_id: str) -> Call | None:
        digest = Call("", tool, args, b"").digest
        with self._lock:
            if call_id:
                found = [one for one in self._open_calls if one.call.id == call_id]
            else:
                found = [one for one in self._open_calls if not one.named and one.call.tool == tool and digest in one.digests]
                found.reverse()  # the end of an older one may have been lost
                found.sort(key=lambda one: one.thread != threading.get_ident())
            if not found:
                return None
            self._open_calls.remove(found[0])
            return found[0].call

    def _forget_calls(self) -> None:
        """The ends of calls of an older turn come too late for the engine."""
        with self._lock:
            self._open_calls.clear()

    def _mouth(self, work: Callable[[Session], Gave], failed: Gave) -> Gave:
        if self._session is None:
            return failed
        try:
            return work(self._session)
        except Exception as fault:  # noqa: BLE001 - a mouth: a fault of ours is told to the user and does not stop the agent
            text = fault.message if isinstance(fault, SafetyError) else f"{type(fault).__name__}: {fault}"
            with self._lock:
                self._notices.append(f"git-safety: not protected: {text}")
            return failed

    @staticmethod
    def _warn(text: str) -> None:
        warnings.warn(text, RuntimeWarning, stacklevel=3)


@dataclass(frozen=True)
class _OpenCall:
    """A call between `pre` and `post`. ``digests``: of its input and of what an edit made of it. ``named``: the host gave its id."""

    call: Call
    named: bool
    digests: frozenset[str]
    thread: int


def _said(feedback: Feedback | None) -> str | None:
    return None if feedback is None else feedback.reason
