"""The embedded store over HTTP, for functions in containers."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

from tools.local.store import Database

_MAX_BODY_BYTES = 16 * 1024 * 1024  # of any request to DynamoDB


@contextmanager
def serve(database: Database, address: str) -> Iterator[tuple[int, str]]:
    """Answer DynamoDB requests at an address; give the port and the access key id that is accepted.

    The id is as hard to guess as a secret key, so signatures are not verified.
    """
    access_key_id = secrets.token_hex(16)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept
        # Seconds without a byte; a container is idle for less between two calls.
        timeout = 30
        wbufsize = -1  # headers and body in one packet

        def do_POST(self) -> None:
            # The body of a refused request is not read: the connection ends.
            if f"Credential={access_key_id}/" not in str(self.headers["Authorization"]):
                self.send_error(HTTPStatus.FORBIDDEN)
                return
            size = int(self.headers["Content-Length"])
            if size > _MAX_BODY_BYTES:
                self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                return
            # As much of a request as the store reads.
            sent: Any = SimpleNamespace(url=self.path, body=self.rfile.read(size))
            answer = database.answer(self.headers["X-Amz-Target"], sent)
            self.send_response_only(answer.status_code)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

    try:
        server = ThreadingHTTPServer((address, 0), Handler)
    # The address of an engine in a virtual machine, which leads to the loopback address.
    except OSError:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with server:
        # Checks every 20 ms whether to stop: by default, each stop would take half a second.
        Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        try:
            yield server.server_port, access_key_id
        finally:
            server.shutdown()
