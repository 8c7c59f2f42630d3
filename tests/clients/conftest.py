"""Shared by the tests of generated clients: the generators, and a server of errors that no request provokes."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.processes import installed, skip_without_node
from tools import ROOT

DOCUMENT = ROOT / "openapi.yaml"


@pytest.fixture(scope="session")
def python_tools() -> Path:
    """The environment with the Python generator."""
    return installed("clients")


@pytest.fixture(scope="session")
def node_tools() -> Path:
    """The environment with the TypeScript generator and compiler."""
    skip_without_node()
    return installed("clients-npm")


def documented_errors() -> dict[int, tuple[dict[str, str], dict[str, Any]]]:
    """For each status that the service answers when it or API Gateway fails: the headers and the documented body."""
    document = yaml.safe_load(DOCUMENT.read_text("utf-8"))
    found = {}
    for status, reference in document["paths"]["/pets"]["get"]["responses"].items():
        if int(status) < 429:
            continue
        response = document["components"]["responses"][reference["$ref"].rpartition("/")[2]]
        example = next(iter(response["content"]["application/json"]["examples"].values()))
        if "$ref" in example:
            example = document["components"]["examples"][example["$ref"].rpartition("/")[2]]
        headers = {"Retry-After": "1"} if "Retry-After" in response["headers"] else {}
        found[int(status)] = headers, example["value"]
    return found


@pytest.fixture(scope="session")
def failing_service() -> Iterator[str]:
    """A server that answers any request below `/503` with the document's example of a 503, and so on; its origin."""
    errors = documented_errors()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = int(self.path.split("/")[1])
            headers, error = errors[status]
            body = json.dumps(error).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
