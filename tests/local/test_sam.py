"""`sam local` as its developers type it; what needs containers is skipped without an engine."""

import json
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
import typer

from tests.support import processes
from tests.support.handlers import EVENTS, TEMPLATE
from tests.support.in_process import own_layer
from tests.support.processes import (
    RunningService,
    environment,
    run_service,
    store_client,
    wait_for,
)
from tools import ROOT
from tools.local import LocalError, sam
from tools.local.folder import DataFolder

HAS_ENGINE = shutil.which("docker") and not subprocess.call(
    ["docker", "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
)
needs_engine = pytest.mark.skipif(not HAS_ENGINE, reason="no container engine answers")


@pytest.fixture(scope="module")
def layer() -> None:
    """Build the layer as `make sam-local` does."""
    processes.run(
        "make",
        ".tools/sam/.installed",
        ".aws-sam/local/.layer",
        cwd=ROOT,
        timeout_s=600,
    )


@pytest.fixture(scope="module")
def served(
    layer: None,  # noqa: ARG001
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningService]:
    """Serve the API and an empty store by `make sam-local`."""
    with run_service(
        tmp_path_factory.mktemp("sam") / "data", command="sam-local"
    ) as service:
        yield service


def typed(command: str, data: Path) -> dict[str, Any]:
    """Type a command of a document; return the response that it prints."""
    path = f"{ROOT}/.tools/sam/bin:{os.environ['PATH']}"
    own = environment(data, PATH=path, SAM_CLI_TELEMETRY="0")
    options: Any = {"shell": True, "cwd": ROOT, "env": own, "text": True}
    printed = subprocess.check_output(command, **options)
    response: dict[str, Any] = json.loads(printed)
    return response


def containers() -> set[str]:
    """List the engine's containers."""
    return set(subprocess.check_output(["docker", "ps", "-aq"], text=True).split())


@pytest.mark.slow
@pytest.mark.usefixtures("layer")
@needs_engine
def test_animals_are_those_of_make_run(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        first = service.http.post("/pets", json={"name": "Rex", "categoryId": 1}).json()
    with run_service(tmp_path, command="sam-local", EVENTS="0") as service:
        assert service.http.get("/pets").json() == [first]
        second = service.http.post(
            "/pets", json={"name": "Mia", "categoryId": 1}
        ).json()
    with run_service(tmp_path) as service:
        assert service.http.get("/pets").json() == [first, second]


@pytest.mark.slow
@needs_engine
@pytest.mark.parametrize(
    ("document", "command"),
    [
        ("events/README.md", "make -s sam-invoke EVENT=events/get-200.json"),
        ("events/README.md", "sam local invoke GetPetFunction -e events/get-200.json"),
        ("CONTRIBUTING.md", "make -s sam-invoke EVENT=events/create-201.json"),
    ],
)
def test_documented_command_prints_the_response(
    served: RunningService, document: str, command: str
) -> None:
    assert f"    {command.replace('make -s', 'make')}" in (ROOT / document).read_text()

    assert typed(command, served.data)["statusCode"] in {200, 201}


@pytest.fixture(scope="module")
def lambda_url(served: RunningService) -> Iterator[str]:
    """Type `sam local start-lambda` beside `make sam-local`; give its address."""
    command = [".tools/sam/bin/sam", "local", "start-lambda", "--port", "3998"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(served.data)) as process:
        try:
            wait_for(lambda: _answers("http://127.0.0.1:3998"), 120)
            yield "http://127.0.0.1:3998"
        finally:
            process.send_signal(signal.SIGINT)


def _answers(url: str) -> bool:
    try:
        return bool(httpx.get(url))
    except httpx.TransportError:
        return False


@pytest.mark.slow
@needs_engine
@pytest.mark.parametrize("name", EVENTS)
def test_event_gets_the_response_of_its_name(lambda_url: str, name: str) -> None:
    function = TEMPLATE.function_of(EVENTS[name]).logical_id

    url = f"{lambda_url}/2015-03-31/functions/{function}/invocations"
    response = httpx.post(url, json=EVENTS[name], timeout=60).json()

    assert f"-{response['statusCode']}" in name


@pytest.mark.slow
@needs_engine
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    before, own = containers(), environment(tmp_path)
    with subprocess.Popen(
        ["make", "sam-local"],
        cwd=ROOT,
        env=own,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as make:
        for line in make.stdout or ():
            if line.startswith("Base URL: "):
                break
        started = containers() - before
        os.killpg(make.pid, signal.SIGINT)
        printed = make.communicate(timeout=20)[0]

    assert started
    assert not started & containers()
    assert "Traceback" not in printed


@pytest.mark.slow
@needs_engine
def test_contract_holds_through_sam_local(tmp_path: Path) -> None:
    # Without the events' key, which is invalid everywhere else.
    with run_service(tmp_path, command="sam-local", EVENTS="0") as service:
        processes.check_contract(
            service, "tests/contract/expected_failures/sam-local.yaml"
        )


@pytest.mark.slow
@needs_engine
def test_missing_image_is_named() -> None:
    with (
        mock.patch.object(sam, "_IMAGE", "127.0.0.1:1/lambda/python:3.13"),
        pytest.raises(LocalError, match="cannot run 127"),
    ):
        sam._engine()


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Prepare what `sam local` needs, on a machine with an engine; give the folder."""
    names = [*TEMPLATE.functions, "CommonLayer"]
    template = {
        "Parameters": {"Stage": {}, "Architecture": {}},
        "Globals": {"Function": {"Environment": {"Variables": {}}}},
        "Resources": {name: {"Properties": {}} for name in names},
    }
    monkeypatch.setattr(sam, "BUILD", tmp_path)
    monkeypatch.setattr(
        sam, "_engine", lambda: {"address": "127.0.0.1", "template": template}
    )
    with (
        own_layer(),
        sam._prepared(DataFolder(tmp_path / "data"), tmp_path / "env.json"),
    ):
        yield tmp_path


def test_variables_open_the_store(prepared: Path) -> None:
    file = prepared / "env.json"
    variables = json.loads(file.read_text())["Parameters"]

    assert file.stat().st_mode & 0o777 == 0o600
    assert (prepared / "template.json").stat().st_mode & 0o777 == 0o600
    assert variables["ANIMALS_TABLE"] == "animal-store-local-AnimalsTable"
    port = variables["AWS_ENDPOINT_URL_DYNAMODB"].removeprefix(
        "http://store-of-make-sam-local:"
    )
    store = store_client(int(port), variables["AWS_ACCESS_KEY_ID"])
    assert store.scan(TableName=variables["ANIMALS_TABLE"])


def test_template_is_for_this_machine(prepared: Path) -> None:
    template = json.loads((prepared / "template.json").read_text())

    architecture = template["Parameters"]["Architecture"]["Default"]
    assert architecture == (
        "arm64" if platform.machine() in {"aarch64", "arm64"} else "x86_64"
    )
    assert template["Parameters"]["Stage"]["Default"] == "staging"
    resources = template["Resources"]
    assert (
        resources["GetPetFunction"]["Properties"]["CodeUri"]
        == f"{ROOT}/functions/get_pet"
    )
    assert resources["CommonLayer"]["Properties"]["ContentUri"] == f"{prepared}/layer"


@pytest.mark.parametrize(
    ("printed", "status"),
    [('{"statusCode": 404}', 0), ('{"statusCode": 503}', 1), ("", 1)],
)
def test_exit_status_tells_a_failure(
    monkeypatch: pytest.MonkeyPatch, printed: str, status: int
) -> None:
    process = mock.Mock(communicate=lambda: (printed, None))
    gateway = mock.Mock(template=TEMPLATE)
    monkeypatch.setattr(
        sam, "_prepared", lambda *_: nullcontext((mock.Mock(), gateway))
    )
    monkeypatch.setattr(sam, "_sam", lambda *_, **__: nullcontext(process))

    with pytest.raises(typer.Exit) as ended:
        sam.sam_invoke(ROOT / "events/get-401.json")

    assert ended.value.exit_code == status


@pytest.mark.parametrize(
    "command", ["sam-local", f"sam-invoke {ROOT}/events/get-200.json"]
)
def test_without_an_engine_it_says_what_to_do(tmp_path: Path, command: str) -> None:
    own = environment(tmp_path, DOCKER_HOST="unix:///nonexistent", PATH="/usr/bin:/bin")
    failed = subprocess.run(
        [*processes.COMMAND, *command.split()],
        cwd=ROOT,
        env=own,
        check=False,
        capture_output=True,
        text=True,
    )

    assert failed.returncode == 1
    assert "no container engine answers. Start Docker" in failed.stderr
