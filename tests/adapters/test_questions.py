"""Questions answered by another program: who may ask and answer, what an answer may be, and what becomes of a question."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from safety.adapters.question_server import QuestionServer
from safety.hooks import ConfirmationResult, HookRegistry, elicit, get_confirmation
from safety.hooks.answers import ElicitationRequest, ElicitationResponse, FormField
from safety.hooks.events import HookType
from safety.types import Decision
from tests.support.questions import Beside, Follower, Reply, answer, send


def sockets() -> list[str]:
    folder = Path("/proc/self/fd")
    return sorted(os.readlink(each) for each in folder.iterdir() if os.path.islink(each)) if folder.exists() else []


def of_sockets(found: list[str]) -> set[str]:
    return {each for each in found if each.startswith("socket:")}


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """After each test no thread runs and no socket is open that was not before."""
    threads, before = set(threading.enumerate()), of_sockets(sockets())
    yield
    assert set(threading.enumerate()) <= threads
    assert of_sockets(sockets()) <= before


@pytest.fixture
def server() -> Iterator[QuestionServer]:
    with QuestionServer(grace_s=0) as server:
        yield server


def session(id: str = "s1", guard: Decision | None = None) -> Any:
    """What `attach` needs of a session, with a guard that asks about everything."""
    hooks = HookRegistry()
    decision = guard or Decision("ask", "loses data/raw.bin", unrecoverable=True)
    hooks.register("guard", HookType.TOOL_CONFIRM, lambda tool_use, preview, workspace: decision, 150, role="guard")
    return SimpleNamespace(id=id, hooks=hooks)


def ask(session: Any, content: str = "rm -rf data") -> Beside[ConfirmationResult]:
    use = SimpleNamespace(tool="shell", content=content)
    return Beside(get_confirmation, use, registry=session.hooks)


def test_a_call_is_confirmed(server: QuestionServer) -> None:
    """The question has what is lost, and the answer is a person's: it counts for what nothing brings back."""
    one = session()
    server.attach(one)
    with Follower(server) as tab:
        asked = ask(one)
        question = tab.next("question")
        assert answer(server, question["id"], action="confirm").json == {
            "id": question["id"],
            "how": "confirm",
            "by": "another program",
        }
        assert asked.result() == ConfirmationResult.confirm(by_user=True)
        assert tab.next("answered") == {"id": question["id"], "session": "s1", "how": "confirm", "by": "another program"}
    assert question == {
        "id": "q1", "kind": "confirm", "session": "s1", "workspace": "", "tool": "shell", "call": "", "text": "rm -rf data", "input": "",
        "paths": [], "cut": False, "reason": "loses data/raw.bin", "unrecoverable": True, "actions": ["confirm", "skip", "edit"],
        "age_s": question["age_s"], "deadline_s": None,
    }  # fmt: skip


def test_what_each_answer_comes_to(server: QuestionServer) -> None:
    """Skipped with words for the model, edited, and let through for the next two; the third is asked about again."""
    one = session(guard=Decision("ask", "speaks to the network"))
    server.attach(one)
    with Follower(server) as tab:

        def answered(**body: Any) -> ConfirmationResult:
            asked = ask(one)
            assert answer(server, tab.next("question")["id"], **body).status == 200
            tab.next("answered")
            return asked.result()

        assert answered(action="skip", message="use the staging host") == ConfirmationResult.skip(
            "use the staging host", by_user=True
        )
        assert answered(action="skip") == ConfirmationResult.skip("Declined by the user", by_user=True)
        assert answered(action="auto", count=2) == ConfirmationResult.confirm(by_user=True)
        assert [ask(one).result(), ask(one).result()] == [ConfirmationResult.confirm()] * 2
        asked = ask(one)
        assert answer(server, tab.next("question")["id"], action="edit", content="ls").status == 200
        tab.next("answered")
        again = tab.next("question")
        assert again["text"] == "ls"
        answer(server, again["id"], action="confirm")
        assert asked.result() == ConfirmationResult.edit("ls", by_user=True)


