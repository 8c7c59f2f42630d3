"""In which words a body is refused, and by which URL the client came."""

import base64

import pytest
from animal_store.auth import Caller
from animal_store.errors import InvalidRequest
from animal_store.request import Request, collection_url
from animal_store.validators import Validator

from tests.support.openapi import STATUSES

HOST = "a1.execute-api.eu-central-1.amazonaws.com"

*_, LAST = STATUSES
OTHERS = ", ".join(map(repr, STATUSES[:-1]))


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        ("", ["The body is required."]),
        ("{}", ["name: is required.", "categoryId: is required."]),
        (
            '{"name": 1, "categoryId": 1.0, "status": 0}',
            [
                "name: must be a string.",
                "categoryId: must be an integer.",
                f"status: must be one of {OTHERS} or '{LAST}'.",
            ],
        ),
        (
            '{"name": "", "categoryId": 9223372036854775808}',
            [
                "name: must have at least 1 character(s).",
                "categoryId: must be at most 9223372036854775807.",
            ],
        ),
        (
            '{"name": " ", "categoryId": -9223372036854775809}',
            [
                "name: must have a character that is not white space.",
                "categoryId: must be at least -9223372036854775808.",
            ],
        ),
        (
            '{"name": "\ud800", "categoryId": "1"}',
            [
                "name: must be valid Unicode, without lone surrogates.",
                "categoryId: must be an integer.",
            ],
        ),
        ("[]", ["The body must be a JSON object."]),
        ("{", ["The body is not valid JSON."]),
        (b"\xff", ["The body is not valid UTF-8."]),
        ('{"x": 1, "x": 1}', ["The body has an object with duplicate members."]),
    ],
)
def test_refusal_names_the_member_and_what_is_wrong_with_it(
    body: str | bytes, problems: list[str]
) -> None:
    # As API Gateway gives it: bytes in base64.
    content = base64.b64encode(body).decode() if isinstance(body, bytes) else body
    event = {"body": content, "isBase64Encoded": isinstance(body, bytes)}

    with pytest.raises(InvalidRequest) as raised:
        Request(event, Caller("0" * 64, "unit tests")).body(Validator("NewPet"))

    assert str(raised.value) == " ".join(problems)


@pytest.mark.parametrize(
    ("scheme", "port", "domain", "path", "expected"),
    [
        ("https", "443", HOST, "/staging/v1/pets", f"https://{HOST}/staging/v1/pets"),
        ("http", "80", "localhost", "/v1/pets", "http://localhost/v1/pets"),
        ("http", "3000", "127.0.0.1:3000", "/v1/pets", "http://127.0.0.1:3000/v1/pets"),
        ("http", "4200", "[::1]:4200", "/v1/pets", "http://[::1]:4200/v1/pets"),
        ("https", "\u0661", HOST, "/v1/pets", f"https://{HOST}/v1/pets"),
        ("javascript", "443", HOST, "/v1/pets", f"https://{HOST}/v1/pets"),
        # The path is as the client wrote it: any character may be percent-encoded.
        ("https", "443", HOST, "/%761/pets/%2Fv1%2Fpets", f"https://{HOST}/v1/pets"),
    ],
)
def test_url_of_the_collection_is_the_one_by_which_the_client_came(
    scheme: str, port: str, domain: str, path: str, expected: str
) -> None:
    # Of several values the last one counts.
    headers = {"x-forwarded-proto": ["x", scheme], "X-Forwarded-Port": ["x", port]}
    event = {
        "resource": "/v1/pets/{petId}",
        "multiValueHeaders": headers | {"Host": ["evil.example"]},
        "requestContext": {"domainName": domain, "path": path},
    }

    assert collection_url(event) == expected


def test_url_of_the_collection_without_headers_is_https() -> None:
    context = {"domainName": HOST, "path": "/v1/pets"}
    event = {"resource": "/v1/pets", "requestContext": context}

    assert collection_url(event) == f"https://{HOST}/v1/pets"
