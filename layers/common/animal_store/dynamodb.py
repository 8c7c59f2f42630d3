"""Calls DynamoDB, with one SDK client per execution environment.

A call or retry is made only if it can end before Lambda ends the invocation. A response that does
not match its checksum is a failure.
"""

from __future__ import annotations

import logging
import zlib
from typing import TYPE_CHECKING, Any, TypeVar, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.handlers import BUILTIN_HANDLERS
from botocore.session import Session
from pydantic_core import ValidationError, from_json

from animal_store import invocation

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_dynamodb import DynamoDBClient

    from animal_store.validators import Validator

Output = TypeVar("Output")

_MAX_ATTEMPTS = 3
_CONNECT_SECONDS = 1
_READ_SECONDS = 2
# Time to decode the response to the last attempt, to answer the client and to log.
_MARGIN_SECONDS = 0.5
_ATTEMPT_SECONDS = _CONNECT_SECONDS + _READ_SECONDS + _MARGIN_SECONDS
# In its standard mode, the SDK pauses for at most this time before a third attempt.
_BACKOFF_SECONDS = 2
# If DynamoDB asks for a longer pause, the SDK adds at most this many seconds to its pause.
_RETRY_AFTER_SECONDS = 5
# The pause when this module itself requests a retry, because the SDK might not.
_OWN_PAUSE_SECONDS = 0.1

# A signature contains the time, and the clock may be wrong for a moment when Lambda thaws an
# execution environment.
_CLOCK_CODES = frozenset({"InvalidSignatureException", "RequestTimeTooSkewed"})
# UnrecognizedClientException usually means wrong credentials, but AWS says to try again:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
_SIGN_AGAIN_CODES = _CLOCK_CODES | {"UnrecognizedClientException"}
_TRANSIENT_CODES = _CLOCK_CODES | frozenset(
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
_OPERATIONS_PARSED_BY_READ = ("GetItem", "Query", "UpdateItem")


class StoreUnavailable(Exception):
    """The store cannot serve the request now.

    The exception's text is logged. It gives the reason, and must not contain what clients sent.
    """


def new_client() -> DynamoDBClient:
    """Create a client with the SDK's standard retries, each made only if time is left."""
    # Some comments below say how many processor instructions a choice saves. For comparison, a cold
    # start takes about 660 million instructions (tests/benchmarks/RESULTS.md), and a call of getPet
    # took 4 million.
    #
    # Use botocore's own session: boto3 adds resources and S3 transfers, which nothing here uses.
    # This saves 108 million instructions of a cold start.
    session = Session(include_builtin_handlers=False)
    for event, handler, *_ in BUILTIN_HANDLERS:
        # Leave out the SDK's handlers for single services, because none of them would ever run
        # here. Such a handler belongs to an event with a dot in its name, such as `before-call.s3`.
        # This saves 54 million instructions of a cold start.
        if "." not in event:
            session.register(event, handler)
    # At each cold start, the SDK would log where its credentials come from, and that it has no
    # endpoint rules. Keep both messages out of the log. (Instead of endpoint rules, the built layer
    # has a list of endpoints.)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    client: Any = session.create_client(
        "dynamodb",
        config=Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _MAX_ATTEMPTS},
            # Build the user agent once: the SDK's own is longer, and is built for each call. This
            # saves 1.0 million instructions of a call.
            user_agent=f"{session.user_agent()} app/animal-store",
            # Don't validate the requests to DynamoDB: the tests do. This saves 0.1 to 0.2 million
            # instructions of a call. An invalid request is a bug, so the client should get 500:
            # DynamoDB's error leads to 500, but the SDK's would lead to 503.
            parameter_validation=False,
        ),
    )
    # After each attempt, the SDK asks the handlers of `needs-retry` in turn, and obeys the first
    # handler that does not return None. So register `_decide_on_retry` first.
    client.meta.events.register_first("needs-retry.dynamodb", _decide_on_retry)
    for operation in _OPERATIONS_PARSED_BY_READ:
        client.meta.events.register(f"before-parse.dynamodb.{operation}", _keep_raw)
    return cast("DynamoDBClient", client)


