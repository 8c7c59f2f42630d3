"""Clients generated as docs/clients.md says compile, and get what the service sends."""

import json
import os
import shutil
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from werkzeug import Request, Response

from tests.support.processes import RunningService, installed, link_node_modules, run
from tests.support.scripted_server import error, reply, serve
from tools import ROOT

NAMES = [" Rex", "\ufeffRex", "\U0001f43e" * 256]
NEWER = {"id": 2**53 + 1, "name": "Rex", "categoryId": 2**53 + 1, "color": "red"}
TSC = "npx tsc --strict --target ES2022 --module NodeNext --types node --skipLibCheck"
# How a program that uses a generated client is built and run.
PROGRAMS = {
    "openapi-typescript": f"""
        {TSC} --exactOptionalPropertyTypes --noUncheckedIndexedAccess openapi_typescript.ts
        node openapi_typescript.js""",
    "openapi-generator-typescript": f"{TSC} typescript_fetch.ts; node typescript_fetch.js",
    "openapi-generator-go": """
        mkdir go-client/cmd
        mv main.go go-client/cmd
        cd go-client
        go vet ./cmd
        go run ./cmd""",
}
GENERATE = {
    token.info.partition("generates:")[2]: token.content
    for token in MarkdownIt().parse((ROOT / "docs/clients.md").read_text())
    if "generates:" in token.info
}


def script(request: Request, _: int) -> Response:
    """Answer as a later version may: with a newer animal, or below `/503` with that error."""
    kind = request.path.split("/")[1]
    special = {"newer": reply([NEWER]), "413": reply({"message": "Too long"}, 413)}
    return special.get(kind) or error(int(kind), "newer_code")


@pytest.mark.parametrize("name", GENERATE)
def test_every_operation_and_error(
    name: str, tmp_path: Path, service: RunningService
) -> None:
    folder = tmp_path / "build/clients"
    if name.endswith("go") and not shutil.which("go"):
        pytest.skip("Go is not installed")
    for file in ("docs", "openapi.yaml"):
        (tmp_path / file).symlink_to(ROOT / file)
    shutil.copytree(Path(__file__).parent / "programs", folder)
    if "node" in PROGRAMS[name]:
        link_node_modules(folder)
    path = f"{installed('clients') / 'bin'}:{os.environ['PATH']}"

    with serve(script) as server:
        printed = run(
            *("bash", "-euc", f'{GENERATE[name]}{PROGRAMS[name]} "$@"', "bash"),
            *(service.base_url, server.origin, json.dumps(NAMES)),
            cwd=folder,
            PATH=path,
            API_KEY=service.api_key,
            timeout_s=300,
        )

    seen = json.loads(printed.splitlines()[-1])
    # It rounds.
    category = 2**53 if name == "openapi-generator-typescript" else 2**53 + 1
    assert [pet[1:] for pet in seen["created"]] == [[name, category] for name in NAMES]
    assert [pet for pet in seen["listed"] if pet in seen["created"]] == seen["created"]
    assert seen["newer"] == [[category, "Rex", category]]
    assert seen["errors"] == {
        "400": "invalid_request",
        "401": "unauthorized",
        "413": None,
        "422": "idempotency_key_reused",
        "429": "newer_code",
        "503": "newer_code",
    }
