"""An HTTP server in front of embedded stores that breaks requests as they ask it to, by a header.

What an exception of the SDK cannot show is shown here by the operating system's sockets and the SDK's own HTTP client.
"""

import contextlib
import http.server
import socket
import struct
import threading
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tools.local.dynamodb import Database

FAULT, DATABASE = "X-Fault", "X-Database"
"""The headers that say how to break a request, and which file it is for."""
_STALL_S = 15.0  # longer than any read timeout, and than any function lives


class SocketFault(StrEnum):
    """A way to break a request on its way."""

    REFUSED = "connection refused by the port"
    RESET_BEFORE = "connection reset, not committed"
    STALL_BEFORE = "no response within the read timeout, not committed"
    STALL_AFTER = "no response within the read timeout, committed"
    RESET_RESPONSE = "connection reset in the middle of the response"
    CUT_RESPONSE = "connection closed in the middle of the response"


STALLS = frozenset({SocketFault.STALL_BEFORE, SocketFault.STALL_AFTER})
_BEFORE = frozenset({SocketFault.RESET_BEFORE, SocketFault.STALL_BEFORE})


class FaultServer(http.server.ThreadingHTTPServer):
    """The server, on a free port of the loopback address."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._databases: dict[str, Database] = {}
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/"

    def database(self, path: str) -> Database:
        """Open a store, once."""
        with self._lock:
            if path not in self._databases:
                self._databases[path] = Database(Path(path))
            return self._databases[path]

    @contextlib.contextmanager
    def running(self) -> Iterator["FaultServer"]:
        """Serve in a thread for as long as the context lasts."""
        threading.Thread(target=self.serve_forever, daemon=True).start()
        yield self
        self.shutdown()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultServer

    def do_POST(self) -> None:
        """Answer a request, or break it."""
        fault = self.headers[FAULT] or None
        body = self.rfile.read(int(self.headers["Content-Length"]))
        response: Any = None
        if fault not in _BEFORE:
            request: Any = SimpleNamespace(body=body, url=self.server.url)
            response = self.server.database(self.headers[DATABASE]).answer(self.headers["X-Amz-Target"], request)
        if fault in STALLS:
            self.close_connection = True
            self.connection.settimeout(_STALL_S)
            with contextlib.suppress(OSError):
                self.connection.recv(1)  # returns when the client has hung up
        elif fault == SocketFault.RESET_BEFORE:
            self._reset()
        else:
            self.send_response(response.status_code)
            for name, value in {**response.headers, "Content-Length": str(len(response.content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.content[: len(response.content) // 2] if fault else response.content)
            self.close_connection = fault is not None
            if fault == SocketFault.RESET_RESPONSE:
                self._reset()

    def _reset(self) -> None:
        """Close with a RST instead of a FIN."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()  # which would keep the socket open
        self.connection.close()

    def log_message(self, *_: object) -> None:
        """Print nothing."""
