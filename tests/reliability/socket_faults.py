"""Faults of real sockets: a request goes to a listener of its own, which breaks the connection.

What an exception of the SDK cannot show is shown here by the operating system and the SDK's own HTTP client.
"""

import contextlib
import socket
import struct
import threading

from tests.support.fault_injection import Attempt, Fault

_STALL_S = 15.0  # longer than any read timeout, and than any function runs
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a RST instead of a FIN


def _refused(attempt: Attempt) -> None:
    attempt.request.url = "http://127.0.0.1:1/"  # a port that nobody listens on


def _broken(*, committed: bool, stalled: bool = False, reset: bool = False) -> Fault:
    """Make a fault; when the request is committed and the listener does not stall, half of the response arrives."""

    def fault(attempt: Attempt) -> None:
        answer = b""
        if committed:
            response = attempt.carry_out()
            headers = {**response.headers, "Content-Length": str(len(response.content))}
            lines = [
                f"HTTP/1.1 {response.status_code} x",
                *(f"{name}: {headers[name]}" for name in headers),
                "",
                "",
            ]
            answer = "\r\n".join(lines).encode() + response.content[: len(response.content) // 2]
        listener = socket.create_server(("127.0.0.1", 0))
        attempt.request.url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        threading.Thread(
            target=serve, args=(listener, attempt.request.body, answer), daemon=True
        ).start()

    def serve(listener: socket.socket, request: bytes, answer: bytes) -> None:
        with listener, listener.accept()[0] as connection:
            received = b""
            while not received.endswith(request):
                received += connection.recv(65536)
            if stalled:
                connection.settimeout(_STALL_S)
                with contextlib.suppress(OSError):
                    connection.recv(1)  # returns when the client has hung up
            else:
                connection.sendall(answer)
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    return fault


# The SDK makes up for these, as for all transient faults.
SOCKET_FAULTS: dict[str, Fault] = {
    "connection refused by the port": _refused,
    "connection reset, not committed": _broken(committed=False, reset=True),
    "connection reset in the middle of the response": _broken(committed=True, reset=True),
}
# One timeout leaves time for a second attempt.
STALLS: dict[str, Fault] = {
    "no response within the read timeout, not committed": _broken(committed=False, stalled=True),
    "no response within the read timeout, committed": _broken(committed=True, stalled=True),
}
CLOSED_EARLY: dict[str, Fault] = {
    "connection closed in the middle of the response": _broken(committed=True)
}
