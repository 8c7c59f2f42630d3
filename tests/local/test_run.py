"""`make run` as a person meets it: what it prints, how it ends, what it keeps, and what it says when it cannot."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import termios
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from typer.testing import CliRunner, Result

from tests.support import processes
from tests.support.dynamodb_local import dynamodb_local
from tests.support.in_process import own_layer
from tests.support.processes import COMMAND, RunningService, environment, run_service, wait_for
from tools import ROOT
from tools.cli import app
from tools.local.folder import DataFolder
from tools.local.service import ENDPOINT_VARIABLE, open_store


def command(data: Path, *arguments: str, **variables: object) -> Result:
    """Run a command in this process, with an environment of its own; `run` starts all but the server."""
    own = environment(data, **{name: str(value) for name, value in variables.items()})
    with (
        mock.patch.dict(os.environ, own, clear=True),
        own_layer(),
        mock.patch("uvicorn.Server.run"),
    ):
        return CliRunner().invoke(app, arguments)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_printed_commands_work_when_pasted_and_are_logged(service: RunningService) -> None:
    def printed(part: str) -> list[str]:
        return [line for line in service.printed() if part in line]

    wait_for(lambda: len(printed("  curl")) == 3)
    responses = [
        subprocess.check_output(["sh", "-c", line], text=True) for line in printed("  curl")
    ]
    wait_for(lambda: printed("200  GET /v1/pets?status=available&limit=5"))

    assert [response.split()[1] for response in responses] == ["201", "200", "200"]
    assert (service.data / "api-key").stat().st_mode & 0o777 == 0o600
    request_id = service.http.get("/pets").headers["x-amzn-RequestId"]
    log = (service.data / "functions.log").read_text()
    assert request_id in log
    assert service.api_key not in log
    assert not printed("_aws")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc shows them")
def test_one_process_listens_on_one_port_of_this_machine(service: RunningService) -> None:
    process = Path(f"/proc/{service.process.pid}")
    sockets = {str(file.readlink()) for file in (process / "fd").iterdir() if file.is_symlink()}
    rows = [
        row.split()
        for kind in ("tcp", "tcp6")
        for row in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    ]
    listening = [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]

    assert listening == [f"0100007F:{httpx.URL(service.base_url).port:04X}"]
    assert [task.read_text() for task in process.glob("task/*/children") if task.read_text()] == []


def test_a_body_too_large_is_refused_while_it_comes(service: RunningService) -> None:
    url = httpx.URL(service.base_url)
    head = f"POST /v1/pets HTTP/1.1\r\nHost: {url.host}:{url.port}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with socket.create_connection((url.host, url.port or 0), timeout=20) as connection:
        connection.sendall(head + (b"100000\r\n" + b"a" * 0x100000 + b"\r\n") * 10 + b"1\r\na\r\n")

        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_keys_and_invoke_share_the_store(service: RunningService, tmp_path: Path) -> None:
    issued = json.loads(command(service.data, "keys", "issue", "--label", "robot", "--json").stdout)
    created, refused = (
        command(service.data, "invoke", f"{ROOT}/events/create-{s}.json") for s in (201, 401)
    )
    (tmp_path / "event.json").write_text('{"httpMethod": "GET", "path": "/v1/cats"}')
    unknown = command(tmp_path, "invoke", f"{tmp_path}/event.json")

    pet = json.loads(json.loads(created.stdout)["body"])
    own = service.http.get(
        f"/pets/{pet['id']}", headers={"Authorization": f"Bearer {issued['key']}"}
    )
    assert (own.status_code, own.json()) == (200, pet)
    assert json.loads(refused.stdout)["statusCode"] == 401
    assert '"Operation":"createPet"' in created.stderr
    assert (unknown.exit_code, "no function answers GET /v1/cats\n" in unknown.stderr) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["embedded", "amazons"])
def test_contract_holds_over_http(tmp_path: Path, store: str) -> None:
    with ExitStack() as stack:
        elsewhere = (
            {}
            if store == "embedded"
            else {ENDPOINT_VARIABLE: stack.enter_context(dynamodb_local())}
        )
        service = stack.enter_context(run_service(tmp_path, None, **elsewhere))
        issued = command(tmp_path, "keys", "issue", "--label", "second", "--json", **elsewhere)
        variables = {"BASE_URL": service.base_url, "API_KEY": service.api_key}
        second = json.loads(issued.stdout)["key"]
        printed = processes.run(
            "make", "contract", cwd=ROOT, timeout_s=600, SECOND_API_KEY=second, **variables
        )

    assert "skipped" not in printed


def test_signals_end_it_and_the_data_stays(tmp_path: Path) -> None:
    pets: list[object] = []
    terminal = os.openpty()[1]
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
        with run_service(tmp_path, terminal if number == signal.SIGKILL else None) as service:
            if number == signal.SIGKILL:
                termios.tcflow(
                    terminal, termios.TCOOFF
                )  # Ctrl-S: a stopped terminal stops no request
                assert {service.http.get("/pets").status_code for _ in range(200)} == {200}
            assert service.http.get("/pets").json() == pets
            pets.append(service.http.post("/pets", json={"name": "Rex", "categoryId": 1}).json())
            service.process.send_signal(number)
            service.process.send_signal(number)  # impatience changes nothing
            assert service.process.wait(20) == (-number if number == signal.SIGKILL else 0)
        assert "Traceback" not in service.console.read_text()
        assert DataFolder(tmp_path).base_url() is None


def test_interrupted_while_it_starts_it_ends_quietly(tmp_path: Path) -> None:
    output: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(
        [*COMMAND, "run"], cwd=ROOT, env=environment(tmp_path), **output
    ) as process:
        wait_for((tmp_path / "service").exists)
        process.send_signal(signal.SIGTERM)

        assert (process.communicate(timeout=20)[0], process.returncode) == (b"", 0)


def test_it_ends_with_make(tmp_path: Path) -> None:
    with subprocess.Popen(
        ["make", "run"], cwd=ROOT, env=environment(tmp_path), stdout=subprocess.DEVNULL
    ) as make:
        try:
            wait_for(DataFolder(tmp_path).base_url, 120)
        finally:
            make.kill()

    wait_for(lambda: DataFolder(tmp_path).base_url() is None)


def test_what_cannot_be_used_is_named(service: RunningService, tmp_path: Path) -> None:
    def said(name: str = "run", data: Path = tmp_path, **variables: object) -> str:
        done = command(data, name, **variables)
        assert done.exit_code == 1
        return done.output

    taken = httpx.URL(service.base_url).port
    assert f"make run: cannot listen on port {taken}: it is taken. Use another: PORT=8080" in said(
        PORT=taken
    )
    for port in ("abc", "99999"):
        assert f"cannot listen on port {port}: it is not a number from 0 to 65535" in said(
            PORT=port
        )
    assert f"make reset: {tmp_path} has no store" in said("reset")
    assert f"{tmp_path}/none.yaml" in said(TEMPLATE=tmp_path / "none.yaml")
    assert f"nothing can be stored in {ROOT}/README.md: " in said(data=ROOT / "README.md")
    (tmp_path / "1/functions.log").mkdir(parents=True)
    assert f"'{tmp_path}/1/functions.log'" in said(data=tmp_path / "1")
    endpoint = "http://127.0.0.1:1"
    assert f"the store at {endpoint} does not answer" in said(AWS_ENDPOINT_URL_DYNAMODB=endpoint)
    for name in ("run", "reset"):
        assert (
            f"{service.data} is in use by `make run` or `make sam-local` ({service.base_url}). Stop that"
            in said(name, service.data)
        )
    theirs = {"AWS_PROFILE": "none", "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "theirs"}
    with (
        mock.patch.dict(os.environ, theirs),
        open_store(DataFolder(tmp_path)),
    ):  # the user's own settings for AWS
        assert not os.environ.keys() & {"AWS_PROFILE", "AWS_ENDPOINT_URL"}
        assert os.environ["AWS_ACCESS_KEY_ID"] == "local"


def test_damaged_store_is_left_alone_until_it_is_reset(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "my data")
    command(folder.path, "run")
    key, damaged = folder.api_key.read_text(), folder.database.read_bytes()[:5000]
    folder.database.write_bytes(damaged)

    said = command(folder.path, "run").output

    assert str(folder.database) in said
    assert said.endswith(f"start with an empty store: make reset DATA='{folder.path}'\n")
    assert folder.database.read_bytes() == damaged
    said = command(folder.path, "reset").output
    (old,) = folder.path.glob("store.*.old")
    assert said == f"{folder.path}: the store is now {old}; the next start has an empty one.\n"
    assert (old / "dynamodb.sqlite").read_bytes() == damaged
    command(folder.path, "run")
    assert folder.api_key.read_text() == key
    assert '"label": "local"' in command(folder.path, "keys", "list", "--json").stdout


def test_announcement_of_another_machine_is_ignored(tmp_path: Path) -> None:
    folder, own = DataFolder(tmp_path), "http://127.0.0.1:80/v1"
    with folder.held_by_service():
        for url in (
            "http://evil.example:80/v1",
            "http://127.0.0.1.evil.example:80/v1",
            "file:///v1",
            own,
        ):
            (tmp_path / "service").write_text(url)
            assert folder.base_url() == (own if url == own else None)


def test_changed_files_are_loaded_and_broken_ones_are_not(tmp_path: Path) -> None:
    for name in ("functions", "layers"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    template = shutil.copyfile(ROOT / "template.yaml", tmp_path / "template.yaml")
    handler, extra = (
        tmp_path / "functions/list_pets/app.py",
        tmp_path / "layers/common/animal_store/extra.py",
    )
    text = handler.read_text()

    with run_service(tmp_path / "data", TEMPLATE=str(template), RELOAD="1") as service:

        def wait_for_status(status: int) -> None:
            wait_for(lambda: service.http.get("/pets").status_code == status)

        extra.write_text("STATUS = 298\n")
        handler.write_text(
            "from animal_store.extra import STATUS\n"
            + text.replace("Response(200", "Response(STATUS")
        )
        wait_for_status(298)
        extra.write_text("STATUS = 1 + 298\n")
        wait_for_status(299)
        handler.write_text(text + "undefined_name\n")
        wait_for(
            lambda: any(
                "Not reloaded" in line and "functions.log" in line for line in service.printed()
            )
        )
        wait_for_status(299)
        handler.write_text(text)
        wait_for_status(200)
        template.write_text(template.read_text().replace("Path: /v1/pets,", "Path: /v1/cats,"))
        wait_for_status(404)
