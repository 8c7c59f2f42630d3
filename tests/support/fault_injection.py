"""Makes requests to the store fail, as a test says.

A fault replaces the response that the network would give the SDK. So the SDK's retries, parser and
checks run as they do in AWS.
"""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from botocore.validate import ParamValidator

from tests.support import handlers
from tests.support.clock import CLOCK


class Attempt(NamedTuple):
    """One attempt at a call to the store: the SDK's request."""

    event_name: str
    request: AWSPreparedRequest

    def send_to_store(self) -> AWSResponse:
        """Let the store answer the request."""
        return handlers.service().database.answer(self.event_name, self.request)


Fault = Callable[[Attempt], AWSResponse]
"""Responds instead of the store."""


def close_connection(_: Attempt) -> AWSResponse:
    """Raise the SDK's error for a connection that ends before the request reaches the store."""
    raise ConnectionClosedError(endpoint_url="")


def time_out(_: Attempt) -> AWSResponse:
    """Raise the SDK's error for a response that does not arrive in time."""
    raise ReadTimeoutError(endpoint_url="")


def answering(status: int, body: bytes, **headers: str) -> Fault:
    """Return a fault that responds with this body."""
    response_headers: Any = headers
    # The SDK reads the body by calling `stream`.
    raw: Any = SimpleNamespace(stream=lambda: [body])
    return lambda _: AWSResponse("", status, response_headers, raw)


def error(status: int, code: str, **members: Any) -> Fault:
    """Return a fault that responds with one of DynamoDB's errors."""
    name = f"com.amazonaws.dynamodb.v20120810#{code}"
    body = {"__type": name, "message": "from the store", **members}
    return answering(status, json.dumps(body).encode())


def cancelled(*codes: str) -> Fault:
    """Return a fault that cancels a transaction; each of its items has a code."""
    reasons = [{"Code": code} for code in codes]
    return error(400, "TransactionCanceledException", CancellationReasons=reasons)


def after_execution(fault: Fault) -> Fault:
    """Return a fault that occurs after the store has carried out the request."""

    def fail_late(attempt: Attempt) -> AWSResponse:
        attempt.send_to_store()
        return fault(attempt)

    return fail_late


def die(_: Attempt) -> AWSResponse:
    """Raise SystemExit, as if the process ended."""
    raise SystemExit


LOST_REQUEST: Fault = close_connection
LOST_RESPONSE = after_execution(time_out)
THROTTLED = error(400, "ProvisionedThroughputExceededException")
DENIED = error(400, "AccessDeniedException")

# After one of these failures the SDK tries again, and may succeed.
TRANSIENT: dict[str, Fault] = {
    "request lost": LOST_REQUEST,
    "response lost": LOST_RESPONSE,
    "throttled": THROTTLED,
    "500, committed": after_execution(error(500, "InternalServerError")),
    "signature refused": error(400, "InvalidSignatureException"),
}
WRONG_CHECKSUM = {"x-amz-crc32": "1"}
# These responses cannot be read, even those with status 200.
UNREADABLE: dict[str, Fault] = {
    "response empty": after_execution(answering(200, b"")),
    "response with a wrong checksum": after_execution(
        answering(200, b"{}", **WRONG_CHECKSUM)
    ),
    "error with a wrong checksum": answering(
        400, b'{"__type": "x#ConditionalCheckFailedException"}', **WRONG_CHECKSUM
    ),
    "response cut off": after_execution(answering(200, b'{"Item": {"name": {"S": "R')),
    "response not UTF-8": after_execution(
        answering(200, b'{"Item": {"name": {"S": "\xff"}}}')
    ),
    "error cut off": answering(400, b'{"__type": "Condition'),
}


class FaultyStore:
    """Answers the layer's requests to the store.

    A request gets the next fault of its operation, or else `default`. Each request is recorded, and
    validated as the SDK would do if the layer had not switched that off.

    Attributes:
        calls: Operation and parameters of each request, in order.
    """

    def __init__(self) -> None:
        self.default: Fault = Attempt.send_to_store
        self.faults: dict[str, list[Fault]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def reset(self, default: Fault = Attempt.send_to_store) -> None:
        """Reset the store and `calls`; let the functions forget the keys that they know."""
        handlers.load(self.answer)
        handlers.reset_store()
        CLOCK.advance(3600)  # a function caches a key for a minute
        self.default = default
        self.faults.clear()
        self.calls.clear()

    def fail(self, operation: str, *faults: Fault) -> None:
        """Let the next requests of an operation fail, with one fault for each request."""
        self.faults[operation] = [*faults]

    def answer(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse:
        """Answer a request in place of the network."""
        operation = event_name.rpartition(".")[2]
        parameters = json.loads(request.body)  # type: ignore[arg-type]
        self.calls.append((operation, parameters))
        model = handlers.sdk().meta.service_model.operation_model(operation)
        report = ParamValidator().validate(parameters, model.input_shape)
        assert not report.has_errors(), report.generate_report()
        faults = self.faults.get(operation)
        fault = faults.pop(0) if faults else self.default
        return fault(Attempt(event_name, request))


STORE = FaultyStore()
"""The store of the functions in this process."""
