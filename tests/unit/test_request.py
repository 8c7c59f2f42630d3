"""The message for an invalid body, and the URL of the list that a response links to."""

import pytest

from tests.support import handlers

HOST = "a1.execute-api.eu-central-1.amazonaws.com"


pytestmark = pytest.mark.usefixtures("store")


def test_message_names_each_invalid_value_and_its_fault() -> None:
    body = '{"name": " ", "categoryId": -9223372036854775809, "status": "lost"}'

    response = handlers.send("create-201", body=body)
    assert response.body["message"] == (
        "name: must have a character that is not white space. "
        "categoryId: must be at least -9223372036854775808. "
        "status: must be one of 'available', 'pending' or 'sold'."
    )

    query = {"status": ["lost"]}
    response = handlers.send("list-200", multiValueQueryStringParameters=query)
    message = "status: must be one of 'available', 'pending' or 'sold'."
    assert response.body["message"] == message


@pytest.mark.parametrize(
    ("scheme", "port", "domain", "path", "expected"),
    [
        ("https", "443", HOST, "/v1/pets/7", f"https://{HOST}/v1/pets"),
        ("HTTP", "80", "localhost", "/v1/pets/7", "http://localhost/v1/pets"),
        ("http", "4200", "[::1]:4200", "/v1/pets/7", "http://[::1]:4200/v1/pets"),
        # The last of several values counts, because API Gateway appends it.
        (
            "https, http",
            "443, 80",
            "localhost",
            "/v1/pets/7",
            "http://localhost/v1/pets",
        ),
        ("javascript", "\u0661", HOST, "/v1/pets/7", f"https://{HOST}/v1/pets"),
        # Any character may be percent-encoded, and API Gateway ignores some slashes.
        (
            "http",
            "80",
            "localhost",
            "//a%2Fb//%761/pets/%2Fv1/",
            "http://localhost/a%2Fb/v1/pets",
        ),
    ],
)
def test_link_keeps_origin_and_base_path(
    scheme: str, port: str, domain: str, path: str, expected: str
) -> None:
    context = handlers.EVENTS["get-401"]["requestContext"]
    headers = {
        "x-forwarded-proto": ["x", scheme],
        "X-Forwarded-Port": ["x", port],
        "Host": ["evil.example"],
    }

    response = handlers.send(
        "get-401",
        multiValueHeaders=headers,
        requestContext=context | {"domainName": domain, "path": path},
    )

    assert response.headers["Link"] == f'<{expected}>; rel="successor-version"'
