"""Reads requests from API Gateway's REST proxy events.

The event:
https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway.html#apigateway-example-event
"""

import base64
import json
import re
from typing import Any, TypeVar
from urllib.parse import unquote, urlencode

from pydantic_core import ValidationError

from animal_store import patterns
from animal_store.auth import Caller
from animal_store.errors import (
    InvalidRequest,
    PayloadTooLarge,
    UnsupportedContentCoding,
    UnsupportedMediaType,
)
from animal_store.validators import Validator

Model = TypeVar("Model")
Choice = TypeVar("Choice", bound=str)

_DIGITS = re.compile(r"[0-9]{1,19}")
_IDENTIFIER = re.compile(r"[1-9][0-9]{0,18}")
_INT64_MAX = 2**63 - 1
_IDEMPOTENCY_KEY = re.compile(r'"(?P<quoted>[!-~]{1,255})"|(?P<bare>[!#-~]([!-~]{0,253}[!#-~])?)')
_DEFAULT_PORT = {"http": "80", "https": "443"}
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_MAX_NAMES_LENGTH = 200
# Five times an animal with the longest name: 256 characters, each written as two escapes of six.
_MAX_BODY_BYTES = 16 * 1024

# What is wrong with a member, by pydantic's error type, or by the pattern that it does not match.
_REASONS = patterns.REASONS | {
    "missing": "is required",
    "string_type": "must be a string",
    "string_too_short": "must have at least {min_length} character(s)",
    "string_too_long": "must have at most {max_length} characters",
    "string_unicode": "must be valid Unicode, without lone surrogates",
    "int_type": "must be an integer",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
}


class Request:
    """One request from an authenticated caller.

    Args:
        event: API Gateway's REST proxy event.
        caller: Who calls.
    """

    def __init__(self, event: dict[str, Any], caller: Caller) -> None:
        self._event = event
        self._query: dict[str, list[str]] = event.get("multiValueQueryStringParameters") or {}
        self._known: set[str] = set()
        self.caller = caller

    def path_parameter(self, name: str) -> str:
        """Return a path parameter, percent-decoded.

        A REST API hands it over as the client wrote it
        (https://github.com/aws/aws-sam-cli/issues/771).
        """
        return unquote(self._event["pathParameters"][name])

    def parameter(self, name: str) -> str | None:
        """Return a query parameter, or None if it is not given.

        Raises:
            InvalidRequest: It is given more than once.
        """
        self._known.add(name)
        values = self._query.get(name)
        if not values:
            return None
        if len(values) > 1:
            raise InvalidRequest(f"{name}: must be given once.")
        return values[0]

    def integer(self, name: str, minimum: int, maximum: int, default: int) -> int:
        """Return an integer query parameter: decimal digits only, no sign, space or point.

        Raises:
            InvalidRequest: It is given more than once, is not an integer, or is out of bounds.
        """
        text = self.parameter(name)
        if text is None:
            return default
        if not _DIGITS.fullmatch(text) or not minimum <= int(text) <= maximum:
            raise InvalidRequest(f"{name}: must be an integer from {minimum} to {maximum}.")
        return int(text)

    def choice(self, name: str, choices: tuple[Choice, ...]) -> Choice | None:
        """Return a query parameter that is one of the choices, or None if it is not given.

        Raises:
            InvalidRequest: It is given more than once, or is something else.
        """
        text = self.parameter(name)
        if text is None:
            return None
        for allowed in choices:
            if text == allowed:
                return allowed
        raise InvalidRequest(f"{name}: must be one of {', '.join(choices)}.")

    def refuse_other_parameters(self) -> None:
        """Refuse query parameters that have not been read; case matters.

        Silently dropping a filter or a page number would give wrong data.

        Raises:
            InvalidRequest: There are such parameters.
        """
        unknown = ", ".join(repr(name) for name in self._query if name not in self._known)
        if unknown:
            raise InvalidRequest(f"Unknown query parameters: {unknown[:_MAX_NAMES_LENGTH]}.")

    def body(self, model: Validator[Model], media_type: str = "application/json") -> Model:
        """Read the body as JSON (RFC 8259). Members that the model does not have are ignored.

        Args:
            model: What to read it as.
            media_type: The one that is accepted; a request without any is accepted too.

        Raises:
            UnsupportedMediaType: The body is declared to be something else.
            UnsupportedContentCoding: The body is compressed.
            PayloadTooLarge: The body is larger than 16 KB. It is not parsed: 6 MB would take a
                second.
            InvalidRequest: The body is missing, is not JSON, or lacks members or has invalid ones.
        """
        declared = header(self._event, "Content-Type")
        if declared and [_media_type(value) for value in declared] != [media_type]:
            raise UnsupportedMediaType(f"Content-Type must be {media_type}.")
        if header(self._event, "Content-Encoding") not in ([], ["identity"]):
            raise UnsupportedContentCoding
        text = self._event.get("body")
        if not text:
            raise InvalidRequest("The body is required.")
        content = base64.b64decode(text) if self._event.get("isBase64Encoded") else text
        if (
            len(content if isinstance(content, bytes) else content.encode(errors="surrogatepass"))
            > _MAX_BODY_BYTES
        ):
            raise PayloadTooLarge
        return _validate(model, _parse_json(content))

    def idempotency_key(self) -> str | None:
        """Return the Idempotency-Key without the quotes that the IETF's draft asks for, or None.

        https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/

        Raises:
            InvalidRequest: The key is given twice, is empty, too long, has invisible characters,
                or has a quote at one end only.
        """
        keys = header(self._event, "Idempotency-Key")
        if not keys:
            return None
        key = _IDEMPOTENCY_KEY.fullmatch(keys[0])
        if len(keys) > 1 or not key:
            raise InvalidRequest(
                "Idempotency-Key: must be given once: 1 to 255 visible ASCII characters, "
                "bare or in double quotes."
            )
        return key["quoted"] or key["bare"]

    def collection_url(self, **parameters: str | int | None) -> str:
        """Return the absolute URL of the collection with these parameters; None leaves one out."""
        return f"{collection_url(self._event)}?" + urlencode(
            {name: value for name, value in parameters.items() if value is not None}
        )


