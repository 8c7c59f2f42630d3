"""Broken connections: what the SDK makes of real sockets; the rest is in test_faults.py."""

import socket
import struct
import threading
import zlib
from contextlib import closing, suppress

import pytest

from tests.support import handlers
from tests.support.fault_injection import Attempt, FaultyStore
from tests.support.handlers import EVENTS

# Closing the connection then resets it.
RESET = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("end", ["refused", "closed", "reset", "stalled"])
@pytest.mark.parametrize("is_carried_out", [False, True])
@pytest.mark.parametrize(
    ("name", "operation", "animals"),
    [
        ("create-201", "PutItem", 6),
        ("create-201-idempotency-key", "TransactWriteItems", 6),
        ("list-200", "Query", 5),
    ],
)
def test_one_broken_connection_is_recovered(
    name: str, operation: str, animals: int, is_carried_out: bool, end: str
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(response: bytes) -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(response)
            if end == "reset":
                connection.setsockopt(*RESET)
            if end == "stalled":  # until the client hangs up
                connection.settimeout(15)
                with suppress(OSError):
                    connection.recv(1)

    def break_off(attempt: Attempt) -> None:
        """Carry a request out and send half of the response, or do neither."""
        response = b""
        if is_carried_out:
            body = attempt.carry_out().content
            head = f"Content-Length: {len(body)}\r\nx-amz-crc32: {zlib.crc32(body)}"
            half = body[: len(body) // 2]
            response = f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + half
        attempt.request.url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        if end == "refused":
            listener.close()
        else:
            threading.Thread(target=serve, args=[response], daemon=True).start()

    with closing(FaultyStore()) as store:
        store.fail(operation, break_off)

        response = handlers.invoke(EVENTS[name])

        assert f"-{response.status}" in name
        assert len(handlers.pets()) == animals
