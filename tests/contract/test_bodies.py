"""Bodies that are not what JSON (RFC 8259) is, or more of it than is good."""

import json

import pytest

from tests.contract.client import JSON, Client, assert_error

VALID = b'{"name": "x", "categoryId": 1}'
LARGEST = 16 * 1024
NO_NUMBERS = [
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"01",
    b"+1",
    b"0x1",
    b"1_0",
    b".5",
    b"1.",
    b"-",
    b"9" * 5000,
]
NO_STRINGS = [rb"\ud83d", rb"\udc3ex", rb"\udc3e\ud83d", rb"\x41", rb"\u00", b"a\0", b"a\n", b"a\t"]

REFUSED = [
    *[
        b"",
        b" \r\n\t",
        b"1",
        b"true",
        b"null",
        b"[]",
        b'"x"',
        b"[" + VALID + b"]",
        json.dumps(VALID.decode()).encode(),
    ],
    *[VALID[:-1], VALID[:11], VALID + b" x", VALID + b",", VALID + b"\n" + VALID],
    *[
        b'{"name": "x", "categoryId": 1,}',
        b'{"name": "x" "categoryId": 1}',
        b'{"name": "x", /**/ "categoryId": 1}',
    ],
    *[
        b"{'name': 'x', 'categoryId': 1}",
        b'{name: "x", categoryId: 1}',
        b"name=x&categoryId=1",
        b"name: x\n",
    ],
    # a member twice
    *[
        b'{"name": "x", "name": "x", "categoryId": 1}',
        rb'{"name": "x", "n\u0061me": "y", "categoryId": 1}',
    ],
    *[VALID[:-1] + b', "categoryId": 2}', VALID[:-1] + b', "status": "sold", "status": "pending"}'],
    # what only looks like a space, and other ways to encode characters
    *[b'{"name": "x",\f"categoryId": 1}', '{"name": "x",\u00a0"categoryId": 1}'.encode()],
    *[b"\xef\xbb\xbf" + VALID, VALID.decode().encode("utf-16-le")],
    *[VALID.replace(b"1", number) for number in NO_NUMBERS],
    *[VALID.replace(b"x", string) for string in NO_STRINGS],
    # beyond what a parser should follow, and in a member that nobody reads
    *[b"[" * 16_000, b'{"a":' * 3000],
    *[VALID[:-1] + b', "weight": %b}' % number for number in (b"NaN", b"9" * 5000)],
]

ACCEPTED = {
    "white-space-around": b" \r\n\t" + VALID + b"\n\n",
    "escaped-member-name": rb'{"n\u0061me": "x", "categoryId": 1}',
    "other-order": b'{"categoryId":1,"name":"x"}',
    "nested-a-little": VALID[:-1] + b', "deep": ' + b"[" * 50 + b"]" * 50 + b"}",
    "largest": (VALID[:-1] + ', "note": "é'.encode()).ljust(LARGEST - 2, b"y") + b'"}',
    "many-unknown-members": json.dumps(
        {"name": "x", "categoryId": 1} | {f"m{n}": n for n in range(1000)}
    ).encode(),
}


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: repr(body)[2:50])
def test_refused(client: Client, body: bytes) -> None:
    """A body that is no JSON object, or that JSON leaves undefined, is answered with 400."""
    assert_error(client.post(body), "invalid_request")


@pytest.mark.parametrize(
    "characters", [b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\xbd", b"\xf0\x9f\x90", b"\xf4\x90\x80\x80"]
)
def test_not_utf_8(client: Client, characters: bytes) -> None:
    """Bytes that no character has: in no encoding like it, overlong, a surrogate, cut off, beyond Unicode."""
    assert_error(client.post(VALID.replace(b"x", characters)), "invalid_request")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encoding(client: Client, encoding: str) -> None:
    assert_error(client.post(VALID.decode().encode(encoding)), "invalid_request")


def test_body_absent(client: Client) -> None:
    """A creation needs a body."""
    assert_error(client.request("POST", "/pets", [JSON]), "invalid_request")
    assert_error(client.request("POST", "/pets"), "invalid_request")


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(client: Client, body: bytes) -> None:
    """JSON is taken however it is written."""
    response = client.post(body)
    assert response.status_code == 201, response.text
    assert response.json() == {"id": response.json()["id"], "name": "x", "categoryId": 1}


@pytest.mark.parametrize(
    "body", [VALID + "é".encode(), b"", b"\xff"], ids=["text", "no-json", "bytes"]
)
def test_too_large(client: Client, body: bytes) -> None:
    """A body above 16 KB is answered with 413, whatever is in it."""
    assert_error(client.post(body.ljust(LARGEST + 1)), "payload_too_large")


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_compressed(client: Client, coding: str) -> None:
    """A body that is declared to be compressed is answered with 415."""
    response = client.post(VALID, ("Content-Encoding", coding))
    assert_error(response, "unsupported_media_type")
    assert response.headers["Accept-Encoding"] == "identity"
