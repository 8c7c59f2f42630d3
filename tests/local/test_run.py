"""`make run` as a person meets it: what it prints, how it ends, what it keeps, what it refuses."""

import json
import os
import shutil
import signal
import socket
import subprocess
import termios
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from lambda_local import dynamodb_local
from typer.testing import CliRunner, Result

from tests.support import processes
from tests.support.handlers import EVENTS
from tests.support.in_process import own_layer
from tests.support.processes import (
    COMMAND,
    RunningService,
    environment,
    run_service,
    wait_for,
)
from tools import ROOT
from tools.cli import app
from tools.local.folder import DataFolder
from tools.local.service import ENDPOINT_VARIABLE, open_store


def command(data: Path, *arguments: str, **variables: object) -> Result:
    """Run a command in this process, in an environment of its own; `run` starts no server."""
    own = environment(data, **{name: str(value) for name, value in variables.items()})
    with (
        mock.patch.dict(os.environ, own, clear=True),
        own_layer(),
        mock.patch("uvicorn.Server.run"),
    ):
        return CliRunner().invoke(app, arguments)


def printed(service: RunningService, part: str) -> list[str]:
    """Return the lines of the service's console that contain a text."""
    return [line for line in service.printed() if part in line]


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_printed_commands_work_when_pasted(service: RunningService) -> None:
    wait_for(lambda: len(printed(service, "  curl")) == 3)
    create, listing, get = printed(service, "  curl")

    assert "201 Created" in subprocess.check_output(["sh", "-c", create], text=True)
    assert "200 OK" in subprocess.check_output(["sh", "-c", listing], text=True)
    assert "200 OK" in subprocess.check_output(["sh", "-c", get], text=True)
    wait_for(lambda: printed(service, "200  GET /v1/pets?status=available&limit=5"))
    assert not printed(service, "_aws")


def test_requests_are_logged_without_the_key(service: RunningService) -> None:
    request_id = service.http.get("/pets").headers["x-amzn-RequestId"]

    log = (service.data / "functions.log").read_text()
    assert request_id in log
    assert service.api_key not in log
    assert (service.data / "api-key").stat().st_mode & 0o777 == 0o600


def test_only_the_loopback_address_answers(service: RunningService) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", httpx.URL(service.base_url).port or 0))


@pytest.mark.parametrize("name", EVENTS)
def test_invoked_event_gets_the_response_of_its_name(tmp_path: Path, name: str) -> None:
    invoked = command(tmp_path, "invoke", f"{ROOT}/events/{name}.json")

    assert f"-{json.loads(invoked.stdout)['statusCode']}" in name
    assert invoked.exit_code == 0


def test_events_leave_the_animals_of_a_store_alone(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Mine", "categoryId": 1}).json()

        command(tmp_path, "invoke", f"{ROOT}/events/get-200.json")

        assert service.http.get("/pets/1").json() == pet
        assert (
            service.http.post("/pets", json={"name": "A", "categoryId": 1}).status_code
            == 201
        )


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            '{"httpMethod": "GET", "path": "/v1/cats"}',
            "no function answers GET /v1/cats\n",
        ),
        ("[]", "'list' object has no attribute"),
    ],
)
def test_unusable_event_is_explained(tmp_path: Path, event: str, message: str) -> None:
    (tmp_path / "event.json").write_text(event)

    failed = command(tmp_path, "invoke", f"{tmp_path}/event.json")

    assert failed.exit_code == 1
    assert message in failed.stderr


@pytest.mark.slow
def test_contract_holds_over_http(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        processes.check_contract(service)


@pytest.mark.slow
def test_contract_holds_on_amazons_engine(tmp_path: Path) -> None:
    with dynamodb_local.serve(processes.amazons_engine()) as endpoint:
        elsewhere: Any = {ENDPOINT_VARIABLE: endpoint}
        with run_service(tmp_path, **elsewhere) as service:
            processes.check_contract(service, **elsewhere)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_signal_ends_it_and_the_data_stays(tmp_path: Path, number: int) -> None:
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json={"name": "Rex", "categoryId": 1}).json()
        service.process.send_signal(number)
        service.process.wait(20)

        assert "Traceback" not in service.console.read_text()
        assert DataFolder(tmp_path).base_url() is None

    with run_service(tmp_path) as service:
        assert service.http.get("/pets").json() == [pet]


def test_stopped_terminal_stops_no_request(tmp_path: Path) -> None:
    terminal = os.openpty()[1]
    with run_service(tmp_path, terminal) as service:
        termios.tcflow(terminal, termios.TCOOFF)  # Ctrl-S

        for _ in range(200):
            assert service.http.get("/pets").status_code == 200
        service.process.kill()  # at its end it would wait for the terminal


