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
    b"1",
    b"[" + VALID + b"]",
    # not one object
    VALID[:-1],
    VALID + VALID,
    # not JSON
    b'{"name": "x", "categoryId": 1,}',
    b'{"name": "x", /**/ "categoryId": 1}',
    # a member twice
    b'{"name": "x", "name": "x", "categoryId": 1}',
    rb'{"name": "x", "n\u0061me": "y", "categoryId": 1}',
    b'{"name": "x", "categoryId": 1, "status": "sold", "status": "pending"}',
    # what only looks like a space
    b'{"name": "x",\f"categoryId": 1}',
    '{"name": "x",\u00a0"categoryId": 1}'.encode(),
    # a byte order mark, and another encoding
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
    b'{"name": "x", "categoryId": 01}',
    b'{"name": "x", "categoryId": ' + b"9" * 5000 + b"}",
    # not strings: halves of a surrogate pair, unknown escapes, control characters
    rb'{"name": "\ud83d", "categoryId": 1}',
    rb'{"name": "\udc3e\ud83d", "categoryId": 1}',
    rb'{"name": "\x41", "categoryId": 1}',
    b'{"name": "a\0", "categoryId": 1}',
    b'{"name": "a\n", "categoryId": 1}',
]

ACCEPTED = [
    b" \r\n\t" + VALID + b"\n\n",
    rb'{"n\u0061me": "x", "categoryId": 1}',
    rb'{"name": "\u0078", "categoryId": 1}',
    b'{"categoryId":1,"name":"x"}',
    b'{"name": "x", "categoryId": 1, "y": ' + b"[" * 50 + b"]" * 50 + b"}",
    '{"name": "x", "categoryId": 1, "y": "é"}'.encode().ljust(LARGEST),
]


def post(client: Client, body: bytes) -> Response:
    """Send createPet with these bytes."""
    headers = {"Content-Type": "application/json"}
    return client.post("/pets", content=body, headers=headers)


@pytest.mark.parametrize("body", REFUSED)
def test_refused(client: Client, body: bytes) -> None:
    """A body that is not a JSON object, or that JSON leaves undefined, is refused."""
    assert_error(post(client, body), "invalid_request")


# In no encoding like it, and a surrogate.
@pytest.mark.parametrize("characters", [b"\xff\xfe", b"\xed\xa0\xbd"])
def test_not_utf_8(client: Client, characters: bytes) -> None:
    """Bytes that are not a character are refused."""
    assert_error(post(client, VALID.replace(b"x", characters)), "invalid_request")


@pytest.mark.parametrize("body", ACCEPTED)
def test_accepted(client: Client, body: bytes) -> None:
    """JSON is taken however it is written."""
    response = post(client, body)
    assert response.status_code == 201, response.text
    pet = response.json()
    assert pet == {"id": pet["id"], "name": "x", "categoryId": 1}


@pytest.mark.parametrize("body", [VALID + "é".encode(), b"\xff"], ids=["text", "bytes"])
def test_too_large(client: Client, body: bytes) -> None:
    """A body above 16 KB is answered with 413, whatever is in it."""
    assert_error(post(client, body.ljust(LARGEST + 1)), "payload_too_large")


def test_compressed(client: Client) -> None:
    """A body that is declared to be compressed is refused, and the answer says what is accepted."""
    headers = {"Content-Encoding": "gzip"}
    response = client.post("/pets", content=VALID, headers=headers)
    assert_error(response, "unsupported_media_type")
    assert response.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "headers",
    [
        {"cONTENT-tYPE": 'APPLICATION/json ; charset="utf-8"'},
        {"Content-Encoding": "identity"},
        {},
    ],
)
def test_media_type(client: Client, headers: dict[str, str]) -> None:
    """JSON is taken whatever the case and the parameters of its media type, or without one."""
    assert client.post("/pets", content=VALID, headers=headers).status_code == 201


@pytest.mark.parametrize(
    "media_type",
    [
        "application/json-patch+json",
        "application/json, text/plain",
    ],
)
def test_media_type_refused(client: Client, media_type: str) -> None:
    """Any other media type is refused."""
    headers = {"Content-Type": media_type}
    response = client.post("/pets", content=VALID, headers=headers)
    assert_error(response, "unsupported_media_type")
