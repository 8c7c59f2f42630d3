"""Access to DynamoDB: one SDK client per execution environment, within an invocation's time."""

from __future__ import annotations

import logging
import time
import zlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.handlers import BUILTIN_HANDLERS
from botocore.session import Session
from pydantic_core import ValidationError

from animal_store.errors import ServiceUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_dynamodb import DynamoDBClient

    from animal_store.validators import Validator

Output = TypeVar("Output")

_CONNECT_SECONDS = 1
_READ_SECONDS = 2
_MARGIN_SECONDS = 0.5  # for everything but waiting: decoding, responding, logging
_ATTEMPT_SECONDS = _CONNECT_SECONDS + _READ_SECONDS + _MARGIN_SECONDS
_BACKOFF_SECONDS = 2  # the longest pause of the SDK's standard mode before a third attempt
_RETRY_AFTER_SECONDS = (
    5  # the most by which the SDK lets a response from the store lengthen that pause
)

_TRANSIENT_CODES = frozenset(
    {
        "InternalServerError",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_FIRST_ERROR = 300  # the SDK's own bound of success
_SERVER_ERROR = 500


class Invocation:
    """How long one invocation may wait for the store, what it has asked so far, and for whom.

    Args:
        deadline: When Lambda ends the function, in seconds of `time.monotonic()`.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.key_id: str | None = None
        """The id of the key that was sent, known before the store is asked about it."""
        self.calls = 0
        """Calls made so far, the SDK's own retries included."""
        self.last_response_is_corrupt = False
        """Whether the last response differs from its checksum."""

    def has_left(self, seconds: float) -> bool:
        """Tell whether that many seconds are left."""
        return time.monotonic() + seconds <= self.deadline


invocation: ContextVar[Invocation] = ContextVar("invocation")
"""The invocation that runs in this thread; `operation` sets it."""


def new_client() -> DynamoDBClient:
    """Make the client: the SDK's standard retries, within the deadline of the invocation."""
    # Gains here are in instructions (M: million): a cold start takes about 720 M, a get 4 M
    # (tools/benchmarks/RESULTS.md). Use botocore's own session: boto3 adds resources and S3
    # transfers, which nothing here uses (108 M of a cold start).
    session = Session(include_builtin_handlers=False)
    for event, handler, *_ in BUILTIN_HANDLERS:
        # The SDK's handlers for all services; those for one service (`before-call.s3`) never run
        # here (54 M of a cold start).
        if "." not in event:
            session.register(event, handler)
    # At each cold start the SDK reports what is intended: that it has no endpoint rules (the layer
    # has a list), and where its credentials come from.
    logging.getLogger("botocore").setLevel(logging.WARNING)
    client: Any = session.create_client(
        "dynamodb",
        config=Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 3},
            tcp_keepalive=True,
            # The session's text; without this the SDK builds a longer one for each call (1.0 M).
            user_agent=f"{session.user_agent()} app/animal-store",
            # Let DynamoDB refuse an invalid request: that gives a 500, where the SDK's own error
            # would give a 503. The tests validate each request (0.3 M a call).
            parameter_validation=False,
        ),
    )
    # First, because the SDK takes the first result that is not None.
    client.meta.events.register_first("needs-retry.dynamodb", _count_and_stop_in_time)
    for operation in ("GetItem", "Query"):
        client.meta.events.register(f"before-parse.dynamodb.{operation}", _keep_raw)
    return cast("DynamoDBClient", client)


def _count_and_stop_in_time(response: tuple[Any, Any] | None, **_: object) -> bool | None:
    """Prevent a retry (False) that could outlast the invocation; None lets the SDK decide."""
    current = invocation.get()
    current.calls += 1
    current.last_response_is_corrupt = _is_corrupt(response)
    succeeded = response is not None and response[0].status_code < _FIRST_ERROR
    if succeeded and not current.last_response_is_corrupt:
        return None
    return None if current.has_left(_longest_pause(response) + _ATTEMPT_SECONDS) else False


