"""`make sam-local`: runs the functions in containers, on the store of `animal-store invoke`."""

import copy
import json
import os
import re
import signal
import subprocess
from contextlib import suppress

from tools import ROOT, CommandError
from tools.local.events import add_examples, events_folder
from tools.local.listener import listen_on_port
from tools.local.open_store import open_store
from tools.local.serve_api import greeting
from tools.local.serve_store import serve_store
from tools.local.template import FUNCTION, LAYER, Template, load_template
from tools.packaging.targets import HOST_ARCHITECTURE, PYTHON

BUILD = ROOT / ".aws-sam/local"
"""The folder of the layer, and of the files that samconfig.toml names for `sam local`."""
# Containers reach the store by this host name. It names the command for people who see it in the
# log of a function that cannot reach the store.
STORE_HOST = "store-of-make-sam-local"
_IMAGE = f"public.ecr.aws/lambda/python:{PYTHON}-{HOST_ARCHITECTURE}"
# When sam ends, it leaves responses of the container engine open. Without this hook, Python 3.13
# would print a traceback for each of these responses.
_SAM = """\
import sys
from samcli.cli.main import cli
sys.unraisablehook = lambda _: None
cli(prog_name="sam")
"""
_NO_ENGINE = """\
`sam local` needs a container engine that answers, and Lambda's image. Start Docker; if it reaches
no registry, load the image from a file: docker load -i FILE. Without Docker, `make run` serves the
same handlers, and `animal-store invoke EVENT` invokes one. The command that failed"""


def sam_local() -> None:
    """Serve the API from containers on PORT; `make sam-local` builds the layer first."""
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    address = host_address()
    folder = events_folder()
    with (
        suppress(KeyboardInterrupt),
        folder.lock_for_service(),
        open_store(folder, load_template("staging")) as service,
    ):
        # Check that the port is free, then release it, because sam itself listens on this port.
        with listen_on_port() as listener:
            port = listener.getsockname()[1]
        add_examples(service.gateway(), service)
        with serve_store(service.database, address) as (store_port, access_key_id):
            _write_template_and_variables(service.template, store_port, access_key_id)
            details = f"""
Store: {folder.path}, not that of `make run`. Besides the key above, it has the key and the
animals of events/, so that `sam local invoke` answers the events as their files' names say"""
            print(greeting(port, service.api_key(), details), flush=True)
            _serve_api(port)
        raise CommandError("sam local has ended (see above)")


def host_address() -> str:
    """Return the address by which containers reach this machine."""
    host_option = f"--add-host={STORE_HOST}:host-gateway"
    command = [
        "docker",
        "run",
        "--rm",
        host_option,
        "--entrypoint=cat",
        _IMAGE,
        "/etc/hosts",
    ]
    try:
        hosts = subprocess.check_output(command, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CommandError(f"{_NO_ENGINE}: {error}") from error
    (address,) = re.findall(rf"(?m)^([0-9.]+)\s+{STORE_HOST}", hosts)
    return str(address)


def _write_template_and_variables(
    template: Template, port: int, access_key_id: str
) -> None:
    """Write the template and the variables for `sam local`.

    The template names the source folder of each function, so that sam reloads changed code. The
    layer is the one that `make sam-local` has built for this machine.
    """
    variables = template.environment | {
        "AWS_ENDPOINT_URL_DYNAMODB": f"http://{STORE_HOST}:{port}",
        "AWS_ACCESS_KEY_ID": access_key_id,
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_SESSION_TOKEN": "",
    }
    # Declare the variables in the template, because sam passes only declared variables.
    document = copy.deepcopy(template.document)
    document["Parameters"]["Architecture"]["Default"] = HOST_ARCHITECTURE
    document["Globals"]["Function"]["Environment"]["Variables"] = variables
    for resource in document["Resources"].values():
        if resource["Type"] == FUNCTION:
            code = resource["Properties"]["CodeUri"]
            resource["Properties"]["CodeUri"] = f"{ROOT}/{code}"
        if resource["Type"] == LAYER:
            resource["Properties"]["ContentUri"] = "layer"
    (BUILD / "template.yaml").write_text(json.dumps(document), "utf-8")
    environment = {"Parameters": variables}
    (BUILD / "env.json").write_text(json.dumps(environment), "utf-8")


def _serve_api(port: int) -> None:
    """Run `sam local start-api` until its end or Ctrl-C. It says when it listens."""
    # With an access key id, sam would ask AWS whose id it is.
    environment = dict(os.environ)
    del environment["AWS_ACCESS_KEY_ID"]
    # With EAGER, sam starts all containers at once, and sometimes leaves a container behind.
    options = [f"--port={port}", "--warm-containers=LAZY"]
    with subprocess.Popen(
        [ROOT / ".tools/sam/bin/python", "-c", _SAM, "local", "start-api", *options],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        # Start sam in a new session: in the terminal's session, each Ctrl-C would reach sam, and a
        # second Ctrl-C would make sam leave containers behind.
        start_new_session=True,
    ) as process:
        try:
            process.wait()
        finally:
            # After SIGINT, sam removes its containers.
            process.send_signal(signal.SIGINT)
            process.wait()
