"""``QuestionServer``: open questions as server-sent events on 127.0.0.1, and answers to them, for a page or another program.

Whoever asks must name this server as its host (so that no name that resolves here serves as a way in), come from no other page, and
hold the token, or the cookie that a one-time link was exchanged for. Nothing that was answered is ever sent out again or logged.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, Self
from urllib.parse import parse_qs

from safety.adapters.questions import AlreadyAnswered, BadAnswer, NoQuestion, Questions

log = logging.getLogger(__name__)

BODY_MAX = 1 << 20
DRAINED_MAX = 8 << 20  # what is read away of a body that is refused, so that its sender gets to read why
CONNECTIONS_MAX = 64
STREAMS_MAX = 32  # of them, so that there is always room for an answer
READ_S = 10.0  # in which a request must have come whole
WRITE_S = 10.0
HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
HOME = ("text/plain; charset=utf-8", b"git-safety: open questions are at /events, answers go to /answers/ID\n")
_ERRORS: Mapping[type[Exception], int] = {BadAnswer: 400, NoQuestion: 404, AlreadyAnswered: 409}


class QuestionServer(Questions):
    """Runs between ``start`` and ``stop``, or as a context manager. ``pages`` are served as they are, by path, as ``(type, bytes)``."""

    def __init__(
        self,
        *,
        grace_s: float = 5.0,
        heartbeat_s: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
        pages: Mapping[str, tuple[str, bytes]] | None = None,
    ) -> None:
        super().__init__(grace_s=grace_s, clock=clock)
        self.heartbeat_s = heartbeat_s
        self.pages = {"/": HOME, **(pages or {})}
        self.token = secrets.token_urlsafe(32)
        self.port = 0
        self._cookie = secrets.token_urlsafe(32)
        self._links: set[str] = set()
        self._streams = threading.BoundedSemaphore(STREAMS_MAX)
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, float | None] = {}  # and until when their request may take
        self._threads: list[threading.Thread] = []
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def link(self) -> str:
        """An address that opens the page in one browser, once."""
        ticket = secrets.token_urlsafe(32)
        with self._lock:
            self._links.add(ticket)
        return f"{self.url}/?token={ticket}"

    def start(self) -> None:
        """Listens, on another port each time; questions are put here again after a ``stop``."""
        self.begin()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS_MAX)
        self._listener.setblocking(False)  # who hung up before it was taken must not be waited for
        self.port = self._listener.getsockname()[1]
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, name="questions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Withdraws what is open, ends every connection and waits for their threads. Where it does not run, nothing."""
        if self._thread is None:
            return
        self.end()
        self._wake.send(b"x")
        self._thread.join()
        self._thread = None
        with self._lock:
            for client in self._clients:
                _hang_up(client)
        for thread in self._threads:
            thread.join()
        self._wake.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- connections -------------------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        """Takes connections, up to the limit, and hangs up on those whose request does not come to its end."""
        with self._listener, self._woken, selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                with self._lock:
                    reading = any(until is not None for until in self._clients.values())
                ready = {key.fileobj for key, _ in selector.select(1.0 if reading else None)}
                if self._woken in ready:
                    return
                with self._lock:
                    for client, until in self._clients.items():
                        if until is not None and until < time.monotonic():
                            _hang_up(client)
                if self._listener in ready:
                    with suppress(OSError, RuntimeError):  # gone again, or no descriptor or thread is left: the next one may fit
                        self._take(self._listener.accept()[0])

    def _take(self, client: socket.socket) -> None:
        with self._lock:
            if full := len(self._clients) >= CONNECTIONS_MAX:
                client.close()
            else:
                self._clients[client] = time.monotonic() + READ_S
        if full:
            return
        thread = threading.Thread(target=self._serve, args=(client,), name="questions-client", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._forget(client)
            raise
        self._threads = [*(each for each in self._threads if each.is_alive()), thread]

    def _serve(self, client: socket.socket) -> None:
        try:
            _Request(client, self)
        except OSError:  # the client is gone, or too slow
            pass
        finally:
            self._forget(client)

    def _forget(self, client: socket.socket) -> None:
        with self._lock:
            del self._clients[client]
        _hang_up(client)
        client.close()

    def has_read(self, client: socket.socket) -> None:
        with self._lock:
            self._clients[client] = None

    # -- who may ask -------------------------------------------------------------------------------------------------------------

    @property
    def cookie_name(self) -> str:
        """With the port: a browser hands the cookies of 127.0.0.1 to every server there."""
        return f"git_safety_{self.port}"

    def cookie_for(self, ticket: str) -> str:
        """The cookie that a link's ticket is exchanged for; empty if there is no such ticket, or no more."""
        with self._lock:
            known = [each for each in self._links if _same(ticket, each)]
            self._links.difference_update(known)
        return f"{self.cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict" if known else ""

    def who(self, authorization: str, cookies: str) -> str:
        """Who asks, in words; empty if nobody that we know."""
        if _same(authorization, f"Bearer {self.token}"):
            return "another program"
        pairs = [part.strip().partition("=") for part in cookies.split(";")]
        return "the page" if any(name == self.cookie_name and _same(value, self._cookie) for name, _, value in pairs) else ""


class _Refused(Exception):
    def __init__(self, status: int, why: str, **more: Any) -> None:
        super().__init__(why)
        self.status, self.body = status, {"error": why, **more}


class _Request(BaseHTTPRequestHandler):
    """One request on one connection; the stream of events is one that does not end."""

    protocol_version = "HTTP/1.1"
    timeout = WRITE_S
    server: QuestionServer  # type: ignore[assignment]

    def __init__(self, client: socket.socket, server: QuestionServer) -> None:
        super().__init__(client, ("127.0.0.1", 0), server)  # type: ignore[arg-type]

    def handle(self) -> None:
        self.handle_one_request()

    def do_GET(self) -> None:
        self._guarded(self._get)

    def do_POST(self) -> None:
        self._guarded(self._post)

    # -- the two methods ---------------------------------------------------------------------------------------------------------

    def _get(self) -> None:
        self.server.has_read(self.connection)
        path, _, query = self.path.partition("?")
        if path == "/" and (tickets := parse_qs(query, max_num_fields=4).get("token")):
            cookie = self.server.cookie_for(tickets[0])
            if not cookie:
                raise _Refused(401, "this link has been used, or never was one; ask for a new one")
            return self._send(303, "text/plain", b"", {"Location": "/", "Set-Cookie": cookie})
        self._known()
        if path == "/events":
            return self._stream()
        if path not in self.server.pages:
            raise _Refused(404, "there is nothing here; events are at /events, answers go to /answers/ID")
        return self._send(200, *self.server.pages[path])

    def _post(self) -> None:
        by = self._known()
        length = self._length()
        found = re.fullmatch(r"/answers/(q[0-9]{1,12})", self.path)
        if self.headers.get_content_type() != "application/json":
            raise _Refused(415, "an answer is sent as application/json")
        body, self.unread = self.rfile.read(length), 0
        self.server.has_read(self.connection)
        try:
            answer = json.loads(body) if len(body) == length else None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise _Refused(400, "an answer is one JSON object")
        if not found:
            raise _Refused(404, "answers go to /answers/ID, with the id of a question")
        try:
            question = self.server.answer(found[1], answer, by)
        except (BadAnswer, NoQuestion, AlreadyAnswered) as error:
            more = error.closed if isinstance(error, AlreadyAnswered) else {}
            raise _Refused(_ERRORS[type(error)], error.message, **more) from None
        self._say(200, {"id": question.id, "how": question.how, "by": question.by})

    def _stream(self) -> None:
        """Sends what there is and what comes, until the client goes or the server ends; a comment now and then keeps it open."""
        after = self.headers.get("Last-Event-ID", "")
        if not self.server._streams.acquire(blocking=False):
            raise _Refused(503, "there are too many streams open already")
        wake, woken = socket.socketpair()
        wake.setblocking(False)

        def waken() -> None:
            with suppress(BlockingIOError):  # it has been woken often enough
                wake.send(b"x")

        with wake, woken, selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            feed = self.server.follow(waken, int(after) if re.fullmatch("[0-9]{1,15}", after) else None)
            try:
                self._head(200, "text/event-stream; charset=utf-8", {})
                while True:
                    while feed.events:
                        number, event, data = feed.events.popleft()
                        name = f"id: {number}\n" if number else ""
                        self.wfile.write(f"{name}event: {event}\ndata: {json.dumps(data)}\n\n".encode("ascii"))
                    ready = {key.fileobj for key, _ in selector.select(self.server.heartbeat_s)}
                    if self.connection in ready:  # it says nothing on a stream: it is gone
                        return
                    if woken in ready:
                        woken.recv(4096)
                    else:
                        self.wfile.write(b": still here\n\n")
            finally:
                self.server.leave(feed)
                self.server._streams.release()

    # -- checks ------------------------------------------------------------------------------------------------------------------

    def _guarded(self, act: Callable[[], None]) -> None:
        given = self.headers.get("Content-Length", "")
        self.unread = int(given) if self.command == "POST" and re.fullmatch("[0-9]{1,15}", given) else 0
        try:
            self._from_here()
            act()
        except _Refused as refused:
            self._say(refused.status, refused.body)
            self._drain()
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - the mouth: a client gets a sentence, and no text of the error may hold an answer
            log.error("the question server failed: %s", type(error).__name__)
            self._say(500, {"error": "the question server failed"})

    def _from_here(self) -> None:
        """Refuses what names another host or comes from another page."""
        hosts = (f"127.0.0.1:{self.server.port}", f"localhost:{self.server.port}")
        named = self.headers.get_all("Host") or []
        if len(named) != 1 or named[0].lower() not in hosts:
            raise _Refused(403, f"this is {hosts[0]} and answers to no other name")
        if self.headers.get("Origin") not in (None, f"http://{named[0].lower()}"):
            raise _Refused(403, "another page may not ask here")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not self.path.startswith("/?token="):
            raise _Refused(403, "another page may not ask here")

    def _known(self) -> str:
        by = self.server.who(self.headers.get("Authorization", ""), self.headers.get("Cookie", ""))
        if not by:
            raise _Refused(401, "a token is needed: Authorization: Bearer TOKEN, or open the link that was printed")
        if by == "the page" and self.command == "POST" and self.headers.get("Origin") is None:
            raise _Refused(403, "a page says where it comes from")
        return by

    def _length(self) -> int:
        if self.headers.get("Transfer-Encoding") is not None or not self.unread:
            raise _Refused(411, "an answer needs a Content-Length")
        if self.unread > BODY_MAX:
            raise _Refused(413, f"an answer has at most {BODY_MAX} bytes")
        return self.unread

    def _drain(self) -> None:
        """Reads away what is left of a body, since a connection that is closed before takes the answer with it."""
        left = self.unread if self.unread <= DRAINED_MAX else 0
        if left:
            self.connection.shutdown(socket.SHUT_WR)
        while left > 0 and (read := self.rfile.read1(min(left, 1 << 16))):
            left -= len(read)

    # -- answers -----------------------------------------------------------------------------------------------------------------

    def _say(self, status: int, body: Mapping[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(body).encode("ascii"))

    def _send(self, status: int, kind: str, body: bytes, more: Mapping[str, str] | None = None) -> None:
        self._head(status, kind, {"Content-Length": str(len(body)), **(more or {})})
        self.wfile.write(body)

    def _head(self, status: int, kind: str, more: Mapping[str, str]) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Type": kind, **HEADERS, **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the parser refuses, in our form; its own texts repeat what was sent."""
        status = 405 if code == 501 else code
        why = {405: "only GET and POST are known here", 414: "the address is too long", 431: "there are too many headers"}
        self._send(status, "application/json", json.dumps({"error": why.get(status, "this is no request")}).encode("ascii"),
                   {"Allow": "GET, POST"} if status == 405 else None)  # fmt: skip

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: addresses hold tickets."""


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), known.encode())


def _hang_up(client: socket.socket) -> None:
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