def test_auto_is_never_offered_for_what_nothing_brings_back(server: QuestionServer) -> None:
    """Not offered, refused when it comes all the same, and one that was given before does not count."""
    harmless, grave = Decision("ask", "speaks"), Decision("ask", "loses", unrecoverable=True)
    decisions = [harmless, grave]
    one = session()
    one.hooks.register("guard", HookType.TOOL_CONFIRM, lambda tool_use, preview, workspace: decisions.pop(0), 150, role="guard")
    server.attach(one)
    with Follower(server) as tab:
        asked = ask(one)
        answer(server, tab.next("question")["id"], action="auto")
        tab.next("answered")
        assert asked.result().action == "confirm"
        asked = ask(one)
        question = tab.next("question")
        assert "auto" not in question["actions"]
        assert answer(server, question["id"], action="auto").status == 400
        answer(server, question["id"], action="skip")
        assert asked.result() == ConfirmationResult.skip("Declined by the user", unrecoverable=True, by_user=True)


def test_snapshot_first(server: QuestionServer) -> None:
    """It is taken in the thread that waits; where it cannot be taken the question comes again and says why."""
    one = session()
    why = ["the disk is full", ""]
    taken: list[tuple[str, str]] = []

    def snapshot(tool_use: Any) -> str:
        taken.append((tool_use.content, threading.current_thread().name))
        return why.pop(0)

    server.attach(one, snapshot=snapshot)
    with Follower(server) as tab:
        asked = ask(one)
        answer(server, tab.next("question")["id"], action="snapshot")
        tab.next("answered")
        again = tab.next("question")
        assert again["problem"] == "It could not be taken into a snapshot: the disk is full"
        answer(server, again["id"], action="snapshot")
        assert asked.result() == ConfirmationResult.confirm(by_user=True)
    assert taken == [("rm -rf data", asked.thread.name)] * 2


def test_only_a_guards_question_is_put(server: QuestionServer) -> None:
    """A call that nobody objects to runs unasked; with ``every`` it is asked about."""
    one = session(guard=Decision())
    server.attach(one)
    with Follower(server) as tab:
        assert ask(one).result() == ConfirmationResult.confirm()
        server.attach(one, every=True)
        asked = ask(one)
        question = tab.next("question")
        assert (question["reason"], question["unrecoverable"]) == ("", False)
        answer(server, question["id"], action="skip", message="no")
        assert asked.result() == ConfirmationResult.skip("no", by_user=True)


# -- nobody there, and who else is there -----------------------------------------------------------------------------------------


def test_without_a_follower_the_terminal_is_asked(server: QuestionServer) -> None:
    """Nobody connected, detached or ended: the handler has no opinion, and the next one down answers."""
    one = session()
    one.hooks.register("terminal", HookType.TOOL_CONFIRM, lambda *_: ConfirmationResult.skip("typed n", by_user=True), 0)
    server.attach(one)
    assert ask(one).result().message == "typed n"
    with Follower(server):
        server.detach(one)
        assert ask(one).result().message == "typed n"
        server.attach(one)
        server.end()
        assert ask(one).result().message == "typed n"


def test_first_answer_wins(server: QuestionServer) -> None:
    """Of two tabs the second gets a 409 that says who answered what, and both lose the card."""
    one = session()
    server.attach(one)
    with Follower(server) as tab, Follower(server) as other:
        asked = ask(one)
        question = tab.next("question")
        assert other.next("question")["id"] == question["id"]
        assert server.answer(question["id"], {"action": "skip"}, "the terminal").how == "skip"
        late = answer(server, question["id"], action="confirm")
        assert (late.status, late.json) == (409, {"error": "q1 is closed already: skip, by the terminal", **tab.next("answered")})
        assert other.next("answered")["by"] == "the terminal"
        assert asked.result().action == "skip"


