"""``around`` and ``aaround`` when it goes wrong: whatever ends a call, nothing stays open and POST has heard of it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from safety import session as session_module
from safety.hooks import ConfirmationResult
from safety.net import Call, Decision, Denied, HookType
from safety.runtime.open import open_session
from safety.session import Session, current_session
from tests.support.repo import RepoBuilder


@pytest.fixture
def session(repo: RepoBuilder) -> Session:
    session = open_session(os.fsencode(repo.root), repo.session, repo.env)
    session.turn_start("x")
    return session


class SessionCompleteException(Exception):
    """What a host ends a session with."""


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class Heard:
    """Handlers of PRE, TOOL_CONFIRM and POST that note what they hear, and do what they are told to."""

    def __init__(self, session: Session) -> None:
        self.post: list[str] = []
        self.confirmed: list[Mapping[str, Any]] = []
        self.session = session
        session.hooks.register("heard", HookType.TOOL_EXECUTE_POST, self._post)

    def _post(self, data: Any) -> None:
        self.post.append(str(data.error) if data.error else data.result_msgs[0].content)

    def pre(self, gives: Any) -> None:
        def handler(data: Any) -> Any:
            if isinstance(gives, BaseException):
                raise gives
            return gives() if callable(gives) else gives

        self.session.hooks.register("before", HookType.TOOL_EXECUTE_PRE, handler)

    def confirm(self, *answers: Any, priority: int = 0) -> None:
        left = list(answers)

        def handler(tool_use: Any, preview: Any, workspace: Any) -> Any:
            self.confirmed.append(tool_use.input)
            return left.pop(0) if left else None

        self.session.hooks.register("person", HookType.TOOL_CONFIRM, handler, priority)


@pytest.fixture
def heard(session: Session) -> Heard:
    return Heard(session)


def call(repo: RepoBuilder, id: str = "c1", command: str = "./step") -> Call:
    return Call(id, "shell", {"command": command}, os.fsencode(repo.root))


def assert_settled(session: Session) -> None:
    """No call is open, none is current, and no thread of one runs on."""
    state = session.sessions.load(session.id)
    assert not state.pending
    assert current_session() is None
    for each in threading.enumerate():
        if each.name == "safety-call":
            each.join(60)
            assert not each.is_alive()


# -- PRE that does not end well ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "seen", "told"),
    [
        (KeyboardInterrupt(), Denied, "interrupted by the user"),
        (SessionCompleteException("over"), SessionCompleteException, "SessionCompleteException: over"),
        (GeneratorExit("no error"), GeneratorExit, "GeneratorExit: no error"),
        (ValueError("bad"), Denied, "before could not judge this, so it does not go on: ValueError: bad"),
        (SystemExit(1), Denied, "before could not judge this, so it does not go on: SystemExit: 1"),
    ],
    ids=["ctrl-c", "complete", "no error", "error", "exit"],
)
@pytest.mark.parametrize("awaited", [False, True], ids=["around", "aaround"])
def test_pre_that_raises(
    repo: RepoBuilder, session: Session, heard: Heard, raised: BaseException, seen: type[BaseException], told: str, awaited: bool
) -> None:
    """The tool does not run, POST hears why, and no call stays open."""
    heard.pre(raised)
    with pytest.raises(seen):
        if awaited:
            asyncio.run(session.aaround(call(repo), never))
        else:
            session.around(call(repo), lambda given: pytest.fail("it ran"))
    assert heard.post == [told]
    assert_settled(session)


async def never(given: Any) -> str:
    pytest.fail("it ran")


def test_interrupt_outside_of_any_handler(
    repo: RepoBuilder, session: Session, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C that strikes between the handlers leaves nothing open either."""
    real = Session._trigger
    with monkeypatch.context() as patched:

        def trigger(self: Session, moment: HookType, *args: Any, **fields: Any) -> Any:
            if moment is HookType.TOOL_CONFIRM:
                raise KeyboardInterrupt
            return real(self, moment, *args, **fields)

        patched.setattr(Session, "_trigger", trigger)
        with pytest.raises(KeyboardInterrupt):
            session.around(call(repo), lambda given: pytest.fail("it ran"))
    assert heard.post == ["KeyboardInterrupt: "]
    assert_settled(session)


