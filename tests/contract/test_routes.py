"""Paths and methods that the interface does not have, and how a path may be written."""

import pytest
from httpx2 import USE_CLIENT_DEFAULT, Client

from tests.contract.client import assert_error, create, new
from tests.support import openapi

CANDIDATES = [
    ("GET", "/"),
    ("GET", "/store/orders"),
    ("GET", "/pet"),
    ("GET", "/Pets"),
    ("GET", "/pets/1/2"),
    ("OPTIONS", "/pets"),
    ("POST", "/pets/1"),
    ("PUT", "/pets/1"),
    ("DELETE", "/pets/1"),
]
UNKNOWN = [route for route in CANDIDATES if not openapi.find(*route)]


@pytest.mark.parametrize(
    "auth", [USE_CLIENT_DEFAULT, None], ids=["with-key", "without-key"]
)
@pytest.mark.parametrize(("method", "path"), UNKNOWN)
def test_unknown_route_is_not_found(
    client: Client, method: str, path: str, auth: None
) -> None:
    assert_error(client.request(method, path, auth=auth), "not_found")


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("path", ["/pets", "/pets/1", "/store/orders"])
def test_head_is_not_found(client: Client, path: str) -> None:
    """The answer to HEAD has the status and headers of the Error, and no body."""
    response = client.head(path)
    assert (response.status_code, response.content) == (404, b"")


@pytest.mark.smoke_read_only
def test_slash_at_the_end_of_a_list_is_ignored(client: Client) -> None:
    assert client.get("/pets/?limit=1").json() == client.get("/pets?limit=1").json()


def test_slash_at_the_end_of_other_paths_is_ignored(client: Client) -> None:
    pet = create(client)
    assert client.get(f"/pets/{pet['id']}/").json() == pet
    assert client.post("/pets/", json=new()).status_code == 201


@pytest.mark.parametrize("path", ["//pets", "/pets//"])
def test_empty_segment_is_not_found(client: Client, path: str) -> None:
    base_url = str(client.base_url).removesuffix("/")
    assert_error(client.get(base_url + path), "not_found")