def test_the_quickest_of_many_answers_counts(server: QuestionServer) -> None:
    """Eight at once: one is taken, and it is the one that counts."""
    one = session()
    server.attach(one)
    with Follower(server) as tab:
        asked = ask(one)
        question = tab.next("question")
        sent = [Beside(answer, server, question["id"], action="skip", message=f"no {number}") for number in range(8)]
        statuses = [each.result().status for each in sent]
        assert sorted(statuses) == [200] + [409] * 7
        assert asked.result().message == f"no {statuses.index(200)}"


def test_reconnecting_gives_what_is_open(server: QuestionServer) -> None:
    """A new tab has every open question; one that comes back hears besides what was answered while it was gone."""
    one = session()
    server.attach(one)
    with Follower(server) as tab:
        first = ask(one, "first")
        with Follower(server) as leaving:
            cards = [leaving.next("question")["id"]]
            last = leaving.last
        second = ask(one, "second")
        tab.next("question")
        cards.append(tab.next("question")["id"])
        answer(server, cards[0], action="skip")
        first.result()
        with Follower(server, last) as back:
            assert back.open == cards[1:]
            assert back.next("answered")["id"] == cards[0]
            assert back.next("question")["id"] == cards[1]
        with Follower(server) as fresh:
            assert (fresh.open, fresh.next("question")["text"]) == (cards[1:], "second")
        with Follower(server, "not a number") as odd:
            assert odd.open == cards[1:]
        answer(server, cards[1], action="confirm")
        second.result()


def test_question_outlives_one_of_two_tabs(server: QuestionServer) -> None:
    """The other tab answers; when the last one goes, the question is the terminal's."""
    one = session()
    one.hooks.register("terminal", HookType.TOOL_CONFIRM, lambda *_: ConfirmationResult.skip("typed n", by_user=True), 0)
    server.attach(one)
    with Follower(server) as tab:
        with Follower(server) as other:
            asked = ask(one)
            other.next("question")
        answer(server, tab.next("question")["id"], action="confirm")
        tab.next("answered")
        assert asked.result().action == "confirm"
        asked = ask(one)
        question = tab.next("question")
    assert asked.result().message == "typed n"
    late = answer(server, question["id"], action="confirm")
    assert (late.status, late.json["how"]) == (409, "left")


def test_page_that_is_loaded_again_keeps_the_question() -> None:
    """Within the grace period a question waits for a follower, also one that is asked meanwhile."""
    one = session()
    with QuestionServer(grace_s=3600) as server:
        server.attach(one)
        with Follower(server) as tab:
            asked = ask(one, "first")
            tab.next("question")
        second = ask(one, "second")
        with Follower(server) as back:
            cards = {question["text"]: question["id"] for question in (back.next("question") for _ in range(2))}
            answer(server, cards["first"], action="skip", message="no")
            answer(server, cards["second"], action="confirm")
            assert [asked.result().action, second.result().action] == ["skip", "confirm"]


def test_deadline_ends_in_a_no() -> None:
    """Never in a yes, and not before its time: the call is skipped, and the model hears that nobody answered."""
    now = [100.0]
    one = session()
    with QuestionServer(grace_s=0, clock=lambda: now[0]) as server:
        server.attach(one, deadline_s=60)
        with Follower(server) as tab:
            asked = ask(one)
            question = tab.next("question")
            assert question["deadline_s"] == 60
            now[0] = 159.0
            with Follower(server) as other:
                later = other.next("question")
                assert (later["deadline_s"], later["age_s"]) == (1, 59)
            now[0] = 160.0
            with Follower(server):  # somebody who comes makes the one that waits look at the clock
                assert tab.next("answered")["how"] == "expired"
            assert asked.result() == ConfirmationResult.skip("Nobody answered within 60 s, so it was not run", unrecoverable=True)
            assert answer(server, question["id"], action="confirm").json["how"] == "expired"
            asked_for = Beside(elicit, ElicitationRequest("text", "Name?"), registry=one.hooks)
            tab.next("question")
            now[0] = 220.0
            with Follower(server):
                assert asked_for.result().cancelled


