"""Reading a request: messages for an invalid body, and the URL that the client used."""

import pytest
from animal_store.request import Request

from tests.support import handlers

HOST = "a1.execute-api.eu-central-1.amazonaws.com"


@pytest.mark.usefixtures("store")
def test_message_names_each_invalid_member_and_its_fault() -> None:
    body = '{"name": " ", "categoryId": -9223372036854775809}'

    response = handlers.send("create-201", body=body)

    assert response.body["message"] == (
        "name: must have a character that is not white space. "
        "categoryId: must be at least -9223372036854775808."
    )


@pytest.mark.parametrize(
    ("scheme", "port", "domain", "expected"),
    [
        ("https", "443", HOST, f"https://{HOST}/v1/pets"),
        ("HTTP", "80", "localhost", "http://localhost/v1/pets"),
        ("http", "4200", "[::1]:4200", "http://[::1]:4200/v1/pets"),
        ("https, http", "443, 80", "localhost", "http://localhost/v1/pets"),
        ("javascript", "\u0661", HOST, f"https://{HOST}/v1/pets"),
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
        },
        "requestContext": {"domainName": domain, "path": "/v1/pets/7"},
    }

    assert Request(event).collection_url() == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/pets/7", "/v1/pets"),
        # Any character may be percent-encoded, and API Gateway ignores some slashes.
        ("//a%2Fb//%761/pets/%2Fv1%2Fpets/", "/a%2Fb/v1/pets"),
    ],
)
def test_collection_url_keeps_the_path_before_the_resource(
    path: str, expected: str
) -> None:
    context = {"domainName": HOST, "path": path}
    request = Request({"resource": "/v1/pets/{petId}", "requestContext": context})

    assert request.collection_url() == f"https://{HOST}{expected}"
