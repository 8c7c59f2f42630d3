"""Reads requests from API Gateway's REST proxy events.

https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway.html#apigateway-example-event
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlencode

from pydantic_core import ValidationError

from animal_store.constraints import REASONS

if TYPE_CHECKING:
    from collections.abc import Collection

    from animal_store.validators import Validator

Model = TypeVar("Model")
Choice = TypeVar("Choice", bound=str)

Event = dict[str, Any]
"""API Gateway's REST proxy event."""

_DIGITS = re.compile(r"[0-9]{1,19}")
_IDENTIFIER = re.compile(r"[1-9][0-9]{0,18}")
_INT64_MAX = 2**63 - 1
_IDEMPOTENCY_KEY = re.compile(r'"(?P<quoted>[!-~]{1,255})"|(?P<bare>[!#-~]([!-~]{0,253}[!#-~])?)')
_DEFAULT_PORT = {"http": "80", "https": "443"}
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_MAX_QUOTED_LENGTH = 200  # limits the unknown names that an error message quotes
# The largest animal takes 3.3 KB: its name has 256 characters, each of at most twelve bytes in JSON
# (`\ud83d\ude00`). The limit is five times as large.
_MAX_BODY_BYTES = 16 * 1024


class InvalidRequest(Exception):
    """The body, a parameter or a header is invalid; the exception's text says why."""


class NotFound(Exception):
    """No resource exists under the path."""


class PayloadTooLarge(Exception):
    """The body is larger than any resource can be."""


class UnsupportedMediaType(Exception):
    """The Content-Type is not a single `application/json`."""


class UnsupportedContentCoding(Exception):
    """The Content-Encoding is not `identity`."""


class Caller(NamedTuple):
    """Who sent a request: the owner of a valid API key.

    Args:
        key_hash: The key's hash.
        key_id: The first digits of the hash, for logs and records.
        key_label: The label that the key was issued with.
    """

    key_hash: str
    key_id: str
    key_label: str


