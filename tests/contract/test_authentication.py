"""Who is let in: section 5 of the interface, and RFC 6750's way of presenting a key."""

import pytest

from tests.contract.client import Client, assert_error
from tests.support import openapi
from tools.local.events import EXAMPLE_KEY

pytestmark = pytest.mark.smoke_read_only

# Values of the header `Authorization`, written with the valid key.
REFUSED = [
    "",
    "Bearer",
    "{key}",
    "Bearer{key}",
    "Basic {key}",
    "Bearer {key}, Bearer {key}",
    "Bearer {key} {key}",
    'Bearer "{key}"',
    "Bearer x",
    "Bearer {key_in_the_other_case}",
    "Bearer {key}0",
    "Bearer schlüssel",
    "Bearer {key_mistyped}",
    "Bearer " + "a" * 4000,
    "Bearer " + EXAMPLE_KEY,
]


@openapi.each_operation
@pytest.mark.parametrize("value", REFUSED)
def test_refused(client: Client, operation: openapi.Operation, value: str) -> None:
    """Whatever else is wrong with a request, without a valid key that is all it is told."""
    key = client.api_key
    written = value.format(
        key=key,
        key_mistyped=key[:-1] + ("1" if key[-1] == "0" else "0"),
        key_in_the_other_case=key.swapcase(),
    )
    headers = [
        ("Authorization", written),
        ("Content-Type", "text/plain"),
        ("Idempotency-Key", ""),
    ]
    path = operation.with_id("x") + "?limit=0&status=x&cursor=x&page=2"
    content = b"{" if operation.has_body else None
    response = client.request(
        operation.method, path, headers, content, authenticate=False
    )
    assert_error(response, "unauthorized")


def test_refused_twice(client: Client) -> None:
    """A key in a second Authorization header is refused."""
    headers = [("Authorization", "Bearer " + client.api_key)]
    assert_error(client.request("GET", "/pets", headers), "unauthorized")


def test_refused_elsewhere(client: Client) -> None:
    """A key counts in no other header, and not in the query string, where logs would keep it."""
    key = client.api_key
    path = f"/pets?access_token={key}&api_key={key}&Authorization={key}"
    headers = [
        ("X-Api-Key", key),
        ("Proxy-Authorization", "Bearer " + key),
        ("Cookie", f"Authorization=Bearer {key}; api_key={key}"),
    ]
    response = client.request("GET", path, headers, authenticate=False)
    assert_error(response, "unauthorized")


@pytest.mark.parametrize(
    ("name", "scheme"), [("authorization", "bearer "), ("aUTHORIZATION", "bEaReR   ")]
)
def test_accepted(client: Client, name: str, scheme: str) -> None:
    """Case and the number of spaces do not count (RFC 9110, sections 5.1, 11.1 and 11.4)."""
    headers = [(name, scheme + client.api_key)]
    response = client.request("GET", "/pets?limit=1", headers, authenticate=False)
    assert response.status_code == 200
