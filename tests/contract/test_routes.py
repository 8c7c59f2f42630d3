"""Paths and methods that the interface does not have: API Gateway's own answers."""

import pytest
from httpx2 import USE_CLIENT_DEFAULT, Client

from tests.contract.client import assert_error
from tests.support import openapi

CANDIDATES = """\
GET /
GET /store/orders
GET /store
GET /pet
GET /Pets
GET /pets2
GET /pets/1/2
GET /pet%73/1/x
OPTIONS /pets
OPTIONS /pets/1
POST /store/orders
POST /pets/1
PUT /pets
PUT /pets/1
PATCH /pets
PATCH /pets/1
DELETE /pets
DELETE /pets/1
""".splitlines()
UNKNOWN = [
    route for route in CANDIDATES if not openapi.find(*route.partition(" ")[::2])
]


@pytest.mark.parametrize(
    "auth", [USE_CLIENT_DEFAULT, None], ids=["with-key", "without-key"]
)
@pytest.mark.parametrize("route", UNKNOWN)
def test_unknown(client: Client, route: str, auth: None) -> None:
    """Every unknown path, and every other method on a known path, gets the same Error."""
    method, path = route.split(" ")
    assert_error(client.request(method, path, auth=auth), "not_found")


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("path", ["/pets", "/pets/1", "/store/orders"])
def test_head(client: Client, path: str) -> None:
    """HEAD is not offered; its answer has the status and headers of the Error and no body."""
    response = client.head(path)
    assert (response.status_code, response.content) == (404, b"")
