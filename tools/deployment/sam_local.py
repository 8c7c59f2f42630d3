"""Run the contract suite through `sam local`, in containers.

The store is on this machine, bound to the one address by which containers reach it. What was started is gone at the
end, but for the images that sam has made.
"""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import yaml

from tools import ROOT
from tools.deployment import emulator
from tools.deployment.service import Deployment, DeploymentError, temporary_keys
from tools.deployment.stage import client
from tools.packaging.targets import TARGETS
from tools.packaging.translate import translate

_SAM = ROOT / ".tools/sam/bin/sam"
_HOST = "host.docker.internal"
_IMAGE = "public.ecr.aws/lambda/python:3.13-x86_64"
_START_S = 180.0
_PARAMETERS = {"Stage": "staging", "Architecture": "x86_64"}


def run(folder: Path) -> None:
    """Start everything, test it unless SERVE is set, and take it down."""
    if not (address := _address()):
        print("sam local: SKIPPED, nothing was tried: no Docker engine runs the base image (see above).")
        return
    with emulator.running(folder / "store", address, ["SERVICES=dynamodb,sts"]) as store:
        store.use()
        _create_tables()
        _write_template(folder, store.endpoint)
        with _start_api(folder) as base_url, temporary_keys("ApiKeysTable") as keys:
            deployment = Deployment(base_url, keys)
            if os.environ.get("SERVE"):
                deployment.serve()
            deployment.check_contract("sam-local")


def _address() -> str:
    """Return the address by which containers reach this machine, and nobody else does; empty without an engine.

    In a Linux engine that is the bridge's. An engine in a virtual machine (macOS, Windows) passes connections on to the
    loopback address.
    """
    command = ["docker", "run", "--rm", "--pull", "never" if os.environ.get("SKIP_PULL") else "missing"]
    command += ["--add-host", f"{_HOST}:host-gateway", "--entrypoint", "cat", _IMAGE, "/etc/hosts"]
    try:
        hosts = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    address = next(line.split()[0] for line in hosts.splitlines() if _HOST in line and "." in line.split()[0])
    with contextlib.suppress(OSError), socket.create_server((address, 0)):
        return address
    return "127.0.0.1"


def _create_tables() -> None:
    """Create the template's tables, named as sam names them to the functions: by their logical ids."""
    known = {"KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes", "BillingMode"}
    for name, resource in translate(_PARAMETERS)["Resources"].items():
        if resource["Type"] == "AWS::DynamoDB::Table":
            properties = {key: value for key, value in resource["Properties"].items() if key in known}
            client("dynamodb").create_table(TableName=name, **properties)


def _write_template(folder: Path, endpoint: str) -> None:
    """Add the store's address to what was built: sam passes on no variable that the template does not have."""
    build = TARGETS["x86_64"].build_dir
    if not (build / "template.yaml").exists():
        raise DeploymentError("nothing is built: make build ARCH=x86_64")
    built: Any = yaml.safe_load((build / "template.yaml").read_text("utf-8"))
    variables = built["Globals"]["Function"]["Environment"]["Variables"]
    variables["AWS_ENDPOINT_URL_DYNAMODB"] = f"http://{_HOST}:{endpoint.rpartition(':')[2]}"
    for resource in built["Resources"].values():
        for name in {"CodeUri", "ContentUri"} & set(resource.get("Properties", {})):
            resource["Properties"][name] = str(build / resource["Properties"][name])
    (folder / "template.yaml").write_text(yaml.safe_dump(built), "utf-8")


@contextlib.contextmanager
def _start_api(folder: Path) -> Iterator[str]:
    """Run `sam local start-api` with warm containers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(_SAM), "local", "start-api", "--template-file", "template.yaml", "--port", str(port)]
    command += ["--warm-containers", "EAGER", "--add-host", f"{_HOST}:host-gateway"]
    command += ["--layer-cache-basedir", str(folder)]
    command += ["--skip-pull-image"] if os.environ.get("SKIP_PULL") else []
    command += ["--parameter-overrides", *(f"{name}={value}" for name, value in _PARAMETERS.items())]
    # No credentials: sam would ask AWS whose they are.
    without = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"}
    environment = {name: value for name, value in os.environ.items() if name not in without}
    environment |= {"HOME": str(folder), "SAM_CLI_TELEMETRY": "0"}
    log = folder / "start-api.log"
    with log.open("w") as output:
        # A session of its own: Ctrl-C goes to every process of the terminal; this one is stopped by its parent alone.
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        base_url = f"http://127.0.0.1:{port}/v1"
        _wait(process, base_url, log)
        yield base_url
    finally:
        process.send_signal(signal.SIGINT)  # what makes sam remove its containers
        process.wait(30)


def _wait(process: subprocess.Popen[bytes], base_url: str, log: Path) -> None:
    """Wait until the API answers, itself and not only its port."""
    deadline = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{base_url}/pets", timeout=30, trust_env=False).status_code == httpx.codes.UNAUTHORIZED:
                return
        time.sleep(0.2)
    raise DeploymentError(f"{log.read_text('utf-8', 'replace')[-5000:]}\nsam local start-api does not answer")
