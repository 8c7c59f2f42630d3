"""Who is let in: section 5 of the interface, and RFC 6750's way of presenting a key."""

import base64
import re

import httpx
import pytest

from tests.contract.client import JSON, Client, assert_error
from tests.support import openapi
from tools.local.events import EXAMPLE_KEY

pytestmark = pytest.mark.smoke_read_only

Headers = list[tuple[str, str]]

OPERATIONS = [
    pytest.param(operation.method, re.sub(r"{\w+}", "1", operation.path), id=operation.id)
    for operation in openapi.operations()
]

# Values of the header `Authorization`; what stands for {key} and the others depends on the valid key.
NOT_BEARER = ["", "Bearer", "{key}", "Bearer{key}", "Bearer: {key}", "Token {key}", "Basic {basic}"]
NOT_ONE_KEY = [
    "Bearer {key}, Bearer {key}",
    "Bearer {key},",
    "Bearer {key} {key}",
    'Bearer "{key}"',
]
MALFORMED = [
    "Bearer x",
    "Bearer {swapped}",
    "Bearer {cut}",
    "Bearer {key}0",
    "Bearer schlüssel",
    f"Bearer {'a' * 4000}",
]
MISTYPED, NEVER_ISSUED = "Bearer {mistyped}", f"Bearer {EXAMPLE_KEY}"

REFUSED = [
    [],
    *[
        [("Authorization", value)]
        for value in (*NOT_BEARER, *NOT_ONE_KEY, *MALFORMED, MISTYPED, NEVER_ISSUED)
    ],
    [("Authorization", "Bearer {key}"), ("Authorization", "Bearer {key}")],
    [("Authorization", "Bearer {key}"), ("Authorization", "Bearer x")],
    [("X-Api-Key", "{key}")],
    [("Proxy-Authorization", "Bearer {key}")],
    [("Cookie", "Authorization=Bearer {key}; api_key={key}")],
]


def with_key(headers: Headers, key: str) -> Headers:
    forms = {
        "key": key,
        "cut": key[:-1],
        "swapped": key.swapcase(),
        "mistyped": key[:-1] + ("0" if key[-1] != "0" else "1"),
        "basic": base64.b64encode(f"{key}:".encode()).decode(),
    }
    return [(name, value.format(**forms)) for name, value in headers]


def assert_unauthorized(response: httpx.Response) -> None:
    assert_error(response, "unauthorized")
    # API Gateway gives the challenge another name on its way out.
    names = ("WWW-Authenticate", "x-amzn-remapped-www-authenticate")
    assert 'Bearer realm="animal-store"' in [response.headers.get(name) for name in names]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize(
    "headers", REFUSED, ids=lambda headers: " ".join(value for _, value in headers)[:50]
)
def test_refused(client: Client, method: str, path: str, headers: Headers) -> None:
    """A key that is missing, invalid or not presented as a bearer token is answered with 401 by every operation."""
    content = b'{"name": "must not be added", "categoryId": 1}' if method == "POST" else None
    headers = [*with_key(headers, client.api_key), *([JSON] if content else [])]
    assert_unauthorized(client.request(method, path, headers, content, authenticate=False))


@pytest.mark.parametrize("parameter", ["access_token", "api_key", "Authorization"])
def test_refused_in_query(client: Client, parameter: str) -> None:
    """A key in the query string, where logs would keep it, is not accepted."""
    assert_unauthorized(
        client.request("GET", f"/pets?{parameter}={client.api_key}", authenticate=False)
    )


@pytest.mark.parametrize("name", ["Authorization", "authorization", "aUTHORIZATION"])
@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "bEaReR ", "Bearer   "])
def test_accepted(client: Client, name: str, scheme: str) -> None:
    """Case does not count, nor how many spaces stand before the key (RFC 9110, sections 5.1, 11.1 and 11.4)."""
    headers = [(name, f"{scheme}{client.api_key}")]
    assert client.request("GET", "/pets?limit=1", headers, authenticate=False).status_code == 200


@pytest.mark.parametrize(
    "key", [[], [("Authorization", MISTYPED)], [("Authorization", NEVER_ISSUED)]]
)
@pytest.mark.parametrize(
    ("path", "headers", "content"),
    [
        *(
            (path, [], None)
            for path in ("/pets?limit=0", "/pets?cursor=x", "/pets/9223372036854775807", "/pets/x")
        ),
        ("/pets", [JSON], b"{"),
        ("/pets", [JSON], b'{"name": 1}'),
        ("/pets", [("Content-Type", "text/plain")], b"x"),
        ("/pets", [JSON, ("Idempotency-Key", "")], b"{}"),
    ],
)
def test_comes_first(
    client: Client, path: str, headers: Headers, content: bytes | None, key: Headers
) -> None:
    """Nothing is said about parameters, body or existence to who has no valid key."""
    headers = [*headers, *with_key(key, client.api_key)]
    assert_unauthorized(
        client.request("POST" if content else "GET", path, headers, content, authenticate=False)
    )
