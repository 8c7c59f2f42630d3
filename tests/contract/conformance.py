"""What every answer of the service must be, whatever was asked: one check that each response of the suite passes.

The API document (`openapi.yaml`) is checked by schemathesis; the rules that it can not express are written out here.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup

OPENAPI = Path(__file__).parents[2] / "openapi.yaml"

STATUS_OF_CODE = {
    "invalid_request": 400,
    "unauthorized": 401,
    "not_found": 404,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "idempotency_key_reused": 422,
    "too_many_requests": 429,
}
"""The codes that a client can bring about. The others, 500 and above, are never right in answer to this suite."""

SUNSET = "Thu, 05 Dec 2030 00:00:00 GMT"

_CHECKS = [
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]
_EVERY_ANSWER = {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_INTERNALS = re.compile(
    r"Traceback|pydantic|boto|dynamodb|lambda|\.py\b|/var/|/opt/|Exception|[a-z]Error\b|errors\.|<class", re.IGNORECASE
)
"""Class names, paths, libraries and stores, none of which a message may show."""


@cache
def document() -> Any:
    """Load the API document, once."""
    load_all_checks()
    document = schemathesis.openapi.from_path(OPENAPI)
    # The key is the client's (401 has its own tests), and parameters that the interface does not have are ignored.
    document.config.generation.update(with_security_parameters=False, allow_extra_parameters=False)
    return document


def strict_json(text: str) -> Any:
    """Parse JSON as RFC 8259 defines it: no NaN, no Infinity, and no member twice."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    def unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(members)) == len(members), f"a member is given twice: {members}"
        return dict(members)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


def check(response: httpx.Response) -> None:
    """Assert all that holds for any answer to its request."""
    request = response.request
    context = f"{request.method} {request.url} -> {response.status_code} {response.text[:500]}"
    assert response.status_code < 500, context
    for name, value in _EVERY_ANSWER.items():
        assert response.headers.get_list(name) == [value], f"{name}: {response.headers.get_list(name)} in {context}"
    if request.method == "HEAD":
        assert not response.content, context
    elif response.is_error:
        _check_error(strict_json(response.text), response.status_code)

    template = _path_template(request)
    # API Gateway throttles before it knows the operation.
    if (
        template == "/pets/{petId}"
        and request.method == "GET"
        and response.status_code != httpx.codes.TOO_MANY_REQUESTS
    ):
        _check_deprecation(response)
    if template is not None and request.method.lower() in list(document()[template]):
        _check_against_document(response, document()[template][request.method])
    else:
        assert response.status_code == 404, context


def challenge(response: httpx.Response) -> str | None:
    """Find the `WWW-Authenticate` challenge, also under the name that API Gateway gives to it on its way out."""
    names = ("WWW-Authenticate", "x-amzn-remapped-www-authenticate")
    return next((response.headers[name] for name in names if name in response.headers), None)


def _check_deprecation(response: httpx.Response) -> None:
    """Assert the three headers that announce the end of getPet (RFC 9745, RFC 8594, RFC 5829)."""
    assert re.fullmatch(r"@\d{9,10}", response.headers["Deprecation"]), response.headers
    assert response.headers["Sunset"] == SUNSET
    assert response.links.keys() == {"successor-version"}, response.headers
    assert re.fullmatch(r"https?://[^?]+/v1/pets", response.links["successor-version"]["url"]), response.headers


def _check_error(error: dict[str, Any], status: int) -> None:
    assert error.keys() == {"code", "message", "status"}, error
    assert type(error["status"]) is int, error
    assert error["status"] == status, error
    assert STATUS_OF_CODE.get(error["code"]) == status, error
    assert error["message"].strip(), error
    assert not _INTERNALS.search(error["message"]), error


def _path_template(request: httpx.Request) -> str | None:
    path = request.url.raw_path.decode().partition("?")[0].rpartition("/v1")[2]
    if path == "/pets":
        return path
    # An encoded slash: whether it splits the path is the server's own business.
    return "/pets/{petId}" if re.fullmatch(r"/pets/((?!%2F)[^/])+", path, re.IGNORECASE) else None


def _check_against_document(response: httpx.Response, operation: Any) -> None:
    case = operation.Case(path_parameters={"petId": "1"})  # any: only the answer is looked at
    try:
        case.validate_response(response, checks=CHECKS.get_by_names(_CHECKS))
    except FailureGroup as failures:
        raise AssertionError(f"The answer is not what openapi.yaml declares: {failures}") from failures
    if response.is_success:
        body = strict_json(response.text)
        for pet in body if isinstance(body, list) else [body]:
            # The document leaves members open, for clients' sake; the service keeps to these.
            assert pet.keys() - {"status"} == {"id", "name", "categoryId"}, pet
