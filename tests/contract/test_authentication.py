"""Every operation requires a valid API key ("Authentication" in openapi.yaml; RFC 6750)."""

import pytest
from httpx2 import Client, Headers

from tests.contract import openapi
from tests.contract.client import assert_error

pytestmark = pytest.mark.smoke_read_only

# Values of the header `Authorization`, in which {key} stands for the valid key.
INVALID_VALUES = [
    "",
    "Bearer",
    "{key}",
    "Bearer{key}",
    "Basic {key}",
    "Bearer {key}, Bearer {key}",
    "Bearer {key} {key}",
    'Bearer "{key}"',
    "Bearer x",
    "Bearer schlüssel",
    "Bearer {key_in_the_other_case}",
    "Bearer {key_without_its_end}",
]


@pytest.mark.parametrize("value", INVALID_VALUES)
def test_invalid_header_gets_401(client: Client, api_key: str, value: str) -> None:
    value = value.format(
        key=api_key,
        key_without_its_end=api_key[:-1],
        key_in_the_other_case=api_key.swapcase(),
    )
    headers = Headers({"Authorization": value}, encoding="utf-8")
    assert_error(client.get("/pets", headers=headers), 401)


# The key of `events/` is well-formed, but no stage knows it.
UNKNOWN_KEY = {
    "Authorization": "Bearer animal_test_AnExampleKeyThatOpensNothingHere0iR7H8"
}


@openapi.each_operation
@pytest.mark.parametrize(
    "authorization", [{}, UNKNOWN_KEY], ids=["missing key", "unknown key"]
)
def test_missing_or_unknown_key_gets_401_first(
    client: Client, authorization: dict[str, str], operation: openapi.Operation
) -> None:
    """The request has other faults, too."""
    path = operation.with_id("x") + "?limit=0&status=x&cursor=x&page=2"
    response = client.request(
        operation.method,
        path,
        headers={"Content-Type": "text/plain", "Idempotency-Key": "", **authorization},
        content=b"{" if operation.method == "POST" else None,
        auth=None,
    )
    assert_error(response, 401)


def test_repeated_header_gets_401(client: Client, api_key: str) -> None:
    """Both headers have the valid key."""
    headers = [("Authorization", f"Bearer {api_key}")] * 2
    assert_error(client.get("/pets", headers=headers), 401)


def test_key_outside_authorization_header_gets_401(
    client: Client, api_key: str
) -> None:
    """A key in the query would get into logs."""
    path = f"/pets?access_token={api_key}&api_key={api_key}&Authorization={api_key}"
    headers = {
        "X-Api-Key": api_key,
        "Proxy-Authorization": f"Bearer {api_key}",
        "Cookie": f"Authorization=Bearer {api_key}; api_key={api_key}",
    }
    assert_error(client.get(path, headers=headers, auth=None), 401)


@pytest.mark.parametrize("scheme", ["bearer ", "bEaReR   "])
def test_bearer_may_have_any_case_and_several_spaces(
    client: Client, api_key: str, scheme: str
) -> None:
    """RFC 9110 says so in sections 5.1, 11.1 and 11.4."""
    headers = {"aUTHORIZATION": scheme + api_key}
    response = client.get("/pets?limit=1", headers=headers)
    assert response.status_code == 200
