"""A server on loopback that answers as a test says, however wrongly, and keeps the requests that it got."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx


@dataclass(frozen=True)
class Received:
    """A request: its number from 1 on, and what it carried."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """A response. A body of bytes is sent as it is, an iterator piece by piece, anything else as JSON."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_s: float = 0


RESET = Reply(0)
"""No response: the connection is reset."""


@dataclass
class Server:
    """A running server: its origin, and the requests so far."""

    origin: str
    received: list[Received]

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"


def error(status: int, code: str = "", **headers: str) -> Reply:
    """Make an Error object; in the headers' names `_` stands for `-`."""
    body = {"code": code, "message": "Sorry.", "status": status}
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def forward(origin: str) -> Callable[[Received], Reply]:
    """Answer as the service at an origin does, which believes that it was asked by the name of this server."""

    def reply(request: Received) -> Reply:
        response = httpx.request(
            request.method, origin + request.path, headers=dict(request.headers), content=request.body, trust_env=False
        )
        dropped = {"connection", "content-length", "transfer-encoding", "date", "server"}
        headers = {name: value for name, value in response.headers.items() if name not in dropped}
        return Reply(response.status_code, response.content, headers)

    return reply


class _Handler(BaseHTTPRequestHandler):
    script: Callable[[Received], Reply]
    received: list[Received]
    lock = threading.Lock()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        with self.lock:
            request = Received(len(self.received) + 1, self.command, self.path, dict(self.headers), body)
            self.received.append(request)
        reply = self.script(request)
        time.sleep(reply.wait_s)
        if reply is RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.shutdown(socket.SHUT_RD)
            return
        content = reply.body if isinstance(reply.body, bytes | Iterator) else json.dumps(reply.body).encode()
        headers = {"Content-Type": "application/json", **reply.headers}
        if isinstance(content, bytes):
            headers, content = {"Content-Length": str(len(content)), **headers}, iter([content])
        self.send_response(reply.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # the client has seen enough
            self.wfile.writelines(content)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve(script: Callable[[Received], Reply]) -> Iterator[Server]:
    """Run a server that answers each request as the script says."""
    received: list[Received] = []
    handler = type("Handler", (_Handler,), {"script": staticmethod(script), "received": received})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http_server:
        threading.Thread(target=http_server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield Server(f"http://127.0.0.1:{http_server.server_port}", received)
        finally:
            http_server.shutdown()
