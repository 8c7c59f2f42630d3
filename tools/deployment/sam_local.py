"""Run the built functions in containers: `python -m tools.deployment.sam_local` (SERVE=1, SKIP_PULL=1).

The contract suite goes through `sam local start-api`, every file of events/ through `sam local invoke`. The store is on
this machine, bound to the one address by which containers reach it. What was started is gone at the end.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tools import ROOT
from tools.deployment import docker_engine, emulator
from tools.deployment.emulator import EmulatorError
from tools.deployment.surface import Surface, SurfaceError, end_on_signals, issue_key
from tools.local import template
from tools.local.tables import ENDPOINT_VARIABLE, create_tables
from tools.packaging.targets import TARGETS

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

EXPECTED_FAILURES = ROOT / "tests/contract/expected_failures/sam-local.yaml"
EVENTS = ROOT / "events"

_SAM = ROOT / ".tools/sam/bin/sam"
_LOOPBACK = "127.0.0.1"
_START_S = 180.0
_STOP_S = 30.0
_AT_ONCE = 2
_PARAMETERS = {"Stage": "staging", "Architecture": "x86_64"}
# What the files of events/ take for granted: the key that they carry, and these animals.
_EXAMPLE_ANIMALS = (
    {"id": 1, "name": "Rex", "categoryId": 3, "status": "available"},
    {"id": 2, "name": "Mia", "categoryId": 1},
    {"id": 3, "name": "Bo", "categoryId": 3, "status": "sold"},
    {"id": 4, "name": "Kira", "categoryId": 9223372036854775807, "status": "available"},
    {"id": 5, "name": "Otto", "categoryId": 2, "status": "pending"},
)


class SkippedError(Exception):
    """Nothing could be tried on this machine; the message says why."""


@dataclass(frozen=True, slots=True)
class Sam:
    """The sam command on a built copy of the service.

    Args:
        folder: Holds the copy in `build`, and what sam writes.
    """

    folder: Path

    def command(self, *arguments: str) -> list[str]:
        """Write a `sam local` command line."""
        return [
            str(_SAM), "local", *arguments,
            "--template-file", str(self.folder / "build/template.yaml"),
            "--parameter-overrides", *(f"{name}={value}" for name, value in _PARAMETERS.items()),
        ]  # fmt: skip

    @property
    def options(self) -> list[str]:
        """What starts containers is told."""
        return ["--skip-pull-image", "--add-host", docker_engine.ADD_HOST, "--layer-cache-basedir", str(self.folder)]

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of sam: nothing that leads to AWS."""
        return {
            "PATH": f"{_SAM.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            # No credentials: sam would spend seconds on each command to ask AWS whose they are.
            "AWS_DEFAULT_REGION": emulator.REGION,
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_EC2_METADATA_DISABLED": "true",
            "SAM_CLI_TELEMETRY": "0",
            "PYTHONUTF8": "1",
        } | {name: value for name, value in os.environ.items() if name.startswith("DOCKER_")}