def test_deadline_by_the_real_clock() -> None:
    """The one that waits wakes by itself."""
    one = session()
    with QuestionServer() as server:
        server.attach(one, deadline_s=0.05)
        with Follower(server) as tab:
            assert ask(one).result().message == "Nobody answered within 0.05 s, so it was not run"
            tab.next("question")
            assert tab.next("answered")["by"] == "nobody"


def test_server_that_ends_gives_up_its_questions() -> None:
    """With a question open and tabs connected: the terminal is asked, the streams end, and nothing stays."""
    one = session()
    with QuestionServer() as server:
        server.attach(one)
        tab, other = Follower(server), Follower(server)
        asked = ask(one)
        tab.next("question")
        idle = socket.create_connection(("127.0.0.1", server.port))
        half = socket.create_connection(("127.0.0.1", server.port))
        half.sendall(b"POST /answers/q1 HTTP/1.1\r\nContent-Length: 5\r\n")
    assert asked.result().message == "loses data/raw.bin"  # nobody else to answer what the guard asks
    assert tab.ended() and other.ended()
    for each in (tab, other, idle, half):
        each.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))


def test_server_that_is_started_again() -> None:
    """It puts questions as before; a stop of one that does not run does nothing."""
    server = QuestionServer()
    server.stop()
    one = session()
    server.attach(one)
    for _ in range(2):
        with server, Follower(server) as tab:
            asked = ask(one)
            answer(server, tab.next("question")["id"], action="confirm")
            assert asked.result() == ConfirmationResult.confirm(by_user=True)
        server.stop()


def test_detached_session_takes_its_questions_with_it(server: QuestionServer) -> None:
    """Those of another session stay."""
    one, two = session("one"), session("two")
    server.attach(one)
    server.attach(two)
    with Follower(server) as tab:
        asked = {tab_id: ask(each) for tab_id, each in (("one", one), ("two", two))}
        cards = {question["session"]: question["id"] for question in (tab.next("question") for _ in range(2))}
        server.detach(one)
        assert tab.next("answered") == {"id": cards["one"], "session": "one", "how": "withdrawn", "by": "the session"}
        assert asked["one"].result().action == "skip"
        answer(server, cards["two"], action="confirm")
        assert asked["two"].result().action == "confirm"


def test_interrupt_withdraws_the_question(server: QuestionServer) -> None:
    """Ctrl-C in the thread that waits: a call is denied, what the agent asked is interrupted, and the card goes."""
    one = session()
    server.attach(one)

    def interrupted_when_asked(tab: Follower) -> str:
        tab.next("question")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return str(tab.next("answered")["how"])

    with Follower(server) as tab:
        client = Beside(interrupted_when_asked, tab)
        result = get_confirmation(SimpleNamespace(tool="shell", content="x"), registry=one.hooks)
        assert (result.action, result.message) == ("skip", "interrupted by the user")
        assert client.result() == "withdrawn"
        client = Beside(interrupted_when_asked, tab)
        with pytest.raises(KeyboardInterrupt):
            elicit(ElicitationRequest("text", "Name?"), registry=one.hooks)
        assert client.result() == "withdrawn"


# -- what the agent asks -----------------------------------------------------------------------------------------------------------

FORM = ElicitationRequest(
    "form",
    "Deploy",
    fields=(
        FormField("host", "Host", options=("a", "b"), type="choice"),
        FormField("port", "Port", type="number", default="80"),
        FormField("dry", "Dry run", type="boolean", default="yes"),
        FormField("key", "Key", type="secret", default="hunter1"),
        FormField("note", "Note", required=False),
    ),
)
FORM_VALUES = {"host": "b", "port": 80, "dry": True, "key": "<secret provided>", "note": ""}


