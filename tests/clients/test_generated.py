"""Clients generated as docs/clients.md says: they compile, and every operation and error arrives as it was sent."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from werkzeug import Request, Response

from tests.clients.scripted_server import error, reply, serve
from tests.docs.markdown import fences
from tests.processes import RunningService, installed, run, skip_without_node
from tools import ROOT

NAMES = [" Rex", "\ufeffRex", "\U0001f43e" * 256]
NEWER = {"id": 2**53 + 1, "name": "Rex", "categoryId": 2**53 + 1, "color": "red"}
TSC = "npx tsc --strict --target ES2022 --module NodeNext --types node --skipLibCheck"


class Program(NamedTuple):
    """How a program that uses a generated client is built and run, and whether the client rounds large integers."""

    build: str
    run: str
    rounds: bool = False


PROGRAMS = {
    "openapi-python-client": Program(
        "mypy --strict --disable-error-code arg-type animal_store_api", "python python_client.py openapi_python_client"
    ),
    "openapi-generator-python": Program(
        "mv python-client/openapi_client .", "python python_client.py openapi_generator"
    ),
    "openapi-typescript": Program(
        f"{TSC} --exactOptionalPropertyTypes --noUncheckedIndexedAccess openapi_typescript.ts",
        "node openapi_typescript.js",
    ),
    "openapi-generator-typescript": Program(f"{TSC} typescript_fetch.ts", "node typescript_fetch.js", rounds=True),
    "openapi-generator-go": Program(
        "mkdir go-client/cmd && mv main.go go-client/cmd && cd go-client && go vet ./cmd && go build -o ../main ./cmd",
        "./main",
    ),
}
GENERATE = {
    fence.mark.removeprefix("generates:"): fence.code
    for fence in fences(ROOT / "docs/clients.md")
    if fence.mark.startswith("generates:")
}


def script(request: Request, _: int) -> Response:
    """Answer as a later version of the service may: below `/503` with that error and a new code, or with an animal."""
    kind = request.path.split("/")[1]
    if kind == "newer":
        return reply([NEWER])
    return reply({"message": "Too long"}, 413) if kind == "413" else error(int(kind), "newer_code")


@pytest.fixture(scope="module")
def scripted() -> Iterator[str]:
    with serve(script) as server:
        yield server.origin


@pytest.mark.parametrize("name", GENERATE)
def test_every_operation_and_error(name: str, tmp_path: Path, service: RunningService, scripted: str) -> None:
    client, folder = PROGRAMS[name], tmp_path / "build/clients"
    if "go" in client.build.split() and not shutil.which("go"):
        pytest.skip("Go is not installed")
    for file in ("docs", "openapi.yaml"):
        (tmp_path / file).symlink_to(ROOT / file)
    shutil.copytree(Path(__file__).parent / "programs", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    if "node" in client.run:
        skip_without_node()
        (folder / "node_modules").symlink_to(installed("clients-npm") / "node_modules")
    path = f"{installed('clients') / 'bin'}:{os.environ['PATH']}"
    for command in (GENERATE[name], client.build):
        run("bash", "-euc", command, cwd=folder, PATH=path, timeout_s=300)
    call = (*client.run.split(), service.base_url, scripted, json.dumps(NAMES))

    seen = json.loads(run(*call, cwd=folder, PATH=path, API_KEY=service.api_key).splitlines()[-1])

    category = 2**53 if client.rounds else 2**53 + 1
    assert [pet[1:] for pet in seen["created"]] == [[name, category] for name in NAMES]
    assert [pet for pet in seen["listed"] if pet in seen["created"]] == seen["created"]
    assert seen["read"] == seen["created"][:1]
    assert seen["newer"] == [[category, "Rex", category]]
    codes = {"400": "invalid_request", "401": "unauthorized", "404": "not_found", "422": "idempotency_key_reused"}
    newer = dict.fromkeys(("429", "500", "502", "503", "504"), "newer_code")
    assert seen["errors"] == {**codes, "413": None, **newer}