def _decide_on_retry(
    response: tuple[Any, Any] | None, attempts: int, request_dict: dict[str, Any], **_: object
) -> float | None:
    """Count an attempt, and decide whether another one follows.

    Args:
        response: The HTTP response and its parsed body; None if there is no response.
        attempts: The number of attempts that this call has made.
        request_dict: The SDK's request. Its `context` is the same dictionary in each attempt.

    Returns:
        The pause before the next attempt, in seconds; False for no attempt; None to let the
        SDK decide.

    Raises:
        StoreUnavailable: The response does not match its checksum, and no attempt or time is left.
    """
    this_invocation = invocation.current.get()
    this_invocation.store_calls += 1
    is_corrupt = _is_corrupt(response)
    is_success = response is not None and response[0].status_code in _SUCCESS
    if is_success and not is_corrupt:
        return None
    seconds = _longest_pause(response) + _ATTEMPT_SECONDS
    if attempts == _MAX_ATTEMPTS or not this_invocation.has_time_for(seconds):
        if is_corrupt:
            # The SDK would return the corrupt response as if nothing were wrong.
            raise StoreUnavailable("the response of DynamoDB does not match its checksum")
        return False
    if is_corrupt:
        # The SDK would try again, too, but only until its quota of retries is used up.
        return _OWN_PAUSE_SECONDS
    error = response[1].get("Error", {}) if response else {}
    context = request_dict["context"]
    if error.get("Code") in _SIGN_AGAIN_CODES and "signed_again" not in context:
        context["signed_again"] = True
        return _OWN_PAUSE_SECONDS
    return None


def _is_corrupt(response: tuple[Any, Any] | None) -> bool:
    """Return whether a response does not match its checksum."""
    checksum = response[0].headers.get("x-amz-crc32") if response else None
    if response is None or checksum is None:
        return False
    return zlib.crc32(response[0].content) != int(checksum)


def _longest_pause(response: tuple[Any, Any] | None) -> float:
    """Return an upper limit of the SDK's pause after this response, in seconds."""
    retry_after = response[0].headers.get("x-amz-retry-after", "") if response else ""
    milliseconds = int(retry_after) if retry_after.isdecimal() else 0
    return _BACKOFF_SECONDS + min(milliseconds / 1000, _RETRY_AFTER_SECONDS)


def _keep_raw(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object
) -> None:
    """Keep the raw body of a successful response, so that `read`, not the SDK, parses it.

    This saves 4.3 million processor instructions for a list of 20 animals, and 20.8 million for a
    list of 100 animals. The SDK calls this function before it parses the body, and adds
    `customized_response_dict` to the result. So the SDK finds only `{}` to parse. It still parses
    errors, and still checks the body's CRC-32 checksum.
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
        ClientError: DynamoDB refused the request, for instance because a condition does not hold or
            a permission is missing.
    """
    if not invocation.current.get().has_time_for(_ATTEMPT_SECONDS):
        raise StoreUnavailable("no time is left to call DynamoDB")
    try:
        return method(**parameters)
    except ClientError as error:
        _raise_if_transient(error)
        raise
    except (BotoCoreError, ValueError) as error:
        # ValueError means bytes that are not UTF-8, or a checksum that is not a number.
        raise StoreUnavailable("DynamoDB is out of reach, or its response is corrupt") from error


def _raise_if_transient(error: ClientError) -> None:
    """Raise StoreUnavailable for a transient error."""
    response: Any = error.response
    code = response["Error"]["Code"]
    if code.isdigit():
        # If the body of an error is truncated or corrupt, the SDK uses the HTTP status as the
        # error's code, and the body as the error's message. Keep the message out of the log: the
        # body may contain what clients sent.
        message = f"an error of DynamoDB is truncated or corrupt: HTTP {code}"
        raise StoreUnavailable(message) from None
    status = response["ResponseMetadata"]["HTTPStatusCode"]
    if code in _TRANSIENT_CODES or status >= _SERVER_ERROR:
        # Each reason names the limit that was reached, and the table or index that has this limit:
        # https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ThrottlingReason.html
        reasons = response.get("ThrottlingReasons") or response.get("throttlingReasons") or []
        raise StoreUnavailable(f"{code} {reasons}") from error


def read(method: Callable[..., Any], output: Validator[Output], **parameters: Any) -> Output:
    """Call GetItem, Query or UpdateItem and read DynamoDB's JSON straight into a model.

    Args:
        method: A method of `client`.
        output: The validator of DynamoDB's response.
        parameters: The method's parameters, in DynamoDB's own JSON.

    Raises:
        StoreUnavailable, ClientError: As in `call`.
        StoreUnavailable: The response is truncated.
        ValueError: The response has an item that this version cannot read.
    """
    response = call(method, **parameters)
    try:
        return output.validate_json(response["Raw"])
    except ValidationError as error:
        # Leave out the input: it contains what clients sent, which must not get into the log.
        details = error.errors(include_url=False, include_context=False, include_input=False)
        if details[0]["type"] == "json_invalid":
            raise StoreUnavailable("the response of DynamoDB is truncated or corrupt") from None
        # Name the items by their ids, so that somebody can repair them: for an item in a list,
        # pydantic's errors have only its index.
        keys = parameters.get("Key")
        if keys is None:
            items = from_json(response["Raw"])["Items"]
            places = {detail["loc"][1] for detail in details}
            keys = [items[place]["id"] for place in sorted(places)]
        raise ValueError(
            f"the store has an item that this version cannot read: {keys} {details}"
        ) from None
