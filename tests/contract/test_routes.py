"""Paths and methods that the interface does not have: API Gateway's own answers."""

import pytest

from tests.contract.client import JSON, Client, assert_error
from tests.support import openapi

READS = {"GET", "HEAD", "OPTIONS"}
UNKNOWN = {
    "GET": [
        "",
        "/",
        "/store/orders",
        "/store",
        "/pet",
        "/Pets",
        "/petss",
        "/pets/1/2",
        "/%70ets/1/x",
    ],
    "POST": ["/store/orders", "/pets/1"],
    **{method: ["/pets", "/pets/1"] for method in ("PUT", "PATCH", "DELETE", "OPTIONS")},
}


@pytest.mark.parametrize("authenticate", [True, False], ids=["with-key", "without-key"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param(
            method,
            path,
            id=f"{method}-{path}",
            marks=[pytest.mark.smoke_read_only] * (method in READS),
        )
        for method, paths in UNKNOWN.items()
        for path in paths
        if not openapi.find(method, path)
    ],
)
def test_unknown(client: Client, method: str, path: str, authenticate: bool) -> None:
    """Every unknown path, and every other method on a known path, is answered with the same Error: 404."""
    content = b"{}" if method in {"POST", "PUT", "PATCH"} else None
    headers = [JSON] if content else []
    assert_error(
        client.request(method, path, headers, content, authenticate=authenticate), "not_found"
    )


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("path", ["/pets", "/pets/1", "/store/orders"])
def test_head(client: Client, path: str) -> None:
    """HEAD is not offered; its answer has the status and headers of the Error and no body."""
    assert client.request("HEAD", path).status_code == 404
