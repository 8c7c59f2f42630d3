"""The sockets of the local servers."""

import os
import socket

from tools.local import LocalError


def listen(address: str, port: int) -> socket.socket:
    """Listen on an address of this machine."""
    listener = socket.create_server((address, port))
    # Without this, a response may wait 40 ms for the client's ACK. asyncio sets it, too.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def listen_on_port() -> socket.socket:
    """Listen on PORT of this machine; raise LocalError if that fails."""
    port = os.environ.get("PORT") or "3000"
    try:
        return listen("127.0.0.1", int(port))
    except (OSError, OverflowError, ValueError) as error:
        raise LocalError(
            f"cannot listen on port {port}: {error}. Set another, such as PORT=8080; "
            "PORT=0 finds a free one"
        ) from error
