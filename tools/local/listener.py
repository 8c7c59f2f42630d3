"""The sockets of the local servers."""

import os
import socket

from tools import CommandError


def listen(address: str, port: int) -> socket.socket:
    """Listen on an address of this machine; port 0 stands for any free port."""
    listener = socket.create_server((address, port))
    # Without this option, a response may wait 40 ms for the client's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def listen_on_port() -> socket.socket:
    """Listen on the loopback address, on the port that PORT names, by default 3000."""
    port = os.environ.get("PORT") or "3000"
    try:
        return listen("127.0.0.1", int(port))
    except (OSError, OverflowError, ValueError) as error:
        raise CommandError(
            f"cannot listen on port {port}: {error}. Set another port, such as PORT=8080, or PORT=0"
            " for any free one"
        ) from error
