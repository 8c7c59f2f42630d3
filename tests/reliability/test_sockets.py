"""Broken connections: what the SDK makes of real sockets; the rest is in test_faults.py."""

import contextlib
import socket
import struct
import threading
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import partial

import pytest

from tests.support import handlers
from tests.support.fault_injection import Attempt, Fault, FaultyStore
from tests.support.handlers import EVENTS

End = Callable[[socket.socket], None]


def close(_: socket.socket) -> None:
    """Leave the connection to be closed."""


def reset(connection: socket.socket) -> None:
    """Let closing the connection reset it."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def stall(connection: socket.socket) -> None:
    """Keep the connection open until the client hangs up."""
    connection.settimeout(15)
    with contextlib.suppress(OSError):
        connection.recv(1)


def send_to_listener(attempt: Attempt, response: bytes, end: End) -> None:
    """Send an attempt to a listener of its own, which sends a response and ends the connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    attempt.request.url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

    def serve() -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(response)
            end(connection)

    threading.Thread(target=serve, daemon=True).start()


def refused(attempt: Attempt) -> None:
    attempt.request.url = "http://127.0.0.1:1/"  # a port on which nobody listens


def not_carried_out(end: End, attempt: Attempt) -> None:
    send_to_listener(attempt, b"", end)


def carried_out(end: End, attempt: Attempt) -> None:
    """Carry a request out, and send half of the response."""
    body = attempt.carry_out().content
    checksum = zlib.crc32(body)
    head = f"HTTP/1.1 200 OK\r\nx-amz-crc32: {checksum}\r\nContent-Length: {len(body)}\r\n\r\n"
    send_to_listener(attempt, head.encode() + body[: len(body) // 2], end)


FAULTS: dict[str, Fault] = {
    "refused": refused,
    "reset": partial(not_carried_out, reset),
    "reset in the middle of the response": partial(carried_out, reset),
    "closed in the middle of the response": partial(carried_out, close),
    "no response in time": partial(not_carried_out, stall),
    "half of a response in time": partial(carried_out, stall),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("name", "operation", "animals"),
    [
        ("create-201", "UpdateItem", 6),
        ("create-201", "PutItem", 6),
        ("create-201-idempotency-key", "TransactWriteItems", 6),
        ("list-200", "GetItem", 5),
        ("list-200", "Query", 5),
    ],
)
def test_one_broken_connection_is_recovered(
    name: str, operation: str, animals: int, fault: str
) -> None:
    with closing(FaultyStore()) as store:
        store.fail(operation, FAULTS[fault])

        response = handlers.invoke(EVENTS[name])

        assert f"-{response.status}" in name
        assert len(handlers.pets()) == animals
