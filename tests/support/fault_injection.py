"""Stands between the SDK and the store: passes requests on, or fails as a test says.

Faults replace what the network would return to the SDK. So the SDK's retries, parser and checks run
as they do in AWS.
"""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import botocore
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import BotoCoreError, ConnectionClosedError, ReadTimeoutError
from botocore.validate import ParamValidator

from tests.support import handlers
from tests.support.clock import CLOCK


class Attempt(NamedTuple):
    """One attempt at a call to the store, as the SDK's own request."""

    event_name: str
    request: AWSPreparedRequest

    def carry_out(self) -> AWSResponse:
        """Let the store answer the request."""
        return handlers.DATABASE.answer(self.event_name, self.request)


Fault = Callable[[Attempt], AWSResponse | None]
"""Answers in the store's place; None leaves the request to the SDK, which opens a socket."""


def failing_with(kind: type[BotoCoreError]) -> Fault:
    """Lose the request: the SDK raises this exception, and the store never sees the request."""

    def fault(_: Attempt) -> AWSResponse:
        raise kind(endpoint_url="")

    return fault


def answering(status: int, body: bytes, **headers: str) -> Fault:
    """Answer with a body that the store would not send."""
    sent: Any = headers
    # The SDK reads a body from the network in this way.
    raw: Any = SimpleNamespace(stream=lambda: [body])
    return lambda _: AWSResponse("", status, sent, raw)


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


LOST_REQUEST = failing_with(ConnectionClosedError)
LOST_RESPONSE = after(failing_with(ReadTimeoutError))
THROTTLED = error(400, "ProvisionedThroughputExceededException")
DENIED = error(400, "AccessDeniedException")

# Failures after which the SDK tries again, and may succeed.
TRANSIENT: dict[str, Fault] = {
    "request lost": LOST_REQUEST,
    "response lost": LOST_RESPONSE,
    "throttled": THROTTLED,
    "500, committed": after(error(500, "InternalServerError")),
}
CHECKSUM = {"x-amz-crc32": "1"}
# Responses that cannot be read: the SDK takes one with status 200 for a success.
UNREADABLE: dict[str, Fault] = {
    "response empty": after(answering(200, b"")),
    "response of another checksum": after(answering(200, b"{}", **CHECKSUM)),
    "error of another checksum": answering(
        400, b'{"__type": "x#ConditionalCheckFailedException"}', **CHECKSUM
    ),
    "response cut off": after(answering(200, b'{"Item": {"name": {"S": "R')),
    "response not UTF-8": after(answering(200, b'{"Item": {"name": {"S": "\xff"}}}')),
    "error cut off": answering(400, b'{"__type": "Condition'),
}


class FaultyStore:
    """Stands between the layer and the store.

    A request meets the next fault of its operation, or else `default`. All requests are recorded,
    and checked as the SDK would do if the layer had not switched that off.
    """

    def __init__(self) -> None:
        self.default: Fault = Attempt.carry_out
        self.faults: dict[str, list[Fault]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def reset(self, default: Fault = Attempt.carry_out) -> None:
        """Forget what was, and give the store the events' key and animals."""
        handlers.empty_store()
        CLOCK.advance(3600)  # no key is cached for longer
        self.default = default
        self.faults.clear()
        self.calls.clear()

    def fail(self, operation: str, *faults: Fault) -> None:
        """Give each of the next requests of an operation a fault."""
        self.faults[operation] = [*faults]

    def answer(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse | None:
        """Answer a request of the layer, instead of the network."""
        operation = event_name.rpartition(".")[2]
        parameters = json.loads(request.body)  # type: ignore[arg-type]
        self.calls.append((operation, parameters))
        model = handlers.client().meta.service_model.operation_model(operation)
        report = ParamValidator().validate(parameters, model.input_shape)
        assert not report.has_errors(), report.generate_report()
        faults = self.faults.get(operation)
        fault = faults.pop(0) if faults else self.default
        return fault(Attempt(event_name, request))


STORE = FaultyStore()
"""The store of the functions in this process."""


def _attach(session: Any) -> None:
    """Let STORE answer the clients of a session of the SDK."""
    events = session.get_component("event_emitter")
    events.register("before-send.dynamodb", STORE.answer)


# The functions make their client when they are imported.
botocore.register_initializer(_attach)
handlers.load()
botocore.unregister_initializer(_attach)