# -- the tool ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("awaited", [False, True], ids=["around", "aaround"])
def test_result_without_words(repo: RepoBuilder, session: Session, heard: Heard, awaited: bool) -> None:
    """A result or an error that cannot be written down ends the call as any other does, and a result is given."""

    def run(given: Any) -> Any:
        repo.write("a.txt", "agent\n")
        if given["command"] == "raise":
            raise Unspeakable
        return Unspeakable()

    async def arun(given: Any) -> Any:
        return run(given)

    def around(id: str, command: str) -> Any:
        given = call(repo, id, command)
        return asyncio.run(session.aaround(given, arun)) if awaited else session.around(given, run)

    assert isinstance(around("c1", "give"), Unspeakable)
    with pytest.raises(Unspeakable):
        around("c2", "raise")
    assert heard.post == ["<Unspeakable>", "Unspeakable: "]
    assert_settled(session)
    session.turn_end()
    repo.undo()
    assert repo.read("a.txt") != "agent\n"


# -- a task that is cancelled ------------------------------------------------------------------------------------------------------


def test_cancelled_during_pre(repo: RepoBuilder, session: Session, heard: Heard) -> None:
    """PRE comes to its end, the tool does not run, and the call is closed before the cancelled task goes on."""
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go_on.wait(60)

    heard.pre(slow)

    async def main() -> None:
        task = asyncio.create_task(session.aaround(call(repo), never))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        asyncio.get_running_loop().call_soon(go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert heard.post == ["it was cancelled before it ran"]

    asyncio.run(main())
    assert_settled(session)


def test_cancelled_while_a_person_is_asked(
    repo: RepoBuilder, session: Session, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task ends without waiting for the answer; a yes that comes later runs nothing and leaves nothing open."""
    monkeypatch.setattr(session_module, "CANCELLED_WAIT_S", 0.01)
    begun, answered, closed = threading.Event(), threading.Event(), threading.Event()

    def person(tool_use: Any, preview: Any, workspace: Any) -> ConfirmationResult:
        begun.set()
        answered.wait(60)
        return ConfirmationResult.confirm(by_user=True)

    session.hooks.register("person", HookType.TOOL_CONFIRM, person)
    session.hooks.register("closed", HookType.TOOL_EXECUTE_POST, lambda data: closed.set())

    async def main() -> None:
        task = asyncio.create_task(session.aaround(call(repo), never))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not heard.post

    asyncio.run(main())
    waiting = [each for each in threading.enumerate() if each.name == "safety-call"]
    answered.set()
    assert closed.wait(60)
    for each in waiting:
        each.join(60)
    assert heard.post == ["it was cancelled before it ran"]
    assert_settled(session)


def test_cancelled_during_the_tool(repo: RepoBuilder, session: Session, heard: Heard) -> None:
    """What it has written by then is its own, and undo takes it back."""

    async def run(given: Any) -> str:
        repo.write("a.txt", "agent\n")
        task.cancel()
        await asyncio.sleep(0)
        pytest.fail("it went on")

    async def main() -> None:
        nonlocal task
        task = asyncio.create_task(session.aaround(call(repo), run))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert heard.post == ["CancelledError: "]

    task: asyncio.Task[str]
    asyncio.run(main())
    assert_settled(session)
    session.turn_end()
    repo.undo()
    assert repo.read("a.txt") != "agent\n"


@pytest.mark.parametrize("times", [1, 3])
def test_cancelled_during_post(repo: RepoBuilder, session: Session, times: int) -> None:
    """However often, POST is done before the task goes on, so that the end of the turn comes after it."""
    begun, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def slow(data: Any) -> None:
        begun.set()
        go_on.wait(60)
        done.append(data.result_msgs[0].content)

    session.hooks.register("slow", HookType.TOOL_EXECUTE_POST, slow)

    async def run(given: Any) -> str:
        repo.write("a.txt", "agent\n")
        return "written"

    async def main() -> None:
        task = asyncio.create_task(session.aaround(call(repo), run))
        await asyncio.to_thread(begun.wait, 60)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert done == ["written"]

    asyncio.run(main())
    assert_settled(session)
    session.turn_end()
    repo.undo()
    assert repo.read("a.txt") != "agent\n"


# -- a question and its answer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "answer", "ran"),
    [
        (Decision("ask", "sure?"), ConfirmationResult.confirm(), True),
        (Decision("ask", "sure?"), ConfirmationResult.skip("no"), False),
        (Decision("ask", "sure?"), None, False),
        (Decision("ask", "sure?", unrecoverable=True), ConfirmationResult.confirm(), False),
        (Decision("ask", "sure?", unrecoverable=True), True, False),
        (Decision("ask", "sure?", unrecoverable=True), ConfirmationResult.confirm(by_user=True), True),
        (Decision("deny", "never"), ConfirmationResult.confirm(by_user=True), False),
    ],
)
def test_what_pre_asks_is_answered(
    repo: RepoBuilder, session: Session, heard: Heard, asked: Decision, answer: Any, ran: bool
) -> None:
    """By TOOL_CONFIRM; for what nothing brings back by a person's yes alone, and a denial by nothing."""
    heard.pre(asked)
    heard.confirm(answer)
    runs: list[Mapping[str, Any]] = []
    try:
        session.around(call(repo), lambda given: runs.append(given))
    except Denied:
        pass
    assert bool(runs) == ran
    assert_settled(session)


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        (ConfirmationResult.confirm(by_user=True), "edited"),
        (ConfirmationResult.edit("by hand", by_user=True), "by hand"),
        (ConfirmationResult.skip("no"), None),
        (None, None),
    ],
    ids=["yes", "edit", "no", "nobody"],
)
def test_an_edit_and_a_question(repo: RepoBuilder, session: Session, heard: Heard, answer: Any, given: str | None) -> None:
    """One handler edits, one asks: the person sees what was made of the call, and that is what runs."""
    heard.pre(lambda: [Decision("edit", "", {"command": "edited", "more": 1}), Decision("ask", "sure?")])
    again = ConfirmationResult.confirm(by_user=True)
    heard.confirm(answer, again)
    runs: list[Mapping[str, Any]] = []
    try:
        session.around(call(repo), lambda given: runs.append(given))
    except Denied:
        pass
    assert heard.confirmed[0] == {"command": "edited", "more": 1}
    assert runs == ([] if given is None else [{"command": given, "more": 1}])
    assert_settled(session)


