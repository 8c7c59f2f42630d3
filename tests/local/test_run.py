"""`make run` as a person meets it: what it prints, how it ends, what it keeps, what it refuses."""

import json
import os
import shutil
import signal
import socket
import subprocess
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner, Result

from ops.cli import app
from tests.support import dynamodb_local, processes
from tests.support.handlers import pets
from tests.support.in_process import own_layer
from tests.support.processes import (
    RunningService,
    environment,
    run_service,
)
from tests.support.waiting import wait_for
from tools import ROOT
from tools.local.folder import DataFolder
from tools.local.service import ENDPOINT_VARIABLE, load_template, open_store
from tools.local.store import Database

LIST = f"{ROOT}/events/list-200.json"


def command(data: Path, *arguments: str, **variables: str) -> Result:
    """Run a command in this process, in an environment of its own; `run` starts no server."""
    own = environment(PORT="0", DATA=str(data)) | variables
    with (
        mock.patch.dict(os.environ, own, clear=True),
        mock.patch("uvicorn.Server.run"),
        own_layer(),
    ):
        return CliRunner().invoke(app, arguments)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_printed_commands_work_when_pasted(service: RunningService) -> None:
    printed = service.console.read_text()
    # No server sees what follows #.
    assert f"Docs: {service.origin}/docs#key={service.api_key}\n" in printed
    lines = printed.splitlines()
    commands = "\n".join(line for line in lines if line.startswith("  curl "))

    answers = subprocess.getoutput(commands)

    assert answers.count("HTTP/1.1 201") == 1
    assert answers.count("HTTP/1.1 200") == 2
    line = '"GET /v1/pets?limit=5 HTTP/1.1" 200'
    wait_for(lambda: line in service.console.read_text())
    assert '"Operation":"getPet"' in (service.data / "functions.log").read_text()


def test_only_the_loopback_address_answers(service: RunningService) -> None:
    port = service.http.base_url.port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port))


# Each relies on other data that is prepared: a used Idempotency-Key, and animals.
@pytest.mark.parametrize("name", ["create-422", "list-200-cursor"])
def test_invoked_event_gets_the_status_in_its_file_name(
    tmp_path: Path, name: str
) -> None:
    invoked = command(tmp_path, "invoke", f"{ROOT}/events/{name}.json")

    assert f"-{json.loads(invoked.stdout)['statusCode']}" in name
    assert invoked.exit_code == 0
    assert (tmp_path / "events/store").exists()
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("failure", [{"statusCode": 500}, OSError])
def test_invoked_handler_that_fails_is_a_failure(
    tmp_path: Path, failure: object
) -> None:
    with mock.patch("ops.cli.events.Gateway.invoke", side_effect=[{}, failure]):
        assert command(tmp_path, "invoke", LIST).exit_code == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[]", "TypeError: "),
        (
            '{"httpMethod": "GET", "path": "/pets"}',
            "LookupError: no function answers GET /pets",
        ),
    ],
)
def test_broken_event_is_explained(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "event.json"
    file.write_text(content)

    message = str(command(tmp_path, "invoke", str(file)).exception)

    expected = f"{file} is not an event of API Gateway for this service: {reason}"
    assert message.startswith(expected)
    assert not (tmp_path / "events").exists()


def test_revoked_key_of_this_machine_is_replaced(tmp_path: Path) -> None:
    template = load_template()
    with own_layer(), open_store(DataFolder(tmp_path)) as service:
        service.gateway(template)
        key = service.api_key(template)
        assert service.api_key(template) == key

        service.keys(template).revoke(key)

        assert service.api_key(template) != key


@pytest.mark.slow
def test_contract_holds_over_http_on_amazons_engine(tmp_path: Path) -> None:
    with (
        dynamodb_local.serve(processes.amazons_engine()) as endpoint,
        run_service(tmp_path, **{ENDPOINT_VARIABLE: endpoint}) as service,
    ):
        processes.check_contract(service)


def test_data_stays_when_the_service_is_stopped(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Mia", "categoryId": 1}).json()
        service.http.close()
        service.process.send_signal(signal.SIGINT)

        assert service.process.wait(20) == 0
        assert "Traceback" not in service.console.read_text()

    with closing(Database(DataFolder(tmp_path).database)) as database:
        assert pets(database) == [pet]


@pytest.mark.parametrize("port", ["abc", "65536"])
def test_port_that_cannot_be_used_is_explained(tmp_path: Path, port: str) -> None:
    message = str(command(tmp_path, "run", PORT=port).exception)

    assert message.startswith(f"cannot listen on port {port}: ")


def test_folder_that_cannot_be_used_is_explained() -> None:
    message = str(command(ROOT / "README.md", "run").exception)

    assert message.startswith(f"DATA={ROOT}/README.md cannot be used: ")


def test_port_and_folder_in_use_are_named_together(service: RunningService) -> None:
    port = str(service.http.base_url.port)

    message = str(command(service.data, "run", PORT=port).exception)

    first, second = message.splitlines()
    assert first.startswith(f"cannot listen on port {port}: ")
    assert second.startswith(f"DATA={service.data} is in use by `make run` or")


def test_folder_in_use_is_not_reset(service: RunningService) -> None:
    message = str(command(service.data, "reset").exception)

    assert message.startswith(f"DATA={service.data} is in use by `make run` or")
    assert (service.data / "store").exists()


def test_store_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store/shared-local-instance.db").touch()

    message = str(command(tmp_path, "run").exception)

    assert message.startswith(f"{tmp_path}/store has the store of another version")
    assert not (tmp_path / "store/dynamodb.sqlite").exists()
    assert command(tmp_path, "reset").exit_code == 0
    assert command(tmp_path, "run").exit_code == 0


def test_data_folder_is_its_owners_and_ignored_by_git(tmp_path: Path) -> None:
    command(Path("~/x"), "run", HOME=str(tmp_path))

    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert tmp_path / "x/api-key" in files
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
    subprocess.check_call(["git", "init", "--quiet", tmp_path])
    assert not subprocess.check_output(["git", "-C", tmp_path, "status", "--short"])


def test_reset_keeps_each_old_store(tmp_path: Path) -> None:
    for content in ("first", "second"):
        (tmp_path / "store").mkdir()
        (tmp_path / "store/dynamodb.sqlite").write_text(content)
        command(tmp_path, "reset")

    old = sorted(tmp_path.glob("store.*.old/dynamodb.sqlite"))
    assert [file.read_text() for file in old] == ["first", "second"]
    assert not (tmp_path / "store").exists()


@pytest.mark.slow
def test_service_restarts_when_a_file_changes(tmp_path: Path) -> None:
    for name in ("functions", "layers"):
        (tmp_path / name).mkdir()
    (tmp_path / "template.yaml").touch()
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    new = tmp_path / "new"
    make = ["make", "-f", f"{ROOT}/Makefile", "-C", f"{tmp_path}", "-o", "install"]

    with run_service(tmp_path / "data", *make, "run", "RELOAD=1") as service:
        # As an editor saves: another file takes the place of the old one.
        for name in ("template.yaml", "layers/x", "template.yaml"):
            service.console.write_text("")
            new.touch()
            new.replace(tmp_path / name)
            wait_for(lambda: "Try it" in service.console.read_text())


def test_missing_container_engine_is_reported_with_advice(tmp_path: Path) -> None:
    message = str(command(tmp_path, "sam-local", PATH="/nonexistent").exception)

    assert "Start Docker" in message
