"""The socket of the local API."""

import os
import socket

from tools import CommandError


def listen_on_port() -> socket.socket:
    """Listen on the loopback address, on the port that PORT names, by default 3000."""
    port = os.environ.get("PORT") or "3000"
    try:
        listener = socket.create_server(("127.0.0.1", int(port)))
    except (OSError, OverflowError, ValueError) as error:
        raise CommandError(
            f"cannot listen on port {port}: {error}. Set another port, such as PORT=8080, or PORT=0"
            " for any free one"
        ) from error
    # Without TCP_NODELAY, Linux would delay later responses on a connection by 40 ms
    # (https://github.com/Kludex/uvicorn/issues/3149).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