def header(event: dict[str, Any], name: str) -> list[str]:
    """Return every value of a header; its name is case-insensitive (RFC 9110, section 5.1)."""
    name = name.lower()
    headers: dict[str, list[str]] = event.get("multiValueHeaders") or {}
    return [value for key, values in headers.items() if key.lower() == name for value in values]


def collection_url(event: dict[str, Any]) -> str:
    """Return the absolute URL of the collection (`.../v1/pets`) as the client addressed it.

    Scheme and port come from the headers that API Gateway adds; values that are neither are
    ignored. The path before the resource's is the stage, or the base path of a custom domain.
    """
    context = event["requestContext"]
    forwarded = header(event, "X-Forwarded-Proto")[-1:]
    scheme = forwarded[0] if forwarded and forwarded[0] in _DEFAULT_PORT else "https"
    ports = [port for port in header(event, "X-Forwarded-Port")[-1:] if _PORT.fullmatch(port)]
    # sam local puts the port into the name too. (An IPv6 address has colons inside brackets.)
    host = re.sub(r":[0-9]*$", "", context["domainName"])
    authority = ":".join([host, *(port for port in ports if port != _DEFAULT_PORT[scheme])])
    collection = event["resource"].partition("/{")[0]
    # As the client wrote it: any character may be percent-encoded.
    prefix = unquote(context["path"]).partition(collection)[0]
    return f"{scheme}://{authority}{prefix}{collection}"


def positive_int64(text: str) -> int | None:
    """Read an identifier of a path: 1 to 2^63 - 1, no leading zero; None for anything else."""
    return int(text) if _IDENTIFIER.fullmatch(text) and int(text) <= _INT64_MAX else None


def _media_type(content_type: str) -> str:
    """Return the media type without its parameters (RFC 9110, section 8.3.1)."""
    return content_type.partition(";")[0].strip().lower()


def _parse_json(text: str | bytes) -> object:
    """Parse JSON as strictly as RFC 8259 allows: no NaN, duplicate members, byte order mark."""
    try:
        if isinstance(text, bytes):
            text = text.decode()
        return json.loads(text, object_pairs_hook=_members, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise InvalidRequest("The body is not valid UTF-8.") from None
    except (ValueError, RecursionError):
        # ValueError: also an integer of more than 4300 digits (sys.set_int_max_str_digits).
        # RecursionError: nested too deeply.
        raise InvalidRequest("The body is not valid JSON.") from None


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidRequest("The body has an object with duplicate members.")
    return members


def _refuse_constant(_: str) -> None:
    raise ValueError


def _validate(model: Validator[Model], value: object) -> Model:
    try:
        return model.python(value)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        problems = [
            _problem(detail["loc"], detail["type"], detail.get("ctx", {})) for detail in details
        ]
        raise InvalidRequest(" ".join(problems)) from None


def _problem(location: tuple[int | str, ...], kind: str, context: dict[str, Any]) -> str:
    """Describe which member is wrong and why; never what was sent or how it is checked."""
    if not location:
        return "The body must be a JSON object."
    reason = _REASONS.get(context.get("pattern", kind), "is not valid")
    return f"{location[0]}: {reason.format_map(context)}."
