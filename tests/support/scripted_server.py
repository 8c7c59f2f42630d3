"""A server on loopback that answers as a test says, and keeps the requests that it got.

Compared with `make run`: `forward` returns its responses; `error` has the members of openapi.yaml's
Error, but no header of API Gateway.
"""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx2
import trustme
from werkzeug import Request, Response
from werkzeug.serving import make_server

Script = Response | list[Response] | Callable[[Request, int], Response]
"""The response to each request, or one response after the other, or a function that makes them.

The function gets the request and its number, which starts from 1.
"""


class Server(NamedTuple):
    """A running server, and the requests so far."""

    origin: str
    base_url: str
    received: list[Request]


def reply(body: Any, status: int = 200, **headers: str) -> Response:
    """Make a response of bytes, an iterator of bytes, or JSON; `_` in headers' names means `-`."""
    content = body if isinstance(body, bytes | Iterator) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(content, status, named, content_type="application/json")


def error(status: int, code: str = "", **headers: str) -> Response:
    """Make a response with an Error object."""
    return reply(
        {"code": code, "message": "Sorry.", "status": status}, status, **headers
    )


def hang_up(request: Request, _: int) -> Response:
    """Close the connection instead of responding."""
    request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError


def forward(origin: str, request: Request) -> Response:
    """Return what the service at an origin answers to the same request under this server's name."""
    url, headers = origin + request.full_path, dict(request.headers)
    answer = httpx2.request(request.method, url, headers=headers, content=request.data)
    return Response(answer.content, answer.status_code, dict(answer.headers))


@contextmanager
def serve(
    script: Script, certificate: trustme.LeafCert | None = None
) -> Iterator[Server]:
    """Run a server that answers each request as the script says.

    With a certificate it is reached over TLS, as localhost.
    """
    received: list[Request] = []
    host, context = "http://127.0.0.1", None
    if certificate:
        host, context = "https://localhost", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)

    @Request.application
    def application(request: Request) -> Response:
        request.get_data()  # while it can be read
        received.append(request)
        match script:
            case Response():
                return script
            case list():
                return script[len(received) - 1]
        return script(request, len(received))

    server = make_server(
        "127.0.0.1", 0, application, threaded=True, ssl_context=context
    )
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    origin = f"{host}:{server.port}"
    try:
        yield Server(origin, f"{origin}/v1", received)
    finally:
        server.shutdown()
        server.server_close()