@pytest.mark.parametrize(
    ("request_", "body", "response"),
    [
        (ElicitationRequest("text", "Name?"), {"value": "Ada"}, ElicitationResponse.text("Ada")),
        (ElicitationRequest("text", "Name?", default="Bo"), {}, ElicitationResponse.text("Bo")),
        (ElicitationRequest("text", "Name?"), {"action": "cancel"}, ElicitationResponse.cancel()),
        (ElicitationRequest("choice", "Which?", ("a", "b")), {"value": "b"}, ElicitationResponse.text("b")),
        (ElicitationRequest("multi_choice", "Which?", ("a", "b")), {"values": ["b", "b"]}, ElicitationResponse.multi(("b",))),
        (ElicitationRequest("multi_choice", "Which?", ("a", "b")), {"values": []}, ElicitationResponse.multi(())),
        (ElicitationRequest("confirmation", "Sure?"), {"value": False}, ElicitationResponse.text("no")),
        (ElicitationRequest("secret", "Key?"), {"value": "hunter2"}, ElicitationResponse.text("hunter2", sensitive=True)),
        (
            FORM,
            {"fields": {"host": "b", "key": "hunter2"}},
            ElicitationResponse(json.dumps(FORM_VALUES), secrets={"key": "hunter2"}),
        ),
    ],
    ids=["text", "default", "cancel", "choice", "several", "none", "confirmation", "secret", "form"],
)
def test_what_the_agent_asks(
    server: QuestionServer,
    request_: ElicitationRequest,
    body: dict[str, Any],
    response: ElicitationResponse,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each kind of question has its answer; a secret is in no event, no reply and no log, nor is its default."""
    one = session()
    server.attach(one)
    caplog.set_level(0)
    with Follower(server) as tab:
        asked = Beside(elicit, request_, registry=one.hooks)
        question = tab.next("question")
        assert (question["kind"], question["type"], question["prompt"]) == ("elicit", request_.type, request_.prompt)
        reply = answer(server, question["id"], **body)
        late = answer(server, question["id"], **body)
        assert (reply.status, late.status) == (200, 409)
        tab.next("answered")
        assert asked.result() == response
        said = tab.raw + reply.body + late.body + caplog.text.encode() + repr(list(one.hooks.traces)).encode()
        assert b"hunter" not in said


@pytest.mark.parametrize(
    ("request_", "body", "why"),
    [
        (ElicitationRequest("text", "?"), {"value": 1}, "`value` is a text"),
        (ElicitationRequest("text", "?"), {}, "`value` is a text"),
        (ElicitationRequest("text", "?"), {"value": "\ud800"}, "half a character"),
        (ElicitationRequest("text", "?"), {"value": "a", "more": 1}, "`more` has no place"),
        (ElicitationRequest("text", "?"), {"action": "confirm"}, "answer, cancel"),
        (ElicitationRequest("choice", "?", ("a",)), {"value": "c"}, "one of the options"),
        (ElicitationRequest("choice", "?", ("a",)), {"value": ["a"]}, "one of the options"),
        (ElicitationRequest("multi_choice", "?", ("a",)), {"values": ["a", "c"]}, "some of the options"),
        (ElicitationRequest("multi_choice", "?", ("a",)), {"values": "a"}, "some of the options"),
        (ElicitationRequest("confirmation", "?"), {"value": "yes"}, "true or false"),
        (FORM, {"fields": []}, "an object"),
        (FORM, {"fields": {"host": "c", "key": "hunter2"}}, "`host` is one of its options"),
        (FORM, {"fields": {"key": "hunter2"}}, "may not be left out"),
        (FORM, {"fields": {"host": "a", "key": "hunter2", "port": "x"}}, "`port` is a number"),
        (FORM, {"fields": {"host": "a", "key": "hunter2", "port": 1e999}}, "`port` is a number"),
        (FORM, {"fields": {"host": "a", "key": ["hunter2"]}}, "`key` is a text"),
        (FORM, {"fields": {"host": "a", "key": "hunter2", "x": 1}}, "`x` has no place"),
    ],
)
def test_answers_that_do_not_fit(server: QuestionServer, request_: ElicitationRequest, body: Any, why: str) -> None:
    """Refused with a sentence that repeats no secret; the question stays open."""
    one = session()
    server.attach(one)
    with Follower(server) as tab:
        asked = Beside(elicit, request_, registry=one.hooks)
        question = tab.next("question")
        reply = answer(server, question["id"], **body)
        assert (reply.status, "hunter2" in reply.json["error"]) == (400, False)
        assert why in reply.json["error"]
        assert answer(server, question["id"], action="cancel").status == 200
        assert asked.result().cancelled


# -- the door ----------------------------------------------------------------------------------------------------------------------

WRONG: list[tuple[str, str, str, bytes, dict[str, str | None], int]] = [
    ("no token", "GET", "/events", b"", {"Authorization": None}, 401),
    ("another token", "GET", "/events", b"", {"Authorization": "Bearer x"}, 401),
    ("a token that is no text", "GET", "/events", b"", {"Authorization": "Bearer \xff\xfe"}, 401),
    ("another cookie", "GET", "/events", b"", {"Authorization": None, "Cookie": "git_safety_1=x; ; =; y"}, 401),
    ("no token to answer", "POST", "/answers/q1", b"{}", {"Authorization": None}, 401),
    ("the token in the address", "GET", "/?token=x", b"", {}, 401),
    ("a name that resolves here", "GET", "/events", b"", {"Host": "evil.test:80"}, 403),
    ("a name with our port", "POST", "/answers/q1", b"{}", {"Host": "evil.test"}, 403),
    ("no host", "GET", "/events", b"", {"Host": None}, 403),
    ("a host without port", "GET", "/events", b"", {"Host": "127.0.0.1"}, 403),
    ("a page of another server", "POST", "/answers/q1", b"{}", {"Origin": "http://127.0.0.1:1"}, 403),
    ("a page without origin", "GET", "/events", b"", {"Origin": "null"}, 403),
    ("a picture in another page", "GET", "/events", b"", {"Sec-Fetch-Site": "same-site"}, 403),
    ("nothing there", "GET", "/etc/passwd", b"", {}, 404),
    ("a way up", "GET", "/../../etc/passwd", b"", {}, 404),
    ("an address of elsewhere", "GET", "http://evil.test/events", b"", {}, 404),
    ("no question", "POST", "/answers/q999", b"{}", {}, 404),
    ("no id", "POST", "/answers/", b"{}", {}, 404),
    ("an answer to the stream", "POST", "/events", b"{}", {}, 404),
    ("put", "PUT", "/answers/q1", b"{}", {}, 405),
    ("asked by another page", "OPTIONS", "/answers/q1", b"", {"Origin": "http://evil.test"}, 405),
    ("no length", "POST", "/answers/q1", b"", {"Content-Length": None}, 411),
    ("no body", "POST", "/answers/q1", b"", {}, 411),
    ("less than nothing", "POST", "/answers/q1", b"", {"Content-Length": "-5"}, 411),
    ("pieces", "POST", "/answers/q1", b"0\r\n\r\n", {"Transfer-Encoding": "chunked"}, 411),
    ("too large", "POST", "/answers/q1", b"x" * ((1 << 20) + 1), {}, 413),
    ("far too large", "POST", "/answers/q1", b"", {"Content-Length": str(1 << 40)}, 413),
    ("a form", "POST", "/answers/q1", b"action=confirm", {"Content-Type": "text/plain"}, 415),
    ("no json", "POST", "/answers/q1", b"{", {}, 400),
    ("no object", "POST", "/answers/q1", b"[]", {}, 400),
    ("no text", "POST", "/answers/q1", b"\xff\xff", {}, 400),
    ("very deep", "POST", "/answers/q1", b"[" * 200_000, {}, 400),
    ("a very long number", "POST", "/answers/q1", b'{"action": ' + b"9" * 100_000 + b"}", {}, 400),
    ("no action", "POST", "/answers/q1", b"{}", {}, 400),
    ("another action", "POST", "/answers/q1", b'{"action": ["confirm"]}', {}, 400),
    ("an edit without text", "POST", "/answers/q1", b'{"action": "edit"}', {}, 400),
    ("an edit of half a character", "POST", "/answers/q1", b'{"action": "edit", "content": "\\ud800"}', {}, 400),
    ("a yes with more", "POST", "/answers/q1", b'{"action": "confirm", "content": "x"}', {}, 400),
    ("a message that is none", "POST", "/answers/q1", b'{"action": "skip", "message": 1}', {}, 400),
    ("no snapshot to be had", "POST", "/answers/q1", b'{"action": "snapshot"}', {}, 400),
    ("long header", "GET", "/events", b"", {"X": "x" * 70_000}, 431),
    ("many headers", "GET", "/events", b"", {f"X-{number}": "x" for number in range(200)}, 431),
    ("long address", "GET", "/" + "x" * 70_000, b"", {}, 414),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_requests_that_are_refused(
    server: QuestionServer, method: str, path: str, body: bytes, headers: dict[str, str | None], status: int
) -> None:
    """With a sentence as JSON and nothing of what was sent; the open question stays as it is."""
    one = session()
    server.attach(one)
    with Follower(server) as tab:
        asked = ask(one)
        tab.next("question")
        reply = send(server, method, path, body, headers)
        assert (reply.status, list(reply.json)) == (status, ["error"]), reply
        assert_closed_to_others(reply)
        assert answer(server, "q1", action="skip").status == 200
        assert asked.result().action == "skip"


def assert_closed_to_others(reply: Reply) -> None:
    assert not [name for name in reply.headers if name.startswith("access-control")]
    assert (reply.headers["x-content-type-options"], reply.headers["cache-control"]) == ("nosniff", "no-store")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "server" not in reply.headers
    assert b"Traceback" not in reply.body and b"evil" not in reply.body


@pytest.mark.parametrize("data", [b"\r\n\r\n", b"GET /events\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET /events HTTP/9.9\r\n\r\n"])
def test_what_is_no_request(server: QuestionServer, data: bytes) -> None:
    """Hung up on, with a sentence or without one."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(data)
        said = b""
        while part := connection.recv(4096):
            said += part
    assert b"event" not in said and b"<" not in said
    assert answer(server, "q1", action="skip").status == 404


def test_one_time_link(server: QuestionServer) -> None:
    """A link opens the page once, for a cookie that no script and no other site gets; the cookie then does what the token does."""
    bare: dict[str, str | None] = {"Authorization": None, "Sec-Fetch-Site": "none"}
    link = server.link().removeprefix(server.url)
    reply = send(server, "GET", link, b"", bare)
    cookie = reply.headers["set-cookie"]
    assert (reply.status, reply.headers["location"]) == (303, "/")
    assert cookie.split("; ")[1:] == ["Path=/", "HttpOnly", "SameSite=Strict"]
    assert_closed_to_others(reply)
    assert send(server, "GET", link, b"", bare).status == 401
    assert server.token not in cookie + link
    mine: dict[str, str | None] = {"Authorization": None, "Cookie": f"other=1; {cookie.split(';')[0]}"}
    page = send(server, "GET", "/", b"", mine)
    assert (page.status, page.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert_closed_to_others(page)
    one = session()
    server.attach(one)
    with Follower(server) as tab:
        asked = ask(one)
        tab.next("question")
        yes = b'{"action": "confirm"}'
        assert send(server, "POST", "/answers/q1", yes, mine).status == 403  # a browser says where it comes from
        assert send(server, "POST", "/answers/q1", yes, {**mine, "Origin": server.url}).json["by"] == "the page"
        assert asked.result() == ConfirmationResult.confirm(by_user=True)


def test_pages_are_served_as_they_are() -> None:
    """To whom has the token, with the same headers."""
    with QuestionServer(pages={"/app.js": ("text/javascript", b"let a = 1")}) as server:
        reply = send(server, "GET", "/app.js")
        assert (reply.status, reply.headers["content-type"], reply.body) == (200, "text/javascript", b"let a = 1")
        assert_closed_to_others(reply)
        assert send(server, "GET", "/app.js", b"", {"Authorization": None}).status == 401


def test_a_page_asks_the_host_it_came_from(server: QuestionServer) -> None:
    """Both names of ours will do, but not one for the other: somebody else may hold the port under the other one."""
    names = (f"127.0.0.1:{server.port}", f"localhost:{server.port}")
    statuses = {
        (host, origin): send(server, "GET", "/", b"", {"Host": host, "Origin": f"http://{origin}"}).status
        for host in names
        for origin in names
    }
    assert statuses == {(host, origin): 200 if host == origin else 403 for host in names for origin in names}


def test_only_this_machine_is_served(server: QuestionServer) -> None:
    """The port is one of 127.0.0.1 alone."""
    assert server._listener.getsockname()[0] == "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)


def test_names_with_markup_stay_data(server: QuestionServer) -> None:
    """Line ends, events and markup in a text are one line of JSON, and come out as they went in."""
    one = session("s\n\nevent: answered", Decision("ask", "<img src=x onerror=alert(1)>\r\n\r\ndata: {}", unrecoverable=True))
    server.attach(one)
    text = "rm '</script>\n\nevent: answered\ndata: {}\n\n\x1b[2J\x00\u2028\udcff.txt'"
    with Follower(server) as tab:
        asked = ask(one, text)
        question = tab.next("question")
        assert (question["text"], question["session"]) == (text, one.id)
        answer(server, question["id"], action="skip", message="<b>\n\ndata: x")
        tab.next("answered")
        assert asked.result().message == "<b>\n\ndata: x"


def test_long_text_is_cut_and_not_edited(server: QuestionServer) -> None:
    """What a person cannot see whole comes back whole or not at all."""
    one = session()
    server.attach(one)
    with Follower(server) as tab:
        asked = ask(one, "x" * 100_000)
        question = tab.next("question")
        assert (len(question["text"]), question["cut"], question["actions"]) == (65536, True, ["confirm", "skip"])
        answer(server, question["id"], action="skip")
        asked.result()


def test_heartbeat() -> None:
    """A comment now and then, so that nothing between takes the stream for dead."""
    with QuestionServer(heartbeat_s=0.02) as server, Follower(server) as tab:
        assert [tab.block(), tab.block()] == [{"": "still here"}] * 2


def test_slow_and_many_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that never ends its request is hung up on; too many connections are not taken, and streams leave room for answers."""
    from safety.adapters import question_server

    monkeypatch.setattr(question_server, "READ_S", 0.05)
    with QuestionServer() as server:
        for start in (b"", b"GET /ev", b"POST /answers/q1 HTTP/1.1\r\nHost: x\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
                slow.sendall(start)
                while slow.recv(4096):
                    pass
    monkeypatch.setattr(question_server, "READ_S", 60.0)
    with QuestionServer() as server:
        tabs = [Follower(server) for _ in range(question_server.STREAMS_MAX)]
        assert send(server, "GET", "/events").status == 503
        idle = [
            socket.create_connection(("127.0.0.1", server.port), timeout=60)
            for _ in range(question_server.CONNECTIONS_MAX - len(tabs))
        ]
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as one_more:
            assert one_more.recv(10) == b""
        tabs[0].close()
        idle[0].close()
        for each in (*tabs, *idle):
            each.close()


def test_program_that_forgets_to_stop_it_ends() -> None:
    """Its threads keep no process alive."""
    code = "from safety.adapters.question_server import QuestionServer as Q\nq = Q()\nq.start()\nprint(q.url)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("http://127.0.0.1:"), done.stderr