def test_an_edit_of_the_person_is_judged(repo: RepoBuilder, session: Session, heard: Heard) -> None:
    """The guard looks at the edited text too: what it asks then needs an answer of its own."""
    heard.confirm(
        ConfirmationResult.edit("git push --delete origin main", by_user=True), ConfirmationResult.skip("not that", by_user=True)
    )
    with pytest.raises(Denied, match="not that"):
        session.around(call(repo, command="ls"), lambda given: pytest.fail("it ran"))
    assert [each["command"] for each in heard.confirmed] == ["ls", "git push --delete origin main"]
    assert_settled(session)


def test_an_edit_that_never_settles(repo: RepoBuilder, session: Session, heard: Heard) -> None:
    """Five edits are enough; one without a place is refused, one that changes nothing runs."""
    heard.confirm(*(ConfirmationResult.edit(f"ls {number}", by_user=True) for number in range(9)))
    with pytest.raises(Denied, match="never settled"):
        session.around(call(repo), lambda given: pytest.fail("it ran"))
    heard.confirm(ConfirmationResult.edit("x", by_user=True))
    with pytest.raises(Denied, match="no place"):
        session.around(Call("c2", "deploy", {"host": "a"}, os.fsencode(repo.root)), lambda given: pytest.fail("it ran"))
    heard.confirm(*[ConfirmationResult.edit("ls", by_user=True)] * 2)
    assert session.around(call(repo, "c3"), lambda given: given["command"]) == "ls"
    assert_settled(session)


def test_calls_are_numbered_without_gaps(repo: RepoBuilder, session: Session, heard: Heard) -> None:
    """A call that is captured again after its question keeps its number, and one that did not run gives its own back."""
    heard.confirm(
        *[ConfirmationResult.confirm(by_user=True)] * 2, ConfirmationResult.skip("no"), ConfirmationResult.confirm(by_user=True)
    )

    def run(given: Mapping[str, Any]) -> None:
        repo.append("a.txt", "agent\n")

    for id in ("c1", "c2", "c3", "c4"):
        try:
            session.around(call(repo, id), run)
        except Denied as refused:
            assert (id, str(refused)) == ("c3", "no")
    session.turn_end()
    log = repo.must("log", "-v").out
    assert all(f"t1.{number}" in log for number in (1, 2, 3)) and "t1.4" not in log, log
