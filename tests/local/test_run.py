"""`make run` as a person meets it: what it prints, how it ends, what it keeps, what it refuses."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from unittest import mock

import pytest
from animal_store import api_key
from typer.testing import CliRunner, Result

from tests.support import dynamodb_local, processes
from tests.support.in_process import own_layer
from tests.support.processes import (
    RunningService,
    environment,
    run_service,
    wait_for,
)
from tools import ROOT
from tools.cli import app
from tools.key_table import KeyRecord, KeyTable
from tools.local.events import EXAMPLE_KEY
from tools.local.folder import DataFolder, write_private
from tools.local.service import ENDPOINT_VARIABLE, KEY_TABLE, load_template, open_store

PET = {"name": "Mine", "categoryId": 1}


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
    printed = service.console.read_text()
    page = service.base_url.replace("/v1", f"/docs#key={service.api_key}")
    assert f"Docs: {page}\n" in printed  # no server sees what follows #
    lines = printed.splitlines()
    commands = "\n".join(line for line in lines if line.startswith("  curl "))

    answers = subprocess.getoutput(commands)

    assert answers.count("HTTP/1.1 201") == 1
    assert answers.count("HTTP/1.1 200") == 2
    line = '"GET /v1/pets?status=available&limit=5 HTTP/1.1" 200'
    wait_for(lambda: line in service.console.read_text())
    page = printed.partition("Status: ")[2].split()[0]
    last = service.http.get(f"{page}.json").json()["last"][0]
    assert (last["Operation"], last["Status"]) == ("getPet", "200")


def test_only_the_loopback_address_answers(service: RunningService) -> None:
    port = service.http.base_url.port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port))


# Two whose store is prepared in a way of its own.
@pytest.mark.parametrize("name", ["create-422", "list-200-cursor"])
def test_invoked_event_gets_the_response_of_its_name(tmp_path: Path, name: str) -> None:
    invoked = command(tmp_path, "invoke", f"{ROOT}/events/{name}.json")

    assert f"-{json.loads(invoked.stdout)['statusCode']}" in name
    # The example key opens nothing any more.
    assert "events" not in command(tmp_path, "keys", "list").stdout


def test_example_key_of_a_command_that_was_killed_is_removed(tmp_path: Path) -> None:
    command(tmp_path, "run")
    table = load_template().tables[KEY_TABLE].name
    with own_layer(), open_store(DataFolder(tmp_path)) as store:
        keys = KeyTable(store.dynamodb, table)
        keys.put(KeyRecord(api_key.digest(EXAMPLE_KEY), "events", 0))
    command(tmp_path, "run")

    assert "events" not in command(tmp_path, "keys", "list").stdout


@pytest.mark.slow
def test_contract_holds_over_http_on_amazons_engine(tmp_path: Path) -> None:
    with dynamodb_local.serve(processes.amazons_engine()) as endpoint:
        elsewhere = {
            ENDPOINT_VARIABLE: endpoint,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
        }
        with run_service(tmp_path, root=ROOT, **elsewhere) as service:
            assert "local" in service.tool("keys", "list", **elsewhere)
            processes.check_contract(service)


def test_data_stays_when_it_is_stopped(tmp_path: Path) -> None:
    with run_service(tmp_path) as service:
        pet = service.http.post("/pets", json=PET).json()
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


FILE, LOCK = f"{ROOT}/README.md", f"{ROOT}/locks/clients-npm/package.json"


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        ("run", {"PORT": "abc"}, "cannot listen on port abc: "),
        ("run", {"PORT": "99999"}, "cannot listen on port 99999: "),
        ("run", {"DATA": FILE}, f"{FILE} is not a folder. "),
        ("run", {"DATA": f"{FILE}/data"}, f"{FILE}/data is not a folder. "),
        ("reset", {}, "has no store, so there is nothing to empty."),
        (f"invoke {FILE}", {}, f"{FILE}: Expecting value"),
        (f"invoke {LOCK}", {}, f"{LOCK}: 'requestContext'"),
    ],
)
def test_mistake_is_explained(
    tmp_path: Path, arguments: str, variables: dict[str, str], message: str
) -> None:
    failed = command(tmp_path, *arguments.split(maxsplit=1), **variables)

    assert message in str(failed.exception)


@pytest.mark.parametrize("name", ["run", "reset"])
def test_folder_in_use_is_named(service: RunningService, name: str) -> None:
    message = str(command(service.data, name).exception)

    assert message.startswith(f"{service.data} is in use by `make run` or")
    assert service.base_url in message
    assert (service.data / "store").exists()


def test_keys_are_sent_to_this_machine_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    with folder.held_by_service() as service:
        print("80@evil.example", end="", file=service, flush=True)

        assert folder.base_url() is None


def test_own_settings_for_aws_are_not_used(tmp_path: Path) -> None:
    assert command(tmp_path, "keys", "list", AWS_PROFILE="none").exit_code == 0


def test_data_folder_is_found_and_ignored_by_git(tmp_path: Path) -> None:
    command(Path("~/x"), "run", HOME=str(tmp_path))

    assert (tmp_path / "x/api-key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "x/.gitignore").read_text() == "*\n"


def test_folder_of_something_else_keeps_its_files_in_git(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    command(tmp_path, "run")

    assert not (tmp_path / ".gitignore").exists()


def test_store_is_copied_and_copied_back_while_in_use(
    service: RunningService, tmp_path: Path
) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (line,) = (line for line in text.splitlines() if "sqlite3.connect" in line)
    store = f"{service.data}/store/dynamodb.sqlite"

    def copy(source: str, target: str) -> None:
        documented = line.replace("FROM", source).replace("TO", target)
        processes.run("sh", "-c", documented, cwd=ROOT)

    copy(store, f"{tmp_path}/copy")
    pet = service.http.post("/pets", json=PET).json()
    copy(f"{tmp_path}/copy", store)

    assert service.http.post("/pets", json=PET).json() == pet  # its id again


def test_reset_keeps_the_old_store_and_the_key(tmp_path: Path) -> None:
    command(tmp_path, "run")
    key = (tmp_path / "api-key").read_text()
    content = (tmp_path / "store/dynamodb.sqlite").read_bytes()

    command(tmp_path, "reset")
    command(tmp_path, "run")

    (old,) = tmp_path.glob("store.*.old/dynamodb.sqlite")
    assert old.read_bytes() == content
    assert (tmp_path / "api-key").read_text() == key
    assert "  local  " in command(tmp_path, "keys", "list").stdout


def test_key_is_issued_for_as_many_days_as_asked(tmp_path: Path) -> None:
    issued = command(tmp_path, "keys", "issue", "--label", "bob", "--days", "2")

    in_two_days = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 2 * 86_400))

    assert f", expires {in_two_days} " in issued.stderr
    assert f"  {in_two_days} " in command(tmp_path, "keys", "list").stdout


def test_key_that_was_revoked_is_replaced(tmp_path: Path) -> None:
    command(tmp_path, "run")
    key = (tmp_path / "api-key").read_text()
    command(tmp_path, "keys", "revoke", key.strip())
    command(tmp_path, "run")

    assert (tmp_path / "api-key").read_text() != key


def test_changed_files_are_loaded_and_broken_ones_are_not(tmp_path: Path) -> None:
    for name in ("functions", "layers"):
        shutil.copytree(ROOT / name, tmp_path / name)
    template = shutil.copyfile(ROOT / "template.yaml", tmp_path / "template.yaml")
    handler = tmp_path / "functions/list_pets/app.py"
    broken = tmp_path / "layers/common/animal_store/cursor.py"
    old, intact, written = handler.read_text(), broken.read_text(), template.read_text()

    with run_service(tmp_path / "data", TEMPLATE=str(template), RELOAD="1") as service:
        new = old.replace(
            "return Response(200", "breakpoint()\n    return Response(298"
        )
        template.write_text(written.replace("ProjectionType: ALL", "ProjectionType: X"))
        wait_for(lambda: "the parameter Projection" in service.console.read_text())
        template.write_text(written)
        saved = handler.with_name("being_saved.py")
        saved.symlink_to("nowhere")
        time.sleep(1)
        saved.unlink()
        handler.write_text(new)
        wait_for(lambda: service.http.get("/pets").status_code == 298, 60)
        broken.write_text("undefined_name")
        wait_for(lambda: "Not reloaded, the old" in service.console.read_text(), 60)
        assert service.http.get("/pets").status_code == 298
        assert "ignored a breakpoint" in service.console.read_text()
        broken.write_text(intact)
        handler.write_text(old)
        wait_for(lambda: service.http.get("/pets").status_code == 200, 60)


def test_a_folder_names_its_last_service_once_it_answers(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    for port in ("80", "81"):
        with folder.held_by_service() as service:
            assert folder.base_url() is None
            print(port, end="", file=service, flush=True)

            assert folder.base_url() == f"http://127.0.0.1:{port}/v1"


def test_a_file_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o644)

    write_private(tmp_path / "file", "secret")

    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
