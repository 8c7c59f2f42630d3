"""Reading a request: path, headers and body, and the URL that the client used."""

from base64 import b64encode
from typing import TYPE_CHECKING

import pytest
from animal_store.request import InvalidRequest, Request, UnsupportedContentCoding
from animal_store.validators import Validator

from tests.support.openapi import STATUSES

if TYPE_CHECKING:
    from animal_store.models import NewPet

NEW_PET: "Validator[NewPet]" = Validator("NewPet")
HOST = "a1.execute-api.eu-central-1.amazonaws.com"


def test_refusal_names_each_member_and_what_is_wrong_with_it() -> None:
    body = '{"name": " ", "categoryId": -9223372036854775809, "status": 0}'
    request = Request({"body": body})

    with pytest.raises(InvalidRequest) as raised:
        request.body(NEW_PET)

    *others, last = map(repr, STATUSES)
    assert str(raised.value) == (
        "name: must have a character that is not white space. "
        "categoryId: must be at least -9223372036854775808. "
        f"status: must be one of {', '.join(others)} or {last}."
    )


@pytest.mark.parametrize(
    ("raw", "decoded"),
    [("7", "7"), ("%37", "7"), ("%2537", "%37"), ("1+1%2F1", "1+1/1"), ("%C3%A9", "é")],
)
def test_path_parameter_is_decoded_once(raw: str, decoded: str) -> None:
    request = Request({"pathParameters": {"petId": raw}})

    assert request.path_parameter("petId") == decoded


@pytest.mark.parametrize(
    ("scheme", "port", "domain", "expected"),
    [
        ("https", "443", HOST, f"https://{HOST}/v1/pets"),
        ("http", "80", "localhost", "http://localhost/v1/pets"),
        ("http", "4200", "[::1]:4200", "http://[::1]:4200/v1/pets"),
        ("HTTP", "4200", "localhost", "http://localhost:4200/v1/pets"),
        ("https, http", "443, 80", "localhost", "http://localhost/v1/pets"),
        ("https", "\u0661", HOST, f"https://{HOST}/v1/pets"),
        ("javascript", "443", HOST, f"https://{HOST}/v1/pets"),
    ],
)
def test_collection_url_has_scheme_host_and_port_of_the_request(
    scheme: str, port: str, domain: str, expected: str
) -> None:
    event = {
        "resource": "/v1/pets/{petId}",
        "multiValueHeaders": {
            # Of several values the last one counts.
            "x-forwarded-proto": ["x", scheme],
            "X-Forwarded-Port": ["x", port],
            "Host": ["evil.example"],
            "X-Forwarded-Host": ["evil.example"],
        },
        "requestContext": {"domainName": domain, "path": "/v1/pets/7"},
    }

    assert Request(event).collection_url() == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/pets/7", "/v1/pets"),
        ("/staging/v1/pets/7", "/staging/v1/pets"),
        # Any character may be percent-encoded.
        ("/%761/pets/%2Fv1%2Fpets", "/v1/pets"),
        ("/a%2Fb/v1/pets/7", "/a%2Fb/v1/pets"),
        # API Gateway ignores some slashes.
        ("/staging/v1/pets/7/", "/staging/v1/pets"),
        ("//staging//v1/pets/7", "/staging/v1/pets"),
    ],
)
def test_collection_url_keeps_the_path_before_the_resource(
    path: str, expected: str
) -> None:
    context = {"domainName": HOST, "path": path}
    request = Request({"resource": "/v1/pets/{petId}", "requestContext": context})

    assert request.collection_url() == f"https://{HOST}{expected}"


PET = b'{"name": "Rex", "categoryId": 3}'


@pytest.mark.parametrize(
    "values",
    [
        ["Identity"],
        [""],
        ["identity, IDENTITY"],
        ["identity", "identity"],
    ],
)
def test_uncompressed_body_is_accepted(values: list[str]) -> None:
    """Codings are a list of case-insensitive tokens (RFC 9110, sections 8.4 and 5.6.1)."""
    headers = {"Content-Encoding": values}
    request = Request({"multiValueHeaders": headers, "body": PET.decode()})

    assert request.body(NEW_PET) == {"name": "Rex", "categoryId": 3}


@pytest.mark.parametrize("values", [["GZIP"], ["identity, gzip"]])
def test_compressed_body_is_refused(values: list[str]) -> None:
    headers = {"Content-Encoding": values}
    request = Request({"multiValueHeaders": headers, "body": PET.decode()})

    with pytest.raises(UnsupportedContentCoding):
        request.body(NEW_PET)


def base64_request(body: bytes) -> Request:
    """Make a request whose body API Gateway delivers as bytes."""
    return Request({"body": b64encode(body).decode(), "isBase64Encoded": True})


def test_base64_body_is_read() -> None:
    assert base64_request(PET).body(NEW_PET) == {"name": "Rex", "categoryId": 3}


@pytest.mark.parametrize(
    "body",
    [
        PET.replace(b"Rex", b"Zo\xeb"),  # ISO 8859-1
        PET.decode().encode("utf-16"),
    ],
)
def test_base64_body_that_is_not_utf_8_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not valid UTF-8"):
        base64_request(body).body(NEW_PET)
