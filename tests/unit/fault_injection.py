"""What lies between the SDK and the store: it passes requests on to moto, unless a test tells it to fail.

The SDK's own events are the seam, so that its retries, its parser and its checks all run as they do in AWS.
"""

import json
import zlib
from collections import defaultdict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from botocore.validate import ParamValidator
from moto.core.botocore_stubber import MockRawResponse
from moto.core.models import botocore_stubber

if TYPE_CHECKING:
    from botocore.model import OperationModel, Shape
    from types_boto3_dynamodb import DynamoDBClient

Fault = Callable[[Callable[[], AWSResponse]], AWSResponse]
"""Answers in the store's place; it is given what makes the store carry the request out."""

_URL = "https://dynamodb.us-east-1.amazonaws.com/"


def lost_request(_: Callable[[], AWSResponse]) -> AWSResponse:
    """Lose the request: the store never sees it."""
    raise ConnectionClosedError(endpoint_url=_URL)


def lost_answer(carry_out: Callable[[], AWSResponse]) -> AWSResponse:
    """Lose the answer: the store has carried the request out."""
    carry_out()
    raise ReadTimeoutError(endpoint_url=_URL)


def answer(status: int, body: bytes, crc32: int | None = None) -> Fault:
    """Answer with a body that the store would not send; the checksum is right unless given."""
    checksum = zlib.crc32(body) if crc32 is None else crc32

    def fault(_: Callable[[], AWSResponse]) -> AWSResponse:
        headers: Any = {"x-amz-crc32": str(checksum), "x-amzn-requestid": "STORE-REQUEST"}
        return AWSResponse(_URL, status, headers, MockRawResponse(body))

    return fault


def error(status: int, code: str, **members: Any) -> Fault:
    """Answer with one of DynamoDB's errors."""
    name = f"com.amazonaws.dynamodb.v20120810#{code}"
    return answer(status, json.dumps({"__type": name, "message": "from the store", **members}).encode())


THROTTLED = error(400, "ProvisionedThroughputExceededException")
SERVER_ERROR = error(500, "InternalServerError")
DENIED = error(400, "AccessDeniedException")


def cut_answer(carry_out: Callable[[], AWSResponse]) -> AWSResponse:
    """Carry the request out and cut the answer off, checksum and all."""
    return answer(200, carry_out().content[:-2])(carry_out)


class Wire:
    """The way to the store of one client.

    Args:
        client: Every request that it makes passes through here, from `attach` to `detach`.
    """

    def __init__(self, client: "DynamoDBClient") -> None:
        self._events: Any = client.meta.events
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.sent: list[str] = []
        """The operation of each request, retries included."""
        self._bodies: list[dict[str, Any]] = []
        self.parameters: list[tuple[str, dict[str, Any]]] = []
        """Operation and parameters of each call, as the layer made it."""
        self.invalid: list[str] = []
        """What the SDK's own validation, which the layer switches off, has against them."""

    def fail(self, operation: str, *faults: Fault) -> None:
        """Let the next requests of an operation meet these faults, one each."""
        self._faults[operation].extend(faults)

    def heal(self) -> None:
        """Forget the faults that no request has met yet."""
        self._faults.clear()

    def bodies(self, operation: str, member: str) -> list[Any]:
        """Return a member of the body of each request of an operation, retries included."""
        return [body[member] for sent, body in zip(self.sent, self._bodies, strict=True) if sent == operation]

    def attach(self) -> None:
        """Take moto's place on the wire, which is then asked from here."""
        self._events.unregister("before-send", botocore_stubber)
        self._events.register("before-send.dynamodb", self._send)
        self._events.register("provide-client-params.dynamodb", self._check)

    def detach(self) -> None:
        """Undo `attach`, and fill up what the client may spend on retries, so that no test depends on others."""
        self._events.unregister("before-send.dynamodb", self._send)
        self._events.unregister("provide-client-params.dynamodb", self._check)
        self._events.register("before-send", botocore_stubber)
        # The event after a call that succeeded on a retry: it gives back what the retry took.
        success = answer(200, b"")(lambda: NotImplemented)
        refill = {"context": {"retry_quota_capacity": 500}, "http_response": success, "parsed": {}}
        self._events.emit("after-call.dynamodb.GetItem", **refill)

    def _send(self, event_name: str, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        operation = event_name.rpartition(".")[2]
        self.sent.append(operation)
        self._bodies.append(json.loads(cast("bytes", request.body)))

        def carry_out() -> AWSResponse:
            response = botocore_stubber(event_name=event_name, request=request)
            assert response is not None
            return response

        faults = self._faults[operation]
        return faults.popleft()(carry_out) if faults else carry_out()

    def _check(self, params: dict[str, Any], model: "OperationModel", **_: object) -> None:
        self.parameters.append((model.name, params))
        report = ParamValidator().validate(params, cast("Shape", model.input_shape))
        if report.has_errors():
            self.invalid.append(f"{model.name}: {report.generate_report()}")
