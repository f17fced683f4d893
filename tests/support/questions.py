"""A client of the question server: a real socket, the standard library, and a stream of events read as a browser reads it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from safety.adapters.question_server import QuestionServer

WAIT_S = 20.0
T = TypeVar("T")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def send(
    server: QuestionServer, method: str, path: str, body: bytes = b"", headers: Mapping[str, str | None] | None = None
) -> Reply:
    """One request, with the token unless the headers say otherwise; a header that is None is left out."""
    given: dict[str, str | None] = {
        "Host": f"127.0.0.1:{server.port}",
        "Authorization": f"Bearer {server.token}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value is not None)]
    return raw(server, "\r\n".join([*lines, "", ""]).encode("latin-1") + body)


def raw(server: QuestionServer, data: bytes) -> Reply:
    """What the server says to these bytes before it hangs up."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as connection:
        connection.sendall(data)
        reply = http.client.HTTPResponse(connection)
        reply.begin()
        return Reply(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())


def answer(server: QuestionServer, id: str, **body: Any) -> Reply:
    return send(server, "POST", f"/answers/{id}", json.dumps(body).encode())


class Follower:
    """One tab: follows the events. Leaving it hangs up."""

    def __init__(self, server: QuestionServer, after: str | None = None) -> None:
        self.connection = socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S)
        last = f"Last-Event-ID: {after}\r\n" if after is not None else ""
        request = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n{last}\r\n"
        self.connection.sendall(request.encode("latin-1"))
        self.stream = self.connection.makefile("rb")
        status = self.stream.readline()
        assert b" 200 " in status, status
        self.headers = list(iter(lambda: self.stream.readline().strip().decode(), ""))
        self.last = ""
        self.raw = b""
        self.open = self.next("open")["ids"]

    def block(self) -> dict[str, str]:
        """The next block of the stream by field; a comment is under the empty name."""
        found: dict[str, str] = {}
        while line := self.stream.readline().rstrip(b"\n"):
            self.raw += line + b"\n"
            name, _, value = line.decode("ascii").partition(":")
            found[name] = value.strip()
        if not found:
            raise EOFError
        self.last = found.get("id", self.last)
        return found

    def next(self, event: str) -> Any:
        """The data of the next event, which has to be this one."""
        while "" in (block := self.block()):
            pass
        assert block["event"] == event, block
        return json.loads(block["data"])

    def ended(self) -> bool:
        """Whether the server hung up; waits for it, through what it still says."""
        try:
            while self.block():
                pass
        except (EOFError, ConnectionError):
            return True
        return False

    def close(self) -> None:
        self.stream.close()
        self.connection.close()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Beside(Generic[T]):
    """A function that runs in a thread of its own, as a tool that waits for an answer does."""

    def __init__(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> None:
        self._gave: list[T] = []
        self._raised: list[BaseException] = []

        def run() -> None:
            try:
                self._gave.append(function(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                self._raised.append(error)

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def result(self) -> T:
        self.thread.join(WAIT_S)
        assert not self.thread.is_alive()
        if self._raised:
            raise self._raised[0]
        return self._gave[0]
