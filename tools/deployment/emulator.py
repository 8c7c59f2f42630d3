"""The emulator of AWS (ministack) as a child process: start, environment for those who call it, stop."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import boto3

from tools import ROOT
from tools.deployment.service import DeploymentError
from tools.packaging.targets import PYTHON

ACCOUNT = "123456789012"
_REGION = "eu-central-1"
_ENVIRONMENT = ROOT / ".tools/ministack"
_ROOT = {"AccessKeyId": ACCOUNT, "SecretAccessKey": "none", "SessionToken": ""}  # the account's number names its root


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator."""

    endpoint: str

    def use(self, credentials: Mapping[str, str] = _ROOT) -> None:
        """Let this process and what it starts call the emulator, never AWS, as root or with a role's credentials."""
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ |= {
            "AWS_ENDPOINT_URL": self.endpoint,
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
def running(folder: Path, host: str = "127.0.0.1", settings: Mapping[str, str] | None = None) -> Iterator[Emulator]:
    """Run an empty emulator in a new folder for as long as the context lasts."""
    version = "{}.{}".format(*PYTHON)  # the emulator runs functions on its own Python
    packages = _ENVIRONMENT / f"lib/python{version}/site-packages"
    if not packages.exists():
        raise DeploymentError(f"there is no emulator with Python {version}: make clean, make rehearse")
    # An interpreter that finds what Lambda's Python finds: the standard library. The emulator runs the functions by it.
    subprocess.run([_ENVIRONMENT / "bin/python", "-m", "venv", "--without-pip", str(folder)], check=True)
    listener = socket.create_server((host, 0))
    port = listener.getsockname()[1]
    # Nothing of our environment: functions inherit this one. The last three keep the emulator from starting a file
    # server and a message broker, and from looking for containers.
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
    environment |= {"GATEWAY_PORT": str(port), "MINISTACK_ACCOUNT_ID": ACCOUNT, "AWS_ACCESS_KEY_ID": ACCOUNT}
    environment |= {"MINISTACK_REGION": _REGION, "LOG_LEVEL": "ERROR", **(settings or {})}
    environment |= {"SFTP_ENABLED": "0", "IOT_MTLS_ENABLED": "0", "DOCKER_HOST": "unix:///nonexistent"}
    command = [f"{folder}/bin/python", "-I", f"{ROOT}/tools/deployment/emulator_process.py", f"{packages}"]
    command += [f"{listener.fileno()}"]
    # A session of its own: Ctrl-C goes to every process of the terminal, and this one ends with its input.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, env=environment, start_new_session=True, pass_fds=[listener.fileno()]
    ) as process:
        listener.close()
        try:
            yield Emulator(f"http://{host}:{port}")
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=15)
            process.kill()
