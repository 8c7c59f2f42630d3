"""Shared by the tests of generated clients: the generators, and a server of errors that no request provokes."""

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.running import ROOT

DOCUMENT = ROOT / "openapi.yaml"
OLDEST_NODE = (20, 0)


def run(*command: str | Path, cwd: Path, timeout_s: float = 120, **variables: str) -> str:
    """Run a program; what it printed.

    Raises:
        AssertionError: It failed; the message is what it printed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | variables
    done = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def installed(name: str) -> Path:
    """Install one of the environments of `locks/`, if need be; its folder."""
    run("make", "-s", f".tools/{name}/.installed", cwd=ROOT, timeout_s=300)
    return ROOT / ".tools" / name


def node_missing() -> str:
    """Why no JavaScript can be run here; empty when it can."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "Node.js and npm are not installed"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    found = tuple(map(int, re.findall(r"\d+", version)[:2]))
    return "" if found >= OLDEST_NODE else f"Node.js {version} is too old; {OLDEST_NODE[0]} or later is needed"


@pytest.fixture(scope="session")
def python_tools() -> Path:
    """The environment with the Python generator."""
    return installed("clients")


@pytest.fixture(scope="session")
def node_tools() -> Path:
    """The environment with the TypeScript generator and compiler."""
    if reason := node_missing():
        pytest.skip(reason)
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
