"""Bodies that are not what JSON (RFC 8259) is, or more of it than is good."""

import pytest
from httpx2 import Client, Response

from tests.contract.client import assert_error

VALID = b'{"name": "x", "categoryId": 1}'
LARGEST = 16 * 1024

REFUSED = [
    # not an object
    b"",
    b" \r\n\t",
    b"[" + VALID + b"]",
    # not one object
    VALID[:-1],
    VALID + VALID,
    # not JSON
    b'{"name": "x", "categoryId": 1,}',
    # a member twice
    b'{"name": "x", "name": "x", "categoryId": 1}',
    rb'{"name": "x", "n\u0061me": "y", "categoryId": 1}',
    # what only looks like a space
    b'{"name": "x",\f"categoryId": 1}',
    '{"name": "x",\u00a0"categoryId": 1}'.encode(),
    # with a byte order mark, or in another encoding
    b"\xef\xbb\xbf" + VALID,
    VALID.decode().encode("utf-16"),
    # deeper than a parser should go
    b"[" * 16_000,
    b'{"a":' * 3000,
    # in a member that nobody reads
    b'{"name": "x", "categoryId": 1, "weight": NaN}',
    b'{"name": "x", "categoryId": 1, "weight": ' + b"9" * 5000 + b"}",
    # not numbers
    b'{"name": "x", "categoryId": NaN}',
    b'{"name": "x", "categoryId": ' + b"9" * 5000 + b"}",
    # strings with half of a surrogate pair, an unknown escape, a control character
    rb'{"name": "\ud83d", "categoryId": 1}',
    rb'{"name": "\udc3e\ud83d", "categoryId": 1}',
    rb'{"name": "\x41", "categoryId": 1}',
    b'{"name": "a\0", "categoryId": 1}',
]

ACCEPTED = [
    b" \r\n\t" + VALID + b"\n\n",
    rb'{"n\u0061me": "x", "categoryId": 1}',
    rb'{"name": "\u0078", "categoryId": 1}',
    b'{"name": "x", "categoryId": 1, "y": ' + b"[" * 50 + b"]" * 50 + b"}",
    '{"name": "x", "categoryId": 1, "y": "é"}'.encode().ljust(LARGEST),
]


def post(client: Client, body: bytes) -> Response:
    """Send createPet with these bytes."""
    headers = {"Content-Type": "application/json"}
    return client.post("/pets", content=body, headers=headers)


@pytest.mark.parametrize("body", REFUSED)
def test_body_that_is_no_json_object_is_refused(client: Client, body: bytes) -> None:
    """Nor is one accepted whose meaning JSON leaves open."""
    assert_error(post(client, body), "invalid_request")


# The first two bytes occur in no UTF-8; the others encode half of a surrogate pair.
@pytest.mark.parametrize("characters", [b"\xff\xfe", b"\xed\xa0\xbd"])
def test_body_that_is_not_utf_8_is_refused(client: Client, characters: bytes) -> None:
    assert_error(post(client, VALID.replace(b"x", characters)), "invalid_request")


@pytest.mark.parametrize("body", ACCEPTED)
def test_json_is_accepted_however_it_is_written(client: Client, body: bytes) -> None:
    response = post(client, body)
    assert response.status_code == 201, response.text
    pet = response.json()
    assert pet == {"id": pet["id"], "name": "x", "categoryId": 1}


@pytest.mark.parametrize("body", [VALID + "é".encode(), b"\xff"], ids=["text", "bytes"])
def test_body_over_16_kb_is_refused(client: Client, body: bytes) -> None:
    """The answer is 413 whatever is in the body."""
    assert_error(post(client, body.ljust(LARGEST + 1)), "payload_too_large")


@pytest.mark.parametrize("coding", ["GZIP", "identity, gzip"])
def test_compressed_body_is_refused(client: Client, coding: str) -> None:
    """The answer says which coding is accepted (RFC 9110, section 12.5.3)."""
    headers = {"Content-Encoding": coding}
    response = client.post("/pets", content=VALID, headers=headers)
    assert_error(response, "unsupported_media_type")
    assert response.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "headers",
    [
        {"cONTENT-tYPE": 'APPLICATION/json ; charset="utf-8"'},
        # A list of codings, in which case and empty elements do not count (RFC 9110, 5.6.1, 8.4.1).
        {"Content-Encoding": "Identity"},
        {"Content-Encoding": ""},
        {"Content-Encoding": "identity, IDENTITY,"},
        {},
    ],
)
def test_json_is_accepted_however_it_is_declared(
    client: Client, headers: dict[str, str]
) -> None:
    assert client.post("/pets", content=VALID, headers=headers).status_code == 201


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json-patch+json",
        "application/json, text/plain",
    ],
)
def test_other_media_type_is_refused(client: Client, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    response = client.post("/pets", content=VALID, headers=headers)
    assert_error(response, "unsupported_media_type")
