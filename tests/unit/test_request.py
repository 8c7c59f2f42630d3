"""In which words a body is refused, and by which URL the client came."""

import pytest
from animal_store.auth import Caller
from animal_store.errors import InvalidRequest
from animal_store.request import Request, collection_url
from animal_store.validators import Validator

from tests.support.openapi import STATUSES

CALLER = Caller("0" * 64, "unit tests")
HOST = "a1.execute-api.eu-central-1.amazonaws.com"


def test_refusal_names_each_member_and_what_is_wrong_with_it() -> None:
    body = '{"name": " ", "categoryId": -9223372036854775809, "status": 0}'
    request = Request({"body": body}, CALLER)

    with pytest.raises(InvalidRequest) as raised:
        request.body(Validator("NewPet"))

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
    request = Request({"pathParameters": {"petId": raw}}, CALLER)

    assert request.path_parameter("petId") == decoded


@pytest.mark.parametrize(
    ("scheme", "port", "domain", "path", "expected"),
    [
        ("https", "443", HOST, "/staging/v1/pets", f"https://{HOST}/staging/v1/pets"),
        ("http", "80", "localhost", "/v1/pets", "http://localhost/v1/pets"),
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
        "multiValueHeaders": headers
        | {"Host": ["evil.example"], "X-Forwarded-Host": ["evil.example"]},
        "requestContext": {"domainName": domain, "path": path},
    }

    assert collection_url(event) == expected
