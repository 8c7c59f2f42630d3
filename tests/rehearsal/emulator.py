"""The emulator of AWS (ministack): run it, and direct calls to it."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import boto3
import yaml

from tools import ROOT
from tools.packaging.targets import PYTHON

ACCOUNT = "123456789012"
LIMITATIONS = Path(__file__).with_name("emulator.yaml")
_REGION = "eu-central-1"
_ENVIRONMENT = ROOT / ".tools/ministack"
# The account's number names its root user.
ROOT_USER = {"AccessKeyId": ACCOUNT, "SecretAccessKey": "none", "SessionToken": ""}


def use(endpoint: str, credentials: Mapping[str, str] = ROOT_USER) -> None:
    """Let this process and its children call the emulator, never AWS, with these credentials."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
        "AWS_SESSION_TOKEN": credentials["SessionToken"],
        "AWS_DEFAULT_REGION": _REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": "*",
    }
    boto3.setup_default_session()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run an empty emulator in a new folder for as long as the context lasts; give its endpoint."""
    version = "{}.{}".format(*PYTHON)  # the emulator runs functions on its own Python
    packages = _ENVIRONMENT / f"lib/python{version}/site-packages"
    if not packages.exists():
        raise FileNotFoundError(
            f"no emulator with Python {version}: make clean, make rehearse"
        )
    # An interpreter that finds what Lambda's Python finds: the standard library.
    base = _ENVIRONMENT / "bin/python"
    subprocess.run([base, "-m", "venv", "--without-pip", str(folder)], check=True)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    # Nothing of our environment: functions inherit this one. The last three keep the emulator
    # from starting a file server and a message broker, and from looking for containers.
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "GATEWAY_PORT": str(port),
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": _REGION,
        "AWS_ACCESS_KEY_ID": ACCOUNT,
        "AUTH": "true",  # enforce permissions
        "LOG_LEVEL": "ERROR",
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "DOCKER_HOST": "unix:///nonexistent",
    }
    limitations = yaml.safe_load(LIMITATIONS.read_text("utf-8"))
    command = [
        f"{folder}/bin/python",
        "-I",
        str(Path(__file__).with_name("emulator_process.py")),
    ]
    command += [str(packages), str(listener.fileno())]
    command += [str(ROOT), str(ROOT / ".tools/sam/bin/python")]
    command += limitations["Allowed, although the emulator refuses it"]
    # A session of its own: Ctrl-C goes to every process of the terminal, and this one ends with
    # its input.
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        pass_fds=[listener.fileno()],
    ) as process:
        listener.close()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=15)
            process.kill()
