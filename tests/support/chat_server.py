"""An endpoint of Chat Completions on 127.0.0.1 that says what it was told to say, whole or streamed, and keeps what it was asked."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}


@dataclass(frozen=True)
class Line:
    """One answer. ``status`` other than 200 is an error; ``breaks_off``: the stream ends before the reply does; ``raw``: the body."""

    text: str = ""
    calls: tuple[tuple[str, Json], ...] = ()
    status: int = 200
    breaks_off: bool = False
    raw: str = ""

    def message(self) -> Json:
        calls = [
            {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for number, (name, given) in enumerate(self.calls, 1)
        ]
        return {"role": "assistant", "content": self.text or None, **({"tool_calls": calls} if calls else {})}

    def deltas(self) -> Iterator[Json]:
        """The message in pieces, as endpoints cut it: words, a call's name before its arguments, and these in halves."""
        yield {"role": "assistant", "content": ""}
        yield from ({"content": word} for word in re.findall(r"\s*\S+|\s+$", self.text))
        for at, call in enumerate(self.message().get("tool_calls", ())):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            yield {"tool_calls": [{**call, "index": at, "function": {"name": name, "arguments": ""}}]}
            for part in (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]):
                yield {"tool_calls": [{"index": at, "function": {"arguments": part}}]}


@dataclass
class ChatServer:
    """``asked`` are the bodies of the requests, ``keys`` what they authorised themselves with."""

    base_url: str
    lines: list[Line]
    asked: list[Json] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


@contextmanager
def chat_server(lines: Sequence[Line] = (), answer: Callable[[Json], Line] | None = None) -> Iterator[ChatServer]:
    """Runs the endpoint; each request gets the next line, or what ``answer`` makes of its body."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked.append(body)
            state.keys.append(self.headers["Authorization"])
            line = state.lines.pop(0) if answer is None else answer(body)
            if line.status != 200:
                self.answer(line.status, "application/json", json.dumps({"error": {"message": line.text}}))
            elif line.raw:
                kind = "text/html" if line.raw.startswith("<") else "application/json"
                self.answer(200, "text/event-stream" if line.raw.startswith("data:") else kind, line.raw)
            elif body.get("stream"):
                self.answer(200, "text/event-stream", "".join(f"data: {piece}\n\n" for piece in self.pieces(line)))
            else:
                choice = {"index": 0, "message": line.message(), "finish_reason": "stop"}
                self.answer(200, "application/json", json.dumps({**HEAD, "choices": [choice], "usage": USAGE}))

        def pieces(self, line: Line) -> Iterator[str]:
            for delta in line.deltas():
                yield json.dumps({**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            if not line.breaks_off:
                yield json.dumps({**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
                yield json.dumps({**HEAD, "choices": [], "usage": USAGE})
            yield "[DONE]"

        def answer(self, status: int, kind: str, text: str) -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = ChatServer(f"http://127.0.0.1:{server.server_port}/v1", list(lines))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


HEAD = {"id": "x", "object": "chat.completion", "created": 0, "model": "test"}
