"""A server on loopback that sends a test's responses and records the requests.

Its responses lack `x-amzn-RequestId`, which `make run` sends.
"""

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from werkzeug import Request, Response
from werkzeug.serving import make_server

# Do not also print the requests: `received` has them.
logging.getLogger("werkzeug").setLevel(logging.WARNING)

REX = {"id": 1, "name": "Rex", "categoryId": 3}

Script = Response | list[Response] | Callable[[Request, int], Response]
"""One response for every request, a list with a response for each, or a function.

The function gets a request and its number, which starts from 1, and returns a response.
"""


class Server(NamedTuple):
    """A running server, and the requests that it has received."""

    origin: str
    base_url: str
    received: list[Request]


def reply(
    body: Any, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Make a response of JSON."""
    return Response(json.dumps(body), status, headers, content_type="application/json")


def page(*ids: int, next_cursor: int | None = None) -> Response:
    """Make a page of the list."""
    link = {"Link": f'<?cursor={next_cursor}>; rel="next"'} if next_cursor else None
    return reply([{**REX, "id": id_} for id_ in ids], headers=link)


def rounds_with_a_late_animal() -> list[Response]:
    """Make the pages of three rounds ("Looking for new animals" in openapi.yaml)."""
    return [
        # the first round
        page(1, next_cursor=1),
        page(3),
        # the second round
        page(1, next_cursor=1),
        page(3, next_cursor=3),
        page(4),
        # the third round, in which animal 2 appears
        page(2, 3, next_cursor=3),
        page(4, 5),
    ]


def hang_up(request: Request, _: int) -> Response:
    """Close the connection without a response."""
    request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError


@contextmanager
def serve(script: Script) -> Iterator[Server]:
    """Run a server that sends the script's responses."""
    received: list[Request] = []

    @Request.application
    def application(request: Request) -> Response:
        request.get_data()  # the body cannot be read after the response
        received.append(request)
        if isinstance(script, Response):
            return script
        if isinstance(script, list):
            return script[len(received) - 1]
        return script(request, len(received))

    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    origin = f"http://127.0.0.1:{server.port}"
    try:
        yield Server(origin, f"{origin}/v1", received)
    finally:
        server.shutdown()
        server.server_close()
