"""Calls DynamoDB for `catalogue` and `auth`, with one SDK client per execution environment.

An attempt is made only if it can end before Lambda ends the invocation. A response that is cut off
or does not match its checksum counts as a failure.
"""

from __future__ import annotations

import logging
import zlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.handlers import BUILTIN_HANDLERS
from botocore.session import Session
from pydantic_core import ValidationError

from animal_store import invocation

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_dynamodb import DynamoDBClient

    from animal_store.validators import Validator

Output = TypeVar("Output")

_CONNECT_SECONDS = 1
_READ_SECONDS = 2
# The time that an invocation needs after its last attempt to call DynamoDB: to decode DynamoDB's
# response, to answer the client and to log.
_MARGIN_SECONDS = 0.5
_ATTEMPT_SECONDS = _CONNECT_SECONDS + _READ_SECONDS + _MARGIN_SECONDS
# The longest pause that the SDK's standard mode makes before a third attempt.
_BACKOFF_SECONDS = 2
# When DynamoDB asks for a longer pause, the SDK prolongs its own by at most this many seconds.
_RETRY_AFTER_SECONDS = 5

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
_SUCCESS = range(200, 300)
_SERVER_ERROR = 500
_RAW_OPERATIONS = ("GetItem", "Query", "UpdateItem")


class StoreUnavailable(Exception):
    """DynamoDB throttles the call or is out of reach; the same call may succeed a moment later.

    The text gives the reason for the log, and must not contain what clients sent.
    """


_last_response_is_corrupt: ContextVar[bool] = ContextVar("last_response_is_corrupt", default=False)
"""Whether the last response in this thread does not match its checksum."""


def new_client() -> DynamoDBClient:
    """Create a client with the SDK's standard retries, none of which outlasts the invocation."""
    # Some comments say how many processor instructions a choice saves. For comparison, a cold start
    # takes about 720 million, and a call of getPet 4 million (tools/benchmarks/RESULTS.md).
    #
    # Use botocore's own session: boto3 adds resources and S3 transfers, which nothing here uses.
    # This saves 108 million instructions of a cold start.
    session = Session(include_builtin_handlers=False)
    for event, handler, *_ in BUILTIN_HANDLERS:
        # Leave out the SDK's handlers that are specific to one service. The names of their events
        # have a dot, such as `before-call.s3`. No such handler ever runs here. This saves 54
        # million instructions of a cold start.
        if "." not in event:
            session.register(event, handler)
    # Keep two messages out of the log, which the SDK would write at each cold start: where its
    # credentials come from, and that it has no endpoint rules. The built layer has a list of
    # endpoints instead of these rules.
    logging.getLogger("botocore").setLevel(logging.WARNING)
    client: Any = session.create_client(
        "dynamodb",
        config=Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 3},
            tcp_keepalive=True,
            # Build the user agent once: for each call, the SDK would build a longer one. This saves
            # 1.0 million instructions of a call.
            user_agent=f"{session.user_agent()} app/animal-store",
            # Do not validate requests, because the tests validate them. This saves 0.3 million
            # instructions of a call. For an invalid request, which is a bug, DynamoDB's error leads
            # to a 500; the SDK's own error would lead to a 503.
            parameter_validation=False,
        ),
    )
    # After each attempt the SDK asks the handlers of `needs-retry` in turn, and obeys the first
    # handler that does not return None. So `_count_and_limit_retries` is the first.
    client.meta.events.register_first("needs-retry.dynamodb", _count_and_limit_retries)
    for operation in _RAW_OPERATIONS:
        client.meta.events.register(f"before-parse.dynamodb.{operation}", _keep_raw)
    return cast("DynamoDBClient", client)


def _count_and_limit_retries(response: tuple[Any, Any] | None, **_: object) -> bool | None:
    """Count an attempt, and prevent a retry that could outlast the invocation.

    Args:
        response: The HTTP response and its parsed body; None if there is no response.

    Returns:
        False to prevent a retry; None to let the SDK decide.
    """
    this_invocation = invocation.current.get()
    this_invocation.store_calls += 1
    is_corrupt = _is_corrupt(response)
    _last_response_is_corrupt.set(is_corrupt)
    is_success = response is not None and response[0].status_code in _SUCCESS
    if is_success and not is_corrupt:
        return None
    if this_invocation.has_time_for(_longest_pause(response) + _ATTEMPT_SECONDS):
        return None
    return False