def test_interrupted_while_it_starts_it_ends_quietly(tmp_path: Path) -> None:
    own, pipe = environment(tmp_path), subprocess.PIPE
    with subprocess.Popen([*COMMAND, "run"], cwd=ROOT, env=own, stderr=pipe) as process:
        wait_for((tmp_path / "service").exists)
        process.terminate()

        assert process.communicate(timeout=20)[1] == b""


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"PORT": "99999"},
            "cannot listen on port 99999: it is not a number from 0 to 65535. Use",
        ),
        ({"TEMPLATE": "/none.yaml"}, "/none.yaml cannot be used: FileNotFoundError"),
        ({"DATA": f"{ROOT}/README.md"}, f"nothing can be stored in {ROOT}/README.md: "),
        (
            {ENDPOINT_VARIABLE: "http://127.0.0.1:1"},
            "the store at http://127.0.0.1:1 does not ans",
        ),
    ],
)
def test_unusable_setting_is_named(
    tmp_path: Path, variables: dict[str, str], message: str
) -> None:
    failed = command(tmp_path, "run", **variables)

    assert failed.exit_code == 1
    assert f"make run: {message}" in failed.output


def test_taken_port_is_named(service: RunningService, tmp_path: Path) -> None:
    port = httpx.URL(service.base_url).port

    said = command(tmp_path, "run", PORT=port).output

    assert f"cannot listen on port {port}: it is taken. Use another: PORT=8080" in said


@pytest.mark.parametrize("name", ["run", "reset", "sam-local"])
def test_folder_in_use_is_named(service: RunningService, name: str) -> None:
    said = command(service.data, name).output

    assert f"{service.data} is in use by `make run` or `make sam-local`" in said
    assert service.base_url in said


def test_reset_without_a_store_says_so(tmp_path: Path) -> None:
    said = command(tmp_path, "reset").output

    assert (
        said == f"make reset: {tmp_path} has no store, so there is nothing to empty.\n"
    )


def test_own_settings_for_aws_are_not_used(tmp_path: Path) -> None:
    theirs = {
        "AWS_PROFILE": "none",
        "AWS_ENDPOINT_URL": "http://a",
        "AWS_ACCESS_KEY_ID": "theirs",
    }
    with mock.patch.dict(os.environ, theirs), open_store(DataFolder(tmp_path)):
        assert "AWS_PROFILE" not in os.environ
        assert "AWS_ENDPOINT_URL" not in os.environ
        assert os.environ["AWS_ACCESS_KEY_ID"] == "local"


def test_reset_keeps_the_old_store_and_the_key(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    command(tmp_path, "run")
    key, content = folder.api_key.read_text(), folder.database.read_bytes()

    said = command(tmp_path, "reset").output

    (old,) = tmp_path.glob("store.*.old")
    assert (
        said
        == f"{tmp_path}: the store is now {old}; the next start has an empty one.\n"
    )
    assert (old / "dynamodb.sqlite").read_bytes() == content
    command(tmp_path, "run")
    assert folder.api_key.read_text() == key
    assert '"label": "local"' in command(tmp_path, "keys", "list", "--json").stdout


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
    with folder.held_by_service():
        (tmp_path / "service").write_text(announced)

        assert folder.base_url() == used


def test_changed_files_are_loaded_and_broken_ones_are_not(tmp_path: Path) -> None:
    for name in ("functions", "layers"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    template = shutil.copyfile(ROOT / "template.yaml", tmp_path / "template.yaml")
    handler = tmp_path / "functions/list_pets/app.py"
    old = handler.read_text()

    with run_service(tmp_path / "data", TEMPLATE=str(template), RELOAD="1") as service:
        (tmp_path / "layers/common/animal_store/extra.py").write_text("STATUS = 298\n")
        new = "from animal_store.extra import STATUS\n" + old.replace("(200", "(STATUS")
        handler.write_text(new)
        wait_for(lambda: service.http.get("/pets").status_code == 298, 60)
        handler.write_text(old + "undefined_name\n")
        wait_for(
            lambda: printed(service, "Not reloaded, the old handlers still answer"), 60
        )
        assert service.http.get("/pets").status_code == 298
        template.write_text(
            template.read_text().replace("Path: /v1/pets,", "Path: /v1/cats,")
        )
        handler.write_text(old)
        wait_for(lambda: service.http.get("/pets").status_code == 404, 60)