def run(folder: Path, *, serve: bool) -> None:
    """Start everything, test it, and take it down.

    Args:
        folder: For everything that is written.
        serve: Leave the service up until interrupted, and test nothing.

    Raises:
        EmulatorError: The store can not be used.
        SurfaceError: A step failed.
    """
    started = time.monotonic()

    def done(what: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {what}", flush=True)

    sam = Sam(folder)
    definition = template.load(ROOT / "template.yaml", _PARAMETERS)
    with _store(folder / "store") as store, _tidy_engine(store.endpoint):
        dynamodb = store.client("dynamodb")
        create_tables(dynamodb, definition.tables.values())
        _copy_build(folder / "build", store.endpoint)
        _name_tables(folder / "build/template.yaml", definition)
        with _start_api(sam) as base_url:
            key_table = definition.tables["ApiKeysTable"].name
            environment = store.environment(os.environ["PATH"])
            surface = Surface(base_url, *(issue_key(key_table, label, environment) for label in ("one", "two")))
            done(f"sam local start-api answers at {base_url}")
            if serve:
                surface.serve()
                return
            surface.check_contract(EXPECTED_FAILURES)
            done("the contract suite, through sam local start-api")
        done(f"sam local invoke: {_invoke_events(sam, dynamodb, definition)} events answered as their names say")


@contextlib.contextmanager
def _store(folder: Path) -> Iterator[emulator.Emulator]:
    """Run the store where containers reach it, and nobody else does.

    In a Linux engine that is the bridge's address of this machine. An engine in a virtual machine (macOS, Windows)
    passes connections on to the loopback address.
    """
    host = docker_engine.host_address()
    with socket.socket() as trial:
        try:
            trial.bind((host, 0))
        except OSError:
            host = _LOOPBACK
    with emulator.running(folder, host, ["SERVICES=dynamodb"]) as store:
        yield store


@contextlib.contextmanager
def _tidy_engine(endpoint: str) -> Iterator[None]:
    """Remove what is left of our containers, told by the store's address, and the images that sam made meanwhile."""
    before = docker_engine.layered_images()
    try:
        yield
    finally:
        mark = f"{ENDPOINT_VARIABLE}={_inside(endpoint)}"
        docker_engine.remove_containers(docker_engine.containers_with(mark))
        docker_engine.remove_images(docker_engine.layered_images() - before)
        if left := docker_engine.containers_with(mark):
            raise SurfaceError(f"containers are left: {', '.join(left)}")


def _inside(endpoint: str) -> str:
    """Write an address of this machine as a container calls it."""
    return f"http://{docker_engine.HOST}:{endpoint.rpartition(':')[2]}"


def _copy_build(target: Path, endpoint: str) -> None:
    """Copy what was built, and add the store's address: sam passes on no variable that the template does not have."""
    build = TARGETS["x86_64"].build_dir
    if not (build / "template.yaml").exists():
        raise SurfaceError("nothing is built: make build ARCH=x86_64")
    shutil.copytree(build, target)
    path = target / "template.yaml"
    built = yaml.safe_load(path.read_text("utf-8"))
    built["Globals"]["Function"]["Environment"]["Variables"][ENDPOINT_VARIABLE] = _inside(endpoint)
    path.write_text(yaml.safe_dump(built, sort_keys=False), "utf-8")


def _name_tables(path: Path, definition: template.Template) -> None:
    """Put the tables' names where the template refers to them: sam takes the logical id for the name."""
    built = yaml.safe_load(path.read_text("utf-8"))
    variables = built["Globals"]["Function"]["Environment"]["Variables"]
    for variable, value in variables.items():
        if isinstance(value, dict) and value.get("Ref") in definition.tables:
            variables[variable] = definition.tables[value["Ref"]].name
    path.write_text(yaml.safe_dump(built, sort_keys=False), "utf-8")


@contextlib.contextmanager
def _start_api(sam: Sam) -> Iterator[str]:
    """Run `sam local start-api` with warm containers; yields the base URL."""
    with socket.socket() as free:
        free.bind((_LOOPBACK, 0))
        port = free.getsockname()[1]
    log = sam.folder / "start-api.log"
    command = sam.command(
        "start-api", "--host", _LOOPBACK, "--port", str(port), "--warm-containers", "EAGER", "--no-watch"
    )
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, *sam.options],
            cwd=sam.folder,
            env=sam.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C goes to every process of the terminal; this one is stopped by its parent alone.
            start_new_session=True,
        )
    try:
        base_url = f"http://{_LOOPBACK}:{port}/v1"
        _wait(process, f"{base_url}/pets", log)
        yield base_url
    except SurfaceError:
        print("\n".join(log.read_text("utf-8", "replace").splitlines()[-40:]), file=sys.stderr)
        raise
    finally:
        process.send_signal(signal.SIGINT)  # what makes sam remove its containers
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait until the API answers, itself and not only its port."""
    import httpx

    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(url, timeout=30, trust_env=False).status_code == 401:  # noqa: PLR2004 - there is no key in it
                return
        time.sleep(0.2)
    raise SurfaceError(f"sam local start-api does not answer; its log is {log}")


def _invoke_events(sam: Sam, dynamodb: "DynamoDBClient", definition: template.Template) -> int:
    """Invoke a function with every event and check what comes back: sam's exit code says nothing of it."""
    _seed(dynamodb, definition)
    events = sorted(EVENTS.glob("*.json"))
    # The one repeats the Idempotency-Key of another: it comes after all the others.
    last = [event for event in events if promised_status(event) == 422]  # noqa: PLR2004
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        problems = list(pool.map(lambda event: _invoke(sam, event, definition), [e for e in events if e not in last]))
        problems += list(pool.map(lambda event: _invoke(sam, event, definition), last))
    if found := [problem for problem in problems if problem]:
        raise SurfaceError("sam local invoke:\n" + "\n".join(found))
    return len(events)


