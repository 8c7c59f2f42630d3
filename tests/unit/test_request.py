"""What a request says, and in which words it is refused; what is refused is in the contract."""

import base64

import pytest
from animal_store.auth import Caller
from animal_store.errors import InvalidRequest
from animal_store.models import NewPet
from animal_store.request import Request, collection_url
from animal_store.validators import NEW_PET

from tests.support.requests import make_event

REX = '{"name": "Rex", "categoryId": 3, "status": "sold"}'
NAME = "name: must have"
INTEGER = "categoryId: must be an integer."
STATUS = "status: must be one of 'available', 'pending' or 'sold'."
NO_PORTS = ("", "0", "65536", "\u0661", "81@evil.example")
HOST = "a1.execute-api.eu-central-1.amazonaws.com"


def read_body(body: str | bytes) -> NewPet:
    """Read a body; bytes as API Gateway gives them, in base64."""
    content = base64.b64encode(body).decode() if isinstance(body, bytes) else body
    event = make_event(
        "create_pet", body=content, isBase64Encoded=isinstance(body, bytes)
    )
    return Request(event, Caller("0" * 64, "unit tests")).body(NEW_PET)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "The body is required."),
        ("{}", "name: is required. categoryId: is required."),
        ('{"name": 1, "categoryId": 1}', "name: must be a string."),
        (REX.replace("R", "R" * 255), f"{NAME} at most 256 characters."),
        (
            '{"name": " ", "categoryId": 1}',
            f"{NAME} a character that is not white space.",
        ),
        (
            '{"name": "\ud800", "categoryId": 1}',
            "name: must be valid Unicode, without lone surrogates.",
        ),
        ('{"name": "Rex", "categoryId": 1.0}', INTEGER),
        (
            '{"name": "Rex", "categoryId": 9223372036854775808}',
            "categoryId: must be at most 9223372036854775807.",
        ),
        (
            '{"name": "Rex", "categoryId": -9223372036854775809}',
            "categoryId: must be at least -9223372036854775808.",
        ),
        (
            '{"name": "", "categoryId": "1", "status": 0}',
            f"{NAME} at least 1 character(s). {INTEGER} {STATUS}",
        ),
        ("[]", "The body must be a JSON object."),
        ("{", "The body is not valid JSON."),
        (b"\xff", "The body is not valid UTF-8."),
        (
            '{"name": "Rex", "categoryId": 1, "x": {"y": 1, "y": 1}}',
            "The body has an object with duplicate members.",
        ),
    ],
)
def test_refusal_names_the_member_and_what_is_wrong_with_it(
    body: str | bytes, message: str
) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_body(body)

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("scheme", "port", "domain", "path", "expected"),
    [
        ("https", "443", HOST, "/staging/v1/pets", f"https://{HOST}/staging/v1/pets"),
        (
            "https",
            "443",
            "api.example",
            "/animals/v1/pets/7",
            "https://api.example/animals/v1/pets",
        ),
        ("https", "80", "api.example", "/v1/pets", "https://api.example:80/v1/pets"),
        ("http", "80", "localhost", "/v1/pets/7", "http://localhost/v1/pets"),
        ("http", "3000", "127.0.0.1:3000", "/v1/pets", "http://127.0.0.1:3000/v1/pets"),
        ("http", "4200", "[::1]:4200", "/v1/pets", "http://[::1]:4200/v1/pets"),
        *(
            ("https", port, HOST, "/v1/pets", f"https://{HOST}/v1/pets")
            for port in NO_PORTS
        ),
        ("javascript", "443", "api.example", "/v1/pets", "https://api.example/v1/pets"),
        # The path is as the client wrote it: any character may be percent-encoded.
        ("https", "443", HOST, "/staging/v1/p%65ts", f"https://{HOST}/staging/v1/pets"),
        ("https", "443", HOST, "/v1/%70ets/%2Fv1%2Fpets", f"https://{HOST}/v1/pets"),
        ("https", "443", HOST, "/v1/pets/v1%2Fpets", f"https://{HOST}/v1/pets"),
    ],
)
def test_url_of_the_collection_is_the_one_by_which_the_client_came(
    scheme: str, port: str, domain: str, path: str, expected: str
) -> None:
    for name in ("list_pets", "get_pet"):
        # Of several values the last one counts.
        told = (
            {"x-forwarded-proto": ["x", scheme], "X-Forwarded-Port": ["x", port]}
            if port
            else None
        )
        event = make_event(name) | {"multiValueHeaders": told}
        event["requestContext"] |= {"domainName": domain, "path": path}

        assert collection_url(event) == expected
