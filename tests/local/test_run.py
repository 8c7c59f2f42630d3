"""`make run` as a person meets it: what it prints, how it ends, what it keeps, what it refuses."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest
import typer
from lambda_local import dynamodb_local
from typer.testing import CliRunner, Result

from tests.support import processes
from tests.support.in_process import own_layer
from tests.support.processes import (
    RunningService,
    environment,
    run_service,
    wait_for,
)
from tools import ROOT
from tools.cli import app
from tools.local.folder import DataFolder
from tools.local.invoke import show
from tools.local.service import ENDPOINT_VARIABLE, open_store

# Two whose store is prepared in a way of its own; all take a few seconds.
EVENTS: list[Any] = ["create-422", "list-200-cursor"]
for path in sorted((ROOT / "events").glob("*.json")):
    if path.stem not in EVENTS:
        EVENTS.append(pytest.param(path.stem, marks=pytest.mark.slow))


def command(data: Path, *arguments: str, **variables: str) -> Result:
    """Run a command in this process, in an environment of its own; `run` starts no server."""
    with (
        mock.patch.dict(os.environ, environment(data, **variables), clear=True),
        mock.patch("uvicorn.Server.run"),
        own_layer(),
    ):
        return CliRunner().invoke(app, arguments)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_printed_commands_work_when_pasted(service: RunningService) -> None:
    printed = service.console.read_text().splitlines()
    page = service.base_url.replace("/v1", f"/docs#key={service.api_key}")
    assert f"Docs: {page}" in printed  # no server sees what follows #
    commands = "\n".join(line for line in printed if "  curl" in line)

    answers = subprocess.check_output(["sh", "-c", commands], text=True)

    assert answers.count("HTTP/1.1 201 Created") == 1
    assert answers.count("HTTP/1.1 200 OK") == 2
    line = "200  GET /v1/pets?status=available&limit=5  "
    wait_for(lambda: line in service.console.read_text())


def test_requests_are_logged_without_the_key(service: RunningService) -> None:
    request_id = service.http.get("/pets").headers["x-amzn-RequestId"]

    log = (service.data / "functions.log").read_text()
    assert request_id in log
    assert service.api_key not in log
    assert (service.data / "api-key").stat().st_mode & 0o777 == 0o600


def test_only_the_loopback_address_answers(service: RunningService) -> None:
    port = httpx2.URL(service.base_url).port
    assert port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port))


@pytest.mark.parametrize("name", EVENTS)
def test_invoked_event_gets_the_response_of_its_name(tmp_path: Path, name: str) -> None:
    invoked = command(tmp_path, "invoke", f"{ROOT}/events/{name}.json")

    assert f"-{json.loads(invoked.stdout)['statusCode']}" in name


def keys(data: Path) -> str:
    return command(data, "keys", "list").stdout


def test_example_key_opens_nothing_after_the_command(tmp_path: Path) -> None:
    command(tmp_path, "invoke", f"{ROOT}/events/list-200.json")

    assert "events" not in keys(tmp_path)


def test_example_key_of_a_command_that_was_killed_is_removed(tmp_path: Path) -> None:
    add = """if True:
        import os
        from tools.local import events, folder, service
        template = service.load_template()
        with service.open_store(folder.DataFolder()) as store:
            gateway = store.load(template)
            with events.prepared(events.EXAMPLE_KEY, gateway, store.dynamodb):
                os._exit(0)
    """
    own = environment(tmp_path)
    subprocess.run([sys.executable, "-c", add], cwd=ROOT, env=own, check=True)
    assert "events" in keys(tmp_path)

    command(tmp_path, "run")

    assert "events" not in keys(tmp_path)


def test_unusable_event_is_explained(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text('{"httpMethod": "GET", "path": "/v1/cats"}')

    failed = command(tmp_path, "invoke", str(event))

    assert str(failed.exception) == f"{event}: no function answers GET /v1/cats"


def test_failure_of_the_service_ends_an_invocation_with_status_1() -> None:
    with pytest.raises(typer.Exit) as ended:
        show({"statusCode": 503})

    assert ended.value.exit_code == 1


@pytest.mark.slow
def test_contract_holds_over_http(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        processes.check_contract(service)


@pytest.mark.slow
def test_contract_holds_on_amazons_engine(tmp_path: Path) -> None:
    with dynamodb_local.serve(processes.amazons_engine()) as endpoint:
        elsewhere = {ENDPOINT_VARIABLE: endpoint}
        with run_service(tmp_path, **elsewhere) as service:
            processes.check_contract(service, **elsewhere)


def test_data_stays_when_it_is_stopped(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Mine", "categoryId": 1}).json()
        service.process.send_signal(signal.SIGINT)

        assert service.process.wait(20) == 0
        assert "Traceback" not in service.console.read_text()
        assert DataFolder(tmp_path).base_url() is None

    # The events bring animals of their own for the ids that the store lacks.
    invoked = command(tmp_path, "invoke", f"{ROOT}/events/list-200.json")

    assert json.loads(json.loads(invoked.stdout)["body"])[0] == pet


@pytest.mark.slow
def test_terminal_that_is_not_read_stops_no_request(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "console")
    unread = os.open(tmp_path / "console", os.O_RDONLY | os.O_NONBLOCK)
    # Closed before the service is stopped, which could not end while it waits for a reader.
    with run_service(tmp_path) as service, os.fdopen(unread):
        for _ in range(500):  # more lines than a pipe of 64 KB holds
            assert service.http.get(f"/{'x' * 200}").status_code == 404


@pytest.mark.parametrize("port", ["abc", "99999"])
def test_unusable_port_is_named(tmp_path: Path, port: str) -> None:
    message = str(command(tmp_path, "run", PORT=port).exception)

    why = "it is not a number from 0 to 65535"
    assert message.startswith(f"cannot listen on port {port}: {why}. Use another")


def test_folder_in_use_is_named(service: RunningService) -> None:
    message = f"{service.data} is in use by `make run` or `make sam-local` "

    for name in ("run", "reset"):
        failed = command(service.data, name)
        assert f"{message}({service.base_url})" in str(failed.exception)


@pytest.mark.parametrize(
    ("announced", "used"),
    [
        ("http://127.0.0.1:80/v1", "http://127.0.0.1:80/v1"),
        ("http://127.0.0.1.evil.example:80/v1", None),
    ],
)
def test_keys_are_sent_to_this_machine_alone(
    tmp_path: Path, announced: str, used: str | None
) -> None:
    folder = DataFolder(tmp_path)
    with folder.held_by_service() as service:
        print(announced, end="", file=service, flush=True)

        assert folder.base_url() == used


def test_own_settings_for_aws_are_not_used(tmp_path: Path) -> None:
    theirs = {"AWS_PROFILE": "none"}
    with mock.patch.dict(os.environ, theirs), open_store(DataFolder(tmp_path)):
        assert "AWS_PROFILE" not in os.environ


def test_only_a_store_on_this_machine_gets_invented_credentials(
    tmp_path: Path,
) -> None:
    theirs = {ENDPOINT_VARIABLE: "http://dynamodb.example"}
    with (
        mock.patch.dict(os.environ, environment(tmp_path, **theirs), clear=True),
        mock.patch("tools.local.service.client"),
        open_store(DataFolder(tmp_path)),
    ):
        assert "AWS_ACCESS_KEY_ID" not in os.environ


def test_data_folder_is_found_and_ignored_by_git(tmp_path: Path) -> None:
    assert command(Path("~/x"), "run", HOME=str(tmp_path)).exit_code == 0

    assert (tmp_path / "x/api-key").exists()
    assert (tmp_path / "x/.gitignore").read_text() == "*\n"


def test_folder_of_something_else_keeps_its_files_in_git(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    command(tmp_path, "run")

    assert not (tmp_path / ".gitignore").exists()
    for data in (tmp_path / "README.md", tmp_path / "README.md/data"):
        message = str(command(data, "run").exception)
        assert message == f"{data} is not a folder. Name one, new or old: DATA=.local2"


def copied(old: Path, new: Path) -> None:
    """Run CONTRIBUTING's command that copies a store."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (line,) = [line for line in text.splitlines() if "sqlite3.connect" in line]
    copy = line.replace("FROM", str(old)).replace("TO", str(new))
    subprocess.check_call(shlex.split(copy), cwd=ROOT)


