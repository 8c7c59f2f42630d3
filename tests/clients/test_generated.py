"""Clients generated as docs/clients.md says: they compile, and every operation and error arrives as it was sent."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from werkzeug import Request, Response

from tests import openapi
from tests.clients.scripted_server import error, reply, serve
from tests.processes import RunningService, installed, run, skip_without_node
from tools import ROOT

NAMES = [" Rex", "\ufeffRex", "\U0001f43e" * 256]
NEWER = {"id": 2**53 + 1, "name": "Rex", "categoryId": 2**53 + 1, "color": "red"}
GENERATE = "openapi-generator-cli generate -i openapi.yaml"
TOLERANT = "--additional-properties=disallowAdditionalPropertiesIfNotPresent=false,enumUnknownDefaultCase=true"
TSC = "npx tsc --strict --target ES2022 --module NodeNext --types node --skipLibCheck"


class Generated(NamedTuple):
    """How a client is generated, built and used."""

    generate: str
    build: str
    run: str
    rounds: bool = False


CLIENTS = {
    "openapi-python-client": Generated(
        "openapi-python-client generate --path openapi.yaml --output-path animal_store_api --meta none",
        "mypy --strict --disable-error-code arg-type animal_store_api openapi_python_client.py",
        "python openapi_python_client.py",
    ),
    "openapi-generator-python": Generated(
        f"{GENERATE} -g python -o python-client", "mv python-client/openapi_client .", "python openapi_generator.py"
    ),
    "openapi-typescript": Generated(
        "node docs/examples/bigint-types.mjs openapi.yaml animal-store.ts",
        f"{TSC} --exactOptionalPropertyTypes --noUncheckedIndexedAccess openapi_typescript.ts",
        "node openapi_typescript.js",
    ),
    "openapi-generator-typescript": Generated(
        f"{GENERATE} -g typescript-fetch -o typescript-fetch --additional-properties=importFileExtension=.js",
        f"{TSC} typescript_fetch.ts",
        "node typescript_fetch.js",
        rounds=True,
    ),
    "openapi-generator-go": Generated(
        f"{GENERATE} -g go -o go-client --model-name-mappings NewPet=PetInput {TOLERANT}",
        "mkdir go-client/cmd && mv main.go go-client/cmd && cd go-client && go vet ./cmd && go build -o ../main ./cmd",
        "./main",
    ),
}


def documented_code(status: str) -> str:
    response = openapi.follow(openapi.document()["paths"]["/pets"]["get"]["responses"][status])
    code: str = openapi.follow(next(iter(response["content"]["application/json"]["examples"].values())))["value"][
        "code"
    ]
    return code


def script(request: Request, _: int) -> Response:
    """Answer below `/503` with that error, below `/newer` as a later version of the service may."""
    kind = request.path.split("/")[1]
    if kind == "newer":
        return reply([NEWER])
    return reply({"message": "Too long"}, 413) if kind == "413" else error(int(kind), documented_code(kind))


@pytest.fixture(scope="module")
def scripted() -> Iterator[str]:
    with serve(script) as server:
        yield server.origin


@pytest.mark.parametrize("name", CLIENTS)
def test_every_operation_and_error(name: str, tmp_path: Path, service: RunningService, scripted: str) -> None:
    client, folder = CLIENTS[name], tmp_path / "client"
    if "go" in client.build.split() and not shutil.which("go"):
        pytest.skip("Go is not installed")
    shutil.copytree(Path(__file__).parent / "programs", folder)
    shutil.copy(ROOT / "openapi.yaml", folder)
    shutil.copytree(ROOT / "docs/examples", folder / "docs/examples")
    (folder / "package.json").write_text('{"type": "module"}')
    if "node" in client.run:
        skip_without_node()
        (folder / "node_modules").symlink_to(installed("clients-npm") / "node_modules")
    path = f"{installed('clients') / 'bin'}:{os.environ['PATH']}"
    for command in (client.generate, client.build):
        run("bash", "-euc", command, cwd=folder, PATH=path, timeout_s=300)
    call = (*client.run.split(), service.base_url, scripted, json.dumps(NAMES))

    seen = json.loads(run(*call, cwd=folder, PATH=path, API_KEY=service.api_key).splitlines()[-1])

    category = 2**53 if client.rounds else 2**53 + 1
    assert [pet[1:] for pet in seen["created"]] == [[name, category] for name in NAMES]
    assert [pet for pet in seen["listed"] if pet in seen["created"]] == seen["created"]
    assert seen["read"] == seen["created"][:1]
    assert seen["newer"] == [[category, "Rex", category]]
    codes = {"400": "invalid_request", "404": "not_found", "413": None, "422": "idempotency_key_reused"}
    assert seen["errors"] == codes | {
        status: documented_code(status) for status in ("401", "429", "500", "502", "503", "504")
    }


def test_the_commands_are_those_of_the_documentation() -> None:
    text = " ".join((ROOT / "docs/clients.md").read_text().replace("\\\n", "").split())

    assert [client.generate for client in CLIENTS.values() if client.generate not in text] == []
