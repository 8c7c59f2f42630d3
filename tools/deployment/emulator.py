"""The emulator of AWS (ministack) as a child process: start, environment for those who call it, stop."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import boto3

from tools import ROOT
from tools.deployment.service import DeploymentError
from tools.packaging.targets import PYTHON

ACCOUNT = "123456789012"
_REGION = "eu-central-1"
_PYTHON = ROOT / ".tools/ministack/bin/python"


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator."""

    endpoint: str
    process: subprocess.Popen[str]

    def serve_api(self, api_id: str, stage: str) -> str:
        """Serve a stage of an API as the address of the API would, and return where."""
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        self.process.stdin.write(f"{api_id} {stage}\n")
        self.process.stdin.flush()
        return f"{self.endpoint}/{stage}/v1"

    def use(self, credentials: Mapping[str, str] | None = None) -> None:
        """Let this process and what it starts call the emulator, never AWS, as root or with a role's credentials."""
        # The emulator takes the number of an account for the root user of that account.
        given = credentials or {"AccessKeyId": ACCOUNT, "SecretAccessKey": "none", "SessionToken": ""}
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ.update(
            AWS_ENDPOINT_URL=self.endpoint,
            AWS_ACCESS_KEY_ID=given["AccessKeyId"],
            AWS_SECRET_ACCESS_KEY=given["SecretAccessKey"],
            AWS_DEFAULT_REGION=_REGION,
            AWS_CONFIG_FILE="/dev/null",
            AWS_SHARED_CREDENTIALS_FILE="/dev/null",
            NO_PROXY="*",
        )
        if given["SessionToken"]:
            os.environ["AWS_SESSION_TOKEN"] = given["SessionToken"]
        boto3.setup_default_session()


@contextlib.contextmanager
def running(folder: Path, host: str = "127.0.0.1", settings: Sequence[str] = ()) -> Iterator[Emulator]:
    """Run an empty emulator with a folder of its own and settings (`NAME=VALUE`) for as long as the context lasts."""
    if not _PYTHON.exists():
        raise DeploymentError("the emulator is not installed: make .tools/ministack/.installed")
    code = "import sys, sysconfig; print('%d.%d' % sys.version_info[:2], sysconfig.get_path('purelib'))"
    told = subprocess.run([str(_PYTHON), "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
    version, packages = told.split(maxsplit=1)
    if version != "{}.{}".format(*PYTHON):
        raise DeploymentError(f"the emulator runs functions on its own Python, {version}; they are built for {PYTHON}")
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    # An interpreter that finds what Lambda's Python finds: the standard library. The emulator runs the functions by it.
    subprocess.run([str(_PYTHON), "-m", "venv", "--without-pip", str(folder / "python")], check=True)
    command = [str(folder / "python/bin/python"), "-I", str(ROOT / "tools/deployment/emulator_process.py")]
    command += [host, packages.strip(), f"MINISTACK_ACCOUNT_ID={ACCOUNT}", f"MINISTACK_REGION={_REGION}"]
    log = folder / "emulator.log"
    with log.open("w") as errors:
        # Nothing of our environment: functions inherit it. A session of its own: Ctrl-C goes to every process of the
        # terminal, and this one is stopped by its parent alone.
        process = subprocess.Popen(
            [*command, f"AWS_ACCESS_KEY_ID={ACCOUNT}", *settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors, text=True, start_new_session=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(temporary), "TMPDIR": str(temporary), "LANG": "C.UTF-8"},
        )  # fmt: skip
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        if not (port := process.stdout.readline().strip()):
            raise DeploymentError(f"the emulator did not start: {log.read_text('utf-8', 'replace')[-500:]}")
        yield Emulator(f"http://{host}:{port}", process)
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            process.communicate(timeout=15)  # it ends with its input
        process.kill()
        process.wait()