def test_store_is_copied_and_copied_back_while_in_use(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    pet = {"name": "Rex", "categoryId": 1}
    with run_service(tmp_path / "data") as service:
        store = DataFolder(service.data).database
        service.http.post("/pets", json=pet)
        copied(store, copy)
        service.http.post("/pets", json=pet)
        copied(copy, store)

        assert service.http.get("/pets").json() == [pet | {"id": 1}]
        assert service.http.post("/pets", json=pet).json()["id"] == 2


def test_reset_keeps_the_old_store_and_the_key(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    assert "has no store" in str(command(tmp_path, "reset").exception)
    command(tmp_path, "run")
    key, content = folder.api_key.read_text(), folder.database.read_bytes()

    command(tmp_path, "reset")

    (old,) = tmp_path.glob("store.*.old")
    assert (old / "dynamodb.sqlite").read_bytes() == content
    command(tmp_path, "run")
    assert folder.api_key.read_text() == key
    assert '"label": "local"' in command(tmp_path, "keys", "list", "--json").stdout


def test_changed_files_are_loaded_and_broken_ones_are_not(tmp_path: Path) -> None:
    for name in ("functions", "layers"):
        shutil.copytree(ROOT / name, tmp_path / name)
    template = shutil.copyfile(ROOT / "template.yaml", tmp_path / "template.yaml")
    handler = tmp_path / "functions/list_pets/app.py"
    old = handler.read_text()

    with run_service(tmp_path / "data", TEMPLATE=str(template), RELOAD="1") as service:
        (tmp_path / "layers/common/animal_store/extra.py").write_text("STATUS = 298\n")
        new = "from animal_store.extra import STATUS\n" + old.replace("(200", "(STATUS")
        handler.write_text(new.replace("    return", "    breakpoint()\n    return"))
        wait_for(lambda: service.http.get("/pets").status_code == 298, 60)
        wait_for(
            lambda: f"breakpoint in {handler}, line" in service.console.read_text()
        )
        handler.write_text(old + "undefined_name\n")
        wait_for(lambda: "Not reloaded, the old" in service.console.read_text(), 60)
        assert service.http.get("/pets").status_code == 298
        handler.write_text(old)
        wait_for(lambda: service.http.get("/pets").status_code == 200, 60)
