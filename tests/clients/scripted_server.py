"""A server on loopback that answers as a test says, however wrongly, and keeps the requests that it got."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

Script = Callable[[Request, int], Response]
"""Answers a request; its number starts from 1."""


class Server(NamedTuple):
    """A running server: its origin, and the requests so far."""

    origin: str
    received: list[Request]

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"


class _Quiet(WSGIRequestHandler):
    def log(self, *_: object) -> None:
        pass


def reply(body: Any, status: int = 200, **headers: str) -> Response:
    """Make a response of bytes, of an iterator of bytes, or of JSON; in the headers' names `_` stands for `-`."""
    content = body if isinstance(body, bytes | Iterator) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(content, status, named, content_type="application/json")


def error(status: int, code: str = "", **headers: str) -> Response:
    """Make a response with an Error object."""
    return reply({"code": code, "message": "Sorry.", "status": status}, status, **headers)


def reset(request: Request, _: int) -> Response:
    """Reset the connection instead of a response."""
    request.environ["werkzeug.socket"].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise ConnectionResetError


def forward(origin: str, request: Request) -> Response:
    """Answer as the service at an origin does, which believes that it was asked by the name of this server."""
    answer = httpx.request(
        request.method, origin + request.full_path, headers=dict(request.headers), content=request.data, trust_env=False
    )
    dropped = {"connection", "content-length", "transfer-encoding", "date", "server"}
    headers = {name: value for name, value in answer.headers.items() if name not in dropped}
    return Response(answer.content, answer.status_code, headers)


@contextmanager
def serve(script: Script) -> Iterator[Server]:
    """Run a server that answers each request as the script says."""
    received: list[Request] = []

    @Request.application
    def application(request: Request) -> Response:
        request.get_data()  # while it can be read
        received.append(request)
        return script(request, len(received))

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=_Quiet)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield Server(f"http://127.0.0.1:{server.port}", received)
    finally:
        server.shutdown()
        server.server_close()
