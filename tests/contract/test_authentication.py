"""Who is let in: section 5 of the interface, and RFC 6750's way of presenting a key."""

import pytest
from httpx2 import Client, Headers

from tests.contract.client import assert_error
from tests.support import openapi

pytestmark = pytest.mark.smoke_read_only

# The well-formed key of `events/`: no stage knows it.
EXAMPLE_KEY = "animal_test_AnExampleKeyThatOpensNothingHere0iR7H8"

# These values of the header `Authorization` are formatted with the valid key.
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
    "Bearer schlüssel",
    "Bearer {key_mistyped}",
    "Bearer " + "a" * 4000,
    "Bearer " + EXAMPLE_KEY,
]


@openapi.each_operation
@pytest.mark.parametrize("value", REFUSED)
def test_without_a_valid_key_nothing_else_is_said(
    client: Client, api_key: str, operation: openapi.Operation, value: str
) -> None:
    """Path, parameters, headers and body of this request are wrong too."""
    written = value.format(
        key=api_key,
        key_mistyped=api_key[:-1] + ("1" if api_key[-1] == "0" else "0"),
        key_in_the_other_case=api_key.swapcase(),
    )
    sent = {
        "Authorization": written,
        "Content-Type": "text/plain",
        "Idempotency-Key": "",
    }
    headers = Headers(sent, encoding="utf-8")
    path = operation.with_id("x") + "?limit=0&status=x&cursor=x&page=2"
    content = b"{" if operation.method == "POST" else None
    response = client.request(operation.method, path, headers=headers, content=content)
    assert_error(response, "unauthorized")


def test_repeated_header_is_refused(client: Client, api_key: str) -> None:
    """Both Authorization headers have the valid key."""
    headers = [("Authorization", f"Bearer {api_key}")] * 2
    assert_error(client.get("/pets", headers=headers), "unauthorized")


def test_key_in_another_place_is_refused(client: Client, api_key: str) -> None:
    """The query string is such a place: logs would keep it."""
    path = f"/pets?access_token={api_key}&api_key={api_key}&Authorization={api_key}"
    headers = {
        "X-Api-Key": api_key,
        "Proxy-Authorization": f"Bearer {api_key}",
        "Cookie": f"Authorization=Bearer {api_key}; api_key={api_key}",
    }
    response = client.get(path, headers=headers, auth=None)
    assert_error(response, "unauthorized")


@pytest.mark.parametrize(
    ("name", "scheme"), [("authorization", "bearer "), ("aUTHORIZATION", "bEaReR   ")]
)
def test_case_and_spaces_of_the_scheme_do_not_count(
    client: Client, api_key: str, name: str, scheme: str
) -> None:
    """RFC 9110, sections 5.1, 11.1 and 11.4."""
    response = client.get("/pets?limit=1", headers={name: scheme + api_key})
    assert response.status_code == 200
