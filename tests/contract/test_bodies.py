"""createPet accepts one JSON object (RFC 8259): in UTF-8, uncompressed, of at most 16 KB."""

import pytest
from httpx2 import Client

from tests.contract.client import assert_error

VALID_BODY = b'{"name": "x", "categoryId": 1}'
MAX_BYTES = 16 * 1024
JSON_HEADERS = {"Content-Type": "application/json"}

INVALID_BODIES = {
    "empty": b"",
    "an array": b"[" + VALID_BODY + b"]",
    "no name": b'{"categoryId": 1}',
    "no categoryId": b'{"name": "x"}',
    "two objects": VALID_BODY + VALID_BODY,
    "a comma at the end": b'{"name": "x", "categoryId": 1,}',
    "a member twice": rb'{"name": "x", "n\u0061me": "y", "categoryId": 1}',
    "a byte order mark": b"\xef\xbb\xbf" + VALID_BODY,
    "UTF-16": VALID_BODY.decode().encode("utf-16"),
    "bytes that are not UTF-8": VALID_BODY.replace(b"x", b"\xff\xfe"),
    "a surrogate in UTF-8": VALID_BODY.replace(b"x", b"\xed\xa0\xbd"),
    "half of a surrogate pair": rb'{"name": "\ud83d", "categoryId": 1}',
    "a control character": b'{"name": "a\0", "categoryId": 1}',
    "16,000 nested arrays": b"[" * 16_000,
    "NaN in an unknown member": b'{"name": "x", "categoryId": 1, "weight": NaN}',
    "an integer of 5000 digits": b'{"name": "x", "categoryId": 1, "y": '
    + b"9" * 5000
    + b"}",
    "categoryId with a fraction": b'{"name": "x", "categoryId": 1.0}',
    "categoryId with an exponent": b'{"name": "x", "categoryId": 1e2}',
}
VALID_BODIES = {
    "white space around the object": b" \r\n\t" + VALID_BODY + b"\n\n",
    "escaped characters": rb'{"n\u0061me": "\u0078", "categoryId": 1}',
    "50 nested arrays": VALID_BODY[:-1] + b', "y": ' + b"[" * 50 + b"]" * 50 + b"}",
    "16 KB": VALID_BODY.ljust(MAX_BYTES),
}
# The test pads these to 16 KB and one byte.
LARGE_BODIES = {
    "16 KB in characters but not in bytes": VALID_BODY.replace(b"x", "é".encode()),
    "not UTF-8": b"\xff",
}


@pytest.mark.parametrize("body", INVALID_BODIES.values(), ids=INVALID_BODIES)
def test_invalid_body_gets_400(client: Client, body: bytes) -> None:
    assert_error(client.post("/pets", content=body, headers=JSON_HEADERS), 400)


@pytest.mark.parametrize("body", VALID_BODIES.values(), ids=VALID_BODIES)
def test_json_object_of_at_most_16_kb_is_accepted(client: Client, body: bytes) -> None:
    pet = client.post("/pets", content=body, headers=JSON_HEADERS).json()
    assert pet == {"id": pet["id"], "name": "x", "categoryId": 1}


@pytest.mark.parametrize("body", LARGE_BODIES.values(), ids=LARGE_BODIES)
def test_body_over_16_kb_gets_413(client: Client, body: bytes) -> None:
    content = body.ljust(MAX_BYTES + 1)
    assert_error(client.post("/pets", content=content, headers=JSON_HEADERS), 413)


@pytest.mark.parametrize("coding", ["GZIP", "identity, gzip"])
def test_compressed_body_gets_415(client: Client, coding: str) -> None:
    """The response names the coding that is accepted (RFC 9110, section 12.5.3).

    It does so for a body of any media type.
    """
    headers = {"Content-Encoding": coding, "Content-Type": "text/plain"}
    response = client.post("/pets", content=VALID_BODY, headers=headers)
    assert_error(response, 415)
    assert response.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "media_type", ["application/json-patch+json", "application/json, text/plain"]
)
def test_other_media_type_gets_415(client: Client, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    assert_error(client.post("/pets", content=VALID_BODY, headers=headers), 415)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cONTENT-tYPE", 'APPLICATION/json ; charset="utf-8"'),
        # Case and empty elements do not count in a list of codings (RFC 9110, 5.6.1 and 8.4.1).
        ("Content-Encoding", "identity, IDENTITY,"),
        ("Content-Encoding", ""),
    ],
)
def test_unusual_spelling_of_headers_is_accepted(
    client: Client, name: str, value: str
) -> None:
    response = client.post("/pets", content=VALID_BODY, headers={name: value})
    assert response.status_code == 201
