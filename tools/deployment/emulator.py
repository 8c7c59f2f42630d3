"""The emulator of AWS (ministack) as a child process: start, environment for those who call it, stop."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import boto3

from tools import ROOT
from tools.deployment.service import DeploymentError
from tools.packaging.targets import PYTHON

ACCOUNT = "123456789012"
REGION = "eu-central-1"

_PYTHON = ROOT / ".tools/ministack/bin/python"
_START_S = 30.0


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator."""

    endpoint: str  # where it speaks AWS's APIs
    api_origin: str  # where it serves the API that `serve_api` named
    process: subprocess.Popen[str]

    def serve_api(self, api_id: str) -> None:
        """Choose the API that `api_origin` stands for."""
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        self.process.stdin.write(f"{api_id}\n")
        self.process.stdin.flush()

    def use(self, credentials: Mapping[str, str] | None = None) -> None:
        """Let this process and what it starts call the emulator, and never AWS, as root or with a role's credentials."""
        # The emulator takes the number of an account for the root user of that account.
        given = credentials or {"AccessKeyId": ACCOUNT, "SecretAccessKey": "none", "SessionToken": ""}
        os.environ.update(
            AWS_ENDPOINT_URL=self.endpoint,
            AWS_ACCESS_KEY_ID=given["AccessKeyId"],
            AWS_SECRET_ACCESS_KEY=given["SecretAccessKey"],
            AWS_SESSION_TOKEN=given["SessionToken"],
            AWS_DEFAULT_REGION=REGION,
            AWS_REGION=REGION,
            AWS_EC2_METADATA_DISABLED="true",
            AWS_CONFIG_FILE="/dev/null",
            AWS_SHARED_CREDENTIALS_FILE="/dev/null",
            NO_PROXY="*",
        )
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN" if not credentials else ""):
            os.environ.pop(name, None)
        boto3.setup_default_session()


@contextlib.contextmanager
def running(folder: Path, host: str = "127.0.0.1", settings: Sequence[str] = ()) -> Iterator[Emulator]:
    """Run an empty emulator with a folder of its own and settings (`NAME=VALUE`) for as long as the context lasts."""
    if not _PYTHON.exists():
        raise DeploymentError("the emulator is not installed: make .tools/ministack/.installed")
    version, packages = _output("import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_path('purelib'))")
    if version != PYTHON:
        raise DeploymentError(
            f"the emulator runs the functions on its own Python, {version}; they are built for {PYTHON}"
        )
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    # An interpreter that finds what Lambda's Python finds: the standard library. The emulator runs the functions by it.
    subprocess.run([str(_PYTHON), "-m", "venv", "--without-pip", str(folder / "python")], check=True)
    command = [str(folder / "python/bin/python"), "-I", str(ROOT / "tools/deployment/emulator_process.py")]
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
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            process.communicate(timeout=15)  # it ends with its input
        process.kill()
        process.wait()


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
    raise DeploymentError(f"the emulator did not start; its log ends with: {log.read_text('utf-8', 'replace')[-500:]}")


def _output(code: str) -> tuple[tuple[int, int], str]:
    done = subprocess.run([str(_PYTHON), "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    major, minor, path = done.stdout.split(maxsplit=2)
    return (int(major), int(minor)), path.strip()
