"""Paths and methods that the interface does not have: API Gateway's own answers."""

import pytest

from tests.contract.client import JSON, Client, Pet, assert_error, pet_of

READS = {"GET", "HEAD", "OPTIONS"}
UNKNOWN = [
    ("GET", ""),
    ("GET", "/"),
    ("GET", "/store/orders"),
    ("POST", "/store/orders"),
    ("GET", "/store"),
    ("GET", "/pet"),
    ("GET", "/Pets"),
    ("GET", "/petss"),
    ("GET", "/pets/1/2"),
    ("GET", "/%70ets/1/x"),
    ("PUT", "/pets"),
    ("PATCH", "/pets"),
    ("DELETE", "/pets"),
    ("OPTIONS", "/pets"),
    ("POST", "/pets/1"),
    ("PUT", "/pets/1"),
    ("PATCH", "/pets/1"),
    ("DELETE", "/pets/1"),
    ("OPTIONS", "/pets/1"),
]


@pytest.mark.parametrize("authenticate", [True, False], ids=["with-key", "without-key"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param(
            method, path, id=f"{method}-{path}", marks=[pytest.mark.smoke_read_only] if method in READS else []
        )
        for method, path in UNKNOWN
    ],
)
def test_unknown(client: Client, method: str, path: str, authenticate: bool) -> None:
    """Every unknown path, and every other method on a known path, is answered with the same Error: 404."""
    content = b"{}" if method in {"POST", "PUT", "PATCH"} else None
    headers = [JSON] if content else []
    assert_error(client.request(method, path, headers, content, authenticate=authenticate), "not_found")


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("path", ["/pets", "/pets/1", "/store/orders"])
def test_head(client: Client, path: str) -> None:
    """HEAD is not offered; its answer has the status and headers of the Error and no body."""
    response = client.request("HEAD", path)
    assert response.status_code == 404
    assert not response.content


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_nothing_is_changed(client: Client, oldest: Pet, method: str) -> None:
    """An animal can be neither replaced nor removed."""
    path = f"/pets/{oldest['id']}"
    client.request(method, path, [JSON], b'{"name": "changed", "categoryId": 2}')
    assert pet_of(client.request("GET", path)) == oldest
