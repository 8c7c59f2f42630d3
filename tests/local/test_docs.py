"""The documentation page and its files."""

from pathlib import Path

import pytest
import yaml

from tools import ROOT
from tools.local.docs import Docs

ORIGIN = "http://localhost:3000"


@pytest.fixture
def docs() -> Docs:
    return Docs(ROOT / "openapi.yaml", "/v1")


@pytest.mark.parametrize(
    ("path", "content_type", "text"),
    [
        ("/docs", "text/html; charset=utf-8", b"SwaggerUIBundle("),
        ("/docs/swagger-ui.js", "text/javascript; charset=utf-8", b"SwaggerUIBundle"),
        ("/docs/swagger-ui.css", "text/css; charset=utf-8", b".swagger-ui"),
        ("/openapi.yaml", "application/yaml", b"openapi: 3.1"),
    ],
)
def test_files(docs: Docs, path: str, content_type: str, text: bytes) -> None:
    answer = docs.answer("GET", path, ORIGIN)

    assert answer is not None
    assert answer.status == 200
    assert ("Content-Type", content_type) in answer.headers
    assert text in answer.body


def test_everything_else_is_the_gateways(docs: Docs) -> None:
    assert docs.answer("GET", "/docs/", ORIGIN) is None
    assert docs.answer("GET", "/docs/../openapi.yaml", ORIGIN) is None
    assert docs.answer("POST", "/docs", ORIGIN) is None


def test_nothing_of_the_page_comes_from_elsewhere(docs: Docs) -> None:
    page = docs.answer("GET", "/docs", ORIGIN)

    assert page is not None
    assert b"http:" not in page.body
    assert b"https:" not in page.body


def test_document_names_this_server_alone(docs: Docs) -> None:
    answer = docs.answer("GET", "/openapi.yaml", ORIGIN)

    assert answer is not None
    served = yaml.safe_load(answer.body)
    assert [server["url"] for server in served.pop("servers")] == ["http://localhost:3000/v1"]
    original = yaml.safe_load((ROOT / "openapi.yaml").read_text("utf-8"))
    del original["servers"]
    assert served == original


def test_half_written_document_is_served_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "openapi.yaml").write_text("openapi: [")

    answer = Docs(tmp_path / "openapi.yaml", "/v1").answer("GET", "/openapi.yaml", ORIGIN)

    assert answer is not None
    assert answer.body == b"openapi: ["
