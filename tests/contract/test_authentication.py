"""Who is let in: section 5 of the interface, and RFC 6750's way of presenting a key."""

import base64

import httpx
import pytest

from tests.contract.client import JSON, Client, Headers, assert_error, short
from tests.support import openapi
from tools.local.events import EXAMPLE_KEY

pytestmark = pytest.mark.smoke_read_only

NEVER_ISSUED = "Bearer " + EXAMPLE_KEY

# Values of the header `Authorization`, written with the valid key; without this header, None.
REFUSED = [
    None,
    "",
    "Bearer",
    "{key}",
    "Bearer{key}",
    "Bearer: {key}",
    "Token {key}",
    "Basic {key_in_base64}",
    "Bearer {key}, Bearer {key}",
    "Bearer {key},",
    "Bearer {key} {key}",
    'Bearer "{key}"',
    "Bearer x",
    "Bearer {key_in_the_other_case}",
    "Bearer {key_cut}",
    "Bearer {key}0",
    "Bearer schlüssel",
    "Bearer " + "a" * 4000,
    "Bearer {key_mistyped}",
    NEVER_ISSUED,
]


def authorization(value: str | None, key: str) -> Headers:
    """Return the header `Authorization` with this value."""
    if value is None:
        return []
    written = value.format(
        key=key,
        key_cut=key[:-1],
        key_mistyped=key[:-1] + ("1" if key[-1] == "0" else "0"),
        key_in_the_other_case=key.swapcase(),
        key_in_base64=base64.b64encode((key + ":").encode()).decode(),
    )
    return [("Authorization", written)]


def assert_unauthorized(response: httpx.Response) -> None:
    assert_error(response, "unauthorized")
    # API Gateway gives the challenge another name on its way out.
    remapped = response.headers.get("x-amzn-remapped-www-authenticate")
    challenge = response.headers.get("WWW-Authenticate", remapped)
    assert challenge == 'Bearer realm="animal-store"'


@openapi.each_operation
@pytest.mark.parametrize("value", REFUSED, ids=short)
def test_refused(
    client: Client, operation: openapi.Operation, value: str | None
) -> None:
    """Every operation refuses a key that is missing, invalid or not a bearer token."""
    headers = [*authorization(value, client.api_key), JSON]
    content = b'{"name": "x", "categoryId": 1}' if operation.method == "POST" else None
    path = operation.path.format(petId=1)
    assert_unauthorized(
        client.request(operation.method, path, headers, content, authenticate=False)
    )


@pytest.mark.parametrize(
    ("name", "value", "authenticate"),
    [
        ("Authorization", "Bearer {key}", True),
        ("Authorization", "Bearer x", True),
        ("X-Api-Key", "{key}", False),
        ("Proxy-Authorization", "Bearer {key}", False),
        ("Cookie", "Authorization=Bearer {key}; api_key={key}", False),
    ],
)
def test_refused_header(
    client: Client, name: str, value: str, authenticate: bool
) -> None:
    """A key in a second Authorization header, or in another one, is refused."""
    headers = [(name, value.format(key=client.api_key))]
    response = client.request("GET", "/pets", headers, authenticate=authenticate)
    assert_unauthorized(response)


@pytest.mark.parametrize("parameter", ["access_token", "api_key", "Authorization"])
def test_refused_in_query(client: Client, parameter: str) -> None:
    """A key in the query string, where logs would keep it, is not accepted."""
    path = f"/pets?{parameter}={client.api_key}"
    assert_unauthorized(client.request("GET", path, authenticate=False))


@pytest.mark.parametrize("name", ["Authorization", "authorization", "aUTHORIZATION"])
@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "bEaReR ", "Bearer   "])
def test_accepted(client: Client, name: str, scheme: str) -> None:
    """Case and the number of spaces do not count (RFC 9110, sections 5.1, 11.1 and 11.4)."""
    headers = [(name, scheme + client.api_key)]
    response = client.request("GET", "/pets?limit=1", headers, authenticate=False)
    assert response.status_code == 200


@pytest.mark.parametrize("value", [None, "Bearer {key_mistyped}", NEVER_ISSUED])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/pets?limit=0&status=x&cursor=x&page=2"),
        ("GET", "/pets/9223372036854775807"),
        ("GET", "/pets/x"),
        ("POST", "/pets?page=2"),
    ],
)
def test_comes_first(client: Client, method: str, path: str, value: str | None) -> None:
    """Whatever else is wrong with a request, without a valid key that is all it is told."""
    wrong = [("Content-Type", "text/plain"), ("Idempotency-Key", "")]
    headers = [*authorization(value, client.api_key), *wrong]
    content = b"{" if method == "POST" else None
    assert_unauthorized(
        client.request(method, path, headers, content, authenticate=False)
    )
