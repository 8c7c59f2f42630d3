"""What `make sam-local` and `make sam-invoke` prepare, and how they end; no engine is needed."""

import json
import platform
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest
import typer
from lambda_local import LocalError

from tests.support.handlers import TEMPLATE
from tests.support.in_process import own_layer
from tests.support.processes import store_client
from tools import ROOT
from tools.local import sam
from tools.local.folder import DataFolder


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Prepare what `sam local` needs, on a machine with an engine; give the folder."""
    names = [*TEMPLATE.functions, "CommonLayer"]
    template = {
        "Parameters": {"Stage": {}, "Architecture": {}},
        "Globals": {"Function": {"Environment": {"Variables": {}}}},
        "Resources": {name: {"Properties": {}} for name in names},
    }
    engine = {"address": "127.0.0.1", "template": template}
    monkeypatch.setattr(sam, "BUILD", tmp_path)
    monkeypatch.setattr(sam, "_engine", lambda: engine)
    folder, variables = DataFolder(tmp_path / "data"), tmp_path / "env.json"
    with own_layer(), sam._prepared(folder, variables):
        yield tmp_path


def test_variables_open_the_store(prepared: Path) -> None:
    file = prepared / "env.json"
    variables = json.loads(file.read_text())["Parameters"]

    assert file.stat().st_mode & 0o777 == 0o600
    assert (prepared / "template.json").stat().st_mode & 0o777 == 0o600
    url = variables["AWS_ENDPOINT_URL_DYNAMODB"]
    port = url.removeprefix("http://store-of-make-sam-local:")
    store = store_client(int(port), variables["AWS_ACCESS_KEY_ID"])
    assert store.scan(TableName="animal-store-local-AnimalsTable")


def test_template_is_for_this_machine(prepared: Path) -> None:
    template = json.loads((prepared / "template.json").read_text())

    here = "arm64" if platform.machine() in {"aarch64", "arm64"} else "x86_64"
    assert template["Parameters"]["Architecture"]["Default"] == here
    assert template["Parameters"]["Stage"]["Default"] == "staging"
    function, layer = (
        template["Resources"][name]["Properties"]
        for name in ("GetPetFunction", "CommonLayer")
    )
    assert function["CodeUri"] == f"{ROOT}/functions/get_pet"
    assert layer["ContentUri"] == f"{prepared}/layer"


def invoke(monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    """Run sam-invoke, where `sam local invoke` would print something."""
    process = mock.Mock(communicate=lambda: (printed, None))
    ready = mock.Mock(), mock.Mock(template=TEMPLATE)
    monkeypatch.setattr(sam, "_prepared", lambda *_: nullcontext(ready))
    monkeypatch.setattr(sam, "_sam", lambda *_, **__: nullcontext(process))
    sam.sam_invoke(ROOT / "events/get-401.json")


@pytest.mark.parametrize(
    ("printed", "status"), [('{"statusCode": 404}', 0), ('{"statusCode": 503}', 1)]
)
def test_exit_status_tells_a_failure_of_the_service(
    monkeypatch: pytest.MonkeyPatch, printed: str, status: int
) -> None:
    with pytest.raises(typer.Exit) as ended:
        invoke(monkeypatch, printed)

    assert ended.value.exit_code == status


def test_function_that_gives_no_response_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(LocalError, match="gave no response"):
        invoke(monkeypatch, "")


@pytest.mark.slow
def test_without_an_engine_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    with pytest.raises(LocalError, match=r"no container engine answers. Start Docker"):
        sam._engine()