class Request:
    """One request.

    Args:
        event: API Gateway's event for the request.
    """

    def __init__(self, event: Event) -> None:
        self._event = event
        self.context: dict[str, Any] = event["requestContext"]
        """What API Gateway reports about the request."""
        self._query: dict[str, list[str]] = event.get("multiValueQueryStringParameters") or {}
        self._headers: dict[str, list[str]] = {}
        for name, values in (event.get("multiValueHeaders") or {}).items():
            # Names of headers are case-insensitive (RFC 9110, section 5.1).
            self._headers.setdefault(name.lower(), []).extend(values)

    def header(self, name: str) -> list[str]:
        """Return every value of a header."""
        return self._headers.get(name.lower(), [])

    def header_elements(self, name: str) -> list[str]:
        """Return the elements of a comma-separated header, in lower case.

        Empty elements do not count (RFC 9110, section 5.6.1).
        """
        elements = ",".join(self.header(name)).split(",")
        return [element.strip().lower() for element in elements if element.strip()]

    def identifier(self, name: str) -> int:
        """Return a path parameter as the id of a resource: an integer from 1 to 2^63 - 1.

        Raises:
            NotFound: The parameter is anything else, such as a number with a leading zero.
        """
        # API Gateway's REST APIs leave the parameter percent-encoded, as the client wrote it
        # (https://github.com/aws/aws-sam-cli/issues/771).
        text = unquote(self._event["pathParameters"][name])
        if not _IDENTIFIER.fullmatch(text) or int(text) > _INT64_MAX:
            raise NotFound
        return int(text)

    def parameter(self, name: str) -> str | None:
        """Return a query parameter, or None if it is not given.

        Raises:
            InvalidRequest: The parameter is given more than once.
        """
        values = self._query.get(name, [])
        if len(values) > 1:
            raise InvalidRequest(f"{name}: must be given once.")
        return values[0] if values else None

    def integer(self, name: str, minimum: int, maximum: int, default: int) -> int:
        """Return an integer query parameter, or the default if the parameter is not given.

        The parameter may contain only decimal digits: no sign, no space and no point.

        Raises:
            InvalidRequest: The parameter is given more than once, is not written in 1 to 19 digits,
                or is out of bounds.
        """
        text = self.parameter(name)
        if text is None:
            return default
        if not _DIGITS.fullmatch(text) or not minimum <= int(text) <= maximum:
            raise InvalidRequest(f"{name}: must be an integer from {minimum} to {maximum}.")
        return int(text)

    def choice(self, name: str, choices: tuple[Choice, ...]) -> Choice | None:
        """Return a query parameter, which must be one of the choices, or None if it is not given.

        Raises:
            InvalidRequest: The parameter is given more than once, or is not one of the choices.
        """
        text = self.parameter(name)
        if text is None:
            return None
        for choice in choices:
            if text == choice:
                return choice
        # Word the message as pydantic does for a member of a body.
        *others, last = map(repr, choices)
        raise InvalidRequest(f"{name}: must be one of {', '.join(others)} or {last}.")

    def refuse_other_parameters(self, names: Collection[str]) -> None:
        """Refuse a request that has a query parameter whose name is not in `names`; case matters.

        If a misspelled filter were ignored, the client would get resources that it didn't want.

        Raises:
            InvalidRequest: The request has other parameters.
        """
        unknown = ", ".join(repr(name) for name in self._query if name not in names)
        if unknown:
            raise InvalidRequest(f"Unknown query parameters: {unknown[:_MAX_QUOTED_LENGTH]}.")

    def body(self, model: Validator[Model]) -> Model:
        """Parse and validate a JSON body (RFC 8259). Members that are not in the model are ignored.

        Args:
            model: The model to validate the body against.

        Raises:
            UnsupportedContentCoding: Content-Encoding is neither absent nor `identity`.
            UnsupportedMediaType: Content-Type is neither absent nor a single `application/json`.
            PayloadTooLarge: The body is larger than 16 KB. It is not parsed, because 6 MB, the most
                that Lambda accepts, can take a second to parse.
            InvalidRequest: The body is missing or not JSON, or members are missing, invalid or
                given twice.
        """
        if {*self.header_elements("Content-Encoding")} - {"identity"}:
            raise UnsupportedContentCoding
        media_types = [_media_type(value) for value in self.header("Content-Type")]
        if media_types not in ([], ["application/json"]):
            raise UnsupportedMediaType
        body = self._event.get("body")
        if not body:
            raise InvalidRequest("The body is required.")
        is_base64 = self._event.get("isBase64Encoded")
        content = base64.b64decode(body) if is_base64 else body.encode(errors="surrogatepass")
        if len(content) > _MAX_BODY_BYTES:
            raise PayloadTooLarge
        return _validate(model, _parse_json(content))

    def idempotency_key(self) -> str | None:
        """Return the Idempotency-Key, or None if the client sent none.

        The IETF's draft requires quotes around the key. Here they are optional, and removed.
        https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/

        Raises:
            InvalidRequest: The key is given twice, is empty or too long, has a quote at only one
                end, or has characters other than visible ASCII.
        """
        keys = self.header("Idempotency-Key")
        if not keys:
            return None
        key = _IDEMPOTENCY_KEY.fullmatch(keys[0])
        if len(keys) > 1 or not key:
            raise InvalidRequest(
                "Idempotency-Key: must be given once: 1 to 255 visible ASCII characters, "
                "bare or in double quotes."
            )
        return key["quoted"] or key["bare"]

    def collection_url(self, **parameters: str | int) -> str:
        """Return the absolute URL of the resource's collection: `.../pets` for `/pets/{petId}`.

        The host and the beginning of the path are those of the request. The scheme and the port
        come from headers that API Gateway adds. Empty segments of the path are left out.

        Args:
            parameters: The URL's query parameters.
        """
        # A client may send X-Forwarded headers, too. API Gateway replaces or extends them
        # (https://github.com/ustayready/fireprox/issues/12): the last element is API Gateway's.
        schemes = self.header_elements("X-Forwarded-Proto")[-1:]
        scheme = schemes[0] if schemes and schemes[0] in _DEFAULT_PORT else "https"
        ports = self.header_elements("X-Forwarded-Port")[-1:]
        # `sam local` appends the port to the domain name: remove it. (An IPv6 address ends in a
        # bracket, so no part of it matches.)
        authority = re.sub(r":[0-9]*$", "", self.context["domainName"])
        if ports and _PORT.fullmatch(ports[0]) and ports[0] != _DEFAULT_PORT[scheme]:
            authority += f":{ports[0]}"
        # The path may begin with a prefix: the stage, or a custom domain's base path. The
        # resource's segments follow. (A slash in an id does not separate segments: it is encoded as
        # `%2F`.)
        resource = self._event["resource"]
        segments = [segment for segment in self.context["path"].split("/") if segment]
        prefix = "".join(f"/{segment}" for segment in segments[: -resource.count("/")])
        query = f"?{urlencode(parameters)}" if parameters else ""
        return f"{scheme}://{authority}{prefix}{resource.partition('/{')[0]}{query}"


def _media_type(content_type: str) -> str:
    """Return the media type without its parameters (RFC 9110, section 8.3.1)."""
    return content_type.partition(";")[0].strip().lower()


def _parse_json(content: bytes) -> object:
    """Parse JSON strictly (RFC 8259): refuse NaN, duplicate members and a byte order mark."""
    try:
        return json.loads(
            content.decode(),
            object_pairs_hook=_object_without_duplicates,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError:
        raise InvalidRequest("The body is not valid UTF-8.") from None
    except (ValueError, RecursionError):
        # Python also raises ValueError for an integer of more than 4300 digits, and RecursionError
        # for a body that is nested too deeply.
        raise InvalidRequest("The body cannot be read as JSON.") from None


def _object_without_duplicates(members: list[tuple[str, object]]) -> dict[str, object]:
    members_by_name = dict(members)
    if len(members_by_name) != len(members):
        raise InvalidRequest("The body has an object with duplicate members.")
    return members_by_name


def _refuse_constant(_: str) -> None:
    raise ValueError


def _validate(model: Validator[Model], value: object) -> Model:
    try:
        return model.validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        messages = [
            _message(detail["loc"], detail["type"], detail.get("ctx", {})) for detail in details
        ]
        raise InvalidRequest(" ".join(messages)) from None


def _message(location: tuple[int | str, ...], error_type: str, context: dict[str, Any]) -> str:
    """Return a message that says which member is invalid and why.

    The message contains neither the member's value nor pydantic's own message.
    """
    if not location:
        return "The body must be a JSON object."
    reason = REASONS.get(context.get("pattern", error_type), "is not valid")
    return f"{location[0]}: {reason.format_map(context)}."
