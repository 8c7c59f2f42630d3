"""`make sam-local` and `make sam-invoke`: functions in containers on the local store."""

import json
import os
import platform
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
from lambda_local.gateway import Gateway
from lambda_local.store_server import serve

from tools import ROOT
from tools.local import LocalError, events
from tools.local.folder import DataFolder
from tools.local.invoke import EventFile, explained, show
from tools.local.run import HOST, greeting, listen
from tools.local.service import (
    ENDPOINT_VARIABLE,
    REGION,
    Store,
    base_path,
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
_START_S, _STOP_S = 180.0, 20.0


def sam_local() -> None:
    """Serve the API from containers (PORT, DATA, EVENTS=0), and the store to any `sam local`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with explained("make sam-local"), suppress(KeyboardInterrupt), ExitStack() as stack:
        folder = DataFolder()
        service = stack.enter_context(folder.held_by_service())
        with listen(os.environ.get("PORT") or "3000") as listener:
            port = listener.getsockname()[1]
        store, gateway = stack.enter_context(_prepared(folder, BUILD / "env.json"))
        if os.environ.get("EVENTS") != "0":
            events.prepare(gateway, store.dynamodb)
        base_url, key = (
            f"http://{HOST}:{port}{base_path(gateway.template)}",
            store.key(gateway.template),
        )
        command = ("start-api", "--port", str(port), "--warm-containers", "EAGER")
        process = stack.enter_context(_sam(*command))
        _wait_until_it_answers(process, base_url, key)
        print(base_url, end="", file=service, flush=True)
        print(greeting(base_url, key), flush=True)
        process.wait()
        raise LocalError("sam local has ended (see above)")


def sam_invoke(event: EventFile, debug: str = "") -> None:
    """Invoke the function of an event's route in a container, and print its response."""
    with explained(str(event)), ExitStack() as stack:
        content = json.loads(event.read_text("utf-8"))
        # Of its own, because those of `make sam-local` may be in use.
        variables = Path(stack.enter_context(tempfile.TemporaryDirectory()), "env.json")
        store, gateway = stack.enter_context(_prepared(DataFolder(), variables))
        events.prepare_for(content, gateway, store.dynamodb)
        function = gateway.template.function_of(content).logical_id
        command = [
            "invoke",
            function,
            "--event",
            str(event),
            "--env-vars",
            str(variables),
        ]
        if debug:
            command += [
                "--debug-port",
                debug,
                "--debugger-path",
                str(_DEBUGGER),
                "--debug-args",
            ]
            command += [
                f"{_MOUNTED_DEBUGGER} --listen 0.0.0.0:{debug} --wait-for-client"
            ]
        process = stack.enter_context(_sam(*command, stdout=subprocess.PIPE))
        response = json.loads(process.communicate()[0] or "null")
        if not isinstance(response, dict) or "statusCode" not in response:
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
            _write_private(variables, {"Parameters": environment})
            _adapt(engine["template"], gateway, environment)
            _write_private(BUILD / "template.json", engine["template"])
            yield store, gateway


def _write_private(path: Path, content: Any) -> None:
    """Write a file that holds the store's access key id, so that only its owner can read it."""
    path.unlink(missing_ok=True)
    path.touch(0o600)
    path.write_text(json.dumps(content))


def _engine() -> Any:
    command = [".tools/sam/bin/python", "-m", "tools.local.engine", _IMAGE, STORE_HOST]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, check=False, text=True
    )
    if done.returncode:
        raise LocalError(done.stderr.strip())
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
    # Without credentials, which sam would ask AWS about.
    without = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    environment = {
        name: value for name, value in os.environ.items() if name not in without
    }
    environment |= {"SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": REGION}
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
    deadline, status = time.monotonic() + _START_S, 0
    headers = {"Authorization": f"Bearer {key}"}
    while status != httpx.codes.OK:
        if status == httpx.codes.SERVICE_UNAVAILABLE:
            raise LocalError(
                "the containers do not reach the store on this machine (see above)"
            )
        if process.poll() is not None or time.monotonic() > deadline:
            raise LocalError("sam local start-api does not answer (see above)")
        time.sleep(0.2)
        with suppress(httpx.TransportError):
            answer = httpx.get(
                f"{base_url}/pets", headers=headers, timeout=30, trust_env=False
            )
            status = answer.status_code
