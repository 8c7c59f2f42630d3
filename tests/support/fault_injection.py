"""What lies between SDK and store: it passes requests on, unless it is told to fail.

The SDK's own events are the seam, so that its retries, parser and checks run as they do in AWS.
"""

import json
import zlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import (
    ConnectionClosedError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from botocore.validate import ParamValidator
from lambda_local.dynamodb import Database

if TYPE_CHECKING:
    from botocore.model import OperationModel
    from types_boto3_dynamodb import DynamoDBClient

_URL = "https://dynamodb.us-east-1.amazonaws.com/"


class Attempt(NamedTuple):
    """One attempt of a call of the store, by the SDK's own request."""

    event_name: str
    request: AWSPreparedRequest
    database: Database

    def carry_out(self) -> AWSResponse:
        """Have the store do what it is asked for."""
        return self.database.answer(self.event_name, self.request)


Fault = Callable[[Attempt], AWSResponse | None]
"""Answers in the store's place; None leaves the request to the SDK, which opens a socket."""


class _Body(BytesIO):
    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()


def failing_with(kind: type[Exception], **details: Any) -> Fault:
    """Lose the request with an exception of the SDK: the store never sees it."""

    def fault(_: Attempt) -> AWSResponse:
        raise kind(**({"endpoint_url": _URL} | details))

    return fault


def answering(
    status: int,
    body: bytes,
    crc32: int | None = None,
    headers: dict[str, str] | None = None,
) -> Fault:
    """Answer with a body that the store would not send; the checksum is right unless given."""
    sent: Any = {
        "x-amz-crc32": str(zlib.crc32(body) if crc32 is None else crc32),
        **(headers or {}),
    }
    return lambda _: AWSResponse(_URL, status, sent, _Body(body))


def error(status: int, code: str, **members: Any) -> Fault:
    """Answer with one of DynamoDB's errors."""
    name = f"com.amazonaws.dynamodb.v20120810#{code}"
    return answering(
        status,
        json.dumps({"__type": name, "message": "from the store", **members}).encode(),
    )


def after(fault: Fault) -> Fault:
    """Let the store carry the request out, then fail."""

    def late(attempt: Attempt) -> AWSResponse | None:
        attempt.carry_out()
        return fault(attempt)

    return late


def _half(attempt: Attempt) -> AWSResponse | None:
    response = attempt.carry_out()
    return answering(
        response.status_code, response.content[: len(response.content) // 2]
    )(attempt)


LOST_REQUEST = failing_with(ConnectionClosedError)
LOST_RESPONSE = after(failing_with(ReadTimeoutError))
THROTTLED = error(400, "ProvisionedThroughputExceededException")
SERVER_ERROR = error(500, "InternalServerError")
DENIED = error(400, "AccessDeniedException")

# Failures that a second attempt may not meet: the SDK makes it.
TRANSIENT: dict[str, Fault] = {
    "request lost": LOST_REQUEST,
    "connection refused": failing_with(EndpointConnectionError),
    "response lost": LOST_RESPONSE,
    "throttled": THROTTLED,
    "500, not committed": SERVER_ERROR,
    "500, committed": after(SERVER_ERROR),
}
# Responses that arrive, and tell nothing: the SDK takes those of 200 for good ones.
UNREADABLE: dict[str, Fault] = {
    "half of the response": _half,
    "response empty": after(answering(200, b"")),
    "response of another checksum": after(answering(200, b"{}", crc32=1)),
    "checksum not a number": after(
        answering(200, b"{}", headers={"x-amz-crc32": "abc"})
    ),
    "error of another checksum": answering(
        400, b'{"__type": "x#ConditionalCheckFailedException"}', crc32=1
    ),
    "response not JSON": after(answering(200, b"<html>")),
    "response not UTF-8": after(answering(200, b'{"Item": {"name": {"S": "\xff"}}}')),
    "error cut off": answering(400, b'{"__type": "Condition'),
    "error not JSON": after(answering(400, b"<html>")),
}


def refill_retries(client: "DynamoDBClient") -> None:
    """Give a client back its whole quota of retries, as a new execution environment has it."""
    # The event after a call that succeeded on a retry: it gives back what the retry took.
    make_response: Any = AWSResponse
    events, success = (
        cast("Any", client.meta.events),
        make_response(_URL, 200, {}, _Body()),
    )
    context = {"retry_quota_capacity": 500}
    events.emit(
        "after-call.dynamodb.GetItem", context=context, http_response=success, parsed={}
    )


class FaultyStore:
    """The way of one client to the store; `otherwise` is what a request meets that is not to fail.

    It notes the operation of each request that is sent, operation and parameters of each call as
    the layer made it, and what the SDK's own validation, which the layer switches off, has against
    them.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        database: Database,
        otherwise: Fault = Attempt.carry_out,
    ) -> None:
        self.client, self.database, self._otherwise = client, database, otherwise
        self._seams = {
            "before-send.dynamodb": self._send,
            "provide-client-params.dynamodb": self._check,
        }
        self.faults: dict[str | int, deque[Fault]] = defaultdict(deque)
        self.sent: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.invalid: list[str] = []
        for event, handler in self._seams.items():
            cast("Any", client.meta.events).register(event, handler)

    def fail(self, call: str | int, *faults: Fault) -> None:
        """Let requests meet a fault each: the next ones of an operation, or of a call's number."""
        self.faults[call].extend(faults)

    def detach(self) -> None:
        """Leave the client, and give it back its quota of retries: no test depends on others."""
        for event, handler in self._seams.items():
            cast("Any", self.client.meta.events).unregister(event, handler)
        refill_retries(self.client)

    def _send(
        self, event_name: str, request: AWSPreparedRequest, **_: object
    ) -> AWSResponse | None:
        operation = event_name.rpartition(".")[2]
        self.sent.append(operation)
        faults = self.faults[operation] or self.faults[len(self.calls) - 1]
        return (faults.popleft() if faults else self._otherwise)(
            Attempt(event_name, request, self.database)
        )

    def _check(
        self, params: dict[str, Any], model: "OperationModel", **_: object
    ) -> None:
        self.calls.append((model.name, params))
        report = ParamValidator().validate(params, model.input_shape)  # type: ignore[arg-type]
        if report.has_errors():
            self.invalid.append(f"{model.name}: {report.generate_report()}")