def _is_corrupt(response: tuple[Any, Any] | None) -> bool:
    """Tell whether a response fails its checksum, which the SDK ignores on the last attempt."""
    if response is None or (checksum := response[0].headers.get("x-amz-crc32")) is None:
        return False
    return zlib.crc32(response[0].content) != int(checksum)


def _longest_pause(response: tuple[Any, Any] | None) -> float:
    """Return how long the SDK may pause after an attempt (None: no response), in seconds."""
    asked = response[0].headers.get("x-amz-retry-after", "") if response else ""
    milliseconds = int(asked) if asked.isdecimal() else 0
    return _BACKOFF_SECONDS + min(milliseconds / 1000, _RETRY_AFTER_SECONDS)


def _keep_raw(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object
) -> None:
    """Keep the raw body of a successful response, past the SDK's generic parser.

    This saves 4.3 M instructions of a list of 20 and 20.8 M of a list of 100. The SDK provides the
    event for this; errors are still parsed, and the SDK still checks the CRC-32 of the body.
    """
    if response_dict["status_code"] < _FIRST_ERROR:
        customized_response_dict["Raw"] = response_dict["body"]
        response_dict["body"] = b"{}"


client = new_client()


def call(method: Callable[..., Any], **parameters: Any) -> Any:
    """Call the store and return the SDK's response (for GetItem and Query use `read`).

    Args:
        method: A method of `client`.
        parameters: The method's parameters, in DynamoDB's own JSON.

    Raises:
        ServiceUnavailable: The store is throttled or out of reach, or no time is left to ask it.
        ClientError: The store refused the request: a condition that does not hold, a missing
            table or right, or a bug.
    """
    if not invocation.get().has_left(_ATTEMPT_SECONDS):
        raise ServiceUnavailable from TimeoutError("no time left to call the store")
    try:
        response = method(**parameters)
    except ClientError as error:
        _refuse_corrupt()
        code = error.response["Error"]["Code"]
        if code.isdigit():
            # The HTTP status, which the SDK puts here when the body is truncated or corrupt. The
            # message is then the body, which may hold what clients sent: keep it out of the log.
            raise ServiceUnavailable from ValueError(
                f"an error of the store is truncated or corrupt: HTTP {code}"
            )
        if (
            code in _TRANSIENT_CODES
            or error.response["ResponseMetadata"]["HTTPStatusCode"] >= _SERVER_ERROR
        ):
            raise ServiceUnavailable from error
        raise
    except (BotoCoreError, ValueError) as error:
        # The SDK raises the latter for corrupt bytes, and for a checksum that is not a number.
        raise ServiceUnavailable from error
    _refuse_corrupt()
    return response


def _refuse_corrupt() -> None:
    """Refuse a response that fails its checksum, which the SDK accepts on the last attempt.

    Raises:
        ServiceUnavailable: The last response fails it.
    """
    if invocation.get().last_response_is_corrupt:
        raise ServiceUnavailable from ValueError("the store's response does not match its checksum")


def read(method: Callable[..., Any], output: Validator[Output], **parameters: Any) -> Output:
    """Call GetItem or Query and read DynamoDB's JSON straight into a model.

    Args:
        method: A method of `client`.
        output: What to read the response as.
        parameters: The method's parameters, in DynamoDB's own JSON.

    Raises:
        ServiceUnavailable: As `call`; also when the response is truncated or corrupt.
        ClientError: As `call`.
        ValueError: The service did not write this item.
    """
    response = call(method, **parameters)
    try:
        return output.json(response["Raw"])
    except ValidationError as error:
        # Leave out the input: what clients sent does not belong in the log.
        details = error.errors(include_url=False, include_context=False, include_input=False)
        if details[0]["type"] == "json_invalid":
            raise ServiceUnavailable from ValueError("the store's response is truncated or corrupt")
        raise ValueError(
            f"the store has an item that the service has not written: {details}"
        ) from None