def _seed(dynamodb: "DynamoDBClient", definition: template.Template) -> None:
    """Put what the events take for granted into the tables, in the place of whatever the contract suite left."""
    from animal_store import api_key

    animals, keys = (definition.tables[name].name for name in ("AnimalsTable", "ApiKeysTable"))
    for name in (animals, keys):
        dynamodb.delete_table(TableName=name)
    create_tables(dynamodb, definition.tables.values())
    event = json.loads((EVENTS / "list-200.json").read_text("utf-8"))
    example_key = event["headers"]["Authorization"].removeprefix("Bearer ")
    dynamodb.put_item(
        TableName=keys,
        Item={"hash": {"S": api_key.digest(example_key)}, "label": {"S": "example"}, "created": {"N": "0"}},
    )
    dynamodb.put_item(
        TableName=animals,
        Item={"pk": {"S": "counter"}, "id": {"N": "0"}, "value": {"N": str(len(_EXAMPLE_ANIMALS))}},
    )
    for animal in _EXAMPLE_ANIMALS:
        item: Any = {name: {"S" if isinstance(value, str) else "N": str(value)} for name, value in animal.items()}
        dynamodb.put_item(TableName=animals, Item={"pk": {"S": "pet"}, **item})


def _invoke(sam: Sam, event: Path, definition: template.Template) -> str | None:
    """Invoke the function that an event is meant for; tell what is wrong with the answer."""
    content = json.loads(event.read_text("utf-8"))
    found = definition.find(content["httpMethod"], content["resource"])
    if found is None:
        return f"{event.name}: no function takes {content['httpMethod']} {content['resource']}"
    command = sam.command("invoke", found.route.function, "--event", str(event))
    output = subprocess.run(
        [*command, *sam.options],
        cwd=sam.folder,
        env=sam.environment,
        stdin=subprocess.DEVNULL,
        check=False,
        capture_output=True,
        text=True,
        timeout=_START_S,
    )
    problem = problem_of(output.stdout, promised_status(event))
    return problem and f"{event.name}: {problem}\n{output.stderr.strip()}"


def promised_status(event: Path) -> int:
    """Read the status of the answer off an event's name, such as `create-400-invalid-json.json`."""
    return int(event.stem.split("-")[1])


def problem_of(output: str, status: int) -> str | None:
    """Tell what is wrong with what `sam local invoke` printed; None when it is the answer that was promised.

    Args:
        output: Its stdout; the answer is the last line.
        status: The promised HTTP status.
    """
    try:
        answer = json.loads(output.strip().splitlines()[-1])
        body = json.loads(answer["body"])
    except (IndexError, KeyError, TypeError, ValueError) as error:
        return f"no answer of a function ({type(error).__name__}): {output.strip()[-500:] or 'nothing'}"
    if answer["statusCode"] != status:
        return f"answers {answer['statusCode']}, not {status}: {answer['body']}"
    if status >= 400 and (set(body) != {"code", "message", "status"} or body["status"] != status):  # noqa: PLR2004
        return f"is no Error object with status {status}: {answer['body']}"
    if answer["headers"].get("Content-Type") != "application/json":
        return f"has not the type application/json: {answer['headers']}"
    return None


def _prepare_engine(*, skip_pull: bool) -> None:
    if reason := docker_engine.missing():
        raise SkippedError(f"no Docker engine answers ({reason})")
    if skip_pull and not docker_engine.has_image():
        raise SurfaceError(f"{docker_engine.IMAGE} is not on this machine, and SKIP_PULL=1 forbids to fetch it")
    if not skip_pull and not docker_engine.pull_image():
        raise SurfaceError("the base image can not be fetched; SKIP_PULL=1 takes the one that is here")


def main() -> None:
    """Run as a command."""
    end_on_signals()
    sys.path.append(str(ROOT / "layers/common"))
    try:
        _prepare_engine(skip_pull=bool(os.environ.get("SKIP_PULL")))
        with tempfile.TemporaryDirectory(prefix="sam-local-") as folder:
            run(Path(folder), serve=bool(os.environ.get("SERVE")))
    except SkippedError as reason:
        print(f"sam local: SKIPPED, nothing was tried: {reason}.")
    except (EmulatorError, SurfaceError) as error:
        sys.exit(f"sam local failed: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
