"""`make run` as a person meets it: what it prints, how it ends, what it keeps, and what it says when it cannot."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes import COMMAND, RunningService, environment, run_service, wait_for
from tools import ROOT
from tools.local.store import DataFolder, LocalStore

PET = {"name": "Rex", "categoryId": 1}


def call(service: RunningService, method: str, path: str, **options: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {options.pop('key', service.api_key)}"}
    return httpx.request(method, service.base_url + path, headers=headers, timeout=20, **options)


def processes_of(data: Path) -> list[str]:
    """Every process that names the folder on its command line, as the store does."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,args"], check=True, capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if str(data.resolve()) in line]


def refused(data: Path, **variables: str) -> str:
    """Start a service that must not start; what it says."""
    done = subprocess.run(
        [*COMMAND, "run"],
        cwd=ROOT,
        env=environment(data, **variables),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout.strip().splitlines()[-1]


def test_it_says_how_to_call_it(service: RunningService) -> None:
    printed = service.printed()

    assert f"Base URL: {service.base_url}" in printed
    assert f"API key: {service.api_key}" in printed
    assert f"Docs: {service.base_url.removesuffix('/v1')}/docs" in printed
    assert (service.data / "api-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_printed_commands_work_when_pasted(tmp_path: Path) -> None:
    with run_service(tmp_path / "data") as service:
        commands = [line for line in service.printed() if line.startswith("  curl")]
        answers = [
            subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True).stdout
            for command in commands
        ]

    created, listed, read = (answer.partition("\n\n")[2] for answer in answers)
    assert [answer.split()[1] for answer in answers] == ["201", "200", "200"]
    assert json.loads(listed) == [json.loads(created)]
    assert json.loads(read) == json.loads(created)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_it_and_the_state_stays(tmp_path: Path, number: signal.Signals) -> None:
    data = tmp_path / "data"
    with run_service(data) as first:
        key, pet = first.api_key, call(first, "POST", "/pets", json=PET).json()
        begin = time.monotonic()
        status = first.stop(number)

    assert status == 0
    assert time.monotonic() - begin < 5
    assert "Traceback" not in first.console.read_text()
    assert processes_of(data) == []
    with run_service(data) as second:
        assert second.api_key == key
        assert call(second, "GET", "/pets").json() == [pet]


def test_impatience_changes_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with run_service(data) as first:
        pet = call(first, "POST", "/pets", json=PET).json()
        while first.process.poll() is None:
            first.process.send_signal(signal.SIGINT)
            time.sleep(0.01)

    assert first.process.returncode == 0
    assert "Traceback" not in first.console.read_text()
    with run_service(data) as second:
        assert call(second, "GET", "/pets").json() == [pet]


def test_killed_it_leaves_no_process_and_starts_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with run_service(data) as first:
        pet = call(first, "POST", "/pets", json=PET).json()
        assert len(processes_of(data)) == 1
        first.stop(signal.SIGKILL)

    wait_for(lambda: not processes_of(data))
    with run_service(data) as second:
        assert call(second, "GET", "/pets").json() == [pet]


@pytest.mark.parametrize("after_s", [0.05, 0.2, 0.4, 0.8, 1.6])
def test_killed_while_it_starts_it_leaves_no_process(tmp_path: Path, after_s: float) -> None:
    data = tmp_path / "data"
    process = subprocess.Popen([*COMMAND, "run"], cwd=ROOT, env=environment(data), stdout=subprocess.DEVNULL)
    time.sleep(after_s)
    process.kill()
    process.wait()

    wait_for(lambda: not processes_of(data), 20)
    with run_service(data) as service:
        assert call(service, "GET", "/pets").status_code == 200


def test_interrupted_while_it_starts_it_ends_in_peace(tmp_path: Path) -> None:
    data = tmp_path / "data"
    process = subprocess.Popen(
        [*COMMAND, "run"], cwd=ROOT, env=environment(data), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()  # "Starting the local store ..."
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)

    assert (process.returncode, errors) == (0, "")
    wait_for(lambda: not processes_of(data))  # a store that had just been forked notices a moment later


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_killed_make_takes_everything_with_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    make = subprocess.Popen(["make", "run"], cwd=ROOT, env=environment(data), stdout=subprocess.DEVNULL)
    try:
        wait_for((data / "service.json").exists, 120)
        pid = json.loads((data / "service.json").read_text())["pid"]
    finally:
        make.kill()
        make.wait()

    wait_for(lambda: not processes_of(data))
    wait_for(lambda: not _exists(pid))


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_ends_when_its_store_does(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with run_service(data) as service:
        os.kill(int(processes_of(data)[0].split()[0]), signal.SIGKILL)
        status = service.process.wait(20)

    assert status == 1
    assert service.printed()[-1].startswith("make run: the local store ended; see ")


def test_taken_port(service: RunningService, tmp_path: Path) -> None:
    port = httpx.URL(service.base_url).port
    assert port is not None

    said = refused(tmp_path / "data", PORT=str(port))

    assert said == f"make run: port {port} is taken. Take another (make run PORT=8080), or any free one (PORT=0)"


@pytest.mark.parametrize("port", ["http", "-1", "65536", "3000.0"])
def test_port_that_is_none(tmp_path: Path, port: str) -> None:
    assert refused(tmp_path, PORT=port).startswith(f"make run: PORT={port} is no port")


def test_folder_in_use(service: RunningService) -> None:
    said = refused(service.data)

    assert f"in use by another `make run` (process {service.process.pid})" in said
    assert call(service, "GET", "/pets").status_code == 200


def test_damaged_state(tmp_path: Path) -> None:
    state = tmp_path / "store" / "dynamodb.json"
    state.parent.mkdir()
    state.write_text('{"cut')

    assert f"{state} is damaged" in refused(tmp_path)
    assert state.read_text() == '{"cut'


@pytest.mark.parametrize("below", ["", "/below"])
def test_folder_that_is_none(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()

    said = refused(Path(f"{tmp_path}/file{below}"))

    assert said.startswith(f"make run: nothing can be stored in {tmp_path}/file{below}: ")
    assert reset(Path(f"{tmp_path}/file{below}")).stdout.startswith("make reset: nothing can be stored in")


def test_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "functions.log").mkdir()

    assert f"'{tmp_path}/functions.log'" in refused(tmp_path)


def test_damaged_key_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "api-key").write_bytes(b"\xff")

    with run_service(tmp_path) as service:
        assert call(service, "GET", "/pets").status_code == 200


def test_state_that_could_not_be_written_is_mourned(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with run_service(data) as service:
        call(service, "POST", "/pets", json=PET)
        (data / "store").rmdir()
        (data / "store").touch()
        status = service.stop()

    assert status == 1
    assert service.printed()[-1].startswith("make run: what was stored since the start is lost")


def test_template_that_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path, TEMPLATE=str(tmp_path / "none.yaml"))


def test_store_out_of_reach(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"

    assert f"the store at {endpoint} does not answer" in refused(tmp_path, AWS_ENDPOINT_URL_DYNAMODB=endpoint)


def test_another_store(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "other")
    with folder.locked() as lock:
        store = LocalStore(folder, lock)
        try:
            store.wait_until_ready()
            endpoint = store.endpoint
            with run_service(tmp_path / "data", AWS_ENDPOINT_URL_DYNAMODB=endpoint) as service:
                pet = call(service, "POST", "/pets", json=PET).json()
                assert call(service, "GET", "/pets").json() == [pet]
                assert processes_of(tmp_path / "data") == []
                assert json.loads(service.tool("keys", "list", "--json"))[0]["label"] == "local"
        finally:
            store.stop()


def test_each_request_is_one_line(service: RunningService) -> None:
    call(service, "GET", "/pets?limit=1&seen=here")
    httpx.get(service.base_url + "/nothing/%0a%1b", params={"a": "x" * 300})

    wait_for(lambda: any("/nothing/" in line for line in service.printed()))
    (line,) = (line for line in service.printed() if "seen=here" in line)
    assert line.split()[1:5] == ["200", "GET", "/v1/pets?limit=1&seen=here", line.split()[4]]
    assert line.endswith(" ms")
    (other,) = (line for line in service.printed() if "/nothing/" in line)
    assert len(other) < 300


def test_logs_and_metrics_of_the_functions_are_in_a_file(service: RunningService) -> None:
    answer = call(service, "GET", "/pets?limit=1")

    request_id = answer.headers["x-amzn-RequestId"]
    log = (service.data / "functions.log").read_text()
    assert any(line.startswith("ListPetsFunction {") and request_id in line for line in log.splitlines())
    assert '"_aws"' in log
    assert "_aws" not in service.console.read_text()
    assert service.api_key not in log


# -- keys --------------------------------------------------------------------------------------------------------------


def test_keys_are_issued_listed_and_revoked(service: RunningService) -> None:
    issued = json.loads(service.tool("keys", "issue", "--label", "robot", "--expires", "90d", "--json"))
    other = json.loads(service.tool("keys", "issue", "--label", "lost", "--json"))

    service.tool("keys", "revoke", other["id"])

    assert call(service, "GET", "/pets", key=issued["key"]).status_code == 200
    assert call(service, "GET", "/pets", key=other["key"]).status_code == 401
    states = {key["label"]: key["state"] for key in json.loads(service.tool("keys", "list", "--json"))}
    assert states["robot"] == "active"
    assert states["lost"] == "revoked"
    table = service.tool("keys", "list")
    assert issued["id"] in table
    assert issued["key"] not in table


@pytest.mark.parametrize("label", ["[/x]", "[bold]"])
def test_label_is_shown_as_it_is(service: RunningService, label: str) -> None:
    service.tool("keys", "issue", "--label", label)

    assert f" {label} " in service.tool("keys", "list")


def test_keys_need_a_store(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "keys", "list"], cwd=ROOT, env=environment(tmp_path), check=False, capture_output=True, text=True
    )

    assert done.returncode == 1
    assert done.stderr.startswith(f"No `make run` is using {tmp_path}.")


# -- reset -------------------------------------------------------------------------------------------------------------


def reset(data: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "reset"], cwd=ROOT, env=environment(data), check=False, capture_output=True, text=True
    )


