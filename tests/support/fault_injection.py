"""What lies between the SDK and the store: it passes requests on unless told to fail.

The SDK's own events are the seam, so that its retries, parser and checks run as they do in AWS.
"""

import json
import zlib
from collections import defaultdict, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import BotoCoreError, ConnectionClosedError, ReadTimeoutError
from botocore.validate import ParamValidator

from tests.support import handlers

from animal_store import auth, dynamodb  # isort: skip - handlers makes its environment

if TYPE_CHECKING:
    from botocore.model import OperationModel

_URL = "https://dynamodb.us-east-1.amazonaws.com/"
# The SDK's stubs have no type for handlers that return something.
_EVENTS: Any = dynamodb.client.meta.events


class Attempt(NamedTuple):
    """One attempt at a call to the store, as the SDK's own request."""

    event_name: str
    request: AWSPreparedRequest

    def carry_out(self) -> AWSResponse:
        """Have the store do what it is asked for."""
        return handlers.DATABASE.answer(self.event_name, self.request)


Fault = Callable[[Attempt], AWSResponse | None]
"""Answers in the store's place; None leaves the request to the SDK, which opens a socket."""


def failing_with(kind: type[BotoCoreError], **details: Any) -> Fault:
    """Lose the request with an exception of the SDK: the store never sees it."""

    def fault(_: Attempt) -> AWSResponse:
        raise kind(endpoint_url=_URL, **details)

    return fault


def answering(
    status: int,
    body: bytes,
    crc32: int | None = None,
    retry_after: str = "",
) -> Fault:
    """Answer with a body that the store would not send; the checksum is right unless given."""
    checksum = zlib.crc32(body) if crc32 is None else crc32
    sent: Any = {"x-amz-crc32": str(checksum), "x-amz-retry-after": retry_after}
    # As the SDK reads it from the network.
    raw: Any = SimpleNamespace(stream=lambda: [body])
    return lambda _: AWSResponse(_URL, status, sent, raw)


def error(status: int, code: str, **members: Any) -> Fault:
    """Answer with one of DynamoDB's errors."""
    name = f"com.amazonaws.dynamodb.v20120810#{code}"
    body = {"__type": name, "message": "from the store", **members}
    return answering(status, json.dumps(body).encode())


def cancelled(*codes: str) -> Fault:
    """Cancel a transaction, with the reason of each of its parts."""
    reasons = [{"Code": code} for code in codes]
    return error(400, "TransactionCanceledException", CancellationReasons=reasons)


def after(fault: Fault) -> Fault:
    """Let the store carry the request out, then fail."""

    def late(attempt: Attempt) -> AWSResponse | None:
        attempt.carry_out()
        return fault(attempt)

    return late


def _half(attempt: Attempt) -> AWSResponse | None:
    whole = attempt.carry_out().content
    return answering(200, whole[: len(whole) // 2])(attempt)


LOST_REQUEST = failing_with(ConnectionClosedError)
LOST_RESPONSE = after(failing_with(ReadTimeoutError))
THROTTLED = error(400, "ProvisionedThroughputExceededException")
SERVER_ERROR = error(500, "InternalServerError")
DENIED = error(400, "AccessDeniedException")

# Failures that a second attempt, which the SDK makes, may not meet.
TRANSIENT: dict[str, Fault] = {
    "request lost": LOST_REQUEST,
    "response lost": LOST_RESPONSE,
    "throttled": THROTTLED,
    "500, not committed": SERVER_ERROR,
    "500, committed": after(SERVER_ERROR),
}
# Responses that arrive but say nothing: the SDK takes those with 200 for good ones.
UNREADABLE: dict[str, Fault] = {
    "half of the response": _half,
    "response empty": after(answering(200, b"")),
    "response of another checksum": after(answering(200, b"{}", crc32=1)),
    "error of another checksum": answering(
        400, b'{"__type": "x#ConditionalCheckFailedException"}', crc32=1
    ),
    "response not JSON": after(answering(200, b"<html>")),
    "response not UTF-8": after(answering(200, b'{"Item": {"name": {"S": "\xff"}}}')),
    "error cut off": answering(400, b'{"__type": "Condition'),
}


class FaultyStore:
    """The layer's path to the store, which is reset; `otherwise` is what most requests meet.

    It records the operation of each request sent, and the operation and parameters of each call
    as the layer made it. The SDK's own validation, which the layer switches off, is on.
    """

    def __init__(self, otherwise: Fault = Attempt.carry_out) -> None:
        auth.forget_keys()
        handlers.empty_store()
        self._otherwise = otherwise
        self.faults: dict[str | int, deque[Fault]] = defaultdict(deque)
        self.sent: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        _EVENTS.register("before-send.dynamodb", self._send)
        _EVENTS.register("provide-client-params.dynamodb", self._check)

    def fail(self, call: str | int, *faults: Fault) -> None:
        """Give each of the next requests a fault: those of an operation, or of a call by number."""
        self.faults[call].extend(faults)

    def close(self) -> None:
        """Detach from the layer's client."""
        _EVENTS.unregister("before-send.dynamodb", self._send)
        _EVENTS.unregister("provide-client-params.dynamodb", self._check)

    def _send(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse | None:
        operation = event_name.rpartition(".")[2]
        self.sent.append(operation)
        faults = self.faults[operation] or self.faults[len(self.calls) - 1]
        fault = faults.popleft() if faults else self._otherwise
        return fault(Attempt(event_name, request))

    def _check(
        self, params: dict[str, Any], model: "OperationModel", **_: object
    ) -> None:
        self.calls.append((model.name, params))
        report = ParamValidator().validate(params, model.input_shape)  # type: ignore[arg-type]
        assert not report.has_errors(), report.generate_report()
