"""Who is let in: section 5 of the interface, and RFC 6750's way of presenting a key."""

import base64
import http.client
import re
import zlib
from collections.abc import Callable

import httpx
import pytest

from tests import openapi
from tests.contract.client import JSON, Client, Headers, Pet, assert_error
from tests.contract.conformance import challenge
from tests.in_process import Target

pytestmark = pytest.mark.smoke_read_only

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

OPERATIONS = [
    pytest.param(operation.method, re.sub(r"{\w+}", "1", operation.path), id=operation.id)
    for operation in openapi.operations()
]


def unknown_key() -> str:
    """Write a key whose checksum is right and that was never issued."""
    body = "animal_test_" + "0" * 32
    checksum, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        checksum, digit = divmod(checksum, 62)
        digits = ALPHABET[digit] + digits
    return body + digits


def with_last_character_changed(key: str) -> str:
    return key[:-1] + ("0" if key[-1] != "0" else "1")


REFUSED: dict[str, Callable[[str], Headers]] = {
    "missing": lambda _: [],
    "empty": lambda _: [("Authorization", "")],
    "scheme-alone": lambda _: [("Authorization", "Bearer")],
    "key-alone": lambda key: [("Authorization", key)],
    "scheme-joined": lambda key: [("Authorization", f"Bearer{key}")],
    "scheme-with-colon": lambda key: [("Authorization", f"Bearer: {key}")],
    "other-scheme": lambda key: [("Authorization", f"Token {key}")],
    "basic": lambda key: [("Authorization", "Basic " + base64.b64encode(f"{key}:".encode()).decode())],
    "twice": lambda key: [("Authorization", f"Bearer {key}"), ("Authorization", f"Bearer {key}")],
    "valid-then-invalid": lambda key: [("Authorization", f"Bearer {key}"), ("Authorization", "Bearer x")],
    "comma-joined": lambda key: [("Authorization", f"Bearer {key}, Bearer {key}")],
    "comma-after": lambda key: [("Authorization", f"Bearer {key},")],
    "two-keys": lambda key: [("Authorization", f"Bearer {key} {key}")],
    "quoted": lambda key: [("Authorization", f'Bearer "{key}"')],
    "other-case": lambda key: [("Authorization", f"Bearer {key.swapcase()}")],
    "cut": lambda key: [("Authorization", f"Bearer {key[:-1]}")],
    "prolonged": lambda key: [("Authorization", f"Bearer {key}0")],
    "mistyped": lambda key: [("Authorization", f"Bearer {with_last_character_changed(key)}")],
    "never-issued": lambda _: [("Authorization", f"Bearer {unknown_key()}")],
    "nonsense": lambda _: [("Authorization", "Bearer x")],
    "not-ascii": lambda _: [("Authorization", "Bearer schlüssel".encode())],
    "very-long": lambda _: [("Authorization", "Bearer " + "a" * 4000)],
    "in-another-header": lambda key: [("X-Api-Key", key)],
    "for-a-proxy": lambda key: [("Proxy-Authorization", f"Bearer {key}")],
    "in-a-cookie": lambda key: [("Cookie", f"Authorization=Bearer {key}; api_key={key}")],
}


def assert_unauthorized(response: httpx.Response) -> None:
    assert_error(response, "unauthorized")
    assert challenge(response) == "Bearer"


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("variant", REFUSED)
def test_refused(client: Client, method: str, path: str, variant: str) -> None:
    """A key that is missing, invalid or not presented as a bearer token is answered with 401 by every operation."""
    headers = [*REFUSED[variant](client.api_key), *([JSON] if method == "POST" else [])]
    content = b'{"name": "must not be added", "categoryId": 1}' if method == "POST" else None
    assert_unauthorized(client.request(method, path, headers, content, authenticate=False))


@pytest.mark.parametrize("parameter", ["access_token", "api_key", "Authorization"])
def test_refused_in_query(client: Client, parameter: str) -> None:
    """A key in the query string, where logs would keep it, is not accepted."""
    assert_unauthorized(client.request("GET", f"/pets?{parameter}={client.api_key}", authenticate=False))


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_scheme_ignores_case(client: Client, scheme: str) -> None:
    """The scheme is case-insensitive (RFC 9110, section 11.1)."""
    headers = [("Authorization", f"{scheme} {client.api_key}")]
    assert client.request("GET", "/pets?limit=1", headers, authenticate=False).status_code == 200


@pytest.mark.parametrize("name", ["authorization", "AUTHORIZATION", "aUTHORIZATION"])
def test_header_name_ignores_case(client: Client, name: str) -> None:
    """Header names are case-insensitive (RFC 9110, section 5.1)."""
    headers = [(name, f"Bearer {client.api_key}")]
    assert client.request("GET", "/pets?limit=1", headers, authenticate=False).status_code == 200


def test_several_spaces_after_scheme(client: Client) -> None:
    """One or more spaces stand between scheme and key (RFC 9110, section 11.4)."""
    headers = [("Authorization", f"Bearer   {client.api_key}")]
    assert client.request("GET", "/pets?limit=1", headers, authenticate=False).status_code == 200


def test_space_around_header_value(socket_target: Target) -> None:
    """White space around a header's value is not part of it (RFC 9110, section 5.5)."""
    url = httpx.URL(f"{socket_target.base_url}/pets?limit=1")
    connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connect(url.host, url.port, timeout=30)  # httpx refuses to send such a header
    authorization = f"  Bearer {socket_target.api_key} \t "
    try:
        connection.request("GET", url.raw_path.decode(), headers={"Authorization": authorization})
        assert connection.getresponse().status == 200
    finally:
        connection.close()


BEFORE = {
    "limit": ("GET", "/pets?limit=0", [], None),
    "status": ("GET", "/pets?status=x", [], None),
    "cursor": ("GET", "/pets?cursor=x", [], None),
    "unknown-animal": ("GET", "/pets/9223372036854775807", [], None),
    "malformed-id": ("GET", "/pets/x", [], None),
    "empty-body": ("POST", "/pets", [JSON], b""),
    "malformed-body": ("POST", "/pets", [JSON], b"{"),
    "invalid-body": ("POST", "/pets", [JSON], b'{"name": 1}'),
    "media-type": ("POST", "/pets", [("Content-Type", "text/plain")], b"x"),
    "idempotency-key": ("POST", "/pets", [JSON, ("Idempotency-Key", "")], b"{}"),
}


@pytest.mark.parametrize("key", ["missing", "mistyped", "never-issued"])
@pytest.mark.parametrize("request_", BEFORE.values(), ids=BEFORE.keys())
def test_comes_first(client: Client, request_: tuple[str, str, Headers, bytes | None], key: str) -> None:
    """Nothing is said about parameters, body or existence to who has no valid key."""
    method, path, headers, content = request_
    headers = [*headers, *REFUSED[key](client.api_key)]
    assert_unauthorized(client.request(method, path, headers, content, authenticate=False))


def test_existence_stays_hidden(client: Client, oldest: Pet) -> None:
    """Without a valid key, an animal that exists is answered like one that does not."""
    known, unknown = (
        client.request("GET", f"/pets/{pet_id}", authenticate=False) for pet_id in (oldest["id"], 2**63 - 1)
    )
    assert known.status_code == unknown.status_code == 401
    assert known.text == unknown.text
