"""An HTTP server on loopback for the clients that are measured."""

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

Response = tuple[int, bytes, Mapping[str, str]]
"""Status, body and headers; the server hangs up after one with `Connection: close`."""


@contextmanager
def serve(
    respond: Callable[[str, Message, bytes], Response],
    tls: ssl.SSLContext | None = None,
) -> Iterator[str]:
    """Answer requests by path, headers and body while the context lasts; give the origin."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # one packet for headers and body

        def handle(self) -> None:
            with suppress(OSError):  # the client was terminated
                super().handle()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer, headers = respond(self.path, self.headers, body)
            self.send_response_only(status)
            for name, value in {"Content-Length": str(len(answer)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
