"""`make sam-local` and `make sam-invoke`: functions in containers on the local store."""

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import stamina
from lambda_local import LocalError
from lambda_local.gateway import Gateway
from lambda_local.store_server import serve

from tools import ROOT
from tools.local import events
from tools.local.folder import DataFolder, write_private
from tools.local.invoke import EventFile, explained, show
from tools.local.run import HOST, greeting, listen
from tools.local.service import (
    BASE_PATH,
    ENDPOINT_VARIABLE,
    REGION,
    Store,
    load_template,
    open_store,
)

BUILD = ROOT / ".aws-sam/local"
"""What samconfig.toml's default sections name, and the layer that the Makefile builds."""
STORE_HOST = (
    "store-of-make-sam-local"  # a function that cannot reach it says so by this name
)
_STAGE = "staging"
_PROCESSOR = "arm64" if platform.machine() in {"aarch64", "arm64"} else "x86_64"
_IMAGE = f"public.ecr.aws/lambda/python:3.13-{_PROCESSOR}"
_DEBUGGER = ROOT / ".tools/debugpy/lib/python3.13/site-packages"
_MOUNTED_DEBUGGER = "/tmp/lambci_debug_files/debugpy"  # noqa: S108 - where sam mounts it
_EAGER = ("--warm-containers", "EAGER")
_START_S, _STOP_S = 180, 20


def sam_local() -> None:
    """Serve the API from containers (PORT, DATA, EVENTS=0), and the store to any `sam local`."""
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    folder = DataFolder()
    with (
        suppress(KeyboardInterrupt),
        folder.held_by_service() as service,
    ):
        with listen() as listener:
            port = listener.getsockname()[1]
        with _prepared(folder, BUILD / "env.json") as (store, gateway):
            if os.environ.get("EVENTS") != "0":
                events.prepare(events.EXAMPLE_KEY, gateway, store.dynamodb)
            base_url = f"http://{HOST}:{port}{BASE_PATH}"
            key = store.key(gateway.template)
            with _sam("start-api", "--port", str(port), *_EAGER) as process:
                _wait_until_it_answers(process, base_url, key)
                print(base_url, end="", file=service, flush=True)
                print(greeting(base_url, key), flush=True)
                process.wait()
        raise LocalError("sam local has ended (see above)")


def sam_invoke(event: EventFile, debug: str = "") -> None:
    """Invoke the function of an event's route in a container, and print its response."""
    with explained(event), tempfile.TemporaryDirectory() as own:
        content = json.loads(event.read_text("utf-8"))
        # Of its own, because those of `make sam-local` may be in use.
        variables = Path(own, "env.json")
        with _prepared(DataFolder(), variables) as (store, gateway):
            events.prepare(content, gateway, store.dynamodb)
            function = gateway.template.function_of(content).logical_id
            options = ["--event", str(event), "--env-vars", str(variables)]
            if debug:
                options += ["--debug-port", debug, "--debugger-path", str(_DEBUGGER)]
                listen_there = f"--listen 0.0.0.0:{debug} --wait-for-client"
                options += ["--debug-args", f"{_MOUNTED_DEBUGGER} {listen_there}"]
            with _sam("invoke", function, *options, stdout=subprocess.PIPE) as process:
                response = json.loads(process.communicate()[0] or "{}")
        if "statusCode" not in response:
            raise LocalError("the function gave no response (see above)")
    show(response)


@contextmanager
def _prepared(folder: DataFolder, variables: Path) -> Iterator[tuple[Store, Gateway]]:
    """Serve the store to containers, and write what `sam local` needs."""
    engine, template = _engine(), load_template(stage=_STAGE)
    with open_store(folder) as store:
        if not store.database:
            raise LocalError(
                f"containers use the store of DATA: unset {ENDPOINT_VARIABLE}"
            )
        gateway = store.load(template)
        with serve(store.database, engine["address"]) as (port, access_key_id):
            # All have the same variables.
            function = next(iter(template.functions.values()))
            environment = function.environment | {
                ENDPOINT_VARIABLE: f"http://{STORE_HOST}:{port}",
                "AWS_ACCESS_KEY_ID": access_key_id,
                "AWS_SECRET_ACCESS_KEY": "none",
                "AWS_SESSION_TOKEN": "",
            }
            write_private(variables, json.dumps({"Parameters": environment}))
            _adapt(engine["template"], gateway, environment)
            write_private(BUILD / "template.json", json.dumps(engine["template"]))
            yield store, gateway


def _engine() -> Any:
    """Ask the container engine what is needed of it, then build the layer if it has changed."""
    command = [".tools/sam/bin/python", "-m", "tools.local.engine", _IMAGE, STORE_HOST]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, check=False, text=True
    )
    if done.returncode:
        raise LocalError(done.stderr.strip())
    layer = ["make", "-s", ".aws-sam/local/.layer"]
    subprocess.run(layer, cwd=ROOT, check=True, stdout=sys.stderr)
    return json.loads(done.stdout)


def _adapt(document: Any, gateway: Gateway, environment: dict[str, str]) -> None:
    """Name the functions' sources, so that a change is seen, and this machine's layer."""
    document["Parameters"]["Stage"]["Default"] = _STAGE
    document["Parameters"]["Architecture"]["Default"] = _PROCESSOR
    # A variable that the template does not declare is not passed on.
    document["Globals"]["Function"]["Environment"]["Variables"] = environment
    resources = document["Resources"]
    for name, function in gateway.template.functions.items():
        resources[name]["Properties"]["CodeUri"] = str(function.code)
    resources["CommonLayer"]["Properties"]["ContentUri"] = str(BUILD / "layer")


@contextmanager
def _sam(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a `sam local` command; at the end it removes its containers."""
    environment = os.environ | {"SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": REGION}
    # Without credentials, which sam would ask AWS about.
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        del environment[name]
    # A session of its own, or Ctrl-C in the terminal would reach it too: its parent stops it.
    options |= {"cwd": ROOT, "env": environment, "start_new_session": True}
    command = [f"{ROOT}/.tools/sam/bin/sam", "local", *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, **options) as process:
        try:
            yield process
        finally:
            # A second Ctrl-C would leave containers.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            process.send_signal(signal.SIGINT)  # after SIGTERM sam prints tracebacks
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
            process.kill()


def _wait_until_it_answers(
    process: subprocess.Popen[bytes], base_url: str, key: str
) -> None:
    """Wait until a function has read the store: sam's port is open before anything answers."""
    headers = {"Authorization": f"Bearer {key}"}
    for attempt in stamina.retry_context(
        httpx.TransportError, attempts=None, timeout=_START_S, wait_max=1
    ):
        with attempt:
            if process.poll() is not None:
                raise LocalError("sam local start-api has ended (see above)")
            url = f"{base_url}/pets"
            answer = httpx.get(url, headers=headers, timeout=30, trust_env=False)
            answer.raise_for_status()
