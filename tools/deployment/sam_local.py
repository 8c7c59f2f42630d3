"""Run the contract suite through `sam local`, in containers, with a store on this machine that only they reach."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import yaml

from tests.rehearsal import emulator
from tools.deployment.service import (
    SAM,
    DeploymentError,
    check_contract,
    serve_if_asked,
    temporary_keys,
)
from tools.deployment.stage import client
from tools.local.service import create_tables, load_template
from tools.packaging.targets import TARGETS

_HOST = "host.docker.internal"
_IMAGE = "public.ecr.aws/lambda/python:3.13-x86_64"
_START_S = 180.0


def run() -> None:
    """Run the contract suite through `sam local`, in containers (SERVE=1: leave it up; SKIP_PULL=1: fetch no image)."""
    if not (address := _address()):
        print(
            "sam local: SKIPPED, nothing was tried: no Docker engine runs the base image (see above)."
        )
        return
    settings = {"SERVICES": "dynamodb,sts"}
    with (
        tempfile.TemporaryDirectory() as folder,
        emulator.running(Path(folder) / "store", address, settings) as store,
    ):
        emulator.use(store)
        # Named as sam names them to the functions: by their logical ids.
        create_tables(
            client("dynamodb"),
            [table._replace(name=name) for name, table in load_template().tables.items()],
        )
        with _start_api(Path(folder), store) as base_url, temporary_keys("ApiKeysTable") as keys:
            serve_if_asked(base_url, keys)
            check_contract(base_url, keys, "sam-local")


def _address() -> str:
    """Return the address by which containers reach this machine, and nobody else does; empty without an engine.

    In a Linux engine that is the bridge's. An engine in a virtual machine (macOS, Windows) passes connections on to the
    loopback address.
    """
    command = [
        "docker",
        "run",
        "--rm",
        "--pull",
        "never" if os.environ.get("SKIP_PULL") else "missing",
    ]
    command += ["--add-host", f"{_HOST}:host-gateway", "--entrypoint", "cat", _IMAGE, "/etc/hosts"]
    try:
        hosts = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    address = next(
        line.split()[0] for line in hosts.splitlines() if _HOST in line and "." in line.split()[0]
    )
    with suppress(OSError), socket.create_server((address, 0)):
        return address
    return "127.0.0.1"


@contextmanager
def _start_api(folder: Path, store: str) -> Iterator[str]:
    """Run `sam local start-api` with warm containers, and wait until the API answers, itself and not only its port."""
    # sam passes on no variable that the template does not have.
    path = shutil.copytree(TARGETS["x86_64"].build_dir, folder / "build") / "template.yaml"
    template = yaml.safe_load(path.read_text("utf-8"))
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    variables["AWS_ENDPOINT_URL_DYNAMODB"] = f"http://{_HOST}:{store.rpartition(':')[2]}"
    path.write_text(yaml.safe_dump(template), "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [SAM, "local", "start-api", "--template-file", str(path), "--port", str(port)]
    command += ["--warm-containers", "EAGER", "--layer-cache-basedir", str(folder)]
    command += ["--add-host", f"{_HOST}:host-gateway"]
    command += ["--skip-pull-image"] if os.environ.get("SKIP_PULL") else []
    command += ["--parameter-overrides", "Stage=staging", "Architecture=x86_64"]
    # No credentials: sam would ask AWS whose they are.
    without = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"}
    environment = {name: value for name, value in os.environ.items() if name not in without}
    environment |= {"HOME": str(folder), "SAM_CLI_TELEMETRY": "0"}
    base_url, log, deadline = (
        f"http://127.0.0.1:{port}/v1",
        folder / "start-api.log",
        time.monotonic() + _START_S,
    )
    # A session of its own: Ctrl-C goes to every process of the terminal; this one is stopped by its parent alone.
    with log.open("w") as output, subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            while not _answers(base_url):
                if process.poll() is not None or time.monotonic() > deadline:
                    printed = log.read_text("utf-8", "replace")[-5000:]
                    raise DeploymentError(f"{printed}\nsam local start-api does not answer")
                time.sleep(0.2)
            yield base_url
        finally:
            process.terminate()  # sam then removes its containers; SIGINT is ignored below a shell's background job


def _answers(base_url: str) -> bool:
    with suppress(httpx.TransportError):
        return (
            httpx.get(f"{base_url}/pets", timeout=30, trust_env=False).status_code
            == httpx.codes.UNAUTHORIZED
        )
    return False
