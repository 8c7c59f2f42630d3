"""`make run` as a person meets it: what it prints, how it ends, what it keeps, and what it says when it cannot."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from typer.testing import CliRunner, Result

from tests import processes
from tests.in_process import own_layer
from tests.local.dynamodb_local import dynamodb_local
from tests.processes import COMMAND, RunningService, environment, run_service, wait_for
from tools import ROOT
from tools.admin.key_table import KeyTable
from tools.cli import app
from tools.local import run
from tools.local.folder import DataFolder
from tools.local.service import ENDPOINT_VARIABLE, KEY_TABLE, load_template, open_store

PET = {"name": "Rex", "categoryId": 1}


def command(data: Path, *arguments: str, **variables: str) -> Result:
    """Run another command in this process, with an environment of its own."""
    with mock.patch.dict(os.environ, environment(data, **variables), clear=True), own_layer():
        return CliRunner().invoke(app, arguments)


# -- while it runs -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_printed_commands_work_when_pasted(service: RunningService) -> None:
    def commands() -> list[str]:
        return [line for line in service.printed() if line.startswith("  curl")]

    wait_for(lambda: len(commands()) == 3)
    responses = [subprocess.check_output(["sh", "-c", command], text=True) for command in commands()]

    assert [response.split()[1] for response in responses] == ["201", "200", "200"]
    assert (service.data / "api-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(sys.platform != "linux", reason="/proc shows them")
def test_it_is_one_process_with_one_port(service: RunningService) -> None:
    process = Path(f"/proc/{service.process.pid}")
    sockets = {str(file.readlink()) for file in (process / "fd").iterdir() if file.is_symlink()}
    rows = [row.split() for kind in ("tcp", "tcp6") for row in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]

    assert listening == [f"0100007F:{httpx.URL(service.base_url).port:04X}"]
    assert [task.read_text() for task in process.glob("task/*/children") if task.read_text()] == []


def test_requests_are_printed_and_what_functions_log_is_in_a_file(service: RunningService) -> None:
    response = service.http.get("/pets?limit=1&seen=here")

    wait_for(lambda: any("200  GET /v1/pets?limit=1&seen=here" in line for line in service.printed()))
    log = (service.data / "functions.log").read_text()
    assert response.headers["x-amzn-RequestId"] in log
    assert service.api_key not in log
    assert "_aws" not in service.console.read_text()


def test_stopped_terminal_stops_no_request(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with run_service(tmp_path, console=theirs) as service:
        termios.tcflow(theirs, termios.TCOOFF)  # Ctrl-S
        assert {service.http.get("/pets").status_code for _ in range(200)} == {200}
        termios.tcflow(theirs, termios.TCOON)
        assert b"Base URL" in os.read(ours, 4096)
        service.process.kill()
    os.close(ours)
    os.close(theirs)


def test_body_too_large_is_refused_while_it_comes(service: RunningService) -> None:
    url = httpx.URL(service.base_url)
    head = f"POST /v1/pets HTTP/1.1\r\nHost: {url.host}:{url.port}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with socket.create_connection((url.host, url.port or 0), timeout=20) as connection:
        connection.sendall(head + (b"100000\r\n" + b"a" * 0x100000 + b"\r\n") * 10 + b"1\r\na\r\n")

        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("running", [True, False])
def test_keys_and_invoke_share_the_store(service: RunningService, tmp_path: Path, running: bool) -> None:
    data = service.data if running else tmp_path
    issued, lost = (
        json.loads(command(data, "keys", "issue", "--label", n, "--json").stdout) for n in ("robot", "lost")
    )
    command(data, "keys", "revoke", lost["id"])
    invoked = command(data, "invoke", str(ROOT / "events/create-201.json"))
    refused = command(data, "invoke", str(ROOT / "events/create-401.json"))

    states = {key["label"]: key["state"] for key in json.loads(command(data, "keys", "list", "--json").stdout)}
    assert (states["robot"], states["lost"]) == ("active", "revoked")
    assert (json.loads(invoked.stdout)["statusCode"], json.loads(refused.stdout)["statusCode"]) == (201, 401)
    assert '"Operation":"createPet"' in invoked.stderr
    if running:
        created = json.loads(json.loads(invoked.stdout)["body"])
        assert service.http.get(f"/pets/{created['id']}").json() == created
        headers = [{"Authorization": f"Bearer {key['key']}"} for key in (issued, lost)]
        assert [service.http.get("/pets", headers=header).status_code for header in headers] == [200, 401]


def test_what_no_function_answers_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text('{"httpMethod": "GET", "path": "/v1/cats"}')

    done = command(tmp_path, "invoke", f"{tmp_path}/event.json")

    assert (done.exit_code, "no function answers GET /v1/cats\n" in done.stderr) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["embedded", "amazons"])
def test_contract_holds_over_http(tmp_path: Path, store: str) -> None:
    with ExitStack() as stack:
        elsewhere = {} if store == "embedded" else {ENDPOINT_VARIABLE: stack.enter_context(dynamodb_local())}
        service = stack.enter_context(run_service(tmp_path, None, **elsewhere))
        issued = command(tmp_path, "keys", "issue", "--label", "second", "--json", **elsewhere)
        variables = {"BASE_URL": service.base_url, "API_KEY": service.api_key}
        second = json.loads(issued.stdout)["key"]
        printed = processes.run("make", "contract", cwd=ROOT, timeout_s=600, SECOND_API_KEY=second, **variables)

    assert "skipped" not in printed


# -- when it ends ------------------------------------------------------------------------------------------------------


def test_signals_end_it_and_the_data_stays(tmp_path: Path) -> None:
    pets: list[object] = []
    keys: set[str] = set()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        with run_service(tmp_path) as service:
            keys.add(service.api_key)
            assert service.http.get("/pets").json() == pets
            pets.append(service.http.post("/pets", json=PET).json())
            service.process.send_signal(number)
            service.process.send_signal(number)  # impatience changes nothing
            status = service.process.wait(20)
        assert status == (-number if number == signal.SIGKILL else 0)
        assert "Traceback" not in service.console.read_text()
        assert DataFolder(tmp_path).base_url() is None
    assert len(keys) == 1


def test_interrupted_while_it_starts_it_ends_quietly(tmp_path: Path) -> None:
    output: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen([*COMMAND, "run"], cwd=ROOT, env=environment(tmp_path), **output) as process:
        wait_for((tmp_path / "service").exists)
        process.send_signal(signal.SIGINT)

        assert (process.communicate(timeout=20)[0], process.returncode) == (b"", 0)


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_it_ends_with_make(tmp_path: Path) -> None:
    with subprocess.Popen(["make", "run"], cwd=ROOT, env=environment(tmp_path), stdout=subprocess.DEVNULL) as make:
        try:
            wait_for(DataFolder(tmp_path).base_url, 120)
        finally:
            make.kill()

    wait_for(lambda: DataFolder(tmp_path).base_url() is None)


# -- when it cannot ----------------------------------------------------------------------------------------------------

Refused = Callable[..., str]


@pytest.fixture
def refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Refused]:
    """Start a service that must not start, or do something else; what it says."""

    def refused(main: Callable[[], int] = run.main, **variables: object) -> str:
        os.environ.update({name: str(value) for name, value in variables.items()})
        assert main() == 1
        out, err = capfd.readouterr()
        assert err == ""
        return out.strip()

    patched = mock.patch.dict(os.environ, environment(tmp_path), clear=True)
    with patched, own_layer(), mock.patch("uvicorn.Server.run"):  # or a service that does start would never end
        yield refused


def test_ports_and_files_that_cannot_be_used(service: RunningService, tmp_path: Path, refused: Refused) -> None:
    taken = httpx.URL(service.base_url).port
    advice = "Use another: make run PORT=8080, or any free one: PORT=0"
    assert refused(PORT=taken) == f"make run: cannot listen on port {taken}: it is taken. {advice}"
    assert "cannot listen on port http: " in refused(PORT="http")
    assert f"{tmp_path}/none.yaml" in refused(PORT=0, TEMPLATE=tmp_path / "none.yaml")
    (tmp_path / "functions.log").unlink()
    (tmp_path / "functions.log").mkdir()
    assert f"'{tmp_path}/functions.log'" in refused()
    (tmp_path / "file").touch()
    assert f"nothing can be stored in {tmp_path}/file: " in refused(DATA=f"{tmp_path}/file")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
    (tmp_path / "functions.log").rmdir()
    unreachable = refused(DATA=tmp_path, TEMPLATE="", AWS_ENDPOINT_URL_DYNAMODB=endpoint)
    assert f"the store at {endpoint} does not answer" in unreachable


def test_folder_in_use(service: RunningService, refused: Refused) -> None:
    message = f"{service.data} is in use by `make run` ({service.base_url}). Stop that first"

    assert refused(DATA=service.data).startswith(f"make run: {message}")
    assert refused(run.reset, DATA=service.data).startswith(f"make reset: {message}")
    assert service.http.get("/pets").status_code == 200


def test_damaged_store_is_left_alone_until_it_is_reset(
    tmp_path: Path, refused: Refused, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, template = DataFolder(tmp_path / "my data"), load_template()
    with open_store(folder) as store:
        store.load(template)
        key = store.key(template)
    damaged = folder.database.read_bytes()[:5000]
    folder.database.write_bytes(damaged)

    said = refused(DATA=folder.path)

    assert str(folder.database) in said
    assert said.endswith(f"start with an empty store: make reset DATA='{folder.path}'")
    assert folder.database.read_bytes() == damaged
    for _ in range(2):
        assert run.reset() == 0
    first, _ = sorted(folder.path.glob("store.*.old"))
    assert f"{folder.path}: the store is now {first}; the next start has an empty one.\n" in capfd.readouterr().out
    assert (first / "dynamodb.sqlite").read_bytes() == damaged
    with open_store(folder) as store:
        store.load(template)
        assert store.key(template) == key
        known = KeyTable(store.dynamodb, template.tables[KEY_TABLE].name).all()
        assert [record.label for record in known] == ["local"]


def test_settings_of_the_user_for_aws_are_not_used(tmp_path: Path) -> None:
    theirs = {"AWS_PROFILE": "none", "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "theirs"}
    with mock.patch.dict(os.environ, theirs), open_store(DataFolder(tmp_path)):
        assert not os.environ.keys() & {"AWS_PROFILE", "AWS_ENDPOINT_URL"}
        assert os.environ["AWS_ACCESS_KEY_ID"] == "local"


# -- reload ------------------------------------------------------------------------------------------------------------


def test_changed_files_are_loaded_and_broken_ones_are_not(tmp_path: Path) -> None:
    for name in ("functions", "layers"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    template = shutil.copyfile(ROOT / "template.yaml", tmp_path / "template.yaml")
    handler, extra = tmp_path / "functions/list_pets/app.py", tmp_path / "layers/common/animal_store/extra.py"
    text = handler.read_text()

    with run_service(tmp_path / "data", TEMPLATE=str(template), RELOAD="1") as service:

        def wait_for_status(status: int) -> None:
            wait_for(lambda: service.http.get("/pets").status_code == status)

        def wait_for_line(*parts: str) -> None:
            wait_for(lambda: any(all(part in line for part in parts) for line in service.printed()))

        handler.write_text(text.replace("Response(200", "Response(299"))
        wait_for_status(299)
        handler.write_text(text + "undefined_name\n")
        last_line = f"{handler}, line {len(text.splitlines()) + 1}"
        wait_for_line("Not reloaded", "NameError: name 'undefined_name' is not defined", last_line, "functions.log")
        wait_for_status(299)
        extra.write_text("def fail():\n    raise ValueError('of the layer')\n")
        handler.write_text(
            text.replace("    limit = ", "    from animal_store import extra\n    extra.fail()\n    limit = ")
        )
        wait_for_status(500)
        wait_for_line("ValueError: of the layer", f"{extra}, line 2", "functions.log")
        handler.write_text(text)
        wait_for_status(200)
        template.with_suffix(".new").write_text(template.read_text().replace("Path: /v1/pets,", "Path: /v1/cats,"))
        template.with_suffix(".new").replace(template)  # as editors do
        wait_for_status(404)
