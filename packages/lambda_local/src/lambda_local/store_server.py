"""The embedded store over HTTP, for functions in containers."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

from lambda_local.dynamodb import Database

_MAX_BODY_BYTES = 16 * 1024 * 1024  # of any request to DynamoDB
_REFUSED = b'{"__type": "com.amazon.coral.service#UnrecognizedClientException", "message": ""}'


@contextmanager
def serve(database: Database, address: str, idle_s: float = 30) -> Iterator[tuple[int, str]]:
    """Answer DynamoDB requests at an address; give the port and the access key id that is accepted.

    The id is as hard to guess as a secret key, so signatures are not verified. A connection ends
    after so many seconds without a byte; a container is idle for less between two calls.
    """
    access_key_id = secrets.token_hex(16)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept
        timeout = idle_s
        disable_nagle_algorithm = True
        wbufsize = -1  # headers and body in one packet

        def do_POST(self) -> None:
            if f"Credential={access_key_id}/" not in self.headers.get("Authorization", ""):
                self.close_connection = True  # the body is not read
                self.respond(HTTPStatus.BAD_REQUEST, {}, _REFUSED)
                return
            size = int(self.headers["Content-Length"])
            if size > _MAX_BODY_BYTES:
                self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)  # and the connection ends
                return
            body = self.rfile.read(size)
            # As much of a request as the store reads.
            sent: Any = SimpleNamespace(url=self.path, body=body)
            answer = database.answer(self.headers["X-Amz-Target"], sent)
            self.respond(answer.status_code, dict(answer.headers), answer.content)

        def respond(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response_only(status)
            for name, value in (headers | {"Content-Length": str(len(content))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    with _server(address, Handler) as server:
        # Checks every 20 ms whether to stop: by default, each stop would take half a second.
        Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        try:
            yield server.server_port, access_key_id
        finally:
            server.shutdown()


def _server(address: str, handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    try:
        return ThreadingHTTPServer((address, 0), handler)
    # The address of an engine in a virtual machine, which leads to the loopback address.
    except OSError:
        return ThreadingHTTPServer(("127.0.0.1", 0), handler)