def _is_corrupt(response: tuple[Any, Any] | None) -> bool:
    """Return whether a response does not match its checksum."""
    checksum = response[0].headers.get("x-amz-crc32") if response else None
    if response is None or checksum is None:
        return False
    return zlib.crc32(response[0].content) != int(checksum)


def _longest_pause(response: tuple[Any, Any] | None) -> float:
    """Return the longest pause, in seconds, that the SDK may make after this response."""
    retry_after = response[0].headers.get("x-amz-retry-after", "") if response else ""
    milliseconds = int(retry_after) if retry_after.isdecimal() else 0
    return _BACKOFF_SECONDS + min(milliseconds / 1000, _RETRY_AFTER_SECONDS)


def _keep_raw(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object
) -> None:
    """Keep the raw body of a successful response for `read`: the SDK does not parse this body.

    This saves 4.3 million processor instructions for a list of 20 animals, and 20.8 million for a
    list of 100 animals. The SDK's event `before-parse` supports this: the SDK parses the body that
    a handler leaves in `response_dict`, and adds `customized_response_dict` to the result. The SDK
    still parses errors, and still checks the body's CRC-32 checksum.
    """
    if response_dict["status_code"] in _SUCCESS:
        customized_response_dict["Raw"] = response_dict["body"]
        response_dict["body"] = b"{}"


client = new_client()


def call(method: Callable[..., Any], **parameters: Any) -> Any:
    """Call DynamoDB and return the SDK's response.

    Args:
        method: A method of `client`.
        parameters: The method's parameters, in DynamoDB's own JSON.

    Raises:
        StoreUnavailable: DynamoDB throttles the call or is out of reach, its response is corrupt,
            or no time is left for an attempt.
        ClientError: DynamoDB refused the request, because a condition does not hold, the table or a
            permission is missing, or the request is invalid (a bug).
    """
    if not invocation.current.get().has_time_for(_ATTEMPT_SECONDS):
        raise StoreUnavailable("no time is left to call DynamoDB")
    try:
        response = method(**parameters)
    except ClientError as error:
        _raise_if_corrupt()
        _raise_if_transient(error)
        raise
    except (BotoCoreError, ValueError) as error:
        # The SDK raises ValueError for corrupt bytes, and for a checksum that is not a number.
        raise StoreUnavailable("DynamoDB is out of reach, or its response is corrupt") from error
    _raise_if_corrupt()
    return response


def _raise_if_corrupt() -> None:
    """Raise StoreUnavailable if the last response does not match its checksum.

    The SDK repeats a call with such a response, but accepts the response to its last attempt.
    """
    if _last_response_is_corrupt.get():
        raise StoreUnavailable("the response of DynamoDB does not match its checksum")


def _raise_if_transient(error: ClientError) -> None:
    """Raise StoreUnavailable for an error after which the same call may succeed a moment later."""
    response: Any = error.response
    code = response["Error"]["Code"]
    if code.isdigit():
        # If the body of an error is truncated or corrupt, the SDK puts the HTTP status here, and
        # the body into the message. Keep the message out of the log: the body may hold what clients
        # sent.
        message = f"an error of DynamoDB is truncated or corrupt: HTTP {code}"
        raise StoreUnavailable(message) from None
    status = response["ResponseMetadata"]["HTTPStatusCode"]
    if code in _TRANSIENT_CODES or status >= _SERVER_ERROR:
        # Each reason names the limit that was reached, and its table or index:
        # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
        reasons = response.get("ThrottlingReasons") or response.get("throttlingReasons") or []
        raise StoreUnavailable(f"{code} {reasons}") from error


def read(method: Callable[..., Any], output: Validator[Output], **parameters: Any) -> Output:
    """Call GetItem, Query or UpdateItem and read DynamoDB's JSON straight into a model.

    Args:
        method: A method of `client`.
        output: Validates the response.
        parameters: The method's parameters, in DynamoDB's own JSON.

    Raises:
        StoreUnavailable: DynamoDB does not answer or throttles, or the response is truncated.
        ClientError: DynamoDB refuses the request.
        ValueError: The response has an item that this version cannot read.
    """
    response = call(method, **parameters)
    try:
        return output.validate_json(response["Raw"])
    except ValidationError as error:
        # Leave out the input: what clients sent does not belong in the log.
        details = error.errors(include_url=False, include_context=False, include_input=False)
        if details[0]["type"] == "json_invalid":
            raise StoreUnavailable("the response of DynamoDB is truncated or corrupt") from None
        raise ValueError(
            f"the store has an item that this version cannot read: {details}"
        ) from None
