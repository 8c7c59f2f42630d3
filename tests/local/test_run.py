"""`make run` and `animal-store invoke`, as a developer uses them."""

import json
import os
import signal
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from botocore.session import Session
from typer.testing import CliRunner, Result

from ops.cli import app
from tests.contract.waiting import wait_for
from tests.support import dynamodb_local
from tests.support.handlers import layer_copy
from tests.support.processes import RunningService, check_contract, run_service
from tools import ROOT
from tools.local.folder import DataFolder
from tools.local.listener import listen_on_port
from tools.local.open_store import open_store
from tools.local.routes import application
from tools.local.serve_store import serve
from tools.local.template import load_template


def command(data: Path, *arguments: str, **variables: str) -> Result:
    """Run a command of `animal-store` in this process; `run` does everything but serve."""
    variables = {"PORT": "0", "DATA": str(data), **variables}
    with layer_copy(), mock.patch("uvicorn.Server.run"):
        return CliRunner().invoke(app, arguments, env=variables)


def test_console_shows_requests_and_the_docs_url(service: RunningService) -> None:
    service.http.get("/pets?limit=17", headers={"X-Forwarded-For": "192.0.2.1"})

    line = '"GET /v1/pets?limit=17 HTTP/1.1" 200'
    wait_for(lambda: line in service.console.read_text())
    console = service.console.read_text()
    assert "192.0.2.1" not in console  # a client cannot choose its address
    # A browser keeps the part of a URL after # to itself.
    assert f"Docs: {service.origin}/docs#key={service.api_key}\n" in console
    assert '"Operation":"listPets"' in (service.data / "functions.log").read_text()


def test_request_to_another_host_name_is_refused(service: RunningService) -> None:
    response = service.http.get("/pets", headers={"Host": "evil.example"})

    assert response.status_code == 400


def test_service_listens_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "0")

    with listen_on_port() as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_responses_are_sent_without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "0")

    with listen_on_port() as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_invoke_uses_its_own_store_with_six_animals(tmp_path: Path) -> None:
    result = command(tmp_path, "invoke", f"{ROOT}/events/list-200.json")

    pets = json.loads(json.loads(result.stdout)["body"])
    assert [pet["id"] for pet in pets] == [1, 2, 3, 4, 5, 6]
    assert result.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["events"]


def test_invoke_keeps_animals_that_earlier_events_added(tmp_path: Path) -> None:
    # The second `invoke` repeats a creation with an Idempotency-Key: this uses up the id 8.
    for expected_id in (7, 9):
        result = command(tmp_path, "invoke", f"{ROOT}/events/create-201.json")

        assert json.loads(json.loads(result.stdout)["body"])["id"] == expected_id


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[]", " is not an event of an API Gateway REST API: TypeError: "),
        (
            '{"httpMethod": "GET", "path": "/pets"}',
            ": no function answers this method and path",
        ),
    ],
)
def test_invoke_says_why_a_file_is_not_an_event(
    tmp_path: Path, content: str, reason: str
) -> None:
    file = tmp_path / "event.json"
    file.write_text(content)

    message = str(command(tmp_path, "invoke", str(file)).exception)

    assert message.startswith(f"{file}{reason}")


def test_no_request_goes_to_aws_whatever_the_user_has_set(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    config = "[default]\nignore_configured_endpoint_urls = true\n"
    (tmp_path / ".aws/config").write_text(config)
    variables = {
        "HOME": str(tmp_path),
        "AWS_ENDPOINT_URL_SQS": "https://sqs.eu-central-1.amazonaws.com",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
        "http_proxy": "http://127.0.0.1:1",
        "no_proxy": "",
    }

    with layer_copy():
        os.environ.update(variables)
        with open_store(DataFolder(tmp_path), load_template()) as service:
            service.gateway()
            sqs: Any = Session().create_client("sqs")

            assert sqs.meta.endpoint_url == "http://127.0.0.1:9"
            assert os.environ["no_proxy"] == "*"
            assert "AWS_CA_BUNDLE" not in os.environ


def test_service_keeps_its_key_until_it_is_revoked(tmp_path: Path) -> None:
    with layer_copy(), open_store(DataFolder(tmp_path), load_template()) as service:
        key = service.api_key()
        assert key.startswith("animal_test_")
        assert service.api_key() == key

        command(tmp_path, "keys", "revoke", key)

        assert service.api_key() != key


@pytest.mark.slow
def test_service_on_dynamodb_local_passes_the_contract_suite(tmp_path: Path) -> None:
    with (
        dynamodb_local.serve() as endpoint,
        layer_copy(),
        # The SDK repeats the first request until DynamoDB Local listens.
        mock.patch.dict(
            "tools.local.open_store._SDK_SETTINGS",
            AWS_ENDPOINT_URL=endpoint,
            AWS_MAX_ATTEMPTS="20",
        ),
        # Without the embedded store, requests reach the endpoint.
        mock.patch("tools.local.open_store.intercept_new_clients", nullcontext),
        open_store(DataFolder(tmp_path), load_template()) as store,
        serve(
            application(store.gateway()), socket.create_server(("127.0.0.1", 0))
        ) as port,
    ):
        check_contract(f"http://127.0.0.1:{port}/v1", store.api_key())


def test_animals_survive_a_restart(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Mia", "categoryId": 1}).json()
        service.process.send_signal(signal.SIGINT)

        assert service.process.wait(20) == 0
        assert "Traceback" not in service.console.read_text()

    with run_service(tmp_path) as service:
        assert service.http.get("/pets").json() == [pet]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("PORT", "abc", "cannot listen on port abc: "),
        ("DATA", f"{ROOT}/README.md", f"{ROOT}/README.md cannot be used: "),
    ],
)
def test_unusable_port_or_folder_is_reported(
    tmp_path: Path, name: str, value: str, reason: str
) -> None:
    message = str(command(tmp_path, "run", **{name: value}).exception)

    assert message.startswith(reason)


def test_data_folder_in_use_is_refused(service: RunningService) -> None:
    message = str(command(service.data, "run").exception)

    assert message.startswith(f"{service.data} is in use by another `make run` or")


def test_new_data_folder_is_private(tmp_path: Path) -> None:
    command(Path("~/x"), "run", HOME=str(tmp_path))

    folder = tmp_path / "x"
    assert oct(folder.stat().st_mode) == "0o40700"
    for name in ("api-key", "functions.log", "store/dynamodb-3.sqlite"):
        assert oct((folder / name).stat().st_mode) == "0o100600"


def test_sam_local_without_an_engine_suggests_docker(tmp_path: Path) -> None:
    message = str(command(tmp_path, "sam-local", PATH="/nonexistent").exception)

    assert "Start Docker" in message
