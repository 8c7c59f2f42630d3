"""Bodies that are not what JSON (RFC 8259) is, or more of it than is good."""

import json

import pytest

from tests.contract.client import JSON, Client, assert_error, pet_of

VALID = b'{"name": "x", "categoryId": 1}'

REFUSED = {
    "empty": b"",
    "white-space": b" \r\n\t",
    "cut": VALID[:-1],
    "cut-in-string": VALID[:11],
    "trailing-word": VALID + b" x",
    "trailing-comma": VALID + b",",
    "two-values": VALID + VALID,
    "two-lines": VALID + b"\n" + VALID,
    "comma-before-end": b'{"name": "x", "categoryId": 1,}',
    "no-comma": b'{"name": "x" "categoryId": 1}',
    "comment": b'{"name": "x", /* one */ "categoryId": 1}',
    "single-quotes": b"{'name': 'x', 'categoryId': 1}",
    "bare-names": b'{name: "x", categoryId: 1}',
    "form": b"name=x&categoryId=1",
    "xml": b"<pet><name>x</name></pet>",
    "yaml": b"name: x\ncategoryId: 1\n",
    "top-level-array": b"[" + VALID + b"]",
    "top-level-string": b'"x"',
    "json-in-string": json.dumps(VALID.decode()).encode(),
    "top-level-number": b"1",
    "top-level-true": b"true",
    "top-level-null": b"null",
    "empty-array": b"[]",
    "nan": b'{"name": "x", "categoryId": NaN}',
    "infinity": b'{"name": "x", "categoryId": Infinity}',
    "negative-infinity": b'{"name": "x", "categoryId": -Infinity}',
    "nan-elsewhere": b'{"name": "x", "categoryId": 1, "weight": NaN}',
    "name-twice": b'{"name": "x", "name": "y", "categoryId": 1}',
    "name-twice-alike": b'{"name": "x", "name": "x", "categoryId": 1}',
    "name-twice-escaped": rb'{"name": "x", "n\u0061me": "y", "categoryId": 1}',
    "category-twice": b'{"name": "x", "categoryId": 1, "categoryId": 2}',
    "status-twice": b'{"name": "x", "categoryId": 1, "status": "sold", "status": "pending"}',
    "byte-order-mark": b"\xef\xbb\xbf" + VALID,
    "utf-16": VALID.decode().encode("utf-16"),
    "utf-16-without-mark": VALID.decode().encode("utf-16-le"),
    "utf-32": VALID.decode().encode("utf-32"),
    "latin-1": '{"name": "é", "categoryId": 1}'.encode("latin-1"),
    "invalid-utf-8": b'{"name": "\xff\xfe", "categoryId": 1}',
    "overlong-utf-8": b'{"name": "\xc0\xaf", "categoryId": 1}',
    "surrogate-in-utf-8": b'{"name": "\xed\xa0\xbd\xed\xb0\xbe", "categoryId": 1}',
    "cut-utf-8": b'{"name": "\xf0\x9f\x90", "categoryId": 1}',
    "beyond-unicode": b'{"name": "\xf4\x90\x80\x80", "categoryId": 1}',
    "high-surrogate": rb'{"name": "x\ud83d", "categoryId": 1}',
    "low-surrogate": rb'{"name": "\udc3ex", "categoryId": 1}',
    "reversed-surrogates": rb'{"name": "\udc3e\ud83d", "categoryId": 1}',
    "invalid-escape": rb'{"name": "\x41", "categoryId": 1}',
    "cut-escape": rb'{"name": "\u00", "categoryId": 1}',
    "raw-nul": b'{"name": "a\0b", "categoryId": 1}',
    "raw-line-feed": b'{"name": "a\nb", "categoryId": 1}',
    "raw-tab": b'{"name": "a\tb", "categoryId": 1}',
    "form-feed-between": b'{"name": "x",\f"categoryId": 1}',
    "no-break-space-between": '{"name": "x",\u00a0"categoryId": 1}'.encode(),
    "leading-zero": b'{"name": "x", "categoryId": 01}',
    "plus-sign": b'{"name": "x", "categoryId": +1}',
    "hexadecimal": b'{"name": "x", "categoryId": 0x1}',
    "grouped": b'{"name": "x", "categoryId": 1_0}',
    "no-digit-before-point": b'{"name": "x", "categoryId": .5}',
    "no-digit-after-point": b'{"name": "x", "categoryId": 1.}',
    "minus-alone": b'{"name": "x", "categoryId": -}',
    "fullwidth-digit": '{"name": "x", "categoryId": \uff11}'.encode(),
    "thousands-of-digits": b'{"name": "x", "categoryId": ' + b"9" * 5000 + b"}",
    "thousands-of-digits-elsewhere": b'{"name": "x", "categoryId": 1, "weight": ' + b"9" * 5000 + b"}",
    "deep-arrays": b"[" * 16_000,
    "deep-objects": b'{"a":' * 3000,
}

ACCEPTED = {
    "white-space-around": b" \r\n\t" + VALID + b"\n\n",
    "escaped-member-name": rb'{"n\u0061me": "x", "categoryId": 1}',
    "other-order": b'{"categoryId":1,"name":"x"}',
    "nested-a-little": b'{"name": "x", "categoryId": 1, "deep": ' + b"[" * 50 + b"]" * 50 + b"}",
    "large-unknown-member": b'{"name": "x", "categoryId": 1, "note": "' + b"y" * 16_000 + b'"}',
    "many-unknown-members": json.dumps({"name": "x", "categoryId": 1} | {f"m{n}": n for n in range(1000)}).encode(),
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_refused(client: Client, body: bytes) -> None:
    """A body that is no JSON object, or that JSON leaves undefined, is answered with 400."""
    assert_error(client.post(body), "invalid_request")


def test_body_absent(client: Client) -> None:
    """A creation needs a body."""
    assert_error(client.request("POST", "/pets", [JSON]), "invalid_request")
    assert_error(client.request("POST", "/pets"), "invalid_request")


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(client: Client, body: bytes) -> None:
    """JSON is taken however it is written."""
    response = client.post(body)
    assert response.status_code == 201, response.text
    pet = pet_of(response)
    assert pet == {"id": pet["id"], "name": "x", "categoryId": 1}


def test_too_large(client: Client) -> None:
    """A body above 16 KB is answered with 413."""
    body = b'{"name": "x", "categoryId": 1, "note": "' + b"y" * 16 * 1024 + b'"}'
    assert_error(client.post(body), "payload_too_large")


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_compressed(client: Client, coding: str) -> None:
    """A body that is declared to be compressed is answered with 415."""
    assert_error(client.post(VALID, ("Content-Encoding", coding)), "unsupported_media_type")
