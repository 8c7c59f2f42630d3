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
from animal_store import api_key
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
from tools.key_table import KeyRecord, KeyTable
from tools.local.events import EXAMPLE_KEY
from tools.local.folder import DataFolder
from tools.local.service import ENDPOINT_VARIABLE, KEY_TABLE, load_template, open_store
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


# Two whose store is prepared in a way of its own.
@pytest.mark.parametrize("name", ["create-422", "list-200-cursor"])
def test_invoked_event_gets_the_response_of_its_name(tmp_path: Path, name: str) -> None:
    invoked = command(tmp_path, "invoke", f"{ROOT}/events/{name}.json")

    assert f"-{json.loads(invoked.stdout)['statusCode']}" in name
    assert invoked.exit_code == 0
    # The example key opens nothing any more.
    assert "events" not in command(tmp_path, "keys", "list").stdout


@pytest.mark.parametrize("failure", [{"statusCode": 500}, OSError])
def test_invoked_handler_that_fails_is_a_failure(
    tmp_path: Path, failure: object
) -> None:
    with mock.patch("tools.local.events.run", side_effect=[{}, failure]):
        assert command(tmp_path, "invoke", LIST).exit_code == 1
    assert "events" not in command(tmp_path, "keys", "list").stdout


def test_events_are_not_prepared_where_nobody_wants_it(tmp_path: Path) -> None:
    invoked = command(tmp_path, "invoke", LIST, EVENTS="0")

    assert json.loads(invoked.stdout)["statusCode"] == 401


def test_example_key_of_a_command_that_was_killed_is_removed(tmp_path: Path) -> None:
    template = load_template()
    with own_layer(), open_store(DataFolder(tmp_path)) as store:
        store.load(template)
        keys = KeyTable(store.dynamodb, template.tables[KEY_TABLE].name)
        left = KeyRecord(api_key.digest(EXAMPLE_KEY), "events", 0)
        keys.put(left)
        assert command(tmp_path, "invoke", LIST).exit_code == 0
        keys.put(left)

        own = store.key(template)

        assert [key.label for key in keys.all()] == ["local"]
        keys.revoke(own)
        assert store.key(template) != own


@pytest.mark.slow
def test_contract_holds_over_http_on_amazons_engine(tmp_path: Path) -> None:
    with dynamodb_local.serve(processes.amazons_engine()) as endpoint:
        elsewhere = {
            ENDPOINT_VARIABLE: endpoint,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
        }
        with run_service(tmp_path, **elsewhere) as service:
            processes.check_contract(service)


def test_data_stays_when_it_is_stopped(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Mia", "categoryId": 1}).json()
        service.http.close()
        service.process.send_signal(signal.SIGINT)

        assert service.process.wait(20) == 0
        assert "Traceback" not in service.console.read_text()

    with closing(Database(DataFolder(tmp_path).database)) as database:
        assert pets(database) == [pet]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PORT": "abc"}, "cannot listen on port abc: "),
        ({"DATA": f"{ROOT}/README.md"}, f"File exists: '{ROOT}/README.md'"),
    ],
)
def test_mistake_is_explained(
    tmp_path: Path, variables: dict[str, str], message: str
) -> None:
    assert message in str(command(tmp_path, "run", **variables).exception)


@pytest.mark.parametrize("name", ["run", "reset"])
def test_folder_in_use_is_named(service: RunningService, name: str) -> None:
    message = str(command(service.data, name).exception)

    assert message.startswith(f"{service.data} is in use by `make run` or")
    assert (service.data / "store").exists()


def test_data_folder_is_its_owners(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    command(Path("~/x"), "run", HOME=str(tmp_path))

    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert tmp_path / "x/api-key" in files
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}


def test_reset_keeps_the_old_store(tmp_path: Path) -> None:
    command(tmp_path, "run")
    content = (tmp_path / "store/dynamodb.sqlite").read_bytes()

    for name in ("reset", "run", "reset", "run"):
        command(tmp_path, name)

    first, _ = sorted(tmp_path.glob("store.*.old/dynamodb.sqlite"))
    assert first.read_bytes() == content
    assert "  local  " in command(tmp_path, "keys", "list").stdout


@pytest.mark.slow
def test_it_restarts_when_a_file_changes(tmp_path: Path) -> None:
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
