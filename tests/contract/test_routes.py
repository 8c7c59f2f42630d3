"""Unknown routes get 404 ("Requests" in openapi.yaml)."""

import pytest
from httpx2 import Client

from tests.contract import openapi
from tests.contract.client import assert_error, create, new_pet

# Routes in openapi.yaml are left out, so that a new operation needs no change here.
UNKNOWN_ROUTES = [
    route
    for route in (
        "GET /",
        "GET /store/orders",
        "GET /Pets",
        "GET /pets/1/2",
        "OPTIONS /pets",
        "POST /pets/1",
        "PUT /pets/1",
        "DELETE /pets/1",
        "GET //pets",
        "GET /pets//",
    )
    if openapi.find(*route.split()) is openapi.UNKNOWN_ROUTE
]


@pytest.mark.parametrize("route", UNKNOWN_ROUTES)
def test_unknown_route_gets_404(client: Client, route: str) -> None:
    method, path = route.split()
    base_url = str(client.base_url).removesuffix("/")  # so that httpx2 keeps `//pets`
    assert_error(client.request(method, base_url + path), 404)


def test_unknown_route_without_a_key_gets_404(client: Client) -> None:
    assert_error(client.get("/store/orders", auth=None), 404)


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("path", ["/pets", "/store/orders"])
def test_head_gets_404_without_a_body(client: Client, path: str) -> None:
    """HTTP forbids a body here."""
    response = client.head(path)
    assert (response.status_code, response.content) == (404, b"")


@pytest.mark.smoke_read_only
def test_list_ignores_a_trailing_slash(client: Client) -> None:
    assert client.get("/pets/?limit=1").json() == client.get("/pets?limit=1").json()


def test_get_and_create_ignore_a_trailing_slash(client: Client) -> None:
    pet = create(client, new_pet())
    assert client.get(f"/pets/{pet['id']}/").json() == pet
    assert client.post("/pets/", json=new_pet()).status_code == 201
