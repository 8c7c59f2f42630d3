"""The emulator of AWS as a child process: start, environment for those who call it, stop."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools import ROOT
from tools.packaging.targets import PYTHON

if TYPE_CHECKING:
    from collections.abc import Callable

ACCOUNT = "123456789012"
REGION = "eu-central-1"

_ENVIRONMENT = ROOT / ".tools/ministack"
_START_S = 30.0
_STOP_S = 15.0


class EmulatorError(Exception):
    """The emulator can not be used; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator.

    Args:
        endpoint: Where it speaks AWS's APIs.
        api_origin: Where it serves the API that `serve_api` named.
        process: Its process.
    """

    endpoint: str
    api_origin: str
    process: subprocess.Popen[str]

    def serve_api(self, api_id: str) -> None:
        """Choose the API that `api_origin` stands for."""
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        self.process.stdin.write(f"{api_id}\n")
        self.process.stdin.flush()

    def environment(self, path: str) -> dict[str, str]:
        """Return the whole environment of a program that shall call the emulator, and never AWS.

        Args:
            path: Its PATH.
        """
        return {
            "PATH": path,
            "AWS_ENDPOINT_URL": self.endpoint,
            # The emulator takes the number of an account for the root user of that account.
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": "none",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "SAM_CLI_TELEMETRY": "0",
            "PYTHONUTF8": "1",
            "NO_COLOR": "1",
        }

    def client(self, service: str, credentials: Mapping[str, str] | None = None) -> Any:
        """Make an SDK client.

        Args:
            service: The SDK's name of it.
            credentials: `AccessKeyId`, `SecretAccessKey` and `SessionToken` of a role; None: the account's root user.
        """
        import boto3
        from botocore.config import Config

        given = credentials or {"AccessKeyId": ACCOUNT, "SecretAccessKey": "none"}
        make: Callable[..., Any] = boto3.client
        return make(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"],
            aws_session_token=given.get("SessionToken"),
            # No retries, so that a failure is seen; no proxy, which could not reach this machine's own addresses.
            config=Config(retries={"mode": "standard", "total_max_attempts": 1}, proxies={}),
        )


def require_python() -> Path:
    """Return the interpreter of ministack's environment.

    Raises:
        EmulatorError: It is not installed, or is no Python that can run the functions' layer.
    """
    python = _ENVIRONMENT / "bin/python"
    if not python.exists():
        raise EmulatorError("the emulator is not installed: make .tools/ministack/.installed")
    version = _output([str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    if version != "{}.{}".format(*PYTHON):
        raise EmulatorError(
            f"the emulator runs the functions on its own Python, which is {version} here; they are built for "
            "{}.{}. Install it, then: make clean && make PYTHON=/path/to/python{}.{} ...".format(*PYTHON, *PYTHON)
        )
    return python


@contextlib.contextmanager
def running(folder: Path, host: str = "127.0.0.1", settings: Sequence[str] = ()) -> Iterator[Emulator]:
    """Run an emulator, empty, for as long as the context lasts.

    Args:
        folder: For its interpreter, its log and its temporary files.
        host: The address to listen on.
        settings: `NAME=VALUE` of its environment.

    Raises:
        EmulatorError: It does not start.
    """
    python = require_python()
    folder.mkdir(parents=True)
    temporary = folder / "tmp"
    temporary.mkdir()
    packages = _output([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    command = [
        str(_bare_interpreter(python, folder / "python")),
        "-I",
        str(ROOT / "tools/deployment/emulator_process.py"),
    ]
    command += [host, packages, f"MINISTACK_ACCOUNT_ID={ACCOUNT}", f"MINISTACK_REGION={REGION}"]
    command += [f"AWS_ACCESS_KEY_ID={ACCOUNT}", *settings]
    log = folder / "emulator.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            # Nothing of ours: functions inherit it.
            env={"PATH": "/usr/bin:/bin", "HOME": str(temporary), "TMPDIR": str(temporary), "LANG": "C.UTF-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            # Ctrl-C goes to every process of the terminal; this one is stopped by its parent alone.
            start_new_session=True,
        )
    try:
        yield _ready(process, host, log)
    finally:
        _stop(process)


def _ready(process: subprocess.Popen[str], host: str, log: Path) -> Emulator:
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    ports = process.stdout.readline().split()
    deadline = time.monotonic() + _START_S
    while ports and process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            for port in ports:
                socket.create_connection((host, int(port)), 1).close()
            return Emulator(f"http://{host}:{ports[0]}", f"http://{host}:{ports[1]}", process)
        time.sleep(0.05)
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    raise EmulatorError(f"the emulator did not start; its log ends with: {(lines or ['(nothing)'])[-1]}")


def _stop(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None  # noqa: S101 - they are pipes
    assert process.stdout is not None  # noqa: S101
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def _bare_interpreter(python: Path, directory: Path) -> Path:
    """Make an interpreter that finds the standard library alone: what else is needed, the layer brings.

    (AWS's runtime has boto3 too; here it shows that the layer does not lean on it.)
    """
    subprocess.run([str(python), "-m", "venv", "--without-pip", str(directory)], check=True)
    return directory / "bin/python"


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, stderr=sys.stderr).stdout.strip()
