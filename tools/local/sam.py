"""`make sam-local`: functions in containers on the local store of the events."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from contextlib import suppress

from tools import ROOT
from tools.local import LocalError
from tools.local.events import add_examples, events_folder
from tools.local.listener import listen_on_port
from tools.local.run import greeting
from tools.local.service import ENDPOINT_VARIABLE, load_template, open_store
from tools.local.store_server import serve_store
from tools.local.template import LAYER, Template, read
from tools.packaging.targets import HOST_ARCHITECTURE

BUILD = ROOT / ".aws-sam/local"
"""Holds what samconfig.toml's default sections name, and the layer that the Makefile builds."""
# A function that cannot reach the store names it in its log.
STORE_HOST = "store-of-make-sam-local"
_IMAGE = f"public.ecr.aws/lambda/python:3.13-{HOST_ARCHITECTURE}"
# On exit, sam leaves the engine's responses open, which Python 3.13 reports as tracebacks.
_SAM = """\
import sys
from samcli.cli.main import cli
sys.unraisablehook = lambda _: None
cli(prog_name="sam")
"""
_NO_ENGINE = """\
`sam local` needs a container engine that answers, and Lambda's image. Start Docker; if it reaches
no registry, load the image from a file: docker load -i FILE. Without Docker, `make run` serves the
same handlers, and `animal-store invoke EVENT` invokes one. What failed"""


def sam_local() -> None:
    """Serve the API from containers, on PORT, and the store in DATA to any `sam local`."""
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    os.environ.pop(ENDPOINT_VARIABLE, None)  # containers use the store of the folder
    address = host_address()
    folder, template = events_folder(), load_template(stage="staging")
    with (
        suppress(KeyboardInterrupt),
        folder.held_by_service(),
        open_store(folder) as service,
    ):
        with listen_on_port() as listener:
            port = listener.getsockname()[1]  # sam itself listens there
        gateway = service.gateway(template)
        add_examples(gateway, service)
        assert service.database  # noqa: S101 - for mypy
        with serve_store(service.database, address) as (store_port, access_key_id):
            _write_files(template, store_port, access_key_id)
            with _start_api(port) as process:
                try:
                    # Wait until sam's port is open; a first request starts a container.
                    while process.poll() is None:
                        with (
                            suppress(ConnectionRefusedError),
                            socket.create_connection(("127.0.0.1", port)),
                        ):
                            break
                        time.sleep(0.2)
                    key = service.api_key(template)
                    print(greeting(port, key), flush=True)
                    process.wait()
                finally:
                    # sam removes its containers; after SIGTERM it would print tracebacks.
                    process.send_signal(signal.SIGINT)
                    process.wait()
        raise LocalError("sam local has ended (see above)")


def host_address() -> str:
    """Ask the engine how containers reach this machine."""
    host = f"--add-host={STORE_HOST}:host-gateway"
    command = ["docker", "run", "--rm", host, "--entrypoint=cat", _IMAGE, "/etc/hosts"]
    try:
        hosts = subprocess.check_output(command, text=True)
        (address,) = re.findall(rf"([0-9.]+)\s+{STORE_HOST}", hosts)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise LocalError(f"{_NO_ENGINE}: {error}") from error
    return str(address)


def _write_files(template: Template, port: int, access_key_id: str) -> None:
    """Write a template with the functions' sources, and this machine's layer and processor.

    A change in a source is seen at the next request. sam passes on only the variables that the
    template declares.
    """
    variables = template.environment | {
        ENDPOINT_VARIABLE: f"http://{STORE_HOST}:{port}",
        "AWS_ACCESS_KEY_ID": access_key_id,
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_SESSION_TOKEN": "",
    }
    document = read(ROOT / "template.yaml")
    document["Parameters"]["Architecture"]["Default"] = HOST_ARCHITECTURE
    document["Globals"]["Function"]["Environment"]["Variables"] = variables
    for name, resource in document["Resources"].items():
        if name in template.functions:
            resource["Properties"]["CodeUri"] = f"{template.functions[name].code}"
        if resource["Type"] == LAYER:
            resource["Properties"]["ContentUri"] = "layer"
    (BUILD / "template.yaml").write_text(json.dumps(document), "utf-8")
    environment = {"Parameters": variables}
    (BUILD / "env.json").write_text(json.dumps(environment), "utf-8")


def _start_api(port: int) -> subprocess.Popen[bytes]:
    """Start `sam local start-api`."""
    environment = os.environ | {"SAM_CLI_TELEMETRY": "0"}
    # sam would ask AWS about credentials.
    del environment["AWS_ACCESS_KEY_ID"]
    # With EAGER, sam starts all containers at once, and now and then leaves one behind.
    options = [f"--port={port}", "--warm-containers=LAZY"]
    return subprocess.Popen(
        [ROOT / ".tools/sam/bin/python", "-c", _SAM, "local", "start-api", *options],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        # Without a session of its own, each Ctrl-C in the terminal would reach it: a second one
        # leaves containers behind.
        start_new_session=True,
    )