def test_reset(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with run_service(data) as first:
        call(first, "POST", "/pets", json=PET)
        while_running = reset(data)
        first.stop()

    assert while_running.returncode == 1
    assert "is in use by another `make run`" in while_running.stdout
    assert reset(data).returncode == 0
    with run_service(data) as second:
        assert second.api_key == first.api_key
        assert call(second, "GET", "/pets").json() == []


# -- reload ------------------------------------------------------------------------------------------------------------

TEMPLATE = """
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
  Layer: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer}}
  Hello:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: hello
      Handler: app.handler
      Timeout: 1
      Layers: [!Ref Layer]
      Events: {Api: {Type: Api, Properties: {Path: /v1/hello, Method: GET}}}
"""
HELLO = """
import greeting
def handler(event, context):
    return {"statusCode": 200, "body": greeting.TEXT + " A"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("hello", "layer"):
        (tmp_path / name).mkdir()
    (tmp_path / "hello/app.py").write_text(HELLO)
    (tmp_path / "layer/greeting.py").write_text('TEXT = "hello"\n')
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    return tmp_path


@pytest.fixture
def reloading(project: Path) -> Iterator[RunningService]:
    with run_service(project / "data", TEMPLATE=str(project / "template.yaml"), RELOAD="1") as service:
        yield service


def hello(service: RunningService) -> str:
    return httpx.get(service.base_url + "/hello").text


def test_changed_files_are_loaded(project: Path, reloading: RunningService) -> None:
    assert hello(reloading) == "hello A"

    (project / "hello/app.py").write_text(HELLO.replace(" A", " BB"))
    wait_for(lambda: hello(reloading) == "hello BB")
    (project / "layer/greeting.py").write_text('TEXT = "good day"\n')
    wait_for(lambda: hello(reloading) == "good day BB")
    (project / "template.new").write_text(TEMPLATE.replace("/v1/hello", "/v1/welcome"))
    (project / "template.new").replace(project / "template.yaml")  # as editors do
    wait_for(lambda: httpx.get(reloading.base_url + "/welcome").text == "good day BB")
    assert httpx.get(reloading.base_url + "/hello").status_code == 403


def test_broken_file_keeps_the_handlers_from_before(project: Path, reloading: RunningService) -> None:
    (project / "hello/app.py").write_text("def handler(\n")

    wait_for(lambda: any("Not reloaded" in line and "SyntaxError" in line for line in reloading.printed()))
    assert hello(reloading) == "hello A"
    (project / "hello/app.py").write_text(HELLO.replace(" A", " mended"))
    wait_for(lambda: hello(reloading) == "hello mended")


# -- functions that fail -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "status"),
    [("raise ValueError('inside')", 502), ("return {'statusCode': 'x'}", 502), ("import time; time.sleep(30)", 504)],
)
def test_function_that_fails(project: Path, line: str, status: int) -> None:
    (project / "hello/app.py").write_text(f"def handler(event, context):\n    {line}\n")
    with run_service(project / "data", TEMPLATE=str(project / "template.yaml")) as service:
        answer = httpx.get(service.base_url + "/hello", timeout=20)
        begin = time.monotonic()
        assert service.stop() == 0

    assert answer.status_code == status
    assert "inside" not in answer.text
    assert time.monotonic() - begin < 5  # even while the handler sleeps on
